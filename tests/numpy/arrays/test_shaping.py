"""Shapes, joins, splits, repeats, rolls: the same values as NumPy's, derivatives, errors."""
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
    lambda xp: xp.permute_dims(C[:, :0], (1, 0, 2)),
    lambda xp: xp.reshape(C, (4, -1)), lambda xp: xp.reshape(C, (4, 6), order="F"), lambda xp: xp.ravel(X, order="F"),
    lambda xp: xp.ravel(np.zeros((0, 2), np.float32)), lambda xp: xp.resize(X, (4, 2)),
    lambda xp: xp.resize(np.zeros(0, np.float32), (2,)), lambda xp: xp.transpose(C),
    lambda xp: xp.transpose(C, (-1, 0, 1)), lambda xp: xp.matrix_transpose(C),
    lambda xp: xp.moveaxis(C, [0, 1], [-1, -2]), lambda xp: xp.moveaxis(C, [0, 1], [1, 0]),
    lambda xp: xp.moveaxis(C, [2, 0], [1, 0]), lambda xp: xp.moveaxis(C, (2, 1, 0), (2, 0, 1)), lambda xp: xp.rollaxis(C, 2), lambda xp: xp.rollaxis(C, 1, -1),
    lambda xp: xp.swapaxes(C, 0, -1), lambda xp: xp.squeeze(X[None, :, None], (0, 2)), lambda xp: xp.squeeze(X[None]),
    lambda xp: xp.expand_dims(X, (0, -1)), lambda xp: xp.atleast_2d(V, X), lambda xp: xp.atleast_3d(V),
    lambda xp: xp.atleast_3d(X), lambda xp: xp.broadcast_to(V, (2, 5)), lambda xp: xp.broadcast_arrays(V, X[:, :1]),
    lambda xp: xp.concatenate([X, X], -1), lambda xp: xp.concatenate([X, V], None),
    lambda xp: xp.concatenate([X, X], dtype=np.int32, **({"casting": "unsafe"} if xp is np else {})),
    lambda xp: xp.stack([X, X], -1), lambda xp: xp.stack(C, 1), lambda xp: xp.hstack([V, V]),
    lambda xp: xp.hstack([X, X]), lambda xp: xp.vstack([V, V]), lambda xp: xp.dstack([X, X]),
    lambda xp: xp.dstack([V, V]), lambda xp: xp.column_stack([X, V[:2]]), lambda xp: xp.append(X, X, 0),
    lambda xp: xp.block([[X, X[:, :1]], [np.ones((1, 4), np.float32)]]), lambda xp: xp.split(V, [1, 3]),
    lambda xp: xp.split(V, [-3, -1]), lambda xp: xp.split(V, [2, -4, 9]), lambda xp: xp.array_split(X, [-1], 1),
    lambda xp: xp.array_split(V, 7), lambda xp: xp.hsplit(X, 3), lambda xp: xp.vsplit(X, 2), lambda xp: xp.dsplit(C, 2),
    lambda xp: xp.unstack(C, axis=1), lambda xp: xp.tile(X, (2, 1, 2)), lambda xp: xp.tile(V, 0),
    lambda xp: xp.repeat(X, 2), lambda xp: xp.repeat(X, np.array([1, 0, 2]), 1), lambda xp: xp.flip(C, (0, -1)),
    lambda xp: xp.fliplr(X), lambda xp: xp.flipud(X), *(lambda xp, k=k: xp.rot90(C, k, (1, 2)) for k in range(-1, 3)),
    lambda xp: xp.roll(V, -7), lambda xp: xp.roll(X, 1), lambda xp: xp.roll(X, (1, 2), (0, 1)),
    lambda xp: xp.roll(X, (1, 2), 1), lambda xp: xp.roll(X, (1, 2)),
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
    (lambda: jnp.reshape(X, (-1, -1)), ValueError, "-1"), (lambda: jnp.reshape([1], (1,)), TypeError, "reshape"),
    (lambda: jnp.reshape(X, 6, "Q"), ValueError, "order"),
    (lambda: jnp.transpose(C, (0, 1)), TypeError, "must name each"),
    (lambda: jnp.transpose(C, (0, 0, 1)), ValueError, "dup"),
    (lambda: jnp.moveaxis(C, 0, (1, 2)), ValueError, "1 vs 2"),
    (lambda: jnp.squeeze(X, 1), ValueError, "has size 3, and only axes of size 1"),
    (lambda: jnp.expand_dims(X, 4), ValueError, "out of bounds"),
    (lambda: jnp.broadcast_to(V, (5, 2)), ValueError, "broadc"),
    (lambda: jnp.concatenate([]), ValueError, "at least one"),
    (lambda: jnp.concatenate([1, 2]), ValueError, "Zero-dim"),
    (lambda: jnp.concatenate(V, V), ValueError, r"Zero-dim.*in one list: concatenate\(\[a, b\]\)"),
    (lambda: jnp.concatenate([[1], [2]]), TypeError, "lists"),
    (lambda: jnp.concatenate([X, V]), TypeError, "dimensions"), (lambda: jnp.concatenate(3), TypeError, "sequence"),
    (lambda: jnp.stack([X, V]), ValueError, "same shape"), (lambda: jnp.block([[X], X]), ValueError, "mismatched"),
    (lambda: jnp.split(V, 2), ValueError, "does not divide into 2 equal parts"),
    (lambda: jnp.split(V, 0), ValueError, "larger than 0"),
    (lambda: jnp.unstack(1.0), ValueError, "rank > 0"), (lambda: jnp.repeat(V, -1), ValueError, "non-negative"),
    (lambda: jnp.repeat(V, [1, 2]), ValueError, "each of the 5"),
    (lambda: hlotrace.jit(lambda r: jnp.repeat(V, r))(2), hlotrace.errors.ConcretizationTypeError, "total_repeat_length"),
    (lambda: jnp.flip(X, 2), ValueError, "out of bounds"), (lambda: jnp.rot90(X, 1, (0, 0)), ValueError, "duplicate"),
    (lambda: jnp.roll(X, (1, 2), (0, 1, 0)), ValueError, "lengths"),
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
    (lambda a: jnp.split(a, [2])[1], [0, 0, 1, 1, 1]),
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
    told = hlotrace.ShapeDtypeStruct((2, 3), "int8")
    assert (jnp.shape(told), jnp.ndim(told), jnp.size(told, 1), jnp.shape(hlotrace.typeof(X))) == ((2, 3), 2, 3, (2, 3))


