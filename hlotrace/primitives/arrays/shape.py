"""Axes made, merged, put in order and summed away: broadcast_in_dim, reshape, squeeze, transpose, reduce_sum.

Their rules use each other only, and all rules above use them: a `Mapped` one is batched by its axis map.
"""
import functools

from ...core import errors
from ...core.axes import AxisMap, AxisRule, inserted, plan, renumbered, same_axes
from ...core.config import config, state
from ...runtime.binding import counts_units
from ..common import (
    Primitive, ShapedArray, aval_of, dtypes, first_operand_jvp, is_constant, kind_of, np, prod, scalar,
    shape_of)


def int_list(values):
    """`[1, 2]`, as attributes of operations have it."""
    return f"[{', '.join(map(str, values))}]"


def int_array(values):
    """`array<i64: 1, 2>`."""
    values = list(values)
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def types_text(eqn):
    """The types of an operation's operands and result."""
    return f"({', '.join(v.aval.mlir for v in eqn.invars)}) -> {eqn.outvars[0].aval.mlir}"


class Mapped(Primitive):
    """A primitive whose batching rule follows from its axis map, unless it has one of its own."""
    __slots__ = ()

    def __init__(self, name, *, axes, **rules):
        super().__init__(name, axes=axes, **rules)
        if self.batching is None:
            self.batching = functools.partial(batch_by_axes, self)


def batch_by_axes(primitive, axis, args, dims, /, **params):
    """The batching rule that follows from the axis map of a primitive."""
    rule = primitive.axes
    avals = [None if d is None and rule.constants and not shape_of(x) and is_constant(x) else aval_of(x)
             for x, d in zip(args, dims)]
    todo, params, dim = plan(rule, tuple(avals), tuple(dims), axis.size, tuple(params.items()))
    if todo is not None:
        if axis.sharding is not None and primitive.alike:
            args = _typed(axis, args, dims, todo)
        else:
            args = [x if move is None else _moved(x, *move) for x, move in zip(args, todo)]
    out = primitive.bind(*args, **params)
    return out, [dim] * len(out) if primitive.multiple_results else dim


def _typed(axis, args, dims, todo):
    """The operands, split along a mapped axis that Explicit mesh axes split, if all must be split alike."""
    for x, d, move in zip(args, dims, todo):
        if d is None and move is not None and len(move[1]) == len(move[0]) - 1:
            place = next(i for i in range(len(move[0])) if i not in move[1])
            x = mapped(x, axis, place)
        elif move is not None:
            x = _moved(x, *move)
        yield x


def _moved(x, shape, axes):
    if shape is None:
        return transpose(x, axes)
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=axes)


def structural(name, abstract_eval, lower, transpose, axes, kind=Mapped, **rules):
    """A primitive linear in its one operand."""
    p = kind(name, abstract_eval=abstract_eval, lower=lower, transpose=transpose, axes=axes,
               structural=True, linear="first", **rules)
    p.jvp = first_operand_jvp(p)
    return p


# --- broadcast_in_dim -----------------------------------------------------------------------------

def _broadcast_abstract_eval(x, *, shape, broadcast_dimensions):
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError("broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
                        f"broadcast_dimensions {broadcast_dimensions} for operand ndim {x.ndim}")
    for i, d in enumerate(broadcast_dimensions):
        if not 0 <= d < len(shape):
            raise errors.ShapeError("broadcast_in_dim broadcast_dimensions must be a subset of output "
                                    f"dimensions, got {broadcast_dimensions} for operand ndim {x.ndim} and "
                                    f"shape {shape}")
        if x.shape[i] != 1 and x.shape[i] != shape[d]:
            raise TypeError("broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
                            "corresponding dimensions in the target broadcast shape; got operand of shape "
                            f"{x.shape}, target broadcast shape {shape}, broadcast_dimensions "
                            f"{broadcast_dimensions}: {x.shape[i]} does not fit {shape[d]}")
    if any(a >= b for a, b in zip(broadcast_dimensions, broadcast_dimensions[1:])):
        raise errors.ShapeError("broadcast_in_dim broadcast_dimensions must be strictly increasing; got "
                                f"broadcast_dimensions {broadcast_dimensions}")
    return ShapedArray(shape, x.dtype, x.weak_type)


