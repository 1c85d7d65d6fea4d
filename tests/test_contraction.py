"""dot_general, the NumPy products built on it, and convolutions: values, derivatives, batching, errors."""
import itertools

import ml_dtypes
import numpy as np
import pytest

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax

RNG = np.random.default_rng(0)
FLOAT8 = ml_dtypes.float8_e4m3fn


def ints(*shape, dtype=np.float32):
    """Small integers, so that sums of products are exact in any order and float type."""
    if np.dtype(dtype).kind == "c":
        return (ints(*shape) + 1j * ints(*shape)).astype(dtype)
    if np.dtype(dtype) == bool:
        return RNG.integers(0, 2, shape).astype(bool)
    low = 0 if np.dtype(dtype).kind == "u" else -2
    return RNG.integers(low, 3, shape).astype(dtype)


def check_bilinear(f, x, y):
    """Forward mode is the product rule; reverse mode is its transpose; vmap is the loop."""
    dx, dy = ints(*x.shape), ints(*y.shape)
    out, tangent = hlotrace.jit(lambda *a: hlotrace.jvp(f, a[:2], a[2:]))(x, y, dx, dy)
    np.testing.assert_array_equal(tangent, np.add(f(dx, y), f(x, dy)))
    ct = ints(*out.shape)
    x_bar, y_bar = hlotrace.jit(lambda x, y, ct: hlotrace.vjp(f, x, y)[1](ct))(x, y, ct)
    assert (x_bar.shape, y_bar.shape) == (x.shape, y.shape)
    assert np.vdot(ct, tangent) == np.vdot(x_bar, dx) + np.vdot(y_bar, dy)
    xs, ys = ints(2, *x.shape), ints(*y.shape[:1], 2, *y.shape[1:])
    for in_axes in ((0, None), (None, 1), (0, 1)):
        got = hlotrace.jit(hlotrace.vmap(f, in_axes))(x if in_axes[0] is None else xs, y if in_axes[1] is None else ys)
        want = [f(x if in_axes[0] is None else xs[i], y if in_axes[1] is None else ys[:, i]) for i in range(2)]
        np.testing.assert_array_equal(got, np.stack(want))


# --- dot_general ------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("lhs, rhs, numbers, text", DOTS, ids=[d[3] for d in DOTS])
def test_dot_general_is_einsum(lhs, rhs, numbers, text):
    x, y = ints(*lhs), ints(*rhs)

    def f(x, y):
        return lax.dot_general(x, y, numbers)
    np.testing.assert_array_equal(f(x, y), np.einsum(text, x, y))
    check_bilinear(f, x, y)


DTYPES = [  # lhs, rhs, preferred, result
    ("int8", "int8", None, "int8"), ("int8", "int8", "int32", "int32"), ("uint8", "int8", "int32", "int32"),
    ("int4", "int4", "int32", "int32"), ("int8", "int8", "float32", "float32"), ("bool", "bool", None, "bool"),
    ("bfloat16", "bfloat16", "float32", "float32"), ("bfloat16", "float16", None, "bfloat16"),
    ("bfloat16", "float32", None, "float32"), ("float32", "float32", "bfloat16", "bfloat16"),
    ("float32", "float32", "int32", "int32"), ("complex64", "float32", None, "complex64"),
    ("float8_e4m3fn", "float8_e5m2", "float32", "float32"), ("float8_e4m3fn", "bfloat16", None, "bfloat16"),
    ("int32", "float16", None, "float16"),
]


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


@pytest.mark.parametrize("a, b, preferred", [("bfloat16", "bfloat16", "float32"), ("bfloat16", "float32", None),
                                             ("float32", "float32", "bfloat16"), ("complex64", "float32", None)])
def test_gradients_have_the_dtype_of_their_operand(a, b, preferred):
    x, y = ints(3, 4).astype(jnp.dtype(a)), ints(4, 2).astype(jnp.dtype(b))
    out, pullback = hlotrace.vjp(lambda x, y: lax.dot(x, y, preferred_element_type=preferred), x, y)
    x_bar, y_bar = pullback(jnp.ones_like(out))
    assert (x_bar.dtype, y_bar.dtype) == (x.dtype, y.dtype)
    ones = np.ones(out.shape, np.float32)
    np.testing.assert_array_equal(np.asarray(x_bar).astype("complex64"), ones @ y.T.astype("complex64"))
    np.testing.assert_array_equal(np.asarray(y_bar).astype(np.float32), np.real(x).astype(np.float32).T @ ones)


