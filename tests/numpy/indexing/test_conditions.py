"""where, nonzero, select, piecewise: values as NumPy's, dtypes, slopes, errors."""
import numpy as np
import pytest
from equal import same, same_as_numpy

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.api.autodiff import grad
from hlotrace.api.vmap import vmap

V = np.array([3, 1, 2, 5, 4], np.float32)


f32 = np.float32
X = ((np.arange(24) * 7 % 24 - 11) / 10).reshape(2, 3, 4).astype(f32)      # distinct, 0.1 apart
U = np.array([3, 1, 2, 1, 3])


def array(dtype):
    return jnp.ones(2, dtype)


SAME = [
    lambda xp: xp.select([V > 3, V > 1], [V, V * 10], 99),
    lambda xp: xp.piecewise(V, [V < 4, V < 3], [lambda v: v * 10, lambda v: -v]),
    lambda xp: xp.piecewise(V, [V < 2, V > 4], [-1, 1, 7]),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.select([V > 3], [V, V]), ValueError, "1 vs 2"),
    (lambda: jnp.piecewise(V, [V < 1], []), ValueError, "expected"),
])
def test_choices_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


# name, keyword arguments, array; the reference is NumPy's function of the same name
VALUES = [
    ("nonzero", {}, X > 0), ("flatnonzero", {}, U - 1), ("argwhere", {}, X > 0.8),
]


@pytest.mark.parametrize("name, options, x", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_agrees_with_numpy(name, options, x):
    same(getattr(jnp, name)(x, **options), getattr(np, name)(x, **options))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jax.jit(jnp.nonzero)(U), jax.errors.ConcretizationTypeError, "size"),
    (lambda: jnp.nonzero(U, size=9, fill_value=jnp.array([1, 2])), ValueError,
     "fill_value must be a scalar or a tuple of length 1"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(("call", "dtype"), [
    (lambda: jnp.where(array("int32"), array("int8"), 2), "int8"),
    (lambda: jnp.where(True, 1, 2.0), "float32"),
])
def test_result_dtypes(call, dtype):
    assert call().dtype == dtype


@pytest.mark.parametrize(("function", "point", "slopes"), [
    (lambda a, b: jnp.where(a > 0, a, b), (0.0, 1.0), (0.0, 1.0)),
])
def test_slopes_at_edges(function, point, slopes):
    np.testing.assert_allclose(grad(function, (0, 1))(*point), slopes, rtol=1e-5)


def test_where():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jnp.where(x > 2, x, -1), np.where(np.asarray(x) > 2, x, -1))
    np.testing.assert_array_equal(jnp.where(jnp.array([1, 0, 2]), x, jnp.zeros((2, 1))),
                                  np.asarray(x) * [1, 0, 1])
    assert [i.tolist() for i in jnp.where(x > 3)] == [[1, 1], [1, 2]]
    np.testing.assert_array_equal(vmap(lambda row: jnp.where(row[0] > 1, row, 0))(x), [[0, 0, 0], [3, 4, 5]])
    with pytest.raises(TypeError, match="where requires ndarray"):
        jnp.where(x > 0, x, [1.0])
    with pytest.raises(ValueError, match="size and fill_value"):
        jnp.where(x > 0, x, x, size=2)


def test_sizes_make_numbers_of_positions_static():
    same(jnp.nonzero(U > 1, size=5, fill_value=-1)[0], [0, 2, 4, -1, -1])
    same(jnp.argwhere(X > 9, size=1, fill_value=7), [[7, 7, 7]])
