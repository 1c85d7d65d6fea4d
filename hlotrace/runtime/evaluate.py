"""Eager evaluation: a primitive bound outside every trace is compiled for its operands' avals and run."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core import errors
from ..core.avals import ShapedArray
from ..core.caches import ContextCache, LRUCache
from ..core.config import config, state
from ..core.effects import Debug, Effect
from ..core.jaxpr import Jaxpr, dce, sub_jaxprs
from ..core.jaxpr_trace import JaxprTrace, may_trace
from ..core.primitive import Primitive, fact_of
from ..core.trace import EVAL, Tracer, set_evaluator
from ..core.watched import ran, watched
from ..lowering.result_memory import with_memories
from ..primitives.programs.callbacks import CALLBACKS, checked
from ..sharding.mesh import set_mesh
from . import binding, callback_guard
from .array_impl import ArrayImpl, as_array, from_numpy, own
from .devices import client, placement
from .executables import progress, runtime_checks
from .executables.ready import in_place, look_at, ready
from .processes import fork_safety, shutdown

if TYPE_CHECKING:
    from ..lowering.lowered import Lowered
    from ..sharding.abstract import Sharding
    from ..sharding.partition import Partition
    from .executables.executable import Executable
    Where: TypeAlias = Partition | binding.Device       # what a program runs on

_applications = ContextCache(4096)    # of primitives, compiled
_ready = LRUCache(4096)     # the same, by the types of operands where they are, parameters and options
_programs = ContextCache(512)       # compiled; with those that primitives hold, which may be new on each call


def device_assignment(arrays: Sequence[Any], requested: Sequence[Sharding | None] | None = None,
                      outs: Sequence[Sharding | None] | None = None, meshes: Sequence[Any] = (),
                      names: Callable[[int], str] | None = None) -> tuple[Where, bool]:
    """(device or Partition, is it more than a default?) for a computation on these arrays.

    Committed arrays decide, the shardings `requested` for inputs and `outs` for results, and the `meshes`
    that the program names; ValueError if they disagree.  Otherwise the default device is used.
    """
    names = names or "argument {}".format
    ins = [committed_sharding(a) for a in arrays]
    if requested is not None:
        _check_asked(arrays, ins, requested, names)
        ins = [_joined(given, wanted) for given, wanted in zip(ins, requested)]
    found = {s for s in ins if s is not None}
    if not found and not meshes and not any([s is not None for s in outs or ()]):
        return client.default_device(), False
    if len(found) == 1 and not meshes and not outs:
        only, = found
        if type(only) is placement.SingleDeviceSharding and only._kind is None and only._layout is None:
            return only._device, True
    from .executables.spmd import partition_of
    return partition_of(arrays, ins, outs, meshes, names), True


def committed_sharding(x: ArrayImpl) -> Sharding | None:
    """The sharding that an argument, or a ShapeDtypeStruct in place of one, is committed to, or None."""
    if type(x) is ArrayImpl:
        return x._buf._sharding._own if x._committed else None
    if isinstance(x, (np.ndarray, ShapedArray)):
        return None
    sharding = getattr(x, "placed", getattr(x, "sharding", None))
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or hasattr(mesh, "devices"):
        return sharding
    from ..sharding.named import over_mesh_in_use
    found = over_mesh_in_use(sharding)
    return found and found.in_layout(sharding and sharding._layout)


def check_mesh_in_use(places: Sequence[Any], avals: Sequence[Any], names: Callable[[int], str],
                      taker: Callable[[int], str]) -> None:
    """Are committed arguments over the devices of the mesh that `set_mesh` said, and typed by its axes?

    Args:
        places: the arguments' shardings, None for one that is not committed.
        taker: for the number of an argument, the primitive that takes it; "" where none does.
    Raises:
        ValueError: if not.
    """
    mesh = state.mesh_to_run_on
    for i, (s, aval) in enumerate(zip(places, avals)):
        if not s:
            continue
        if s.device_set != set(mesh._devices):
            ids, wanted = ([d.id for d in devices] for devices in (s._devices, mesh._devices))
            platform = mesh._devices[0].platform.upper()
            raise ValueError(f"Received incompatible devices for jitted computation. Got {names(i)} with "
                             f"shape {aval.str_short()} and with device ids {ids} on platform {platform} and "
                             f"jit's context mesh with device ids {wanted} on platform {platform}. Move it "
                             "there with device_put")
        of = getattr(s, "mesh", None)       # of other axis types in auto_axes, and in its derivative
        if of is not None and of.shape_tuple != mesh.shape_tuple and (
                of.explicit_axes or mesh.explicit_axes) and (what := taker(i)):
            raise ValueError(f"For primitive {what}, context mesh {mesh.abstract_mesh} should match the aval "
                             f"mesh {of.abstract_mesh} for shape {aval.str_short()}, of {names(i)}. Move it "
                             "to the mesh in use with device_put or reshard")


def _joined(given: Any, wanted: Any) -> Any:
    """The sharding of an input that has one, or None, and the one requested for it, or None."""
    if wanted is None or given is None:
        return given if wanted is None else wanted
    layout = wanted._layout
    if given._layout is not None and (layout is None or _met(wanted, given)):
        layout = given._layout      # it may say more than what was requested
    return (wanted or given).in_layout(layout)


def _met(wanted: Any, given: Sharding) -> bool:
    """Is an array of the sharding `given` in the layout that is requested, if one is?"""
    layout = wanted._layout
    return layout is None or layout == given._layout or given._layout is not None and layout.is_met_by(
        given._layout)


def _check_asked(arrays: Sequence[ArrayImpl], held: Sequence[Sharding | None],
                 requested: Sequence[Sharding | None], names: Callable[[int], str]) -> None:
    for i, (a, given, wanted) in enumerate(zip(arrays, held, requested)):
        if type(a) is ArrayImpl and wanted and a._buf._sharding._own._kind != wanted._kind:
            raise ValueError(f"{names(i)}: Memory kinds passed to jax.jit does not match memory kind on the "
                             f"respective arg. Got jit memory kind: {wanted.memory_kind}, arg memory kind: "
                             f"{a.sharding.memory_kind} for arg type: {a.aval.str_short()}. Move it with "
                             "device_put")
        if given is None or wanted is None:
            continue
        if type(a) is ArrayImpl and not _met(wanted, given):
            raise ValueError(f"{names(i)}: Layout passed to jit does not match the layout on the respective "
                             f"arg. Got jit layout: {wanted._layout},\narg layout: {a.format.layout} for arg "
                             f"type: {a.aval.str_short()}. Move it with device_put to the format of the "
                             "compiled program, or lower with a ShapeDtypeStruct in its place.")
        if wanted and not given.in_layout(None).same_placement(wanted.in_layout(None), a.ndim):
            raise ValueError(f"{names(i)}: Sharding passed to jit does not match the sharding on the "
                             f"respective arg. Got jit sharding: {wanted},\narg sharding: {given}. "
                             "Move it with device_put, or leave its entry of in_shardings at None.")


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run one primitive on concrete operands."""
    if primitive.impl_rule is not None:
        return primitive.impl_rule(*args, **params)
    key = None
    try:
        types: list[Any] = [primitive]
        operands = look_at(args, types)
        if operands is None:
            raise LookupError
        if params:
            types += params
            types += params.values()
        types.append(state.trace_key)
        key = (*types,)
        entry = _ready.entries[key]
        run, handlers, aval, signature, committed, executable = entry
        found = run(*operands) if handlers is None else run(operands).consume_with_handlers(handlers)
        if aval is None:
            return executable.wrapped(found, committed)
        result = ArrayImpl(aval, found[0], committed, signature)
        if watched:
            ran(entry, operands, result)
        return result
    except (LookupError, TypeError, binding.JaxRuntimeError):    # the common case does not hold: look closely
        results = _evaluate_carefully(primitive, args, params, key)
    return results if primitive.multiple_results else results[0]


