"""Joins and splits: the same values as NumPy's, dtypes, derivatives, errors."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace
import hlotrace.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2, 5, 4], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
I3 = np.arange(3, dtype=np.int32)


SAME = [
    lambda xp: xp.concatenate([X, X], -1), lambda xp: xp.concatenate([X, V], None),
    lambda xp: xp.concatenate([X, X], dtype=np.int32, **({"casting": "unsafe"} if xp is np else {})),
    lambda xp: xp.stack([X, X], -1), lambda xp: xp.stack(C, 1), lambda xp: xp.hstack([V, V]),
    lambda xp: xp.hstack([X, X]), lambda xp: xp.vstack([V, V]), lambda xp: xp.dstack([X, X]),
    lambda xp: xp.dstack([V, V]), lambda xp: xp.column_stack([X, V[:2]]), lambda xp: xp.append(X, X, 0),
    lambda xp: xp.block([[X, X[:, :1]], [np.ones((1, 4), np.float32)]]), lambda xp: xp.split(V, [1, 3]),
    lambda xp: xp.split(V, [-3, -1]), lambda xp: xp.split(V, [2, -4, 9]),
    lambda xp: xp.array_split(X, [-1], 1),
    lambda xp: xp.array_split(V, 7), lambda xp: xp.hsplit(X, 3), lambda xp: xp.vsplit(X, 2),
    lambda xp: xp.dsplit(C, 2), lambda xp: xp.unstack(C, axis=1),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.concatenate([]), ValueError, "at least one"),
    (lambda: jnp.concatenate([1, 2]), ValueError, "Zero-dim"),
    (lambda: jnp.concatenate(V, V), ValueError, r"Zero-dim.*in one list: concatenate\(\[a, b\]\)"),
    (lambda: jnp.concatenate([[1], [2]]), TypeError, "lists"),
    (lambda: jnp.concatenate([X, V]), TypeError, "dimensions"),
    (lambda: jnp.concatenate(3), TypeError, "sequence"),
    (lambda: jnp.stack([X, V]), ValueError, "same shape"),
    (lambda: jnp.block([[X], X]), ValueError, "Mismatched list depths"),
    (lambda: jnp.split(V, 2), ValueError, "does not divide into 2 equal parts"),
    (lambda: jnp.split(V, 0), ValueError, "larger than 0"),
    (lambda: jnp.unstack(1.0), ValueError, "rank > 0"),
])
def test_joining_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("function, derivative", [
    (lambda a: jnp.stack([a, a * 2]), 3 + 0 * V), (lambda a: jnp.split(a, [2])[1], [0, 0, 1, 1, 1]),
])
def test_derivatives(function, derivative):
    np.testing.assert_allclose(hlotrace.grad(lambda a: function(a).sum())(V), derivative, 1e-6)


def test_weak_types():
    assert jnp.stack([1, 2]).weak_type and not jnp.stack([1, I3[0]]).weak_type
    assert jnp.concatenate([V.astype("float16"), I3]).dtype == np.float16


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
    # float32, as all at once
    np.testing.assert_array_equal(jnp.stack(mixed), [2**23 + 1, *[1] * (n - 2), 2])
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
