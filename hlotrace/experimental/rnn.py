"""Long short-term memory, under the names that JAX has for it.

The cells are those of Hochreiter & Schmidhuber, "Long short-term memory", 1997, with the forget gate of Gers,
Schmidhuber & Cummins, "Learning to forget", 2000, and with two biases each, as the weights of cuDNN and of
PyTorch have them.  Where JAX's `lstm` is a call of cuDNN, ours is a scan: it runs on every platform, and its
derivatives of all orders are those of a scan.
"""
import math
from functools import partial

from .. import lax, numpy as jnp, random
from ..api.autodiff import vjp
from ..api.jit import jit
from ..core.errors import listed
from ..core.surface.public import export_names
from ..nn.functions import sigmoid, tanh
from ..numpy.util import promotes

__all__ = ["get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_bwd", "lstm_fwd", "lstm_ref",
           "sigmoid", "swap_lstm_gates", "tanh", "unpack_lstm_weights"]


def _weight_shapes(input_size, hidden_size, num_layers, bidirectional):
    """A list of the shapes (W_ih, W_hh, b_ih, b_hh) of each layer and direction."""
    directions, rows = 1 + bool(bidirectional), 4 * hidden_size
    widths = [input_size] + [directions * hidden_size] * (num_layers - 1)
    return [((rows, width), (rows, hidden_size), (rows,), (rows,)) for width in widths
            for _ in range(directions)]


def get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional):
    """How many numbers the weights of an LSTM are.

    >>> rnn.get_num_params_in_lstm(input_size=2, hidden_size=3, num_layers=1, bidirectional=False)
    84
    """
    return sum(math.prod(shape) for cell in _weight_shapes(input_size, hidden_size, num_layers, bidirectional)
               for shape in cell)


def init_lstm_weight(rng, input_size, hidden_size, num_layers, bidirectional):
    """Weights of an LSTM, one vector, uniform between -k and k, where k = 1 / sqrt(hidden_size).

    >>> rnn.init_lstm_weight(jax.random.key(0), 2, 3, 1, False).shape
    (84,)
    """
    k = 1 / math.sqrt(hidden_size)
    return random.uniform(rng, (get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional),),
                          minval=-k, maxval=k)


def unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional):
    """The matrices and biases that a vector of weights is made of: (W_ih, W_hh, b_ih, b_hh).

    Each is a dict; the cell of a layer and direction has the number `layer * directions + direction`.  W_ih
    is (4 * hidden_size, size of the layer's input), W_hh (4 * hidden_size, hidden_size), the biases (4 *
    hidden_size,): the rows of the input gate, the forget gate, the cell and the output gate follow each
    other.  In the vector all matrices come before all biases, as in cuDNN.

    Raises:
        ValueError: where its size is another than `get_num_params_in_lstm`.

    >>> w_ih, w_hh, b_ih, b_hh = rnn.unpack_lstm_weights(jnp.arange(84.), 2, 3, 1, False)
    >>> w_ih[0].shape, w_hh[0].shape, b_ih[0][0], b_hh[0][0]
    ((12, 2), (12, 3), Array(60., dtype=float32), Array(72., dtype=float32))
    """
    cells = _weight_shapes(input_size, hidden_size, num_layers, bidirectional)
    size = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if jnp.shape(weights) != (size,):
        raise ValueError(f"unpack_lstm_weights: weights must have shape ({size},), as get_num_params_in_lstm "
                         f"says for these sizes, got {jnp.shape(weights)}")
    unpacked, start = ({}, {}, {}, {}), 0
    for kinds in ((0, 1), (2, 3)):
        for number, shapes in enumerate(cells):
            for kind in kinds:
                end = start + math.prod(shapes[kind])
                unpacked[kind][number], start = weights[start:end].reshape(shapes[kind]), end
    return unpacked


def swap_lstm_gates(weights, input_size, hidden_size, num_layers, bidirectional):
    """The weights with the rows of the cell and of the output gate exchanged, as some libraries have them.

    >>> rnn.swap_lstm_gates(jnp.arange(16), 1, 1, 1, False)
    Array([ 0,  1,  3,  2,  4,  5,  7,  6,  8,  9, 11, 10, 12, 13, 15, 14],      dtype=int32)
    """
    w_ih, w_hh, b_ih, b_hh = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)

    def swapped(rows):
        i, f, g, o = jnp.split(rows, 4)
        return jnp.concatenate([i, f, o, g]).ravel()
    pairs = [*((w_ih[n], w_hh[n]) for n in w_ih), *((b_ih[n], b_hh[n]) for n in b_ih)]
    return jnp.concatenate([swapped(x) for pair in pairs for x in pair])


def _checked(x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional):
    if dropout:
        raise NotImplementedError(f"lstm: dropout={dropout!r}: dropout between layers is not implemented, "
                                  "only 0.0; between lstms of one layer each, multiply by a mask of your own")
    batch, layers = jnp.shape(x)[0] if jnp.ndim(x) else 0, num_layers * (1 + bool(bidirectional))
    state = (layers, batch, hidden_size)
    wrong = [f"{name} has shape {jnp.shape(value)}, not {wanted}" for name, value, wanted in (
        ("h_0", h_0, state), ("c_0", c_0, state), ("seq_lengths", seq_lengths, (batch,)))
             if jnp.shape(value) != wanted]
    if jnp.ndim(x) != 3 or jnp.shape(x)[2] != input_size:
        wrong.insert(0, f"x has shape {jnp.shape(x)}, not (batch, time, input_size={input_size})")
    if wrong:
        raise ValueError(f"lstm: {listed(wrong)}: states are (num_layers * directions, batch, hidden_size)")


