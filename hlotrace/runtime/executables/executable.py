"""A compiled program that can be called, and the tokens of side effects."""
from __future__ import annotations

import atexit
import collections
import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.avals import physical
from ...core.config import state
from ...lowering.lowered import Lowered
from ...sharding.abstract import Sharding
from .. import array_impl, binding, callback_guard
from ..devices import client, placement, relayout, shards

_lock = threading.Lock()
_pending: list = []          # tokens of running programs with side effects
_last_ordered: list = []     # the token of the last program with ordered effects
# tokens of programs that call Python for their results
_calling: collections.deque = collections.deque(maxlen=256)


class Executable:
    """A compiled program.  Call it with one buffer for each input that the program has."""
    __slots__ = ("loaded", "lowered", "out_avals", "handlers", "execute", "device", "compile_seconds",
                 "stored", "signatures", "_dispatch")

    def __init__(self, loaded: Any, lowered: Lowered, device: binding.Device,
                 compile_seconds: float, stored: str | bytes | None = None) -> None:
        self.loaded: Any = loaded
        self.lowered = lowered
        self.device = device
        self.compile_seconds = compile_seconds
        # the file, or the bytes, that `loaded` was made of: jaxlib cannot write such a one again
        self.stored = stored
        self.out_avals = lowered.jaxpr.out_avals
        self.handlers = self._handlers()
        # runs it, where it calls nothing on the host and is one program on one device
        self.execute = (None if lowered.effects or lowered.callbacks or lowered.failures
                        or type(self) is not Executable or state.no_execution else loaded.execute_sharded)
        self._dispatch: Callable[..., list[binding.Buffer]] | None = None
        self.signatures: list[array_impl.Signature] = []       # of its results, where they are committed

    @property
    def from_disk(self) -> bool:
        """Whether it was found in the cache on disk."""
        return type(self.stored) is str

    def _handlers(self) -> list[Callable[..., Any]]:
        sharding = placement.on_device(self.device)
        return [binding.result_handler(physical(a), sharding) for a in self.out_avals]

    tier = "full"       # see tiers.py
    # does it free a donated buffer after its last use, whether or not a result takes the memory?
    gives_back = False

    @property
    def in_shardings(self) -> list[Sharding]:
        return [placement.on_device(self.device)] * len(self.lowered.jaxpr.invars)

    @property
    def out_shardings(self) -> list[Sharding]:
        return [placement.on_device(self.device)] * len(self.out_avals)

    def placement_text(self) -> str:
        """Where it runs, in words."""
        return str(self.device)

    def wait(self) -> None:
        """Block until no form of the program is being compiled."""

    @property
    def pieces(self) -> list[tuple[Executable, int]]:
        """What it is made of: (executable, how often it runs), in order."""
        return [(self, 1)]

    def serialize(self) -> bytes:
        """jaxlib's bytes of it."""
        return self.device.client.serialize_executable(self.loaded)

    def memory(self) -> Any:
        """Bytes of arguments, outputs, temporaries and code."""
        return self.loaded.get_compiled_memory_stats()

    commits = False     # are its results committed, whether or not its arguments are?

    def has_there(self, x: Any, i: int) -> bool:
        """Is the array where the program takes its input number `i`?"""
        held = x._buf._sharding._own
        return held._devices[0] is self.device and len(held._devices) == 1 and held._layout is None

    def take(self, leaves: Sequence[Any]) -> tuple[list[binding.Buffer], bool] | None:
        """(buffers, is one committed?) for these arguments, moved where need be; None if committed elsewhere.

        Raises:
            RuntimeError: for a deleted array.
        """
        buffers: list[binding.Buffer] = []
        committed = False
        for x in leaves:
            if type(x) is not array_impl.ArrayImpl:
                x = array_impl.as_array(x)
            if x._buf.is_deleted():
                x.check_alive()
            if not self.has_there(x, len(buffers)):
                if x._committed:
                    return None
                x = relayout.copy(x, placement.on_device(self.device), x._committed)
            committed = committed or x._committed
            buffers.append(x._buf)
        self.check_donated(buffers)
        return buffers, committed

    def check_donated(self, buffers: Sequence[binding.Buffer]) -> None:
        """JaxRuntimeError where a donated buffer is twice among the arguments."""
        if not self.lowered.donated or self.gives_back:
            return
        held = [id(shards.memory(b)) for b in buffers]
        if len(set(held)) < len(held):
            for i in self.lowered.donated:
                if held.count(held[i]) > 1:
                    raise binding.JaxRuntimeError(
                        "INVALID_ARGUMENT: Attempt to use a buffer that was previously donated in the same "
                        f"call to Execute(): argument {i} of {self.lowered.jaxpr.name} is donated and passed "
                        "a second time in one call: the program would read memory that it gave away. Pass a "
                        "copy, or do not donate it.")

    def run(self, buffers: Sequence[binding.Buffer]) -> list[binding.Buffer]:
        """Run; returns a list of buffers.  `buffers` must match the program's inputs: nothing checks here."""
        if self.lowered.effects:
            return self._run_effectful(buffers).consume_with_handlers(self.handlers)
        try:
            if self.lowered.callbacks:
                results = self.loaded.execute_sharded(buffers, with_tokens=True)
                token = results.consume_token()
                if not self._waited_for(token):
                    _calling.append(token)
                return results.consume_with_handlers(self.handlers)
            return self.loaded.execute_sharded(buffers).consume_with_handlers(self.handlers)
        except binding.JaxRuntimeError as error:
            raise callback_guard.original(error, self.lowered.jaxpr) from None

    def dispatch(self) -> Callable[..., list[binding.Buffer]]:
        """jaxlib's function that runs a program that has `execute`, of buffers and NumPy arrays."""
        if self._dispatch is None:
            self._dispatch = binding.dispatch(self.loaded, self.handlers,
                                              [physical(a) for a in self.lowered.jaxpr.in_avals],
                                              [physical(a) for a in self.out_avals], self.device,
                                              placement.on_device(self.device))
        return self._dispatch

    def run_operands(self, *operands: Any) -> list[binding.Buffer]:
        """Run a program that has `execute`, of arrays or their buffers that are where it runs, NumPy arrays
        and numbers.  JaxRuntimeError for an array that is deleted or on another device."""
        operands = tuple([x if type(x) is binding.ArrayImpl else array_impl.operand(x) for x in operands])
        if np.ndarray in map(type, operands):
            return self.dispatch()(*operands)
        return self.loaded.execute_sharded(operands).consume_with_handlers(self.handlers)

    def run_numbers(self, *operands: Any) -> list[binding.Buffer]:
        """As `run_operands`, of buffers and numbers alone."""
        buffers = [x if type(x) is binding.ArrayImpl else array_impl.as_array(x)._buf for x in operands]
        return self.execute(buffers).consume_with_handlers(self.handlers)       # type: ignore[misc]

    def run_alive(self, *operands: Any) -> list[binding.Buffer]:
        """As `run`, of buffers that are where it runs, NumPy arrays and numbers.  LookupError for a buffer of
        which a part is deleted: not every program refuses it by itself; JaxRuntimeError for memory that is
        donated and passed a second time."""
        buffers = []
        for i, x in enumerate(operands):
            if type(x) is not binding.ArrayImpl:
                x = self.put(x, i)
            elif shards.is_lost(x):
                raise LookupError
            buffers.append(x)
        if self.lowered.donated:
            self.check_donated(buffers)
        return self.run(buffers)

    def put(self, value: Any, i: int) -> binding.Buffer:
        """The buffer of input number `i` for a NumPy array or a number."""
        return array_impl.put(np.asarray(value), physical(self.lowered.jaxpr.in_avals[i]), self.device)

    def sign(self) -> None:
        """Have the signatures of committed results ready."""
        if len(self.signatures) != len(self.out_avals):
            self.signatures = [*map(array_impl.signature_of, self.out_avals, self.out_shardings)]

    def wrapped(self, buffers: Sequence[binding.Buffer], committed: bool = False) -> list[Any]:
        """The ArrayImpls of what `run` gives."""
        make = array_impl.ArrayImpl
        if not committed:
            return [make(a, b) for a, b in zip(self.out_avals, buffers)]
        self.sign()
        return [make(a, b, True, s) for a, b, s in zip(self.out_avals, buffers, self.signatures)]

    def __call__(self, buffers: Sequence[binding.Buffer], committed: bool = False) -> list[Any]:
        """Run; returns a list of ArrayImpl."""
        if state.no_execution:
            raise RuntimeError(f"{self.lowered.jaxpr.name} was about to run where 'no_execution' is set")
        outs = self.wrapped(self.run(buffers), committed)
        return looked_at(self, buffers, outs) if state.check_floats or self.lowered.failures else outs

    def _waited_for(self, token: Any) -> bool:
        """Wait until a program that calls Python is done, on the CPU: what a callback computes needs one of a
        few places there, and programs that wait for its result would hold them all."""
        if self.device.platform != "cpu":
            return False
        wait(token)
        return True

    def _run_effectful(self, buffers: Sequence[binding.Buffer]) -> Any:
        if self.lowered.ordered:
            for token in _last_ordered[:]:
                wait(token)
        try:
            results = self.loaded.execute_sharded(buffers, with_tokens=True)
        except binding.JaxRuntimeError as error:
            raise callback_guard.original(error, self.lowered.jaxpr) from None
        token = results.consume_token()
        if self._waited_for(token):
            return results
        with _lock:
            if self.lowered.ordered:
                _last_ordered[:] = [token]
            _pending.append(token)
            oldest = _pending.pop(0) if len(_pending) > 256 else None
        if oldest is not None:
            wait(oldest)
        return results


