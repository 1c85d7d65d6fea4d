"""Passes over what XLA compiles."""
import os

import pytest

import hlotrace as jax
from hlotrace.extend import xla


def test_a_pass_meets_each_program_until_it_is_cleared():
    met, number = [], int.from_bytes(os.urandom(3), "big")      # a program that no earlier run has kept
    for stage in xla.PipelineStage:
        xla.register_hlo_module_transformation(lambda m, stage=stage: met.append((stage, m)), name="test",
                                               stage=stage,
                                               platforms=["cpu"])
    try:
        assert int(jax.jit(lambda x: x * number)(2)) == 2 * number
    finally:
        cleared = [xla.clear_hlo_module_transformation("test", stage) for stage in xla.PipelineStage]
    assert [stage for stage, _ in met] == list(xla.PipelineStage) and all(
        type(m) is bytes and m for _, m in met)
    assert cleared == [True, True] and not xla.clear_hlo_module_transformation("test")
    with pytest.raises(NotImplementedError, match="compiler passes for tpu"):
        xla.register_hlo_module_transformation(print, name="test", platforms="tpu")
    with pytest.raises(TypeError, match="must be a PipelineStage, got 0"):
        xla.clear_hlo_module_transformation("test", 0)
