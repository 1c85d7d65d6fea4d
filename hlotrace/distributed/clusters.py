"""Which job of several processes this process belongs to, read from the environment that a launcher made.

Pure functions of a mapping: no network and no file is read.
"""
from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Place(NamedTuple):
    """What is known of this process's place; None: not said."""
    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: tuple | None = None


def _number(env: Mapping[str, str], name: str) -> int:
    try:
        return int(env[name])
    except ValueError:
        raise ValueError(f"distributed.initialize: {name}={env[name]!r} in the environment is not a "
                         "number") from None


def _port(job: str) -> int:
    """A port that all processes of a job work out alike, and other jobs on the host probably not."""
    return 61440 + zlib.crc32(job.encode()) % 4096


def _one_device(env: Mapping[str, str], name: str) -> tuple[int, ...] | None:
    """One accelerator a process, unless the launcher already shows each process its own."""
    return None if "CUDA_VISIBLE_DEVICES" in env or name not in env else (_number(env, name),)


def first_host(nodes: str) -> str:
    """The first name of a SLURM list: "gpu[03-05,9],x1" gives "gpu03"."""
    found = re.match(r"([^\[,]+)(?:\[([^\],-]+)[^\]]*\])?([^,\[]*)", nodes)
    if found is None:
        raise ValueError(f"distributed.initialize: SLURM_STEP_NODELIST={nodes!r} names no host")
    return "".join(part or "" for part in found.groups())


def slurm(env: Mapping[str, str]) -> Place | None:
    """A step of `srun`."""
    if not {"SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID"} <= env.keys():
        return None
    port = _port(env["SLURM_JOB_ID"] + env.get("SLURM_STEP_ID", ""))
    address = f"{first_host(env['SLURM_STEP_NODELIST'])}:{port}"
    count = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in env else "SLURM_NTASKS"
    return Place(address, _number(env, count), _number(env, "SLURM_PROCID"),
                 _one_device(env, "SLURM_LOCALID"))


def ompi(env: Mapping[str, str]) -> Place | None:
    """`mpirun` of Open MPI; version 5 no longer says the launcher's address, so there one host only."""
    if not {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"} <= env.keys():
        return None
    uri = env.get("OMPI_MCA_orte_hnp_uri", "")
    launcher = re.search(r"tcp://([0-9.]+)", uri)
    host = None
    if env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == env["OMPI_COMM_WORLD_SIZE"]:
        host = "127.0.0.1"
    elif launcher:
        host = launcher[1]
    job = uri.partition(".")[0] or env.get("PMIX_NAMESPACE", "")
    return Place(host and f"{host}:{_port(job)}", _number(env, "OMPI_COMM_WORLD_SIZE"),
                 _number(env, "OMPI_COMM_WORLD_RANK"), _one_device(env, "OMPI_COMM_WORLD_LOCAL_RANK"))


def cloud_tpu(env: Mapping[str, str]) -> Place | None:
    """A TPU slice, or several joined by MEGASCALE variables."""
    if not {"TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"} <= env.keys():
        return None
    hosts = env["TPU_WORKER_HOSTNAMES"].split(",")
    worker, slices, this = _number(env, "TPU_WORKER_ID"), 1, 0
    coordinator = hosts[0].partition(":")[0]
    if {"MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID"} <= env.keys():
        slices, this = _number(env, "MEGASCALE_NUM_SLICES"), _number(env, "MEGASCALE_SLICE_ID")
        coordinator = env["MEGASCALE_COORDINATOR_ADDRESS"].partition(":")[0]
    return Place(f"{coordinator}:8476", len(hosts) * slices, worker + this * len(hosts))


def plain(env: Mapping[str, str]) -> Place:
    """HLOTRACE_COORDINATOR_ADDRESS, _NUM_PROCESSES, _PROCESS_ID, _LOCAL_DEVICE_IDS, or the same with JAX_."""
    def first(name: str, parse: Callable[[Mapping[str, str], str], Any]) -> Any:
        for prefix in ("HLOTRACE_", "JAX_"):
            if prefix + name in env:
                return parse(env, prefix + name)
        return None

    def text(env: Mapping[str, str], name: str) -> str:
        return env[name]

    def numbers(env: Mapping[str, str], name: str) -> tuple[int, ...]:
        try:
            return tuple(int(part) for part in env[name].split(","))
        except ValueError:
            raise ValueError(f"distributed.initialize: {name}={env[name]!r} is not numbers with "
                             "commas") from None

    return Place(first("COORDINATOR_ADDRESS", text), first("NUM_PROCESSES", _number),
                 first("PROCESS_ID", _number), first("LOCAL_DEVICE_IDS", numbers))


METHODS = {"slurm": slurm, "ompi": ompi, "cloud_tpu": cloud_tpu}


def detect(env: Mapping[str, str], method: str | None = None) -> Place:
    """This process's place by the plain variables and, where they are silent, by the launcher's.

    `method` is one of METHODS, "deactivate" (plain variables only), or None: the first that fits.
    """
    if method is not None and method not in (*METHODS, "deactivate"):
        raise ValueError(f"cluster_detection_method={method!r}: want {', '.join(METHODS)} or deactivate")
    place = plain(env)
    for name, find in METHODS.items():
        if None not in place[:3]:
            break
        found = find(env) if method in (None, name) else None
        if found is not None:
            return Place._make(said if said is not None else other for said, other in zip(place, found))
    return place
