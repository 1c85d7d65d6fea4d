"""Saying what is slow: why a function is traced again."""
import functools
import logging

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import source_info
from hlotrace.runtime.executables import compilation

ONE = np.float32(1)
HERE = source_info.short(__file__)


@pytest.fixture
def messages(caplog):
    """The texts logged so far."""
    caplog.set_level(logging.WARNING, "hlotrace")
    jax.clear_caches()
    return lambda: [record.getMessage() for record in caplog.records]


def fresh(**options):
    """A jitted function that no other test has traced."""
    def step(state, x=1.0, *rest, n=2, **named):
        return jax.tree.leaves(state)[0] * n + x
    return jax.jit(step, **options)


@pytest.mark.parametrize("options, first, second, words", [
    ({}, ({"t": 0.0},), ({"t": ONE},), "state['t']: weak f32[] -> f32[]"),
    ({}, ({"t": ONE},), ({"t": 0.0},), "state['t']: f32[] -> weak f32[]"),
    ({}, ([np.ones(2)],), ([np.ones((3, 1))],), "state[0]: f32[2] -> f32[3,1]"),
    ({}, (ONE,), (np.int32(1),), "state: f32[] -> i32[]"),
    ({}, (ONE, ONE), (ONE,), "x: f32[] -> not passed"),
    ({}, (ONE,), (ONE, ONE, ONE), "x: not passed -> f32[]; rest[0]: not passed -> f32[]"),
    ({}, (ONE,), (ONE, {"q": (ONE, [ONE])}), "named['q']: not passed -> a tree of 2 arrays"),
    ({}, (ONE, ONE), (ONE, {"x": ONE}), "x: passed by position -> by keyword"),
    ({}, ({"w": (ONE, ONE)},), ({"w": (ONE, [ONE])},), "state['w'][1]: the earlier trace has a leaf, "
     "this one has a list of length 1"),
    ({}, ({"w": ONE},), ({"w": ONE, "b": ONE},), "state: the earlier trace has a dict with 1 key, this one has a dict "
     "with 2 keys; only this one has 'b'"),
    ({"static_argnames": "n"}, (ONE, {"n": 3}), (ONE, {"n": 4}), "n: 3 -> 4"),
    ({"static_argnames": "n"}, (ONE, {"n": 3}), (ONE, {"n": 3.0}), "n: 3 -> 3.0 (int -> float)"),
    ({"static_argnames": "n"}, (ONE,), (ONE, {"n": 3}), "n: not passed -> 3"),
    ({"static_argnums": 1}, (ONE, 3, ONE), (ONE, 4, ONE), "x: 3 -> 4"),
    ({"static_argnums": 1}, (ONE, 3, ONE), (ONE, 3, 1.0), "rest[0]: f32[] -> weak f32[]"),
    ({"static_argnames": "n"}, (ONE, {"n": 3}), (np.ones(2), {"n": 4}), "state: f32[] -> f32[2]; n: 3 -> 4"),
    ({}, ([ONE] * 6,), ([1.0] * 6,), "state[3]: f32[] -> weak f32[]; and 2 more changes"),
])
def test_a_retrace_names_the_argument_and_what_changed(options, first, second, words):
    f = fresh(**options)
    assert f.why_retraced() == []
    for args in (first, second, first):
        kwargs = args[-1] if len(args) > 1 and isinstance(args[-1], dict) else {}
        f.trace(*args[:len(args) - bool(kwargs)], **kwargs)
    start, line = f.why_retraced()
    assert start.startswith("step: first trace, called at " + HERE)
    assert line.startswith("step: retrace 1: ") and words in line and HERE in line
    assert str(f.why_retraced()) == f"{start}\n{line}"


def test_a_retrace_names_the_option_or_the_axis_that_changed():
    f = fresh()
    f(np.int32(1))
    with jax.default_matmul_precision("highest"):
        f(np.int32(1))
    jax.vmap(f, axis_name="i")(np.ones(2, np.int32))
    _, option, axis = f.why_retraced()
    assert "option jax_default_matmul_precision: None -> 'highest'" in option
    assert "named axes: {} -> {'i': 2}" in axis


def test_an_explanation_never_fails_a_call():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no words")
    g = jax.jit(lambda x, n: x, static_argnums=1)
    g(ONE, Broken())
    g(ONE, Broken())
    assert "cannot be put into words: RuntimeError('no words')" in g.why_retraced()[1]


def test_the_nearest_earlier_trace_is_compared():
    f = fresh()
    for args in (ONE, np.ones(3)), (np.ones(2), ONE), (1.0, np.ones(3)):
        f.eval_shape(*args)
    assert "retrace 2: state: f32[] -> weak f32[], called" in f.why_retraced()[-1]
    for state in ({"a": ONE}, {"a": ONE, "b": ONE}):
        f.eval_shape(state)
    f.eval_shape({"a": ONE}, q=ONE)
    assert "retrace 5: named['q']: not passed -> f32[], called" in f.why_retraced()[-1]


def test_messages_start_at_the_third_retrace_and_thin_out(messages):
    f = fresh()
    for n in range(1, 21):
        f(np.ones(n))
        if n == 3:
            assert messages() == []
    told = messages()
    assert [int(m.split("retrace ")[1].split(":")[0]) for m in told] == [*range(3, 13), 16]
    assert "state: f32[3] -> f32[4]" in told[0] and "pad to a few sizes" in told[0] and "False" in told[0]
    assert "pad" not in told[1] and "from here on only numbers 16, 32" in told[9]


