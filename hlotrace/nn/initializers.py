"""Initializers of weights: functions of (key, shape, dtype) to arrays."""
import math
from typing import Any, Protocol

from .. import numpy as jnp, random
from ..core import dtypes
from ..core.errors import check_choice, not_one_of
from ..core.surface.boundary import filtered
from ..core.surface.public import export_names
from ..numpy.util import at_least_float32
from ..placement.out_sharding import with_out_sharding
from ..primitives.common import canonical_axes, np


class Initializer(Protocol):
    """A function of a PRNG key, a shape and a dtype that makes an array."""

    def __call__(self, key, shape, dtype=None, out_sharding=None) -> Any:
        raise NotImplementedError


def _dtype(dtype):
    if dtype is None:
        return dtypes.canonicalize(np.float64)
    return dtypes.check_user_dtype(dtype, "an initializer")


def _initializer(name, dtype, make):
    """The initializer `name` by `make(key, shape, dtype)`, in `dtype` unless a call gives another."""
    @filtered
    def init(key, shape, dtype=dtype, out_sharding=None):
        return with_out_sharding(make(key, shape, _dtype(dtype)), out_sharding, f"initializers.{name}")
    return init


def zeros(key, shape, dtype=None, out_sharding=None):
    """All zeros; the key is not used.

    >>> nn.initializers.zeros(jax.random.key(0), (2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return with_out_sharding(jnp.zeros(shape, _dtype(dtype)), out_sharding, "initializers.zeros")


def ones(key, shape, dtype=None, out_sharding=None):
    """All ones; the key is not used.

    >>> nn.initializers.ones(jax.random.key(0), (2,), jnp.bfloat16)
    Array([1, 1], dtype=bfloat16)
    """
    return with_out_sharding(jnp.ones(shape, _dtype(dtype)), out_sharding, "initializers.ones")


def constant(value, dtype=None):
    """An initializer that fills with `value`, which broadcasts to the shape.

    >>> nn.initializers.constant(jnp.array([1, 2]))(jax.random.key(0), (2, 2))
    Array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    return _initializer("constant", dtype, lambda key, shape, dtype: jnp.full(shape, value, dtype))


def uniform(scale=1e-2, dtype=None):
    """An initializer that draws from [0, scale).

    >>> x = nn.initializers.uniform(2.)(jax.random.key(0), (1000,))
    >>> x.min() >= 0, x.max() < 2, x.mean().round(1)
    (Array(True, dtype=bool), Array(True, dtype=bool), Array(1., dtype=float32))
    """
    return _initializer("uniform", dtype, lambda key, shape, dtype: random.uniform(
        key, shape, dtype) * jnp.asarray(scale, dtype))


def normal(stddev=1e-2, dtype=None):
    """An initializer that draws from a normal distribution of standard deviation `stddev`.

    >>> x = nn.initializers.normal(0.1)(jax.random.key(0), (1000,))
    >>> jnp.allclose(x.std(), 0.1, rtol=0.1), x.dtype
    (Array(True, dtype=bool), dtype('float32'))
    """
    return _initializer("normal", dtype, lambda key, shape, dtype: random.normal(
        key, shape, dtype) * jnp.asarray(stddev, dtype))


def truncated_normal(stddev=1e-2, dtype=None, lower=-2.0, upper=2.0):
    """An initializer that draws from `stddev` times the normal distribution truncated to [lower, upper].

    Its deviation is smaller than `stddev`, 0.88 of it between the default bounds.

    >>> x = nn.initializers.truncated_normal(1.)(jax.random.key(0), (1000,))
    >>> jnp.abs(x).max() <= 2, x.std() < 0.95
    (Array(True, dtype=bool), Array(True, dtype=bool))
    """
    return _initializer("truncated_normal", dtype, lambda key, shape, dtype: random.truncated_normal(
        key, lower, upper, shape, dtype) * jnp.asarray(stddev, dtype))


def _fans(shape, in_axis, out_axis, batch_axis):
    """(fan in, fan out): products of the sizes of the axes, each times the receptive field."""
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError(f"Can't compute input and output sizes of a {len(shape)}-dimensional weights "
                         f"tensor, of shape {tuple(shape)}, with default in_axis: it needs at least 2 axes, "
                         "or in_axis and out_axis. A bias is made by zeros or normal.")
    sizes = [math.prod(shape[i] for i in canonical_axes(axes, len(shape)))
             for axes in (in_axis, out_axis, batch_axis)]
    receptive = math.prod(shape) / math.prod(sizes)
    return sizes[0] * receptive, sizes[1] * receptive


def _disk(key, shape, dtype, squared_radius):
    """Complex numbers of uniform angle, whose squared radius is a function of a uniform variate."""
    radius_key, angle_key = random.split(key)
    real = dtypes.real_of(dtypes.as_dtype(dtype))
    radius = jnp.sqrt(squared_radius(random.uniform(radius_key, shape, real)))
    angle = 2 * np.pi * random.uniform(angle_key, shape, real)
    return (radius * jnp.exp(1j * angle)).astype(dtype)


def _complex_uniform(key, shape, dtype):
    return _disk(key, shape, dtype, lambda u: 2 * u)        # of variance 1


