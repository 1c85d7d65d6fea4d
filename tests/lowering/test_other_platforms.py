"""What lowering writes for the platforms that are not here: where it is plain StableHLO, the CPU computes the same by it.

Calls that XLA's compiler for the CPU expands into operations count as plain.
"""
import re

import numpy as np
import pytest
from op_table import ROWS
from op_table.row import listed
from other_platforms import computed
from row_checks import assert_all_near, rows

import hlotrace as jax
from hlotrace import lax

ELSEWHERE = ("cuda", "rocm", "tpu")
EXPANDED = {"ApproxTopK", "Eigh", "ProductOfElementaryHouseholderReflectors", "Qr"}
# What is different there on purpose.
OTHERWISE = {"cond-platforms": "a branch for the TPU"}
# What nothing lowers there, or calls functions of this process.
NO_LOWERING = {"buffer_callback", "call_exported", "pure_callback", "io_callback", "debug_callback", "schur"}
# Primitive: the platforms where it is a call of a library that is not here.
CALLS = {
    **dict.fromkeys(["cholesky", "cholesky_update", "symmetric_product", "tridiagonal_solve", "lu_pivots_to_permutation",
                     "qr", "geqrf", "geqp3", "householder_product", "ormqr", "tridiagonal", "eigh", "svd"], {"cuda"}),
    "lu": {"cuda", "tpu"}, "eig": {"cuda", "tpu"}, "ragged_all_to_all": {"cuda", "rocm", "tpu"},
}


def texts(f, args):
    """{text: the platforms that have it} of those that differ from the CPU's."""
    traced = jax.jit(lambda *xs: listed(f(*xs))).trace(*args)
    here, found = traced.lower(platform="cpu").as_text(), {}
    for platform in ELSEWHERE:
        text = traced.lower(platform=platform).as_text()
        if text != here:
            found.setdefault(text, []).append(platform)
    return found


def is_plain(text):
    return set(re.findall(r"custom_call @(\w+)", text)) <= EXPANDED


@rows(lambda row: row.name not in NO_LOWERING | OTHERWISE.keys())
def test_the_cpu_computes_by_it_what_the_reference_does(row):
    dtypes = [row.base, *[d for d in row.dtypes if d == np.complex64 and d != row.base]]
    for dtype in dtypes:
        args = row.sample(dtype)
        for text, platforms in texts(row.fun, args).items():
            if is_plain(text):
                assert_all_near(computed(text, args), row.expect(args), row.rtol)
            else:
                assert CALLS[row.primitive].issuperset(platforms), platforms


def test_what_is_not_plain_is_said_and_no_more():
    """The table of calls that only their platform can run has no row that is plain by now."""
    for name, platforms in CALLS.items():
        called = {p for row in ROWS if row.primitive == name for text, where in texts(row.fun, row.sample(row.base)).items()
                  if not is_plain(text) for p in where}
        assert called == platforms, name


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, bool], ids=lambda d: d.__name__)
def test_the_place_of_an_extreme_is_its_first_whether_equal_or_not_a_number(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype is bool else 3, (40, 7)).astype(dtype)
    x[3], x[4] = x[3, 0], x[4, 0]
    if np.dtype(dtype).kind == "f":
        x[5:20][rng.integers(0, 3, (15, 7)) == 0] = np.nan
    for f, reference in (lax.argmax, np.argmax), (lax.argmin, np.argmin):
        for text in texts(lambda x, f=f: f(x, 1, np.int32), (x,)):
            np.testing.assert_array_equal(computed(text, [x])[0], reference(x, 1))


def test_a_branch_for_a_platform_is_taken_there():
    def f(x):
        return lax.platform_dependent(x, tpu=lambda x: x * 2, cuda=lambda x: x * 3, default=lambda x: x * 5)
    x = np.arange(3, dtype=np.float32)
    factors = {platform: float(computed(text, [x])[0][1]) for text, where in texts(f, [x]).items() for platform in where}
    assert factors == {"tpu": 2, "cuda": 3} and f(x)[1] == 5
