"""The options that change programs, and what shows that each does."""
import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.core.config import override
from hlotrace.core.jaxpr import Eqn
from hlotrace.runtime import binding
from hlotrace.sharding import P

X = jnp.arange(3, dtype=jnp.float32)


def refuses(error, words, call):
    with pytest.raises(error, match=words):
        call()


def compiled(f):
    """The CompileOptions with which a function of X was compiled."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        make = binding.compile_options
        patch.setattr(binding, "compile_options", lambda *args, **kwargs: seen.append(make(*args, **kwargs)) or seen[-1])
        jax.jit(f)(X)
    return seen[-1]


def a_compile_option(read, wanted):
    """A check of what a program is compiled with, under the option."""
    def check(name):
        assert read(compiled(lambda x: x * len(name) + 0.125)) == wanted
    return check


def f16_reductions(_):
    x = jnp.ones(3, jnp.bfloat16)
    refuses(ValueError, r"reduce_sum on operand bfloat16\[3\] is not allowed when jax_allow_f16_reductions=False",
            lambda: lax.reduce_sum(x, (0,)))
    assert x.sum() == 3


def auto_pcast(_):
    mesh = auto_mesh((2,), ("i",))

    def call(f):
        mapped = jax.shard_map(f, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"))
        return mapped(np.ones(2, np.float32), np.ones(1, np.float32))
    assert call(lambda x, y: x + lax.pcast(y, ("i",), to="varying")).tolist() == [2, 2]
    refuses(ValueError, "jax_auto_pcast is off: lax.pcast", lambda: call(lambda x, y: x + y))


def enable_checks(_):
    def wrong(x):
        y = x + 1
        eqns = y._trace.eqns
        e = eqns[-1]
        eqns[-1] = Eqn(e.primitive, [*e.invars[:1], e.invars[0]], e.outvars, {**e.params}, e.effects, e.source, e.name_stack)
        e.outvars[0].aval = jnp.zeros((4,)).aval
        return y
    refuses(TypeError, "result is typed", lambda: jax.make_jaxpr(wrong)(X))
    assert jax.jit(lambda x: x * 2.25)(X)[2] == 4.5


def bwd_checks(_):
    @jax.custom_vjp
    def f(x):
        return x.sum()
    f.defvjp(lambda x: (x.sum(), None), lambda _, ct: (jnp.ones((1, 3)) * ct,))
    assert jax.jit(jax.vjp(f, X)[1])(1.)[0].shape == (1, 3)


def explicit_x64(_):
    refuses(ValueError, "Explicitly requested dtype float64 is not available in zeros", lambda: jnp.zeros(3, "float64"))


def gumbel(_):
    key = random.key(3)
    assert (random.gumbel(key, (50,)) == random.gumbel(key, (50,), mode="high")).all()


def seed(_):
    assert (random.key_data(random.key(0)) == random.key_data(jax.jit(random.key)(0))).all()
    with override("jax_random_seed_offset", 0):
        assert (random.key_data(random.key(7)) == OFFSET).all()


def source_file(_):
    text = jax.jit(lambda x: x + 7.5).lower(X).as_text(debug_info=True)
    assert 'loc("option_changes.py":' in text


def no_execution(_):
    f = jax.jit(lambda x: jnp.sin(x) * 3.25)
    for _ in range(2):
        for call in (lambda: f(X), lambda: X + 1, lambda: jnp.ones(3) * 5, lambda: COMPILED(X)):
            refuses(RuntimeError, "about to run where 'no_execution' is set", call)
    assert jax.eval_shape(f, X).shape == (3,)
    f.lower(X).compile()


CHANGES = {     # those that change programs: the value it is given -> what shows that
    "jax_allow_f16_reductions": (False, f16_reductions),
    "jax_auto_pcast": (False, auto_pcast),
    "jax_compiler_enable_remat_pass": (False, a_compile_option(
        lambda o: dict(o.env_option_overrides).get("xla_disable_hlo_passes"), "rematerialization")),
    "jax_disable_most_optimizations": (True, a_compile_option(
        lambda o: dict(o.env_option_overrides)["xla_backend_optimization_level"], 0)),
    "jax_memory_fitting_level": ("O3", a_compile_option(lambda o: int(o.executable_build_options.memory_fitting_level), 39)),
    "jax_optimization_level": (jax.CompilerEffortLevel.O1, a_compile_option(
        lambda o: int(o.executable_build_options.optimization_level), 19)),
    "jax_xla_profile_version": (5, a_compile_option(lambda o: o.profile_version, 5)),
    "jax_disable_bwd_checks": (True, bwd_checks),
    "jax_enable_checks": (True, enable_checks),
    "jax_explicit_x64_dtypes": ("error", explicit_x64),
    "jax_high_dynamic_range_gumbel": (True, gumbel),
    "jax_hlo_source_file_canonicalization_regex": ("^.*/", source_file),
    "jax_no_execution": (True, no_execution),
    "jax_random_seed_offset": (7, seed),
}
OFFSET, COMPILED = random.key_data(random.key(7)), jax.jit(lambda x: x - 0.375).lower(X).compile()
