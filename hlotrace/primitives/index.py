"""Reading at run-time positions: dynamic_slice, dynamic_update_slice, gather.

A gather reads one window of the operand for each index vector; XLA moves windows that stick out back inside,
so only `FILL_OR_DROP` needs a mask.  Batching keeps one gather a gather: a mapped axis of operand and indices
becomes a pair of batching dimensions.
"""
import enum
import functools
import typing

from .common import (
    Primitive,
    ShapedArray,
    aval_of,
    bind,
    dtype_of,
    dtypes,
    first_operand_jvp,
    full,
    instantiate,
    is_linear,
    np,
    same_dtype,
    scalar,
    shape_of,
    zeros_of,
)
from .elementwise import ge, le, select
from .shape import _array, _list, _types, broadcast_axis, broadcast_in_dim, concatenate_p, move_axis


class GatherScatterMode(enum.Enum):
    """What happens to windows that stick out of the operand.

    CLIP moves them inside.  FILL_OR_DROP reads a fill value, or writes nothing.  PROMISE_IN_BOUNDS says that
    there are none.  ONE_HOT is accepted and means PROMISE_IN_BOUNDS.
    """
    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode):
        """A mode from itself, its name, or None (FILL_OR_DROP).  ValueError for another string."""
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            names = ", ".join(repr(m) for m in _MODES if m)
            raise ValueError(f"Unknown gather mode {mode!r}: choose one of {names}") from None


CLIP, FILL, PROMISE = (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS)
_MODES = {None: FILL, "clip": CLIP, "fill": FILL, "drop": FILL, "promise_in_bounds": PROMISE,
          "one_hot": GatherScatterMode.ONE_HOT}


class GatherDimensionNumbers(typing.NamedTuple):
    """Which axes mean what in a gather; see `lax.gather`."""
    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()


def shift(dims, by=1):
    return tuple(d + by for d in dims)


def insert(values, position, value):
    return (*values[:position], value, *values[position:])


def check_dims(name, what, dims, bound, increasing=True):
    """TypeError unless `dims` are distinct (and increasing) numbers below `bound`."""
    if any(not 0 <= d < bound for d in dims):
        raise TypeError(f"{name}: {what} {dims} must be axes in the range [0, {bound})")
    if len(set(dims)) != len(dims) or increasing and list(dims) != sorted(dims):
        raise TypeError(f"{name}: {what} {dims} must be distinct" + (" and increasing" if increasing else ""))


def check_index_vectors(name, indices, index_map, map_name):
    """TypeError unless `indices` holds, along its last axis, one integer for each entry of `index_map`."""
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{name}: indices must have an integer type, got {indices.str_short(True)}")
    if indices.ndim == 0 or indices.shape[-1] != len(index_map):
        raise TypeError(f"{name}: the last axis of the indices, of shape {indices.shape}, must have one entry for each "
                        f"of the {len(index_map)} dimensions in {map_name} {index_map}")


def check_batching_dims(name, x, indices, operand_dims, index_dims, index_name):
    """TypeError unless batching dims of operand and indices pair up with equal sizes."""
    check_dims(name, index_name, index_dims, indices.ndim - 1, increasing=False)
    sizes, index_sizes = [x.shape[d] for d in operand_dims], [indices.shape[d] for d in index_dims]
    if sizes != index_sizes:
        raise TypeError(f"{name}: operand_batching_dims {operand_dims} of the operand of shape {x.shape} and "
                        f"{index_name} {index_dims} of the indices of shape {indices.shape} must have equal sizes, got "
                        f"{sizes} and {index_sizes}")


# --- dynamic_slice, dynamic_update_slice ------------------------------------------------------------------------

def _check_starts(name, x, starts, sizes, what):
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise TypeError(f"{name}: start_indices ({len(starts)} entries) and {what} {tuple(sizes)} must have one entry "
                        f"for each axis of the operand of shape {x.shape}")
    for d, (size, bound) in enumerate(zip(sizes, x.shape)):
        if not 0 <= size <= bound:
            raise TypeError(f"{name}: axis {d}: {what} {tuple(sizes)} must be at most the operand shape {x.shape}, "
                            f"got {size} for an axis of size {bound}")
    for s in starts:
        if s.ndim or not dtypes.is_integer(s.dtype):
            raise TypeError(f"{name}: index arguments must be integer scalars, got {s.str_short(True)}")
    if starts:
        same_dtype(f"{name} (index arguments)", *starts)


@functools.lru_cache(maxsize=4096)
def _dynamic_slice_typ(x, *starts, slice_sizes):
    _check_starts("dynamic_slice", x, starts, slice_sizes, "slice_sizes")
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


def _dynamic_slice_lower(ctx, eqn, x, *starts):
    return ctx.emit(f"stablehlo.dynamic_slice {', '.join((x, *starts))}, sizes = "
                    f"{_list(eqn.params['slice_sizes'])} : {_types(eqn)}")


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