def _broadcast_transpose(ct, x, *, shape, broadcast_dimensions):
    kept = {d for i, d in enumerate(broadcast_dimensions) if x.shape[i] == shape[d]}
    return [reshape(reduce_sum(ct, [d for d in range(len(shape)) if d not in kept]), x.shape)]


def _broadcast_axes(x, *, shape, broadcast_dimensions):
    operand = tuple(d if n == shape[d] else None for n, d in zip(x.shape, broadcast_dimensions))
    return AxisMap((operand,), tuple(d if d in operand else None for d in range(len(shape))))


def _broadcast_insert(params, at, size, _):
    """The new axis is behind the one that it is behind in the operand."""
    dimensions = params["broadcast_dimensions"]
    place = dimensions[at - 1] + 1 if at else 0
    return {"shape": inserted(params["shape"], place, size),
            "broadcast_dimensions": inserted(renumbered(dimensions, place), at, place)}


def _spread_terms(ctx, eqn, x):
    """XLA forgets that what is spread along a new axis is unreduced, but not of a product, here with ones."""
    of, out, dims = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params["broadcast_dimensions"]
    kept = [i for i, d in enumerate(dims) if of.shape[i] == out.shape[d]]
    order = [dims[i] for i in kept]
    order += [d for d in range(out.ndim) if d not in order]
    entries = [of.explicit.spec[i] for i in kept]
    small = of.update([of.shape[i] for i in kept], sharding=of.explicit.with_entries(*entries))
    ones = out.update([out.shape[d] for d in order[len(kept):]], sharding=None)
    both = out.update([out.shape[d] for d in order], sharding=of.explicit.with_entries(*entries))
    x = ctx.terms(ctx.emit(f"stablehlo.reshape {x} : ({of.mlir}) -> {small.mlir}"), small)
    one = ctx.constant(1, out.dtype)
    one = ctx.emit(f"stablehlo.broadcast_in_dim {one}, dims = [] : ({ones.update(()).mlir}) -> {ones.mlir}")
    x = ctx.emit(f"stablehlo.dot_general {x}, {one}, contracting_dims = [] x [] : ({small.mlir}, "
                 f"{ones.mlir}) -> {both.mlir}")
    places = int_list([order.index(d) for d in range(out.ndim)])
    x = ctx.terms(x, both)
    return ctx.emit(f"stablehlo.transpose {x}, dims = {places} : ({both.mlir}) -> {out.mlir}")


def _broadcast_lower(ctx, eqn, x):
    of = eqn.invars[0].aval
    if of.explicit is not None and of.explicit._terms and ctx.module.partition is not None:
        return _spread_terms(ctx, eqn, x)
    dims = int_list(eqn.params["broadcast_dimensions"])
    return ctx.emit(f"stablehlo.broadcast_in_dim {x}, dims = {dims} : {types_text(eqn)}")


class _Broadcast(Mapped):
    """It is bound by libraries, who give it JAX's parameter `sharding`."""
    __slots__ = ()

    def bind(self, *args, sharding=None, **params):
        if sharding is not None:
            raise NotImplementedError(f"broadcast_in_dim_p: sharding={sharding!r} is not supported: "
                                      "lax.broadcast_in_dim has out_sharding=")
        return state.trace.process(self, args, params)


broadcast_in_dim_p = structural("broadcast_in_dim", _broadcast_abstract_eval, _broadcast_lower,
                                _broadcast_transpose,
                                AxisRule(_broadcast_axes, _broadcast_insert, computed="gone"), _Broadcast)


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


def mapped(x, axis, position=0):
    """`x` repeated along the axis of a vmap, made at `position` and split as that over Explicit mesh axes."""
    spread, aval, along = broadcast_axis(x, axis.size, position), aval_of(x), axis.sharding
    if along is None or aval.mesh is None or any({*along.spec.axes(0)} & {*split} for split in aval.splits):
        return spread
    return as_type(spread, aval.with_axis(position, axis.size, along))


def spread_as(x, like):
    """The vector `x` along the first axis of an array, and the same along others: split as that array."""
    aval = aval_of(like)
    spread = broadcast_in_dim(x, aval.shape, (0,)) if aval.ndim > 1 else x
    if aval.explicit is None or aval.explicit._terms:
        return spread
    return as_type(spread, aval_of(spread).update(sharding=aval.explicit))


