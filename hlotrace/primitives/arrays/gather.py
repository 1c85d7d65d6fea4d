"""Windows read and written at run-time positions: gather; scatter, scatter_add, _mul, _min, _max, _apply.

A gather reads one window of the operand for each index vector; XLA moves windows that stick out back
inside, so only `FILL_OR_DROP` needs a mask.  A scatter combines one window of the operand for each index
vector with a window of the updates.  Windows that stick out are dropped as a whole, unless the mode is
CLIP.  Each is the other's transpose. Batching keeps one gather a gather: a mapped axis of operand and
indices becomes a pair of batching dimensions.
"""
import functools

from ...core.axes import AxisMap
from ...core.symbolic.dimension import min_dim, surely
from ..common import (
    Primitive, ShapedArray, aval_of, dtype_of, dtypes, kind_of, np, prod, same_dtype, scalar, shape_of)
from . import elementwise as e
from .elementwise_rules import if_linear
from .gather_numbers import (
    CLIP, FILL, PROMISE, GatherDimensionNumbers, ScatterDimensionNumbers, check_batching_dims, check_dims,
    check_index_vectors, check_map, check_offsets, last_starts, shift, window_sizes)
from .reduce import reduce_and_p
from .shape import (
    broadcast_in_dim, full, in_front, instantiate, int_array, int_list, move_axis, reshape, types_text,
    zeros_of)
from .slicing import iota_p

# --- gather ---------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=4096)
def _gather_abstract_eval(x, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices,
                          mode, fill_value):
    offset, collapsed, index_map, batching, indices_batching = dimension_numbers
    check_index_vectors("gather", indices, index_map, "start_index_map")
    rank = len(offset) + indices.ndim - 1
    check_offsets(offset, rank)
    check_map("gather", "start_index_map", index_map, x.ndim)
    check_dims("gather", "collapsed_slice_dims", collapsed, x.ndim)
    check_batching_dims("gather", x, indices, batching, indices_batching, "start_indices_batching_dims",
                        collapsed_slice_dims=collapsed, start_index_map=index_map)
    if len(slice_sizes) != x.ndim:
        raise TypeError("Gather op must have one slice size for every input dimension; got: "
                        f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={x.ndim}")
    for d, (size, bound) in enumerate(zip(slice_sizes, x.shape)):
        if not 0 <= size <= bound:
            raise TypeError(f"Slice size at index {d} in gather op is out of range, must be within [0, "
                            f"{bound} + 1), got {size} (operand shape {x.shape})")
        if size != 1 and d in collapsed:
            raise TypeError(f"Gather op can only collapse slice dims with bound 1, but bound is {size} for "
                            f"index {d} at position {collapsed.index(d)}.")
        if not surely(size, high=1) and d in batching:
            raise TypeError(f"Gather op can only have operand batching dims with bound 0/1, but bound is "
                            f"{size} for index {d} at position {batching.index(d)}.")
    window = [n for d, n in enumerate(slice_sizes) if d not in collapsed and d not in batching]
    if len(window) != len(offset):
        raise TypeError("All components of the offset index in a gather op must either be a offset dimension "
                        f"or explicitly collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, "
                        f"output_slice_sizes={offset}, collapsed_slice_dims={collapsed}, "
                        f"operand_batching_dims={batching}.")
    window, rest = iter(window), iter(indices.shape)
    return ShapedArray(tuple(next(window) if d in offset else next(rest) for d in range(rank)), x.dtype,
                       x.weak_type)


def fill_for(dtype):
    """What FILL_OR_DROP reads out of bounds: nan, the least signed or greatest unsigned integer, True."""
    if dtypes.is_inexact(dtype):
        return np.nan
    if dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype):
        return dtypes.max_value(dtype)
    return dtypes.min_value(dtype)


