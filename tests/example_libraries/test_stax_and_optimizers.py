"""Layers and optimizers, against NumPy."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.example_libraries import optimizers, stax

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
    "FanInSum": (stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Dense(3)), stax.FanInSum), (-1, 2), (-1, 3),
                 [(2, 3), (3,), (2, 3), (3,)]),
    "FanInConcat": (stax.serial(stax.FanOut(2), stax.parallel(stax.Identity, stax.Dense(3)), stax.FanInConcat()), (-1, 2),
                    (-1, 5), [(2, 3), (3,)]),
    "serial": (stax.serial(stax.Dense(2), stax.Dropout(0.5), stax.Dense(4)), (-1, 2), (-1, 4), [(2, 2), (2,), (2, 4), (4,)]),
    "shape_dependent": (stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1])), (-1, 2), (-1, 4), [(2, 4), (4,)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_of_layers(name):
    (init, apply), shape, result, params = LAYERS[name]
    found, values = init(KEY, shape)
    assert tuple(found) == result and [x.shape for x in jax.tree.leaves(values)] == params
    x = jnp.ones([2 if n == -1 else n for n in shape])
    assert jax.eval_shape(lambda p, x: apply(p, x, rng=KEY), values, x).shape == tuple(2 if n == -1 else n for n in result)


def test_values_of_layers():
    x = np.array([[-2.0, 0.5], [1.0, 3.0]], np.float32)
    W, b = np.ones((2, 3), np.float32) * [1, 2, 3], np.arange(3)
    shape, params = stax.Dense(3)[0](KEY, (-1, 2))
    assert abs(float(params[1].std())) < 0.1
    np.testing.assert_allclose(stax.Dense(3)[1]((W, b), x), x @ W + b)
    plain = {"Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0), "Exp": np.exp, "Softplus": lambda x: np.log1p(np.exp(x)),
             "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Identity": lambda x: x,
             "Elu": lambda x: np.where(x > 0, x, np.expm1(x)), "LeakyRelu": lambda x: np.where(x > 0, x, 0.01 * x),
             "Softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
             "LogSoftmax": lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
             "Selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
             "Gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))}
    layers = [getattr(stax, name) for name in plain]
    found = jax.jit(lambda x: [apply((), x) for _, apply in layers])(x)
    for name, y in zip(plain, found):
        np.testing.assert_allclose(y, plain[name](x), rtol=1e-5, atol=1e-6, err_msg=name)
    images = np.arange(18, dtype=np.float32).reshape(1, 3, 3, 2)
    np.testing.assert_array_equal(stax.AvgPool((2, 2), padding="SAME")[1]((), images)[0, -1, -1], images[0, -1, -1])
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
    assert stax.randn is jax.nn.initializers.normal and stax.glorot and stax.logsoftmax(jnp.zeros(1)).tolist() == [0]


RATE = 0.1


def steps(name, grads, n=4):
    """The parameters after each step, by the papers' formulas, in float64."""
    x, m, s, found = np.array([1.0, 2.0]), 0.0, 0.0, []
    for i in range(n):
        g = grads(x)
        match name:
            case "sgd":
                x = x - RATE * g
            case "momentum" | "nesterov":
                m = 0.9 * m + g
                x = x - RATE * (m if name == "momentum" else 0.9 * m + g)
            case "adagrad" | "sm3":
                s = s + g * g
                m = 0.9 * m + 0.1 * g / np.sqrt(s)
                x = x - RATE * m
            case "rmsprop" | "rmsprop_momentum":
                s = 0.9 * s + 0.1 * g * g
                m = (0.9 * m if "momentum" in name else 0) + RATE * g / np.sqrt(s + 1e-8)
                x = x - m
            case "adam":
                m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
                x = x - RATE * m / (1 - 0.9 ** (i + 1)) / (np.sqrt(s / (1 - 0.999 ** (i + 1))) + 1e-8)
            case "adamax":
                m, s = 0.9 * m + 0.1 * g, np.maximum(0.999 * s, abs(g))
                x = x - RATE / (1 - 0.9 ** (i + 1)) * m / (s + 1e-8)
        found.append(x)
    return found


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "rmsprop_momentum", "adam", "adamax",
                                  "sm3"])
