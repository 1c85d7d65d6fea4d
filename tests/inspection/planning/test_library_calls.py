"""FLOPs of calls of libraries: against counts by hand, XLA's own of the same convolution, and loops over
products."""
import re

import pytest

import hlotrace
from hlotrace import lax
from hlotrace.inspection import hlo_text
from hlotrace.inspection.planning import library_calls

PROGRAM = """HloModule m

%%body (p: f32[2]) -> f32[2] {
  %%p = f32[2]{0} parameter(0)
  ROOT %%t = f32[2]{0} tanh(%%p)
}

ENTRY %%main (a: f32[4,64,32]) -> f32[1] {
%s
  ROOT %%call = %s custom-call(%s), custom_call_target="%s"%s
}
"""


def module(target, operands, result, rest=""):
    names = [f"%a.{i}" for i in range(len(operands))]
    lines = "\n".join(f"  {name} = {shape}{{0}} parameter({i})"
                      for i, (name, shape) in enumerate(zip(names, operands)))
    return hlo_text.Module(PROGRAM % (lines, result, ", ".join(names), target, f", {rest}" * bool(rest)))


def flops(*call):
    parsed = module(*call)
    return library_calls.library_flops(parsed, parsed.lines[-1])


GEMM = (
    'backend_config={"gemm_backend_config":{"alpha_real":1,"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],'
        '"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"]}}}')


@pytest.mark.quick
@pytest.mark.parametrize("call, count", [
    (("__cublas$lt$matmul", ["f32[4,64,32]", "f32[4,32,16]"], "(f32[4,64,16], s8[4096])", GEMM),
     4 * 2 * 64 * 32 * 16),
    (("__cublas$gemm", ["c64[4,64,32]", "c64[4,32,16]"], "c64[4,64,16]", GEMM), 4 * 4 * 2 * 64 * 32 * 16),
    (("__cublas$triangularSolve", ["f32[64,64]", "f32[64,3]"], "(f32[64,3], s8[0])"), 64 * 64 * 3),
    (("cusolver_potrf_ffi", ["f32[5,30,30]"], "(f32[5,30,30], s32[5])"), 5 * 30 ** 3 / 3),
    (("cusolver_getrf_ffi", ["f64[30,30]"], "(f64[30,30], s32[30], s32[])"), 2 * 30 ** 3 / 3),
    (("cusolver_getrf_ffi", ["f64[60,30]"], "(f64[60,30], s32[30], s32[])"), 60 * 30 ** 2 - 30 ** 3 / 3),
    (("cusolver_geqrf_ffi", ["f32[2,90,30]"], "(f32[2,90,30], f32[2,30])"),
     2 * (2 * 90 * 30 ** 2 - 2 * 30 ** 3 / 3)),
    (("cusolver_geqrf_ffi", ["f32[30,90]"], "(f32[30,90], f32[30])"), 2 * 90 * 30 ** 2 - 2 * 30 ** 3 / 3),
    (("cusolver_orgqr_ffi", ["f32[90,30]", "f32[30]"], "f32[90,30]"), 2 * 90 * 30 ** 2 - 2 * 30 ** 3 / 3),
    (("cusolver_syevd_ffi", ["f32[2,10,10]"], "(f32[2,10,10], f32[2,10], s32[2])"), 2 * 9 * 10 ** 3),
    (("cusolver_gesvdj_ffi", ["f32[30,10]"], "(f32[30,10], f32[10])",
      "backend_config={compute_uv = true, full_matrices = "
      "true}"), 4 * 30 ** 2 * 10 + 22 * 10 ** 3),
    (("cusolver_gesvd_ffi", ["f32[10,30]"], "(f32[10,30], f32[10])", "backend_config={compute_uv = false}"),
     round(4 * 30 * 10 ** 2 - 4 * 10 ** 3 / 3)),
    (("cuhybrid_eig_real", ["f32[10,10]"], "f32[10]", "backend_config={left = false, right = false}"),
     10 * 10 ** 3),
    (("cuhybrid_eig_real", ["f32[10,10]"], "f32[10]", "backend_config={left = false, right = true}"),
     25 * 10 ** 3),
    (("cusparse_gtsv2_ffi", ["f32[64]", "f32[64]", "f32[64]", "f32[64,4]"], "f32[64,4]"),
     3 * 64 + 5 * 64 * 4),
    (("__gpu$TopK", ["f32[16,1024]"], "(f32[16,5], s32[16,5])"), 0),
    (("my_kernel", ["f32[16]"], "f32[16]"), None)], ids=lambda value: value[0] if type(value) is tuple
    else "")
