"""What each option does when it is set: its effect, or an error that names it."""
import copy
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import warnings

import forked
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import random
from hlotrace.core.config import override, scoped, state, uncollected

LEGACY = np.array([0, 3], np.uint32)


@pytest.mark.parametrize("name, value, error, words", [
    ("jax_default_prng_impl", "mersenne", ValueError,
     "jax_default_prng_impl: new enum value .*, got mersenne"),
    ("jax_traceback_filtering", "sometimes", ValueError,
     "jax_traceback_filtering: new enum value .*, got sometimes"),
    ("jax_legacy_prng_key", "never", ValueError, "jax_legacy_prng_key"),
    ("jax_softmax_custom_jvp", "maybe", ValueError, "jax_softmax_custom_jvp"),
    ("jax_platforms", 3, ValueError, "jax_platforms: new string config value .*, got 3 of type"),
    ("jax_num_cpu_devices", "x", ValueError, "new int config value must be of type int, got 'x' of type"),
    ("jax_compilation_cache_dir", 3, ValueError, "new string config value must be of type str"),
    ("jax_default_device", 3, ValueError, "jax_default_device: 3"),
    ("jax_compilation_cache_max_size", None, ValueError, "jax_compilation_cache_max_size"),
    ("jax_persistent_cache_min_compile_time_secs", "long", ValueError,
     "min_compile_time_secs: new float config value must be of type float, got 'long' of type"),
])
def test_a_value_that_is_not_done_is_refused_by_name(name, value, error, words):
    before = jax.config.read(name)
    with pytest.raises(error, match=words):
        jax.config.update(name, value)
    assert jax.config.read(name) == before


@pytest.mark.quick
def test_an_environment_variable_is_refused_by_name_too():
    done = subprocess.run([sys.executable, "-c", "import hlotrace"], capture_output=True, text=True,
                          env={**os.environ, "JAX_DEFAULT_PRNG_IMPL": "rgb"})
    assert "ValueError: config option jax_default_prng_impl: new enum value" in done.stderr


def test_values_that_are_done_are_taken():
    for name, value in (("jax_default_prng_impl", "unsafe_rbg"), ("jax_traceback_filtering", "off")):
        with override(name, value):
            assert jax.config.read(name) == value


@pytest.mark.parametrize(
    "use", [random.split, random.key_data, random.normal, lambda key: random.fold_in(key, 1),
                                 lambda key: jax.jit(lambda: random.uniform(key))()])
def test_legacy_prng_key(use):
    with warnings.catch_warnings(), jax.legacy_prng_key("allow"):
        use(LEGACY)
    with jax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="old kind") as caught:
        use(LEGACY)
    assert {w.filename for w in caught} == {__file__}
    with jax.legacy_prng_key("error"), pytest.raises(ValueError, match="jax_legacy_prng_key"):
        use(LEGACY)


def test_legacy_prng_key_lets_typed_keys_be():
    with jax.legacy_prng_key("error"):
        random.split(random.key(0))
        random.wrap_key_data(random.PRNGKey(0))


def test_softmax_custom_jvp():
    """Off, softmax is differentiated through its formula: the same values by another program."""
    x = jnp.array([0.5, -1.0, 2.0])

    def gradient():
        return jax.jacobian(jax.nn.softmax)(x), str(
            jax.make_jaxpr(jax.jvp, static_argnums=0)(jax.nn.softmax, (x,), (x,)))
    (with_rule, short) = gradient()
    with jax.softmax_custom_jvp(False):
        without, long = gradient()
        assert "custom_jvp" not in str(jax.make_jaxpr(jax.nn.softmax)(x))
    np.testing.assert_allclose(with_rule, without, atol=1e-6)
    assert "custom_jvp" in str(jax.make_jaxpr(jax.nn.softmax)(x))
    assert short != long


def test_enable_custom_prng():
    with jax.enable_custom_prng(True):
        assert jnp.issubdtype(random.PRNGKey(0).dtype, jax.dtypes.prng_key)
    assert random.PRNGKey(0).dtype == np.uint32