def test_steps_of_optimizers(name):
    more = {"mass": 0.9} if name in ("momentum", "nesterov") else {}
    init, update, params = getattr(optimizers, name)(lambda i: RATE, **more)
    def grads(x):
        return 2 * x * np.array([1, 3])
    state, update = init({"w": jnp.array([1.0, 2.0])}), jax.jit(update)
    for i, want in enumerate(steps(name, grads)):
        state = update(i, jax.tree.map(grads, params(state)), state)
        np.testing.assert_allclose(params(state)["w"], want, rtol=2e-5)
    packed = optimizers.unpack_optimizer_state(state)
    assert isinstance(packed["w"], optimizers.JoinPoint) and packed["w"].subtree[0].shape == (2,)
    again = optimizers.pack_optimizer_state(packed)
    assert isinstance(again, optimizers.OptimizerState) and jax.tree.structure(again) == jax.tree.structure(state)


def test_sm3_keeps_an_accumulator_for_each_row_and_column():
    init, update, params = optimizers.sm3(RATE, momentum=0.0)
    state = init([jnp.zeros((2, 3)), jnp.float32(0)])
    assert [x.shape for x in jax.tree.leaves(state)] == [(2, 3), (2, 3), (2, 1), (1, 3), (), (), ()]
    g = np.arange(1.0, 7).reshape(2, 3).astype(np.float32)
    state = update(1, [g, np.float32(1)], update(0, [g, np.float32(1)], state))
    least = np.minimum((g * g).max(1, keepdims=True), (g * g).max(0, keepdims=True)) + g * g
    np.testing.assert_allclose(params(state)[0], -RATE * (1 + g / np.sqrt(least)), rtol=1e-5)


def test_schedules_and_norms():
    schedules = {optimizers.constant(0.1): [0.1] * 4, optimizers.exponential_decay(0.1, 10, 0.5): 0.1 * 0.5 ** (STEPS / 10),
                 optimizers.inverse_time_decay(0.1, 10, 0.5): 0.1 / (1 + STEPS / 20),
                 optimizers.inverse_time_decay(0.1, 10, 0.5, staircase=True): 0.1 / (1 + 0.5 * (STEPS // 10)),
                 optimizers.polynomial_decay(0.1, 10, 0.01, 2.0): 0.09 * (1 - np.minimum(STEPS, 10) / 10) ** 2 + 0.01,
                 optimizers.piecewise_constant([2, 5], [1.0, 0.5, 0.1]): [1, 0.5, 0.5, 0.1],
                 optimizers.make_schedule(np.float32(0.3)): [0.3] * 4}
    for schedule, want in schedules.items():
        np.testing.assert_allclose([schedule(i) for i in STEPS.tolist()], want, rtol=1e-6)
    tree = {"a": jnp.array([3.0]), "b": jnp.array(4.0)}
    assert optimizers.l2_norm(tree) == 5 and optimizers.clip_grads(tree, 10.0)["b"] == 4
    np.testing.assert_allclose(optimizers.clip_grads(tree, 1.0)["b"], 0.8)
    opt = optimizers.sgd(0.1)
    assert isinstance(opt, optimizers.Optimizer) and optimizers.Step == int | jax.Array
    assert optimizers.Params == optimizers.State == optimizers.Updates
    assert {*map(str, (optimizers.InitFn, optimizers.UpdateFn, optimizers.ParamsFn, optimizers.Schedule))}
    worse = optimizers.optimizer(lambda: (lambda x: (x, x), lambda i, g, s: s[0], lambda s: s[0]))()
    for call, kind, words in [
            (lambda: opt.update_fn(0, {"a": 1.0}, opt.init_fn(tree)), TypeError, "structure"),
            (lambda: worse.update_fn(0, tree, worse.init_fn(tree)), TypeError, "must be the same"),
            (lambda: optimizers.pack_optimizer_state(tree), TypeError, "JoinPoint"),
            (lambda: optimizers.piecewise_constant([2, 5], [1.0]), ValueError, "one value more"),
            (lambda: optimizers.piecewise_constant(2, [1.0]), ValueError, "sequences"),
            (lambda: optimizers.make_schedule("x"), TypeError, "step size")]:
        with pytest.raises(kind, match=words):
            call()


STEPS = np.array([0, 3, 5, 12])


def test_a_network_learns():
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    _, params = init(KEY, (-1, 2))
    x = jax.random.normal(jax.random.key(1), (64, 2))
    opt = optimizers.adam(0.02)
    def loss(p):
        return jnp.mean((apply(p, x)[:, 0] - x[:, 0] * x[:, 1]) ** 2)
    def step(i, state):
        return opt.update_fn(i, jax.grad(loss)(opt.params_fn(state)), state)
    state = jax.lax.fori_loop(0, 200, step, opt.init_fn(params))
    assert loss(opt.params_fn(state)) < 0.2 * loss(params)
