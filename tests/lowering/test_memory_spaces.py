"""In which memory the results of programs are: that of what they are computed from, or where they are put."""
import numpy as np
import pytest
from mesh8 import on, one

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.lowering.memory_spaces import with_memories
from hlotrace.sharding import SingleDeviceSharding
from hlotrace.sharding.partition import Partition

X = np.arange(32, dtype=np.float32).reshape(8, 4)
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
INHERITING = {
    "a jit": jax.jit(lambda x: x * 2), "a number": lambda x: x + 1, "a transposition": lambda x: x.T, "copies": lambda x: x.copy(),
    "an element": lambda x: x[1, 2], "scan": jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + y, y), x[0], x)),
    "cond": jax.jit(lambda x: jax.lax.cond(True, jnp.sin, jnp.cos, x)), "checkpoint": jax.jit(jax.checkpoint(jnp.sin)),
    "a barrier": jax.jit(lambda x: jax.lax.optimization_barrier((x, jnp.ones(3)))[0]),
    "while": jax.jit(lambda x: jax.lax.while_loop(lambda x: x.sum() < 9, lambda x: x + 1, x)), "jit in jit": jax.jit(jax.jit(jnp.sin)),
    "shard_map": jax.jit(lambda x: jax.shard_map(jnp.sin, mesh=on().mesh, in_specs=jax.P("data"), out_specs=jax.P("data"))(x)),
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
    both = jax.jit(lambda x: (x * 2, jax.device_put(x, DEVICE), jnp.ones((8, 4)), jax.device_put(jnp.ones(3), HOST)))
    assert kinds_of(both, x) == ["pinned_host", "device", "device", "pinned_host"]
    assert kinds_of(both, X) == ["device", "device", "device", "pinned_host"]
    rows = jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + jax.device_put(y, DEVICE), jax.device_put(y, HOST)), jnp.zeros(4), x))
    assert kinds_of(rows, X) == ["device", "pinned_host"]
    assert kinds_of(jax.jit(lambda x: x * 2, in_shardings=x.sharding), X) == ["device"]
    assert kinds_of(lambda x: jax.make_array_from_callback((8, 4), x.sharding, lambda i: X[i]), x) == ["pinned_host"]
    assert kinds_of(jax.vmap(lambda x: jax.device_put(x, HOST)), X) == ["pinned_host"]


HELD = lambda host, number: (jax.device_put(host, DEVICE), jax.device_put(host, HOST), jnp.full((8, 4), number))


@pytest.mark.parametrize("one, other, kind", [(0, 0, "device"), (1, 1, "pinned_host"), (1, 2, "pinned_host"), (2, 1, "pinned_host"),
                                              (0, 2, "device"), (2, 0, "device"), (2, 2, "device")])
def test_a_result_is_where_one_branch_has_it_and_the_other_anything(one, other, kind):
    """Of a value on the device, one on the host, and one that numbers make."""
    f = jax.jit(lambda p, x: jax.lax.cond(p, lambda x: HELD(x, 1.0)[one], lambda x: HELD(x, 2.0)[other], x))
    jaxpr = f.trace(True, X).jaxpr
    at = SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    found = with_memories(jaxpr, jax.devices()[0], [None, at])
    assert (found.outs[0]._kind if type(found) is Partition else "device") == kind


@pytest.mark.parametrize("f", [jnp.add, jax.jit(jnp.add), jax.jit(lambda x, y: jax.lax.cond(True, jnp.add, jnp.subtract, x, y))])
def test_operands_in_different_memories_are_an_error(f):
    host = jax.device_put(X, one(0).with_memory_kind("pinned_host"))
    with pytest.raises(ValueError, match="memory_space of all inputs passed to `(add|sub)` must be the same"):
        f(host, jnp.asarray(X))
    np.testing.assert_array_equal(f(host, host), 2 * X)
