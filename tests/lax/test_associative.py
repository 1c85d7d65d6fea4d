"""associative_scan: the oracle is the loop written out in NumPy."""
import collections

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax


def A(*shape):
    return np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8])
def test_associative_scan(n):
    same(lax.associative_scan(jnp.add, A(n)), np.cumsum(A(n)))
    same(lax.associative_scan(jnp.add, A(n), reverse=True), np.cumsum(A(n)[::-1])[::-1])
    same(lax.associative_scan(jnp.maximum, A(2, n), axis=-1), A(2, n))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_prefixes_of_several_numbers_are_of_a_strong_type(n):
    assert lax.associative_scan(jnp.add, jnp.full(n, 1)).weak_type == (n < 2)


def test_associative_scan_of_pytrees():
    compose = lambda a, b: {"m": a["m"] * b["m"], "c": b["m"] * a["c"] + b["c"]}
    m, c = A(4) + 1, A(4)
    want = [0.0]
    for factor, term in zip(m, c):
        want.append(factor * want[-1] + term)
    same(lax.associative_scan(compose, {"m": m, "c": c}), {"m": np.cumprod(m), "c": np.float32(want[1:])})
    same(jax.grad(lambda x: lax.associative_scan(jnp.multiply, x).sum())(m),
         np.array([33.0, 16.0, 10.0, 6.0]))
    same(jax.vmap(lambda x: lax.associative_scan(jnp.add, x))(A(2, 3)), np.cumsum(A(2, 3), 1))


def test_a_result_in_other_containers():
    """Dynamax gives a tuple where the arguments are of a class of tuples."""
    Pair = collections.namedtuple("Pair", "a b")
    found = lax.associative_scan(lambda x, y: (x.a + y.a, x.b * y.b), Pair(A(4), A(4) + 1))
    same(found, Pair(np.cumsum(A(4)), np.cumprod(A(4) + 1)))
    assert type(found) is Pair
    with pytest.raises(ValueError, match="structure"):
        lax.associative_scan(lambda x, y: x.a + y.a, Pair(A(4), A(4)))
