"""What the families share: rule helpers, error words.  Knows core only."""
from __future__ import annotations

import functools
import logging
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, errors, source_info
from ..core.array import Array
from ..core.avals import ShapedArray, aval_of
from ..core.config import config, state
from ..core.jaxpr import exactly
from ..core.primitive import Builtin as Primitive
from ..core.symbolic.dimension import Dimension, as_size, may_be_at_most
from ..core.symbolic_zeros import UndefinedPrimal, is_undefined_primal
from ..core.trace import Tracer

prod = math.prod


def warn_of_imaginary_part(value: Any, dtype: np.dtype) -> None:
    """Warn where a value loses its imaginary part, as it gets another dtype.  TypeError where it is a Python
    number, which float() refuses too."""
    if (isinstance(value, int | float) or dtypes.is_complex(dtype) or dtypes.is_bool(dtype)
            or not dtypes.is_complex(aval_of(value).dtype)):
        return
    if type(value) is complex:
        raise TypeError(f"float() argument must be a string or a real number, not 'complex': {value} does "
                        f"not become {dtype.name}; give its real part, (...).real")
    warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning,
                  stacklevel=source_info.user_stacklevel())


def scalar(value: Any, dtype: Any) -> Any:
    """A NumPy constant of rank 0, the same object each time.

    A Python int that fits the default integer dtype wraps to the width of `dtype`, as -1 and masks do beside
    unsigned integers; one that fits neither raises OverflowError.  A float becomes the nearest integer.
    """
    try:
        # 0.0 and -0.0 are equal, but not the same
        made = _scalar(value, dtype, state.x64 if value else str(value))
        return made if made.itemsize < 8 else exactly(made)
    except (TypeError, errors.InconclusiveDimensionOperation):
        if type(value) is not Dimension:
            raise
        return value.as_value(dtype)


@functools.lru_cache(maxsize=4096)
def _scalar(value: Any, dtype: Any, _: object) -> Any:
    if type(value) is int and not dtypes.holds(dtypes.canonicalize(dtypes.int64), value):
        return _large(value, dtype)
    made = np.asarray(value)
    if made.dtype.kind == "f" and kind_of(dtype) in "iu":
        made = np.asarray(_nearest(made.item(), dtypes.iinfo(dtype)))
    with np.errstate(over="ignore", invalid="ignore"):
        return made.astype(dtype)


def _nearest(value: float, info: Any) -> int:
    """A float as an integer of a dtype, as XLA converts arrays: the nearest one toward 0, and 0 for NaN."""
    if math.isfinite(value):
        return min(max(int(value), int(info.min)), int(info.max))
    return 0 if math.isnan(value) else _nearest(math.copysign(2.0 ** 65, value), info)


_NUMBERS = {"i": int, "f": float, "c": complex}


def number(value: Any, aval: ShapedArray) -> Any:
    """A Python number as an operand beside an array: a constant of its dtype, weak if the array is."""
    make = _NUMBERS.get(kind_of(aval.dtype)) if aval.weak_type and type(value) is not Dimension else None
    if make is not None and dtypes.canonicalize(make) == aval.dtype:
        return make(value)
    return scalar(value, aval.dtype)


def _large(value: int, dtype: Any) -> Any:
    """A constant of a Python int that the default integer dtype cannot hold."""
    if dtypes.is_integer(dtype) and dtypes.holds(dtype, value):
        return np.asarray(value, dtype)
    if dtypes.is_inexact(dtype) and abs(value) <= float(dtypes.finfo(dtype).max):
        return np.asarray(float(value)).astype(dtype)
    raise dtypes.overflow(value, dtype)


def dtype_of(x: Any) -> Any:
    known = hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic))     # theirs may have 64 bits
    return x.dtype if known else aval_of(x).dtype


def shape_of(x: Any) -> tuple[Any, ...]:
    return getattr(x, "shape", ())


def ndim_of(x: Any) -> int:
    return len(shape_of(x))


def is_constant(x: Any) -> bool:
    """Is it a Python or NumPy value, which may be a rank-0 operand beside arrays of any shape?"""
    return not isinstance(x, Tracer) and isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))


def static_int(value: Any, parameter: str, advice: str = "") -> Any:
    """`value` as an int.  TypeError that names the parameter, for what is none."""
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, Tracer):
            raise
        if isinstance(value, Dimension):
            return value
        raise errors.not_an_int(parameter, value, advice) from None


def canonical_axis(axis: Any, ndim: int, name: str = "axis") -> int:
    """`axis` counted from the front.  AxisError if there is none such."""
    if isinstance(axis, Tracer) and axis.concrete() is None:
        raise errors.concrete_needed(axis, f"{name} must be a known int")
    axis = static_int(axis, name, "; functions of two arrays have names of their own, as maximum and add"
                      if isinstance(axis, (Array, np.ndarray)) and axis.shape else "")
    if not -ndim <= axis < ndim:
        range_ = f"-{ndim} <= {name} < {ndim}" if ndim else "it has no axes"
        raise np.exceptions.AxisError(f"axis {axis} is out of bounds for array of dimension {ndim}: {range_}")
    return axis + ndim if axis < 0 else axis


MEND_INDEX = "Clip it if that is meant"
_PLACES: set[tuple[str, int]] = set()       # lines of users for which an index out of bounds was reported


