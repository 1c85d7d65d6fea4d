"""Parts of arrays, and arrays of parts: rev, slice, pad, concatenate, interleave; iota, copy, barriers,
dce_sink."""
from functools import partial

from ...core import errors
from ...core.array import Array
from ...core.axes import SIZE, same_axes
from ...core.effects import Effect
from ...core.symbolic.dimension import max_dim, may_be_at_most, surely
from ..common import (
    Primitive, ShapedArray, aval_of, dtype_of, dtypes, is_undefined_primal, kind_of, np, same_dtype, scalar,
    shape_of)
from .elementwise import add, in_bytes, select_n_p, sub
from .shape import (
    Mapped, batch_by_axes, broadcast_axis, full, in_front, instantiate, int_list, linear_jvp, reduce_sum,
    reshape, spread_as, structural, types_text)

# --- rev, slice, pad, concatenate -----------------------------------------------------------------

def _rev_abstract_eval(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise errors.ShapeError(f"rev dimensions must be unique, got {dimensions}")
    if any(not 0 <= d < x.ndim for d in dimensions):
        what = "have every element be nonnegative" if min(dimensions) < 0 else "all be less than operand ndim"
        raise errors.ShapeError(f"rev dimensions must {what}, got {dimensions} for operand ndim {x.ndim}: "
                                f"shape {x.shape}")
    return x


rev_p = structural(
    "rev", _rev_abstract_eval,
    lambda ctx, eqn, x: ctx.emit(f"stablehlo.reverse {x}, dims = {int_list(eqn.params['dimensions'])} : "
                                 f"{eqn.outvars[0].aval.mlir}"),
    lambda ct, x, *, dimensions: [rev_p.bind(ct, dimensions=dimensions)], same_axes("dimensions"))


def _slice_abstract_eval(x, *, start_indices, limit_indices, strides):
    strides = strides or (1,) * x.ndim
    if not len(start_indices) == len(limit_indices) == len(strides) == x.ndim:
        raise errors.ShapeError(f"slice: start_indices {start_indices}, limit_indices {limit_indices} and "
                                f"strides {strides} must each have one entry for each axis of the operand "
                                f"of shape {x.shape}")
    for lo, hi, step, size in zip(start_indices, limit_indices, strides, x.shape):
        if not may_be_at_most(0, lo):
            raise TypeError("slice start_indices must be greater than or equal to zero, got start_indices of "
                            f"{start_indices}; x[start:limit] counts from the end")
        if not may_be_at_most(hi, size):
            raise TypeError("slice limit_indices must be less than or equal to operand shape, got "
                            f"limit_indices {limit_indices} for operand shape {x.shape}; x[start:limit] cuts "
                            "what is beyond")
        if not may_be_at_most(lo, hi):
            raise TypeError("slice limit_indices must be greater than or equal to start_indices, got "
                            f"start_indices {start_indices} and limit_indices {limit_indices}")
        if step <= 0:
            raise TypeError(f"slice strides must be positive, got {strides}")
    shape = tuple((hi - lo + step - 1) // step for lo, hi, step in zip(start_indices, limit_indices, strides))
    return ShapedArray(shape, x.dtype, x.weak_type)


def _slice_lower(ctx, eqn, x):
    p = eqn.params
    strides = p["strides"] or (1,) * len(p["start_indices"])
    ranges = ", ".join(f"{lo}:{hi}" + (f":{step}" if step != 1 else "")
                       for lo, hi, step in zip(p["start_indices"], p["limit_indices"], strides))
    return ctx.emit(f"stablehlo.slice {x} [{ranges}] : {types_text(eqn)}")


def _slice_transpose(ct, x, *, start_indices, limit_indices, strides):
    strides = strides or (1,) * len(start_indices)
    config = []
    for lo, step, size, n in zip(start_indices, strides, x.shape, shape_of(ct)):
        covered = lo + (n - 1) * step + 1 if n else lo
        config.append((lo, size - covered, step - 1) if n else (lo, size - lo, 0))
    return [zero_padded(ct, config)]


slice_p = structural("slice", _slice_abstract_eval, _slice_lower, _slice_transpose,
                     same_axes(start_indices=0, limit_indices=SIZE, strides=1))


def slice_along(x, axis, start, stop, stride=1):
    """The elements of `x` from `start` to `stop` along one axis."""
    rank = len(shape_of(x))
    starts, limits, strides = [0] * rank, list(shape_of(x)), [1] * rank
    starts[axis], limits[axis], strides[axis] = start, stop, stride
    return slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(limits),
                        strides=None if stride == 1 else tuple(strides))


def _pad_abstract_eval(x, value, *, padding_config):
    same_dtype("pad", x, value)
    if value.ndim:
        raise TypeError(f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError("length of padding_config must equal the number of axes of operand, got "
                         f"padding_config {padding_config} for operand shape {x.shape}: one (low, high, "
                         "interior) for each axis")
    shape = tuple(lo + hi + n + max_dim(n - 1, 0) * inner
                  for n, (lo, hi, inner) in zip(x.shape, padding_config))
    if any(inner < 0 for _, _, inner in padding_config):
        raise ValueError("interior padding in padding_config must be nonnegative, got padding_config "
                         f"{padding_config}")
    if any(surely(n, high=-1) for n in shape):
        raise ValueError(f"Dimension size after padding is not at least 0, got result shape {shape}, for "
                         f"padding_config {padding_config} and operand shape {x.shape}")
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_lower(ctx, eqn, x, value):
    lo, hi, inner = zip(*eqn.params["padding_config"]) if eqn.params["padding_config"] else ((), (), ())
    of, padding = (v.aval for v in eqn.invars)
    if of.explicit is not None:     # of terms of a sum, one is padded with the value, the others with zeros
        value = ctx.terms(value, padding.update(sharding=of.explicit.with_entries()), True)
    return ctx.emit(f"stablehlo.pad {x}, {value}, low = {int_list(lo)}, high = {int_list(hi)}, interior = "
                    f"{int_list(inner)} : {types_text(eqn)}")


def _pad_transpose(ct, x, value, *, padding_config):
    negative = tuple((-lo, -hi, 0) for lo, hi, _ in padding_config)
    unpadded = zero_padded(ct, negative)
    ct_x = slice_p.bind(unpadded, start_indices=(0,) * len(negative), limit_indices=shape_of(unpadded),
                        strides=tuple(inner + 1 for _, _, inner in padding_config))
    if is_undefined_primal(value):
        total = reduce_sum(ct, range(len(negative)))
        inside = reduce_sum(ct_x, range(len(negative)))
        ct_value = sub(total, inside)
    return [ct_x if is_undefined_primal(x) else None, ct_value if is_undefined_primal(value) else None]


def _pad_batching(axis, args, dims, *, padding_config):
    (x, value), (dx, dv) = args, dims
    if dv is None:
        return batch_by_axes(pad_p, axis, args, dims, padding_config=padding_config)
    # each example has its own padding value: pad with zeros, and select it where a padded mask is false
    x = in_front(x, axis, dx)
    config = ((0, 0, 0), *padding_config)
    padded, mask = zero_padded(x, config), zero_padded(full(shape_of(x), True, np.bool_), config)
    return select_n_p.bind(mask, spread_as(value, padded), padded), 0


pad_p = Mapped("pad", abstract_eval=_pad_abstract_eval, lower=_pad_lower, transpose=_pad_transpose,
               batching=_pad_batching, structural=True, linear="first",
               axes=same_axes(padding_config=(0, 0, 0), scalars=lambda n: (1,)))
pad_p.jvp = linear_jvp(pad_p)


def zero_padded(x, config):
    """`x` with zeros around and between its elements, (low, high, interior) for each axis."""
    return pad_p.bind(x, scalar(0, dtype_of(x)), padding_config=tuple(config))


def zero_filled(x, shape):
    """`x` cut, or with zeros after its elements, along each axis, to this shape."""
    config = [(0, wanted - n, 0) for n, wanted in zip(shape_of(x), shape)]
    return zero_padded(x, config) if any(high for _, high, _ in config) else x


def _concatenate_abstract_eval(*xs, dimension):
    same_dtype("concatenate", *xs)
    first = xs[0]
    if not 0 <= dimension < first.ndim:
        raise errors.ShapeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes "
                                f"{', '.join(str(x.shape) for x in xs)}; jnp.stack joins along a new axis")
    for x in xs:
        sizes = enumerate(zip(x.shape, first.shape))
        if x.ndim != first.ndim or any(a != b for i, (a, b) in sizes if i != dimension):
            raise errors.ShapeError("Cannot concatenate arrays with shapes that differ in dimensions other "
                                    "than the one being concatenated: concatenating along dimension "
                                    f"{dimension} for shapes {', '.join(str(x.shape) for x in xs)}")
    shape = list(first.shape)
    shape[dimension] = sum(x.shape[dimension] for x in xs)
    return ShapedArray(tuple(shape), first.dtype, first.dtype != dtypes.bool_
                       and all([x.weak_type for x in xs]))


def _concatenate_transpose(ct, *xs, dimension):
    results, start = [], 0
    for x in xs:
        stop = start + shape_of(x)[dimension]
        results.append(slice_along(ct, dimension, start, stop) if is_undefined_primal(x) else None)
        start = stop
    return results


concatenate_p = Mapped(
    "concatenate", abstract_eval=_concatenate_abstract_eval, transpose=_concatenate_transpose,
    axes=same_axes("dimension"), structural=True,
    lower=in_bytes(lambda ctx, eqn, *xs: ctx.emit(
        f"stablehlo.concatenate {', '.join(xs)}, dim = {eqn.params['dimension']} : {types_text(eqn)}")),
    linear="all", alike="All operands should have the same sharding")
concatenate_p.jvp = linear_jvp(concatenate_p)


# --- interleave: arrays one element from each in turn -----------------------------------------------

def _interleave_abstract_eval(even, odd, *, dimension):
    same_dtype("interleave", even, odd)
    (*before, n), (*others, m) = even.shape[:dimension + 1], odd.shape[:dimension + 1]
    after = even.shape[dimension + 1:]
    if not before + list(after) == others + list(odd.shape[dimension + 1:]) or n - m not in (0, 1):
        raise errors.ShapeError(f"interleave along dimension {dimension}: the first array is as long as the "
                                f"second, or one longer, got shapes {even.shape} and {odd.shape}")
    return ShapedArray((*before, n + m, *after), even.dtype)


def _side_by_side(even, odd, axis):
    """Both joined along a new axis, which is merged into the one before it."""
    (*before, n), after = shape_of(odd)[:axis + 1], shape_of(odd)[axis + 1:]
    pairs = [broadcast_axis(x, 1, axis + 1) for x in (slice_along(even, axis, 0, n), odd)]
    merged = reshape(concatenate_p.bind(*pairs, dimension=axis + 1), (*before, 2 * n, *after))
    last = slice_along(even, axis, n, shape_of(even)[axis])
    return concatenate_p.bind(merged, last, dimension=axis) if shape_of(last)[axis] else merged


def _spread_and_added(even, odd, axis):
    """The sum of both with zeros between their elements, -0 for floats, which is exact."""
    total = shape_of(even)[axis] + shape_of(odd)[axis]

    def spread(x, start):
        config = [(0, 0, 0)] * len(shape_of(x))
        config[axis] = start, total - start - 2 * shape_of(x)[axis] + 1, 1
        zero = scalar(-0.0 if kind_of(dtype_of(x)) in "fc" else 0, dtype_of(x))
        return pad_p.bind(x, zero, padding_config=tuple(config))
    return add(spread(even, 0), spread(odd, 1))


def _interleave_lower(ctx, eqn, *names):
    """Joined, which takes the least memory, but for what can be added where a join is fused with nothing."""
    dtype = eqn.outvars[0].aval.dtype
    adds = ctx.platform.joins_apart and kind_of(dtype) in "fciu" and dtype.itemsize > 1
    way = _spread_and_added if adds and eqn.invars[1].aval.size else _side_by_side
    return ctx.lower_fun(partial(way, axis=eqn.params["dimension"]), eqn, *names)


interleave_p = Mapped(
    "interleave", abstract_eval=_interleave_abstract_eval, axes=same_axes("dimension"), structural=True,
    transpose=lambda ct, *xs, dimension: [
        slice_along(ct, dimension, i, shape_of(ct)[dimension], 2) if is_undefined_primal(x) else None
        for i, x in enumerate(xs)],
    lower=_interleave_lower, linear="all", alike="All operands should have the same sharding")
interleave_p.jvp = linear_jvp(interleave_p)


# --- iota, copy -----------------------------------------------------------------------------------

def _iota_abstract_eval(*, dtype, shape, dimension):
    if not 0 <= dimension < len(shape):
        raise ValueError("iota dimension must be between 0 and len(shape), got "
                         f"dimension={dimension} for shape={shape}")
    if dtypes.is_bool(dtype) or dtypes.is_extended(dtype):
        raise TypeError(f"iota does not accept dtype {dtype}. Accepted dtypes are subtypes of integer, "
                        "floating, complexfloating")
    return ShapedArray(shape, dtype)


iota_p = Primitive("iota", abstract_eval=_iota_abstract_eval, lower=lambda ctx, eqn: ctx.emit(
    f"stablehlo.iota dim = {eqn.params['dimension']} : {eqn.outvars[0].aval.mlir}"))
iota_p.answer("sharding")
iota_p.shown = lambda eqn: {**eqn.params, "sharding": None}


def copy_lower(ctx, eqn, x):
    return x


copy_p = structural("copy", lambda x: x, copy_lower, lambda ct, x: [ct], same_axes())


def as_array(x):
    """`x` as an Array: a NumPy value becomes a constant of the program, with an Array's methods."""
    return x if isinstance(x, Array) else copy_p.bind(x)


def _barrier_lower(ctx, eqn, *xs):
    if not xs:
        return []
    types = ", ".join(v.aval.mlir for v in eqn.invars)
    found = ctx.emit(f"stablehlo.optimization_barrier {', '.join(xs)} : {types}", len(xs))
    return [ctx.terms(x, v.aval) for x, v in zip(found, eqn.outvars)]


def _barrier_jvp(primals, tangents):
    filled = [instantiate(t, aval_of(p)) for p, t in zip(primals, tangents) if t is not None]
    out = optimization_barrier_p.bind(*primals)
    moved = iter(optimization_barrier_p.bind(*filled))
    return out, [None if t is None else next(moved) for t in tangents]


def _barrier_transpose(cts, *xs):
    moved = iter(optimization_barrier_p.bind(*[c for c in cts if c is not None]))
    return [None if c is None else next(moved) for c in cts]


optimization_barrier_p = Primitive(
    "optimization_barrier", multiple_results=True, abstract_eval=lambda *xs: list(xs), lower=_barrier_lower,
    jvp=_barrier_jvp, says_sharding=True, linear="typed", transpose=_barrier_transpose,
    batching=lambda axis, args, dims: (optimization_barrier_p.bind(*args), list(dims)), makes_nan=False)

# what computes its operand stays in the program
dce_sink_p = Primitive(
    "dce_sink", multiple_results=True, says_sharding=True, abstract_eval=lambda x: [],
    lower=lambda ctx, eqn, x: [], effects=lambda params: (Effect(at_run_time=False),),
    jvp=lambda primals, tangents: (dce_sink_p.bind(*primals), []),
    batching=lambda axis, args, dims: (dce_sink_p.bind(*args), []))
