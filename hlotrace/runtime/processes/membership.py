"""This process among several: joining them, watching that they live, leaving together.

A collective whose peer has died may wait for ever in XLA (with several devices a process it often does).  So
threads here ask the coordination service which processes live and what they left word of, and end this one,
with a message, when another is gone.
"""
from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .. import binding, status_line
from ..devices import client
from . import consistency_checks
from .coordinator import ENDED, split

STATUS = 3              # the exit status of a process that ends because another did
LOOK_SECONDS = 2        # between looks at who is missing at the start
END_SECONDS = 10        # how long a process that failed may take to end


def join(address: str, num_processes: int, process_id: int, local_device_ids: Sequence[int] | None, *,
         init_seconds: int, heartbeat_seconds: int, leave_seconds: int, bind_address: str) -> None:
    """Make this process one of several, once all have come.

    Raises:
        RuntimeError: when no coordinator is reached, some process does not come, or two do not fit each
            other.
    """
    deadline = time.monotonic() + init_seconds
    service = _start_service(bind_address, num_processes, heartbeat_seconds) if process_id == 0 else None
    try:
        _answer_roll_call(address, num_processes, process_id, deadline, init_seconds)
    except BaseException:
        if service is not None:
            service.stdin.close()       # it has answered the others, and ends
        raise
    connection = binding._jax.get_distributed_runtime_client(
        address, process_id, init_timeout=init_seconds + 60, heartbeat_timeout=heartbeat_seconds,
        shutdown_timeout=5, shutdown_on_destruction=True, use_compression=True)
    # XLA's connecting cannot be left
    came = threading.Timer(max(60, deadline - time.monotonic()), _end, [
        f"not all {num_processes} processes, which had come, connected to the coordinator {address}",
        process_id, num_processes])
    came.daemon = True
    came.start()
    connection.connect()
    came.cancel()
    client.world = World(address, num_processes, process_id, local_device_ids, heartbeat_seconds,
                         leave_seconds, connection, service)
    atexit.register(_at_exit, client.world)
    # before it waits for threads, which may never end
    threading._register_atexit(  # type: ignore[attr-defined]
        _after_main, client.world)


def _answer_roll_call(address: str, num_processes: int, process_id: int, deadline: float,
                      seconds: float) -> None:
    """Say who this is to the coordinator, and wait until it says that all have come."""
    hello = {"process": process_id, "where": f"{socket.gethostname()}, pid {os.getpid()}",
             "same": {"num_processes": num_processes,
                      "the version of jaxlib": ".".join(map(str, binding.version))}}
    with (missing_on_the_terminal(address, num_processes),
          _reach(address, process_id, deadline, seconds) as peer):
        answer = _ask(peer, hello, deadline)
        if answer is None:
            missing = (_ask(peer, "who is missing?", time.monotonic() + 5) or {}).get("missing", [])
            some = _listed(missing)
            raise RuntimeError(
                f"distributed.initialize: after {seconds} s not all {num_processes} processes have called "
                f"distributed.initialize() with the coordinator {address}; missing: {some or 'not known'}")
    if "error" in answer:
        raise RuntimeError(f"distributed.initialize: {answer['error']}.")
    if "go" not in answer:
        raise RuntimeError(
            f"distributed.initialize: what runs at {address} does not wait for process {process_id}: process "
            "0 has ended, or the job has begun (is there a second process of this number?), or another "
            "program has the port")


def _listed(numbers: Sequence[int]) -> str:
    return f"{', '.join(map(str, numbers[:16]))}{', ...' if len(numbers) > 16 else ''}"


def missing_on_the_terminal(address: str, num_processes: int) -> contextlib.AbstractContextManager[None]:
    """Which processes are waited for, on the terminal, if there is one, from two seconds on."""
    def who() -> str:
        whom = f"process 0 at {address}"
        with contextlib.suppress(OSError), socket.create_connection(split(address), timeout=5) as peer:
            missing = (_ask(peer, "who is missing?", time.monotonic() + 5) or {}).get("missing", [])
            whom = f"process{'es' * (len(missing) != 1)} {_listed(missing)} of {num_processes}"
        return f"hlotrace: waiting for {whom}"
    return status_line.going_on(who, LOOK_SECONDS)


