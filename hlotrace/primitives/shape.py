"""Operations that move values without computing: broadcast, reshape, transpose, slice, pad, concatenate, ..."""
import functools

from ..core.axes import SIZE, AxisMap, AxisRule, inserted, plan, renumbered, same_axes
from .common import (
    Primitive,
    ShapedArray,
    aval_of,
    bind,
    dtypes,
    first_operand_jvp,
    full,
    instantiate,
    is_constant,
    is_linear,
    linear_jvp,
    np,
    prod,
    same_dtype,
    scalar,
    shape_of,
)


def _list(values):
    return f"[{', '.join(map(str, values))}]"


def _array(values):
    values = list(values)
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def _types(eqn):
    return f"({', '.join(v.aval.mlir for v in eqn.invars)}) -> {eqn.outvars[0].aval.mlir}"


class Mapped(Primitive):
    """A primitive whose batching rule follows from its axis map, unless it has one of its own."""
    __slots__ = ()

    def __init__(self, name, *, axes, **rules):
        super().__init__(name, axes=axes, **rules)
        if self.batch is None:
            self.batch = functools.partial(batch_by_axes, self)


def batch_by_axes(primitive, axis, args, dims, /, **params):
    """The batching rule that follows from the axis map of a primitive."""
    rule = primitive.axes
    avals = [None if d is None and rule.constants and not shape_of(x) and is_constant(x) else aval_of(x)
             for x, d in zip(args, dims)]
    todo, params, dim = plan(rule, tuple(avals), tuple(dims), axis.size, tuple(params.items()))
    if todo is not None:
        args = [x if move is None else _moved(x, *move) for x, move in zip(args, todo)]
    out = primitive.bind(*args, **params)
    return out, [dim] * len(out) if primitive.multiple_results else dim


def _moved(x, shape, axes):
    return transpose(x, axes) if shape is None else broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=axes)


def structural(name, typ, lower, transpose, axes):
    """A primitive linear in its one operand."""
    p = Mapped(name, typ=typ, lower=lower, transpose=transpose, axes=axes, structural=True)
    p.jvp = first_operand_jvp(p)
    return p


# --- broadcast_in_dim -------------------------------------------------------------------------------------------

def _broadcast_typ(x, *, shape, broadcast_dimensions):
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError(f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} must name one result axis for "
                        f"each of the {x.ndim} axes of the operand of shape {x.shape}")
    for i, d in enumerate(broadcast_dimensions):
        if not 0 <= d < len(shape):
            raise ValueError(f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} names axis {d}, but the "
                             f"result shape is {shape}")
        if x.shape[i] != 1 and x.shape[i] != shape[d]:
            raise TypeError(f"broadcast_in_dim: operand axis {i} of size {x.shape[i]} (shape {x.shape}) does not fit "
                            f"result axis {d} of size {shape[d]} (shape {shape}): it must be 1 or equal")
    if any(a >= b for a, b in zip(broadcast_dimensions, broadcast_dimensions[1:])):
        raise ValueError(f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} must be strictly increasing")
    return ShapedArray(shape, x.dtype, x.weak_type)


def _broadcast_transpose(ct, x, *, shape, broadcast_dimensions):
    kept = {d for i, d in enumerate(broadcast_dimensions) if x.shape[i] == shape[d]}
    summed = bind("reduce_sum", ct, axes=tuple(d for d in range(len(shape)) if d not in kept))
    return [reshape(summed, x.shape)]


def _broadcast_axes(x, *, shape, broadcast_dimensions):
    operand = tuple(d if n == shape[d] else None for n, d in zip(x.shape, broadcast_dimensions))
    return AxisMap((operand,), tuple(d if d in operand else None for d in range(len(shape))))


def _broadcast_insert(params, at, size, _):
    """The new axis stands behind the one that it is behind in the operand."""
    dimensions = params["broadcast_dimensions"]
    place = dimensions[at - 1] + 1 if at else 0
    return {"shape": inserted(params["shape"], place, size),
            "broadcast_dimensions": inserted(renumbered(dimensions, place), at, place)}


def _broadcast_lower(ctx, eqn, x):
    return ctx.emit(f"stablehlo.broadcast_in_dim {x}, dims = {_list(eqn.params['broadcast_dimensions'])} : "
                    f"{_types(eqn)}")


broadcast_in_dim_p = structural("broadcast_in_dim", _broadcast_typ, _broadcast_lower, _broadcast_transpose,
                                AxisRule(_broadcast_axes, _broadcast_insert))


