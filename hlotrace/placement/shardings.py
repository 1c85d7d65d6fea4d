"""Shardings as users give them: in pytrees, as bare PartitionSpecs under a mesh, as devices."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..core import programs
from ..core.array import Array
from ..core.avals import ShapedArray, Space, aval_of
from ..core.config import state
from ..core.jaxpr import Jaxpr
from ..core.pytrees import pytree
from ..core.trace import Tracer
from ..primitives.parallel.sharding import (
    InMemory, device_put_p, layout_constraint_p, mesh_cast_p, reshard as reshard_terms, reshard_p,
    sharding_constraint_p, summed, without_explicit_axes)
from ..primitives.programs.calls import jit_bind
from ..runtime.array_impl import own
from ..runtime.devices import placement, transfer, transfer_guards
from ..sharding.abstract import HOST, Sharding
from ..sharding.layout import Anywhere, Format, Layout
from ..sharding.mesh import Mesh, current_mesh, get_abstract_mesh, only_mesh
from ..sharding.named import NamedSharding, over_mesh_in_use
from ..sharding.spec import PartitionSpec

_T = TypeVar("_T")


def check_kind(value: Any, what: str, devices: bool = True, error: type[Exception] = TypeError) -> None:
    """`error` unless a user's value can be read as a Sharding; if `devices`, a Device can."""
    is_device = hasattr(value, "device_kind") and not isinstance(value, type)
    if not (value is None or isinstance(value, (Sharding, PartitionSpec, Format))
            or devices and (is_device or isinstance(value, Space))):
        if isinstance(value, Layout):
            raise ValueError(f"{what}: `jax.jit` does not accept device-local layouts directly. Create a "
                             f"`Format` instance of this layout, Format({value}, sharding), and give that")
        advice = ""
        if is_device:
            advice = "; write SingleDeviceSharding(device)"
        elif isinstance(value, str):
            advice = f"; write jax.devices({value.partition(':')[0]!r})[0] for one"
        elif isinstance(value, int):
            advice = f"; write jax.devices()[{value}] for one"
        elif isinstance(value, Mesh):
            advice = "; write NamedSharding(mesh, PartitionSpec(...))"
        if not devices:
            raise error(f"{what} leaf specifications are expected to be Shardings, PartitionSpec instances "
                        f"or None, but got {value!r}{advice}")
        raise error(f"{what}: expected a Sharding, a PartitionSpec, a Device or None, got {value!r}{advice}")


def check_targets(targets: Any, what: str) -> None:
    """ValueError for a pytree with what says no place, as a PartitionSpec does where there is no mesh."""
    for value in pytree.tree_leaves(targets):
        check_kind(value, what, error=ValueError)
        if isinstance(value, PartitionSpec) and current_mesh() is None:
            raise ValueError(f"{what}: {value} names axes of a mesh, and there is no mesh in context: enter "
                             "one with jax.set_mesh(mesh), or pass NamedSharding(mesh, spec)")


