"""What tests of elementwise functions share: samples of each kind of dtype, and the comparison with NumPy."""
import ml_dtypes
import numpy as np
from equal import tolerance

import hlotrace.numpy as jnp
from hlotrace.api.jit import jit

FLOAT = np.array([-2.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 3.0])
SAMPLES = {
    "float32": FLOAT.astype("float32"),
    "bfloat16": FLOAT.astype(ml_dtypes.bfloat16),
    "int8": np.array([-3, -1, 0, 1, 2, 7], "int8"),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j, -0.5 + 0.25j, 0.3 - 1j, 2j], "complex64"),
}
REAL, ALL = ("float32", "bfloat16", "int8", "bool"), tuple(SAMPLES)
NUMBER = ("float32", "bfloat16", "int8", "complex64")
WIDE = {"bfloat16": "float64", "complex64": "complex128", "float32": "float64"}


_DEPRECATED = {"fix": "trunc"}      # since NumPy 2.5


def reference(name, found, *args):
    """What NumPy gives: computed in double precision, but for integers that stay integers."""
    if name == "sign" and np.iscomplexobj(args[0]):
        return args[0] / np.abs(args[0])
    dtype = args[0].dtype.name
    if name != "nextafter":
        first = found[0] if isinstance(found, tuple) else found
        floats = dtype in WIDE or jnp.issubdtype(first.dtype, jnp.inexact) or name in (
            "signbit", "isposinf", "isneginf")
        args = [a.astype(WIDE.get(dtype, "float64") if floats else dtype) for a in args]
    with np.errstate(all="ignore"):
        return getattr(np, _DEPRECATED.get(name, name))(*args)


def check(name, dtype, found, wanted):
    limit = tolerance(SAMPLES[dtype].dtype) or tolerance("float32")
    for f, w in zip(found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple)
                    else (wanted,)):
        f = np.asarray(f)
        f = f.astype("float64") if f.dtype == ml_dtypes.bfloat16 else f
        np.testing.assert_allclose(f, w, rtol=limit, atol=limit, err_msg=f"{name} of {dtype}")


def one_array_agrees(functions, dtype):
    """The functions of one array, {name: dtypes}, that take `dtype` give what NumPy's do.  Returns what they gave."""
    names, x = [n for n, dtypes in functions.items() if dtype in dtypes], SAMPLES[dtype]
    found = jit(lambda x: {n: getattr(jnp, n)(x) for n in names})(x)
    for name in names:
        check(name, dtype, found[name], reference(name, found[name], x))
    return found


def two_arrays_agree(functions, dtype):
    """The functions of two arrays, {name: dtypes}, that take `dtype` give what NumPy's do."""
    names, a = [n for n, dtypes in functions.items() if dtype in dtypes], SAMPLES[dtype]
    x, y = a[:, None], a[a != 0]
    shifts = np.abs(y) % 8 if dtype == "int8" else y
    found = jit(lambda x, y, s: {n: getattr(jnp, n)(x, s if "shift" in n else y) for n in names})(
        x, y, shifts)
    for name in names:
        second = shifts if "shift" in name else y
        check(name, dtype, found[name], reference(name, found[name], *np.broadcast_arrays(x, second)))


SPECIAL = np.array([-np.inf, -3.5, -1, -0.0, 0, 0.5, 1, 2, 3e30, np.inf, np.nan], np.float32)


@np.errstate(all="ignore")
def specials_agree(unary=(), binary=()):
    """These functions of one array, or of two, give what NumPy's do for infinities, zeros of both signs and
    NaN."""
    x, y = SPECIAL[:, None], SPECIAL
    found = jit(lambda x, y: {n: getattr(jnp, n)(*(x, y)[:1 + (n in binary)]) for n in (*unary, *binary)})(
        x, y)
    for name, got in found.items():
        want = getattr(np, _DEPRECATED.get(name, name))(*(x, y)[:1 + (name in binary)])
        for g, w in zip(got if isinstance(got, tuple) else (got,),
                        want if isinstance(want, tuple) else (want,), strict=True):
            w = np.asarray(w).astype(g.dtype)
            np.testing.assert_allclose(g, w, rtol=1e-5, err_msg=name)
            if w.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(g) | np.isnan(w), np.signbit(w) | np.isnan(w),
                                              err_msg=f"sign of {name}")
