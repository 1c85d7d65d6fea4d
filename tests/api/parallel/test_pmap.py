"""pmap: one program on several devices, a slice of the arguments each; against NumPy on all slices together.
"""
import functools
import re

import numpy as np
import pytest
from equal import same
from mapped import A

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

FOUR = jax.devices()[:4]


def raises(error, *words):
    """pytest.raises where the message holds all of `words`, in any order; a number stands by itself."""
    holds = [rf"(?<!\d){w}(?!\d)" if w.isdigit() else re.escape(w) for w in words]
    return pytest.raises(error, match="(?s)" + "".join(f"(?=.*{w})" for w in holds))


# --- axes, places, arguments ---


@pytest.mark.parametrize("fun, in_axes, out_axes, args, want", [
    (lambda x: x * 2, 0, 0, (A(8),), A(8) * 2),
    (lambda x, y: x + y, (0, None), 0, (A(4), A(2)), A(4)[:, None] + A(2)),
    (lambda x, y: x + y, (0, None), 0, (A(4), 2.0), A(4) + 2),
    (lambda x, y: x + y, (1, 0), 0, (A(3, 4), A(4)), A(3, 4).T + A(4)[:, None]),
    (lambda x: x, 1, 0, (A(3, 4),), A(3, 4).T),
    (lambda x: x, -1, 0, (A(3, 4),), A(3, 4).T),
    (lambda x: x, 0, 1, (A(4, 3),), A(4, 3).T),
    (lambda x: x, 1, -1, (A(3, 4),), A(3, 4)),
    (lambda x: {"a": x, "b": (x, None)}, 0, {"a": 1, "b": 0}, (A(4, 3),),
     {"a": A(4, 3).T, "b": (A(4, 3), None)}),
    (lambda d, k: d["a"] * d["b"] * k, ({"a": 0, "b": None}, None), 0, ({"a": A(4), "b": 2.0}, 3.0),
     A(4) * 6),
    (lambda x: 3.0, 0, 0, (A(4),), np.full(4, 3.0)),
    (lambda x: x, 0, 0, (A(1, 2),), A(1, 2)),
])
def test_axes(fun, in_axes, out_axes, args, want):
    same(jax.pmap(fun, in_axes=in_axes, out_axes=out_axes)(*args), want)


def test_keyword_arguments_are_mapped_in_front():
    same(jax.pmap(lambda x, *, k: x * k["u"])(A(4), k={"u": A(4)}), A(4) ** 2)
    same(jax.pmap(lambda x, k=2.0: x * k, in_axes=(0,))(A(4), k=A(4)), A(4) ** 2)


def test_an_unmapped_result():
    out = jax.pmap(lambda x: (lax.psum(x, "i"), x), "i", out_axes=(None, 0))(A(4))
    same(out, (np.float32(6), A(4)))
    assert out[0].sharding.is_fully_replicated


def test_slices_lie_on_their_devices():
    out = jax.pmap(lambda x: x + 1)(A(4, 3))
    assert [(s.device, s.data.shape) for s in out.addressable_shards] == [(d, (1, 3)) for d in FOUR]
    assert not out.sharding.is_fully_replicated
    same(out[1], A(4, 3)[1] + 1)
    assert {s.data.shape for s in jax.pmap(lambda x: x, out_axes=1)(A(4, 3)).addressable_shards} == {(3, 1)}
    assert len(jax.pmap(lambda x: x)(A(8)).sharding.device_set) == 8 == jax.local_device_count()


def test_chosen_devices():
    for devices in (jax.devices()[4:], FOUR[::-1]):
        out = jax.pmap(lambda x: x + lax.axis_index("i"), "i", devices=devices)(A(4))
        same(out, 2 * A(4))
        assert [s.device for s in out.addressable_shards] == devices
    assert len(jax.pmap(lambda x: x, devices=FOUR)(A(2)).sharding.device_set) == 2


def test_results_go_in_again():
    total = jax.pmap(lambda x: lax.psum(x, "i"), "i")
    same(total(total(A(4))), np.full(4, 24.0))
    same(jax.pmap(lambda x: x.sum(), in_axes=1)(total(A(4, 4))), 4 * A(4, 4).sum(0))


def test_static_arguments():
    traces = []

    def f(n, x, mode):
        traces.append(n)
        return x * n if mode == "times" and n > 2 else x

    run = jax.pmap(f, static_broadcasted_argnums=(0, 2))
    same([run(3, A(4), "times"), run(3, A(4) + 1, "times"), run(1, A(4), "times")],
         [A(4) * 3, (A(4) + 1) * 3, A(4)])
    assert sorted(set(traces)) == [1, 3]
    same(jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(A(4), 5), A(4) * 5)
    same(jax.pmap(lambda n, x: x * n, in_axes=(None, 0), static_broadcasted_argnums=(0,))(3, A(4)), A(4) * 3)
    with raises(ValueError, "hashable", "list"):
        run([3], A(4), "times")