def test_default_prng_impl_and_threefry_partitionable():
    with jax.default_prng_impl("threefry2x32"):
        assert random.key_impl(random.key(0)) == "threefry2x32"
    with jax.threefry_partitionable(False):
        other = random.bits(random.key(0), (5,))
    assert (other != random.bits(random.key(0), (5,))).any()


def test_debug_infs_stops_at_the_first_infinity():
    with jax.debug_infs(True):
        assert jnp.log(1.0) == 0
        for call in (lambda: jnp.log(0.0), lambda: jax.jit(lambda x: 1 / x)(0.0)):
            with pytest.raises(FloatingPointError):
                call()
    assert jnp.log(0.0) == -np.inf


def test_log_compiles_names_what_is_compiled(caplog):
    def named_here(x):
        return x * 3
    with jax.log_compiles(True), caplog.at_level("WARNING"):
        jax.jit(named_here)(1.0)
    assert any("named_here" in record.getMessage() for record in caplog.records)
    caplog.clear()
    jax.jit(lambda x: x * 5)(1.0)
    assert not [r for r in caplog.records if "ompil" in r.getMessage()]


def test_rank_promotion():
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with jax.numpy_rank_promotion("raise"):
        assert (x + 1).shape == (2, 3)
        with pytest.raises(ValueError, match="(?i)rank"):
            x + y
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="(?i)rank"):
        jax.jit(lambda x, y: x * y)(x, y)
    assert (x + y).shape == (2, 3)


@pytest.mark.parametrize("option, value",
                         [("jax_enable_x64", True), ("jax_default_matmul_precision", "highest"),
                                           ("jax_log_compiles", True), ("hlotrace_outline", False)])
def test_an_option_is_as_before_after_a_block_whatever_ends_it(option, value):
    before = jax.config.read(option), state.trace_key
    with pytest.raises(KeyError), override(option, value):
        assert jax.config.read(option) == value
        raise KeyError
    assert (jax.config.read(option), state.trace_key) == before


def test_options_on_the_command_line():
    program = """
import hlotrace as jax, sys
jax.config.parse_flags_with_absl()
options = "jax_enable_x64 jax_numpy_rank_promotion jax_threefry_partitionable jax_debug_nans".split()
print(*map(jax.config.read, options))
jax.config.config_with_absl()       # the flags are there already
from absl import app
app.run(lambda argv: print(argv[1:], *map(jax.config.read, options)))
"""
    first = ["--jax_enable_x64", "--jax_numpy_rank_promotion=raise"]
    later = ["--nojax_threefry_partitionable", "--jax_debug_nans=1"]
    def run(*words):
        return forked.run(program, *words)
    for words, said in [([*first, "a", *later], "True raise False True\n['a'] True raise False True\n"),
                        ([*first, "--", *later], f"True raise True False\n{later} True raise True False\n"),
                        ([], "False allow True False\n[] False allow True False\n")]:
        assert run(*words).stdout == said
    assert "jax_numpy_rank_promotion: new enum value must be in ['allow', 'warn', 'raise'], got perhaps" in run("--jax_numpy_rank_promotion=perhaps").stderr


# --- the table of options -----------------------------------------------------------------------------------

