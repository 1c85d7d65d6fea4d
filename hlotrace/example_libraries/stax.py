"""Layers of neural networks as pairs of functions: `(init_fun, apply_fun)`.

    init_fun(key, input_shape)           -> (output_shape, params)
    apply_fun(params, inputs, rng=None)  -> outputs

Shapes may have -1 for the size of a batch.  `serial` and `parallel` make a layer of layers.
"""
import functools

from .. import lax, numpy as jnp, random
from ..api.shape_dtype_struct import ShapeDtypeStruct, eval_shape
from ..core.surface.public import export_names
from ..nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from ..nn.initializers import glorot_normal, normal, ones, zeros

__all__ = ["AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
           "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
           "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
           "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu", "glorot",
           "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "parallel", "randn", "relu",
           "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus", "standardize"]

# what weights and biases are unless they are given
_WIDE, _LITTLE, _LEAST = glorot_normal(), normal(), normal(1e-6)

glorot, logsoftmax, randn = glorot_normal, log_softmax, normal


def _plain(shape_of, fun):
    """A layer without parameters: `shape_of` makes the shape of `fun`'s result."""
    return (lambda rng, input_shape: (shape_of(input_shape), ())), (lambda params, inputs, **_: fun(inputs))


def _result_shape(fun, shape, *operands, batch):
    """The shape of `fun(x, *operands)` for x of `shape`, with -1 at `batch` = (axis, axis of the result)."""
    known = [1 if n == -1 else n for n in shape]
    result = list(eval_shape(fun, *[ShapeDtypeStruct(s, "float32") for s in (known, *operands)]).shape)
    if shape[batch[0]] == -1:
        result[batch[1]] = -1
    return tuple(result)


# --- layers ---------------------------------------------------------------------------------------

def Dense(out_dim, W_init=_WIDE, b_init=_LITTLE):
    """x @ W + b, with W of shape (last size of the input, out_dim).

    >>> init, apply = stax.Dense(3)
    >>> shape, (W, b) = init(jax.random.key(0), (-1, 2))
    >>> shape, apply((W, b), jnp.ones((5, 2))).shape
    ((-1, 3), (5, 3))
    """
    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply_fun(params, inputs, **_):
        W, b = params
        return jnp.dot(inputs, W) + b
    return init_fun, apply_fun


