"""References in loops, branches and programs within programs: against the same written in NumPy, or without them."""
import functools

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax


def ref(n=4):
    return jax.new_ref(jnp.arange(float(n)))


def cumulative(xs):
    """A running sum in a Ref, and what it was on the way."""
    total = jax.new_ref(jnp.zeros((), xs.dtype))

    def body(_, x):
        total[...] += x * x
        return None, total[...]
    return lax.scan(body, None, xs)[1]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(f))])
def test_derivatives_of_programs_with_references_inside(wrap):
    xs = jnp.array([1.0, 2.0, 3.0])
    f = wrap(cumulative)
    same(f(xs), [1.0, 5.0, 14.0])
    same(jax.jacrev(f)(xs), np.tril(np.broadcast_to(2 * np.array(xs), (3, 3))))
    same(jax.jacfwd(f)(xs), np.tril(np.broadcast_to(2 * np.array(xs), (3, 3))))
    same(jax.vmap(f)(jnp.stack([xs, 2 * xs])), [[1, 5, 14], [4, 20, 56]])
    same(jax.hessian(lambda x: f(x)[-1])(xs), 2 * np.eye(3))


def test_loops():
    r = jax.new_ref(1.0)
    steps = lax.while_loop(lambda i: r[...] < 100, lambda i: (r.__setitem__(..., r[...] * 3), i + 1)[1], 0)
    same((steps, r[...]), (5, 243.0))
    lax.fori_loop(0, 4, lambda i, _: r.addupdate(i), None)
    same(r[...], 249.0)

    @functools.partial(jax.jit, static_argnums=0)
    def primes(n):
        sieve = jax.new_ref(jnp.ones(n, bool))
        sieve[:2] = False

        def cross_out(p, _):
            def cross(k, _):
                sieve[jnp.minimum(p * k, n - 1)] = sieve[p * k] & (p * k >= n)
            lax.fori_loop(2, n, cross, None)
        lax.fori_loop(2, n, cross_out, None)
        return sieve[...]
    same(np.flatnonzero(primes(20)), [2, 3, 5, 7, 11, 13, 17, 19])


def _add_one(carry, row):
    row[...] += 1
    return carry + row[0], row[1]


# how a loop goes over the rows of a Ref -> (what it returns, the Ref afterwards), begun with 0 to 5 in 3 rows
OVER_ROWS = {
    "one by one": (lambda r: lax.scan(_add_one, 0.0, r), ((9.0, [2.0, 4.0, 6.0]), [[1, 2], [3, 4], [5, 6]])),
    "jit": (jax.jit(lambda r: lax.scan(_add_one, 0.0, r)),
            ((9.0, [2.0, 4.0, 6.0]), [[1, 2], [3, 4], [5, 6]])),
    "unrolled": (lambda r: lax.scan(_add_one, 0.0, r, unroll=2),
                 ((9.0, [2.0, 4.0, 6.0]), [[1, 2], [3, 4], [5, 6]])),
    "reverse": (lambda r: lax.scan(lambda c, x: (x[0], x.__setitem__(0, c)), 7.0, r, reverse=True),
                ((0.0, None), [[2, 1], [4, 3], [7, 5]])),
    "beside an array": (lambda r: lax.scan(lambda c, x: (c, x["r"].__setitem__(1, x["v"])), 0.0,
                                           {"r": r, "v": jnp.array([7.0, 8.0, 9.0])})[1],
                        (None, [[0, 7], [2, 8], [4, 9]])),
    "a view": (lambda r: lax.scan(_add_one, 0.0, r.at[1:]), ((8.0, [4.0, 6.0]), [[0, 1], [3, 4], [5, 6]])),
    "map in batches": (lambda r: lax.map(lambda x: x[0], r, batch_size=2),
                       ([0.0, 2.0, 4.0], [[0, 1], [2, 3], [4, 5]])),
    "map": (lambda r: lax.map(lambda x: x[0], r), ([0.0, 2.0, 4.0], [[0, 1], [2, 3], [4, 5]])),
}


@pytest.mark.parametrize("case", OVER_ROWS)
def test_a_loop_over_the_rows_of_a_ref(case):
    run, want = OVER_ROWS[case]
    for _ in range(2):      # another Ref is not that of the first call
        r = jax.new_ref(jnp.arange(6.0).reshape(3, 2))
        got, (result, after) = run(r), want
        assert jax.tree.structure(got) == jax.tree.structure(result, is_leaf=lambda x: type(x) is list)
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(result, is_leaf=lambda x: type(x) is list)):
            same(g, w)
        same(r[...], after)


