"""Keys: seeds, splits and folds, keys as arrays, random bits; values as JAX 0.10.2 and 0.12.0.1 give them, recorded here."""
import numpy as np
import pytest
from draws import KEY, is_recorded

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.core.config import override

BITS64 = [15571024786774969728, 837714335556982463]
UNIFORM64 = [0.8441069450823528, 0.04541258512665647]
RANDINT64 = [946239547446147269, 2305089687191887805, 257198853697933698]
OLD_SPLIT = [[966301609, 989289821], [1948237315, 1058547403]]
OLD_BITS = {"uint8": [191, 40, 160, 11, 191],
            "uint16": [38825, 14744, 55624, 27928, 48643],
            "uint32": [276534068, 861967409, 2793701230, 1641862660, 2900896126]}
KEYS = random.split(random.key(0), (2, 3))
WORDS = np.asarray(random.key_data(KEYS))


RECORDED = [
    (lambda: random.split(KEY), "uint32",
     [[3625411723, 1954958720], [195045567, 4062205631]]),
    (lambda: random.split(KEY, (2, 1)), "uint32",
     [[[3625411723, 1954958720]], [[195045567, 4062205631]]]),
    (lambda: random.fold_in(KEY, 12), "uint32",
     [4175731086, 1265433085]),
    (lambda: random.fold_in(KEY, np.int64(-1)), "uint32",
     [3658129989, 1719350670]),
]


@pytest.mark.parametrize("call, dtype, value", RECORDED)
def test_values_are_those_of_jax(call, dtype, value):
    is_recorded(call(), dtype, value)


@pytest.mark.parametrize("call, error, message", [
    (lambda: random.PRNGKey(1.5), TypeError, "must be an integer"), (lambda: random.key("a"), TypeError, "integer"),
    (lambda: random.key(np.arange(3)), TypeError, r"scalar seed, but was given an array of shape \(3,\)"),
    (lambda: random.key(2**64), OverflowError, "64 bits"),
    (lambda: random.key(0, impl="a"), ValueError, "unrecognized PRNG"),
    (lambda: random.split([0, 0]), TypeError, "key type"), (lambda: random.fold_in(KEY, -1), OverflowError, "-1"),
    (lambda: random.fold_in(KEY, np.arange(2)), TypeError, "scalar"), (lambda: KEY * KEY, TypeError, "key<fry>"),
    (lambda: np.asarray(KEY), TypeError, "key_data"),
])
def test_keys_refuse(call, error, message):
    with pytest.raises(error, match=message or None):
        call()


@pytest.mark.parametrize("seed, x64, want", [
    (-1, False, [0, 2**32 - 1]), (2**40 + 7, False, [0, 7]), (-2**40, False, [0, 0]), (True, False, [0, 1]),
    (np.int8(-1), False, [0, 2**32 - 1]), (np.uint64(2**63 + 5), False, [0, 5]), (jnp.int32(-5), False, [0, 2**32 - 5]),
    (-1, True, [2**32 - 1] * 2), (2**40 + 7, True, [256, 7]), (np.int8(-1), True, [0, 2**32 - 1]),
    (np.uint64(2**63 + 5), True, [2**31, 5]),
])
def test_seeds(seed, x64, want):
    with hlotrace.enable_x64(x64):
        np.testing.assert_array_equal(random.PRNGKey(seed), want)
        np.testing.assert_array_equal(random.key_data(random.key(seed)), want)
        np.testing.assert_array_equal(hlotrace.jit(lambda: random.PRNGKey(seed))(), want)
        if not isinstance(seed, int):
            np.testing.assert_array_equal(hlotrace.jit(random.PRNGKey)(seed), want)


def test_x64_draws():
    with hlotrace.enable_x64(True):
        np.testing.assert_array_equal(random.bits(KEY, (2,)), BITS64)
        np.testing.assert_array_equal(random.uniform(KEY, (2,)), UNIFORM64)
        np.testing.assert_array_equal(random.randint(KEY, (3,), -2**62, 2**62), RANDINT64)


def test_original_counters():
    with override("jax_threefry_partitionable", False):
        np.testing.assert_array_equal(random.key_data(random.split(KEY, 2)), OLD_SPLIT)
        for dtype, want in OLD_BITS.items():
            np.testing.assert_array_equal(random.bits(KEY, (5,), dtype), want)


@pytest.mark.parametrize("function", [
    lambda k: k[1], lambda k: k[:, 1:], lambda k: k[0, np.array([2, 0])], lambda k: k.reshape(3, 2, *k.shape[2:]),
    lambda k: k[jnp.array(1)] if isinstance(k, hlotrace.Array) else k[1],
])
def test_key_arrays_index_as_their_words_do(function):
    np.testing.assert_array_equal(random.key_data(function(KEYS)), function(WORDS))


def test_key_arrays_join_and_print():
    rows = [KEYS[0], KEYS[1]]
    for joined in (jnp.stack(rows), jnp.array(rows), jnp.concatenate(rows).reshape(2, 3), jnp.roll(KEYS[::-1], 1, 0)):
        assert joined.dtype == KEYS.dtype
        np.testing.assert_array_equal(random.key_data(joined), WORDS)
    assert (KEYS.shape, str(KEYS.dtype), random.key_impl(KEYS)) == ((2, 3), "key<fry>", "threefry2x32")
    assert repr(random.key(3)) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"
    assert hlotrace.dtypes.issubdtype(KEYS.dtype, hlotrace.dtypes.prng_key)
    np.testing.assert_array_equal(random.key_data(random.wrap_key_data(WORDS)), WORDS)
    np.testing.assert_array_equal(random.key_data(jnp.zeros_like(KEYS)), 0 * WORDS)


@pytest.mark.parametrize("draw", [
    lambda k: random.uniform(k, (2,)), lambda k: random.key_data(random.split(k)), lambda k: random.permutation(k, 5),
    lambda k: random.randint(k, (3,), 0, 10), lambda k: random.key_data(random.fold_in(k, 5)),
])
def test_vmap_over_keys_is_the_loop(draw):
    want = [[draw(KEYS[i, j]) for j in range(3)] for i in range(2)]
    np.testing.assert_array_equal(hlotrace.vmap(hlotrace.vmap(draw))(KEYS), want)
    np.testing.assert_array_equal(hlotrace.vmap(lambda w: draw(w))(jnp.asarray(WORDS[0])), want[0])


def test_keys_in_scan_loop_and_cond():
    def step(key, _):
        key, sub = random.split(key)
        return key, random.uniform(sub)
    key, want = KEY, []
    for _ in range(3):
        key, value = step(key, None)
        want.append(value)
    last, got = lax.scan(step, KEY, None, length=3)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(random.key_data(last), random.key_data(key))
    looped = lax.fori_loop(0, 3, lambda i, k: step(k, None)[0], KEY)
    chosen = lax.cond(True, lambda k: step(k, None)[0], lambda k: k, KEY)
    np.testing.assert_array_equal(random.key_data(looped), random.key_data(key))
    np.testing.assert_array_equal(random.key_data(chosen), random.key_data(random.split(KEY)[0]))
