"""Modules of JAX's inside that are files of this package: `config`, `deprecations`, `jaxpr_util`,
`pretty_printer`; and what the loggers say."""
import gzip
import types
import warnings

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.as_jax import deprecations, faces, inside, jaxpr_util, options as config, pretty_printer as pp


def test_the_error_of_a_custom_rule_that_closes_over_what_is_differentiated():
    def f(y):
        @jax.custom_vjp
        def scaled(x):
            return x * y
        scaled.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
        return jax.jit(scaled)(2.)
    ad = inside.module("jax._src.interpreters.ad")
    with pytest.raises(ad.CustomVJPException, match="with respect to a value it closes over"):
        jax.grad(f)(3.)


def test_options_are_defined_set_and_checked():
    told = []
    text = config.string_state("jax_test_text", "a", "Doc.",
                               update_global_hook=lambda v: told.append(("all", v)),
                               update_thread_local_hook=lambda v: told.append(("here", v)))
    with text("b"):
        assert text.value == jax.config.jax_test_text == "b"
    jax.config.update("jax_test_text", "c")
    assert text.value == "c" and told == [("all", "a"), ("here", "b"), ("here", None), ("all", "c")]
    flag = config.bool_state("jax_test_flag", False, "Doc.")
    with flag(), flag(True):
        assert flag.value is True
    assert flag.value is False and "jax_test_flag" in jax.config.values
    for make, wrong in [(lambda: bool(flag), TypeError), (lambda: text(3), TypeError),
                        (lambda: config.bool_state("jax_test_flag", False, ""), ValueError),
                        (lambda: config.bool_state("jax_test_other", 3, ""), TypeError),
                        (lambda: config.enum_state("jax_test_choice", ["x"], "y", ""), ValueError),
                        (lambda: config.optional_enum_state("jax_test_choice", ["x"], None, "")("z"),
                         ValueError),
                        (lambda: config.int_state("jax_test_int", 1, "")(2.5), ValueError),
                        (lambda: config.float_state("jax_test_float", 1.0, "")("a"), ValueError),
                        (lambda: jax.config.update("jax_test_flag", "perhaps"), ValueError)]:
        with pytest.raises(wrong):
            make()


def test_an_option_in_the_trace_context_is_traced_again():
    option = config.int_state("jax_test_traced", 1, "Doc.", include_in_trace_context=True)
    scaled = jax.jit(lambda x: x * option.value)
    assert scaled(2) == 2
    with option(5):
        assert scaled(2) == 10
    assert scaled(2) == 2


def test_environment(monkeypatch):
    for name, value in (("JAX_TEST_ON", "t"), ("JAX_TEST_N", "12"), ("JAX_TEST_NONSENSE", "perhaps")):
        monkeypatch.setenv(name, value)
    assert config.bool_env("JAX_TEST_ON", False) and config.int_env("JAX_TEST_N", 1) == 12
    assert config.int_state("jax_test_n", 1, "").value == 12 and not config.bool_env(
        "JAX_TEST_NOT_THERE", False)
    with pytest.raises(ValueError, match="invalid truth value"):
        config.bool_env("JAX_TEST_NONSENSE", False)


def test_deprecations():
    module = types.ModuleType("some_module")
    module._deprecations = {"old": ("use new", 42), "gone": ("it is gone", None)}
    module.__getattr__ = deprecations.deprecation_getattr("some_module", module._deprecations)
    with pytest.warns(DeprecationWarning, match="use new"):
        assert module.old == 42
    for name, words in (("gone", "it is gone"), ("other", "no attribute 'other'")):
        with pytest.raises(AttributeError, match=words):
            getattr(module, name)
    assert not deprecations.is_accelerated_attribute(module, "old")
    deprecations.accelerate_getattr_deprecation(module, "old")
    with pytest.raises(AttributeError, match="use new"):
        print(module.old)
    deprecations.register("an-id")
    with pytest.warns(DeprecationWarning, match="soon") as seen:
        deprecations.warn("an-id", "soon", stacklevel=1)
    assert seen[0].filename == __file__
    deprecations.accelerate("an-id")
    with warnings.catch_warnings(), pytest.raises(KeyError):
        deprecations.warn("an-id", "now", stacklevel=1, error_class=KeyError)
    deprecations.register("an-id")
    assert not deprecations.is_accelerated("an-id")
    deprecations.unregister("an-id")
    for use in (deprecations.is_accelerated, deprecations.accelerate, deprecations.unregister):
        with pytest.raises(ValueError, match="not registered"):
            use("an-id")


