"""experimental.rnn, held against a loop in NumPy and finite differences."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.experimental import rnn

I, H, L, B, T = 2, 3, 2, 3, 4
LENGTHS = np.array([4, 2, 0])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def looped(x, h_0, c_0, weights, lengths, bidirectional):
    """One sequence after the other, step by step."""
    w_ih, w_hh, b_ih, b_hh = ({n: np.asarray(w) for n, w in d.items()} for d in
                              rnn.unpack_lstm_weights(weights, I, H, L, bidirectional))
    directions = 1 + bidirectional
    h_n, c_n, y = h_0.copy(), c_0.copy(), x
    for layer in range(L):
        out = np.zeros((B, T, directions * H))
        for d in range(directions):
            n = layer * directions + d
            for b, length in enumerate(lengths):
                for t in range(length)[::-1 if d else 1]:
                    i, f, g, o = np.split(w_ih[n] @ y[b, t] + b_ih[n] + w_hh[n] @ h_n[n, b] + b_hh[n], 4)
                    c_n[n, b] = sigmoid(f) * c_n[n, b] + sigmoid(i) * np.tanh(g)
                    h_n[n, b] = sigmoid(o) * np.tanh(c_n[n, b])
                    out[b, t, d * H:(d + 1) * H] = h_n[n, b]
        y = out
    return y, h_n, c_n


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_is_the_loop_and_its_derivatives_are_finite_differences(bidirectional):
    rng = np.random.default_rng(0)
    with override("jax_enable_x64", True):
        weights = np.asarray(rnn.init_lstm_weight(jax.random.key(0), I, H, L, bidirectional), np.float64)
        assert weights.shape == (rnn.get_num_params_in_lstm(I, H, L, bidirectional),)
        x = rng.normal(size=(B, T, I))
        h_0, c_0 = rng.normal(size=(2, L * (1 + bidirectional), B, H))
        sizes = (I, H, L, 0.0, bidirectional)
        expected = looped(x, h_0, c_0, weights, LENGTHS, bidirectional)
        unpacked = rnn.unpack_lstm_weights(weights, I, H, L, bidirectional)
        for found in (rnn.lstm(x, h_0, c_0, weights, LENGTHS, *sizes),
                      rnn.lstm(x, h_0, c_0, weights, LENGTHS, *sizes, precision="highest"),
                      rnn.lstm_ref(x, h_0, c_0, *unpacked, LENGTHS, *sizes)):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        out, residuals = rnn.lstm_fwd(x, h_0, c_0, weights, LENGTHS, *sizes)
        cotangents = [rng.normal(size=o.shape) for o in out]
        found = rnn.lstm_bwd(*sizes, None, residuals, cotangents)
        assert found[4] is None
        points = [x, h_0, c_0, weights]
        steps = [rng.normal(size=p.shape) for p in points]
        beside = [sum(np.vdot(g, o)
                      for g, o in zip(cotangents, looped(*[p + e * s for p, s in zip(points, steps)], LENGTHS,
                                                                        bidirectional)))
                                                                        for e in (1e-6, -1e-6)]
        np.testing.assert_allclose(sum(np.vdot(s, g) for s, g in zip(steps, found)),
                                   (beside[0] - beside[1]) / 2e-6,
                                   rtol=1e-6)


def test_swapping_gates_twice_gives_the_weights_back():
    weights = jnp.arange(float(rnn.get_num_params_in_lstm(I, H, L, True)))
    swapped = rnn.swap_lstm_gates(weights, I, H, L, True)
    assert swapped[:4 * H * I].reshape(4, H * I)[:, 0].tolist() == [0, 6, 18, 12]
    assert (rnn.swap_lstm_gates(swapped, I, H, L, True) == weights).all()
    assert rnn.sigmoid(0.0) == 0.5 and rnn.tanh(0.0) == 0


def test_what_does_not_fit_is_told():
    state = jnp.zeros((1, B, H))
    weights = jnp.zeros(84)
    with pytest.raises(ValueError, match=r"weights must have shape \(84,\).*got \(83,\)"):
        rnn.lstm(jnp.zeros((B, T, I)), state, state, weights[1:], LENGTHS, I, H, 1, 0.0, False)
    with pytest.raises(ValueError,
                       match=r"x has shape \(3, 4, 3\), not .*h_0 has shape \(1, 2, 3\), not \(1, 3, 3\)"):
        rnn.lstm(jnp.zeros((B, T, 3)), state[:, 1:], state, weights, LENGTHS, I, H, 1, 0.0, False)
    with pytest.raises(NotImplementedError, match=r"dropout=0\.5"):
        rnn.lstm(jnp.zeros((B, T, I)), state, state, weights, LENGTHS, I, H, 1, 0.5, False)
