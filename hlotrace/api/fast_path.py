"""The fast path of a compiled function: from the types of the arguments to the compiled call.

It knows arrays, NumPy values, Python numbers and static values alone, which need not be flattened; whatever
else is passed goes the common way, `FastPath.call_any`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.caches import LRUCache
from ..core.config import state
from ..core.pytrees import pytree
from ..core.surface.boundary import reraise_for_user
from ..core.trace import EVAL
from ..core.watched import ran, watched
from ..runtime.array_impl import ArrayImpl
from ..runtime.executables.ready import PLAIN, Ready, add_static, look_at, ready


class FastPath:
    """What is called like a function: its arguments are looked up by their types first.

    A class derived from it has `_quick`, the table of what `keep` puts there by these types, `_has_statics`,
    `_static_numbers`, `_first_static` and `_static_names`, and does any call in
    `call_any(args, kwargs, key)`, where `key` is that of the table or None.
    """
    _quick: dict[Any, tuple[Ready, Any]]
    _has_statics: bool
    _static_numbers: tuple[int, ...]
    _first_static: int      # the least of them: calls with fewer positional arguments have none there
    _static_names: tuple[str, ...]
    _called: str | None = None      # what errors call it, if they say with what it was called
    call_any: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Arrays, numbers and static values alone need not be flattened: such a call is tried first, by their
        types."""
        try:
            if state.trace is not EVAL:
                return self.call_any(args, kwargs, None)
            key: Any = None
            try:
                types: list[Any] = []
                leaves: Any = args
                if kwargs or self._has_statics and len(args) > self._first_static:
                    leaves = self._without_statics(args, kwargs, types)
                operands = look_at(leaves, types)
                if operands is None:
                    leaves, operands, types = self._flattened(args, kwargs)
                types.append(state.trace_key)       # as a ContextCache would have it, in fewer steps
                key = (*types,)
                entry, call = self._quick[key]
                run, handlers, aval, signature, committed, executable = entry
                if not call.all_kept:
                    operands = call.inputs(operands)
                found = run(*operands) if handlers is None else run(operands).consume_with_handlers(handlers)
                if aval is not None:
                    result = ArrayImpl(aval, found[0], committed, signature)
                    if watched:
                        ran(entry, operands, result)
                    return result
                if call.donated:
                    call.mark_given(leaves)
                results = executable.wrapped(found, committed)
            except (LookupError, AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
                call = None
            if call is None:
                return self.call_any(args, kwargs, key)      # which says what is wrong, if something is
        except Exception as error:
            reraise_for_user(error, self._called, args, kwargs)
            raise
        return call.returned(results)

    def _without_statics(self, args: tuple[Any, ...], kwargs: dict[str, Any], types: list[Any]) -> list[Any]:
        """The arguments that are not static, in the order of the program; `types` is given what tells the
        others apart, and the names of those that have one."""
        numbers, names = self._static_numbers, self._static_names
        leaves = []
        for i, x in enumerate(args):
            if i not in numbers:
                leaves.append(x)
            elif type(x) in PLAIN:
                types += type(x), x
            else:
                add_static(types, x)
        types.append(len(args))
        for name in sorted(kwargs) if kwargs else ():
            types.append(name)
            if name in names:
                add_static(types, kwargs[name])
            else:
                leaves.append(kwargs[name])
        return leaves

    def _flattened(self, args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """(the leaves of a call, its operands, its types).

        LookupError where there is a value of the user's types.
        """
        types: list[Any] = []
        given = self._without_statics(args, kwargs, types) if self._has_statics else (args, kwargs)
        leaves, in_tree = pytree.tree_flatten(given)
        types.append(in_tree)
        operands = look_at(leaves, types)
        if operands is None:
            raise LookupError
        return leaves, operands, types


def keep(table: LRUCache, key: tuple[Any, ...] | None, call: Any, leaves: Sequence[Any]) -> None:
    """Have the fast path find a call under the key, if it can be called with these leaves where they are.

    To be called before the leaves are given away.
    """
    if key is None or call.executable is None:
        return
    committed = call.in_place(leaves)
    if committed is None:
        return
    one = call.single and not call.donated
    table.keep(key, (ready(call.executable, call.taken(leaves), committed, one), call))
