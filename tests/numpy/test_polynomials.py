"""Polynomials: results as NumPy's, or as the defining equation says; dtypes; derivatives; what is refused."""
import numpy as np
import pytest
from derivatives import check_derivatives
from equal import same, same_as_numpy

import hlotrace as jax
import hlotrace.numpy as jnp

f32 = np.float32
P, Q, Z = np.array([1, -3, 2, 5], f32), np.array([2, 1], f32), np.array([1 + 1j, -2, 0.5j], np.complex64)
X = np.linspace(-1, 2, 9, dtype=f32)
Y = np.stack([X ** 2 - X, np.sin(X)], 1)
W = np.arange(1, 10, dtype=f32)

SAME = [
    lambda xp: (xp.polyval(P, X), xp.polyval(Z, Q), xp.polyval(P, X[None])),
    lambda xp: (xp.polyadd(P, Q), xp.polyadd(Q.astype(np.int32), P.astype(np.int32)), xp.polysub(Q, P),
                xp.polysub(Z, Q), xp.polyadd(Z, Z / f32(0.5) + f32(np.inf)), xp.polysub(Z, Z + f32(np.inf))),
    lambda xp: (xp.polymul(P, Q), xp.polymul(Z, Q), xp.polydiv(P, P[:4])[0], xp.polydiv(P, Q)[0],
                *xp.polydiv(Q, P)),
    lambda xp: (xp.polyder(P), xp.polyder(P, 3), xp.polyder(P, 4), xp.polyder(Z, 0)),
    lambda xp: (xp.polyint(P), xp.polyint(P, 3, k=Q[0]), xp.polyint(P, 3, k=P[:3]),
                xp.polyint(Z, 2, k=Z[:2])),
    lambda xp: (xp.poly(P), xp.poly(Z), xp.poly(np.diag(Z))),
    lambda xp: (xp.polyfit(X, Y, 2), xp.polyfit(X, Y[:, 0], 3, w=W), xp.polyfit(X, Y * 1j, 1)),
    lambda xp: (*xp.polyfit(X, Y[:, 1], 2, full=True)[:4],
                *xp.polyfit(X, Y[:, 1], 2, rcond=0.3, full=True)[::4]),
    lambda xp: (*xp.polyfit(X, Y, 1, w=W, cov=True), *xp.polyfit(X, Y[:, 1], 2, cov="unscaled")),
]


@pytest.mark.filterwarnings("ignore:Polyfit may be poorly")
@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np), 20)


@pytest.mark.parametrize("p", [[2, -3, 1], [0, 0, 1, 0, -1, 0], [1, 0, 0], [3], [0, 0], [], [1, 1j, 2]])
def test_roots_are_those_of_numpy(p):
    p = np.array(p, np.complex64 if np.iscomplexobj(p) else f32)
    expected = np.sort_complex(np.roots(p))
    np.testing.assert_allclose(np.sort_complex(jnp.roots(p)), expected, 1e-5, 1e-5)
    padded = np.asarray(jax.jit(lambda p: jnp.roots(p, strip_zeros=False))(p))
    lost = len(padded) - len(expected)
    assert padded.shape == (max(len(p) - 1, 0),) and np.isnan(padded[len(expected):]).all() and lost >= 0
    np.testing.assert_allclose(np.sort_complex(padded[:len(expected)]), expected, 1e-5, 1e-5)


def test_the_columns_of_a_matrix_are_polynomials():
    """As for polyval."""
    columns = np.stack([P, P[::-1], P * 2], 1)
    for got, each in ((jnp.polyder(columns), np.polyder),
                      (jnp.polyder(columns, 2), lambda p: np.polyder(p, 2)),
                      (jnp.polyint(columns), np.polyint)):
        np.testing.assert_allclose(got, np.stack([each(p) for p in columns.T], 1), rtol=1e-6)