# raising.py puts its own here: (Executable, its arguments, its results) -> those of the program
looked_at: Any = None


def wait(token: Any) -> None:
    try:
        token.block_until_ready()
    except binding.JaxRuntimeError as error:
        raise callback_guard.original(error) from None


def effects_barrier() -> None:
    """Wait until every side effect of programs started so far has happened; raises what a callback raised.

    >>> jax.jit(lambda x: jax.debug.callback(lambda v: print("saw", v), x))(1)
    saw 1
    >>> jax.effects_barrier()
    """
    while True:
        with _lock:
            if not _pending:
                return
            token = _pending.pop(0)
        wait(token)


@atexit.register
def _finish() -> None:
    try:
        effects_barrier()
    except Exception as error:
        print(f"hlotrace: a callback failed while the process was ending: {error!r}", file=sys.stderr)
    for token in list(_calling):        # a callback that begins when the interpreter has gone would crash
        with contextlib.suppress(binding.JaxRuntimeError):
            token.block_until_ready()
    if client.world is None and "cpu" in client.clients:    # else it may wait for another process
        # threads that still compute would use what C++ frees when the process ends
        for array in client.clients["cpu"].live_arrays():
            with contextlib.suppress(RuntimeError):     # deleted meanwhile, or its computation failed
                array.block_until_ready()
