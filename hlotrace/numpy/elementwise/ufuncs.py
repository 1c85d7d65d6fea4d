"""NumPy's elementwise functions: rows for those that are one primitive, and those made of several."""
import functools

from ...api.composite import composite
from ...core import dtypes
from ...core.avals import aval_of, is_arraylike
from ...core.dtypes import python_scalars
from ...primitives.arrays import elementwise as e, transcendental as t
from ...primitives.arrays.elementwise import convert, eq, ge, gt, le, lt, mul, ne, select
from ...primitives.arrays.shape import full
from ...primitives.arrays.transcendental import cbrt_p, integer_pow
from ...primitives.common import np, scalar
from ..util import check_arraylike, dtype_of, promote_args, promote_args_inexact, shape
from .ufunc import ufunc
from .ufunc_rules import ALWAYS, NEVER, SCALARS, Binary, Unary, as_is, beside, checked, like, numeric

# --- one row for each function that is a primitive ------------------------------------------------

exp = Unary("exp", """e**x.

    >>> jnp.exp(jnp.array([-jnp.inf, 0., 0.5]))
    Array([0.       , 1.       , 1.6487212], dtype=float32)
    >>> jnp.exp(1j * jnp.pi).round(4)
    Array(-1.-0.j, dtype=complex64, weak_type=True)
    """, promote_args_inexact, fc=t.exp_p)
exp2 = Unary("exp2", """2**x.

    >>> jnp.exp2(jnp.array([-1, 0, 3]))
    Array([0.5, 1. , 8. ], dtype=float32)
    """, promote_args_inexact, fc=t.exp2_p)
expm1 = Unary("expm1", """e**x - 1, exact for small x.

    >>> jnp.expm1(1e-10) / 1e-10, (jnp.exp(1e-10) - 1) / 1e-10
    (Array(1., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
    """, promote_args_inexact, fc=t.expm1_p)
log = Unary("log", """Natural logarithm.

    >>> jnp.log(jnp.array([1., 0., -1., jnp.inf]))
    Array([  0., -inf,  nan,  inf], dtype=float32)
    >>> jnp.log(-1 + 0j)
    Array(0.+3.1415927j, dtype=complex64, weak_type=True)
    """, promote_args_inexact, fc=t.log_p)
log1p = Unary("log1p", """Natural logarithm of 1 + x, exact for small x.

    >>> jnp.log1p(1e-10) / 1e-10, jnp.log(1 + 1e-10) / 1e-10
    (Array(1., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
    """, promote_args_inexact, fc=t.log1p_p)
sqrt = Unary("sqrt", """Square root; NaN for negative real x.

    >>> jnp.sqrt(jnp.array([9, 2, -1]))
    Array([3.       , 1.4142135,       nan], dtype=float32)
    >>> jnp.sqrt(-1 + 0j)
    Array(0.+1.j, dtype=complex64, weak_type=True)
    """, promote_args_inexact, fc=t.sqrt_p)
cbrt = Unary("cbrt", """Cube root of real x.

    >>> jnp.cbrt(jnp.array([-27, 0, 8]))
    Array([-3.,  0.,  2.], dtype=float32)
    """, promote_args_inexact, f=cbrt_p)
sin = Unary("sin", """Sine of an angle in radians.

    >>> jnp.sin(jnp.array([0, jnp.pi / 6, jnp.pi / 2]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """, promote_args_inexact, fc=t.sin_p)
cos = Unary("cos", """Cosine of an angle in radians.

    >>> jnp.cos(jnp.array([0, jnp.pi / 3, jnp.pi])).round(4)
    Array([ 1. ,  0.5, -1. ], dtype=float32)
    """, promote_args_inexact, fc=t.cos_p)
tan = Unary("tan", """Tangent of an angle in radians.

    >>> jnp.tan(jnp.array([0, jnp.pi / 4])).round(4)
    Array([0., 1.], dtype=float32)
    """, promote_args_inexact, fc=t.tan_p)
arcsin = Unary("arcsin", """The angle from -pi/2 to pi/2 whose sine is x; NaN for real x outside of [-1, 1].

    >>> jnp.arcsin(jnp.array([-1., 0., 1., 2.]))
    Array([-1.5707964,  0.       ,  1.5707964,        nan], dtype=float32)
    """, promote_args_inexact, fc=t.asin_p)
