"""Dtypes: names, kinds, canonical forms, limits, and the lattice of promotion against the tables that JAX
documents."""
import itertools

import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import dtypes
from hlotrace.core.config import override
from hlotrace.core.dtypes import as_dtype, canonicalize, lattice_result
from hlotrace.errors import TypePromotionError

pytestmark = pytest.mark.quick
KEY = jax.eval_shape(lambda: jax.random.key(0)).dtype


@pytest.mark.parametrize("given, dtype", [
    ("float32", "float32"), (np.float32, "float32"), (np.dtype("int8"), "int8"), (jax.numpy.uint16, "uint16"),
    (bool, "bool"), (int, "int32"), (float, "float32"), (complex, "complex64"),
    ("bfloat16", ml_dtypes.bfloat16),
    ("int4", ml_dtypes.int4), (ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2), ("f4", "float32"),
    (np.float64, "float64"),
])
def test_anything_that_names_a_dtype(given, dtype):
    assert as_dtype(given) == np.dtype(dtype)


def test_the_dtype_of_keys_is_its_own():
    assert as_dtype(KEY) is KEY and canonicalize(KEY) is KEY and dtypes.is_extended(
        KEY) and not dtypes.is_extended(np.dtype("f4"))
    with pytest.raises(ValueError, match="extended"):
        canonicalize(KEY, allow_extended_dtype=False)
    assert dtypes.short_name(KEY) == "key<fry>" and KEY.itemsize == 8


@pytest.mark.parametrize(
    "given, words", [("flaot32", "float32"), (None, "got None"), (3, "one tuple"), ([1], "is not a dtype")])
def test_what_names_no_dtype(given, words):
    with pytest.raises(TypeError, match=words):
        as_dtype(given)


@pytest.mark.parametrize("wide, narrow", [("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"),
                                          ("complex128", "complex64"), (None, "float32")])
def test_64_bits_are_narrowed_where_they_are_off(wide, narrow):
    assert canonicalize(wide) == narrow
    with jax.enable_x64(True):
        assert canonicalize(wide) == (wide or "float64")
    for same in ("int8", "bool", "bfloat16", "complex64", "uint32"):
        assert canonicalize(same) == as_dtype(same)


@pytest.mark.parametrize("dtype, short", [
    ("bool", "bool"), ("int8", "i8"), ("uint64", "u64"), ("float16", "f16"), ("bfloat16", "bf16"),
    ("complex64", "c64"),
    ("int4", "i4"), ("float8_e4m3fn", "f8_e4m3fn"), (dtypes.float0, "float0"),
])
def test_how_programs_write_a_dtype(dtype, short):
    assert dtypes.short_name(as_dtype(dtype)) == short


# dtype: (kind, is it inexact?, dtype of tangents, floating dtype, bits, Python type)
KINDS = {
    "bool": ("bool", False, dtypes.float0, "float32", 8, bool),
    "int8": ("int", False, dtypes.float0, "float32", 8, int),
    "uint16": ("uint", False, dtypes.float0, "float32", 16, int),
    "int4": ("int", False, dtypes.float0, "float32", 4, int),
    "int64": ("int", False, dtypes.float0, "float64", 64, int),
    "float16": ("float", True, "float16", "float16", 16, float),
    "bfloat16": ("float", True, "bfloat16", "bfloat16", 16, float),
    "float8_e5m2": ("float", True, "float8_e5m2", "float8_e5m2", 8, float),
    "complex64": ("complex", True, "complex64", "complex64", 64, complex),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name):
    kind, inexact, tangent, floating, bits, python = KINDS[name]
    dtype = as_dtype(name)
    assert (dtypes.is_bool(dtype), dtypes.is_integer(dtype), dtypes.is_unsigned(dtype),
            dtypes.is_float(dtype),
            dtypes.is_complex(dtype)) == (kind == "bool", kind in ("int", "uint"), kind == "uint",
                                          kind == "float", kind == "complex")
    assert dtypes.is_inexact(dtype) == inexact and dtypes.tangent_dtype(dtype) == as_dtype(tangent)
    assert dtypes.to_inexact(dtype) == as_dtype(floating)
    assert dtypes.itemsize_bits(dtype) == bits and dtypes.scalar_type_of(np.zeros(2, dtype)) is python


