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
from ..core.pytrees import pytree
from ..core.surface.boundary import reraise_for_user
from ..core.trace import EVAL
from ..runtime.array_impl import ArrayImpl, operand
from ..runtime.binding import JaxRuntimeError
from ..runtime.devices.shards import is_lost
from .signatures import EQUAL_BUT_NOT_ALIKE


def _types(leaves: Sequence[Any]) -> list[Any] | None:
    """What decides the types of what may be arrays or None, under the same options; None where one is
    neither: a container, most often."""
    parts: list[Any] = []
    for x in leaves:
        if type(x) is ArrayImpl:
            parts.append(x.aval)
        elif type(x) is np.ndarray:
            parts += x.dtype, x.shape       # an aval would take as long as the rest
        else:
            aval = aval_or_none(x)
            if aval is None and x is not None:
                return None
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
            key: Any = None
            leaves: Any = args
            try:
                types = [x.aval for x in leaves if type(x) is ArrayImpl]
                only_arrays = len(types) == len(leaves) and not (kwargs or self._has_statics)
                if only_arrays:
                    key = (*types, state.trace_key)     # as a ContextCache would have it, in fewer steps
                else:
                    leaves, key = self._leaves_and_key(args, kwargs)
                    only_arrays = all([type(x) is ArrayImpl for x in leaves])
                buffers = [x._buf for x in leaves if not x._committed] if only_arrays else ()
                if only_arrays and (len(buffers) != len(leaves) or self._places):
                    key = _placed(key, leaves)
                    call, committed, _ = self._quick[key.key]
                    results = _in_place(call, leaves, committed)
                else:
                    call = self._quick[key]
                    executable = call.executable
                    if only_arrays:
                        if not call.all_kept:
                            buffers = call.inputs(buffers)
                        found = executable.execute(buffers).consume_with_handlers(executable.handlers)
                    else:
                        found = executable.run_operands(call.inputs([operand(x) for x in leaves]))
                    if call.single:
                        return ArrayImpl(executable.out_avals[0], found[0])
                    results = [ArrayImpl(a, b) for a, b in zip(executable.out_avals, found)]
            except (LookupError, AttributeError, TypeError, ValueError, OverflowError, JaxRuntimeError):
                call = None
            if call is None:
                return self.call_any(args, kwargs, key)      # which says what is wrong, if something is
        except Exception as error:
            reraise_for_user(error)
            raise
        return call.returned(results)

    def _leaves_and_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """(the leaves, the key) of any call without values of the user's types.

        LookupError where there is one, and for containers beside static values.
        """
        leaves: list[Any] = list(args)
        parts: list[Any] = []
        if kwargs or self._has_statics:
            numbers, names = self._static_numbers, self._static_names
            leaves = []
            for i, x in enumerate(args):
                if i in numbers:
                    parts += _static_part(x)
                else:
                    leaves.append(x)
            parts.append(len(args))
            # in the order of the program
            for name, x in sorted(kwargs.items()) if len(kwargs) > 1 else kwargs.items():
                parts.append(name)
                if name in names:
                    parts += _static_part(x)
                else:
                    leaves.append(x)
        types = _types(leaves)
        if types is None and not self._has_statics:
            leaves, in_tree = pytree.tree_flatten((args, kwargs))
            parts, types = [in_tree], _types(leaves)
        if types is None:
            raise LookupError
        return [x for x in leaves if x is not None], (*parts, *types, state.trace_key)


def _placed(key: tuple[Any, ...], leaves: Sequence[ArrayImpl]) -> PlacedKey:
    """The key of a call of arrays some of which are committed, or of a function that asks for places.

    The objects that say where arrays are decide, as long as they are the same ones.
    """
    places = [x._buf._sharding for x in leaves]
    return PlacedKey((*key, *map(id, places), *[x._committed for x in leaves]), places)


def _in_place(call: Any, leaves: Sequence[ArrayImpl], committed: bool) -> list[ArrayImpl]:
    """The results of a Call that takes these arrays where they are.  LookupError where a part is deleted."""
    buffers = call.inputs([x._buf for x in leaves])
    # over one device the program refuses a deleted buffer by itself
    if call.executable.execute is None and any(map(is_lost, buffers)):
        raise LookupError
    return call.executable(buffers, committed)
