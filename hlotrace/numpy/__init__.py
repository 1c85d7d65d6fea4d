"""NumPy's functions on traced and compiled arrays, with JAX's names, dtypes and weak types.

Each file imports only files that come before it here (a test reads this list):

    util            what every function does with its arguments: promotion, broadcasting, checks
    arrays/creation                 arrays from anything, and of one value
    arrays/ranges                   arange, linspace
    arrays/triangles                diagonals and triangles: eye, diag, tril
    arrays/dtype_objects            float32, int8, ... as they are written and called; finfo, promote_types
    indexing/index_entries          what an index says of each axis; ds
    indexing/indexing               x[...], x.at[...]: what they read and write
    reductions/reductions           sum, max, any, cumsum, argmax, and their kin
    reductions/sorting              sort, searchsorted, digitize
    arrays/shaping                  reshape, transpose, squeeze, broadcast
    arrays/joining                  concatenate, stack, split
    arrays/rolling                  repeat, flip, roll
    indexing/conditions             where, nonzero, select, piecewise
    mapping         vectorize, apply_along_axis
    elementwise/ufunc               the class of elementwise functions, with reduce, accumulate, at, outer
    elementwise/ufunc_rules         elementwise functions by a rule for each kind of dtype
    elementwise/ufuncs              the tables of elementwise functions
    elementwise/arithmetic          quotients, powers, rounding, divisors, clip
    elementwise/floats              sign, mantissa and exponent
    elementwise/comparison          isclose, array_equal, iscomplexobj
    contraction     matmul, tensordot, convolve, cross
    einstein_sums   einsum; imported when first used
    reductions/statistics           mean, var, quantile
    reductions/sets                 unique, union1d, isin
    reductions/histograms           bincount, histogram; imported when first used
    indexing/selection              take, put, choose, delete, insert
    indexing/segments               segment_sum and its kin: jax.ops
    trees           ravel_pytree: jax.flatten_util
    arrays/grids                    meshgrid, mgrid, unravel_index, r_
    calculus        diff, gradient, trapezoid, interp
    arrays/windows                  hanning, kaiser
    elementwise/bits                packbits, unpackbits
    arrays/padding                  pad
    fft             Fourier transforms: jnp.fft, a module of its own
    arrays/array_api                what the array API standard requires; imported when first used
    factorizations  svd, qr, eigh, and what linear algebra does with its arguments
    linalg          products, norms, solving: jnp.linalg, a module of its own
    polynomials     polyfit, roots, polyval; imported when first used
    arrays/printing                 array_repr, array_str; imported when first used
    indexing/refs                   ref[...], ref.at[...] and what is done to references
    arrays/array_methods            the operators and methods of arrays, installed after all functions
"""
from numpy import (
    e, euler_gamma, get_printoptions, inf, iterable, nan, newaxis, pi, printoptions, save, savez,
    set_printoptions)

from ..core.array import Array as ndarray
from ..core.surface.public import export_names as _offer
from .arrays import array_methods
from .arrays.creation import *
from .arrays.dtype_objects import *
from .arrays.grids import *
from .arrays.joining import *
from .arrays.ranges import *
from .arrays.rolling import *
from .arrays.shaping import *
from .arrays.triangles import *
from .calculus import *
from .contraction import *
from .elementwise.arithmetic import *
from .elementwise.comparison import *
from .elementwise.ufunc import *
from .elementwise.ufuncs import *
from .indexing.conditions import *
from .indexing.selection import *
from .mapping import *
from .reductions.reductions import *
from .reductions.sets import *
from .reductions.sorting import *
from .reductions.statistics import *

array_methods.install(globals())
__array_api_version__ = "2024.12"
_offer(globals(), lazy={
    "": "fft linalg",
    "arrays.array_api": "__array_namespace_info__",
    "einstein_sums": "einsum einsum_path",
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "arrays.printing": "array_repr array_str",
    "arrays.padding": "pad",
    "reductions.histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "arrays.windows": "bartlett blackman hamming hanning kaiser",
    "elementwise.bits": "packbits unpackbits",
    "elementwise.floats": "copysign frexp ldexp modf signbit spacing"})
