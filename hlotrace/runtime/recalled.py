"""Calls of library functions outside of jit that ran one program: the next of the same types runs it at once.

Nothing is assumed of a function.  Its second call is watched: where the result is what one program gave for
arrays among the arguments, or a value that Python made, and no array or file was read on the way, no warning
given and nothing noted, the types of the arrays, the other arguments and `state.trace_key` decide all of it.
"""
from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from ..core.avals import ShapedArray, physical
from ..core.caches import LRUCache
from ..core.config import state
from ..core.dtypes import python_scalars
from ..core.surface import boundary
from ..core.trace import EVAL
from ..core.watched import ran, watch, watched
from .array_impl import ArrayImpl, as_array, put
from .devices import client, transfer_guards
from .executables.ready import PLAIN, Ready, add_static

# (function, trace_key, what tells the arguments apart) -> (Ready, its operands), or how often it was watched
# in vain.  Operands are numbers of the arrays among the arguments, or buffers that are always the same; None
# where they are these arrays.
_known = LRUCache(8192)
_made = LRUCache()      # function -> how many of its calls are known
_vain = LRUCache()      # function -> how many are not, if none is
_MOST = 256     # of one function: its static values may differ each time
_TRIES = 3              # programs are compiled in the first
_SEQUENCES = list, tuple
_QUICKLY_COPIED, _HELD = 1 << 16, 1 << 12       # bytes


def recall(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)`, where it is known by the one program that it runs."""
    if state.trace is not EVAL or function in _vain.entries and _vain.entries[function] > _TRIES:
        return function(*args, **kwargs)
    parts: list[Any] = [function, state.trace_key]
    buffers: list[Any] = []
    for x in args:
        kind = type(x)
        if kind is ArrayImpl:
            parts.append(x._signature)
            buffers.append(x._buf)
        elif kind in PLAIN:
            parts += kind, x
        elif not _look_closer(x, parts, buffers):
            return function(*args, **kwargs)
    for name in kwargs:
        parts.append(name)
        if not _look_closer(kwargs[name], parts, buffers):
            return function(*args, **kwargs)
    key = (*parts,)
    known = _known.entries.get(key, 0)
    if type(known) is int:
        return _watch(function, args, kwargs, key, buffers, known) if known < _TRIES else function(
            *args, **kwargs)
    ready, order = known
    run, handlers, aval, signature, committed, _ = ready
    operands = buffers if order is None else [buffers[i] if type(i) is int else i for i in order]
    try:
        found = run(*operands) if handlers is None else run(operands).consume_with_handlers(handlers)
    except (LookupError, RuntimeError):
        return function(*args, **kwargs)        # which says what is wrong
    result = ArrayImpl(aval, found[0], committed, signature)
    if watched:
        ran(ready, operands, result)
    return result


def _look_closer(x: Any, parts: list[Any], buffers: list[Any]) -> bool:
    """Add to `parts` what tells an argument apart, and to `buffers` those of its arrays; False for what a
    call is not known by."""
    kind = type(x)
    if kind is ArrayImpl:
        parts.append(x._signature)
        buffers.append(x._buf)
    elif kind is float:
        parts += kind, x or repr(x)     # -0.0 equals 0.0
    elif kind in PLAIN or x is ...:
        parts += kind, x
    elif kind is slice:
        parts.append(kind)
        return (_look_closer(x.start, parts, buffers) and _look_closer(x.stop, parts, buffers)
                and _look_closer(x.step, parts, buffers))
    elif kind in _SEQUENCES:
        if kind is tuple and PLAIN.issuperset(map(type, x)):
            add_static(parts, x)
            return True
        parts += kind, len(x)
        for item in x:
            if kind is list and type(item) is not ArrayImpl or not _look_closer(item, parts, buffers):
                return False        # of many numbers, most often
    elif issubclass(kind, type):
        parts += kind, x
    else:
        return False
    return True


def _watch(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], key: Any,
           buffers: list[Any], tries: int) -> Any:
    """Call the function, and keep under `key` what it ran, if that is all that it did."""
    made = _made.entries.get(function, 0)
    if state.noting or made >= _MOST:
        return function(*args, **kwargs)
    if len({*map(id, buffers)}) < len(buffers):     # which of them becomes which operand is to be seen
        if len(buffers) > sum([type(x) is ArrayImpl and x.nbytes < _QUICKLY_COPIED for x in args]):
            return function(*args, **kwargs)
        with transfer_guards.unasked():
            args = tuple([copy.copy(x) if type(x) is ArrayImpl else x for x in args])
        buffers = [x._buf for x in args if type(x) is ArrayImpl]
    result, record = watch(function, args, kwargs)
    if record is None:
        return result
    found: Any = None
    if record and record[2] is result:
        ready, operands, _ = record
        found = _from_host(operands, result.aval) if ready is None else _origin(ready, operands, buffers)
    _known.keep(key, found or tries + 1)
    if found is not None:
        _made.keep(function, made + 1)
    elif not made and tries + 1 == _TRIES:
        _vain.keep(function, _vain.entries.get(function, 0) + 1)
    return result


def _from_host(value: Any, aval: ShapedArray) -> tuple[Ready, list[Any]] | None:
    """What `_known` has of a call that copies a value of Python's making to the default device."""
    if value.nbytes > _HELD:
        return None
    value, device, held_as = value.copy(), client.default_device(), physical(aval)
    return Ready(lambda: [put(value, held_as, device)], None, aval, None, False, None), []


def _origin(ready: Ready, operands: Sequence[Any],
            buffers: list[Any]) -> tuple[Ready, list[Any] | None] | None:
    """What `_known` has of a call; None where an operand is neither an argument nor a number."""
    places = {id(b): i for i, b in enumerate(buffers)}
    found: list[Any] = []
    for x in operands:
        if id(x) in places:
            found.append(places[id(x)])
        elif type(x) not in python_scalars or ready.executable.execute is None:
            return None
        else:
            found.append(as_array(x)._buf)
            ready = ready._replace(run=ready.executable.execute, handlers=ready.executable.handlers)
    return ready, None if [*map(id, operands)] == [*map(id, buffers)] else found


boundary.recall = recall