def in_front(x, axis, d):
    """`x` with the axis of a vmap in front: moved from `d`, or made there if that is None."""
    return mapped(x, axis) if d is None else move_axis(x, d, 0)


# --- reshape, squeeze, transpose ------------------------------------------------------------------

def _reshape_abstract_eval(x, *, new_sizes, dimensions=None):
    if prod(new_sizes) != x.size:
        raise errors.ShapeError(f"cannot reshape array of shape {x.shape} (size {x.size}) into shape "
                                f"{tuple(new_sizes)} (size {prod(new_sizes)}): the sizes must multiply to "
                                f"{x.size}")
    return ShapedArray(new_sizes, x.dtype, x.weak_type)


def _reshape_axes(x, *, new_sizes, dimensions):
    """An axis stays itself where as many elements are before it and it has the same size."""
    old, new = ({(prod(shape[:i]), n): i for i, n in enumerate(shape) if n != 1 or i == 0}
                for shape in (x.shape, new_sizes))
    same = {i: new[key] for key, i in old.items() if key in new}
    return AxisMap((tuple(same.get(i) for i in range(x.ndim)),),
                   tuple(j if j in same.values() else None for j in range(len(new_sizes))))


def _reshape_insert(params, at, size, x):
    """The new axis has as many elements before it as in the operand; if that cannot be, it is in front."""
    sizes, before = params["new_sizes"], prod(x.shape[:at])
    place = next((j for j in range(len(sizes), 0, -1) if at and prod(sizes[:j]) == before), 0)
    return {**params, "new_sizes": inserted(sizes, place, size)}


def _reshape_sharding(x, *, new_sizes, dimensions):
    """Axes of size 1 come and go; else one axis is cut into several, each split as far as it divides, or
    several are merged into one, of which the first are split.  Everything else is refused."""
    split_units = any(axes for n, axes in zip(x.shape, x.splits) if n == 1)
    splits = [()] * len(new_sizes)
    old, new = ([i for i, n in enumerate(shape) if n != 1] for shape in (x.shape, new_sizes))
    if split_units or counts_units and [x.shape[i] for i in old] != [new_sizes[j] for j in new]:
        old, new = range(x.ndim), range(len(new_sizes))
    pairs = list(zip(old, new))
    first = next((n for n, (i, j) in enumerate(pairs) if x.shape[i] != new_sizes[j]), len(pairs))
    pairs = list(zip(reversed(old[first:]), reversed(new[first:])))
    last = next((n for n, (i, j) in enumerate(pairs) if x.shape[i] != new_sizes[j]), len(pairs))
    for i, j in (*zip(old[:first], new[:first]), *pairs[:last]):
        splits[j] = x.splits[i]
    group, into = old[first:len(old) - last], new[first:len(new) - last]
    names = [name for i in group for name in x.splits[i]]
    whole = next((n for n, i in enumerate(group) if not x.splits[i]), len(group))
    if dimensions is None and len(into) == 1 and not any(x.splits[i] for i in group[whole:]):
        splits[into[0]] = tuple(names)
        return splits
    if dimensions is None and len(group) == 1:
        for j in into:
            left = new_sizes[j]
            while names and left % x.explicit.mesh.shape[names[0]] == 0:
                left //= x.explicit.mesh.shape[names[0]]
                splits[j] += (names.pop(0),)
            if left != 1:
                break
    if names or max(len(group), len(into)) > 1 < min(len(group), len(into)) or dimensions is not None:
        cut = [i for i in group if x.splits[i]] or [i for i, axes in enumerate(x.splits) if axes]
        return AxisMap((tuple(None if i in cut else 0 for i in range(x.ndim)),), ())
    return splits


reshape_p = structural(
    "reshape", _reshape_abstract_eval,
    lambda ctx, eqn, x: ctx.emit(f"stablehlo.reshape {x} : {types_text(eqn)}"),
    lambda ct, x, *, new_sizes, dimensions: [reshape(ct, x.shape)], AxisRule(_reshape_axes, _reshape_insert),
    sharding=_reshape_sharding, whole="This reshape is not supported. Please specify the sharding of the "
    "output via the `out_sharding` argument of jax.lax.reshape")


