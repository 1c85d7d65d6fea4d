"""Sorting along one axis: `sort` of several operands together, and `top_k`."""
import functools

from ..core.axes import leading_axes, same_axes
from .common import ShapedArray, dtype_of, dtypes, kind_of, np, shape_of
from .elementwise import and_p, eq, imag_p, le, le_to_p, lt, lt_to_p, ne, or_p, real, select
from .gather import gather_p
from .index import PROMISE, GatherDimensionNumbers
from .reduce import region
from .shape import Mapped, full, reshape
from .slicing import iota_p


def take_along(x, indices, axis, unique=False):
    """The elements of `x` at `indices` (of the same rank, in bounds) along `axis`; `unique` if none is read twice."""
    shape = shape_of(x)
    others = tuple(i for i in range(len(shape)) if i != axis)
    if not shape[axis]:
        return full(shape_of(indices), 0, dtype_of(x))
    return gather_p.bind(
        x, reshape(indices, (*shape_of(indices), 1)), slice_sizes=tuple(min(n, 1) for n in shape), fill_value=None,
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others), mode=PROMISE,
        indices_are_sorted=False, unique_indices=unique)


# --- sort -------------------------------------------------------------------------------------------------------

def _sort_typ(*operands, dimension, is_stable, num_keys):
    first = operands[0]
    if any(x.shape != first.shape for x in operands):
        raise TypeError(f"Arguments to sort must have equal shapes, got: {' '.join(str(x.shape) for x in operands)}")
    if not 0 <= dimension < first.ndim:
        raise ValueError(f"sort: dimension {dimension} is out of bounds for operands of shape {first.shape}")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operands)}")
    return list(operands)


def _ordered_parts(x):
    """What to compare, in order: both parts of a complex number; one zero and one nan for all of each."""
    if dtypes.is_complex(dtype_of(x)):
        return [_one_zero_one_nan(real(x)), _one_zero_one_nan(imag_p.bind(x))]
    return [_one_zero_one_nan(x)] if dtypes.is_float(dtype_of(x)) else [x]


def _one_zero_one_nan(x):
    return select(ne(x, x), np.nan, select(eq(x, 0), 0.0, x))


@functools.cache
def comparator(num_keys):
    """Does the first of two rows come before the second?  `scalars` are two of each operand."""
    def before(*scalars):
        pairs = []
        for x, y in zip(scalars[:2 * num_keys:2], scalars[1:2 * num_keys:2]):
            pairs += zip(_ordered_parts(x), _ordered_parts(y))
        result = None
        for x, y in reversed(pairs):
            total = dtypes.is_float(dtype_of(x))     # the total order puts nan last
            less = lt_to_p.bind(x, y) if total else lt(x, y)
            if result is not None:
                equal_or_less = le_to_p.bind(x, y) if total else le(x, y)
                less = or_p.bind(less, and_p.bind(equal_or_less, result))
            result = less
        return [result]
    return before


def _sort_lower(ctx, eqn, *names):
    p = eqn.params
    scalars = [ShapedArray((), v.aval.dtype) for v in eqn.invars for _ in range(2)]
    types = ", ".join(v.aval.mlir for v in eqn.outvars)
    return ctx.emit(f'"stablehlo.sort"({", ".join(names)}) <{{dimension = {p["dimension"]} : i64, is_stable = '
                    f"{str(p['is_stable']).lower()}}}> {region(ctx, eqn, comparator(p['num_keys']), scalars)} : "
                    f"({types}) -> ({types})", len(names))


def _sort_jvp(primals, tangents, *, dimension, **params):
    shape = shape_of(primals[0])
    places = iota_p.bind(dtype=dtypes.int32, shape=shape, dimension=dimension)
    *out, order = sort_p.bind(*primals, places, dimension=dimension, **params)
    return out, [None if t is None else take_along(t, order, dimension, unique=True) for t in tangents]


sort_p = Mapped("sort", multiple_results=True, typ=_sort_typ, lower=_sort_lower, jvp=_sort_jvp, axes=same_axes("dimension"))


def sort(*operands, dimension, num_keys=1, is_stable=True):
    return sort_p.bind(*operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys)


# --- top_k ------------------------------------------------------------------------------------------------------

def _top_k_typ(x, *, k):
    if kind_of(x.dtype) not in "fiub":
        raise ValueError(f"top_k is not compatible with {x.dtype} inputs: their values have no order")
    if not x.ndim:
        raise TypeError(f"top_k operand must have >= 1 dimension, got {x.shape}")
    if not 0 <= k <= x.shape[-1]:
        raise ValueError(f"top_k: k must be between 0 and the size of the last axis, got k={k} and shape {x.shape}")
    shape = (*x.shape[:-1], k)
    return [ShapedArray(shape, x.dtype), ShapedArray(shape, dtypes.int32)]


def _top_k_lower(ctx, eqn, x):
    values, indices = (v.aval.mlir for v in eqn.outvars)
    return ctx.emit(f"chlo.top_k({x}, k = {eqn.params['k']}) : {eqn.invars[0].aval.mlir} -> ({values}, {indices})", 2)


def _top_k_jvp(primals, tangents, *, k):
    values, indices = top_k_p.bind(*primals, k=k)
    return [values, indices], [take_along(tangents[0], indices, len(shape_of(values)) - 1, unique=True), None]


top_k_p = Mapped("top_k", multiple_results=True, typ=_top_k_typ, lower=_top_k_lower, jvp=_top_k_jvp,
                 axes=leading_axes(lambda x, *, k: (1, 1)))
