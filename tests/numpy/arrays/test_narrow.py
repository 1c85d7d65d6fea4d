"""Types of fewer than 8 bits: what NumPy does with bytes, done with bits."""
import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp


@pytest.mark.parametrize("old, new, size", [
    ("int2", "int8", 8), ("int4", "int8", 4), ("int2", "int4", 4), ("uint4", "int16", 4), ("int8", "int4", 2),
    ("float4_e2m1fn", "uint8", 4)])
def test_view_counts_bits(old, new, size):
    bits = {"2": 2, "4": 4, "8": 8, "6": 16}
    width = [bits[n.split("_")[0][-1]] for n in (old, new)]
    values = (np.arange(2 * size) % 2).reshape(2, size)
    x = jnp.asarray(values, old)
    got = x.view(new)
    assert got.dtype == new and got.shape == (2, size * width[0] // width[1])
    np.testing.assert_array_equal(np.asarray(got.view(old), np.float32), values)
    if width[0] < width[1]:
        with pytest.raises(ValueError, match=f"last axis has {width[0]} bits, and each element of the result {width[1]}"):
            x[:, :1].view(new)


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4"])
def test_randint_of_narrow_types(dtype):
    info = jnp.iinfo(dtype)
    x = jax.random.randint(jax.random.key(0), (200,), -100, 100, dtype)
    assert x.dtype == dtype and set(np.asarray(x, int)) == set(range(int(info.min), int(info.max) + 1))
    few = jax.random.randint(jax.random.key(0), (50,), 0, 2, dtype)
    np.testing.assert_array_equal(np.asarray(few, int), jax.random.randint(jax.random.key(0), (50,), 0, 2, "int8"))


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4"])
@pytest.mark.parametrize("out", [None, "int32", "same"])
def test_products_of_narrow_types(dtype, out):
    values = np.random.default_rng(0).integers(0, 2, (4, 5))
    x, out = jnp.asarray(values, dtype), dtype if out == "same" else out
    expected = jnp.asarray(values.T @ values, out or dtype)
    found = jax.lax.dot(x.T, x, preferred_element_type=out)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype(int), expected.astype(int))
    image, kernel = x[None, None], x[None, None, :2, :2]
    found = jax.lax.conv_general_dilated(image, kernel, (1, 1), "VALID", preferred_element_type=out)
    plain = jax.lax.conv_general_dilated(*(a.astype("int32") for a in (image, kernel)), (1, 1), "VALID")
    np.testing.assert_array_equal(found.astype(int), plain.astype(out or dtype).astype(int))


def test_scalar_type_of_a_dtype():
    assert [jax.dtypes.scalar_type_of(np.dtype(d)) for d in (bool, ml_dtypes.int4, "bfloat16", "complex64")] == [
        bool, int, float, complex]


@pytest.mark.parametrize("call", [lambda k: k.view("uint32"), lambda k: jax.lax.bitcast_convert_type(k, jnp.uint32)])
def test_keys_have_no_bits(call):
    with pytest.raises(ValueError, match="random.key_data"):
        call(jax.random.key(0))
