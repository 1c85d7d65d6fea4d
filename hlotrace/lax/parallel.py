"""Collectives over named axes: those of a vmap, and the mesh axes of shard_map and pmap."""
import operator

from ..core import dtypes
from ..core.avals import aval_of
from ..core.config import CoreAxis, state
from ..core.dtypes import python_scalars
from ..core.errors import did_you_mean
from ..core.pytrees import pytree
from ..primitives.arrays import elementwise as e
from ..primitives.arrays.reduce import reduce_max_p, reduce_min_p
from ..primitives.arrays.shape import (
    broadcast_axis, broadcast_in_dim, move_axis, new_axis, reduce_sum_p, reshape)
from ..primitives.common import canonical_axes, canonical_axis, np, prod, shape_of
from ..primitives.parallel.collectives import (
    all_gather_p, all_to_all_p, axis_index_p, pmax_p, pmin_p, ppermute_p, psum_invariant_p, psum_p,
    reduce_scatter_p, vary)
from ..primitives.parallel.ragged import by_gathering, ragged_all_to_all_p
from .indexing import dynamic_index_in_dim

__all__ = ["all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean",
           "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "pvary", "ragged_all_to_all"]


def axis_frame(name):
    """(size, kind) of the innermost axis of this name.  NameError where there is none."""
    for known, size, kind in reversed(state.axis_env):
        if known == name:
            return size, kind
    listed = ", ".join(repr(known) for known, *_ in state.axis_env
                       if not str(known).startswith("_internal")) or "none"
    raise NameError(f"Found an unbound axis name: {name}. It is an axis neither of an enclosing shard_map or "
                    "pmap nor of a vmap with axis_name; those in scope here: "
                    f"{listed}{did_you_mean(name, [known for known, *_ in state.axis_env])}")


def _axes_or_cores(axis_name):
    """(names, their sizes, their kinds) of a name or a tuple of names."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"axis_name {names} names {name!r} more than once; along each axis devices "
                             "communicate once")
    frames = [axis_frame(n) for n in names]
    return names, [size for size, _ in frames], [kind for _, kind in frames]


def _axes(axis_name):
    """As `_axes_or_cores`.  ValueError for an axis of cores."""
    names, sizes, kinds = _axes_or_cores(axis_name)
    if cores := [name for name, kind in zip(names, kinds) if type(kind) is CoreAxis]:
        raise ValueError(f"axis {cores[0]!r} is of the cores of a device, which do not communicate by "
                         "collectives: they read and write Refs")
    return names, sizes, kinds


def axis_size(axis_name):
    """The number of devices (or mapped slices) along the axis, or along all axes of a tuple: a Python int.

    >>> jax.vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(jnp.ones(3))
    Array([3., 3., 3.], dtype=float32)
    """
    return prod(_axes_or_cores(axis_name)[1])


def axis_index(axis_name):
    """The position of this device (or slice) along the axis, an int32 scalar; of a tuple, major first.

    >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.ones(3, int))
    Array([1, 2, 3], dtype=int32)
    """
    names, sizes, kinds = _axes_or_cores(axis_name)
    index = None
    for name, size, kind in zip(names, sizes, kinds):
        own = kind.index if type(kind) is CoreAxis else axis_index_p.bind(axes=(name,),
                                                                          checked=kind == "checked")
        index = own if index is None else e.add(e.mul(index, np.int32(size)), own)
    return np.int32(0) if index is None else index


def _varying(x, names, kinds):
    """`x` as collectives take it: in a checked shard_map it is made to vary over their axes."""
    checked = [n for n, kind in zip(names, kinds) if kind == "checked"]
    return vary(x, checked) if checked else x


def _check_sum(what, x, names, kinds):
    """ValueError for a sum over some axes of a checked shard_map along which `x` varies, and some others."""
    checked = [n for n, kind in zip(names, kinds) if kind == "checked"]
    over = aval_of(x).vma.intersection(checked)
    if over and len(over) < len(checked):
        raise ValueError(f"jax.lax.{what} can only accept axis_name which corresponds to one of varying, "
                         "unreduced, reduced or invarying state of the input. Got input type: "
                         f"{aval_of(x).str_short()}, which varies over {sorted(over)} alone, axes: {names}: "
                         "sum over those, or make it vary over all: lax.pcast(x, axes, to='varying')")


def _groups(what, axis_index_groups, names, sizes, kinds, uneven=False):
    """`axis_index_groups` as a tuple of tuples, or None, and the number of devices in each.

    That is None where they differ, which only what is `uneven` may.
    """
    if axis_index_groups is None:
        return None, prod(sizes)
    try:
        groups = tuple(tuple(map(operator.index, g)) for g in axis_index_groups)
    except TypeError:
        raise TypeError(f"{what}: axis_index_groups is a list of lists of positions along the axis, such as "
                        f"[[0, 1], [2, 3]], got {axis_index_groups!r}") from None
    if len(names) != 1 or kinds[0] == "vmap":
        where = " in vmap collectives" if "vmap" in kinds else ""
        raise NotImplementedError(f"{what}: axis_index_groups not supported{where}: it needs one axis, of "
                                  f"shard_map or pmap, got {names}")
    if sorted(i for g in groups for i in g) != list(range(sizes[0])):
        raise ValueError(f"{what}: axis_index_groups {groups} must hold each position along {names[0]!r}, 0 "
                         f"to {sizes[0] - 1}, once")
    lengths = {len(g) for g in groups}
    if len(lengths) > 1 and not uneven:
        raise ValueError(f"{what}: axis_index_groups {groups} must have one size")
    return groups, lengths.pop() if len(lengths) == 1 else None


def _reduction(what, primitive, x, axis_name, axis_index_groups):
    names, sizes, kinds = _axes(axis_name)
    groups, _ = _groups(what, axis_index_groups, names, sizes, kinds, uneven=True)
    mapped, manual = (tuple(n for n, k in zip(names, kinds) if (k == "vmap") == of_vmap)
                      for of_vmap in (True, False))
    checked = "checked" in kinds
    if checked and groups is not None and primitive is psum_p:
        raise NotImplementedError(f"{what}: axis_index_groups in a shard_map with check_vma=True: its result "
                                  "varies in part")

    def one(v):
        if primitive is psum_p:
            _check_sum(what, v, names, kinds)
        v = _varying(v, names, kinds)
        if mapped:
            v = primitive.bind(v, axes=mapped, groups=None)
        if manual and checked and primitive is psum_p:
            return psum_invariant_p.bind(v, axes=manual)
        return primitive.bind(v, axes=manual, groups=groups) if manual else v
    return pytree.tree_map(one, x)


def _number(v):
    return type(v) in python_scalars or isinstance(v, np.number)


def _split_axes(axis_name):
    """(the axes that are names, those that are ints: axes of the arrays themselves)."""
    axes = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    positions = tuple([a for a in axes if type(a) is int])
    return (tuple([a for a in axes if type(a) is not int]), positions) if positions else (axis_name, ())


def _along_positions(primitive, x, axis_name):
    """`x` reduced along axes that are given as ints, and the axes that are left."""
    names, positions = _split_axes(axis_name)
    if positions:
        x = pytree.tree_map(lambda v: primitive.bind(
            e.convert(v, np.dtype(np.int32)) if dtypes.is_bool(aval_of(v).dtype) else v,
            axes=canonical_axes(positions, len(shape_of(v)))), x)
    return x, names


def psum(x, axis_name, *, axis_index_groups=None):
    """The sum over the devices along the axis, on each of them.

    Python numbers are multiplied by the number of devices: `psum(1, name)` is that number.

    Args:
        x: a pytree of arrays; booleans count as int32.
        axis_name: the axis, or a tuple of axes; an int is an axis of the arrays.
        axis_index_groups: lists of positions, each summed for itself; all positions for None.

    >>> jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1., 3.]))
    Array([0.25, 0.75], dtype=float32)
    """
    x, axis_name = _along_positions(reduce_sum_p, x, axis_name)
    if axis_name == ():
        return x
    names, sizes, kinds = _axes(axis_name)
    _, count = _groups("psum", axis_index_groups, names, sizes, kinds, uneven=True)

    def one(v):
        if _number(v) and not isinstance(v, bool) and count is not None:
            return v * count
        if dtypes.is_bool(aval_of(v).dtype):
            v = e.convert(v, np.dtype(np.int32))
        return _reduction("psum", psum_p, v, axis_name, axis_index_groups)
    return pytree.tree_map(one, x)


def pmean(x, axis_name, *, axis_index_groups=None):
    """The mean over the devices along the axis, on each of them.

    >>> jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1., 3.]))
    Array([-1.,  1.], dtype=float32)
    """
    named, positions = _split_axes(axis_name)
    _, devices = (None, 1) if named == () else _groups("pmean", axis_index_groups, *_axes(named), uneven=True)
    if devices is None:
        devices = psum(1, named, axis_index_groups=axis_index_groups)

    def one(v):
        shape = shape_of(v)
        count = devices * prod(shape[a] for a in canonical_axes(positions, len(shape)))
        total = psum(v, axis_name, axis_index_groups=axis_index_groups)
        if _number(total):
            return total / count
        dtype = aval_of(total).dtype
        if not dtypes.is_inexact(dtype):
            total = e.convert(total, dtypes.canonicalize(np.dtype(np.float64)))
        return e.div(total, count if _number(count) else e.convert(count, aval_of(total).dtype))
    return pytree.tree_map(one, x)


def pmax(x, axis_name, *, axis_index_groups=None):
    """The largest over the devices along the axis, elementwise, on each of them.

    Its derivative is that of the elements that attain it, averaged.

    >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([3, 3], dtype=int32)
    """
    x, axis_name = _along_positions(reduce_max_p, x, axis_name)
    return x if axis_name == () else _reduction("pmax", pmax_p, x, axis_name, axis_index_groups)


def pmin(x, axis_name, *, axis_index_groups=None):
    """The smallest over the devices along the axis, elementwise, on each of them.

    >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([1, 1], dtype=int32)
    """
    x, axis_name = _along_positions(reduce_min_p, x, axis_name)
    return x if axis_name == () else _reduction("pmin", pmin_p, x, axis_name, axis_index_groups)


def _one_by_one(names, kinds):
    """Must a gather over several axes be done an axis at a time?"""
    return len(names) > 1 and "vmap" in kinds


def all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False, to="varying"):
    """The values of all devices along the axis, on each of them.

    Args:
        x: a pytree of arrays.
        axis_name: the axis, or a tuple of axes.
        axis_index_groups: lists of positions, each gathered for itself; all positions for None.
        axis: where the new axis is, or which one is concatenated.
        tiled: concatenate along `axis` instead of stacking in a new axis.
        to: "invarying" says, in a shard_map with check_vma=True, that the result does not vary over the axis;
            by default it counts as varying.  "reduced" is that too: see `pcast`.

    >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([[1, 3],
           [1, 3]], dtype=int32)
    """
    names, sizes, kinds = _axes(axis_name)
    groups, size = _groups("all_gather", axis_index_groups, names, sizes, kinds)
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(f'all_gather: to must be "varying", "invarying" or "reduced", got {to!r}')
    # a sum of which each device knows one part: type and derivative follow
    if to == "invarying" and "checked" in kinds:
        return pytree.tree_map(lambda v: _gathered_by_sum(v, axis_name, axis, tiled), x)

    def one(v):
        dim = canonical_axis(axis, len(shape_of(v)) + (not tiled))
        v = _varying(v if tiled else new_axis(v, dim), names, kinds)
        if _one_by_one(names, kinds):
            for name, n in zip(reversed(names), reversed(sizes)):
                v = all_gather_p.bind(v, axes=(name,), size=n, dim=dim, groups=None)
            return v
        return all_gather_p.bind(v, axes=names, size=size, dim=dim, groups=groups)
    return pytree.tree_map(one, x)


def _gathered_by_sum(x, axis_name, axis, tiled):
    """An all_gather as the sum of arrays of which each device fills in its own part."""
    size, shape = axis_size(axis_name), shape_of(x)
    dim = canonical_axis(axis, len(shape) + (not tiled))
    mine = e.eq(np.arange(size, dtype=np.int32), broadcast_in_dim(axis_index(axis_name), (size,), ()))
    total = move_axis(_sum_where(mine, broadcast_axis(x, size, 0), axis_name), 0, dim)
    return reshape(total, (*shape[:dim], size * shape[dim], *shape[dim + 1:])) if tiled else total


def _sum_where(marks, x, axis_name):
    """The sum over devices of `x` where `marks`, for its leading axes, say so; dtype as that of `x`."""
    shape, dtype = shape_of(x), aval_of(x).dtype
    where = broadcast_in_dim(marks, shape, tuple(range(len(shape_of(marks)))))
    return e.convert(psum(e.select(where, x, np.zeros(shape, dtype)), axis_name), dtype)


def psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False):
    """The sum over the devices along the axis, of which each keeps its own part.

    Args:
        x: a pytree of arrays.
        axis_name: the axis, or a tuple of axes.
        scatter_dimension: along which the parts are; it has the size of the axis, and goes away.
        axis_index_groups: lists of positions, each summed for itself; all positions for None.
        tiled: that dimension has a multiple of the size of the axis, and stays.

    >>> jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [10, 20]]))
    Array([11, 22], dtype=int32)
    """
    names, sizes, kinds = _axes(axis_name)
    groups, size = _groups("psum_scatter", axis_index_groups, names, sizes, kinds)

    def one(v):
        shape = shape_of(v)
        dim = canonical_axis(scatter_dimension, len(shape))
        if not tiled and shape[dim] != size:
            raise ValueError(f"psum_scatter: dimension {dim} of an operand of shape {shape} must have size "
                             f"{size}, the size of axis {axis_name!r}; with tiled=True it may be a multiple")
        _check_sum("psum_scatter", v, names, kinds)
        v = _varying(v, names, kinds)
        if _one_by_one(names, kinds):
            for name, n in zip(names, sizes):
                v = reduce_scatter_p.bind(v, axes=(name,), size=n, dim=dim, groups=None)
        else:
            v = reduce_scatter_p.bind(v, axes=names, size=size, dim=dim, groups=groups)
        return v if tiled else reshape(v, (*shape[:dim], *shape[dim + 1:]))
    return pytree.tree_map(one, x)


def all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False):
    """Each device cuts its value along `split_axis` and sends part k to device k; what comes is joined.

    Args:
        x: a pytree of arrays.
        axis_name: the axis, or a tuple of axes.
        split_axis: has the size of the named axis, and goes away.
        concat_axis: where a new axis of that size comes.
        axis_index_groups: lists of positions, each exchanging for itself; all positions for None.
        tiled: the split axis is divided by that size, and the concat axis, one that is there, multiplied.

    >>> jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [10, 20]]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    names, sizes, kinds = _axes(axis_name)
    groups, size = _groups("all_to_all", axis_index_groups, names, sizes, kinds)
    def exchanged(v):
        """Row k of each device to device k."""
        if not _one_by_one(names, kinds):
            return all_to_all_p.bind(v, axes=names, size=size, split=0, concat=0, groups=groups)
        shape = shape_of(v)
        v = reshape(v, (*sizes, *shape[1:]))
        for i, (name, n) in enumerate(zip(names, sizes)):
            v = all_to_all_p.bind(v, axes=(name,), size=n, split=i, concat=i, groups=None)
        return reshape(v, shape)

    def one(v):
        shape = shape_of(v)
        split = canonical_axis(split_axis, len(shape), "split_axis")
        concat = canonical_axis(concat_axis, len(shape), "concat_axis")
        if shape[split] != size and not tiled or shape[split] % size:
            raise ValueError(f"all_to_all: split_axis {split} of an operand of shape {shape} must have size "
                             f"{size}, the size of axis {axis_name!r}, "
                             f"or{'' if tiled else ', with tiled=True,'} a multiple of it")
        v = _varying(v, names, kinds)
        if not tiled:
            return move_axis(exchanged(move_axis(v, split, 0)), 0, concat)
        if not _one_by_one(names, kinds):
            return all_to_all_p.bind(v, axes=names, size=size, split=split, concat=concat, groups=groups)
        v = reshape(v, (*shape[:split], size, shape[split] // size, *shape[split + 1:]))
        v = move_axis(exchanged(move_axis(v, split, 0)), 0, concat)
        shape = shape_of(v)
        return reshape(v, (*shape[:concat], shape[concat] * shape[concat + 1], *shape[concat + 2:]))
    return pytree.tree_map(one, x)


def ragged_all_to_all(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, *, axis_name,
                      axis_index_groups=None):
    """Each device sends rows of `operand` to others, and what it gets is written into `output`.

    Slice i, which starts at input_offsets[i] and has send_sizes[i] rows, goes to device i // (k // p), p
    being the number of devices, where it is written from row output_offsets[i] on.  Slices must not overlap
    in the result.  Each device holds all operands.

    Args:
        operand: of shape (n, ...).
        output: of shape (m, ...), of the same dtype.
        input_offsets: integers of shape (k,), k a multiple of p.
        send_sizes: integers of shape (k,).
        output_offsets: integers of shape (k,).
        recv_sizes: integers of shape (k,), how many rows come from each device; no more are taken.
        axis_name: the axis, or a tuple of axes.
        axis_index_groups: lists of positions, each exchanging for itself; all positions for None.
    Raises:
        ValueError: for other types and shapes.

    >>> ids, ones = jnp.arange(2), jnp.ones(2, int)
    >>> exchange = lambda x, to: lax.ragged_all_to_all(x, jnp.zeros(2), ids, ones, to, ones, axis_name="i")
    >>> jax.vmap(exchange, axis_name="i")(jnp.array([[1., 2.], [3., 4.]]), jnp.array([[0, 0], [1, 1]]))
    Array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    avals = {"input_offsets": aval_of(input_offsets), "send_sizes": aval_of(send_sizes),
             "output_offsets": aval_of(output_offsets), "recv_sizes": aval_of(recv_sizes)}
    for which, a in avals.items():
        if not dtypes.is_integer(a.dtype):
            raise ValueError(f"ragged_all_to_all {which} must be integer type, got {a.str_short()}")
        if a.ndim != 1 or a.shape == (0,):
            raise ValueError(f"ragged_all_to_all {which} must be rank 1 with positive dimension size, but "
                             f"got shape {a.shape}")
    x, out = aval_of(operand), aval_of(output)
    if x.dtype != out.dtype or x.ndim < 1 or x.shape[1:] != out.shape[1:]:
        raise ValueError(f"ragged_all_to_all: output of type {out.str_short()} does not fit operand of type "
                         f"{x.str_short()}: only the sizes of axis 0 may differ")
    if len({a.shape for a in avals.values()}) > 1:
        raise ValueError("ragged_all_to_all: offsets and sizes must have one length, got "
                         f"{', '.join(a.str_short() for a in avals.values())}")
    names, sizes, kinds = _axes(axis_name)
    groups, size = _groups("ragged_all_to_all", axis_index_groups, names, sizes, kinds)
    operands = [_varying(v, names, kinds) for v in (operand, output, input_offsets, send_sizes,
                                                    output_offsets, recv_sizes)]
    exchange = by_gathering if "vmap" in kinds else ragged_all_to_all_p.bind
    return exchange(*operands, axes=names, size=size, groups=groups)


def ppermute(x, axis_name, perm):
    """For each (source, destination) in `perm`, the destination gets the source's value; others get zeros.

    Along a tuple of axes positions count as `axis_index` does, the first axis being the major one.

    Raises:
        ValueError: where a source or a destination appears twice or does not exist.

    >>> jax.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.array([1, 2, 3]))
    Array([0, 1, 2], dtype=int32)
    """
    names, sizes, kinds = _axes(axis_name)
    size = prod(sizes)
    try:
        perm = tuple((operator.index(a), operator.index(b)) for a, b in perm)
    except (TypeError, ValueError):
        raise TypeError("ppermute: perm is a list of pairs of positions (source, destination), such as [(0, "
                        f"1), (1, 0)], got {perm!r}") from None
    for what, numbers in (("source", [a for a, _ in perm]), ("destination", [b for _, b in perm])):
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"ppermute: a {what} appears more than once in perm {perm}; each may send and "
                             "receive once")
        if any(not 0 <= n < size for n in numbers):
            raise ValueError(f"ppermute: a {what} in perm {perm} is not a position along {axis_name!r}: 0 to "
                             f"{size - 1}; a ring is [(i, (i + 1) % {size}) for i in range({size})]")
    if _one_by_one(names, kinds):
        return pytree.tree_map(lambda v: _picked(v, axis_name, size, perm), x)
    return pytree.tree_map(lambda v: ppermute_p.bind(_varying(v, names, kinds), axes=names, perm=perm), x)


def _picked(x, axis_name, size, perm):
    """ppermute as an all_gather, of which each device takes what is sent to it."""
    source, here = np.zeros(size, np.int32), axis_index(axis_name)
    for a, b in perm:
        source[b] = a
    sent = np.isin(np.arange(size), [b for _, b in perm])
    row = dynamic_index_in_dim(all_gather(x, axis_name), dynamic_index_in_dim(source, here, keepdims=False),
                               keepdims=False)
    mask = broadcast_in_dim(dynamic_index_in_dim(sent, here, keepdims=False), shape_of(row), ())
    return e.select(mask, row, np.zeros(shape_of(row), aval_of(row).dtype))


def pshuffle(x, axis_name, perm):
    """Device i gets the value of device `perm[i]`; `perm` holds each position once.

    >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([1, 2, 3]))
    Array([3, 1, 2], dtype=int32)
    """
    if sorted(perm) != list(range(axis_size(axis_name))):
        raise ValueError(f"pshuffle: perm {list(perm)} must hold each position along {axis_name!r}, 0 to "
                         f"{axis_size(axis_name) - 1}, once")
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x, axis_name, source):
    """The value of device `source`, on all devices along the axis: a sum in which the others are zero.

    >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([1, 2, 3]))
    Array([2, 2, 2], dtype=int32)
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast: source {source} is not a position along {axis_name!r}: 0 to "
                         f"{size - 1}")
    mine = e.eq(axis_index(axis_name), np.int32(source))
    return pytree.tree_map(lambda v: _sum_where(mine, v, axis_name), x)


