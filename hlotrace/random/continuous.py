"""Random bits; uniform, normal and Gumbel values, of which the other distributions are made."""
from ..api.composite import composite
from ..core import dtypes
from ..core.config import config
from ..numpy.util import broadcast_to_shape, cast, check_arraylike, joint_shape, shape as shape_of
from ..placement.out_sharding import with_out_sharding
from ..primitives.arrays import elementwise as e
from ..primitives.arrays.bit_formats import bitcast_convert_type_p
from ..primitives.arrays.random import WORDS, random_bits_p, random_split_p
from ..primitives.arrays.shape import squeeze_p
from ..primitives.arrays.slicing import slice_along
from ..primitives.arrays.special import erf_inv_p
from ..primitives.arrays.transcendental import log, log1p_p
from ..primitives.common import canonical_shape, np, scalar
from .keys import one_key

__all__ = ["bits", "gumbel", "normal", "uniform"]


# --- shared with the other distributions ----------------------------------------------------------

def float_dtype(name, dtype, and_complex=False):
    """The canonical dtype of a distribution; None is the default float.  ValueError unless it is floating."""
    if dtype is None:
        return dtypes.canonicalize(dtypes.float64)
    dtype = dtypes.check_user_dtype(dtype, name)
    if not (dtypes.is_float(dtype) or and_complex and dtypes.is_complex(dtype)):
        raise ValueError(f"dtype argument to `{name}` must be a float{' or complex' * and_complex} dtype, "
                         f"got {dtype.name}: integers are drawn by random.randint")
    return dtype


def result_shape(name, shape, *parameters):
    """The requested shape; None is the broadcast shape of the parameters, which must fit in any case."""
    check_arraylike(name, *parameters)
    shapes = [shape_of(p) for p in parameters]
    if shape is None:
        return joint_shape(*shapes)
    shape = canonical_shape(shape, f"{name}: shape")
    if joint_shape(shape, *shapes) != shape:
        raise ValueError(f"{name} parameter shapes must be broadcast-compatible with shape argument, and "
                         "the result of broadcasting the shapes must equal the shape argument, but got "
                         f"shapes {shapes} for shape argument {shape}")
    return shape


def spread(value, dtype, shape):
    """A parameter as an array of `dtype` and `shape`."""
    return broadcast_to_shape(cast(value, dtype), shape)


def halves(key):
    """Two keys from one, inside a program."""
    both = random_split_p.bind(key, shape=(2,))
    return [row(both, i) for i in range(2)]


def row(x, i):
    """`x[i]`, for a static i."""
    return squeeze_p.bind(slice_along(x, 0, i, i + 1), dimensions=(0,))


# --- bits and uniform -----------------------------------------------------------------------------

def bits(key, shape=(), dtype=None, *, out_sharding=None):
    """Uniform random bits as unsigned integers (default: uint32, or uint64 with 64-bit types on).

    Types of less than 8 bits give uint8.

    >>> jax.random.bits(jax.random.key(0), (3,), jnp.uint8)
    Array([167, 146,  40], dtype=uint8)
    """
    dtype = dtypes.canonicalize(dtypes.uint64) if dtype is None else dtypes.check_user_dtype(dtype, "bits")
    if not dtypes.is_unsigned(dtype):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtype.name}")
    words = random_bits_p.bind(one_key("bits", key), bit_width=dtype.itemsize * 8,
                               shape=canonical_shape(shape))
    return with_out_sharding(words, out_sharding, "random.bits")


def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0, *, out_sharding=None):
    """Uniform values in [minval, maxval).

    Args:
        shape: a tuple or an int, known under jit too; bounds broadcast to it.  Where it has one element and
            bounds have one in more dimensions, the result has theirs.
        dtype: a float, the default one unless given.

    >>> jax.random.uniform(jax.random.key(0), (3,)).round(3)
    Array([0.9480001 , 0.97900003, 0.33200002], dtype=float32)
    >>> jax.random.uniform(jax.random.key(0), (2,), minval=-5, maxval=5).round(3)
    Array([4.477    , 4.7860003], dtype=float32)
    """
    key, dtype = one_key("uniform", key), float_dtype("uniform", dtype)
    check_arraylike("uniform", minval, maxval)
    shape = canonical_shape(shape, "uniform: shape")
    bounds = joint_shape(shape_of(minval), shape_of(maxval))
    if {*shape, *bounds} <= {1} and len(bounds) > len(shape):
        shape = bounds
    out = uniform_values(key, minval, maxval, shape=result_shape("uniform", shape, minval, maxval),
                         dtype=dtype)
    return with_out_sharding(out, out_sharding, "random.uniform")