arccos = Unary("arccos", """The angle from 0 to pi whose cosine is x; NaN for real x outside of [-1, 1].

    >>> jnp.arccos(jnp.array([1., 0., -1., 2.]))
    Array([0.       , 1.5707964, 3.1415927,       nan], dtype=float32)
    """, promote_args_inexact, fc=t.acos_p)
arctan = Unary("arctan", """The angle from -pi/2 to pi/2 whose tangent is x; `arctan2` knows all quadrants.

    >>> jnp.arctan(jnp.array([0., -jnp.inf]))
    Array([ 0.       , -1.5707964], dtype=float32)
    """, promote_args_inexact, fc=t.atan_p)
sinh = Unary("sinh", """Hyperbolic sine, (e**x - e**-x) / 2.

    >>> jnp.sinh(jnp.array([-1., 0., 1.]))
    Array([-1.1752012,  0.       ,  1.1752012], dtype=float32)
    """, promote_args_inexact, fc=t.sinh_p)
cosh = Unary("cosh", """Hyperbolic cosine, (e**x + e**-x) / 2.

    >>> jnp.cosh(jnp.array([-1., 0., 1.]))
    Array([1.5430806, 1.       , 1.5430806], dtype=float32)
    """, promote_args_inexact, fc=t.cosh_p)
tanh = Unary("tanh", """Hyperbolic tangent, sinh(x) / cosh(x), between -1 and 1.

    >>> jnp.tanh(jnp.array([-100., 0., 0.5]))
    Array([-1.        ,  0.        ,  0.46211717], dtype=float32)
    """, promote_args_inexact, fc=t.tanh_p)
arcsinh = Unary("arcsinh", """Inverse hyperbolic sine, log(x + sqrt(x**2 + 1)).

    >>> jnp.arcsinh(jnp.sinh(jnp.array([-2., 0., 2.])))
    Array([-2.,  0.,  2.], dtype=float32)
    """, promote_args_inexact, fc=t.asinh_p)
arccosh = Unary("arccosh", """Inverse hyperbolic cosine, log(x + sqrt(x**2 - 1)); NaN for real x below 1.

    >>> jnp.arccosh(jnp.array([1., 2., 0.]))
    Array([0.      , 1.316958,      nan], dtype=float32)
    """, promote_args_inexact, fc=t.acosh_p)
arctanh = Unary("arctanh", """Inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN for real |x| > 1.

    >>> jnp.arctanh(jnp.array([0., 0.5, 1., 2.]))
    Array([0.        , 0.54930615,        inf,        nan], dtype=float32)
    """, promote_args_inexact, fc=t.atanh_p)

negative = Unary("negative", """-x; unsigned integers wrap around.

    >>> jnp.negative(jnp.array([1, -2])), jnp.negative(jnp.uint8(1))
    (Array([-1,  2], dtype=int32), Array(255, dtype=uint8))
    """, checked, fciu=e.neg_p)
positive = Unary("positive", """x itself, as an Array.

    >>> jnp.positive(np.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """, checked, fciub=as_is)
abs = Unary("abs", """Absolute value in the dtype of x; of complex x its distance from 0, which is real.

    >>> jnp.abs(jnp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    >>> jnp.abs(3 + 4j)
    Array(5., dtype=float32, weak_type=True)
    """, checked, fci=e.abs_p, ub=as_is)
fabs = Unary("fabs", """Absolute value of real x, in floating point.

    >>> jnp.fabs(jnp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """, promote_args_inexact, f=lambda x: e.abs_p.bind(x))
sign = Unary("sign", """-1, 0 or 1 by the sign, in the dtype of x; x/|x| for complex x, NaN for NaN.

    >>> jnp.sign(jnp.array([-2., 0., 5., jnp.nan]))
    Array([-1.,  0.,  1., nan], dtype=float32)
    >>> jnp.sign(3 + 4j)
    Array(0.6+0.8j, dtype=complex64, weak_type=True)
    """, checked, fciu=e.sign_p)
square = Unary("square", """x * x; of booleans as int32.

    >>> jnp.square(jnp.array([-3, 1j]))
    Array([ 9.-0.j, -1.+0.j], dtype=complex64)
    """, checked, fciu=e.square_p,
               b=lambda x: convert(x, dtypes.int32))
