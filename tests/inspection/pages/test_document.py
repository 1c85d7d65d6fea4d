"""Programs as rows: jaxprs, StableHLO and HLO have the same structure, costs, lines; what is alive when."""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.inspection.pages.document import Document, Row, Stage, ends_at, where
from hlotrace.inspection.pages.hlo_rows import hlo_rows
from hlotrace.inspection.pages.jaxpr_rows import jaxpr_rows
from hlotrace.inspection.pages.live_memory import usage
from hlotrace.inspection.pages.stablehlo_rows import short_type, stablehlo_rows

pytestmark = pytest.mark.quick

X, W = jax.ShapeDtypeStruct((8, 16), "float32"), jax.ShapeDtypeStruct((16, 4), "float32")


def repeated(x, w):
    def body(carry, _):
        with jax.named_scope("product"):
            return carry + (x @ w).sum(), None
    return lax.scan(body, 0.0, None, length=5)[0]


def branches(x, w):
    return lax.cond(x[0, 0] > 0, lambda: (x @ w).sum(), lambda: 0.0)


def called(x, w):
    product = jax.jit(jnp.matmul)
    return product(x, w) + product(x + 1, w)


PRODUCT = 2 * 8 * 16 * 4
PROGRAMS = {      # function: the FLOPs of its matrix products
    lambda x, w: x @ w: PRODUCT,
    lambda x, w: jnp.einsum("ij,jk->k", x, w): 2 * 16 * 4,
    repeated: 5 * PRODUCT,
    branches: PRODUCT,
}


def both(fun, *args):
    traced = jax.jit(fun).trace(*args)
    return jaxpr_rows(traced.jaxpr), stablehlo_rows(traced.lower().as_text(debug_info=True))


def products(rows, start=0, end=None):
    """FLOPs of matrix products alone, by the structure of the rows."""
    total, i, end = 0, start, len(rows) if end is None else end
    while i < end:
        stop = ends_at(rows, i)
        if rows[i].holds:
            inner = products(rows, i + 1, stop)
            total += inner * (int(rows[i].note.split()[0]) if rows[i].note.endswith("times") else 1)
        elif rows[i].op == "dot_general":
            total += rows[i].flops
        i = stop
    return total


@pytest.mark.parametrize(("fun", "flops"), PROGRAMS.items())
def test_jaxpr_and_stablehlo_count_the_same_products(fun, flops):
    for rows in both(fun, X, W):
        assert products(rows) == flops


def test_a_program_held_twice_is_written_once_and_counted_twice():
    rows, _ = both(called, X, W)
    holders = [row for row in rows if row.holds]
    assert [row.flops for row in holders] == [PRODUCT, PRODUCT]
    assert holders[1].note == f"the program of row {rows.index(holders[0]) + 1}"
    assert sum(row.op == "dot_general" for row in rows) == 1


def test_a_call_has_the_flops_of_its_function():
    rows = stablehlo_rows("""
      func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
        %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
        return %1 : tensor<8xf32>
      }
      func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
        %0 = stablehlo.sine %a : tensor<8xf32>
        return %0 : tensor<8xf32>
      }""")
    assert [row.flops for row in rows if row.op == "func.call" or row.op == "call"] == [8, 8]
    assert [row.flops for row in rows if row.op == "function"] == [16, 8]


def test_rows_know_line_scope_operands_and_arguments():
    for rows in both(repeated, X, W):
        arguments = [row for row in rows if row.op == "argument"]
        assert [row.argument for row in arguments] == ["x", "w"]
        assert [row.size for row in arguments] == [8 * 16 * 4, 16 * 4 * 4]
        product, = [row for row in rows if row.op == "dot_general"]
        file, line = product.source
        assert file == __file__ and line == repeated.__code__.co_firstlineno + 3
        assert product.path.endswith("/product/dot_general")
        assert [rows[i].argument for i in product.operands] == ["x", "w"]
        assert product.types == "f32[8,4]" and product.bytes == 4 * (8 * 16 + 16 * 4 + 8 * 4)
        loop, = [row for row in rows if row.holds == "loop"]
        assert loop.note == "5 times" and rows.index(loop) < rows.index(product) < ends_at(rows, rows.index(loop))