def _gather_filling(x, indices, *, fill_value, **params):
    dnums, dtype = params["dimension_numbers"], dtype_of(indices)
    out = gather_p.bind(x, indices, **{**params, "mode": CLIP}, fill_value=None)
    shape, rank = shape_of(indices), len(shape_of(indices))
    upper = broadcast_in_dim(last_starts(shape_of(x), params["slice_sizes"], dnums.start_index_map, dtype),
                             shape, (rank - 1,))
    inside = e.and_p.bind(e.ge(indices, 0), e.le(indices, upper))
    inside = reduce_and_p.bind(inside, axes=(rank - 1,))
    batch_dims = tuple(d for d in range(len(shape_of(out))) if d not in dnums.offset_dims)
    inside = broadcast_in_dim(inside, shape_of(out), batch_dims)
    value = fill_for(dtype_of(x)) if fill_value is None else fill_value
    return e.select(inside, out, full(shape_of(out), np.asarray(value).astype(dtype_of(x))[()], dtype_of(x)))


def _gather_lower(ctx, eqn, x, indices):
    p = eqn.params
    if p["mode"] is FILL:
        return ctx.lower_fun(functools.partial(_gather_filling, **p), eqn, x, indices)
    offset, collapsed, index_map, batching, indices_batching = p["dimension_numbers"]
    rank = eqn.invars[1].aval.ndim
    return ctx.emit(
        f'"stablehlo.gather"({x}, {indices}) <{{dimension_numbers = #stablehlo.gather<offset_dims = '
        f"{int_list(offset)}, collapsed_slice_dims = {int_list(collapsed)}, "
        f"operand_batching_dims = {int_list(batching)}, "
        f"start_indices_batching_dims = {int_list(indices_batching)}, "
        f"start_index_map = {int_list(index_map)}, index_vector_dim = {rank - 1}>, "
        f"indices_are_sorted = {str(p['indices_are_sorted']).lower()}, "
        f"slice_sizes = {int_array(p['slice_sizes'])}}}> : {types_text(eqn)}")


def _gather_jvp(primals, tangents, **params):
    out = gather_p.bind(*primals, **params)
    if tangents[0] is None:
        return out, None
    return out, gather_p.bind(tangents[0], primals[1], **{**params, "fill_value": 0})


def _gather_transpose(ct, x, indices, *, dimension_numbers, slice_sizes, fill_value, **params):
    return [scatter_add_p.bind(zeros_of(x.aval), indices, ct,
                               dimension_numbers=ScatterDimensionNumbers(*dimension_numbers), **params), None]


def _gather_batching(axis, args, dims, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices,
                  **params):
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
            slice_sizes = (min_dim(axis.size, 1), *slice_sizes)
        else:       # the index vectors of all examples read one operand: they are a list no longer in order
            indices_are_sorted = unique_indices = False
    dnums = GatherDimensionNumbers(offset, collapsed, index_map, batching, indices_batching)
    return gather_p.bind(x, indices, dimension_numbers=dnums, slice_sizes=slice_sizes,
                         unique_indices=unique_indices, indices_are_sorted=indices_are_sorted, **params), 0


def _gather_sharding(x, indices, *, dimension_numbers, slice_sizes, **_):
    """Axes that are read whole, and batching axes, stay what they are; positions are whole along others."""
    offset, collapsed, _, batching, indices_batching = dimension_numbers
    window = [d for d in range(x.ndim) if d not in collapsed and d not in batching]
    ours = [f"window {d}" if d in window and slice_sizes[d] == x.shape[d] else None for d in range(x.ndim)]
    theirs = [None] * indices.ndim
    for d, i in zip(batching, indices_batching):
        ours[d] = theirs[i] = f"index {i}"
    windows, rest = iter(window), iter(theirs[:-1])
    result = [ours[next(windows)] if d in offset else next(rest)
              for d in range(len(offset) + indices.ndim - 1)]
    return AxisMap((tuple(ours), tuple(theirs)), tuple(result))


gather_p = Primitive("gather", abstract_eval=_gather_abstract_eval, sharding=_gather_sharding,
                     lower=_gather_lower, jvp=_gather_jvp, transpose=_gather_transpose,
                     batching=_gather_batching, structural=True,
                     whole="Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
                     "indexing as out sharding could not be resolved unambiguously")


# --- scatter --------------------------------------------------------------------------------------

