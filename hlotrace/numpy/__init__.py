"""NumPy's functions on traced and compiled arrays, with JAX's names, dtypes and weak types.

Each file imports only files that stand above it here (a test reads this list):

    util            what every function asks of its arguments: promotion, broadcasting, checks
    creation        arrays from anything; ranges, diagonals, triangles
    dtype_objects   float32, int8, ... as they are written and called; finfo, promote_types
    indexing        x[...] and x.at[...]
    reductions      sum, max, any, cumsum, argmax, and their kin
    sorting         sort, searchsorted, histogram
    shaping         reshape, transpose, concatenate, split, roll
    conditions      where, nonzero, select, piecewise
    mapping         vectorize, apply_along_axis
    ufunc           the class of elementwise functions, with reduce, accumulate, at, outer
    ufuncs          the tables of elementwise functions
    arithmetic      quotients, powers, rounding, divisors, clip
    floats          sign, mantissa and exponent
    comparison      isclose, array_equal, iscomplexobj
    contraction     matmul, einsum, convolve, cross
    statistics      mean, var, quantile
    sets            unique, union1d, isin
    selection       take, put, choose, delete, insert
    segments        segment_sum and its kin: jax.ops
    trees           ravel_pytree: jax.flatten_util
    grids           meshgrid, mgrid, unravel_index, r_
    calculus        diff, gradient, trapezoid, interp
    windows         hanning, kaiser
    bits            packbits, unpackbits
    padding         pad
    fft             Fourier transforms: jnp.fft, a module of its own
    array_api       what the array API standard asks; imported when first used
    linalg          products, norms, solving, factorizations: jnp.linalg, a module of its own
    polynomials     polyfit, roots, polyval; imported when first used
    printing        array_repr, array_str; imported when first used
    refs            ref[...], ref.at[...] and what is done to references
    array_methods   the operators and methods of arrays, installed when all functions are there
"""
from numpy import (
    e,
    euler_gamma,
    get_printoptions,
    inf,
    iterable,
    nan,
    newaxis,
    pi,
    printoptions,
    save,
    savez,
    set_printoptions,
)

from ..core.array import Array as ndarray
from ..core.public import offer as _offer
from . import array_methods
from .arithmetic import *
from .bits import *
from .calculus import *
from .comparison import *
from .conditions import *
from .contraction import *
from .creation import *
from .dtype_objects import *
from .floats import *
from .grids import *
from .indexing import *
from .mapping import *
from .padding import *
from .reductions import *
from .selection import *
from .sets import *
from .shaping import *
from .sorting import *
from .statistics import *
from .ufunc import *
from .ufuncs import *
from .windows import *

array_methods.install(globals())
__array_api_version__ = "2024.12"
_offer(globals(), homes={
    "": "fft linalg",
    "array_api": "__array_namespace_info__",
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "printing": "array_repr array_str"})
