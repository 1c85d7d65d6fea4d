"""Kernels as rows: the lines of each under it, and the line of the user's that it is for."""
import pytest

from hlotrace.inspection.gpu_kernels import Kernel
from hlotrace.inspection.pages.ptx_rows import ptx_rows

PTX = """
.version 8.8
.target sm_90a
.visible .entry loop_add_fusion(.param .u64 x)
{
  .reg .f32 %f<3>;

  @%p1 bra $L__BB0_2;
  add.f32 %f2, %f1, %f1;
  ret;
}
.entry sort_0()
{
  ret;
}
"""
HLO = """HloModule m

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %loop_add.fusion = f32[4]{0} add(%x, %x), metadata={op_name="jit(f)/add" source_file="/home/train.py" source_line=8}
}
"""


@pytest.mark.quick
def test_a_kernel_holds_its_lines_and_names_the_users():
    rows = ptx_rows([PTX], [Kernel("loop_add_fusion", 18, 0, 0, 0, 640, None, None)], HLO)
    assert [(r.depth, r.op) for r in rows] == [
        (0, "kernel"), (1, ".visible"), (1, ""), (1, ".reg"), (1, "bra"), (1, "add.f32"), (1, "ret"), (1, ""),
        (0, "kernel"), (1, ".entry"), (1, ""), (1, "ret"), (1, "")]
    first, second = (r for r in rows if r.op == "kernel")
    assert (first.source, first.path) == (("/home/train.py", 8), "jit(f)/add")
    assert first.note == "18 registers, 0 bytes spilled, 0 of shared memory, 640 of code"
    assert (second.source, second.note) == (None, "")
