"""Products by letters: plans, types, errors, and the rules of dot_general by NumPy."""
import numpy as np
import pytest
from reference import check_rules, draw, run

import hlotrace as jax
from hlotrace import lax
from hlotrace.primitives.arrays.contract import contract, labels, natural_labels, product_dtype

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("numbers, ranks, wanted", [
    ((((1,), (0,)), ((), ())), (2, 2), ("ab", "bc", "ac")), ((((2,), (1,)), ((0,), (0,))), (3, 3), ("abc", "acd", "abd")),
    ((((), ()), ((), ())), (1, 2), ("a", "bc", "abc")), ((((0, 1), (1, 0)), ((), ())), (2, 2), ("ab", "ba", "")),
    ((((1,), (2,)), ((2, 0), (0, 1))), (3, 3), ("abc", "cab", "ca"))])
def test_letters_of_dimension_numbers(numbers, ranks, wanted):
    assert labels(numbers, *ranks) == wanted


PRODUCTS = ["ij,jk->ik", "ij,jk->ki", "bij,bjk->bik", "ij,ij->ij", "ij,ij->", "ij,k->ijk", "i,j->ji", "ij,j->i", "bi,ib->b", "ijk,kl->il",
            "ij,->ij", "abc,bd->dca", "abc,dc->bda", "ab,bc->", "ia,ja->ij", "a,ab->ab",
            "aib,abj->ij", "abj,aib->ij", "kaib,kabj->kij"]
SIZES = dict(zip("abcdijkl", (2, 3, 4, 5, 3, 2, 4, 5)))


@pytest.mark.parametrize("product", PRODUCTS)
def test_products_are_those_of_einsum(product):
    operands, out = product.split("->")
    x, y = operands.split(",")
    args = draw(*[tuple(SIZES[c] for c in letters) for letters in (x, y)])
    with jax.enable_x64():
        found, = run(lambda a, b: contract(a, x, b, y, out), *args)
    np.testing.assert_allclose(found, np.einsum(product, *args), rtol=1e-13)
    check_rules(lambda a, b: contract(a, x, b, y, out), *args, linear=[0, 1])


def test_a_product_in_its_natural_order_is_not_transposed():
    for product in PRODUCTS:
        operands, out = product.split("->")
        x, y = operands.split(",")
        kept = [{c for c in x if c in y or c in out}, {c for c in y if c in x or c in out}]
        product = any(c in y and c not in out for c in x) or kept[0] - kept[1] and kept[1] - kept[0]
        natural = natural_labels(x, y, out)
        args = [jax.ShapeDtypeStruct(tuple(SIZES[c] for c in letters), np.float32) for letters in (x, y)]
        names = [e.primitive.name for e in jax.make_jaxpr(lambda a, b: contract(a, x, b, y, natural))(*args).eqns]  # noqa: B023
        assert sorted(natural) == sorted(out) and ("dot_general" in names) == bool(product)
        assert not product or "transpose" not in names


@pytest.mark.parametrize("a, b, preferred, wanted", [
    ("bool", "int8", None, "int8"), ("int8", "uint8", None, "int8"), ("int32", "float16", None, "float16"),
    ("bfloat16", "float16", None, "bfloat16"), ("float16", "float32", None, "float32"), ("float32", "complex64", None, "complex64"),
    ("float16", "float16", "float32", "float32"), ("float32", "float32", "bfloat16", "bfloat16"), ("int8", "int8", "int32", "int32")])
def test_dtypes_of_products(a, b, preferred, wanted):
    a, b, wanted, preferred = (x and jax.numpy.dtype(x) for x in (a, b, wanted, preferred))
    assert product_dtype(a, b, preferred) == product_dtype(b, a, preferred) == wanted


@pytest.mark.parametrize("natural, preferred", [
    ("int32", "int8"), ("int32", "float16"), ("uint8", "bool"), ("complex64", "float16"), ("complex128", "float32")])
def test_a_narrower_dtype_for_other_than_floats_is_refused(natural, preferred):
    natural, preferred = np.dtype(natural), np.dtype(preferred)
    with pytest.raises(TypeError, match=f"must not be narrower than the original type, got .* of {preferred} for"):
        product_dtype(natural, natural, preferred)
    assert product_dtype(natural, natural, np.dtype("float64")) == "float64"


@pytest.mark.parametrize("numbers, words", [
    ((((2,), (0,)), ((), ())), r"lhs_contracting of \(2,\) for lhs of shape \(2, 3\), whose axes are 0 to 1"),
    ((((0,), (-1,)), ((), ())), "rhs dimension numbers to be nonnegative"), ((((0,), (0,)), ((), ())), r"got \(2,\) and \(3,\)"),
    ((((0, 0), (0, 1)), ((), ())), "lhs contracting dimensions to be distinct"), ((((1,), (0,)), ((1,), (1,))), "disjoint"),
    ((((0, 1), (0,)), ((), ())), "equally many lhs and rhs contracting"), ((((), ()), ((0,), (1,))), "batch dimensions to have the same")])
def test_wrong_axes_are_named(numbers, words):
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    with pytest.raises(TypeError, match=words):
        jax.eval_shape(lambda x, y: lax.dot_general(x, y, numbers), x, y)
