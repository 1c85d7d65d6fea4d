"""Rules of hijax primitives that follow from other rules: derivatives from jvp or lin, batches from the function."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import hijax

X = np.linspace(0.5, 2, 3, dtype=np.float32)


class Sine(hijax.HiPrim):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), x, {}
        super().__init__()

    def expand(self, x):
        return jnp.sin(x)


class SineByLin(Sine):
    jvp = hijax.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin

    def lin(self, perturbed, x):
        assert perturbed == (True,)
        return self(x), jnp.cos(x)

    def linearized(self, cosine, t):
        return cosine * t


class SineByJvp(Sine):
    lin, linearized = hijax.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return self(x), jnp.cos(x) * t


class LinearizedOnly(SineByJvp):
    vjp_fwd = None


@pytest.mark.parametrize("kind", [SineByLin, SineByJvp, LinearizedOnly])
def test_derivatives_that_follow_from_other_rules(kind):
    f = kind(jax.typeof(X))
    same(jax.jvp(f, (X,), (X,)), (np.sin(X), np.cos(X) * X))
    same(jax.vjp(f, X)[1](X)[0], np.cos(X) * X)
    same(jax.jit(jax.grad(lambda x: f(x).sum()))(X), np.cos(X))
    same(jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum())(X), -np.sin(X))


def test_linearize_by_rules_without_a_reverse_mode():
    same(jax.linearize(LinearizedOnly(jax.typeof(X)), X)[1](X), np.cos(X) * X)


class Product(hijax.HiPrim):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x, x), x, {}
        super().__init__()

    def expand(self, x, y):
        return x * y

    def batch(self, axis_data, args, dims):
        self.seen.append((hijax.bdims_at_front(axis_data, args, dims),
                          hijax.unmap_avals(axis_data, tuple(map(jax.typeof, args)), dims)))
        return hijax.vmap_rule(axis_data, self.expand, dims, 0)(*args), 0


def test_batches_by_the_function():
    f = Product(jax.typeof(X))
    f.seen = []
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    same(jax.vmap(f, (1, None))(rows, X), rows.T * X)
    (front, types), = f.seen
    same(front, (rows.T, np.stack([X, X])))
    assert [t.shape for t in types] == [(3,), (3,)]
    with pytest.raises(NotImplementedError, match="sum_match"):
        hijax.vmap_rule(None, f, 0, 0, sum_match=True)
