"""lax products: values, dtypes, precision, derivatives, batching, errors."""

import numpy as np
import pytest
from bilinear import check_bilinear, ints
from equal import same
from other_platforms import computed

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax

DOTS = [  # lhs, rhs, ((lhs contract, rhs contract), (lhs batch, rhs batch)), the same as einsum
    ((3,), (3,), (((0,), (0,)), ((), ())), "i,i->"),
    ((2, 3), (3, 4), (((1,), (0,)), ((), ())), "ij,jk->ik"),
    ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,))), "bij,bjk->bik"),
    ((2, 3, 4, 5), (4, 5, 3, 2), (((2, 0), (0, 3)), ((3,), (1,))), "abcd,cdea->dbe"),
    ((2, 3), (2, 3), (((), ()), ((1, 0), (1, 0))), "ij,ij->ji"),
    ((2,), (3,), (((), ()), ((), ())), "i,j->ij"),
    ((0, 3), (3, 0), (((1,), (0,)), ((), ())), "ij,jk->ik"),
    ((2, 0), (0, 3), (((1,), (0,)), ((), ())), "ij,jk->ik"),
]
DTYPES = [  # lhs, rhs, preferred, result
    ("int8", "int8", None, "int8"), ("int8", "int8", "int32", "int32"), ("uint8", "int8", "int32", "int32"),
    ("int4", "int4", "int32", "int32"), ("int8", "int8", "float32", "float32"),
    ("bool", "bool", None, "bool"),
    ("bfloat16", "bfloat16", "float32", "float32"), ("bfloat16", "float16", None, "bfloat16"),
    ("bfloat16", "float32", None, "float32"), ("float32", "float32", "bfloat16", "bfloat16"),
    ("float32", "float32", "int32", "int32"), ("complex64", "float32", None, "complex64"),
    ("float8_e4m3fn", "float8_e5m2", "float32", "float32"), ("float8_e4m3fn", "bfloat16", None, "bfloat16"),
    ("int32", "float16", None, "float16"),
]


F = np.ones


@pytest.mark.parametrize("lhs, rhs, numbers, text", DOTS, ids=[d[3] for d in DOTS])
def test_dot_general_is_einsum(lhs, rhs, numbers, text):
    x, y = ints(*lhs), ints(*rhs)

    def f(x, y):
        return lax.dot_general(x, y, numbers)
    np.testing.assert_array_equal(f(x, y), np.einsum(text, x, y))
    check_bilinear(f, x, y)


@pytest.mark.parametrize("a, b, preferred, result", DTYPES, ids=["-".join(map(str, d)) for d in DTYPES])
def test_dot_of_mixed_dtypes(a, b, preferred, result):
    a, b = jnp.dtype(a), jnp.dtype(b)
    x, y = ints(3, 4).astype(a), ints(4, 2).astype(b)
    if a.kind == "b":
        x, y = ints(3, 4, dtype=bool), ints(4, 2, dtype=bool)
    if "uint8" == a.name:
        x = x + np.uint8(200)
    got = lax.dot(x, y, preferred_element_type=preferred)
    assert got.dtype == jnp.dtype(result)
    wide = np.complex64 if got.dtype.kind == "c" else bool if a.kind == "b" else np.float32
    np.testing.assert_array_equal(np.asarray(got).astype(wide), x.astype(wide) @ y.astype(wide))


@pytest.mark.parametrize(
    "batch, sizes, pads", [((), (4, 8, 4), 0), ((), (5, 7, 3), 2), ((3,), (4, 7, 4), 2), ((), (4, 8, 3), 1)]
)
def test_on_gpus_products_of_bytes_have_sizes_that_are_multiples_of_four(batch, sizes, pads):
    """XLA gives cuBLAS others, with wrong numbers."""
    m, k, n = sizes
    x, y = ints(*batch, m, k).astype("int8"), ints(*batch, k, n).astype("int8")
    dims = ((len(batch) + 1,), (len(batch),)), (tuple(range(len(batch))),) * 2
    f = hlotrace.jit(lambda x, y: lax.dot_general(x, y, dims, preferred_element_type="int32"))
    text = f.trace(x, y).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("stablehlo.pad") == pads and "stablehlo.pad" not in f.trace(x, y).lower().as_text()
    np.testing.assert_array_equal(computed(text, (x, y))[0], x.astype(int) @ y.astype(int))


