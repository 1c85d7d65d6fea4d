"""In which memory the results of programs are: that of what they are computed from, or where they are put."""
import pickle

import numpy as np
import pytest
from mesh8 import on, one

import hlotrace as jax
import hlotrace.numpy as jnp

X = np.arange(32, dtype=np.float32).reshape(8, 4)
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
INHERITING = {
    "a jit": jax.jit(lambda x: x * 2), "a number": lambda x: x + 1, "a transposition": lambda x: x.T,
    "copies": lambda x: x.copy(),
    "an element": lambda x: x[1, 2],
    "scan": jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + y, y), x[0], x)),
    "cond": jax.jit(lambda x: jax.lax.cond(True, jnp.sin, jnp.cos, x)),
    "checkpoint": jax.jit(jax.checkpoint(jnp.sin)),
    "a barrier": jax.jit(lambda x: jax.lax.optimization_barrier((x, jnp.ones(3)))[0]),
    "while": jax.jit(lambda x: jax.lax.while_loop(lambda x: x.sum() < 9, lambda x: x + 1, x)),
    "jit in jit": jax.jit(jax.jit(jnp.sin)),
}


@pytest.mark.parametrize("f", INHERITING.values(), ids=INHERITING)
def test_results_are_in_the_memory_of_what_they_are_computed_from(f):
    x, host = (jax.device_put(X, on("data").with_memory_kind(kind)) for kind in (None, "pinned_host"))
    for result, want in zip(jax.tree.leaves(f(host)), jax.tree.leaves(f(x))):
        assert result.sharding == want.sharding.with_memory_kind("pinned_host")
        np.testing.assert_array_equal(result, want)


def test_results_are_where_the_program_puts_them():
    x = jax.device_put(X, one(3).with_memory_kind("pinned_host"))
    kinds_of = lambda f, x: [v.sharding.memory_kind for v in jax.tree.leaves(f(x))]
    both = jax.jit(lambda x: (x * 2, jax.device_put(x, DEVICE), jnp.ones((8, 4)),
                              jax.device_put(jnp.ones(3), HOST)))
    assert kinds_of(both, x) == ["pinned_host", "device", "device", "pinned_host"]
    assert kinds_of(both, X) == ["device", "device", "device", "pinned_host"]
    rows = jax.jit(
        lambda x: jax.lax.scan(lambda c, y: (c + jax.device_put(y, DEVICE), jax.device_put(y, HOST)),
                               jnp.zeros(4), x))
    assert kinds_of(rows, X) == ["device", "pinned_host"]
    assert kinds_of(jax.jit(lambda x: x * 2, in_shardings=x.sharding), X) == ["device"]
    assert kinds_of(lambda x: jax.make_array_from_callback((8, 4), x.sharding, lambda i: X[i]), x) == [
        "pinned_host"]
    assert kinds_of(jax.vmap(lambda x: jax.device_put(x, HOST)), X) == ["pinned_host"]


def test_types_say_the_memory():
    host = jax.device_put(X, HOST)
    types = lambda f, *args: [a.str_short(True) for a in jax.make_jaxpr(f)(*args).out_avals]
    assert str(jax.typeof(host)) == str(jax.typeof(host.addressable_shards[0].data)) == "float32<host>[8,4]"
    assert jax.typeof(host).memory_space is HOST and jax.typeof(X).memory_space is DEVICE
    assert jax.typeof(host) != jax.typeof(X) == jax.typeof(host).update(memory_space=DEVICE)
    assert pickle.loads(pickle.dumps(jax.typeof(host))) is jax.typeof(host)
    assert types(lambda x: (x * 2, x[0], x.sum(), x.sum() / 2, jnp.zeros_like(x), x.at[0].set(x[1]),
                            x + jnp.float32(1)), host) == [
        "f32<host>[8,4]", "f32<host>[4]", "f32<host>[]", "f32[]", "f32[8,4]", "f32<host>[8,4]",
        "f32<host>[8,4]"]
    assert types(lambda x: jax.lax.scan(lambda c, y: (c, jax.device_put(y, DEVICE)), x[0], x), host) == [
        "f32<host>[4]", "f32[8,4]"]
    assert types(jax.vmap(jax.grad(lambda x: jnp.sin(x).sum())), host) == ["f32<host>[8,4]"]
    assert types(jax.grad(lambda x: (jax.device_put(x, DEVICE) ** 2).sum()), host) == ["f32<host>[8,4]"]
    assert types(lambda x: jax.device_put(x, jax.memory.Space.Any), X) == ["f32<any>[8,4]"]
    assert jax.typeof(jax.jit(lambda x: x * 2, out_shardings=host.sharding)(X)).memory_space is HOST


TO_HOST = lambda x: jax.device_put(x, HOST)


@pytest.mark.parametrize("f, error, words", [
    (lambda x: jax.lax.cond(True, TO_HOST, jnp.sin, x), TypeError,
     r"float32<host>\[8,4\] but .* so the memory spaces do not match"),
    (lambda x: jax.lax.scan(lambda c, _: (TO_HOST(c), None), x, None, 3), TypeError,
     "carry output must have equal types"),
    (lambda x: jax.lax.while_loop(lambda c: True, TO_HOST, x), TypeError, "jax.memory.Space.Device"),
    (lambda x: jax.vjp(jnp.sin, TO_HOST(x))[1](x), ValueError,
     r"got float32\[8,4\], but expected float32<host>"),
])
def test_types_of_other_memories_are_an_error(f, error, words):
    with pytest.raises(error, match=words):
        jax.eval_shape(f, X)


@pytest.mark.parametrize(
    "f", [jnp.add, jax.jit(jnp.add), jax.jit(lambda x, y: jax.lax.cond(True, jnp.add, jnp.subtract, x, y))])
def test_operands_in_different_memories_are_an_error(f):
    host = jax.device_put(X, one(0).with_memory_kind("pinned_host"))
    with pytest.raises(ValueError, match="memory_space of all inputs passed to `(add|sub)` must be the same"):
        f(host, jnp.asarray(X))
    np.testing.assert_array_equal(f(host, host), 2 * X)
