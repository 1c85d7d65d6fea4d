"""This process among several: joining them, watching that they live, leaving together.

A collective whose peer has died may wait for ever in XLA (with several devices a process it often does).  So threads
here ask the coordination service which processes live and what they left word of, and end this one, with a message,
when another is gone.
"""
import atexit
import contextlib
import faulthandler
import os
import select
import socket
import subprocess
import sys
import threading
import time

from . import binding, client
from .coordinator import ENDED

STATUS = 3              # the exit status of a process that ends because another did
LEAVE_SECONDS = 300     # how long a process that is done waits for the others
END_SECONDS = 10        # how long a process that failed may take to end


def join(address, num_processes, process_id, local_device_ids, *, init_seconds, heartbeat_seconds, bind_address):
    """Make this process one of several, once all have come.

    Raises RuntimeError when no coordinator is reached.  When it is, and some process does not come, this one ends with a
    message: XLA's connecting cannot be left.
    """
    if client.made_by():
        raise RuntimeError("distributed.initialize() must be called before the first array, device or compiled call, but "
                           + client.made_by())
    deadline = time.monotonic() + init_seconds
    service = _start_service(bind_address, num_processes, heartbeat_seconds) if process_id == 0 else None
    _reach(address, process_id, deadline, init_seconds)
    connection = binding._jax.get_distributed_runtime_client(
        address, process_id, init_timeout=init_seconds + 60, heartbeat_timeout=heartbeat_seconds, shutdown_timeout=5,
        shutdown_on_destruction=True, use_compression=True)
    came = threading.Timer(max(1, deadline - time.monotonic()), _end, [
        f"after {init_seconds} s not all {num_processes} processes have called distributed.initialize() with the "
        f"coordinator {address}", process_id, num_processes])
    came.daemon = True
    came.start()
    connection.connect()
    came.cancel()
    client.world = World(address, num_processes, process_id, local_device_ids, heartbeat_seconds, connection, service)
    atexit.register(_at_exit, client.world)


def _reach(address, process_id, deadline, seconds):
    """Wait until somebody listens at the coordinator's address: XLA would abort the process where nobody does."""
    host, port = _split(address)
    while True:
        try:
            socket.create_connection((host, port), timeout=max(1, deadline - time.monotonic())).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"distributed.initialize: process {process_id} reached no coordinator at {address} "
                                   f"within {seconds} s ({error}); does process 0 run there, and did it start?") from error
        time.sleep(0.1)


def _split(address):
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _end(why, process_id, num_processes):
    with contextlib.suppress(Exception):
        print(f"hlotrace: {why}. Process {process_id} of {num_processes} ends with status {STATUS}: "
              "a program over all processes cannot go on. Start all of them again.", file=sys.stderr, flush=True)
        sys.stdout.flush()
    os._exit(STATUS)


