"""Shapes, joins, splits, padding, differences and windows: the same values as NumPy's."""
import numpy as np
import pytest

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2, 5, 4], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
I3 = np.arange(3, dtype=np.int32)
BITS = np.array([[1, 0, 1, 1, 0, 0, 0, 1, 1], [0, 1, 1, 0, 0, 1, 0, 1, 0]], np.int32)
BYTES = np.array([[177, 3], [128, 9]], np.uint8)


def arrays(result):
    return result if isinstance(result, (list, tuple)) else [result]


SAME = [
    lambda xp: xp.reshape(C, (4, -1)), lambda xp: xp.reshape(C, (4, 6), order="F"), lambda xp: xp.ravel(X, order="F"),
    lambda xp: xp.ravel(np.zeros((0, 2), np.float32)), lambda xp: xp.resize(X, (4, 2)),
    lambda xp: xp.resize(np.zeros(0, np.float32), (2,)), lambda xp: xp.transpose(C),
    lambda xp: xp.transpose(C, (-1, 0, 1)),
    lambda xp: xp.matrix_transpose(C), lambda xp: xp.moveaxis(C, [0, 1], [-1, -2]), lambda xp: xp.rollaxis(C, 2),
    lambda xp: xp.rollaxis(C, 1, -1), lambda xp: xp.swapaxes(C, 0, -1),
    lambda xp: xp.squeeze(X[None, :, None], (0, 2)),
    lambda xp: xp.squeeze(X[None]), lambda xp: xp.expand_dims(X, (0, -1)), lambda xp: xp.atleast_2d(V, X),
    lambda xp: xp.atleast_3d(V), lambda xp: xp.atleast_3d(X), lambda xp: xp.broadcast_to(V, (2, 5)),
    lambda xp: xp.broadcast_arrays(V, X[:, :1]), lambda xp: xp.concatenate([X, X], -1),
    lambda xp: xp.concatenate([X, V], None), lambda xp: xp.concatenate([X, X], dtype=np.int32, **(
        {"casting": "unsafe"} if xp is np else {})), lambda xp: xp.stack([X, X], -1), lambda xp: xp.stack(C, 1),
    lambda xp: xp.hstack([V, V]), lambda xp: xp.hstack([X, X]), lambda xp: xp.vstack([V, V]),
    lambda xp: xp.dstack([X, X]),
    lambda xp: xp.dstack([V, V]), lambda xp: xp.column_stack([X, V[:2]]), lambda xp: xp.append(X, X, 0),
    lambda xp: xp.block([[X, X[:, :1]], [np.ones((1, 4), np.float32)]]), lambda xp: xp.split(V, [1, 3]),
    lambda xp: xp.array_split(V, 7), lambda xp: xp.hsplit(X, 3), lambda xp: xp.vsplit(X, 2),
    lambda xp: xp.dsplit(C, 2),
    lambda xp: xp.unstack(C, axis=1), lambda xp: xp.tile(X, (2, 1, 2)), lambda xp: xp.tile(V, 0),
    lambda xp: xp.repeat(X, 2), lambda xp: xp.repeat(X, np.array([1, 0, 2]), 1), lambda xp: xp.flip(C, (0, -1)),
    lambda xp: xp.fliplr(X), lambda xp: xp.flipud(X), *(lambda xp, k=k: xp.rot90(C, k, (1, 2)) for k in range(-1, 3)),
    lambda xp: xp.roll(V, -7), lambda xp: xp.roll(X, 1), lambda xp: xp.roll(X, (1, 2), (0, 1)),
    lambda xp: xp.roll(X, (1, 2), 1), lambda xp: xp.roll(X, (1, 2)),
    # differences, integrals, interpolation
    lambda xp: xp.diff(V, 2), lambda xp: xp.diff(X, prepend=1, axis=0), lambda xp: xp.diff(V > 2),
    lambda xp: xp.ediff1d(V, to_end=V[:2], to_begin=V[0]), lambda xp: xp.gradient(V),
    lambda xp: xp.gradient(X, 2.0, axis=1),
    lambda xp: xp.gradient(X, 2.0, 3.0), lambda xp: xp.gradient(V, np.array([0, 1, 3, 4, 8], np.float32)),
    lambda xp: xp.trapezoid(V, dx=2), lambda xp: xp.trapezoid(X, np.array([0, 1, 3], np.float32)),
    lambda xp: xp.trapezoid(X, axis=0), lambda xp: xp.unwrap(V * 2), lambda xp: xp.unwrap(X * 4, axis=0),
    lambda xp: xp.unwrap(np.array([0, 3, 1, 5, 9], np.int32), period=np.int32(4)),
    lambda xp: xp.interp(V - 1.5, I3, V[:3]), lambda xp: xp.interp(V, I3, V[:3], left=-5, right=9),
    lambda xp: xp.interp(V, I3, V[:3], period=2.5), lambda xp: xp.interp(X, I3, V[:3] * np.complex64(1j)),
    lambda xp: xp.polyval(V, X), lambda xp: xp.select([V > 3, V > 1], [V, V * 10], 99),
    lambda xp: xp.piecewise(V, [V < 4, V < 3], [lambda v: v * 10, lambda v: -v]),
    lambda xp: xp.piecewise(V, [V < 2, V > 4], [-1, 1, 7]),
    lambda xp: xp.trim_zeros(np.array([0, 0, 1, 0, 2, 0], np.int32)),
    lambda xp: xp.apply_along_axis(lambda a: a[:2] * a.sum(), 1, C), lambda xp: xp.apply_over_axes(xp.sum, C, (0, 2)),
    *(lambda xp, order=order, axis=axis: xp.packbits(BITS, axis, order)
      for order, axis in (("big", None), ("little", 1), ("big", 0))),
    lambda xp: xp.unpackbits(BYTES), lambda xp: xp.unpackbits(BYTES, 1, 5, "little"),
    lambda xp: xp.unpackbits(BYTES, 0, -3),
    *(lambda xp, name=name: getattr(xp, name)(6) for name in ("hanning", "hamming", "blackman", "bartlett")),
    lambda xp: xp.kaiser(6, 14.0), lambda xp: xp.hanning(1),
    # padding
    lambda xp: xp.pad(X, ((1, 2), (0, 1))), lambda xp: xp.pad(X, 1, constant_values=((1, 2), (3, 4))),
    lambda xp: xp.pad(X, ((1, 2), (0, 1)), "edge"),
    lambda xp: xp.pad(X, 2, "linear_ramp", end_values=((1, 2), (3, 4))),
    lambda xp: xp.pad(I3, 2, "linear_ramp", end_values=8), lambda xp: xp.pad(X, 1, "maximum"),
    lambda xp: xp.pad(V, 2, "minimum", stat_length=2), lambda xp: xp.pad(V, (1, 2), "mean", stat_length=((2, 3),)),
    lambda xp: xp.pad(X, 1, "median"), lambda xp: xp.pad(V, (13, 9), "symmetric"), lambda xp: xp.pad(X, 2, "wrap"),
    lambda xp: xp.pad(V, 11, "reflect"), lambda xp: xp.pad(X, ((1, 2), (2, 1)), "reflect"),
    lambda xp: xp.pad(V, (13, 9), "reflect", reflect_type="odd"), lambda xp: xp.pad(V[:1], 2, "reflect"),
    lambda xp: xp.pad(V, (3, 8), "symmetric", reflect_type="odd"), lambda xp: xp.pad(V, 0, "wrap"),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    got, want = arrays(function(jnp)), arrays(function(np))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape
        assert g.dtype == {np.dtype("float64"): np.float32, np.dtype("complex128"): np.complex64,
                           np.dtype("int64"): np.int32}.get(w.dtype, w.dtype)
        np.testing.assert_allclose(g, w, 2e-5, 2e-6)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.reshape(X, (4, 2)), TypeError, r"\(2, 3\) \(size 6\) into shape \(4, 2\)"),
    (lambda: jnp.reshape(X, (4, -1)), TypeError, "does not divide"),
    (lambda: jnp.reshape(X, (-1, -1)), ValueError, "-1"),
    (lambda: jnp.reshape([1], (1,)), TypeError, "reshape"), (lambda: jnp.reshape(X, 6, "Q"), ValueError, "order"),
    (lambda: jnp.transpose(C, (0, 1)), TypeError, "must name each"),
    (lambda: jnp.transpose(C, (0, 0, 1)), ValueError, "dup"),
    (lambda: jnp.moveaxis(C, 0, (1, 2)), ValueError, "1 vs 2"),
    (lambda: jnp.squeeze(X, 1), ValueError, "size not equal"),
    (lambda: jnp.expand_dims(X, 4), ValueError, "out of bounds"),
    (lambda: jnp.broadcast_to(V, (5, 2)), ValueError, "broadc"),
    (lambda: jnp.concatenate([]), ValueError, "at least one"),
    (lambda: jnp.concatenate([1, 2]), ValueError, "Zero-dim"),
    (lambda: jnp.concatenate([[1], [2]]), TypeError, "Lists"),
    (lambda: jnp.concatenate([X, V]), TypeError, "dimensions"),
    (lambda: jnp.concatenate(3), TypeError, "sequence"), (lambda: jnp.stack([X, V]), ValueError, "same shape"),
    (lambda: jnp.block([[X], X]), ValueError, "mismatched"), (lambda: jnp.split(V, 2), ValueError, "equal division"),
    (lambda: jnp.split(V, 0), ValueError, "larger than 0"), (lambda: jnp.unstack(1.0), ValueError, "rank > 0"),
    (lambda: jnp.repeat(V, -1), ValueError, "non-negative"),
    (lambda: jnp.repeat(V, [1, 2]), ValueError, "each of the 5"),
    (lambda: hlotrace.jit(lambda r: jnp.repeat(V, r))(2), hlotrace.errors.ConcretizationTypeError, "total_repeat_length"),
    (lambda: jnp.flip(X, 2), ValueError, "out of bounds"), (lambda: jnp.rot90(X, 1, (0, 0)), ValueError, "duplicate"),
    (lambda: jnp.roll(X, (1, 2), (0, 1, 0)), ValueError, "lengths"),
    (lambda: jnp.diff(V, -1), ValueError, "non-negative"),
    (lambda: jnp.gradient(V[:1]), ValueError, "too small"), (lambda: jnp.gradient(X, 1, 2, 3), TypeError, "spacing"),
    (lambda: jnp.interp(V, X, X), ValueError, "one-dimensional"),
    (lambda: jnp.interp(V, V, V, left="a"), ValueError, "left"),
    (lambda: jnp.select([V > 3], [V, V]), ValueError, "1 vs 2"),
    (lambda: jnp.packbits(V), TypeError, "integer or boolean"),
    (lambda: jnp.unpackbits(I3), TypeError, "unsigned byte"),
    (lambda: jnp.piecewise(V, [V < 1], []), ValueError, "expected"),
    (lambda: jnp.pad(V, -1), ValueError, "negative"), (lambda: jnp.pad(V, 1.5), TypeError, "integral"),
    (lambda: jnp.pad(X, ((1, 1),) * 3), ValueError, "unsupported shape"),
    (lambda: jnp.pad(V, 1, "a"), NotImplementedError, "a"),
    (lambda: jnp.pad(V, 1, "edge", constant_values=1), ValueError, "unsupported keyword"),
    (lambda: jnp.pad(V[:0], 1, "wrap"), ValueError, "empty axis"),
    (lambda: jnp.pad([1], 1), TypeError, "pad requires"),
])
def test_shaping_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_traced_shifts_and_repeats():
    np.testing.assert_array_equal(hlotrace.vmap(lambda s: jnp.roll(V, s))(np.array([0, 2, -7])),
                                  [np.roll(V, s) for s in (0, 2, -7)])
    np.testing.assert_array_equal(hlotrace.jit(lambda s: jnp.roll(X, (s, 1), (0, 1)))(1), np.roll(X, (1, 1), (0, 1)))
    repeats = hlotrace.jit(lambda r: jnp.repeat(I3, r, total_repeat_length=6))
    for counts, want in (([1, 2, 3], [0, 1, 1, 2, 2, 2]), ([2, 0, 1], [0, 0, 2, 2, 2, 2]), ([4, 4, 4], [0, 0, 0, 0, 1, 1])):
        np.testing.assert_array_equal(repeats(np.array(counts)), want)


