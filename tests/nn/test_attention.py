"""dot_product_attention: values as those of the plain formula, masks, biases, errors."""
import numpy as np
import pytest
import scipy.special

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import nn

RNG = np.random.default_rng(0)


def naive_attention(q, k, v, allowed, bias=0):
    k, v = (np.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
    logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1]) + bias
    return np.einsum("bnts,bsnh->btnh", scipy.special.softmax(np.where(allowed, logits, -1e30), -1), v)


@pytest.mark.quick
def test_masks_are_made_in_the_program():
    """A table of all pairs of positions would be an argument that grows with their square."""
    q = np.ones((1, 100, 1, 2), np.float32)
    closed = jax.make_jaxpr(lambda q: nn.dot_product_attention(q, q, q, is_causal=True, local_window_size=3))(
        q)
    assert not closed.consts


@pytest.mark.parametrize("option", ["plain", "causal", "window", "mask", "lengths", "bias", "unbatched"])
def test_attention(option):
    q, k, v = (RNG.normal(size=s).astype(np.float32) for s in ((2, 4, 6, 3), (2, 5, 2, 3), (2, 5, 2, 3)))
    rows, columns = np.arange(4)[:, None], np.arange(5)[None]
    allowed, bias, keywords = np.ones((4, 5), bool), 0, {}
    if option == "causal":
        allowed, keywords = columns <= rows, {"is_causal": True}
    elif option == "window":
        allowed, keywords = (columns >= rows - 1) & (columns <= rows + 2), {"local_window_size": (1, 2)}
    elif option == "mask":
        allowed = np.ones((2, 1, 4, 5), bool)
        allowed[:, :, :, 2] = False
        keywords = {"mask": allowed}
    elif option == "lengths":
        lengths = np.array([5, 3], np.int32)
        allowed, keywords = columns < lengths[:, None, None, None], {"key_value_seq_lengths": lengths}
    elif option == "bias":
        bias = RNG.normal(size=(1, 6, 4, 5)).astype(np.float32)
        keywords = {"bias": bias}
    want = naive_attention(q, k, v, allowed, bias)
    if option == "unbatched":
        q, k, v, want = q[0], k[0], v[0], want[0]
    out, residual = nn.dot_product_attention(q, k, v, return_residual=True, **keywords)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)
    assert residual.shape == q.shape[:-1]
    if option == "lengths":
        masked = nn.dot_product_attention(q, k, v, query_seq_lengths=np.array([2, 4], np.int32))
        assert not np.asarray(masked)[0, 2:].any() and np.asarray(masked)[1].all()


def test_attention_checks_its_arguments():
    q = np.ones((2, 4, 6, 3), np.float32)
    for keywords, words in [({"key": q[:, :, :4]}, "multiple of key/value heads"),
                            ({"value": q[:, 1:]}, "value shape"),
                            ({"mask": q}, "mask dtype should be bool"),
                            ({"implementation": "x"}, "implementation"),
                            ({"bias": q}, "bias of shape"), ({"query_seq_lengths": np.ones(2)}, "int32")]:
        arguments = {"query": q, "key": q, "value": keywords.get("key", q), **keywords}
        with pytest.raises(ValueError, match=words):
            nn.dot_product_attention(**arguments)


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (3, 5), (1, 5), (1, 1, 5), (4, 3, 5), (2, 1, 3, 5), (2, 4, 1, 1)])
@pytest.mark.parametrize("batched", [True, False])
def test_masks_and_biases_broadcast(shape, batched):
    if not batched and len(shape) == 4:
        shape = (1, *shape[1:])
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, n, 4, 8)).astype(np.float32)[() if batched else 0] for n in (3, 5, 5))
    whole = (2, 4, 3, 5) if batched else (1, 4, 3, 5)
    mask, bias = rng.random(shape) > 0.3, rng.normal(size=shape).astype(np.float32)
    spread = [np.broadcast_to(x, whole) for x in (mask, bias)]
    got = nn.dot_product_attention(q, k, v, mask=jnp.asarray(mask), bias=jnp.asarray(bias))
    want = nn.dot_product_attention(q, k, v, mask=jnp.asarray(spread[0]), bias=jnp.asarray(spread[1]))
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)


@pytest.mark.parametrize("shape, error, words", [
    ((4, 5), (TypeError, ValueError), "should broadcast to"),
    ((1,) * 5, ValueError, "ndim should be 4 at most, but got 5")])
def test_masks_that_do_not_broadcast(shape, error, words):
    q = jnp.ones((2, 3, 4, 8))
    for options in ({"mask": jnp.ones(shape, bool)}, {"bias": jnp.ones(shape)}):
        with pytest.raises(error, match=words):
            nn.dot_product_attention(q, q, q, **options)
