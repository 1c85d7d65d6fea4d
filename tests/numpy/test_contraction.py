"""The products of hlotrace.numpy, convolve: values, dtypes, derivatives, batching, errors."""
import functools
import itertools

import numpy as np
import pytest
from bilinear import check_bilinear, ints

import hlotrace as jax
import hlotrace.numpy as jnp

# --- NumPy's products ---------------------------------------------------------------------------------------

PRODUCTS = [
    ("dot", (), ()), ("dot", (), (2, 3)), ("dot", (3,), (3,)), ("dot", (2, 3), (3,)),
    ("dot", (2, 3), (5, 3, 4)),
    ("matmul", (3,), (3,)), ("matmul", (3,), (5, 3, 4)), ("matmul", (2, 3), (3,)),
    ("matmul", (4, 1, 2, 3), (5, 3, 2)),
    ("matmul", (5, 2, 3), (5, 3, 2)), ("matmul", (1, 2, 3), (3, 2)), ("vdot", (2, 3), (3, 2)),
    ("vecdot", (4, 3), (3,)), ("vecdot", (2, 1, 3), (5, 3)), ("matvec", (4, 2, 3), (3,)),
    ("matvec", (2, 3), (4, 3)),
    ("vecmat", (4, 3), (3, 2)), ("inner", (2, 3), (4, 3)), ("inner", (), (4,)), ("outer", (2, 3), (4,)),
    ("tensordot", (2, 3, 4), (3, 4, 5)), ("kron", (2, 3), (3, 2)), ("kron", (3,), (2, 2)), ("kron", (), (2,)),
    ("cross", (4, 3), (3,)), ("convolve", (5,), (3,)), ("convolve", (3,), (5,)),
    ("correlate", (4,), (2,)), ("correlate", (2,), (4,)),
]


@pytest.mark.parametrize("name, a, b", PRODUCTS)
def test_products_agree_with_numpy(name, a, b):
    x, y = ints(*a, dtype=np.complex64), ints(*b, dtype=np.complex64)
    got = getattr(jnp, name)(x, y)
    np.testing.assert_allclose(got, getattr(np, name)(x, y), atol=1e-6)
    assert got.dtype == np.complex64


def test_keywords_of_the_products():
    a, b = ints(2, 3, 4), ints(4, 3, 5)
    np.testing.assert_array_equal(jnp.tensordot(a, b, axes=((2, -2), (0, 1))),
                                  np.tensordot(a, b, ((2, 1), (0, 1))))
    np.testing.assert_array_equal(jnp.tensordot(a, b, axes=(-1, 0)), np.tensordot(a, b, (2, 0)))
    np.testing.assert_array_equal(jnp.vecdot(a, ints(2, 3, 4) * 0 + 1, axis=1), a.sum(1))
    u, v, w = ints(2), ints(2), ints(4, 3)
    np.testing.assert_array_equal(jnp.cross(u, v), u[0] * v[1] - u[1] * v[0])
    np.testing.assert_array_equal(jnp.cross(u, w.T, axisb=0, axisc=0), np.cross([*u, 0], w).T)
    for mode, (m, n) in itertools.product(("full", "same", "valid"), ((6, 4), (3, 6))):
        x, y = ints(m), ints(n)
        np.testing.assert_allclose(jnp.correlate(x, y, mode), np.correlate(x, y, mode), atol=1e-5)
        np.testing.assert_allclose(jnp.convolve(x, y, mode), np.convolve(x, y, mode), atol=1e-5)
    for offset in (-4, -1, 0, 2, 9):
        np.testing.assert_array_equal(jnp.trace(a, offset, 2, 0), np.trace(a, offset, 2, 0))
    assert jnp.trace(ints(3, 3, dtype=np.int8)).dtype == np.int32
    assert jnp.trace(np.diag([0., 2.]), dtype=bool) == np.bool_(True) and not jnp.trace(
        np.zeros((2, 2)), dtype=bool)
    assert jnp.matmul(ints(2, 2, dtype=np.int8), ints(2, 2).astype(jnp.bfloat16)).dtype == jnp.bfloat16
    assert jnp.dot(a, b[:, 0].astype(jnp.bfloat16), preferred_element_type=jnp.float32).dtype == np.float32
    assert jnp.dot(2, 3).weak_type and not jnp.dot(2, jnp.ones(3)).weak_type


