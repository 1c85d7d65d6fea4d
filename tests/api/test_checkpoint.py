"""checkpoint: what is done again, and that derivatives stay what they are."""
import functools
import re

import numpy as np
import pytest
from checkpointed import PLACES, W, X, in_jit, in_scan, in_vmap, kept, layer, policies
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.ad_checkpoint import (
    Offloadable, checkpoint_name, name_p, print_saved_residuals, saved_residuals)


def test_derivatives_stay_what_they_are():
    def all_places(wrap, w, x):
        return [jax.value_and_grad(wrap(place), (0, 1))(w, x) for place in PLACES], jax.jvp(
            jax.grad(wrap(in_scan)), (w, x), (w, x))[1]
    want = jax.jit(functools.partial(all_places, lambda f: f))(W, X)
    for policy in policies.save_only_these_names("h"), policies.checkpoint_dots:
        wrap = functools.partial(jax.checkpoint, policy=policy)
        same(jax.jit(functools.partial(all_places, wrap))(W, X), want, 20)
    same(jax.grad(wrap(in_jit))(W, X), want[0][0][1][0], 10)
    same(jax.jit(lambda w: jax.vjp(jax.grad(wrap(in_vmap)), w, X)[1](w)[0])(W),
         jax.jit(lambda w: jax.jvp(jax.grad(lambda w: in_vmap(w, X)), (w,), (w,))[1])(W), 20)


def count(jaxpr, name):
    """How often a program does an operation, programs in it included."""
    return sum((eqn.primitive.name == name) + sum(count(sub, name) for v in eqn.params.values() for sub in (
        v if isinstance(v, tuple) else (v,)) if hasattr(sub, "eqns")) for eqn in jaxpr.eqns)


def test_what_is_saved_is_not_done_again():
    def f(x):
        return jnp.sin(layer(x, W) @ W).sum()

    def operations(policy):
        program = jax.make_jaxpr(jax.grad(jax.checkpoint(f, policy=policy)))(X)
        return count(program, "dot_general"), count(program, "sin")
    backward = 2        # each product has one that is its transpose
    assert operations(None) == (2 + 2 + backward, 3)
    assert operations(policies.save_only_these_names("h")) == (2 + 2 + backward, 2)
    assert operations(policies.dots_saveable) == (2 + backward, 2)
    assert operations(policies.save_anything_except_these_names("none")) == (2 + backward, 2)
    assert operations(policies.everything_saveable) == (2 + backward, 2)


def test_a_loop_that_is_done_again_carries_only_what_it_needs():
    def loss(w, x):
        return lax.scan(lambda c, _: (checkpoint_name(jnp.sin(c @ w), "h"), None), x, None, length=5)[0].sum()
    program = str(jax.make_jaxpr(jax.grad(jax.checkpoint(loss, policy=policies.save_only_these_names("h"))))(
        W, X))
    assert kept(loss, policies.save_only_these_names("h")) == [(5, 3, 4)]
    assert program.count("sin ") == 1 and program.count("cos ") == 1


@pytest.mark.parametrize("policy", [
    policies.save_and_offload_only_these_names(names_which_can_be_saved=["s"],
                                               names_which_can_be_offloaded=["h"],
                                               offload_src="device", offload_dst="pinned_host"),
    policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
    lambda prim, *_, **__: prim is name_p and Offloadable("device", "pinned_host")])
def test_values_wait_in_host_memory(policy):
    for f in in_vmap, in_scan:
        loss = jax.checkpoint(f, policy=policy)
        text = jax.jit(jax.grad(loss)).lower(W, X).as_text()
        there, back = (text.count(f'_xla_buffer_placement = "{kind}"') for kind in ("pinned_host", "device"))
        assert there == back > 0
        same(jax.jit(jax.grad(loss))(W, X), jax.jit(jax.grad(f))(W, X), 10)


def test_values_wait_in_host_memory_outside_of_jit_and_under_vmap():
    policy = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    loss, want = jax.checkpoint(in_vmap, policy=policy), jax.grad(in_vmap)(W, X)
    same(jax.grad(loss)(W, X), want, 10)
    same(jax.vmap(jax.grad(loss), (None, 0))(W, X[None]), want[None], 10)


def test_prevent_cse():
    """The barrier is over the operands that are held and the cotangents: with these in it, XLA does not
    compute the residuals of all layers before it has a use for them."""
    def barred(**options):
        program = jax.make_jaxpr(jax.grad(jax.checkpoint(lambda w, x: jnp.sin(x @ w).sum(), **options)))(W, X)
        return [len(eqn.invars) for e in program.eqns if e.primitive.name == "jit"
                for eqn in e.params["jaxpr"].eqns
                if eqn.primitive.name == "optimization_barrier"]
    assert barred() == [3] and barred(prevent_cse=(True, False)) == [2]
    assert sum(barred(prevent_cse=False)) == sum(barred(prevent_cse=(False, False))) == 0
    assert barred(policy=policies.dots_saveable, prevent_cse=(False, True)) == [3]
    with pytest.raises(ValueError, match="prefix"):
        barred(prevent_cse=(True,))


