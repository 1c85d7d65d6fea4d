"""Windows whose corner is known at run time: dynamic_slice, dynamic_update_slice.

Mapped over different corners they are a gather and a scatter.
"""
import functools

from ...core import errors
from ...core.axes import AxisMap, inserted
from ...core.symbolic.dimension import may_be_at_most
from ..common import Primitive, ShapedArray, dtype_of, dtypes, first_operand_jvp, same_dtype, scalar, shape_of
from .elementwise_rules import if_linear
from .gather import gather_p, scatter_p
from .gather_numbers import CLIP, GatherDimensionNumbers, ScatterDimensionNumbers
from .shape import broadcast_in_dim, full, in_front, int_list, linear_jvp, types_text
from .slicing import concatenate_p


def _check_starts(name, x, starts, sizes, what):
    if what == "update shape" and len(sizes) != x.ndim:
        raise errors.ShapeError(f"{name} update must have the same rank as operand, got {what} "
                                f"{tuple(sizes)} for operand shape {x.shape}")
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise errors.ShapeError(f"{name}: start_indices ({len(starts)} entries) and {what} {tuple(sizes)} "
                                f"must have one entry for each axis of the operand of shape {x.shape}")
    for d, (size, bound) in enumerate(zip(sizes, x.shape)):
        if not (may_be_at_most(0, size) and may_be_at_most(size, bound)):
            must = "must be less than or equal to" if what == "slice_sizes" else "must be smaller than"
            raise TypeError(f"{name} {what} {must} operand shape, got {what} {tuple(sizes)} for operand "
                            f"shape {x.shape}: {size} for axis {d} of size {bound}, it may be 0 to {bound}")
    for s in starts:
        if s.ndim or not dtypes.is_integer(s.dtype):
            raise TypeError(f"start_indices arguments to {name} must be scalars, and integers, got "
                            f"{s.str_short(True)}")
    if starts:
        same_dtype(f"{name} (index arguments)", *starts)


@functools.lru_cache(maxsize=4096)
def _dynamic_slice_abstract_eval(x, *starts, slice_sizes):
    _check_starts("dynamic_slice", x, starts, slice_sizes, "slice_sizes")
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


def _dynamic_slice_lower(ctx, eqn, x, *starts):
    return ctx.emit(f"stablehlo.dynamic_slice {', '.join((x, *starts))}, sizes = "
                    f"{int_list(eqn.params['slice_sizes'])} : {types_text(eqn)}")


def _dynamic_slice_transpose(ct, x, *starts, slice_sizes):
    zeros = full(x.shape, 0, ct.dtype)
    return [dynamic_update_slice_p.bind(zeros, ct, *starts), *[None] * len(starts)]


def _zero_start(starts):
    return scalar(0, dtype_of(starts[0]) if starts else dtypes.int32)


def _index_vectors(axis, starts, dims):
    """Mapped and unmapped scalar starts as an array of one index vector for each example."""
    columns = [broadcast_in_dim(s, (axis.size, 1), () if d is None else (0,)) for s, d in zip(starts, dims)]
    return concatenate_p.bind(*columns, dimension=1)


def _without(shape, mapped):
    """The shape of one example of a value mapped along axis `mapped`, or not mapped (None)."""
    return shape if mapped is None else shape[:mapped] + shape[mapped + 1:]


def _free_dims(shape, sizes):
    """The axes along which a window of `sizes` can move at all."""
    return tuple(d for d, (n, size) in enumerate(zip(shape, sizes)) if size != n)


def _dynamic_slice_batching(axis, args, dims, *, slice_sizes):
    (x, *starts), (dx, *ds) = args, dims
    shape = _without(shape_of(x), dx)
    free = _free_dims(shape, slice_sizes)
    zero = _zero_start(starts)
    starts = [s if i in free else zero for i, s in enumerate(starts)]
    mapped = [d for d in free if ds[d] is not None]
    if not mapped and dx is None:
        return dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes), None
    if not mapped:
        return dynamic_slice_p.bind(x, *inserted(tuple(starts), dx, zero),
                                    slice_sizes=inserted(slice_sizes, dx, axis.size)), dx
    indices = _index_vectors(axis, [starts[d] for d in free], [ds[d] for d in free])
    return gather_p.batching(
        axis, (x, indices), (dx, 0), slice_sizes=slice_sizes, indices_are_sorted=False, unique_indices=False,
        mode=CLIP,
        dimension_numbers=GatherDimensionNumbers(tuple(range(len(shape))), (), free), fill_value=None)


def _same_places(*avals, **_):
    """An axis of the result is that of the first operands; the positions have none."""
    axes = tuple(range(avals[0].ndim))
    return AxisMap(tuple(axes[:a.ndim] for a in avals), axes)


dynamic_slice_p = Primitive("dynamic_slice", abstract_eval=_dynamic_slice_abstract_eval,
                            sharding=_same_places, lower=_dynamic_slice_lower,
                            transpose=_dynamic_slice_transpose, batching=_dynamic_slice_batching,
                            structural=True, linear="first")
dynamic_slice_p.jvp = first_operand_jvp(dynamic_slice_p)


@functools.lru_cache(maxsize=4096)
def _update_abstract_eval(x, update, *starts):
    if update.dtype != x.dtype:
        raise TypeError("lax.dynamic_update_slice requires arguments to have the same dtypes, got "
                        f"{x.dtype.name}, {update.dtype.name}; cast the update with .astype")
    _check_starts("dynamic_update_slice", x, starts, update.shape, "update shape")
    return x


def _update_transpose(ct, x, update, *starts):
    shape = shape_of(update)
    return [if_linear(x, lambda: dynamic_update_slice_p.bind(ct, full(shape, 0, ct.dtype), *starts)),
            if_linear(update, lambda: dynamic_slice_p.bind(ct, *starts, slice_sizes=shape)),
            *[None] * len(starts)]


def _update_batching(axis, args, dims):
    (x, update, *starts), (dx, du, *ds) = args, dims
    if all(d is None for d in ds):
        x, update = in_front(x, axis, dx), in_front(update, axis, du)
        return dynamic_update_slice_p.bind(x, update, _zero_start(starts), *starts), 0
    shape = _without(shape_of(update), du)
    free = _free_dims(_without(shape_of(x), dx), shape)
    if not free:
        return update, du
    indices = _index_vectors(axis, [starts[d] for d in free], [ds[d] for d in free])
    return scatter_p.batching(axis, (x, indices, update), (dx, 0, du), mode=CLIP, indices_are_sorted=False,
                           unique_indices=True,
                           dimension_numbers=ScatterDimensionNumbers(tuple(range(len(shape))), (), free))


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice", abstract_eval=_update_abstract_eval, transpose=_update_transpose,
    batching=_update_batching, sharding=_same_places, linear="two",
    alike="dynamic_update_slice operand sharding must be equal to update sharding",
    structural=True, lower=lambda ctx, eqn, *names: ctx.emit(
        f"stablehlo.dynamic_update_slice {', '.join(names)} : {types_text(eqn)}"))
dynamic_update_slice_p.jvp = linear_jvp(dynamic_update_slice_p, 2)