@pytest.mark.parametrize("function, derivative", [
    (lambda a: jnp.roll(a, 2) * V, np.roll(V, -2)), (lambda a: jnp.tile(a, 2) ** 2, 4 * V),
    (lambda a: jnp.repeat(a, 2) ** 2, 4 * V), (lambda a: jnp.stack([a, a * 2]), 3 + 0 * V),
    (lambda a: jnp.split(a, [2])[1], [0, 0, 1, 1, 1]), (lambda a: jnp.pad(a, 2, "reflect"), [1, 2, 3, 2, 1]),
    (lambda a: jnp.gradient(a), [-1.5, .5, 0, -.5, 1.5]),
    (lambda a: jnp.interp(1.5, V[:0:-1] * 0 + np.arange(4), a[:4]),
                                                           [0, .5, .5, 0, 0]),
])
def test_derivatives(function, derivative):
    np.testing.assert_allclose(hlotrace.grad(lambda a: function(a).sum())(V), derivative, 1e-6)


def test_callable_padding_and_weak_types():
    def nines(row, width, axis, kwargs):
        return jnp.where(jnp.arange(row.shape[0]) < width[0], 9.0, row)
    np.testing.assert_array_equal(jnp.pad(V, 1, nines), [9, *V, 0])
    assert jnp.stack([1, 2]).weak_type and not jnp.stack([1, I3[0]]).weak_type
    assert jnp.concatenate([V.astype("float16"), I3]).dtype == np.float16
    assert (jnp.shape(X), jnp.ndim(X), jnp.size(C, (0, -1))) == ((2, 3), 2, 8)


