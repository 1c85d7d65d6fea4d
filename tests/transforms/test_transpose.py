"""Transposition of linear programs: from cotangents of results to those of operands, None where they are zero."""
import numpy as np
import pytest
from reference import draw, run

import hlotrace as jax
from hlotrace import lax
from hlotrace.core.symbolic_zeros import UndefinedPrimal
from hlotrace.primitives.arrays.elementwise_rules import accumulate
from hlotrace.transforms.transpose import backward_pass

pytestmark = pytest.mark.quick

X, Y, CT = [x.astype(np.float32) for x in draw((3,), (3,), (3,))]


def pulled(function, linear, cotangents):
    """What `backward_pass` gives for a function of X and Y; which are linear."""
    jaxpr, marks = jax.make_jaxpr(lambda x, y: function(x, y))(X, Y), []

    def backward(x, y, *cts):
        given = iter(cts)
        found = backward_pass(jaxpr, jaxpr.consts, [UndefinedPrimal(v.aval) if u else a for u, a, v in zip(linear, (x, y), jaxpr.invars)],
                              [next(given) if nz else None for nz in cotangents])
        marks[:] = [x is not None for x in found]
        return [x for x in found if x is not None]
    outs = iter(run(backward, X, Y, *[CT for nz in cotangents if nz]))
    return [next(outs) if nz else None for nz in marks]


@pytest.mark.parametrize("function, linear, cotangents, wanted", [
    (lambda x, y: [x * y], (True, False), [True], [CT * Y, None]), (lambda x, y: [x * y], (False, True), [True], [None, CT * X]),
    (lambda x, y: [x + y], (True, True), [True], [CT, CT]), (lambda x, y: [x - y, x], (True, True), [True, True], [2 * CT, -CT]),
    (lambda x, y: [x * 2, y], (True, True), [True, False], [2 * CT, None]), (lambda x, y: [x + x], (True, False), [True], [2 * CT, None]),
    (lambda x, y: [x * lax.sin(y) * lax.sin(y)], (True, False), [True], [CT * np.sin(Y) ** 2, None]),
    (lambda x, y: [jax.jit(lambda u: u * 3 + u)(x)], (True, False), [True], [4 * CT, None]),
    (lambda x, y: [lax.rev(x, (0,)), x], (True, True), [True, False], [CT[::-1], None]),
    (lambda x, y: [x * 2] * 2, (True, False), [True, True], [4 * CT, None]), (lambda x, y: [x], (True, True), [True], [CT, None]), (lambda x, y: [y], (True, False), [True], [None, None]),
    (lambda x, y: [x], (True, True), [False], [None, None])])
def test_cotangents(function, linear, cotangents, wanted):
    for got, want in zip(pulled(function, linear, cotangents), wanted, strict=True):
        assert (got is None) == (want is None)
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sums_of_cotangents():
    assert accumulate(None, None) is None and accumulate(CT, None) is CT and accumulate(None, CT) is CT
    np.testing.assert_array_equal(run(accumulate, CT, X)[0], CT + X)


def test_what_is_not_linear_is_named():
    with pytest.raises((NotImplementedError, TypeError, ValueError), match="sin"):
        pulled(lambda x, y: [lax.sin(x)], (True, False), [True])


def test_scopes_of_the_backward_pass():
    def f(x):
        with jax.named_scope("inner"):
            return jax.numpy.sum(jax.numpy.sin(x) * x)
    text = jax.jit(jax.grad(f)).lower(X).as_text(debug_info=True)
    assert "transpose(" in text and "inner" in text