def pswapaxes(x, axis_name, axis, *, axis_index_groups=None):
    """Exchange the named axis with axis number `axis`, which has its size.

    >>> jax.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [10, 20]]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pcast(x, axis_name, *, to):
    """Values of a shard_map with check_vma=True, marked as varying over the axes.

    The derivative is a sum over devices.

    Args:
        to: "varying"; "reduced", the same, for results that out_specs says to be reduced; "unreduced" for a
            value that varies and is a term of a sum, which out_specs says.
    Raises:
        ValueError: for a value that varies over one of them already; for "unreduced", that does not.

    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> f = lambda x: lax.psum(lax.pcast(x, "x", to="varying"), "x")
    >>> f = jax.shard_map(f, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())
    >>> f(1.0).item()
    1.0
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError("pcast: Got unexpected `to` value. Allowed `to` values are: {'varying', 'reduced', "
                         f"'unreduced'}}, got {to!r}")
    names, _, kinds = _axes(axis_name)
    if to == "unreduced":
        for v in pytree.tree_leaves(x) if "checked" in kinds else ():
            if not {*names} <= aval_of(v).vma:
                raise ValueError(f"pcast: a value of type {aval_of(v)} is not varying over {names}: it is no "
                                 "term of a sum")
        return x
    for v in pytree.tree_leaves(x) if "checked" in kinds else ():
        if not aval_of(v).vma.isdisjoint(names):
            raise ValueError(f"Unsupported pcast from=varying, to={to!r}: a value of type {aval_of(v)} is "
                             f"already varying over {sorted(aval_of(v).vma)}; name axes over which it does "
                             "not vary")
    return pvary(x, axis_name)


def pvary(x, axis_name):
    """`pcast(x, axis_name, to="varying")`, for values that may vary over some of the axes.

    >>> mesh, whole = jax.make_mesh((1,), ("x",)), jax.P()
    >>> f = lambda x: lax.psum(lax.pvary(x, "x"), "x")
    >>> jax.shard_map(f, mesh=mesh, in_specs=whole, out_specs=whole)(1.0).item()
    1.0
    """
    names, _, kinds = _axes(axis_name)
    return pytree.tree_map(lambda v: _varying(v, names, kinds), x)

