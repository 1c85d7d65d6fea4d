"""Programs as data: their evaluation, dead code, typing rules, text."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core import jaxpr as programs
from hlotrace.core.avals import ShapedArray, aval_of
from hlotrace.core.config import scoped, state
from hlotrace.core.effects import IO
from hlotrace.core.jaxpr import (
    Eqn, Jaxpr, Literal, Var, check_jaxpr, close, dce, eval_jaxpr, literal_value, sub_jaxprs)
from hlotrace.core.jaxpr_trace import trace_to_jaxpr
from hlotrace.core.primitive import Primitive
from hlotrace.errors import JaxprTypeError

pytestmark = pytest.mark.quick

F = ShapedArray((), "float32")
seen = []


def _noted(x, **params):
    seen.append((x, params, state.source, state.name_stack))
    return x + 1


one_more = Primitive("one_more", abstract_eval=lambda x, **_: x, impl_rule=_noted)
both = Primitive("both", multiple_results=True, abstract_eval=lambda x, y: [x, y],
                 impl_rule=lambda x, y: [x, y])
told = Primitive("told", abstract_eval=lambda x: x, impl_rule=_noted, effects=lambda params: (IO(),))


@pytest.fixture(autouse=True)
def none_seen():
    seen.clear()


def program(f, *avals, **options):
    return trace_to_jaxpr(lambda *xs: f(*xs), avals, **options)


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


# --- evaluation ---------------------------------------------------------------------------------------------

def test_equations_run_in_order_and_their_results_are_used():
    def f(x, y):
        a, b = both.bind(one_more.bind(x), y)
        return [b, one_more.bind(a), x, 5.0]
    assert eval_jaxpr(program(f, F, F), (), 1.0, 10.0) == [10.0, 3.0, 1.0, 5.0]
    with pytest.raises(ValueError, match="argument 2 is"):
        eval_jaxpr(program(f, F, F), (), 1.0)


@pytest.mark.parametrize("keeps", [True, False])
def test_equations_that_are_run_keep_their_lines_or_take_the_callers(keeps):
    made = program(lambda x: [jax.lax.sin(x)], F)
    again = program(lambda x: eval_jaxpr(made, (), x, propagate_source_info=keeps), F)
    assert (again.eqns[0].source == made.eqns[0].source) is keeps


def test_constants_are_given_beside_the_arguments():
    big = np.zeros(1000, np.float32)
    made = program(lambda x: [jnp.asarray(x) + big], F)
    assert [c.shape for c in made.consts] == [(1000,)] and len(made.constvars) == 1
    closed, consts = close(made)
    assert (closed.constvars, closed.consts, len(closed.invars)) == ([], [], 2) and consts is made.consts
    assert closed.in_avals == [ShapedArray((1000,), "float32"), F]
    again, none = close(closed)
    assert again is closed and none == ()


def test_closed_programs_name_their_constants():
    made = program(lambda x: [x + np.zeros(1000, np.float32)], F, arg_names=["x"])
    assert close(made)[0].arg_names == ["const[0]", "x"]


def test_equations_carry_their_line_and_scope_while_they_run():
    def f(x):
        with scoped("inner"):
            return [one_more.bind(x)]
    made = program(f, F)
    line = made.eqns[0].source
    assert line[0] is f.__code__ and made.eqns[0].name_stack == "inner"
    before = state.source, state.name_stack
    with scoped("outer"):
        eval_jaxpr(made, (), 1.0)
    eval_jaxpr(made, (), 1.0)
    assert [(source, stack) for *_, source, stack in seen] == [(line, "outer/inner"), (line, "inner")]
    assert (state.source, state.name_stack) == before


def test_line_and_scope_are_as_before_after_an_error():
    failing = Primitive("failing", abstract_eval=lambda x: x, impl_rule=lambda x: 1 / 0)
    before = state.source, state.name_stack
    with pytest.raises(ZeroDivisionError):
        eval_jaxpr(program(lambda x: [failing.bind(x)], F), (), 1.0)
    assert (state.source, state.name_stack) == before


@pytest.mark.parametrize("value, aval, dtype", [
    (1, ShapedArray((), "int8"), "int8"), (1.0, ShapedArray((), "bfloat16"), "bfloat16"), (1.0, F, "float32"),
    (np.ones(2), ShapedArray((2,), "float16"), "float16")])
def test_a_literal_has_its_dtype(value, aval, dtype):
    found = literal_value(Literal(value, aval))
    assert found.dtype == dtype and found.shape == np.shape(value)
    out, = eval_jaxpr(Jaxpr((), (), (), [], [Literal(value, aval)]), ())
    assert out.dtype == dtype


@pytest.mark.parametrize("value", [1, 2.5, True])
def test_a_weak_literal_is_its_python_number(value):
    assert literal_value(Literal(value, aval_of(value))) is value


# --- dead code ----------------------------------------------------------------------------------------------

def dead(x, y):
    used = one_more.bind(x)
    one_more.bind(one_more.bind(y))
    return [used, y]


def test_what_nothing_uses_goes():
    pruned, used = dce(program(dead, F, F))
    assert names(pruned) == ["one_more"] and used == [True, True] and len(pruned.invars) == 2
    assert eval_jaxpr(pruned, (), 1.0, 5.0) == [2.0, 5.0]


def test_outputs_that_are_not_wanted_go_with_what_they_need():
    pruned, used = dce(program(dead, F, F), [False, True])
    assert names(pruned) == [] and used == [False, True] and len(pruned.outvars) == 1 and len(
        pruned.invars) == 2
    pruned, used = dce(program(dead, F, F), [True, False])
    assert names(pruned) == ["one_more"] and used == [True, False]


def test_inputs_that_are_not_used_go_with_their_names():
    whole = program(lambda x, y, z: [one_more.bind(y)], F, F, F, arg_names=["x", "y", "z"])
    pruned, used = dce(whole, keep_invars=False)
    assert used == [False, True, False] and list(pruned.arg_names) == ["y"] and len(pruned.invars) == 1
    assert list(dce(whole)[0].arg_names) == ["x", "y", "z"]
    unnamed, _ = dce(program(lambda x, y: [y], F, F), keep_invars=False)
    assert unnamed.arg_names is None and len(unnamed.invars) == 1


def test_effects_stay_and_what_they_need():
    pruned, used = dce(program(lambda x, y: [told.bind(one_more.bind(x)), y][1:], F, F))
    assert names(pruned) == ["one_more", "told"] and used == [True, True] and pruned.effects == {IO()}


def test_constants_that_are_not_used_go():
    a, b = np.zeros(1000, np.float32), np.ones(1000, np.float32)
    whole = program(lambda x: [x + a, x * b], F)
    pruned, _ = dce(whole, [False, True])
    assert len(whole.consts) == 2 and len(pruned.constvars) == 1 and pruned.consts[0] is whole.consts[1]


def test_a_primitive_may_prune_itself():
    def prune(used, eqn):
        return eqn.replace(params={"used": tuple(used)})
    pair = Primitive("pair", multiple_results=True, abstract_eval=lambda x, **_: [x, x], dce=prune)
    pruned, _ = dce(program(lambda x: pair.bind(x)[1:], F))
    assert pruned.eqns[0].params == {"used": (False, True)}
    both_used, _ = dce(program(lambda x: pair.bind(x), F))
    assert both_used.eqns[0].params == {}


# --- programs as parameters ---------------------------------------------------------------------------------

def test_programs_among_parameters_are_found_in_order():
    first, second = program(lambda x: [x], F), program(lambda x: [one_more.bind(x)], F)
    assert list(sub_jaxprs({"a": 1, "jaxpr": first, "branches": (second, first), "mixed": (1, second)})) == [
        first, second, first, second]


def test_effects_of_a_program_are_those_of_its_equations_once_each():
    made = program(lambda x: [told.bind(told.bind(one_more.bind(x)))], F)
    assert made.effects == {IO()} and not program(lambda x: [one_more.bind(x)], F).effects


def test_replacing_fields():
    made = program(lambda x: [one_more.bind(x)], F, name="f", arg_names=["x"])
    other = made.replace(name="g")
    assert (other.name, other.eqns, other.invars, other.arg_names) == (
        "g", made.eqns, made.invars, ["x"]) and made.name == "f"
    eqn = made.eqns[0].replace(name_stack="scope")
    assert (eqn.primitive, eqn.source, eqn.name_stack) == (one_more, made.eqns[0].source, "scope")
    assert str(eqn.source_info.name_stack) == "scope" and repr(eqn) == "a:f32[] = one_more b"


def test_parameters_have_jaxs_names_too():
    renamed = Primitive("renamed", abstract_eval=lambda x, **_: x,
                        also={"theirs": lambda params: params["ours"] * 2})
    params = program(lambda x: [renamed.bind(x, ours=3)], F).eqns[0].params
    assert (params["ours"], params["theirs"]) == (3, 6) and dict(params) == {"ours": 3}
    assert "theirs" in params and (params.get("theirs"), params.get("neither", 1)) == (6, 1)
    with pytest.raises(KeyError, match="neither"):
        params["neither"]


@pytest.mark.parametrize("f, names", [
    (jax.checkpoint(jnp.sin), {"differentiated": False}),
    (lambda x: jax.debug.callback(print, x), {"partitioned": False}),
    (lambda x: jax.experimental.io_callback(print, None, x, ordered=True),
     {"ordered": True, "sharding": None, "result_avals": ()}),
    (lambda x: jax.ffi.ffi_call("kernel", x, vmap_method="sequential")(x, n=1),
     {"target_name": "kernel", "custom_call_api_version": 4, "legacy_backend_config": None,
      "input_output_aliases": (), "vmap_method": "sequential"}),
    (lambda x: jax.custom_derivatives.linear_call(jnp.multiply, jnp.multiply, 2., x),
     {"num_callee_consts": 0, "num_res": 1}),
    (lambda x: lax.iota("int32", 2), {"sharding": None, "dimension": 0}),
    (lambda x: lax.rng_bit_generator(np.zeros(4, "uint32"), (2,)), {"out_sharding": None}),
    (jax.jit(lambda x: x + 1, keep_unused=True), {"keep_unused": False, "compiler_options_kvs": ()}),
    (jax.nn.relu, {"symbolic_zeros": False}),
])
@pytest.mark.quick
def test_parameters_of_primitives_are_read_by_the_names_of_jax(f, names):
    params = jax.make_jaxpr(f)(np.float32(1)).eqns[0].params
    assert {name: params[name] for name in names} == names


@pytest.mark.parametrize("f, names", [
    (lambda x: lax.all_gather(x, "i", axis=1, tiled=True), {
        "axis_name": ("i",), "axis_size": 4, "all_gather_dimension": 1, "axis_index_groups": None,
        "tiled": True}),
    (lambda x: lax.psum_scatter(x, "i", tiled=True), {
        "axis_name": ("i",), "axis_size": 4, "scatter_dimension": 0, "axis_index_groups": None,
        "tiled": True}),
    (lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True), {
        "axis_name": ("i",), "split_axis": 0, "concat_axis": 1, "axis_index_groups": None, "tiled": True}),
    (lambda x: lax.ppermute(x, "i", [(0, 1)]), {"axis_name": ("i",)}),
    (lambda x: lax.axis_index("i"), {"axis_name": "i"}),
    (lambda x: lax.pmax(x, "i"), {"axes": ("i",), "axis_index_groups": None}),
    (lambda x: lax.psum(x, "i"), {"axes": ("i",), "axis_index_groups": None}),
    (lambda x: lax.dot(x, x), {"out_sharding": None, "precision": None}),
    (lambda x: x.at[np.array([1])].set(1.), {"update_consts": (), "update_jaxpr": None}),
    (lambda x: lax.conv(x[None, None], np.ones((1, 1, 2, 2), "float32"), (1, 1), "SAME"),
     {"out_sharding": None}),
])
@pytest.mark.quick
def test_parameters_of_collectives_and_matrices_are_read_by_the_names_of_jax(f, names):
    params = jax.make_jaxpr(f, axis_env=[("i", 4)])(np.ones((4, 4), np.float32)).eqns[-1].params
    assert {name: params[name] for name in names} == names


# --- typing rules -------------------------------------------------------------------------------------------

def test_what_is_well_typed_passes():
    check_jaxpr(program(dead, F, F))
    check_jaxpr(jax.make_jaxpr(jax.grad(lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, length=3)[0]))(
        1.0))


@pytest.mark.parametrize("result", [ShapedArray((), "int32"), ShapedArray((1,), "float32")], ids=str)
def test_a_result_of_another_type(result):
    x, y = Var(F), Var(result)
    wrong = Jaxpr((), (), [x], [Eqn(one_more, [x], [y], {})], [y])
    with pytest.raises(JaxprTypeError, match=r"one_more: result is typed .*, its rule gives f32\[\]"):
        check_jaxpr(wrong)


def test_what_is_not_bound():
    x, y, other = Var(F), Var(F), Var(F)
    with pytest.raises(JaxprTypeError, match="one_more: an operand is not bound"):
        check_jaxpr(Jaxpr((), (), [x], [Eqn(one_more, [other], [y], {})], [y]))
    with pytest.raises(JaxprTypeError, match="an output is not bound"):
        check_jaxpr(Jaxpr((), (), [x], [], [other]))
    later = [Eqn(one_more, [other], [y], {}), Eqn(one_more, [x], [other], {})]
    with pytest.raises(JaxprTypeError, match="operand is not bound"):
        check_jaxpr(Jaxpr((), (), [x], later, [y]))
    check_jaxpr(Jaxpr((), (), [x], later[::-1], [y]))


def test_programs_inside_are_checked():
    x, y, other = Var(F), Var(F), Var(F)
    inner = Jaxpr((), (), [x], [], [other])
    with pytest.raises(JaxprTypeError, match="an output is not bound"):
        check_jaxpr(Jaxpr((), (), [x], [Eqn(one_more, [x], [y], {"jaxpr": inner})], [y]))


# --- text ---------------------------------------------------------------------------------------------------

def test_text_names_variables_in_the_order_of_appearance():
    made = program(lambda x, y: [*both.bind(one_more.bind(x, k=1, none=None), y), 2.0], F,
                   ShapedArray((2,), "int32", True))
    assert str(made).split("\n") == [
        "{ lambda ; a:f32[] b:i32[2]. let", "    c:f32[] = one_more[k=1 none=None] a",
        "    d:f32[] e:i32[2] = both c b",
        "  in (d, e, 2.0:f32[]) }"]
    assert str(program(lambda x: [x], F)) == "{ lambda ; a:f32[]. let  in (a,) }"
    assert str(program(lambda x: [both.bind(x, x)[1]],
                       F)) == "{ lambda ; a:f32[]. let _:f32[] b:f32[] = both a a in (b,) }"


def test_a_program_is_in_one_line_where_it_fits():
    made = program(lambda x: [one_more.bind(x)], F)
    assert str(made) == "{ lambda ; a:f32[]. let b:f32[] = one_more a in (b,) }"
    assert made.pretty_print(width=20).split("\n") == ["{ lambda ; a:f32[]. let", "    b:f32[] = one_more a",
                                                       "  in (b,) }"]
    assert made.pretty_print(print_shapes=False) == "{ lambda ; a. let b = one_more a in (b,) }"
    assert made.pretty_print(print_effects=True).endswith("in (b,) : {  } }")
    assert re.search(r"in \(b,\) } # .*test_jaxpr.py:\d+:\d+ \(\S+\)$", made.pretty_print(source_info=True))
    assert made.pretty_print(name_stack=True).endswith("} # []")
    assert made.pretty_print(use_color=True).startswith(
        "{ \x1b[34;1mlambda \x1b[39;22m; a\x1b[35m:f32[]\x1b[39m.")
    with pytest.raises(TypeError):
        made.pretty_print(colour=True)


def test_a_program_that_is_called_has_the_names_of_the_call_and_one_text():
    called = jax.jit(lambda x: one_more.bind(x))
    assert str(program(lambda x: [called(x)], F)).split("\n") == [
        "{ lambda ; a:f32[]. let", "    b:f32[] = jit[", "      name=<lambda>",
        "      jaxpr={ lambda ; a:f32[]. let b:f32[] = one_more a in (b,) }", "    ] a", "  in (b,) }"]
    assert str(program(lambda x: [called(called(x))], F)).split("\n") == [
        "let lambda = { lambda ; a:f32[]. let b:f32[] = one_more a in (b,) } in", "{ lambda ; c:f32[]. let",
        "    d:f32[] = jit[name=<lambda> jaxpr=lambda] c", "    e:f32[] = jit[name=<lambda> jaxpr=lambda] d",
        "  in (e,) }"]


def test_text_of_constants_arrays_and_programs_inside():
    table = np.arange(3, dtype=np.float32)
    made = program(lambda x: [jax.jit(lambda x: one_more.bind(x, dtype=np.dtype("int8"), rule=max))(x)
                              + table], F)
    text = str(made)
    assert text.startswith("{ lambda a:f32[3]; b:f32[]. let") and "dtype=int8" in text and "rule=max" in text
    assert "jaxpr={ lambda ; " in text and "add d a" in text
    assert str(made) == text


def test_there_are_names_for_many_variables():
    def f(x):
        for _ in range(30):
            x = one_more.bind(x)
        return [x]
    assert "bd:f32[] = one_more bc" in str(program(f, F)).replace("be:f32[] = one_more bd", "")
    assert programs.ClosedJaxpr is Jaxpr and program(f, F).jaxpr.literals == []


def test_a_variable_that_is_bound_twice():
    program = jax.make_jaxpr(lambda x, y: x + y)(1., 2.)
    with pytest.raises(jax.errors.JaxprTypeError, match="already bound"):
        check_jaxpr(program.replace(invars=program.invars * 2))


def test_a_scan_loses_the_carry_that_nothing_uses():
    def step(carry, x):
        a, b, c = carry
        return (a + x, b * 2, c + b), None
    program = jax.make_jaxpr(lambda x: jax.lax.scan(step, (x, x, x), jnp.ones(3))[0])(1.)
    for used, kept in (([True, False, False], 1), ([False, True, False], 1), ([False, False, True], 2)):
        (scan,) = [e for e in dce(program, used)[0].eqns if e.primitive.name == "scan"]
        assert scan.params["num_carry"] == len(scan.outvars) == kept


def test_replace_changes_what_is_given_and_nothing_else():
    """Of a program and of an equation, one field at a time, also by JAX's records of several."""
    with scoped("layer"):
        program = trace_to_jaxpr(lambda x, y: [jnp.sin(x) * y], [F, F], "f", ("x", "y"))
    eqn, other = program.eqns[0], trace_to_jaxpr(lambda x: [jnp.cos(x)], [F], "g", ("z",))
    cases = [(program, Jaxpr, ("constvars", "consts", "invars", "eqns", "outvars", "name", "arg_names"),
              other),
             (eqn, Eqn, ("primitive", "invars", "outvars", "params", "effects", "source", "name_stack"),
              other.eqns[0].replace(effects=(IO(),), source=None, params={"accuracy": 1},
                                    name_stack="other"))]
    def differ(kind, fields, a, b):
        assert type(a) is type(b) is kind
        return [name for name in fields if getattr(a, name) != getattr(b, name)]
    for whole, kind, fields, new in cases:
        assert differ(kind, fields, whole, whole.replace()) == []
        for name in differ(kind, fields, whole, new):
            assert differ(kind, fields, whole, whole.replace(**{name: getattr(new, name)})) == [name]
    assert differ(*cases[0][1:3], program, program.replace(debug_info=other.debug_info)) == [
        "name", "arg_names"]
    assert differ(*cases[0][1:3], program, other.replace(jaxpr=program)) == []
    assert differ(*cases[1][1:3], eqn, eqn.replace(source_info=cases[1][3].source_info)) == [
        "source", "name_stack"]