WHILE = """
func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {{
  %c = stablehlo.constant dense<{start}> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %arg0) : tensor<i32>, tensor<f32>
    cond {{
      %n = stablehlo.constant dense<7> : tensor<i32>
      %1 = stablehlo.compare {compare}, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<{step}> : tensor<i32>
      %2 = stablehlo.add %i, %one : tensor<i32>
      %3 = stablehlo.sine %x : tensor<f32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<f32>
    }}
  return %0#1 : tensor<f32>
}}
"""


@pytest.mark.parametrize(("start", "step", "compare", "note"), [
    (0, 1, "LT", "7 times"),
    (2, 1, "LT", "5 times"),
    (0, 2, "LT", "4 times"),
    (0, 1, "LE", "FLOPs of one round"),
])
def test_rounds_of_a_loop_are_counted_where_the_text_tells_them(start, step, compare, note):
    rows = stablehlo_rows(WHILE.format(start=start, step=step, compare=compare))
    loop, = [row for row in rows if row.holds == "loop"]
    assert loop.note == note
    rounds = int(note.split()[0]) if note.endswith("times") else 1
    assert loop.flops == rounds * 3         # compare, add, sine
    assert [row.op for row in rows if row.holds == "block"] == ["condition", "body"]


@pytest.mark.parametrize("text", ["func.func @main(", "module {\n  func.func public @main() { %0 = nothing }\n}"])
def test_a_text_that_does_not_parse_is_refused_with_its_place(text):
    with pytest.raises(ValueError, match="does not parse: line .*, column"):
        stablehlo_rows(text)


@pytest.mark.parametrize(("mlir", "short"), [
    ("tensor<8x16xf32>", "f32[8,16]"), ("tensor<i1>", "bool[]"), ("tensor<?x3xui8>", "u8[?,3]"),
    ("tensor<2xcomplex<f64>>", "c128[2]"), ("!stablehlo.token", "!stablehlo.token"),
])
def test_types_are_written_alike_in_all_stages(mlir, short):
    assert short_type(mlir) == short


HLO = """HloModule jit_f, is_scheduled=true

FileNames
1 "/home/train.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=1 end_column=1}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%fused (param_0: f32[8,16], param_1: f32[16,4]) -> f32[8,4] {
  %param_0 = f32[8,16]{1,0} parameter(0)
  %param_1 = f32[16,4]{1,0} parameter(1)
  %dot = f32[8,4]{1,0} dot(%param_0, %param_1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %tanh = f32[8,4]{1,0} tanh(%dot), metadata={op_name="jit(f)/layer/tanh" stack_frame_id=1}
}

ENTRY %main (x: f32[8,16], w: f32[16,4]) -> f32[8,4] {
  %x = f32[8,16]{1,0} parameter(0), metadata={op_name="x"}
  %w = f32[16,4]{1,0} parameter(1), metadata={op_name="params[\\'w\\']"}
  %fusion = f32[8,4]{1,0} fusion(%x, %w), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/layer/tanh" stack_frame_id=1}, backend_config={"a":{"b":"}"}}
  ROOT %copy = f32[8,4]{0,1} copy(%fusion)
}
"""


def test_fusions_hold_what_they_fuse():
    rows = hlo_rows(HLO)
    assert [(row.depth, row.op) for row in rows] == [
        (0, "argument"), (0, "argument"), (0, "fusion"), (1, "parameter"), (1, "parameter"), (1, "dot"),
        (1, "tanh"), (0, "copy")]
    fusion = rows[2]
    assert fusion.flops == PRODUCT + 32 and fusion.bytes == 4 * (128 + 64 + 32) and fusion.holds == "fusion"
    assert fusion.source == ("/home/train.py", 12) and fusion.path == "jit(f)/layer/tanh"
    assert fusion.text == "%fusion = f32[8,4] fusion(%x, %w), kind=kLoop, calls=%fused"
    assert [row.argument for row in rows[:2]] == ["x", "params['w']"]
    assert rows[3].operands == (0,) and rows[5].operands == (3, 4) and rows[7].operands == (2,)


@pytest.mark.parametrize("layout, note", [
    ("{1,0:T(8,128)S(1)}", "in VMEM"), ("{1,0:T(8,128)}", ""), ("{1,0:S(1)}", ""), ("{1,0}", "")])
