"""Layers, against NumPy."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.example_libraries import stax

KEY = jax.random.key(0)
# a layer, the shape of its input, that of its result, those of its parameters
LAYERS = {
    "Dense": (stax.Dense(3), (-1, 4), (-1, 3), [(4, 3), (3,)]),
    "Conv": (stax.Conv(3, (3, 2), strides=(2, 1), padding="SAME"), (-1, 5, 6, 2), (-1, 3, 6, 3),
             [(3, 2, 2, 3), (1, 1, 1, 3)]),
    "GeneralConv": (stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 3, (3, 2)), (1, 2, 5, 5), (1, 3, 3, 4),
                    [(3, 2, 3, 2), (1, 3, 1, 1)]),
    "ConvTranspose": (stax.ConvTranspose(3, (3, 3), (2, 2), "SAME"), (-1, 5, 5, 2), (-1, 10, 10, 3),
                      [(3, 3, 2, 3), (1, 1, 1, 3)]),
    "Conv1DTranspose": (stax.Conv1DTranspose(3, (3,), (2,)), (1, 5, 2), (1, 11, 3), [(3, 2, 3), (1, 1, 3)]),
    "GeneralConvTranspose": (stax.GeneralConvTranspose(("NCH", "OIH", "NCH"), 3, (2,)), (1, 2, 5), (1, 3, 6),
                             [(3, 2, 2), (1, 3, 1)]),
    "BatchNorm": (stax.BatchNorm(axis=(0, 1), scale=False), (4, 5, 2), (4, 5, 2), [(2,)]),
    "MaxPool": (stax.MaxPool((2, 2)), (-1, 5, 5, 2), (-1, 4, 4, 2), []),
    "SumPool": (stax.SumPool((2, 2), (2, 2), spec="NCHW"), (-1, 2, 5, 5), (-1, 2, 2, 2), []),
    "AvgPool": (stax.AvgPool((2, 2), (2, 2), "SAME"), (-1, 5, 5, 2), (-1, 3, 3, 2), []),
    "Flatten": (stax.Flatten, (-1, 3, 2), (-1, 6), []), "Dropout": (stax.Dropout(0.5), (3, 4), (3, 4), []),
    "FanInSum": (stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Dense(3)), stax.FanInSum),
                 (-1, 2), (-1, 3),
                 [(2, 3), (3,), (2, 3), (3,)]),
    "FanInConcat": (stax.serial(stax.FanOut(2), stax.parallel(stax.Identity, stax.Dense(3)),
                                stax.FanInConcat()), (-1, 2),
                    (-1, 5), [(2, 3), (3,)]),
    "serial": (stax.serial(stax.Dense(2), stax.Dropout(0.5), stax.Dense(4)), (-1, 2), (-1, 4),
               [(2, 2), (2,), (2, 4), (4,)]),
    "shape_dependent": (stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1])), (-1, 2), (-1, 4),
                        [(2, 4), (4,)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_of_layers(name):
    (init, apply), shape, result, params = LAYERS[name]
    found, values = init(KEY, shape)
    assert tuple(found) == result and [x.shape for x in jax.tree.leaves(values)] == params
    x = jnp.ones([2 if n == -1 else n for n in shape])
    assert jax.eval_shape(lambda p, x: apply(p, x, rng=KEY), values, x).shape == tuple(
        2 if n == -1 else n for n in result)


def test_values_of_layers():
    x = np.array([[-2.0, 0.5], [1.0, 3.0]], np.float32)
    W, b = np.ones((2, 3), np.float32) * [1, 2, 3], np.arange(3)
    shape, params = stax.Dense(3)[0](KEY, (-1, 2))
    assert abs(float(params[1].std())) < 0.1
    np.testing.assert_allclose(stax.Dense(3)[1]((W, b), x), x @ W + b)
    plain = {"Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0), "Exp": np.exp,
             "Softplus": lambda x: np.log1p(np.exp(x)),
             "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Identity": lambda x: x,
             "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
             "LeakyRelu": lambda x: np.where(x > 0, x, 0.01 * x),
             "Softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
             "LogSoftmax": lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
             "Selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
             "Gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))}
    layers = [getattr(stax, name) for name in plain]
    found = jax.jit(lambda x: [apply((), x) for _, apply in layers])(x)
    for name, y in zip(plain, found):
        np.testing.assert_allclose(y, plain[name](x), rtol=1e-5, atol=1e-6, err_msg=name)
    images = np.arange(18, dtype=np.float32).reshape(1, 3, 3, 2)
    np.testing.assert_array_equal(stax.AvgPool((2, 2), padding="SAME")[1]((), images)[0, -1, -1],
                                  images[0, -1, -1])
    np.testing.assert_array_equal(stax.MaxPool((3, 3))[1]((), images).ravel(), [16, 17])
    np.testing.assert_array_equal(stax.SumPool((3, 3))[1]((), images).ravel(), [72, 81])
    z = stax.BatchNorm(0)[1]((jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])), x)
    np.testing.assert_allclose(z, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * [3, 4] + [1, 2], rtol=1e-5)


def test_keys_of_layers():
    both = stax.serial(stax.FanOut(2), stax.parallel(stax.Dropout(0.5), stax.Dropout(0.5)))[1]
    a, b = both([(), ((), ())], jnp.ones(100), rng=KEY)
    assert set(a.tolist()) == {0, 2} and a.tolist() != b.tolist()
    assert stax.Dropout(0.5, mode="test")[1]((), 1.0, rng=KEY) == 1
    with pytest.raises(ValueError, match="rng=key"):
        stax.Dropout(0.5)[1]((), jnp.ones(3))
    with pytest.raises(ValueError, match="2 layers"):
        stax.parallel(stax.Relu, stax.Relu)[1](((), ()), [1, 2, 3])
    assert stax.randn is jax.nn.initializers.normal and stax.glorot and stax.logsoftmax(
        jnp.zeros(1)).tolist() == [0]
