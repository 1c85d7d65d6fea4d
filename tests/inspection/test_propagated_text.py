"""What Shardy's propagation says of each value of a program, written beside it."""

import re

import pytest
from shardy_programs import MANUAL, MLP

from hlotrace.inspection.propagated_text import propagated
from hlotrace.runtime.mlir import shardy
from hlotrace.runtime.mlir.bindings import context, parse_module
from hlotrace.runtime.mlir.shardy import SubAxis, main_specs
from hlotrace.sharding import AbstractMesh

MESH = AbstractMesh((4, 2), ("data", "model"))
CUBE = AbstractMesh((2, 1, 2, 2), ("x", "one", "y", "z"))

MESH_LINE = 'sdy.mesh @mesh = <["data"=4, "model"=2]>'


def identity(attribute, mesh=MESH_LINE, type_="tensor<8x8xf32>"):
    """A program with one operation, whose argument has a sharding."""
    return f"""module {{ {mesh}
      func.func @main(%x: {type_} {{sdy.sharding = #sdy.sharding{attribute}}}) -> {type_} {{
        %y = stablehlo.negate %x : {type_}
        return %y : {type_}
      }}
    }}"""


# Shardy.


@pytest.mark.quick
def test_each_value_of_a_propagated_program_says_its_spec():
    lines = propagated(MLP).splitlines()
    assert [line.strip() for line in lines if line.lstrip().startswith("//")] == [
        "// %arg0 x: tensor<16x8xf32>  P('data', None)",
        "// %arg1: tensor<8x32xf32>  P(None, 'model')",
        "// %arg2: tensor<32x8xf32>  P('model', None)",
        "// result 0: tensor<16x8xf32>  P('data', None)",
        "// result 1: tensor<f32>  P()",
    ]
    assert [line.split("  // ")[1:] for line in lines if line.lstrip().startswith("%")] == [
        ["P('data', 'model')"],
        ["P('data', 'model')"],
        ["P('data', None)"],
        ["P()"],
        ["P()"],
    ]
    assert "sdy.sharding" not in propagated(MLP)


@pytest.mark.quick
@pytest.mark.parametrize("line", ["chlo.erf %x : tensor<8x8xf32> -> tensor<8x8xf32>",
                                  "chlo.polygamma %x, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>"])
def test_an_elementwise_operation_that_xla_expands_keeps_the_sharding(line):
    text = identity('<@mesh, [{"data"}, {"model"}]>').replace("stablehlo.negate %x : tensor<8x8xf32>", line)
    assert main_specs(text)[1] == [(("data",), ("model",))]
    assert "sharding_rule" not in propagated(text)


@pytest.mark.quick
def test_manual_values_are_marked_and_every_result_of_an_operation_has_a_spec():
    text = propagated(MANUAL)
    specs = {
        line.split(" = ")[1].split("(")[0].split()[0]: line.split("  // ")[1]
        for line in text.splitlines()
        if line.lstrip().startswith("%")
    }
    assert specs["sdy.manual_computation"] == "P('data', None), P('data', 'model')"
    manual = "manual 'data' 'model'"
    assert specs["stablehlo.while"] == f"P() {manual}, P(None, None) {manual}"
    assert specs["stablehlo.sine"] == f"P(None, None) {manual}"
    assert specs['"stablehlo.all_reduce"'] == f"P(None, None) {manual}"
    assert specs["stablehlo.add"] == f"P() {manual}"


@pytest.mark.quick
@pytest.mark.parametrize("text", [MLP, MANUAL])
def test_a_propagated_program_is_still_mlir(text):
    again = str(parse_module(propagated(text)))
    assert again.count("stablehlo.") == propagated(text).count("stablehlo.")


@pytest.mark.quick
@pytest.mark.parametrize(("program", "spec", "written"),
                         [(['<@mesh, [{"data"}, {}]>'], (("data",), ()), "P('data', None)"),
                          (['<@mesh, [{}, {"model", "data"}]>'],
                           ((), ("model", "data")),
                           "P(None, ('model', 'data'))"),
                          (["<@mesh, [{}, {}]>"], ((), ()), "P(None, None)"),
                          (['<@mesh, [{"data":(1)2}, {"model", "data":(2)2}]>'],
                           ((SubAxis("data", 1, 2),), ("model", SubAxis("data", 2, 2))),
                           "P('data':(1)2, ('model', 'data':(2)2))"),
                          (['<@mesh, [{"d\\22 é\\0A\\C3\\A9"}, {}]>',
                            'sdy.mesh @mesh = <["d\\22 é\\0Aé"=4]>'],
                           (('d" é\né',), ()),
                           "P('d\" é\\né', None)"),
                          (['<@b, [{"y"}, {}]>', 'sdy.mesh @a = <["x"=8]> sdy.mesh @b = <["y"=4, "z"=2]>'],
                           (("y",), ()),
                           "P('y', None) of @b"),
                          (["<@mesh, []>", MESH_LINE, "tensor<f32>"], (), "P()")])