def reshape(x, shape):
    shape = tuple(shape)
    return x if shape == shape_of(x) else reshape_p.bind(x, new_sizes=shape, dimensions=None)


def _squeeze_abstract_eval(x, *, dimensions):
    for d in dimensions:
        if x.shape[d] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one, got "
                             f"shape={x.shape} and dimensions={dimensions}; x[{':, ' * d}0] takes the first "
                             f"element of axis {d}")
    return ShapedArray(tuple(s for i, s in enumerate(x.shape) if i not in dimensions), x.dtype, x.weak_type)


squeeze_p = structural(
    "squeeze", _squeeze_abstract_eval,
    lambda ctx, eqn, x: ctx.emit(f"stablehlo.reshape {x} : {types_text(eqn)}"),
    lambda ct, x, *, dimensions: [reshape(ct, x.shape)], same_axes("dimensions", gone=True))


def _transpose_abstract_eval(x, *, permutation):
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got permutation "
                        f"{permutation} for operand shape {x.shape}")
    return ShapedArray(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)


transpose_p = structural(
    "transpose", _transpose_abstract_eval,
    lambda ctx, eqn, x: ctx.emit(
        f"stablehlo.transpose {x}, dims = {int_list(eqn.params['permutation'])} : {types_text(eqn)}"),
    lambda ct, x, *, permutation: [transpose(ct, tuple(int(i) for i in np.argsort(permutation)))],
    AxisRule(lambda x, *, permutation: AxisMap((tuple(range(x.ndim)),), permutation),
             lambda params, at, *_: {"permutation": (at, *renumbered(params["permutation"], at))}))


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


def front(args, dims):
    """Operands with their mapped axes in front."""
    return [a if d is None else move_axis(a, d, 0) for a, d in zip(args, dims)]


def front_dims(batched):
    """The positions of mapped axes that are in front where marked."""
    return [0 if b else None for b in batched]


# --- reduce_sum -----------------------------------------------------------------------------------

def check_axes(name, axes, ndim, shape):
    if any(not 0 <= a < ndim for a in axes):
        raise ValueError(f"{name}: reduction axes {axes} contains out-of-bounds indices for an operand of "
                         f"shape {shape}")
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: duplicate value in 'axes' of reduction: {axes}")


def kept_axes(ndim, axes):
    return tuple(i for i in range(ndim) if i not in axes)


def expand(x, axes, shape):
    """The result of a reduction over `axes` broadcast back to the operand's `shape`."""
    return broadcast_in_dim(x, shape, kept_axes(len(shape), axes))


def zero(dtype):
    return scalar(0, dtype)


def lower_reduction(ctx, eqn, x, mnemonic, identity):
    """A reduction by one StableHLO operation."""
    operand, out, axes = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params["axes"]
    if not axes:
        return x
    init = ctx.constant(identity(out.dtype), out.dtype)
    return ctx.emit(f"stablehlo.reduce({x} init: {init}) applies {mnemonic} across dimensions = "
                    f"{int_list(axes)} : ({operand.mlir}, {out.update(shape=()).mlir}) -> {out.mlir}")


def reduction(name, lower, kinds, **rules):
    """A primitive that reduces its operand along `axes`, in any order."""
    def abstract_eval(x, *, axes):
        check_axes(name, axes, x.ndim, x.shape)
        if kind_of(x.dtype) not in kinds:
            wanted = "booleans or integers" if "f" not in kinds else "numbers"
            raise TypeError(f"{name} does not accept dtype {x.dtype}; it takes {wanted}. "
                            + ("See random.key_data" if dtypes.is_extended(x.dtype)
                               else "Cast with .astype(dtype)."))
        weak = x.weak_type and x.dtype != dtypes.bool_
        return ShapedArray(tuple(x.shape[i] for i in kept_axes(x.ndim, axes)), x.dtype, weak)
    return Mapped(name, abstract_eval=abstract_eval, lower=lower,
                  axes=same_axes("axes", gone=True, reduced=True), **rules)