def test_donated_arguments_are_gone():
    x = jax.pmap(lambda x: x)(A(8))
    same(jax.pmap(lambda x: x + 1, donate_argnums=0)(x), A(8) + 1)
    assert x.is_deleted()


def test_axis_size_may_be_said():
    same(jax.pmap(lambda x: 2 * x, axis_size=4)(A(4)), 2 * A(4))
    with raises(ValueError, "3", "4"):
        jax.pmap(lambda x: x, axis_size=3)(A(4))


def test_a_second_call_traces_nothing():
    traces = []
    run = jax.pmap(lambda x: (traces.append(1), x)[1])
    run(A(4))
    first = len(traces)
    run(A(4) + 1)
    assert len(traces) == first >= 1


def test_decorator_keeps_the_name():
    @functools.partial(jax.pmap, axis_name="i")
    def centred(x):
        return x - lax.pmean(x, "i")
    same(centred(A(4)), A(4) - 1.5)
    assert centred.__name__ == "centred"


# --- errors ---


def test_more_slices_than_devices():
    with raises(ValueError, "9", "8"):
        jax.pmap(lambda x: x)(A(9))
    with raises(ValueError, "8", "4"):
        jax.pmap(lambda x: x, devices=FOUR)(A(8))


def test_sizes_that_differ():
    with raises(ValueError, "4", "8"):
        jax.pmap(lambda x, y: x)(A(4), A(8))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jax.pmap(lambda x: x)(1.0), ValueError, ["pmap"]),
    (lambda: jax.pmap(lambda x: x, devices=[]), ValueError, ["'devices' argument to pmap must be non-empty"]),
    (lambda: jax.pmap(lambda x: x, in_axes=None)(1.0), ValueError, ["pmap"]),
    (lambda: jax.pmap(lambda: 1.0)(), ValueError, ["pmap"]),
    (lambda: jax.pmap(lambda x: x, in_axes=(0, 0))(A(4)), ValueError, ["in_axes"]),
    (lambda: jax.pmap(lambda x: x, in_axes="a")(A(4)), TypeError, ["in_axes"]),
    (lambda: jax.pmap(lambda x: x, in_axes=1)(A(4)), (ValueError, IndexError), []),
    (lambda: jax.pmap(lambda x: x, out_axes=(0, 1))(A(4)), ValueError, []),
    (lambda: jax.pmap(lambda x, n: x, static_broadcasted_argnums=5)(A(4), 1), ValueError,
     ["static_broadcasted_argnums", "5"]),
    (lambda: jax.pmap(lambda x: lax.psum(x, "i"))(A(4)), NameError, ["unbound axis name", "i"]),
])
def test_wrong_uses(call, error, words):
    with raises(error, *words):
        call()


# --- transformations ---


W, X = np.float32([1, 2]), A(4, 2)
each = {"in_axes": (None, 0)}


def test_gradient_of_pmap():
    dots = lambda w: jax.pmap(lambda w, x: (w * x).sum(), **each)(w, X).sum()
    same(jax.grad(dots)(W), X.sum(0))
    squares = lambda w: jax.pmap(lambda w, x: lax.psum((w * x).sum() ** 2, "i"), "i", **each)(w, X).sum()
    same(jax.grad(squares)(W), 4 * 2 * (X @ W) @ X)         # four copies of one sum
    weights = np.float32([1, 2, 3, 4])
    total = lambda x: (jax.pmap(lambda x: lax.psum(x**2, "i"), "i")(x) * weights).sum()
    same(jax.grad(total)(A(4)), 2 * A(4) * 10)
    same(jax.grad(lambda w: jax.pmap(lambda x: w * x)(A(4)).sum())(2.0), np.float32(6))     # w is closed over


def test_forward_mode_of_pmap():
    f = jax.pmap(lambda x: lax.psum(x**2, "i"), "i")
    same(jax.jvp(f, (A(4),), (np.ones(4, np.float32),)), (np.full(4, 14.0), np.full(4, 12.0)))
    out, push = jax.linearize(jax.pmap(jnp.sin), A(4))
    same((out, push(A(4))), (np.sin(A(4)), np.cos(A(4)) * A(4)))
    same(jax.hessian(lambda x: jax.pmap(lambda x: x**3)(x).sum())(A(4)), np.diag(6 * A(4)))


@pytest.mark.parametrize("loss, want", [
    (lambda w, x: (w * x).sum(), X),
    # each device's own gradient: psum transposes to psum
    (lambda w, x: lax.psum((w * x).sum(), "i"), 4 * X),
    (lambda w, x: lax.pmean((w * x).sum(), "i"), X),
])
def test_pmap_of_gradient(loss, want):
    same(jax.pmap(jax.grad(loss), "i", **each)(W, X), want)