def test_a_linearized_checkpoint_in_jit_mapped_and_differentiated():
    def f(x):
        return jnp.sin(x) * x
    out, lin = jax.linearize(jax.checkpoint(f), X)
    expected = jax.jvp(f, (X,), (X,))[1]
    same([out, jax.jit(lin)(X), jax.vmap(lin)(X[None])[0], *jax.jvp(jax.jit(lin), (X,), (X,)),
          jax.linear_transpose(jax.jit(lin), X)(X)[0],
          jax.grad(lambda x: jax.checkpoint(jax.linearize(jax.checkpoint(f), x)[1])(X).sum())(X)],
         [f(X), *[expected] * 5, jax.grad(lambda x: jax.jvp(f, (x,), (X,))[1].sum())(X)], 20)
    text = str(jax.make_jaxpr(lin)(X))
    assert "optimization_barrier" not in text and "rematted" in text
    assert "optimization_barrier" in jax.jit(lin).lower(X).as_text()


def test_saved_residuals_say_where_they_are_from(capsys):
    def f(params, x):
        return (jnp.sin(params["w"] * x) * checkpoint_name(jnp.cos(x), "c") * W[0]).sum()
    print_saved_residuals(f, {"w": X}, X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f32[3,4] from the argument params['w']", "f32[3,4] from the argument x"]
    assert any(line.startswith("f32[3,4] named 'c' from ") and line.endswith("f)") for line in lines)
    assert any(line.startswith("f32[3,4] output of cos from ") for line in lines)
    assert any(re.fullmatch(r"f32\[3,4\] output of cos from .*test_checkpoint.py:\d+:\d+ \(.*f\)", line)
               for line in lines)
    policy = policies.save_only_these_names("first", "second")
    named = jax.checkpoint(
        lambda x: jnp.sin(checkpoint_name(jnp.sin(checkpoint_name(jnp.sin(x), "first")), "second")),
                           policy=policy)
    found = [origin.split(" from ")[0] for f in (named, jax.jit(named))
             for _, origin in saved_residuals(f, X)]
    assert [o for o in found if "named" in o] == 2 * ["named 'first'", "named 'second'"]
    assert saved_residuals(lambda x: x.sum(), X) == []
    big = np.ones((20, 20), np.float32)
    assert [origin for _, origin in saved_residuals(lambda x: (x * big).sum(), big)] == ["from a constant"]


def test_saved_values_do_not_grow_with_depth_of_nested_checkpoints():
    """Recursive halves: logarithmically many values are kept (Chen et al. 2016, section 4.4)."""
    def halves(funs):
        if len(funs) == 1:
            return funs[0]
        first, second = halves(funs[:len(funs) // 2]), halves(funs[len(funs) // 2:])
        return lambda x: second(jax.checkpoint(first)(x))
    depth = 16
    loss = halves([jnp.sin] * depth)
    assert len(saved_residuals(loss, 1.0)) <= 1 + np.log2(depth)
    same(jax.grad(loss)(1.0),
         jax.grad(lambda x: functools.reduce(lambda y, f: f(y), [jnp.sin] * depth, x))(1.0))


def test_effects_happen_in_both_passes():
    seen = []

    def f(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        return checkpoint_name(jnp.sin(x), "s") * x
    jax.grad(jax.checkpoint(f, policy=policies.save_only_these_names("s")))(2.0)
    jax.effects_barrier()
    assert seen == [2.0, 2.0]


def test_static_arguments_that_are_not_hashable():
    f = jax.checkpoint(lambda scales, x: jnp.sin(x) * scales["a"], static_argnums=0)
    for scale in 2, 3:
        same(jax.grad(f, 1)({"a": scale}, 0.0), scale * 1.0)


@jax.custom_vjp
def doubled(x):
    """sin, whose rule gives twice its derivative: where the rule is used shows."""
    return jnp.sin(x)


doubled.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (2 * g * jnp.cos(x),))


@pytest.mark.parametrize("wrap", [
    jax.checkpoint, functools.partial(jax.checkpoint, policy=policies.dots_saveable), jax.jit,
    lambda f: jax.checkpoint(jax.checkpoint(f)), lambda f: jax.jit(jax.checkpoint(jax.jit(f)))])
@pytest.mark.parametrize("hold", [
    lambda f: f, jax.vmap, lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    lambda f: lambda x: jax.lax.cond(x[0] > 0, f, jnp.sin, x)], ids=["plain", "vmap", "scan", "cond"])
def test_second_derivatives_of_what_has_a_backward_rule(hold, wrap):
    """The forward pass of a gradient is differentiated as the forward rule, with checkpoint and without."""
    x = jnp.arange(1.0, 4.0)

    def second(wrap):
        f = jax.grad(lambda x: hold(wrap(lambda x: doubled(x) * x))(x).sum())
        return [jax.jvp(f, (x,), (x,))[1], *jax.jit(jax.jacrev(f))(x)]
    for found, expected in zip(second(wrap), second(lambda f: f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