reduce_sum_p = reduction("reduce_sum",
                         lambda ctx, eqn, x: lower_reduction(ctx, eqn, x, "stablehlo.add", zero), "fciu",
                         transpose=lambda ct, x, *, axes: [expand(ct, axes, x.shape)], linear="first")
_sum_type = reduce_sum_p.abstract_eval


def _narrow_sums(x, *, axes):
    if x.dtype in (dtypes.float16, dtypes.bfloat16) and not config.jax_allow_f16_reductions:
        raise ValueError(f"reduce_sum on operand {x.str_short()} is not allowed when "
                         "jax_allow_f16_reductions=False: sum in float32, as jnp.sum does")
    return _sum_type(x, axes=axes)


reduce_sum_p.abstract_eval = _narrow_sums
reduce_sum_p.jvp = first_operand_jvp(reduce_sum_p)


def _unreduced_sum_batching(axis, args, dims, *, axes, unreduced):
    (x,), (dim,) = args, dims
    moved = tuple(a + (a >= dim) for a in axes)
    return unreduced_sum_p.bind(x, axes=moved, unreduced=unreduced), dim - sum(a < dim for a in moved)


# the sum over dimensions that the mesh axes `unreduced` split, before the sum over these
unreduced_sum_p = Primitive(
    "unreduced_sum", abstract_eval=lambda x, *, axes, unreduced: _narrow_sums(x, axes=axes), linear="first",
    sharding=lambda x, *, axes, **_: AxisMap((tuple(range(x.ndim)),), kept_axes(x.ndim, axes)),
    batching=_unreduced_sum_batching,
    lower=lambda ctx, eqn, x: lower_reduction(ctx, eqn, x, "stablehlo.add", zero),
    transpose=lambda ct, x, *, axes, unreduced: [expand(ct, axes, x.shape)])
unreduced_sum_p.jvp = first_operand_jvp(unreduced_sum_p)


def reduce_sum(x, axes):
    return reduce_sum_p.bind(x, axes=tuple(axes))


# --- arrays of one value --------------------------------------------------------------------------

def full(shape, value, dtype):
    """An array of one value: a constant, broadcast."""
    value = scalar(value, dtype)
    if shape == ():
        return value
    return broadcast_in_dim_p.bind(value, shape=tuple(shape), broadcast_dimensions=())


def new_axis(x, axis):
    """`x` with an axis of size 1 at `axis`."""
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], 1, *shape[axis:]))


# parallel/sharding gives it: (value, aval) -> the value with the sharding and in the memory of a type
as_type = None


def in_memory_of(aval, x):
    """`x` in the memory of a type."""
    found = aval_of(x)
    return x if found.memory is aval.memory else as_type(x, found.update(memory_space=aval.memory))


def zeros_of(aval):
    """Zeros with the shape and dtype of `aval`; a float0 aval gives NumPy zeros."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if dtypes.is_extended(aval.dtype):
        return broadcast_in_dim(aval.dtype._rules.zero(aval.dtype), aval.shape, ())
    zeros = in_memory_of(aval, full(aval.shape, 0, aval.dtype))
    return zeros if aval.explicit is None else as_type(zeros, aval)


def instantiate(tangent, aval):
    """The tangent as an array: a symbolic zero (None) becomes zeros."""
    return zeros_of(aval.tangent()) if tangent is None else tangent


def linear_jvp(primitive, first=None):
    """The jvp rule of a primitive that is linear in all its operands, or the first ones, taken together."""
    def jvp(primals, tangents, **params):
        out, moving = primitive.bind(*primals, **params), tangents[:first]
        if all(t is None for t in moving):
            return out, None
        filled = [instantiate(t, aval_of(p)) for p, t in zip(primals, moving)]
        return out, primitive.bind(*filled, *primals[len(filled):], **params)
    return jvp


def _shown_broadcast(eqn):
    dimensions = eqn.params["broadcast_dimensions"]     # the shape is in the type of the result
    return {"broadcast_dimensions": dimensions} if dimensions else {}


broadcast_in_dim_p.shown = _shown_broadcast
# with JAX's parameters that are always None here: shardings are in the types
reshape_p.shown = lambda eqn: {**eqn.params, "sharding": None}
reduce_sum_p.shown = lambda eqn: {**eqn.params, "out_sharding": None}