@pytest.mark.parametrize("f, words", [
    (jax.grad(lambda x: x[0] ** 2), "mul 2.0:f32[] "), (jax.grad(lambda x: x[0] ** 3), "mul 3.0:f32[] "),
    (lambda x: lax.iota(int, 3), "iota[dimension=0 dtype=int32 shape=(3,) sharding=None]"),
    (lambda x: lax.top_k(x, 2), "top_k[axis=0 k=2]"), (jax.checkpoint(jnp.sin), "differentiated=False"),
    (jax.checkpoint(jnp.sin), "policy=None"),
    (lambda x: lax.conv(x[None, None], x[None, None], (1,), "SAME"), "out_sharding=None"),
    (lambda x: jax.random.wrap_key_data(lax.convert_element_type(x[:2], np.uint32)), "random_wrap[impl=fry]"),
    (lambda x: lax.rng_bit_generator(jnp.ones(4, np.uint32), (2,)), "algorithm=RNG_DEFAULT"),
    (lambda x: jax.ffi.ffi_call("kernel", x)(x), "target_name=kernel"),
    (lambda x: jax.custom_derivatives.linear_call(jnp.multiply, jnp.multiply, 2., x), "callee={ lambda"),
])
@pytest.mark.quick
def test_texts_have_the_parameters_that_jax_has(f, words):
    assert words in str(jax.make_jaxpr(f)(np.ones(3, np.float32)))