def _layer(x, h, c, w_ih, w_hh, b_ih, b_hh, inside, reverse, precision):
    """One cell along the time, the leading axis of `x` and of `inside`, which says where the sequence is."""
    product = partial(jnp.matmul, precision=precision)
    driven = product(x, w_ih.T) + b_ih + b_hh

    def step(carry, at):
        h, c = carry
        drive, here = at
        i, f, g, o = jnp.split(drive + product(h, w_hh.T), 4, axis=-1)
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new_h = sigmoid(o) * tanh(new_c)
        h, c = jnp.where(here, new_h, h), jnp.where(here, new_c, c)
        return (h, c), jnp.where(here, h, jnp.zeros((), h.dtype))
    dtype = jnp.result_type(driven, h, c, w_hh)
    (h, c), y = lax.scan(step, (h.astype(dtype), c.astype(dtype)), (driven.astype(dtype), inside),
                         reverse=reverse)
    return y, h, c


@promotes()
def _layers(x, h_0, c_0, unpacked, seq_lengths, num_layers, bidirectional, precision):
    y, hs, cs, directions = jnp.swapaxes(x, 0, 1), [], [], 1 + bool(bidirectional)
    inside = (jnp.arange(y.shape[0])[:, None] < jnp.asarray(seq_lengths))[..., None]
    for layer in range(num_layers):
        ys = []
        for n in range(layer * directions, (layer + 1) * directions):
            out, h, c = _layer(y, h_0[n], c_0[n], *(w[n] for w in unpacked), inside, n % directions == 1,
                               precision)
            ys, hs, cs = [*ys, out], [*hs, h], [*cs, c]
        y = jnp.concatenate(ys, axis=-1)
    return jnp.swapaxes(y, 0, 1), jnp.stack(hs), jnp.stack(cs)


@partial(jit, static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, input_size, hidden_size, num_layers, dropout,
             bidirectional):
    """`lstm` of weights that are unpacked.

    >>> weights = rnn.unpack_lstm_weights(jnp.full(84, 0.1), 2, 3, 1, False)
    >>> state = jnp.zeros((1, 1, 3))
    >>> x, lengths = jnp.ones((1, 2, 2)), jnp.array([2])
    >>> y, h, c = rnn.lstm_ref(x, state, state, *weights, lengths, 2, 3, 1, 0.0, False)
    >>> (100 * y[0, :, 0]).astype(int)
    Array([13, 22], dtype=int32)
    """
    _checked(x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional)
    return _layers(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, num_layers, bidirectional, None)


@partial(jit, static_argnums=(5, 6, 7, 8, 9, 10), static_argnames="precision")
def lstm(x, h_0, c_0, weights, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional,
         precision=None):
    """A long short-term memory of one or more layers: the outputs, and the last states (y, h_n, c_n).

    y is (batch, time, directions * hidden_size).  It runs as a scan on every platform, where JAX calls cuDNN
    and runs on NVIDIA's alone.  Its dtype is what those of x, the states and the weights promote to.

    Args:
        x: (batch, time, input_size).
        h_0: the first states, (num_layers * directions, batch, hidden_size); two directions if
            `bidirectional`.
        c_0: the first states of the cells, alike.
        weights: one vector; see `unpack_lstm_weights`.
        seq_lengths: ints (batch,), how many steps each sequence has; after them y is 0 and states stay.
        dropout: 0.0.
        bidirectional: a second cell in each layer goes from the last step to the first.
        precision: of the products, as in `lax.dot_general`.
    Raises:
        NotImplementedError: for another `dropout`.

    >>> state = jnp.zeros((1, 1, 3))
    >>> x, weights, lengths = jnp.ones((1, 3, 2)), jnp.full(84, 0.1), jnp.array([2])
    >>> y, h, c = rnn.lstm(x, state, state, weights, lengths, 2, 3, 1, 0.0, False)
    >>> (100 * y[0, :, 0]).astype(int)
    Array([13, 22,  0], dtype=int32)
    """
    _checked(x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional)
    unpacked = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, unpacked, seq_lengths, num_layers, bidirectional, precision)


def lstm_fwd(x, h_0, c_0, w, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional,
             precision=None):
    """((y, h_n, c_n), residuals): what `lstm` gives, and what `lstm_bwd` takes.

    >>> state = jnp.zeros((1, 1, 3))
    >>> x, weights, lengths = jnp.ones((1, 3, 2)), jnp.full(84, 0.1), jnp.array([3])
    >>> (y, h, c), residuals = rnn.lstm_fwd(x, state, state, weights, lengths, 2, 3, 1, 0.0, False)
    >>> y.shape, h.shape
    ((1, 3, 3), (1, 1, 3))
    """
    out = lstm(x, h_0, c_0, w, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional,
               precision)
    return out, (x, h_0, c_0, w, seq_lengths)


def lstm_bwd(input_size, hidden_size, num_layers, dropout, bidirectional, precision, residuals, gradients):
    """The cotangents of `lstm`'s x, h_0, c_0 and weights, given those of its results; and None.

    >>> state, sizes = jnp.zeros((1, 1, 3)), (2, 3, 1, 0.0, False)
    >>> x, weights, lengths = jnp.ones((1, 3, 2)), jnp.full(84, 0.1), jnp.array([3])
    >>> out, residuals = rnn.lstm_fwd(x, state, state, weights, lengths, *sizes)
    >>> [g.shape for g in rnn.lstm_bwd(*sizes, None, residuals, out)[:4]]
    [(1, 3, 2), (1, 1, 3), (1, 1, 3), (84,)]
    """
    *moving, seq_lengths = residuals
    sizes = input_size, hidden_size, num_layers, dropout, bidirectional, precision
    return *vjp(lambda *args: lstm(*args, seq_lengths, *sizes), *moving)[1](tuple(gradients)), None


export_names(globals())
