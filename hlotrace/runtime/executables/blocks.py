"""Programs in pieces: the blocks that a program repeats, each compiled once, and what is between them.

XLA copies a function for each of its calls before it optimizes anything, so a network of 96 layers takes it 8
times as long as one of 12, outlined or not.  Here every block is an executable of its own, and a program is
a list of them, run one after the other on the buffers that the earlier ones made.
"""
from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.avals import physical
from ...core.jaxpr import Eqn, Jaxpr, Literal, Var, sub_jaxprs
from ...core.programs import cached
from ...lowering.module import lower
from ...primitives.arrays.contract import dot_general_p
from ...primitives.arrays.conv import conv_general_dilated_p
from ...primitives.arrays.slicing import copy_p
from ...primitives.programs.calls import jit_p
from .. import array_impl, binding
from . import compilation
from .executable import Executable

if TYPE_CHECKING:
    from ...lowering.module import Lowered

LIGHTEST = 2e5          # operations in a block; starting it costs as much as 1e4 or so
MOST_BETWEEN = 3        # pieces between the blocks, for each block: with more, one program compiles sooner


@dataclasses.dataclass
class Block:
    program: Jaxpr
    operands: Sequence[Any]      # Vars and Literals
    results: Sequence[Any]       # Vars


def blocks_of(lowered: Lowered) -> tuple[Jaxpr, list[Block]] | None:
    """(the program with outputs that are all its own, its Pieces in order), or None where it is better left
    in one."""
    heavy = {b.jaxpr for b in lowered.blocks if work(b.jaxpr) >= LIGHTEST}
    if not heavy or lowered.effects or lowered.callbacks or lowered.inspections:
        return None
    jaxpr = _with_own_outputs(lowered.jaxpr)
    used = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if type(v) is Var}
    used.update((v, len(jaxpr.eqns)) for v in jaxpr.outvars if type(v) is Var)
    pieces, between = [], 0

    def close(start: int, end: int) -> None:
        nonlocal between
        if start < end:
            pieces.append(_stretch(jaxpr.eqns[start:end], used, end, f"{jaxpr.name}_{between}"))
            between += 1
    start = 0
    for i, eqn in enumerate(jaxpr.eqns):
        if eqn.primitive is jit_p and eqn.params["jaxpr"] in heavy:
            close(start, i)
            pieces.append(Block(eqn.params["jaxpr"], eqn.invars, eqn.outvars))
            start = i + 1
    close(start, len(jaxpr.eqns))
    return (jaxpr, pieces) if len(pieces) > 1 and between <= MOST_BETWEEN * len(heavy) + 2 else None


def _with_own_outputs(jaxpr: Jaxpr) -> Jaxpr:
    """No two outputs may share a buffer with each other or with an input: who donates one would lose the
    other."""
    seen, outvars, eqns = set(jaxpr.invars), [], []
    for v in jaxpr.outvars:
        if type(v) is Literal or v in seen:
            eqns.append(Eqn(copy_p, [v], [Var(v.aval)], {}))
            v = eqns[-1].outvars[0]
        seen.add(v)
        outvars.append(v)
    return jaxpr.replace(eqns=[*jaxpr.eqns, *eqns], outvars=outvars) if eqns else jaxpr


def _stretch(eqns: Sequence[Eqn], used: dict[Var, int], end: int, name: str) -> Block:
    made = dict.fromkeys(v for eqn in eqns for v in eqn.outvars)
    operands = list(dict.fromkeys(v for eqn in eqns for v in eqn.invars if type(v) is Var and v not in made))
    results = [v for v in made if used.get(v, -1) >= end]
    return Block(Jaxpr((), (), operands, eqns, results, name), operands, results)