@composite(static=("shape", "dtype"), name="uniform")
def uniform_values(key, minval, maxval, *, shape, dtype):
    """The top bits of random words become the mantissa of a float in [1, 2)."""
    low, high = (spread(v, dtype, shape) for v in (minval, maxval))
    width, mantissa = dtype.itemsize * 8, dtypes.finfo(dtype).nmant
    source = 8 if mantissa < 8 else width
    word = e.convert(random_bits_p.bind(key, bit_width=source, shape=shape), WORDS[width])
    one = np.ones((), dtype).view(WORDS[width])
    word = e.or_p.bind(e.shift_right_logical_p.bind(word, scalar(source - mantissa, WORDS[width])), one)
    unit = e.sub(bitcast_convert_type_p.bind(word, new_dtype=dtype), 1)
    return e.maximum(low, e.add(e.mul(unit, e.sub(high, low)), low))


# --- normal ---------------------------------------------------------------------------------------

def normal(key, shape=(), dtype=None, *, out_sharding=None):
    """Standard normal values; complex ones have variance 1 in total.

    >>> x = 10 + 2 * jax.random.normal(jax.random.key(0), (1000,))
    >>> x.mean().round(0), x.std().round(0)
    (Array(10., dtype=float32), Array(2., dtype=float32))
    """
    key, dtype = one_key("normal", key), float_dtype("normal", dtype, and_complex=True)
    return with_out_sharding(normal_values(key, shape=canonical_shape(shape), dtype=dtype), out_sharding,
                             "random.normal")


@composite(static=("shape", "dtype"), name="normal")
def normal_values(key, *, shape, dtype):
    if dtypes.is_complex(dtype):
        real, imaginary = (normal_values(k, shape=shape, dtype=dtypes.real_of(dtype)) for k in halves(key))
        return e.div(e.complex_p.bind(real, imaginary), np.sqrt(2).astype(dtype))
    return e.mul(sqrt2(dtype), erf_inv_p.bind(uniform_values(key, above_minus_one(dtype), 1.0, shape=shape,
                                                      dtype=dtype)))


def sqrt2(dtype):
    return scalar(np.sqrt(2), dtype)


def above_minus_one(dtype):
    return np.nextafter(np.array(-1, dtype), np.array(0, dtype))


# --- exponential, Gumbel --------------------------------------------------------------------------

def exponential_of(u):
    """Exponential values from uniform ones."""
    return e.neg(log1p_p.bind(e.neg(u)))


def tiny(dtype):
    return dtypes.finfo(dtype).tiny


def gumbel(key, shape=(), dtype=None, mode=None, *, out_sharding=None):
    """Values with distribution function exp(-exp(-x)); mode "high" resolves the upper tail more finely.

    An index of `logits + gumbel` has the greatest value with probability softmax(logits): see `categorical`.

    >>> x = jax.random.gumbel(jax.random.key(0), (1000,))
    >>> x.mean().round(1)
    Array(0.6, dtype=float32)
    """
    key, dtype = one_key("gumbel", key), float_dtype("gumbel", dtype)
    out = gumbel_values(key, shape=canonical_shape(shape), dtype=dtype, high=is_high("gumbel", mode))
    return with_out_sharding(out, out_sharding, "random.gumbel")


def is_high(name, mode):
    """Is this the mode of twice as many bits?  ValueError for an unknown one."""
    if mode not in (None, "low", "high"):
        raise ValueError(f"Must provide valid mode for {name} got: {mode}, expected 'high' or 'low'")
    return mode == "high" or mode is None and config.jax_high_dynamic_range_gumbel


@composite(static=("shape", "dtype", "high"), name="gumbel")
def gumbel_values(key, *, shape, dtype, high):
    if not high:
        u = uniform_values(key, float(tiny(dtype)), 1.0, shape=shape, dtype=dtype)
        return e.neg(log(e.neg(log(u))))
    coarse, fine = two_scales(key, shape, dtype)
    u = e.select(e.ge(coarse, 0.5), coarse, e.add(e.add(coarse, fine), float(tiny(dtype))))
    return e.neg(log(exponential_of(u)))


def two_scales(key, shape, dtype):
    """Uniform values, and others smaller by the spacing of floats: together, twice the bits."""
    both = uniform_values(key, 0.0, 1.0, shape=(2, *shape), dtype=dtype)
    return row(both, 0), e.mul(row(both, 1), float(dtypes.finfo(dtype).eps))
