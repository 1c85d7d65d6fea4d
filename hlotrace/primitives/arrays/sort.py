"""Sorting along one axis: `sort` of operands together, `top_k`, and `approx_top_k`, which may miss some."""
import functools
import math

from ...core.axes import leading_axes, same_axes
from ...core.symbolic.dimension import min_dim
from ..common import ShapedArray, dtype_of, dtypes, kind_of, ndim_of, np, shape_of
from .elementwise import (
    and_p, eq, gt, imag_p, in_bytes, le, le_to_p, lt, lt_to_p, ne, neg, or_p, real, select)
from .gather import gather_p
from .gather_numbers import PROMISE, GatherDimensionNumbers
from .reduce import region, scalar_program
from .shape import Mapped, full, move_axis, reshape
from .slicing import iota_p


def take_along(x, indices, axis, unique=False):
    """The elements of `x` at `indices` (same rank, in bounds) along `axis`; `unique` if each is read once."""
    shape = shape_of(x)
    others = tuple(i for i in range(len(shape)) if i != axis)
    if not shape[axis]:
        return full(shape_of(indices), 0, dtype_of(x))
    return gather_p.bind(
        x, reshape(indices, (*shape_of(indices), 1)), slice_sizes=tuple(min_dim(n, 1) for n in shape),
        fill_value=None, dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        mode=PROMISE, indices_are_sorted=False, unique_indices=unique)


# --- sort -----------------------------------------------------------------------------------------

def _sort_abstract_eval(*operands, dimension, is_stable, num_keys):
    first = operands[0]
    if any(x.shape != first.shape for x in operands):
        raise TypeError("Arguments to sort must have equal shapes, got: "
                        f"{' '.join(str(x.shape) for x in operands)}")
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
    return ctx.emit(f'"stablehlo.sort"({", ".join(names)}) <{{dimension = {p["dimension"]} : i64, is_stable '
                    '= ' f"{str(p['is_stable']).lower()}}}> "
                    f"{region(ctx, eqn, comparator(p['num_keys']), scalars)} : ({types}) -> ({types})",
                    len(names))


def _sort_jvp(primals, tangents, *, dimension, **params):
    shape = shape_of(primals[0])
    places = iota_p.bind(dtype=dtypes.int32, shape=shape, dimension=dimension)
    *out, order = sort_p.bind(*primals, places, dimension=dimension, **params)
    return out, [None if t is None else take_along(t, order, dimension, unique=True) for t in tangents]


sort_p = Mapped("sort", multiple_results=True, abstract_eval=_sort_abstract_eval,
                lower=in_bytes(_sort_lower, dtypes.PACKED),
                jvp=_sort_jvp, axes=same_axes("dimension"), makes_nan=False,
                alike="Arguments to sort must have equal shardings",
                whole="Arguments to sort must be unsharded over the sorting dimension")


def sort(*operands, dimension, num_keys=1, is_stable=True):
    return sort_p.bind(*operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys)


# --- top_k ----------------------------------------------------------------------------------------

def _top_k_abstract_eval(x, *, k):
    if kind_of(x.dtype) not in "fiub":
        raise ValueError(f"top_k is not compatible with {x.dtype} inputs: their values have no order")
    if not x.ndim:
        raise TypeError(f"top_k operand must have >= 1 dimension, got {x.shape}")
    if not 0 <= k <= x.shape[-1]:
        raise ValueError(f"top_k: k must be between 0 and the size of the last axis, got k={k} and shape "
                         f"{x.shape}")
    shape = (*x.shape[:-1], k)
    return [ShapedArray(shape, dtype, x.weak_type) for dtype in (x.dtype, dtypes.int32)]


def _top_k_lower(ctx, eqn, x):
    values, indices = (v.aval.mlir for v in eqn.outvars)
    return ctx.emit(f"chlo.top_k({x}, k = {eqn.params['k']}) : {eqn.invars[0].aval.mlir} -> ({values}, "
                    f"{indices})", 2)


def _top_k_jvp(primals, tangents, *, k):
    values, indices = top_k_p.bind(*primals, k=k)
    return [values, indices], [take_along(tangents[0], indices, len(shape_of(values)) - 1, unique=True), None]


top_k_p = Mapped("top_k", multiple_results=True, abstract_eval=_top_k_abstract_eval,
                 lower=in_bytes(_top_k_lower, dtypes.PACKED),
                 jvp=_top_k_jvp, axes=leading_axes(lambda x, *, k: (1, 1)), makes_nan=False,
                 whole="The input should be unsharded over the axis along which to compute the top_k values")
top_k_p.shown = lambda eqn: {**eqn.params, "axis": eqn.invars[0].aval.ndim - 1}


# --- approx_top_k ---------------------------------------------------------------------------------

