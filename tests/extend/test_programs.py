"""The parts of extend and interpreters that read and make programs: types of programs, linear_util, partial_eval, names."""
from pathlib import Path

import forked
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import core, extend
from hlotrace.extend import core as ec, linear_util as lu, source_info_util as si
from hlotrace.interpreters import ad, partial_eval as pe

SCALAR = core.ShapedArray((), np.float32)


# --- programs ---------------------------------------------------------------------------------------------------

def test_names_of_core_are_those_of_its_surface():
    assert core.surface.jax_core_names.__all__ is core.__all__ and len(core.__all__) > 50
    assert all(getattr(core, name) is not None for name in core.__all__)


def test_every_program_is_open_and_closed():
    program = jax.make_jaxpr(lambda x: x * 2)(1.0)
    assert isinstance(program, ec.Jaxpr) and isinstance(program, ec.ClosedJaxpr) and isinstance(program.jaxpr, core.Jaxpr)
    assert not isinstance(program.eqns, ec.Jaxpr)
    assert isinstance(program.eqns[0], ec.JaxprEqn) and isinstance(program.eqns[0].primitive, ec.Primitive)
    assert isinstance(program.invars[0], ec.Var) and isinstance(program.eqns[0].invars[1], ec.Literal)


def test_a_program_made_by_hand():
    new = ec.gensym()
    c, x, y, z = (new(SCALAR) for _ in range(4))
    mul, add = ec.primitives.mul_p, ec.primitives.add_p
    program = ec.Jaxpr([c], [x], [z], [ec.new_jaxpr_eqn([x, x], [y], mul, {}), ec.new_jaxpr_eqn([y, c], [z], add, {})])
    ec.check_jaxpr(program)
    assert ec.jaxpr_as_fun(ec.ClosedJaxpr(program, [4.0]))(3.0)[0] == 13
    assert core.eval_jaxpr(program, [1.0], 3.0)[0] == 10
    with pytest.raises(ValueError, match="1 constvars, but 0 constants"):
        ec.ClosedJaxpr(program)


def test_an_interpreter_as_the_documentation_writes_it():
    """It finds the inverse of a chain of functions from the program alone."""
    inverses = {jax.lax.exp_p: jnp.log, jax.lax.tanh_p: jnp.arctanh}

    def inverse(fun):
        def run(*args):
            closed = jax.make_jaxpr(fun)(*args)
            env = dict(zip(closed.jaxpr.outvars, args))
            for eqn in reversed(closed.jaxpr.eqns):
                assert eqn.primitive.get_bind_params(eqn.params) == eqn.params
                env[eqn.invars[0]] = inverses[eqn.primitive](env[eqn.outvars[0]])
            return env[closed.jaxpr.invars[0]]
        return run
    f = lambda x: jnp.exp(jnp.tanh(x))
    np.testing.assert_allclose(inverse(f)(f(jnp.float32(0.5))), 0.5, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(inverse(f)))(f(jnp.arange(3.0) / 4)), np.arange(3.0) / 4, atol=1e-5)


def test_avals_of_operands_of_a_vmap():
    assert ec.mapped_aval(3, 1, core.ShapedArray((2, 3), "float32")).shape == (2,)
    assert ec.unmapped_aval(3, 1, core.ShapedArray((2,), "float32")).shape == (2, 3)
    assert ec.unmapped_aval(3, None, SCALAR) is SCALAR
    with pytest.raises(ValueError, match="does not have size 4"):
        ec.mapped_aval(4, 1, core.ShapedArray((2, 3), "float32"))


def test_values():
    assert core.get_aval(jnp.ones(2)) == core.ShapedArray((2,), "float32") == core.typeof(np.ones(2, "float32"))
    assert ec.valid_jaxtype(1.0) and ec.valid_jaxtype(jnp.ones(2)) and ec.valid_jaxtype(np.ones(2))
    assert not ec.valid_jaxtype("x") and not ec.valid_jaxtype(np.array(["x"]))
    assert ec.concrete_or_error(int, jnp.int32(3), "n") == 3
    with pytest.raises(jax.errors.ConcretizationTypeError, match="the size must be known"):
        jax.jit(lambda n: ec.concrete_or_error(int, n, "the size must be known"))(3)


