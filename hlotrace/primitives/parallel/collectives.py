"""What the devices along named axes do together: sums, gathers, exchanges.

An axis is one of a mesh, inside `shard_map` and `pmap`, or that of a vmap with a name, where the batching
rule computes what the devices would.  Every primitive takes one operand and `axes`, a tuple of names, the
major one first.  `groups` (None, or tuples of positions along the axis) restricts it to groups.

Inside of a checked `shard_map` avals say over which axes values vary (`ShapedArray.vma`).  `pvary` lets a
value that is the same on all devices meet values that are not; its transpose is a sum over devices,
`psum_invariant`, and conversely.
"""
import numpy as np

from ...core import dtypes
from ...core.axes import same_axes
from ...core.jaxpr_trace import JaxprTrace
from ..arrays.elementwise import add_p, convert, div, eq, max_p, min_p, mul
from ..arrays.gather import gather_p
from ..arrays.gather_numbers import FILL, GatherDimensionNumbers
from ..arrays.reduce import reduce_max_p, reduce_min_p, region
from ..arrays.shape import Mapped, batch_by_axes, broadcast_axis, linear_jvp, move_axis, reduce_sum_p, reshape
from ..arrays.slicing import iota_p
from ..common import Primitive, ShapedArray, aval_of, prod, shape_of


def _own_axes(params):
    return params["axes"]


def collective(name, abstract_eval, lower=None, mapped=None, dims=(), **rules):
    """A primitive with one operand.  `mapped(axis, x, dim, axes=, ...)` is its batching rule over one of its
    own axes; `dims` are the parameters that say along which dimensions it cuts or joins.
    """
    def batch(axis, args, where, *, axes, **params):
        (x,), (dim,) = args, where
        if axis.name in axes and axis.name is not None:
            if params.get("groups") is not None:
                raise NotImplementedError(f"{name}: axis_index_groups over {axis.name!r}, the axis of a vmap")
            if dim is None:
                x, dim = broadcast_axis(x, axis.size, 0), 0
            return mapped(axis, x, dim, axes=axes, **params)
        if dim is None:
            return primitive.bind(x, axes=axes, **params), None
        return batch_by_axes(primitive, axis, args, where, axes=axes, **params)
    primitive = Mapped(name, abstract_eval=abstract_eval, lower=lower, batching=batch, axes=same_axes(dims),
                       says_vma=True, axis_names=_own_axes, **rules)
    if primitive.jvp is None:
        primitive.jvp = linear_jvp(primitive)
    return primitive


# --- lowering -------------------------------------------------------------------------------------

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def positions(ctx, axes):
    """Numbers of the program's partitions, an integer array: a row for each group of devices along `axes`,
    major first."""
    mesh, _ = ctx.module.manual
    order = [mesh.axis_names.index(a) for a in axes]
    rest = [i for i in range(len(mesh.axis_names)) if i not in order]
    grid = np.arange(mesh.size).reshape(mesh.axis_sizes).transpose(*rest, *order)
    return grid.reshape(-1, prod(mesh.axis_sizes[i] for i in order))


def _dense(rows):
    return f"dense<{rows.tolist() if rows.size else ''}> : tensor<{'x'.join(map(str, rows.shape))}xi64>"


def groups_text(ctx, axes, groups):
    rows = positions(ctx, axes)
    if groups is not None:
        width = max(map(len, groups))       # -1 fills the rows of smaller groups
        rows = np.concatenate([np.pad(rows[:, list(g)], ((0, 0), (0, width - len(g))), constant_values=-1)
                               for g in groups])
    return f"replica_groups = {_dense(rows)}"


def _emit(ctx, eqn, op, x, attributes, region=""):
    if positions(ctx, eqn.params["axes"]).shape[1] == 1 and op != "collective_permute":
        # no device to exchange with; jaxlib 0.10 fails to compile a sum of a gather over one device
        return x
    return ctx.emit(f'"stablehlo.{op}"({x}) <{{{", ".join([_CHANNEL, *attributes])}}}> {region}: '
                    f"({eqn.invars[0].aval.mlir}) -> {eqn.outvars[0].aval.mlir}")


def _lower_reduction(combine):
    def lower(ctx, eqn, x, op="all_reduce", attributes=()):
        aval = ShapedArray((), eqn.invars[0].aval.dtype)
        body = region(ctx, eqn, _combiner(combine), [aval, aval])
        return _emit(ctx, eqn, op, x, [groups_text(ctx, eqn.params["axes"], eqn.params.get("groups")),
                                       *attributes, "use_global_device_ids"], f"{body} ")
    return lower


_combiners: dict = {}


def _combiner(primitive):
    return _combiners.setdefault(primitive, lambda a, b: [primitive.bind(a, b)])


# --- pvary and reductions -------------------------------------------------------------------------

pvary_p = collective(
    "pvary", lambda x, *, axes: x.update(vma=x.vma | {*axes}), lambda ctx, eqn, x: x,
    transpose=lambda ct, x, *, axes: [psum_invariant_p.bind(vary(ct, axes), axes=axes)], makes_nan=False)

JaxprTrace.pvary = pvary_p