floor = Unary("floor", """The greatest integer that is not above x, in the dtype of x.

    >>> jnp.floor(jnp.array([-1.5, 1.5])), jnp.floor(7)
    (Array([-2.,  1.], dtype=float32), Array(7, dtype=int32, weak_type=True))
    """, checked, f=e.floor_p, iub=as_is)
ceil = Unary("ceil", """The least integer that is not below x, in the dtype of x.

    >>> jnp.ceil(jnp.array([-1.5, 1.5])), jnp.ceil(7)
    (Array([-1.,  2.], dtype=float32), Array(7, dtype=int32, weak_type=True))
    """, checked, f=e.ceil_p, iub=as_is)
conjugate = Unary("conjugate", """Complex conjugate; real x as it is.

    >>> jnp.conjugate(jnp.array([1 + 2j, 3]))
    Array([1.-2.j, 3.-0.j], dtype=complex64)
    """, checked, c=e.conj_p, fiub=as_is)
real = Unary("real", """Real part.

    >>> jnp.real(jnp.array([1 + 2j, 3])), jnp.real(jnp.int8(3))
    (Array([1., 3.], dtype=float32), Array(3, dtype=int8))
    """, checked, c=e.real_p, fiub=as_is)
imag = Unary("imag", """Imaginary part: 0 for real x.

    >>> jnp.imag(jnp.array([1 + 2j, 3])), jnp.imag(jnp.int8(3))
    (Array([2., 0.], dtype=float32), Array(0, dtype=int8))
    """, checked, c=e.imag_p, fiub=lambda x: like(x, 0))
invert = Unary("invert", """All bits flipped; integers and booleans.

    >>> jnp.invert(jnp.array([0, 5])), jnp.invert(jnp.uint8(5)), ~jnp.array([True, False])
    (Array([-1, -6], dtype=int32), Array(250, dtype=uint8), Array([False,  True], dtype=bool))
    """, checked, iub=e.not_p)
logical_not = Unary("logical_not", """True where x is 0.

    >>> jnp.logical_not(jnp.array([0., 0.5, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """, checked, weak=SCALARS, b=e.not_p,
                    fciu=lambda x: eq(x, 0))
isfinite = Unary("isfinite", """Neither infinite nor NaN.

    >>> jnp.isfinite(jnp.array([1., jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """, checked, weak={"c": ALWAYS}, f=e.is_finite_p,
                 c=lambda x: e.and_p.bind(isfinite(real(x)), isfinite(imag(x))),
                 iub=lambda x: full(shape(x), True, np.dtype(bool)))

add = Binary("add", """x1 + x2; for booleans, or.

    >>> jnp.add(jnp.array([[1], [2]]), jnp.array([10., 20.]))
    Array([[11., 21.],
           [12., 22.]], dtype=float32)
    >>> jnp.add(jnp.int8(127), 1)         # integers wrap around; a Python number takes the other's dtype
    Array(-128, dtype=int8)
    >>> jnp.add.reduce(jnp.arange(5)), jnp.add.outer(jnp.arange(2), jnp.arange(3)).tolist()
    (Array(10, dtype=int32), [[0, 1, 2], [1, 2, 3]])
    """, promote_args, 0, fciu=e.add_p, b=e.or_p)
subtract = Binary("subtract", """x1 - x2.

    >>> jnp.subtract(jnp.array([5, 2]), 3)
    Array([ 2, -1], dtype=int32)
    >>> jnp.subtract(jnp.uint8(2), jnp.uint8(3))
    Array(255, dtype=uint8)
    """, promote_args, fciu=e.sub_p)
multiply = Binary("multiply", """x1 * x2; for booleans, and.

    >>> jnp.multiply(jnp.array([1, 2, 3]), 0.5)
    Array([0.5, 1. , 1.5], dtype=float32, weak_type=True)
    """, promote_args, 1, fciu=e.mul_p, b=e.and_p)
divide = Binary("divide", """x1 / x2, floating point also for integers.

    >>> jnp.divide(jnp.array([1, -1, 0, 7]), jnp.array([0, 0, 0, 2]))
    Array([ inf, -inf,  nan,  3.5], dtype=float32)
    """, promote_args_inexact, fc=e.div_p)
arctan2 = Binary("arctan2", """The angle in radians of the point (x2, x1), in (-pi, pi].

    >>> jnp.arctan2(jnp.array([0., 1., 0., -1.]), jnp.array([1., 0., -1., 0.]))
    Array([ 0.       ,  1.5707964,  3.1415927, -1.5707964], dtype=float32)
    """, promote_args_inexact,
                 fc=e.atan2_p)
