"""A job of several processes: `initialize` in each, before the first array; `shutdown` when all are done."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..runtime.devices import client
from ..runtime.processes import membership
from . import clusters

__all__ = ["initialize", "is_initialized", "shutdown"]


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None, local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
               coordinator_bind_address: str | None = None, slice_index: int | None = None,
               partition_index: int | None = None) -> None:
    """Join the processes of a job; `devices()` are then those of all of them.

    What is not given is taken from HLOTRACE_ or JAX_ COORDINATOR_ADDRESS, NUM_PROCESSES, PROCESS_ID and
    LOCAL_DEVICE_IDS, and from the variables of SLURM, Open MPI, Cloud TPU, AIchor's operator and indexed
    Kubernetes jobs; these have a headless service, and say JAX_NUM_PROCESSES in their manifest.  Process 0
    starts the service at "host:port", which the others reach.

    When a process dies, each of the others ends with a message within `heartbeat_timeout_seconds` and 10 s
    more, wherever it waits: with status 3, or, where a collective breaks off first, with status 1 and its
    error.  With status 3 also when one leaves by itself, say by sys.exit(0), while another is in a program
    that needs it.

    All must run the same programs on devices that they share, in the same order.  Before such a program runs
    for the first time they compare digests of it, so that all raise RuntimeError where it differs, and
    `device_put` compares values; of what ran before the order is compared every second, and all end with
    status 3 where it differs.  The option `hlotrace_check_processes`, the same in all, turns this off.

    Args:
        coordinator_address: "host:port" of the service that process 0 starts.
        process_id: which one this is, counted from 0.
        local_device_ids: the numbers of those accelerators of the host that this process uses; all by
            default.
        cluster_detection_method: "slurm", "ompi", "cloud_tpu", "jaxoperator", "k8s"; "mpi4py", which asks
            the package of that name, under any MPI launcher; or "deactivate" to read no launcher's variables.
        initialization_timeout: within how many seconds all processes must come.
        heartbeat_timeout_seconds: after how many seconds of silence a process counts as dead.
        shutdown_timeout_seconds: how long a process that is done waits for the others to be done.
        coordinator_bind_address: the address on which process 0 listens, if not on all of the host's.
        slice_index: which group of accelerators this process's are in; not supported.
        partition_index: as `slice_index`.
    Raises:
        RuntimeError: when called twice, or after the first array; when no coordinator is reached, or not all
            come in time; in all processes when two have one id or their counts or versions of jaxlib differ.
        ValueError: for what is missing or wrong.
        NotImplementedError: for `slice_index` or `partition_index`.

    >>> jax.distributed.initialize("10.0.0.1:1234", num_processes=2, process_id=0)       # doctest: +SKIP
    """
    if is_initialized():
        raise RuntimeError("distributed.initialize() should only be called once in a process")
    if client.made_by():
        raise RuntimeError("distributed.initialize() must be called before the first array, device or "
                           "compiled call, but " + client.made_by())
    for name, number in (("slice_index", slice_index), ("partition_index", partition_index)):
        if number is not None:
            raise NotImplementedError(f"distributed.initialize: {name} is not supported: devices have the "
                                      "slice that their plugin says; create_hybrid_device_mesh("
                                      "process_is_granule=True) groups them by process")
    found = clusters.detect(os.environ, cluster_detection_method)
    given = coordinator_address, num_processes, process_id, local_device_ids
    place: tuple[Any, ...] = tuple(said if one is None else one for one, said in zip(given, found))
    for name, value in zip(("coordinator_address", "num_processes", "process_id"), place):
        if value is None:
            raise ValueError(f"distributed.initialize: {name} is not given, and the environment does not say "
                             f"it: pass it, set HLOTRACE_{name.upper()}, or start with srun or mpirun")
    address, count, index, ids = place
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit()):
        raise ValueError(f"distributed.initialize: coordinator_address {address!r} is not host:port")
    if not 0 <= index < count:
        raise ValueError(f"distributed.initialize: process_id {index} is not one of {count} processes (0 to "
                         f"{count - 1})")
    seconds = initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds
    if min(seconds) < 1:
        raise ValueError("distributed.initialize: initialization_timeout, heartbeat_timeout_seconds and "
                         f"shutdown_timeout_seconds are whole seconds, at least 1; got {seconds}")
    membership.join(address, count, index, (ids,) if isinstance(ids, int) else ids,
                    init_seconds=int(initialization_timeout),
                    heartbeat_seconds=int(heartbeat_timeout_seconds),
                    leave_seconds=int(shutdown_timeout_seconds),
                    bind_address=coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS")
                    or (address if host in _LOOPBACK else f"{_anywhere()}:{port}"))


def _anywhere() -> str:
    import socket
    return "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"


_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def shutdown() -> None:
    """Wait for the other processes to be done as well, and leave.  Also called when the interpreter ends.

    >>> jax.distributed.shutdown()
    """
    membership.leave()


def is_initialized() -> bool:
    """Is this process one of a job?

    >>> jax.distributed.is_initialized()
    False
    """
    return client.world is not None
