"""A child after `os.fork`: jaxlib's threads are not there, and what needs one of them would wait for ever.

In a child of a process that has a client, what would start or await a computation raises instead; arrays
whose values are there are read as before.  A child of a process that only imported hlotrace makes clients of
its own.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ...core import config
from .. import array_impl, binding
from ..devices import client
from ..executables import executable

if TYPE_CHECKING:
    import numpy as np

    from ...core.avals import ShapedArray


def _after() -> None:
    """In the child.  It takes no lock, which another thread of the parent may hold, and frees nothing of
    jaxlib's."""
    if not client.clients:
        return
    kept = [dict(client.clients), client._default, client._default_device, executable._pending[:],
            executable._last_ordered[:], [*executable._calling]]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))      # for ever: ending a client waits for its threads
    words = (f"hlotrace cannot compute in process {os.getpid()}, which os.fork() made of process "
             f"{os.getppid()}: {client.made_by() or 'a client was made'} before that, and its threads do "
             "not live on in a child. Start processes with multiprocessing.get_context('spawn') or "
             "'forkserver', or fork before the first array, device or compiled call.")

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(words)

    def block_until_ready(self: Any) -> Any:
        self.check_alive()
        return self if self._buf.is_ready() else refuse()

    def to_numpy(buf: binding.Buffer, aval: ShapedArray,
                 read: Callable[..., np.ndarray] = binding.to_numpy) -> np.ndarray:
        return read(buf, aval) if buf.is_ready() else refuse()

    client.clients.clear()
    client.client = client._default = refuse  # type: ignore[assignment]
    client.default_device = client._make = refuse
    executable.Executable.__call__ = refuse  # type: ignore[method-assign]
    binding.device_put_shards = binding.join = refuse
    binding.to_numpy = to_numpy
    array_impl.ArrayImpl.block_until_ready = block_until_ready  # type: ignore[method-assign]
    executable._pending.clear()
    executable._last_ordered.clear()
    executable._calling.clear()
    config._trace_keys.clear()      # no call finds what was compiled
    config.state.refresh()


def watch() -> None:
    """To be called once, by whoever starts computations."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after)