@pytest.mark.parametrize("dtype, kind, holds", [
    ("bfloat16", np.floating, True), ("bfloat16", np.integer, False), ("float8_e4m3fn", np.inexact, True),
    ("int4", np.signedinteger, True), ("int4", np.unsignedinteger, False),
    ("uint4", np.unsignedinteger, True),
    ("uint2", np.integer, True), ("int2", np.floating, False), ("int8", np.signedinteger, True),
    ("float32", "float32", True),
    ("float32", np.float64, False), (dtypes.float0, np.void, True), (dtypes.float0, np.integer, False),
    ("int32", dtypes.extended, False), (KEY, dtypes.prng_key, True), (KEY, dtypes.extended, True),
    (KEY, np.integer, False),
])
def test_issubdtype(dtype, kind, holds):
    assert dtypes.issubdtype(dtype, kind) is holds


def test_real_and_complex():
    assert dtypes.real_of(dtypes.complex128) == "float64" and dtypes.real_of(dtypes.int8) == "int8"
    assert [dtypes.complex_of(as_dtype(d)).name for d in ("float16", "float32", "float64", "complex128")] == [
        "complex64", "complex64", "complex128", "complex128"]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "uint64", "float16", "bfloat16", "float32", "float8_e4m3fn",
                                   "float8_e5m2", "int4"])
def test_the_least_and_the_greatest(dtype):
    dtype = as_dtype(dtype)
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    assert low.dtype == high.dtype == dtype and low.shape == ()
    if dtypes.is_bool(dtype):
        assert (low, high) == (False, True)
    elif dtypes.is_integer(dtype):
        assert (int(low), int(high)) == (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max)
    else:
        infinite = dtype != as_dtype("float8_e4m3fn")       # which has none
        assert float(high) == -float(low) == (np.inf if infinite else 448)


# --- Python numbers -----------------------------------------------------------------------------------------

def test_limits_of_integers():
    for dtype in (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint64):
        info = np.iinfo(dtype)
        assert dtypes.holds(dtype, int(info.min)) and dtypes.holds(dtype, int(info.max))
        assert not dtypes.holds(dtype, int(info.min) - 1) and not dtypes.holds(dtype, int(info.max) + 1)


@pytest.mark.parametrize(
    "value, words", [(2**31, "uint32 does"), (2**40, "int64 does: enable 64-bit"), (2**63, "uint64 does"),
                                          (2**70, "no integer dtype does"), (10**50, "of 167 bits")])
def test_a_number_that_does_not_fit(value, words):
    with pytest.raises(OverflowError, match=words):
        dtypes.scalar_dtype(value)


def test_the_dtype_of_a_number():
    class Count(int):
        pass
    assert [dtypes.scalar_dtype(v).name for v in (True, 1, 1.0, 1j, Count(3))] == [
        "bool", "int32", "float32", "complex64", "int32"]


def test_what_a_user_asks_for_is_narrowed_with_a_warning():
    for _ in range(2):
        with pytest.warns(UserWarning,
                          match="dtype float64 requested in here is not available, and will be truncated"):
            assert dtypes.check_user_dtype("float64", "here") == "float32"
    with override("jax_explicit_x64_dtypes", "error"), pytest.raises(
        ValueError, match="int64 is not available"):
        dtypes.check_user_dtype("int64", "there")
    with pytest.raises(TypeError, match="here: dtype <U3"):
        dtypes.check_user_dtype("U3", "here")
    assert dtypes.check_user_dtype(KEY, "here") is KEY and dtypes.check_user_dtype(
        dtypes.float0, "here") == dtypes.float0


# --- promotion ----------------------------------------------------------------------------------------------

# The table of "Type promotion semantics" in JAX's documents, with 64 bits on: rows and columns in this order.
ORDER = "b1 u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c8 c16 i* f* c*".split()
TABLE = """
b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i*  f*  c*
u1  u1  u2  u4  u8  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16 u1  f*  c*
u2  u2  u2  u4  u8  i4  i4  i4  i8  bf  f2  f4  f8  c8  c16 u2  f*  c*
u4  u4  u4  u4  u8  i8  i8  i8  i8  bf  f2  f4  f8  c8  c16 u4  f*  c*
u8  u8  u8  u8  u8  f*  f*  f*  f*  bf  f2  f4  f8  c8  c16 u8  f*  c*
i1  i2  i4  i8  f*  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i1  f*  c*
i2  i2  i4  i8  f*  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16 i2  f*  c*
i4  i4  i4  i8  f*  i4  i4  i4  i8  bf  f2  f4  f8  c8  c16 i4  f*  c*
i8  i8  i8  i8  f*  i8  i8  i8  i8  bf  f2  f4  f8  c8  c16 i8  f*  c*
bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  f4  f4  f8  c8  c16 bf  bf  c8
f2  f2  f2  f2  f2  f2  f2  f2  f2  f4  f2  f4  f8  c8  c16 f2  f2  c8
f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16 f4  f4  c8
f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16 f8  f8  c16
c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16 c8  c8  c8
c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
i*  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i*  f*  c*
f*  f*  f*  f*  f*  f*  f*  f*  f*  bf  f2  f4  f8  c8  c16 f*  f*  c*
c*  c*  c*  c*  c*  c*  c*  c*  c*  c8  c8  c8  c16 c8  c16 c*  c*  c*
"""
RESULTS = {(a, b): c for a, row in zip(ORDER, TABLE.split("\n")[1:-1], strict=True)
           for b, c in zip(ORDER, row.split(), strict=True)}
