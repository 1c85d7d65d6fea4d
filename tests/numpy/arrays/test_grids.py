"""Grids and indices: coordinates of points, diagonals, triangles, flat indices, r_ and c_."""
import numpy as np
import pytest
from equal import same, same_as_numpy

import hlotrace as jax
import hlotrace.numpy as jnp

M = np.arange(12.).reshape(3, 4).astype(np.float32)
V = np.arange(10).astype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


LIKE_NUMPY = [
    lambda np, a: np.ix_(a([0, 1]), a([2, 3, 0])), lambda np, a: np.unravel_index(a([5, 11]), (3, 4)),
    lambda np, a: np.unravel_index(5, (3, 4)), lambda np, a: np.ravel_multi_index((a([1, 2]), a([1, 3])), (3, 4)),
    lambda np, a: np.ravel_multi_index((a([1, 7]), a([-1, 3])), (3, 4), mode="wrap", order="F"),
    lambda np, a: np.ravel_multi_index((a([1, 7]), a([-1, 3])), (3, 4), mode="clip"), lambda np, a: np.indices((2, 3)),
    lambda np, a: np.indices((2, 3), sparse=True), lambda np, a: np.diag_indices(3),
    lambda np, a: np.tril_indices(3, 1, 2), lambda np, a: np.triu_indices(3, m=4),
    lambda np, a: np.tril_indices_from(a(M)), lambda np, a: np.triu_indices_from(a(M), 1),
    lambda np, a: np.diag_indices_from(a(M)[:, :3]), lambda np, a: np.mask_indices(3, np.triu, 1),
    lambda np, a: np.c_[a(V), a(V)], lambda np, a: np.c_[1:3, 4:6], lambda np, a: np.r_[1:4, 0, a([3, 4])],
    lambda np, a: np.r_["0,2", a(V), a(V)], lambda np, a: np.r_[-1:1:5j], lambda np, a: np.r_["1,3,0", a(V), a(V)],
]


@pytest.mark.parametrize("function", LIKE_NUMPY)
def test_functions_like_numpy(function):
    same_as_numpy(function(jnp, jnp.asarray), function(np, np.asarray))


@pytest.mark.parametrize("directive", ["r", "c"])
def test_columns_are_columns_with_the_directives_for_matrices_too(directive):
    assert jnp.c_[directive, [1, 2, 3], [4, 5, 6]].tolist() == jnp.c_[[1, 2, 3], [4, 5, 6]].tolist()


@pytest.mark.parametrize("function", [
    lambda xp: xp.meshgrid(V[:3], X[0], V), lambda xp: xp.meshgrid(V, X[0]), lambda xp: xp.meshgrid(V),
    lambda xp: xp.meshgrid(V, X[0], indexing="ij", sparse=True),
    lambda xp: xp.mgrid[0:2, 1:4], lambda xp: xp.ogrid[0:2, 1:4], lambda xp: xp.mgrid[0:1:5j].astype(np.float32),
])
def test_grids_are_those_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.meshgrid(V, indexing="a"), ValueError, "indexing"), (lambda: jnp.meshgrid(X), ValueError, "1D"),
])
def test_grids_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_indices_written_as_slices():
    assert jnp.s_[1:, ...] == jnp.index_exp[1:, ...] == (slice(1, None), Ellipsis)
    assert jnp.s_[2] == 2 and jnp.index_exp[2] == (2,)
    np.testing.assert_array_equal(jnp.asarray(M)[jnp.s_[::-1, 1]], M[::-1, 1])


@pytest.mark.parametrize("shape", [(2, 3), (4,), (1, 5, 2), (3, 0)])
def test_unravel_index_of_sizes_that_are_arrays(shape):
    flat = jnp.array([0, 1, 3, 5, 9, -1, -40])
    want = jnp.unravel_index(flat, shape)
    same(jax.jit(lambda flat, *shape: jnp.unravel_index(flat, shape))(flat, *shape), want)
    same(jax.jit(jnp.unravel_index)(flat, jnp.array(shape)), want)
    same(jnp.unravel_index(flat, jnp.array(shape)), want)
