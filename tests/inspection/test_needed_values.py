"""Which values of a program are needed, and how often its loops run, of the StableHLO of small functions."""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.inspection.needed_values import Needed, body, trip_count
from hlotrace.runtime.mlir.bindings import parse_module
from hlotrace.runtime.mlir.shardy import functions

pytestmark = pytest.mark.quick


def of(function, *args):
    """(the functions of a program, the operations of main, the module, which these need)."""
    module = parse_module(jax.jit(function).lower(*args).as_text())
    found = functions(module)
    return found, [op.operation for op in body(found["main"]).operations], module


def loop(stop, step, start=0):
    return lambda x: lax.while_loop(lambda s: s[0] < stop, lambda s: (s[0] + step, s[1] * 2),
                                    (start, x))[1]


@pytest.mark.parametrize("function, trips", [
    (loop(7, 1), 7), (loop(7, 3), 3), (loop(6, 3), 2), (loop(7, 3, 5), 1), (loop(3, 1, 5), 0),
    (loop(7, -1), None),
    (lambda x: lax.fori_loop(0, 4, lambda i, y: y + i, x), 4),
    (lambda x: lax.while_loop(lambda y: y < 9, lambda y: y + 1, x), None)])
def test_how_often_a_loop_runs(function, trips):
    _, operations, module = of(function, 1.0)
    assert [trip_count(op) for op in operations if op.name == "stablehlo.while"] == [trips] and module


def test_what_only_a_loop_carries_along_does_not_run():
    def two(x, y):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1]), jnp.cos(s[2])),
                              (0, x, y))[1]
    known, operations, module = of(two, 1.0, 2.0)
    needed, [while_op] = Needed(known), [op for op in operations if op.name == "stablehlo.while"]
    assert [value in needed.values for value in while_op.results] == [True, True, False]
    inner = {op.operation.name: needed.runs(op.operation) for op in body(while_op, 1).operations}
    assert inner["stablehlo.sine"] and not inner["stablehlo.cosine"] and module
