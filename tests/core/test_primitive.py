"""A primitive is a checked record: what it may say is named once, and the rest is refused."""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.avals import aval_of
from hlotrace.core.primitive import PRIMITIVES, Builtin, Primitive, fact_of
from hlotrace.sharding import AbstractMesh, NamedSharding, PartitionSpec as P

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("wrong", "near"), [("transpse", "'transpose'"), ("elementwise_", "'elementwise'"),
                                             ("batchin", "'batching'"), ("colour", None)])
def test_a_rule_that_does_not_exist_is_refused(wrong, near):
    with pytest.raises(TypeError, match=f"'mine' has no rule or fact called '{wrong}'") as error:
        Primitive("mine", **{wrong: lambda: None})
    assert near is None and "did you mean" not in str(error.value) or str(near) in str(error.value)


def test_a_rule_that_does_not_exist_cannot_be_set_later():
    with pytest.raises(AttributeError, match="transpse"):
        Primitive("mine").transpse = lambda: None


def test_rules_may_be_given_under_their_former_names():
    former = Primitive("former", typ=lambda x: x, batch=len)
    assert former.typecheck([aval_of(1.0)], {}) == [aval_of(1.0)] and former.batching is len


def test_a_builtin_cannot_be_defined_twice():
    before = PRIMITIVES["clamp"]
    with pytest.raises(ValueError, match="already"):
        Builtin("clamp")
    assert PRIMITIVES["clamp"] is before


@pytest.mark.compiles
def test_another_primitive_of_the_same_name_changes_nothing():
    for name in ("clamp", "select_n", "reduce_sum", "pvary"):
        Primitive(name)
    assert lax.switch(7, [lambda x: x, lambda x: 2 * x], 3.0) == 6.0
    assert jax.grad(lambda x: jnp.broadcast_to(x, (3,)).sum())(1.0) == 3.0


def programs(f):
    """`f` within each primitive that holds programs."""
    yield jax.make_jaxpr(jax.jit(f))
    yield jax.make_jaxpr(jax.checkpoint(f))
    yield jax.make_jaxpr(lambda x: lax.cond(x.sum() > 0, f, lambda y: y, x))
    yield jax.make_jaxpr(lambda x: lax.while_loop(lambda v: f(v).sum() > 0, lambda v: v, x))
    yield jax.make_jaxpr(lambda x: lax.scan(lambda c, _: (jax.jit(f)(c), None), x, None, length=2)[0])


def test_facts_are_those_of_the_programs_that_are_held():
    sharding = NamedSharding(AbstractMesh((2,), ("data",)), P("data"))

    def f(x):
        jax.debug.print("x")
        return lax.with_sharding_constraint(lax.psum(x, "i"), sharding)
    for traced in programs(f):
        found = []

        def run(x, traced=traced, found=found):
            found.append(traced(x))
            return x
        jax.vmap(run, axis_name="i")(jnp.ones((3, 2)))
        jaxpr, = found
        assert fact_of(jaxpr, "axis_names") == ("i",)
        assert fact_of(jaxpr, "meshes") == (sharding.mesh,)
        assert len(jaxpr.effects) == 1
