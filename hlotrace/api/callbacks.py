"""pure_callback, io_callback, and debug.print / debug.callback: Python functions called from inside programs."""
import functools
import string

from ..core import dtypes, tree
from ..core.avals import ShapedArray, is_arraylike
from ..core.effects import IO, Debug
from ..primitives.callbacks import callback_p
from .flat import FlatFunction
from .signatures import name_of

_METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def _declared(spec):
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise TypeError(f"result_shape_dtypes must be a pytree of objects with shape and dtype, such as ShapeDtypeStruct, "
                        f"got {spec!r}")
    dtype = dtypes.as_dtype(spec.dtype)
    if dtype != dtypes.canonicalize(dtype):
        raise ValueError(f"result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled: got "
                         f"{dtype.name}")
    return ShapedArray(tuple(spec.shape), dtype)


def _call(what, callback, spec, args, kwargs, effect, vmap_method=None, sharding=None):
    if not callable(callback):
        raise TypeError(f"{what}: callback must be callable, got {callback!r}")
    if sharding is not None:
        raise NotImplementedError(f"{what} of {name_of(callback)}: sharding={sharding!r} is not supported: the callback "
                                  "runs in the process of the device that asks for it")
    spec_leaves, out_tree = tree.tree_flatten(spec)
    out_avals = tuple(_declared(s) for s in spec_leaves)
    flat = FlatFunction(callback, *tree.tree_flatten((args, kwargs)), what)
    debugs = what == "debug_callback"
    if not debugs:
        flat.avals()
    dynamic = [is_arraylike(x) for x in flat.leaves]
    operands, flat.leaves = [x for x, d in zip(flat.leaves, dynamic) if d], [
        None if d else x for x, d in zip(flat.leaves, dynamic)]

    def function(*values):
        values = iter(values)
        call_args, call_kwargs = flat.arguments([next(values) if d else x for x, d in zip(flat.leaves, dynamic)])
        result = callback(*call_args, **call_kwargs)
        if debugs:
            return []
        found, found_tree = tree.tree_flatten(result)
        if found_tree != out_tree:
            raise ValueError(f"callback {name_of(callback)} returned a value of another structure than "
                             "result_shape_dtypes declares:\n" + tree.structure_mismatch(
                                 "callback", out_tree, found_tree, ("declared", "returned")))
        return found
    functools.update_wrapper(function, callback, updated=())
    function.__name__ = name_of(callback)
    outs = callback_p.bind(*operands, function=function, out_avals=out_avals, effect=effect, vmap_method=vmap_method)
    return out_tree.unflatten(outs)


def pure_callback(callback, result_shape_dtypes, *args, sharding=None, vmap_method=None, vectorized=None, **kwargs):
    """Call a pure Python function from inside a program.

    Args:
      callback: gets NumPy arrays, returns what `result_shape_dtypes` declares.  It may be called any number of
        times, or not at all.
      result_shape_dtypes: pytree of ShapeDtypeStructs (anything with shape and dtype).
      vmap_method: "sequential" (one call for each element), "expand_dims" (one call; unmapped arguments get an
        axis of size 1) or "broadcast_all" (one call, all arguments mapped).
    Raises: what the callback raises, the same object; ValueError where its result has another shape, dtype or
      structure than declared.
    """
    if vectorized is not None:
        vmap_method = "legacy_vectorized" if vectorized else "sequential"
    if vmap_method not in _METHODS:
        raise ValueError(f"vmap_method must be one of {_METHODS}, got {vmap_method!r}")
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs, None, vmap_method, sharding)


def io_callback(callback, result_shape_dtypes, *args, sharding=None, ordered=False, **kwargs):
    """Call a Python function with side effects from inside a program, exactly once for each time it is reached.

    With `ordered`, calls happen in program order.  See `pure_callback` for arguments and errors.
    """
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs, IO(ordered), "sequential",
                 sharding)


def debug_callback(callback, *args, ordered=False, partitioned=False, **kwargs):
    """Call a Python function for its effect only, from inside any transformation; its result is dropped."""
    if partitioned:
        raise NotImplementedError("debug.callback, debug.print: partitioned=True is not supported: the callback gets whole "
                                  "values; inside shard_map it is called on each device with its part")
    _call("debug_callback", callback, None, args, kwargs, Debug(ordered), "sequential")


class _Formatter(string.Formatter):
    """str.format that reports arguments that the format does not use."""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [i for i in range(len(args)) if i not in used_args] + [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(f"Unused arguments to debug.print: {unused}. Use them in the format string: '{{}}' or "
                             "'{name}'; an f-string would format the tracer, not the value.")


def debug_print(fmt, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """Print `fmt.format(*args, **kwargs)` with the run-time values, from inside any transformation.

    With `ordered`, prints appear in program order.
    """
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print: the format must be a str, got {type(fmt)}")
    if not skip_format_check:
        shown = tree.tree_map(lambda x: _Shown() if is_arraylike(x) else x, (args, kwargs))
        _Formatter().vformat(fmt, shown[0], shown[1])
    debug_callback(lambda *a, **k: print(fmt.format(*a, **k), flush=True), *args, ordered=ordered,
                   partitioned=partitioned, **kwargs)


class _Shown:
    """Stands for any value when a format string is checked."""

    def __format__(self, spec):
        return ""

    def __getitem__(self, key):
        return self

    def __getattr__(self, name):
        return self


