"""Eager evaluation: one program for each primitive and type, where it runs, whole programs on arrays."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.avals import ShapedArray
from hlotrace.core.jaxpr_trace import trace_to_jaxpr
from hlotrace.core.primitive import Primitive
from hlotrace.primitives.arrays.elementwise import add_p, mul_p
from hlotrace.runtime import evaluate
from hlotrace.runtime.array_impl import as_array
from hlotrace.runtime.executables import compilation
from hlotrace.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

F = ShapedArray((8,), "float32")
X = np.arange(8, dtype=np.float32)


def program(f, n=2):
    return trace_to_jaxpr(lambda *xs: f(*xs), [F] * n)


def mesh():
    return Mesh(np.array(jax.devices()), ("x",))


def placed(value, *spec):
    return jax.device_put(value, NamedSharding(mesh(), P(*spec)))


@pytest.mark.quick
def test_a_rule_of_its_own_is_called_with_what_is_given():
    seen = []
    own = Primitive("own", abstract_eval=lambda x, **_: x, impl_rule=lambda *args, **params: seen.append((args, params)) or 7)
    assert own.bind("anything", 1, k=2) == 7 and seen == [(("anything", 1), {"k": 2})]


def test_an_operation_is_compiled_once_for_each_type_and_parameter():
    def compiled(*calls):
        before = compilation.compile_count + compilation.disk_hits
        for call in calls:
            call()
        return compilation.compile_count + compilation.disk_hits - before
    scale = Primitive("scale", abstract_eval=lambda x, *, by: x, lower=lambda ctx, eqn, x: ctx.lower_fun(
        lambda x: x * eqn.params["by"], eqn, x))
    a, b = jnp.zeros(3), jnp.ones(3)
    assert compiled(lambda: scale.bind(a, by=2.5), lambda: scale.bind(b, by=2.5)) == 1
    assert compiled(lambda: scale.bind(a, by=3.5), lambda: scale.bind(jnp.zeros(4), by=2.5)) == 2
    assert float(scale.bind(b, by=3.5)[0]) == 3.5 and float(scale.bind(b, by=2.5)[0]) == 2.5


def test_operands_of_every_kind():
    for x in (jnp.float32(2), np.float32(2), 2.0, np.array(2.0, np.float32)):
        for y in (jnp.float32(3), 3.0, np.float32(3)):
            assert float(add_p.bind(x, y)) == 5 and type(add_p.bind(x, y)) is type(jnp.float32(2))


def test_committed_operands_say_where_it_runs():
    last = jax.devices()[-1]
    x = jax.device_put(X, last)
    assert mul_p.bind(x, x).devices() == {last} and (x + 1).devices() == {last} and (x + 1).committed
    assert not (jnp.asarray(X) + 1).committed
    for device in jax.devices():        # the same operations on arrays of one type
        x = jax.device_put(X, device)
        assert [y.devices() for y in (x + 1, x * x, jnp.sum(x), lax.cond(True, jnp.sin, jnp.cos, x))] == [{device}] * 4
    with pytest.raises(ValueError, match="incompatible devices"):
        x + jax.device_put(X, jax.devices()[0])
    split = placed(X, "x")
    assert (split * 2).sharding.is_equivalent_to(split.sharding, 1)
    assert len((split * 2).addressable_shards) == len(jax.devices())


@pytest.mark.quick
def test_the_devices_of_a_computation():
    a, b = as_array(X), jax.device_put(X, jax.devices()[1])
    assert evaluate.device_assignment([a]) == (jax.devices()[0], False)
    assert evaluate.device_assignment([a, b]) == (jax.devices()[1], True)
    where, more = evaluate.device_assignment([a, placed(X, "x")])
    assert more and where.devices == tuple(jax.devices()) and where.ins[0] is None and where.ins[1].spec == P("x")
    assert evaluate.committed_sharding(a) is None and evaluate.committed_sharding(b) == SingleDeviceSharding(jax.devices()[1])
    wanted = NamedSharding(mesh(), P())
    with pytest.raises(ValueError, match="argument 1: Sharding passed to jit does not match"):
        evaluate.device_assignment([a, placed(X, "x")], [None, wanted])
    where, _ = evaluate.device_assignment([a, placed(X)], [wanted, wanted])
    assert where.ins == (wanted, wanted)


# --- programs ---------------------------------------------------------------------------------------------------------

def test_a_program_runs_without_what_nothing_uses():
    whole = program(lambda x, y: [x + 1, jnp.sin(y)][:1])
    out, = evaluate.run_program(whole, [X, X])
    assert out.tolist() == (X + 1).tolist()
    out, = evaluate.run_program(program(lambda x, y: [y * 2]), [X, placed(X, "x")])      # the first is not used
    assert out.tolist() == (X * 2).tolist() and out.sharding.spec == P("x")


@pytest.mark.parametrize("specs, used", [((("x",), ()), 1), (((), ("x",)), 0), (((), ("x",)), 1)])
def test_shardings_of_inputs_are_those_of_the_inputs_that_are_used(specs, used):
    args = [placed(X + i, *spec) for i, spec in enumerate(specs)]
    out, = evaluate.run_program(program(lambda *xs: [xs[used] + 1]), args)
    assert out.tolist() == (X + used + 1).tolist() and out.sharding.is_equivalent_to(args[used].sharding, 1)


def test_what_is_donated_is_a_part_of_what_is_kept():
    """One program, run with and without: the second does not take over the memory of its arguments."""
    whole = program(lambda x, y: [x + y])
    for donated in ((0,), (), (1,), (0,)):
        args = [jnp.asarray(X), jnp.asarray(X + 1)]
        out, = evaluate.run_program(whole, args, donated)
        assert out.tolist() == (2 * X + 1).tolist()
        assert [x.is_deleted() for x in args] == [i in donated for i in range(2)]


def test_results_are_placed_as_requested():
    whole = program(lambda x, y: [x + y, x])
    wanted = NamedSharding(mesh(), P("x"))
    total, same = evaluate.run_program(whole, [X, X], outs=(wanted, None))
    assert total.sharding == wanted and total.tolist() == (2 * X).tolist() and same.tolist() == X.tolist()


def test_a_value_of_a_finished_trace_is_refused():
    kept = []
    trace_to_jaxpr(lambda x: kept.append(x) or [x], [F])
    with pytest.raises(jax.errors.UnexpectedTracerError):
        evaluate.run_program(program(lambda x: [x + 1], 1), kept)


@pytest.mark.quick
def test_a_callback_at_once():
    add = lambda x, y: [x + y, np.int32(7)]
    avals = [F, ShapedArray((), "int32")]
    total, seven = evaluate.run_callback(X, X, function=add, out_avals=avals, effect=None)
    assert total.aval is F and total.tolist() == (2 * X).tolist() and int(seven) == 7
    with pytest.raises(Exception, match="shape|dtype|float32"):
        evaluate.run_callback(X, X[:3].sum(), function=lambda x, y: [x[:2], np.int32(7)], out_avals=avals, effect=None)


def test_programs_inside_of_loops_run_eagerly_too():
    assert float(lax.fori_loop(0, 3, lambda i, x: x * 2, jnp.float32(1))) == 8
