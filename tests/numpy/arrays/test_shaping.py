"""Shapes and axes: the same values as NumPy's, errors; what counts as a sequence."""
import collections

import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace
import hlotrace as jax
import hlotrace.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2, 5, 4], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
I3 = np.arange(3, dtype=np.int32)


SAME = [
    lambda xp: xp.atleast_1d(V[0]), lambda xp: xp.atleast_1d(V[:0], C, True),
    lambda xp: xp.permute_dims(C, (2, 0, 1)), lambda xp: xp.permute_dims(C, (-1, 0, -2)),
    lambda xp: xp.permute_dims(C[:, :0], (1, 0, 2)), lambda xp: xp.reshape(C, (4, -1)),
    lambda xp: xp.reshape(C, (4, 6), order="F"), lambda xp: xp.ravel(X, order="F"),
    lambda xp: xp.ravel(np.zeros((0, 2), np.float32)), lambda xp: xp.resize(X, (4, 2)),
    lambda xp: xp.resize(np.zeros(0, np.float32), (2,)), lambda xp: xp.transpose(C),
    lambda xp: xp.transpose(C, (-1, 0, 1)), lambda xp: xp.matrix_transpose(C),
    lambda xp: xp.moveaxis(C, [0, 1], [-1, -2]), lambda xp: xp.moveaxis(C, [0, 1], [1, 0]),
    lambda xp: xp.moveaxis(C, [2, 0], [1, 0]), lambda xp: xp.moveaxis(C, (2, 1, 0), (2, 0, 1)),
    lambda xp: xp.rollaxis(C, 2), lambda xp: xp.rollaxis(C, 1, -1), lambda xp: xp.swapaxes(C, 0, -1),
    lambda xp: xp.squeeze(X[None, :, None], (0, 2)), lambda xp: xp.squeeze(X[None]),
    lambda xp: xp.expand_dims(X, (0, -1)), lambda xp: xp.atleast_2d(V, X), lambda xp: xp.atleast_3d(V),
    lambda xp: xp.atleast_3d(X), lambda xp: xp.broadcast_to(V, (2, 5)),
    lambda xp: xp.broadcast_to(2., np.array(3)),
    lambda xp: xp.broadcast_arrays(V, X[:, :1]),
    *(lambda xp, name=name: getattr(xp, name)(6) for name in ("hanning", "hamming", "blackman", "bartlett")),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


def test_several_axes_in_any_collection():
    """A range, a set or NumPy's ints name several axes as a tuple does."""
    for axes in (range(2), {0, 1}, np.arange(2), [0, 1]):
        for function in (jnp.expand_dims, jnp.sum, jnp.flip, lambda x, a: jnp.roll(x, 1, a), jnp.var, jnp.max,
                         lambda x, a: jnp.moveaxis(x, a, (2, 1)), lambda x, a: jnp.squeeze(x[None, None], a)):
            np.testing.assert_array_equal(function(jnp.asarray(C), axes), function(jnp.asarray(C), (0, 1)))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.reshape(X, (4, 2)), TypeError, r"\(2, 3\) \(size 6\) into shape \(4, 2\)"),
    (lambda: jnp.reshape(X, (4, -1)), TypeError, "does not divide"),
    (lambda: jnp.reshape(X, (-1, -1)), ValueError, "-1"),
    (lambda: jnp.reshape([1], (1,)), TypeError, "reshape"),
    (lambda: jnp.reshape(X, 6, "Q"), ValueError, "order"),
    (lambda: jnp.transpose(C, (0, 1)), TypeError, "permutation of operand dimensions"),
    (lambda: jnp.transpose(C, (0, 0, 1)), ValueError, "dup"),
    (lambda: jnp.moveaxis(C, 0, (1, 2)), ValueError, "1 vs 2"),
    (lambda: jnp.squeeze(X, 1), ValueError, "which has size not equal to one"),
    (lambda: jnp.expand_dims(X, 4), ValueError, "out of bounds"),
    (lambda: jnp.broadcast_to(V, (5, 2)), ValueError, "broadc"),
])
def test_shaping_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_callable_padding_and_weak_types():
    def nines(row, width, axis, kwargs):
        return jnp.where(jnp.arange(row.shape[0]) < width[0], 9.0, row)
    np.testing.assert_array_equal(jnp.pad(V, 1, nines), [9, *V, 0])
    assert (jnp.shape(X), jnp.ndim(X), jnp.size(C, (0, -1))) == ((2, 3), 2, 8)
    told = hlotrace.ShapeDtypeStruct((2, 3), "int8")
    assert (jnp.shape(told), jnp.ndim(told), jnp.size(told, 1), jnp.shape(hlotrace.typeof(X))) == (
        (2, 3), 2, 3, (2, 3))


class Blocks:
    """What can be iterated and is neither list nor tuple."""

    def __init__(self, items):
        self.items = list(items)

    def __iter__(self):
        return iter(self.items)


@pytest.mark.parametrize("call", [
    lambda s, x: jnp.concatenate(s([x, x])), lambda s, x: jnp.stack(s([x, x])),
    lambda s, x: jnp.vstack(s([x, x])),
    lambda s, x: jnp.hstack(s([x, x])), lambda s, x: jnp.sum(x, axis=s([0, 1])),
    lambda s, x: jnp.max(x, axis=s([1])),
    lambda s, x: jnp.flip(x, s([0, 1])), lambda s, x: jnp.squeeze(x[None], s([0])),
    lambda s, x: jnp.expand_dims(x, s([0])), lambda s, x: jnp.array(jnp.broadcast_shapes(s([2, 1]), s([3]))),
    lambda s, x: jnp.moveaxis(x, s([0]), s([1])), lambda s, x: jnp.stack(jnp.unravel_index(4, s([2, 3]))),
    lambda s, x: jnp.choose(jnp.array([0, 1, 0]), s([x[0], x[1]])),
    lambda s, x: jnp.stack(jax.grad(lambda x, y: (x * y).sum(), argnums=s([0, 1]))(x, x + 1)),
])
@pytest.mark.parametrize("kind", [Blocks, collections.deque, lambda xs: dict(enumerate(xs)).values()],
                         ids=["class", "deque", "values"])
def test_whatever_can_be_iterated_is_a_sequence(call, kind):
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(call(kind, x), call(list, x))


@pytest.mark.parametrize("f", [
    lambda x, n: x.reshape(n), lambda x, n: jnp.reshape(x, (n, -1)), lambda x, n: jax.lax.reshape(x, n),
    lambda x, n: jnp.broadcast_to(x, n), lambda x, n: jnp.zeros(n), lambda x, n: jnp.full((3, n), x[0]),
    lambda x, n: jax.random.normal(jax.random.key(0), n)])
def test_shapes_that_are_no_known_ints(f):
    for n in (2., "a"):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type"):
            f(jnp.zeros(6), n)
    with pytest.raises(
        jax.errors.TracerIntegerConversionError,
        match="Shapes must be 1D(?s:.)*because it depends on the value of the argument x",
    ):
        jax.jit(lambda x: f(x, x.sum().astype(int)))(jnp.zeros(6))
