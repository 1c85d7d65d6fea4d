"""call_exported: a function that was exported, called in another program; by_platform: one program lowered
for several."""
import functools

from ...core.avals import ShapedArray
from ...core.jaxpr import Eqn, Jaxpr, Var
from ...core.platforms import platform_named
from ...sharding.partition import Partition
from ..common import Primitive, np
from .cond_while import several
from .scan import batch_one_by_one


def _abstract_meshes(params):
    exported = params["exported"]
    return tuple(dict.fromkeys(s.mesh for s in (*exported._in_named_shardings, *exported._out_named_shardings)
                               if s))


def _lower(ctx, eqn, *names):
    """Its functions are written into the module under new names, once for each types of operands; here one is
    called."""
    exported, avals, module = eqn.params["exported"], tuple([v.aval for v in eqn.invars]), ctx.module
    platform = exported._platform_index(ctx.platform)
    exported._check_devices(len(module.partition.devices) if module.partition else 1)
    key = exported, avals, module.manual
    if key not in module.functions:
        module.functions[key], texts, targets = exported._functions(avals, module)
        module.texts += texts
        module.targets.update(dict.fromkeys(targets))
    kept = exported.module_kept_var_idx
    names, types = [names[i] for i in kept], [avals[i].mlir for i in kept]
    if len(exported.platforms) > 1:
        names, types = [ctx.constant(platform, "int32"), *names], ["tensor<i32>", *types]
    outs = [v.aval.mlir for v in eqn.outvars]
    return ctx.emit(f"func.call @{module.functions[key]}({', '.join(names)}) : ({', '.join(types)}) -> "
                    f"({', '.join(outs)})", len(outs))


def _batching(axis, args, dims, *, exported):
    """The program has the shapes for which it was exported: it runs once for each element."""
    return batch_one_by_one(axis, args, dims, functools.partial(call_exported_p.bind, exported=exported),
                            exported.fun_name)


call_exported_p = Primitive(
    "call_exported", multiple_results=True,
    abstract_eval=lambda *avals, exported: exported._result_avals(avals), lower=_lower, batching=_batching,
    meshes=_abstract_meshes, says_sharding=True)


def _by_platform(ctx, eqn, index, *names):
    """A `case` over what the program is for each platform."""
    program, module = eqn.params["jaxpr"], ctx.module
    outs = [v.aval.mlir for v in eqn.outvars]
    saved, written = (module.platform, module.functions), {}
    branches = []
    for platform in eqn.params["platforms"]:
        module.platform, module.functions = platform, written.setdefault(platform, {})
        branches.append(ctx.region([], lambda _: (ctx.call(program, names), outs), isolated=False))
    module.platform, module.functions = saved
    return ctx.emit(f'"stablehlo.case"({index}) {several(*branches)} : (tensor<i32>) -> ({", ".join(outs)})',
                    len(outs))


# the first operand is the position of the platform among `platforms`, each a core.platforms.Platform
by_platform_p = Primitive("by_platform", multiple_results=True, lower=_by_platform,
                          abstract_eval=lambda index, *avals, jaxpr, platforms: jaxpr.out_avals)


def _for_platforms(program, platforms, texts):
    """The program for several platforms, for each of which it has one of `texts`: its first argument is the
    position of the one it runs on."""
    index, invars = Var(ShapedArray((), np.int32)), program.invars
    if len(set(texts)) == 1:
        return program.replace(invars=[index, *invars], arg_names=None)
    invars, outvars = ([Var(v.aval) for v in side] for side in (invars, program.outvars))
    first = tuple([platform_named(platforms[texts.index(t)]) for t in texts])
    eqn = Eqn(by_platform_p, [index, *invars], outvars, {"jaxpr": program, "platforms": first})
    return Jaxpr((), (), [index, *invars], [eqn], outvars, program.name)


def lower_for_platforms(program, where, platforms, lower):
    """What `lower(program, where, platform)`, a Lowered, is for platforms: of several, that of a program with
    one more argument, the first, the position of the platform it runs on; its text says so.  `where` is a
    Partition, or anything else for one device."""
    found, *others = [lower(program, where, platform) for platform in platforms]
    if not others:
        return found
    if isinstance(where, Partition):
        where = where._replace(ins=(None, *where.ins))
    program = _for_platforms(program, platforms, [lowered.text for lowered in (found, *others)])
    found = lower(program, where, platforms[0])
    found.text = found.text.replace("@main(%arg0: tensor<i32>",
                                    '@main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"}', 1)
    return found
