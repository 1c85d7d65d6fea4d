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
from ..core.pytrees import pytree
from ..core.surface.boundary import reraise_for_user
from ..core.trace import EVAL
from ..runtime.array_impl import ArrayImpl
from ..runtime.binding import JaxRuntimeError
from ..runtime.devices import client
from .signatures import EQUAL_BUT_NOT_ALIKE

_CONTAINERS = frozenset({dict, list, tuple})


def _types_and_operands(leaves: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
    """What decides the types of what may be arrays or None, under the same options; what their program is
    given.  None where one is neither: a container, most often."""
    types: list[Any] = []
    operands: list[Any] = []
    for x in leaves:
        if type(x) is ArrayImpl:
            types.append(x._signature)
            operands.append(x._buf)
        elif type(x) is np.ndarray:
            types += x.dtype, x.shape       # an aval would take as long as the rest
            operands.append(x)
        elif type(x) in _CONTAINERS:
            return None
        else:
            aval = aval_or_none(x)
            types.append(aval)
            if aval is not None:
                operands.append(x)
            elif x is not None:
                return None
    return types, operands


_PLAIN = frozenset({int, str, bool, type(None)})      # types of static values that are alike if equal


def _static_part(x: Any) -> tuple[Any, ...]:
    """The part of a key for a static value: equal only for values that are `alike`."""
    kind = type(x)
    return (kind, x) if kind in _PLAIN or not isinstance(x, EQUAL_BUT_NOT_ALIKE) else (kind, x, repr(x))


class FastPath:
    """What is called like a function: its arguments are looked up by their types first.

    A class derived from it has `_quick`, the table of what `entry_of` gives by these types, `_never_quick`,
    whether nothing is to be found there, `_has_statics`, `_static_numbers` and `_static_names`, and does any
    call in `call_any(args, kwargs, key)`, where `key` is that of the table or None.
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
            key: Any = None
            try:
                types = [x._signature for x in args if type(x) is ArrayImpl]
                if len(types) == len(args) and not (kwargs or self._has_statics):
                    key = (*types, state.trace_key)     # as a ContextCache would have it, in fewer steps
                    operands = [x._buf for x in args]
                else:
                    operands, key = self._operands_and_key(args, kwargs)
                call, committed, run = self._quick[key]
                executable = call.executable
                if not call.all_kept:
                    operands = call.inputs(operands)
                if run is None:
                    found = executable.execute(operands).consume_with_handlers(executable.handlers)
                else:
                    found = run(operands)
                if call.single:
                    return ArrayImpl(executable.out_avals[0], found[0], committed,
                                     executable.signatures[0] if committed else None)
                results = executable.wrapped(found, committed)
            except (LookupError, AttributeError, TypeError, ValueError, OverflowError, JaxRuntimeError):
                call = None
            if call is None:
                return self.call_any(args, kwargs, key)      # which says what is wrong, if something is
        except Exception as error:
            reraise_for_user(error)
            raise
        return call.returned(results)

    def _operands_and_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """(the buffers and other leaves, the key) of any call without values of the user's types.

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
        found = _types_and_operands(leaves)
        if found is None and not self._has_statics:
            leaves, in_tree = pytree.tree_flatten((args, kwargs))
            parts, found = [in_tree], _types_and_operands(leaves)
        if found is None:
            raise LookupError
        return found[1], (*parts, *found[0], state.trace_key)


def entry_of(call: Any, leaves: Sequence[Any]) -> tuple[Any, bool, Callable[..., Any] | None] | None:
    """What the table has for a CompiledCall that takes these leaves where they are: it, whether its results
    are committed, and what runs its program, None for an execution on one device; None instead of all where
    it does not take them so."""
    committed = call.in_place(leaves)
    if committed is None:
        return None
    if committed:
        call.executable.sign()
    executable, kinds = call.executable, {type(x) for x in leaves}
    if executable.execute is None or not (kinds <= {ArrayImpl, np.ndarray}
                                          or executable.device == client.default_device()):
        return call, committed, executable.run_alive
    return call, committed, None if kinds <= {ArrayImpl} else executable.run_operands
