"""The values that are there when an optimized HLO module holds the most, of texts that are counted by hand."""
import pytest

from hlotrace.inspection.hlo_text import Module
from hlotrace.inspection.planning.hlo_memory import peak

pytestmark = pytest.mark.quick

LOOP = '''HloModule m

%body (p: (s32[], f32[64])) -> (s32[], f32[64]) {
  %p = (s32[], f32[64]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[64]{0} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %wide = f32[64,64]{1,0} broadcast(%x), dimensions={0}
  %y = f32[64]{0} reduce(%wide, %zero), dimensions={1}, to_apply=%sum
  ROOT %t = (s32[], f32[64]{0}) tuple(%next, %y)
}

ENTRY %main (v: f32[64]) -> f32[64] {
  %v = f32[64]{0} parameter(0)
  %c = s32[] constant(0)
  %start = (s32[], f32[64]{0}) tuple(%c, %v)
  %loop = (s32[], f32[64]{0}) while(%start), condition=%condition, body=%body
  ROOT %out = f32[64]{0} get-tuple-element(%loop), index=1
}
'''


def test_what_the_body_of_a_loop_holds_counts():
    found = peak(Module(LOOP))
    assert found.values[0].shape == "f32[64,64]" and found.values[0].bytes == 4 * 64 * 64
    assert 4 * 64 * 64 + 4 * 64 <= found.bytes < 4 * 64 * 64 + 4 * 4 * 64


def test_of_a_text_without_an_entry_there_is_nothing():
    assert peak(Module("")).bytes == 0