def broadcast_in_dim(x, shape, broadcast_dimensions):
    shape, broadcast_dimensions = tuple(shape), tuple(broadcast_dimensions)
    if shape == shape_of(x) and broadcast_dimensions == tuple(range(len(shape))):
        return x
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


def broadcast_axis(x, size, position):
    """`x` repeated along a new axis of `size` at `position`."""
    old = shape_of(x)
    shape = (*old[:position], size, *old[position:])
    return broadcast_in_dim_p.bind(x, shape=shape,
                                   broadcast_dimensions=tuple(i for i in range(len(shape)) if i != position))


# --- reshape, squeeze, transpose --------------------------------------------------------------------------------

def _reshape_typ(x, *, new_sizes, dimensions=None):
    if prod(new_sizes) != x.size:
        raise TypeError(f"cannot reshape array of shape {x.shape} (size {x.size}) into shape {tuple(new_sizes)} "
                        f"(size {prod(new_sizes)})")
    return ShapedArray(new_sizes, x.dtype, x.weak_type)


def _reshape_axes(x, *, new_sizes, dimensions):
    """An axis stays itself where as many elements are before it and it has the same size."""
    old, new = ({(prod(shape[:i]), n): i for i, n in enumerate(shape) if n != 1 or i == 0}
                for shape in (x.shape, new_sizes))
    same = {i: new[key] for key, i in old.items() if key in new and key[0]}
    return AxisMap((tuple(same.get(i) for i in range(x.ndim)),),
                   tuple(j if j in same.values() else None for j in range(len(new_sizes))))


def _reshape_insert(params, at, size, x):
    """The new axis stands where as many elements are before it as in the operand; in front if there is no such place."""
    sizes, before = params["new_sizes"], prod(x.shape[:at])
    place = next((j for j in range(len(sizes), 0, -1) if at and prod(sizes[:j]) == before), 0)
    return {**params, "new_sizes": inserted(sizes, place, size)}


reshape_p = structural(
    "reshape", _reshape_typ, lambda ctx, eqn, x: ctx.emit(f"stablehlo.reshape {x} : {_types(eqn)}"),
    lambda ct, x, *, new_sizes, dimensions: [reshape(ct, x.shape)],
    AxisRule(_reshape_axes, _reshape_insert))


def reshape(x, shape):
    shape = tuple(shape)
    return x if shape == shape_of(x) else reshape_p.bind(x, new_sizes=shape, dimensions=None)


def _squeeze_typ(x, *, dimensions):
    for d in dimensions:
        if x.shape[d] != 1:
            raise ValueError(f"cannot select an axis to squeeze out which has size not equal to one, got shape="
                             f"{x.shape} and dimensions={dimensions}")
    return ShapedArray(tuple(s for i, s in enumerate(x.shape) if i not in dimensions), x.dtype, x.weak_type)


squeeze_p = structural(
    "squeeze", _squeeze_typ, lambda ctx, eqn, x: ctx.emit(f"stablehlo.reshape {x} : {_types(eqn)}"),
    lambda ct, x, *, dimensions: [reshape(ct, x.shape)],
    same_axes("dimensions", gone=True))


def _transpose_typ(x, *, permutation):
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(f"transpose: permutation {permutation} is not a permutation of the axes of an operand of "
                        f"shape {x.shape}")
    return ShapedArray(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)


def _transpose_axes(x, *, permutation):
    return AxisMap((tuple(range(x.ndim)),), permutation)


def _transpose_insert(params, at, *_):
    return {"permutation": (at, *renumbered(params["permutation"], at))}


transpose_p = structural(
    "transpose", _transpose_typ,
    lambda ctx, eqn, x: ctx.emit(f"stablehlo.transpose {x}, dims = {_list(eqn.params['permutation'])} : {_types(eqn)}"),
    lambda ct, x, *, permutation: [transpose(ct, tuple(int(i) for i in np.argsort(permutation)))],
    AxisRule(_transpose_axes, _transpose_insert))


def transpose(x, permutation):
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))) == tuple(range(len(shape_of(x)))):
        return x
    return transpose_p.bind(x, permutation=permutation)


def move_axis(x, source, target):
    """`x` with the axis at `source` moved to `target`."""
    if source == target:
        return x
    order = [i for i in range(len(shape_of(x))) if i != source]
    order.insert(target, source)
    return transpose(x, order)


# --- rev, slice, pad, concatenate -------------------------------------------------------------------------------

def _rev_typ(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < x.ndim for d in dimensions):
        raise ValueError(f"rev: dimensions {dimensions} must be distinct axes of an operand of shape {x.shape}")
    return x


