"""custom_partitioning: a program of which the user says what each device does; shard_alike: two values of
one sharding."""
from ...core.jaxpr import eval_jaxpr
from ..arrays.shape import front, mapped
from ..common import Primitive


def _lower(ctx, eqn, *names):
    """XLA calls `partitioner`, which is among the `inspections` of the module, while it compiles."""
    module, p = ctx.module, eqn.params
    if module.partition is None or len(module.partition.devices) == 1 or module.manual[1]:
        return ctx.inline(p["jaxpr"], names)
    avals, out_avals = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    number = len(module.inspections)
    module.inspections.append((p["partitioner"], (avals, out_avals)))
    return ctx.custom_call("hlotrace_partitioning", names, avals, out_avals, config=f"inspection {number}",
                           api_version=2, rule=p["partitioner"].rule(module.partition.mesh, avals, out_avals))


custom_partitioning_p = Primitive(
    "custom_partitioning", multiple_results=True,
    abstract_eval=lambda *avals, jaxpr, partitioner: jaxpr.out_avals, lower=_lower, says_sharding=True,
    impl_rule=lambda *args, jaxpr, partitioner: eval_jaxpr(jaxpr, (), *args))


def _alike_abstract_eval(x, y):
    if x.shape != y.shape:
        raise ValueError("The leaves shapes of `x` and `y` should match. Got `x` leaf shape: "
                         f"{x.shape} and `y` leaf shape: {y.shape}")
    explicit = x.explicit or y.explicit
    return [x.update(sharding=explicit), y.update(sharding=explicit)] if explicit else [x, y]


def _alike_lower(ctx, eqn, *names):
    if ctx.module.partition is not None and not ctx.module.manual[1]:
        ctx.module.groups += 1
        for name, v in zip(names, eqn.invars):
            ctx.emit(f"sdy.sharding_group {name} group_id={ctx.module.groups - 1} : {v.aval.mlir}", 0)
    return list(names)


def _alike_jvp(primals, tangents):
    outs = shard_alike_p.bind(*primals)
    if None in tangents:
        return outs, list(tangents)
    return outs, shard_alike_p.bind(*tangents)


def _alike_batching(axis, args, dims):
    args = [mapped(a, axis) if d is None else a for a, d in zip(front(args, dims), dims)]
    return shard_alike_p.bind(*args), [0, 0]


shard_alike_p = Primitive("shard_alike", multiple_results=True, abstract_eval=_alike_abstract_eval,
                          lower=_alike_lower, jvp=_alike_jvp,
                          transpose=lambda cts, x, y: list(cts) if None in cts else shard_alike_p.bind(*cts),
                          batching=_alike_batching, says_sharding=True)
