"""sharding_constraint: how a value lies over devices from here on.  inspect_sharding: how it does, told when compiled."""
from ..core.effects import INSPECTION
from ..sharding.named import as_named
from ..sharding.single import SingleDeviceSharding
from ..sharding.spec import PartitionSpec
from .common import Primitive
from .shape import linear_jvp


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
    meshes=lambda params: () if isinstance(params["sharding"], SingleDeviceSharding) else
    (getattr(params["sharding"], "mesh", params["sharding"]),))
sharding_constraint_p.jvp = linear_jvp(sharding_constraint_p)


def _inspect(ctx, eqn, x):
    """What XLA tells it is known to the runtime, which fills in a pointer to `callback` before it compiles the text."""
    module, aval = ctx.module, eqn.invars[0].aval
    number = len(module.inspections)
    module.inspections.append((eqn.params["callback"], aval))
    if module.partition is not None:
        ctx.custom_call("InspectSharding", [x], [aval], [aval], config=f"inspection {number}", api_version=1, effect=True)
    return []


def _inspect_batch(axis, args, dims, **params):
    return inspect_sharding_p.bind(*args, **params), []


def _inspect_jvp(primals, tangents, **params):
    return inspect_sharding_p.bind(*primals, **params), []


inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, typ=lambda x, *, callback: [], lower=_inspect,
                               effects=lambda params: (INSPECTION,), jvp=_inspect_jvp, batch=_inspect_batch)
