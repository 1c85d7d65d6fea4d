"""Outlining: a program whose repeated stretches became functions computes what it computed before."""
import functools
import os
import random
import subprocess
import sys
from pathlib import Path

import forked
import numpy as np
import pytest
from places import ROOT, TESTS
from reference import evaluate

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.core.jaxpr import check_jaxpr, eval_jaxpr
from hlotrace.lowering import outline as outlining
from hlotrace.lowering.outline import Block, joined_rows, outline, structure
from hlotrace.runtime.executables import blocks as pieces


@pytest.fixture
def eager(monkeypatch):
    """Thresholds at which small programs are outlined too: tests of what is computed need no big ones."""
    for name, value in dict(SMALLEST_PROGRAM=30, SMALLEST_BLOCK=4, LEAST_SAVED=10, JOINED_BLOCK=8).items():
        monkeypatch.setattr(outlining, name, value)
    monkeypatch.setattr(pieces, "MOST_BETWEEN", 100)


def program(f, *args):
    return jax.jit(lambda *a: f(*a)).trace(*args)._traced.pruned()[0]


def found(f, *args):
    """The blocks of a function's program, after a check of the outlined one."""
    outlined, blocks = outline(program(f, *args))
    check_jaxpr(outlined)
    return blocks


def value(leaf):
    return np.asarray(jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


def agree(f, *args, rtol=2e-4):
    """The blocks found in f(*args), whose results are the same one operation at a time, outlined, and in pieces."""
    quickly = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    traced = jax.jit(lambda *a: f(*a)).trace(*args)
    inner = traced._traced
    leaves = jax.tree.map(jnp.asarray, [*inner.consts, *jax.tree.leaves(args)])
    usual = {np.dtype(x) for x in ("float32", "float64", "int32", "int64", "bool")}
    plain = all(x.dtype in usual or not isinstance(x.dtype, np.dtype) for x in leaves)      # NumPy is as near
    want = inner.out_tree.unflatten(evaluate(inner.closed, *leaves, compiled="the rest" if plain else "all"))
    lowered = traced.lower()
    blocks = lowered._lowered(True).blocks
    check_jaxpr(lowered._lowered(True).jaxpr)
    saved = pieces.LIGHTEST
    try:
        for pieces.LIGHTEST in (float("inf"), 0):
            got = lowered.compile(quickly)(*args)
            assert jax.tree.structure(got) == jax.tree.structure(want)
            for g, w, a in zip(jax.tree.leaves(got), jax.tree.leaves(want), inner.closed.out_avals,
                               strict=True):
                assert (g.shape, g.dtype, g.weak_type) == (a.shape, a.dtype, a.weak_type)
                scale = {2: 50, 4: 1, 8: 1e-6}.get(w.dtype.itemsize, 1) if value(w).dtype.kind != "i" else 0
                g, w = (value(x).astype(complex) for x in (g, w))
                np.testing.assert_allclose(g, w, rtol=rtol * scale, atol=rtol * scale * (0.1 + np.abs(w).max(initial=0)))
    finally:
        pieces.LIGHTEST = saved
    return blocks


def array(*shape, seed=0, dtype=np.float32):
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(dtype)


X = array(5, 4)
WS = [array(4, 4, seed=i + 1) for i in range(8)]


def layer(w, x):
    y = jnp.tanh(x @ w)
    return jnp.sin(y * 0.7) + x * 0.5 - jnp.cos(y)


def network(ws, x, layer=layer):
    for w in ws:
        x = layer(w, x)
    return x


def gradients(f):
    return jax.grad(lambda *args: jnp.sum(f(*args) ** 2), argnums=(0, 1))


# --- what is found ----------------------------------------------------------------------------------------------

def test_small_programs_and_programs_that_repeat_nothing_stay_as_they_are():
    small = program(network, WS[:3], X)
    assert outline(small) == (small, [])
    def different(x):
        for i in range(320):
            x = x * (1 + i / 1000) + 0.5
        return x
    assert {b.calls for b in found(different, X)} <= {1}       # pieces of a chain, no repetition
    def wide(x):
        return [x * (1 + i / 1000) for i in range(320)]
    big = program(wide, X)
    assert outline(big) == (big, [])


DIFFERENT = [      # programs of (x, y) that compute different things, though most of their equations are equal
    lambda x, y: (x * y, x + y), lambda x, y: (x + y, x * y), lambda x, y: (x * y, x * y + 1), lambda x, y: x * y,
    lambda x, y: (y * x, x + y), lambda x, y: (x * y, x - y), lambda x, y: (x * y, y - x), lambda x, y: (x, x + y),
    lambda x, y: (y, x + y), lambda x, y: (x * y, 1), lambda x, y: (x * y, 1.0), lambda x, y: (x * y, True),
    lambda x, y: (x * 2, x + y), lambda x, y: (x * 3, x + y), lambda x, y: x.sum(0) * y.sum(1),
    lambda x, y: x.sum(1) * y.sum(0), lambda x, y: jax.jit(lambda x: x * 2)(x) * y,
    lambda x, y: jax.jit(lambda x: x * 3)(x) * y, lambda x, y: jax.jit(lambda x: (x, x * 2)[0])(x) * y,
    lambda x, y: lax.cond(True, jnp.sin, jnp.cos, x) * y, lambda x, y: lax.cond(True, jnp.cos, jnp.sin, x) * y,
]


@pytest.mark.quick
def test_programs_are_one_to_outlining_where_they_compute_the_same():
    def programs(dtype):
        x = np.ones((2, 2), dtype)
        return [jax.make_jaxpr(lambda x, y, f=f: f(x, y))(x, x) for f in DIFFERENT]
    same, again, other = programs(np.float32), programs(np.float32), programs(np.int8)
    assert [structure(p) for p in same] == [structure(p) for p in again]
    assert len({structure(p) for p in [*same, *other]}) == 2 * len(DIFFERENT)


@pytest.mark.quick
@pytest.mark.parametrize("calls, saved", [(1, 0), (2, 1), (5, 4)])
def test_what_a_block_saves_are_the_equations_of_all_calls_but_the_first(calls, saved):
    assert Block(jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0), calls).saved == 2 * saved