def test_averaged_gradients():
    def f(w, x):
        return lax.pmean(jax.grad(lambda w: (w * x).sum())(w), "i")
    same(jax.pmap(f, "i", **each)(W, X), np.tile(X.mean(0), (4, 1)))


def test_jit():
    total = lambda x: lax.psum(x, "i")
    same(jax.jit(lambda x: jax.pmap(total, "i")(x) + 1)(A(4)), np.full(4, 7.0))
    same(jax.pmap(jax.jit(total), "i")(A(4)), np.full(4, 6.0))
    same(jax.jit(lambda y: jax.pmap(lambda x: x * y)(A(4)))(2.0), 2 * A(4))
    text = jax.pmap(total, "i").lower(A(4)).as_text()
    assert text.count("stablehlo.all_reduce") == 1


def test_control_flow_inside():
    def f(x):
        return lax.scan(lambda c, t: (c + lax.psum(x * t, "i"), c), 0.0, jnp.arange(3.0))
    same(jax.pmap(f, "i")(A(4)), (np.full(4, 18.0), np.tile(np.float32([0, 0, 6]), (4, 1))))
    same(jax.pmap(lambda x: lax.cond(x > 1, lambda x: x * 10, lambda x: x, x))(A(4)),
         np.float32([0, 1, 20, 30]))
    same(jax.pmap(lambda x: lax.while_loop(lambda c: c < 10, lambda c: 2 * c, x + 1))(A(4)),
         np.float32([16, 16, 12, 16]))


def test_vmap_around_pmap():
    x = A(3, 4)
    both = jax.pmap(lambda x: (lax.psum(x, "i"), lax.psum(x, "j"), lax.psum(x, ("i", "j"))), "i")
    want = (np.tile(x.sum(1, keepdims=True), 4), np.tile(x.sum(0), (3, 1)), np.full((3, 4), x.sum()))
    same(jax.vmap(both, axis_name="j")(x), want)
    same(jax.jit(jax.vmap(both, axis_name="j"))(x), want)
    centred = jax.pmap(lambda x: x - lax.pmean(x, "i"), "i")
    same(jax.vmap(centred, 1, 1)(x.T.copy()), x.T - x.T.mean(0))


def test_pmap_around_vmap():
    x = A(3, 4)

    def f(x):
        return (lax.psum(x, "i"), lax.psum(x, "j"), lax.psum(x, ("i", "j")), lax.axis_index(("i", "j")),
                lax.pmax(x, "i"), lax.all_gather(x, "j"), lax.ppermute(x, "i", [(0, 2)]))

    same(jax.pmap(jax.vmap(f, axis_name="j"), "i")(x),
         (np.tile(x.sum(0), (3, 1)), np.tile(x.sum(1, keepdims=True), 4), np.full((3, 4), x.sum()),
          np.arange(12).reshape(3, 4), np.tile(x.max(0), (3, 1)), np.repeat(x[:, None], 4, 1),
          np.stack([0 * x[0], 0 * x[0], x[0]])))
    square = lambda x: jax.pmap(jax.vmap(lambda x: lax.psum(x**2, ("i", "j")), axis_name="j"), "i")(x).sum()
    same(jax.jit(jax.grad(square))(x), 24 * x)


def test_random_keys_over_devices():
    keys = jax.random.split(jax.random.key(0), 4)
    draw = lambda k: jax.random.normal(k, (2,))
    same(jax.pmap(draw)(keys), np.stack([draw(k) for k in keys]))
    old = jax.random.split(jax.random.PRNGKey(0), 4)
    same(jax.pmap(draw)(old), np.stack([draw(k) for k in keys]))
    new = jax.pmap(lambda k: jax.random.fold_in(k, 1))(keys)
    assert jax.dtypes.issubdtype(new.dtype, jax.dtypes.prng_key) and new.shape == (4,)


# --- training ---


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


def test_data_parallel_training_equals_that_of_one_device():
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    params = {"w1": normal(3, 5), "b1": normal(5), "w2": normal(5)}
    x, y = normal(8, 4, 3), normal(8, 4)                    # 8 devices, 4 examples each

    def sgd(params, grads):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    @functools.partial(jax.pmap, axis_name="batch", donate_argnums=0)
    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return sgd(params, lax.pmean(grads, "batch")), lax.pmean(value, "batch")

    @jax.jit
    def whole(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return sgd(params, grads), value

    spread = jax.tree.map(lambda p: np.stack([p] * 8), params)
    for _ in range(3):
        spread, values = step(spread, x, y)
        params, value = whole(params, x.reshape(32, 3), y.reshape(32))
        same(spread, jax.tree.map(lambda p: np.stack([p] * 8), jax.tree.map(np.asarray, params)))
        same(values, np.full(8, value))