def as_sharding(value: Any, what: str, laid_out: bool = False, error: type[Exception] = TypeError,
                no_mesh: type[Exception] = RuntimeError) -> Any:
    """The Sharding that a user's value means; None for None.  `what` names the value in errors.

    If `laid_out`, that of a Format is in its layout (see `Sharding.in_layout`), or is an `Anywhere`.

    Raises:
        NotImplementedError: otherwise, for a layout that is not the order of the axes.
        error: for what means none.
        no_mesh: for a PartitionSpec where no mesh is in use.
    """
    if isinstance(value, Space):
        return InMemory(HOST if value is Space.Host else None, value)
    check_kind(value, what, error=error)
    if value is None or isinstance(value, Sharding):
        return value
    if isinstance(value, Format):
        return _in_layout(value) if laid_out else _sharding_of(value, what)
    if isinstance(value, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise no_mesh(f"{what}: {value} requires a non-empty mesh in context, and there is no mesh in "
                          "context. Enter one with set_mesh(mesh), or pass NamedSharding(mesh, spec).")
        return NamedSharding(mesh, value)
    return placement.on_device(value)


def _sharding_of(value: Format, what: str) -> Sharding | None:
    """The sharding of a Format whose layout is the device's own."""
    layout = value.layout
    if (layout is None or layout is Layout.AUTO or layout.default
            or layout == Layout(range(len(layout.major_to_minor)))):
        return value.sharding
    raise NotImplementedError(f"{what}: {layout}: a value inside of a program has the layout that the "
                              "compiler chooses; experimental.layout.with_layout_constraint asks for "
                              "another. A Format is for device_put, jit's in_shardings and out_shardings, "
                              "and ShapeDtypeStruct.")


def _in_layout(value: Format) -> Any:
    layout = value.layout
    if layout is None or layout.default:
        return value.sharding
    return Anywhere() if value.sharding is None else value.sharding.in_layout(layout)


def flat_shardings(name: str, treedef: pytree.PyTreeDef, shardings: Any, free: bool = False,
                   laid_out: bool = False) -> list[Any]:
    """For each leaf of `treedef`, its Sharding or None, from a pytree prefix of shardings.  ValueError for
    one that leaves a dimension to the compiler, unless `free`; NotImplementedError for a Format with a layout
    of its own, unless `laid_out`."""
    given = pytree.flatten_axes(name, treedef, shardings)
    found = {key: as_sharding(s, name, laid_out) for key, s in {id(s): s for s in given}.items()}
    for s in found.values() if not free else ():
        if isinstance(s, NamedSharding) and PartitionSpec.UNCONSTRAINED in s.spec:
            dim = s.spec.index(PartitionSpec.UNCONSTRAINED)
            raise ValueError(f"{name}: {s.spec} leaves dimension {dim} to the compiler (UNCONSTRAINED), "
                             "which only with_sharding_constraint can: name the mesh axes that split it, or "
                             "None")
    return [found[id(s)] for s in given]


def with_sharding_constraint(x: _T, shardings: Any) -> _T:
    """The arrays of a pytree with a sharding that the compiler must give them at this point of a program.

    Outside of jit they are moved.  Over mesh axes of type Explicit it is a check: `reshard` changes a type.

    Args:
        shardings: a Sharding, a Format, or a PartitionSpec under a mesh, or a pytree of them that is a prefix
            of `x`.  One over an AbstractMesh is over the mesh in use.
    Raises:
        ValueError: where a dimension does not divide, for None, and for an array that is committed to other
            devices.
        TypeError: for what is no sharding.
        AssertionError: where Explicit axes split a value otherwise.

    >>> mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    >>> spec = jax.NamedSharding(mesh, jax.P("x"))
    >>> jax.jit(lambda x: lax.with_sharding_constraint(x, spec) * 2)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    what = "with_sharding_constraint"
    leaves, treedef = pytree.tree_flatten(x)
    for s in pytree.tree_leaves(shardings):
        if hasattr(s, "device_kind"):
            raise TypeError(f"{what}: {s!r} is a device; pass a Sharding, or use device_put")
    if any(s is None for s in pytree.tree_leaves(shardings, lambda s: s is None)):
        raise ValueError(f"{what}: one of the shardings is None, which is not allowed: leave that value out, "
                         "or give it PartitionSpec.UNCONSTRAINED")
    flat = [over_mesh_in_use(s) for s in flat_shardings(f"{what} shardings", treedef, shardings, free=True,
                                                          laid_out=True)]
    for v, s in zip(leaves, flat):
        over = getattr(s, "mesh", None)
        if over is not None and over.auto_axes and any(name in over.explicit_axes for name in s._used):
            raise ValueError(f"The spec of NamedSharding passed to {what} can only refer to Auto axes of the "
                             f"mesh. Got spec={s.spec} and mesh={over}: jax.reshard divides over Explicit "
                             "ones")
        if s and getattr(v, "_committed", False) and v.sharding.device_set != s.device_set:
            raise ValueError(f"Received incompatible devices: {what} says {s}, and the array of type "
                             f"{aval_of(v).str_short()} is committed to {v.sharding}. device_put moves it.")
    return treedef.unflatten(constrained(leaves, flat, what, _constraint))


def _constraint(x: Any, *, sharding: Any) -> Any:
    """A value that types say to be split so is as it is: nothing is written into a program."""
    aval = aval_of(x)
    if isinstance(x, Tracer) and aval.explicit is not None and not sharding.mesh.auto_axes:
        return sharding_constraint_p.abstract_eval(aval, sharding=sharding) and x
    return sharding_constraint_p.bind(x, sharding=sharding)


def check_automatic(sharding: Any, what: str) -> None:
    """ValueError for a sharding over axes of a shard_map around: there each device has its own value."""
    manual = {name for name, _, kind in state.axis_env if kind != "vmap"}
    for axis in getattr(sharding, "_used", ()):
        if axis in manual:
            raise ValueError(f"{what}: {sharding.spec} names {axis!r}, a manual axis of the shard_map "
                             "around: inside of it each device has a value of its own, which has no "
                             "sharding over that axis")


def constrained(values: Sequence[Any], shardings: Sequence[Any] | None, what: str,
                bind: Callable[..., Any] | None = None) -> Sequence[Any]:
    """The values with their shardings, where there is one; `shardings` may be None.  `what` begins errors.

    By default, over Explicit axes they are resharded, over others constrained.
    """
    if shardings is None:
        return values
    results = []
    for v, s in zip(values, shardings):
        if s:
            aval = aval_of(v)
            check_automatic(s, what)
            v, s = _in_order(v, s, aval, what), s.in_layout(None)
            # within programs XLA pads what does not divide
            within = bind is _constraint and isinstance(v, Tracer) and without_explicit_axes(s)
            placement.check_fits(s, aval, functools.partial(placement.of_type, f"{what}: a value", aval),
                                 divides=not within)
            v = (bind or _binding(s))(v, sharding=s)
        results.append(v)
    return results


def _in_order(v: Any, sharding: Any, aval: ShapedArray, what: str) -> Any:
    """The value in the layout of a sharding, if it has one."""
    layout = sharding._layout
    if layout is None or layout is Layout.AUTO:
        return v
    layout.check_rank(what, aval.shape)
    return layout_constraint_p.bind(v, layout=layout)


def hinted(x: Any, sharding: Any) -> Any:
    """`x` with a sharding that its type need not say: in a program over Explicit axes they are as typed."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes and state.trace.staging:
        if sharding.mesh.auto_axes:
            return sharding_constraint_p.bind(x, sharding=sharding)
        if get_abstract_mesh().explicit_axes:
            return x
    return _binding(sharding)(x, sharding=sharding)


def _binding(sharding: Any) -> Callable[..., Any]:
    explicit = isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes
    return reshard_terms if explicit else sharding_constraint_p.bind


def reshard(xs: _T, out_shardings: Any) -> _T:
    """The arrays of a pytree, divided over Explicit mesh axes as `out_shardings` says.

    Args:
        out_shardings: a NamedSharding, or a PartitionSpec of the mesh in use, or a pytree of them that is a
            prefix of `xs`.
    Raises:
        ValueError: for axes that are Auto (see `with_sharding_constraint`), for None, and where a dimension
            does not divide.
        TypeError: for what is no such sharding.

    >>> mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    >>> with jax.set_mesh(mesh):
    ...     x = jax.reshard(jnp.arange(4), jax.P("x"))
    >>> jax.typeof(x)
    ShapedArray(int32[4@x])
    """
    leaves, treedef = pytree.tree_flatten(xs)
    flat = pytree.flatten_axes("reshard out_shardings", treedef, out_shardings)
    if None in flat:
        raise ValueError("Reshard should only be used with out_shardings which are non-None and have a "
                         "non-empty mesh. Got sharding None: leave that value out")
    return treedef.unflatten([_resharded(x, named(s, "reshard")) for x, s in zip(leaves, flat)])


def _resharded(x: Any, sharding: NamedSharding) -> Any:
    """`x` divided so over Explicit axes."""
    if aval_of(x).memory is Space.Host:     # where it stays
        sharding = sharding.with_memory_kind(HOST)
    return constrained([x], [sharding], "reshard", reshard_terms)[0]


def named(sharding: Any, what: str) -> Any:
    """The NamedSharding that an `out_sharding` means; None if that says nothing.  `what` begins errors.

    It divides over Explicit mesh axes alone: over others the compiler decides.
    """
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"{what}: out_sharding is a NamedSharding, or a PartitionSpec of the current mesh; "
                        f"got {sharding!r}")
    found = over_mesh_in_use(as_sharding(sharding, f"{what}: out_sharding", no_mesh=ValueError))
    for name in found._used if found else ():
        if name not in found.mesh.explicit_axes:
            kind = "Manual" if name in found.mesh.manual_axes else "Auto"
            raise ValueError(
                f"{what}: {found.spec} names mesh axis {name!r} of type {kind}; it divides over axes "
                "of type Explicit. Over Auto axes use lax.with_sharding_constraint (in jit) or "
                "device_put; jax.make_mesh(..., axis_types=(AxisType.Explicit,) * "
                f"{len(found.mesh.axis_names)}) makes a mesh of Explicit ones.")
    return found


