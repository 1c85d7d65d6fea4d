"""The door to jaxlib: NumPy values in and out of its buffers, parts and wholes, what it is told of a compilation."""
import numpy as np
import pytest

import hlotrace as jax
from hlotrace.core import dtypes
from hlotrace.core.avals import ShapedArray, physical
from hlotrace.runtime import binding
from hlotrace.runtime.devices import placement
from hlotrace.sharding import Mesh, NamedSharding, P

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0)])
@pytest.mark.parametrize("dtype", dtypes.SUPPORTED, ids=str)
def test_a_value_comes_back_from_a_buffer(dtype, shape):
    device = jax.devices()[-1]
    value = (np.arange(np.prod(shape, dtype=int)) % 2 + 1).reshape(shape).astype(dtype)
    aval = ShapedArray(shape, dtype)
    buffer = binding.device_put(value, aval, placement.on_device(device), device)
    found = binding.to_numpy(buffer, physical(aval))
    assert (found.dtype, found.shape) == (value.dtype, shape) and (found == value).all() and buffer.platform() == "cpu"
    again = binding.to_numpy(binding.copy_to_device(buffer, placement.on_device(jax.devices()[0]), jax.devices()[0]), aval)
    assert (again == value).all()


def test_parts_make_a_whole_and_come_out_of_it():
    devices = jax.devices()[:4]
    sharding = NamedSharding(Mesh(np.array(devices), ("x",)), P("x"))
    rows = [np.full((1, 3), i, np.float32) for i in range(4)]
    part, whole = ShapedArray((1, 3), "float32"), ShapedArray((4, 3), "float32")
    put = [binding.device_put(row, part, placement.on_device(d), d) for row, d in zip(rows, devices)]
    for buffer in (binding.join(put, whole, sharding), binding.device_put_shards(rows, whole, sharding, devices)):
        found = [binding.to_numpy(b, part) for b in binding.shards(buffer)]
        np.testing.assert_array_equal(np.concatenate(found), np.concatenate(rows))
    assert binding.rewrap(put[0], ShapedArray((1, 3), "float32", True), placement.on_device(devices[0])).aval.weak_type


def test_parts_are_those_of_their_devices_where_jax_is_imported_too(monkeypatch):
    """JAX gives jaxlib's class methods, which say of ours that each device has the whole."""
    jaxlibs = binding.Several.__mro__[1]
    monkeypatch.setattr(jaxlibs, "_to_xla_hlo_sharding", lambda self, ndim: self._hlo_sharding, raising=False)
    monkeypatch.setattr(jaxlibs, "is_fully_replicated", True, raising=False)
    x = np.arange(8.).reshape(4, 2)
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:4]), ("x",)), P("x"))
    for y in (jax.device_put(x, sharding), jax.make_array_from_callback((4, 2), sharding, lambda i: x[i])):
        np.testing.assert_array_equal(y, x)
    assert not sharding._of_jaxlib.is_fully_replicated


@pytest.mark.parametrize("value", [np.zeros((), "float32"), np.zeros((2, 3), "int8"), np.zeros((4, 2), "complex64").T,
                                   np.zeros(3, "uint16"), np.zeros((2, 2, 2), "float64")[:, ::-1], np.zeros((1, 2), bool)],
                         ids=lambda x: f"{x.dtype}{list(x.shape)}")
def test_what_a_capsule_says_of_its_array(value):
    shape, name, row_major, address = binding.dlpack_type(value.__dlpack__())
    assert (shape, name, row_major) == (value.shape, value.dtype.name, value.flags.c_contiguous)
    assert address == value.ctypes.data


def test_what_is_told_of_a_compilation():
    """On which devices, and what differs from the defaults."""
    devices = jax.devices()[5:1:-1]
    options = binding.compile_options(devices, {"xla_cpu_enable_fast_math": True}, 2, 1, 7)
    build = options.executable_build_options
    assert (build.num_replicas, build.num_partitions, options.profile_version) == (1, 4, 7)
    assert (int(build.optimization_level), int(build.memory_fitting_level)) == (2, 1)
    assert options.env_option_overrides == [("xla_cpu_enable_fast_math", True)]
    assert str(options.device_assignment) == str(binding.device_assignment([[5, 4, 3, 2]]))
    alone = binding.compile_options(devices[:1])
    assert build.use_spmd_partitioning and not alone.executable_build_options.use_spmd_partitioning
    assert alone.env_option_overrides == [] and alone.profile_version != 7


def test_levels_have_the_names_of_options():
    assert binding.guard_level(None) is None and binding.garbage_level(None) == binding.garbage_level("allow")
    assert len({binding.guard_level(name) for name in ("allow", "log", "disallow", "log_explicit", "disallow_explicit")}) == 5


def test_the_end_of_an_error_that_misleads_is_left_out():
    assert binding.readable("no such type\n Failed to parse using StableHLO v1.2") == "no such type"