@cached
def work(jaxpr: Jaxpr) -> int:
    """Roughly how many scalar operations a program does."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = sum(map(work, sub_jaxprs(eqn.params)))
        size = sum(v.aval.size for v in eqn.outvars)
        if eqn.primitive is dot_general_p:
            (contracted, _), _ = eqn.params["dimension_numbers"]
            size *= 2 * math.prod(eqn.invars[0].aval.shape[d] for d in contracted)
        elif eqn.primitive is conv_general_dilated_p:
            size *= 2 * eqn.invars[1].aval.size // max(*eqn.outvars[0].aval.shape, 1)
        total += max(inner, size)
    return total


class BlockExecutable(Executable):
    """A program compiled in pieces.  `steps` are (executable, slots of operands, slots of results, slots now
    free)."""
    __slots__ = ("steps", "constants", "width", "out_slots", "donated", "peak")
    gives_back = True

    def __init__(self, lowered: Lowered, jaxpr: Jaxpr, pieces: Sequence[Block], device: binding.Device,
                 compiler_options: Mapping[str, Any] | None) -> None:
        programs = _each_lowered(lowered, pieces)
        compiled = {program: compilation.compile_whole(alone, device, compiler_options, len(programs))
                    for program, alone in programs.items()}
        super().__init__(None, lowered, device, sum(e.compile_seconds for e in compiled.values()),
                         # each block has a file of its own
                         "" if all(e.from_disk for e in compiled.values()) else None)
        slots = {v: i for i, v in enumerate(jaxpr.invars)}
        self.constants: list[binding.Buffer] = []

        def slot(v: Var | Literal) -> int:
            if type(v) is Literal:      # a piece takes buffers only
                self.constants.append(array_impl.put(np.asarray(v.val, v.aval.dtype), physical(v.aval),
                                                     device))
                return -len(self.constants)
            return slots.setdefault(v, len(slots))
        last = {v: i for i, piece in enumerate(pieces) for v in piece.operands if type(v) is Var}
        last.update((v, len(pieces)) for v in jaxpr.outvars if type(v) is Var)
        self.steps = []
        for i, piece in enumerate(pieces):
            operands, results = ([slot(v) for v in vs] for vs in (piece.operands, piece.results))
            free = [slots[v] for v in dict.fromkeys([*piece.operands, *piece.results])
                    if type(v) is Var and last.get(v, i) == i]
            self.steps.append((compiled[piece.program], operands, results, free))
        self.peak = _peak(jaxpr, pieces, last, compiled)
        self.out_slots = [slot(v) for v in jaxpr.outvars]
        self.width = len(slots) - len(jaxpr.invars)
        self.donated = frozenset(lowered.donated)

    def run(self, buffers: Sequence[binding.Buffer]) -> list[binding.Buffer]:
        device = self.device        # all is checked before the first piece deletes what it was given
        if any(b.is_deleted() or b._sharding._own._devices[0] != device for b in buffers):
            raise binding.JaxRuntimeError("an argument was deleted, donated, or is on another device")
        spent: Any = self.donated
        if spent and len(set(map(id, buffers))) < len(buffers):
            times = collections.Counter(map(id, buffers))
            spent = {i for i in spent if times[id(buffers[i])] == 1}
        held: list[Any] = [*buffers, *[None] * self.width, *reversed(self.constants)]
        for executable, operands, results, free in self.steps:
            made = executable.run([held[i] for i in operands])
            for i, b in zip(results, made):
                held[i] = b
            for i in free:
                if i in spent:
                    held[i].delete()
                held[i] = None
        return [held[i] for i in self.out_slots]

    def memory(self) -> Memory:
        jaxpr = self.lowered.jaxpr
        return Memory(_bytes(jaxpr.invars), _bytes(jaxpr.outvars), self.peak,
                      sum(piece.memory().generated_code_size_in_bytes for piece, _ in self.pieces))

    @property
    def pieces(self) -> list[tuple[Executable, int]]:
        calls: dict[Executable, int] = {}
        for executable, *_ in self.steps:
            calls[executable] = calls.get(executable, 0) + 1
        return list(calls.items())


def _each_lowered(lowered: Lowered, pieces: Sequence[Block]) -> dict[Jaxpr, Lowered]:
    return {program: lower(program, platform=lowered.platform, blocks=lowered.blocks)
            for program in dict.fromkeys(piece.program for piece in pieces)}


def compiled_alone(lowered: Lowered) -> list[Lowered]:
    """The Lowered programs that XLA is given for this one: those of its pieces, or itself."""
    found = blocks_of(lowered)
    return list(_each_lowered(lowered, found[1]).values()) if found else [lowered]


def _bytes(variables: Iterable[Any]) -> int:
    return sum(physical(v.aval).size * physical(v.aval).dtype.itemsize for v in variables)


def _peak(jaxpr: Jaxpr, pieces: Sequence[Block], last: dict[Var, int],
          compiled: dict[Jaxpr, Executable]) -> int:
    """The most bytes that intermediate values and the piece that runs hold at once."""
    outs = {v for v in jaxpr.outvars if type(v) is Var}
    held, peak = 0, 0
    inside = {v for piece in pieces for v in piece.results if v not in outs}
    for i, piece in enumerate(pieces):
        held += _bytes(v for v in piece.results if v in inside)
        peak = max(peak, held + compiled[piece.program].memory().temp_size_in_bytes)
        held -= _bytes(v for v in dict.fromkeys([*piece.operands, *piece.results])
                       if type(v) is Var and v in inside and last.get(v, i) == i)
    return peak


@dataclasses.dataclass
class Memory:
    """Bytes that a program in pieces takes, by jaxlib's names; temporaries include what one piece leaves for
    another."""
    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    alias_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        return self.argument_size_in_bytes + self.output_size_in_bytes + self.temp_size_in_bytes


def compile_lowered(lowered: Lowered, device: binding.Device,
                    compiler_options: Mapping[str, Any] | None = None) -> Executable:
    """An Executable for a Lowered program, in pieces where that is better, as `whole.compile_whole`."""
    found = None if lowered.partition or not lowered.platform.in_pieces else blocks_of(lowered)
    if found is None:
        return compilation.compile_whole(lowered, device, compiler_options)
    return BlockExecutable(lowered, *found, device, compiler_options)
