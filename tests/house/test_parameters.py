"""Parameters that are refused, and small ones that work: a table of calls and what comes of them."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import mesh_utils


class Tpu:
    platform, device_kind = "tpu", "TPU v4"

    def __init__(self, x, process_index):
        self.coords, self.process_index = (x, 0, 0), process_index


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.cond(True, lambda x: x, lambda x: -x, 1.0, linear=(True,)), NotImplementedError,
     "cond: linear"),
    (lambda: lax.erfc(1.0, accuracy=lax.AccuracyMode.HIGHEST), NotImplementedError, "lax.erfc: accuracy"),
    (lambda: lax.tanh(1.0, accuracy="highest"), NotImplementedError, "lax.tanh: accuracy"),
    (lambda: jnp.ones(3).__array_namespace__(api_version="2019.10"), ValueError, "'2019.10'"),
    (lambda: jnp.ones(3).to_device(jax.devices()[0], stream=1), NotImplementedError, "to_device.*: stream"),
    (lambda: mesh_utils.create_device_mesh((4,), [Tpu(i, 0) for i in range(4)], contiguous_submeshes=True),
     ValueError, "leave contiguous_submeshes out"),
    (lambda: mesh_utils.create_device_mesh((2, 2), [Tpu(i, 0) for i in range(4)]), NotImplementedError,
     "pass allow_split_physical_axes=True"),
])
def test_what_is_not_done_is_refused_by_name(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_version_of_the_array_api_that_is_there():
    assert jnp.ones(3).__array_namespace__(api_version="2024.12") is jnp.ones(3).__array_namespace__() is jnp


def test_what_the_namespace_says_of_itself():
    info = jnp.__array_namespace_info__()
    assert info.devices() == [None, *jax.local_devices()] and info.default_device() is None
    assert set(info.capabilities()) == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert "int64" not in info.dtypes() and info.default_dtypes()["indexing"] == "int32"
    with jax.enable_x64():
        assert info.dtypes(kind=("real floating", "bool")).keys() == {"bool", "float32", "float64"}
        assert info.default_dtypes()["complex floating"] == "complex128"
    assert jnp.__array_api_version__ == "2024.12"


def test_the_default_accuracy_is_taken():
    assert lax.exp(0.0, accuracy=lax.AccuracyMode.DEFAULT) == lax.exp(0.0, accuracy=None) == 1


def test_astype_copies_if_asked():
    x = jnp.arange(4.0)
    assert x.astype(np.float32) is x
    copied = x.astype(np.float32, copy=True)
    assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(copied, x)
