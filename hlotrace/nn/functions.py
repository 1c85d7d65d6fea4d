"""Activation functions; softmax, logsumexp and standardization along axes."""
import warnings

from .. import lax, numpy as jnp
from ..api.composite import composite
from ..api.custom_derivatives import custom_jvp
from ..core import dtypes, source_info
from ..core.avals import aval_of
from ..core.config import config
from ..core.errors import ShapeError
from ..numpy.reductions.reductions import largest_number, split_axes, wider
from ..numpy.util import check_arraylike, promote_args_inexact, promote_dtypes_inexact, promotes
from ..placement.out_sharding import over_auto_axes, with_out_sharding
from ..primitives.common import canonical_axes, canonical_axis, np, static_int


def _float(name, x):
    check_arraylike(name, x)
    return jnp.asarray(promote_dtypes_inexact(x)[0])


def _array(name, x):
    check_arraylike(name, x)
    return jnp.asarray(x)       # NumPy's own operators would promote x by NumPy's rules


# --- activation functions -------------------------------------------------------------------------

def identity(x):
    """`x` as an array.

    >>> nn.identity(np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    return _array("identity", x)


def _relu(x):
    return jnp.maximum(x, 0)


_relu.__name__ = "relu"
_relu = custom_jvp(_relu)


@_relu.defjvp
def _relu_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    return _relu(x), jnp.where(x > 0, tangent, 0)


@composite
def relu(x):
    """max(x, 0); the derivative at 0 and at NaN is 0.

    >>> nn.relu(jnp.array([-2., 0., 3.])), jax.vmap(jax.grad(nn.relu))(jnp.array([-2., 0., 3.]))
    (Array([0., 0., 3.], dtype=float32), Array([0., 0., 1.], dtype=float32))
    """
    return _relu(_array("relu", x))


@composite
def relu6(x):
    """min(max(x, 0), 6); the derivative at 0 and 6 is 0.

    >>> nn.relu6(jnp.array([-2., 3., 9.]))
    Array([0., 3., 6.], dtype=float32)
    """
    x = relu(x)
    return jnp.where(x >= 6, 6.0, x)


@composite
def sigmoid(x):
    """1 / (1 + exp(-x)).

    Integers become the default float; floats keep their dtype.

    >>> nn.sigmoid(jnp.array([-100., 0., 1.])).round(4)
    Array([0.        , 0.5       , 0.73109996], dtype=float32)
    """
    return lax.logistic(_float("sigmoid", x))


@composite
def softplus(x):
    """log(1 + exp(x)).

    A smooth `relu`, without overflow.

    >>> nn.softplus(jnp.array([-100., 0., 100.]))
    Array([  0.       ,   0.6931472, 100.       ], dtype=float32)
    """
    return jnp.logaddexp(x, 0)


@composite
@promotes()
def soft_sign(x):
    """x / (1 + |x|).

    >>> nn.soft_sign(jnp.array([-1., 0., 3.]))
    Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    x = _array("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@composite
def log_sigmoid(x):
    """log(sigmoid(x)), accurate for large negative x.

    >>> nn.log_sigmoid(jnp.array([-100., 0.])), jnp.log(nn.sigmoid(-100.))
    (Array([-100.       ,   -0.6931472], dtype=float32), Array(-inf, dtype=float32, weak_type=True))
    """
    return -softplus(-_float("log_sigmoid", x))


@composite(equation=True)
def silu(x):
    """x * sigmoid(x), also called swish.

    >>> nn.silu(jnp.array([-100., 0., 1.]))
    Array([-0.       ,  0.       ,  0.7310586], dtype=float32)
    """
    x = _float("silu", x)
    return x * lax.logistic(x)


swish = silu


@composite
def mish(x):
    """x * tanh(softplus(x)).

    >>> nn.mish(jnp.array([-1., 0., 1.])).round(4)
    Array([-0.30339998,  0.        ,  0.86509997], dtype=float32)
    """
    x = _array("mish", x)
    return x * jnp.tanh(softplus(x))


@composite(static=("approximate",))
def gelu(x, approximate=True):
    """x times the normal distribution function, or with `approximate` the tanh formula close to it.

    Source: D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", https://arxiv.org/abs/1606.08415.

    >>> nn.gelu(jnp.array([-1., 0., 1.])).round(4)
    Array([-0.15879999,  0.        ,  0.8412    ], dtype=float32)
    >>> nn.gelu(jnp.array([-1., 1.]), approximate=False).round(4)
    Array([-0.15869999,  0.84129995], dtype=float32)
    """
    x = _float("gelu", x)
    x = jnp.asarray(x, aval_of(x).dtype)       # the result does not give way, as the constants do not
    if approximate:
        # the tanh is 1 long before the cube's slope overflows, as it does in float16 from 148 on
        cube = (jnp.clip(x, -16, 16) if x.dtype == jnp.float16 else x) ** 3
        return x * (0.5 * (1 + jnp.tanh(np.sqrt(2 / np.pi).item() * (x + 0.044715 * cube))))
    return 0.5 * x * lax.erfc(-x * np.sqrt(0.5).item())


def _elu(x, alpha):
    """x where positive, alpha * expm1(x) elsewhere, without overflow where that is not taken."""
    positive = x > 0
    return jnp.where(positive, x, alpha * jnp.expm1(jnp.where(positive, 0.0, x)))


@composite
def elu(x, alpha=1.0):
    """x where positive, alpha * (exp(x) - 1) elsewhere.

    >>> nn.elu(jnp.array([-1., 0., 2.])).round(4), nn.elu(-1., alpha=0.5)
    (Array([-0.6321,  0.    ,  2.    ], dtype=float32), Array(-0.31606027, dtype=float32, weak_type=True))
    """
    check_arraylike("elu", alpha)
    return _elu(_array("elu", x), alpha)


@composite
def celu(x, alpha=1.0):
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere.

    >>> nn.celu(jnp.array([-1., 0., 2.]), alpha=0.5).round(4)
    Array([-0.4323,  0.    ,  2.    ], dtype=float32)
    """
    check_arraylike("celu", alpha)
    x = _array("celu", x)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@composite
def selu(x):
    """The self-normalizing elu.  Source of the constants: https://arxiv.org/abs/1706.02515.

    >>> nn.selu(jnp.array([-1., 0., 1.])).round(4)
    Array([-1.1113,  0.    ,  1.0507], dtype=float32)
    """
    x = _array("selu", x)
    return 1.0507009873554804934193349852946 * _elu(x, 1.6732632423543772848170429916717)


@composite
def leaky_relu(x, negative_slope=1e-2):
    """x where not negative, negative_slope * x elsewhere.

    >>> nn.leaky_relu(jnp.array([-100., 3.])), nn.leaky_relu(-10., 0.5)
    (Array([-1.,  3.], dtype=float32), Array(-5., dtype=float32, weak_type=True))
    """
    check_arraylike("leaky_relu", negative_slope)
    x = _array("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@composite
def hard_tanh(x):
    """x clipped to [-1, 1]; the derivative at the ends is 1.

    >>> nn.hard_tanh(jnp.array([-2., 0.5, 3.]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = _array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@composite
def hard_sigmoid(x):
    """relu6(x + 3) / 6.

    >>> nn.hard_sigmoid(jnp.array([-4., 0., 1.5, 4.]))
    Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return relu6(_array("hard_sigmoid", x) + 3.0) / 6


@composite
def hard_silu(x):
    """x * hard_sigmoid(x), also called hard_swish.

    >>> nn.hard_silu(jnp.array([-4., 0., 1.5, 4.]))
    Array([-0.   ,  0.   ,  1.125,  4.   ], dtype=float32)
    """
    x = _array("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@composite
def squareplus(x, b=4):
    """(x + sqrt(x**2 + b)) / 2, a softplus without exponentials.  Source: https://arxiv.org/abs/2112.11687.

    >>> nn.squareplus(jnp.array([-100., 0., 3.])).round(4)
    Array([0.01  , 1.    , 3.3028], dtype=float32)
    """
    check_arraylike("squareplus", x, b)
    if not all(dtypes.is_float(aval_of(v).dtype) for v in (x, jnp.square(x) + b)):
        return (x + jnp.sqrt(jnp.square(x) + b)) / 2
    infinite, left = jnp.isinf(x), jnp.less(x, 0)
    root = jnp.sqrt(jnp.square(jnp.where(infinite, 0, x)) + b)
    root = jnp.where(infinite | jnp.isinf(root), jnp.abs(x), root)
    # on the left not the difference of nearly equal numbers
    return jnp.where(left, b / jnp.where(left, root - x, 1) / 2, (x + root) / 2)


@composite
def sparse_plus(x):
    """0 up to -1, x from 1 on, (x + 1)**2 / 4 between.

    >>> nn.sparse_plus(jnp.array([-2., 0., 2.]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = _array("sparse_plus", x)
    return jnp.where(x <= -1, 0.0, jnp.where(x >= 1, x, jnp.square(jnp.where(abs(x) >= 1, 0.0, x) + 1.0) / 4))


@composite
def sparse_sigmoid(x):
    """(x + 1) / 2 clipped to [0, 1], the derivative of sparse_plus.

    >>> nn.sparse_sigmoid(jnp.array([-2., 0., 2.])), jax.grad(nn.sparse_plus)(0.)
    (Array([0. , 0.5, 1. ], dtype=float32), Array(0.5, dtype=float32, weak_type=True))
    """
    return 0.5 * jnp.clip(_array("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


@composite
def log1mexp(x):
    """log(1 - exp(-x)) for x >= 0, by the formula that is accurate on each side of log(2).

    Source: M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.

    >>> nn.log1mexp(jnp.array([0., 1e-10, 100.]))
    Array([     -inf, -23.02585,  -0.     ], dtype=float32)
    """
    return _log1mexp(_float("log1mexp", x))


@custom_jvp
def _log1mexp(x):
    small = x < np.log(2).item()
    return jnp.where(small, jnp.log(-jnp.expm1(-jnp.where(small, x, 1))),
                     jnp.log1p(-jnp.exp(-jnp.where(small, 1, x))))


@_log1mexp.defjvp
def _log1mexp_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    small = x < 1       # 1 / (exp(x) - 1), of a large x so that exp(x) is never infinite
    rest = jnp.exp(-jnp.where(small, 1, x))
    return _log1mexp(x), tangent * jnp.where(small, 1 / jnp.expm1(jnp.where(small, x, 1)), rest / (1 - rest))


@composite(static=("axis",))
def glu(x, axis=-1):
    """The first half of `x` along `axis` times the sigmoid of the second half.

    The size of the axis must be even.

    >>> nn.glu(jnp.array([[1., 2., 0., 100.]]))
    Array([[0.5, 2. ]], dtype=float32)
    """
    x = _float("glu", x)
    axis = canonical_axis(axis, x.ndim)
    if x.shape[axis] % 2:
        raise AssertionError(f"axis size must be divisible by 2: glu got axis {axis} of shape {x.shape}")
    first, second = jnp.split(x, 2, axis)
    return first * lax.logistic(second)


tanh = jnp.tanh


# --- along axes -----------------------------------------------------------------------------------

def _masked(x, where):
    """`x` with -inf, which exp takes to 0, where `where` is False."""
    return x if where is None else jnp.where(where, x, -jnp.inf)


@composite(static=("axis", "keepdims", "return_sign"))
@promotes("a", "b")
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """log(sum(b * exp(a))) along `axis`, without overflow; -inf for no elements.

    Args:
        axis: an int, a tuple, or None for all axes.
        b: weights, 1 by default.
        keepdims: axes stay at size 1.
        return_sign: return the pair (log of the absolute value, sign); without it a negative sum gives nan.
        where: which elements count.

    >>> x = jnp.array([1000., 1000.])
    >>> nn.logsumexp(x) - 1000, jnp.log(jnp.exp(x).sum())
    (Array(0.69317627, dtype=float32), Array(inf, dtype=float32))
    >>> nn.logsumexp(jnp.array([0., 0.]), b=jnp.array([1., -3.]), return_sign=True)
    (Array(0.6931472, dtype=float32), Array(-1., dtype=float32))
    """
    if b is None:
        a = _masked(_float("logsumexp", a), where)
    else:
        a, b = promote_args_inexact("logsumexp", a, b)
        a = _masked(jnp.where(b != 0, a, -jnp.inf), where)
    shift = largest_number(jnp.real(a), axis)
    shift = lax.stop_gradient(jnp.where(jnp.isfinite(shift), shift, 0))
    terms = jnp.exp(a - shift)
    total = jnp.sum(terms if b is None else terms * b, axis, keepdims=keepdims)
    shift = shift if keepdims else jnp.squeeze(shift, split_axes(axis, shift.ndim)[0])
    if return_sign:
        return jnp.log(jnp.abs(total)) + shift, jnp.sign(total)
    return jnp.log(total) + shift


@composite(static=("axis", "keepdims"))
@promotes()
def logmeanexp(x, axis=None, where=None, keepdims=False):
    """log(mean(exp(x))) along `axis` without overflow.

    >>> nn.logmeanexp(jnp.array([[1000., 1000.], [0., 0.]]), axis=1)
    Array([1000.,    0.], dtype=float32)
    """
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    if where is None:
        count = np.prod([aval_of(x).shape[i] for i in canonical_axes(axis, aval_of(x).ndim)])
    else:
        count = jnp.sum(jnp.broadcast_to(where, aval_of(x).shape), axis, keepdims=keepdims, dtype=total.dtype)
    return total - jnp.log(jnp.asarray(count, total.dtype))


def _exponentials(x, axis):
    """`x` from its maximum down, exp of that, and the sum of these along `axis`."""
    shifted = x - lax.stop_gradient(largest_number(x, axis))
    terms = jnp.exp(shifted)
    return shifted, terms, jnp.sum(terms, axis, keepdims=True)


def _softmax_terms(x, axis):
    _, terms, total = _exponentials(x, axis)
    return terms / total


_softmax = custom_jvp(_softmax_terms, nondiff_argnums=(1,))


@_softmax.defjvp
def _softmax_jvp(axis, primals, tangents):
    # needs the result alone, where differentiating the formula would keep exp(x) as well; transposed, it is
    # out * (ct - sum(out * ct)), whose inner product XLA does not write out
    (x,), (tangent,) = primals, tangents
    out = _softmax(x, axis)
    terms = out * tangent
    return out, terms - out * jnp.sum(terms, axis, keepdims=True)


@composite(static=("axis",))
def softmax(x, axis=-1, where=None):
    """exp(x) / sum(exp(x)) along `axis` (int, tuple or None for all); 0 where `where` is False.

    >>> x = jnp.array([[0., 0.], [1000., 999.]])
    >>> nn.softmax(x), nn.softmax(x, axis=0), nn.softmax(x, where=jnp.array([True, False]))
    (Array([[0.5       , 0.5       ],
           [0.7310586 , 0.26894143]], dtype=float32), Array([[0., 0.],
           [1., 1.]], dtype=float32), Array([[1., 0.],
           [1., 0.]], dtype=float32))
    """
    x = _masked(_float("softmax", x), where)
    split_axes(axis, x.ndim)
    out = (_softmax if config.jax_softmax_custom_jvp else _softmax_terms)(x, axis)
    return out if where is None else jnp.where(where, out, 0)


def _log_softmax_terms(x, axis):
    shifted, _, total = _exponentials(x, axis)
    return shifted - jnp.log(total)


_log_softmax = custom_jvp(_log_softmax_terms, nondiff_argnums=(1,))


@_log_softmax.defjvp
def _log_softmax_jvp(axis, primals, tangents):
    # by the softmax, which XLA shares with one of the same x, where the formula would keep exp(x) beside it;
    # a product, as XLA fuses a quotient's second derivative into sums over `axis`
    (x,), (tangent,) = primals, tangents
    shifted, terms, total = _exponentials(x, axis)
    weights = terms * (1 / total)
    return shifted - jnp.log(total), tangent - jnp.sum(weights * tangent, axis, keepdims=True)


@composite(static=("axis",))
def log_softmax(x, axis=-1, where=None):
    """log(softmax(x)) along `axis`; -inf where `where` is False.

    >>> nn.log_softmax(jnp.array([1000., 999.]))
    Array([-0.31326163, -1.3132616 ], dtype=float32)
    """
    x = _masked(_float("log_softmax", x), where)
    split_axes(axis, x.ndim)
    return _masked((_log_softmax if config.jax_softmax_custom_jvp else _log_softmax_terms)(x, axis), where)


@composite(static=("axis", "algorithm"))
def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm="fast"):
    """(x - mean) / sqrt(variance + epsilon) along `axis`.

    Args:
        axis: an int, a tuple, or None for all axes.
        mean: computed where it is not given.
        variance: computed where it is not given.
        where: which elements count for mean and variance.
        algorithm: "fast" takes mean(x**2) - mean**2 as the variance, "stable" mean((x - mean)**2).

    >>> nn.standardize(jnp.array([[1., 3., 5.]])).round(2)
    Array([[-1.22,  0.  ,  1.22]], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    x = _float("standardize", x)
    wide = x.astype(wider(x.dtype))     # squares of float16 overflow from 256 on
    center = jnp.mean(wide, axis, keepdims=True, where=where) if mean is None else mean
    if variance is None and algorithm == "stable":
        spread = jnp.mean(jnp.square(wide - center), axis, keepdims=True, where=where)
    elif variance is None:
        spread = jnp.mean(jnp.square(wide), axis, keepdims=True, where=where) - jnp.square(center)
        spread = jnp.clip(spread, 0)     # rounding may take it below zero
    else:
        spread = variance
    scale = lax.rsqrt(spread + epsilon)
    return ((x - (center.astype(x.dtype) if mean is None else mean))
            * (scale.astype(x.dtype) if variance is None else scale))


def one_hot(x, num_classes, *, dtype=None, axis=-1, out_sharding=None):
    """1 at the index given by `x` along a new axis, 0 elsewhere; all 0 for an index outside.

    Args:
        num_classes: the size of the new axis.
        dtype: that of the result, the default float by default.
        axis: where the new axis is in the result.

    >>> nn.one_hot(jnp.array([2, 0, 9]), 3)
    Array([[0., 0., 1.],
           [1., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    >>> nn.one_hot(jnp.array([0, 1]), 3, dtype=bool, axis=0)
    Array([[ True, False],
           [False,  True],
           [False, False]], dtype=bool)
    """
    dtype_of_x = aval_of(jnp.asarray(x)).dtype
    if not dtypes.is_integer(dtype_of_x):
        warnings.warn(f"nn.one_hot of {dtype_of_x} is deprecated: indices are integers; convert them with "
                      ".astype(int)", DeprecationWarning, stacklevel=source_info.user_stacklevel())
    if out_sharding is not None:
        x, = over_auto_axes(x)
    return with_out_sharding(_one_hot(x, num_classes, dtype, axis), out_sharding, "nn.one_hot")


@composite(static=("num_classes", "dtype", "axis"))
def _one_hot(x, num_classes, dtype, axis):
    dtype = dtypes.canonicalize(np.float64) if dtype is None else dtypes.check_user_dtype(dtype, "one_hot")
    x = jnp.asarray(x)
    num_classes = static_int(num_classes, "num_classes")
    if num_classes < 0:
        raise ShapeError(f"nn.one_hot: num_classes must not be negative, got {num_classes}")
    axis = canonical_axis(axis, x.ndim + 1)
    shape = [1] * (x.ndim + 1)
    shape[axis] = num_classes
    classes = jnp.arange(num_classes, dtype=x.dtype).reshape(shape)
    return (jnp.expand_dims(x, axis) == classes).astype(dtype)


__all__ = ["celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
           "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
           "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
           "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh"]