def vary(x, axes):
    """`x` as a value that varies over `axes` (it may do so already)."""
    missing = tuple(sorted({*axes} - aval_of(x).vma))
    return pvary_p.bind(x, axes=missing) if missing else x


def match(x, vma):
    """A cotangent of a value that varies over the axes `vma`: summed over those along which it alone does."""
    extra = aval_of(x).vma - vma
    return vary(psum_invariant_p.bind(x, axes=tuple(sorted(extra))) if extra else x, vma)


def _reduced(primitive, reducer):
    def mapped(axis, x, dim, *, axes, groups=None):
        out = reducer.bind(x, axes=(dim,))
        rest = tuple(a for a in axes if a != axis.name)
        return (primitive().bind(out, axes=rest, groups=groups) if rest else out), None
    return mapped


def _unvarying(x, *, axes, groups=None):
    """A reduction leaves the same value on all devices along `axes`."""
    return x.update(vma=x.vma - {*axes})


def _order_abstract_eval(x, *, axes, groups):
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"pmax and pmin do not accept dtype {x.dtype}: complex values have no order")
    return _unvarying(x, axes=axes)


def _extreme_jvp(primitive):
    """The tangents of those that attain the extreme, averaged."""
    def jvp(primals, tangents, *, axes, groups):
        (x,), (t,) = primals, tangents
        out = primitive().bind(x, axes=axes, groups=groups)
        hit = convert(eq(x, out), t.dtype)
        total = lambda v: _sum(v, axes, groups)
        return out, div(total(mul(t, hit)), total(hit))
    return jvp


def _sum(x, axes, groups=None):
    if aval_of(x).vma.isdisjoint(axes):
        return psum_p.bind(x, axes=axes, groups=groups)
    return psum_invariant_p.bind(x, axes=axes)


psum_p = collective(
    "psum", lambda x, *, axes, groups: x, _lower_reduction(add_p), _reduced(lambda: psum_p, reduce_sum_p),
    transpose=lambda ct, x, *, axes, groups: [psum_p.bind(ct, axes=axes, groups=groups)])
psum_invariant_p = collective(
    "psum_invariant", _unvarying, _lower_reduction(add_p), transpose=lambda ct, x, *, axes: [vary(ct, axes)])
pmax_p = collective("pmax", _order_abstract_eval, _lower_reduction(max_p),
                    _reduced(lambda: pmax_p, reduce_max_p), jvp=_extreme_jvp(lambda: pmax_p), makes_nan=False)
pmin_p = collective("pmin", _order_abstract_eval, _lower_reduction(min_p),
                    _reduced(lambda: pmin_p, reduce_min_p), jvp=_extreme_jvp(lambda: pmin_p), makes_nan=False)


# --- gathers and exchanges, along dimensions that stay --------------------------------------------

def _resized(x, dim, size, times=1):
    return x.update(shape=(*x.shape[:dim], x.shape[dim] * times // size, *x.shape[dim + 1:]))


def _check_divides(name, x, dim, size):
    if x.shape[dim] % size:
        raise ValueError(f"{name}: dimension {dim} of an operand of shape {x.shape} has size {x.shape[dim]}, "
                         f"which is not a multiple of {size}, the number of devices that share it")


def _gather_mapped(axis, x, dim_, *, axes, size, dim, groups):
    moved = move_axis(x, dim_, dim)
    shape = shape_of(moved)
    return reshape(moved, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2:])), None


def _scatter_abstract_eval(x, *, axes, size, dim, groups):
    _check_divides("psum_scatter", x, dim, size)
    return _resized(x, dim, size)


def _scatter_mapped(axis, x, dim_, *, axes, size, dim, groups):
    total = reduce_sum_p.bind(x, axes=(dim_,))
    shape = shape_of(total)
    return reshape(total, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1:])), dim


all_gather_p = collective(
    "all_gather", lambda x, *, axes, size, dim, groups: _resized(x, dim, 1, size),
    lambda ctx, eqn, x: _emit(ctx, eqn, "all_gather", x, [
        f"all_gather_dim = {eqn.params['dim']} : i64",
        groups_text(ctx, eqn.params["axes"], eqn.params["groups"]), "use_global_device_ids"]),
    _gather_mapped, "dim", transpose=lambda ct, x, **params: [reduce_scatter_p.bind(ct, **params)],
    makes_nan=False)
reduce_scatter_p = collective(
    "reduce_scatter", _scatter_abstract_eval,
    lambda ctx, eqn, x: _lower_reduction(add_p)(ctx, eqn, x, "reduce_scatter", [
        f"scatter_dimension = {eqn.params['dim']} : i64"]),
    _scatter_mapped, "dim", transpose=lambda ct, x, **params: [all_gather_p.bind(ct, **params)])


def _all_to_all_abstract_eval(x, *, axes, size, split, concat, groups):
    _check_divides("all_to_all", x, split, size)
    return _resized(_resized(x, split, size), concat, 1, size)


