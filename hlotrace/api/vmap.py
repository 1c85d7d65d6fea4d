"""vmap as users call it: axes as ints, None or pytree prefixes."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from ..core.avals import ShapedArray, aval_of
from ..core.errors import check_callable
from ..core.pytrees import pytree
from ..core.surface.boundary import filtered
from ..core.symbolic_zeros import MappedAxis
from ..transforms import vmappable
from ..transforms.vmap import batch_flat, place_axis
from . import adapters
from .flat import FlatFunction, StatefulFunction, abstract
from .shape_dtype_struct import ShapeDtypeStruct
from .signatures import name_of, wraps

_P = ParamSpec("_P")
_R = TypeVar("_R")


def vmap(fun: Callable[_P, _R], in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
         axis_size: int | None = None, spmd_axis_name: Any = None,
         sum_match: bool = False) -> Callable[_P, _R]:
    """Map `fun` over an axis of its arguments, as one vectorized computation.

    Args:
        fun: the function of one element, of arrays or pytrees of them.
        in_axes: for each positional argument the axis to map over, None for an argument that is the same for
            all; an int, or a sequence with an entry (int, None or a pytree prefix of them) for each argument.
            Keyword arguments are mapped over axis 0.
        out_axes: where the mapped axis goes in the results, in the same form; None for an unmapped result.
        axis_name: name of the axis for collectives.
        axis_size: size of the mapped axis; needed only where no argument is mapped.
        spmd_axis_name: names of mesh axes over which a shard_map inside is cut along the mapped axis.
        sum_match: are mapped results for which out_axes is None the sum over the axis?
    Raises:
        ValueError: where sizes disagree, an axis does not exist, or out_axes is None for a mapped result
            without `sum_match`.
        TypeError: for axes that are no ints.

    >>> jax.vmap(jnp.dot)(jnp.array([[1., 2.], [3., 4.]]), jnp.array([[1., 0.], [0., 1.]]))
    Array([1., 4.], dtype=float32)
    >>> add = lambda row, scale: row * scale
    >>> jax.vmap(add, in_axes=(1, None), out_axes=1)(jnp.array([[1, 2], [3, 4]]), 10)
    Array([[10, 20],
           [30, 40]], dtype=int32)
    >>> jax.vmap(lambda x: x / lax.psum(x, "batch"), axis_name="batch")(jnp.array([1., 3.]))
    Array([0.25, 0.75], dtype=float32)
    >>> jax.vmap(jnp.square, out_axes=None, sum_match=True)(jnp.array([1., 3.]))
    Array(10., dtype=float32)
    >>> jax.vmap(jnp.add)(jnp.ones(2), jnp.ones(3))
    Traceback (most recent call last):
        ...
    ValueError: vmap got inconsistent sizes for array axes to be mapped:...
    """
    check_callable(fun)
    in_axes = check_axes("vmap", in_axes, out_axes)

    @filtered
    @wraps(fun, f"Vectorized version of {name_of(fun)}.", original=True)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if type(in_axes) is tuple and len(in_axes) != len(args):
            raise ValueError(f"vmap of {name_of(fun)}: vmap in_axes must be an int, None, or a tuple of "
                             "entries corresponding to the positional arguments passed to the function, but "
                             f"got {len(in_axes)=}, {len(args)=}: an argument that is not mapped has None"
                             + ", and keyword arguments have no entry: they are mapped along axis 0" * bool(
                                 kwargs))
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        axis = MappedAxis(axis_size, axis_name, spmd_axis_name)
        if adapters.any_adapted(leaves):
            return _over_values(fun, (args, kwargs), (in_axes, 0), out_axes, axis, sum_match)
        if vmappable.any_registered():
            return _over_vmappables(fun, (args, kwargs), (in_axes, 0), out_axes, axis, sum_match)
        flat = FlatFunction(fun, leaves, in_tree, "vmap")
        dims, size = mapped_axes(flat, (in_axes, 0), axis_size)
        outs, out_dims, axis = _batched(flat, dims, size, axis, "vmap()")
        targets: Sequence[Any] = pytree.flatten_axes("vmap out_axes", flat.out_tree, out_axes)
        flat.out_tree, targets = adapters.mapped(flat.out_tree, outs, out_dims, targets, size)
        return flat.out_tree.unflatten(_placed(flat, outs, out_dims, targets, axis, sum_match))
    return mapped


def _batched(flat: FlatFunction, dims: Sequence[Any], size: int, axis: MappedAxis,
             scope: str = "") -> tuple[list[Any], list[int | None], MappedAxis]:
    """(outs, their mapped axes, the axis with its size and as arguments are split along it) of a call."""
    axis = MappedAxis(size, axis.name, axis.spmd_name, _sharding(flat, dims, axis.spmd_name))
    return *batch_flat(flat, axis, flat.leaves, dims, scope), axis


def _placed(flat: FlatFunction, outs: Sequence[Any], dims: Sequence[int | None], targets: Sequence[Any],
            axis: MappedAxis, sums: bool) -> list[Any]:
    """The results with their mapped axes where out_axes says."""
    return [_place(flat, i, *each, axis, sums) for i, each in enumerate(zip(outs, dims, targets))]


def _over_values(fun: Callable[..., Any], arguments: Any, axes: Any, out_axes: Any, axis: MappedAxis,
                 sum_match: bool) -> Any:
    """A call with values that have adapters among the arguments.

    What can change is mapped by its arrays where it has an axis, otherwise it is the same object for all.
    """
    leaves, in_tree, taken = adapters.flatten_by_value(arguments)
    flat = StatefulFunction(fun, leaves, in_tree, "vmap")
    adapters.refuse_twice(flat, taken)
    specs = pytree.flatten_axes("vmap in_axes", in_tree, axes, 1)
    flat.in_tree, dims = adapters.unmapped(in_tree, [aval_of(x) for x in leaves], specs, axis.size)
    dims, size = check_mapped(flat, dims, axis.size)
    still = {n: x.value for n, x in enumerate(taken) if all(dims[i] is None for i in x.places)}
    flat.outside = still
    with adapters.lending([x for n, x in enumerate(taken) if n not in still]):
        outs, out_dims, axis = _batched(flat, dims, size, axis)
    result_tree, change_tree = flat.out_tree.children()
    n = result_tree.num_leaves
    targets: Sequence[Any] = pytree.flatten_axes("vmap out_axes", result_tree, out_axes)
    result_tree, targets = adapters.mapped(result_tree, outs, out_dims, targets, size)
    changed = [dims[i] for x, numbers in zip(taken, flat.changed) for i in [x.places[j] for j in numbers]]
    flat.out_tree = result_tree
    placed = _placed(flat, outs[:n], out_dims, targets, axis, sum_match)
    changes = [place_axis(x, size, dim, to, axis.sharding)
               for x, dim, to in zip(outs[n:], out_dims[n:], changed, strict=True)]
    adapters.write_back(taken, change_tree.unflatten(changes))
    return result_tree.unflatten(placed)


def _over_vmappables(fun: Callable[..., Any], arguments: Any, axes: Any, out_axes: Any, axis: MappedAxis,
                     sum_match: bool) -> Any:
    """A call where values of registered classes may be among the arguments and results."""
    given = vmappable.Sliced(arguments, axes)
    found: list[vmappable.Stacked] = []

    @wraps(fun)
    def of_arrays(*arrays: Any) -> Any:
        args, kwargs = given.elements(iter(arrays))
        found[:] = [vmappable.Stacked(fun(*args, **kwargs), out_axes, size)]
        return found[0].arrays
    leaves, in_tree = pytree.tree_flatten((tuple(given.arrays), {}))
    flat = FlatFunction(of_arrays, leaves, in_tree, "vmap")
    dims, size = mapped_axes(flat, (tuple(given.dims), 0), axis.size)
    outs, out_dims, axis = _batched(flat, dims, size, axis)
    return found[0].whole(iter(_placed(flat, outs, out_dims, found[0].dims, axis, sum_match)))


def check_axes(what: str, in_axes: Any, out_axes: Any) -> Any:
    """`in_axes`, with a list of them as a tuple.  TypeError for what is no axis."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple, adapters.MappingSpec))
            or hasattr(in_axes, "__index__") or vmappable.is_spec(in_axes)):
        raise TypeError(f"{what} in_axes must be an int, None, or a tuple of entries corresponding to the "
                        f"positional arguments passed to the function, but got {in_axes}.")
    for name, axes in ("in_axes", in_axes), ("out_axes", out_axes):
        for a in pytree.tree_leaves(axes):
            if isinstance(a, bool) or not (hasattr(a, "__index__") or isinstance(a, adapters.MappingSpec)
                                           or vmappable.is_spec(a)):
                raise TypeError(f"{what} {name} must be an int, None, or (nested) container with those types "
                                f"as leaves, but got {axes}.")
    return in_axes