def test_what_is_in_a_program():
    jaxpr = jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x) + jnp.sin(x * 2))(1.0).jaxpr
    assert jaxpr_util.primitives(jaxpr) == {"jit": 1, "mul": 1, "sin": 2, "add": 1} and jaxpr_util.count_eqns(
        jaxpr) == 5
    assert jaxpr_util.primitives_by_shape(jaxpr)["sin :: float32[]"] == 2
    assert all("checks_of_inner_modules.py" in key for key in jaxpr_util.primitives_by_source(jaxpr))
    assert sum(jaxpr_util.source_locations(jaxpr).values()) == 5
    (_, whole), (_, inner) = jaxpr_util.var_defs_and_refs(jaxpr)
    assert [eqn and eqn.primitive.name for _, eqn, _ in whole] == [None, "jit", "mul", "sin", "add"]
    assert [[user and user.primitive.name for user in users] for *_, users in inner] == [["sin"], [None]]
    assert [eqn.primitive.name for eqn in jaxpr_util.eqns_using_var(jaxpr, jaxpr.invars[0])] == ["jit", "mul"]
    assert gzip.decompress(jaxpr_util.pprof_equation_profile(jaxpr))
    sine = jax.jit(jnp.sin)
    twice = jax.make_jaxpr(lambda x: sine(x) + sine(-x))(1.0).jaxpr
    assert [jaxpr_util.count_eqns(twice, again) for again in (True, False)] == [6, 5]


def test_cache_misses_are_told_in_the_words_of_jax(caplog):
    f = jax.jit(lambda x, n=1: x * 2, static_argnums=1)
    with config.explain_cache_misses(True), caplog.at_level("WARNING"):
        for args in ((1.0,), (jnp.ones(3),), (jnp.ones(3, int),), (jnp.ones(3), 5)):
            f(*args)
        with jax.numpy_rank_promotion("warn"):
            f(1.0)
    logger = "jax._src.interpreters.partial_eval"
    told = [r.getMessage() for r in caplog.records if r.name == logger]
    for text, words in zip(told, ("never seen function:", "now f32[3] and before f32[]",
                                  "now i32[3] and before f32[3]",
                                  "different input pytree:", "now 'warn' and before 'allow'"),
                           strict=True):
        assert text.startswith("TRACING CACHE MISS at ") and words in text, text


def test_compiles_are_told_by_the_loggers_of_jax(caplog):
    with jax.log_compiles(), caplog.at_level("WARNING"):
        jax.jit(lambda x: x * 2.5)(1.0)
    told = [(r.name, r.getMessage().split(" <")[0].split("(")[0]) for r in caplog.records]
    assert told == [("jax._src.dispatch", "Finished tracing"),
                    ("jax._src.interpreters.pxla", "Compiling jit"),
                    ("jax._src.dispatch", "Finished jaxpr to MLIR module conversion jit"), told[3]]
    assert told[3] in [("jax._src.dispatch", "Finished XLA compilation of jit"), ("hlotrace", "loaded")]


def test_documents_of_text():
    call = pp.group(pp.text("f(")
                    + pp.nest(2, pp.brk("") + pp.join(pp.text(",") + pp.brk(),
                                                      [pp.text("aaa"), pp.text("b")]))
                    + pp.brk("") + pp.text(")"))
    assert call.format() == str(call) == "f(aaa, b)" and call.format(width=8) == "f(\n  aaa,\n  b\n)"
    assert pp.keyword(pp.text("let")).format(use_color=True) == "\x1b[34;1mlet\x1b[39;22m"
    assert pp.type_annotation(pp.text("f32[]")).format(use_color=False) == "f32[]" and pp.join(
        pp.nil(), []).format() == ""
    lines = [[]]
    pp.group(pp.text("a") + pp.brk() + pp.source_map(pp.text("b"), 7)).format(width=1, source_map=lines)
    assert lines[-1] == [(0, 1, 7)]


def test_who_listens():
    def listener(*_, **__):
        """Hear, and do nothing."""
    for kind, register in (("event", jax.monitoring.register_event_listener),
                           ("event_duration", jax.monitoring.register_event_duration_secs_listener),
                           ("event_time_span", jax.monitoring.register_event_time_span_listener),
                           ("scalar", jax.monitoring.register_scalar_listener)):
        register(listener)
        assert getattr(faces, f"get_{kind}_listeners")() == [listener]
    jax.monitoring.clear_event_listeners()
    assert faces.get_event_listeners() == []
