"""Ahead of time: trace, lower, compile; what each stage shows, and the checks of a compiled call."""
import itertools
import re

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.runtime.executables import compilation

S = jax.ShapeDtypeStruct
X = S((2, 3), jnp.float32)


@jax.jit
def f(x, y={"a": 1.0}):     # noqa: B006
    return x @ x.T + y["a"], {"n": x.sum()}


def test_every_stage():
    traced = f.trace(X)
    lowered = traced.lower()
    compiled = lowered.compile()
    want = (S((2, 2), jnp.float32), {"n": S((), jnp.float32)})
    assert traced.out_info == lowered.out_info == want
    weak = jax.jit(lambda x: x).trace(1)
    assert [s.out_info.weak_type for s in (weak, weak.lower(), weak.lower().compile())] == [True, False, False]
    place = jax.tree.map(lambda f, s: S(s.shape, s.dtype, sharding=f), compiled.output_formats, want)
    assert compiled.out_info == place and place[1]["n"].format == compiled.output_formats[1]["n"]
    assert "dot_general" in str(traced.jaxpr) and traced.fun_name == "f"
    text = lowered.as_text()
    assert "func.func public @main" in text and "stablehlo.dot_general" in text and "test_stages.py" not in text
    assert "test_stages.py" in lowered.as_text(debug_info=True)
    assert "HloModule" in lowered.as_text("hlo") and "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0 and lowered.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis().argument_size_in_bytes >= 24
    assert lowered.in_tree == compiled.in_tree == jax.tree.structure(((X,), {}))
    out, more = compiled(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(out, np.full((2, 2), 4.0))
    assert float(more["n"]) == 6
    with pytest.raises(ValueError, match="dialect"):
        lowered.as_text("bogus")


def test_named_scopes_and_inner_functions_are_in_the_text():
    def g(x):
        with jax.named_scope("layer"):
            return jax.jit(lambda y: jnp.sin(y))(x) + 1
    lowered = jax.jit(g).lower(1.0)
    assert "func.func private" in lowered.as_text() and "layer" in lowered.as_text(debug_info=True)


COMPILED = jax.jit(lambda x, y: x + y["k"]).lower(S((2,), jnp.float32), {"k": S((), jnp.int32)}).compile()
ONES = np.ones(2, np.float32)


@pytest.mark.parametrize("args", [(ONES, {"k": 1}), (jnp.ones(2), {"k": jnp.int32(1)}), (np.ones(2), {"k": np.int64(1)})])
def test_a_compiled_call_takes_what_canonicalizes_to_its_types(args):
    np.testing.assert_array_equal(COMPILED(*args), [2, 2])


@pytest.mark.parametrize("call, words", [
    (lambda: COMPILED(np.ones(3, np.float32), {"k": 1}), r"\* x: compiled for float32\[2\], called with float32\[3\]"),
    (lambda: COMPILED(np.ones(2, np.float16), {"k": 1}), "called with float16"),
    (lambda: COMPILED(np.ones(2, np.int32), {"k": 1}), r"called with int32\[2\]"),     # same number of bytes
    (lambda: COMPILED(ONES, {"k": 1.0}), r"\* y\['k'\]: compiled for int32\[\], called with float32"),
    (lambda: COMPILED(ONES), "input pytree does not match"), (lambda: COMPILED(ONES, {"z": 1}), "only called has 'z'"),
    (lambda: COMPILED(ONES, y={"k": 1}), "input pytree does not match"), (lambda: COMPILED("s", {"k": 1}), "str"),
    (lambda: COMPILED(S((2,), jnp.float32), {"k": 1}), "ShapeDtypeStruct"),
    (lambda: jax.jit(lambda x: COMPILED(x, {"k": 1}))(ONES), "Tracer"),
    (lambda: jax.grad(lambda x: COMPILED(x, {"k": 1}).sum())(ONES), "Tracer"),
    (lambda: jax.vmap(lambda x: COMPILED(x, {"k": 1}))(np.ones((3, 2), np.float32)), "Tracer"),
])
def test_a_compiled_call_checks_its_arguments(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_static_arguments_are_not_passed_again():
    g = jax.jit(lambda x, n: x * n if isinstance(n, int) else None, static_argnums=1)
    c = g.lower(S((2,), jnp.float32), 3).compile()
    np.testing.assert_array_equal(c(ONES), [3, 3])
    assert g.eval_shape(S((2,), jnp.float32), 2) == S((2,), jnp.float32)
    with pytest.raises(TypeError, match="static arguments are not given again"):
        c(ONES, 3)
    with pytest.raises(ValueError, match="Non-hashable static"):
        g.lower(ONES, [1])


def test_donation_unused_arguments_and_constants():
    x = jnp.ones(4)
    c = jax.jit(lambda x: x + 1, donate_argnums=0).lower(S((4,), jnp.float32)).compile()
    np.testing.assert_array_equal(c(x), np.full(4, 2.0))
    with pytest.raises(RuntimeError, match="deleted"):
        c(x)
    c = jax.jit(lambda x, y: x).lower(S((2,), jnp.float32), S((3,), jnp.int32)).compile()
    np.testing.assert_array_equal(c(ONES, np.arange(3)), ONES)
    with pytest.raises(TypeError, match=r"\* y: "):
        c(ONES, np.arange(4))
    big = np.arange(2000.0, dtype=np.float32)
    np.testing.assert_allclose(jax.jit(lambda x: (x + jnp.asarray(big))[-2:]).lower(1.0).compile()(1.0), [1999, 2000])


def test_transformed_functions():
    assert float(jax.jit(jax.grad(jnp.sin)).lower(1.0).compile()(1.0)) == pytest.approx(np.cos(1.0))
    np.testing.assert_allclose(jax.jit(jax.vmap(jnp.sin)).lower(X).compile()(np.ones((2, 3), np.float32)), np.sin(1),
                               rtol=1e-6)


def test_scopes_stay_with_what_transformations_make_of_operations():
    def layer(w, x):
        with jax.named_scope("mlp"):
            return jnp.tanh(x @ w)

    def loss(w, x):
        with jax.named_scope("net"):
            y = layer(w, layer(w, x))
        return (y**2).sum()
    w = jnp.ones((4, 4))
    for fun, args in ((jax.grad(loss), (w, w)), (jax.grad(jax.jit(loss)), (w, w)),
                      (jax.vmap(jax.grad(loss), (None, 0)), (w, jnp.ones((3, 4, 4))))):
        text = jax.jit(fun).lower(*args).as_text(debug_info=True)
        paths = re.findall(r'loc\("([^"]*)/(?:dot_general|tanh)"', text)
        assert len(paths) >= 2 and all(
            re.search(r"\bnet\)*/mlp$", path) and path.count("mlp") == 1 for path in paths)


@pytest.mark.parametrize("how", ["plain", "constants", "unused", "static", "names", "trees"])
def test_what_is_donated_is_what_was_asked_for(how):
    """Wherever the donated argument of five elements ends up among the inputs of the program."""
    big = np.arange(2000.0, dtype=np.float32)      # too long to stand in the program: an input of it
    a, b, c = (jnp.ones(n) for n in (4, 5, 6))
    call, args, kwargs = {
        "plain": (jax.jit(lambda a, b, c: (a + 1, b + 1, c + 1), donate_argnums=1), (a, b, c), {}),
        "constants": (jax.jit(lambda a, b, c: (a + 1, b + (big * a[0]).sum(), c + 1), donate_argnums=1), (a, b, c), {}),
        "unused": (jax.jit(lambda a, b, c: b + 1, donate_argnums=1), (a, b, c), {}),
        "static": (jax.jit(lambda n, a, m, b, c: (a + n, b + m, c), static_argnums=(0, 2), donate_argnums=3),
                   (1, a, 2, b, c), {}),
        "names": (jax.jit(lambda a, c, b: (a + 1, b + 1, c + 1), donate_argnames="b"), (a,), {"c": c, "b": b}),
        "trees": (jax.jit(lambda t, u: (t["x"] + 1, u["b"] + 1, u["d"]), donate_argnums=1),
                  ({"x": a, "y": c}, {"b": b, "d": b}), {}),
    }[how]
    text = call.lower(*args, **kwargs).as_text()
    donors = re.findall(r"tensor<(\w+)> \{[^}]*(?:buffer_donor|aliasing_output)", text)
    assert donors == ["5xf32"] * (2 if how == "trees" else 1)
    if how != "trees":      # the same array twice cannot be donated twice
        call(*args, **kwargs)
        assert b.is_deleted() and not a.is_deleted() and not c.is_deleted()


def test_stages_have_classes():
    traced = f.trace(X)
    assert isinstance(f, jax.stages.Wrapped) and isinstance(traced, jax.stages.Traced)
    lowered = traced.lower()
    assert isinstance(lowered, jax.stages.Lowered) and isinstance(lowered.compile(), jax.stages.Compiled)


def test_named_call_puts_a_function_in_a_scope():
    def inner(x):
        return jnp.sin(x)
    text = jax.jit(jax.named_call(inner, name="outer")).lower(1.0).as_text(debug_info=True)
    assert "outer/" in text and jax.named_call(inner)(0.0) == 0 and jax.named_call(inner).__name__ == "inner"


def test_what_is_evaluated_while_tracing():
    """On values that are known; a tracer is none."""
    def g(x):
        with jax.ensure_compile_time_eval():
            y = jnp.arange(3).sum()
            assert not isinstance(y, jax.core.Tracer)
            known = int(y)
        return x + known
    assert jax.jit(g)(1.0) == 4
    assert not [e for e in jax.make_jaxpr(g)(1.0).eqns if e.primitive.name == "reduce_sum"]


def test_names_that_stand_for_others():
    assert jax.remat is jax.ad_checkpoint.remat is jax.checkpoint
    assert jax.dtypes.canonicalize_dtype("float64") == jax.dtypes.canonicalize_dtype(None) == np.float32
    with jax.enable_x64(True):
        assert jax.dtypes.canonicalize_dtype("float64") == np.float64
    key = jax.random.key(0)
    assert key.dtype == jax.random.key_dtype() and jnp.issubdtype(key.dtype, jax.dtypes.extended)
    assert not jnp.issubdtype("float32", jax.dtypes.extended) and issubclass(jax.errors.KeyReuseError, TypeError)


def test_fetching_begins_and_gives_the_tree_back():
    tree = {"a": jnp.arange(3), "b": [2.0, None]}
    assert jax.copy_to_host_async(tree) is tree and tree["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(("value", "shape", "dtype", "weak"), [
    (jnp.ones((2, 3)), (2, 3), "float32", False), (np.ones(2), (2,), "float32", False), (1.5, (), "float32", True),
    (True, (), "bool", False), (S((2,), jnp.int8), (2,), "int8", False), (jnp.asarray(1), (), "int32", True),
    (np.int8(1), (), "int8", False), (jnp.zeros((0, 2), "bfloat16"), (0, 2), "bfloat16", False)])
def test_the_type_of_a_value(value, shape, dtype, weak):
    assert S.like(value) == S(shape, dtype, weak_type=weak)
    seen = []
    jax.jit(lambda x: seen.append(S.like(x)))(jnp.zeros(shape, dtype))
    assert seen == [S(shape, dtype)]


def test_the_type_of_a_value_has_its_placement():
    device = jax.devices()[1]
    assert S.like(jax.device_put(jnp.ones(2), device)).sharding == jax.sharding.SingleDeviceSharding(device)
    assert S.like(S((8,), "int8", sharding=jax.sharding.SingleDeviceSharding(device))).sharding.device_set == {device}
    assert S.like(jnp.ones(2)).sharding is None and S.like(jax.random.key(0)).dtype == jax.random.key(0).dtype
    with pytest.raises(TypeError, match="not a valid JAX type"):
        S.like([1])


# --- one program for calls and for what is compiled ahead of time ---------------------------------------------------

_numbers = itertools.count(100)     # each makes another program


def _compiles(f):
    before = compilation.compile_count
    f()
    return compilation.compile_count - before


@pytest.mark.parametrize("args, kwargs, options", [
    ((jnp.ones(3),), {}, {}), ((2.,), {}, {}), ((np.ones(3, np.float32),), {}, {}), (({"a": jnp.ones(3)},), {}, {}),
    ((jnp.ones(3), 3), {}, {"static_argnums": 1}), ((jnp.ones(3),), {"n": 4}, {"static_argnames": "n"}),
    ((jnp.ones(3) + 1,), {}, {"donate_argnums": 0}),
    ((jnp.ones(3),), {}, {"compiler_options": {"xla_cpu_enable_fast_math": False}}),
    ((jnp.ones(3),), {}, {"compiler_options": {"optimization_level": 1}}),
])
def test_a_call_after_compiling_ahead_of_time_compiles_nothing_and_the_reverse(args, kwargs, options):
    jax.tree.map(lambda x: x + 0 if isinstance(x, jax.Array) else x, args)      # that compiles too, once
    for first_ahead in (True, False):
        traced, number = [], next(_numbers)

        def f(x, n=2, traced=traced, number=number):
            traced.append(n)
            return jax.tree.map(lambda x: x * n + number, x)
        jitted = jax.jit(f, **options)
        given = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, "shape") else x, args)

        def ahead(jitted=jitted, given=given):
            jitted.trace(*given, **kwargs).lower().compile()

        def call(jitted=jitted):
            jitted(*jax.tree.map(lambda x: x + 0 if isinstance(x, jax.Array) else x, args), **kwargs)
        roads = (ahead, call) if first_ahead else (call, ahead)
        assert [_compiles(f) for f in (roads[0], roads[1], roads[0])] == [1, 0, 0] and len(traced) == 1