def mapped_axes(flat: FlatFunction, axes: Any, axis_size: int | None = None) -> tuple[list[Any], int]:
    """(the mapped axis of each leaf or None, its size); `axes` is a pytree prefix of (args, kwargs)."""
    dims = pytree.flatten_axes(f"{flat.what} in_axes", flat.in_tree, axes, 1)
    dims, size = check_mapped(flat, dims, axis_size)
    for i, (x, dim) in enumerate(zip(flat.leaves, dims)):
        if dim is not None and type(x) is ShapeDtypeStruct:     # the function reads the shape of a slice
            flat.leaves[i] = x.update(shape=x.shape[:dim] + x.shape[dim + 1:], sharding=None)
            dims[i] = None
    return dims, size


def _type_of(x: Any) -> ShapedArray:
    return abstract(x) if type(x) is ShapeDtypeStruct else aval_of(x)


def check_mapped(flat: FlatFunction, dims: list[Any], axis_size: int | None) -> tuple[list[Any], int]:
    """As `mapped_axes`, of an axis for each leaf."""
    sizes: dict[int, list[int]] = {}
    for i, dim in enumerate(dims):
        if dim is not None:
            shape, dim = flat.aval(i, _type_of).shape, operator.index(dim)
            if not -len(shape) <= dim < len(shape):
                raise ValueError(f"{flat.what} was requested to map its argument along axis {dim}, which "
                                 "implies that its rank should be at least "
                                 f"{dim + 1 if dim >= 0 else -dim}, but is only {len(shape)} "
                                 f"({flat.path(i)} of {flat.name} has shape {shape}); None in in_axes "
                                 "leaves it unmapped")
            dims[i] = dim % len(shape)
            sizes.setdefault(shape[dim], []).append(i)
    if len(sizes) > 1:
        raise _sizes_differ(flat, dims, sizes)
    if axis_size is not None:
        if sizes and axis_size not in sizes:
            raise _sizes_differ(flat, dims, sizes, f"\n  * the `axis_size` argument was {axis_size};")
        return dims, axis_size
    if not flat.leaves:
        args, kwargs = flat.arguments(())
        raise ValueError(f"{flat}: {flat.what} wrapped function must be passed at least one argument "
                         f"containing an array or axis_size must be specified, got empty *args={tuple(args)} "
                         f"and **kwargs={kwargs}")
    if not sizes:
        raise ValueError(f"{flat}: {flat.what} must have at least one non-None value in in_axes or axis_size "
                         "must be specified")
    return dims, next(iter(sizes))


