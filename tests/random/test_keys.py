"""Keys: seeds, splits and folds, keys as arrays, random bits; values as JAX 0.10.2 and 0.12.0.1 give them, recorded here."""
import pickle

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
    (lambda: random.key(0, impl=3), TypeError, "give a name"),
    (lambda: random.key(0, impl="rbg", dtype="rbg"), ValueError, "Cannot specify both"),
    (lambda: random.wrap_key_data(WORDS, impl="rbg"), TypeError, r"to end with \(4,\); got shape=.2, 3, 2. for impl=rbg"),
    (lambda: random.key(0, impl="rbg") == KEY, TypeError, "key<rbg>"),
    (lambda: random.uniform(random.PRNGKey(0, impl="rbg")), TypeError, r"has shape \(..., 2\)"),
    (lambda: random.split([0, 0]), TypeError, "make a key"), (lambda: random.fold_in(KEY, -1), OverflowError, "-1"),
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
    assert KEYS.dtype.type is hlotrace.dtypes.prng_key
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


# --- comparison -------------------------------------------------------------------------------------------------

OTHERS = KEYS.at[0, 1].set(random.key(7)).at[1, 2].set(random.wrap_key_data(WORDS[1, 2] ^ np.uint32([0, 1])))
SAME = (np.asarray(random.key_data(OTHERS)) == WORDS).all(-1)
EQUAL = [jnp.equal, lax.eq, lambda a, b: a == b, lambda a, b: ~(a != b), lambda a, b: ~jnp.not_equal(a, b), jnp.isclose,
         lambda a, b: jnp.logical_not(lax.ne(a, b))]


@pytest.mark.parametrize("equal", EQUAL)
@pytest.mark.parametrize("transform", [
    lambda f: f, hlotrace.jit, hlotrace.vmap, lambda f: hlotrace.vmap(hlotrace.vmap(f), (1, 1), 1),
    lambda f: lambda a, b: lax.map(lambda ab: f(*ab), (a, b)),
    lambda f: lambda a, b: f(a.ravel(), b.ravel()).reshape(a.shape)])
def test_keys_are_equal_where_their_words_are(equal, transform):
    got = transform(equal)(KEYS, OTHERS)
    assert got.dtype == bool and got.tolist() == SAME.tolist()


def test_one_key_beside_many_and_none_at_all():
    assert (KEYS == KEYS[1, 0]).tolist() == [[False] * 3, [True, False, False]]
    assert (KEYS[:, :1] != KEYS[0]).tolist() == [[False, True, True], [True] * 3]
    assert hlotrace.vmap(lambda k: k == KEYS[0, 0])(KEYS[:, 0]).tolist() == [True, False]
    assert (KEYS[:0] == KEYS[:0]).shape == (0, 3)
    assert bool(KEY == KEY) and not bool(KEY != KEY) and KEY in KEYS.ravel().at[1].set(KEY)
    assert jnp.where(KEYS == OTHERS, KEYS, KEY).shape == (2, 3)


@pytest.mark.parametrize("function", [jnp.array_equal, jnp.array_equiv, jnp.allclose,
                                      lambda a, b: jnp.array_equal(a, b, equal_nan=True)])
def test_arrays_of_keys_compare_whole(function):
    assert function(KEYS, KEYS) and not function(KEYS, OTHERS) and hlotrace.jit(function)(KEY, KEY)


def test_a_key_is_no_other_thing():
    assert not jnp.array_equal(KEYS, KEYS[0]) and not jnp.array_equal(KEY, jnp.ones(2))
    assert not KEY == None and KEY != None and not KEY == "a"      # noqa: E711
    for number in 1, 2.0, jnp.ones(2, "uint32"), np.uint32(1):
        with pytest.raises(TypeError, match="key<fry>"):
            KEY == number      # noqa: B015
    with pytest.raises(TypeError, match="PRNG key has no truth value"):
        bool(KEY)
    for method in KEY.item, KEYS.tolist, KEYS.tobytes:
        with pytest.raises(TypeError, match="cannot be converted to a NumPy array"):
            method()
    with pytest.raises(TypeError, match="lt does not accept dtype key<fry>"):
        KEY < KEY      # noqa: B015


# --- the generators of XLA's bits -------------------------------------------------------------------------------