def _complex_truncated_normal(key, upper, shape, dtype):
    # the logarithm is that of complex numbers, for the sake of JAX's bits
    return _disk(key, shape, dtype, lambda u: -jnp.log(1 - ((1 - math.exp(-upper ** 2)) * u).astype(dtype)))


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
    """An initializer whose variance is `scale` / n, n the fan named by `mode`.

    Axes in none of in_axis, out_axis, batch_axis are the receptive field.

    Args:
        mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
        distribution: "truncated_normal" (at two standard deviations), "normal" or "uniform".
        dtype: that of the weights, unless the call gives one.

    >>> init = nn.initializers.variance_scaling(2., "fan_in", "normal")
    >>> (init(jax.random.key(0), (500, 200)).var() * 500).round(1)
    Array(2., dtype=float32)
    """
    def make(key, shape, dtype):
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
                "fan_geo_avg": math.sqrt(fan_in * fan_out)}
        check_choice("invalid mode for variance scaling initializer: mode", mode, fans)
        variance = jnp.asarray(scale / fans[mode], dtype)
        deviation = jnp.sqrt(variance)
        is_real = not dtypes.is_complex(dtype)
        # a truncated distribution has less variance than the whole: the divisors restore it
        if distribution == "truncated_normal" and is_real:
            draw = random.truncated_normal(key, -2, 2, shape, dtype)
            deviation = deviation / jnp.asarray(0.87962566103423978, dtype)
        elif distribution == "truncated_normal":
            draw = _complex_truncated_normal(key, 2, shape, dtype)
            deviation = deviation / jnp.asarray(0.95311164380491208, dtype)
        elif distribution == "normal":
            draw = random.normal(key, shape, dtype)
        elif distribution == "uniform" and is_real:
            draw, deviation = random.uniform(key, shape, dtype, -1), jnp.sqrt(3 * variance)
        elif distribution == "uniform":
            draw = _complex_uniform(key, shape, dtype)
        else:
            raise not_one_of("invalid distribution for variance scaling initializer: distribution",
                             distribution, ("truncated_normal", "normal", "uniform"))
        return draw * deviation
    return _initializer("variance_scaling", dtype, make)


def _scaling(name, scale, mode, distribution, source):
    def make(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""An initializer: variance_scaling({scale}, {mode!r}, {distribution!r}).

    Source: {source}.

    >>> x = nn.initializers.{name}()(jax.random.key(0), (300, 200))
    >>> (x.var() * {"300" if mode == "fan_in" else "(300 + 200) / 2"}).round(1)
    Array({scale:.0f}., dtype=float32)
    """
    return make


_GLOROT = "X. Glorot, Y. Bengio, AISTATS 2010"
_LECUN = "Y. LeCun et al., \"Efficient BackProp\", 1998"
_HE = "K. He et al., ICCV 2015"
glorot_uniform = xavier_uniform = _scaling("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = xavier_normal = _scaling("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _scaling("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _scaling("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = kaiming_uniform = _scaling("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = kaiming_normal = _scaling("he_normal", 2.0, "fan_in", "truncated_normal", _HE)


def _orthonormal(a):
    """The orthogonal factor of tall `a` whose triangular factor has a positive diagonal."""
    q, r = jnp.linalg.qr(a.astype(at_least_float32(a.dtype)))
    return (q * jnp.sign(jnp.diagonal(r))[None]).astype(a.dtype)


def orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """An initializer of uniformly distributed matrices with orthonormal columns, or rows if there are fewer.

    The columns are along `column_axis`, all other axes together are the rows.

    >>> q = nn.initializers.orthogonal()(jax.random.key(0), (5, 3))
    >>> jnp.allclose(q.T @ q, jnp.eye(3), atol=1e-5)
    Array(True, dtype=bool)
    """
    def make(key, shape, dtype):
        if len(shape) < 2:
            raise ValueError(f"orthogonal initializer requires at least a 2D shape, got {tuple(shape)}; for "
                             "a vector use normal or zeros")
        axis = canonical_axes(column_axis, len(shape))[0]
        columns = shape[axis]
        others = [n for i, n in enumerate(shape) if i != axis]
        rows = math.prod(others)
        q = _orthonormal(random.normal(key, (max(columns, rows), min(columns, rows)), dtype))
        q = (q if columns > rows else q.T).reshape(columns, *others)
        return jnp.asarray(scale, dtype) * jnp.moveaxis(q, 0, axis)
    return _initializer("orthogonal", dtype, make)


def delta_orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """An initializer of convolution kernels (*spatial, in, out), orthogonal at the centre and 0 elsewhere.

    Source: L. Xiao et al., https://arxiv.org/abs/1806.05393.

    >>> kernel = nn.initializers.delta_orthogonal()(jax.random.key(0), (3, 3, 4, 4))
    >>> jnp.abs(kernel).sum((2, 3)) > 0
    Array([[False, False, False],
           [False,  True, False],
           [False, False, False]], dtype=bool)
    """
    def make(key, shape, dtype):
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D, or 5D shape, got "
                             f"{tuple(shape)}")
        if shape[-1] < shape[-2]:
            raise ValueError(f"`fan_in` must be less or equal than `fan_out`, got shape {tuple(shape)}")
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, dtype).at[centre].set(matrix)
    return _initializer("delta_orthogonal", dtype, make)


__all__ = [name for name, value in globals().items()
           if not name.startswith("_") and getattr(value, "__module__", None) == __name__]
export_names(globals())