def test_precision_is_written_into_the_program():
    def text(precision, dtype=np.float32):
        x = np.ones((2, 2), dtype)
        return hlotrace.jit(lambda x: lax.dot(x, x, precision=precision)).lower(x).as_text()
    assert "precision = [HIGHEST, HIGHEST]" in text("highest") and "[HIGHEST, HIGHEST]" in text(lax.Precision.HIGHEST)
    assert "precision = [HIGH, DEFAULT]" in text(("tensorfloat32", "default"))
    assert "precision" not in text(None)
    algorithm = text("BF16_BF16_F32_X3")
    assert "num_primitive_operations = 3, allow_imprecise_accumulation = false" in algorithm
    assert text(lax.DotAlgorithmPreset.BF16_BF16_F32_X3) == algorithm
    assert text(lax.DotAlgorithm(jnp.bfloat16, jnp.bfloat16, np.float32, 1, 1, 3)) == algorithm
    assert "algorithm" not in text("F16_F16_F16", np.int32)
    with hlotrace.default_matmul_precision("float32"):
        assert "precision = [HIGHEST, HIGHEST]" in text(None)
    np.testing.assert_array_equal(lax.dot(ints(2, 3), ints(3, 2) * 0, precision="F16_F16_F16"), np.zeros((2, 2)))


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
    assert jnp.einsum("ij,jk,kl", a, b, c, optimize=path).shape == (2, 5) and "contraction" in info
    small = a.astype(jnp.bfloat16)
    assert jnp.einsum("ij->i", small, preferred_element_type=np.float32).dtype == np.float32
    assert jnp.einsum("ij,jk", small, b.astype(jnp.bfloat16), preferred_element_type=np.float32).dtype == np.float32
    np.testing.assert_array_equal(jnp.einsum("ij->i", a > 0), (a > 0).any(1))
    square = ints(3, 3)
    np.testing.assert_array_equal(hlotrace.grad(lambda x: jnp.einsum("ii,i->", x, a[0]))(square), np.diag(a[0]))


def test_einsum_contracts_in_the_cheap_order():
    x, y, z = np.ones((50, 2), np.float32), np.ones((2, 60), np.float32), np.ones((60, 1), np.float32)
    program = str(hlotrace.make_jaxpr(lambda *a: jnp.einsum("ij,jk,kl->il", *a))(x, y, z))
    assert "f32[50,60]" not in program and "transpose" not in program


# --- convolution ------------------------------------------------------------------------------------------------

def naive_conv(x, w, strides, padding, lhs_dilation, rhs_dilation, feature_groups=1, batch_groups=1):
    """Convolution of (batch, feature, *spatial) with (out, in, *spatial), one output element at a time."""
    def dilate(v, factors):
        size = [0 if n == 0 else (n - 1) * f + 1 for n, f in zip(v.shape[2:], factors)]
        out = np.zeros((*v.shape[:2], *size), v.dtype)
        out[(..., *(slice(None, None, f) for f in factors))] = v
        return out
    x, w = dilate(x, lhs_dilation), dilate(w, rhs_dilation)
    x = np.pad(x, [(0, 0), (0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in padding)])
    x = x[(..., *(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(padding, x.shape[2:])))]
    places = [range(0, max(n - k + 1, 0), s) for n, k, s in zip(x.shape[2:], w.shape[2:], strides)]
    batch, out_features, groups = x.shape[0] // batch_groups, w.shape[0], feature_groups * batch_groups
    out = np.zeros((batch, out_features, *map(len, places)), x.dtype)
    for o in range(out_features):
        group = o // (out_features // groups)
        lhs = x[group * batch:(group + 1) * batch] if batch_groups > 1 else x
        features = slice(group * w.shape[1], (group + 1) * w.shape[1]) if feature_groups > 1 else slice(None)
        for index in itertools.product(*map(range, map(len, places))):
            window = tuple(slice(p[i], p[i] + k) for p, i, k in zip(places, index, w.shape[2:]))
            out[(slice(None), o, *index)] = np.sum(lhs[(slice(None), features, *window)] * w[o],
                                                   axis=tuple(range(1, x.ndim)))
    return out