nextafter = Binary("nextafter", """The float next to x1 towards x2.

    >>> jnp.nextafter(jnp.float16(1), jnp.float16(2)), jnp.nextafter(jnp.bfloat16(1), jnp.bfloat16(2))
    (Array(1.001, dtype=float16), Array(1.00781, dtype=bfloat16))
    """, promote_args_inexact, f=e.nextafter_p)
bitwise_and = Binary("bitwise_and", """Bitwise and; integers and booleans.

    >>> jnp.bitwise_and(0b1100, jnp.array([0b1010, 0b0101]))
    Array([8, 4], dtype=int32)
    """, promote_args, -1, iub=e.and_p)
bitwise_or = Binary("bitwise_or", """Bitwise or; integers and booleans.

    >>> jnp.bitwise_or(0b1100, jnp.array([0b1010, 0b0101]))
    Array([14, 13], dtype=int32)
    """, promote_args, 0, iub=e.or_p)
bitwise_xor = Binary("bitwise_xor", """Bitwise exclusive or; integers and booleans.

    >>> jnp.bitwise_xor(0b1100, jnp.array([0b1010, 0b0101]))
    Array([6, 9], dtype=int32)
    """, promote_args, 0, iub=e.xor_p)
left_shift = Binary("left_shift", """Bits of x1 moved left by x2; zeros come in, and all bits or more give 0.

    >>> jnp.left_shift(jnp.uint8(3), jnp.array([0, 1, 7, 8], jnp.uint8))
    Array([  3,   6, 128,   0], dtype=uint8)
    """, numeric, iu=e.shift_left_p)
right_shift = Binary("right_shift", """Bits of x1 moved right by x2: floor(x1 / 2**x2), as the sign stays.

    >>> jnp.right_shift(jnp.array([20, -20]), 2)
    Array([ 5, -5], dtype=int32)
    """, numeric,
                     i=e.shift_right_arithmetic_p, u=e.shift_right_logical_p)


def _truth(name, *args):
    """Broadcast arguments as booleans: what is not 0 is true."""
    check_arraylike(name, *args)
    return promote_args(name, *[x if dtypes.is_bool(dtype_of(x)) else ne(x, 0) for x in args])


def _logical(name, doc, identity, primitive):
    result = Binary(name, doc, _truth, identity, b=primitive)

    @composite
    def general(x1, x2):
        out = primitive.bind(*_truth(name, x1, x2))
        joined = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in map(aval_of, (x1, x2))]))
        # scalars give way as numbers do
        return convert(out, dtypes.bool_, joined[1] and not shape(x1) and not shape(x2))
    result.general = result.func = general
    return result


logical_and = _logical("logical_and", """True where both are not 0.

    >>> jnp.logical_and(jnp.array([0, 1, 2]), jnp.array([0., 0., jnp.nan]))
    Array([False, False,  True], dtype=bool)
    """, True, e.and_p)
logical_or = _logical("logical_or", """True where either is not 0.

    >>> jnp.logical_or(jnp.array([0, 1, 2]), jnp.array([0., 0., jnp.nan]))
    Array([False,  True,  True], dtype=bool)
    """, False, e.or_p)
logical_xor = _logical("logical_xor", """True where just one is not 0.

    >>> jnp.logical_xor(jnp.array([0, 1, 2]), jnp.array([0., 0., jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """, False, e.xor_p)


def _lexicographic(compare):
    """A comparison of complex numbers: by real part, and by imaginary part where those are equal."""
    def function(x, y):
        x_real, y_real = e.real(x), e.real(y)
        found = select(eq(x_real, y_real), compare(e.imag_p.bind(x), e.imag_p.bind(y)),
                       compare(x_real, y_real))
        return convert(found, dtypes.bool_, aval_of(x).weak_type and aval_of(y).weak_type)
    return function


@functools.cache
def _beside_exactly(kind, aval, x64):
    """As `beside`, but a Python int that the dtype cannot hold gives None instead of wrapping around."""
    make = beside(kind, aval, x64)
    if make is None or kind is not int or not dtypes.is_integer(aval.dtype):
        return make
    info = dtypes.iinfo(aval.dtype)
    low, high = int(info.min), int(info.max)
    return lambda value: make(value) if low <= value <= high else None


