"""What the families share: rule helpers, error words.  Knows core only."""
import functools
import math
import operator

import numpy as np

from ..core import dtypes
from ..core.avals import ShapedArray, aval_of
from ..core.linear import Linear, is_linear
from ..core.primitive import Builtin as Primitive
from ..core.trace import Tracer

prod = math.prod


def scalar(value, dtype):
    """A NumPy constant of rank 0, the same object each time.  Integers wrap to the width of the dtype."""
    return _scalar(value, dtype, None if value else str(value))      # 0.0 and -0.0 are equal, but not the same


@functools.lru_cache(maxsize=4096)
def _scalar(value, dtype, text):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(value).astype(dtype)


def dtype_of(x):
    return x.dtype if hasattr(x, "dtype") else aval_of(x).dtype


def shape_of(x):
    return x.shape if hasattr(x, "shape") else ()


def ndim_of(x):
    return len(shape_of(x))


def is_constant(x):
    """A Python or NumPy value: it may stand as a rank-0 operand beside arrays of any shape."""
    return not isinstance(x, Tracer) and isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))


def canonical_axis(axis, ndim, name="axis"):
    """`axis` counted from the front.  AxisError, a ValueError and an IndexError, if there is no such axis."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(f"{name} {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def canonical_axes(axes, ndim, name="axis"):
    """A tuple of axes counted from the front; None means all.  ValueError on a repeated axis."""
    if axes is None:
        return tuple(range(ndim))
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    result = tuple(canonical_axis(a, ndim, name) for a in axes)
    if len(set(result)) != len(result):
        raise ValueError(f"duplicate value in {name}: {tuple(axes)}")
    return result


def canonical_shape(shape, what="shape"):
    """A tuple of non-negative ints from what a user gave as a shape.  TypeError for traced or other values."""
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        shape = (shape,)
    try:
        result = tuple(operator.index(d) for d in shape)
    except TypeError as error:
        if isinstance(error, TypeError) and type(error) is not TypeError:
            raise
        raise TypeError(f"{what} must be an int or a sequence of ints known when tracing, got {shape!r}") from None
    if any(d < 0 for d in result):
        raise ValueError(f"{what} must have non-negative sizes, got {result}")
    return result


def kind_of(dtype):
    """f float, c complex, i signed, u unsigned, b bool; ? for others."""
    if dtypes.is_float(dtype):
        return "f"
    if dtypes.is_complex(dtype):
        return "c"
    if dtypes.is_bool(dtype):
        return "b"
    if dtypes.is_integer(dtype):
        return "u" if dtypes.is_unsigned(dtype) else "i"
    return "?"


def same_dtype(name, *avals):
    """TypeError unless all dtypes are equal."""
    first = avals[0].dtype
    for a in avals:
        if a.dtype != first:
            listed = ", ".join(x.dtype.name for x in avals)
            raise TypeError(f"{name} requires arguments to have the same dtypes, got {listed}. "
                            "(lax functions do not promote; use the hlotrace.numpy function or cast with .astype.)")


def first_operand_jvp(primitive):
    """The jvp rule of a primitive linear in operand 0; the others (indices, ...) carry no tangent."""
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        tangent = None if tangents[0] is None else primitive.bind(tangents[0], *primals[1:], **params)
        return out, tangent
    return jvp


def no_tangent_jvp(primitive):
    """The jvp rule of a primitive whose results are integers, or constant almost everywhere."""
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        return out, ([None] * len(out) if primitive.multiple_results else None)
    return jvp


__all__ = ["np", "prod", "scalar", "dtype_of", "shape_of", "ndim_of", "is_constant", "canonical_axis",
           "canonical_axes", "canonical_shape", "kind_of", "same_dtype", "first_operand_jvp", "no_tangent_jvp",
           "ShapedArray", "aval_of", "Linear", "is_linear", "Primitive", "Tracer", "dtypes"]