def test_zeros_in_front_are_left_out_where_asked():
    same(jnp.polymul(np.r_[f32(0), P], np.r_[np.zeros(2, f32), Q], trim_leading_zeros=True), np.polymul(P, Q))
    quotient, rest = jnp.polydiv(np.polymul(P, Q) + np.array([0, 0, 0, 0, 2], f32), Q,
                                 trim_leading_zeros=True)
    same(quotient, P)
    same(rest, np.array([2], f32))


def test_sums_are_along_the_first_axis():
    x, y = np.arange(6).reshape(2, 3), np.array([[7, 8, 9]])
    same(jnp.polyadd(x, y), np.concatenate([x[:1], x[1:] + y]))
    same(jnp.polysub(y, x), np.concatenate([-x[:1], y - x[1:]]))
    same(jnp.polysub(x, np.array([5])), np.concatenate([x[:1], x[1:] - 5]))
    with pytest.raises(ValueError, match="more axes"):
        jnp.polyadd(np.arange(3), x)


def test_integers_and_narrow_floats():
    for out in (jnp.polymul(np.arange(3), np.arange(2)), jnp.polyder(np.ones(3, bool)), jnp.polyint(3),
                jnp.poly(np.arange(3))):
        assert out.dtype == "float32" and not out.weak_type
    assert jnp.polyadd(np.arange(3), 1).dtype == "int32" and jnp.polyder(
        jnp.ones(3, jnp.bfloat16)).dtype == "bfloat16"
    assert jnp.poly(np.zeros(0, f32)).shape == () and jnp.polyadd(np.zeros(0, f32), P).shape == (4,)


@pytest.mark.parametrize("function, args", [
    (lambda p, q, x: [jnp.polyval(jnp.polymul(p, q), x), *jnp.polydiv(p, q), jnp.polyint(p, 2, k=q),
                      jnp.poly(p)],
     (P, Q, X)),
    (lambda p: jnp.roots(p, strip_zeros=False), (P,)),
    (lambda x, y, w: jnp.polyfit(x, y, 2, w=w, cov=True), (X, Y, W)),
])
def test_derivatives(function, args):
    check_derivatives(function, *args)


@pytest.mark.parametrize("root", [np.nan, np.inf])
def test_a_root_that_is_no_number_leaves_the_leading_coefficient(root):
    np.testing.assert_array_equal(jnp.poly(np.array([root, 1], f32)), [1, -root, root])


def test_batches_of_polynomials_under_vmap():
    batch = np.stack([P, P[::-1], -P])
    together = jax.jit(jax.vmap(lambda p: (jnp.poly(p), jnp.polydiv(p, Q), jnp.roots(p, strip_zeros=False))))(
        batch)
    alone = [(jnp.poly(p), jnp.polydiv(p, Q), jnp.roots(p)) for p in batch]
    for i, each in enumerate(alone):
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(each)):
            np.testing.assert_allclose(np.sort_complex(a[i]), np.sort_complex(b), 1e-4, 1e-4)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.polymul(Y, Q), ValueError, "vectors"),
    (lambda: jnp.polydiv(P, P[:0]), ValueError, "divisor"),
    (lambda: jnp.polyder(P, -1), ValueError, "must be positive"),
    (lambda: jnp.polyint(P, 2, k=P), ValueError, "m=2"),
    (lambda: jnp.poly(Y), ValueError, "square"), (lambda: jnp.polyadd(P > 0, P > 0), TypeError, "astype"),
    (lambda: jax.jit(jnp.roots)(P), jax.errors.ConcretizationTypeError, "strip_zeros=False"),
    (lambda: jax.jit(lambda p: jnp.polymul(p, p, trim_leading_zeros=True))(P),
     jax.errors.ConcretizationTypeError, "front"),
    (lambda: jnp.polyfit(X, Y[:3], 1), TypeError, "same length"),
    (lambda: jnp.polyfit(Y, X, 1), TypeError, "vector"),
    (lambda: jnp.polyfit(X[:2], X[:2], 1, cov=True), ValueError, "unscaled"),
    (lambda: jnp.polyfit(X, X, -1), ValueError, "deg"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
