"""Programs over an axis."""
import types

import pytest
from three_results import PROGRAM, Y

import hlotrace.numpy as jnp
from hlotrace.extend.core import eval_jaxpr
from hlotrace.interpreters import batching


def test_a_program_over_an_axis():
    axis = types.SimpleNamespace(size=3, name=None)
    mapped, marks = batching.batch_jaxpr_axes(PROGRAM, axis, [0, None], [0, 0, None])
    assert marks == [True, True, False] and [a.shape for a in mapped.out_avals] == [(3,), (3,), ()]
    assert eval_jaxpr(mapped, (), jnp.arange(3.0), Y)[1].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="not_mapped"):
        batching.batch_jaxpr_axes(PROGRAM, axis, [0, None], [0, None, None])