def _all_to_all_mapped(axis, x, dim, *, axes, size, split, concat, groups):
    x = move_axis(x, dim, 0)
    shape = shape_of(x)
    x = reshape(x, (*shape[:split + 1], size, shape[split + 1] // size, *shape[split + 2:]))
    x = move_axis(x, split + 1, 0)                                    # (to, from, ...)
    x = move_axis(x, 1, concat + 1)
    shape = shape_of(x)
    return reshape(x, (*shape[:concat + 1], shape[concat + 1] * shape[concat + 2], *shape[concat + 3:])), 0


all_to_all_p = collective(
    "all_to_all", _all_to_all_abstract_eval,
    lambda ctx, eqn, x: _emit(ctx, eqn, "all_to_all", x, [
        f"concat_dimension = {eqn.params['concat']} : i64",
        groups_text(ctx, eqn.params["axes"], eqn.params["groups"]),
        f"split_count = {eqn.params['size']} : i64", f"split_dimension = {eqn.params['split']} : i64"]),
    _all_to_all_mapped, ("split", "concat"),
    transpose=lambda ct, x, *, split, concat, **params: [all_to_all_p.bind(ct, split=concat, concat=split,
                                                                           **params)],
    makes_nan=False)


# --- ppermute -------------------------------------------------------------------------------------

def _ppermute_lower(ctx, eqn, x):
    rows = positions(ctx, eqn.params["axes"])
    pairs = np.array([(row[a], row[b]) for row in rows for a, b in eqn.params["perm"]], int).reshape(-1, 2)
    return _emit(ctx, eqn, "collective_permute", x, [f"source_target_pairs = {_dense(pairs)}"])


def _ppermute_mapped(axis, x, dim, *, axes, perm):
    x = move_axis(x, dim, 0)
    shape = shape_of(x)
    source = np.full((axis.size, 1), axis.size, np.int32)             # out of bounds: filled with zeros
    for a, b in perm:
        source[b] = a
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,))
    return gather_p.bind(x, source, dimension_numbers=numbers, slice_sizes=(1, *shape[1:]),
                         indices_are_sorted=False, unique_indices=False, mode=FILL, fill_value=0), 0


ppermute_p = collective(
    "ppermute", lambda x, *, axes, perm: x, _ppermute_lower, _ppermute_mapped,
    transpose=lambda ct, x, *, axes, perm: [ppermute_p.bind(ct, axes=axes,
                                                            perm=tuple((b, a) for a, b in perm))],
    makes_nan=False)

# in these devices wait for each other
EXCHANGES = frozenset({psum_p, psum_invariant_p, pmax_p, pmin_p, all_gather_p, reduce_scatter_p, all_to_all_p,
                       ppermute_p})


# --- axis_index -----------------------------------------------------------------------------------

def _index_lower(ctx, eqn):
    """The device's number along an axis, from its number among all.

    Where some axes are not manual yet, XLA knows that number only where it is manual over them too.
    """
    mesh, _ = ctx.module.manual
    (axis,) = eqn.params["axes"]
    i = mesh.axis_names.index(axis)
    below = prod(mesh.axis_sizes[i + 1:])

    def body(_):
        number = ctx.emit("stablehlo.partition_id : tensor<ui32>")
        for op, value in (("divide", below), ("remainder", mesh.axis_sizes[i])):
            number = ctx.emit(f"stablehlo.{op} {number}, {ctx.constant(value, np.uint32)} : tensor<ui32>")
        return [ctx.emit(f"stablehlo.convert {number} : (tensor<ui32>) -> tensor<i32>")]
    return ctx.on_every_device([], [], [eqn.outvars[0].aval], body)[0]


axis_index_p = Primitive(
    "axis_index", lower=_index_lower, says_vma=True, axis_names=_own_axes,
    abstract_eval=lambda *, axes, checked: ShapedArray((), np.dtype(np.int32), False,
                                                       frozenset(axes if checked else ())),
    # it is asked for its own axis
    batching=lambda axis, args, dims, **_: (
        iota_p.bind(dtype=np.dtype(np.int32), shape=(axis.size,), dimension=0), 0))


def _under_names(primitives, tiled=False, **names):
    """Let parameters be found, and shown, under JAX's names {ours: JAX's}; here it is always `tiled`."""
    also = {name: lambda params, own=own: params[own] for own, name in names.items()}
    if tiled:
        also["tiled"] = lambda params: True
    for primitive in primitives:
        primitive.answer(**also)
        primitive.shown = lambda eqn: {**{k: v for k, v in eqn.params.items() if k not in (*names, "size")},
                                       **{name: eqn.params[name] for name in also}}


_under_names((psum_p, pmax_p, pmin_p), groups="axis_index_groups")
_under_names((all_gather_p,), True, axes="axis_name", size="axis_size", dim="all_gather_dimension",
             groups="axis_index_groups")
_under_names((reduce_scatter_p,), True, axes="axis_name", size="axis_size", dim="scatter_dimension",
             groups="axis_index_groups")
_under_names((all_to_all_p,), True, axes="axis_name", split="split_axis", concat="concat_axis",
             groups="axis_index_groups")
_under_names((ppermute_p,), axes="axis_name")
axis_index_p.answer(axis_name=lambda params: params["axes"][0])
axis_index_p.shown = lambda eqn: {"axis_name": eqn.params["axis_name"]}