def _check(name, x, indices, updates, dnums):
    window, inserted, index_map, batching, indices_batching = dnums
    same_dtype(name, x, updates)
    check_index_vectors("scatter", indices, index_map, "scatter_dims_to_operand_dims")
    rank = len(window) + indices.ndim - 1
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    check_dims("scatter", "update_window_dims", window, rank)
    check_dims("scatter", "inserted_window_dims", inserted, x.ndim)
    check_map("scatter", "scatter_dims_to_operand_dims", index_map, x.ndim)
    check_batching_dims("scatter", x, indices, batching, indices_batching, "scatter_indices_batching_dims",
                        inserted_window_dims=inserted, scatter_dims_to_operand_dims=index_map)
    size = len(window) + len(inserted) + len(batching)
    if size != x.ndim:
        raise TypeError(f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}.")
    bounds = [n for d, n in enumerate(x.shape) if d not in inserted and d not in batching]
    for d, bound in zip(window, bounds):
        if updates.shape[d] > bound:
            raise TypeError("Bounds of the window dimensions of updates must not exceed the bounds of the "
                            f"corresponding dimensions of operand. For dimension {d}, updates bound is "
                            f"{updates.shape[d]}, operand bound is {bound}.")
    scattered = [n for d, n in enumerate(updates.shape) if d not in window]
    for d, (size, bound) in enumerate(zip(scattered, indices.shape)):
        if size != bound:
            raise TypeError("Bounds of the scatter dimensions of updates must be the same as the bounds of "
                            f"the corresponding dimensions of scatter indices. For scatter dimension {d}, "
                            f"updates bound is {size}, indices bound is {bound}.")


def _scatter_sharding(x, indices, updates, *, dimension_numbers, **_):
    """Axes that are written whole, and batching axes, stay what they are."""
    window, inserted, _, batching, indices_batching = dimension_numbers
    ours, theirs, of_updates = [None] * x.ndim, [None] * indices.ndim, [None] * updates.ndim
    whole = iter([d for d in range(x.ndim) if d not in inserted and d not in batching])
    for d in sorted(window):
        axis = next(whole)
        if updates.shape[d] == x.shape[axis]:
            of_updates[d] = ours[axis] = f"window {axis}"
    scattered = [d for d in range(updates.ndim) if d not in window]
    for d, i in zip(batching, indices_batching):
        ours[d] = theirs[i] = of_updates[scattered[i]] = f"index {i}"
    return AxisMap((tuple(ours), tuple(theirs), tuple(of_updates)), tuple(ours))


_NARROW = dict.fromkeys((*e.HALVES, *dtypes.SMALL_FLOATS), dtypes.float32)


