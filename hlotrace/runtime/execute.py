"""Compilation and execution of lowered programs; the tokens of side effects."""
import atexit
import collections
import threading
import time

import numpy as np

from ..core import dtypes, source
from ..core.avals import physical
from ..core.config import config, state
from . import array, binding, callbacks, parts, placement, progress, transfer

_lock = threading.Lock()
_pending: list = []          # tokens of running programs with side effects
_last_ordered: list = []     # the token of the last program with ordered effects
_loaded: collections.OrderedDict = collections.OrderedDict()     # what was compiled, by its text
_LOADED_KEPT = 512
compile_count = 0            # programs compiled by this process
disk_hits = 0                # programs that another process compiled, found on disk
_SMALL = 4096                # bytes of text: on the CPU no program as short takes a second to compile


class Executable:
    """A compiled program.  Call it with one buffer for each input that the program has."""
    __slots__ = ("loaded", "lowered", "out_avals", "handlers", "effects", "device", "compile_seconds", "from_disk")

    def __init__(self, loaded, lowered, device, compile_seconds, from_disk=False):
        self.loaded = loaded
        self.lowered = lowered
        self.device = device
        self.compile_seconds = compile_seconds
        self.from_disk = from_disk
        self.out_avals = lowered.jaxpr.out_avals
        self.handlers = self._handlers()
        self.effects = bool(lowered.effects)

    def _handlers(self):
        sharding = placement.on_device(self.device)
        return [binding.result_handler(physical(a), sharding) for a in self.out_avals]

    tier = "full"       # see tiers.py

    @property
    def in_shardings(self):
        return [placement.on_device(self.device)] * len(self.lowered.jaxpr.invars)

    @property
    def out_shardings(self):
        return [placement.on_device(self.device)] * len(self.out_avals)

    def lies(self):
        """Where it runs, in words."""
        return str(self.device)

    def wait(self):
        """Return when no form of the program is being compiled."""

    @property
    def parts(self):
        """What it is made of: (executable, how often it runs), in order."""
        return [(self, 1)]

    def memory(self):
        """Bytes of arguments, outputs, temporaries and code."""
        return self.loaded.get_compiled_memory_stats()

    def take(self, leaves):
        """(buffers, is one committed?) for these arguments, moved where need be; None if they are committed elsewhere.

        Raises RuntimeError for a deleted array.
        """
        buffers, committed = [], False
        for x in leaves:
            if type(x) is not array.ArrayImpl:
                x = array.as_array(x)
            if x._buf.is_deleted():
                x.check_alive()
            if x._buf._sharding._devices[0] is not self.device or len(x._buf._sharding._devices) > 1:
                if x._committed:
                    return None
                x = transfer.copy_to(x, self.device)
            committed = committed or x._committed
            buffers.append(x._buf)
        return buffers, committed

    def run(self, buffers):
        """Run; returns a list of buffers.  `buffers` must match the program's inputs: nothing checks here."""
        if self.effects:
            return self._run_effectful(buffers).consume_with_handlers(self.handlers)
        try:
            return self.loaded.execute_sharded(buffers).consume_with_handlers(self.handlers)
        except binding.JaxRuntimeError as error:
            raise callbacks.original(error) from None

    def __call__(self, buffers, committed=False):
        """Run; returns a list of ArrayImpl."""
        make = array.ArrayImpl
        outs = [make(a, b, committed) for a, b in zip(self.out_avals, self.run(buffers))]
        if state.check_floats:
            check_floats(outs, self.lowered.jaxpr)
        return outs

    def _run_effectful(self, buffers):
        if self.lowered.ordered:
            for token in _last_ordered[:]:
                wait(token)
        try:
            results = self.loaded.execute_sharded(buffers, with_tokens=True)
        except binding.JaxRuntimeError as error:
            raise callbacks.original(error) from None
        token = results.consume_token()
        with _lock:
            if self.lowered.ordered:
                _last_ordered[:] = [token]
            _pending.append(token)
            oldest = _pending.pop(0) if len(_pending) > 256 else None
        if oldest is not None:
            wait(oldest)
        return results


def check_floats(outs, jaxpr):
    """FloatingPointError if an output has a value that debug_nans or debug_infs looks for."""
    for i, x in enumerate(outs):
        for value in parts.held(x) if dtypes.is_inexact(x.dtype) else ():
            for test, option in ((np.isnan, config.jax_debug_nans), (np.isinf, config.jax_debug_infs)):
                if option and test(value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)).any():
                    where = next((source.describe(e.source) for e in reversed(jaxpr.eqns) if e.source), "")
                    raise FloatingPointError(
                        f"invalid value ({'nan' if test is np.isnan else 'inf'}) encountered in output {i} of "
                        f"{jaxpr.name}{f', last line {where}' if where else ''}. Run it under disable_jit() to find the "
                        "operation; hlotrace.config.update('jax_debug_nans', False) turns the check off.")


