"""Functions over mesh axes of other types: auto_axes, explicit_axes; no_collectives; smap."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ...core.avals import aval_or_none
from ...core.errors import check_callable, did_you_mean
from ...core.pytrees import pytree
from ...core.surface.boundary import filtered
from ...placement.out_sharding import with_out_sharding
from ...primitives.parallel.sharding import cast
from ...sharding.mesh import AbstractMesh, AxisType, Mesh, current_mesh, get_abstract_mesh, using
from ...sharding.spec import PartitionSpec
from .shard_map import shard_map

_INFER = object()


def _decorated(make: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
    """`make(f, **options)`, which without f is a decorator."""
    @functools.wraps(make)
    def begin(f: Callable[..., Any] | None = None, /, **options: Any) -> Callable[..., Any]:
        if f is None:
            return functools.partial(begin, **options)
        check_callable(f)
        return functools.wraps(f)(filtered(make(f, **options)))
    return begin


def _retyped(what: str, axes: Any, kind: AxisType) -> Mesh | AbstractMesh:
    """The mesh in use with these axes, all but Manual ones by default, of type `kind`.  ValueError where
    there is no mesh, or it has no such axes."""
    mesh = get_abstract_mesh()
    chosen = (axes,) if isinstance(axes, str) else tuple(axes or ())
    for axis in chosen:
        if axis not in mesh.axis_names:
            raise ValueError(f"{what}: axes names {axis!r}, and the axes of the current mesh are "
                             f"{mesh.axis_names}{did_you_mean(axis, mesh.axis_names)}; enter one with "
                             "set_mesh(mesh)")
        if axis in mesh.manual_axes:
            raise ValueError(f"{what}: axes names {axis!r}, a manual axis of the shard_map around, where "
                             "each device has a value of its own")
    wanted = set(chosen or mesh.axis_names) - {*mesh.manual_axes}
    types = [kind if name in wanted else old for name, old in zip(mesh.axis_names, mesh.axis_types)]
    return over_devices(mesh).update(axis_types=types)


def over_devices(mesh: AbstractMesh) -> Mesh | AbstractMesh:
    """The mesh in use if it has devices and these axes, of these types; else `mesh`."""
    found = current_mesh()
    if isinstance(found, Mesh) and found.shape_tuple == mesh.shape_tuple:
        return found.update(axis_types=mesh.axis_types)
    return mesh


def _cast(x: Any, mesh: Mesh | AbstractMesh) -> Any:
    """The arrays of a pytree over axes of other types."""
    return pytree.tree_map(lambda v: v if aval_or_none(v) is None else cast(v, mesh), x)


@_decorated
def auto_axes(f: Callable[..., Any], *, axes: Any = None, out_sharding: Any = None) -> Callable[..., Any]:
    """`f` with the compiler deciding over some mesh axes: in it they are Auto, and types do not name them.

    Args:
        axes: names of axes of the current mesh, all by default.
        out_sharding: the sharding of the results, a PartitionSpec of the current mesh or a NamedSharding, or
            a prefix of the results of them; each call may give another.
    Raises:
        TypeError: where neither gives `out_sharding`.
        ValueError: for what is no axis of the mesh.

    >>> mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    >>> with jax.set_mesh(mesh):
    ...     x = jax.device_put(jnp.arange(4.), jax.P("x"))
    ...     jax.typeof(jax.sharding.auto_axes(lambda x: x[::-1] + x, out_sharding=jax.P("x"))(x))
    ShapedArray(float32[4@x])
    """
    def call(*args: Any, out_sharding: Any = out_sharding, **kwargs: Any) -> Any:
        now = get_abstract_mesh()
        if set((axes,) if isinstance(axes, str) else axes or now.axis_names) == {*now.auto_axes}:
            return f(*args, **kwargs)
        mesh = _retyped("auto_axes", axes, AxisType.Auto)
        if out_sharding is None:
            raise TypeError("auto_axes: out_sharding is missing: give the sharding of the results, as in "
                            "out_sharding=P('x')")
        with using(mesh):
            outs = f(*_cast(args, mesh), **_cast(kwargs, mesh))
        leaves, treedef = pytree.tree_flatten(outs)
        wanted = pytree.flatten_axes("auto_axes out_sharding", treedef, out_sharding)
        for s in wanted:
            over, inside = getattr(s, "mesh", None), get_abstract_mesh()
            if over is not None and not over.same_axes(inside):
                raise ValueError(f"auto_axes: Context mesh {inside} must match the mesh passed to shardings "
                                 f"{over.abstract_mesh}: give a PartitionSpec")
        return treedef.unflatten([with_out_sharding(x, s, "auto_axes") for x, s in zip(leaves, wanted)])
    return call


@_decorated
def explicit_axes(f: Callable[..., Any], *, axes: Any = None, in_sharding: Any = None) -> Callable[..., Any]:
    """`f` with mesh axes in types: there they are Explicit, and arguments are divided by `in_sharding`.

    Args:
        axes: names of axes of the current mesh, all by default.
        in_sharding: the sharding of the arguments, a PartitionSpec of the current mesh or a NamedSharding, or
            a prefix of the tuple of arguments of them; each call may give another.
    Raises:
        TypeError: where neither gives `in_sharding` and there are arguments.
        ValueError: for what is no axis of the mesh.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))):
    ...     jax.sharding.explicit_axes(lambda x: print(jax.typeof(x)), in_sharding=jax.P("x"))(jnp.zeros(2))
    float32[2@x]
    """
    def call(*args: Any, in_sharding: Any = in_sharding, **kwargs: Any) -> Any:
        mesh, outside = _retyped("explicit_axes", axes, AxisType.Explicit), over_devices(get_abstract_mesh())
        if in_sharding is None and args:
            raise TypeError("explicit_axes: in_sharding is missing: give the sharding of the arguments, as "
                            "in in_sharding=P('x')")
        with using(mesh):
            leaves, treedef = pytree.tree_flatten(args)
            given = pytree.flatten_axes("explicit_axes in_sharding", treedef, in_sharding)
            args = treedef.unflatten([with_out_sharding(x, s, "explicit_axes")
                                      for x, s in zip(leaves, given)])
            outs = f(*args, **kwargs)
        return _cast(outs, outside)
    return call


@contextlib.contextmanager
def no_collectives(axes: set[str] | frozenset[str]) -> Iterator[None]:
    """Context manager in which devices exchange nothing over these mesh axes.

    Only the empty set can be promised here; NotImplementedError for others.

    >>> with jax.sharding.no_collectives(frozenset()):
    ...     pass
    """
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"no_collectives: axes is a set of names of mesh axes, got {axes!r}")
    if axes:
        raise NotImplementedError(f"no_collectives({set(axes)!r}): the compiler decides about these axes, "
                                  "and may exchange; in a shard_map there are the collectives that the "
                                  "program writes, and no others")
    yield


@_decorated
def smap(f: Callable[..., Any], *, in_axes: Any = _INFER, out_axes: Any,
         axis_name: str) -> Callable[..., Any]:
    """`f` on the devices along one axis of the current mesh, each with its part: `shard_map` of one axis.

    Args:
        in_axes: which axis of the arguments is cut, an int, or None where all devices have the same; or a
            pytree of these that is a prefix of the tuple of arguments.
        out_axes: the same of the results.
        axis_name: the axis of the mesh, which `f` may name in collectives.
    Raises:
        TypeError: without `in_axes`.
        ValueError: where there is no mesh.

    >>> f = jax.smap(lambda x: x - lax.pmean(x, "x"), in_axes=0, out_axes=0, axis_name="x")
    >>> with jax.set_mesh(jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])):
    ...     f(jax.device_put(jnp.array([1., 3.]), jax.P("x")))
    Array([-1.,  1.], dtype=float32)
    """
    if in_axes is _INFER:
        raise TypeError("smap: in_axes is missing: say which axis of each argument is cut, as in in_axes=0")
    if not isinstance(axis_name, str):
        raise TypeError(f"smap: axis_name is the name of one axis of the mesh, got {axis_name!r}")

    def spec(axis: int | None) -> PartitionSpec:
        if axis is not None and not (isinstance(axis, int) and axis >= 0):
            raise (ValueError if isinstance(axis, int) else TypeError)(
                f"smap: in_axes and out_axes hold axes counted from 0, or None; got {axis!r}")
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def call(*args: Any) -> Any:
        mesh = current_mesh()
        if mesh is None or mesh.empty:
            raise ValueError("smap: there is no mesh: enter one with set_mesh(mesh)")
        ins, outs = (pytree.tree_map(spec, axes, is_leaf=lambda x: x is None) for axes in (in_axes, out_axes))
        return shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, axis_names=frozenset([axis_name]))(*args)
    return call
