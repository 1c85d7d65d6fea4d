"""Keys and distributions.  The values are those that JAX 0.10.2 and 0.12.0.1 give, recorded here."""
import numpy as np
import pytest

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.core.config import override

KEY = random.key(7)
P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
L, A = np.log(P), np.arange(12, dtype=np.float32).reshape(4, 3)

RECORDED = [
    (lambda: random.split(KEY), "uint32",
     [[3625411723, 1954958720], [195045567, 4062205631]]),
    (lambda: random.split(KEY, (2, 1)), "uint32",
     [[[3625411723, 1954958720]], [[195045567, 4062205631]]]),
    (lambda: random.fold_in(KEY, 12), "uint32",
     [4175731086, 1265433085]),
    (lambda: random.fold_in(KEY, np.int64(-1)), "uint32",
     [3658129989, 1719350670]),
    (lambda: random.bits(KEY, (4,), "uint8"), "uint8",
     [11, 0, 170, 48]),
    (lambda: random.bits(KEY, (4,), "uint16"), "uint16",
     [10507, 32256, 10666, 17712]),
    (lambda: random.bits(KEY, (2, 2)), "uint32",
     [[2895194379, 4185947648], [1300703658, 1906787632]]),
    (lambda: random.uniform(KEY, (3,)), "float32",
     [0.6740899, 0.9746169, 0.30284357]),
    (lambda: random.uniform(KEY, (3,), "float16"), "float16",
     [0.16015625, 0.4921875, 0.16210938]),
    (lambda: random.uniform(KEY, (3,), "bfloat16"), "bfloat16",
     [0.0390625, 0.0, 0.6640625]),
    (lambda: random.uniform(KEY, (3,), minval=-3, maxval=P[:3]), "float32",
     [-0.91032135, 0.11877408, -2.0006163]),
    (lambda: random.normal(KEY, (3,)), "float32",
     [0.45123515, 1.9534509, -0.51623946]),
    (lambda: random.normal(KEY, (2,), "bfloat16"), "bfloat16",
     [-1.734375, -2.890625]),
    (lambda: random.normal(KEY, (2,), "complex64"), "complex64",
     [(0.7877503+0.3211209j), (0.10014845+0.66408837j)]),
    (lambda: random.truncated_normal(KEY, -1, A[0] + 1), "float32",
     [0.30246016, 1.7111288, -0.21972597]),
    (lambda: random.exponential(KEY, (3,)), "float32",
     [1.1211338, 3.673671, 0.36074546]),
    (lambda: random.laplace(KEY, (3,)), "float32",
     [-0.42798662, -2.980525, 0.5013916]),
    (lambda: random.logistic(KEY, (3,)), "float32",
     [0.726742, 3.6479602, -0.8337934]),
    (lambda: random.cauchy(KEY, (3,)), "float32",
     [0.6088751, 12.513639, -0.71298087]),
    (lambda: random.gumbel(KEY, (3,)), "float32",
     [0.9304105, 3.6608431, -0.17776018]),
    (lambda: random.gumbel(KEY, (3,), mode="high"), "float32",
     [-0.1143405, -1.3011914, 1.0195823]),
    (lambda: random.randint(KEY, (5,), 0, 10), "int32",
     [9, 2, 0, 7, 2]),
    (lambda: random.randint(KEY, (5,), -2.7, 10.9), "int32",
     [5, 0, -2, -1, 4]),
    (lambda: random.randint(KEY, (4,), 0, 300, "uint8"), "uint8",
     [31, 102, 124, 237]),
    (lambda: random.randint(KEY, (4,), -128, 128, "int8"), "int8",
     [-97, -26, -4, 109]),
    (lambda: random.randint(KEY, (4,), 0, np.uint32(2**32 - 1), "uint32"), "uint32",
     [2899676959, 3548400998, 1692160380, 1822441453]),
    (lambda: random.randint(KEY, (3,), -2**31, 2**31 - 1), "int32",
     [752193311, 1400917350, -455323268]),
    (lambda: random.randint(KEY, (3,), 5, 2), "int32",
     [5, 5, 5]),
    (lambda: random.bernoulli(KEY, 0.3, (6,)), "bool",
     [False, False, False, False, False, False]),
    (lambda: random.bernoulli(KEY, P, mode="high"), "bool",
     [False, False, False, False]),
    (lambda: random.rademacher(KEY, (5,)), "int32",
     [-1, -1, 1, 1, -1]),
    (lambda: random.permutation(KEY, 6), "int32",
     [4, 2, 3, 5, 0, 1]),
    (lambda: random.permutation(KEY, 2000)[:4], "int32",
     [1785, 5, 1002, 442]),
    (lambda: random.permutation(KEY, A)[:, 0], "float32",
     [6.0, 9.0, 0.0, 3.0]),
    (lambda: random.permutation(KEY, A, 1, True), "float32",
     [[2.0, 0.0, 1.0], [4.0, 3.0, 5.0], [7.0, 6.0, 8.0], [10.0, 9.0, 11.0]]),
    (lambda: random.categorical(KEY, L, shape=(6,)), "int32",
     [1, 3, 3, 2, 3, 0]),
    (lambda: random.categorical(KEY, np.tile(L, (2, 1)), axis=0), "int32",
     [1, 0, 1, 0]),
    (lambda: random.categorical(KEY, np.tile(L, (2, 1)), shape=(3, 2), replace=False), "int32",
     [[1, 3], [3, 1], [0, 2]]),
    (lambda: random.categorical(KEY, L, shape=(3,), mode="high"), "int32",
     [2, 3, 1]),
    (lambda: random.choice(KEY, 10, (4,)), "int32",
     [9, 2, 0, 7]),
    (lambda: random.choice(KEY, A, (2,), axis=1)[0], "float32",
     [1.0, 2.0]),
    (lambda: random.choice(KEY, A[:, 0], (2, 2), replace=False), "float32",
     [[6.0, 9.0], [0.0, 3.0]]),
    (lambda: random.choice(KEY, 9, (4,), replace=False), "int32",
     [4, 2, 3, 5]),
    (lambda: random.choice(KEY, 4, (6,), p=P), "int32",
     [2, 0, 3, 2, 1, 2]),
    (lambda: random.choice(KEY, 4, (3,), replace=False, p=P), "int32",
     [1, 3, 0]),
]
OLD_SPLIT = [[966301609, 989289821], [1948237315, 1058547403]]
OLD_BITS = {"uint8": [191, 40, 160, 11, 191],
            "uint16": [38825, 14744, 55624, 27928, 48643],
            "uint32": [276534068, 861967409, 2793701230, 1641862660, 2900896126]}
