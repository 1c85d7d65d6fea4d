"""The fast path of a compiled function: from the types of the arguments to the compiled call.

It knows arrays, NumPy values, Python numbers and static values alone, which need not be flattened; whatever
else is passed goes the common way, `FastPath.call_any`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.avals import aval_or_none
from ..core.config import state
from ..core.surface.boundary import reraise_for_user
from ..core.trace import EVAL
from ..runtime.array_impl import ArrayImpl, operand
from ..runtime.binding import JaxRuntimeError
from ..runtime.devices.shards import is_lost
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


class PlacedKey(NamedTuple):
    """The key of a call of arrays in certain places, and what says where they are: the key has its ids."""
    key: tuple[Any, ...]
    places: list[Any]


class FastPath:
    """What is called like a function: its arguments are looked up by their types first.

    A class derived from it has `_quick`, the table of simple Calls by these types, `_never_quick`, whether
    none is simple, `_places`, whether it asks where arguments and results are, `_has_statics`,
    `_static_numbers` and `_static_names`, and does any call in `call_any(args, kwargs, key)`, where `key` is
    that of the table, a PlacedKey or None.
    """
    _quick: dict[Any, Any]
    _never_quick: bool
    _places: bool
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
                    types = [x.aval for x in leaves if type(x) is ArrayImpl]
                    if len(types) != len(leaves):       # NumPy values, Python numbers
                        types, only_arrays = _types(leaves), False
                    key = (*types, state.trace_key)     # as a ContextCache would have it, in fewer steps
                if only_arrays:
                    buffers = [x._buf for x in leaves if not x._committed]
                    if len(buffers) != len(leaves) or self._places:
                        return self._call_placed(args, kwargs, leaves, key)
                call = self._quick[key]
                executable = call.executable
                if only_arrays:
                    if not call.all_kept:
                        buffers = call.inputs(buffers)
                    found = executable.execute(buffers).consume_with_handlers(executable.handlers)
                else:
                    found = executable.run_operands(call.inputs([operand(x) for x in leaves]))
            except (LookupError, AttributeError, TypeError, ValueError, OverflowError, JaxRuntimeError):
                call = None
            if call is None:
                return self.call_any(args, kwargs, key)      # which says what is wrong, if something is
        except Exception as error:
            reraise_for_user(error)
            raise
        avals = executable.out_avals
        return call.returned([ArrayImpl(a, b) for a, b in zip(avals, found)])

    def _call_placed(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[ArrayImpl],
                     key: tuple[Any, ...]) -> Any:
        """A call of arrays of which some are committed to a place, or of a function that asks for places.

        The objects that say where they are decide, as long as they are the same ones.
        """
        places = [x._buf._sharding for x in leaves]
        key = (*key, *map(id, places), *[x._committed for x in leaves])
        known = self._quick.get(key)
        if known is None:
            return self.call_any(args, kwargs, PlacedKey(key, places))
        call, committed, _ = known
        buffers = call.inputs([x._buf for x in leaves])
        try:
            # over one device the program refuses a deleted buffer, over several not one without a part
            if call.executable.execute is not None or not any(map(is_lost, buffers)):
                return call.returned(call.executable(buffers, committed))
        except JaxRuntimeError:
            pass
        return self.call_any(args, kwargs, None)

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
