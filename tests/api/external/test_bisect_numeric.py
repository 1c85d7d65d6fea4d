"""The first operation where two functions part: by a number, a dtype, a step more, or an operation of another kind."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.inspection.matching import changes, flattened, matched

X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def first(x):
    return jnp.exp(jnp.sin(x) * 10.0).sum()


def other_number(x):
    return jnp.exp(jnp.sin(x) * 10.5).sum()


def longer(x):
    y = jnp.abs(x) - jnp.abs(x) + x     # the same, in more operations
    return jnp.exp(jnp.sin(y) * 10.5).sum()


def through_a_function(x):
    return jax.jit(lambda y: jnp.exp(y * 10.5))(jnp.sin(x)).sum()


def halved(x):
    return first(x.astype("float16").astype("float32"))


def other_operation(x):
    return jnp.exp(jnp.tan(x) * 10.0).sum()


@pytest.mark.parametrize(("fun", "operation", "compared"), [
    (other_number, "mul", 1),
    (through_a_function, "mul", 1),
    (longer, "mul", 1),
    (other_operation, "mul", 0),
])
def test_the_first_operation_that_parts(fun, operation, compared):
    found = jax.bisect_numeric(first, fun, X)
    assert (found.operation, found.compared) == (operation, compared)
    assert found.wheres[0].endswith(f"test_bisect_numeric.py:{first.__code__.co_firstlineno + 1} (first)")
    assert found.wheres[1].endswith(f"({fun.__qualname__})") or "lambda" in found.wheres[1]
    values = [np.asarray(np.sin(X) * 10, "float32")[found.index]]
    np.testing.assert_allclose(found.values[0], values[0], rtol=1e-5)
    assert str(found).startswith(f"{operation} parts at {list(found.index)}")


@pytest.mark.parametrize(("fun", "tolerance"), [
    (first, {"rtol": 0, "atol": 0}), (halved, {"rtol": 1e-2}), (lambda x: first(x), {}),
])
def test_functions_that_agree_part_nowhere(fun, tolerance):
    assert jax.bisect_numeric(first, fun, X, **tolerance) is None


def test_dtypes_do_not_hide_a_counterpart():
    found = jax.bisect_numeric(lambda x: jnp.cos(jnp.sin(x)), lambda x: jnp.cos(jnp.sin(x.astype("float16"))), X, rtol=0, atol=0)
    assert found.operation == "sin" and "f16[3,4]" in found.second


@pytest.mark.parametrize(("ours", "others", "parts"), [
    (lambda x: x / x, lambda x: x / x, False),                  # nan is like nan
    (lambda x: x / x, lambda x: x / (x + 0.0 * x + 1e-30), True),
    (lambda x: 1 / x, lambda x: 1 / x, False),                  # inf is like inf
    (lambda x: x > 0, lambda x: x >= 0, True),
])
def test_special_values(ours, others, parts):
    assert (jax.bisect_numeric(ours, others, np.zeros(3, "float32")) is not None) == parts


def test_results_part_where_no_operation_has_a_counterpart():
    found = jax.bisect_numeric(lambda x: jnp.sin(x), lambda x: lax.cumsum(x), X)
    assert found.operation == "result 0" and "sin" in found.first and "cumsum" in found.second


def test_results_of_other_structures_are_refused():
    with pytest.raises(ValueError, match="bisect_numeric: the functions give"):
        jax.bisect_numeric(lambda x: x, lambda x: (x, x), X)


def test_random_keys_pass_by():
    draw = lambda scale: lambda key: jax.random.normal(key, (4,)) * scale
    found = jax.bisect_numeric(draw(2.0), draw(3.0), jax.random.key(0))
    assert found.operation == "mul"


@pytest.mark.quick
def test_loops_are_counterparts_where_their_bodies_are():
    def loop(scale):
        return lambda x: lax.scan(lambda c, _: (jnp.sin(c) * scale, None), x, None, length=3)[0]
    programs = [flattened(jax.make_jaxpr(loop(s))(X)) for s in (2.0, 2.0)]
    assert [a.primitive.name for a, _ in matched(*programs)] == ["scan"]


def marks(f, g):
    programs = [jax.make_jaxpr(h)(X) for h in (f, g)]
    return [(change.mark, change.text.split(" = ")[-1].split(" ")[0]) for change in changes(*programs)]


@pytest.mark.quick
@pytest.mark.parametrize(("f", "g", "found"), [
    (lambda x: jnp.sin(x) + jnp.cos(x), lambda x: (lambda c, s: s + c)(jnp.cos(x), jnp.sin(x)),      # another order
     [(" ", "sin"), (" ", "cos"), (" ", "add"), (" ", "return")]),
    (lambda x: jnp.sin(x), lambda x: jnp.sin(jnp.abs(x)), [("+", "abs"), ("-", "sin"), ("+", "sin"), (" ", "return")]),
    (lambda x: x * 2.0, lambda x: x * 3.0, [("-", "mul"), ("+", "mul"), (" ", "return")]),
    (lambda x: jax.jit(jnp.sin)(x), jnp.sin, [(" ", "sin"), (" ", "return")]),
])
def test_changes_from_one_program_to_another(f, g, found):
    assert marks(f, g) == found


@pytest.mark.quick
@pytest.mark.parametrize("allowed", [{"rtol": -1}, {"atol": "1e-3"}, {"rtol": float("nan")}])
def test_what_is_allowed_is_a_number_of_at_least_0(allowed):
    with pytest.raises(ValueError, match="is not a number of at least 0"):
        jax.bisect_numeric(jnp.sin, jnp.cos, 1.0, **allowed)