def _start_service(address, num_processes, heartbeat_seconds):
    host, port = _split(address)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise RuntimeError(f"distributed.initialize: process 0 cannot serve at {address}: {error}") from error
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TF_CPP_MIN_LOG_LEVEL": "3"}
    # A session of its own: Ctrl-C is for the processes that compute. No stderr: nobody waits for it to be closed.
    service = subprocess.Popen(
        [sys.executable, "-m", "hlotrace.runtime.coordinator", address, str(num_processes), str(heartbeat_seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        start_new_session=True)
    ready, _, _ = select.select([service.stdout], [], [], 60)
    said = service.stdout.readline().strip() if ready else "it did not start within 60 s"
    if said != "ready":
        service.kill()
        raise RuntimeError(f"distributed.initialize: no coordination service at {address}: {said or 'it died'}")
    return service


class World:
    """A job of several processes, as the process `process_id` sees it."""

    def __init__(self, address, num_processes, process_id, local_device_ids, heartbeat_seconds, connection, service):
        self.address, self.num_processes, self.process_id = address, num_processes, process_id
        self.local_device_ids, self.heartbeat_seconds = local_device_ids, heartbeat_seconds
        self.client = connection
        self._service = service
        self._leaving = threading.Event()
        self._everyone = list(range(num_processes))
        # Two threads: the question who lives is answered late where one has died, and a note must not wait for that.
        self._watchdogs = [threading.Thread(target=self._watch, args=[look], name="hlotrace-watchdog", daemon=True)
                           for look in (self._look_for_notes, self._look_for_silence)]
        for thread in self._watchdogs:
            thread.start()

    def cpu_collectives(self):
        """Gloo, listening on the interface from which the coordinator is reached: host names may mean loopback."""
        family, kind, protocol, _, target = socket.getaddrinfo(*_split(self.address), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)       # a datagram socket: nothing is sent
            return binding._jax.make_gloo_tcp_collectives(self.client, probe.getsockname()[0], None)

    def _watch(self, look):
        while not self._leaving.wait(min(1.0, self.heartbeat_seconds / 10)):
            try:
                look()
            except binding.JaxRuntimeError as error:
                if not self._leaving.is_set():
                    self._die(f"the coordination service at {self.address} is gone ({str(error).splitlines()[0]})")
                return

    def _notes(self):
        return {int(key.rpartition("/")[2]): note for key, note in self.client.key_value_dir_get(ENDED)}

    def _look_for_notes(self):
        for process, note in self._notes().items():
            if note != "left" and process != self.process_id:
                self._die(f"process {process} failed: {note}")

    def _look_for_silence(self):
        # In this order: who leaves says so first and then disconnects.  The call returns once all that live have made
        # it, so it also waits for a silent one, until its heartbeats are overdue.
        alive = self.client.get_live_nodes(self._everyone)
        ended = self._notes()
        for process in self._everyone:
            if process not in alive and process not in ended:
                self._die(f"process {process} is gone: no heartbeat for {self.heartbeat_seconds} s")

    def _die(self, why):
        _end(why, self.process_id, self.num_processes)

    def leave(self):
        """Wait until all processes are done, then disconnect.  Raises RuntimeError when one does not come."""
        try:
            self.client.wait_at_barrier("hlotrace/leave", LEAVE_SECONDS * 1000)
        except binding.JaxRuntimeError as error:
            why = f"not all processes came to distributed.shutdown() within {LEAVE_SECONDS} s"
            self.fail(why)
            raise RuntimeError(f"{why}: {str(error).splitlines()[0]}") from error
        self._disconnect("left")
        if self._service is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._service.communicate("bye\n", timeout=10)

    def fail(self, why):
        """Tell the others that this process ends before its time."""
        self._disconnect(why, seconds=1)
        if self._service is not None:
            self._service.stdin.close()

    def _disconnect(self, note, seconds=None):
        with contextlib.suppress(binding.JaxRuntimeError):
            self.client.key_value_set(f"{ENDED}{self.process_id}", note)
        self._leaving.set()
        for thread in self._watchdogs:      # a thread must not return from C++ into an interpreter that ends
            thread.join(seconds or self.heartbeat_seconds)
        with contextlib.suppress(binding.JaxRuntimeError):
            if self._service is not None and note == "left":
                while len(self.client.get_live_nodes(self._everyone)) > 1:
                    pass        # it returns when another has left
            self.client.shutdown()


def _told(error, world):
    """What the other processes are told of an error that ends this one."""
    why = f"{type(error).__name__}: {error}".splitlines()[0]
    if "Gloo" not in why:
        return why
    print(f"hlotrace: process {world.process_id} of {world.num_processes} lost the connection to another process, which "
          "was killed, or failed: see what that one says. This one ends with status 1. Start all of them again.",
          file=sys.stderr, flush=True)
    return f"it lost the connection to another process ({why})"


def leave():
    """Leave the job; nothing where there is none."""
    if client.world is not None:
        world, client.world = client.world, None
        atexit.unregister(_at_exit)
        world.leave()


def _at_exit(world):
    client.world = None
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is not None:
        # Work that waits for the other processes may keep the interpreter from ending.
        faulthandler.dump_traceback_later(END_SECONDS, exit=True)
        world.fail(_told(error, world))
        return
    try:
        world.leave()
    except RuntimeError as failure:
        world._die(str(failure))
