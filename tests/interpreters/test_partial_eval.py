"""Programs in two, without inputs that are not needed, and with inputs in another order."""
import numpy as np
from three_results import PROGRAM, X, Y, run

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.interpreters import partial_eval as pe


def test_a_program_in_two():
    want = run(PROGRAM, X, Y)
    for ask, unknown in ((False, [True, False, True]), (True, [True] * 3)):
        known, rest, found, residuals = pe.partial_eval_jaxpr_nounits(PROGRAM, [False, True], ask)
        assert found == unknown
        outs = run(known, X)
        n = len(outs) - len(residuals)
        late = iter(run(rest, *outs[n:], Y))
        early = iter(outs[:n])
        np.testing.assert_allclose([next(late if u else early) for u in unknown], want, 1e-6)
    assert run(pe.move_binders_to_back(PROGRAM, [True, False]), Y, X) == want
    assert run(pe.prune_closed_jaxpr_outputs(PROGRAM, [False, True, True]), X, Y) == want[1:]
    table = jnp.arange(3.0)
    closed = jax.make_jaxpr(lambda x, y: (x * y, table.sum() + x))(X, Y)
    pruned, consts, inputs = pe.dce_jaxpr_consts(closed, [True, False])
    assert not any(consts) and inputs == [True, True] and run(pruned, X, Y) == [X * Y]
    assert pe.dce_jaxpr_consts(closed, [False, True])[2] == [True, False]
    assert pe.abstract_eval_fun(lambda x, n: [x * n], jax.typeof(jnp.ones(2)), n=3) == [
        jax.typeof(jnp.ones(2))]
