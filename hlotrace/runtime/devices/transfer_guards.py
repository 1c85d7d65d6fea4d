"""Transfer guards: what the options `jax_transfer_guard...` log or refuse.

jaxlib asks them itself where it copies host memory to a device and back, at no cost while there are none.
Copies between devices go by way of the host here, so they are asked about in Python.
"""
from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.config import checks, config, override
from ...sharding.abstract import Sharding
from .. import binding

DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")
_nothing = contextlib.nullcontext()
_asked = threading.local()      # .put: is this thread in a device_put?  .computed: in what programs do?
used = False                    # has a guard ever been set?


def _option(direction: str) -> str:
    return f"jax_transfer_guard_{direction}"


def _use() -> None:
    global used
    used = True


@contextlib.contextmanager
def _set(target: Any, **values: Any) -> Iterator[None]:
    """Attributes of an object, set until the block ends."""
    saved = {name: getattr(target, name, None) for name in values}
    try:
        for name, value in values.items():
            setattr(target, name, value)
        yield
    finally:
        for name, value in saved.items():
            setattr(target, name, value)


def _on_this_thread(**values: Any) -> contextlib.AbstractContextManager[None]:
    """jaxlib's guards on this thread, set until the block ends."""
    return _set(binding.transfer_guards(), **values)


def _context(name: str, option: str, directions: Sequence[str], doc: str) -> Callable[[str],
             contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def guarded(level: str | None) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for o in dict.fromkeys((option, *map(_option, directions))):
                stack.enter_context(override(o, level))
            _use()
            stack.enter_context(_on_this_thread(**dict.fromkeys(directions, binding.guard_level(level))))
            yield

    def context(level: str | None) -> contextlib.AbstractContextManager[None]:
        return guarded(config._check(option, level))        # checked where it is written
    context.__name__ = context.__qualname__ = name
    context.__doc__ = f"""Context manager: what becomes of {doc} on this thread.

    `level` is "allow"; "log" or "disallow", which let pass what device_put and device_get are asked for,
    and "log_explicit" or "disallow_explicit", which do not.  Refused ones raise JaxRuntimeError.

    >>> with jax.{name}("disallow"):
    ...     x = jax.device_put(np.arange(3))            # asked for
    >>> jax.device_get(x)
    array([0, 1, 2], dtype=int32)
    """
    return context


transfer_guard = _context("transfer_guard", "jax_transfer_guard", DIRECTIONS,
                          "transfers from host to device, from device to host and between devices")
transfer_guard_host_to_device, transfer_guard_device_to_device, transfer_guard_device_to_host = (
    _context(f"transfer_guard_{d}", _option(d), (d,), f"transfers {what}")
    for d, what in zip(DIRECTIONS, ("from host to device", "between devices", "from device to host")))


def _everywhere(direction: str) -> Callable[[str | None], None]:
    def check(level: str | None) -> None:
        if level is not None:
            _use()
        setattr(binding.transfer_guards(everywhere=True), direction, binding.guard_level(level))
    return check


def _all_everywhere(level: str | None) -> None:
    for direction in DIRECTIONS:
        config.update(_option(direction), level)


def _guard_garbage(level: str | None) -> None:
    binding.transfer_guards(everywhere=True).garbage_collect_array = binding.garbage_level(level)


@contextlib.contextmanager
def _guarded_garbage(level: str | None) -> Iterator[None]:
    with override("jax_array_garbage_collection_guard", level), _on_this_thread(
            garbage_collect_array=binding.garbage_level(level)):
        yield


def array_garbage_collection_guard(level: str | None) -> contextlib.AbstractContextManager[None]:
    """Context manager: what is said of arrays in cycles that Python's garbage collector frees.

    Such arrays hold their memory until the collector comes by.  `level` is "allow"; "log", which writes a
    message with the traceback of where the array was made to stderr; or "fatal", which ends the process.

    >>> with jax.array_garbage_collection_guard("log"):
    ...     x = jnp.ones(3) + 1
    """
    return _guarded_garbage(config._check("jax_array_garbage_collection_guard", level))


_guardian = None        # the thread that alone may start programs over several processes; None: all may


def _guard_threads(on: bool) -> None:
    global _guardian
    _guardian = threading.get_ident() if on else None


@contextlib.contextmanager
def thread_guard(enable: bool = True) -> Iterator[None]:
    """Context manager: programs over several processes are started by this thread alone until the block ends.

    In another thread they raise RuntimeError: threads that start such programs in different orders in
    different processes would wait for each other.

    >>> with jax.thread_guard(True):
    ...     y = jax.jit(lambda x: x + 1)(1.0)
    """
    global _guardian
    with override("jax_thread_guard", enable):
        saved = _guardian
        _guard_threads(config.jax_thread_guard)
        try:
            yield
        finally:
            _guardian = saved


def check_thread(name: str) -> None:
    """RuntimeError where another thread alone may start `name`, a program over several processes."""
    if _guardian not in (None, threading.get_ident()):
        raise RuntimeError(f"{name} runs over several processes and was called in a thread other than the "
                           "one that set jax_thread_guard: call it there, or set the guard in this thread")


checks.update({_option(d): _everywhere(d) for d in DIRECTIONS}, jax_transfer_guard=_all_everywhere,
              jax_array_garbage_collection_guard=_guard_garbage, jax_thread_guard=_guard_threads)
if config.jax_thread_guard:     # from the environment, as what follows
    _guard_threads(True)
if config.jax_array_garbage_collection_guard is not None:
    _guard_garbage(config.jax_array_garbage_collection_guard)
for _name, _level in {
        "jax_transfer_guard": config.jax_transfer_guard,
        "jax_transfer_guard_host_to_device": config.jax_transfer_guard_host_to_device,
        "jax_transfer_guard_device_to_device": config.jax_transfer_guard_device_to_device,
        "jax_transfer_guard_device_to_host": config.jax_transfer_guard_device_to_host}.items():
    if _level is not None:
        checks[_name](_level)


@contextlib.contextmanager
def _putting() -> Iterator[None]:
    with _set(_asked, put=True), _on_this_thread(explicit_device_put=True):
        yield


def putting() -> contextlib.AbstractContextManager[None]:
    """Context in which the user asks for what goes to a device."""
    return _putting() if used else _nothing


def computing() -> contextlib.AbstractContextManager[None]:
    """Context of what a compiled program does: devices may exchange, as they do in one."""
    return _set(_asked, computed=True) if used else _nothing


def getting() -> contextlib.AbstractContextManager[None]:
    """Context in which the user asks for what comes to the host."""
    return _on_this_thread(explicit_device_get=True) if used else _nothing


def unasked() -> contextlib.AbstractContextManager[None]:
    """Context of what the library moves for itself: no guard is asked."""
    return _on_this_thread(**dict.fromkeys(DIRECTIONS, binding.guard_level("allow"))) if used else _nothing


def moving(x: Any, sharding: Sharding) -> contextlib.AbstractContextManager[None]:
    """Context in which an array is copied to other devices.  JaxRuntimeError where that is refused."""
    if not used:
        return _nothing
    level = config.jax_transfer_guard_device_to_device or "allow"
    if getattr(_asked, "computed", False):
        return unasked()
    if level.endswith("_explicit") or level != "allow" and not getattr(_asked, "put", False):
        text = f"device-to-device transfer: aval={x.aval}, sharding={x.sharding}, dst_sharding={sharding}"
        if level.startswith("disallow"):
            raise binding.JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed {text}")
        logging.getLogger("hlotrace").warning(text)
    return unasked()
