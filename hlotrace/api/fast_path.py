"""The fast path of a compiled function: from the types of the arguments to the compiled call.

It knows arrays, NumPy values, Python numbers and static values alone, which need not be flattened; whatever
else is passed goes the common way, `FastPath.call_any`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.avals import aval_or_none
from ..core.caches import LRUCache
from ..core.config import state
from ..core.pytrees import pytree
from ..core.surface.boundary import reraise_for_user
from ..core.trace import EVAL
from ..runtime.array_impl import ArrayImpl, dispatched_as
from ..runtime.binding import JaxRuntimeError
from ..runtime.devices import client
from .signatures import EQUAL_BUT_NOT_ALIKE

_CONTAINERS = frozenset({dict, list, tuple})


def _types_and_operands(leaves: Sequence[Any]) -> tuple[list[Any] | None, list[Any]]:
    """What decides the types of what may be arrays or None, under the same options; what their program is
    given: their buffers, and copies of small NumPy arrays (see `array_impl.operand`).  No types where one is
    neither: a container, most often."""
    types: list[Any] = []
    operands: list[Any] = []
    for x in leaves:
        if type(x) is ArrayImpl:
            types.append(x._signature)
            operands.append(x._buf)
        elif type(x) is np.ndarray:
            types += x.dtype, x.shape       # an aval would take as long as the rest
            dtype = dispatched_as(x)
            operands.append(x if dtype is None else x.astype(dtype, "C"))
        elif x is None:
            types.append(x)
        elif type(x) in _CONTAINERS or (aval := aval_or_none(x)) is None:
            return None, operands
        else:
            types.append(aval)
            operands.append(x)
    return types, operands


_PLAIN = frozenset({int, str, bool, type(None)})      # types of static values that are alike if equal


def _add_static(parts: list[Any], x: Any) -> None:
    """Add a static value to the parts of a key, which are equal only for values that are `alike`."""
    kind = type(x)
    parts += kind, x
    if kind not in _PLAIN and isinstance(x, EQUAL_BUT_NOT_ALIKE):
        parts.append(repr(x))


class FastPath:
    """What is called like a function: its arguments are looked up by their types first.

    A class derived from it has `_quick`, the table of what `keep` puts there by these types, `_never_quick`,
    whether nothing is to be found there, `_has_statics`, `_static_numbers` and `_static_names`, and does any
    call in `call_any(args, kwargs, key)`, where `key` is that of the table or None.
    """
    _quick: dict[Any, Any]
    _never_quick: bool
    _has_statics: bool
    _static_numbers: tuple[int, ...]
    _static_names: tuple[str, ...]
    _called: str | None = None      # what errors call it, if they say with what it was called
    call_any: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Arrays, numbers and static values alone need not be flattened: such a call is tried first, by their
        types."""
        try:
            if state.trace is not EVAL or self._never_quick:
                return self.call_any(args, kwargs, None)
            key: Any = None
            try:
                leaves: Any = args
                if kwargs or self._has_statics:
                    leaves, operands, key = self._operands_and_key(args, kwargs)
                else:
                    types: Any = [x._signature for x in args if type(x) is ArrayImpl]
                    if len(types) == len(args):
                        operands = [x._buf for x in args]
                    else:
                        types, operands = _types_and_operands(args)
                    if types is None:
                        leaves, operands, key = self._operands_and_key(args, kwargs)
                    else:
                        key = (*types, state.trace_key)     # as a ContextCache would have it, in fewer steps
                call, committed, run = self._quick[key]
                executable = call.executable
                if not call.all_kept:
                    operands = call.inputs(operands)
                if run is None:
                    found = executable.execute(operands).consume_with_handlers(executable.handlers)
                else:
                    found = run(*operands)
                if call.donated:
                    call.mark_given(leaves)
                if call.single:
                    return ArrayImpl(executable.out_avals[0], found[0], committed,
                                     executable.signatures[0] if committed else None)
                results = executable.wrapped(found, committed)
            except (LookupError, AttributeError, TypeError, ValueError, OverflowError, JaxRuntimeError):
                call = None
            if call is None:
                return self.call_any(args, kwargs, key)      # which says what is wrong, if something is
        except Exception as error:
            reraise_for_user(error, self._called, args, kwargs)
            raise
        return call.returned(results)

    def _operands_and_key(self, args: tuple[Any, ...],
                          kwargs: dict[str, Any]) -> tuple[list[Any], list[Any], Any]:
        """(the leaves, buffers in place of arrays, the key) of any call without values of the user's types.

        LookupError where there is one, and for containers beside static values.
        """
        leaves: list[Any] = list(args)
        parts: list[Any] = []
        types: list[Any] | None = None
        operands: list[Any] = []
        if kwargs or self._has_statics:
            numbers, names = self._static_numbers, self._static_names
            leaves = []
            for i, x in enumerate(args):
                if i not in numbers:
                    leaves.append(x)
                elif type(x) in _PLAIN:
                    parts += type(x), x
                else:
                    _add_static(parts, x)
            parts.append(len(args))
            # in the order of the program
            for name, x in sorted(kwargs.items()) if len(kwargs) > 1 else kwargs.items():
                parts.append(name)
                if name in names:
                    _add_static(parts, x)
                else:
                    leaves.append(x)
            types, operands = _types_and_operands(leaves)
        if types is None and not self._has_statics:
            leaves, in_tree = pytree.tree_flatten((args, kwargs))
            parts, (types, operands) = [in_tree], _types_and_operands(leaves)
        if types is None:
            raise LookupError
        return leaves, operands, (*parts, *types, state.trace_key)


def keep(table: LRUCache, key: tuple[Any, ...] | None, call: Any, leaves: Sequence[Any]) -> None:
    """Have the fast path find a call under the key, if it can be called with these leaves where they are.

    The entry is the CompiledCall, whether its results are committed, and what runs its program, None for an
    execution on one device.  To be called before the leaves are given away.
    """
    if key is None or call.executable is None:
        return
    committed = call.in_place(leaves)
    if committed is None:
        return
    executable, others = call.executable, [x for x in leaves if type(x) is not ArrayImpl]
    if committed:
        executable.sign()
    copied = all([type(x) is np.ndarray and dispatched_as(x) is not None for x in others])
    run: Any = None
    if executable.execute is None or (call.donated and committed) or (
            not copied and executable.device != client.default_device()):
        run = executable.run_alive
    elif others:
        run = executable.dispatch() if copied else executable.run_operands
    table.keep(key, (call, committed, run))
