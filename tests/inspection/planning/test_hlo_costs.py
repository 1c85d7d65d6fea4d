"""What a run of an optimized HLO module computes and moves, of texts that are counted by hand."""
import pytest

from hlotrace.inspection.hlo_text import Module
from hlotrace.inspection.planning.hlo_costs import by_instruction, costs

pytestmark = pytest.mark.quick

BRANCHES = Module('''HloModule m

%once (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %neg = f32[8]{0} negate(%a)
}

%square (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  %e = f32[8]{0} exponential(%b)
  ROOT %two = f32[8]{0} multiply(%e, %e)
}

ENTRY %main (i: s32[], x: f32[8]) -> f32[8] {
  %i = s32[] parameter(0)
  %x = f32[8]{0} parameter(1)
  ROOT %c = f32[8]{0} conditional(%i, %x, %x), branch_computations={%once, %square}
}
''')
LOOP = Module('''HloModule m

%body (p: (s32[], f32[4,4])) -> (s32[], f32[4,4]) {
  %p = (s32[], f32[4,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[4,4]{1,0} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %y = f32[4,4]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %t = (s32[], f32[4,4]{1,0}) tuple(%next, %y)
}

%condition (q: (s32[], f32[4,4])) -> pred[] {
  %q = (s32[], f32[4,4]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant(5)
  ROOT %less = pred[] compare(%j, %n), direction=LT
}

ENTRY %main (v: f32[4,4]) -> f32[4,4] {
  %v = f32[4,4]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[4,4]{1,0}) tuple(%zero, %v)
  %loop = (s32[], f32[4,4]{1,0}) while(%start), condition=%condition, body=%body
  ROOT %out = f32[4,4]{1,0} get-tuple-element(%loop), index=1
}
''')


def test_a_conditional_costs_what_its_dearest_branch_does():
    assert [c.elementwise for c in (costs(BRANCHES), by_instruction(BRANCHES)["c"])] == [16, 16]


def test_a_loop_costs_its_body_as_often_as_it_runs():
    found = costs(LOOP)
    assert found.flops == 5 * 2 * 4**3 and found.unknown_loops == 0
    assert found.bytes > 5 * by_instruction(LOOP)["y"].bytes > 0 and by_instruction(LOOP)[
        "y"].flops == 2 * 4**3
