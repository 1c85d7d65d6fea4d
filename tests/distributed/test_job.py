"""Several processes: what `initialize` refuses, and real ones on loopback that live, leave and die."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import forked
import pytest

from hlotrace import distributed
from hlotrace.runtime.devices import client
from hlotrace.runtime.processes import membership


@pytest.fixture
def no_array_yet(monkeypatch):
    monkeypatch.setattr(client, "made_by", lambda: "")


@pytest.mark.quick
@pytest.mark.parametrize("arguments", [("h:1", 2, 0), (), ("h:1", 2, 5)])
def test_after_the_first_array_nothing_else_is_looked_at(arguments):
    client.client("cpu")
    with pytest.raises(RuntimeError, match="before the first array"):
        distributed.initialize(*arguments)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        ({}, {}, "coordinator_address is not given"),
        ({"coordinator_address": "h:1", "num_processes": 2}, {}, "process_id is not given"),
        ({"coordinator_address": "h", "num_processes": 2, "process_id": 0}, {}, "'h' is not host:port"),
        ({"coordinator_address": "h:1", "num_processes": 2, "process_id": 2}, {},
         "process_id 2 is not one of 2"),
        ({}, {"JAX_PROCESS_ID": "one"}, "JAX_PROCESS_ID='one' in the environment is not a number"),
        (
            {"coordinator_address": "h:1", "num_processes": 1, "process_id": 0,
             "heartbeat_timeout_seconds": 0},
            {},
            "at least 1",
        ),
        (
            {"coordinator_address": "h:1", "num_processes": 1, "process_id": 0,
             "shutdown_timeout_seconds": 0},
            {},
            r"at least 1; got \(300, 100, 0\)",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments, env, words, monkeypatch, no_array_yet):
    for name in os.environ:
        if name.startswith(("JAX_", "HLOTRACE_", "SLURM_", "OMPI_", "TPU_")):
            monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=words):
        distributed.initialize(**arguments)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["slice_index", "partition_index"])
def test_groups_of_accelerators_are_refused_by_name(name, no_array_yet):
    with pytest.raises(NotImplementedError, match=f"initialize: {name} is not supported"):
        distributed.initialize("h:1", 1, 0, **{name: 0})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


HEARTBEAT = 3
STARTED: list[forked.Process] = []


@pytest.fixture(autouse=True)
def none_is_left():
    yield
    while STARTED:
        with STARTED.pop() as process:
            process.kill()


def start(program: str, rank: int, port: int, count: int = 2) -> forked.Process:
    head = f"""
import os, signal, sys, time
import hlotrace as jax, hlotrace.numpy as jnp
rank = {rank}
jax.config.update("jax_num_cpu_devices", 3)
def join(**more):
    jax.distributed.initialize("127.0.0.1:{port}", {count}, rank, heartbeat_timeout_seconds={HEARTBEAT}, **more)
"""
    process = forked.Process(head + textwrap.dedent(program), env=forked.of_one_job())
    STARTED.append(process)
    return process


def end(process: forked.Process, seconds: float) -> tuple[int, str, str]:
    """Status, output and errors of a process, which is given so much time."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"a process did not end within {seconds} s:\n" + "\n".join(process.communicate()))
    return process.returncode, out.strip(), err


@pytest.mark.parametrize(
    "ending", ["jax.distributed.shutdown()\nprint(jax.distributed.is_initialized())", "print(False)"])
def test_two_processes_see_each_others_devices_and_leave_together(ending):
    program = f"""
join()
print(jax.process_index(), jax.process_count(), jax.device_count(), jax.local_device_count())
print(len(jax.local_devices(process_index=1 - rank)), jax.distributed.is_initialized(), jnp.arange(3.0).sum())
time.sleep(rank)
{ending}
"""
    port = free_port()
    processes = [start(program, rank, port) for rank in (0, 1)]
    for rank, process in enumerate(processes):
        assert end(process, 60)[:2] == (0, f"{rank} 2 6 3\n3 True 3.0\nFalse")


@pytest.mark.parametrize("victim", [0, 1])
def test_when_a_process_is_killed_the_other_ends(victim):
    port = free_port()
    processes = [start("join()\njax.devices()\nprint('here', flush=True)\ntime.sleep(100)", r, port)
                 for r in (0, 1)]
    for process in processes:
        assert process.stdout.readline() == "here\n"
    began = time.monotonic()
    processes[victim].send_signal(signal.SIGKILL)
    status, _, errors = end(processes[1 - victim], HEARTBEAT + 10)
    assert status == 3, errors
    assert f"hlotrace: process {victim} {'is gone' if victim else 'failed'}" in errors
    assert f"Process {1 - victim} of 2 ends with status 3" in errors
    assert time.monotonic() - began < HEARTBEAT + 10
    end(processes[victim], 10)


