"""What operations compute: by one rule, the same in every form of a program, and as XLA counts convolutions.
"""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.inspection import costs, hlo_text
from hlotrace.inspection.pages.jaxpr_rows import jaxpr_rows
from hlotrace.inspection.pages.stablehlo_rows import stablehlo_rows
from hlotrace.inspection.planning import hlo_costs
from hlotrace.inspection.planning.local_program import local_program

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("op", "results", "operands", "count"), [
    ("tanh", 15, [15], 15), ("stablehlo.tanh", 15, [15], 15), ("reduce_sum", 3, [15], 15),
    ("reduce-window", 3, [15, 1], 15),
    ("all-reduce", 4, [4], 4), ("cumsum", 4, [4], 4), ("scatter-add", 40, [40, 2, 6], 6),
    ("reduce_precision", 3, [3], 0),
    ("reshape", 15, [15], 0), ("get-tuple-element", 15, [16], 0), ("select_n", 4, [4, 4, 4], 0),
    ("sort", 4, [4], 0),
    ("all-reduce-start", 4, [4], 0), ("sdy.sharding_constraint", 4, [4], 0), ("iota", 4, [], 0)])
def test_operations_on_elements(op, results, operands, count):
    assert costs.elementwise(op, results, operands) == count


def test_products():
    assert costs.product(8 * 4, [16]) == 2 * 8 * 4 * 16
    assert costs.product(1, [7], "c64") == 4 * 14


IMAGE, KERNEL = (2, 9, 8, 6), (3, 3, 6, 4)
CONVOLUTIONS = [dict(padding="SAME"), dict(padding="VALID"), dict(window_strides=(2, 3), padding="SAME"),
                dict(padding=((2, 0), (0, 3)), rhs_dilation=(2, 1)),
                dict(padding=((3, 2), (1, 1)), lhs_dilation=(2, 3))]


@pytest.mark.parametrize("keywords", CONVOLUTIONS)
def test_every_form_of_a_program_has_the_flops_of_its_convolution(keywords):
    def fun(x, w):
        return lax.conv_general_dilated(x, w, **{"window_strides": (1, 1), **keywords},
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))
    traced = jax.jit(fun).trace(*(jax.ShapeDtypeStruct(shape, "float32") for shape in (IMAGE, KERNEL)))
    lowered = traced.lower()
    text = lowered.as_text(debug_info=True)
    ops, _, _ = local_program(text, None)
    module, = hlo_text.modules(lowered.as_text("hlo"))
    found = {
        "jaxpr": sum(row.flops for row in jaxpr_rows(traced.jaxpr) if row.op.startswith("conv")),
        "StableHLO": sum(row.flops for row in stablehlo_rows(text) if row.op == "convolution"),
        "quick plan": sum(op.flops for op in ops),
        "HLO": sum(cost.flops for cost in hlo_costs.by_instruction(module).values())}
    assert set(found.values()) == {lowered.cost_analysis()["flops"]}, found


def test_a_loop_of_products_and_elementwise_operations_is_counted_alike():
    def fun(x, w):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=5)[0]
    traced = jax.jit(fun).trace(jax.ShapeDtypeStruct((8, 16), "float32"),
                                jax.ShapeDtypeStruct((16, 16), "float32"))
    wanted = 5 * (2 * 8 * 16 * 16 + 8 * 16)
    loop, = [row for row in jaxpr_rows(traced.jaxpr) if row.holds == "loop"]
    assert loop.flops == wanted
    loop, = [row for row in stablehlo_rows(traced.lower().as_text(debug_info=True)) if row.holds == "loop"]
    assert wanted <= loop.flops <= wanted + 5 * 4       # and the counter
