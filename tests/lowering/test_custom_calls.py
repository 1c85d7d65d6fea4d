"""Custom calls: their text, and kernels that programs call by name."""
import ml_dtypes
import numpy as np
import pytest

from hlotrace.core.avals import ShapedArray
from hlotrace.core.effects import ORDERED_TOKEN
from hlotrace.lowering.custom_calls import attribute, column_major, cut_in_front, sharding_rule, text

MATRIX, VECTOR = ShapedArray((2, 3), np.dtype(np.float32)), ShapedArray((3,), np.dtype(np.int32))


@pytest.mark.parametrize("value, written", [
    (True, "true"), (np.bool_(False), "false"), (7, "7 : i64"), (np.uint8(7), "7 : ui8"), (-1, "-1 : i64"),
    (2.5, "2.5 : f64"), (1e-5, "1.0e-05 : f64"), (np.float32("inf"), "0x7F800000 : f32"), (-0.0, "-0.0 : f64"),
    (ml_dtypes.bfloat16(2), "2.0 : bf16"), ('a"\n\\é', '"a\\22\\0A\\5C\\C3\\A9"'), (b"ab", '"ab"'),
    (bytes([31, 32, 126, 127, 128, 255]), '"\\1F ~\\7F\\80\\FF"'),
    (np.dtype("float32"), "f32"), ((1, ("b", True)), '[1 : i64, ["b", true]]'), ([], "[]"),
    ({"k": np.int32(3), "a b": 1}, '{k = 3 : i32, "a b" = 1 : i64}'),
    (np.array([1, 2], np.int32), "dense<[1, 2]> : tensor<2xi32>"), (np.array(3.0), "dense<3.0> : tensor<f64>"),
    (np.zeros((0, 2), np.int8), "dense<> : tensor<0x2xi8>")])
def test_attributes_have_the_type_of_the_value(value, written):
    assert attribute(value) == written


@pytest.mark.parametrize("value", [None, 1j, np.complex64(1), object(), {1}, np.array(["a"])])
def test_what_has_no_attribute_is_refused(value):
    with pytest.raises(TypeError, match="cannot be an attribute of a custom call"):
        attribute(value)


def test_an_integer_beyond_64_bits_is_refused():
    with pytest.raises(OverflowError):
        attribute(2**63)


@pytest.mark.quick
def test_text_of_a_typed_call():
    assert text("my.kernel", ["%0", "%1"], [MATRIX, VECTOR], [MATRIX, VECTOR], config={"uplo": np.uint8(76)},
                layouts=[(0, 1), None], aliases={0: 0, 1: 1}) == (
        "stablehlo.custom_call @my.kernel(%0, %1) {backend_config = \"\", mhlo.backend_config = "
        "{uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>], "
        "result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>], output_operand_aliases = "
        "[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>, "
        "#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>]} : "
        "(tensor<2x3xf32>, tensor<3xi32>) -> (tensor<2x3xf32>, tensor<3xi32>)")


def test_text_of_an_untyped_call():
    assert text("a b", ["%0"], [MATRIX], [], config="x", api_version=1, effect=True) == (
        'stablehlo.custom_call @"a b"(%0) {backend_config = "x", has_side_effect = true} : (tensor<2x3xf32>) -> ()')
    older = text("f", [], [], [MATRIX], api_version=2)
    assert '{api_version = 2 : i32, backend_config = ""}' in older


def test_tokens_and_scalars_have_empty_layouts():
    written = text("f", ["%t", "%x"], [ORDERED_TOKEN.aval, ShapedArray((), np.dtype(bool))], [ORDERED_TOKEN.aval], result_layouts=[None])
    assert "operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<> :" in written


@pytest.mark.parametrize("config, version, words", [("x", 4, "takes a dict"), ({}, 1, "takes a str")])
def test_a_configuration_of_another_api_version_is_refused(config, version, words):
    with pytest.raises(TypeError, match=f"kern: a kernel of API version {version} {words}"):
        text("kern", [], [], [], config=config, api_version=version)


@pytest.mark.quick
def test_factors_of_a_sharding_rule_have_shardys_names():
    """i to z, then z_1, z_2, ..."""
    written = sharding_rule([[(i,) for i in range(20)]], [[(0, 1), (19,)]], [2] * 20, need_replication=[19, 17], reduction=[])
    assert "<([i, j, k, " in written
    assert written.endswith("w=2, x=2, y=2, z=2, z_1=2, z_2=2} need_replication={z, z_2}, custom>")
    assert "->([ij, z_2])" in written and "reduction" not in written


@pytest.mark.quick
def test_a_kernel_that_is_cut_along_leading_axes():
    batch = ShapedArray((5, 2, 3), np.dtype(np.float32))
    written = cut_in_front(1, [batch], [ShapedArray((5, 2), np.dtype(np.int32)), batch])
    assert 'num_batch_dims = "1"' in written
    assert "<([i, j, k])->([i, l], [i, m, n]) {i=5, j=2, k=3, l=2, m=2, n=3} need_replication={j, k, l, m, n}, custom>" in written


@pytest.mark.quick
def test_layouts():
    assert column_major(2) == (0, 1) and column_major(4) == (2, 3, 1, 0)
    batch = ShapedArray((5, 2, 3), np.dtype(np.float32))
    written = text("f", ["%0"], [batch], [batch], layouts=[column_major(3)])
    assert "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[2, 1, 0]> :" in written
    one = text("f", ["%0"], [batch], [batch], aliases={0: 0})
    assert "output_tuple_indices = [], operand_index = 0" in one