def _side(number, x):
    """1 or -1 if `number` is a Python int above or below all that the integer dtype of `x` holds, else 0."""
    if type(number) is not int or type(x) in python_scalars or not is_arraylike(x) or not dtypes.is_integer(
            dtype_of(x)):
        return 0
    info = dtypes.iinfo(dtype_of(x))
    return (number > info.max) - (number < info.min)


def _comparison(name, doc, primitive, complex_rule):
    result = Binary(name, doc, promote_args, beside=_beside_exactly, fiub=primitive, c=complex_rule)
    promoting = result.general

    def general(x1, x2):
        if side := _side(x2, x1):
            return primitive.bind(np.zeros(shape(x1), np.int8), scalar(side, dtypes.int8))
        if side := _side(x1, x2):
            return primitive.bind(scalar(side, dtypes.int8), np.zeros(shape(x2), np.int8))
        return promoting(x1, x2)
    result.general = result.func = general
    return result


equal = _comparison("equal", """x1 == x2, as booleans; NaN equals nothing.

    >>> jnp.equal(jnp.array([1., 2., jnp.nan]), jnp.array([1, 3, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """, e.eq_p, e.eq_p)
not_equal = _comparison("not_equal", """x1 != x2, as booleans; NaN differs from all, itself included.

    >>> jnp.not_equal(jnp.array([1., 2., jnp.nan]), jnp.array([1, 3, jnp.nan]))
    Array([False,  True,  True], dtype=bool)
    """, e.ne_p, e.ne_p)
less = _comparison("less", """x1 < x2, as booleans; complex by real, then imaginary part; False with NaN.

    >>> jnp.less(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    >>> jnp.less(jnp.uint8(200), 300)            # a Python int outside of the dtype is compared as what it is
    Array(True, dtype=bool)
    """, e.lt_p, _lexicographic(lt))
less_equal = _comparison("less_equal", """x1 <= x2; complex as `less`.

    >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """, e.le_p, _lexicographic(le))
greater = _comparison("greater", """x1 > x2; complex as `less`.

    >>> jnp.greater(jnp.array([1 + 1j, 2]), jnp.array([1, 2 + 1j]))
    Array([ True, False], dtype=bool)
    """, e.gt_p, _lexicographic(gt))
greater_equal = _comparison("greater_equal", """x1 >= x2; complex as `less`.

    >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """, e.ge_p, _lexicographic(ge))
maximum = Binary("maximum", """The greater; NaN where either is NaN.

    >>> jnp.maximum(jnp.array([1., 5., jnp.nan]), 3)
    Array([ 3.,  5., nan], dtype=float32)
    >>> jax.grad(jnp.maximum)(2., 2.)            # where both are equal, each has half of the slope
    Array(0.5, dtype=float32, weak_type=True)
    """, promote_args, fciub=e.max_p)
minimum = Binary("minimum", """The lesser; NaN where either is NaN.

    >>> jnp.minimum(jnp.array([1., 5., jnp.nan]), 3)
    Array([ 1.,  3., nan], dtype=float32)
    """, promote_args, fciub=e.min_p)


# --- functions of one array made of several primitives --------------------------------------------

def _scaled(name, doc, factor, weak, function=lambda x: x):
    def parts(x):       # a complex product would make NaN of infinity times 0
        x = function(x)
        return e.complex_p.bind(mul(real(x), factor), mul(imag(x), factor))
    return Unary(name, doc, promote_args_inexact, weak=weak, f=lambda x: mul(function(x), factor), c=parts)


log2 = _scaled("log2", """Logarithm to base 2.

    >>> jnp.log2(jnp.array([1, 8, 0]))
    Array([  0.,   3., -inf], dtype=float32)
    """, float(1 / np.log(2)), NEVER, t.log)
log10 = _scaled("log10", """Logarithm to base 10.

    >>> jnp.log10(jnp.array([1, 10, 0])).round(4)
    Array([  0.,   1., -inf], dtype=float32)
    """, float(1 / np.log(10)), NEVER, t.log)
deg2rad = _scaled("deg2rad", """Degrees to radians.

    >>> jnp.deg2rad(jnp.array([0, 90, 180]))
    Array([0.       , 1.5707964, 3.1415927], dtype=float32)
    """, float(np.pi / 180), SCALARS)
