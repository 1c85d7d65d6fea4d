"""pure_callback, io_callback, debug.print and debug.callback: Python functions called from programs."""
from __future__ import annotations

import functools
import inspect
import logging
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.avals import ShapedArray, aval_of, is_arraylike, physical
from ...core.config import state
from ...core.effects import IO, Effect, debug_effect
from ...core.errors import did_you_mean
from ...core.pytrees import pytree
from ...core.trace import EVAL
from ...primitives.programs import callbacks
from ...runtime.array_impl import ArrayImpl, put
from ...runtime.devices import client
from ...sharding.single import SingleDeviceSharding
from ..flat import FlatFunction
from ..signatures import name_of, signature_of, take_names

_METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def _declared(spec: Any) -> ShapedArray:
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise TypeError("result_shape_dtypes must be a pytree of objects with shape and dtype, such as "
                        f"jax.ShapeDtypeStruct((3,), jnp.float32), got {spec!r:.60}: it comes after the "
                        "callback and says what that returns")
    dtype = dtypes.as_dtype(spec.dtype)
    if dtype != dtypes.canonicalize(dtype):
        raise ValueError("result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is "
                         f"disabled: got {dtype.name}")
    return ShapedArray(tuple(spec.shape), dtype)


def as_array(value: Any, aval: ShapedArray) -> ArrayImpl:
    """What a callback gets for a value of a type, up to mapped axes: an array on this process's CPU."""
    value = np.asarray(value)
    batch = value.ndim - physical(aval).ndim
    aval = ShapedArray((*value.shape[:batch], *aval.shape), aval.dtype, aval.weak_type)
    device = client.local_devices(backend="cpu")[0]
    return ArrayImpl(aval, put(value, physical(aval), device), True)


def types_in_callback(operands: Sequence[Any], debugs: bool) -> list[ShapedArray]:
    """The types that a callback's arguments have: weak ones only where one debugs outside of programs."""
    keep = debugs and not state.trace.staging
    return [aval if keep else aval.update(weak_type=False) for aval in map(aval_of, operands)]


