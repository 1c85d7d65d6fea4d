"""Branches and loops for which devices decide differently: an error where a collective in them would hang; derivatives."""
import functools

import numpy as np
import pytest
from equal import same
from mapped import A, on_grid, on_line, raises

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import PartitionSpec as P

each = functools.partial(lax.pvary, axis_name="x")

# what devices wait for each other in -> (its name, on a value of two elements)
EXCHANGES = {
    "psum": lambda v: each(lax.psum(v, "x")), "pmean": lambda v: each(lax.pmean(v, "x")), "pmax": lambda v: lax.pmax(v, "x"),
    "pmin": lambda v: lax.pmin(v, "x"), "all_gather": lambda v: lax.all_gather(v, "x").sum(0),
    "psum_scatter": lambda v: v * lax.psum_scatter(jnp.tile(v, 2), "x"),
    "ppermute": lambda v: lax.ppermute(v, "x", [(0, 1)]),
    "all_to_all": lambda v: v * lax.all_to_all(jnp.tile(v, 2), "x", 0, 0).sum(),
}


@jax.custom_vjp
def summed_backwards(v):
    return 2 * v


summed_backwards.defvjp(lambda v: (2 * v, None), lambda _, ct: (each(lax.psum(ct, "x")),))


@jax.custom_jvp
def summed_forwards(v):
    return 2 * v


summed_forwards.defjvp(lambda p, t: (2 * p[0], each(lax.psum(t[0], "x"))))