def _ask(peer: socket.socket, message: Any, deadline: float) -> dict[str, Any] | None:
    """The answer to a message: {} for one that is not ours or a lost connection, None when it is late."""
    try:
        peer.sendall(json.dumps(message).encode() + b"\n")
        said = b""
        while b"\n" not in said:
            peer.settimeout(max(0.1, deadline - time.monotonic()))
            heard = peer.recv(4096)
            said += heard
            if not heard or len(said) > 1 << 20:
                return {}
        answer = json.loads(said.partition(b"\n")[0])
        return answer if isinstance(answer, dict) else {}
    except TimeoutError:
        return None
    except (OSError, ValueError):
        return {}


def _reach(address: str, process_id: int, deadline: float, seconds: float) -> socket.socket:
    """A connection to the coordinator's address, when something listens there."""
    while True:
        try:
            return socket.create_connection(split(address), timeout=max(1, deadline - time.monotonic()))
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"distributed.initialize: process {process_id} reached no coordinator at "
                                   f"{address} within {seconds} s ({error}); does process 0 run there, and "
                                   "did it start?") from error
        time.sleep(0.1)


def _end(why: str, process_id: int, num_processes: int) -> NoReturn:
    with contextlib.suppress(Exception):
        print(f"hlotrace: {why}. Process {process_id} of {num_processes} ends with status {STATUS}: a "
              "program over all processes cannot go on. Start all of them again.", file=sys.stderr,
              flush=True)
        sys.stdout.flush()
    os._exit(STATUS)


