"""Shardings as users give them: in pytrees, as bare PartitionSpecs under a mesh, as devices."""
from ..core import tree
from ..core.avals import aval_of
from ..core.config import state
from ..primitives.sharding import sharding_constraint_p
from ..runtime import placement, transfer
from ..runtime.array import as_array
from ..sharding.base import Sharding
from ..sharding.mesh import current_mesh
from ..sharding.named import NamedSharding
from ..sharding.spec import PartitionSpec


def check_kind(value, what):
    """TypeError unless a user's value can stand for a Sharding."""
    if not (value is None or isinstance(value, (Sharding, PartitionSpec)) or hasattr(value, "device_kind")):
        raise TypeError(f"{what}: expected a Sharding, a PartitionSpec, a Device or None, got {value!r}")


def as_sharding(value, what):
    """The Sharding that a user's value stands for; None for None.  `what` names the value in errors."""
    check_kind(value, what)
    if value is None or isinstance(value, Sharding):
        return value
    if isinstance(value, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise RuntimeError(f"{what}: {value} names axes of a mesh, and there is no mesh in context. Enter one with "
                               "set_mesh(mesh), or pass NamedSharding(mesh, spec).")
        return NamedSharding(mesh, value)
    return placement.on_device(value)


def flat_shardings(name, treedef, shardings):
    """For each leaf of `treedef`, its Sharding or None, from a pytree prefix of shardings."""
    return [as_sharding(s, name) for s in tree.flatten_axes(name, treedef, shardings)]


def with_sharding_constraint(x, shardings):
    """The arrays of a pytree, with the compiler told how they lie over the devices at this point.

    `shardings` is a Sharding, or a PartitionSpec under a mesh, or a pytree of them that is a prefix of `x`; None leaves
    a value to the compiler.  Outside of jit arrays are moved.  Raises ValueError where a dimension does not divide.
    """
    what = "with_sharding_constraint"
    leaves, treedef = tree.tree_flatten(x)
    for s in tree.tree_leaves(shardings):
        if hasattr(s, "device_kind"):
            raise TypeError(f"{what}: {s!r} is a device; pass a Sharding, or use device_put")
    flat = flat_shardings(f"{what} shardings", treedef, shardings)
    return treedef.unflatten(constrained(leaves, flat, what))


def check_automatic(sharding, what):
    """ValueError for a sharding over axes that belong to a shard_map here: there each device has its own value."""
    manual = {name for name, _, kind in state.axis_env if kind != "vmap"}
    for axis in getattr(sharding, "_used", ()):
        if axis in manual:
            raise ValueError(f"{what}: {sharding.spec} names {axis!r}, a manual axis of the shard_map around: inside of it "
                             "each device has a value of its own, which has no sharding over that axis")


def constrained(values, shardings, what):
    """The values, those constrained for which there is a sharding; `shardings` may be None.  `what` begins errors."""
    if shardings is None:
        return values
    results = []
    for v, s in zip(values, shardings):
        if s is not None:
            aval = aval_of(v)
            check_automatic(s, what)
            placement.check_divides(s, aval, f"{what}: a value of type {aval.str_short()}")
            v = sharding_constraint_p.bind(v, sharding=s)
        results.append(v)
    return results


reshard = with_sharding_constraint


def lay(x, sharding, what):
    """`laid`, for a sharding that is given."""
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"{what}: out_sharding is a NamedSharding, or a PartitionSpec of the current mesh; got {sharding!r}")
    return constrained([x], [as_sharding(sharding, f"{what}: out_sharding")], what)[0]


sharding_constraint_p.evaluate = lambda x, *, sharding: transfer.move(as_array(x), sharding)
