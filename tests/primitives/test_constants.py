"""Constants of a program give what its arguments give: XLA computes with them as it compiles, by other code."""

import numpy as np
import pytest
from op_table import ROWS, linear_algebra, sharding
from op_table.row import listed
from together import in_few_arrays

import hlotrace
from hlotrace import numpy as jnp
from hlotrace.core.dtypes import SUPPORTED, as_dtype, finfo, iinfo, is_inexact
from hlotrace.core.primitive import PRIMITIVES
from hlotrace.primitives.common import kind_of

REAL = [dtype for dtype in SUPPORTED if kind_of(dtype) in "fiub"]
FLOATS = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.3, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 7.25, 100]
WIDE = [6.7, 127.5, -128.5, 200, 256, 448, -500, 70000, 2.0**31, -3e9, 2.0**63, -(2.0**63), 1e20, -1e38, 1e-5]
# complex: not of bfloat16; polygamma, zeta: near the largest number terms are 0, infinite or their product;
# those in total order: only sort compares so, which is not folded; pow_digit: its exponents have six bits
LEFT_OUT = {"complex", "polygamma", "zeta", "lt_to", "le_to", "eq_to", "pow_digit"}


def edges(dtype, more=()):
    """Numbers of a dtype where two ways of computing may part; none so small that a program takes it for 0."""
    kind = kind_of(dtype)
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        low, high = int(iinfo(dtype).min), int(iinfo(dtype).max)
        near = [low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, high - 1, high]
        return np.array(sorted({n for n in near if low <= n <= high}), "O").astype(dtype)
    if kind == "c":
        return np.array([complex(a, b) for a in FLOATS[5:10] for b in FLOATS[5:10]], dtype)
    with np.errstate(all="ignore"):
        tiny = max(finfo(d).tiny.astype(np.float64) for d in (dtype, np.float32))
        return np.array([*FLOATS, tiny, float(finfo(dtype).max), *more]).astype(dtype)


def assert_constants_are_as_arguments(calls):
    """`calls`: for each name, a function and its operands."""
    with hlotrace.enable_x64():
        def compute(operands):
            return [listed(f(*map(jnp.asarray, each))) for (f, _), each in zip(calls.values(), operands)]
        known = [operands for _, operands in calls.values()]
        wanted, found = in_few_arrays(compute)(known), in_few_arrays(lambda: compute(known))()
    for name, got, want in zip(calls, found, wanted, strict=True):
        for a, b in zip(got, want, strict=True):
            near = {}
            if is_inexact(a.dtype):
                eps = float(finfo(a.dtype).eps)
                a, b, near = (
                    *(x.astype(np.complex128 if kind_of(x.dtype) == "c" else np.float64) for x in (a, b)),
                    {"rtol": 64 * eps, "atol": 8 * eps},
                )
            np.testing.assert_allclose(a, b, **near or {"rtol": 0}, err_msg=name)


@pytest.mark.parametrize(
    "dtype",
    [
        "int4",
        "uint4",
        "int8",
        "uint8",
        "uint16",
        "int32",
        "int64",
        "float32",
        "bfloat16",
        "float16",
        "float64",
        "bool",
        "complex64",
        "complex128",
    ],
)
def test_elementwise_operations(dtype):
    dtype, calls = as_dtype(dtype), {}
    for row in ROWS:
        primitive = PRIMITIVES[row.primitive]
        takes = (primitive.kinds or row.kinds) if row.primitive not in LEFT_OUT else ""
        if primitive.elementwise and kind_of(dtype) in takes:
            operands = np.meshgrid(*[edges(dtype)[::max(1, len(row.args) - 1)]] * len(row.args))
            calls[row.name] = row.fun, [x.ravel() for x in operands]
    assert len(calls) > 5
    assert_constants_are_as_arguments(calls)


@pytest.mark.parametrize(
    "source",
    [
        "int8",
        "uint64",
        "bool",
        "float16",
        "float32",
        "float64",
        "float8_e5m2",
        "float8_e8m0fnu",
        "float4_e2m1fn",
    ],
)
def test_conversions(source):
    numbers = edges(as_dtype(source), WIDE)
    assert_constants_are_as_arguments(
        {
            target.name: (lambda x, target=target: x.astype(target).astype(np.float64), [numbers])
            for target in REAL
        }
    )


def test_integers_that_do_not_fit():
    """Operations that are not elementwise, whose sums and products wrap."""
    calls = {}
    for row in ROWS:
        if "i" in row.kinds and row not in sharding.ROWS and not PRIMITIVES[row.primitive].elementwise:
            operands = [np.array(x) for x in row.sample(np.dtype(np.int8))]
            for x in operands:
                if x.dtype == np.int8 and x.size > 2:
                    x.flat[:3] = 127, -128, 127
            calls[row.name] = row.fun, operands
    assert len(calls) > 20
    assert_constants_are_as_arguments(calls)


def test_linear_algebra():
    calls = {row.name: (row.fun, row.sample(row.base)) for row in linear_algebra.ROWS}
    assert len(calls) > 15
    assert_constants_are_as_arguments(calls)


def test_an_exponent_of_ldexp():
    x = np.float32([0, -0.0, 1e-30, 1, np.inf])
    for n in (150, -150, 2147483646):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(hlotrace.jit(lambda x, n=n: jnp.ldexp(x, n))(x), np.ldexp(x, n))
