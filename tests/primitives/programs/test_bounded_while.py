"""while_loop and fori_loop with max_steps: reverse mode in memory of the square root of the number of steps."""
import numpy as np
import pytest
from equal import same
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.ad_checkpoint import saved_residuals
from hlotrace.experimental import checkify


def loop(x, n, max_steps=None):
    """n steps; a carry with an integer, and what the body closes over."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1] * x) + x), (0, x),
                          max_steps=max_steps)[1].sum()


def steps(x, n):
    c = x
    for _ in range(n):
        c = jnp.sin(c * x) + x
    return c.sum()


X = np.array([0.4, -0.7], np.float32)


@pytest.mark.parametrize("max_steps", [5, 6, 12])
def test_derivatives_are_those_of_the_steps(max_steps):
    f = lambda x: loop(x, 5, max_steps)
    got = jax.jit(lambda x: (f(x), jax.grad(f)(x), jax.jvp(f, (x,), (x,))[1], jax.jvp(jax.grad(f), (x,), (x,))[1]))(X)
    g = lambda x: steps(x, 5)
    want = jax.jit(lambda x: (g(x), jax.grad(g)(x), jax.jvp(g, (x,), (x,))[1], jax.jvp(jax.grad(g), (x,), (x,))[1]))(X)
    same(got, want, 10)


def test_reverse_twice_and_outside_of_jit():
    f, g = (lambda x: loop(x, 3, 4)), lambda x: steps(x, 3)
    same(jax.grad(f)(X), jax.grad(g)(X), 10)
    twice = lambda h: jax.jit(jax.grad(lambda x: (jax.grad(h)(x) ** 2).sum()))(X)
    same(twice(f), twice(g), 30)


def test_each_element_of_a_vmap_takes_its_own_steps():
    xs, n = np.linspace(0.2, 0.9, 4, dtype=np.float32)[:, None], np.array([4, 0, 2, 5])
    mapped = jax.jit(jax.vmap(jax.value_and_grad(lambda x, n: loop(x, n, 6))))
    values, slopes = zip(*[jax.value_and_grad(steps)(x, int(k)) for x, k in zip(xs, n)])
    same(mapped(xs, n), (np.stack(values), np.stack(slopes)), 10)
    total = jax.grad(lambda xs: jax.vmap(lambda x, n: loop(x, n, 6))(xs, n).sum())
    same(jax.jit(total)(xs), mapped(xs, n)[1], 10)


@pytest.mark.parametrize("check_vma", [True, False])
def test_devices_leave_the_loop_at_different_times(check_vma):
    n = np.array([3, 0, 2, 4])
    P, mesh = jax.sharding.PartitionSpec, auto_mesh((4,), ("d",))

    def body(x, n, w):
        return lax.psum(lax.while_loop(lambda c: c[0] < n[0], lambda c: (c[0] + 1, jnp.sin(c[1] * w) + x[0]),
                                       (n[0] * 0, x[0]), max_steps=4)[1], "d")

    def f(x, w):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("d"), P("d"), P()), out_specs=P(), check_vma=check_vma)(x, n, w)

    def reference(x, w):
        total = 0.0
        for start, k in zip(x, n):
            c = start
            for _ in range(k):
                c = jnp.sin(c * w) + start
            total += c
        return total
    x = np.linspace(0.2, 0.9, 4, dtype=np.float32)
    same(jax.jit(jax.value_and_grad(f, (0, 1)))(x, 1.1), jax.jit(jax.value_and_grad(reference, (0, 1)))(x, 1.1), 10)


def test_a_loop_over_a_range_that_is_not_known():
    def f(x, n, **bound):
        return lax.fori_loop(1, n, lambda i, c: jnp.sin(c) * x + i, x, **bound)
    got = jax.jit(jax.value_and_grad(lambda x, n: f(x, n, max_steps=9)))(0.7, 5)
    same(got, jax.value_and_grad(f)(0.7, 5), 10)
    assert f(0.7, 5, max_steps=4) == f(0.7, 5)
    assert jax.jit(lambda n: f(0.7, n, max_steps=3))(1) == np.float32(0.7)
    assert jax.eval_shape(lambda n: f(0.7, n, max_steps=3), 5) == jax.eval_shape(lambda n: f(0.7, n), 5)


def test_a_loop_that_needs_more_steps_gives_no_usable_value():
    start = (np.uint8(0), np.int32(0), X, np.complex64(1j), np.bool_(False), jnp.bfloat16(1), 0)

    def f(n):
        return lax.while_loop(lambda c: c[1] < n, lambda c: (c[0], c[1] + 1, c[2] * 2, c[3], c[4], c[5], c[6] + 1), start,
                              max_steps=3)
    for run in f, jax.jit(f):
        small, count, floats, z, flag, narrow, weak = run(4)
        assert (small, count, bool(flag), weak) == (255, -2 ** 31, True, -2 ** 31) and weak.weak_type
        assert np.isnan(floats).all() and np.isnan(z) and np.isnan(narrow) and narrow.dtype == jnp.bfloat16
    same(f(3)[:3], (np.uint8(0), np.int32(3), X * 8))
    with jax.disable_jit():
        assert np.isnan(f(4)[2]).all()
        same(f(3)[2], X * 8)
    assert np.isnan(jax.grad(lambda x: loop(x, 4, 3))(X)).all() and np.isnan(jax.jvp(lambda x: loop(x, 4, 3), (X,), (X,))[1])
    assert loop(X, 0, 0) == X.sum() and np.isnan(loop(X, 1, 0))


def test_references_in_the_loop():
    """Each element of a vmap writes as often as it takes steps itself; too many steps spoil what is written too."""
    def f(x, bound=9.0):
        ref = jax.new_ref(x)

        def body(i):
            ref[...] *= 1.5
            return i + 1
        lax.while_loop(lambda i: ref[...] < bound, body, 0, max_steps=6)
        return ref[...]
    x = np.array([1.0, 1.2], np.float32)
    grown = np.array([1.5 ** 6, 1.5 ** 5], np.float32)
    same(jax.jit(jax.vmap(jax.value_and_grad(f)))(x), (x * grown, grown), 8)
    assert np.isnan(jax.jit(lambda x: f(x, 99.0))(1.0))


def test_checks_are_those_of_elements_that_go_on():
    def f(x, small=0.0):
        def body(c):
            checkify.check(c < 9, "big {c}", c=c)
            checkify.check(c > small, "small {c}", c=c)
            return c * x
        return lax.while_loop(lambda c: c < 5, body, x, max_steps=6)
    run = checkify.checkify(jax.jit(jax.vmap(jax.value_and_grad(f), (0, None))))
    x = np.array([1.5, 3.5], np.float32)        # the second ends at 12.25, before the first
    error, (values, slopes) = run(x, 0.0)
    assert error.get() is None
    same((values, slopes), (x ** [4, 2], [4, 2] * x ** [3, 1]), 8)
    assert run(x, 2.0)[0].get().startswith("small 1.5")


def test_memory_grows_as_the_square_root():
    def memory(n):
        x = np.ones(1000, np.float32)
        gradient = jax.jit(jax.grad(lambda x: loop(x, n, n)))
        return gradient.lower(x).compile().memory_analysis().temp_size_in_bytes / x.nbytes
    few, many = memory(16), memory(1600)
    assert few < many < 12 * few and many < 40 * 6      # of 1600 values about 40, thrice at a time
    kept = [a.shape for a, _ in saved_residuals(lambda x: loop(x, 400, 400), X)]
    assert max(s[0] for s in kept if s) == 20


def test_what_max_steps_may_be():
    with pytest.raises(TypeError, match="max_steps must be a Python int, got 2.5"):
        loop(X, 1, 2.5)
    with pytest.raises(ValueError, match="max_steps must be from 0"):
        loop(X, 1, -1)
    with pytest.raises(ValueError, match="from 0 to 5 needs 5 steps, more than max_steps=4"):
        lax.fori_loop(0, 5, lambda i, c: c, 1.0, max_steps=4)
    with pytest.raises(ValueError, match="or give max_steps=n"):
        jax.grad(lambda x: loop(x, 3))(X)
