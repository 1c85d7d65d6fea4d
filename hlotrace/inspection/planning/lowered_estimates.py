"""The Estimate of a lowered program; what is known of a compiled one is kept on disk, as programs are."""
import dataclasses
import hashlib
import json
import time
import zlib

from ...core.config import config
from ...runtime import binding
from ...runtime.devices import client
from ...runtime.executables import compilation, disk_cache, introspect
from . import estimates, plan_report, traced_estimates


def of_lowered(lowered, where, compiler_options, quick=False):
    """The Estimate of a Lowered.

    Args:
        where: the device or the Partition that it is for.
        compiler_options: those it is compiled with, or None.
        quick: from its text, without compiling.
    Raises:
        JaxRuntimeError: where it needs more memory than the chip has.
    """
    mesh = where.mesh if isinstance(where, tuple) else None
    devices = tuple(where.devices) if isinstance(where, tuple) else (where,)
    if not hasattr(devices[0], "platform"):
        devices = (client.default_device(),)
    if quick:
        donated = sorted(lowered._donated)
        return traced_estimates.traced(lowered.as_text(debug_info=True), devices, mesh, donated)
    entry = _entry(lowered, devices, compiler_options)
    kept = entry and entry.load_facts()
    facts = json.loads(zlib.decompress(kept)) if kept else _facts(lowered, entry)
    if "error" in facts:
        raise binding.JaxRuntimeError(facts["error"])
    return estimates.estimate(estimates.Program(**facts), devices, mesh)


def refused(lowered, where, error):
    """`error` of compiling a Lowered; where memory is too small, with what takes it."""
    if "RESOURCE_EXHAUSTED" not in str(error):
        return error
    try:
        found = of_lowered(lowered, where, None, quick=True)
    except Exception:       # the program is one that only its compiler can read: the words are enough
        return error
    return type(error)(plan_report.with_values(str(error), found))


def exhausted(executable, error):
    """`error` of running an executable; where memory ran out, with what takes it."""
    if "RESOURCE_EXHAUSTED" not in str(error):
        return error
    try:
        program = estimates.Program(introspect.optimized_text(executable), dict.fromkeys(
            ("arguments", "results", "aliases", "temporaries"), 0), 0.0)
        found = estimates.estimate(program, [executable.device])
    except Exception:       # as above
        return error
    return type(error)(plan_report.with_values(str(error), found))


def _facts(lowered, entry):
    """What is known of the program when it has been compiled: the fields of a Program, or its error."""
    start = time.perf_counter()
    try:
        compiled = lowered.compile()
        facts = dataclasses.asdict(estimates.program_of(compiled, time.perf_counter() - start))
    except binding.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        facts = {"error": str(error)}
    if entry:
        entry.store_facts(zlib.compress(json.dumps(facts).encode()), f"{lowered.fun_name} (plan)",
                          time.perf_counter() - start)
    return facts


def _entry(lowered, devices, compiler_options):
    """Where what is known of the compiled program is kept; None if nothing is.

    Lines are a part of its name, unlike those of programs that run: an estimate says them.
    """
    if not config.jax_enable_compilation_cache:
        return None
    chips = [str(getattr(d, "coords", None) or d) for d in devices]
    known = hashlib.sha256("\n".join(["plan", lowered.as_text(debug_info=True), *chips]).encode()).hexdigest()
    return disk_cache.entry(known, devices, compilation.options_for(devices, compiler_options))
