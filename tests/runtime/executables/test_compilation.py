"""Programs compiled as one: found again by their text and what they are compiled with, counted, refused where too large."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.lowering.lowered import lower
from hlotrace.runtime import binding
from hlotrace.runtime.executables import compilation

X = jnp.arange(5, dtype=jnp.float32)


def compiled(f, *args, **options):
    """(the executable of a jitted function, how many programs it took, compiled or read)."""
    before = compilation.compile_count + compilation.disk_hits
    executable = jax.jit(f).lower(*args).compile(**options)._executable
    return executable, compilation.compile_count + compilation.disk_hits - before


def test_one_text_is_compiled_once():
    def one(x):
        return x * 3 + 1

    def make():
        return lambda x: one(x)
    first, _ = compiled(make(), X)
    second, made = compiled(make(), X)
    assert made == 0 and first.loaded is second.loaded


def test_the_options_of_the_compiler_are_a_part_of_the_key():
    f = lambda x: x * 5 - 1
    plain, _ = compiled(f, X)
    options = {"xla_cpu_enable_fast_math": True}
    fast, made = compiled(f, X, compiler_options=options)
    again, none = compiled(f, X, compiler_options=options)
    assert made == 1 and none == 0 and fast.loaded is again.loaded is not plain.loaded


def test_what_calls_python_is_compiled_for_each_function():
    """The text says no more of a callback than its types: programs of equal text call each their own."""
    def calling(function):
        def f(x):
            return jax.pure_callback(function, jax.ShapeDtypeStruct((5,), np.float32), x)
        return jax.jit(f)
    double, negative = calling(lambda x: x * 2), calling(lambda x: -x)
    assert [double.lower(X).as_text(), negative.lower(X).as_text()].count(double.lower(X).as_text()) == 2
    for _ in range(2):
        assert double(X).tolist() == [0, 2, 4, 6, 8] and negative(X).tolist() == [0, -1, -2, -3, -4]


@pytest.mark.quick
def test_flags_that_options_stand_for():
    assert compilation._flags() == {} and compilation._efforts() == (None, None, 0)
    with override("jax_disable_most_optimizations", True), override("jax_compiler_enable_remat_pass", False):
        assert compilation._flags() == {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True,
                                        "xla_disable_hlo_passes": "rematerialization"}
    with override("jax_optimization_level", "O1"), override("jax_memory_fitting_level", "O3"), override(
            "jax_xla_profile_version", 2):
        assert compilation._efforts() == (19, 39, 2)
    with override("jax_memory_fitting_level", "O2"):        # the usual one is XLA's own
        assert compilation._efforts()[1] is None


@pytest.mark.quick
def test_arrays_that_the_cpu_compiler_cannot_hold_are_refused_with_their_line():
    """Those of a program inside too."""
    @jax.jit
    def f(x):
        return jnp.broadcast_to(x, (100,)).sum()
    for g in f, lambda x: jnp.broadcast_to(x, (100,)) * 2:
        program = jax.make_jaxpr(g)(1.0)
        assert compilation._check_sizes(program, 100) is None
        with pytest.raises(ValueError, match=r"broadcast_in_dim with a result of type float32\[100\] for the CPU, at .*"
                           r"test_compilation.py.*has 100 elements, the limit is 99"):
            compilation._check_sizes(program, 99)


@pytest.mark.quick
def test_small_programs_are_not_looked_for_on_disk():
    """Looking costs more than compiling; where everything is to be stored, they are."""
    lowered = lower(jax.make_jaxpr(lambda x: x + 1)(1.0))
    with override("jax_persistent_cache_min_compile_time_secs", 1.0), override("jax_enable_compilation_cache", True):
        assert compilation._disk_entry(lowered, jax.devices()[:1], None) is None
    with override("jax_enable_compilation_cache", False), override("jax_persistent_cache_min_compile_time_secs", 0):
        assert compilation._disk_entry(lowered, jax.devices()[:1], None) is None


def test_modules_and_texts_are_compiled_alike(monkeypatch):
    """The first programs of a process, and long ones, are compiled from their texts, the others from modules."""
    given, real = [], compilation.backend_compile_and_load
    monkeypatch.setattr(compilation, "backend_compile_and_load",
                        lambda client, program, *args: given.append(type(program)) or real(client, program,
                                                                                           *args))
    texts = []
    for n, short in enumerate((compilation._SHORT, 0)):
        monkeypatch.setattr(compilation, "_SHORT", short)
        monkeypatch.setattr(compilation, "compile_count", compilation._SEVERAL)
        with override("jax_enable_compilation_cache", False):
            executable = jax.jit(lambda x, n=n: (jnp.sin(x) @ x, n)).lower(X).compile()
        texts.append(executable.as_text().replace(f"s32[] constant({n})", ""))
    assert given[0] is not str and given[1] is str and texts[0] == texts[1]


LOOP = lambda x: jax.lax.fori_loop(0, 3, lambda i, x: x + jnp.sin(x), x)
OVER_DEVICES = jax.device_put(jnp.ones(8), jax.NamedSharding(jax.make_mesh((2,), "x"), jax.P("x")))
SOONER = {  # which are compiled without fusion emitters, by what compiles them so: (the function, argument, is it)
    "several operations": (lambda x: jnp.tanh(x * 2) + x.sum(), X, True),
    "a branch": (lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X, True),
    "one operation on 4,096": (jnp.sin, jnp.ones(4096), True),
    "many on 8,192": (
        lambda x: jnp.where(x > 0, jnp.sin(x * 2) + jnp.cos(x), x[::-1]),
        jnp.ones(8192),
        False,
    ),
    "many on 8,192, each": (lambda x: jnp.where(x > 0, jnp.sin(x * 2) + jnp.cos(x), x), jnp.ones(8192), True),
    "one sum of 65,536": (jnp.sum, jnp.ones(65536), False),
    "a transposition": (lambda x: x.T, jnp.ones((64, 512)), False),
    "large within": (lambda x: jnp.sin(x[:, None] + jnp.ones((5, 9000))).sum(1), X, False),
    "large in a branch": (
        lambda x: jax.lax.cond(x[0] > 0, lambda x: jnp.outer(jnp.ones(9000), x).sum(0), jnp.cos, x),
        X,
        False,
    ),
    "large in an exported program": (
        lambda x: jax.export.export(jax.jit(lambda x: jnp.outer(jnp.ones(9000), x).sum(0)))(x).call(x),
        X,
        False,
    ),
    "a loop": (LOOP, X, True),
    "a loop over more": (LOOP, jnp.ones(1000), False),
    "over devices": (lambda x: jnp.tanh(x * 2) + x.sum(), OVER_DEVICES, True),
    "an operation that differs": (lambda x: jax.lax.tan(x) * 2, X, False),
    "1/sqrt": (lambda x: jax.lax.rsqrt(x) * 2, X, True),
    "1/sqrt, complex": (lambda x: jax.lax.rsqrt(x) * 2, X * 1j, False),
    "1/sqrt, float16": (lambda x: jax.lax.rsqrt(x) * 2, X.astype(jnp.float16), False),
    "log1p, float16": (lambda x: jnp.arcsinh(x) + jnp.log1p(x), X.astype(jnp.float16), False),
    "many results": (lambda x: [jnp.sin(x) + i for i in range(8)], X, True),
    "many results alike": (lambda xs: [jnp.sin(x) for x in xs], [X + i for i in range(8)], False),
    "float16": (lambda x: jnp.tanh(x * 2) + x.sum(), X.astype(jnp.float16), True),
    "float8": (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), X, False),
    "float4": (lambda x: x.astype(jnp.float4_e2m1fn).astype(jnp.float32), X, False),
}


@pytest.mark.skipif(not binding.sooner, reason="this jaxlib compiles fusions in one way")
@pytest.mark.parametrize("name", SOONER)
def test_small_programs_are_compiled_in_less_time(name, monkeypatch):
    function, x, sooner = SOONER[name]
    given = []
    compile_options = binding.compile_options
    monkeypatch.setattr(binding, "compile_options", lambda devices, overrides, *rest: given.append(overrides)
                        or compile_options(devices, overrides, *rest))
    made = jax.jit(lambda x: function(x)).lower(x)
    got = made.compile()(x)
    assert [overrides == binding.sooner for overrides in given] == [sooner]
    usual = {"xla_cpu_use_fusion_emitters": True}
    rtol = 1e-3 if "float16" in name else 1e-6
    np.testing.assert_allclose(made.compile(compiler_options=usual)(x), got, rtol=rtol)
    assert given[-1]["xla_cpu_use_fusion_emitters"]     # what a user says goes first