WEAK = {"i*": dtypes.int64, "f*": dtypes.float64, "c*": dtypes.complex128}


def node(name):
    """(dtype, is it weak?) of an entry of the table."""
    if name in WEAK:
        return WEAK[name], True
    return {"b1": dtypes.bool_, "bf": dtypes.bfloat16}.get(name) or np.dtype(name), False


@pytest.mark.parametrize("first", ORDER)
def test_the_table_of_promotion(first):
    with jax.enable_x64(True):
        for second in ORDER:
            assert lattice_result((node(first), node(second))) == node(RESULTS[first, second]), second


@pytest.mark.parametrize("first", ORDER)
def test_the_table_of_promotion_without_64_bits(first):
    """The narrowed result of the narrowed operands; what was found with 64 bits is not taken for it."""
    narrow = {name: (canonicalize(node(name)[0]), node(name)[1]) for name in ORDER}
    with jax.enable_x64(True):
        for second in ORDER:
            lattice_result((narrow[first], narrow[second]))
    for second in ORDER:
        found, weak = lattice_result((narrow[first], narrow[second]))
        assert canonicalize(found) == found
        kept = {"u8": "u4", "i8": "i4", "f8": "f4", "c16": "c8"}
        if first not in kept and second not in kept:
            assert (found, weak) == narrow[RESULTS[first, second]], second


def test_promotion_is_commutative_and_associative():
    nodes = [node(name) for name in ORDER]
    with jax.enable_x64(True):
        for some in itertools.combinations(nodes, 3):
            assert len({lattice_result(order) for order in itertools.permutations(some)}) == 1


def test_one_dtype_is_weak_only_where_all_are():
    strong, weak = (dtypes.float32, False), (dtypes.float32, True)
    assert lattice_result((strong, weak)) == lattice_result((weak, strong)) == (dtypes.float32, False)
    assert lattice_result((weak, weak)) == (dtypes.float32, True)
    assert lattice_result(((dtypes.bool_, True), (dtypes.bool_, True))) == (dtypes.bool_, False)


@pytest.mark.parametrize("names", [("int4", "int8"), ("float8_e4m3fn", "float32"),
                                   ("float8_e4m3fn", "float8_e5m2"), ("uint4", "int4")])
def test_small_ones_never_promote(names):
    with pytest.raises(TypePromotionError, match="no available implicit dtype promotion"):
        lattice_result(tuple((as_dtype(name), False) for name in names))


def test_small_ones_take_weak_numbers():
    assert lattice_result(((as_dtype("int4"), False), (dtypes.int32, True))) == (as_dtype("int4"), False)
    assert lattice_result(((as_dtype("float8_e5m2"), False), (dtypes.float32, True))) == (
        as_dtype("float8_e5m2"), False)


def test_strict_promotion():
    strong, other, weak_int, weak_float = ((d, w) for d, w in [
        (dtypes.int32, False), (dtypes.int8, False), (dtypes.int32, True), (dtypes.float32, True)])
    assert lattice_result((strong, other)) == strong
    with override("jax_numpy_dtype_promotion", "strict"):
        assert lattice_result((strong, weak_int)) == strong and lattice_result((strong, strong)) == strong
        for refused in ((strong, other), (strong, weak_float)):
            with pytest.raises(TypePromotionError, match="strict"):
                lattice_result(refused)
        for x in jnp.ones(2, "int32"), jnp.ones(2):     # a bool is not weak
            for add in lambda x: x + True, lambda x: False * x, lambda x: jnp.maximum(x, True):
                with pytest.raises(TypePromotionError, match="strict"):
                    add(x)


def test_keys_and_numbers_do_not_mix():
    assert lattice_result(((KEY, False), (KEY, False))) == (KEY, False)
    with pytest.raises(TypeError, match="a PRNG key is not a number"):
        lattice_result(((KEY, False), (dtypes.uint32, False)))
    with pytest.raises(TypeError, match="arrays hold numbers"):
        lattice_result(((np.dtype("U3"), False), (dtypes.uint32, False)))
