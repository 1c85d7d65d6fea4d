"""take, put, choose, delete, insert and their kin: values as NumPy's, sizes, errors."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace as jax
import hlotrace.numpy as jnp

M = np.arange(12.).reshape(3, 4).astype(np.float32)
V = np.arange(10).astype(np.float32)
X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
I2, I3, COLUMN = np.array([1, -1]), np.array([2, 0, 1]), np.array([[0], [2]])


SAME = [
    lambda xp: xp.take(xp.array([1, 2, 3]), xp.array([True, False])),
    lambda xp: xp.piecewise(xp.arange(3.), [xp.arange(3) < 1], [xp.array(1.), np.array(2.)]),
    lambda xp: xp.roll(xp.array([1, 2]), [], ()),
    lambda xp: xp.nanmean(xp.array([1, 2.5, np.nan]), dtype=complex),
    lambda xp: xp.array([xp.shape([[1., 2.]]), (xp.ndim([1.]), xp.size([1, 2]))]),
    lambda xp: xp.diff(xp.array(2), n=0),
    lambda xp: xp.trim_zeros(np.array([0, 0, 1, 0, 2, 0], np.int32)),
]


def test_nothing_is_taken_by_an_empty_array_of_any_dtype():
    assert jnp.take(M, jnp.array([])).shape == (0,) and jnp.ix_(jnp.array([]))[0].dtype == np.int32


def test_a_scalar_has_no_zeros_to_trim():
    assert jnp.trim_zeros(jnp.float32(0)).shape == () and jnp.trim_zeros(2) == 2


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


LIKE_NUMPY = [
    lambda np, a: np.take(a(M), a([[0, 1]]), axis=-1), lambda np, a: np.take(a(M), 5),
    lambda np, a: np.take_along_axis(a(M), np.argsort(-a(M), axis=1), 1),
    lambda np, a: np.take_along_axis(a(M), a([[1], [0], [2]]), 1), lambda np, a: np.take_along_axis(a(M), a([[1]]), 0),
    lambda np, a: np.take_along_axis(a(V), a([3, -1]), None),
    lambda np, a: np.take_along_axis(a(M[:0]), a([[1]])[:0], 1),
    lambda np, a: np.choose(a([0, 1, 1]), [a([1, 2, 3]), a([10., 20., 30.])]),
    lambda np, a: np.choose(a([0, 1, 5]), [a([1, 2, 3]), a([4, 5, 6])], mode="wrap"),
    lambda np, a: np.choose(a([-1, 1, 5]), [a([1, 2, 3]), 7], mode="clip"),
    lambda np, a: np.compress(a([True, False, True]), a(M), axis=0), lambda np, a: np.compress(a([0, 1]), a(M)),
    lambda np, a: np.extract(a(M) > 3, a(M)), lambda np, a: np.delete(a(M), 1, axis=1),
    lambda np, a: np.delete(a(M), a([1, -1]), axis=1), lambda np, a: np.delete(a(M), slice(0, 2)),
    lambda np, a: np.delete(a(V), a(V) > 3), lambda np, a: np.insert(a(V), 1, 5),
    lambda np, a: np.insert(a(M), 1, 5, axis=1), lambda np, a: np.insert(a(V), a([3, 1, 1]), a([5, 6, 7])),
    lambda np, a: np.insert(a(V), 2, a([5, 6, 7])), lambda np, a: np.insert(a(M), slice(0, 2), a([[1.], [2.]]), axis=0),
    lambda np, a: np.insert(a(M), 1, a([1, 2, 3]), axis=1),
    lambda np, a: np.insert(a(M), a([1]), a([[1], [2], [3]]), axis=1),
]


@pytest.mark.parametrize("function", LIKE_NUMPY)
def test_functions_like_numpy(function):
    same_as_numpy(function(jnp, jnp.asarray), function(np, np.asarray))


ERRORS = [
    (lambda x: jnp.take(x, jnp.array([0]), axis=3), ValueError, "axis 3 is out of bounds"),
    (lambda x: jnp.take(x, [0]), TypeError, "list"), (lambda x: jnp.delete(x, 99), IndexError, "out of bounds"),
    (lambda x: jnp.delete(x, 1.5), ValueError, "obj must be integer"),
    (lambda x: jnp.insert(x, 1.5, 0), ValueError, "obj must be integer"),
    (lambda x: jnp.choose(jnp.array([5]), [x, x]), ValueError, "holds 5, and with 2 choices"),
    (lambda x: jax.jit(lambda m: jnp.compress(m, V))(V > 3), jax.errors.ConcretizationTypeError, "size="),
    (lambda x: jnp.take_along_axis(x, I3, 0), ValueError, "same number of dimensions; 1 vs. 3"),
]


@pytest.mark.parametrize("function, error, words", ERRORS)
def test_errors(function, error, words):
    with pytest.raises(error, match=words):
        function(jnp.array(X))


def test_functions_that_numpy_does_in_place():
    for name, *args in [("put", [0, -1, 20], [9.]), ("put", [1, 2], 3.), ("fill_diagonal", [1., 2., 3.]),
                        ("fill_diagonal", 5), ("place", M > 3, np.float32([1, 2])),
                        ("put_along_axis", [[0], [1], [2]], 5., 1)]:
        args = [np.asarray(v) if isinstance(v, list) else v for v in args]
        extra = {"mode": "clip"} if name == "put" else {}
        want = M.copy()
        getattr(np, name)(want, *args, **extra)
        got = getattr(jnp, name)(M, *args, **extra, inplace=False)
        np.testing.assert_array_equal(got, want)
        with pytest.raises((ValueError, NotImplementedError), match="inplace=False"):
            getattr(jnp, name)(M, *args)


def test_sized_and_traced_functions():
    @jax.jit
    def run(v, i, mask):
        return (jnp.compress(mask, v, size=3, fill_value=-1), jnp.extract(v > 7, v, size=3), jnp.delete(v, i),
                jnp.place(v, mask, v[1:3], inplace=False), jnp.insert(v, i, 5.))
    mask = V % 8 == 1
    placed = np.where(mask, [0, 1, *[0] * 7, 2], V)
    for got, want in zip(run(V, 4, mask), ([1, 9, -1], [8, 9, 0], np.delete(V, 4), placed, np.insert(V, 4, 5))):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("mode", ["wrap", "clip", "fill"])
def test_what_is_taken_beyond_the_ends(mode, axis):
    """A negative index counts from the end where what is outside is filled, and is moved to the first where it is clipped."""
    n = X.size if axis is None else X.shape[axis]
    places = np.array([[0, -1, n - 1], [-n, n, -n - 1]])
    want = np.take(X, places, axis, mode="clip" if mode == "clip" else "wrap")
    if mode == "fill":
        axes = 0 if axis is None else axis
        outside = np.expand_dims((places >= n) | (places < -n), [i for i in range(want.ndim) if i not in (axes, axes + 1)])
        want = np.where(outside, np.float32(-7), want)
    np.testing.assert_array_equal(jnp.take(X, places, axis, mode=mode, fill_value=-7), want)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_choices_beyond_those_there_are(mode):
    which, choices = np.array([-7, -1, 0, 2, 3, 4, 11]), np.arange(21, dtype=np.float32).reshape(3, 7)
    np.testing.assert_array_equal(jnp.choose(which, choices, mode=mode), np.choose(which, choices, mode=mode))
