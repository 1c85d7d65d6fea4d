"""Eager evaluation: a primitive bound outside every trace is compiled for its operands' avals and run."""
import weakref

from ..core import errors
from ..core.config import config, state
from ..core.jaxpr import Jaxpr, close, dce
from ..core.trace import EVAL, JaxprTrace, Tracer, set_evaluator
from ..lowering.module import lower
from ..primitives.callbacks import callback_p, checked
from . import binding, client, execute
from .array import ArrayImpl, as_array, from_numpy

_primitive_cache: dict = {}
_KEPT = 8192
_program_cache = weakref.WeakKeyDictionary()


def placed(arrays):
    """(device, committed) for a computation on these arrays.

    Committed arrays decide; ValueError if they disagree.  Otherwise the default device is used.
    """
    device = None
    for i, a in enumerate(arrays):
        if a._committed:
            if device is not None and a.device != device:
                raise ValueError(f"Received incompatible devices for jitted computation: one argument is committed to "
                                 f"{device}, argument {i} of type {a.aval.str_short(True)} to {a.device}. Move them to "
                                 "one device with device_put.")
            device = a.device
    return (client.default_device(), False) if device is None else (device, True)


def buffers_on(arrays, device):
    """Their buffers, moved to `device` where they are elsewhere; raises on deleted arrays."""
    buffers = []
    for a in arrays:
        if a._buf.is_deleted():
            a.check_alive()
        if a.device != device:
            from .transfer import copy_to
            a = copy_to(a, device)
        buffers.append(a._buf)
    return buffers


def evaluate(primitive, args, params):
    """Run one primitive on concrete operands."""
    if primitive.evaluate is not None:
        return primitive.evaluate(*args, **params)
    try:
        avals = [None if a._committed else a.aval for a in args]
        key = (primitive, state.context_key, *avals, *params.items())
        executable = _primitive_cache[key]
        results = executable([a._buf for a in args])
    except (AttributeError, KeyError, binding.JaxRuntimeError):    # the common case does not hold: look closely
        results = _evaluate_carefully(primitive, args, params)
    return results if primitive.multiple_results else results[0]


def _evaluate_carefully(primitive, args, params):
    for a in args:
        if isinstance(a, Tracer):
            raise errors.leaked_tracer(a)
    arrays = [a if type(a) is ArrayImpl else as_array(a) for a in args]
    device, committed = placed(arrays)
    avals = [a.aval for a in arrays]
    key = (primitive, device if committed else state.context_key, *avals, *params.items())
    executable = _primitive_cache.get(key)
    if executable is None:
        executable = _primitive_cache[key] = _compile_primitive(primitive, avals, params, device)
        if len(_primitive_cache) > _KEPT:      # programs among the parameters may be new on each call
            del _primitive_cache[next(iter(_primitive_cache))]
    return executable(buffers_on(arrays, device), committed)


def _compile_primitive(primitive, avals, params, device):
    trace = JaxprTrace(EVAL, primitive.name)
    tracers = [trace.input(a) for a in avals]
    out = trace.process(primitive, tracers, params)
    jaxpr = trace.finish(out if primitive.multiple_results else [out])
    trace.alive = False
    return compile_program(jaxpr, device)


def compile_program(jaxpr, device, donated=(), compiler_options=None, result_names=()):
    """Lower and compile a program that has no constvars."""
    lowered = lower(jaxpr, platform=execute.platform_of(device), donated=donated, result_names=result_names)
    if config.hlotrace_tiered_compile != "off":
        from . import tiers
        if tiers.wanted(lowered, device):
            return tiers.TieredExecutable(lowered, device, compiler_options)
    return execute.compile_lowered(lowered, device, compiler_options)


def run_program(jaxpr: Jaxpr, args, donated=()):
    """Run a program on concrete operands, compiling it on first use.  Returns a list of arrays."""
    for a in args:
        if isinstance(a, Tracer):
            raise errors.leaked_tracer(a)
    arrays = [a if type(a) is ArrayImpl else as_array(a) for a in args]
    device, committed = placed(arrays)
    cache = _program_cache.setdefault(jaxpr, {})
    key = (device, donated, state.context_key)
    entry = cache.get(key)
    if entry is None:
        closed, consts = close(jaxpr)
        pruned, used = dce(closed, keep_invars=False)
        shift = len(consts)
        kept = [i for i, u in enumerate(used) if u]
        const_arrays = [as_array(consts[i]) for i in kept if i < shift]
        positions = {i: n for n, i in enumerate(kept)}
        executable = compile_program(pruned, device, tuple(positions[i + shift] for i in donated
                                                           if i + shift in positions))
        entry = cache[key] = (executable, const_arrays, [i - shift for i in kept if i >= shift])
    executable, const_arrays, kept = entry
    return executable(buffers_on([*const_arrays, *[arrays[i] for i in kept]], device), committed)


def run_callback(*args, function, out_avals, **_):
    """Call a Python function at once, on NumPy values; its checked results as arrays."""
    results = function(*[as_array(a)._numpy() for a in args])
    return [from_numpy(checked(r, a, i), aval=a) for i, (r, a) in enumerate(zip(results, out_avals, strict=True))]


def clear_caches():
    """Forget all compiled programs."""
    _primitive_cache.clear()
    _program_cache.clear()
    execute.forget()


set_evaluator(evaluate)
callback_p.evaluate = run_callback