class Scatter(Primitive):
    """`combine` is the elementwise primitive that joins old element and update; None overwrites."""
    __slots__ = ("combine", "kinds")

    def __init__(self, name, combine=None, kinds="fciubk?", jvp=None, transpose=None, **facts):
        super().__init__(name, abstract_eval=functools.lru_cache(maxsize=4096)(self._abstract_eval),
                         sharding=_scatter_sharding, whole="Use `.at[...].set/add/mul/...(out_sharding=)` to "
                         "provide output PartitionSpec for the scatter update as out sharding could not be "
                         "resolved unambiguously",
                         lower=self._lower, batching=self._batching, transpose=transpose,
                         structural=combine is None, **facts)
        self.combine, self.kinds, self.jvp = combine, kinds, jvp

    def _abstract_eval(self, x, indices, updates, *, dimension_numbers, **_):
        if kind_of(x.dtype) not in self.kinds:
            raise TypeError(f"{self.name} does not accept dtype {dtypes.short_name(x.dtype)}")
        _check(self.name, x, indices, updates, dimension_numbers)
        return ShapedArray(x.shape, x.dtype, x.weak_type)

    def _lower(self, ctx, eqn, x, indices, updates):
        p = eqn.params
        if p["mode"] is CLIP:
            return ctx.lower_fun(functools.partial(self._clipped, **p), eqn, x, indices, updates)
        out, dnums = eqn.outvars[0].aval, p["dimension_numbers"]
        count = prod(eqn.invars[1].aval.shape[:-1])
        if self.combine in (e.add_p, e.mul_p) and out.dtype in _NARROW and not p["unique_indices"] and not (
                type(count) is int and count <= 8):     # sums of ones would end at 256, of 8 bits at 16
            return e.in_bytes(None, _NARROW, _NARROW)(ctx, eqn, x, indices, updates)
        window, inserted, index_map, batching, indices_batching = dnums
        element = ShapedArray((), out.dtype)
        body = ctx.region([element, element], lambda names: ([self._combined(ctx, eqn, element, *names)],
                                                             [element.mlir]))
        return ctx.emit(
            f'"stablehlo.scatter"({x}, {indices}, {updates}) <{{indices_are_sorted = '
            f"{str(p['indices_are_sorted']).lower()}, scatter_dimension_numbers = "
            f"#stablehlo.scatter<update_window_dims = {int_list(window)}, inserted_window_dims = "
            f"{int_list(inserted)}, input_batching_dims = {int_list(batching)}, "
            f"scatter_indices_batching_dims = {int_list(indices_batching)}, "
            f"scatter_dims_to_operand_dims = {int_list(index_map)}, "
            f"index_vector_dim = {eqn.invars[1].aval.ndim - 1}>, unique_indices = "
            f"{str(p['unique_indices']).lower()}}}> {body} : {types_text(eqn)}")

    def _combined(self, ctx, eqn, element, old, update):
        if self.combine is None:
            return update
        return ctx.lower_fun(self.combine.bind, eqn, old, update, avals=[element, element])

    def _clipped(self, x, indices, updates, **params):
        dnums, shape, dtype = params["dimension_numbers"], shape_of(indices), dtype_of(indices)
        upper = last_starts(shape_of(x), window_sizes(dnums, shape_of(x), shape_of(updates)),
                            dnums.scatter_dims_to_operand_dims, dtype)
        upper = broadcast_in_dim(upper, shape, (len(shape) - 1,))
        return self.bind(x, e.clamp_p.bind(scalar(0, dtype), e.maximum(indices, 0), upper), updates,
                         **{**params, "mode": PROMISE})

    def _batching(self, axis, args, dims, *, dimension_numbers, **params):
        (x, indices, updates), (dx, di, du) = args, dims
        window, inserted, index_map, batching, indices_batching = dimension_numbers
        x, updates = in_front(x, axis, dx), in_front(updates, axis, du)
        window, inserted, index_map, batching = map(shift, (window, inserted, index_map, batching))
        if di is None:
            window = (0, *window)
        else:
            indices = move_axis(indices, di, 0)
            batching, indices_batching = (0, *batching), (0, *shift(indices_batching))
        return self.bind(x, indices, updates, dimension_numbers=ScatterDimensionNumbers(
            window, inserted, index_map, batching, indices_batching), **params), 0


# --- derivatives of scatters ----------------------------------------------------------------------

def _is_unique(indices, *, dimension_numbers, unique_indices, **_):
    """Does no element get two updates?  One window for each example is unique whatever the flag says."""
    batching = dimension_numbers.scatter_indices_batching_dims
    return unique_indices or prod(n for d, n in enumerate(shape_of(indices)[:-1]) if d not in batching) <= 1


def _read_back(x, indices, updates_shape, *, dimension_numbers, mode, **flags):
    """The windows of `x` that the scatter writes, in the layout of the updates; 0 where it drops them."""
    return gather_p.bind(x, indices, dimension_numbers=GatherDimensionNumbers(*dimension_numbers),
                         fill_value=0, slice_sizes=window_sizes(dimension_numbers, shape_of(x),
                                                                updates_shape), mode=mode, **flags)


def _winners(shape, indices, updates_shape, params):
    """(mask of operand elements that stay, mask of update elements that are not overwritten by later ones).

    Found by writing the number of each update element in its place.
    """
    numbers = iota_p.bind(dtype=dtypes.int32, shape=(prod(updates_shape),), dimension=0)
    numbers = e.add(reshape(numbers, updates_shape), 1)
    written = scatter_p.bind(full(shape, 0, dtypes.int32), indices, numbers, **params)
    return e.eq(written, 0), e.eq(_read_back(written, indices, updates_shape, **params), numbers)


def _scatter_jvp(primals, tangents, **params):
    x, indices, updates = primals
    if tangents[0] is None and tangents[2] is None:
        return scatter_p.bind(*primals, **params), None
    tx, tu = instantiate(tangents[0], aval_of(x)), instantiate(tangents[2], aval_of(updates))
    if _is_unique(indices, **params):
        return scatter_p.bind(x, indices, updates, **params), scatter_p.bind(tx, indices, tu, **params)
    kept, won = _winners(shape_of(x), indices, shape_of(updates), params)
    return tuple(scatter_add_p.bind(e.select(kept, a, 0), indices, e.select(won, b, 0), **params)
                 for a, b in ((x, updates), (tx, tu)))


