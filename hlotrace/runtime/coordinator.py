"""The coordination service of a job of several processes: `python -m hlotrace.runtime.coordinator ADDRESS N SECONDS`.

It is a process of its own, which computes nothing: inside process 0 it would end with it, and XLA aborts a process whose
service is gone before anything can be said.  Process 0 holds its standard input: "bye" there says that all have left.
An end without it means that process 0 died; the others are told so, then the address is free for the next try.
"""
import contextlib
import os
import sys
import threading
import time

from . import binding

ENDED = "hlotrace/ended/"       # + number: "left", or why a process failed


def main(address, num_processes, heartbeat_seconds):
    try:
        service = binding._jax.get_distributed_runtime_service(
            address, num_processes, heartbeat_timeout=heartbeat_seconds, shutdown_timeout=5, recoverable=True)
    except binding.JaxRuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
        return 1
    print("ready", flush=True)
    if sys.stdin.readline().strip() != "bye":
        threading.Thread(target=_speak_for_process_0, args=[address, num_processes], daemon=True).start()
        time.sleep(5)       # the others look every second or more often
        os._exit(0)
    service.shutdown()
    return 0


def _speak_for_process_0(address, num_processes):
    """Leave a note where the other processes look.  A process may come back under its number; this one does, as 0."""
    port = address.rpartition(":")[2]
    speaker = binding._jax.get_distributed_runtime_client(
        address if address.startswith("127.") else f"localhost:{port}", 0, init_timeout=5, heartbeat_timeout=10,
        shutdown_timeout=1, shutdown_on_destruction=False)
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