rev_p = structural(
    "rev", _rev_typ,
    lambda ctx, eqn, x: ctx.emit(f"stablehlo.reverse {x}, dims = {_list(eqn.params['dimensions'])} : "
                                 f"{eqn.outvars[0].aval.mlir}"),
    lambda ct, x, *, dimensions: [rev_p.bind(ct, dimensions=dimensions)], same_axes("dimensions"))


def _slice_typ(x, *, start_indices, limit_indices, strides):
    strides = strides or (1,) * x.ndim
    if not len(start_indices) == len(limit_indices) == len(strides) == x.ndim:
        raise TypeError(f"slice: start_indices {start_indices}, limit_indices {limit_indices} and strides {strides} "
                        f"must each have one entry for each axis of the operand of shape {x.shape}")
    for i, (lo, hi, step, size) in enumerate(zip(start_indices, limit_indices, strides, x.shape)):
        if not 0 <= lo <= hi <= size or step <= 0:
            raise TypeError(f"slice: axis {i}: start {lo}, limit {hi}, stride {step} do not satisfy 0 <= start <= "
                            f"limit <= {size} and stride > 0 (operand shape {x.shape})")
    shape = tuple(-(-(hi - lo) // step) for lo, hi, step in zip(start_indices, limit_indices, strides))
    return ShapedArray(shape, x.dtype, x.weak_type)


def _slice_lower(ctx, eqn, x):
    p = eqn.params
    strides = p["strides"] or (1,) * len(p["start_indices"])
    ranges = ", ".join(f"{lo}:{hi}" + (f":{step}" if step != 1 else "")
                       for lo, hi, step in zip(p["start_indices"], p["limit_indices"], strides))
    return ctx.emit(f"stablehlo.slice {x} [{ranges}] : {_types(eqn)}")


def _slice_transpose(ct, x, *, start_indices, limit_indices, strides):
    strides = strides or (1,) * len(start_indices)
    config = []
    for lo, step, size, n in zip(start_indices, strides, x.shape, shape_of(ct)):
        covered = lo + (n - 1) * step + 1 if n else lo
        config.append((lo, size - covered, step - 1) if n else (lo, size - lo, 0))
    return [pad_p.bind(ct, scalar(0, x.dtype), padding_config=tuple(config))]


slice_p = structural("slice", _slice_typ, _slice_lower, _slice_transpose,
                     same_axes(start_indices=0, limit_indices=SIZE, strides=1))


def _pad_typ(x, value, *, padding_config):
    same_dtype("pad", x, value)
    if value.ndim:
        raise TypeError(f"pad: padding_value must be a scalar, got shape {value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(f"pad: padding_config {padding_config} must have one (low, high, interior) for each axis of "
                         f"the operand of shape {x.shape}")
    shape = tuple(lo + hi + n + max(n - 1, 0) * inner for n, (lo, hi, inner) in zip(x.shape, padding_config))
    if any(inner < 0 for _, _, inner in padding_config):
        raise ValueError(f"pad: interior padding must be non-negative, got {padding_config}")
    if any(n < 0 for n in shape):
        raise ValueError(f"pad: padding_config {padding_config} would give an axis of negative size: operand shape "
                         f"{x.shape}, result shape {shape}")
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_lower(ctx, eqn, x, value):
    lo, hi, inner = zip(*eqn.params["padding_config"]) if eqn.params["padding_config"] else ((), (), ())
    return ctx.emit(f"stablehlo.pad {x}, {value}, low = {_list(lo)}, high = {_list(hi)}, interior = {_list(inner)} : "
                    f"{_types(eqn)}")


def _pad_transpose(ct, x, value, *, padding_config):
    ct_x = None
    negative = tuple((-lo, -hi, 0) for lo, hi, _ in padding_config)
    unpadded = pad_p.bind(ct, scalar(0, ct.dtype), padding_config=negative)
    ct_x = slice_p.bind(unpadded, start_indices=(0,) * len(negative), limit_indices=shape_of(unpadded),
                        strides=tuple(inner + 1 for _, _, inner in padding_config))
    if is_linear(value):
        total = bind("reduce_sum", ct, axes=tuple(range(len(negative))))
        inside = bind("reduce_sum", ct_x, axes=tuple(range(len(negative))))
        ct_value = bind("sub", total, inside)
    return [ct_x if is_linear(x) else None, ct_value if is_linear(value) else None]


def _pad_batch(axis, args, dims, *, padding_config):
    (x, value), (dx, dv) = args, dims
    if dv is None:
        return batch_by_axes(pad_p, axis, args, dims, padding_config=padding_config)
    # each example has its own padding value: pad with zeros, and select it where a padded mask is false
    x = broadcast_axis(x, axis.size, 0) if dx is None else move_axis(x, dx, 0)
    config = ((0, 0, 0), *padding_config)
    padded = pad_p.bind(x, scalar(0, aval_of(x).dtype), padding_config=config)
    mask = pad_p.bind(full(shape_of(x), True, np.bool_), scalar(False, np.bool_), padding_config=config)
    values = broadcast_in_dim(value, shape_of(padded), (0,))
    return bind("select_n", mask, values, padded), 0


pad_p = Mapped("pad", typ=_pad_typ, lower=_pad_lower, transpose=_pad_transpose, batch=_pad_batch, structural=True,
               axes=same_axes(padding_config=(0, 0, 0), scalars=lambda n: (1,)))
pad_p.jvp = linear_jvp(pad_p)


def _concatenate_typ(*xs, dimension):
    same_dtype("concatenate", *xs)
    first = xs[0]
    if not 0 <= dimension < first.ndim:
        raise ValueError(f"concatenate: dimension {dimension} is out of bounds for shapes {[x.shape for x in xs]}")
    for x in xs:
        if x.ndim != first.ndim or any(a != b for i, (a, b) in enumerate(zip(x.shape, first.shape)) if i != dimension):
            raise TypeError(f"Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
                            f"concatenated: concatenating along dimension {dimension} for shapes "
                            f"{', '.join(str(x.shape) for x in xs)}.")
    shape = list(first.shape)
    shape[dimension] = sum(x.shape[dimension] for x in xs)
    return ShapedArray(tuple(shape), first.dtype, all(x.weak_type for x in xs))


def _concatenate_transpose(ct, *xs, dimension):
    results, start = [], 0
    for x in xs:
        size = shape_of(x)[dimension]
        if is_linear(x):
            lo, hi = [0] * ct.ndim, list(ct.shape)
            lo[dimension], hi[dimension] = start, start + size
            results.append(slice_p.bind(ct, start_indices=tuple(lo), limit_indices=tuple(hi), strides=None))
        else:
            results.append(None)
        start += size
    return results


concatenate_p = Mapped(
    "concatenate", typ=_concatenate_typ, transpose=_concatenate_transpose, axes=same_axes("dimension"), structural=True,
    lower=lambda ctx, eqn, *xs: ctx.emit(
        f"stablehlo.concatenate {', '.join(xs)}, dim = {eqn.params['dimension']} : {_types(eqn)}"))
concatenate_p.jvp = linear_jvp(concatenate_p)


# --- iota, copy -------------------------------------------------------------------------------------------------

def _iota_typ(*, dtype, shape, dimension):
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension {dimension} is out of bounds for shape {shape}")
    if dtypes.is_bool(dtype) or dtypes.is_extended(dtype):
        raise TypeError(f"iota: dtype must be a number, got {dtype}")
    return ShapedArray(shape, dtype)


iota_p = Primitive("iota", typ=_iota_typ, lower=lambda ctx, eqn: ctx.emit(
    f"stablehlo.iota dim = {eqn.params['dimension']} : {eqn.outvars[0].aval.mlir}"))


def copy_lower(ctx, eqn, x):
    return x


copy_p = structural("copy", lambda x: x, copy_lower, lambda ct, x: [ct], same_axes())


def _barrier_lower(ctx, eqn, *xs):
    if not xs:
        return []
    types = ", ".join(v.aval.mlir for v in eqn.invars)
    return ctx.emit(f"stablehlo.optimization_barrier {', '.join(xs)} : {types}", len(xs))


def _barrier_jvp(primals, tangents):
    filled = [instantiate(t, aval_of(p)) for p, t in zip(primals, tangents) if t is not None]
    out = optimization_barrier_p.bind(*primals)
    moved = iter(optimization_barrier_p.bind(*filled))
    return out, [None if t is None else next(moved) for t in tangents]


def _barrier_transpose(cts, *xs):
    moved = iter(optimization_barrier_p.bind(*[c for c in cts if c is not None]))
    return [None if c is None else next(moved) for c in cts]


optimization_barrier_p = Primitive(
    "optimization_barrier", multiple_results=True, typ=lambda *xs: list(xs), lower=_barrier_lower, jvp=_barrier_jvp,
    transpose=_barrier_transpose, batch=lambda axis, args, dims: (optimization_barrier_p.bind(*args), list(dims)))

