"""Programs and what is derived from them: caches that live as long as they do, keys of constants, programs
without constants."""
import gc
import weakref

import numpy as np
import pytest

import hlotrace as jax
from hlotrace.core import programs
from hlotrace.core.avals import ShapedArray
from hlotrace.core.config import override, scoped
from hlotrace.core.jaxpr import Literal, check_jaxpr
from hlotrace.core.jaxpr_trace import trace_to_jaxpr
from hlotrace.core.primitive import Primitive
from hlotrace.core.programs import (
    cached, constant_key, embed_constants, trace_closed, trace_primitive, without_source_info)
from hlotrace.primitives.arrays.elementwise import mul_p
from hlotrace.primitives.arrays.transcendental import cos_p, sin_p
from hlotrace.primitives.programs.calls import jit_p

pytestmark = pytest.mark.quick

F = ShapedArray((3,), "float32")
NOTHING, ALL = (lambda *_, **__: False), (lambda *_, **__: True)


def sine(name="f"):
    return trace_to_jaxpr(lambda x: [sin_p.bind(x)], [F], name)


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


# --- caches -------------------------------------------------------------------------------------------------

def test_a_derived_program_is_made_once_for_each_key():
    made = []

    @cached
    def derived(jaxpr, *key):
        made.append(key)
        return object()

    @cached
    def another(jaxpr, *key):
        return object()
    one, other = sine(), sine()
    assert derived(one, 1) is derived(one, 1) and made == [(1,)]
    assert len({derived(one, 1), derived(one, 2), derived(other, 1), another(one, 1)}) == 4 and len(made) == 3
    with override("jax_debug_nans", True):
        assert derived(one, 1) is not derived(one, 2) and len(made) == 5
    derived(one, 1)
    assert len(made) == 5


def test_it_goes_with_the_program():
    class Made:
        pass
    derived = cached(lambda jaxpr: Made())
    program = sine()
    gone = weakref.ref(derived(program))
    assert gone() is not None
    del program
    gc.collect()
    assert gone() is None


def test_it_is_made_outside_of_named_scopes():
    derived = cached(lambda jaxpr: trace_to_jaxpr(lambda x: [sin_p.bind(x)], [F]))
    with scoped("layer"):
        assert derived(sine()).eqns[0].name_stack == ""


def test_derivatives_of_a_program_are_derived_once():
    f = sine()
    assert programs.jvp(f, (True,)) is programs.jvp(f, (True,))
    primal, marks = programs.jvp(f, (True,))
    assert marks == (True,) and len(primal.invars) == len(primal.outvars) == 2
    constant, marks = programs.jvp(f, (False,))
    assert marks == (False,) and len(constant.outvars) == 1
    split = programs.linearize(f, (True,))
    assert split.out_nonzero == (True,) and split.select(["input"], ["saved"]) == [
        "input" if kind == "in" else "saved"
                                                                                  for kind, _ in split.residuals]


# --- constants ----------------------------------------------------------------------------------------------

ALIKE = (1, 1.0, True, np.int32(1), np.int8(1), np.float32(1), np.float16(1), np.bool_(True))
ZEROS = (0, 0.0, -0.0, False, np.float32(0.0), np.float32(-0.0), float("nan"), np.float32("nan"))


@pytest.mark.parametrize("values", [ALIKE, ZEROS], ids=["ones", "zeros"])
def test_the_key_of_a_constant_says_its_type_and_its_bits(values):
    keys = [constant_key(value) for value in values]
    assert len(set(keys)) == len(values) and None not in keys
    assert keys == [constant_key(type(value)(value)) for value in values]


@pytest.mark.parametrize("value", [np.ones(2), None, "text", 1j, [1.0]], ids=str)
def test_other_values_have_no_key(value):
    assert constant_key(value) is None


