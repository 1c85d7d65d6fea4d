"""Texts of HLO modules, read: what an instruction says of itself, its shape, its source, and the loops around it."""
import pytest

from hlotrace.inspection.hlo_text import (
    Module, arrays, callees, closing, instruction_sources, modules, shape_bytes, tuple_parts)

pytestmark = pytest.mark.quick

TEXT = r'''HloModule jit_step, is_scheduled=true
FileNames
1 "/home/anna/train \303\251.py"
2 "-"
FileLocations
1 {file_name_id=1 line=12}
2 {file_name_id=2 line=3}
StackFrames
1 {file_location_id=1}
2 {file_location_id=2}

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %y = f32[8]{0} fusion(%x), kind=kLoop, calls=%doubled, metadata={op_name="jit(step)/while/body/mul" stack_frame_id=1}
  ROOT %t = (s32[], f32[8]{0}) tuple(%next, %y)
}

%doubled (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %twice = f32[8]{0} add(%a, %a)
}

%condition (q: (s32[], f32[8])) -> pred[] {
  %q = (s32[], f32[8]{0}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant(5)
  ROOT %less = pred[] compare(%j, %n), direction=LT
}

ENTRY %main (v: f32[8]) -> f32[8] {
  %v = f32[8]{0} parameter(0), metadata={op_name="v" source_file="a\\b/run.py" source_line=7}
  %zero = s32[] constant(0)
  %start = (s32[], f32[8]{0}) tuple(%zero, %v)
  %loop = (s32[], f32[8]{0}) while(%start), condition=%condition, body=%body, metadata={op_name="jit(step)/while"}
  ROOT %out = f32[8]{0} get-tuple-element(%loop), index=1
}
'''
MODULE = Module(TEXT)


def line(name):
    return next(line for line in MODULE.lines if line.name == name)


def test_a_module_is_its_computations_in_order():
    assert (MODULE.name, MODULE.entry, MODULE.calls) == ("jit_step", "main", 1)
    assert {name: [*lines] for name, lines in MODULE.computations.items()} == {
        "body": ["p", "i", "x", "one", "next", "y", "t"], "doubled": ["a", "twice"],
        "condition": ["q", "j", "n", "less"], "main": ["v", "zero", "start", "loop", "out"]}
    assert [MODULE.root(name).name for name in MODULE.computations] == ["t", "twice", "less", "out"]


@pytest.mark.parametrize("name, opcode, shape, operands", [
    ("p", "parameter", "(s32[], f32[8]{0})", ["0"]), ("next", "add", "s32[]", ["i", "one"]),
    ("n", "constant", "s32[]", ["5"]), ("t", "tuple", "(s32[], f32[8]{0})", ["next", "y"]),
    ("y", "fusion", "f32[8]{0}", ["x"])])
def test_an_instruction_says_what_it_does_of_what(name, opcode, shape, operands):
    found = line(name)
    assert (found.opcode, found.shape, found.operands) == (opcode, shape, operands)
    assert found.is_root == (name == "t")


def test_attributes():
    assert line("out").attribute("index") == "1" and line("out").attribute("dimensions") is None
    assert line("loop").attribute("body") == "%body"
    dot = Module("ENTRY %m (a: f32[2]) -> f32[2] {\n  %d = f32[2]{0} dot(%a, %b), lhs_contracting_dims={1,0}, slice={}\n}").lines[0]
    assert dot.attribute("lhs_contracting_dims") == "1,0" and dot.numbers("lhs_contracting_dims") == [1, 0]
    assert dot.attribute("slice") == "" and dot.numbers("none") == []


def test_who_calls_whom():
    assert [*callees(line("loop"))] == [("condition", "condition"), ("body", "body")]
    assert [*callees(line("y"))] == [("calls", "doubled")] and [*callees(line("p"))] == []
    branches = Module('ENTRY %m () -> f32[] {\n  %c = f32[] conditional(%i), branch_computations={%a, %b}, note="body=%no"\n}').lines[0]
    assert [*callees(branches)] == [("branch_computations", "a"), ("branch_computations", "b")]
    assert {name: [caller.name for caller in callers] for name, callers in MODULE.callers.items()} == {
        "condition": ["loop"], "body": ["loop"], "doubled": ["y"]}


