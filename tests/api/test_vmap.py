"""vmap: forms of in_axes and out_axes, sizes, nesting, what it composes with, its errors."""
import functools

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax


def A(*shape):
    return np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("fun, in_axes, out_axes, args, want", [
    (lambda x, y: x * y, (None, 0), 0, (2.0, A(3)), A(3) * 2),
    (lambda x, y: x * y, (1, 0), 0, (A(2, 3), A(3)), A(2, 3).T * A(3)[:, None]),
    (lambda x, y: x * y, [-1, None], 0, (A(2, 3), 2.0), A(2, 3).T * 2),
    (lambda x: x, 0, 1, (A(2, 3),), A(2, 3).T),
    (lambda x: x, 1, 0, (A(2, 3),), A(2, 3).T),
    (lambda x: x, 1, -1, (A(2, 3),), A(2, 3)),
    (lambda x: (x, x.sum()), 0, (1, 0), (A(2, 3),), (A(2, 3).T, A(2, 3).sum(1))),
    (lambda x: {"a": x, "b": (x, 2 * x)}, 0, {"a": 0, "b": 1}, (A(2, 2),),
     {"a": A(2, 2), "b": (A(2, 2).T, 2 * A(2, 2).T)}),
    (lambda d, k: d["a"] * d["b"] * k, ({"a": 1, "b": 0}, None), 0, ({"a": A(2, 3), "b": A(3)}, 2.0),
     (A(2, 3) * A(3) * 2).T),
    (lambda t: t[0] + t[1][0], ((0, None),), 0, ((A(2), (3.0,)),), A(2) + 3),
    (lambda t: t[0] + t[1][0], ([0, [1]],), 0, ([A(2), [A(1, 2)]],), np.array([[0.0], [2.0]])),
    (lambda x: (x, 3.0), 0, (0, None), (A(2),), (A(2), 3.0)),
    (lambda x: (x, None), 0, 0, (A(2),), (A(2), None)),
    (lambda x: 3.0, 0, 0, (A(2),), np.full(2, 3.0)),
    (lambda x: jnp.ones(3), 0, 1, (A(2),), np.ones((3, 2))),
    # an unmapped value is concrete
    (lambda x, n: x * n if n > 2 else x, (0, None), 0, (A(2), 3), A(2) * 3),
    (lambda x, n: x, (0, None), 0, (A(2), None), A(2)),
    (lambda x: x + 1, 0, 0, (np.zeros((0, 2)),), np.zeros((0, 2))),
])
def test_axes(fun, in_axes, out_axes, args, want):
    same(jax.vmap(fun, in_axes, out_axes)(*args), want)
    if not any(isinstance(a, int) for a in args):
        same(jax.jit(jax.vmap(fun, in_axes, out_axes))(*args), want)


def test_results_without_an_axis_may_be_sums():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for way in (lambda f: f, jax.jit):
        f = way(jax.vmap(lambda v: (v ** 2, v.sum(), 5.0, v > 1), 1, (None, 0, None, None), sum_match=True))
        for got, want in zip(f(x), ((x ** 2).sum(1), x.sum(0), 5, (x > 1).sum(1)), strict=True):
            np.testing.assert_array_equal(got, want)
    grads = jax.grad(lambda x: jax.vmap(jnp.sin, out_axes=None, sum_match=True)(x).sum())(x)
    np.testing.assert_allclose(grads, np.cos(x), rtol=1e-6)
    with pytest.raises(ValueError, match="sum_match=True"):
        jax.vmap(jnp.sin, out_axes=None)(x)


def test_keyword_arguments_are_mapped_in_front():
    same(jax.vmap(lambda x, *, k: x * k)(A(3), k=A(3)), A(3) ** 2)
    same(jax.vmap(lambda x, k=2.0: x * k, in_axes=(0,))(A(2)), A(2) * 2)


def test_axis_size():
    same(jax.vmap(lambda: 3.0, axis_size=2)(), np.full(2, 3.0))
    same(jax.vmap(lambda x: x * 2, in_axes=None, axis_size=3, axis_name="i", spmd_axis_name="j")(1.0),
         np.full(3, 2.0))


def test_nested():
    same(jax.vmap(jax.vmap(lambda x, y: x * y, (0, None)), (None, 0))(A(2), A(3)), np.outer(A(3), A(2)))
    same(jax.vmap(lambda x: jax.vmap(lambda y: x + y)(A(2)))(A(3)), A(3)[:, None] + A(2))
    same(jax.vmap(lambda x: jax.vmap(lambda y: y)(A(2)))(A(3)), np.tile(A(2), (3, 1)))
    same(jax.vmap(jax.vmap(lambda x: x.sum(), 1), 0)(A(2, 3, 2)), A(2, 3, 2).sum(1))


