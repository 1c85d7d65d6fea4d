"""A program as rows: what each operation is, makes, costs, and which line of the user's asked for it.

A Stage is one form of the program (jaxpr, StableHLO, optimized HLO); its rows are in the order of its text,
and rows that are deeper than the one above are inside of it: the body of a loop, a branch, a function.
`jaxpr_rows`, `stablehlo_rows` and `hlo_rows` make them; `view` shows them.
"""
import dataclasses
import linecache
from collections.abc import Sequence
from typing import NamedTuple

from ...core.source_info import short

_CONTEXT = 8        # lines shown around those that made operations


@dataclasses.dataclass(slots=True)
class Row:
    """One operation, argument, or holder of others.

    `holds` says of a holder what it is: "function", "loop", "branch", "fusion" or "block".  `operands` are
    numbers of rows of the same stage.  `bytes` are what it reads and writes, `size` what its results take of
    main memory, `seconds` what it took in a run, without the rows that are inside of it; None where that is
    not known.
    """
    depth: int
    op: str
    text: str
    types: str = ""
    holds: str = ""
    sharding: str = ""
    flops: int | None = None
    bytes: int | None = None
    size: int = 0
    source: tuple[str, int] | None = None
    path: str = ""          # named scopes and the operation, `jit(step)/layer/dot_general`
    argument: str = ""      # the path of an argument, `params['w']`
    note: str = ""
    operands: Sequence[int] = ()
    seconds: float | None = None


@dataclasses.dataclass
class Stage:
    """One form of a program."""
    name: str
    rows: list[Row]


class Usage(NamedTuple):
    """What is alive while a stage's rows run.

    `alive` are pairs (row, bytes that are alive there), `peak` the row where it is most, `largest` pairs
    (row, bytes) of the values that are alive then, the largest first.
    """
    alive: list
    peak: int
    largest: list


@dataclasses.dataclass
class Document:
    """A program in all its forms.

    `mesh` is {axis: size}, empty for one device; `collectives` those of `communication`; `memory` the Usage
    of the stage that `memory_of` names, and `totals` what the compiler says of it, {name: bytes}; `seconds`
    what a run took, 0 where it was not measured.
    """
    title: str
    stages: list[Stage]
    mesh: dict[str, int] = dataclasses.field(default_factory=dict)
    collectives: list = dataclasses.field(default_factory=list)
    memory_of: str = ""
    memory: Usage = Usage([], 0, [])
    totals: dict[str, int] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0

    def sources(self):
        """{file: {line: text}} of the user's lines that made operations, and the lines around them."""
        wanted = {}
        for stage in self.stages:
            for row in stage.rows:
                if row.source is not None:
                    wanted.setdefault(row.source[0], set()).add(row.source[1])
        found = {}
        for file, numbers in wanted.items():
            lines = linecache.getlines(file)
            near = sorted({n for number in numbers
                           for n in range(max(number - _CONTEXT, 1), min(number + _CONTEXT, len(lines)) + 1)})
            found[file] = {n: lines[n - 1].rstrip("\n") for n in near}
        return found


def ends_at(rows, i):
    """The number of the row behind what row `i` holds."""
    end = i + 1
    while end < len(rows) and rows[end].depth > rows[i].depth:
        end += 1
    return end


def where(source):
    """`train.py:12`, with the path as one writes it from the working directory; "" for None."""
    return "" if source is None else f"{short(source[0])}:{source[1]}"