def result_sharding(sharding: Any, what: str) -> Any:
    """The NamedSharding that the `out_sharding` of a new value means; None if it says nothing.  ValueError
    for one over another mesh than that in use."""
    found, inside = named(sharding, what), get_abstract_mesh()
    if found is None or not (found.mesh.explicit_axes or inside.explicit_axes):
        return None
    if not (inside.empty or any(found.mesh.same_axes(mesh) for mesh in (inside, current_mesh()))):
        raise ValueError(f"{what}: Context mesh {inside} should match the mesh of out_sharding, "
                         f"{found.mesh.abstract_mesh}: give a PartitionSpec, or enter it by set_mesh")
    return found if found.mesh.explicit_axes else None


def put(x: Any, sharding: Any) -> Any:
    """A tracer, on a device or over several; in the derivative its cotangent goes back to where it was."""
    if type(sharding) is InMemory:
        return device_put_p.bind(x, sharding=sharding, source=None)
    bind = functools.partial(device_put_p.bind, source=None)
    return constrained([summed(x)], [sharding], "device_put", bind)[0]


def _in_layout_of_memory(x: Any, layout: Layout) -> Any:
    if state.trace.staging or isinstance(x, Tracer) or aval_of(x).explicit and aval_of(x).explicit._terms:
        return layout_constraint_p.bind(x, layout=layout)
    if not isinstance(x, Array):
        raise ValueError("with_layout_constraint in eager mode can only be applied to jax.Arrays. Got "
                         f"{type(x)}; jnp.asarray makes one")
    from ..runtime.devices import layouts  # few arrays are in a layout of their own
    wanted = layouts.settled(x.sharding.in_layout(layout), aval_of(x),
                             "One of with_layout_constraint arguments")
    return transfer.move(x, wanted, getattr(x, "_committed", True))


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """The arrays of a pytree with a layout in memory that they must have at this point of a program, or now.

    Args:
        layouts: a Layout, or a pytree of them that is a prefix of `x`; None leaves a value to the compiler.
    Raises:
        ValueError: for what is no Layout or does not order the axes of its array, and for a value that is
            no Array.

    >>> from hlotrace.experimental.layout import Layout, with_layout_constraint
    >>> by_columns = Layout((1, 0))     # the first axis is the inner one
    >>> columns = jax.jit(lambda x: with_layout_constraint(x * 2, by_columns))
    >>> columns(jnp.ones((2, 3)))
    Array([[2., 2., 2.],
           [2., 2., 2.]], dtype=float32)
    """
    leaves, treedef = pytree.tree_flatten(x)
    results = []
    for leaf, layout in zip(leaves, pytree.flatten_axes("with_layout_constraint layouts", treedef, layouts)):
        if layout is not None and not isinstance(layout, Layout):
            raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                             f"{type(layout)}; a Format is for device_put and jit")
        if layout is not None and layout is not Layout.AUTO:
            leaf = _in_layout_of_memory(leaf, layout)
        results.append(leaf)
    return treedef.unflatten(results)