rad2deg = _scaled("rad2deg", """Radians to degrees.

    >>> jnp.rad2deg(jnp.array([0, jnp.pi / 2, jnp.pi]))
    Array([  0.,  90., 180.], dtype=float32)
    """, float(180 / np.pi), SCALARS)
reciprocal = Unary("reciprocal", """1 / x, floating point also for integers.

    >>> jnp.reciprocal(jnp.array([2, -4, 0]))
    Array([ 0.5 , -0.25,   inf], dtype=float32)
    """, promote_args_inexact,
                   fc=lambda x: integer_pow(x, -1))


trunc = Unary("trunc", """The integer part, toward zero, in the dtype of x.

    >>> jnp.trunc(jnp.array([-1.7, 1.7]))
    Array([-1.,  1.], dtype=float32)
    """, checked,
              f=lambda x: select(lt(x, 0), e.ceil_p.bind(x), e.floor_p.bind(x)), iub=as_is)
isnan = Unary("isnan", """Not a number.

    >>> jnp.isnan(jnp.array([1., jnp.inf, jnp.nan]))
    Array([False, False,  True], dtype=bool)
    """, checked, fc=lambda x: ne(x, x),
              iub=lambda x: full(shape(x), False, np.dtype(bool)))
isinf = Unary("isinf", """Infinite; a complex number is, if either part is.

    >>> jnp.isinf(jnp.array([1., -jnp.inf, jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """, checked, weak=NEVER,
              f=lambda x: eq(e.abs_p.bind(x), np.inf),
              c=lambda x: e.or_p.bind(isinf(real(x)), isinf(imag(x))),
              iub=lambda x: full(shape(x), False, np.dtype(bool)))


def _not_complex(name, x):
    check_arraylike(name, x)
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(f"{name} is not well defined for complex numbers: ask it of jnp.real(x) or "
                         "jnp.imag(x)")
    return [x]


def _is_infinity(name, value):
    doc = f"""x == {value}, as booleans; ValueError for complex x.

    >>> jnp.{name}(jnp.array([1., -jnp.inf, jnp.inf, jnp.nan]))
    Array([False, {value < 0!s:>5}, {value > 0!s:>5}, False], dtype=bool)
    """
    return Unary(name, doc, _not_complex, weak=NEVER, f=lambda x: eq(x, value),
                 iub=lambda x: full(shape(x), False, np.dtype(bool)))


isposinf = _is_infinity("isposinf", np.inf)
isneginf = _is_infinity("isneginf", -np.inf)
iscomplex = Unary("iscomplex", """The imaginary part is not 0.

    >>> jnp.iscomplex(jnp.array([1, 2 + 1j]))
    Array([False,  True], dtype=bool)
    """, checked, weak=SCALARS, fciub=lambda x: ne(imag(x), 0))
isreal = Unary("isreal", """The imaginary part is 0.

    >>> jnp.isreal(jnp.array([1, 2 + 1j]))
    Array([ True, False], dtype=bool)
    """, checked, weak=SCALARS, fciub=lambda x: eq(imag(x), 0))
bitwise_count = Unary("bitwise_count", """Number of bits set in |x|, as uint8.

    >>> jnp.bitwise_count(jnp.array([0, 7, -7, 255]))
    Array([0, 3, 3, 8], dtype=uint8)
    """, checked, weak=NEVER,
                      iu=lambda x: convert(e.population_count_p.bind(abs(x)), dtypes.uint8),
                      b=lambda x: convert(x, dtypes.uint8))


# --- other names ----------------------------------------------------------------------------------

absolute, conj, fix, true_divide = (
    abs.named("absolute"), conjugate.named("conj"), trunc.named("fix"), divide.named("true_divide"))
acos, asin, atan = arccos.named("acos"), arcsin.named("asin"), arctan.named("atan")
acosh, asinh, atanh = arccosh.named("acosh"), arcsinh.named("asinh"), arctanh.named("atanh")
atan2 = arctan2.named("atan2")
bitwise_not, bitwise_invert = invert.named("bitwise_not"), invert.named("bitwise_invert")
bitwise_left_shift, bitwise_right_shift = (
    left_shift.named("bitwise_left_shift"), right_shift.named("bitwise_right_shift"))
degrees, radians = rad2deg.named("degrees"), deg2rad.named("radians")

__all__ = [name for name, value in globals().items() if isinstance(value, ufunc)]
