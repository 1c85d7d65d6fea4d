"""lax convolutions: values, dtypes, derivatives, batching, errors."""
import itertools

import numpy as np
import pytest
from bilinear import check_bilinear, ints

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax


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
F = np.ones


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


@pytest.mark.parametrize("dtype, preferred",
                         [("int8", "int32"), ("int32", None), ("bool", None), ("complex64", None),
                                              ("bfloat16", "float32"), ("float32", "bfloat16"),
                                              ("float16", None)])
def test_convolution_dtypes(dtype, preferred):
    dtype = jnp.dtype(dtype)
    x, w = (ints(*s, dtype=dtype) for s in ((1, 2, 5), (3, 2, 2)))
    got = lax.conv(x, w, (1,), "VALID", preferred_element_type=preferred)
    wide = np.complex64 if dtype.kind == "c" else np.float32
    want = naive_conv(x.astype(wide), w.astype(wide), (1,), ((0, 0),), (1,), (1,))
    np.testing.assert_allclose(np.asarray(got).astype(wide), want != 0 if dtype.kind == "b" else want,
                               atol=1e-5)
    assert got.dtype == jnp.dtype(preferred or dtype)
    if dtype.kind in "fV" or dtype == jnp.bfloat16:
        bars = hlotrace.vjp(lambda x, w: lax.conv(x, w, (1,), "VALID", preferred_element_type=preferred), x,
                            w)[1](got)
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


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.conv(F((1, 3, 4)), F((5, 4, 3)), (1,), "SAME"), ValueError,
     "but 3 // 1 != 4: .* has 3 channels.* takes 4"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1, 1), "SAME"), ValueError, "1 spatial axes"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1,), "FOO"), RuntimeError, "SAME_LOWER"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1,), [(0, 0)] * 2), ValueError,
     "padding must have the same"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3)), (1,), [(-3, -3)]), ValueError, "negative padding"),
    (lambda: lax.conv(F((1, 3, 4)), F((5, 3, 3), int), (1,), "SAME"), TypeError, "same dtypes"),
    (lambda: lax.conv_general_dilated(F((1, 3, 4)), F((5, 3, 3)), (1,), "SAME", (2,)), ValueError,
     "conv_transpose"),
    (lambda: lax.conv_general_dilated(F((1, 3, 4)), F((5, 3, 3)), (1,), "SAME", feature_group_count=2),
     ValueError,
     "2 does not divide 3"),
    (lambda: lax.conv_general_dilated(F((1, 3, 4)), F((5, 3, 3)), (1,), "SAME",
                                      dimension_numbers=("NCH", "OIH", "NCW")),
     TypeError, "same set of spatial characters"),
])
def test_errors_name_axes_and_sizes(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_dimension_numbers_of_convolutions_from_letters():
    """Where batch or output feature, feature or input feature, and the spatial axes in the order of the
    kernel stand."""
    lhs, rhs = (2, 7, 8, 4), (3, 3, 4, 6)
    numbers = lax.conv_dimension_numbers(lhs, rhs, ("NHWC", "HWIO", "NCWH"))
    assert numbers == lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 3, 2))
    assert lax.conv_dimension_numbers(lhs, rhs, None) == lax.ConvDimensionNumbers(*[(0, 1, 2, 3)] * 3)
    assert lax.conv_dimension_numbers(lhs, rhs, numbers) == numbers
    for wrong in (("NHWC", "HWIO"), ("NHWC", "HWIO", "NHC"), ("NHWC", "HWIO", "NHHC"),
                  ("NHWC", "HWIO", "NHDC"), "NHWC"):
        with pytest.raises(TypeError, match="dimension_numbers"):
            lax.conv_dimension_numbers(lhs, rhs, wrong)


def test_conv_with_general_padding_is_the_general_convolution():
    x, y = ints(2, 4, 7, 8), ints(6, 4, 3, 3)
    how = ((2, 1), ((1, 0), (2, 3)), (1, 2), (2, 1))
    got = lax.conv_with_general_padding(x, y, *how)
    np.testing.assert_array_equal(got, lax.conv_general_dilated(x, y, *how))
    plain = lax.conv_with_general_padding(x, y, (1, 1), "VALID", None, None)
    np.testing.assert_array_equal(plain[0, 0, 0, 0], (x[0, :, :3, :3] * y[0]).sum())
