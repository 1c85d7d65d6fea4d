# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace._types import MatmulPrecision
from hlotrace.nn import sigmoid
from hlotrace.numpy import tanh
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = [
    'get_num_params_in_lstm', 'init_lstm_weight', 'lstm', 'lstm_bwd', 'lstm_fwd', 'lstm_ref', 'sigmoid', 'swap_lstm_gates',
    'tanh', 'unpack_lstm_weights',
]

def get_num_params_in_lstm(input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any) -> Any: ...
def init_lstm_weight(rng: Any, input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any) -> Any: ...
def lstm(
    x: ArrayLike, h_0: Any, c_0: Any, weights: ArrayLike, seq_lengths: Any, input_size: Any, hidden_size: Any,
    num_layers: Any, dropout: Any, bidirectional: Any, precision: MatmulPrecision | None = None,
) -> Any: ...
def lstm_bwd(
    input_size: Any, hidden_size: Any, num_layers: Any, dropout: Any, bidirectional: Any, precision: MatmulPrecision,
    residuals: Any, gradients: Any,
) -> Any: ...
def lstm_fwd(
    x: ArrayLike, h_0: Any, c_0: Any, w: Any, seq_lengths: Any, input_size: Any, hidden_size: Any, num_layers: Any,
    dropout: Any, bidirectional: Any, precision: MatmulPrecision | None = None,
) -> Any: ...
def lstm_ref(
    x: ArrayLike, h_0: Any, c_0: Any, W_ih: Any, W_hh: Any, b_ih: Any, b_hh: Any, seq_lengths: Any, input_size: Any,
    hidden_size: Any, num_layers: Any, dropout: Any, bidirectional: Any,
) -> Any: ...
def swap_lstm_gates(weights: ArrayLike, input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any) -> Any: ...
def unpack_lstm_weights(
    weights: ArrayLike, input_size: Any, hidden_size: Any, num_layers: Any, bidirectional: Any,
) -> Any: ...