X = A(2, 3, 3) + 1


@pytest.mark.parametrize("fun", [
    jnp.sum, jnp.transpose, lambda m: m @ m, lambda m: m[0], lambda m: m[:, ::-1], lambda m: jnp.sort(m, 0),
    lambda m: jnp.argmax(m, 1), lambda m: jnp.concatenate([m, m], 1), lambda m: m.at[0].set(5.0),
    lambda m: jnp.where(m > 4, m, 0), jnp.diag, jnp.cumsum, lambda m: m.reshape(-1), jnp.tril,
    lambda m: jnp.einsum("ij,jk->ki", m, m), lambda m: m.ravel()[jnp.array([0, 2])], jnp.max,
    lambda m: m.astype(jnp.bfloat16).astype(float), lambda m: jnp.var(m, axis=0),
    jax.jit(lambda m: m * 2), jax.grad(lambda m: jnp.sum(jnp.sin(m) ** 2)),
    lambda m: jax.jacfwd(jnp.sin)(m[0]),
    lambda m: jax.hessian(lambda v: jnp.prod(jnp.sin(v)))(m[0]), lambda m: jnp.where(m[0, 0] > 2, m, 1.0),
    lambda m: lax.scan(lambda c, r: (c + r, c * r), m[0], m), lambda m: lax.map(jnp.sum, m),
    lambda m: lax.cond(m[0, 0] > 5, jnp.sin, jnp.cos, m),
    lambda m: lax.fori_loop(0, 3, lambda i, c: c * m[0, i], m),
    lambda m: jax.vjp(jnp.sin, m)[1](m)[0], lambda m: jax.linearize(jnp.sin, m)[1](m),
    lambda m: jax.jvp(jnp.sin, (m,), (m,)),
])
def test_vmap_is_a_loop(fun):
    rows, mapped = jax.jit(lambda x: ([fun(row) for row in x], jax.vmap(fun)(x)))(X)
    same(mapped, jax.tree.map(lambda *r: np.stack(r), *rows))


def test_mapped_indices():
    i, v = np.array([0, 2]), jnp.asarray(A(2, 3))
    same(jax.vmap(lambda m, i: m[i])(jnp.asarray(X), i), X[[0, 1], i])
    same(jax.vmap(lambda m, i: m[i], (None, 0))(v[0], i), A(3)[i])
    same(jax.vmap(lambda m, i: m.at[i].add(1.0))(v, i), v + np.eye(3)[i])
    same(jax.vmap(lambda m, i: lax.dynamic_slice(m, (i,), (1,)))(v, i), np.array([[0.0], [5.0]]))
    same(jax.vmap(lambda i: jnp.zeros(3).at[i].set(1))(i), np.eye(3)[i])


def test_keys():
    keys = jax.random.split(jax.random.key(0), 3)
    same(jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys),
         np.stack([jax.random.normal(k, (2,)) for k in keys]))
    assert jax.vmap(jax.random.split)(keys).shape == (3, 2)


def test_weak_types_stay():
    for fun, weak in ((lambda x: x * 2.0, True), (lambda x: x * np.float32(2), False), (lambda x: 1.0, True),
                      (lambda x: x > 0, False)):
        assert jax.vmap(fun)(np.arange(2)).weak_type == weak
    assert jax.vmap(lambda x, y: x * y, (0, None))(np.arange(2, dtype=np.int8), 2).dtype == "int8"


def test_closed_over_and_differentiated_values():
    same(jax.jit(lambda y: jax.vmap(lambda x: x * y)(A(2)))(3.0), A(2) * 3)
    same(jax.grad(lambda y: jax.vmap(lambda x: x * y)(A(3)).sum())(2.0), 3.0)
    same(jax.vmap(jax.grad(lambda x, y: x, 1), (0, None))(A(2), 1.0), np.zeros(2))
    same(jax.vmap(jax.value_and_grad(lambda x: 3.0))(A(2)), (np.full(2, 3.0), np.zeros(2)))
    same(jax.vmap(lambda x: jax.vjp(lambda y: y * x, 2.0)[1](1.0))(A(2)), (A(2),))


def test_custom_rules_may_close_over_mapped_values():
    def f(x):
        @jax.custom_vjp
        def g(y):
            return x * y
        g.defvjp(lambda y: (x * y, None), lambda r, ct: (ct,))

        @jax.custom_jvp
        def h(y):
            return x + y
        h.defjvps(lambda t, out, y: t)
        return g(x) + h(x)
    same(jax.vmap(f)(A(3)), A(3) ** 2 + 2 * A(3))


