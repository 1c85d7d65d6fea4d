"""Tiers: a large program runs in a quickly compiled form while its full form is compiled in the background.

The quick form is the same program at XLA's optimization level 0: it takes about two thirds of the time to
compile and runs two to three times as long.  The two agree up to the order of floating-point operations.

A thread waits for the full form, but another process compiles it: XLA's own threads cannot be stopped, and a
process that ends among them may be aborted.  What it compiled comes back as a file (`disk_cache.py`).
"""
from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.config import config, override, state
from ...core.jaxpr import Jaxpr
from ...lowering.lowered import Lowered
from .. import binding
from ..devices import client
from . import blocks as pieces, compilation
from .executable import Executable

LARGE = 2000        # different equations that XLA must compile: about five seconds of work
_running: set = set()               # processes that compile
_loading = threading.Lock()         # held while a full form is loaded, and from the end of the process on


def wanted(lowered: Lowered) -> bool:
    """Does this program run in tiers, by the option `hlotrace_tiered_compile`?"""
    if lowered.platform.quick is None or lowered.callbacks or lowered.effects:
        return False
    if lowered.kernels:
        from . import kernels

        # the process that compiles has not got them
        if kernels.given_by_user(lowered.kernels, lowered.platform):
            return False
    different = len(lowered.jaxpr.eqns) + sum(len(b.jaxpr.eqns) for b in lowered.blocks)
    return config.hlotrace_tiered_compile == "on" or different >= LARGE


class TieredExecutable(Executable):
    """A program of which `quick` runs until `full` is there; `error` kept the full form from being made."""
    __slots__ = ("quick", "full", "error", "done")

    def __init__(self, lowered: Lowered, device: binding.Device,
                 compiler_options: Mapping[str, Any] | None) -> None:
        self.quick = pieces.compile_lowered(lowered, device,
                                            {**(compiler_options or {}), **lowered.platform.quick})
        self.full: Executable | None = None
        self.error: Exception | None = None
        self.done = threading.Event()
        super().__init__(None, lowered, device, self.quick.compile_seconds, self.quick.stored)
        texts = [program.text for program in pieces.compiled_alone(lowered)]
        threading.Thread(target=self._compile, args=(texts, compiler_options, state.blocks), daemon=True,
                         name=f"hlotrace waits for {lowered.jaxpr.name}").start()

    def _compile(self, texts: Sequence[str], compiler_options: Mapping[str, Any] | None,
                 blocks: Any) -> None:
        state.put(blocks=blocks)      # options are a matter of the thread
        try:
            with tempfile.TemporaryDirectory(prefix="hlotrace-", ignore_cleanup_errors=True) as directory:
                compile_elsewhere(texts, self.lowered.kernels, self.device, compiler_options, directory)
                with _loading, override("jax_compilation_cache_dir", directory), override(
                        "jax_enable_compilation_cache",
                        True), override("jax_persistent_cache_min_compile_time_secs", 0):
                    self.full = pieces.compile_lowered(self.lowered, self.device, compiler_options)
        except Exception as error:
            self.error = error
            logging.getLogger("hlotrace").warning("the full form of %s did not compile, its quick form goes "
                                                  "on running: %s", self.lowered.jaxpr.name, error)
        finally:
            self.done.set()

    def wait(self) -> None:
        self.done.wait()

    @property
    def current(self) -> Executable:
        return self.full or self.quick

    @property
    def tier(self) -> str:  # type: ignore[override]
        return "full" if self.full else "quick"

    @property
    def pieces(self) -> list[tuple[Executable, int]]:
        return self.current.pieces

    def memory(self) -> Any:
        return self.current.memory()

    def run(self, buffers: Sequence[binding.Buffer]) -> list[binding.Buffer]:
        return self.current.run(buffers)


def compile_elsewhere(texts: Sequence[str], kernels: Sequence[str], device: binding.Device,
                      compiler_options: Mapping[str, Any] | None, directory: str) -> None:
    """Fill `directory` with the executables of these programs, which call `kernels`.  RuntimeError where that
    fails, with XLA's words."""
    root = str(Path(__file__).resolve().parents[3])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
           "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": directory,
           "JAX_ENABLE_COMPILATION_CACHE": "1", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
           "JAX_COMPILATION_CACHE_MAX_SIZE": "-1"}
    process = subprocess.Popen([sys.executable, "-c", f"from {__name__} import worker; worker()"], env=env,
                               text=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    _running.add(process)
    try:
        _, said = process.communicate(json.dumps([texts, kernels, device.id, compiler_options]))
    finally:
        _running.discard(process)
    if process.returncode:
        why = said.strip() or f"the other process ended with status {process.returncode}"
        raise RuntimeError(why.splitlines()[-1])


def worker() -> None:
    """What the other process does: the job is on stdin."""
    texts, kernels, device_id, compiler_options = json.load(sys.stdin)
    device = next(d for d in client.client("cpu").local_devices() if d.id == device_id)
    for text in texts:
        program = Lowered(text, [], Jaxpr((), (), (), [], (), "a piece"), [], (), "cpu", targets=kernels)
        compilation.compile_whole(program, device, compiler_options)


@atexit.register
def _leave() -> None:
    for process in list(_running):
        with contextlib.suppress(OSError):
            process.kill()
    _loading.acquire(timeout=10)
