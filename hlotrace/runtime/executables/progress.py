"""What is reported of tracing, lowering and compiling: to listeners, to the log, and on the terminal where it
takes long.

The terminal shows a program's name, its size and the seconds so far.

Nothing here may fail or cost a short compile anything that can be felt: starting a thread takes 80 us, so one
thread watches all compiles and ends when none has been seen for a while.
"""
from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from ...core.config import checks, config
from ...core.jaxpr import Jaxpr, sub_jaxprs
from ..status_line import StatusLine

AFTER = 2.0       # seconds of compiling before the line appears
EVERY = 0.5       # seconds between looks
LINGER = 30.0     # seconds without a compile after which the thread ends

_lock = threading.Lock()
_running: list = []      # compiles going on, oldest first
_watcher = None


# of monitors.py, while there are listeners: (kind, event, values, details)
monitors: Callable[..., None] | None = None

# what is done -> (the end of the event that tells so, the function's name in it, the line of the log)
_STAGES = {"traced": ("jaxpr_trace_duration", "{}", "Finished tracing %s for jit in %.6f sec"),
           "lowered": ("jaxpr_to_mlir_module_duration", "jit({})",
                       "Finished jaxpr to MLIR module conversion jit(%s) in %.6f sec"),
           "compiled": ("backend_compile_duration", "jit({})",
                        "Finished XLA compilation of jit(%s) in %.6f sec")}


# in a process for JAX: what is done, or "types" -> the logger that tells so
loggers: dict[str, str] = {}


class stage:
    """`with stage("traced", name):` tells how long that takes: listeners, and the log where jax_log_compiles
    says so."""
    __slots__ = ("done", "name", "start")

    def __init__(self, done: str, name: str) -> None:
        self.done, self.name = done, name

    def __enter__(self) -> None:
        self.start = time.time()
        if monitors is not None:
            self._tell("scalar", self.start)

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None:
            end = time.time()
            if monitors is not None:
                self._tell("event_duration_secs", end - self.start)
                self._tell("event_time_span", self.start, end)
            log(_STAGES[self.done][2], self.name, end - self.start, logger=loggers.get(self.done))

    def _tell(self, kind: str, *values: float) -> None:
        event, name, _ = _STAGES[self.done]
        tell(kind, f"/jax/core/compile/{event}", *values, fun_name=name.format(self.name))


def tell(kind: str, event: str, *values: float, **details: Any) -> None:
    """Tell listeners, if there are any."""
    if monitors is not None:
        monitors(kind, event, *values, **details)


def log(*message: Any, logger: str | None = None) -> None:
    """A warning where jax_log_compiles is set; otherwise for those who look at DEBUG."""
    logging.getLogger(logger or "hlotrace").log(
        logging.WARNING if config.jax_log_compiles else logging.DEBUG, *message)


def _set_level(level: Any) -> None:
    if level is None:       # as it is
        return
    ours = logging.getLogger("hlotrace")
    for logger in (ours, ours.parent):
        if logger and logger.name in ("hlotrace", "jax"):       # in a process for JAX that is above
            logger.setLevel(level)


def _debug(modules: Any) -> None:
    """Modules, as "jax" or "hlotrace,numpy", whose loggers write what they have at DEBUG to stderr."""
    for name in filter(None, map(str.strip, modules.split(","))):
        logger = logging.getLogger("hlotrace" if name.partition(".")[0] == "jax" else name)
        logger.setLevel(logging.DEBUG)
        if not any(getattr(h, "of_hlotrace", False) for h in logger.handlers):
            handler: Any = logging.StreamHandler()
            handler.of_hlotrace = True
            handler.setFormatter(logging.Formatter("%(levelname)s:%(asctime)s:%(name)s: %(message)s"))
            logger.addHandler(handler)


checks.update(jax_logging_level=_set_level, jax_debug_log_modules=_debug)
if config.jax_logging_level != "NOTSET":        # from the environment
    _set_level(config.jax_logging_level)
if config.jax_debug_log_modules:
    _debug(config.jax_debug_log_modules)


class compiling:
    """Context manager around one compile.  Off unless stderr is a terminal and `hlotrace_compile_progress` is
    set."""
    __slots__ = ("jaxpr", "line", "start", "size")

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.line = StatusLine()
        self.start: Any = None
        self.size: int | None = None

    def __enter__(self) -> None:
        if self.line:
            self.start = time.perf_counter()
            with _lock:
                _running.append(self)
                _start_watching()

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self.start is not None:
            with _lock:
                _running.remove(self)
                if self.seconds >= AFTER:
                    if kind is None:
                        self.line.write(f"compiled {self.what} in {self.seconds:.1f} s", "\n")
                    else:
                        self.line.write("", "\r")

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def what(self) -> str:
        if self.size is None:
            self.size = equations(self.jaxpr)
        return f"{self.jaxpr.name}: {self.size} equation{'s' * (self.size != 1)}"


def equations(jaxpr: Jaxpr) -> int:
    """How many equations a program has, with those of the programs in it."""
    return sum(1 + sum(equations(sub) for sub in sub_jaxprs(e.params)) for e in jaxpr.eqns)


def _start_watching() -> None:
    global _watcher
    if _watcher is None or not _watcher.is_alive():     # a fork leaves one that is dead
        thread = threading.Thread(target=_watch, name="hlotrace compile progress", daemon=True)
        try:
            thread.start()
            _watcher = thread
        except RuntimeError:    # the interpreter is ending, or there is no thread to be had
            pass


def _watch() -> None:
    global _watcher
    idle = 0.0
    while True:
        time.sleep(EVERY)
        with _lock:
            idle = 0.0 if _running else idle + EVERY
            if idle >= LINGER:
                _watcher = None
                return
            if _running and _running[0].seconds >= AFTER:
                _running[0].line.write(f"compiling {_running[0].what}, {_running[0].seconds:.0f} s")
