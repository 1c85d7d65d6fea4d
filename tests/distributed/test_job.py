"""Several processes: their places from the environment, and real ones on loopback that live, leave and die."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from places import ROOT

from hlotrace import distributed
from hlotrace.distributed.clusters import Place, detect, first_host

SLURM = {
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_NODELIST": "gpu[03-05,9]",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
}
TPU = {"TPU_WORKER_HOSTNAMES": "t0,t1", "TPU_WORKER_ID": "1"}
SLICES = {"MEGASCALE_COORDINATOR_ADDRESS": "c:81", "MEGASCALE_NUM_SLICES": "3", "MEGASCALE_SLICE_ID": "2"}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("env", "host", "rest"),
    [
        ({}, None, (None, None, None)),
        (SLURM, "gpu03", (8, 5, (1,))),
        (SLURM | {"CUDA_VISIBLE_DEVICES": "3"}, "gpu03", (8, 5, None)),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "2"}, "gpu03", (2, 5, (1,))),
        ({k: v for k, v in SLURM.items() if k != "SLURM_PROCID"}, None, (None, None, None)),  # sbatch, no step
        (OMPI, "10.96.0.1", (4, 2, (0,))),
        (OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "127.0.0.1", (4, 2, (0,))),
        ({k: v for k, v in OMPI.items() if "MCA" not in k}, None, (4, 2, (0,))),
        (TPU, "t0", (2, 1, None)),
        (TPU | SLICES, "c", (6, 5, None)),
        (
            {"HLOTRACE_COORDINATOR_ADDRESS": "a:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "0"},
            "a",
            (2, 0, None),
        ),
        ({"JAX_COORDINATOR_ADDRESS": "j:1", "HLOTRACE_COORDINATOR_ADDRESS": "h:1"}, "h", (None, None, None)),
        (SLURM | {"JAX_COORDINATOR_ADDRESS": "a:1", "JAX_LOCAL_DEVICE_IDS": "0,1"}, "a", (8, 5, (0, 1))),
        (OMPI | SLURM, "gpu03", (8, 5, (1,))),
    ],
)
def test_a_place_is_read_from_the_environment(env, host, rest):
    address, *found = detect(env)
    assert (address and address.partition(":")[0], tuple(found)) == (host, rest)
    assert address is None or 0 < int(address.partition(":")[2]) < 65536


@pytest.mark.quick
def test_the_method_of_detection_is_chosen():
    assert detect(OMPI | SLURM, "ompi").num_processes == 4
    assert detect(SLURM, "deactivate") == Place()
    with pytest.raises(ValueError, match="want slurm, ompi, cloud_tpu or deactivate"):
        detect(SLURM, "k9s")


@pytest.mark.quick
def test_processes_of_a_job_agree_on_a_port_and_jobs_differ():
    assert detect(SLURM)[0] == detect(SLURM | {"SLURM_PROCID": "0"})[0]
    assert detect(SLURM)[0] != detect(SLURM | {"SLURM_JOB_ID": "78"})[0]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("nodes", "host"),
    [("n1", "n1"), ("n1,n2", "n1"), ("n[07-9]", "n07"), ("n[3,5],m1", "n3"), ("a-b[01-02]-x,c", "a-b01-x")],
)
def test_the_first_host_of_a_slurm_list(nodes, host):
    assert first_host(nodes) == host


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        ({}, {}, "coordinator_address is not given"),
        ({"coordinator_address": "h:1", "num_processes": 2}, {}, "process_id is not given"),
        ({"coordinator_address": "h", "num_processes": 2, "process_id": 0}, {}, "'h' is not host:port"),
        ({"coordinator_address": "h:1", "num_processes": 2, "process_id": 2}, {}, "process_id 2 is not one of 2"),
        ({}, {"JAX_PROCESS_ID": "one"}, "JAX_PROCESS_ID='one' in the environment is not a number"),
        (
            {"coordinator_address": "h:1", "num_processes": 1, "process_id": 0, "heartbeat_timeout_seconds": 0},
            {},
            "at least 1",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments, env, words, monkeypatch):
    for name in os.environ:
        if name.startswith(("JAX_", "HLOTRACE_", "SLURM_", "OMPI_", "TPU_")):
            monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=words):
        distributed.initialize(**arguments)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


HEARTBEAT = 3
STARTED: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def none_is_left():
    yield
    while STARTED:
        with STARTED.pop() as process:
            process.kill()


def start(program: str, rank: int, port: int, count: int = 2) -> subprocess.Popen:
    head = f"""
import os, signal, sys, time
import hlotrace as jax, hlotrace.numpy as jnp
rank = {rank}
jax.config.update("jax_num_cpu_devices", 3)
def join(**more):
    jax.distributed.initialize("127.0.0.1:{port}", {count}, rank, heartbeat_timeout_seconds={HEARTBEAT}, **more)
"""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "HLOTRACE_"))}
    process = subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(program)],
        cwd=ROOT,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    STARTED.append(process)
    return process


def end(process: subprocess.Popen, seconds: float) -> tuple[int, str, str]:
    """Status, output and errors of a process, which is given so much time."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"a process did not end within {seconds} s:\n" + "\n".join(process.communicate()))
    return process.returncode, out.strip(), err


@pytest.mark.parametrize("ending", ["jax.distributed.shutdown()\nprint(jax.distributed.is_initialized())", "print(False)"])
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
    processes = [start("join()\njax.devices()\nprint('here', flush=True)\ntime.sleep(100)", r, port) for r in (0, 1)]
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


@pytest.mark.parametrize(
    ("program", "rank", "status", "words"),
    [
        ("jnp.ones(3)\njoin()", 0, 1, "the cpu client was made by <string>"),
        ("join()\njoin()", 0, 1, "should only be called once"),
        ("join(initialization_timeout=1)", 1, 1, "process 1 reached no coordinator"),
    ],
)
def test_joining_wrongly(program, rank, status, words):
    found, _, errors = end(start(program, rank, free_port(), 1 + rank), 60)
    assert found == status and words in errors, errors


def test_waiting_for_a_process_that_does_not_come_has_an_end():
    status, _, errors = end(start("join(initialization_timeout=2)", 0, free_port(), 3), 60)
    assert status == 1 and "after 2 s not all 3 processes have called distributed.initialize()" in errors
    assert "missing: 1, 2\n" in errors


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([(0, 3), (1, 3), (1, 3)], "two processes have process_id 1: "),
        ([(0, 2), (1, 4)], "num_processes is "),
    ],
)
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
