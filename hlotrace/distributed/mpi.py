"""This process's place among those of an MPI launcher, which they tell each other; needs mpi4py."""
from __future__ import annotations

import socket
from collections.abc import Mapping


def place(env: Mapping[str, str]) -> tuple[str, int, int, tuple[int, ...] | None]:
    """Coordinator, processes, number of this one and of its accelerators, by ranks.

    Rank 0 chooses a free port of its host, and sends the address to all.  With several processes on a host,
    each has the accelerator of its number there, unless the launcher already shows each process its own.
    """
    from mpi4py import MPI  # type: ignore[import-not-found]
    world = MPI.COMM_WORLD
    shared = world.Split_type(MPI.COMM_TYPE_SHARED)
    index, alone = world.Get_rank(), shared.Get_size() == world.Get_size()
    address = world.bcast(_address(alone) if index == 0 else None, root=0)
    one = shared.Get_size() > 1 and "CUDA_VISIBLE_DEVICES" not in env
    return address, world.Get_size(), index, (shared.Get_rank(),) if one else None


def _address(alone: bool) -> str:
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
    return f"{'127.0.0.1' if alone else socket.gethostname()}:{port}"