@pytest.mark.parametrize("call, want", [
    (lambda: lax.broadcast(X, (2,)), [X, X]), (lambda: lax.broadcast_in_dim(V, (2, 5), (1,)), [V, V]),
    (lambda: lax.iota("float32", 3), [0, 1, 2]), (lambda: lax.broadcasted_iota("int8", (2, 2), 0), [[0, 0], [1, 1]]),
    (lambda: lax.collapse(C, -2), C.reshape(2, 12)), (lambda: lax.concatenate([X, X], 1), np.hstack([X, X])),
    (lambda: lax.expand_dims(V, (0, -1)), V[None, :, None]), (lambda: lax.full_like(X, 2), X * 0 + 2),
    (lambda: lax.pad(V, np.float32(9), [(1, -1, 1)]), [9, 3, 9, 1, 9, 2, 9, 5, 9]),
    (lambda: lax.reshape(X, (6,), (1, 0)), X.T.ravel()), (lambda: lax.rev(X, (1,)), X[:, ::-1]),
    (lambda: lax.split(V, (1, 4))[1], V[1:]), (lambda: lax.squeeze(V[None], (-2,)), V),
    (lambda: lax.transpose(X, (1, 0)), X.T),
    (lambda: lax.tile(X, (1, 2)), np.tile(X, 2)), (lambda: lax.stack([V, V], -1), np.stack([V, V], -1)),
    (lambda: lax.optimization_barrier({"a": V, "b": (X,)})["b"][0], X),
])
def test_lax_shapes(call, want):
    np.testing.assert_array_equal(call(), want)


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.broadcast([1.0], (2,)), TypeError, "not an array"), (lambda: lax.full((2,), V), TypeError, "scalar"),
    (lambda: lax.broadcast_in_dim(X, (2, 5), (0, 1)), TypeError, r"axis 1 of size 3 \(shape \(2, 3\)\)"),
    (lambda: lax.concatenate([X, V], 0), TypeError, "numbers of dimensions"),
    (lambda: lax.iota(bool, 3), TypeError, "iota"),
    (lambda: lax.concatenate([X, X.astype("int32")], 0), TypeError, "same dtypes"),
    (lambda: lax.reshape(X, (4, 2)), TypeError, "cannot reshape"),
    (lambda: lax.split(V, (1, 1)), ValueError, "Sum of sizes 2"),
    (lambda: lax.pad(X, 0, [(0, 0, 0)] * 2), TypeError, "same dtypes"),
    (lambda: lax.tile(X, (2,)), TypeError, "one entry"),
    (lambda: lax.transpose(X, (1, 1)), TypeError, "permutation"), (lambda: lax.rev(X, (5,)), ValueError, "axes"),
])
def test_lax_shapes_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()
