"""Two programs side by side: which equations are counterparts, and what is shown of the others."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.inspection.matching import changes, flattened, matched

pytestmark = pytest.mark.quick

X = np.ones(3, np.float32)


def marks(first, second, *args):
    args = args or (X, X)
    return [(c.mark, c.text.split(" = ")[1].split(" ")[0].split("[")[0]) if " = " in c.text
            else (c.mark, "return")
            for c in changes(*(jax.make_jaxpr(f)(*args) for f in (first, second)))]


@pytest.mark.parametrize("first, second, wanted", [
    (lambda x, y: lax.sin(x) + y, lambda x, y: lax.sin(x) + y, " sin  add  return"),
    (lambda x, y: jax.jit(lambda v: lax.sin(v))(x), lambda x, y: lax.sin(x), " sin  return"),
    (lambda x, y: jax.checkpoint(lambda v: lax.sin(v) * v)(x), lambda x, y: lax.sin(x) * x,
     " sin  mul  return")])
def test_what_is_the_same_and_what_is_not(first, second, wanted):
    assert " ".join(f"{mark}{name}" for mark, name in marks(first, second)) == wanted


@pytest.mark.parametrize("first, second, gone, new", [
    (lambda x, y: lax.sin(x) + y, lambda x, y: lax.cos(x) + y, {"sin"}, {"cos"}),
    (lambda x, y: lax.sin(x), lambda x, y: lax.sin(lax.exp(x)), set(), {"exp"}),
    (lambda x, y: (lax.sin(x), lax.cos(y)), lambda x, y: lax.sin(x), {"cos"}, set())])
def test_what_has_no_counterpart_is_marked(first, second, gone, new):
    found = marks(first, second)
    names = {mark: {name for m, name in found if m == mark} - {"return"} for mark in "-+"}
    assert names["-"] - names["+"] == gone and names["+"] - names["-"] == new


def test_order_and_names_do_not_matter():
    first, second = (jax.make_jaxpr(f)(X, X) for f in (lambda x, y: lax.sin(x) * lax.cos(y),
                                                       lambda x, y: (lambda c: lax.sin(x) * c)(lax.cos(y))))
    assert {c.mark for c in changes(first, second)} == {" "}
    assert len(matched(flattened(first), flattened(second))) == 3


def test_dtypes_and_precision_do_not_count():
    wide, narrow = (jax.make_jaxpr(lambda x, y: lax.sin(x) @ y)(*[x.astype(d) for x in (X, X)])
                    for d in ("float32", "bfloat16"))
    pairs = matched(flattened(wide), flattened(narrow))
    assert [a.primitive.name for a, _ in pairs] == ["sin", "dot_general"]
    precise = jax.make_jaxpr(lambda x, y: jnp.dot(lax.sin(x), y, precision="highest"))(X, X)
    assert len(matched(flattened(wide), flattened(precise))) == 2
    converted = jax.make_jaxpr(lambda x, y: lax.sin(x.astype(jnp.bfloat16)).astype(jnp.float32) @ y)(X, X)
    assert [a.primitive.name for a, _ in matched(flattened(wide), flattened(converted))] == [
        "sin", "dot_general"]


def test_each_equation_is_in_one_pair():
    first, second = (jax.make_jaxpr(f)(X)
                     for f in (lambda x: lax.sin(x) + lax.sin(x), lambda x: lax.sin(x) + 1))
    pairs = matched(flattened(first), flattened(second))
    assert len({id(a) for a, _ in pairs}) == len({id(b) for _, b in pairs}) == len(pairs)
    assert [a.primitive.name for a, _ in pairs].count("sin") == 1


def test_calls_are_written_out():
    program = flattened(jax.make_jaxpr(lambda x: jax.jit(lambda v: jax.jit(lax.sin)(v) * v)(x) + 1)(X))
    assert [e.primitive.name for e in program.eqns] == ["sin", "mul", "add"]


def test_what_loops_hold_is_shown_where_it_differs():
    def loop(f):
        return jax.make_jaxpr(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(X)
    assert not [c for c in changes(loop(lax.sin), loop(lax.sin)) if c.mark != " "]
    inner = [c for c in changes(loop(lax.sin), loop(lax.cos)) if c.text.startswith("  ")]
    assert {c.mark for c in inner} >= {"-", "+"} and any("cos" in c.text for c in inner)


def test_values_of_the_second_have_the_names_of_the_first_or_a_prime():
    texts = [
        c.text
        for c in changes(*(jax.make_jaxpr(f)(X)
                           for f in (lambda x: lax.sin(x) * 2, lambda x: lax.exp(lax.sin(x)) * 2)))]
    added = [text for text in texts if "exp" in text]
    assert len(added) == 1 and "'" in added[0].split("=")[0] and "'" not in added[0].split("=")[1].split("]")[
        -1].replace("exp", "")
