"""Sign, mantissa and exponent: values as NumPy's, dtypes, edges, slopes."""
import numpy as np
import pytest
from elementwise import REAL, SAMPLES, one_array_agrees, specials_agree, two_arrays_agree

import hlotrace.numpy as jnp
from hlotrace.api.autodiff import grad
from hlotrace.api.jit import jit


def array(dtype):
    return jnp.ones(2, dtype)


INF, NAN = np.inf, np.nan
UNARY = {"signbit": REAL, "modf": REAL, "frexp": REAL}
BINARY = {"copysign": REAL}


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_one_array_agree_with_numpy(dtype):
    one_array_agrees(UNARY, dtype)


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_two_arrays_agree_with_numpy(dtype):
    two_arrays_agree(BINARY, dtype)


def test_infinities_zeros_and_nan():
    specials_agree(UNARY, BINARY)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_mantissa_and_the_exponent_make_up_each_number(dtype):
    """The smallest ones and the largest ones too; the mantissa is from 0.5 to 1."""
    info = jnp.finfo(dtype)
    x = np.array([info.smallest_subnormal, 3 * info.smallest_subnormal, info.tiny, 1, 1.5, info.max], np.float64)
    mantissa, exponent = (np.asarray(v, np.float64) for v in jit(jnp.frexp)(np.concatenate([x, -x]).astype(jnp.dtype(dtype))))
    np.testing.assert_array_equal(mantissa * 2.0 ** exponent, np.concatenate([x, -x]))
    assert ((np.abs(mantissa) >= 0.5) & (np.abs(mantissa) < 1)).all()


@pytest.mark.parametrize(("call", "dtype"), [
    (lambda: jnp.frexp(array("bfloat16"))[1], "int32"),
])
def test_result_dtypes(call, dtype):
    assert call().dtype == dtype


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (lambda: jnp.modf(-INF)[0], -0.0),
        (lambda: 1 / jnp.modf(-3.0)[0], -INF),
        (lambda: jnp.ldexp(1.0, 200), INF),
        (lambda: jnp.ldexp(np.float32(2.0**100), -140), 2.0**-40),
        (lambda: jnp.frexp(np.float32(1e-40))[1], -132),
        (lambda: jnp.spacing(1.0), 2.0**-23),
    ],
)
def test_values_at_edges(found, wanted):
    np.testing.assert_allclose(np.asarray(found()), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "point", "slopes"),
    [
        (jnp.copysign, (1.0, -2.0), (-1.0, 0.0)),
        (lambda a, b: jnp.modf(a)[0] * b, (1.5, 2.0), (2.0, 0.5)),
        (lambda a, b: jnp.modf(a)[0] * b, (-2.0, 2.0), (2.0, 0.0)),
        (lambda a, b: jnp.modf(a)[0] * b, (-0.0, 2.0), (2.0, 0.0)),
        (lambda a, b: jnp.ldexp(a, 3) + b, (1.5, 0.0), (8.0, 1.0)),
    ],
)
def test_slopes_at_edges(function, point, slopes):
    np.testing.assert_allclose(grad(function, (0, 1))(*point), slopes, rtol=1e-5)


def test_the_sign_of_zero_survives_as_a_constant():
    assert np.signbit(np.asarray(jnp.copysign(1.0, -0.0))) and not np.signbit(np.asarray(jnp.copysign(1.0, 0.0)))
    for dtype in ("float32", "bfloat16"):
        x = jit(lambda x: (x * 0.0, x * -0.0))(array(dtype))
        assert [bool(jnp.signbit(v).any()) for v in x] == [False, True]
