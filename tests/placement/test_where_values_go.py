"""Where values go: what jit, device_put and constraints are given, against where arrays are."""
import numpy as np
import pytest
from mesh8 import on, one

import hlotrace as jax
import hlotrace.numpy as jnp

V = np.arange(8, dtype=np.float32)


WRONG = {
    "a spec of more entries than dimensions, for jit": (lambda: jax.jit(jnp.sin, in_shardings=on("data", None))(V), ValueError, "incompatible with"),
    "for its results": (lambda: jax.jit(jnp.sin, out_shardings=on("data", None))(V), ValueError, "incompatible with its sharding annotation"),
    "for a move": (lambda: jax.device_put(V, on("data", None)), ValueError, "incompatible with its sharding annotation"),
    "for a constraint": (lambda: jax.lax.with_sharding_constraint(V, on("data", None)), ValueError, "incompatible with"),
    "a device for jit": (lambda: jax.jit(jnp.sin, in_shardings=jax.devices()[0])(V), TypeError, "write SingleDeviceSharding"),
    "no constraint": (lambda: jax.lax.with_sharding_constraint((V, V), (on("data"), None)), ValueError, "None, which is not allowed"),
    "a constraint to other devices": (lambda: jax.lax.with_sharding_constraint(jax.device_put(V, one(2)), on("data")),
                                      ValueError, "incompatible devices"),
    "no place": (lambda: jax.device_put(V, "cpu"), ValueError, "expected a Sharding"),
    "a spec without a mesh": (lambda: jax.device_put(V, jax.P("data")), ValueError, "no mesh in context"),
    "parts of what one device holds": (lambda: jax.jit(jnp.sin, in_shardings=on("data"))(jax.device_put(V, one(2))), ValueError, "does not match"),
}


@pytest.mark.parametrize("call, error, words", WRONG.values(), ids=WRONG)
def test_what_says_no_place_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("asked", [one(3), on()], ids=str)
def test_what_one_device_holds_goes_where_jit_wants_it_whole(asked):
    f = jax.jit(lambda x, y: x + y, in_shardings=(asked, None))
    for x, y in ((jax.device_put(V, one(2)), 1.0), (jax.device_put(V, one(4)), jax.device_put(V, asked)), (V, V)):
        for _ in range(2):
            out = f(x, y)
            assert out.sharding.device_set == asked.device_set
            np.testing.assert_array_equal(out, V + np.asarray(y))


def test_what_a_constraint_leaves_open_is_as_it_was():
    mapped = jax.vmap(lambda x: jax.lax.with_sharding_constraint(x, on("data")))
    x = np.ones((2, 8), np.float32)
    assert mapped(x).sharding == on(None, "data")
    assert mapped(jax.device_put(x, on("model"))).sharding == on("model", "data")
    assert jnp.zeros_like(jax.device_put(V, one(2)), shape=(3,)).sharding == one(2)
    y = jax.device_put(V, on("data"))
    assert jax.device_put(y, on("data")) is y and y.global_shards[0] is y.addressable_shards[0]
