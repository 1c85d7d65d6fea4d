"""A warm call of a library function runs its program at once, where that is all that it does."""
import sys

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

x = jnp.arange(12.0).reshape(3, 4) - 5
y, square, index = x[::-1] * 3, jnp.arange(9.0).reshape(3, 3), jnp.array([2, 0])
WARM = 4        # calls: one compiles, one is watched


def calls_of_python(f):
    """How many Python functions a call runs."""
    count = [0]

    def note(frame, event, arg):
        count[0] += event == "call"
    sys.setprofile(note)
    try:
        f()
    finally:
        sys.setprofile(None)
    return count[0]


# text -> (a function of two arrays, by NumPy)
RECALLED = {
    "sum": (lambda a, b: jnp.sum(a, 0), lambda a, b: a.sum(0)),
    "a method": (lambda a, b: a.mean(1), lambda a, b: a.mean(1)),
    "by keywords": (lambda a, b: jnp.max(a, axis=1, keepdims=True), lambda a, b: a.max(1, keepdims=True)),
    "two arrays": (lambda a, b: jnp.tensordot(a, b, ((1,), (1,))),
                   lambda a, b: np.tensordot(a, b, ((1,), (1,)))),
    "in another order": (lambda a, b: jnp.where(a > 0, b, a), lambda a, b: np.where(a > 0, b, a)),
    "numbers": (lambda a, b: jnp.nan_to_num(a, nan=2.5), lambda a, b: a),
    "numbers alone": (lambda a, b: jnp.linspace(0.0, 1.0, 7), lambda a, b: np.linspace(0, 1, 7)),
    "made by Python": (lambda a, b: jnp.eye(3, 4), lambda a, b: np.eye(3, 4)),
    "of the shape of one": (lambda a, b: jnp.ones_like(a), lambda a, b: np.ones_like(a)),
    "a list of arrays": (lambda a, b: jnp.concatenate([a, b], 1), lambda a, b: np.concatenate([a, b], 1)),
    "a dtype": (lambda a, b: a.astype(jnp.int32), lambda a, b: a.astype(np.int32)),
    "sort": (lambda a, b: jnp.sort(b, axis=0), lambda a, b: np.sort(b, axis=0)),
    "slices": (lambda a, b: a[:2, None, 1:-1], lambda a, b: a[:2, None, 1:-1]),
    "indices": (lambda a, b: a[index], lambda a, b: a[[2, 0]]),
    "an update": (lambda a, b: a.at[1].set(7.0), lambda a, b: np.where(np.arange(3)[:, None] == 1, 7, a)),
    "transposed": (lambda a, b: a.T, lambda a, b: a.T),
    "einsum": (lambda a, b: jnp.einsum("ij,kj->ik", a, b), lambda a, b: np.einsum("ij,kj->ik", a, b)),
}


@pytest.mark.parametrize("name", RECALLED)
def test_a_warm_call_runs_its_program_at_once(name):
    function, by_numpy = RECALLED[name]
    for _ in range(WARM):
        function(x, y)
    for a, b in (x, y), (y, x), (x + 1, x), (x, x):
        np.testing.assert_allclose(function(a, b), by_numpy(np.asarray(a), np.asarray(b)), rtol=1e-6)
    assert calls_of_python(lambda: function(x, y)) <= 20     # 55 to 74 for slices and updates otherwise


def test_which_of_two_arguments_is_which_operand():
    for _ in range(WARM):
        jnp.dot(square, square)
    np.testing.assert_array_equal(jnp.dot(square, 2 * square + 1),
                                  np.asarray(square) @ (2 * np.asarray(square) + 1))


def test_values_that_are_read_decide_each_time():
    for n in ([1, 2, 1], [1, 2, 1], [1, 2, 1], [1, 2, 1], [2, 1, 1], [0, 0, 4]):
        repeated = jnp.repeat(x, jnp.array(n), axis=0, total_repeat_length=4)
        np.testing.assert_array_equal(repeated, np.repeat(np.asarray(x), n, axis=0))
    for axis in (0, 0, 0, 0, 1):
        np.testing.assert_array_equal(jnp.sum(x, np.int32(axis)), np.asarray(x).sum(axis))
        np.testing.assert_array_equal(jnp.roll(x, jnp.array(axis), 1), np.roll(np.asarray(x), axis, 1))


def test_equal_values_that_are_not_alike_are_told_apart():
    nan = jnp.array([jnp.nan])
    for value in (0.0, 0.0, 0.0, 0.0, -0.0):
        assert str(float(jnp.nan_to_num(nan, nan=value)[0])) == str(value)
    for one in (1, 1, 1, 1, True):
        assert jnp.where(x > 0, one, one).dtype == (jnp.bool_ if one is True else jnp.int32)


def test_files_are_read_each_time(tmp_path):
    for n in range(WARM + 1):
        np.save(tmp_path / "x.npy", np.arange(3) + n)
        (tmp_path / "x.bytes").write_bytes(bytes([n]))
        assert (
            jnp.load(str(tmp_path / "x.npy"))[0] == jnp.fromfile(str(tmp_path / "x.bytes"), jnp.uint8)[0] == n
        )


def test_each_call_warns():
    for _ in range(WARM + 2):
        with pytest.warns(UserWarning, match="float64"):
            jnp.sum(x, dtype="float64")


def test_what_is_in_force_decides():
    for _ in range(WARM):
        jnp.mean(x)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.mean(x * jnp.nan)
    with jax.enable_x64(True):
        assert jnp.sum(jnp.arange(3)).dtype == "int64"
    with jax.disable_jit():
        assert jnp.mean(x) == np.asarray(x).mean()
    jax.clear_caches()
    assert jnp.mean(x) == np.asarray(x).mean()


def test_a_deleted_array_is_refused():
    for _ in range(WARM):
        jnp.sum(x, 0)
    gone = x + 1
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jnp.sum(gone, 0)


def test_arrays_stay_where_they_are():
    there = jax.device_put(x, jax.devices()[-1])
    for _ in range(WARM):
        found = jnp.cumsum(there, 1)
    assert found.committed and found.devices() == there.devices()
    assert not jnp.cumsum(x, 1).committed


def test_results_are_arrays_of_their_own():
    for _ in range(WARM):
        first, second = jnp.linspace(0.0, 1.0, 5), jnp.linspace(0.0, 1.0, 5)
    first.delete()
    zeros = [jnp.zeros(3) for _ in range(WARM + 2)]
    zeros[-1].delete()
    assert zeros[-2].sum() == jnp.zeros(3).sum() == 0
    assert second[-1] == 1.0 and jnp.linspace(0.0, 1.0, 5)[-1] == 1.0