def _put_eagerly(x: Any, *, sharding: Any, **_: Any) -> Any:
    x = own(x)
    if type(sharding) is InMemory:
        sharding = x.sharding.with_memory_kind(sharding._kind).filled(x.ndim)
    return transfer.move(x, sharding) if isinstance(sharding, Sharding) else x


def _constrain(x: Any, *, sharding: Sharding) -> Any:
    x = own(x)
    sharding_constraint_p.abstract_eval(x.aval, sharding=sharding)
    if isinstance(sharding, NamedSharding) and PartitionSpec.UNCONSTRAINED in sharding.spec:
        sharding = _as_it_is(sharding, x)
    return transfer.move(x, sharding)


def _as_it_is(sharding: NamedSharding, x: Any) -> NamedSharding:
    """What the sharding leaves open is as the array is split, where that goes, else not split."""
    same_mesh = getattr(x.sharding, "mesh", None) == sharding.mesh
    now = x.sharding.spec if same_mesh else PartitionSpec()
    said = {name for dim, entry in enumerate(sharding.spec) if entry is not PartitionSpec.UNCONSTRAINED
            for name in sharding.spec.axes(dim)}
    entries = list(sharding.spec)
    for dim, entry in enumerate(entries):
        if entry is PartitionSpec.UNCONSTRAINED:
            names = now.axes(dim) if dim < len(now) else ()
            entries[dim] = None if said.intersection(names) else names or None
    return sharding.with_spec(PartitionSpec(*entries))


