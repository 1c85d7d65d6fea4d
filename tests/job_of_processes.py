"""Jobs of several processes on loopback, each of which runs a function of a file of tests; what these functions use."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import forked
import numpy as np
import pytest

import hlotrace as jax
from hlotrace.sharding import Mesh, NamedSharding, PartitionSpec as P

HEARTBEAT = 3


class Job:
    """Processes that run the `task` of a file, with output in files; none outlives the `with` block."""

    def __init__(self, file: str, folder: Path, task: str, count: int, devices: int):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self.files = [folder / f"process{i}.txt" for i in range(count)]
        self.processes = []
        for i, written in enumerate(self.files):
            arguments = [task, f"127.0.0.1:{port}", count, i, devices, folder]
            with written.open("w") as out:
                self.processes.append(
                    forked.Process(
                        forked.file(file),
                        *arguments,
                        env=forked.of_one_job(),
                        stdout=out,
                        stderr=subprocess.STDOUT,
                    )
                )

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def said(self, i: int) -> str:
        return self.files[i].read_text("utf-8")

    def wait(self, reached, seconds: float) -> None:
        """Return when `reached(i)` for every process i; fail after so many seconds."""
        deadline = time.monotonic() + seconds
        for i in range(len(self.processes)):
            while not reached(i):
                if time.monotonic() > deadline:
                    pytest.fail(f"process {i} did not get there in {seconds} s:\n{self.said(i)}")
                time.sleep(0.02)

    def end(self, seconds: float) -> list[int]:
        """The statuses of the processes, which are given so much time."""
        self.wait(lambda i: self.processes[i].poll() is not None, seconds)
        return [process.returncode for process in self.processes]


def run_task(functions):
    """What a process of a job does: join the others, and call the one of these functions that is asked for."""
    task, address, count, rank, devices, _ = sys.argv[1:]
    jax.config.update("jax_num_cpu_devices", int(devices))
    jax.distributed.initialize(address, int(count), int(rank), heartbeat_timeout_seconds=HEARTBEAT)
    functions[task]()


def mesh():
    """All devices: axis "p" is the processes, "d" the devices of each."""
    shape = jax.process_count(), jax.local_device_count()
    return Mesh(np.array(jax.devices()).reshape(shape), ("p", "d"))


def on(*spec):
    return NamedSharding(mesh(), P(*spec))


def table():
    """Two rows for each device, the same in every process."""
    return np.arange(jax.device_count() * 6, dtype=np.float32).reshape(-1, 3)
