"""Optimizers and their schedules, against NumPy; a network that learns."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.example_libraries import optimizers, stax

KEY = jax.random.key(0)
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


@pytest.mark.parametrize(
    "name", ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "rmsprop_momentum", "adam", "adamax",
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
    assert isinstance(again, optimizers.OptimizerState) and jax.tree.structure(again) == jax.tree.structure(
        state)


def test_sm3_keeps_an_accumulator_for_each_row_and_column():
    init, update, params = optimizers.sm3(RATE, momentum=0.0)
    state = init([jnp.zeros((2, 3)), jnp.float32(0)])
    assert [x.shape for x in jax.tree.leaves(state)] == [(2, 3), (2, 3), (2, 1), (1, 3), (), (), ()]
    g = np.arange(1.0, 7).reshape(2, 3).astype(np.float32)
    state = update(1, [g, np.float32(1)], update(0, [g, np.float32(1)], state))
    least = np.minimum((g * g).max(1, keepdims=True), (g * g).max(0, keepdims=True)) + g * g
    np.testing.assert_allclose(params(state)[0], -RATE * (1 + g / np.sqrt(least)), rtol=1e-5)


def test_schedules_and_norms():
    schedules = {optimizers.constant(0.1): [0.1] * 4,
                 optimizers.exponential_decay(0.1, 10, 0.5): 0.1 * 0.5 ** (STEPS / 10),
                 optimizers.inverse_time_decay(0.1, 10, 0.5): 0.1 / (1 + STEPS / 20),
                 optimizers.inverse_time_decay(0.1, 10, 0.5, staircase=True): 0.1 / (1 + 0.5 * (STEPS // 10)),
                 optimizers.polynomial_decay(0.1, 10, 0.01, 2.0): 0.09 * (1 - np.minimum(STEPS, 10) / 10) ** 2
                 + 0.01,
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