# what decides differently on different devices -> a function of (what stands there, the value of a device)
PLACES = {
    "the true branch": lambda f, x: lax.cond(x[0] > 0, f, lambda v: v, x),
    "the false branch": lambda f, x: lax.cond(x[0] > 0, lambda v: v, f, x),
    "the true branch ": lambda f, x: lax.cond(lax.axis_index("x") == 0, f, f, x),
    "branch 1": lambda f, x: lax.switch(x[0].astype(int), [lambda v: v, f, lambda v: -v], x),
    "its body": lambda f, x: lax.while_loop(lambda v: v[0] < 3, lambda v: 1 + v + 0 * f(v), x),
    "its condition": lambda f, x: lax.while_loop(lambda v: v[0] + f(v)[0] < 3, lambda v: 1 + v, x),
    "its body ": lambda f, x: lax.fori_loop(0, x[0].astype(int), lambda i, v: f(v), x),
    "the true branch  ": lambda f, x: jax.vmap(lambda v: lax.cond(x[0] > 0, lambda v: f(v * jnp.ones(2)), lambda v: x, v)
                                               )(x)[0],
}
HOLDERS = {
    "plain": lambda f: f, "jit": jax.jit, "checkpoint": jax.checkpoint,
    "scan": lambda f: lambda v: lax.scan(lambda c, _: (f(c), None), v, None, length=2)[0],
    "cond": lambda f: lambda v: lax.cond(lax.psum(1, "x") > 2, f, lambda v: v, v),
    "derivative": lambda f: lambda v: jax.jvp(f, (v,), (v,))[0],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", EXCHANGES)
def test_a_collective_where_devices_decide_differently_is_an_error(name, place):
    public = {"pmean": "psum"}.get(name, name)
    with raises(ValueError, "between devices along ['x']", f"{place.strip()} holds {public} over 'x'", "test_divergent_collectives.py"):
        jax.make_jaxpr(on_line(lambda x: PLACES[place](EXCHANGES[name], x)))(A(8))


@pytest.mark.parametrize("holder", HOLDERS)
def test_wherever_it_stands(holder):
    with raises(ValueError, "the true branch holds psum over 'x'", "lax.pmax(value, 'x')"):
        jax.make_jaxpr(on_line(lambda x: PLACES["the true branch"](HOLDERS[holder](EXCHANGES["psum"]), x)))(A(8))


@pytest.mark.parametrize("derive", [
    lambda x: jax.grad(lambda v: lax.cond(x[0] > 0, summed_backwards, lambda v: v, v).sum())(x),
    lambda x: jax.jvp(lambda v: lax.cond(x[0] > 0, summed_forwards, lambda v: v, v), (x,), (x,))[1],
    lambda x: jax.grad(lambda v: lax.switch(x[0].astype(int), [summed_backwards, jnp.sin], v).sum())(x),
])
def test_in_rules_of_users(derive):
    with raises(ValueError, "psum over 'x'"):
        jax.make_jaxpr(on_line(derive))(A(8))


def test_both_branches_are_listed():
    two = lambda x: lax.cond(x[0] > 0, EXCHANGES["psum"], EXCHANGES["pmax"], x)
    with raises(ValueError, "the true branch holds psum over 'x'", "the false branch holds pmax over 'x'", "jnp.where"):
        jax.make_jaxpr(on_line(two))(A(8))


def test_along_another_axis_all_devices_come():
    for f, want in ((lambda v: lax.pvary(lax.psum(v, "y"), "y"), lambda a: a.sum(1, keepdims=True) + 0 * a),
                    (lambda v: lax.all_gather(v, "y", axis=1, tiled=True).sum() * v, lambda a: a.sum() * a)):
        mapped = on_grid(lambda x, f=f: lax.cond(lax.axis_index("x") == 1, f, lambda v: v, x), P("x", "y"), P("x", "y"))
        same(jax.jit(mapped)(A(4, 2)), np.concatenate([A(4, 2)[:1], want(A(4, 2)[1:2]), A(4, 2)[2:]]))
    with raises(ValueError, "ppermute over 'y'", "all devices of the mesh"):
        jax.make_jaxpr(on_grid(lambda x: lax.cond(lax.axis_index("x") == 1, lambda v: lax.ppermute(v, "y", [(0, 1)]),
                                                  lambda v: v, x), P("x", "y"), P("x", "y")))(A(4, 2))


def test_where_all_devices_decide_alike_collectives_may_stand():
    f = on_line(lambda x: lax.cond(lax.psum(x[0], "x") > 0, EXCHANGES["psum"], lambda v: v, x))
    same(jax.jit(f)(A(8)), np.tile(A(8).reshape(4, 2).sum(0), 4))
    g = on_line(lambda x: lax.while_loop(lambda v: lax.pmax(v[0], "x") < 9, lambda v: v + EXCHANGES["psum"](v), x))
    same(jax.jit(g)(A(8)), A(8) + np.tile(A(8).reshape(4, 2).sum(0), 4))
    where = on_line(lambda x: lax.cond(x[0] > 0, lambda v: v + lax.axis_index("x"), lambda v: v, x))
    same(jax.jit(where)(A(8)), A(8) + [0, 0, 1, 1, 2, 2, 3, 3])


# --- the derivative by what all devices share is a sum, outside of the branches ---

# how a branch gets at a weight -> (x, w) -> a value of a device, where its branch is chosen by x
WEIGHTS = {
    "operand": lambda x, w: lax.cond(x[0] > 0, lambda v, w: v * w, lambda v, w: v, x, w),
    "closure": lambda x, w: lax.cond(x[0] > 0, lambda v: v * w, lambda v: v, x),
    "both": lambda x, w: lax.cond(x[0] > 0, lambda v, u: v * w * u, lambda v, u: v, x, w),
    "jit": lambda x, w: lax.cond(x[0] > 0, jax.jit(lambda v: v * w), lambda v: v, x),
    "checkpoint": lambda x, w: lax.cond(x[0] > 0, jax.checkpoint(lambda v: jnp.multiply(v, w)), lambda v: v, x),
    "branch of a branch": lambda x, w: lax.cond(x[0] > 0, lambda v: lax.cond(v[1] > 0, lambda u: u * w, lambda u: u, v),
                                                lambda v: v, x),
    "common branch": lambda x, w: lax.cond(x[0] > 0, lambda v: lax.cond(
        lax.axis_size("x") > 1, lambda u: u * w, lambda u: u, v), lambda v: v, x),
    "switch": lambda x, w: lax.switch(jnp.minimum(x[0], 1).astype(int), [lambda v: v, lambda v: v * w], x),
    "loop": lambda x, w: lax.cond(x[0] > 0, lambda v, w: lax.fori_loop(0, 2, lambda i, u: u + v * w / 2, 0 * v),
                                  lambda v, w: v, x, w),
    "remat": lambda x, w: jax.checkpoint(lambda w: lax.cond(x[0] > 0, lambda v: v * w, lambda v: v, x))(w),
    "vmap": lambda x, w: jax.vmap(lambda v: lax.cond(x[0] > 0, lambda v: v * w, lambda v: v, v))(x),
}


@pytest.mark.parametrize("way", WEIGHTS)
def test_derivatives_of_shared_values_in_branches(way):
    """Device 0 takes the other branch: JAX hangs here, or gives 0."""
    f, w, v = WEIGHTS[way], np.float32(3), A(8)[2:]
    inside = jax.jit(on_line(lambda x, w: jax.grad(lambda w: f(x, w).sum())(w), (P("x"), P()), P()))
    outside = jax.jit(jax.grad(lambda x, w: on_line(f, (P("x"), P()))(x, w).sum(), 1))
    by_w = v.sum() * (2 * w if way == "both" else 1)
    same((inside(A(8), w), outside(A(8), w)), (by_w, by_w))
    same(jax.jit(on_line(f, (P("x"), P())))(A(8), w), np.concatenate([A(2), v * w * (w if way == "both" else 1)]))


def test_a_sum_that_a_derivative_makes_in_a_branch_is_explained():
    def f(x, w):
        return lax.cond(x[0] > 0, lambda v: lax.fori_loop(0, 2, lambda i, u: u + v * w, 0 * v), lambda v: v, x)
    with raises(ValueError, "holds psum over 'x'", "If you wrote no psum", "lax.pvary(value, 'x')"):
        jax.make_jaxpr(on_line(lambda x, w: jax.grad(lambda w: f(x, w).sum())(w), (P("x"), P()), P()))(A(8), 3.0)
    g = on_line(lambda x, w: jax.grad(lambda w: f(x, lax.pvary(w, "x")).sum())(w), (P("x"), P()), P())
    same(jax.jit(g)(A(8), 3.0), 2 * A(8)[2:].sum())


def test_results_of_branches_vary():
    for f in (lambda x: lax.cond(x[0] > 0, lambda: 1.0, lambda: 2.0),
              lambda x: lax.switch(x[0].astype(int), [lambda: 1.0, lambda: 2.0]),
              lambda x: lax.while_loop(lambda c: c < x[0], lambda c: c + 1.0, 0.0),
              lambda x: jax.jvp(lambda w: lax.cond(x[0] > 0, lambda: w, lambda: 2.0), (1.0,), (1.0,))[1]):
        with raises(ValueError, "out_specs", "may vary"):
            jax.make_jaxpr(on_line(f, P("x"), P()))(A(8))
