"""Constants as text: each holds exactly the value, as a list, one number for all, or bytes."""
import re

import ml_dtypes
import numpy as np
import pytest

from hlotrace.lowering.constants import dense, element

pytestmark = pytest.mark.quick
NAN = np.array([0x7FC00001], np.uint32).view(np.float32)      # not the usual one


@pytest.mark.parametrize("value, written", [
    (np.float32(1), "dense<1.0>"), (np.int8(-3), "dense<-3>"), (np.bool_(True), "dense<true>"),
    (np.array([], np.float32), "dense<>"), (np.zeros((0, 3), bool), "dense<>"), (np.ones((2, 3), np.float32), "dense<1.0>"),
    (np.array([[1, 2], [3, 4]]), "dense<[[1, 2], [3, 4]]>"), (np.array([5]), "dense<[5]>"), (np.array([[5]]), "dense<[[5]]>"),
    (np.array([True, False]), "dense<[true, false]>"), (np.complex64(1 - 2j), "dense<(1.0, -2.0)>"),
    (np.array([0.0, -0.0], np.float32), "dense<[0.0, -0.0]>"), (np.full(3, -0.0, np.float32), "dense<-0.0>"),
    (np.array([-0.0, 0.0, 0.0], ml_dtypes.bfloat16), "dense<[-0.0, 0.0, 0.0]>"),
    (np.array([0.0, complex(0, -0.0)], np.complex64), "dense<[(0.0, 0.0), (0.0, -0.0)]>"),
    (np.array([np.nan, NAN[0]], np.float32), "dense<[0x7FC00000, 0x7FC00001]>"),
    (np.array([np.inf, -np.inf], np.float16), "dense<[0x7C00, 0xFC00]>"), (np.full(4, np.nan, np.float32), "dense<0x7FC00000>"),
    (np.array([1, -8, 7], ml_dtypes.int4), "dense<[1, -8, 7]>"),
])
def test_the_text_of_a_value(value, written):
    assert dense(np.asarray(value)) == written


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2],
                         ids=lambda dtype: dtype.__name__)
def test_many_numbers_are_bytes(dtype):
    values = np.arange(70).astype(dtype)[::-1]
    found = re.fullmatch(r'dense<"0x([0-9A-F]+)">', dense(values))
    assert bytes.fromhex(found[1]) == np.ascontiguousarray(values).tobytes()
    assert dense(values[:64]).startswith("dense<[")
    assert dense(np.broadcast_to(values[0], (100,))) == f"dense<{element(values[0], values.dtype)}>"


@pytest.mark.parametrize("dtype", [bool, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn], ids=lambda dtype: dtype.__name__)
def test_what_is_packed_is_listed_however_long(dtype):
    assert dense(np.array([0, 1] * 50).astype(dtype)).startswith("dense<[")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn],
                         ids=lambda dtype: dtype.__name__)
def test_a_float_reads_back_to_its_bits(dtype):
    dtype = np.dtype(dtype)
    bits = np.random.default_rng(0).integers(0, 256, 400 * dtype.itemsize, np.uint8).view(dtype)
    for x in (*bits, dtype.type(1e-7), dtype.type(100)):
        text = element(x, dtype)
        if text.startswith("0x"):
            assert bytes.fromhex(text[2:])[::-1] == x.tobytes() and not np.isfinite(float(x))
        else:
            assert "." in text and np.float64(text).astype(dtype).tobytes() == x.tobytes()