def test_transformations_of_a_loop_over_the_rows_of_a_ref():
    def table(x):
        rows = jax.new_ref(jnp.zeros((3, 2)))

        def step(c, row_and_x):
            row, x = row_and_x
            row[1] = c * x
            return c + 1, None
        lax.scan(step, x, (rows, jnp.arange(3.0)))
        return rows[:, 1]
    same(table(1.0), [0, 2, 6])
    same(jax.jacrev(jax.jit(table))(1.0), [0, 1, 2])
    same(jax.jacfwd(table)(1.0), [0, 1, 2])
    same(jax.vmap(table)(jnp.array([0.0, 1.0])), [[0, 1, 4], [0, 2, 6]])
    with jax.disable_jit():
        same(table(1.0), [0, 2, 6])


def test_errors_of_a_loop_over_refs():
    r = jax.new_ref(jnp.zeros((3, 2)))
    for xs, length, words in ((r, 4, "length.*4.*xs: 3"),
                              ({"a": r, "b": jnp.ones(4)}, None, r"xs\['a'\]: 3, xs\['b'\]: 4"),
                              ((r, r), None, "only one reference"),
                              (jax.new_ref(0.0), None, "no leading axis")):
        with pytest.raises(ValueError, match=words):
            lax.scan(lambda c, x: (c, None), 0, xs, length)
    with pytest.raises(ValueError, match="mutable array reference"):
        lax.scan(lambda c, x: (c, x), 0, r)


def test_branches():
    a, b = ref(), ref()

    @jax.jit
    def f(i):
        return lax.switch(i, [
            lambda: a.__setitem__(0, 5.0), lambda: b.__setitem__(1, a[0] + 1), lambda: None])
    for i in (0, 1, 2):
        f(i)
    same((a[0], b[1]), (5.0, 6.0))
    same(jax.vmap(lambda i: lax.cond(i > 1, lambda: a[i], lambda: -b[i]))(jnp.arange(4)), [0, -6, 2, 3])

    def inside(p):
        r = jax.new_ref(0.0)
        lax.cond(p, lambda: r.__setitem__(..., 1.0), lambda: None)
        return r[...]
    same(jax.vmap(inside)(jnp.array([True, False])), [1.0, 0.0])


REMATTED = {
    "read": (lambda r: r[0] * r[1], [1., 2.]), "write": (lambda r: r.__setitem__(0, 5.), [5., 2.]),
    "swap": (lambda r: jax.ref.swap(r, 0, 5.), [5., 2.]),
    "add": (lambda r: jax.ref.addupdate(r, 0, 1.), [2., 2.]),
    "view": (lambda r: r.at[1:].__setitem__(0, 5.), [1., 5.]),
    "scan": (lambda r: lax.scan(lambda c, _: (c * r[1], jax.ref.addupdate(r, 0, 1.)), 1., None, length=2)[0],
             [3., 2.]),
}


@pytest.mark.parametrize("name", REMATTED)
@pytest.mark.parametrize("passed", [False, True])
def test_checkpoint_does_what_is_done_to_refs_once(name, passed):
    access, want = REMATTED[name]
    ref = jax.new_ref(jnp.array([1., 2.]))

    @jax.checkpoint
    def f(x, r):
        got = access(r if passed else ref)
        return jnp.sin(x) * (1. if got is None else got)
    factor = {"read": 2., "swap": 1., "scan": 4.}.get(name, 1.)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(1., ref if passed else None), factor * np.cos(1.),
                               rtol=1e-6)
    np.testing.assert_allclose(ref[...], want)


def test_nested_programs_each_with_their_own():
    @jax.jit
    def inner(r):
        r[...] *= 2
        return r[...]

    def outer(x):
        r = jax.new_ref(x)
        ys = lax.scan(lambda c, _: (c, inner(r)), None, None, length=3)[1]
        return r[...], ys
    for f in (outer, jax.jit(outer), jax.vmap(outer, axis_size=1, in_axes=None, out_axes=None)):
        value, ys = f(1.0)
        same((value, ys), (8.0, np.array([2.0, 4.0, 8.0])))
    same(jax.grad(lambda x: outer(x)[0])(1.0), 8.0)
    same(inner(ref()), [0, 2, 4, 6])
