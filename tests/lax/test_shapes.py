"""lax functions that make arrays and change their shapes: values, and what they refuse."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2, 5, 4], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("call, want", [
    (lambda: lax.broadcast(X, (2,)), [X, X]), (lambda: lax.broadcast_in_dim(V, (2, 5), (1,)), [V, V]),
    (lambda: lax.broadcast_in_dim(X, (3, 2), (1, 0)), X.T),
    (lambda: lax.broadcast_in_dim(X, (3, 1, 2), (2, 0)), X.T[:, None]),
    (lambda: jax.vmap(lambda x: lax.broadcast_in_dim(x, (3, 2), (1, 0)), 1)(np.stack([X, -X], 1)),
     [X.T, -X.T]),
    (lambda: jax.grad(lambda x: (lax.broadcast_in_dim(x, (3, 4, 2), (2, 0))[0] * 2.0).sum())(X),
     np.array([[8.0, 0, 0], [8.0, 0, 0]])),
    (lambda: lax.iota("float32", 3), [0, 1, 2]),
    (lambda: lax.broadcasted_iota("int8", (2, 2), 0), [[0, 0], [1, 1]]),
    (lambda: lax.collapse(C, -2), C.reshape(2, 12)), (lambda: lax.concatenate([X, X], 1), np.hstack([X, X])),
    (lambda: lax.expand_dims(V, (0, -1)), V[None, :, None]), (lambda: lax.full_like(X, 2), X * 0 + 2),
    (lambda: lax.full_like(X, 2, shape=3), np.full(3, 2)),
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
    (lambda: lax.broadcast([1.0], (2,)), TypeError, "not an array"),
    (lambda: lax.full((2,), V), TypeError, "scalar"),
    (lambda: lax.broadcast_in_dim(X, (2, 5), (0, 1)), TypeError, "3 does not fit 5"),
    (lambda: lax.concatenate([X, V], 0), TypeError, "numbers of dimensions"),
    (lambda: lax.iota(bool, 3), TypeError, "iota"),
    (lambda: lax.concatenate([X, X.astype("int32")], 0), TypeError, "same dtypes"),
    (lambda: lax.reshape(X, (4, 2)), TypeError, "cannot reshape"),
    (lambda: lax.split(V, (1, 1)), ValueError, "Sum of sizes 2"),
    (lambda: lax.pad(X, 0, [(0, 0, 0)] * 2), TypeError, "same dtypes"),
    (lambda: lax.tile(X, (2,)), TypeError, "equal to the ndim of x"),
    (lambda: lax.transpose(X, (1, 1)), TypeError, "permutation"),
    (lambda: lax.rev(X, (5,)), ValueError, "dimensions"),
])
def test_lax_shapes_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


UNCHANGED = [
    lambda x: lax.broadcast(x, ()), lambda x: lax.broadcast_in_dim(x, (2, 3), (0, 1)),
    lambda x: lax.broadcast_to_rank(x, 2),
    lambda x: lax.collapse(x, 1), lambda x: lax.expand_dims(x, ()), lambda x: lax.reshape(x, (2, 3)),
    lambda x: lax.rev(x, ()), lambda x: lax.squeeze(x, ()), lambda x: lax.transpose(x, (0, 1)), jnp.clip,
    jnp.ravel,
    lambda x: jnp.einsum("ij", x), lambda x: jnp.round(x.astype(int)),
    lambda x: jnp.nan_to_num(x.astype(int)),
    lambda x: jnp.meshgrid(x[0])[0], lambda x: jax.image.resize(x, (2, 3), "linear"),
    jnp.vectorize(lambda v: v),
]


def test_numpy_arrays_come_back_as_arrays_where_nothing_changes():
    """So that they take traced indices: a NumPy array does not."""
    for function in UNCHANGED:
        jaxpr = jax.make_jaxpr(lambda i, function=function: function(X)[i])(0)
        assert jaxpr.out_avals[0].shape == (3,) * (function(X).ndim - 1)


def test_broadcast_to_rank_puts_axes_of_size_one_in_front():
    for rank, shape in ((1, (2, 3)), (2, (2, 3)), (4, (1, 1, 2, 3))):
        got = lax.broadcast_to_rank(X, rank)
        assert got.shape == shape
        np.testing.assert_array_equal(got, X.reshape(shape))
    assert lax.broadcast_to_rank(X[:0], 3).shape == (1, 0, 3) and lax.broadcast_to_rank(True, 1).tolist() == [
        True]


@pytest.mark.quick
def test_broadcast_in_dim_p_takes_jaxs_parameter_sharding():
    def bind(x, **more):
        return lax.broadcast_in_dim_p.bind(x, shape=(2, 3), broadcast_dimensions=(1,), **more)
    program = jax.make_jaxpr(lambda x: bind(x, sharding=None))(np.ones(3, np.float32))
    assert program.out_avals[0].shape == (2, 3)
    with pytest.raises(NotImplementedError,
                       match="sharding='x' is not supported: lax.broadcast_in_dim has out_sharding="):
        bind(np.ones(3, np.float32), sharding="x")