# --- the current trace ------------------------------------------------------------------------------------------

def test_the_state_of_tracing():
    seen = []

    def look(x):
        seen.append((ec.get_opaque_trace_state(convention="flax"), ec.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                     ec.unsafe_am_i_under_a_vmap_DO_NOT_USE(), ec.unsafe_get_axis_names_DO_NOT_USE()))
        return x
    look(1.0)
    look(1.0)
    jax.jit(lambda x: look(look(x)))(1.0)
    jax.vmap(look, axis_name="i")(jnp.ones(2))
    states = [state for state, *_ in seen]
    assert states[0] == states[1] != states[2] and states[4] not in states[:4]
    assert [(jit, vmap, names) for _, jit, vmap, names in seen] == [
        (False, False, []), (False, False, []), (True, False, []), (True, False, []), (False, True, ["i"])]


def test_evaluation_within_a_trace():
    def f(x):
        with core.eval_context():
            assert float(jnp.sin(0.0)) == 0.0
        with ec.take_current_trace() as trace:
            assert isinstance(jnp.ones(2), jax.Array) and not isinstance(jnp.ones(2), core.Tracer)
            with ec.set_current_trace(trace):
                assert isinstance(x * 2, core.Tracer) and ec.find_top_trace([x]) is trace
        return x
    jax.jit(f)(1.0)


def test_a_trace_of_the_user_s_own():
    """As JAX has them: a rule for every primitive, tracers with a value, and programs that are called stepped into."""
    class Logged(core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, jax.typeof(value))
            self.value = value

    class Logging(core.Trace):
        def __init__(self, beneath):
            super().__init__()
            self.beneath, self.log = beneath, []

        def process_primitive(self, primitive, args, params):
            values = [a.value if isinstance(a, Logged) else a for a in args]
            self.log.append(params["name"] if primitive is ec.primitives.jit_p else primitive.name)
            if primitive is ec.primitives.jit_p:
                with ec.set_current_trace(self):
                    return ec.jaxpr_as_fun(params["jaxpr"])(*args)
            out = primitive.bind_with_trace(self.beneath, values, [jax.typeof(v) for v in values], params)
            return [Logged(self, v) for v in out] if primitive.multiple_results else Logged(self, out)

    @jax.jit
    def double(x):
        return x * 2

    def run(x):
        with ec.take_current_trace() as beneath, ec.set_current_trace(Logging(beneath)) as trace:
            out = double(jnp.sin(Logged(trace, x)) + 1)
        assert trace.log == ["sin", "add", "double", "mul"] and trace.parent.what == "eager evaluation"
        return out.value
    for f in run, jax.jit(run), jax.vmap(run):
        np.testing.assert_allclose(f(jnp.ones(3)), (np.sin(np.ones(3)) + 1) * 2, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="Trace has no rule process_primitive.*sin"):
        with ec.set_current_trace(core.Trace()):
            jnp.sin(1.)


def test_an_equation_says_where_it_is_from_and_answers_to_jax_s_names():
    @jax.custom_jvp
    def square(x):
        return x * x
    square.defjvp(lambda primals, tangents: (square(*primals), tangents[0]))

    @jax.jit
    def f(x):
        with jax.named_scope("inner"):
            return square(x)
    called, = jax.make_jaxpr(f)(1.0).eqns
    assert (called.params["name"], called.params["donated_invars"]) == ("f", (False,))
    assert [called.params[n] for n in ("in_shardings", "in_layouts", "out_shardings", "out_layouts", "inline")] == [
        *[(None,)] * 4, False]
    assert set(called.params) == {"jaxpr", "donated"}
    custom, = called.params["jaxpr"].eqns
    assert custom.params["call_jaxpr"] is custom.params["jaxpr"]
    assert "call_jaxpr" in custom.params.keys() and list(custom.params.keys()) == list(custom.params)
    assert str(custom.source_info.name_stack) == "inner" and Path(__file__).name in si.summarize(custom.source_info)
    with pytest.raises(KeyError, match="nme"):
        called.params["nme"]


