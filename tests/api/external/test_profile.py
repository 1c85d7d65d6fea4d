"""jax.profile: the whole time of a run is attributed, to lines, scopes and passes of the program."""
import inspect

import numpy as np
import pytest
from piece_programs import PARAMS, X, in_pieces, step

import hlotrace as jax
import hlotrace.numpy as jnp


def loss(w, x):
    with jax.named_scope("layer"):
        h = jnp.tanh(x @ w)
    with jax.named_scope("loop"):
        h, _ = jax.lax.scan(lambda c, _: (jnp.sin(c @ w), None), h, None, length=4)
    return (h ** 2).sum()


LINES, FIRST = inspect.getsourcelines(loss)
W, ROWS = jnp.full((64, 64), 0.01), jnp.ones((32, 64))


def accounted(profile):
    """Do the parts add up to the run?"""
    parts = sum(op.seconds for op in profile.operations) + profile.idle + sum(profile.unknown.values())
    np.testing.assert_allclose(parts, profile.seconds, rtol=1e-6)
    for sums in (profile.by_line(), {(): profile.by_scope()[()]}):
        np.testing.assert_allclose(sum(sum(by.values()) for by in sums.values()), parts - profile.idle, rtol=1e-6)


@pytest.fixture(scope="module")
def found():
    return jax.profile(jax.grad(loss), runs=3)(W, ROWS)


def test_times_add_up_and_name_lines_scopes_and_passes(found):
    accounted(found)
    assert not found.unknown and len(found.runs) == 3 and found.seconds == min(found.runs)
    lines = {source[1] - FIRST for source in found.by_line() if source}
    assert {2, 4} <= lines
    assert {("layer",), ("loop",), ()} <= set(found.by_scope())
    assert set(found.by_pass()) >= {"forward", "backward"}


def test_operations_in_a_loop_began_as_often_as_it_runs(found):
    inside = [op for op in found.operations if op.scopes == ("loop",) and op.flops]
    assert inside and {op.calls for op in inside} == {4}
    assert all(op.flops == 4 * 2 * 32 * 64 * 64 and op.bound == "matrix unit" and op.roofline > 0 for op in inside)


def test_printed_it_is_tables(found):
    text = str(found)
    assert "forward" in text and "  loop" in text and "test_profile.py" in text and "in operations" in text


def test_donated_arguments_live_on_and_static_ones_are_given_once():
    f = jax.jit(lambda n, x: x * n, static_argnums=0, donate_argnums=1)
    x = jnp.ones(8)
    accounted(jax.profile(f, runs=2)(3, x))
    assert not x.is_deleted()


def test_a_program_in_pieces_is_one_profile():
    in_pieces(step, PARAMS, X)
    profile = jax.profile(lambda *a: step(*a), runs=2)(PARAMS, X)
    accounted(profile)
    assert len({op.module for op in profile.operations}) > 2 and not profile.unknown
    assert {"forward", "backward"} <= set(profile.by_pass())


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: jax.profile(3), TypeError, "profile"),
    (lambda: jax.profile(loss, runs=0), ValueError, "runs=0")])
def test_what_cannot_be_profiled(make, error, words):
    with pytest.raises(error, match=words):
        make()