def _approximate_size(shape, *, k, reduction_dimension, recall_target, reduction_input_size_override,
                      aggregate_to_topk, **_):
    """How many elements are left of an axis: so many bins that the expected part of the k best that have one
    of their own is `recall_target`, in whole tiles of a TPU (Chern et al., "TPU-KNN: K Nearest Neighbor
    Search at Peak FLOP/s", 2022).
    """
    n = shape[reduction_dimension]
    tile = 1024 if len(shape) == 1 else 128
    if aggregate_to_topk:
        return k
    if n <= tile:
        return n
    if k == 1:
        return tile
    if recall_target == 1:
        return n
    bins = min(max(int((1 - k) / np.log(recall_target)), tile), n)
    whole = reduction_input_size_override if reduction_input_size_override >= 0 else n
    halvings = (whole // bins).bit_length() - 1
    most = (n // tile - 1).bit_length()       # until one tile is left
    return math.ceil(math.ceil(n / tile) / 2 ** min(halvings, most)) * tile if halvings else n


def _approx_abstract_eval(x, *, k, reduction_dimension, recall_target, reduction_input_size_override,
                          **params):
    if kind_of(x.dtype) != "f":
        raise ValueError(f"approx_top_k: operand must be a floating type, got {x.str_short()}: convert it, "
                         "or use lax.top_k")
    n = x.shape[reduction_dimension]
    if not 0 < k <= n:
        raise ValueError(f"approx_top_k: k must be positive and at most the size {n} of axis "
                         f"{reduction_dimension} of the operand of shape {x.shape}, got {k}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"approx_top_k: recall_target must be above 0 and at most 1, got {recall_target}")
    if 0 <= reduction_input_size_override < n:
        raise ValueError(f"approx_top_k: reduction_input_size_override must be at least the size {n} of axis "
                         f"{reduction_dimension}, got {reduction_input_size_override}; -1 is for that size")
    size = _approximate_size(x.shape, k=k, reduction_dimension=reduction_dimension,
                             recall_target=recall_target,
                             reduction_input_size_override=reduction_input_size_override, **params)
    shape = (*x.shape[:reduction_dimension], size, *x.shape[reduction_dimension + 1:])
    return [ShapedArray(shape, dtype, x.weak_type) for dtype in (x.dtype, dtypes.int32)]


def _exact(ctx, eqn, x):
    """All that are requested, in order, where a device has nothing that is quicker and less exact."""
    axis, best = eqn.params["reduction_dimension"], eqn.params["is_max_k"]
    size = eqn.outvars[0].aval.shape[axis]

    def find(x):
        x = move_axis(x, axis, ndim_of(x) - 1)
        values, places = top_k_p.bind(x if best else neg(x), k=size)
        return [move_axis(v, ndim_of(v) - 1, axis) for v in (values if best else neg(values), places)]
    return ctx.lower_fun(find, eqn, x)


def _approximate(ctx, eqn, x):
    p, operand, outs = eqn.params, eqn.invars[0].aval, [v.aval for v in eqn.outvars]
    first, index = ShapedArray((), operand.dtype), ShapedArray((), dtypes.int32)
    compare = scalar_program(_descending if p["is_max_k"] else _ascending, (first, first, index, index))
    axis = p["reduction_dimension"]
    places = ctx.emit(f"stablehlo.iota dim = {axis} : {operand.update(dtype=dtypes.int32).mlir}")
    worst = ctx.constant(-np.inf if p["is_max_k"] else np.inf, operand.dtype)
    config = (f"{{aggregate_to_topk = {str(p['aggregate_to_topk']).lower()}, recall_target = "
              f"{p['recall_target']:.9e} : f32, reduction_dim = {axis} : i64, reduction_input_size_override "
              f"= {p['reduction_input_size_override']} : i64, top_k = {p['k']} : i64}}")
    return ctx.emit(
        f"stablehlo.custom_call @ApproxTopK({x}, {places}, {worst}, {ctx.constant(-1, np.int32)}) "
        f"{{called_computations = [@{ctx.module.function(compare)}], mhlo.backend_config = {config}}} : "
        f"({operand.mlir}, {operand.update(dtype=dtypes.int32).mlir}, {first.mlir}, {index.mlir}) -> "
        f"({outs[0].mlir}, {outs[1].mlir})", 2)


def _descending(x, y, i, j):
    return [gt(x, y)]


def _ascending(x, y, i, j):
    return [lt(x, y)]


def _approx_jvp(primals, tangents, *, reduction_dimension, **params):
    values, places = approx_top_k_p.bind(*primals, reduction_dimension=reduction_dimension, **params)
    return [values, places], [take_along(tangents[0], places, reduction_dimension), None]


approx_top_k_p = Mapped("approx_top_k", multiple_results=True, abstract_eval=_approx_abstract_eval,
                        lower={"tpu": _approximate, None: _exact}, jvp=_approx_jvp,
                        axes=same_axes("reduction_dimension"),
                        whole="approx_top_k: the reduction dimension should be unsharded")
