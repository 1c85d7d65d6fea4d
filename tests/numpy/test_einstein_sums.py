"""einsum and einsum_path: values, options, the order of products, a product of the user's."""
import numpy as np
import pytest
from bilinear import ints

import hlotrace
import hlotrace.numpy as jnp

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


@pytest.mark.parametrize(("subscripts", "first"), [
    ("ab,bc->ac", 0), ("bc,ab->ac", 1), ("ab,bc->ca", 1), ("bc,ab->ca", 0), ("ea,eb->eab", 0),
    ("ea,eb->eba", 1),
    ("eab,ebc->aec", 1), ("abc,bd->adc", 1), ("a,b->ba", 1), ("ab,cb->", 0)])
def test_which_operand_a_dot_general_of_ones_own_has_first(subscripts, first):
    """The one with which the product needs no transposition, as on JAX: quantized products differ in it."""
    size, seen = dict(a=2, b=3, c=4, d=5, e=6), []
    operands = [np.full([size[c] for c in term], i, np.float32)
                for i, term in enumerate(subscripts.partition("->")[0].split(","))]

    def dot(x, y, *args, **options):
        seen.append([bool(x.any()), bool(y.any())])
        return hlotrace.lax.dot_general(x, y, *args, **options)
    jnp.einsum(subscripts, *operands, _dot_general=dot)
    assert seen == [[first == 1, first == 0]]


def test_einsum_contracts_in_the_cheap_order():
    x, y, z = np.ones((50, 2), np.float32), np.ones((2, 60), np.float32), np.ones((60, 1), np.float32)
    program = str(hlotrace.make_jaxpr(lambda *a: jnp.einsum("ij,jk,kl->il", *a))(x, y, z))
    assert "f32[50,60]" not in program and "transpose" not in program
