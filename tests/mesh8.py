"""Eight CPU devices: meshes over them, placing arrays and saying where they are, for tests.

Those tests say what JAX does, so they run on JAX itself too, where a module `hlotrace` stands for
`jax`. `ON_JAX` is true there: a test that JAX fails, crashes on or has no opinion about asks it.
"""
import functools

import numpy as np

import hlotrace as jax
from hlotrace.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from hlotrace.sharding import PartitionSpec as P

ON_JAX = jax.__name__ == "jax"

# What an error says about a dimension 0 of size 6 that four devices are to share.
UNEVEN = r"(?s)(?=.*(axis|dimension) 0)(?=.*size (is )?6\b)(?=.*\b4\b)"
MIXED = "(?i)incompatible devices"
DELETED = "deleted|donated"


@functools.cache
def devices():
    """The eight devices, asked for when a test runs: importing a test file makes no client."""
    found = jax.devices()
    assert len(found) == 8, (
        f"there are {len(found)} devices; set XLA_FLAGS=--xla_force_host_platform_device_count=8")
    return found


def grid():
    """Devices 0 to 7 as 4 rows along "data", of 2 along "model"."""
    return Mesh(np.array(devices()).reshape(4, 2), ("data", "model"))


def auto_mesh(sizes, names, **options):
    """make_mesh of Auto axes."""
    kinds = (AxisType.Auto,) * (1 if isinstance(names, str) else len(names))
    return jax.make_mesh(sizes, names, axis_types=kinds, **options)


def line():
    """All devices in a row, "x"."""
    return Mesh(np.array(devices()), ("x",))


def low():
    """Devices 0 to 3 in a row, "x"."""
    return Mesh(np.array(devices()[:4]), ("x",))


def high():
    """Devices 4 to 7 in a row, "x"."""
    return Mesh(np.array(devices()[4:]), ("x",))


def backwards():
    """All devices in a row, "x", the last one first."""
    return Mesh(np.array(devices()[::-1]), ("x",))


def one(k):
    """The sharding that is device k alone."""
    return SingleDeviceSharding(devices()[k])


def on_device(x, k):
    """`x` committed to device k."""
    return jax.device_put(x, devices()[k])


def on(*spec, mesh=grid):
    """The NamedSharding of these entries of a spec, over the grid unless told."""
    return NamedSharding(mesh(), P(*spec))


def put(x, *spec, mesh=grid):
    """`x` placed by these entries of a spec."""
    return jax.device_put(x, on(*spec, mesh=mesh))


def lies(array, *spec, mesh=grid):
    """True where `array` is placed as these entries of a spec say, however that is written."""
    return array.sharding.is_equivalent_to(on(*spec, mesh=mesh), array.ndim)


def counting(shape, dtype=np.float32):
    """0, 1, 2, ... as an array of a shape: sums and products of a few are exact in float32."""
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def _equal(got, want):
    """Assert that two arrays are equal, NaN where there is NaN; in a tenth of the time where there is none."""
    if not np.array_equal(got, want):
        np.testing.assert_array_equal(got, want)


def whole(array, want):
    """`array` has the type and values of `want`, seen as one array and shard by shard."""
    want = np.asarray(want)
    assert array.shape == want.shape and array.dtype == want.dtype
    _equal(np.asarray(array), want)
    shards = array.addressable_shards
    assert array.is_fully_addressable and {s.device for s in shards} == array.devices()
    for shard in shards:
        assert shard.data.devices() == {shard.device}
        _equal(np.asarray(shard.data), want[shard.index])


# Shardings for an (8, 4) array, made when a test runs: devices are asked for then.
PLACES = {
    "first device": lambda: one(0),
    "device 6": lambda: one(6),
    "rows": lambda: on("data"),
    "columns": lambda: on(None, "model"),
    "tiles": lambda: on("data", "model"),
    "tiles turned": lambda: on("model", "data"),
    "a row each": lambda: on(("data", "model")),
    "everywhere": lambda: on(),
    "line": lambda: on("x", mesh=line),
    "line backwards": lambda: on("x", mesh=backwards),
    "low half": lambda: on("x", mesh=low),
    "high half": lambda: on(None, "x", mesh=high),
    "two": lambda: on("x", mesh=lambda: Mesh(devices()[2:4], "x")),
    "mesh of one": lambda: on("x", mesh=lambda: Mesh(devices()[5:6], "x")),
}