def _scatter_transpose(ct, x, indices, updates, **params):
    shape = shape_of(updates)
    if _is_unique(indices, **params):
        return [if_linear(x, lambda: scatter_p.bind(ct, indices, full(shape, 0, ct.dtype), **params)), None,
                if_linear(updates, lambda: _read_back(ct, indices, shape, **params))]
    kept, won = _winners(ct.shape, indices, shape, params)
    return [if_linear(x, lambda: e.select(kept, ct, 0)), None,
            if_linear(updates, lambda: e.select(won, _read_back(ct, indices, shape, **params), 0))]


def _add_jvp(primals, tangents, **params):
    x, indices, updates = primals
    out = scatter_add_p.bind(*primals, **params)
    if tangents[2] is None:
        return out, tangents[0]
    return out, scatter_add_p.bind(instantiate(tangents[0], aval_of(x)), indices, tangents[2], **params)


def _add_transpose(ct, x, indices, updates, **params):
    return [if_linear(x, lambda: ct), None,
            if_linear(updates, lambda: _read_back(ct, indices, shape_of(updates), **params))]


def _mul_jvp(primals, tangents, **params):
    x, indices, updates = primals
    out = scatter_mul_p.bind(*primals, **params)
    tangent = None if tangents[0] is None else scatter_mul_p.bind(tangents[0], indices, updates, **params)
    if tangents[2] is not None:
        if not _is_unique(indices, **params):
            raise NotImplementedError(
                "scatter_mul has a derivative in its updates only where no element is updated twice: pass "
                "unique_indices=True if that is so (in x.at[idx].multiply(y, unique_indices=True) for "
                "example)")
        change = e.mul(tangents[2], _read_back(x, indices, shape_of(updates), **params))
        tangent = e.accumulate(tangent, scatter_add_p.bind(zeros_of(aval_of(x)), indices, change, **params))
    return out, tangent


def _extreme_jvp(p, primals, tangents, **params):
    """The mean of the tangents of all the elements, old and updates, that attain the extreme value.

    NaN equals nothing: where an update made it, the tangent is 0, and an old one keeps its own.
    """
    x, indices, updates = primals
    out = p.bind(*primals, **params)
    dtype = dtype_of(x)
    hit_x = e.convert(e.or_p.bind(e.eq(x, out), e.ne(x, x)), dtype)
    hit_updates = e.convert(e.eq(_read_back(out, indices, shape_of(updates), **params), updates), dtype)
    count = scatter_add_p.bind(hit_x, indices, hit_updates, **params)
    total = e.mul(instantiate(tangents[0], aval_of(x)), hit_x)
    if tangents[2] is not None:
        total = scatter_add_p.bind(total, indices, e.mul(tangents[2], hit_updates), **params)
    return out, e.div(total, e.maximum(count, 1))


scatter_p = Scatter("scatter", jvp=_scatter_jvp, transpose=_scatter_transpose)
scatter_add_p = Scatter("scatter_add", e.add_p, "fciu", _add_jvp, _add_transpose)
scatter_mul_p = Scatter("scatter_mul", e.mul_p, "fciu", _mul_jvp,
                        lambda ct, x, *rest, **params: [scatter_mul_p.bind(ct, *rest, **params), None, None])
scatter_min_p = Scatter("scatter_min", e.min_p, "fciub", makes_nan=False)
scatter_max_p = Scatter("scatter_max", e.max_p, "fciub", makes_nan=False)
for _p in (scatter_p, scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p):
    _p.answer(update_consts=lambda params: ())
scatter_p.answer("update_jaxpr")
for _p in (scatter_min_p, scatter_max_p):
    _p.jvp = functools.partial(_extreme_jvp, _p)


class ScatterApply(Scatter):
    """Each addressed element becomes what the program `update_jaxpr` makes of it, once for each address."""
    __slots__ = ()

    def _combined(self, ctx, eqn, element, old, update):
        return ctx.inline(eqn.params["update_jaxpr"], [old])[0]


scatter_apply_p = ScatterApply("scatter_apply", kinds="fciub")
SCATTERS = scatter_p, scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p, scatter_apply_p
