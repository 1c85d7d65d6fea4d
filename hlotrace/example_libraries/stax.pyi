# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable, Sequence
from hlotrace._types import Axis
from hlotrace.nn import (
    elu, gelu, leaky_relu, log_softmax, log_softmax as logsoftmax, relu, selu, sigmoid, softmax, softplus, standardize,
)
from hlotrace.typing import ArrayLike, DTypeLike
from typing import Any

__all__ = [
    'AvgPool', 'BatchNorm', 'Conv', 'Conv1DTranspose', 'ConvTranspose', 'Dense', 'Dropout', 'Elu', 'Exp', 'FanInConcat',
    'FanInSum', 'FanOut', 'Flatten', 'Gelu', 'GeneralConv', 'GeneralConvTranspose', 'Identity', 'LeakyRelu', 'LogSoftmax',
    'MaxPool', 'Relu', 'Selu', 'Sigmoid', 'Softmax', 'Softplus', 'SumPool', 'Tanh', 'elementwise', 'elu', 'gelu', 'glorot',
    'glorot_normal', 'leaky_relu', 'log_softmax', 'logsoftmax', 'normal', 'parallel', 'randn', 'relu', 'selu', 'serial',
    'shape_dependent', 'sigmoid', 'softmax', 'softplus', 'standardize',
]

def AvgPool(
    window_shape: Any, strides: Sequence[int] | None = None, padding: str | Sequence[Sequence[int]] = 'VALID',
    spec: Any = None,
) -> Any: ...
def BatchNorm(
    axis: Axis = ..., epsilon: ArrayLike = 1e-05, center: bool = True, scale: ArrayLike = True, beta_init: Any = ...,
    gamma_init: Any = ...,
) -> Any: ...
def Conv(
    out_chan: Any, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = 'VALID', W_init: Any = None, b_init: Any = ...,
) -> Any: ...
def Conv1DTranspose(
    out_chan: Any, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = 'VALID', W_init: Any = None, b_init: Any = ...,
) -> Any: ...
def ConvTranspose(
    out_chan: Any, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = 'VALID', W_init: Any = None, b_init: Any = ...,
) -> Any: ...
def Dense(out_dim: Any, W_init: Any = ..., b_init: Any = ...) -> Any: ...
def Dropout(rate: Any, mode: str = 'train') -> Any: ...
Elu: Any
Exp: Any
def FanInConcat(axis: Axis = -1) -> Any: ...
FanInSum: Any
def FanOut(num: int) -> Any: ...
Flatten: Any
Gelu: Any
def GeneralConv(
    dimension_numbers: Any, out_chan: Any, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = 'VALID', W_init: Any = None, b_init: Any = ...,
) -> Any: ...
def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: Any, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = 'VALID', W_init: Any = None, b_init: Any = ...,
) -> Any: ...
Identity: Any
LeakyRelu: Any
LogSoftmax: Any
def MaxPool(
    window_shape: Any, strides: Sequence[int] | None = None, padding: str | Sequence[Sequence[int]] = 'VALID',
    spec: Any = None,
) -> Any: ...
Relu: Any
Selu: Any
Sigmoid: Any
Softmax: Any
Softplus: Any
def SumPool(
    window_shape: Any, strides: Sequence[int] | None = None, padding: str | Sequence[Sequence[int]] = 'VALID',
    spec: Any = None,
) -> Any: ...
Tanh: Any
def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Any: ...
def glorot_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = ...,
    dtype: DTypeLike | None = None,
) -> Any: ...
def normal(stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Any: ...
def parallel(*layers: Any) -> Any: ...
def serial(*layers: Any) -> Any: ...
def shape_dependent(make_layer: Any) -> Any: ...
glorot = glorot_normal
randn = normal