def test_integer_gradients():
    g = jax.vmap(lambda i: jax.grad(lambda x, i: x * i, (0, 1), allow_int=True)(2.0, i))(np.arange(2))
    same(g[0], A(2))
    assert g[1].dtype == jax.dtypes.float0 and g[1].shape == (2,)


def test_wrapper_keeps_name():
    @functools.partial(jax.vmap, in_axes=(0, None))
    def f(a, b):
        return a + b
    assert f.__name__ == "f"
    same(f(A(2), 1.0), A(2) + 1)


def args(*a, **k):
    return a


@pytest.mark.parametrize("call, error, words", [
    (lambda: jax.vmap(args)(A(2), A(3)), ValueError,
     r"inconsistent sizes[\s\S]*size 2: axis 0 of argument a\[0\][\s\S]*size 3: axis 0 of argument a\[1\]"),
    (lambda: jax.vmap(args, (0,))(A(2), A(3)), ValueError, "in_axes must be an int, None, or a tuple"),
    (lambda: jax.vmap(args)(1.0), ValueError, "rank should be at least 1"),
    (lambda: jax.vmap(args, 1)(A(2)), ValueError, "along axis 1.*at least 2"),
    (lambda: jax.vmap(args, -2)(A(2)), ValueError, "at least 2"),
    (lambda: jax.vmap(args, "a")(A(2)), TypeError, "in_axes must be an int"),
    (lambda: jax.vmap(args, 0.5)(A(2)), TypeError, "in_axes must be an int"),
    (lambda: jax.vmap(args, (0.0,))(A(2)), TypeError, "in_axes must be an int"),
    (lambda: jax.vmap(args, None)(A(2)), ValueError, "at least one non-None"),
    (lambda: jax.vmap(args)(), ValueError, "at least one argument containing an array"),
    (lambda: jax.vmap(args, axis_size=3)(A(2)), ValueError, "`axis_size` argument was 3"),
    (lambda: jax.vmap(args, ({"a": 0},))({"a": A(2), "b": A(2)}), ValueError,
     "in_axes specification must be a tree prefix"),
    (lambda: jax.vmap(lambda x: (x, x), 0, (0, 0, 0))(A(2)), ValueError,
     "out_axes specification must be a tree prefix"),
    (lambda: jax.vmap(lambda x: x, 0, None)(A(2)), ValueError, "out_axes is None"),
    (lambda: jax.vmap(lambda x: x, 0, 5)(A(2)), ValueError, "out_axes: axis 5 is out of bounds"),
    (lambda: jax.vmap(lambda x: x, out_axes="a"), TypeError, "out_axes must be an int"),
    (lambda: jax.vmap(lambda x: "s")(A(2)), TypeError, "str"),
    (lambda: jax.vmap(args)("s"), TypeError, "str"),
    (lambda: jax.vmap(3), TypeError, "callable"),
    (lambda: jax.vmap(lambda x: x if x > 0 else -x)(A(2)), jax.errors.TracerBoolConversionError, "vmap"),
    (lambda: jax.vmap(int)(A(2)), jax.errors.ConcretizationTypeError, "int"),
    (lambda: jax.vmap(lambda i: [1, 2][i])(np.arange(2)), jax.errors.TracerIntegerConversionError, "integer"),
    (lambda: jax.vmap(np.sin)(A(2)), jax.errors.TracerArrayConversionError, "NumPy"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_struct_among_the_arguments_is_that_of_a_slice():
    struct = jax.ShapeDtypeStruct((2, 3), np.float32)
    seen = []

    def f(x, like):
        seen.append((like["a"].shape, like["a"].dtype))
        return x * like["a"].shape[0]
    x = np.arange(2.0, dtype=np.float32)
    np.testing.assert_array_equal(jax.vmap(f)(x, {"a": struct}), x * 3)
    np.testing.assert_array_equal(jax.vmap(f, in_axes=(0, -1))(np.ones(3, np.float32), {"a": struct}),
                                  [2, 2, 2])
    np.testing.assert_array_equal(jax.vmap(f, in_axes=(0, None))(x, {"a": struct}), x * 2)
    assert seen == [((3,), np.float32), ((2,), np.float32), ((2, 3), np.float32)]
    with pytest.raises(ValueError, match=r"inconsistent sizes[\s\S]*like\['a'\] of type float32\[2,3\]"):
        jax.vmap(f)(np.ones(5, np.float32), {"a": struct})
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        jax.vmap(lambda x, like: x + like)(x, jax.ShapeDtypeStruct((2,), np.float32))