CONVS = {  # lhs, rhs, strides, padding, lhs_dilation, rhs_dilation, feature groups, batch groups
    "plain": ((2, 3, 5), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), 1, 1),
    "2d": ((2, 2, 5, 6), (3, 2, 3, 2), (2, 1), ((1, 1), (0, 2)), (1, 1), (1, 1), 1, 1),
    "dilated": ((2, 2, 5, 4), (2, 2, 2, 3), (2, 3), ((1, 2), (2, 2)), (2, 1), (1, 2), 1, 1),
    "negative padding": ((1, 2, 7), (2, 2, 2), (2,), ((-1, -2),), (1,), (1,), 1, 1),
    "features": ((2, 6, 5), (4, 3, 2), (1,), ((1, 0),), (2,), (1,), 2, 1),
    "depthwise": ((2, 3, 4, 4), (6, 1, 3, 3), (1, 2), ((1, 1), (1, 1)), (1, 1), (1, 2), 3, 1),
    "batches": ((6, 2, 5), (3, 2, 2), (2,), ((1, 1),), (1,), (2,), 1, 3),
    "batches of two": ((4, 3, 4), (4, 3, 3), (1,), ((1, 1),), (1,), (1,), 1, 2),
    "no spatial axes": ((2, 3), (4, 3), (), (), (), (), 1, 1),
    "no outputs": ((2, 3, 2), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), 1, 1),
    "empty batch": ((0, 3, 4), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), 1, 1),
}


@pytest.mark.parametrize("name", CONVS)
def test_convolution(name):
    lhs, rhs, *rest = CONVS[name]
    x, w = ints(*lhs), ints(*rhs)

    def f(x, w):
        strides, padding, lhs_dilation, rhs_dilation, features, batches = rest
        return lax.conv_general_dilated(x, w, strides, padding, lhs_dilation, rhs_dilation,
                                        feature_group_count=features, batch_group_count=batches)
    np.testing.assert_array_equal(f(x, w), naive_conv(x, w, *rest))
    check_bilinear(f, x, w)


@pytest.mark.parametrize("numbers", [("NHWC", "HWIO", "NHWC"), ("CNHW", "OIWH", "WHNC")])
def test_convolution_axes_in_any_order(numbers):
    x, w = ints(2, 3, 4, 5), ints(4, 3, 2, 3)

    def order(text, plain):
        return [plain.index(c) for c in text]
    want = naive_conv(x, w, (1, 2), ((0, 1), (1, 1)), (1, 1), (2, 1)).transpose(order(numbers[2], "NCHW"))
    x, w = x.transpose(order(numbers[0], "NCHW")), w.transpose(order(numbers[1], "OIHW"))

    def f(x, w):
        axes = order([c for c in numbers[1] if c in "HW"], "HW")
        spatial = [((1, 2)[i], ((0, 1), (1, 1))[i], (2, 1)[i]) for i in axes]
        strides, padding, dilation = zip(*spatial)
        return lax.conv_general_dilated(x, w, strides, padding, None, dilation, numbers)
    np.testing.assert_array_equal(f(x, w), want)
    check_bilinear(f, x, w)


@pytest.mark.parametrize("dtype, preferred", [("int8", "int32"), ("int32", None), ("bool", None), ("complex64", None),
                                              ("bfloat16", "float32"), ("float32", "bfloat16"), ("float16", None)])
def test_convolution_dtypes(dtype, preferred):
    dtype = jnp.dtype(dtype)
    x, w = (ints(*s, dtype=dtype) for s in ((1, 2, 5), (3, 2, 2)))
    got = lax.conv(x, w, (1,), "VALID", preferred_element_type=preferred)
    wide = np.complex64 if dtype.kind == "c" else np.float32
    want = naive_conv(x.astype(wide), w.astype(wide), (1,), ((0, 0),), (1,), (1,))
    np.testing.assert_allclose(np.asarray(got).astype(wide), want != 0 if dtype.kind == "b" else want, atol=1e-5)
    assert got.dtype == jnp.dtype(preferred or dtype)
    if dtype.kind in "fV" or dtype == jnp.bfloat16:
        bars = hlotrace.vjp(lambda x, w: lax.conv(x, w, (1,), "VALID", preferred_element_type=preferred), x, w)[1](got)
        assert [b.dtype for b in bars] == [dtype, dtype]


def test_padding_by_name():
    x, w = ints(1, 1, 7), ints(1, 1, 4)
    for kind, pads in (("SAME", (1, 2)), ("VALID", (0, 0))):
        np.testing.assert_array_equal(lax.conv(x, w, (3,), kind), naive_conv(x, w, (3,), (pads,), (1,), (1,)))
    assert lax.padtype_to_pads((7, 8), (4, 3), (2, 2), "SAME") == [(1, 2), (0, 1)]
    assert lax.padtype_to_pads((7, 8), (4, 3), (2, 2), "same_lower") == [(2, 1), (1, 0)]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size, kernel, stride", [(8, 3, 2), (8, 4, 2), (6, 2, 3), (5, 3, 1)])
