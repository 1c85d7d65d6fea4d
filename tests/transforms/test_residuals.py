"""What the steps of a scan save for its derivative, and that the derivative is that of the loop written out."""
import numpy as np
import pytest
from reference import evaluated

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X, W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.ones((5, 4, 4), np.float32) / 7
MASK = np.tril(np.ones((3, 4), bool))


def masked(x, w):
    """The mask, a broadcast and the scale depend on no step."""
    rows = jnp.arange(3.0)[:, None] * jnp.ones((3, 4))
    scale = jnp.sin(rows)
    return jnp.where(jnp.asarray(MASK), jnp.tanh(x @ w) * scale, 0.0), None


def normalized(x, w):
    """Differences, masks and powers can be had from the carry and the mean."""
    x = (x - jnp.mean(x, -1, keepdims=True)) @ w
    return jnp.maximum(x, 0) + jnp.clip(x, -0.1, 0.1) + x ** 3, None


def emitted(x, w):
    """What the derivative needs is what the loop gives anyway."""
    x = jnp.tanh(x @ w)
    return x, x


def several(x, w):
    q, k = jnp.split(x @ jnp.concatenate([w, w], 1), 2, axis=1)
    return jnp.exp(-q * q) / (2 + k * k), jnp.sum(q)


def shifted(x, w):
    """A scale that no step changes, and a number of each step: their sum is had from both."""
    return x * (jnp.sin(jnp.ones((3, 4))) + jnp.tanh(w[0, 0])), None


STEPS = [masked, normalized, emitted, several, shifted]


def stacks(step):
    """(dtype, shape) of what the forward loop stacks, and the shapes that all steps share."""
    program = jax.make_jaxpr(jax.grad(lambda w, x: jnp.sum(lax.scan(step, x, w)[0])))(W, X)
    forward, backward = [e for e in program.eqns if e.primitive is lax.scan_p]
    found = [(v.aval.dtype.name, v.aval.shape[1:]) for v in forward.outvars[forward.params["num_carry"]:]]
    return sorted(found), [v.aval.shape for v in backward.invars[:backward.params["num_consts"]]]


def test_what_no_step_changes_is_computed_once():
    saved, shared = stacks(masked)
    assert saved == [("float32", (3, 4))] * 2        # the carry, and tanh
    assert (3, 4) in shared


def test_what_is_cheap_is_computed_again():
    saved, _ = stacks(normalized)
    assert sorted(shape for _, shape in saved) == [(3, 4)] * 2      # what is multiplied by w, and the product


def test_results_of_the_loop_are_not_saved_twice():
    assert stacks(emitted)[0] == [("float32", (3, 4))] * 2


def test_what_all_steps_share_costs_once():
    saved, shared = stacks(shifted)
    assert saved == [("float32", ()), ("float32", (3, 4))] and (3, 4) in shared     # the number, and the carry


def test_what_has_effects_is_done_in_every_step():
    """Though it is given nothing that changes."""
    numbers = iter(range(2, 10))

    def loss(x):
        def step(c, _):
            factor = jax.experimental.io_callback(lambda: np.float32(next(numbers)), X[0, 0], ordered=True)
            return c * factor, None
        return lax.scan(step, x, None, length=3)[0]
    assert jax.grad(loss)(1.0) == 2 * 3 * 4


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("reverse, unroll", [(False, 1), (True, 2)])
def test_the_gradient_is_that_of_the_loop_written_out(step, reverse, unroll):
    def scanned(x, w):
        x, ys = lax.scan(step, x, w, reverse=reverse, unroll=unroll)
        return jnp.sum(x * x) + (0.0 if ys is None else jnp.sum(jnp.sin(ys)))

    def written(x, w):
        ys = 0.0
        for i in reversed(range(5)) if reverse else range(5):
            x, y = step(x, w[i])
            ys += 0.0 if y is None else jnp.sum(jnp.sin(y))
        return jnp.sum(x * x) + ys
    want = evaluated(jax.grad(written, (0, 1)))(X, W)
    for found in (jax.grad(scanned, (0, 1))(X, W), jax.jit(jax.grad(scanned, (0, 1)))(X, W),
                  jax.linear_transpose(jax.linearize(scanned, X, W)[1], X, W)(jnp.float32(1))):
        for a, b in zip(found, want):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_the_second_derivative_too():
    def f(x):
        return jnp.sum(lax.scan(normalized, x, W)[0] ** 3)

    def written(x):
        for w in W:
            x, _ = normalized(x, w)
        return jnp.sum(x ** 3)
    np.testing.assert_allclose(jax.hessian(f)(X), evaluated(jax.hessian(written))(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("length", [0, 1])
def test_loops_of_few_steps(length):
    found = jax.grad(lambda x: jnp.sum(lax.scan(masked, x, W[:length])[0]))(X)
    want = jax.grad(lambda x: jnp.sum(masked(x, W[0])[0] if length else x))(X)
    np.testing.assert_allclose(found, want, rtol=1e-6)