def test_loops_around_a_computation():
    assert MODULE.trips(line("loop")) == 5
    assert [MODULE.loops(name) for name in ("main", "body", "doubled")] == [[], [5], [5]]
    said = Module(TEXT.replace("body=%body, ", 'body=%body, backend_config={"known_trip_count":{"n":"9"}}, '))
    assert said.loops("doubled") == [9]


def test_where_an_instruction_comes_from():
    """By the tables of stack frames, by a line of its own, or from what calls its computation."""
    name = "jit(step)/while/body/mul"
    assert MODULE.location(line("y")) == (("/home/anna/train é.py", 12), name)
    assert instruction_sources(TEXT)["y"] == instruction_sources(TEXT)["twice"] == ("train é.py:12", name)
    assert instruction_sources(TEXT)["v"] == ("run.py:7", "v") and instruction_sources(TEXT)["next"] == (None, None)
    unknown = Module(TEXT.replace("stack_frame_id=1", "stack_frame_id=2"))
    assert unknown.location(unknown.computations["body"]["y"]) == (None, name)
    assert MODULE.frames == {1: ("/home/anna/train é.py", 12)}      # `-` is no file


def test_several_modules_in_one_text():
    both = modules(f"// block 0 of step: runs 3 times\n{TEXT}// rest: runs 1 times\nHloModule other\nENTRY %e () -> f32[] {{\n}}\n")
    assert [(m.name, m.calls) for m in both] == [("jit_step", 3), ("other", 1)]
    assert modules("no module") == []


@pytest.mark.parametrize("shape, dtype, dims, size, padded, space", [
    ("f32[8,128]{1,0}", "f32", (8, 128), 4096, 4096, 0), ("bf16[3]{0}", "bf16", (3,), 6, 6, 0), ("pred[5]", "pred", (5,), 5, 5, 0),
    ("s4[3]{0}", "s4", (3,), 2, 2, 0), ("c64[2]{0}", "c64", (2,), 16, 16, 0), ("f32[]", "f32", (), 4, 4, 0),
    ("token[]", "token", (), 0, 0, 0), ("f8e4m3fn[7]{0}", "f8e4m3fn", (7,), 7, 7, 0),
    ("f32[9,100]{1,0:T(8,128)}", "f32", (9, 100), 3600, 16 * 128 * 4, 0),
    ("f32[100,9]{0,1:T(8,128)S(1)}", "f32", (100, 9), 3600, 16 * 128 * 4, 1),
    ("bf16[2,9,100]{2,1,0:T(8,128)(2,1)}", "bf16", (2, 9, 100), 3600, 2 * 16 * 128 * 2, 0),
    ("f32[3]{0:T(8,128)S(5)}", "f32", (3,), 12, 8 * 128 * 4, 5), ("f32[0,9]{1,0:T(8,128)}", "f32", (0, 9), 0, 0, 0)])
def test_what_an_array_takes_of_memory(shape, dtype, dims, size, padded, space):
    array, = arrays(shape)
    assert (array.dtype, array.dims, array.bytes, array.padded_bytes, array.space) == (dtype, dims, size, padded, space)


def test_shapes_of_tuples():
    shape = "(f32[2]{0}, /*index=1*/(s32[], f32[<=4]{0}))"
    assert [a.dims for a in arrays(shape)] == [(2,), (), (4,)] and shape_bytes(shape) == 8 + 4 + 16
    assert shape_bytes("f32[?,2]") == 0
    assert tuple_parts(shape) == ["f32[2]", "(s32[], f32[<=4])"] and tuple_parts("f32[2]{0}") == ["f32[2]"]


def test_where_a_parenthesis_closes():
    text = r'%a, (%b), "a ) \" )"), after=(1)'
    assert text[:closing(text)] == r'%a, (%b), "a ) \" )"' and closing("never (") == 7