def test_the_option_says_from_when(messages):
    for value, count in ((True, 3), (False, 0), ("auto", 1)):
        jax.clear_caches()
        f, before = fresh(), len(messages())
        with jax.explain_cache_misses(value):
            for n in (1, 2, 3, 4):
                f(np.ones(n))
        assert len(messages()) - before == count and len(f.why_retraced()) == 4


def test_functions_of_installed_packages_are_told_of_only_when_asked(messages):
    """Whoever uses a library cannot mend how it calls jit."""
    space = {}
    exec(compile("def f(x): return x * 1.625", "/usr/lib/python3/site-packages/library/loop.py", "exec"), space)
    f = jax.jit(space["f"])
    for n in range(1, 7):
        f(jnp.ones(n))
    assert not messages() and len(f.why_retraced()) == 6
    with jax.explain_cache_misses(True):
        f(jnp.ones(7))
    assert len(messages()) == 1


def test_normal_use_gives_no_message(messages):
    class Model:
        def __init__(self, width):
            self.width, self.apply = width, jax.jit(self._apply)

        def _apply(self, x):
            return x * self.width

    f, g = fresh(), lambda x, y: x @ y
    for _ in range(4):
        f(np.ones(2)), f(np.ones(3)), jax.jit(g)(np.ones((2, 2)), np.ones((2, 2)))
    for axes in (0, 1, (0, None), (None, 0)):
        jax.jit(jax.vmap(g, in_axes=axes))(np.ones((2, 2, 2)), np.ones((2, 2, 2)))
    for function in [Model(n).apply for n in range(4)] + [lambda x: x, lambda x: -x, lambda x: x, lambda x: x + 1]:
        function(ONE), jax.jit(function)(ONE)
    for n in range(1, 6):
        jnp.median(jnp.ones(n))                 # the library's own programs
        f.lower(np.ones(n))                     # asked for
        jax.make_jaxpr(g)(np.ones((n, n)), np.ones((n, n)))
    for kind in ("a", "b", "c", "d"):
        jax.jit(lambda x, kind=kind: x if kind == "a" else -x)(ONE)      # not the same function

    def loss(w):
        layer = jax.jit(lambda x: x * w)        # one program, written four times
        return layer(layer(layer(layer(ONE))))
    jax.jit(jax.grad(loss))(ONE)
    assert messages() == []


@pytest.mark.parametrize("make, words", [
    (lambda i: lambda x: x + 1, "make the jitted function once, outside the loop ("),
    (lambda i: lambda x: x * i, "outside the loop and pass i, which it closes over, as arguments"),
    (lambda i: functools.partial(lambda a, x: x * a, np.full(2, i)), "pass argument 0 of the partial"),
    (lambda i: jax.grad(lambda x: x * 2.0), "outside the loop ("),
])
def test_a_new_function_object_in_each_round(messages, make, words):
    for i in range(4):
        jax.jit(make(i))(1.0)
        assert len(messages()) == max(0, i - 1)
    assert "function object 3 of the same code is traced for the same argument types" in messages()[0]
    assert words in messages()[0] and HERE in messages()[0]


def test_a_trace_that_closes_over_traced_values_is_told_in_the_history(messages):
    inner = []

    def outer(w):
        inner.append(jax.jit(lambda x: x * w))
        return inner[0](inner[0](1.0)) + inner[0](2.0)
    jax.jit(outer)(ONE)
    assert "it closes over values that an outer transformation traces" in inner[0].why_retraced()[-1]
    assert messages() == []


def test_the_history_is_bounded():
    f = fresh()
    for n in range(100):
        f.eval_shape(np.ones(n))
    history = f.why_retraced()
    assert len(history) == 66 and "35 retraces" in history[1] and "retrace 99:" in history[-1]
    f.clear_cache()
    assert f.why_retraced() == []


@pytest.mark.parametrize("update", [
    lambda t: t + jnp.float32(1), lambda t: jnp.asarray(t, jnp.float32) + 1, lambda t: jnp.float32(t) * 2,
    lambda t: (t + 1).astype(jnp.float32), lambda t: jnp.where(t > 3, t, jnp.float32(1)),
    lambda t: jax.lax.fori_loop(0, 3, lambda i, c: c + jnp.float32(1), t)])
def test_a_weak_scalar_that_comes_back_strong_compiles_nothing_again(update):
    @jax.jit
    def step(state, x):
        loss, gradient = jax.value_and_grad(lambda w: ((x @ w) ** 2).mean())(state["w"])
        return {"w": state["w"] - 0.1 * gradient, "t": update(state["t"])}, loss
    state, x = {"w": jnp.ones((4, 2)), "t": 0.0}, jnp.ones((8, 4))
    compiled = []
    for _ in range(3):
        before = compilation.compile_count
        state, _ = step(state, x)
        compiled.append(compilation.compile_count - before)
    assert compiled == [1, 0, 0] and step._cache_size() == 2
    assert "state['t']: weak f32[] -> f32[], called" in step.why_retraced()[1]


def test_nothing_is_said_of_libraries_that_asked_not_to_be_taken_for_the_user(messages):
    step = fresh()
    source_info.exclude(__file__)
    try:
        for n in range(1, 8):
            step(np.ones(n))
    finally:
        source_info.include(__file__)
    assert messages() == [] and not step.why_retraced()