def evaluate_compiled(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Compile the lowering of one primitive for concrete operands, and run it, whatever else it says of how
    it runs."""
    results = _evaluate_carefully(primitive, args, params)
    return results if primitive.multiple_results else results[0]


def _evaluate_carefully(primitive: Primitive, args: Sequence[Any], params: dict[str, Any],
                        ready_key: Any = None) -> Any:
    """Under `ready_key` it is found next time, if it can be."""
    arrays = [as_array(a) for a in args]
    avals = [a.aval for a in arrays]
    key = (primitive, *avals, *params.items())
    table = _programs if any(sub_jaxprs(params)) else _applications
    passed = None
    if config.jax_debug_key_reuse:
        from ..transforms import key_reuse
        if key_reuse.is_watched(avals):
            passed, key = key_reuse.use_by(primitive, arrays, avals, params), ("watched", *key)
    found = primitive.meshes_of(params)
    places = tuple([committed_sharding(a) for a in arrays])
    placed = any(place is not None for place in places)
    if state.mesh_to_run_on is not None and not placed and not any(hasattr(m, "devices") for m in found):
        found = (state.mesh_to_run_on, *found)
    if found or placed:
        # what has the other key is called without a look at the shardings of operands
        key = (places, *key)
    executable = table.use(key)
    if executable is None:
        if placed and state.mesh_to_run_on is not None:
            check_mesh_in_use(places, avals, "argument {}".format, lambda _: primitive.name)
        where, _ = device_assignment(arrays, meshes=found)
        executable = table.keep(key, _compile_primitive(primitive, avals, params, where))
    results = executable(*executable.take(arrays))
    if passed is not None:
        passed(results)
    elif ready_key is not None and table is _applications and not state.check_floats:
        committed = in_place(executable, args)
        if committed is not None:
            _ready.keep(ready_key, ready(executable, args, committed, not primitive.multiple_results))
    return results


def _compile_primitive(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any],
                       where: Where) -> Executable:
    may_trace(primitive.name)
    with progress.stage("traced", primitive.name):
        trace = JaxprTrace(EVAL, primitive.name)
        tracers = [trace.input(a) for a in avals]
        out = trace.process(primitive, tracers, params)
        jaxpr = trace.finish(out if primitive.multiple_results else [out])
        trace.alive = False
    holds_programs = any(True for _ in sub_jaxprs(params))
    return compile_program(jaxpr, with_memories(jaxpr, where), lines=holds_programs)


def compile_program(jaxpr: Jaxpr, where: Where, donated: Sequence[int] = (),
                    compiler_options: Mapping[str, Any] | None = None, lines: bool = True) -> Executable:
    """Lower and compile a program without constvars for a device or a Partition; `lines`: see `Lowered`."""
    lowered, device = lower_for(jaxpr, where, donated=donated, lines=lines)
    if not hasattr(device, "client"):
        raise ValueError(f"{jaxpr.name} runs over an AbstractMesh, which has no devices: pass it a Mesh, or "
                         "arguments that lie over one")
    if not lowered.partition and config.hlotrace_tiered_compile != "off":
        from .executables import tiers
        if tiers.wanted(lowered):
            return tiers.TieredExecutable(lowered, device, compiler_options)
    return runtime_checks.compile_lowered(lowered, device, compiler_options)


def lower_for(jaxpr: Jaxpr, where: Where, *, platform: str | None = None, donated: Sequence[int] = (),
              **options: Any) -> tuple[Lowered, binding.Device]:
    """(Lowered, a device) of a program for a device or a Partition; `options` as for `lower`."""
    for aval in jaxpr.in_avals:
        if aval.dtype.kind == "T":
            raise TypeError(f"{jaxpr.name}: a value of type {aval.str_short()} is not a valid JAX type here: "
                            "arrays of texts are kept and given back, and no operation takes them")
    device: Any = where
    if isinstance(where, tuple):
        device = where.devices[0]
        outs = where.outs or (None,) * len(jaxpr.outvars)
        if where.mesh is not None and (where.mesh.explicit_axes or any(a.explicit for a in jaxpr.out_avals)):
            from ..sharding.named import of_type  # few programs are over Explicit axes

            # where no type and no equation is over a mesh, the shardings of inputs decide
            named = fact_of(jaxpr, "meshes")
            if state.mesh_to_run_on or named or any([a.mesh for a in jaxpr.in_avals]):
                outs = tuple([s or of_type(a, where.mesh, named) for s, a in zip(outs, jaxpr.out_avals)])
        where = where._replace(outs=outs)
        options["partition"] = where
    if platform is None:
        platform = client.platform_of(device if hasattr(device, "platform") else client.default_device())
    # a program that cannot run twice tells at once which operation gave a NaN
    adding = runtime_checks.float_checks() if state.check_floats and (donated or jaxpr.effects) else ()
    if logger := progress.loggers.get("types"):
        progress.log("Compiling jit(%s) with global shapes and types %s.", jaxpr.name, tuple(jaxpr.in_avals),
                     logger=logger)
    with progress.stage("lowered", jaxpr.name):
        return runtime_checks.lowered_to_tell(jaxpr, adding, platform=platform, donated=donated,
                                              **options), device


def run_program(jaxpr: Jaxpr, args: Sequence[Any], donated: Sequence[int] = (),
                outs: Sequence[Sharding | None] | None = None) -> list[ArrayImpl]:
    """Run a program without constvars on concrete operands, compiled on first use: a list of arrays.

    `outs` are shardings of the results, or None where they follow from the operands.
    """
    for a in args:
        if isinstance(a, Tracer):
            raise errors.leaked_tracer(a)
    arrays = list(args)
    for i, a in enumerate(args):
        if type(a) is not ArrayImpl:
            arrays[i] = own(a) if i in donated else as_array(a)
    where, _ = device_assignment(arrays, outs=outs, meshes=fact_of(jaxpr, "meshes"))
    key = jaxpr, where, donated
    entry = _programs.use(key)
    if entry is None:
        pruned, used = dce(jaxpr, keep_invars=False)
        kept = [i for i, u in enumerate(used) if u]
        if isinstance(where, tuple):
            where = where._replace(ins=tuple([where.ins[i] for i in kept]))
        where = with_memories(pruned, where)
        executable = compile_program(pruned, where, tuple(n for n, i in enumerate(kept) if i in donated))
        entry = _programs.keep(key, (executable, kept))
    executable, kept = entry
    return executable(*executable.take([arrays[i] for i in kept]))


def run_callback(*args: Any, function: Callable[..., Any], out_avals: Sequence[ShapedArray],
                 effect: Effect | None, **_: Any) -> list[ArrayImpl]:
    """Call a Python function at once, on NumPy values; its checked results as arrays."""
    try:
        with set_mesh(None) if state.mesh_to_run_on else contextlib.nullcontext():      # as beside a program
            results = function(*[as_array(a)._numpy() for a in args])
        values = [checked(r, a, i, function) for i, (r, a) in enumerate(zip(results, out_avals, strict=True))]
    except Exception as error:
        if config.hlotrace_callback_errors == "own" or isinstance(effect, Debug):
            raise
        raise callback_guard.surfaced(error) from None
    for value in values if state.check_floats else ():
        runtime_checks.check_value(value, "io_callback" if effect else "pure_callback")
    return [from_numpy(value, aval=a) for value, a in zip(values, out_avals)]


set_evaluator(evaluate)
fork_safety.watch()
shutdown.watch()
for primitive in CALLBACKS:
    primitive.impl_rule = run_callback
