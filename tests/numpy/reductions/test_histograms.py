"""Counting: bincount, and histograms of numbers and of points."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
from hlotrace import numpy as jnp

f32 = np.float32
X = ((np.arange(24) * 7 % 24 - 11) / 10).reshape(2, 3, 4).astype(f32)      # distinct, 0.1 apart
U = np.array([3, 1, 2, 1, 3])


# name, keyword arguments, array; the reference is NumPy's function of the same name
VALUES = [
    ("bincount", {"minlength": 6}, U), ("histogram", {"bins": 4}, X),
    ("histogram", {"bins": 3, "range": (0, 1), "density": True}, X),
    ("histogram_bin_edges", {"bins": 4}, X), ("histogram_bin_edges", {"bins": 3, "range": (-1, 2)}, U),
    ("histogram_bin_edges", {"bins": 2}, np.ones(3, f32)), ("histogram_bin_edges", {}, X[:0]),
    ("histogram_bin_edges", {"bins": np.array([0, 1, 5])}, U),
]


@pytest.mark.parametrize("name, options, x", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_agrees_with_numpy(name, options, x):
    same(getattr(jnp, name)(x, **options), getattr(np, name)(x, **options))


def test_a_length_makes_bincount_static():
    same(jax.jit(lambda u: jnp.bincount(u, length=3))(U), [0, 2, 1])


def test_histograms_of_points():
    points, weights = (
        np.stack([np.sin(X), np.cos(3 * X)], -1).reshape(-1, 2).astype(f32),
        np.abs(X).reshape(-1),
    )
    x, y = points.T
    cases = [({}, 3), ({}, (2, np.array([-1, 0, 0.2, 1], f32))), ({"range": [(0, 1), None]}, [2, 3]),
             ({"weights": weights}, 2), ({"weights": weights, "density": True}, 4),
             ({"density": True, "range": [(-2, 2), (0, 0.5)]}, 3)]
    for options, bins in cases:
        counts, edges = jnp.histogramdd(points, bins, **options)
        expected, theirs = np.histogramdd(points, bins, **options)
        same([counts, *edges], [expected, *theirs])
        assert isinstance(edges, list)
        assert counts.dtype == (f32 if options.keys() - {"range"} else np.int32)
        same([*jnp.histogram2d(x, y, bins, **options)], [expected, *theirs])
    edges = np.array([-1, 0, 0.3, 1], f32)
    same([*jnp.histogram2d(x, y, edges)], [*np.histogram2d(x, y, edges)])
    same([*jax.jit(jnp.histogram2d)(points[:0, 0], points[:0, 0])], [*np.histogram2d(x[:0], x[:0])])


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: jnp.bincount(X[0, 0]), TypeError, "integer"),
        (lambda: jnp.histogram_bin_edges(X, "auto"), NotImplementedError, "'auto'"),
        (lambda: jnp.histogramdd(U), ValueError, "points, axes"),
        (lambda: jnp.histogramdd(X[0], (2, 3)), ValueError, "4 axes"),
        (lambda: jnp.histogram2d(U, U[:3]), ValueError, "one size"),
        (lambda: jnp.histogramdd(X[0], weights=U), ValueError, "one for each"),
    ],
)
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()