@pytest.mark.parametrize("victim", [0, 1])
def test_when_a_process_raises_the_other_is_told_at_once(victim):
    port = free_port()
    program = f"join()\nif rank == {victim}: raise ValueError('my fault')\ntime.sleep(100)"
    processes = [start(program, rank, port) for rank in (0, 1)]
    assert end(processes[victim], 60)[0] == 1
    status, _, errors = end(processes[1 - victim], HEARTBEAT + 10)
    assert status == 3 and f"process {victim} failed: ValueError: my fault" in errors, errors


@pytest.mark.parametrize(("program", "rank", "status", "words"),
                         [("jnp.ones(3)\njoin()", 0, 1, "the cpu client was made by <string>"),
                          ("join()\njoin()", 0, 1, "should only be called once"),
                          ("join(initialization_timeout=1)", 1, 1, "process 1 reached no coordinator")])
def test_joining_wrongly(program, rank, status, words):
    found, _, errors = end(start(program, rank, free_port(), 1 + rank), 60)
    assert found == status and words in errors, errors


def test_waiting_for_a_process_that_does_not_come_has_an_end():
    status, _, errors = end(start("join(initialization_timeout=2)", 0, free_port(), 3), 60)
    assert status == 1 and "after 2 s not all 3 processes have called distributed.initialize()" in errors
    assert "missing: 1, 2\n" in errors


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(("missing", "words"), [
    ([1, 2], "\rhlotrace: waiting for processes 1, 2 of 3, 0 s"),
    ([2], "\rhlotrace: waiting for process 2 of 3, 0 s"),
    (None, "\rhlotrace: waiting for process 0 at 127.0.0.1:")])
def test_on_a_terminal_it_says_whom_it_waits_for(missing, words, terminal, monkeypatch):
    stderr = io.StringIO()
    stderr.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(membership, "LOOK_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if missing is None:
            server.close()

        def answer():
            with contextlib.suppress(OSError):      # the server is closed
                while True:
                    peer, _ = server.accept()
                    assert peer.recv(4096) == b'"who is missing?"\n'
                    peer.sendall(json.dumps({"missing": missing}).encode() + b"\n")
                    peer.close()
        threading.Thread(target=answer, daemon=True).start()
        with membership.missing_on_the_terminal(address, 3):
            end = time.monotonic() + (10 if terminal else 0.3)
            while words not in stderr.getvalue() and time.monotonic() < end:
                time.sleep(0.02)
    assert (words in stderr.getvalue()) == terminal
    assert stderr.getvalue().endswith("\r") == terminal         # and cleared when all have come


def test_waiting_for_others_to_be_done_has_an_end():
    port = free_port()
    programs = ("join(shutdown_timeout_seconds=1)\njax.distributed.shutdown()",
                "join()\nprint('joined', flush=True)\ntime.sleep(100)")
    first, second = (start(program, rank, port) for rank, program in enumerate(programs))
    status, _, errors = end(first, 60)
    assert status == 1 and "RuntimeError: not all processes came to distributed.shutdown() within 1 s" in errors
    assert end(second, HEARTBEAT + 10)[0] == 3


@pytest.mark.parametrize(("places", "words"),
                         [([(0, 3), (1, 3), (1, 3)], "two processes have process_id 1: "),
                          ([(0, 2), (1, 4)], "num_processes is ")])
def test_processes_that_are_no_job_are_told_so(places, words):
    port = free_port()
    processes = [start("join(initialization_timeout=60)", rank, port, count) for rank, count in places]
    for process in processes:
        status, _, errors = end(process, 60)
        assert status == 1 and words in errors and "pid" in errors, errors


def test_one_that_comes_to_a_job_that_runs_is_told_so():
    port = free_port()
    first = start("join()\nprint('joined', flush=True)\ntime.sleep(100)", 0, port, 1)
    assert first.stdout.readline() == "joined\n"
    late = [start("join()", rank, port, 2) for rank in (0, 1)]
    for process, words in zip(late, ("process 0 cannot serve", "does not wait for process 1")):
        status, _, errors = end(process, 60)
        assert status == 1 and words in errors, errors
    assert first.poll() is None


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        status, _, errors = end(start("join()", 0, server.getsockname()[1]), 60)
    assert status == 1 and "process 0 cannot serve at 127.0.0.1:" in errors, errors
