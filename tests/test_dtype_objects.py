"""float32, int8, ... as objects, and questions about dtypes."""
import ml_dtypes
import numpy as np
import pytest

import hlotrace.numpy as jnp


def test_dtype_objects():
    assert jnp.float32(1.5).dtype == np.float32 and jnp.int8([1, 2]).shape == (2,)
    assert np.dtype(jnp.bfloat16) == ml_dtypes.bfloat16 and np.zeros(1, jnp.int32).dtype == np.int32
    assert jnp.float32 == np.float32 and np.float32 == jnp.float32 and jnp.float32 == np.dtype("float32")
    assert jnp.float32 != np.float64 and jnp.float32 != jnp.bfloat16 and jnp.float32 != "float32"
    assert {np.float32: 1}[jnp.float32] == 1 and isinstance(jnp.float32, type)
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(1.0, jnp.float32)
    assert jnp.int_(3).dtype == np.int32 and jnp.zeros(1, jnp.float_).dtype == np.float32
    assert repr(jnp.int4) == "<class 'hlotrace.numpy.int4'>" and jnp.int4(3).dtype == ml_dtypes.int4
    assert jnp.finfo(jnp.bfloat16).eps == 0.0078125 and jnp.iinfo("int4").max == 7
    with pytest.warns(UserWarning, match="float64 requested"):
        assert jnp.float64(1).dtype == np.float32
    with pytest.raises(OverflowError):
        jnp.int8(300)


def test_questions_about_dtypes():
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and jnp.issubdtype("int4", jnp.integer)
    assert jnp.issubdtype(np.floating, np.inexact) and not jnp.issubdtype(np.inexact, np.floating)
    assert jnp.issubdtype(jnp.ones(1), jnp.float32) and not jnp.issubdtype(jnp.float32, float)
    for a, b, wanted in [("int32", "float64", "float64"), ("int8", "bfloat16", "bfloat16"), (int, "int8", "int8"),
                         ("uint8", float, "float64"), ("float16", "bfloat16", "float32"), ("int64", "float32", "float32")]:
        assert jnp.promote_types(a, b) == np.dtype(wanted)
    assert jnp.result_type(1, 2.0) == jnp.result_type("int8", float) == np.float32
    assert jnp.result_type(jnp.ones(1), jnp.ones(1, jnp.bfloat16), 1) == np.float32
    assert jnp.can_cast("int8", jnp.bfloat16) and not jnp.can_cast("float32", "int8")
    assert jnp.isdtype(jnp.bfloat16, "real floating") and jnp.isdtype("int8", ("bool", "integral"))
    assert jnp.isdtype(jnp.int4, "signed integer") and not jnp.isdtype("int8", jnp.int16)
    with pytest.raises(ValueError, match="Unrecognized kind"):
        jnp.isdtype("int8", "foo")
    with pytest.raises(TypeError, match="Expected kind"):
        jnp.isdtype("int8", np.integer)