def _dynamic_slice_batch(axis, args, dims, *, slice_sizes):
    (x, *starts), (dx, *ds) = args, dims
    shape = _without(shape_of(x), dx)
    free = _free_dims(shape, slice_sizes)
    zero = _zero_start(starts)
    starts = [s if i in free else zero for i, s in enumerate(starts)]
    mapped = [d for d in free if ds[d] is not None]
    if not mapped and dx is None:
        return dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes), None
    if not mapped:
        return dynamic_slice_p.bind(x, *insert(tuple(starts), dx, zero),
                                    slice_sizes=insert(slice_sizes, dx, axis.size)), dx
    indices = _index_vectors(axis, [starts[d] for d in free], [ds[d] for d in free])
    return _gather_batch(
        axis, (x, indices), (dx, 0), slice_sizes=slice_sizes, indices_are_sorted=False, unique_indices=False, mode=CLIP,
        dimension_numbers=GatherDimensionNumbers(tuple(range(len(shape))), (), free), fill_value=None)


dynamic_slice_p = Primitive("dynamic_slice", typ=_dynamic_slice_typ, lower=_dynamic_slice_lower,
                            transpose=_dynamic_slice_transpose, batch=_dynamic_slice_batch, structural=True)
dynamic_slice_p.jvp = first_operand_jvp(dynamic_slice_p)


@functools.lru_cache(maxsize=4096)
def _update_typ(x, update, *starts):
    if update.dtype != x.dtype:
        raise TypeError(f"dynamic_update_slice: operand and update must have the same dtype, got {x.dtype.name} and "
                        f"{update.dtype.name}; cast the update with .astype")
    _check_starts("dynamic_update_slice", x, starts, update.shape, "update shape")
    return x


def _update_jvp(primals, tangents):
    x, update, *starts = primals
    out = dynamic_update_slice_p.bind(*primals)
    if tangents[0] is None and tangents[1] is None:
        return out, None
    tx, tu = (instantiate(t, aval_of(p)) for t, p in zip(tangents[:2], (x, update)))
    return out, dynamic_update_slice_p.bind(tx, tu, *starts)


def _update_transpose(ct, x, update, *starts):
    shape = shape_of(update)
    ct_x = dynamic_update_slice_p.bind(ct, full(shape, 0, ct.dtype), *starts) if is_linear(x) else None
    ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=shape) if is_linear(update) else None
    return [ct_x, ct_update, *[None] * len(starts)]


def _update_batch(axis, args, dims):
    (x, update, *starts), (dx, du, *ds) = args, dims
    if all(d is None for d in ds):
        x = broadcast_axis(x, axis.size, 0) if dx is None else move_axis(x, dx, 0)
        update = broadcast_axis(update, axis.size, 0) if du is None else move_axis(update, du, 0)
        return dynamic_update_slice_p.bind(x, update, _zero_start(starts), *starts), 0
    shape = _without(shape_of(update), du)
    free = _free_dims(_without(shape_of(x), dx), shape)
    if not free:
        return update, du
    indices = _index_vectors(axis, [starts[d] for d in free], [ds[d] for d in free])
    from .scatter import ScatterDimensionNumbers, scatter_p
    return scatter_p.batch(axis, (x, indices, update), (dx, 0, du), mode=CLIP, indices_are_sorted=False,
                           unique_indices=True,
                           dimension_numbers=ScatterDimensionNumbers(tuple(range(len(shape))), (), free))


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice", typ=_update_typ, jvp=_update_jvp, transpose=_update_transpose, batch=_update_batch,
    structural=True, lower=lambda ctx, eqn, *names: ctx.emit(
        f"stablehlo.dynamic_update_slice {', '.join(names)} : {_types(eqn)}"))


# --- gather -----------------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=4096)
def _gather_typ(x, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value):
    offset, collapsed, index_map, batching, indices_batching = dimension_numbers
    check_index_vectors("gather", indices, index_map, "start_index_map")
    rank = len(offset) + indices.ndim - 1
    check_dims("gather", "offset_dims", offset, rank)
    check_dims("gather", "collapsed_slice_dims", collapsed, x.ndim)
    check_dims("gather", "operand_batching_dims", batching, x.ndim)
    check_dims("gather", "collapsed_slice_dims and operand_batching_dims", (*collapsed, *batching), x.ndim, False)
    check_dims("gather", "start_index_map and operand_batching_dims", (*index_map, *batching), x.ndim, False)
    check_batching_dims("gather", x, indices, batching, indices_batching, "start_indices_batching_dims")
    if len(slice_sizes) != x.ndim:
        raise TypeError(f"gather: slice_sizes {slice_sizes} must have one entry for each axis of the operand of shape "
                        f"{x.shape}")
    for d, (size, bound) in enumerate(zip(slice_sizes, x.shape)):
        if not 0 <= size <= bound:
            raise TypeError(f"Slice size at index {d} in gather op is out of range, must be within [0, {bound} + 1), "
                            f"got {size} (operand shape {x.shape})")
        if size != 1 and d in collapsed or size > 1 and d in batching:
            raise TypeError(f"gather: the slice size of a collapsed or batching dimension must be 1, got {size} for "
                            f"axis {d}")
    window = [n for d, n in enumerate(slice_sizes) if d not in collapsed and d not in batching]
    if len(window) != len(offset):
        raise TypeError(f"gather: offset_dims {offset} must have one entry for each of the {len(window)} axes of the "
                        f"window (slice_sizes {slice_sizes} without collapsed_slice_dims {collapsed} and "
                        f"operand_batching_dims {batching})")
    window, rest = iter(window), iter(indices.shape)
    return ShapedArray(tuple(next(window) if d in offset else next(rest) for d in range(rank)), x.dtype, x.weak_type)


