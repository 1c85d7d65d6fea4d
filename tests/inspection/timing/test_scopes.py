"""Paths of named scopes, taken apart."""
import pytest

from hlotrace.inspection.timing.scopes import scope_of

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("path", "scopes", "passed"), [
    ("jit(step)/dot_general", (), "other"),
    ("jit(step)/opt/mul", ("opt",), "other"),
    ("jit(step)/jvp(layer)/inner/tanh", ("layer", "inner"), "forward"),
    ("jit(step)/transpose(jvp(layer))/mul", ("layer",), "backward"),
    ("jit(step)/jvp()/mul", (), "forward"),
    ("jit(step)/jvp(loop)/while/body/sin", ("loop",), "forward"),
    ("jit(step)/jvp(out)/vmap()/cos", ("out",), "forward"),
    ("jit(step)/vmap(a)/jit(inner)/b/cos", ("a", "b"), "other"),
    ("jit(step)/transpose(jvp(jit(layer)))/checkpoint/rematted_computation/layer/tanh", ("layer",),
     "recomputed"),
    ("jit(step)/transpose(jvp(opt))/jvp()/checkpoint/layer/mul", ("opt", "layer"), "backward"),
    ("jit(step)/cond/branch_1_fun/layer/mul", ("layer",), "other"),
    ("jit(step)/transpose(jvp(head))/mul;jit(step)/jvp(tail)/div", ("head",), "backward"),
    ("w", (), "other"), ("", (), "other"), (None, (), "other")])
def test_scopes_and_passes(path, scopes, passed):
    assert scope_of(path) == (scopes, passed)
