"""How often a `while` of an HLO module runs, found by its counter's arithmetic, against a loop of Python's.
"""
import operator

import pytest

from hlotrace.inspection.hlo_text import Module

pytestmark = pytest.mark.quick

COMPARE = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq,
           "NE": operator.ne}


def trips(start, step, limit, direction, *, opcode="add", carry="%next"):
    module = Module(f"""HloModule m
%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %p = (s32[], f32[8]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{{0}} get-tuple-element(%p), index=1
  %by = s32[] constant({step})
  %next = s32[] {opcode}(%i, %by)
  ROOT %t = (s32[], f32[8]{{0}}) tuple({carry}, %x)
}}
%condition (q: (s32[], f32[8])) -> pred[] {{
  %q = (s32[], f32[8]{{0}}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant({limit})
  ROOT %c = pred[] compare(%j, %n), direction={direction}
}}
ENTRY %main (v: f32[8], w: s32[]) -> (s32[], f32[8]) {{
  %v = f32[8]{{0}} parameter(0)
  %w = s32[] parameter(1)
  %from = s32[] {start}
  %start = (s32[], f32[8]{{0}}) tuple(%from, %v)
  ROOT %loop = (s32[], f32[8]{{0}}) while(%start), condition=%condition, body=%body
}}
""")
    return module.trips(module.root("main"))


@pytest.mark.parametrize("start, step, limit, direction", [
    (0, 1, 10, "LT"), (0, 1, 10, "LE"), (3, 4, 20, "LT"), (10, -1, 0, "GT"), (10, -3, 0, "GE"),
    (0, 1, 0, "LT"), (5, 1, 5, "LE"),
    (0, 1, 8, "NE"), (4, 2, 4, "EQ"), (-6, 5, 1000, "LT"), (0, 1, 1, "LT"), (0, 1, 4097, "LT")])
def test_counters_are_followed(start, step, limit, direction):
    count, i = 0, start
    while COMPARE[direction](i, limit):
        count, i = count + 1, i + step
    assert trips(f"constant({start})", step, limit, direction) == count


@pytest.mark.parametrize("call", [
    lambda: trips("copy(%w)", 1, 10, "LT"), lambda: trips("constant(1)", 2, 100, "LT", opcode="multiply"),
    lambda: trips("constant(0)", 0, 10, "LT"), lambda: trips("constant(0)", -1, 10, "LT"),
    lambda: trips("constant(0)", 1, 10, "LT", opcode="power")],
    ids=["from an argument", "a product", "it stays", "it never ends", "an unknown operation"])
def test_what_depends_on_values_or_has_no_end_is_not_known(call):
    assert call() is None


def test_subtraction_counts_down_and_what_is_carried_as_it_was_stays():
    assert trips("constant(9)", 2, 0, "GT", opcode="subtract") == 5
    assert trips("constant(0)", 1, 0, "GT", carry="%i") == 0
