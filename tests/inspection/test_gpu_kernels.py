"""What is read of PTX, of ptxas's words and of its machine code."""
import struct

import pytest
from gpu_topologies import needs_wheels

from hlotrace.inspection import gpu_kernels
from hlotrace.runtime.devices import gpu_targets

WORDS = """ptxas info    : 44 bytes gmem
ptxas info    : Compiling entry function 'loop_add_fusion' for 'sm_90a'
ptxas info    : Function properties for loop_add_fusion
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers
ptxas info    : Compiling entry function 'sort_0' for 'sm_90a'
ptxas info    : Function properties for sort_0
    136 bytes stack frame, 132 bytes spill stores, 140 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 136 bytes cumulative stack size, 4096 bytes smem
"""
PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x)
{
  .reg .b64 %rd<3>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [x];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.f32 %f1, [%rd2];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd2], %f2;
  ret;
}
"""


@pytest.mark.quick
def test_what_ptxas_says():
    assert gpu_kernels.said(WORDS) == {"loop_add_fusion": (18, 0, 0, 0), "sort_0": (255, 272, 136, 4096)}


@pytest.mark.quick
def test_sizes_of_machine_code_are_those_of_sections():
    names = b"\0.text.a\0.shstrtab\0.text.b_1\0"
    headers = [(0, 0, 0), (1, 0, 640), (9, 64, len(names)), (19, 0, 128)]
    elf = bytearray(64) + names
    struct.pack_into("<Q", elf, 0x28, len(elf))
    struct.pack_into("<3H", elf, 0x3A, 64, len(headers), 2)
    for name, offset, size in headers:
        elf += struct.pack("<I20xQQ24x", name, offset, size)
    assert gpu_kernels.code_sizes(bytes(elf)) == {"a": 640, "b_1": 128}


@pytest.mark.quick
def test_a_dump_is_read_in_order(tmp_path):
    for name, text in (("m.10.ptx", ".entry b"), ("m.9.ptx", ".entry a"), ("m.11.ptx", ""), ("m.txt", ".entry c")):
        (tmp_path / name).write_text(text)
    assert gpu_kernels.dumped(tmp_path) == [".entry a", ".entry b"]
    assert gpu_kernels.options_for(tmp_path)["xla_dump_to"] == str(tmp_path)


@pytest.mark.quick
def test_the_table_adds_up():
    found = [gpu_kernels.Kernel("sort_0_1", 32, 8, 16, 4096, 36096, "train.py:8", "jit(f)/sort"),
             gpu_kernels.Kernel("loop_add", 18, 0, 0, 0, 640, None, None)]
    head, first, second, total = gpu_kernels.table(found).splitlines()
    assert head.split() == "kernel registers spilled stack shared code line operation".split()
    assert first.split() == ["sort_0_1", "32", "8", "16", "4,096", "36,096", "train.py:8", "jit(f)/sort"]
    assert second.split()[-2:] == ["-", "-"]
    assert total == "total: 2 kernels, 36,736 bytes of code; 1 spills"
    assert gpu_kernels.table([]) == "no kernels"


@needs_wheels
def test_kernels_of_ptx_by_hand():
    (found,) = gpu_kernels.kernels([PTX], gpu_targets.ptxas())
    assert found.name == "twice" and 0 < found.registers <= 16 and 0 < found.code <= 1024
    assert (found.spilled, found.stack, found.shared, found.where) == (0, 0, 0, None)
    with pytest.raises(RuntimeError, match="ptxas failed: (?s:.*)Not a name of any known instruction"):
        gpu_kernels.kernels([PTX.replace("add.f32", "nothing")], gpu_targets.ptxas())
