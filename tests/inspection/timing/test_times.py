"""Where the time of a run went, by operation, line and scope, from an optimized HLO and a made-up profile."""
from types import SimpleNamespace

import pytest
from made_profiles import profile

from hlotrace.inspection.timing import times, trace_events
from hlotrace.runtime.devices import chips

pytestmark = pytest.mark.quick

# As libtpu writes it: a loop of three rounds, an instruction of its own in it, `source_file="-"`.
TEXT = """HloModule jit_step, is_scheduled=true

%body (p: (s32[], bf16[512,512])) -> (s32[], bf16[512,512]) {
  %p = (s32[]{:T(128)}, bf16[512,512]{1,0:T(8,128)(2,1)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%p), index=0
  %x = bf16[512,512]{1,0:T(8,128)(2,1)} get-tuple-element(%p), index=1
  %one = s32[]{:T(128)} constant(1)
  %next = s32[]{:T(128)} add(%i, %one), metadata={source_file="-" source_line=7}
  %dot.5 = bf16[512,512]{1,0:T(8,128)(2,1)} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(step)/jvp(blocks)/dot_general" source_file="train.py" source_line=7}
  ROOT %t = (s32[]{:T(128)}, bf16[512,512]{1,0:T(8,128)(2,1)}) tuple(%next, %dot.5)
}

%condition (q: (s32[], bf16[512,512])) -> pred[] {
  %q = (s32[]{:T(128)}, bf16[512,512]{1,0:T(8,128)(2,1)}) parameter(0)
  %j = s32[]{:T(128)} get-tuple-element(%q), index=0
  %n = s32[]{:T(128)} constant(3)
  ROOT %less = pred[]{:T(512)} compare(%j, %n), direction=LT
}

ENTRY %main (v: bf16[512,512]) -> bf16[512,512] {
  %v = bf16[512,512]{1,0:T(8,128)(2,1)} parameter(0)
  %zero = s32[]{:T(128)} constant(0)
  %start = (s32[]{:T(128)}, bf16[512,512]{1,0:T(8,128)(2,1)}) tuple(%zero, %v)
  %loop = (s32[]{:T(128)}, bf16[512,512]{1,0:T(8,128)(2,1)}) while(%start), condition=%condition, \
body=%body, metadata={op_name="jit(step)/jvp(blocks)/while" source_file="train.py" source_line=9}
  ROOT %out = bf16[512,512]{1,0:T(8,128)(2,1)} get-tuple-element(%loop), index=1
}
"""


def test_a_profile_of_a_tpu():
    text = TEXT.replace("\\\n", "")
    rounds = [(f"%{name} = ...", 10_000 * i + start, length, {}) for i in range(3)
              for name, start, length in (("dot.5", 11_000, 5_000), ("next", 16_000, 1_000))]
    found = times.profile_of("step", text, profile(
        ("/host:CPU", {"python": [(trace_events.RUN, 0, 50_000, {})]}),
        ("/device:TPU:0", {"Steps": [("0", 10_000, 30_000, {})],
                           "XLA Modules": [("jit_step(81)", 10_000, 30_000, {})],
                           "XLA Ops": [("%loop = ...", 10_000, 30_000, {}), *rounds]})),
        [SimpleNamespace(device_kind="TPU v5 lite")], chips.CHIPS["v5e"])
    by_name = {op.name: op for op in found.operations}
    assert {name: (op.calls, op.source, round(op.seconds * 1e6)) for name, op in by_name.items()} == {
        "dot.5": (3, ("train.py", 7), 15), "loop": (1, ("train.py", 9), 12), "next": (3, ("train.py", 9), 3)}
    dot = by_name["dot.5"]
    assert (dot.scopes, dot.passed, dot.flops) == (("blocks",), "forward", 3 * 2 * 512**3)
    assert dot.bound == "memory" and dot.roofline == pytest.approx(3 * 3 * 2 * 512**2 / 819e9 / 15e-6)
    assert found.idle == pytest.approx(20e-6) and not found.unknown