def test_what_runs_eagerly_alone_does_so_in_checkpoint():
    """A primitive that has `def_impl` and no lowering, forward and backward; jit does not compile it."""
    calls = []
    noted_p, back_p = ec.Primitive("noted"), ec.Primitive("noted_back")
    for primitive in noted_p, back_p:
        primitive.def_abstract_eval(lambda x: x)
        primitive.def_impl(lambda x, name=primitive.name: calls.append(name) or x)
    ad.primitive_jvps[noted_p] = lambda primals, tangents: (noted_p.bind(*primals), back_p.bind(*tangents))
    ad.primitive_transposes[back_p] = lambda ct, x: [back_p.bind(ct)]
    f = jax.checkpoint(lambda x: noted_p.bind(jnp.sin(x)) * x)
    np.testing.assert_allclose(jax.value_and_grad(f)(2.0), (2 * np.sin(2.0), np.sin(2.0) + 2 * np.cos(2.0)), rtol=1e-6)
    assert calls.count("noted") >= 2 and calls.count("noted_back") == 1
    with pytest.raises(NotImplementedError, match="primitive 'noted' not found"):
        jax.jit(f)(2.0)


# --- linear_util ------------------------------------------------------------------------------------------------

@lu.transformation
def scaled(scale, *args, **kwargs):
    out = yield tuple(a * scale for a in args), kwargs
    yield out + 100


@lu.transformation_with_aux
def counted(*args):
    out = yield args, {}
    yield out, len(args)


@lu.transformation2
def scaled2(call, scale, *args):
    return call(*[a * scale for a in args]) + 100


@lu.transformation_with_aux2
def counted2(call, store, *args):
    store.store(len(args))
    return call(*args)


def test_transformations_of_functions():
    f = lu.wrap_init(lambda x, y, z=0: x + y + z, {"z": 1})
    assert f.call_wrapped(1, 2) == 4
    assert scaled(f, 10).call_wrapped(1, 2) == scaled2(f, 10).call_wrapped(1, 2) == 131
    for step in counted, counted2:
        g, count = step(scaled(f, 10))
        with pytest.raises(lu.StoreException, match="empty"):
            count()
        assert (g.call_wrapped(1, 2), count()) == (131, 2)
    g, first = counted(f)
    _, second = counted(f)
    g.call_wrapped(1, 2)
    assert lu.merge_linear_aux(first, second) == (True, 2) and lu.merge_linear_aux(second, first) == (False, 2)
    with pytest.raises(lu.StoreException, match="neither"):
        lu.merge_linear_aux(second, second)


# --- partial_eval -----------------------------------------------------------------------------------------------

PAIR = lu.wrap_init(lambda x, y: [x + y, y * 2])


def test_a_function_becomes_a_program():
    program, avals, consts = pe.trace_to_jaxpr_dynamic(PAIR, [SCALAR, SCALAR])
    assert avals == [SCALAR, SCALAR] and consts == [] and core.eval_jaxpr(program, consts, 1.0, 2.0) == [3.0, 4.0]


def test_what_is_known_is_done_and_the_rest_is_written():
    big = jnp.ones(1000)
    program, (first, second), consts = pe.trace_to_jaxpr_nounits(
        lu.wrap_init(lambda x, y: [x + (big * y).sum(), y * 2]), [pe.PartialVal.unknown(SCALAR), pe.PartialVal.known(2.0)])
    assert not first.is_known() and first.get_aval() == SCALAR and second.is_known() and second.get_known() == 4
    assert [e.primitive.name for e in program.eqns] == ["add"] and consts == [2000.0]
    assert core.eval_jaxpr(program, consts, 1.0) == [2001.0]
    program, outs, consts = pe.trace_to_jaxpr_nounits(PAIR, [pe.PartialVal.unknown(SCALAR), pe.PartialVal.known(2.0)], True)
    assert core.eval_jaxpr(program, consts, 1.0) == [3.0, 4.0] and not any(out.is_known() for out in outs)


