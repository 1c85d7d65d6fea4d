"""ensure_compile_time_eval: what is known is computed at once, what is not is traced as it is outside of the
block."""
import math

import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X = jnp.array([0.5, 1.5, 2.5])
Y = 0.5

# uses of the tracer `x` in the block, from single operations to programs
USES = {
    "comparison": lambda x: (x == x) * x,
    "operation": lambda x: jnp.sin(x) * 2 + jnp.cos(1.0),
    "indexing and where": lambda x: jnp.where(x > 1, x, x.sum()),
    "jit that closes over it": lambda x: jax.jit(lambda y: y + x)(2.0),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: -x),
    "scan": lambda x: lax.scan(lambda c, v: (c + v, c * v), 0.0, x),
    "grad": lambda x: jax.grad(lambda y: (jnp.sin(y) * x).sum())(x),
    "vmap": lambda x: jax.vmap(jnp.sin)(x),
}
# the transformations around the block
AROUND = {
    "jit": lambda f: jax.jit(f)(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "vmap": lambda f: jax.vmap(f)(jnp.stack([X, X + 1])),
    "scan": lambda f: lax.scan(lambda c, _: (c, f(c)), X, None, 2),
    "checkpoint": lambda f: jax.checkpoint(f)(X),
    "jit of vmap of jvp": lambda f:
        jax.jit(jax.vmap(lambda x: jax.jvp(f, (x,), (x,))))(jnp.stack([X, X + 1])),
    "two tracers": lambda f: jax.vmap(lambda y: jax.jit(lambda x: f(x * y))(X))(jnp.ones(2)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("use", USES)
def test_tracers_are_traced(use, around):
    def inside(x):
        with jax.ensure_compile_time_eval():
            return USES[use](x)
    same(AROUND[around](inside), AROUND[around](USES[use]))


@pytest.mark.parametrize("around", ["jit", "vmap", "scan"])
def test_known_values_are_values(around):
    def inside(x):
        with jax.ensure_compile_time_eval(), jax.ensure_compile_time_eval():
            known = jnp.sin(jnp.ones(3)).sum() + jax.jit(jnp.cos)(0.0)
        assert not isinstance(known, jax.core.Tracer)
        return x + float(known)
    same(AROUND[around](inside), AROUND[around](lambda x: x + (3 * math.sin(1) + 1)))


def test_operands_of_several_traces_go_to_the_innermost():
    def outer(y):
        def inner(x):
            with jax.ensure_compile_time_eval():
                return jnp.add(y, x) * jnp.ones(3)
        return jax.jit(inner)(X)
    same(jax.grad(lambda y: outer(y).sum())(Y), 3.0)


def test_a_tracer_has_no_truth_value():
    def inside(x):
        with jax.ensure_compile_time_eval():
            return bool((x == x).all())
    with pytest.raises(jax.errors.TracerBoolConversionError, match="jit of inside"):
        jax.jit(inside)(X)


def test_a_tracer_whose_trace_has_ended():
    kept = []
    jax.jit(lambda x: kept.append(x))(X)

    def inside(x):
        with jax.ensure_compile_time_eval():
            return kept[0] + 1
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(inside)(X)


def test_as_a_decorator():
    @jax.ensure_compile_time_eval()
    def size():
        return int(jnp.arange(3).sum())
    assert jax.jit(lambda x: jnp.full(size(), x))(1.).shape == (3,) and size() == 3
