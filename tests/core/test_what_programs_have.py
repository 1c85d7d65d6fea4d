"""What a program, an equation and a primitive tell of themselves, as JAX's do."""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import core
from hlotrace.core.effects import Debug, Effects
from hlotrace.extend.core import Primitive

pytestmark = pytest.mark.quick


def program(*consts):
    def f(x, y):
        jax.debug.print("{}", x)
        return jnp.sin(x) * y + sum(consts)
    return jax.make_jaxpr(f)(1., 2.)


def test_lists_and_sets():
    closed = program(jnp.ones(3))
    for what in "consts literals constvars invars outvars eqns in_avals out_avals".split():
        assert type(getattr(closed, what)) is list, what
    assert len(closed.consts) == len(closed.jaxpr.constvars) == 1
    assert closed.effects & closed.effects == closed.effects == set(closed.effects) and len(
        closed.effects) == 1
    assert not closed.effects - closed.effects and isinstance(next(iter(closed.effects)), Debug)
    assert program().effects | closed.effects == closed.effects and jax.make_jaxpr(jnp.sin)(
        1.).effects == core.no_effects
    assert hash(Effects([Debug()])) == hash(Effects([Debug(), Debug()])) and repr(
        Effects([Debug()])) == "{debug}"


def test_debug_info_is_high_and_contexts():
    jaxpr = program().jaxpr
    assert jaxpr.debug_info.traced_for == "jit" and jaxpr.debug_info.arg_names == (
        "x", "y") and jaxpr.is_high is False
    assert "f" in jaxpr.debug_info.func_src_info
    eqn = jaxpr.eqns[-1]
    assert eqn.ctx.compute_type is None and eqn.ctx.threefry_partitionable
    with eqn.ctx.manager:
        same = eqn.replace(ctx=eqn.ctx, source_info=eqn.source_info)
    assert (same.primitive, same.source, same.name_stack) == (eqn.primitive, eqn.source, eqn.name_stack)


def test_replace():
    closed = program(jnp.ones(3))
    open_ = closed.jaxpr.replace(eqns=closed.jaxpr.eqns[:],
                                 debug_info=closed.jaxpr.debug_info._replace(arg_names=("a", "b")))
    found = closed.replace(jaxpr=open_, consts=[jnp.zeros(3)])
    assert found.consts[0].tolist() == [0] * 3 and found.arg_names == ("a", "b") and found.name == closed.name
    assert closed.replace(jaxpr=open_.replace(consts=())).consts is not closed.consts
    assert closed.replace(effects=set(closed.effects)).effects == closed.effects
    with pytest.raises(ValueError, match="not those of the equations"):
        closed.replace(effects=set())


class Double(Primitive):
    def abstract_eval(self, x):
        return x, set()

    def impl(self, x):
        return x * 2


class Both(Primitive):
    multiple_results = True

    def abstract_eval(self, x):
        return [x, x], {Debug()}


def test_primitives_whose_class_has_the_rules():
    double, both = Double("double_of_a_class"), Both("both_of_a_class")
    assert jax.make_jaxpr(double.bind)(1.).eqns[0].primitive is double and both.multiple_results
    found = jax.make_jaxpr(lambda x: both.bind(x))(1.)
    assert len(found.out_avals) == 2 and found.effects == {Debug()}
    assert double.bind(3) == 6
    plain = type("Plain", (Primitive,), {})("plain_of_a_class")
    with pytest.raises(NotImplementedError, match="Abstract evaluation for .* not implemented"):
        jax.make_jaxpr(plain.bind)(1.)
