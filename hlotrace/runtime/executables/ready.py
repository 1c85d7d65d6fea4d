"""Calls that are ready: compiled programs found by the types of their operands alone, and run as they are."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.avals import avals_by_type
from ...core.config import state
from ...core.primitive import Builtin
from ..array_impl import ArrayImpl, for_dispatch
from ..devices import client
from .executable import Executable


class Ready(NamedTuple):
    """How a program is run on operands of the types under which this is kept, and what becomes of its
    results."""
    run: Callable[..., Any]     # of a list of the operands if there are handlers, else of the operands
    handlers: Any
    aval: Any                   # of the one result; None where a call takes more than to run the program
    signature: Any              # of that result
    committed: bool             # are the results?
    executable: Any             # None where a value of the host is copied


EQUAL_BUT_NOT_ALIKE = (float, complex, np.generic, tuple, frozenset)      # what they print tells them apart
# types of static values that are alike if equal
PLAIN = frozenset({int, str, bool, type(None), Builtin, *map(type, dtypes.SUPPORTED)})


def add_static(parts: list[Any], x: Any) -> None:
    """Add a static value to the parts of a key, which are equal only for values that are `alike`."""
    kind = type(x)
    parts += kind, x
    if kind is tuple and PLAIN.issuperset(kinds := [*map(type, x)]):
        parts += kinds
    elif kind not in PLAIN and isinstance(x, EQUAL_BUT_NOT_ALIKE):
        parts.append(repr(x))


def look_at(leaves: Iterable[Any], types: list[Any]) -> list[Any] | None:
    """Add to `types` what decides the types of leaves that may be arrays or None, under the same options.

    The result is the operands of their program: the arrays' buffers, copies of small NumPy arrays, numbers;
    None where a leaf is something else: a container, most often.
    """
    operands: list[Any] = []
    for x in leaves:
        if type(x) is ArrayImpl:
            types.append(x._signature)
            operands.append(x._buf)
        elif type(x) is np.ndarray:
            types += x.dtype, x.shape       # an aval would take as long as the rest
            operands.append(for_dispatch(x))
        elif x is None:
            types.append(x)
        elif (aval_of := avals_by_type.get(type(x))) is None:
            return None
        else:
            types.append(aval_of(x))
            operands.append(x)
    return operands


def in_place(executable: Executable, operands: Sequence[Any]) -> bool | None:
    """Whether the results are committed, if the program takes these arrays where they are; None otherwise.

    None, too, where it is more than a run of programs: Python is called, whose errors are the user's.
    """
    lowered = executable.lowered
    if lowered.effects or lowered.callbacks or lowered.failures or state.no_execution:
        return None
    arrays = [(x, i) for i, x in enumerate(operands) if type(x) is ArrayImpl]
    if not all([executable.has_there(x, i) for x, i in arrays]):
        return None
    committed = [x._committed for x, _ in arrays]
    if executable.commits:          # signatures say where arrays are if these are committed
        return True if all(committed) else None
    return any(committed)


def ready(executable: Executable, operands: Sequence[Any], committed: bool, one: bool) -> Ready:
    """The Ready for operands like these, of which `in_place` said `committed`; `one`: has it one result, and
    gives nothing away?"""
    others = [x for x in operands if type(x) is not ArrayImpl]
    # a number of Python's may come next in place of a weakly typed scalar, as their types are the same
    copied = all([for_dispatch(x) is not x if type(x) is np.ndarray else type(x) is ArrayImpl and (
        x.ndim or not x.weak_type) for x in operands])
    run: Any = executable.execute
    handlers: Any = executable.handlers
    if run is None or executable.lowered.donated and committed or (
            not copied and executable.device != client.default_device()):
        run, handlers = executable.run_alive, None
    elif others:
        arrays_too = np.ndarray in map(type, others)
        run = executable.run_operands if arrays_too else executable.run_numbers
        run, handlers = executable.dispatch() if copied else run, None
    if committed:
        executable.sign()
    return Ready(run, handlers, executable.out_avals[0] if one else None,
                 executable.signatures[0] if one and committed else None, committed, executable)
