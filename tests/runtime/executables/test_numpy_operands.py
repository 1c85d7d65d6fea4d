"""NumPy arrays as arguments of compiled functions and of operations: jaxlib's dispatch copies small ones."""
import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import dtypes

DTYPES = sorted({d for d in dtypes.SUPPORTED if d not in dtypes.SMALL_INTS}, key=str)


@pytest.fixture(scope="module")
def identity():
    return jax.jit(lambda x, y: (x, jnp.reshape(y, (-1,))))


@pytest.mark.parametrize("x64", [False, True])
def test_a_numpy_argument_is_what_it_is_as_an_array(identity, x64):
    wide = {np.dtype(k): np.dtype(v) for k, v in {
        "int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}.items()}
    with jax.enable_x64(x64):
        for dtype in DTYPES:
            x = (np.arange(24).reshape(6, 4) % 2 + 1).astype(dtype)[::2]
            for value in (x, np.asfortranarray(x), x.copy()):
                for _ in range(3):      # the first call compiles, the second is found, the third is dispatched
                    one, flat = identity(value, value)
                assert one.dtype == flat.dtype == (dtype if x64 else wide.get(dtype, dtype)), dtype
                np.testing.assert_array_equal(np.asarray(one), value.astype(one.dtype), str(dtype))
                np.testing.assert_array_equal(np.asarray(flat), value.astype(one.dtype).reshape(-1))


@pytest.mark.parametrize("shape", [(), (0,), (1, 0, 2)])
def test_numpy_arguments_of_no_axes_and_of_no_elements(identity, shape):
    value = np.ones(shape, np.float32)
    for _ in range(3):
        one, flat = identity(value, value)
        assert one.shape == shape and np.asarray(one).tolist() == value.tolist() and flat.size == value.size


def aligned(n, offset):
    """An array that begins `offset` bytes after a multiple of 64, where XLA reads without a copy."""
    raw = np.zeros(4 * n + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start:start + 4 * n].view(np.float32)


@pytest.mark.parametrize("size", [64, 100_000])
def test_an_argument_that_is_rewritten_after_the_call_is_read_before(size):
    w = jnp.ones((600, 600))
    late = jax.jit(lambda w, x: (w @ w @ w)[0, 0] * 0 + x)      # x is read when the products are done
    x = aligned(size, 0)
    for n in range(4):
        x[:] = n
        result = late(w, x)
        x[:] = -1
        np.testing.assert_array_equal(np.asarray(result), np.full(size, n, np.float32))


def test_arrays_keys_numbers_and_numpy_arrays_go_together():
    mixed = jax.jit(lambda key, x, y, n: jax.random.uniform(key, (3,)) * 0 + x + y * n)
    key, x, y = jax.random.key(0), jnp.ones(3), np.arange(3, dtype=np.float32)
    for n in (2.0, 3.0):
        for _ in range(3):
            np.testing.assert_array_equal(mixed(key, x, y, n), 1 + y * n)
    words = jax.random.key_data(key)
    plain = jax.jit(lambda key, y: jnp.sum(y))
    assert plain(words, y) == plain(key, y) == 3


def test_keyword_and_static_arguments_beside_numpy_arrays():
    f = jax.jit(lambda x, n, *, y: {"a": x * n, "b": (y,)}, static_argnums=1)
    for n in (2, 3, 2, 2):
        result = f(np.ones(2, np.float32), n, y=np.float32(4))
        np.testing.assert_array_equal(result["a"], np.full(2, n, np.float32))
        assert result["b"][0] == 4


def test_arguments_of_which_some_are_containers_are_not_taken_for_those_without():
    f, x = jax.jit(lambda x, more=None: x if more is None else x + more["a"]), jnp.ones(3)
    for value in (x, np.ones(3, np.float32)):
        for _ in range(3):
            np.testing.assert_array_equal(f(value, {"a": x}), [2, 2, 2])
        for _ in range(3):
            np.testing.assert_array_equal(f(value), [1, 1, 1])


def test_an_operation_of_an_array_and_a_numpy_array():
    x, y = jnp.arange(3.0), np.arange(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(x + y, 2 * np.arange(3.0))
        np.testing.assert_array_equal(jax.lax.mul(x, np.float32(2)), 2 * np.arange(3.0))
        np.testing.assert_array_equal(jax.lax.add(x, y.astype(np.float32)), 2 * np.arange(3.0))


def test_arguments_elsewhere_beside_numpy_arrays():
    f, value = jax.jit(lambda x, y: x + y), np.ones(3, np.float32)
    for _ in range(3):
        f(value, value)
    there = jax.device_put(jnp.ones(3), jax.devices()[0])
    for _ in range(3):
        result = f(there, value)
        assert result.committed
    gone = jnp.ones(3) + 0
    f(gone, value), f(gone, value)
    gone.delete()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="deleted"):
            f(gone, value)
    np.testing.assert_array_equal(f(value, value), [2, 2, 2])


def test_a_transfer_guard_refuses_numpy_arguments():
    f, value = jax.jit(lambda x: x + 1), np.ones(3, np.float32)
    for _ in range(3):
        f(value)
    with jax.transfer_guard_host_to_device("disallow"):
        with pytest.raises(jax.errors.JaxRuntimeError, match="[Dd]isallowed"):
            f(value)
    np.testing.assert_array_equal(f(value), [2, 2, 2])


def test_what_is_no_array_is_refused_as_before():
    f = jax.jit(lambda x: x)
    for value in (np.array(["a"]), np.array([object()]), np.zeros(2, [("a", int)])):
        for _ in range(2):
            with pytest.raises(TypeError):
                f(value)
    assert f(np.ones(2, ml_dtypes.bfloat16)).dtype == jnp.bfloat16


def test_what_a_callback_raises_is_raised_once():
    calls = []

    def fail(x):
        calls.append(x)
        raise KeyError("mine")
    f = jax.jit(lambda x: jax.pure_callback(fail, x, x) + 1)
    there = jax.device_put(jnp.ones(3), jax.devices()[0])
    for x in (np.ones(3, np.float32), jnp.ones(3), there):
        for _ in range(3):
            calls.clear()
            with pytest.raises(KeyError, match="mine"):
                f(x).block_until_ready()
            assert len(calls) == 1
