"""The coordination service of a job of several processes: `python -m hlotrace.runtime.processes.coordinator
ADDRESS N SECONDS`.

It is a process of its own, which computes nothing: inside process 0 it would end with it, and XLA aborts a
process whose service is gone before anything can be said.  Before XLA's service runs, the address is that of
a roll call: each process says its number and what must be the same in all, and waits until all have come.
XLA itself takes a second process of one number for the first, come back.

Process 0 holds the standard input: "bye" there says that all have left.  An end without it means that
process 0 died; the others get a note that says so, then the address is free for the next try.
"""
from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import sys
import threading
import time
from typing import Any

from .. import binding

ENDED = "hlotrace/news/ended/"       # + number: "left", or why a process failed


def split(address: str) -> tuple[str, int]:
    """(host, port) of "host:port"."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def main(address: str, num_processes: int, heartbeat_seconds: int) -> int:
    host, port = split(address)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host
                                        else socket.AF_INET, dualstack_ipv6=host == "::", backlog=1024)
    except OSError as error:
        print(error, flush=True)
        return 1
    print("ready", flush=True)
    roll = RollCall(listener, num_processes)
    if not roll.all_come():
        return 0
    listener.close()
    service = binding._jax.get_distributed_runtime_service(
        address, num_processes, heartbeat_timeout=heartbeat_seconds, shutdown_timeout=5, recoverable=True)
    roll.answer({"go": True})
    if sys.stdin.readline().strip() != "bye":
        threading.Thread(target=_speak_for_process_0, args=[address, num_processes], daemon=True).start()
        time.sleep(5)       # the others look every second or more often
        os._exit(0)
    service.shutdown()
    return 0


class RollCall:
    """Who has come.  A process sends a line of JSON: {"process": number, "where": words, "same": what all
    must have}."""

    def __init__(self, listener: socket.socket, num_processes: int) -> None:
        self.listener, self.num_processes = listener, num_processes
        self.came: dict[int, Any] = {}          # number -> (socket, what it said)
        self.objection: str | None = None   # why there will be no job
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.selector.register(sys.stdin, selectors.EVENT_READ)

    def all_come(self) -> bool:
        """Wait for that; False when process 0 is gone, which started this one."""
        while len(self.came) < self.num_processes or self.objection:
            for key, _ in self.selector.select():
                if key.fileobj is sys.stdin:
                    return False
                if key.fileobj is self.listener:
                    with contextlib.suppress(OSError):
                        self.selector.register(self.listener.accept()[0], selectors.EVENT_READ, bytearray())
                else:
                    self._hear(key.fileobj, key.data)
        return True

    def _hear(self, peer: Any, said: bytearray) -> None:
        try:
            heard = peer.recv(4096)
        except OSError:
            heard = b""
        said += heard
        if not heard or len(said) > 4096:
            self.selector.unregister(peer)
            peer.close()
            self.came = {number: one for number, one in self.came.items() if one[0] is not peer}
        while b"\n" in said:
            line, _, said[:] = said.partition(b"\n")
            with contextlib.suppress(ValueError, KeyError, TypeError, OSError):     # not one of ours
                self._answer_to(peer, json.loads(line))

    def _answer_to(self, peer: socket.socket, hello: Any) -> None:
        if hello == "who is missing?":
            return _send(peer, {"missing": [i for i in range(self.num_processes) if i not in self.came]})
        number = int(hello["process"])
        self.objection = self.objection or self._objection(number, hello)
        if self.objection:
            _send(peer, {"error": self.objection})
            self.answer({"error": self.objection})
        else:
            self.came[number] = peer, hello
        return None

    def _objection(self, number: int, hello: dict[str, Any]) -> str | None:
        """Why this process and those that came cannot be one job, or None."""
        if number in self.came:
            return (f"two processes have process_id {number}: {self.came[number][1]['where']} and "
                    f"{hello['where']}. Give each its own number")
        for other, (_, first) in self.came.items():
            for name, value in hello["same"].items():
                if value != first["same"][name]:
                    return (f"{name} is {first['same'][name]} in process {other} ({first['where']}) and "
                            f"{value} in process {number} ({hello['where']}). It must be the same in all")
        return None

    def answer(self, message: Any) -> None:
        for peer, _ in self.came.values():
            with contextlib.suppress(OSError):
                _send(peer, message)


def _send(peer: socket.socket, message: Any) -> None:
    peer.sendall(json.dumps(message).encode() + b"\n")


def _speak_for_process_0(address: str, num_processes: int) -> None:
    """Leave a note where the other processes look.  A process may come back under its number; this is 0."""
    port = address.rpartition(":")[2]
    speaker = binding._jax.get_distributed_runtime_client(
        address if address.startswith("127.") else f"localhost:{port}", 0, init_timeout=5,
        heartbeat_timeout=10, shutdown_timeout=1, shutdown_on_destruction=False)
    with contextlib.suppress(binding.JaxRuntimeError):
        speaker.connect()
        # Refused where process 0 has left a note itself.
        speaker.key_value_set(f"{ENDED}0", "it was killed, or died without a word")
    with contextlib.suppress(binding.JaxRuntimeError):
        while True:         # their question who lives is answered once all that live have asked it
            speaker.get_live_nodes(list(range(num_processes)))
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