def test_forms_of_shardings(program, spec, written):
    text = identity(*program)
    assert main_specs(text)[0] == [spec]
    [line] = re.findall(r"// %arg0: tensor<\S+>  (.*)", propagated(text))
    assert line == written


@pytest.mark.quick
@pytest.mark.parametrize("read", [main_specs, propagated])
def test_a_module_lives_as_long_as_its_operations_are_read(read, monkeypatch):
    """jaxlib's operations do not keep their module alive: without it they are memory that is gone."""
    alive = []

    def told(op):
        alive.append(context()._get_live_module_count())
        return signature(op)
    signature = shardy.signature
    monkeypatch.setattr(shardy, "signature", told)
    read(identity('<@mesh, [{"data"}, {}]>', MESH_LINE))
    assert alive and min(alive) > 0


@pytest.mark.quick
def test_a_value_on_one_device():
    text = """module { sdy.mesh @one = <[], device_ids=[3]>
      func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
        %y = stablehlo.custom_call @f(%x) {has_side_effect = true,
          sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
        return %y : tensor<8xf32>
      }
    }"""
    [line] = [line for line in propagated(text).splitlines() if "custom_call" in line]
    assert line.endswith("  // on device 3")


@pytest.mark.quick
def test_specs_of_results_are_those_that_propagation_chose():
    arguments, results, *_ = main_specs(MLP)
    assert arguments == [(("data",), ()), ((), ("model",)), (("model",), ())]
    assert results == [(("data",), ()), ()]


def main(body, type_="tensor<8xf32>", argument="tensor<8xf32>", visibility=""):
    """A program with one function, whose argument is %x."""
    return f"module {{ func.func {visibility} @main(%x: {argument}) -> {type_} {{ {body} }} }}"


@pytest.mark.quick
def test_a_program_without_a_mesh_is_whole_everywhere():
    text = main("return %x : tensor<8xf32>")
    assert main_specs(text) == ([((),)], [((),)], {}, 0, {})
    assert "// %arg0: tensor<8xf32>  P(None)\n" in propagated(text)


@pytest.mark.quick
def test_a_token_has_no_dimensions():
    text = main("return %x : !stablehlo.token", "!stablehlo.token", "!stablehlo.token")
    assert main_specs(text) == ([()], [()], {}, 0, {})


@pytest.mark.quick
def test_long_constants_are_left_out():
    numbers = ", ".join(f"{i}.0" for i in range(100))
    constant = f"%c = stablehlo.constant dense<[{numbers}]> : tensor<100xf32>"
    text = propagated(main(f"{constant} return %c : tensor<100xf32>", "tensor<100xf32>"))
    assert "__elided__> : tensor<100xf32>  // P(None)" in text and "99.0" not in text


CALL = "%y = call @{} (%x) : (tensor<8xf32>) -> tensor<8xf32> return %y : tensor<8xf32>"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "module {\n foo }",
            "the text does not parse: line 2, column 2: custom op 'foo' is unknown",
        ),
        ("hello", "the text does not parse: line 1, column 1"),
        (identity('<@mesh, [{"nothing"}, {}]>'), "the text does not parse: line 2"),
        (identity('<@mesh, [{"data"}]>'), "the text does not parse: line 2"),
        (main(CALL.format("g")), "the text does not parse: line 1"),
        (
            main("return %x : tensor<?xf32>", "tensor<?xf32>", "tensor<?xf32>").replace(
                "return %x", "%y = stablehlo.sine %x : tensor<?xf32> return %y"
            ),
            "propagation fails: line 1",
        ),
        # what Shardy would end the process for:
        ("module {}", "the program has no public function @main"),
        (
            main("return %x : tensor<8xf32>", visibility="private"),
            "the program has no public function @main",
        ),
        (main(CALL.format("main")), "function @main calls itself"),
        (
            main(CALL.format("g"))[:-2] + "func.func private @g(tensor<8xf32>) -> tensor<8xf32> }",
            "function @g has no body",
        ),
    ],
)
@pytest.mark.parametrize("function", [propagated, main_specs])
def test_a_text_that_is_no_program(function, text, words):
    with pytest.raises(ValueError, match=f"Shardy: {words}"):
        function(text)


# Collectives: lines as compilers write them.