def _reshard(x: Any, *, sharding: NamedSharding) -> Any:
    """Moved; if a type names no devices, they are the array's, those of the mesh in use, or the only ones."""
    x = own(x)
    reshard_p.abstract_eval(x.aval, sharding=sharding)
    sharding = sharding.filled(x.ndim)
    for mesh in (sharding.mesh, getattr(x.sharding, "mesh", None), current_mesh(), only_mesh(sharding.mesh)):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            sharding = sharding.update(mesh=mesh.update(axis_types=sharding.mesh.axis_types))
            if x.sharding._terms == sharding._terms == frozenset() or x.sharding.is_equivalent_to(
                    sharding, x.ndim):
                with transfer_guards.computing():
                    return transfer.move(x, sharding)
            return jit_bind(_resharding(sharding, x.aval), [x])[0]      # no device has the value to move
    raise ValueError(f"reshard: {sharding} names no devices, and there is no such mesh in use: enter one "
                     "with set_mesh(mesh), or pass NamedSharding(mesh, spec)")


@functools.lru_cache(256)
def _resharding(sharding: NamedSharding, aval: ShapedArray) -> Jaxpr:
    """The program that reshards an array of this type."""
    return programs.trace_closed(lambda x: [reshard_p.bind(x, sharding=sharding)], [aval], "reshard")


def _cast(x: Any, *, mesh: Mesh) -> Any:
    """The array over its mesh with axes of other types."""
    x = own(x)
    sharding = x.sharding
    if not isinstance(sharding, NamedSharding) or sharding.mesh.shape_tuple != mesh.shape_tuple:
        return x
    return transfer.move(x, sharding.update(mesh=sharding.mesh.update(axis_types=mesh.axis_types)))


device_put_p.impl_rule = _put_eagerly
sharding_constraint_p.impl_rule, mesh_cast_p.impl_rule, reshard_p.impl_rule = _constrain, _cast, _reshard