def test_what_is_not_needed_is_left_out():
    program, _, _ = pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x, y: [x + 1, y * 2]), [SCALAR, SCALAR])
    pruned, used = pe.dce_jaxpr(program, [True, False])
    assert used == [True, False] and len(pruned.eqns) == len(pruned.invars) == len(pruned.outvars) == 1
    pruned, used = pe.dce_jaxpr(program, [True, False], instantiate=True)
    assert used == [True, True] and len(pruned.invars) == 2


def test_a_rule_for_what_is_not_needed():
    p = ec.Primitive("several")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, *, n: [x] * n)

    def rule(used, eqn):
        outs = [v for v, u in zip(eqn.outvars, used) if u]
        return [True], ec.new_jaxpr_eqn(eqn.invars, outs, p, {"n": len(outs)})
    pe.dce_rules[p] = rule
    assert pe.dce_rules[p] is rule
    pruned, used = pe.dce_jaxpr(jax.make_jaxpr(lambda x: p.bind(x, n=5))(1.0), [False, True, False, True, False])
    assert used == [True] and pruned.eqns[0].params == {"n": 2} and len(pruned.eqns[0].outvars) == 2


# --- where, which devices, keys ---------------------------------------------------------------------------------

def test_where_the_user_is():
    assert Path(__file__).name in si.summarize(si.current()) and si.summarize(si.new_source_info()) == ""
    with si.extend_name_stack("outer"), si.extend_name_stack("inner"):
        assert str(si.current_name_stack()) == "outer/inner" == str(si.new_name_stack("outer").extend("inner"))
        with si.reset_name_stack():
            assert str(si.current().name_stack) == ""
        assert str(si.current_name_stack()) == "outer/inner"


def test_a_library_can_ask_not_to_be_taken_for_the_user(tmp_path):
    (tmp_path / "library.py").write_text("def f(x):\n    return x * 2\n")
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import library, hlotrace as jax
from hlotrace.extend import source_info_util
print("library.py" in jax.jit(library.f).lower(1.0).as_text(debug_info=True))
source_info_util.register_exclusion({str(tmp_path)!r})
print("library.py" in jax.jit(lambda x: library.f(x)).lower(1.0).as_text(debug_info=True))
"""
    assert forked.run(program, check=True).stdout.split() == ["True", "False"]


def test_backends_and_keys():
    backend, random = extend.backend, extend.random
    assert backend.get_backend("cpu") is backend.backends()["cpu"]
    assert backend.get_default_device() in jax.devices()
    words = (np.uint32(1), np.uint32(2))
    # The vectors are those that jax 0.10.2 gives.
    np.testing.assert_array_equal(random.threefry_2x32(words, np.arange(4, dtype=np.uint32)),
                                  np.array([4128513521, 3192206206, 2345921600, 3057534555], np.uint32))
    np.testing.assert_array_equal(random.threefry_2x32(words, np.arange(3, dtype=np.uint32)),
                                  np.array([4128513521, 2271449651, 2345921600], np.uint32))
    with pytest.raises(TypeError, match="uint32"):
        random.threefry_2x32(words, np.arange(4))
    key = random.seed_with_impl(random.threefry_prng_impl, 3)
    np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(jax.random.key(3)))


def test_importing_hlotrace_imports_none_of_this():
    program = """
import sys, hlotrace
print(*[m for m in sys.modules if m.startswith(("hlotrace.extend", "hlotrace.interpreters", "hlotrace.core.surface.jax_core_names",
                                                "hlotrace.runtime.mlir.bindings", "jaxlib.mlir"))])
hlotrace.core.ShapedArray
print(*[m for m in sys.modules if m.startswith(("hlotrace.extend", "hlotrace.interpreters"))])
"""
    assert not forked.run(program, check=True).stdout.strip()


def test_a_trace_gives_a_value_as_it_is():      # Quax asks it
    x = jnp.ones(2)
    assert core.Trace(None).full_raise(x) is x