def check_index(index: Any, size: Any, axis: int = 0, *, first: int | None = None, after: int = 0,
                advice: str = MEND_INDEX) -> None:
    """Is a static `index` one of `size` elements and `after` more?  Arrays of indices pass.

    An index that is less than `first` (None: -size), or beyond the last, is logged once for each user's line.

    Raises:
        IndexError: for it, with the option `jax_check_static_indices` or `hlotrace_check_bounds`.
    """
    first = -size if first is None else first
    if not isinstance(index, (int, np.integer)) or (
            may_be_at_most(first, int(index)) and may_be_at_most(int(index) + 1, size + after)):
        return
    if config.jax_check_static_indices or state.check_bounds:
        raise errors.index_out_of_bounds(index, axis, size, first, size + after - 1, advice)
    source = source_info.user_frame()
    place = source_info.position(source)[:2] if source else ("", 0)
    if place not in _PLACES and len(_PLACES) < 1000:
        _PLACES.add(place)
        logging.getLogger("hlotrace").warning("%s", errors.index_passes(
            index, axis, size, first, size + after - 1, source_info.describe(source)))


def as_axes(axes: Any) -> tuple[Any, ...]:
    """The tuple of what a user gave as one axis or several, in whatever can be iterated."""
    one = not isinstance(axes, Iterable) or isinstance(axes, str) or getattr(axes, "ndim", 1) == 0 or (
        isinstance(axes, (Array, np.ndarray)) and axes.dtype.kind not in "iu")
    return (axes,) if one else tuple(axes)


def canonical_axes(axes: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """A tuple of axes counted from the front; None means all.  ValueError for a repeated axis."""
    if axes is None:
        return tuple(range(ndim))
    axes = as_axes(axes)
    result = tuple(canonical_axis(a, ndim, name) for a in axes)
    if len(set(result)) != len(result):
        raise ValueError(f"duplicate value in {name}: {axes}")
    return result


def canonical_shape(shape: Any, what: str = "shape", undecided: bool = False) -> tuple[Any, ...]:
    """A tuple of non-negative ints from what a user gave as a shape.

    Args:
        shape: an int, or a sequence of ints and symbolic sizes.
        what: how errors call it.
        undecided: may it have symbolic sizes of which it is not known that they are not negative?
    Raises:
        TypeError: for traced or other values.
        ShapeError: for a negative size.
    """
    if type(shape) is tuple and not [d for d in shape if type(d) is not int or d < 0]:
        return shape        # as most are
    result = sizes_of(shape, what)
    if any(d < 0 for d in result if not (undecided and isinstance(d, Dimension))):
        raise errors.ShapeError(f"{what} must have every element be nonnegative, got {result}")
    return result


def sizes_of(shape: Any, what: str) -> tuple[Any, ...]:
    """A tuple of ints and symbolic sizes from an int or a sequence; TypeError for traced or other values."""
    if isinstance(shape, (int, Dimension)) and type(shape) is not bool or getattr(shape, "ndim", None) == 0:
        shape = (shape,)
    try:
        return tuple(map(as_size, shape))
    except TypeError as error:
        why = str(error)
        if type(error) is TypeError:
            why = f"{what} must be an int or a sequence of ints known when tracing"
        raise type(error)("Shapes must be 1D sequences of concrete values of integer type, got "
                          f"{shape!r}: {why}") from None


def kind_of(dtype: Any) -> str:
    """f float, c complex, i signed, u unsigned, b bool, k PRNG key, 0 float0; ? for others."""
    if dtypes.is_float(dtype):
        return "f"
    if dtypes.is_complex(dtype):
        return "c"
    if dtypes.is_bool(dtype):
        return "b"
    if dtypes.is_integer(dtype):
        return "u" if dtypes.is_unsigned(dtype) else "i"
    if dtype == dtypes.float0:
        return "0"
    return "k" if dtypes.is_extended(dtype) and dtype.mlir is None else "?"


def same_dtype(name: str, *avals: ShapedArray) -> None:
    """Are all dtypes equal?  TypeError if they are not."""
    for a in avals:
        if a.dtype != avals[0].dtype:
            raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got "
                            f"{', '.join(x.dtype.name for x in avals)}. Cast one with .astype(dtype), or use "
                            "the hlotrace.numpy function, which promotes.")


def first_operand_jvp(primitive: Primitive) -> Callable[..., tuple[Any, Any]]:
    """The jvp rule of a primitive linear in operand 0; the others (indices, ...) carry no tangent."""
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        tangent = None if tangents[0] is None else primitive.bind(tangents[0], *primals[1:], **params)
        return out, tangent
    return jvp


def no_tangent_jvp(primitive: Primitive) -> Callable[..., tuple[Any, Any]]:
    """The jvp rule of a primitive whose results are integers, or constant almost everywhere."""
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, ([None] * len(out) if primitive.multiple_results else None)
    return jvp


__all__ = ["np", "prod", "scalar", "number", "dtype_of", "shape_of", "ndim_of", "is_constant",
           "canonical_axis", "canonical_axes", "canonical_shape", "kind_of", "same_dtype",
           "first_operand_jvp", "no_tangent_jvp", "ShapedArray", "aval_of", "UndefinedPrimal",
           "is_undefined_primal", "Primitive", "Tracer", "dtypes"]