def fill_for(dtype):
    """What FILL_OR_DROP reads out of bounds: nan, the least signed or greatest unsigned integer, True."""
    if dtypes.is_inexact(dtype):
        return np.nan
    return dtypes.max_value(dtype) if dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype) else dtypes.min_value(dtype)


def last_starts(shape, window_sizes, index_map, dtype):
    """The greatest index vector at which a window lies inside `shape`, in the dtype of the indices."""
    limit = dtypes.iinfo(dtype).max
    return np.array([min(shape[d] - window_sizes[d], limit) for d in index_map], dtype)


def _gather_filling(x, indices, *, fill_value, **params):
    dnums, dtype = params["dimension_numbers"], dtype_of(indices)
    out = gather_p.bind(x, indices, **{**params, "mode": CLIP}, fill_value=None)
    shape, rank = shape_of(indices), len(shape_of(indices))
    upper = broadcast_in_dim(last_starts(shape_of(x), params["slice_sizes"], dnums.start_index_map, dtype), shape,
                             (rank - 1,))
    inside = bind("and", ge(indices, 0), le(indices, upper))
    inside = bind("reduce_and", inside, axes=(rank - 1,))
    batch_dims = tuple(d for d in range(len(shape_of(out))) if d not in dnums.offset_dims)
    inside = broadcast_in_dim(inside, shape_of(out), batch_dims)
    value = fill_for(dtype_of(x)) if fill_value is None else fill_value
    return select(inside, out, full(shape_of(out), np.asarray(value).astype(dtype_of(x))[()], dtype_of(x)))


def _gather_lower(ctx, eqn, x, indices):
    p = eqn.params
    if p["mode"] is FILL:
        return ctx.lower_fun(functools.partial(_gather_filling, **p), eqn, x, indices)
    offset, collapsed, index_map, batching, indices_batching = p["dimension_numbers"]
    rank = eqn.invars[1].aval.ndim
    return ctx.emit(
        f'"stablehlo.gather"({x}, {indices}) <{{dimension_numbers = #stablehlo.gather<offset_dims = {_list(offset)}, '
        f"collapsed_slice_dims = {_list(collapsed)}, operand_batching_dims = {_list(batching)}, "
        f"start_indices_batching_dims = {_list(indices_batching)}, start_index_map = {_list(index_map)}, "
        f"index_vector_dim = {rank - 1}>, indices_are_sorted = {str(p['indices_are_sorted']).lower()}, slice_sizes = "
        f"{_array(p['slice_sizes'])}}}> : {_types(eqn)}")


def _gather_jvp(primals, tangents, **params):
    out = gather_p.bind(*primals, **params)
    if tangents[0] is None:
        return out, None
    return out, gather_p.bind(tangents[0], primals[1], **{**params, "fill_value": 0})


def _gather_transpose(ct, x, indices, *, dimension_numbers, slice_sizes, fill_value, **params):
    from .scatter import ScatterDimensionNumbers, scatter_add_p
    return [scatter_add_p.bind(zeros_of(x.aval), indices, ct,
                               dimension_numbers=ScatterDimensionNumbers(*dimension_numbers), **params), None]


def _gather_batch(axis, args, dims, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, **params):
    (x, indices), (dx, di) = args, dims
    offset, collapsed, index_map, batching, indices_batching = dimension_numbers
    if dx is not None:
        x = move_axis(x, dx, 0)
        collapsed, index_map, batching = shift(collapsed), shift(index_map), shift(batching)
    offset = shift(offset)
    if di is None:
        offset, slice_sizes = (0, *offset), (axis.size, *slice_sizes)
    else:
        indices = move_axis(indices, di, 0)
        indices_batching = shift(indices_batching)
        if dx is not None:
            batching, indices_batching = (0, *batching), (0, *indices_batching)
            slice_sizes = (min(axis.size, 1), *slice_sizes)
        else:       # the index vectors of all examples read one operand: they are a list no longer in order
            indices_are_sorted = unique_indices = False
    dnums = GatherDimensionNumbers(offset, collapsed, index_map, batching, indices_batching)
    return gather_p.bind(x, indices, dimension_numbers=dnums, slice_sizes=slice_sizes, unique_indices=unique_indices,
                         indices_are_sorted=indices_are_sorted, **params), 0


gather_p = Primitive("gather", typ=_gather_typ, lower=_gather_lower, jvp=_gather_jvp, transpose=_gather_transpose,
                     batch=_gather_batch, structural=True)
