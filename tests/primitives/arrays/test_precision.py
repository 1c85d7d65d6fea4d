"""How exactly products are computed: what users write, and the same with the operands exchanged."""
import pytest

import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.primitives.arrays.precision import (
    algorithm_of, canonical_precision, result_accuracy, storage_dtype, swapped)

pytestmark = pytest.mark.quick

LOW, HIGH = lax.Precision.DEFAULT, lax.Precision.HIGHEST
NARROW = lax.DotAlgorithm(jnp.float8_e4m3fn, jnp.bfloat16, jnp.float32, 1, 2, 3, True)


def test_exchanged_operands_have_each_others_precision():
    assert swapped((LOW, HIGH)) == (HIGH, LOW) and swapped(HIGH) is HIGH and swapped(None) is None
    assert swapped(NARROW) == lax.DotAlgorithm(jnp.bfloat16, jnp.float8_e4m3fn, jnp.float32, 2, 1, 3, True)
    assert swapped(swapped(NARROW)) == NARROW


def test_a_precision_by_name():
    names = ("highest", "float32", "high", "tensorfloat32", "default", "fastest", None)
    assert [lax.Precision(name).value for name in names] == [2, 2, 1, 1, 0, 0, 0]
    for wrong in ("DEFAULT", "BF16_BF16_F32", [1], 5):
        with pytest.raises(ValueError, match="is not a valid Precision"):
            lax.Precision(wrong)
    assert canonical_precision("DEFAULT") == canonical_precision("default") == (LOW, LOW)


def test_what_an_algorithm_is_in_a_program():
    assert algorithm_of(NARROW) == ("f8E4M3FN", "bf16", "f32", 1, 2, 3, True) and algorithm_of(HIGH) is None
    assert algorithm_of(lax.DotAlgorithmPreset.BF16_BF16_F32_X3)[:6] == ("bf16", "bf16", "f32", 1, 1, 3)
    assert [storage_dtype("bf16", jnp.dtype(x)).name for x in ("float32", "bfloat16", "float16")] == [
        "float32", "bfloat16", "float32"]


@pytest.mark.parametrize("accuracy, words", [
    (None, ""), (lax.AccuracyMode.DEFAULT, ""),
    (lax.AccuracyMode.HIGHEST, "mode = #stablehlo.result_accuracy_mode<HIGHEST>"),
    (lax.Tolerance(rtol=0.5, ulps=2), "rtol = 5.00000000000000000e-01, ulps = 2, mode = ")])
def test_an_accuracy_as_text(accuracy, words):
    found = result_accuracy(accuracy)
    assert words in found and bool(words) == bool(found)


@pytest.mark.parametrize("given, words", [(dict(atol=-1.0), "non-negative"), ({}, "At least one")])
def test_tolerances_that_are_none(given, words):
    with pytest.raises(ValueError, match=words):
        lax.Tolerance(**given)
