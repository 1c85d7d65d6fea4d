"""A program cut in two by what a policy saves: the halves compute what the whole did, and nothing is saved
without need."""
import numpy as np
import pytest
from reference import evaluate

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.ad_checkpoint import checkpoint_name
from hlotrace.core import programs
from hlotrace.core.jaxpr import check_jaxpr

pytestmark = pytest.mark.quick
policies = jax.checkpoint_policies

X = np.linspace(0.5, 1, 3, dtype=np.float32)
Y = np.linspace(2, 1, 3, dtype=np.float32)


def traced(function):
    return jax.make_jaxpr(function)(X, Y)


CHAIN = traced(lambda x, y: (jnp.exp(jnp.cos(checkpoint_name(jnp.sin(x), "sine")) * y), y * y))
ROW = traced(lambda x, y: (jax.jit(lambda a: jnp.cos(a) + jnp.sin(a))(x) @ y,))


def operations(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


@pytest.mark.parametrize("policy, wanted, saved, repeated", [
    (policies.nothing_saveable, (True, False), 0, ["sin", "name", "cos", "mul", "exp"]),
    (policies.nothing_saveable, (False, True), 0, ["mul"]),
    (policies.nothing_saveable, (False, False), 0, []),
    (policies.everything_saveable, (True, True), 2, []),
    (policies.everything_saveable, (True, False), 1, []),
    (policies.save_only_these_names("sine"), (True, True), 1, ["cos", "mul", "exp", "mul"]),
    (policies.save_only_these_names("sine"), (False, True), 0, ["mul"]),
    (policies.save_only_these_names("other"), (True, False), 0, ["sin", "name", "cos", "mul", "exp"]),
    (lambda primitive, *_, **__: primitive.name == "cos", (True, True), 1, ["mul", "exp", "mul"])])
def test_what_is_saved_and_what_is_done_again(policy, wanted, saved, repeated):
    forward, again = programs.partial_eval(CHAIN, policy, wanted)
    check_jaxpr(forward)
    check_jaxpr(again)
    assert operations(again) == repeated
    assert (len(forward.outvars), len(again.invars)) == (2 + saved, 2 + saved)
    outs = evaluate(forward, X, Y)
    for got, want in zip(outs[:2], (np.exp(np.cos(np.sin(X)) * Y), Y * Y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    for got, want in zip(evaluate(again, X, Y, *outs[2:]), [x for x, w in zip(outs, wanted) if w],
                         strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("policy, in_call", [
    (policies.nothing_saveable, ["cos", "sin", "add"]),
    (lambda primitive, *_, **__: primitive.name == "sin", ["cos", "add"])])
def test_a_call_is_cut_inside(policy, in_call):
    forward, again = programs.partial_eval(ROW, policy, (True,))
    call, *rest = again.eqns
    assert [e.primitive.name for e in rest] == ["dot_general"]
    assert operations(call.params["jaxpr"]) == in_call
    result, *saved = evaluate(forward, X, Y)
    np.testing.assert_allclose(result, (np.cos(X) + np.sin(X)) @ Y, rtol=1e-6)
    np.testing.assert_array_equal(*evaluate(again, X, Y, *saved), result)


def test_a_value_that_is_moved_waits_elsewhere_and_comes_back():
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["sine"], offload_src="device",
        offload_dst="pinned_host")
    forward, again = programs.partial_eval(CHAIN, policy, (True, False))
    assert operations(forward).count("device_put") == operations(again).count("device_put") == 1
    away, back = (next(e for e in jaxpr.eqns if e.primitive.name == "device_put")
                  for jaxpr in (forward, again))
    assert [str(e.params["sharding"]) for e in (away, back)] == ["in pinned_host memory", "in device memory"]
    assert away.outvars == forward.outvars[2:] == again.invars[2:] == back.invars


def test_a_ref_is_read_once():
    """A second time there might be another value in it: what was read is saved, whatever the policy says."""
    ref = jax.new_ref(X)
    jaxpr = jax.make_jaxpr(lambda y: (jnp.sin(ref[...]) * y,))(Y)
    forward, again = programs.partial_eval(jaxpr, policies.nothing_saveable, (True,))
    assert operations(forward) == ["get", "sin", "mul"] and operations(again) == ["sin", "mul"]
    assert forward.eqns[0].outvars == forward.outvars[1:] == again.invars[1:]