def _call(what: str, callback: Callable[..., Any], spec: Any, args: Sequence[Any], kwargs: dict[str, Any],
          effect: Effect | None, vmap_method: str | None = None, sharding: Any = None,
          partitioned: bool = False) -> Any:
    if not callable(callback):
        raise TypeError(f"{what}: callback must be callable, got {callback!r:.60}: give the function itself, "
                        "and its arguments at the end")
    if sharding is not None and not (isinstance(sharding, SingleDeviceSharding)
                                     and sharding.is_fully_addressable):
        raise NotImplementedError(f"{what} of {name_of(callback)}: sharding={sharding!r} is not supported: "
                                  "the callback runs in the process of the device that asks for it, and "
                                  "sharding may be a SingleDeviceSharding of one of that process")
    spec_leaves, out_tree = pytree.tree_flatten(spec)
    out_avals = tuple(_declared(s) for s in spec_leaves)
    flat = FlatFunction(callback, *pytree.tree_flatten((args, kwargs)), what)
    debugs = what == "debug_callback"
    if not debugs:
        flat.avals()
    dynamic = [is_arraylike(x) for x in flat.leaves]
    avals = types_in_callback([x for x, d in zip(flat.leaves, dynamic) if d], debugs)
    operands, flat.leaves = [x for x, d in zip(flat.leaves, dynamic) if d], [
        None if d else x for x, d in zip(flat.leaves, dynamic)]

    def call(*values: Any) -> list[Any]:
        given = map(as_array, values, avals)
        leaves = [next(given) if d else x for x, d in zip(flat.leaves, dynamic)]
        call_args, call_kwargs = flat.arguments(leaves)
        try:
            result = callback(*call_args, **call_kwargs)
        except TypeError as error:
            try:
                (signature_of(callback) or inspect.signature(_call)).bind(*call_args, **call_kwargs)
            except TypeError:
                n, behind = len(call_args) + len(call_kwargs), "it" if debugs else "result_shape_dtypes"
                raise TypeError(f"{what}: {name_of(callback)} is called with the {n} "
                                f"argument{'s' * (n != 1)} that {'come' + 's' * (n == 1)} after {behind}: "
                                f"{error}") from None
            raise
        if debugs:
            return []
        found, found_tree = pytree.tree_flatten(result)
        if len(found) != out_tree.num_leaves:       # lists where tuples are declared, other keys: as in JAX
            advice = (f"Does {name_of(callback)} lack a `return`? What returns nothing is declared by None."
                      if result is None else "Return what is declared, or declare what is returned.")
            raise ValueError(pytree.structure_mismatch(
                f"callback {name_of(callback)} returned a value of another structure than "
                "result_shape_dtypes declares", out_tree, found_tree, ("declared", "returned"), root="result")
                + f"\n{advice} Mismatched number of outputs from callback. Expected: {out_tree.num_leaves}, "
                f"Actual: {found_tree.num_leaves}")
        return found
    function = take_names(call, callback)
    function.partitioned = partitioned and state.trace is not EVAL
    function.__name__, function.mapped, function.paths = name_of(callback), False, pytree.leaf_paths(out_tree)
    outs = callbacks.bind(*operands, function=function, out_avals=out_avals, effect=effect,
                           vmap_method=vmap_method)
    return out_tree.unflatten(outs)


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Any = None,
                  vmap_method: str | None = None, vectorized: bool | None = None, **kwargs: Any) -> Any:
    """Call a pure Python function from inside a program.

    What the callback raises is raised, the same object.  Derivatives need a `custom_jvp` or `custom_vjp`
    around it.

    Args:
        callback: gets arrays, returns what `result_shape_dtypes` declares.  It may be called any number
            of times, or not at all.
        result_shape_dtypes: pytree of ShapeDtypeStructs (anything with shape and dtype).
        sharding: None, or a SingleDeviceSharding of a device of this process, where the callback runs.
        vmap_method: "sequential" (one call for each element), "expand_dims" (one call; unmapped arguments get
            an axis of size 1) or "broadcast_all" (one call, all arguments mapped).
        vectorized: an older way to say it: True is "legacy_vectorized", False "sequential".
    Raises:
        ValueError: where its result has another shape, dtype or structure than declared.
        TypeError: where it does not take these arguments.

    >>> def digits(n):
    ...     return np.array([len(str(v)) for v in n], np.int32)
    >>> f = jax.jit(lambda n: jax.pure_callback(digits, jax.ShapeDtypeStruct(n.shape, "int32"), n))
    >>> f(jnp.array([7, 1234]))
    Array([1, 4], dtype=int32)
    """
    if vectorized is not None:
        vmap_method = "legacy_vectorized" if vectorized else "sequential"
    if vmap_method not in _METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {_METHODS}, got {vmap_method!r}")
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs, None, vmap_method, sharding)


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Any = None,
                ordered: bool = False, **kwargs: Any) -> Any:
    """Call a Python function with side effects from a program, exactly once each time that it is reached.

    With `ordered`, calls happen in program order.  See `pure_callback` for arguments and errors.

    >>> from hlotrace.experimental import io_callback
    >>> log = []
    >>> f = jax.jit(lambda x: io_callback(lambda v: log.append(v.item()), None, x, ordered=True))
    >>> f(jnp.float32(2.5))
    >>> jax.effects_barrier(); log
    [2.5]
    """
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs, IO(ordered), "sequential",
                 sharding)


def debug_callback(callback: Callable[..., Any] | None = None, *args: Any, ordered: bool = False,
                   partitioned: bool = False, **kwargs: Any) -> Any:
    """Call a Python function for its effect only, from inside any transformation; its result is dropped.

    It gets arrays.  With `ordered`, calls happen in program order.  With `partitioned`, each device calls
    it with its part, which needs shard_map where there are several.  Without `callback`, a function that
    takes it.

    >>> seen = []
    >>> @jax.jit
    ... def f(x):
    ...     jax.debug.callback(lambda x: seen.append(float(x)), x)
    ...     return x + 1
    >>> y = f(1.)
    >>> jax.effects_barrier()
    >>> seen
    [1.0]
    """
    if callback is None:
        return functools.partial(debug_callback, ordered=ordered, partitioned=partitioned)
    _call("debug_callback", callback, None, args, kwargs, debug_effect(ordered), "sequential",
          partitioned=partitioned)
    return None


class _Formatter(string.Formatter):
    """str.format that notes arguments that the format does not use."""

    def check_unused_args(self, used_args: set[int | str], args: Sequence[Any],
                          kwargs: Mapping[str, Any]) -> None:
        self.unused = [name for name in (*range(len(args)), *kwargs) if name not in used_args]


