"""What tests of shard_map and pmap share: two meshes, ways to map over them, comparison, errors."""
import math
import re

import numpy as np
import pytest

import hlotrace as jax
from hlotrace.sharding import Mesh, PartitionSpec as P

DEVICES = np.array(jax.devices())
LINE, GRID = Mesh(DEVICES[:4], ("x",)), Mesh(DEVICES.reshape(4, 2), ("x", "y"))
ROWS, RING = P("x"), [(k, (k + 1) % 4) for k in range(4)]
both_modes = pytest.mark.parametrize("check", [True, False], ids=["checked", "unchecked"])


def A(*shape):
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


def on_line(f, in_specs=ROWS, out_specs=ROWS, **options):
    return jax.shard_map(f, mesh=LINE, in_specs=in_specs, out_specs=out_specs, **options)


def on_grid(f, in_specs=ROWS, out_specs=ROWS, **options):
    return jax.shard_map(f, mesh=GRID, in_specs=in_specs, out_specs=out_specs, **options)


def varying(x):
    return jax.typeof(x).manual_axis_type.varying


def raises(error, *words):
    """pytest.raises where the message holds all of `words`, in any order."""
    return pytest.raises(error, match="(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words))