def test_the_option_turns_it_off(eager):
    lowered = lambda: jax.jit(network).lower(WS, X)._lowered(False)
    assert lowered().blocks and "call @repeated_0" in lowered().text
    with override("hlotrace_outline", False):
        assert not lowered().blocks and "call @" not in lowered().text


def test_layers_are_found_forward_and_backward_and_counted():
    blocks = found(gradients(lambda ws, x: network(ws * 5, x)), WS, X)        # 12 equations a layer: ten layers a block
    assert [(b.calls, len(b.jaxpr.eqns)) for b in blocks] == [(4, 120), (3, 120)]
    assert str(blocks[0]).startswith("repeated_0: ")
    assert all(b.saved == (b.calls - 1) * len(b.jaxpr.eqns) for b in blocks)


@pytest.mark.parametrize(("most", "names"), [
    (16, ["repeated_0"] * 16), (5, ["repeated_0_x4"] * 4), (6, ["repeated_0_x3"] * 5 + ["repeated_0"]),
    (1, ["repeated_0_x16"])])
def test_rows_of_calls_become_fewer_calls(most, names):
    def layer(w, x):
        for k in range(9):
            x = jnp.tanh(x @ w) * (k + 2) + 0.1
        return x
    flat = program(lambda ws, x: network(ws * 2, x, layer), WS, X)
    outlined, blocks = outline(flat)
    assert [b.calls for b in blocks] == [16]
    short, made = joined_rows(outlined, {b.jaxpr for b in blocks}, most)
    check_jaxpr(short)
    calls = [eqn.params["jaxpr"] for eqn in short.eqns if eqn.primitive.name == "jit"]
    assert [c.name for c in calls] == names and made == {c for c in calls if "_x" in c.name}
    for a, b in zip(eval_jaxpr(short, (), *WS, X), eval_jaxpr(flat, (), *WS, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert len(joined_rows(outlined, set(), most)[0].eqns) == len(outlined.eqns)


def test_layers_in_which_every_operation_comes_several_times_are_found():
    def block(w, x):
        for _ in range(5):
            x = jnp.tanh(x @ w)
        for _ in range(12):
            x = jnp.sin(x) + 0.1
        return x
    blocks = found(lambda ws, x: network(ws * 2, x, block), WS, X)
    assert [(b.calls, len(b.jaxpr.eqns)) for b in blocks] == [(16, 34)]


def test_a_chain_with_a_period_becomes_calls_of_one_function_and_one_without_is_cut():
    operations = [jnp.sin, jnp.tanh, jnp.cos, jnp.exp, jnp.abs]
    def chain(pick):
        def f(x):
            for i in range(3000):
                x = operations[pick(i)](x)
            return x
        return f
    draw = random.Random(0)
    numbers = [draw.randrange(5) for _ in range(3000)]
    for f, calls in (chain(lambda i: i % 3), 24), (chain(numbers.__getitem__), 1):
        blocks = found(f, X)
        assert all(b.calls >= calls for b in blocks)
        assert all(len(b.jaxpr.eqns) <= outlining.LONGEST_CHAIN for b in blocks)
        assert sum(b.calls * len(b.jaxpr.eqns) for b in blocks) > 2500
        np.testing.assert_allclose(jax.jit(f)(X), eval_jaxpr(program(f, X), (), X)[0], rtol=1e-4, atol=1e-5)


def test_the_text_is_the_same_in_every_process():
    code = ("from test_outline import *; "
            "low = jax.jit(gradients(lambda ws, x: network([w for w in ws for _ in range(4)], x))).lower(WS, X)"
            "._lowered(True); print(low.text); print(*low.blocks)")
    paths = os.pathsep.join([str(Path(__file__).parent), str(TESTS), str(ROOT)])
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": paths})
    here = forked.run(f"import sys; sys.path[:0] = {paths.split(os.pathsep)}; {code}", check=True)
    assert here.stdout == other.stdout and "repeated_0: " in here.stdout


# --- what is computed -------------------------------------------------------------------------------------------

def test_gradients_where_the_first_and_the_last_layer_differ(eager):
    def f(ws, x):
        x = jnp.exp(-layer(ws[0], x))
        return layer(ws[-1] + 1, network(ws[1:-1], x)) * x
    assert agree(gradients(f), WS, X)


def test_one_layer_in_the_middle_may_differ(eager):
    assert agree(lambda ws, x: network(ws[6:], jnp.exp(-network(ws[:6], x))), WS, X)


def test_integers_that_differ_become_operands(eager):
    def f(x, key):
        for i in range(12):
            x = x * (i + 2) + jnp.where(x > i, x, i * 5)
            x = jnp.clip(x, -i, 1000 + i) ^ lax.clamp(jnp.int32(i), x, jnp.int32(50 + i))
            if i % 3 == 0:
                x = x + jax.random.key_data(jax.random.fold_in(key, i))[0].astype(int)
        return x
    blocks = agree(f, np.arange(6, dtype=np.int32), jax.random.key(0))
    assert max(b.calls for b in blocks) >= 4


def test_floats_that_differ_are_not_mixed_up(eager):
    def f(x):
        for i in range(12):
            x = jnp.tanh(x) * (1.0 + i // 3) + jnp.sin(x) * (-0.0 if i % 2 else 0.0) + jnp.float32(i // 6)
            x = jnp.where(x == 0, 1 / (x * (-0.0 if i % 4 else 0.0) + 1), x)
        return x
    agree(f, X)


def test_operands_that_are_one_in_some_layers_and_two_in_others(eager):
    def f(ws, x):
        for i in range(8):
            a, b = ws[i], ws[i if i % 3 else (i + 1) % 8]
            x = jnp.tanh(x @ a) + jnp.sin(x @ b) * jnp.cos(x) - jnp.exp(-x * x)
        return x
    assert agree(gradients(f), WS, X)
    assert agree(gradients(lambda w, x: network([w] * 8, x)), WS[0], X)


def test_outputs_that_are_inputs_constants_intermediate_or_come_twice(eager):
    def f(ws, x):
        seen = [x := layer(w, x) for w in ws]
        return x, X, x, 3, ws[2], seen[4], jnp.zeros(2), seen[4], seen[7]
    assert agree(f, WS, X)
    agree(lambda ws, x: (), WS, X)


def test_blocks_of_the_user_of_which_some_results_are_not_used(eager):
    @jax.jit
    def block(w, x):
        y = layer(w, x)
        return y, jnp.sum(y ** 2), jnp.exp(y), x, 2.5

    def f(ws, x):
        sums, kept = [], []
        for i, w in enumerate(ws):
            x, a, b, c, _ = block(w, x)
            sums.append(a)
            if i == 5:
                kept += [b, c]
        return x, sums, kept
    agree(f, WS, X)
    agree(jax.grad(lambda ws, x: f(ws, x)[1][7] + jnp.sum(f(ws, x)[0])), WS, X)


def test_functions_under_jit_called_often_once_and_within_each_other(eager):
    inner = jax.jit(lambda w, x: jnp.sin(layer(w, x)))
    middle = jax.jit(lambda w, x: inner(w, x) + inner(w.T, x))
    once = jax.jit(lambda ws, x: network(ws, x, middle))
    blocks = agree(lambda ws, x: once(ws, x) * inner(ws[0], x), WS, X)
    assert any(b.calls == 8 for b in blocks)
    assert agree(gradients(once), WS[:6], X)


def test_functions_with_their_own_derivatives(eager):
    @jax.custom_jvp
    def swish(x):
        return x * jax.nn.sigmoid(x)
    swish.defjvp(lambda p, t: (swish(*p), t[0] * (1 + p[0]) / 3))

    @jax.custom_vjp
    def clipped(x):
        return jnp.tanh(x)
    clipped.defvjp(lambda x: (jnp.tanh(x), x), lambda x, ct: (jnp.clip(ct * jnp.cos(x), -1, 1),))
    f = lambda ws, x: network(ws, x, lambda w, x: clipped(swish(x @ w)) + 0.5 * jax.nn.relu(x))
    assert agree(f, WS, X)
    assert agree(gradients(f), WS, X)


def test_loops_and_branches_in_layers(eager):
    def block(w, x):
        x, sums = lax.scan(lambda c, k: (jnp.tanh(c @ w) + k, jnp.sum(c)), x, jnp.arange(2.0))
        x = lax.cond(sums[0] > 0, lambda x: x * 0.5, lambda x: jnp.sin(x) - w[0], x)
        x = lax.while_loop(lambda x: jnp.sum(x) > 9, lambda x: x / 2, x)
        return lax.fori_loop(0, 2, lambda i, x: x - 0.1 * i * x, x)
    assert agree(lambda ws, x: network(ws, x, block), WS[:6], X)
    scan = lambda w, x: jnp.sin(layer(w, lax.scan(lambda c, k: (jnp.tanh(c @ w) + k, None), x, jnp.arange(2.0))[0]))
    assert agree(gradients(lambda ws, x: network(ws, x, scan)), WS, X)


def test_vmap_over_the_whole(eager):
    xs = np.stack([X, 2 * X, -X])
    assert agree(jax.vmap(network, (None, 0)), WS, xs)
    assert agree(jax.vmap(gradients(network), (None, 0)), WS, xs)


def test_keys_pass_between_layers(eager):
    def f(key, x):
        for _ in range(8):
            key, one = jax.random.split(key)
            x = jnp.tanh(x) * jax.random.uniform(one, x.shape) + jnp.sin(x)
        return key, x
    blocks = agree(f, jax.random.key(1), X)
    assert any(jax.dtypes.issubdtype(v.aval.dtype, jax.dtypes.prng_key) for b in blocks for v in b.jaxpr.invars)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_other_types(eager, dtype):
    ws, x = jax.tree.map(lambda a: jnp.asarray(a * 0.3, dtype), (WS, X))
    assert agree(network, ws, x)


def test_double_precision(eager):
    with jax.enable_x64(True):
        ws, x = jax.tree.map(lambda a: a.astype(np.float64), (WS, X))
        assert agree(gradients(network), ws, x)


def test_zero_size_arrays_and_scalars(eager):
    assert agree(network, [w[:0, :0] for w in WS], X[:, :0])
    def f(x, scale):       # a weak scalar passes from layer to layer
        for _ in range(12):
            x = jnp.tanh(x * scale) + jnp.cos(x)
            scale = scale * 0.9 + 0.01
        return x, scale
    assert agree(f, X, 0.7)


@pytest.mark.parametrize("steps, calls", [(40, 0), (60, 0), (100, 0), (200, 18)])
def test_gradients_of_unrolled_elementwise_loops_are_seen_whole(steps, calls):
    """Each step keeps values for the way back: as blocks they crossed, by a kernel each, and compiling took five
    times as long."""
    def f(x):
        for i in range(steps):
            x = jnp.where(x > i, jnp.sin(x) * x, jnp.cos(x) + x)
        return x.sum()
    _, blocks = outline(jax.make_jaxpr(jax.grad(f))(jnp.ones(100)))
    assert sum(b.calls for b in blocks) == calls


@pytest.mark.parametrize("ordered", [True, False])
def test_what_has_effects_is_in_no_block(eager, ordered):
    """Also where each time it is the same function that is called."""
    seen = []

    @functools.partial(jax.jit, inline=True)
    def note(v):
        jax.debug.callback(lambda v: seen.append(float(v)), v, ordered=ordered)

    def f(x):
        for _ in range(8):
            x = jnp.sin(jnp.tanh(jnp.cos(x @ np.eye(4, dtype=np.float32)) + 1) * 2) - x
            note(x[0, 0])
        return x
    blocks = found(f, X)
    assert blocks and not any(eqn.primitive.name == "debug_callback" for b in blocks for eqn in b.jaxpr.eqns)
    jax.block_until_ready(jax.jit(f)(X))
    jax.effects_barrier()
    assert len(seen) == 8


def test_effects_keep_their_order_and_their_number(eager):
    seen = []

    def block(w, x):
        jax.debug.callback(lambda v: seen.append(float(v)), x[0, 0], ordered=True)
        return layer(w, x)
    with override("hlotrace_outline", False):
        want = jax.jit(lambda ws, x: network(ws, x, block))(WS, X)
        jax.effects_barrier()
    once, seen[:] = seen[:], []
    f = lambda ws, x: network(ws, x, block)
    np.testing.assert_allclose(jax.jit(f)(WS, X), want, rtol=1e-5, atol=1e-6)
    jax.effects_barrier()
    assert len(seen) == 8
    np.testing.assert_allclose(seen, once, rtol=1e-5, atol=1e-6)
    for b in found(f, WS, X):
        assert not b.jaxpr.effects and b.calls >= 7


OPERATIONS = {
    "sin": lambda s, w: jnp.sin(s[-1]), "tanh": lambda s, w: jnp.tanh(s[-1] + w[0]), "dot": lambda s, w: s[-1] @ w * 0.5,
    "add": lambda s, w: s[-1] + s[-2], "mul": lambda s, w: s[-1] * jnp.cos(s[-2]), "half": lambda s, w: s[-1] * 0.5,
    "mean": lambda s, w: s[-1] - jnp.mean(s[-1], axis=0), "where": lambda s, w: jnp.where(s[-1] > 0, s[-1], 0.1 * s[-2]),
    "softmax": lambda s, w: jax.nn.softmax(s[-1]), "old": lambda s, w: s[-1] + s[len(s) // 2], "drop": lambda s, w: s[-2],
    "reverse": lambda s, w: s[-1][::-1] * w.sum(), "jit": lambda s, w: jitted(w, s[-1])}
jitted = jax.jit(layer)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(eager, seed):
    draw = random.Random(seed)
    recipe = draw.choices(list(OPERATIONS), k=draw.randint(4, 8))
    recipes = [recipe + draw.choices(list(OPERATIONS), k=draw.random() < 0.15) for _ in range(draw.randint(5, 8))]
    shared, integers, outputs = draw.random() < 0.3, draw.random() < 0.5, draw.randint(1, 4)
    order = [draw.randrange(8) for _ in recipes]

    def f(ws, x):
        stack = [x, x * 2]
        for i, (names, which) in enumerate(zip(recipes, order)):
            for name in names:
                stack.append(OPERATIONS[name](stack, ws[0 if shared else which]))
            if integers:
                stack.append(jnp.roll(stack[-1], i, 0))
        return [jnp.tanh(v) for v in stack[-1::-max(len(stack) // outputs, 1)]]
    if seed % 2:
        agree(jax.grad(lambda ws, x: functools.reduce(jnp.add, map(jnp.sum, f(ws, x))), argnums=(0, 1)), WS, X, rtol=1e-3)
    else:
        agree(f, WS, X, rtol=1e-3)
