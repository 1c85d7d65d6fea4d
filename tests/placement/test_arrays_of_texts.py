"""NumPy's arrays of texts, StringDType: put on CPUs, read back, and refused by programs."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

DEVICE = jax.devices()[0]
WORDS = [["abc", "de"], ["", "x" * 100]]
TEXTS = np.array(WORDS, np.dtypes.StringDType())


@pytest.mark.parametrize("put", [
    lambda: jax.device_put(TEXTS, DEVICE), lambda: jnp.asarray(TEXTS, device=DEVICE),
    lambda: jax.device_put(jax.device_put(TEXTS, DEVICE), jax.devices()[-1]),
    lambda: jax.make_array_from_callback((2, 2), jax.sharding.SingleDeviceSharding(DEVICE), TEXTS.__getitem__),
    lambda: jax.device_put(TEXTS, jax.NamedSharding(jax.make_mesh((2,), ("x",)), jax.P("x")))])
def test_texts_come_back(put):
    x = put()
    assert x.dtype == TEXTS.dtype and x.shape == (2, 2) and x.tolist() == np.asarray(x).tolist() == WORDS
    assert "".join(str(s.data.tolist()) for s in x.addressable_shards).count("abc") == 1 and "'de'" in repr(x)
    assert jax.eval_shape(lambda y: y, x).dtype == TEXTS.dtype


@pytest.mark.parametrize("wrong, words", [
    (lambda x: jax.device_put(TEXTS), "only be sharded to CPU"), (lambda x: jnp.asarray(TEXTS), "not a valid JAX array type"),
    (lambda x: jax.jit(lambda y: y)(x), "not a valid JAX type"), (lambda x: x[0], "not a valid JAX type"),
    (lambda x: x + x, "does not accept dtype"), (lambda x: jax.jit(lambda y: y)(TEXTS), "not a valid"),
    (lambda x: jnp.asarray(TEXTS, "float32"), "not a valid"), (lambda x: x.copy(), "not a valid")])
def test_no_operation_takes_texts(wrong, words):
    with pytest.raises(TypeError, match=words):
        wrong(jax.device_put(TEXTS, DEVICE))


def test_profiles_of_memory_name_them():
    texts = jax.device_put(TEXTS, jax.devices("cpu")[0])
    with pytest.raises(jax.errors.JaxRuntimeError, match="arrays of texts: delete them first"):
        jax.profiler.device_memory_profile()
    assert texts.shape == (2, 2)
