"""Devices, meshes and shardings for tests that need no device: these stand in for devices."""
import dataclasses
import re

import numpy as np
import pytest

from hlotrace.sharding import Mesh, P, PositionalSharding


@dataclasses.dataclass(frozen=True)
class Client:
    process: int

    def process_index(self):
        return self.process


@dataclasses.dataclass(frozen=True, repr=False)
class Device:
    id: int
    process_index: int = 0
    client: Client = Client(0)
    platform: str = "cpu"

    def __repr__(self):
        return f"CpuDevice(id={self.id})"


DEVICES = [Device(i) for i in range(8)]
MESH = Mesh(np.array(DEVICES).reshape(4, 2), ("data", "model"))
REVERSED = Mesh(np.array(DEVICES[::-1]).reshape(2, 4), ("a", "b"))
U = P.UNCONSTRAINED
grid = PositionalSharding(DEVICES)


def raises(error, text):
    return pytest.raises(error, match=re.escape(text))