@pytest.mark.parametrize("a, b, preferred",
                         [("bfloat16", "bfloat16", "float32"), ("bfloat16", "float32", None),
                                             ("float32", "float32", "bfloat16"),
                                             ("complex64", "float32", None)])
def test_gradients_have_the_dtype_of_their_operand(a, b, preferred):
    x, y = ints(3, 4).astype(jnp.dtype(a)), ints(4, 2).astype(jnp.dtype(b))
    out, pullback = hlotrace.vjp(lambda x, y: lax.dot(x, y, preferred_element_type=preferred), x, y)
    x_bar, y_bar = pullback(jnp.ones_like(out))
    assert (x_bar.dtype, y_bar.dtype) == (x.dtype, y.dtype)
    ones = np.ones(out.shape, np.float32)
    np.testing.assert_array_equal(np.asarray(x_bar).astype("complex64"), ones @ y.T.astype("complex64"))
    np.testing.assert_array_equal(np.asarray(y_bar).astype(np.float32),
                                  np.real(x).astype(np.float32).T @ ones)


def test_precision_is_written_into_the_program():
    def text(precision, dtype=np.float32):
        x = np.ones((2, 2), dtype)
        return hlotrace.jit(lambda x: lax.dot(x, x, precision=precision)).lower(x).as_text()
    assert "precision = [HIGHEST, HIGHEST]" in text("highest") and "[HIGHEST, HIGHEST]" in text(
        lax.Precision.HIGHEST)
    assert "precision = [HIGH, DEFAULT]" in text(("tensorfloat32", "default"))
    assert "precision" not in text(None)
    algorithm = text("BF16_BF16_F32_X3")
    assert "num_primitive_operations = 3, allow_imprecise_accumulation = false" in algorithm
    assert text(lax.DotAlgorithmPreset.BF16_BF16_F32_X3) == algorithm
    assert text(lax.DotAlgorithm(jnp.bfloat16, jnp.bfloat16, np.float32, 1, 1, 3)) == algorithm
    assert "algorithm" not in text("F16_F16_F16", np.int32)
    with hlotrace.default_matmul_precision("float32"):
        assert "precision = [HIGHEST, HIGHEST]" in text(None)
    image, kernel = ints(1, 2, 5), ints(3, 2, 2)
    convolution = lax.conv(image, kernel, (1,), "SAME", precision="BF16_BF16_F32")      # which it has not
    np.testing.assert_array_equal(convolution, lax.conv(image, kernel, (1,), "SAME"))
    np.testing.assert_array_equal(lax.dot(ints(2, 3), ints(3, 2) * 0, precision="F16_F16_F16"),
                                  np.zeros((2, 2)))