# split, fold_in, bits, bits under vmap, fold_in under vmap of key 7: as JAX 0.10.2 and 0.12.0.1 give them on the CPU
XLA = {"rbg": ([[3625411723, 1954958720, 3625411723, 1954958720], [195045567, 4062205631, 195045567, 4062205631]],
               [3583082021, 1947592014, 3583082021, 1947592014], [3109483441, 1367189518, 2515982561],
               [[1066376912, 1328836812], [4291577405, 2233762157], [1173161448, 3219176743]],
               [2068379011, 3281109246, 1406186784]),
       "unsafe_rbg": ([[3109483441, 1367189518, 2515982561, 3310080778], [3848958661, 3271070264, 2639373597, 23941900]],
                      [3810769997, 2355009018, 1837142617, 748193193], [3109483441, 1367189518, 2515982561],
                      [[1135839771, 3857205308], [1650114431, 60518699], [2539296062, 4245175319]],
                      [1295791945, 285259325, 3834058245])}


@pytest.mark.parametrize("impl", XLA)
def test_values_of_xlas_generators(impl):
    key = random.key(7, impl=impl)
    keys, split = random.split(key, 3), hlotrace.jit(random.split)(key)
    folded = hlotrace.vmap(random.fold_in, (0, None))(keys, 2)
    drawn = hlotrace.vmap(lambda k: random.bits(k, (2,)))(keys)
    got = [split, random.fold_in(key, 5), random.bits(key, (3,)), drawn, folded]
    assert random.key_data(key).tolist() == [0, 7, 0, 7]
    assert [x.dtype.name for x in got] == [f"key<{'u' * (impl != 'rbg')}rbg>"] * 2 + ["uint32"] * 2 + [split.dtype.name]
    words = [np.asarray(x if x.dtype == np.uint32 else random.key_data(x)) for x in got]
    for x, want in zip([*words[:4], words[4][:, 0]], XLA[impl]):
        np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("impl", XLA)
def test_xlas_generators_everywhere(impl):
    key = random.key(7, impl=impl)
    assert random.key_impl(key) == impl
    assert random.key_dtype(impl) is pickle.loads(pickle.dumps(key.dtype)) is key.dtype
    for same in (random.key(7, impl=key.dtype), random.key(7, dtype=impl), random.clone(key), random.split(key)[None][0, 1],
                 random.wrap_key_data(random.key_data(key), impl=impl)):
        assert same.dtype == key.dtype and same.shape == ()
    with hlotrace.default_prng_impl(impl):
        assert random.key(7) == key and random.key_dtype() == key.dtype
        old = random.PRNGKey(7)
        assert old.shape == (4,) and random.split(old).shape == (2, 4)
        assert random.uniform(old) == random.uniform(key) == hlotrace.jit(lambda: random.uniform(random.key(7)))()
    assert random.key_impl(random.key(7)) == "threefry2x32"

    def step(key, _):
        key, sub = random.split(key)
        return key, random.normal(sub)
    (last, got), loop = hlotrace.checkpoint(lambda k: lax.scan(step, k, None, length=3))(key), key
    for value in got:
        loop, want = step(loop, None)
        assert value == want
    assert loop == last
    times = hlotrace.checkpoint(lambda k, x: x * random.uniform(k))
    assert hlotrace.grad(times, 1)(key, 2.0) == random.uniform(key)
    assert hlotrace.vmap(random.bits)(random.split(key, 0)).shape == random.split(key, 0).shape == (0,)


def test_a_generator_of_ones_own():
    from hlotrace.extend import random as generators
    mine = generators.define_prng_impl(
        key_shape=(3,), seed=lambda seed: jnp.full(3, seed, "uint32"), name="mine", tag="my",
        split=lambda key, shape: key + jnp.arange(int(np.prod(shape)), dtype="uint32").reshape(*shape, 1),
        random_bits=lambda key, bit_width, shape: jnp.full(shape, key[0], f"uint{bit_width}"),
        fold_in=lambda key, data: key + data)
    key = random.key(3, impl=mine)
    assert repr(random.split(key)) == "Array((2,), dtype=key<my>) overlaying:\n[[3 3 3]\n [4 4 4]]"
    assert random.key_data(random.fold_in(key, 4)).tolist() == [7, 7, 7] and random.key_impl(key) == mine
    assert hlotrace.vmap(random.bits)(random.split(key, 4)).tolist() == [3, 4, 5, 6]
    assert random.key_data(generators.random_seed(np.arange(2), mine)).tolist() == [[0] * 3, [1] * 3]
    folded = hlotrace.vmap(random.fold_in)(random.split(key, 2), jnp.array([5, 7], "uint32"))
    assert random.key_data(folded)[:, 0].tolist() == [8, 11]
    assert generators.seed_with_impl(generators.rbg_prng_impl, 3) == random.key(3, impl="rbg")
    assert random.key(3, impl=generators.unsafe_rbg_prng_impl).dtype.name == "key<urbg>"
    assert mine.tag == "my" and mine.key_shape == (3,)


