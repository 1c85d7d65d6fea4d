"""unique and set operations: values as NumPy's, with sizes that are known and sizes that are given."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
from hlotrace import numpy as jnp

f32 = np.float32
ROWS = np.array([[1, 2, 0], [0, 5, 1], [1, 0, 7], [1, 2, 0], [0, 5, 0], [1, 0, 7]])     # many begin alike
NANS = np.array([[np.nan, 1, -np.inf, 0], [2, np.nan, np.nan, 5], [np.nan] * 4], f32)
U = np.array([3, 1, 2, 1, 3])


# name, keyword arguments, array; the reference is NumPy's function of the same name
VALUES = [
    ("unique", {"return_index": True, "return_inverse": True, "return_counts": True}, U),
    ("unique", {"axis": 0, "return_inverse": True}, U[[0, 1, 0]][:, None] + np.arange(2)), ("unique", {}, NANS),
    ("unique", {"axis": 0, "return_index": True, "return_inverse": True, "return_counts": True}, ROWS),
    ("unique", {"axis": 1, "return_counts": True}, ROWS.T.astype(f32)),
]


@pytest.mark.parametrize("name, options, x", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_agrees_with_numpy(name, options, x):
    same(getattr(jnp, name)(x, **options), getattr(np, name)(x, **options))


@pytest.mark.parametrize("x", [U, U - 2 > 0, NANS, np.array([[0.0, -0.0], [1.0, 0.0]], f32), np.zeros((0, 2), f32),
                               np.array([1j, 1, 1j])], ids=["ints", "bools", "nan", "zeros", "empty", "complex"])
def test_the_array_api_names_agree_with_numpy(x):
    """Every NaN is distinct there; the results have names."""
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        got, want = getattr(jnp, name)(x), getattr(np, name)(x)
        assert got._fields == want._fields
        same(tuple(got), tuple(want))
    same(jnp.unique_values(x), np.unique_all(x).values)      # whose order is that of a sort
    padded = jax.jit(lambda x: jnp.unique_all(x, size=13, fill_value=7))(x)
    same(padded.values, np.pad(np.unique_all(x).values, (0, 13 - len(np.unique_all(x).values)), constant_values=7))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jax.jit(jnp.unique)(U), jax.errors.ConcretizationTypeError, "size"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_sizes_make_results_of_values_static():
    values, index, inverse, counts = jax.jit(lambda u: jnp.unique(u, True, True, True, size=5, fill_value=-1))(U)
    same(values, [1, 2, 3, -1, -1])
    same(index, [1, 2, 0, 1, 1])
    same(inverse, [2, 0, 1, 0, 2])
    same(counts, [2, 1, 2, 0, 0])
    same(jnp.unique(U, size=2), [1, 2])


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"])
def test_set_operations(name):
    other = np.array([9, 1, 1, 2])
    same(getattr(jnp, name)(U, other), getattr(np, name)(U, other))
    same(getattr(jnp, name)(U, other[:0]), getattr(np, name)(U, other[:0]))
    if name != "isin":
        found = jax.jit(lambda a, b: getattr(jnp, name)(a, b, size=6, fill_value=-1))(U, other)
        expected = getattr(np, name)(U, other)
        same(found, [*expected, *[-1] * (6 - len(expected))])


PARTS = np.array([np.nan, 0, 1, 2], f32)


@pytest.mark.parametrize("equal_nan", [True, False])
def test_complex_numbers_with_a_part_that_is_nan_are_nan(equal_nan):
    rng = np.random.default_rng(0)
    for shape in [(), (1,), (7,), (2, 5), (2, 2, 3)]:
        x, y = (rng.choice(PARTS, shape) + 1j * rng.choice(PARTS, shape) for _ in range(2))
        for name, operands, options in [("unique", (x,), {"equal_nan": equal_nan}), *[
                (name, (x, y), {}) for name in ("setxor1d", "union1d", "setdiff1d", "intersect1d")]]:
            got, want = (np.asarray(getattr(np_, name)(*operands, **options)) for np_ in (jnp, np))
            assert got.shape == want.shape
            same(got[~np.isnan(got)], want[~np.isnan(want)].astype(np.complex64))


def test_a_slice_fills_the_results_up():
    x = jnp.arange(12.).reshape(3, 2, 2)
    for fill in (7., jnp.full((2, 2), 7.), jnp.full((1, 2), 7)):
        same(jnp.unique(x, axis=0, size=4, fill_value=fill), np.concatenate([x, np.full((1, 2, 2), 7., f32)]))
    same(jnp.unique(x[:0], axis=0, size=2, fill_value=jnp.ones((2, 2))), np.ones((2, 2, 2), f32))
    with pytest.raises(ValueError, match=r"fill_value of shape \(3,\) .* \(4, 2, 2\)"):
        jnp.unique(x, axis=0, size=4, fill_value=jnp.ones(3))


def test_intersection_tells_where():
    ours, theirs = (np_.intersect1d(U, np.array([9, 2, 3, 2]), return_indices=True) for np_ in (jnp, np))
    same(ours, theirs)


def test_weak_types_stay():
    """A Python number gives way to other dtypes after a set operation, too; beside an array of its own it does not."""
    weak, none, strong = jnp.full((2,), 2.), jnp.full((0,), 2.), jnp.ones(1)
    for other in (weak, none):
        found = [f(weak, other) for f in (jnp.union1d, jnp.intersect1d, jnp.setdiff1d, jnp.setxor1d)]
        found += [jnp.unique(other), jnp.unique_all(other).values, jnp.unique(other, size=3, fill_value=1)]
        assert all(x.weak_type for x in found), found
    assert not any(f(weak, strong).weak_type for f in (jnp.union1d, jnp.intersect1d, jnp.setxor1d))
    assert jnp.setdiff1d(weak, strong).weak_type and not jnp.setdiff1d(strong, weak).weak_type