BITS64 = [15571024786774969728, 837714335556982463]
UNIFORM64 = [0.8441069450823528, 0.04541258512665647]
RANDINT64 = [946239547446147269, 2305089687191887805, 257198853697933698]


def words(x):
    return random.key_data(x) if isinstance(x.dtype, type(KEY.dtype)) else x


@pytest.mark.parametrize("call, dtype, value", RECORDED)
def test_values_are_those_of_jax(call, dtype, value):
    got = words(call())
    assert got.dtype.name == dtype
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, value)
    else:
        np.testing.assert_allclose(np.asarray(got).astype(np.float32 if got.dtype.kind != "c" else np.complex64), value,
                                   2e-6)


def test_uniform_of_key_0_to_the_bit():
    for key in (random.PRNGKey(0), random.key(0), np.array([0, 0], np.uint32)):
        np.testing.assert_array_equal(random.uniform(key, (3,)), np.array([0.947667, 0.9785799, 0.33229148], np.float32))


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


@pytest.mark.parametrize("call, error, message", [
    (lambda: random.PRNGKey(1.5), TypeError, "must be an integer"), (lambda: random.key("a"), TypeError, "integer"),
    (lambda: random.key(np.arange(3)), TypeError, r"scalar seed, but was given an array of shape \(3,\)"),
    (lambda: random.key(2**64), OverflowError, "64 bits"),
    (lambda: random.key(0, impl="a"), ValueError, "unrecognized PRNG"),
    (lambda: random.uniform(None), TypeError, "unexpected PRNG key type"),
    (lambda: random.uniform(3), TypeError, "uint32"),
    (lambda: random.uniform(np.zeros(2)), TypeError, "uint32"), (lambda: random.split([0, 0]), TypeError, "key type"),
    (lambda: random.uniform(np.zeros(3, np.uint32)), TypeError, r"end with \(2,\), got \(3,\)"),
    (lambda: random.uniform(random.split(KEY)), ValueError, "Use vmap"),
    (lambda: random.fold_in(KEY, -1), OverflowError, "-1"),
    (lambda: random.fold_in(KEY, np.arange(2)), TypeError, "scalar"),
    (lambda: random.bits(KEY, 2, "int8"), ValueError, "uns"),
    (lambda: random.uniform(KEY, (2,), "int32"), ValueError, "must be a float dtype"),
    (lambda: random.uniform(KEY, (2,), minval=np.zeros(3)), ValueError, "broadcast"),
    (lambda: random.uniform(KEY, (-2,)), ValueError, "non-negative"),
    (lambda: random.uniform(KEY, "a"), TypeError, "shape"),
    (lambda: random.randint(KEY, 2, 0, 5, "float32"), TypeError, "integer dtypes"),
    (lambda: random.randint(KEY, 2, 0, 2**40), OverflowError, "too large"),
    (lambda: random.bernoulli(KEY, 1), TypeError, "fl"),
    (lambda: random.bernoulli(KEY, 0.5, mode="a"), ValueError, "'high' or 'low'"),
    (lambda: random.permutation(KEY, 5.0), TypeError, "at least 1-dim"),
    (lambda: random.permutation(KEY, A, 2), ValueError, ""),
    (lambda: random.categorical(KEY, L, shape=(5,), replace=False), ValueError, "cannot exceed number of categories"),
    (lambda: random.categorical(KEY, [0.1]), TypeError, "categorical requires"),
    (lambda: random.choice(KEY, 0), ValueError, "greater than 0"),
    (lambda: random.choice(KEY, 4, p=P[:3]), ValueError, "1D"),
    (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "larger sample"),
    (lambda: KEY * KEY, TypeError, "key<fry>"), (lambda: np.asarray(KEY), TypeError, "key_data"),
])
def test_random_refuses(call, error, message):
    with pytest.raises(error, match=message or None):
        call()


