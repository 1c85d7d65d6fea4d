"""sharding_constraint: a value, and how it lies over devices from here on."""
from ..sharding.named import as_named
from ..sharding.single import SingleDeviceSharding
from ..sharding.spec import PartitionSpec
from .common import Primitive, linear_jvp


def _typ(x, *, sharding):
    sharding.shard_shape(x.shape)       # an error where it does not divide
    return x


def _lower(ctx, eqn, x):
    sharding, aval = eqn.params["sharding"], eqn.outvars[0].aval
    if ctx.module.partition is None or isinstance(sharding, SingleDeviceSharding):
        return x
    return ctx.emit(f"sdy.sharding_constraint {x} {ctx.module.sharding(sharding, aval)} : {aval.mlir}")


def _batch(axis, args, dims, *, sharding):
    """The mapped axis lies as vmap's `spmd_axis_name` says, or as the compiler likes."""
    (x,), (dim,) = args, dims
    if isinstance(sharding, SingleDeviceSharding):
        return sharding_constraint_p.bind(x, sharding=sharding), dim
    named = as_named(sharding, x.ndim - 1)
    entries = [*named.spec, *[None] * (x.ndim - 1 - len(named.spec))]
    free = PartitionSpec.UNCONSTRAINED if named.mesh.auto_axes else None
    entries.insert(dim, free if axis.spmd_name is None else axis.spmd_name)
    return sharding_constraint_p.bind(x, sharding=named.with_spec(PartitionSpec(*entries))), dim


sharding_constraint_p = Primitive(
    "sharding_constraint", typ=_typ, lower=_lower,
    transpose=lambda ct, x, *, sharding: [sharding_constraint_p.bind(ct, sharding=sharding)], batch=_batch,
    mesh=lambda params: None if isinstance(params["sharding"], SingleDeviceSharding) else
    getattr(params["sharding"], "mesh", params["sharding"]))
sharding_constraint_p.jvp = linear_jvp(sharding_constraint_p)