def wait(token):
    try:
        token.block_until_ready()
    except binding.JaxRuntimeError as error:
        raise callbacks.original(error) from None


def effects_barrier():
    """Wait until every side effect of programs started so far has happened; raises what a callback raised."""
    while True:
        with _lock:
            if not _pending:
                return
            token = _pending.pop(0)
        wait(token)


@atexit.register
def _finish():
    try:
        effects_barrier()
    except Exception as error:
        import sys
        print(f"hlotrace: a callback failed while the process was ending: {error!r}", file=sys.stderr)


def compile_options(devices, overrides=None):
    options = binding.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = len(devices)
    build.use_spmd_partitioning = build.use_shardy_partitioner = len(devices) > 1
    options.device_assignment = binding.device_assignment([[device.id for device in devices]])
    if overrides:
        options.env_option_overrides = list(overrides.items())
    return options


def compile_lowered(lowered, device, compiler_options=None):
    """An Executable for a Lowered program on one device, or on those of its partition, of which `device` is one."""
    if lowered.blocks and not lowered.partition and device.platform == "cpu":
        from .pieces import compile_pieces
        found = compile_pieces(lowered, device, compiler_options)
        if found is not None:
            return found
    return compile_whole(lowered, device, compiler_options)


def compile_whole(lowered, device, compiler_options=None, pieces=1):
    """An Executable that is one program to XLA; `pieces` is how many make up the user's program."""
    global compile_count, disk_hits
    devices, kind = (device,), Executable
    if lowered.partition:
        from .partitioned import PartitionedExecutable as kind
        devices = lowered.partition.devices
    if is_elsewhere(device):
        from . import topology
        return topology.compile_lowered(lowered, devices, compile_options(devices, compiler_options))
    key = (lowered.text, devices, tuple(sorted((compiler_options or {}).items())))
    once = bool(lowered.callbacks or lowered.inspections)       # compiling it again means something
    found = None if once else _loaded.get(key)
    if found is not None:
        _loaded.move_to_end(key)
        return kind(found, lowered, device, 0.0)
    options = compile_options(devices, compiler_options)
    backend = device.client
    start = time.perf_counter()
    entry = _disk_entry(lowered, devices, options)
    devices = binding.DeviceList(devices)
    loaded = entry and entry.load()
    if loaded:
        disk_hits += 1
        _keep(key, loaded)
        seconds = time.perf_counter() - start
        _log("loaded %s in %.3f s from %s", lowered.jaxpr.name, seconds, entry.path)
        return kind(loaded, lowered, device, seconds, from_disk=True)
    start = time.perf_counter()
    text, failures = lowered.text, [] if lowered.partition else None
    if lowered.inspections:
        from .partitioned import with_inspections
        text, _kept_alive = with_inspections(lowered, device)
    try:
        with progress.compiling(lowered.jaxpr):
            if lowered.callbacks:
                loaded = backend.compile_and_load(binding.parse_module(text), devices, options,
                                                  [callbacks.guard(*c, failures) for c in lowered.callbacks])
            else:
                loaded = backend.compile_and_load(text, devices, options)
    except binding.JaxRuntimeError as error:
        raise binding.JaxRuntimeError(readable(str(error))) from None
    seconds = time.perf_counter() - start
    compile_count += 1
    if not once:
        _keep(key, loaded)
    if entry:
        entry.store(loaded, lowered.jaxpr.name, seconds, pieces)
    _log("compiled %s in %.3f s", lowered.jaxpr.name, seconds)
    made = kind(loaded, lowered, device, seconds)
    if failures is not None:
        made.failures = failures
    return made


def _disk_entry(lowered, devices, options):
    """Where a program is kept between processes; None where looking costs more than it saves."""
    small = devices[0].platform == "cpu" and len(lowered.text) < _SMALL * min(
        1, config.jax_persistent_cache_min_compile_time_secs)
    if lowered.callbacks or lowered.inspections or small or not config.jax_enable_compilation_cache:
        return None
    from . import disk_cache  # 4 ms, most of it OpenSSL: not for programs that compile in 10
    return disk_cache.entry(lowered.text, devices, options)


def _keep(key, loaded):
    _loaded[key] = loaded
    if len(_loaded) > _LOADED_KEPT:
        _loaded.popitem(last=False)


def _log(*message):
    if config.jax_log_compiles:
        import logging
        logging.getLogger("hlotrace").warning(*message)


def readable(message):
    """jaxlib ends every MLIR error with a guess about versions, which is wrong here."""
    return message.split("Failed to parse using StableHLO")[0].strip()


def is_elsewhere(device):
    """Is it a device of a topology, which only compiles?"""
    return isinstance(device.client, binding._jax.CompileOnlyPyClient)


def platform_of(device):
    return "cuda" if device.platform in ("gpu", "cuda") else device.platform


def forget():
    """Let go of compiled programs."""
    _loaded.clear()
