"""lax.rng_bit_generator, lax.rng_uniform: the bits are those of JAX; what is refused."""
import numpy as np
import pytest

import hlotrace as jax
from hlotrace import lax

STATE = np.array([1, 2, 3, 4], np.uint32)


@pytest.mark.parametrize("algorithm, after, bits", [
    (lax.RandomAlgorithm.RNG_DEFAULT, 5, [512747620, 1298009047, 1267190206, 761827841, 1383286907]),
    (lax.RandomAlgorithm.RNG_PHILOX, 5, [512747620, 1298009047, 1267190206, 761827841, 1383286907]),
    (lax.RandomAlgorithm.RNG_THREE_FRY, 6, [1576285164, 2249660814, 740599976, 2425682526, 2436392515])])
def test_bits_are_those_of_jax(algorithm, after, bits):
    state, found = lax.rng_bit_generator(STATE, (5,), algorithm=algorithm)
    np.testing.assert_array_equal(state, [1, 2, after, 4])
    np.testing.assert_array_equal(found, np.array(bits, np.uint32))


def test_other_widths():
    for dtype, bits in (("uint8", [100, 215, 190, 1, 123]), ("uint16", [59492, 3031, 51646, 37377, 18555])):
        found = lax.rng_bit_generator(STATE, (5,), dtype)[1]
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, bits)
    with jax.enable_x64():
        state, found = lax.rng_bit_generator(np.array([1, 2], np.uint64), (2,), np.uint64)
    np.testing.assert_array_equal(state, [1, 3])
    np.testing.assert_array_equal(found, np.array([12229731395331991369, 3437131457114678231], np.uint64))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_state_makes_the_bits_of_all_under_vmap(axis):
    states = np.arange(12, dtype=np.uint32).reshape(3, 4)
    after, bits = jax.vmap(lambda s: lax.rng_bit_generator(s, (2,)), in_axes=axis)(
        states if axis == 0 else states.T)
    np.testing.assert_array_equal(after, [[0, 1, 4, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    np.testing.assert_array_equal(
        bits, [[895509795, 3230209149], [3834998268, 2007387529], [550253412, 3629164905]])


def test_uniform_numbers():
    for low, high in ((1.0, 3.0), (5, 9), (np.float16(1), np.float16(3))):
        found = np.asarray(lax.rng_uniform(low, high, (200,)))
        assert found.shape == (200,) and found.min() >= low and found.max() < high
        assert abs(found.astype(float).mean() - (low + high - (found.dtype.kind == "i")) / 2) < 0.4
    # 256 numbers; of what is drawn between them, one in 512 would round up to 1.25
    halves = np.asarray(lax.rng_uniform(np.float16(1), np.float16(1.25), (20_000,)))
    assert set(np.unique(halves)) == set(np.arange(1, 1.25, 2 ** -10, np.float16))
    x, y = jax.jit(lambda: (lax.rng_uniform(0.0, 1.0, (5,)), lax.rng_uniform(0.0, 1.0, (5,))))()
    assert not np.any(np.asarray(x) == np.asarray(y))      # equal calls are not one
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'rng_uniform'"):
        jax.grad(lambda a: lax.rng_uniform(a, 1.0, (2,)).sum())(0.0)


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.rng_bit_generator(STATE, (2,), algorithm=7), ValueError,
     "member of lax.RandomAlgorithm, got 7"),
    (lambda: lax.rng_bit_generator(STATE, (-1,)), ValueError, "nonnegative"),
    (lambda: lax.rng_bit_generator([1, 2, 3, 4], (1,)), TypeError, "list"),
    (lambda: lax.rng_uniform(0, 1.0, (2,)), ValueError, "identical dtypes, got int32 and float32")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