def _convolution(convolve, fans, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init):
    """The layer of a convolution; `fans` are the letters of W's input and output axes, to initialize it."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot(*map(rhs_spec.index, fans))

    def apply_W(inputs, W):
        return convolve(inputs, W, strides, padding, dimension_numbers=dimension_numbers)

    def init_fun(rng, input_shape):
        sizes = iter(filter_shape)
        shape = [{"O": out_chan, "I": input_shape[lhs_spec.index("C")]}.get(c) or next(sizes)
                 for c in rhs_spec]
        k1, k2 = random.split(rng)
        W, b = W_init(k1, shape), b_init(k2, [out_chan if c == "C" else 1 for c in out_spec])
        return _result_shape(apply_W, input_shape, shape,
                             batch=(lhs_spec.index("N"), out_spec.index("N"))), (W, b)

    def apply_fun(params, inputs, **_):
        W, b = params
        return apply_W(inputs, W) + b
    return init_fun, apply_fun


def GeneralConv(dimension_numbers, out_chan, filter_shape, strides=None, padding="VALID", W_init=None,
                b_init=_LEAST):
    """A convolution and a bias; `Conv` is this for ("NHWC", "HWIO", "NHWC").

    Args:
        dimension_numbers: what the axes of input, filter and output are, in letters, as
            `lax.conv_general_dilated` takes them.
        filter_shape: a size for each spatial axis.
        padding: "VALID", "SAME" or pairs.

    >>> init, apply = stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (3, 3), padding="SAME")
    >>> shape, params = init(jax.random.key(0), (-1, 2, 8, 8))
    >>> shape, params[0].shape
    ((-1, 4, 8, 8), (4, 2, 3, 3))
    """
    return _convolution(lax.conv_general_dilated, "IO", dimension_numbers, out_chan, filter_shape, strides,
                        padding, W_init, b_init)


def GeneralConvTranspose(dimension_numbers, out_chan, filter_shape, strides=None, padding="VALID",
                         W_init=None, b_init=_LEAST):
    """A transposed convolution and a bias: `strides` make the output larger.

    The arguments are those of `GeneralConv`.

    >>> init, apply = stax.ConvTranspose(4, (3, 3), strides=(2, 2), padding="SAME")
    >>> init(jax.random.key(0), (-1, 8, 8, 2))[0]
    (-1, 16, 16, 4)
    """
    return _convolution(lax.conv_transpose, "OI", dimension_numbers, out_chan, filter_shape, strides, padding,
                        W_init, b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(axis=(0, 1, 2), epsilon=1e-5, center=True, scale=True, beta_init=zeros, gamma_init=ones):
    """Mean 0 and variance 1 over `axis`, then times gamma, plus beta.

    The mean and variance are those of the batch, in use as in training.

    Args:
        axis: an axis or several.
        center: there is a beta, of the other axes' shape.
        scale: there is a gamma, of the other axes' shape.

    >>> init, apply = stax.BatchNorm(axis=0)
    >>> shape, params = init(jax.random.key(0), (-1, 1))
    >>> apply(params, jnp.array([[1.0], [3.0]])).round(2)
    Array([[-1.],
           [ 1.]], dtype=float32)
    """
    axis = (axis,) if jnp.isscalar(axis) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axis)
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params, x, **_):
        beta, gamma = (jnp.expand_dims(p, axis) if len(p) else p for p in params)
        z = standardize(x, axis, epsilon=epsilon)
        return (gamma * z if scale else z) + (beta if center else 0)
    return init_fun, apply_fun


def _pooling(name, what, reduce, start, mean=False):
    """The maker of the layer `name`, which reduces windows to their `what`."""
    def layer(window_shape, strides=None, padding="VALID", spec=None):
        places = ("N" + "W" * len(window_shape) + "C") if spec is None else spec

        def full(sizes):
            sizes = iter(sizes)
            return [1 if c in "NC" else next(sizes) for c in places]
        dims, steps = full(window_shape), full(strides or (1,) * len(window_shape))

        def pool(x):
            found = lax.reduce_window(x, start, reduce, dims, steps, padding)
            if not mean:
                return found
            alone = jnp.ones([1 if c in "NC" else n for c, n in zip(places, x.shape)], x.dtype)
            return found / lax.reduce_window(alone, start, reduce, dims, steps, padding)
        batch = places.index("N")
        return _plain(lambda shape: _result_shape(pool, shape, batch=(batch, batch)), pool)
    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"""The {what} of each window; "SAME" padding does not count.

    Args:
        window_shape: a size for each spatial axis.
        strides: a size for each spatial axis.
        padding: "VALID", "SAME" or pairs.
        spec: what the axes are, in letters, "NHWC" unless given.

    >>> init, apply = stax.{name}((2, 2), strides=(2, 2))
    >>> init(jax.random.key(0), (-1, 8, 8, 3))
    ((-1, 4, 4, 3), ())
    """
    return layer


MaxPool = _pooling("MaxPool", "greatest number", lax.max, -jnp.inf)
SumPool = _pooling("SumPool", "sum", lax.add, 0.0)
AvgPool = _pooling("AvgPool", "mean", lax.add, 0.0, mean=True)


def Dropout(rate, mode="train"):
    """Keep each element with probability `rate`, divided by it, and make the others 0.

    With mode="test" nothing changes.  The apply_fun raises a ValueError without `rng=`, a key.

    >>> init, apply = stax.Dropout(0.5)
    >>> sorted(set(apply((), jnp.ones(100), rng=jax.random.key(0)).tolist()))
    [0.0, 2.0]
    """
    def apply_fun(_params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout: apply_fun needs a key: call it as apply_fun(params, inputs, rng=key), "
                             "with a key from random.key(0) or random.split")
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)
    return (lambda rng, input_shape: (input_shape, ())), apply_fun


def elementwise(fun, **fun_kwargs):
    """The layer of a function that keeps shapes: `Relu` is `elementwise(relu)`.

    >>> init, apply = stax.elementwise(jnp.clip, min=0, max=1)
    >>> apply((), jnp.array([-1.0, 2.0]))
    Array([0., 1.], dtype=float32)
    """
    return _plain(lambda shape: shape, lambda inputs: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)


def _rest(shape):
    size = 1
    for n in shape[1:]:
        size *= n
    return shape[0], size


Flatten = _plain(_rest, lambda inputs: jnp.reshape(inputs, _rest(inputs.shape)))


# --- layers of layers -----------------------------------------------------------------------------

def FanOut(num):
    """The input, `num` times, for `parallel`.

    >>> stax.FanOut(2)[0](jax.random.key(0), (-1, 3))
    ([(-1, 3), (-1, 3)], ())
    """
    return _plain(lambda shape: [shape] * num, lambda inputs: [inputs] * num)


FanInSum = _plain(lambda shapes: shapes[0], sum)


def FanInConcat(axis=-1):
    """What `parallel` gives, joined along `axis`.

    >>> stax.FanInConcat()[0](jax.random.key(0), [(-1, 3), (-1, 2)])
    ((-1, 5), ())
    """
    def joined(shapes):
        at = axis % len(shapes[0])
        return (*shapes[0][:at], sum(shape[at] for shape in shapes), *shapes[0][at + 1:])
    return _plain(joined, lambda inputs: jnp.concatenate(inputs, axis))


def serial(*layers):
    """One layer after another: params are the list of theirs, and each gets a key of its own from `rng`.

    >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    >>> shape, params = init(jax.random.key(0), (-1, 3))
    >>> shape, apply(params, jnp.ones((5, 3))).shape
    ((-1, 2), (5, 2))
    """
    inits, applies = zip(*layers) if layers else ((), ())

    def init_fun(rng, input_shape):
        params = []
        for init in inits:
            rng, key = random.split(rng)
            input_shape, found = init(key, input_shape)
            params.append(found)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        for fun, own, key in zip(applies, _same_number("serial", params, applies), _keys(kwargs, applies),
                                 strict=True):
            inputs = fun(own, inputs, rng=key, **kwargs)
        return inputs
    return init_fun, apply_fun


def parallel(*layers):
    """Layers side by side, each with its input: lists of shapes and inputs in (see `FanOut`), lists out.

    >>> both = stax.parallel(stax.Dense(4), stax.Identity)
    >>> init, apply = stax.serial(stax.FanOut(2), both, stax.FanInConcat())
    >>> init(jax.random.key(0), (-1, 3))[0]
    (-1, 7)
    """
    inits, applies = zip(*layers) if layers else ((), ())

    def init_fun(rng, input_shape):
        keys, shapes = random.split(rng, len(inits)), _same_number("parallel", input_shape, inits)
        found = [init(key, shape) for init, key, shape in zip(inits, keys, shapes)]
        return [shape for shape, _ in found], tuple([params for _, params in found])

    def apply_fun(params, inputs, **kwargs):
        params, inputs = (_same_number("parallel", given, applies) for given in (params, inputs))
        return [fun(own, x, rng=key, **kwargs)
                for fun, own, x, key in zip(applies, params, inputs, _keys(kwargs, applies))]
    return init_fun, apply_fun


def _keys(kwargs, layers):
    """A key for each layer, of `rng`, which is taken out; None without one."""
    rng = kwargs.pop("rng", None)
    return [None] * len(layers) if rng is None else random.split(rng, len(layers))


def _same_number(name, given, layers):
    if not hasattr(given, "__len__") or len(given) != len(layers):
        raise ValueError(f"{name}: there are {len(layers)} layers, and each needs parameters and, in "
                         f"parallel, an input; got {given!r:.80}")
    return given


def shape_dependent(make_layer):
    """The layer that `make_layer` makes of the shape of the input.

    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
    >>> init(jax.random.key(0), (-1, 3))[0]
    (-1, 6)
    """
    return ((lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape)),
            (lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs)))


export_names(globals())
