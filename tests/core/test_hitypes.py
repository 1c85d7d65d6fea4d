"""Which values are of a type of the user's, and to which trace one belongs."""
import pytest

from hlotrace.core import hitypes
from hlotrace.core.config import state
from hlotrace.core.jaxpr_trace import JaxprTrace
from hlotrace.core.trace import EVAL, Trace, entering

pytestmark = pytest.mark.quick


class Kind:
    def __init__(self, mutable):
        self.has_qdd = mutable


class Value:
    pass


class Box:
    def cur_qdd(self):
        return "float32[3]"


class Derived(Box):
    pass


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(hitypes, "_types", {})
    kinds = {Value: Kind(False), Box: Kind(True)}
    for cls, kind in kinds.items():
        hitypes.register(cls, lambda value, kind=kind: kind)
    return kinds


@pytest.mark.parametrize("value, cls, mutable", [
    (Value(), Value, False), (Box(), Box, True), (Derived(), Box, True), (3, None, False),
    (Value, None, False)])
def test_a_class_or_one_that_it_is_derived_from_has_a_type(value, cls, mutable, registered):
    assert hitypes.type_of(value) is registered.get(cls) and hitypes.is_mutable(value) == mutable
    assert (hitypes.typeof_for(type(value)) is None) == (cls is None)


def test_what_a_mutable_value_is_made_of_now():
    assert hitypes.cur_qdd(Derived()) == "float32[3]"
    with pytest.raises(TypeError, match="cur_qdd: .*Value object.* is of no mutable type"):
        hitypes.cur_qdd(Value())


def test_a_value_belongs_to_the_innermost_trace_that_adopted_it():
    value, other = Value(), Value()
    # nothing belongs to EVAL
    assert hitypes.adopt(value) is value and hitypes.found(value) == (EVAL, (), False)
    outer = Trace(EVAL)
    with entering(outer):
        hitypes.adopt(value, ["tangent"])
        assert hitypes.found(value) == (outer, ["tangent"], False) and hitypes.found(other) == (
            EVAL, (), False)
        with entering(JaxprTrace(outer)):
            assert hitypes.found(value) == (outer, ["tangent"], True)       # a program is being written in it
            inner = Trace(state.trace)
            with entering(inner):
                hitypes.adopt(value)
                assert hitypes.found(value) == (inner, (), False)
            assert hitypes.found(value) == (outer, ["tangent"], True)
    assert hitypes.found(value) == (EVAL, (), False)
