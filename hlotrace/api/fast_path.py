"""The fast path of a compiled function: from the types of the arguments to the compiled call.

It knows arrays, NumPy values, Python numbers and static values alone, which need not be flattened; whatever
else is passed goes the common way, `FastPath.call_any`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.avals import aval_or_none
from ..core.config import state
from ..core.surface.boundary import reraise_for_user
from ..core.trace import EVAL
from ..runtime.array_impl import ArrayImpl, operand
from ..runtime.binding import JaxRuntimeError
from .signatures import EQUAL_BUT_NOT_ALIKE

def _types(leaves: Sequence[Any]) -> list[Any]:
    """What decides the types of what may be arrays, under the same options.  LookupError where one is not an
    array: a container, most often."""
    parts: list[Any] = []
    for x in leaves:
        if type(x) is ArrayImpl:
            parts.append(x.aval)
        elif type(x) is np.ndarray:
            parts += x.dtype, x.shape       # an aval would take as long as the rest
        else:
            aval = aval_or_none(x)
            if aval is None:
                raise LookupError
            parts.append(aval)
    return parts


_PLAIN = frozenset({int, str, bool, type(None)})      # types of static values that are alike if equal


def _static_part(x: Any) -> tuple[Any, ...]:
    """The part of a key for a static value: equal only for values that are `alike`."""
    kind = type(x)
    return (kind, x) if kind in _PLAIN or not isinstance(x, EQUAL_BUT_NOT_ALIKE) else (kind, x, repr(x))


class FastPath:
    """What is called like a function: its arguments are looked up by their types first.

    A class derived from it has `_quick`, the table of simple Calls by these types, `_never_quick`, whether
    none is simple, `_has_statics`, `_static_numbers` and `_static_names`, and does any call in
    `call_any(args, kwargs, key)`, where `key` is that of the table or None.
    """
    _quick: dict[Any, Any]
    _never_quick: bool
    _has_statics: bool
    _static_numbers: tuple[int, ...]
    _static_names: tuple[str, ...]
    call_any: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Arrays, numbers and static values alone need not be flattened: such a call is tried first, by their
        types."""
        try:
            if state.trace is not EVAL or self._never_quick:
                return self.call_any(args, kwargs, None)
            key: tuple[Any, ...] | None = None
            leaves: Any = args
            only_arrays = True
            try:
                if kwargs or self._has_statics:
                    leaves, key = self._flat_key(args, kwargs)
                    only_arrays = all([type(x) is ArrayImpl for x in leaves])
                else:
                    # as a ContextCache would have it, in fewer steps
                    key = (*[x.aval for x in leaves if type(x) is ArrayImpl], state.trace_key)
                    if len(key) <= len(leaves):     # NumPy values, Python numbers
                        key, only_arrays = (*_types(leaves), state.trace_key), False
                call = self._quick[key]
                executable = call.executable
                if only_arrays:
                    buffers = [x._buf for x in leaves if not x._committed]
                    if len(buffers) != len(leaves):
                        return self.call_any(args, kwargs, None)
                    found = executable.execute(buffers).consume_with_handlers(executable.handlers)
                else:
                    found = executable.run_operands([operand(x) for x in leaves])
            except (LookupError, AttributeError, TypeError, ValueError, OverflowError, JaxRuntimeError):
                call = None
            if call is None:
                return self.call_any(args, kwargs, key)      # which says what is wrong, if something is
        except Exception as error:
            reraise_for_user(error)
            raise
        avals = executable.out_avals
        if call.single:
            return ArrayImpl(avals[0], found[0])
        return call.out_tree.unflatten([ArrayImpl(a, b) for a, b in zip(avals, found)])

    def _flat_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """(the leaves, the key) of a call of arrays and static values.

        LookupError for others, and for keyword arguments whose order is not that of the program.
        """
        leaves: list[Any] = []
        parts: list[Any] = [state.trace_key]
        numbers, names = self._static_numbers, self._static_names
        for i, x in enumerate(args):
            if i in numbers:
                parts += _static_part(x)
            else:
                leaves.append(x)
        last = ""
        for name, x in kwargs.items():
            parts.append(name)
            if name in names:
                parts += _static_part(x)
            elif name < last:
                raise LookupError(name)
            else:
                last = name
                leaves.append(x)
        return leaves, (len(args), *parts, *_types(leaves))
