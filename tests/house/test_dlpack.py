"""Memory shared with NumPy through DLPack."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.dlpack import from_dlpack, is_supported_dtype

DTYPES = ["bool", "int8", "int32", "uint64", "float16", "float64", "complex64"]


def aligned(n, dtype, offset=0):
    """A NumPy array whose address is a multiple of 64, and `offset` bytes."""
    size = np.dtype(dtype).itemsize * n
    buffer = np.zeros(size + 128, np.uint8)
    start = -buffer.ctypes.data % 64 + offset
    return buffer[start:start + size].view(dtype)


def test_values_and_dtypes():
    for dtype in DTYPES:
        rows = np.arange(6).astype(dtype).reshape(2, 3)
        for x in rows, rows.T[::2], np.array(1, dtype):
            for more in {}, {"copy": True}, {"device": jax.devices()[0]}:
                found = from_dlpack(x, **more)
                assert found.dtype == jax.dtypes.canonicalize_dtype(dtype)
                np.testing.assert_array_equal(found, x)
    narrow = jnp.arange(3, dtype="bfloat16")
    assert from_dlpack(narrow).dtype == "bfloat16" and from_dlpack(
        from_dlpack(narrow, copy=True)).tolist() == [0, 1, 2]


def test_memory_is_shared_where_it_can_be():
    x = aligned(16, "float32")
    shared, copied = from_dlpack(x, copy=False), from_dlpack(x, copy=True)
    x[0] = 5
    assert shared[0] == 5 and copied[0] == 0
    other = jax.devices()[-1]
    assert from_dlpack(x, other).devices() == {other}
    for y, more in (aligned(16, "float32", 4), {}), (x[::2], {}), (aligned(4, "int64"), {}), (
        x, {"device": other}):
        with pytest.raises(ValueError, match="copy=False"):
            from_dlpack(y, copy=False, **more)
    for device in (None, jax.devices()[0], jnp.ones(2).sharding):
        assert from_dlpack(jnp.ones(2), copy=False, device=device).tolist() == [1, 1]


def test_what_does_not_go():
    for value in 3, "text":
        with pytest.raises(TypeError, match="__dlpack__"):
            from_dlpack(value)
    assert all(map(is_supported_dtype, [*DTYPES, "bfloat16", float, jnp.int8]))
    assert not any(map(is_supported_dtype, ["int4", jnp.float8_e5m2, "S1", object]))
    with pytest.raises(TypeError, match="None"):
        is_supported_dtype(None)