WITH_KEYS = {
    "an element": lambda ks: (ks[1], [1]), "reshaped": lambda ks: (ks.reshape(2, 2).T, [[0, 2], [1, 3]]),
    "set": lambda ks: (ks.at[0].set(ks[3]), [3, 1, 2, 3]), "flipped": lambda ks: (jnp.flip(ks), [3, 2, 1, 0]),
    "joined": lambda ks: (jnp.concatenate([ks[2:], ks[:1]]), [2, 3, 0]),
    "gathered": lambda ks: (ks[jnp.array([3, 0])], [3, 0]),
    "chosen": lambda ks: (jnp.where(jnp.arange(4) > 1, ks, ks[0]), [0, 0, 2, 3]),
    "broadcast": lambda ks: (jnp.broadcast_to(ks[2], (2,)), [2, 2]),
    "at a place that is not known": lambda ks: (hlotrace.jit(lambda i: ks[i])(2), [2]),
    "carried": lambda ks: (lax.scan(lambda c, k: (k, c), ks[0], ks)[1], [0, 0, 1, 2]),
    "a branch": lambda ks: (lax.cond(True, lambda k: k, lambda k: k, ks[3]), [3]),
}


@pytest.mark.parametrize("what", WITH_KEYS)
def test_keys_of_several_axes_of_words(what):
    from hlotrace.extend.random import define_prng_impl
    words = jnp.arange(6, dtype="uint32").reshape(2, 3)
    mine = define_prng_impl(
        key_shape=(2, 3), seed=lambda seed: words + seed.astype("uint32"), name="wide", tag="w",
        fold_in=lambda k, i: k + i,
        split=lambda k, shape: k + jnp.arange(np.prod(shape), dtype="uint32").reshape(*shape, 1, 1) * 10,
        random_bits=lambda k, width, shape: jnp.full(shape, k[1, 2], f"uint{width}"))
    keys = random.split(random.key(0, impl=mine), 4)
    got, wanted = WITH_KEYS[what](keys)
    np.testing.assert_array_equal(random.key_data(got).reshape(-1, 2, 3) - words, np.broadcast_to(
        10 * np.reshape(wanted, (-1, 1, 1)), (np.size(wanted), 2, 3)))
    assert hlotrace.vmap(random.bits)(keys).tolist() == [5, 15, 25, 35]


def test_the_hash():
    from hlotrace.extend.random import threefry2x32_p, threefry_2x32, threefry_prng_impl
    want = [1279084892, 422009817]
    for count in (np.ones(3, np.uint32), np.ones((), np.uint32)):
        got = threefry2x32_p.bind(np.uint32(1), np.uint32(1), count, count)
        assert [np.unique(x).tolist() for x in got] == [[w] for w in want]
    assert threefry_2x32(np.ones(2, np.uint32), np.ones(2, np.uint32)).tolist() == want
    assert random.key(0).dtype == threefry_prng_impl


HASHES = {     # what is hashed in a program: (the function, how often)
    "one key of a split": (lambda k: random.bits(random.split(k)[1], (8, 8)), 2),
    "the two words of an integer": (lambda k: random.randint(k, (8, 8), 0, jnp.int32(9) + k.size), 3),
    "a folded key": (lambda k: random.categorical(random.fold_in(k, 1), jnp.zeros((20, 30))), 2),
    "keys of a batch": (lambda k: hlotrace.vmap(random.normal)(random.split(k, 50)), 2),
}


@pytest.mark.parametrize("name", HASHES)
def test_a_key_is_hashed_once_for_all_that_is_drawn_with_it(name):
    function, hashes = HASHES[name]
    made = hlotrace.jit(function).lower(random.key(0))
    assert made.compile().as_text().count(" shift-left(") == 20 * hashes
    for_tpu = hlotrace.jit(function).trace(random.key(0)).lower(lowering_platforms=("tpu",))
    assert "barrier" not in for_tpu.as_text()