def test_values_beside_the_cores_of_a_tpu_are_said(layout, note):
    rows = hlo_rows(HLO.replace("f32[8,4]{1,0} dot", f"f32[8,4]{layout} dot"))
    assert next(row.note for row in rows if row.op == "dot") == note


def test_the_memory_over_time_is_of_main_memory_alone():
    """In tiles of 8 by 128, 4096 bytes for each value; what is copied beside the cores takes none."""
    tiled, near = "f32[8,4]{1,0:T(8,128)}", "f32[8,4]{1,0:T(8,128)S(1)}"
    rows = hlo_rows(f"""HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[8,4]) -> f32[8,4] {{
  %x = {tiled} parameter(0)
  %a = {tiled} negate(%x)
  %start = ({near}, {tiled}, u32[]{{:S(2)}}) copy-start(%a)
  %done = {near} copy-done(%start)
  %b = {near} negate(%done)
  %gather-start = ({tiled}, f32[16,4]{{1,0:T(8,128)}}) all-gather-start(%a), dimensions={{0}}
  %gather-done = f32[16,4]{{1,0:T(8,128)}} all-gather-done(%gather-start)
  ROOT %c = {tiled} add(%b, %gather-done)
}}
""")
    assert [(rows[i].op, size // 4096) for i, size in usage(rows).alive] == [
        ("argument", 1), ("negate", 2), ("copy-start", 2), ("copy-done", 2), ("negate", 2), ("all-gather-start", 4),
        ("all-gather-done", 3), ("add", 4)]


def test_pieces_of_a_program_are_counted_as_often_as_they_run():
    rows = hlo_rows(f"// f: runs 1 times\n{HLO}\n\n// block: runs 3 times\n{HLO}")
    assert [(row.note, row.flops) for row in rows if row.op == "module"] == [
        ("1 times", PRODUCT + 32), ("3 times", 3 * (PRODUCT + 32))]


def row(op, size, *operands, depth=0, holds=""):
    return Row(depth, op, op, holds=holds, size=size, operands=operands)


@pytest.mark.parametrize(("rows", "alive"), [
    # what is used last is gone behind it; arguments stay
    ([row("argument", 10), row("a", 5, 0), row("b", 3, 1), row("c", 2, 2), row("return", 0, 3)],
     [10, 15, 18, 15, 12]),
    # a view is its operand's memory, and keeps it
    ([row("argument", 10), row("a", 5, 0), row("bitcast", 5, 1), row("b", 1, 0), row("return", 0, 2, 3)],
     [10, 15, 15, 16, 16]),
    # a loop's body is beside what it is given; an update writes into its operand
    ([row("argument", 10), row("while", 10, 0, holds="loop"), row("body", 0, depth=1, holds="block"),
      row("parameter", 10, 0, depth=2), row("t", 4, 3, depth=2), row("dynamic-update-slice", 10, 3, 4, depth=2),
      row("return", 0, 1)],
     [10, 14, 10]),
])
def test_what_is_alive(rows, alive):
    found = usage(rows)
    assert [size for _, size in found.alive] == alive
    assert max(alive) == dict(found.alive)[found.peak]


@pytest.mark.parametrize("scale", [1, 3])
def test_sizes_that_are_not_known_cost_nothing(scale):
    b, = jax.export.symbolic_shape("b")
    x = jax.ShapeDtypeStruct((b, 4), "float32")
    rows = jaxpr_rows(jax.make_jaxpr(lambda x: x * scale)(x))
    assert rows[0].types == "f32[b,4]" and [row.flops or 0 for row in rows] == [0, 0, 0]


def test_the_largest_values_at_the_peak_come_first():
    found = usage([row("argument", 10), row("a", 5, 0), row("b", 30, 1), row("c", 2, 2)])
    assert found.peak == 2 and found.largest == [(2, 30), (0, 10), (1, 5)]


def test_sources_are_the_lines_that_made_operations_and_those_around_them():
    rows, _ = both(repeated, X, W)
    lines = Document("f", [Stage("jaxpr", rows)]).sources()[__file__]
    first = repeated.__code__.co_firstlineno
    assert lines[first + 3].strip() == "return carry + (x @ w).sum(), None"
    assert 1 not in lines
    assert where((__file__, 3)).endswith("test_document.py:3") and where(None) == ""