def test_conv_transpose_is_the_gradient_of_a_convolution(size, kernel, stride, padding):
    w = ints(kernel, 2, 3)
    numbers = ("NHC", "HIO", "NHC")

    def forward(x):
        return lax.conv_general_dilated(x, w, (stride,), padding, dimension_numbers=numbers)
    y = ints(*hlotrace.eval_shape(forward, np.ones((1, size, 2), np.float32)).shape)
    want, = hlotrace.vjp(forward, np.ones((1, size, 2), np.float32))[1](y)
    got = lax.conv_transpose(y, w, (stride,), padding, dimension_numbers=numbers, transpose_kernel=True)
    n = min(got.shape[1], size)
    np.testing.assert_array_equal(np.asarray(got)[:, :n], np.asarray(want)[:, :n])


def test_patches_and_local_convolution():
    x = ints(2, 3, 5, 6)
    patches = np.asarray(lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "VALID"))
    assert patches.shape == (2, 18, 4, 2)
    np.testing.assert_array_equal(patches[:, :, 2, 1], x[:, :, 2:4, 2:5].reshape(2, 18))
    w = ints(4, 18, 4, 2)
    np.testing.assert_array_equal(lax.conv_general_dilated_local(x, w, (1, 2), "VALID", (2, 3)),
                                  np.einsum("nihw,oihw->nohw", patches, w))


# --- errors -----------------------------------------------------------------------------------------------------

F = np.ones


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.dot_general(F((2, 3)), F((4, 5)), (((1,), (0,)), ((), ()))), TypeError,
     r"contracting.*\(3,\) and \(4,\): in 'ab,bc->ac', 'b' is axis 1 of lhs with size 3 and axis 0 of rhs with size 4"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), (((1,), (0,)), ((0,), (1,)))), TypeError,
     r"batch.*\(2,\) and \(3,\)"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), (((2,), (0,)), ((), ()))), TypeError, "less than the number"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), (((1,), (0,)), ((1,), (0,)))), TypeError, "disjoint"),
    (lambda: lax.dot_general(F((2, 3)), F((3, 3)), 1), TypeError, "dimension_numbers must be"),
    (lambda: lax.dot(F((2, 3)), F((2, 3))), ValueError, r"lhs_shape=\(2, 3\) rhs_shape=\(2, 3\)"),
    (lambda: lax.dot([1.0], F(1)), TypeError, "not a valid JAX type"),
    (lambda: lax.dot(F((2, 2)), F((2, 2)), precision="exact"), ValueError, "'highest'.*'exact'"),
    (lambda: lax.dot(F((2, 2), int), F((2, 2), int), preferred_element_type=np.int8), TypeError, "narrower"),
    (lambda: lax.batch_matmul(F(2), F((2, 2))), ValueError, "at least 2D"),
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
    (lambda: jnp.einsum("ijk", F((2, 3))), ValueError, "'ijk' does not contain the correct number"),
    (lambda: jnp.einsum("i..j", F((2, 3))), ValueError, "Invalid Ellipses"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 4, 3)), (1,), "SAME"), ValueError, "but 3 // 1 != 4"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1, 1), "SAME"), ValueError, "1 spatial axes"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1,), "FOO"), RuntimeError, "SAME_LOWER"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1,), [(0, 0)] * 2), ValueError, "padding must have the same"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1,), [(-3, -3)]), ValueError, "negative padding"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3), int), (1,), "SAME"), TypeError, "same dtypes"),
    (lambda: lax.conv_general_dilated(F((1, 3, 4)), F((5, 3, 3)), (1,), "SAME", (2,)), ValueError, "conv_transpose"),
    (lambda: lax.conv_general_dilated(F((1, 3, 4)), F((5, 3, 3)), (1,), "SAME", feature_group_count=2), ValueError,
     "2 does not divide 3"),
    (lambda: lax.conv_general_dilated(F((1, 3, 4)), F((5, 3, 3)), (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCW")),
     TypeError, "same set of spatial characters"),
])
def test_errors_name_axes_and_sizes(call, error, words):
    with pytest.raises(error, match=words):
        call()
