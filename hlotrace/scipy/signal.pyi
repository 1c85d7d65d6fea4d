# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace._types import Axis, MatmulPrecision
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['convolve', 'convolve2d', 'correlate', 'correlate2d', 'csd', 'detrend', 'fftconvolve', 'istft', 'stft', 'welch']

def convolve(
    in1: Any, in2: Any, mode: str = 'full', method: str = 'auto', precision: MatmulPrecision | None = None,
) -> Any: ...
def convolve2d(
    in1: Any, in2: Any, mode: str = 'full', boundary: str = 'fill', fillvalue: Any = 0,
    precision: MatmulPrecision | None = None,
) -> Any: ...
def correlate(
    in1: Any, in2: Any, mode: str = 'full', method: str = 'auto', precision: MatmulPrecision | None = None,
) -> Any: ...
def correlate2d(
    in1: Any, in2: Any, mode: str = 'full', boundary: str = 'fill', fillvalue: Any = 0,
    precision: MatmulPrecision | None = None,
) -> Any: ...
def csd(
    x: ArrayLike, y: ArrayLike, fs: Any = 1.0, window: str = 'hann', nperseg: Any = None, noverlap: Any = None,
    nfft: Any = None, detrend: str = 'constant', return_onesided: bool = True, scaling: str = 'density', axis: Axis = -1,
    average: str = 'mean',
) -> Any: ...
def detrend(data: ArrayLike, axis: Axis = -1, type: str = 'linear', bp: Any = 0, overwrite_data: Any = None) -> Any: ...
def fftconvolve(in1: Any, in2: Any, mode: str = 'full', axes: Any = None) -> Any: ...
def istft(
    Zxx: Any, fs: Any = 1.0, window: str = 'hann', nperseg: Any = None, noverlap: Any = None, nfft: Any = None,
    input_onesided: bool = True, boundary: bool = True, time_axis: Any = -1, freq_axis: Any = -2,
) -> Any: ...
def stft(
    x: ArrayLike, fs: Any = 1.0, window: str = 'hann', nperseg: Any = 256, noverlap: Any = None, nfft: Any = None,
    detrend: bool = False, return_onesided: bool = True, boundary: str = 'zeros', padded: bool = True, axis: Axis = -1,
) -> Any: ...
def welch(
    x: ArrayLike, fs: Any = 1.0, window: str = 'hann', nperseg: Any = None, noverlap: Any = None, nfft: Any = None,
    detrend: str = 'constant', return_onesided: bool = True, scaling: str = 'density', axis: Axis = -1,
    average: str = 'mean',
) -> Any: ...
