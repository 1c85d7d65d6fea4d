"""Broadcasts, reshapes, transposes and sums: their rules by NumPy, and what is left out because it changes nothing."""
import numpy as np
import pytest
from reference import check_rules, draw

import hlotrace as jax
from hlotrace import lax

pytestmark = pytest.mark.quick

X, ROW = draw((3, 1, 4), (4,))
LINEAR = {
    "broadcast in front": lambda x: lax.broadcast_in_dim(x, (2, 3, 1, 4), (1, 2, 3)),
    "broadcast between": lambda x: lax.broadcast_in_dim(x, (3, 5, 2, 4), (0, 1, 3)),
    "broadcast of an axis of one": lambda x: lax.broadcast_in_dim(x, (3, 6, 4), (0, 1, 2)),
    "reshape": lambda x: lax.reshape(x, (2, 6)), "reshape to a vector": lambda x: lax.reshape(x, (12,)),
    "transpose": lambda x: lax.transpose(x, (2, 0, 1)), "squeeze": lambda x: lax.squeeze(x, (1,)),
    "expand": lambda x: lax.expand_dims(x, (0, 3)), "sum": lambda x: lax.reduce_sum(x, (0, 2)), "sum of one axis": lambda x: lax.reduce_sum(x, (1,)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_rules(name):
    check_rules(LINEAR[name], X, linear=[0])


@pytest.mark.parametrize("call, shape", [
    (lambda x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 2, 3)), (2, 3, 5, 4)), (lambda x: lax.reshape(x, (4, 3)), (4, 3)),
    (lambda x: lax.transpose(x, (2, 1, 0)), (4, 1, 3)), (lambda x: lax.squeeze(x, (-2,)), (3, 4)), (lambda x: lax.squeeze(x, ()), (3, 1, 4)),
    (lambda x: lax.reduce_sum(x, (2, 0)), (1,)), (lambda x: lax.reduce_sum(x, (0, 1, 2)), ())])
def test_shapes(call, shape):
    assert jax.eval_shape(call, X).shape == shape


@pytest.mark.parametrize("call", [
    lambda x: lax.transpose(x, (0, 1, 2)), lambda x: lax.reshape(x, (3, 1, 4)), lambda x: lax.squeeze(x, ()), lambda x: lax.expand_dims(x, ())])
def test_what_changes_nothing_writes_nothing(call):
    assert jax.make_jaxpr(call)(X).eqns == []


@pytest.mark.parametrize("call, words", [
    (lambda x: lax.broadcast_in_dim(x, (3, 1), (0, 1)), "broadcast_in_dim"),
    (lambda x: lax.broadcast_in_dim(x, (3, 2, 5), (0, 1, 2)), "broadcast_in_dim"),
    (lambda x: lax.broadcast_in_dim(x, (3, 1, 4), (1, 0, 2)), "broadcast_in_dim"), (lambda x: lax.reshape(x, (5, 2)), "reshape"),
    (lambda x: lax.transpose(x, (0, 1)), "transpose"), (lambda x: lax.transpose(x, (0, 0, 1)), "transpose"),
    (lambda x: lax.squeeze(x, (0,)), "squeeze|size"), (lambda x: lax.reduce_sum(x, (3,)), "reduce_sum"),
    (lambda x: lax.reduce_sum(x, (1, 1)), "reduce_sum")])
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        jax.eval_shape(call, X)


def test_an_operand_of_a_larger_rank_is_reached():
    check_rules(lambda x, row: lax.mul(x, lax.broadcast_in_dim(row, (3, 1, 4), (2,))), X, ROW)
    with jax.enable_x64():
        assert jax.eval_shape(jax.grad(lambda r: lax.broadcast_in_dim(r, (3, 1, 4), (2,)).sum()), ROW).dtype == np.float64
