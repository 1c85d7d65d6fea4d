"""64-bit arrays where 64-bit types are off: jax's beside others give way, as in JAX; NumPy's are narrowed."""
import re
from functools import partial

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

with jax.enable_x64():
    X, N = jnp.arange(3.0) + 1, jnp.arange(3)


@pytest.mark.parametrize("function, dtype", [
    (lambda: X + 1, "float32"), (lambda: 2 / X, "float32"), (lambda: N + 1, "int32"), (lambda: N // 2, "int32"),
    (lambda: X + jnp.ones(3), "float32"), (lambda: X + X, "float64"), (lambda: X == 1, "bool"), (lambda: 2 > X, "bool"),
    (lambda: jnp.where(X > 1, X, 0), "float32"), (lambda: jnp.maximum(X, 0), "float32"), (lambda: -X, "float64"),
    (lambda: jnp.ones(3)[N], "float32"), (lambda: (X + 1j) * 2, "complex64"), (lambda: X ** 2, "float64")])
def test_numbers_beside_64_bit_arrays(function, dtype):
    for found in (function(), jax.jit(function)()):
        assert found.dtype == dtype
    with jax.enable_x64():
        np.testing.assert_allclose(found, function(), rtol=1e-6)


WIDE = {"vector": (np.arange(3.0),), "matrix": (np.eye(3) + 1j,), "ints": (np.arange(9).reshape(3, 3),),
        "pair": (np.arange(3.0), np.arange(3.0)), "scalar": (np.eye(3), np.float64(2)),
        "narrow": (np.eye(3), np.ones(3, np.float32)), "list": ([np.arange(3.0), np.arange(3.0)],)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [jnp, jnp.fft, jnp.linalg, lax, jax.nn], ids=lambda m: m.__name__)
def test_numpy_arrays_of_64_bits_leave_no_trace_in_programs(module):
    """Every public function, of every kind of operands that it takes."""
    traced = 0
    for name in sorted(set(dir(module)) - {"save", "savez", "load", "fromfile", "printoptions", "set_printoptions"}):
        function = getattr(module, name)
        if name[0] in "_ABCDEFGHIJKLMNOPQRSTUVWXYZ" or isinstance(function, type) or not callable(function):
            continue
        for kind, operands in WIDE.items():
            try:
                text = str(jax.make_jaxpr(partial(function, *operands))())
            except Exception:      # which does not take such operands
                continue
            traced += 1
            assert not re.search(r"[fui]64\[|c128\[", text), f"{name} of {kind}"
    assert traced > 30