# --- keys as arrays ---------------------------------------------------------------------------------------------

KEYS = random.split(random.key(0), (2, 3))
WORDS = np.asarray(random.key_data(KEYS))


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


def test_derivative_in_a_bound():
    np.testing.assert_allclose(hlotrace.grad(lambda a: random.uniform(KEY, (3,), maxval=a).sum())(2.0),
                               np.sum(random.uniform(KEY, (3,))), 1e-6)


def test_equal_draws_share_a_function():
    text = hlotrace.jit(lambda k: [random.uniform(s, (3,)) for s in random.split(k, 4)]).lower(KEY).as_text()
    assert text.count("func.func private @random_bits") == 1 and text.count("call @random_bits") == 4


# --- distributions ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("draw, mean, variance", [
    (random.uniform, 1 / 2, 1 / 12), (random.normal, 0, 1), (random.exponential, 1, 1), (random.laplace, 0, 2),
    (random.logistic, 0, np.pi**2 / 3), (random.gumbel, np.euler_gamma, np.pi**2 / 6),
    (lambda k, n: random.bernoulli(k, 0.3, n), 0.3, 0.21), (lambda k, n: random.randint(k, n, 0, 11), 5, 10),
    (random.rademacher, 0, 1), (lambda k, n: random.choice(k, 4, n, p=P), 2, 1), (lambda k, n: random.categorical(
        k, L, shape=n), 2, 1), (lambda k, n: random.truncated_normal(k, -1, 1, n), 0, 0.2911),
])
def test_moments(draw, mean, variance):
    x = np.asarray(draw(KEY, (40000,)), np.float64)
    assert abs(x.mean() - mean) < 4 * np.sqrt(variance / x.size)
    assert abs(x.var() / variance - 1) < 0.05


def test_shuffles_and_draws_without_replacement_repeat_nothing():
    assert sorted(np.asarray(random.permutation(KEY, 1000))) == list(range(1000))
    for p in (None, np.ones(50) / 50):
        assert len(set(np.asarray(random.choice(KEY, 50, (40,), replace=False, p=p)).tolist())) == 40