def _check_format(what: str, fmt: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    formatter = _Formatter()
    shown = pytree.tree_map(lambda x: _Shown(aval_of(x)) if is_arraylike(x) else x, (args, kwargs))
    try:
        formatter.vformat(fmt, *shown)
    except IndexError:
        raise IndexError(f"{what}: the format {fmt!r:.80} asks for more than the {len(args)} positional value"
                         f"{'s' * (len(args) != 1)} given: give one for each {{}}") from None
    except KeyError as error:
        raise KeyError(f"{what}: the format {fmt!r:.80} asks for {error.args[0]!r}, but the values given by "
                       f"name are {list(kwargs)}: write "
                       f"{error.args[0]}=...{did_you_mean(error.args[0], kwargs)}") from None
    except (TypeError, ValueError) as error:
        braces = "; a brace that is to be printed is written twice, {{ or }}" * ("encountered" in str(error))
        raise type(error)(f"{what}: the format {fmt!r:.80} does not fit: {error}{braces}") from None
    if formatter.unused:
        names = [name for name in formatter.unused if isinstance(name, str)]
        kind, unused = ("keyword", names) if names else ("positional", [args[i] for i in formatter.unused])
        raise ValueError(f"Unused {kind} arguments to `jax.{what}`: {unused!r:.200}, which the format "
                         f"{fmt!r:.80} does not use. Put '{{}}' or '{{name}}' where they belong, as in "
                         f"{what}('x = {{}}', x); an f-string would format the tracer, not the value.")


def debug_print(fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
                skip_format_check: bool = False, **kwargs: Any) -> Any:
    """Print `fmt.format(*args, **kwargs)` with the run-time values, from inside any transformation.

    With `ordered`, prints appear in program order.  Without `fmt`, a function that takes it.

    >>> @jax.jit
    ... def f(x):
    ...     jax.debug.print("x = {}", x)
    ...     return x + 1
    >>> print(f(2.), jax.effects_barrier())
    x = 2.0
    3.0 None
    """
    return _formatted("print", fmt, args, kwargs, ordered, partitioned, skip_format_check)


def debug_log(fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
              skip_format_check: bool = False, **kwargs: Any) -> Any:
    """As debug.print, to the logger `hlotrace` at level INFO.

    >>> y = jax.jit(lambda x: jax.debug.log("x = {}", x))(2.)
    """
    return _formatted("log", fmt, args, kwargs, ordered, partitioned, skip_format_check)


def _formatted(what: str, fmt: str | None, args: Sequence[Any], kwargs: dict[str, Any], ordered: bool,
          partitioned: bool, skip_format_check: bool) -> Any:
    if fmt is None:
        return functools.partial(debug_print if what == "print" else debug_log, ordered=ordered,
                                 partitioned=partitioned, skip_format_check=skip_format_check)
    if not isinstance(fmt, str):
        raise TypeError(f"debug.{what}: the format must be a str, got {type(fmt)}: write "
                        f"debug.{what}('{{}}', x)")
    if not skip_format_check:
        _check_format(f"debug.{what}", fmt, args, kwargs)

    def write(*args: Any, **kwargs: Any) -> None:
        text = fmt.format(*args, **kwargs)
        if what == "print":
            print(text, flush=True)
        else:
            logging.getLogger("hlotrace").info(text)
    write.__name__ = f"debug.{what}({fmt!r})"       # in printed programs, and in errors
    debug_callback(write, *args, ordered=ordered, partitioned=partitioned, **kwargs)
    return None


class _Shown:
    """A placeholder for any value, or one of a type that is given, when a format string is checked."""

    def __init__(self, aval: ShapedArray | None = None) -> None:
        self._aval = aval

    def __format__(self, spec: str) -> str:
        aval = self._aval
        if spec and aval is not None and not dtypes.is_extended(aval.dtype):
            if aval.ndim:
                raise TypeError(f"the spec {spec!r} is for one number, and the value is of type "
                                f"{aval.str_short()}: print it with {{}}, and its digits as "
                                "np.set_printoptions(precision=...) says")
            format(np.zeros((), aval.dtype).item(), spec)
        return ""

    def __getitem__(self, key: object) -> _Shown:
        return _Shown()

    def __getattr__(self, name: str) -> _Shown:
        return _Shown()