def test_ragged_dot_multiplies_each_group_by_its_matrix():
    x, w, sizes = ints(6, 5), ints(3, 5, 2), np.array([2, 0, 3], np.int32)
    want = np.concatenate([x[:2] @ w[0], x[2:5] @ w[2], np.zeros((1, 2), np.float32)])
    np.testing.assert_array_equal(lax.ragged_dot(x, w, sizes), want)
    contracting = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    y = ints(6, 4)
    np.testing.assert_array_equal(lax.ragged_dot_general(x, y, sizes, contracting),
                                  np.stack([x[:2].T @ y[:2], np.zeros((5, 4)), x[2:5].T @ y[2:5]]))
    with pytest.raises(TypeError, match="group dimension size to be 2, got 3"):
        lax.ragged_dot(x, w, sizes[:2])


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.dot_general(F((2, 3)), F((4, 5)), (((1,), (0,)), ((), ()))), TypeError,
     r"contracting.*\(3,\) and \(4,\): in 'ab,bc->ac', 'b' is axis 1 of lhs with size 3 and axis 0 of rhs with size 4"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), (((1,), (0,)), ((0,), (1,)))), TypeError,
     r"batch.*\(2,\) and \(3,\)"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), (((2,), (0,)), ((), ()))), TypeError,
     "less than the number"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), (((1,), (0,)), ((1,), (0,)))), TypeError, "disjoint"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), 1), TypeError, "dimension_numbers must be"),
    (lambda: lax.dot(F((2, 3)), F((2, 3))), ValueError, r"lhs_shape=\(2, 3\) rhs_shape=\(2, 3\)"),
    (lambda: lax.dot([1.0], F(1)), TypeError, "not a valid JAX type"),
    (lambda: lax.dot(F((2, 2)), F((2, 2)), precision="exact"), ValueError, "'highest'.*'exact'"),
    (lambda: lax.dot(F((2, 2), int), F((2, 2), int), preferred_element_type=np.int8), TypeError, "narrower"),
    (lambda: lax.batch_matmul(F(2), F((2, 2))), ValueError, "at least 2D"),
])
def test_errors_name_axes_and_sizes(call, error, words):
    with pytest.raises(error, match=words):
        call()


def _grouped(lhs, rhs, sizes, free):
    """The product of one batch element: rows of groups times their matrices, or a sum for each group."""
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes)]
    if not free:
        return np.stack([lhs[part].T @ rhs[part] for part in parts])
    out = np.zeros((lhs.shape[0], rhs.shape[-1]), np.float32)
    for g, part in enumerate(parts):
        out[part] = lhs[part] @ rhs[g]
    return out


SIZES = np.array([[[1, 2], [2, 3], [5, 0]], [[0, 5], [1, 1], [2, 2]]])


@pytest.mark.parametrize("stage", [lambda f: f, hlotrace.jit], ids=["eager", "jit"])
def test_groups_that_differ_along_other_axes(stage):
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 5, 4), (2, 2, 4, 6)))
    numbers = lax.RaggedDotDimensionNumbers((([3], [2]), ([0], [1])), [2], [0])
    got = stage(lambda *args: lax.ragged_dot_general(*args, numbers))(lhs, rhs, SIZES)
    same(
        got, np.stack([[_grouped(lhs[b, i], rhs[:, b], SIZES[b, i], True) for i in range(3)]
                       for b in range(2)]), 10)
    lhs, rhs = (rng.normal(size=s).astype(np.float32) for s in ((3, 2, 5, 4), (3, 2, 5, 6)))
    numbers = lax.RaggedDotDimensionNumbers((([0, 2], [0, 2]), ([1], [1])), [2], [])
    got = stage(lambda *args: lax.ragged_dot_general(*args, numbers))(lhs, rhs, SIZES)
    want = [sum(_grouped(lhs[i, b], rhs[i, b], SIZES[b, i], False) for i in range(3)) for b in range(2)]
    same(got, np.stack(want, 1), 10)


@pytest.mark.parametrize("sizes, words", [(np.ones((3, 2), int), r"the shape \(2, 'number of groups'\)"),
                                          (np.int32(3), "rank 1 at least"),
                                          (np.ones((2, 3), int), "rhs group dimension size to be 3, got 2")])
def test_group_sizes_that_do_not_fit(sizes, words):
    numbers = lax.RaggedDotDimensionNumbers((([2], [2]), ([0], [1])), [1], [0])
    with pytest.raises(TypeError, match=words):
        lax.ragged_dot_general(jnp.ones((2, 5, 3)), jnp.ones((2, 2, 3, 4)), sizes, numbers)
