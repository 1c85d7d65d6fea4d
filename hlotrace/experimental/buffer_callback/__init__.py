"""Callbacks that write their results into memory of the device, instead of returning them."""
import functools

from ...core import dtypes
from ...core.avals import ShapedArray, aval_of, is_arraylike
from ...core.errors import name_of
from ...core.pytrees import pytree
from ...core.surface.public import export_names
from ...primitives.programs.buffer_callback import buffer_callback_p
from ...primitives.programs.ffi import VMAP_METHODS
from ...runtime.binding import callback_classes

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
Buffer, ExecutionContext, ExecutionStage = (
    callback_classes.Buffer, callback_classes.ExecutionContext, callback_classes.ExecutionStage)


def buffer_callback(callback, result_shape_dtypes, *, has_side_effect=False, vmap_method=None,
                    input_output_aliases=None, command_buffer_compatible=False):
    """A function that calls a Python function with memory of the device, which reads and writes it there.

    Nothing is copied.  On the CPU `np.asarray(buffer)` is the memory; on a GPU other libraries take it, by
    `__cuda_array_interface__` or DLPack, and their work belongs on the stream whose address
    `context.stream` is.  Other platforms have no such callbacks.

    Args:
        callback: called as callback(context, out, *args, **kwargs), where `out` and the arguments are pytrees
            of Buffers, of use while it runs.  It fills `out`, which starts with zeros, leaves the arguments
            as they are (nothing keeps it from writing there) and returns None.
        result_shape_dtypes: a pytree of ShapeDtypeStructs, what `out` is.
        has_side_effect: it is called although its results are not used.
        vmap_method: as in `ffi.ffi_call`.
        input_output_aliases: {i: j}: result j starts with what argument i has, counted by arrays, in its
            memory where that is free.
        command_buffer_compatible: on a GPU what it starts may be recorded once and played again without it.
    Returns:
        The function of arrays, or pytrees of them.

    >>> from hlotrace.experimental.buffer_callback import buffer_callback
    >>> def double(context, out, x):
    ...     np.asarray(out)[...] = 2 * np.asarray(x)
    >>> jax.jit(buffer_callback(double, jax.ShapeDtypeStruct((3,), "float32")))(jnp.arange(3.))
    Array([0., 2., 4.], dtype=float32)
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"buffer_callback: vmap_method must be one of {VMAP_METHODS}, got {vmap_method!r}")
    specs, out_tree = pytree.tree_flatten(result_shape_dtypes)
    out_avals = tuple([ShapedArray(tuple(s.shape), dtypes.canonicalize(dtypes.as_dtype(s.dtype)))
                       for s in specs])

    @functools.wraps(callback)
    def call(*args, **kwargs):
        operands, in_tree = pytree.tree_flatten((args, kwargs))
        for x, path in zip(operands, pytree.leaf_paths(in_tree)):
            if not is_arraylike(x):
                raise TypeError(f"buffer_callback of {name_of(callback)}: the argument at {path}, {x!r:.60} "
                                f"of type {type(x)}, is not a valid JAX type: buffers hold arrays")
        aliases = input_output_aliases or {}
        _check_aliases(aliases, [aval_of(x) for x in operands], out_avals)
        return out_tree.unflatten(buffer_callback_p.bind(
            *operands, callback=callback, command_buffer_compatible=command_buffer_compatible,
            has_side_effect=has_side_effect, in_tree=in_tree, input_output_aliases=tuple(aliases.items()),
            out_tree=out_tree, result_avals=out_avals, vmap_method=vmap_method))
    return call


def _check_aliases(aliases, avals, out_avals):
    """ValueError where an argument cannot become a result."""
    for i, j in aliases.items():
        for what, n, k in (("input", len(avals), i), ("output", len(out_avals), j)):
            if not 0 <= k < n:
                raise ValueError(f"input_output_aliases contains the mapping '{i}:{j}' with {what} index {k} "
                                 f"outside the range [0, {n})")
        if (avals[i].shape, avals[i].dtype) != (out_avals[j].shape, out_avals[j].dtype):
            raise ValueError(f"input_output_aliases contains the mapping '{i}:{j}' referring to an input of "
                             f"type {avals[i].str_short()} and an output of type {out_avals[j].str_short()}: "
                             "they must be the same")


export_names(globals())
