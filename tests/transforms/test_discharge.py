"""States that are threaded through programs and those inside them: which equations change one, and where it
goes in and out."""
import dataclasses

import numpy as np
import pytest
from saying import HOLDERS, told

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core import programs
from hlotrace.core.avals import ShapedArray
from hlotrace.core.effects import ORDERED_TOKEN, Debug, Effect, State
from hlotrace.core.jaxpr import check_jaxpr, eval_jaxpr
from hlotrace.core.primitive import Primitive
from hlotrace.primitives.arrays.elementwise import add_p
from hlotrace.transforms.discharge import thread_tokens


@dataclasses.dataclass(frozen=True)
class Counts(Effect):
    pass


COUNTER = State(ShapedArray((), np.dtype(np.int32)), lambda effect: type(effect) is Counts)
count_p = Primitive("count", abstract_eval=lambda x: x, effects=lambda params: (Counts(),),
                    discharge=lambda states, values, args: (
    [add_p.bind(values[0], np.int32(1))], args[0]))


def test_a_state_is_threaded_through_programs_and_those_inside_them():
    threaded = {}
    for holder, (function, _) in HOLDERS.items():
        if holder != "condition of while":
            jaxpr = jax.make_jaxpr(lambda x, function=function: function(count_p.bind, x))(1.0)
            assert jaxpr.effects == {Counts()}
            threaded[holder] = programs.discharge(jaxpr, (COUNTER,))
            check_jaxpr(threaded[holder])
            assert not threaded[holder].effects
    counts = jax.jit(lambda n, x: {holder: eval_jaxpr(jaxpr, (), n, x)[0]
                                   for holder, jaxpr in threaded.items()})(
        jnp.int32(10), jnp.float32(1))
    assert counts == {holder: 10 + len(HOLDERS[holder][1]) for holder in threaded}


def test_states_of_two_kinds_are_served_apart():
    heard = []

    def f(x):
        jax.debug.callback(lambda v: heard.append(float(v)), x, ordered=True)
        return lax.fori_loop(0, 3, lambda _, c: count_p.bind(c) + 1, x)
    jaxpr = jax.make_jaxpr(f)(1.0)
    both = programs.discharge(jaxpr, (COUNTER, ORDERED_TOKEN))
    assert [v.aval for v in both.invars[:2]] == [COUNTER.aval, ORDERED_TOKEN.aval]
    counted = programs.discharge(jaxpr, (COUNTER,))
    count, result = jax.jit(lambda n, x: eval_jaxpr(counted, (), n, x))(jnp.int32(0), jnp.float32(1))
    jax.effects_barrier()
    assert (int(count), float(result), heard) == (3, 4.0, [1.0])


def test_a_primitive_that_cannot_carry_a_state_says_so():
    jaxpr = jax.make_jaxpr(lambda x: lax.reduce(x, 0.0, lambda a, b: count_p.bind(a) + b, (0,)))(jnp.ones(3))
    with pytest.raises(NotImplementedError, match="reduce has no rule to thread states"):
        programs.discharge(jaxpr, (COUNTER,))


def test_states_come_before_inputs_and_outputs():
    jaxpr = jax.make_jaxpr(lambda x, y: (count_p.bind(x), y, x))(1.0, 2)
    threaded = programs.discharge(jaxpr, (COUNTER,))
    assert threaded.in_avals == [COUNTER.aval, *jaxpr.in_avals] and threaded.out_avals == [
        COUNTER.aval, *jaxpr.out_avals]
    assert eval_jaxpr(threaded, (), np.int32(3), 1.0, 2) == [4, 1.0, 2, 1.0]
    assert (jaxpr.arg_names, threaded.arg_names) == (["x", "y"], ["state[0]", "x", "y"])
    assert programs.discharge(jaxpr, (COUNTER,)) is threaded


def test_only_effects_in_order_need_a_token():
    says = {
        ordered: jax.make_jaxpr(lambda x, ordered=ordered: told(
            lambda v: jax.debug.print("{}", v, ordered=ordered), x))(1.0)
            for ordered in (False, True)}
    assert thread_tokens(says[False]) is says[False]
    threaded = thread_tokens(says[True])
    check_jaxpr(threaded)
    first, *_ = threaded.eqns
    assert first.primitive.name == "create_token" and Debug(True) not in threaded.effects
    assert (threaded.in_avals, threaded.out_avals) == (says[True].in_avals, says[True].out_avals)
