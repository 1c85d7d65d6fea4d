"""Effects in program order, and states that are threaded through programs and those inside them."""
import dataclasses

import numpy as np
import pytest
from custom_rules import custom_jvp, custom_vjp

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core import programs
from hlotrace.core.avals import ShapedArray
from hlotrace.core.effects import IO, ORDERED_TOKEN, Debug, Effect, State
from hlotrace.core.jaxpr import check_jaxpr, eval_jaxpr
from hlotrace.core.primitive import Primitive
from hlotrace.primitives.arrays.elementwise import add_p
from hlotrace.sharding import PartitionSpec as P


def told(say, x):
    say(x)
    return x


def on_one_device(f, **options):
    mesh = jax.sharding.Mesh(jax.devices()[1:2], ("x",))
    return jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P(), **options)


# holder -> (a function of (say, x) that says something, what it says of x = 1)
HOLDERS = {
    "plain": (lambda say, x: told(say, x), [1]),
    "twice": (lambda say, x: told(say, told(say, x) + 1), [1, 2]),
    "jit": (lambda say, x: jax.jit(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "checkpoint": (lambda say, x: jax.checkpoint(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "custom_jvp": (lambda say, x: custom_jvp(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "custom_vjp": (lambda say, x: custom_vjp(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "cond": (lambda say, x: lax.cond(x > 0, lambda y: told(say, y + 1), lambda y: y, told(say, x)), [1, 2]),
    "other branch": (lambda say, x: told(say, lax.cond(x < 0, lambda y: told(say, y + 1), lambda y: y, x)), [1]),
    "switch": (lambda say, x: lax.switch(1, [lambda y: y, lambda y: told(say, y + 1), lambda y: -y], told(say, x)), [1, 2]),
    "scan": (lambda say, x: lax.scan(lambda c, d: (told(say, c + d), None), told(say, x), jnp.arange(3.0))[0], [1, 1, 2, 4]),
    "unrolled scan": (lambda say, x: lax.scan(lambda c, _: (told(say, c + 1), None), x, None, length=5, unroll=2)[0],
                      [2, 3, 4, 5, 6]),
    "while": (lambda say, x: lax.while_loop(lambda c: c < 4, lambda c: told(say, c + 1), told(say, x)), [1, 2, 3, 4]),
    "condition of while": (lambda say, x: lax.while_loop(lambda c: told(say, c) < 3, lambda c: told(say, c + 1), x),
                           [1, 2, 2, 3, 3]),
    "loop in jit in loop": (lambda say, x: lax.fori_loop(0, 2, lambda i, c: jax.jit(lambda y: lax.scan(
        lambda d, _: (told(say, d + 1), None), y, None, length=2)[0])(c), x), [2, 3, 4, 5]),
    "shard_map": (lambda say, x: on_one_device(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "unchecked shard_map": (lambda say, x: on_one_device(lambda y: told(say, y + 1), check_vma=False)(x), [2]),
    "loop in shard_map": (lambda say, x: on_one_device(lambda y: lax.psum(lax.fori_loop(0, 2, lambda i, c: told(
        say, lax.pvary(c, "x") + i), lax.pvary(y, "x")), "x"))(x), [1, 2]),
    "shard_map in loop": (lambda say, x: lax.fori_loop(0, 2, lambda i, c: on_one_device(lambda y: told(say, y + i))(c), x),
                          [1, 2]),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("kind", ["debug", "io"])
def test_ordered_effects_happen_in_program_order(holder, kind):
    function, expected = HOLDERS[holder]
    heard = []

    def say(x):
        if kind == "debug":
            jax.debug.callback(lambda v: heard.append(float(v)), x, ordered=True)
        else:
            jax.experimental.io_callback(lambda v: heard.append(float(v)), None, x, ordered=True)
    jax.jit(lambda x: function(say, x))(1.0)
    jax.effects_barrier()
    assert heard == expected


# --- states of another kind: a counter --------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Counts(Effect):
    pass


COUNTER = State(ShapedArray((), np.dtype(np.int32)), lambda effect: type(effect) is Counts)
count_p = Primitive("count", abstract_eval=lambda x: x, effects=lambda params: (Counts(),), discharge=lambda states, values, args: (
    [add_p.bind(values[0], np.int32(1))], args[0]))


@pytest.mark.parametrize("holder", [h for h in HOLDERS if h != "condition of while"])
def test_a_state_is_threaded_through_a_program_and_those_inside_it(holder):
    function, expected = HOLDERS[holder]
    jaxpr = jax.make_jaxpr(lambda x: function(count_p.bind, x))(1.0)
    assert jaxpr.effects == {Counts()}
    threaded = programs.discharge(jaxpr, (COUNTER,))
    check_jaxpr(threaded)
    assert not threaded.effects
    count, _ = jax.jit(lambda n, x: eval_jaxpr(threaded, (), n, x))(jnp.int32(10), jnp.float32(1))
    assert count == 10 + len(expected)


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


def test_effects_are_equal_by_what_they_are():
    assert Debug() == Debug() != IO() and Debug(True) != Debug() and len({IO(), IO(), IO(True)}) == 2


def test_tokens_are_values_of_the_program():
    text = jax.jit(lambda x: told(lambda v: jax.debug.print("{}", v, ordered=True), x)).lower(1.0).as_text()
    assert text.count("stablehlo.create_token") == 1
    quiet = jax.jit(lambda x: told(lambda v: jax.debug.print("{}", v), x)).lower(1.0).as_text()
    assert "token" not in quiet


# --- mapped predicates: who is told, and who refuses ------------------------------------------------------------

N = np.array([0, 1, 3])
TELL = {
    "debug": lambda say, x: jax.debug.callback(say, x),
    "ordered debug": lambda say, x: jax.debug.callback(say, x, ordered=True),
    "io": lambda say, x: jax.experimental.io_callback(say, None, x),
    "ordered io": lambda say, x: jax.experimental.io_callback(say, None, x, ordered=True),
}
# what holds a call of `tell` -> (of an element and its bound or predicate, what is heard where that is mapped, and where
# it is not, a 2)
MAPPED = {
    "condition": (lambda tell, x, n: lax.while_loop(lambda c: (tell(x + c), c < n)[1], lambda c: c + 1, 0),
                  [0, 1, 3, 0, 2, 4, 0, 2, 5, 0, 2, 6], [0, 1, 3, 1, 2, 4, 2, 3, 5]),
    "body": (lambda tell, x, n: lax.while_loop(lambda c: c < n, lambda c: (tell(x + c), c + 1)[1], 0),
             [0, 1, 3, 0, 2, 4, 0, 2, 5], [0, 1, 3, 1, 2, 4]),
    "branch": (lambda tell, x, n: lax.cond(n > 0, lambda x: (tell(x), x)[1], lambda x: x, x), [0, 1, 3], [0, 1, 3]),
    "switch": (lambda tell, x, n: lax.switch(n, [lambda x: (tell(x), x)[1], lambda x: x, lambda x: (tell(-x), x)[1]], x),
               [0, 1, 3, 0, -1, -3], [0, -1, -3]),
}


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit])
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("kind", TELL)
@pytest.mark.parametrize("holder", MAPPED)
def test_effects_under_a_mapped_predicate(holder, kind, mapped, jit):
    function, *expected = MAPPED[holder]
    heard = []
    tell = lambda x: TELL[kind](lambda v: heard.append(int(v)), x)
    run = jit(jax.vmap(lambda x, n: function(tell, x, n), (0, 0 if mapped else None)))
    n = N if mapped else 2
    if kind == "ordered io" or kind == "io" and mapped:
        with pytest.raises((ValueError, NotImplementedError), match=r"(?s)vmap.*(io_callback|IO callback).*lax.map"):
            run(N, n)
        assert not heard
        return
    result = run(N, n)
    jax.effects_barrier()
    np.testing.assert_array_equal(result, N if holder in ("branch", "switch") or mapped else [2, 2, 2])
    expected = expected[not mapped]
    assert heard == expected if kind.startswith("ordered") else sorted(heard) == sorted(expected)
