"""Linearization: the primal part is done, and the linear part is a program of the tangents that are not zero."""
import numpy as np
import pytest
from reference import draw, evaluate, run

import hlotrace as jax
from hlotrace import lax
from hlotrace.transforms.linearize import linearize, linearize_flat

pytestmark = pytest.mark.quick

X, Y = [x.astype(np.float32) for x in draw((3,), (3,))]
FUNCTIONS = {
    "a product": (lambda x, y: [x * y], lambda x, y: [(y, x)]), "a sine": (lambda x, y: [lax.sin(x) + y], lambda x, y: [(np.cos(x), 1)]),
    "two results": (lambda x, y: [x * x, y * 3], lambda x, y: [(2 * x, 0), (0, 3)]),
    "under jit": (lambda x, y: [jax.jit(lambda u, v: lax.exp(u) * v)(x, y)], lambda x, y: [(np.exp(x) * y, np.exp(x))]),
    "a constant": (lambda x, y: [x * np.float32(2) - y / 4], lambda x, y: [(2, -0.25)])}


@pytest.mark.parametrize("nonzero", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_linear_part_is_the_derivative(name, nonzero):
    """By `linearize_flat` within a program, and by `linearize` of a program."""
    function, slopes = FUNCTIONS[name]
    tangents = [t for t, nz in zip((Y, X), nonzero) if nz]
    want = [sum(np.asarray(by) * t for by, t, nz in zip(each, (Y, X), nonzero) if nz) for each in slopes(X, Y)]
    marks = []

    def here(x, y, *ts):
        outs, program, out_nonzero = linearize_flat(lambda *xs: function(*xs), [x, y], nonzero)
        assert len(program.invars) == len(ts) and len(program.outvars) == sum(out_nonzero)
        marks.append(out_nonzero)
        moved = iter(jax.core.eval_jaxpr(program, program.consts, *ts))
        return [*outs, *(next(moved) if nz else np.zeros(3, np.float32) for nz in out_nonzero)]
    found = run(here, X, Y, *tangents)
    for got, value in zip(found, run(function, X, Y)):
        np.testing.assert_allclose(got, value, rtol=1e-6)
    for got, slope in zip(found[len(want):], want, strict=True):
        np.testing.assert_allclose(got, np.broadcast_to(slope, 3), rtol=1e-5, atol=1e-6)
    program = linearize(jax.make_jaxpr(lambda x, y: function(x, y))(X, Y), nonzero)
    assert [*program.out_nonzero] == marks[0]
    results = evaluate(program.primal, X, Y)
    residuals = program.select([X, Y], results[len(want):])
    moved = iter(evaluate(program.linear, *residuals, *tangents))
    for slope, nz in zip(want, program.out_nonzero, strict=True):
        if nz:
            np.testing.assert_allclose(next(moved), np.broadcast_to(slope, 3), rtol=1e-5, atol=1e-6)


def test_residuals_that_are_operands_are_not_saved_twice():
    program = linearize(jax.make_jaxpr(lambda x, y: x * y)(X, Y), (True, True))
    assert len(program.primal.outvars) == 1     # x and y are at hand
    program = linearize(jax.make_jaxpr(lambda x, y: lax.sin(x) * y)(X, Y), (True, False))
    assert len(program.primal.outvars) > 1      # and the cosine is not


def test_the_linear_program_holds_nothing_but_the_linear_part():
    kinds = []

    def forward(x, y):
        outs, program, _ = linearize_flat(lambda x, y: [lax.exp(lax.sin(x)) * lax.cos(y)], [x, y], (True, False))
        kinds.extend(names(program))
        return outs

    def names(program):
        return {name for e in program.eqns for name in (names(e.params["jaxpr"]) if "jaxpr" in e.params else [e.primitive.name])}
    jax.make_jaxpr(forward)(X, Y)
    assert set(kinds) <= {"mul", "neg"} and kinds
