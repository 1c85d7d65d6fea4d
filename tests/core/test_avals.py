"""Types of arrays: one object for each, what they say in programs, and the type of any value."""
import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import avals, dtypes
from hlotrace.core.avals import ShapedArray, aval_of, aval_or_none, is_arraylike, physical

pytestmark = pytest.mark.quick
f32 = np.float32
WEAK = ShapedArray((), "float32", True)
MANUAL = ShapedArray((2, 3), "float32", False, {"x", "y"})


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], np.array([2, 3]), (np.int64(2), np.int32(3))])
@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), jnp.float32])
def test_equal_types_are_one_object(shape, dtype):
    assert ShapedArray(shape, dtype) is ShapedArray((2, 3), "float32") is ShapedArray(
        (2, 3), "float32", False, frozenset())


@pytest.mark.parametrize("change", [
    {"shape": (3, 2)}, {"shape": (6,)}, {"dtype": np.dtype("int32")}, {"weak_type": True},
    {"vma": frozenset("x")},
])
def test_a_type_is_all_of_its_fields(change):
    aval = ShapedArray((2, 3), "float32")
    assert ShapedArray(2, "float32") == ShapedArray((2,), "float32")
    other = aval.update(**change)
    assert other is not aval and other == aval.update(**change)
    for name in ("shape", "dtype", "weak_type", "vma"):
        assert getattr(other, name) == change.get(name, getattr(aval, name))
    back = {name: getattr(aval, name) for name in change}
    assert other.update(**back) is aval


def test_what_follows_from_a_type():
    aval = ShapedArray((2, 3), "bfloat16")
    assert (aval.ndim, aval.size, len(aval)) == (2, 6, 2)
    assert (ShapedArray((), "int8").size, ShapedArray((3, 0), "int8").size) == (1, 0)
    with pytest.raises(TypeError, match="unsized"):
        len(ShapedArray((), "int8"))


@pytest.mark.parametrize("aval", [ShapedArray((2,), "int8"), WEAK, MANUAL, ShapedArray(
    (2,), "int8", memory_space=avals.Space.Host)], ids=str)
def test_a_copied_or_pickled_type_is_the_type(aval):
    assert pickle.loads(pickle.dumps(aval)) is aval
    assert copy.copy(aval) is aval and copy.deepcopy(aval) is aval


@pytest.mark.parametrize("aval, texts", [
    (ShapedArray((2, 3), "float32"), ("ShapedArray(float32[2,3])", "float32[2,3]", "f32[2,3]")),
    (WEAK, ("ShapedArray(float32[], weak_type=True)", "~float32[]", "f32[]")),
    (MANUAL, ("ShapedArray(float32[2,3]{V:(x,y)})", "float32[2,3]{V:(x,y)}", "f32[2,3]{V:(x,y)}")),
    (ShapedArray((4,), ml_dtypes.bfloat16), ("ShapedArray(bfloat16[4])", "bfloat16[4]", "bf16[4]")),
])
def test_how_a_type_is_written(aval, texts):
    assert (repr(aval), str(aval), aval.short()) == texts


@pytest.mark.parametrize("shape, dtype, text", [
    ((), "float32", "tensor<f32>"), ((2, 0, 3), "bool", "tensor<2x0x3xi1>"), ((1,), "uint8", "tensor<1xui8>"),
    ((2,), "complex64", "tensor<2xcomplex<f32>>"), ((5,), "int4", "tensor<5xi4>"),
    ((3,), dtypes.float0, "tensor<3xi1>"),
    ((4,), "float8_e4m3fn", "tensor<4xf8E4M3FN>"),
])
def test_the_mlir_type(shape, dtype, text):
    assert ShapedArray(shape, dtype).mlir == text


def test_the_types_of_keys_and_of_what_they_are_made_of():
    key = ShapedArray((3,), jax.random.key_impl and jax.eval_shape(lambda: jax.random.key(0)).dtype)
    assert key.mlir == "tensor<3x2xui32>" and physical(key) is ShapedArray((3, 2), "uint32")
    assert physical(ShapedArray((3,), dtypes.float0)) is ShapedArray((3,), "bool")
    assert physical(MANUAL) is MANUAL


def test_symbolic_sizes_in_a_type():
    b, = jax.export.symbolic_shape("b")
    aval = ShapedArray((b, 3), "float32")
    assert aval is ShapedArray((b, 3), "float32") and aval is not ShapedArray((b + 1, 3), "float32")
    assert aval.mlir == "tensor<{b}x3xf32>" and aval.size == 3 * b and aval.short() == "f32[b,3]"


def test_the_type_of_tangents():
    assert MANUAL.tangent() is MANUAL and WEAK.tangent() is WEAK
    assert ShapedArray((2,), "int32", True, {"x"}).tangent() is ShapedArray((2,), dtypes.float0, True, {"x"})
    assert ShapedArray((2,), "complex64").tangent() is ShapedArray((2,), "complex64")