def test_what_was_compiled_otherwise_is_not_shared():
    x = jnp.ones(3)
    f = jax.jit(lambda x: x * 2 + 17)
    assert _compiles(lambda: f.lower(x).compile({"xla_backend_optimization_level": 0})) == 1
    assert _compiles(lambda: f(x)) == 1
    h = jax.jit(lambda x: x @ x + 19)
    lowered = h.lower(x)
    with jax.default_matmul_precision("float32"):
        lowered.compile()
        assert "HIGHEST" in h.lower(x).as_text()
        same(h(x), 22.)


def test_hlo_has_names_and_places_where_they_are_asked_for():
    def wave(x):
        return jnp.sin(x)
    lowered = jax.jit(wave).lower(1.)
    plain, told = lowered.as_text("hlo"), lowered.as_text("hlo", debug_info=True)
    assert "op_name" not in plain and 'op_name="jit(wave)/sin"' in told and __file__ in told
    assert 'locals>.wave"(#loc' in lowered.as_text(debug_info=True)


def test_device_assignment_is_that_of_the_lowering():
    lowered = jax.jit(lambda x: x + 1).lower(1.)
    device, = jax.devices()[:1]
    assert lowered.compile(device_assignment=(device,))(1.) == lowered.compile(device_assignment=None)(1.) == 2.
    with pytest.raises(NotImplementedError, match="device_assignment=.* is not supported, as <lambda> was lowered for"):
        lowered.compile(device_assignment=(device, device))