@pytest.mark.parametrize("name", ["concatenate", "stack", "hstack", "vstack", "dstack"])
def test_what_is_joined_has_the_dtype_that_is_asked_for(name):
    for arrays in ([V, V], [V, I3], [V]):
        if name in ("concatenate", "hstack") or len(set(map(len, arrays))) == 1:
            found = getattr(jnp, name)(arrays, dtype="float16")
            assert found.dtype == "float16"
            np.testing.assert_array_equal(found, getattr(np, name)(arrays))


def test_very_many_arrays_are_joined_in_pieces():
    n = 700
    rows = [np.float32([i, -i]) for i in range(n)]
    mixed = [jnp.int32(2**23 + 1), *[jnp.bfloat16(1)] * (n - 2), jnp.float16(2)]
    np.testing.assert_array_equal(jnp.stack(mixed), [2**23 + 1, *[1] * (n - 2), 2])     # float32, as all at once
    assert jnp.stack([1.0] * n).weak_type and jnp.stack([1] * n, dtype=jnp.int8).dtype == np.int8
    for axis in 0, 1:
        want = np.stack(rows, axis)
        np.testing.assert_array_equal(jnp.stack(rows, axis), want)
        np.testing.assert_array_equal(jnp.array([jnp.array(want[0]), *want[1:]]), want)
        pieces = [r[None] if i % 100 else np.stack([r, r]) for i, r in enumerate(rows)]
        turned = [p.T for p in pieces] if axis else pieces
        np.testing.assert_array_equal(jnp.concatenate(turned, axis), np.concatenate(turned, axis))
    scaled = hlotrace.grad(lambda x: (jnp.stack([x * i for i in range(n)]) ** 2).sum())(1.0)
    np.testing.assert_allclose(scaled, 2 * sum(i * i for i in range(n)), 1e-4)
    assert len(hlotrace.make_jaxpr(lambda *xs: jnp.concatenate(xs))(*[jnp.ones(1)] * n).eqns) == 1


class Blocks:
    """What can be iterated and is neither list nor tuple."""

    def __init__(self, items):
        self.items = list(items)

    def __iter__(self):
        return iter(self.items)


class ByNumber:
    """What has items by their numbers alone, as SCICO's BlockArray."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_arrays_by_their_numbers_are_a_sequence():
    for join in (jnp.concatenate, jnp.stack, jnp.hstack):
        np.testing.assert_array_equal(join(ByNumber([X, X + 1])), join([X, X + 1]))


@pytest.mark.parametrize("call", [
    lambda s, x: jnp.concatenate(s([x, x])), lambda s, x: jnp.stack(s([x, x])), lambda s, x: jnp.vstack(s([x, x])),
    lambda s, x: jnp.hstack(s([x, x])), lambda s, x: jnp.sum(x, axis=s([0, 1])), lambda s, x: jnp.max(x, axis=s([1])),
    lambda s, x: jnp.flip(x, s([0, 1])), lambda s, x: jnp.squeeze(x[None], s([0])), lambda s, x: jnp.expand_dims(x, s([0])),
    lambda s, x: jnp.moveaxis(x, s([0]), s([1])), lambda s, x: jnp.stack(jnp.unravel_index(4, s([2, 3]))),
    lambda s, x: jnp.choose(jnp.array([0, 1, 0]), s([x[0], x[1]])),
    lambda s, x: jnp.stack(jax.grad(lambda x, y: (x * y).sum(), argnums=s([0, 1]))(x, x + 1)),
])
@pytest.mark.parametrize("kind", [Blocks, collections.deque, lambda xs: dict(enumerate(xs)).values()],
                         ids=["class", "deque", "values"])
def test_whatever_can_be_iterated_is_a_sequence(call, kind):
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(call(kind, x), call(list, x))