def test_one_application_is_traced_once_for_each_constant_and_parameter():
    x = jax.make_jaxpr(lambda x: x)(np.ones(3, np.float32)).invars[0].aval
    tracers = []
    trace_to_jaxpr(lambda a: tracers.append(a) or [a], [x])
    a, = tracers
    found = [trace_primitive(mul_p, [a, np.float32(c)], {}) for c in (1, 2, 1)]
    assert found[0] is found[2] is not found[1] and [len(p.invars) for p in found] == [1, 1, 1]
    assert [float(found[i].eqns[0].invars[1].val) for i in (0, 1)] == [1, 2]
    assert trace_primitive(mul_p, [a, np.ones(3, np.float32)], {}) is None      # a large constant
    taking = Primitive("taking", abstract_eval=lambda x, **_: x)
    assert trace_primitive(taking, [a], {"kind": [1]}) is None      # that cannot be hashed
    assert trace_primitive(taking, [a], {"kind": 1}) is trace_primitive(taking, [a], {"kind": 1})
    assert trace_primitive(taking, [a], {"kind": 1}) is not trace_primitive(taking, [a], {"kind": 2})


def test_constants_become_literals():
    table = np.arange(300, dtype=np.float32)
    whole = trace_to_jaxpr(lambda x: [x * table, table], [ShapedArray((300,), "float32")])
    assert len(whole.consts) == 1
    inside = embed_constants(whole)
    assert (inside.constvars, inside.consts) == ([], []) and embed_constants(inside) is inside
    literals = [v for v in (*inside.eqns[0].invars, inside.outvars[1]) if type(v) is Literal]
    assert len(literals) == 2 and all((v.val == table).all() for v in literals) and len(inside.invars) == 1
    check_jaxpr(inside)
    closed = trace_closed(lambda x: [x * table], [ShapedArray((300,), "float32")], "f", ["x"])
    assert (closed.constvars, closed.name, closed.arg_names) == ([], "f", ["x"])


def test_programs_for_all_callers_say_no_lines():
    def f(x):
        with scoped("scope"):
            return [jax.jit(lambda x: sin_p.bind(x))(x)]
    whole = trace_to_jaxpr(f, [F])
    call, = whole.eqns
    assert call.primitive is jit_p and call.source and call.name_stack and call.params["jaxpr"].eqns[0].source
    call, = without_source_info(whole).eqns
    inner, = call.params["jaxpr"].eqns
    assert (call.source, call.name_stack, inner.source, inner.name_stack) == (None, "", None, "")


# --- what checkpoint saves ----------------------------------------------------------------------------------

def two(x):
    a = sin_p.bind(x)
    return [a, cos_p.bind(a)]


@pytest.mark.parametrize("policy, wanted, first, forward, again, order, kept", [
    # nothing is saved: all is done again
    (NOTHING, (True, True), 0, 2, ["sin", "cos"], [], (False, False)),
    (NOTHING, (False, True), 0, 2, ["sin", "cos"], [], (False, False)),
    # saved as they are: the wanted outputs are outputs of the forward program
    (ALL, (True, True), 0, 2, [], [], (True, True)), (ALL, (False, True), 0, 2, [], [], (False, True)),
    # the first output may not be used as a saved value: it is saved beside itself
    (ALL, (True, True), 1, 3, [], [2], (False, True)), (ALL, (True, True), 2, 4, [], [2, 3], (False, False)),
], ids=["nothing", "nothing, one wanted", "all", "all, one wanted", "but the first", "but both"])
def test_a_program_is_split_by_what_a_policy_saves(policy, wanted, first, forward, again, order, kept):
    whole = trace_to_jaxpr(two, [F])
    ahead, later, places, as_they_are = programs.split_for_remat(whole, policy, wanted, first)
    assert as_they_are == kept and len(later.outvars) == sum(wanted) - sum(kept)
    assert names(later) == again and len(ahead.outvars) == forward
    assert len(later.invars) == 1 + len(places) and sorted(places) == sorted(order)
    assert all(place >= first for place in places)
    check_jaxpr(ahead)
    check_jaxpr(later)


def test_one_saved_value_is_an_output_that_is_there_anyway():
    """What is computed again needs the sine, which the forward program gives already."""
    whole = trace_to_jaxpr(lambda x: [a := sin_p.bind(x), mul_p.bind(a, x)], [F])
    saves_sine = lambda primitive, *_, **__: primitive is sin_p
    ahead, later, places, kept = programs.split_for_remat(whole, saves_sine, (False, True))
    assert (len(ahead.outvars), places, kept, names(later)) == (2, [0], (False, False), ["mul"])
    ahead, later, places, kept = programs.split_for_remat(whole, saves_sine, (False, True), first=1)
    assert (len(ahead.outvars), places, names(later)) == (3, [2], ["mul"])