def test_a_strong_type():
    assert WEAK.strip_weak_type() is ShapedArray((), "float32") is WEAK.normalize()
    assert MANUAL.strip_weak_type() is MANUAL and MANUAL.manual_axis_type.varying == {"x", "y"}
    assert MANUAL.lo_ty() == [MANUAL] and MANUAL.lower_val(5) == [5] and MANUAL.raise_val(5) == 5


@pytest.mark.parametrize("call", [
    jax.jit(lambda x: x), jnp.sin, jax.device_put, jax.typeof, jax.grad(jnp.sum), jax.vmap(jnp.sin),
    jnp.ones(2).__add__, lambda x: jax.lax.add(x, x), lambda x: jax.eval_shape(jnp.sin, x),
    lambda x: jax.jvp(jnp.sin, (x,), (x,)),
    jnp.asarray, jnp.ravel, lambda x: jnp.ones(3)[x.astype(int)]])
def test_an_array_of_numpy_with_a_mask_is_refused_since_the_mask_would_be_lost(call):
    with pytest.raises(ValueError, match=r"numpy masked arrays are not supported.*arr\.filled"):
        call(np.ma.masked_array([1.0, 2.0], mask=[True, False]))


@pytest.mark.parametrize("shape", [(2**59,), (2**30, 2**30), (2**40, 0, 2**40)])
def test_more_elements_than_can_be_counted(shape):
    with pytest.raises(ValueError, match="elements"):
        ShapedArray(shape, "int8")
    assert ShapedArray((2**59 - 1,), "int8").size == 2**59 - 1


# --- the type of a value ------------------------------------------------------------------------------------

@pytest.mark.parametrize("value, dtype, weak", [
    (True, "bool", False), (1, "int32", True), (1.0, "float32", True), (1j, "complex64", True),
    (np.float32(1), "float32", False), (np.float64(1), "float32", False), (np.bool_(True), "bool", False),
    (np.int64(1), "int32", False), (ml_dtypes.bfloat16(1), "bfloat16", False),
    (np.ones((2, 3)), "float32", False), (np.ones(2, np.uint64), "uint32", False),
    (np.ones(2, np.complex128), "complex64", False),
    (np.zeros(3, dtypes.float0), dtypes.float0, False),
], ids=lambda v: f"{type(v).__name__}")
def test_of_a_value(value, dtype, weak):
    assert aval_of(value) is ShapedArray(np.shape(value), dtype, weak) is aval_or_none(value)


@pytest.mark.parametrize("value, dtype",
                         [(1, "int64"), (1.0, "float64"), (1j, "complex128"), (np.ones(2), "float64"),
                                          (np.int64(3), "int64"), (np.uint64(3), "uint64"),
                                          (np.float32(1), "float32")])
def test_of_a_value_with_64_bits(value, dtype):
    narrow = aval_of(value)
    with jax.enable_x64(True):
        assert aval_of(value).dtype == dtype
    assert aval_of(value) is narrow


def test_of_a_value_of_a_derived_class():
    class Number(float):
        pass
    assert aval_of(Number(2)) is WEAK and is_arraylike(Number(2)) and avals.avals_by_type[
        Number] is avals.avals_by_type[float]
    del avals.avals_by_type[Number]


def test_a_class_of_the_users_becomes_an_array():
    class Scalar:
        pass
    assert aval_or_none(Scalar()) is None and not is_arraylike(Scalar())
    avals.register_aval(Scalar, lambda value: WEAK)
    try:
        assert aval_of(Scalar()) is WEAK and is_arraylike(Scalar())
    finally:
        del avals.avals_by_type[Scalar]


@pytest.mark.parametrize("value, error, words", [
    (2**31, OverflowError, "int32, which holds -2147483648 to 2147483647; uint32 does"),
    (-2**31 - 1, OverflowError, "int64 does: enable"), (10**30, OverflowError, "no integer dtype does"),
    ("text", TypeError, "Argument 'text' of type <class 'str'> is not a valid JAX type"),
    ([1, 2], TypeError, r"wrap it in jnp.array"), (range(3), TypeError, "jnp.arange"),
    (float, TypeError, "ShapeDtypeStruct"),
    (np.array("a"), TypeError, "NumPy value of dtype <U1"), (np.array([None]), TypeError, "dtype object"),
    (ShapedArray((2,), "int8"), TypeError, "jnp.zeros"), (None, TypeError, "None"),
], ids=lambda v: str(v)[:20] if not isinstance(v, type) else v.__name__)
def test_what_has_no_type(value, error, words):
    with pytest.raises(error, match=words):
        aval_of(value)


def test_the_limits_of_a_python_int():
    for value in (2**31 - 1, -2**31):
        assert aval_of(value) is ShapedArray((), "int32", True)
    with jax.enable_x64(True):
        for value in (2**63 - 1, -2**63):
            assert aval_of(value) is ShapedArray((), "int64", True)


def test_types_have_the_names_that_libraries_read():
    whole = ShapedArray((2,), "int8", True)
    assert whole.at_least_vspace() is whole.to_tangent_aval() and whole.to_ct_aval() is whole.cotangent()
    assert whole.update_weak_type(False) is whole.strip_weak_type() and whole.mat == whole.manual_axis_type
    assert not whole.is_high
