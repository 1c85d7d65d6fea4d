"""Host callbacks that write their results into buffers, instead of returning them."""
import enum
import functools

import numpy as np

from ...api.signatures import name_of
from ...core import dtypes
from ...core.avals import ShapedArray, aval_of, is_arraylike
from ...core.effects import IO
from ...core.pytrees import pytree
from ...core.surface.public import export_names
from ...primitives.programs import callbacks

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """When a callback is called; here always while the program runs, EXECUTE."""
    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback gets first: its `stage`."""
    stage = ExecutionStage.EXECUTE

    @property
    def stream(self):
        """Of GPUs, which buffer_callback does not reach here."""
        raise NotImplementedError("ExecutionContext.stream: buffer callbacks run on the host here, which has "
                                  "none")


class Buffer:
    """An operand, or a result that is to be written: `np.asarray(buffer)` is its memory."""

    def __init__(self, value, writeable):
        self._value, self.writeable = value, writeable
        self.shape, self.dtype, self.ndim = value.shape, value.dtype, value.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self._value, dtype, copy=copy)

    def __dlpack__(self, **options):
        return self._value.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._value.__dlpack_device__()


def buffer_callback(callback, result_shape_dtypes, *, has_side_effect=False, vmap_method=None,
                    input_output_aliases=None, command_buffer_compatible=False):
    """A function that calls a Python function on the host, which writes its results where they belong.

    Args:
        callback: called as callback(context, out, *args, **kwargs), where `out` and the arguments are pytrees
            of Buffers.  It fills `out`, which starts with zeros, and returns None.
        result_shape_dtypes: a pytree of ShapeDtypeStructs, what `out` is.
        has_side_effect: it is called although its results are not used.
        vmap_method: as in `pure_callback`.
        input_output_aliases: {i: j}: result j starts with what argument i has, counted by arrays.
        command_buffer_compatible: of GPUs, and changes nothing.
    Returns:
        The function of arrays, or pytrees of them.

    >>> from hlotrace.experimental.buffer_callback import buffer_callback
    >>> def double(context, out, x):
    ...     np.asarray(out)[...] = 2 * np.asarray(x)
    >>> jax.jit(buffer_callback(double, jax.ShapeDtypeStruct((3,), "float32")))(jnp.arange(3.))
    Array([0., 2., 4.], dtype=float32)
    """
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
        avals = [aval_of(x) for x in operands]
        starts = _starts(input_output_aliases or {}, avals, out_avals)

        def function(*values):
            values = [np.asarray(v) for v in values]
            lead = np.broadcast_shapes(*[v.shape[:v.ndim - a.ndim] for v, a in zip(values, avals)])
            outs = [np.zeros((*lead, *a.shape), a.dtype) for a in out_avals]
            for j, i in starts.items():
                outs[j][...] = values[i]
            given, named = in_tree.unflatten([Buffer(v, False) for v in values])
            out = out_tree.unflatten([Buffer(x, True) for x in outs])
            result = callback(ExecutionContext(), out, *given, **named)
            if result is not None:
                raise TypeError(f"a buffer callback returns None, and writes into `out`; {name_of(callback)} "
                                f"returned {result!r:.60}")
            return outs
        function.__name__, function.mapped, function.paths = (
            name_of(callback), False, pytree.leaf_paths(out_tree))
        return out_tree.unflatten(callbacks.bind(
            *operands, function=function, out_avals=out_avals, effect=IO(False) if has_side_effect else None,
            vmap_method=vmap_method))
    return call


def _starts(aliases, avals, out_avals):
    """{result: the argument that it starts as}; ValueError where they do not fit."""
    for i, j in aliases.items():
        for what, n, k in (("input", len(avals), i), ("output", len(out_avals), j)):
            if not 0 <= k < n:
                raise ValueError(f"input_output_aliases contains the mapping '{i}:{j}' with {what} index {k} "
                                 f"outside the range [0, {n})")
        if (avals[i].shape, avals[i].dtype) != (out_avals[j].shape, out_avals[j].dtype):
            raise ValueError(f"input_output_aliases contains the mapping '{i}:{j}' referring to an input of "
                             f"type {avals[i].str_short()} and an output of type {out_avals[j].str_short()}: "
                             "they must be the same")
    return {j: i for i, j in aliases.items()}


export_names(globals())