def _sizes_differ(flat: FlatFunction, dims: Sequence[Any], sizes: dict[int, list[int]],
                  first: str = "") -> ValueError:
    """For mapped axes of several sizes: those of each, the most frequent first."""
    listed: list[str] = []
    for n, where in sorted(sizes.items(), key=lambda of_size: -len(of_size[1])):
        types = {i: flat.aval(i, _type_of).str_short() for i in where[:4]}
        named = ", ".join(f"axis {dims[i]} of argument {flat.path(i)} of type {t}" for i, t in types.items())
        most = "some" if listed or len(sizes) == 1 else "most"
        which = "one axis" if len(where) == 1 else f"{most} axes ({len(where)} of them)"
        listed.append(f"\n  * {which} had size {n}{', e.g.' if len(where) > 1 else ':'} {named}")
    return ValueError(f"{flat.what} got inconsistent sizes for array axes to be mapped:{first}"
                      f"{';'.join(listed)}\n({flat}; an argument that is whole for all of them has None in "
                      "in_axes.)")


def _sharding(flat: FlatFunction, dims: Sequence[int | None], spmd_name: Any) -> Any:
    """How Explicit mesh axes split the mapped axis, as the sharding of a vector; None where none does.
    ValueError where arguments, or `spmd_axis_name`, say it differently."""
    along = {i: flat.aval(i).explicit and flat.aval(i).explicit.along(dim) for i, dim in enumerate(dims)
             if dim is not None}
    found: Any = next(filter(None, along.values()), None)
    if found is None:
        return None
    for i, split in along.items():
        if split != found:
            spec = split and split.spec
            raise ValueError(
                "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent "
                f"axis specs: {found.spec} and, of {flat.path(i)} of {flat.name}, of type "
                f"{flat.aval(i).str_short()}, {spec}: bring them to one with jax.reshard")
    for i, dim in enumerate(dims):
        if dim is None and any({*axes} & {*found.spec.axes(0)} for axes in flat.aval(i).splits):
            raise ValueError(
                "Unmapped values passed to vmap cannot be sharded along the mesh axis you are vmapping over. "
                f"Got {flat.path(i)} of {flat.name}, of type {flat.aval(i).str_short()}, and mapped axes "
                f"that are split over {found.spec}: reshard it, with jax.reshard")
    named = spmd_name if isinstance(spmd_name, tuple) else (spmd_name,)
    if spmd_name is not None and found.spec.axes(0) != named:
        raise ValueError("Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is "
                         f"allowed. Got {spmd_name=} and mapped axes of the arguments of {flat.name} that "
                         f"are split over {found.spec}: over Explicit axes leave it out, or name these")
    return found


def _place(flat: FlatFunction, i: int, x: Any, dim: int | None, target: Any, axis: MappedAxis,
           sums: bool) -> Any:
    if target is None:
        if dim is not None and sums:
            return x.sum(dim)
        if dim is not None:
            where = flat.out_path(i).removeprefix("the ").removeprefix("output")
            raise ValueError(f"{flat} has mapped output but out_axes is None: at vmap out_axes{where}, got "
                             f"axis spec None but output was batched on axis {dim}. It depends on a mapped "
                             "argument; give it an axis, or sum_match=True for the sum.")
        return x
    rank = len(aval_of(x).shape) + (dim is None)
    target = operator.index(target)
    if not -rank <= target < rank:
        raise ValueError(f"{flat}: out_axes: axis {target} is out of bounds for array of dimension {rank}: "
                         f"{flat.out_path(i)}, with its mapped axis")
    return place_axis(x, axis.size, dim, target % rank, axis.sharding)
