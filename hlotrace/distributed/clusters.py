"""Which job of several processes this process belongs to, read from the environment that a launcher made.

Functions of a mapping, which read no network and no file; but Kubernetes says a pod's full name only in its
files, and `mpi4py`, where it is chosen, speaks to the other processes.
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


def host_of(address: str) -> str:
    """The host of "host", "host:port", "[fd00::1]:port" or a bare "fd00::1"; IPv6 addresses in brackets."""
    if address.startswith("["):
        return address.partition("]")[0] + "]"
    return f"[{address}]" if address.count(":") > 1 else address.partition(":")[0]


def first_host(nodes: str) -> str:
    """The first name of a SLURM list: "gpu[03-05,9],x1" gives "gpu03", and "a[1-2]b[3-4]" gives "a1b3".
    ValueError for what is no such list."""
    found = re.match(r"(?:[^\[\],]|\[[^\[\]]+\])+(?=,|$)", nodes)
    if found is None:
        raise ValueError(f"distributed.initialize: SLURM_STEP_NODELIST={nodes!r} names no host")
    return re.sub(r"\[([^\],-]+)[^\]]*\]", r"\1", found[0])


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
    launcher = re.search(r"tcp6?://\[?([0-9.]+|[0-9a-fA-F:]+)[,\]:]", uri)
    host = None
    if env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == env["OMPI_COMM_WORLD_SIZE"]:
        host = "127.0.0.1"
    elif launcher:
        host = host_of(launcher[1])
    job = uri.partition(".")[0] or env.get("PMIX_NAMESPACE", "")
    return Place(host and f"{host}:{_port(job)}", _number(env, "OMPI_COMM_WORLD_SIZE"),
                 _number(env, "OMPI_COMM_WORLD_RANK"), _one_device(env, "OMPI_COMM_WORLD_LOCAL_RANK"))


def cloud_tpu(env: Mapping[str, str]) -> Place | None:
    """A TPU slice, or several joined by MEGASCALE variables."""
    if not {"TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"} <= env.keys():
        return None
    hosts = env["TPU_WORKER_HOSTNAMES"].split(",")
    worker, slices, this = _number(env, "TPU_WORKER_ID"), 1, 0
    coordinator = host_of(hosts[0])
    if {"MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID"} <= env.keys():
        slices, this = _number(env, "MEGASCALE_NUM_SLICES"), _number(env, "MEGASCALE_SLICE_ID")
        coordinator = host_of(env["MEGASCALE_COORDINATOR_ADDRESS"])
    return Place(f"{coordinator}:8476", len(hosts) * slices, worker + this * len(hosts))


def k8s(env: Mapping[str, str]) -> Place | None:
    """A pod of an indexed Kubernetes Job or JobSet with a headless service.

    No variable says how many pods there are: the manifest sets JAX_NUM_PROCESSES.
    """
    if not {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX", "HOSTNAME"} <= env.keys():
        return None
    index = _number(env, "JOB_COMPLETION_INDEX")
    job, dash, number = env["HOSTNAME"].rpartition("-")
    if not dash or number != str(index):        # a host name of the pod's own
        return Place(process_id=index)
    import socket

    # A pod's name without its service's, which its full name has, is known to itself alone.
    domain = socket.getfqdn(env["HOSTNAME"]).partition(".")[2]
    return Place(f"{job}-0.{domain}:{_port(job)}" if domain else None, process_id=index)


def jaxoperator(env: Mapping[str, str]) -> Place | None:
    """A process that AIchor's operator on Kubernetes started."""
    names = [f"JAXOPERATOR_{name}" for name in ("COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID")]
    if not {*names[:2]} <= env.keys():
        return None
    address, count, index = names
    return Place(env[address], _number(env, count), _number(env, index) if index in env else None)


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


METHODS = {"slurm": slurm, "ompi": ompi, "cloud_tpu": cloud_tpu, "jaxoperator": jaxoperator, "k8s": k8s}


def detect(env: Mapping[str, str], method: str | None = None) -> Place:
    """This process's place by the plain variables and, where they are silent, by the launcher's.

    Args:
        method: one of METHODS, "mpi4py", "deactivate" (plain variables only), or None: the first of METHODS
            that fits.
    Raises:
        ValueError: for another method, or variables that are not what they should be.
        ImportError: for "mpi4py" where it is not installed.
    """
    if method is not None and method not in (*METHODS, "mpi4py", "deactivate"):
        raise ValueError(f"cluster_detection_method={method!r}: want {', '.join(METHODS)}, mpi4py or "
                         "deactivate")
    place = plain(env)
    if method == "mpi4py":
        from . import mpi
        return _filled(place, Place(*mpi.place(env)))
    for name, find in METHODS.items():
        if None not in place[:3]:
            break
        found = find(env) if method in (None, name) else None
        if found is not None:
            return _filled(place, found)
    return place


def _filled(place: Place, found: Place) -> Place:
    return Place._make(said if said is not None else other for said, other in zip(place, found))