@pytest.mark.quick
@pytest.mark.parametrize("name, a, b", [
    *[p for p in PRODUCTS if p[1] and p[0] in ("matmul", "vdot", "vecdot", "matvec", "vecmat", "inner", "tensordot")],
    ("dot", (2, 3), (3,)), ("einsum", "ij,kj", (2, 3))])
def test_equations_name_the_dtype_of_a_product_and_so_do_its_derivatives(name, a, b):
    """Libraries that compare equations (KFAC-JAX) find in them what JAX writes there."""
    function, a = (functools.partial(jnp.einsum, a), b) if name == "einsum" else (getattr(jnp, name), a)
    x, y = jax.ShapeDtypeStruct(a, np.float16), jax.ShapeDtypeStruct(b, np.float32)
    for f in (function, jax.grad(lambda x, y: function(x, y).sum(), 1)):
        text = str(jax.make_jaxpr(f)(x, y))
        assert text.count("dot_general[") == text.count("preferred_element_type=float32") > 0, text


def test_product_gradients_through_broadcasting():
    check_bilinear(lambda x, y: jnp.matmul(x, y), ints(4, 1, 2, 3), ints(5, 3, 2))
    check_bilinear(jnp.outer, ints(2), ints(3))


# --- errors -------------------------------------------------------------------------------------------------

F = np.ones


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.matmul(F((2, 3)), F((4, 5))), TypeError,
     r"axis 1.*\(2, 3\).*size 3.*axis 0.*\(4, 5\).*size 4"),
    (lambda: jnp.matmul(F((2, 1, 1)), F((3, 1, 1))), ValueError, "batch axes must be equal or 1"),
    (lambda: jnp.matmul(2, F(2)), ValueError, "operand 0 must have ndim at least 1, but it has ndim 0"),
    (lambda: jnp.dot([1, 2], F(2)), TypeError, "list.*position 0"),
    (lambda: jnp.vecdot(F((2, 3)), F((2, 4))), ValueError, "axes must match"),
    (lambda: jnp.tensordot(F((2, 3)), F((4, 5)), 3), TypeError, "exceeds input ranks"),
    (lambda: jnp.tensordot(F((2, 3)), F((4, 5)), ((0, 1), (0,))), TypeError, "equal length"),
    (lambda: jnp.cross(F((2, 3)), F((2, 4))), ValueError, "either 2 or 3"),
    (lambda: jnp.convolve(F((2, 2)), F(2)), ValueError, "1-dimensional"),
    (lambda: jnp.convolve(F(2), F(0)), ValueError, "cannot be empty"),
    (lambda: jnp.einsum("ij,jk", F((2, 3)), F((4, 5))), ValueError,
     "label 'j' for operand 1 .4. does not match.*.3."),
    (lambda: jnp.einsum("ij->iz", F((2, 3))), ValueError, "'z' did not appear"),
    (lambda: jnp.einsum("ij->ii", F((2, 3))), ValueError, "'i' appeared more than once"),
    (lambda: jnp.einsum("ij,jk", F((2, 3))), ValueError,
     "subscripts, 2, must be equal to the number of operands, 1"),
    (lambda: jnp.einsum("ijk", F((2, 3))), ValueError,
     "'ijk' does not contain the correct number of indices for operand 0"),
    (lambda: jnp.einsum("i..j", F((2, 3))), ValueError, "Invalid Ellipses"),
])
def test_errors_name_axes_and_sizes(call, error, words):
    with pytest.raises(error, match=words):
        call()
