"""The products of hlotrace.numpy, einsum, convolve: values, dtypes, derivatives, batching, errors."""
import itertools

import numpy as np
import pytest
from bilinear import check_bilinear, ints

import hlotrace
import hlotrace.numpy as jnp

# --- NumPy's products -------------------------------------------------------------------------------------------

PRODUCTS = [
    ("dot", (), ()), ("dot", (), (2, 3)), ("dot", (3,), (3,)), ("dot", (2, 3), (3,)), ("dot", (2, 3), (5, 3, 4)),
    ("matmul", (3,), (3,)), ("matmul", (3,), (5, 3, 4)), ("matmul", (2, 3), (3,)), ("matmul", (4, 1, 2, 3), (5, 3, 2)),
    ("matmul", (5, 2, 3), (5, 3, 2)), ("matmul", (1, 2, 3), (3, 2)), ("vdot", (2, 3), (3, 2)),
    ("vecdot", (4, 3), (3,)), ("vecdot", (2, 1, 3), (5, 3)), ("matvec", (4, 2, 3), (3,)), ("matvec", (2, 3), (4, 3)),
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
    np.testing.assert_array_equal(jnp.tensordot(a, b, axes=((2, -2), (0, 1))), np.tensordot(a, b, ((2, 1), (0, 1))))
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
    assert jnp.trace(np.diag([0., 2.]), dtype=bool) == np.bool_(True) and not jnp.trace(np.zeros((2, 2)), dtype=bool)
    assert jnp.matmul(ints(2, 2, dtype=np.int8), ints(2, 2).astype(jnp.bfloat16)).dtype == jnp.bfloat16
    assert jnp.dot(a, b[:, 0].astype(jnp.bfloat16), preferred_element_type=jnp.float32).dtype == np.float32
    assert jnp.dot(2, 3).weak_type and not jnp.dot(2, jnp.ones(3)).weak_type


def test_product_gradients_through_broadcasting():
    check_bilinear(lambda x, y: jnp.matmul(x, y), ints(4, 1, 2, 3), ints(5, 3, 2))
    check_bilinear(jnp.outer, ints(2), ints(3))


EINSUMS = [
    ("ij,jk", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ij", (2, 3)), ("ji", (2, 3)),
    ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->j", (3, 3, 2)), ("ijij->ji", (2, 3, 2, 3)), ("iii", (3, 3, 3)),
    ("ij->", (2, 3)), ("i,i,i->", (3,), (3,), (3,)), ("i,j->ij", (2,), (3,)), ("ij,ij->ij", (2, 3), (2, 3)),
    ("...ij,...jk->...ik", (4, 1, 2, 3), (5, 3, 2)), ("...ij,jk", (4, 2, 3), (3, 2)), ("i...->...", (2, 3, 4)),
    ("...,...", (2, 3), (3,)), ("ab,cb->ac", (2, 1), (3, 4)), ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 2), (2, 5)),
    ("bqd,bkd,bk->bq", (2, 3, 4), (2, 5, 4), (2, 5)), ("ij,j,k->", (2, 3), (3,), (2,)), (",i->i", (), (3,)),
    ("ii,ij->j", (3, 3), (3, 2)), ("i j, j k", (2, 3), (3, 2)), ("abc,bd,dc,e->ea", (2, 3, 4), (3, 2), (2, 4), (2,)),
    ("i,i", (0,), (0,)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=[c[0] for c in EINSUMS])
def test_einsum_agrees_with_numpy(case):
    text, *shapes = case
    operands = [ints(*s) for s in shapes]
    np.testing.assert_array_equal(jnp.einsum(text, *operands), np.einsum(text, *operands))


def test_einsum_options():
    a, b, c = ints(2, 3), ints(3, 4), ints(4, 5)
    want = a @ b @ c
    np.testing.assert_array_equal(jnp.einsum(a, [0, 1], b, [1, 2], c, [2, 3], [0, 3]), want)
    np.testing.assert_array_equal(jnp.einsum(a.T, [5, ...], b, [5, 7]), np.einsum(a.T, [5, ...], b, [5, 7]))
    for optimize in ("greedy", "optimal", True, False, [(1, 2), (0, 1)]):
        np.testing.assert_array_equal(jnp.einsum("ij,jk,kl", a, b, c, optimize=optimize), want)
    path, info = jnp.einsum_path("ij,jk,kl", a, b, c)
    with pytest.raises(NotImplementedError, match="'fast'"):
        jnp.einsum("ij,jk", a, b, optimize="fast")
    assert jnp.einsum("ij,jk,kl", a, b, c, optimize=path).shape == (2, 5) and "contraction" in info
    small = a.astype(jnp.bfloat16)
    assert jnp.einsum("ij->i", small, preferred_element_type=np.float32).dtype == np.float32
    assert jnp.einsum("ij,jk", small, b.astype(jnp.bfloat16), preferred_element_type=np.float32).dtype == np.float32
    np.testing.assert_array_equal(jnp.einsum("ij->i", a > 0), (a > 0).any(1))
    square = ints(3, 3)
    np.testing.assert_array_equal(hlotrace.grad(lambda x: jnp.einsum("ii,i->", x, a[0]))(square), np.diag(a[0]))


@pytest.mark.parametrize("case", EINSUMS, ids=[c[0] for c in EINSUMS])
@pytest.mark.parametrize("transform", [lambda f: f, hlotrace.jit])
def test_einsum_with_the_users_product(case, transform):
    text, *shapes = case
    operands = [ints(*s) for s in shapes]
    calls = []

    def dot(lhs, rhs, dimension_numbers, precision, preferred_element_type):
        calls.append((precision, preferred_element_type))
        return hlotrace.lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    for _ in range(2):      # what it does is not kept
        found = transform(lambda *xs: jnp.einsum(text, *xs, precision="highest", preferred_element_type="float32",
                                                 _dot_general=dot))(*operands)
        np.testing.assert_array_equal(found, np.einsum(text, *operands))
    assert calls == [("highest", np.float32)] * 2 * (len(operands) - 1)


def test_einsum_with_a_product_that_is_none():
    a, b = ints(2, 3), ints(3, 4)
    twice = jnp.einsum("ij,jk", a, b, _dot_general=lambda *args, **options: 2 * hlotrace.lax.dot_general(
        *args, **options))
    np.testing.assert_array_equal(twice, 2 * a @ b)
    told = jnp.einsum("ij,jk", a, b, _dot_general=lambda *args, preferred_element_type, **options: hlotrace.lax.dot_general(
        *[x.astype("float8_e4m3fn") for x in args[:2]], args[2], preferred_element_type=preferred_element_type))
    assert told.dtype == a.dtype        # what is computed in fewer bits is given in the operands' dtype
    with pytest.raises(TypeError, match="_dot_general is a function that is called as lax.dot_general is, got 3"):
        jnp.einsum("ij,jk", a, b, _dot_general=3)


def test_einsum_contracts_in_the_cheap_order():
    x, y, z = np.ones((50, 2), np.float32), np.ones((2, 60), np.float32), np.ones((60, 1), np.float32)
    program = str(hlotrace.make_jaxpr(lambda *a: jnp.einsum("ij,jk,kl->il", *a))(x, y, z))
    assert "f32[50,60]" not in program and "transpose" not in program


# --- errors -----------------------------------------------------------------------------------------------------

F = np.ones


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.matmul(F((2, 3)), F((4, 5))), TypeError, r"axis 1.*\(2, 3\).*size 3.*axis 0.*\(4, 5\).*size 4"),
    (lambda: jnp.matmul(F((2, 1, 1)), F((3, 1, 1))), ValueError, "batch axes must be equal or 1"),
    (lambda: jnp.matmul(2, F(2)), ValueError, "operand 0 must have ndim at least 1, but it has ndim 0"),
    (lambda: jnp.dot([1, 2], F(2)), TypeError, "list.*position 0"),
    (lambda: jnp.vecdot(F((2, 3)), F((2, 4))), ValueError, "axes must match"),
    (lambda: jnp.tensordot(F((2, 3)), F((4, 5)), 3), TypeError, "exceeds input ranks"),
    (lambda: jnp.tensordot(F((2, 3)), F((4, 5)), ((0, 1), (0,))), TypeError, "equal length"),
    (lambda: jnp.cross(F((2, 3)), F((2, 4))), ValueError, "either 2 or 3"),
    (lambda: jnp.convolve(F((2, 2)), F(2)), ValueError, "1-dimensional"),
    (lambda: jnp.convolve(F(2), F(0)), ValueError, "cannot be empty"),
    (lambda: jnp.einsum("ij,jk", F((2, 3)), F((4, 5))), ValueError, "label 'j' for operand 1 .4. does not match.*.3."),
    (lambda: jnp.einsum("ij->iz", F((2, 3))), ValueError, "'z' did not appear"),
    (lambda: jnp.einsum("ij->ii", F((2, 3))), ValueError, "'i' appeared more than once"),
    (lambda: jnp.einsum("ij,jk", F((2, 3))), ValueError, "subscripts, 2, must be equal to the number of operands, 1"),
    (lambda: jnp.einsum("ijk", F((2, 3))), ValueError, "'ijk' has 3 letters, but operand 0 of shape .* has 2 axes"),
    (lambda: jnp.einsum("i..j", F((2, 3))), ValueError, "Invalid Ellipses"),
])
def test_errors_name_axes_and_sizes(call, error, words):
    with pytest.raises(error, match=words):
        call()