# option: values that it takes, with what they are read as; values that it refuses
VALUES = {
    "jax_enable_x64": ([(True, True), ("true", True), ("0", False), ("Off", False), (1, True), ("", False)],
                       ["maybe", 1.5, None]),
    "jax_explain_cache_misses": ([(None, None), ("auto", None), ("1", True)], ["sometimes"]),
    "jax_persistent_cache_min_entry_size_bytes": ([(5, 5), ("5", 5)], ["five", None]),
    "jax_persistent_cache_min_compile_time_secs": ([(0, 0.0), ("1.5", 1.5)], ["long"]),
    "jax_compilation_cache_dir": ([(None, None), ("", ""), (pathlib.PurePath("a/b"), os.path.join("a", "b"))],
                                  [3, True]),
    "jax_optimization_level":
        ([("O1", "O1"), (1, "O1"), (jax.CompilerEffortLevel.O2, "O2"), ("UNKNOWN", "UNKNOWN")],
                               [4, True, "O4", None]),
    "jax_default_matmul_precision": ([(None, None), ("highest", "highest")], ["hihgest"]),
    "jax_dump_ir_modes": ([("jaxpr", "jaxpr"), ("stablehlo,jaxpr", "stablehlo,jaxpr")],
                          ["text", "jaxpr,text", None]),
    "jax_platforms": ([(None, None), ("cpu", "cpu")], [3]),
    "jax_default_device": ([(None, None), ("cpu", "cpu")], [3, 1.5]),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", VALUES)
def test_what_an_option_takes(name):
    taken, refused = VALUES[name]
    before, key = jax.config.read(name), state.trace_key
    for value, read in taken:
        with override(name, value):
            found = jax.config.read(name)
            assert found == read and type(found) is type(read)
    for value in refused:
        with pytest.raises(ValueError, match=f"config option {name}: "), override(name, value):
            pass
    assert jax.config.read(name) == before and state.trace_key is key


@pytest.mark.quick
def test_what_is_no_option():
    with pytest.raises(AttributeError,
                       match="Unrecognized config option: jax_enable_x46; did you mean 'jax_enable_x64'"):
        jax.config.update("jax_enable_x46", True)
    for wrong in (lambda: jax.config.nothing_like_it, lambda: jax.config.read("nothing_like_it")):
        with pytest.raises(AttributeError, match="Unrecognized config option: nothing_like_it"):
            wrong()
    with pytest.raises(AttributeError,
                       match="not set by assignment: config.update\\('jax_enable_x64', True\\)"):
        jax.config.jax_enable_x64 = True
    assert not hasattr(jax.config, "__nothing__")


@pytest.mark.quick
def test_blocks_inside_of_each_other_and_of_other_threads():
    assert not state.x64
    with override("jax_enable_x64", True), override("jax_debug_nans", True):
        inner, seen = state.trace_key, []
        thread = threading.Thread(target=lambda: seen.append((state.x64, jax.config.jax_enable_x64)))
        thread.start()
        thread.join()
        assert seen == [(False, False)] and state.x64 and state.check_floats
        with override("jax_enable_x64", False):
            assert not state.x64 and state.check_floats and state.trace_key is not inner
        assert state.x64 and state.trace_key is inner and jax.config.values["jax_enable_x64"] is True
    assert not state.x64 and not state.check_floats


@pytest.mark.quick
def test_what_is_read_in_hot_paths_follows_the_options():
    for name, attribute in [("jax_enable_x64", "x64"), ("jax_disable_jit", "disable_jit"),
                            ("jax_debug_nans", "check_floats"),
                            ("jax_debug_infs", "check_floats"), ("hlotrace_check_bounds", "check_bounds"),
                            ("jax_no_execution", "no_execution")]:
        assert getattr(state, attribute) is False
        with override(name, True):
            assert getattr(state, attribute) is True, name
        assert getattr(state, attribute) is False


@pytest.mark.quick
def test_an_update_reaches_every_thread_that_traces_nothing():
    ready, go, seen = threading.Event(), threading.Event(), []

    def waits():
        seen.append(state.trace_key)
        ready.set()
        go.wait(10)
        seen.append(state.trace_key)
    thread = threading.Thread(target=waits)
    thread.start()
    assert ready.wait(10)
    try:
        jax.config.update("jax_numpy_rank_promotion", "warn")
        go.set()
        thread.join()
        assert seen[0] is not seen[1] is state.trace_key
    finally:
        jax.config.update("jax_numpy_rank_promotion", "allow")


@pytest.mark.quick
def test_scopes_and_the_garbage_collector():
    with scoped("outer"):
        assert state.name_stack == "outer"
        with scoped():
            assert state.name_stack == ""
        assert state.name_stack == "outer"
    assert state.name_stack == "" and gc.isenabled()
    for was in (True, False):
        (gc.enable if was else gc.disable)()
        with pytest.raises(KeyError), uncollected():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is was
    gc.enable()


@pytest.mark.quick
@pytest.mark.parametrize("frozen", [False, True])       # by a user, who keeps that
def test_what_stays_is_old_to_the_garbage_collector(frozen):
    (gc.freeze if frozen else gc.unfreeze)()
    try:
        with uncollected(stays=True):
            made = [[]]
        old, young = ({id(it) for it in gc.get_objects(generation)} for generation in (2, 0))
        assert (id(made) in old, id(made) in young) == (not frozen, frozen)
        assert bool(gc.get_freeze_count()) is frozen
    finally:
        gc.freeze()     # as conftest.py has it


def _twice():
    """Functions that double sin by custom rules; the last compute in x64 whatever is in force."""
    forward, backward = jax.custom_jvp(lambda x: jnp.sin(x) * 2), jax.custom_vjp(lambda x: jnp.sin(x) * 2)
    forward.defjvp(lambda p, t: (forward(*p), t[0] * 2 * jnp.cos(p[0])))
    backward.defvjp(lambda x: (backward(x), x), lambda x, ct: (ct * 2 * jnp.cos(x),))

    @jax.custom_vjp
    def wide(x):
        with jax.enable_x64(True):
            return jnp.sin(x) * 2.0

    def pulled(x, ct):
        with jax.enable_x64(True):
            return (ct * 2.0 * jnp.cos(x),)
    wide.defvjp(lambda x: (wide(x), x), pulled)
    return [forward, backward, wide]


@pytest.mark.parametrize("f", [
    lambda x: x + 2.0, lambda x: jnp.where(x > 1, x, 2.0), lambda x: (x * np.arange(3.0)).sum(),
    lambda x: jnp.clip(x, 0.0, 2.0) / 3.0])
def test_a_program_made_in_x64_runs_outside_of_it(f):
    """Its constants keep their width."""
    with jax.enable_x64(True):
        x = jnp.asarray(1.5)
        program, want, slope = jax.make_jaxpr(f)(x), f(x), jax.linearize(f, x)[1]
        moved = slope(x)
    for got, wanted in ((jax.extend.core.jaxpr_as_fun(program)(x)[0], want), (slope(x), moved)):
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("x64", [True, False])
def test_x64_inside_of_functions_that_were_entered_without(x64):
    """Weak values keep their dtype beside a Python int, and take that of a Python float that is wider."""
    for double in _twice():
        def within(x, double=double):
            with jax.enable_x64(x64):
                return double(x) * 2 + 1

        def beside(x, double=double):
            with jax.enable_x64(x64):
                y = jax.jit(double)(x) - 0.5
            return (y * 2.5 + x > 3) * (1 - y) ** 2
        for f in within, beside:
            for x in 1.5, np.float32(1.5):
                value, slope = jax.value_and_grad(f)(x)
                np.testing.assert_allclose(jax.jit(f)(x), value, rtol=1e-6)
                np.testing.assert_allclose(slope, (f(x + 1e-2) - f(x - 1e-2)) / 2e-2, rtol=1e-2)
    weak = jax.jit(lambda: 1.)()
    with jax.enable_x64(x64):
        wider = "float64" if x64 else "float32"
        for how in (lambda f: f(weak), lambda f: jax.jit(f)(weak)):
            assert [how(f).dtype.name for f in (lambda w: w * 2, lambda w: 2 - w, lambda w: w + 1.5,
                                                lambda w: jnp.where(w > 0, w, 1.),
                                                lambda w: jnp.maximum(w, 0), lambda w: w // 2,
                                                lambda w: w ** 0.5)] == [
                "float32", "float32", wider, wider, "float32", "float32", wider]


@pytest.mark.parametrize("made", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_the_options_are_no_value(made):
    with pytest.raises(TypeError, match="cannot be pickled or copied: config.values"):
        made(jax.config)
