"""with_sharding_constraint over eight devices: in programs, outside, under vmap and in derivatives."""
import numpy as np
import pytest
from mesh8 import (
    MIXED,
    UNEVEN,
    backwards,
    counting,
    devices,
    grid,
    lies,
    low,
    on,
    on_device,
    put,
    whole,
)

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import NamedSharding
from hlotrace.sharding import PartitionSpec as P

A = counting((8, 4))
constrain = lambda *args, **kw: lax.with_sharding_constraint(*args, **kw)


@pytest.mark.parametrize("operand", [lambda: A, lambda: jnp.asarray(A), lambda: put(A, "data")])
@pytest.mark.parametrize("spec", [
    P(), P("data"), P(None, "model"), P("model", "data"), P(("data", "model"))])
def test_a_constraint_moves_the_value(operand, spec):
    sharding = NamedSharding(grid(), spec)
    for fun in (lambda x: constrain(x, sharding), jax.jit(lambda x: constrain(x, sharding)),
                jax.jit(lambda x: constrain(x, shardings=sharding))):
        y = fun(operand())
        whole(y, A)
        assert y.committed and y.sharding.is_equivalent_to(sharding, 2)


def test_a_constraint_in_the_middle_is_felt_by_what_follows():
    y = jax.jit(lambda x: jnp.sin(constrain(x * 2, on("model")) + 1))(A)
    assert lies(y, "model")
    np.testing.assert_allclose(y, np.sin(2 * A + 1), rtol=1e-4, atol=1e-5)


def test_an_unconstrained_dimension_is_left_to_the_compiler():
    y = jax.jit(lambda x: constrain(x * 2, on(P.UNCONSTRAINED, "model")))(put(A, "data"))
    whole(y, 2 * A)
    assert lies(y, "data", "model")


@pytest.mark.filterwarnings("ignore:.*with mesh:DeprecationWarning")
@pytest.mark.parametrize(
    "enter", [lambda: jax.set_mesh(grid()), grid], ids=["set_mesh", "with mesh"])
def test_a_bare_spec_is_read_under_the_mesh(enter):
    with enter():
        y = jax.jit(lambda x: constrain(x * 2, P(None, "model")))(A)
        z = constrain(put(A, "data"), P("model"))
        with pytest.raises(ValueError, match="(?s)zzz"):
            jax.jit(lambda x: constrain(x, P("zzz")))(A)
    whole(y, 2 * A)
    whole(z, A)
    assert lies(y, None, "model") and lies(z, "model")


def test_constraints_of_trees():
    tree = {"a": A, "b": (A, A)}
    got = jax.jit(lambda t: constrain(t, {"a": on("data"), "b": on(None, "model")}))(tree)
    assert lies(got["a"], "data") and all(lies(x, None, "model") for x in got["b"])
    got = constrain(tree, on("data"))
    assert all(lies(x, "data") for x in jax.tree.leaves(got))


@pytest.mark.parametrize("value, where, error, text", [
    (A, lambda: on(None, None, "data"), ValueError, r"(?s)rank.*\b3\b.*rank.*2"),
    (A, lambda: on("zzz"), ValueError, "(?s)zzz.*mesh"),
    (A, lambda: P("data"), (RuntimeError, ValueError), "mesh"),
    (A, lambda: "data", (TypeError, ValueError), "data"),
    (A, lambda: devices()[0], (TypeError, ValueError), "cpu:0|CpuDevice"),
    ({"a": A, "b": A}, lambda: {"a": on()}, ValueError, "(?s)prefix"),
])
def test_wrong_constraints_are_refused(value, where, error, text):
    for apply in (lambda fun: fun(value), lambda fun: jax.jit(fun)(value)):
        with pytest.raises(error, match=text):
            apply(lambda x: constrain(x, where()))


def test_a_constraint_that_does_not_divide_is_refused_outside_of_programs():
    with pytest.raises(ValueError, match=UNEVEN):
        constrain(A[:6], on("data"))
    # in a program it is left to the compiler
    assert np.array_equal(jax.jit(lambda x: constrain(x, on("data")))(A[:6]), A[:6])


@pytest.mark.parametrize("operand", [
    lambda: on_device(A, 1), lambda: on_device(A, 0),
    lambda: put(A, "x", mesh=low), lambda: put(A, "x", mesh=backwards)])
def test_a_constraint_on_other_devices_than_the_arguments_is_refused(operand):
    with pytest.raises(ValueError, match=MIXED):
        jax.jit(lambda x: constrain(x, on("data")))(operand())


def test_a_constraint_under_vmap_leaves_the_mapped_dimension_free():
    rows = jax.vmap(lambda r: constrain(r * 2, on("model")))
    for fun in (rows, jax.jit(rows)):
        y = fun(A)
        whole(y, 2 * A)
        assert lies(y, None, "model")
    y = jax.jit(rows)(put(A, "data"))
    whole(y, 2 * A)
    assert lies(y, "data", "model")


@pytest.mark.parametrize("axis, inner, in_axes, spec", [
    ("data", P("model"), 0, P("data", "model")),
    ("model", P("data"), 0, P("model", "data")),
    ("data", P("model"), 1, P("data", "model")),
    (("data", "model"), P(), 0, P(("data", "model"))),
    ("data", P(), 0, P("data")),
])
def test_spmd_axis_name_says_where_the_mapped_dimension_lies(axis, inner, in_axes, spec):
    rows = jax.vmap(lambda r: constrain(r * 2, on(*inner)), in_axes, spmd_axis_name=axis)
    operand = A if in_axes == 0 else counting((4, 8))
    y = jax.jit(rows)(operand)
    whole(y, 2 * np.moveaxis(operand, in_axes, 0))
    assert y.sharding.is_equivalent_to(NamedSharding(grid(), spec), 2)


@pytest.mark.parametrize("axis, inner", [("data", "data"), ("zzz", "model")])
def test_a_wrong_spmd_axis_name_is_refused(axis, inner):
    rows = jax.vmap(lambda r: constrain(r, on(inner)), spmd_axis_name=axis)
    with pytest.raises(ValueError, match=axis):
        jax.jit(rows)(A)


def test_cotangents_are_constrained_as_values_are():
    fun = jax.grad(lambda x: (constrain(x * 2, on(None, "model")) ** 2).sum())
    for x in (A, put(A, "data")):
        for g in (fun(x), jax.jit(fun)(x)):
            whole(g, 8 * A)
            assert lies(g, None, "model")


def test_constraints_in_loops_branches_and_nested_functions():
    def step(c, _):
        return constrain(c * 2, on("data")), None

    whole(jax.jit(lambda x: lax.scan(step, x, None, length=3)[0])(A), 8 * A)
    whole(jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: step(c, i)[0], x))(A), 8 * A)
    whole(jax.jit(lambda x: lax.cond(x[0, 0] < 1, lambda y: step(y, 0)[0], jnp.sin, x))(A), 2 * A)
    whole(jax.jit(jax.checkpoint(lambda x: step(x, 0)[0]))(A), 2 * A)
    y = jax.jit(lambda x: lax.scan(step, x, None, length=3)[0])(A)
    assert lies(y, "data")
