"""Policies of checkpoint: what each saves, in programs and by shape; what may be a policy."""
import numpy as np
import pytest
from checkpointed import (
    PLACES, X, in_checkpoint, in_cond, in_jit, in_scan, in_shard_map, in_vmap, kept, policies)
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.ad_checkpoint import Recompute, Saveable, checkpoint_name, checkpoint_name_fwd, name_p
from hlotrace.experimental import io_callback

# How many results of `layer` and products there are, and the shape of each as it is kept.
NAMED = {in_jit: [(3, 4)] * 2, in_scan: [(3, 3, 4)] * 2, in_cond: [(3, 4)], in_vmap: [(3, 4)],
         in_shard_map: [(1, 3, 4)],
         in_checkpoint: [(3, 4)]}       # the inner one asks for both products, which one name suffices for
DOTS = {**NAMED, in_checkpoint: [(3, 4)] * 2}       # the branches of a cond keep theirs in one place


@pytest.mark.parametrize("place", PLACES)
def test_policies_reach_into_programs(place):
    names = policies.save_only_these_names("h")
    assert kept(place, None) == kept(place, policies.nothing_saveable) == []
    assert kept(place, names) == kept(place, policies.save_any_names_but_these("g")) == NAMED[place]
    assert kept(place, policies.save_any_names_but_these("h")) == kept(
        place, policies.save_only_these_names()) == []
    assert kept(place, policies.dots_saveable) == DOTS[place]
    both = kept(place, policies.save_from_both_policies(policies.dots_saveable, names))
    assert both == (DOTS[place] if place is in_checkpoint else [*NAMED[place], *DOTS[place]])


def test_products_with_and_without_batch_dimensions():
    def f(w, x):
        return jnp.sin(jnp.einsum("ij,ij->i", x, jnp.sin(x @ w))).sum()
    assert kept(f, policies.dots_with_no_batch_dims_saveable) == kept(
        f, policies.checkpoint_dots_with_no_batch_dims) == [
        (3, 4)]
    assert sorted(kept(f, policies.dots_saveable)) == [(3,), (3, 4)]


def test_convolutions_are_products_but_not_ones_without_batch_dimensions():
    def f(w, x):
        return jnp.sin(jnp.sin(jnp.convolve(x, w))).sum()
    args = jnp.ones(3), jnp.ones(5)
    found = [
        [aval.shape for aval, _ in jax.ad_checkpoint.saved_residuals(jax.checkpoint(f, policy=policy), *args)]
        for policy in (policies.dots_saveable, policies.dots_with_no_batch_dims_saveable)
    ]
    assert [shapes.count((1, 1, 7)) for shapes in found] == [1, 0]


def test_any_function_is_a_policy():
    asked = []

    def policy(prim, *avals, **params):
        asked.append((prim.name, [a.shape for a in avals], params))
        return Saveable if prim is name_p else Recompute
    assert kept(lambda x: jnp.sin(checkpoint_name(jnp.cos(x), "c")).sum(), policy, X) == [(3, 4)]
    assert ("cos", [(3, 4)], {}) in asked and ("name", [(3, 4)], {"name": "c"}) in asked
    with pytest.raises(TypeError, match="remat policy should be a bool.*Got None.*for cos"):
        jax.grad(jax.checkpoint(jnp.sin, policy=lambda *_, **__: None))(1.0)
    assert policies.save_only_these_names("a", "b") == policies.save_only_these_names("b", "a")
    assert str(policies.save_only_these_names("a")) == "save_only_these_names(frozenset({'a'}))"


def test_names_of_pytrees_and_types():
    assert checkpoint_name_fwd is checkpoint_name
    got = jax.jit(lambda t: checkpoint_name(t, "n"))({"a": 1, "b": (X, True)})
    same(got, {"a": 1, "b": (X, True)})
    assert got["a"].dtype == np.int32 and got["a"].weak_type
    text = str(jax.make_jaxpr(jax.vmap(lambda x: jax.jvp(lambda x: checkpoint_name(x, "n") * 2, (x,), (x,))))(
        X))
    assert text.count("name[name=n]") == 1       # not the tangent
    same(jax.linear_transpose(jax.checkpoint(lambda x: checkpoint_name(x, "n") * 2), X)(X), (2 * X,))


@pytest.mark.parametrize("policy", [None, "nothing_saveable", "everything_saveable", "dots_saveable"])
def test_a_policy_saves_nothing_that_has_effects(policy):
    """What it gives is computed again, with the effect, whatever the policy says of it."""
    calls = []

    def f(x):
        y = io_callback(lambda v: calls.append(1) or v, jax.ShapeDtypeStruct((), np.float32),
                        lax.stop_gradient(x))
        return jnp.sin(x) * y
    jax.grad(jax.checkpoint(f, policy=getattr(policies, policy) if policy else None))(1.0)
    jax.effects_barrier()
    assert len(calls) == 2