def _start_service(address: str, num_processes: int, heartbeat_seconds: int) -> Any:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                                "TF_CPP_MIN_LOG_LEVEL": "3"}
    # A session of its own: Ctrl-C is for the processes that compute. No stderr: nothing waits for it to be
    # closed.
    service: Any = subprocess.Popen(
        [sys.executable, "-m", "hlotrace.runtime.processes.coordinator", address, str(num_processes),
         str(heartbeat_seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        start_new_session=True)
    ready, _, _ = select.select([service.stdout], [], [], 60)
    said = service.stdout.readline().strip() if ready else "it did not start within 60 s"
    if said != "ready":
        service.kill()
        raise RuntimeError(f"distributed.initialize: process 0 cannot serve at {address}: "
                           f"{said or 'the service died'}")
    return service


class World:
    """A job of several processes, as the process `process_id` sees it."""

    def __init__(self, address: str, num_processes: int, process_id: int,
                 local_device_ids: Sequence[int] | None, heartbeat_seconds: int, leave_seconds: int,
                 connection: Any, service: Any) -> None:
        self.address, self.num_processes, self.process_id = address, num_processes, process_id
        self.local_device_ids, self.heartbeat_seconds = local_device_ids, heartbeat_seconds
        self.leave_seconds = leave_seconds  # how long it waits for the others when it is done
        self.client = connection
        self.companies: dict = {}       # processes -> agreement.Company
        self._service = service
        self._leaving = threading.Event()
        self._everyone = list(range(num_processes))
        # Two threads: the question who lives is answered late where one has died, and a note must not wait
        # for that.
        self._watchdogs = [threading.Thread(target=self._watch, args=[look], name="hlotrace-watchdog",
                                            daemon=True)
                           for look in (self._look_for_notes, self._look_for_silence)]
        for thread in self._watchdogs:
            thread.start()

    @functools.cache    # noqa: B019 - there is one World, which lasts as long as the process
    def preemption(self) -> Any:
        """What hears of SIGTERM in any of the processes, from the first call in this one on."""
        manager = binding._jax.create_preemption_sync_manager()
        manager.initialize(self.client)
        return manager

    def cpu_collectives(self) -> Any:
        """Gloo, on the interface from which the coordinator is reached: host names may mean loopback."""
        family, kind, protocol, _, target = socket.getaddrinfo(*split(self.address),
                                                               type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)       # a datagram socket: nothing is sent
            return binding._jax.make_gloo_tcp_collectives(self.client, probe.getsockname()[0], None)

    def _watch(self, look: Callable[[], None]) -> None:
        while not self._leaving.wait(min(1.0, self.heartbeat_seconds / 10)):
            try:
                look()
            except binding.JaxRuntimeError as error:
                if not self._leaving.is_set():
                    self._die(f"the coordination service at {self.address} is gone "
                              f"({str(error).splitlines()[0]})")
                return

    def _notes(self) -> dict[int, str]:
        return {int(key.rpartition("/")[2]): note for key, note in self.client.key_value_dir_get(ENDED)}

    def _look_for_notes(self) -> None:
        if (progress := consistency_checks.progress(self)) is not None:
            self.client.key_value_set(f"{consistency_checks.NEWS}progress/{self.process_id}", progress,
                                      allow_overwrite=True)
        for key, note in self.client.key_value_dir_get(consistency_checks.NEWS):
            kind, process = key.split("/")[-2:]
            if int(process) != self.process_id and (why := NEWS[kind](self, int(process), note)):
                self._die(why)

    def _look_for_silence(self) -> None:
        # In this order: who leaves says so first and then disconnects.  The call returns once all that live
        # have made it, so it also waits for a silent one, until its heartbeats are overdue.
        alive = self.client.get_live_nodes(self._everyone)
        ended = self._notes()
        for process in self._everyone:
            if process not in alive and process not in ended:
                self._die(f"process {process} is gone: no heartbeat for {self.heartbeat_seconds} s")

    def _die(self, why: str) -> NoReturn:
        # Those that wait for this process need not wait until it is silent.
        speaker = threading.Thread(target=self._say, args=[ENDED, _BECAUSE + why.partition(" (so ")[0]],
                                   daemon=True)
        speaker.start()
        speaker.join(1)
        _end(why, self.process_id, self.num_processes)

    def leave(self) -> None:
        """Wait until all processes are done, then disconnect.  RuntimeError when one does not come."""
        self._say(f"{consistency_checks.NEWS}leaving/", consistency_checks.counts(self))
        try:
            self.client.wait_at_barrier("hlotrace/leave", self.leave_seconds * 1000)
        except binding.JaxRuntimeError as error:
            why = f"not all processes came to distributed.shutdown() within {self.leave_seconds} s"
            self.fail(why)
            raise RuntimeError(f"{why}: {str(error).splitlines()[0]}") from error
        self._disconnect("left")
        if self._service is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._service.communicate("bye\n", timeout=10)

    def fail(self, why: str) -> None:
        """Tell the others that this process ends before its time."""
        self._disconnect(why, seconds=1)
        if self._service is not None:
            self._service.stdin.close()

    def _say(self, where: str, note: str) -> None:
        with contextlib.suppress(binding.JaxRuntimeError):
            self.client.key_value_set(f"{where}{self.process_id}", note)

    def _disconnect(self, note: str, seconds: float | None = None) -> None:
        self._say(ENDED, note)
        self._leaving.set()
        for thread in self._watchdogs:      # a thread must not return from C++ into an interpreter that ends
            thread.join(seconds or self.heartbeat_seconds)
        with contextlib.suppress(binding.JaxRuntimeError):
            if self._service is not None and note == "left":
                while len(self.client.get_live_nodes(self._everyone)) > 1:
                    pass        # it returns when another has left
            self.client.shutdown()


_BECAUSE = "it ended because "


def _failed(_: Any, process: int, note: str) -> str | None:
    if note.startswith(_BECAUSE):
        return f"{note[len(_BECAUSE):]} (so says process {process}, which ended)"
    return None if note == "left" else f"process {process} failed: {note}"


NEWS = {"ended": _failed, "waiting": consistency_checks.contradiction, "leaving": consistency_checks.missed,
        "progress": consistency_checks.strayed}


def _note_of(error: BaseException, world: World) -> str:
    """The note to the other processes of an error that ends this one."""
    why = f"{type(error).__name__}: {error}".splitlines()[0]
    if "Gloo" not in why:
        return why
    print(f"hlotrace: process {world.process_id} of {world.num_processes} lost the connection to another "
          "process, which was killed, or failed: see what that one says. This one ends with status 1. Start "
          "all of them again.", file=sys.stderr, flush=True)
    return f"it lost the connection to another process ({why})"


def leave() -> None:
    """Leave the job; nothing where there is none."""
    if client.world is not None:
        world, client.world = client.world, None
        atexit.unregister(_at_exit)
        world.leave()


def _at_exit(world: World) -> None:
    client.world = None
    try:
        world.leave()
    except RuntimeError as failure:
        world._die(str(failure))


def _after_main(world: World) -> None:
    """The main thread has ended by an uncaught error: end as the interpreter does, without its teardown.

    Work that waits for another process keeps XLA's clients from going, and a thread that comes back from C++
    into an interpreter that is half gone aborts the process.  The user's threads have some seconds to end by
    themselves.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None or client.world is not world:
        return
    faulthandler.dump_traceback_later(END_SECONDS, exit=True)
    deadline = time.monotonic() + END_SECONDS / 2
    atexit.unregister(_at_exit)
    world.fail(_note_of(error, world))
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join(max(0, deadline - time.monotonic()))
    atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(1)
