"""Functions whose results are as many, or are refused, as values say: of arrays over processes of a job."""
import hlotrace as jax
import hlotrace.numpy as jnp

FUNCTIONS = {
    "nonzero": jnp.nonzero,
    "argwhere": jnp.argwhere,
    "unique": jnp.unique,
    "union1d": lambda x: jnp.union1d(x, x + 1),
    "intersect1d": lambda x: jnp.intersect1d(x, x * 2),
    "setdiff1d": lambda x: jnp.setdiff1d(x, x * 2),
    "setxor1d": lambda x: jnp.setxor1d(x, x * 2),
    "trim_zeros": lambda x: jnp.trim_zeros(x.ravel()),
    "bincount": lambda x: jnp.bincount(x.ravel()),
    "choose": lambda x: jnp.choose(x % 2, [x, -x]),
    "segment_sum": lambda x: jax.ops.segment_sum(x, x[:, 1]),
    "ravel_multi_index": lambda x: jnp.ravel_multi_index((x,), (99,)),
}


def check(whole, on, lies):
    """They take the values of all processes.  on(*spec) is a sharding, lies(x, sharding, value) asserts."""
    for name, function in FUNCTIONS.items():
        want = function(jnp.asarray(whole))
        for x in (jax.device_put(whole, on("p")), jax.device_put(whole, on())):
            for got, right in zip(jax.tree.leaves(function(x)), jax.tree.leaves(want), strict=True):
                assert got.committed and got.sharding.device_set == set(jax.devices()), name
                lies(got, got.sharding, right)
    (found,) = jnp.nonzero(jax.device_put(jnp.arange(3), jax.local_devices()[-1]))
    assert found.committed and found.devices() == {jax.local_devices()[-1]}