def test_flops_of_a_call(call, count):
    assert flops(*call) == (count if count is None else pytest.approx(count, abs=1))


CONVOLUTIONS = [      # image, kernel, keywords
    ((2, 9, 8, 6), (3, 3, 6, 4), dict(window_strides=(1, 1), padding="SAME")),
    ((2, 9, 8, 6), (3, 2, 6, 4), dict(window_strides=(2, 3), padding="SAME")),
    ((2, 9, 8, 6), (3, 3, 3, 4), dict(window_strides=(1, 1), padding="VALID", feature_group_count=2)),
    ((2, 9, 8, 6), (3, 3, 6, 4), dict(window_strides=(2, 1), padding=((2, 0), (0, 3)), rhs_dilation=(2, 1))),
    ((2, 9, 8, 6), (3, 3, 6, 4), dict(window_strides=(1, 2), padding=((3, 2), (1, 1)), lhs_dilation=(2, 3)))]


@pytest.mark.parametrize("image, kernel, keywords", CONVOLUTIONS)
def test_convolutions_count_as_xla_counts_them(image, kernel, keywords):
    lowered = hlotrace.jit(lambda x, w: lax.conv_general_dilated(
        x, w, **keywords, dimension_numbers=("NHWC", "HWIO", "NHWC"))).lower(
        *(hlotrace.ShapeDtypeStruct(shape, "float32") for shape in (image, kernel)))
    parsed = hlo_text.Module(lowered.as_text("hlo"))
    line = next(line for line in parsed.lines if line.opcode == "convolution")
    shapes = [hlo_text.arrays(parsed.computations[line.computation][name].shape)[0] for name in line.operands]
    counted = library_calls.convolution_flops(line, *shapes, hlo_text.arrays(line.shape)[0])
    assert counted == lowered.cost_analysis()["flops"] > 0


@pytest.mark.quick
@pytest.mark.parametrize("target, operands, result", [
    ("__cudnn$convForward", ["f32[8,57,57,64]", "f32[128,3,3,64]"], "(f32[8,28,28,128], u8[0])"),
    ("__cudnn$convBackwardInput", ["f32[8,28,28,128]", "f32[128,3,3,64]"], "(f32[8,57,57,64], u8[0])"),
    ("__cudnn$convBackwardFilter", ["f32[8,57,57,64]", "f32[8,28,28,128]"], "(f32[128,3,3,64], u8[0])"),
    ("__cudnn$convBiasActivationForward", ["f32[8,57,57,64]", "f32[128,3,3,64]", "f32[128]"],
     "(f32[8,28,28,128], u8[0])")])
def test_derivatives_of_a_convolution_count_as_it_does(target, operands, result):
    rest = "window={size=3x3 stride=2x2}, dim_labels=b01f_o01i->b01f"
    assert flops(target, operands, result, rest) == 2 * 8 * 28 * 28 * 128 * 9 * 64


@pytest.mark.quick
def test_the_minus_ones_of_xla_are_taken_back():
    text = re.sub("%%", "%", module("__cublas$triangularSolve", ["f32[64,64]", "f32[64,3]"],
                                    "(f32[64,3], s8[0])").text)
    found = {"flops": 99.0, "bytes accessed": 199.0, "bytes accessedout{}": 49.0, "optimal_seconds": -1.0,
             "transcendentals": 2.0}
    assert library_calls.cost_of_gpu(found, text) == {
        "flops": 100 + 64 * 64 * 3, "bytes accessed": 200 + 4 * (64 * 64 + 2 * 64 * 3),
        "bytes accessedout{}": 50 + 4 * 64 * 3, "transcendentals": 2}
