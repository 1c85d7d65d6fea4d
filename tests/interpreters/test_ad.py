"""Tangents and cotangents of programs."""
import numpy as np
import pytest
from three_results import PROGRAM, X, Y, run, three

import hlotrace as jax
from hlotrace.interpreters import ad


def test_tangents_of_programs():
    slopes = [np.cos(X) * Y, 1, 0]
    for ask, marks in ((False, [True, True, False]), (True, [True] * 3), ([False, False, True], [True] * 3)):
        moved, found = ad.jvp_jaxpr(PROGRAM, [True, False], ask)
        assert found == marks
        np.testing.assert_allclose(run(moved, X, Y, 1.0)[3:], slopes[:sum(marks)], 1e-6)
    outs, tangents = ad.jvp(three, [X, Y], [1.0, ad.Zero.from_primal_value(Y)], instantiate=False)
    np.testing.assert_allclose([*map(float, tangents[:2])], slopes[:2], 1e-6)
    assert type(tangents[2]) is ad.Zero and float(outs[1]) == X + 1
    linear = jax.make_jaxpr(lambda x, y: (x * 3.0, y))(X, Y)
    cts = ad.backward_pass(linear, True, (), [ad.UndefinedPrimal(jax.typeof(X)), Y],
                           [1.0, ad.Zero.from_primal_value(Y)])
    assert float(cts[0]) == 3 and type(cts[1]) is ad.Zero
    with pytest.raises(NotImplementedError, match="return_logs"):
        ad.backward_pass(linear, False, (), [], [], return_logs=True)
