"""The options for dtype and rank promotion are for what users mix: library functions of one dtype pass under
both.

The examples of all docstrings run under "strict" and "raise" (test_docstrings.py), and so do the public
functions of arrays, and their gradients, of matrices and of vectors of one dtype: what passes without the
options passes with them, and has the same type.
"""
import importlib
import inspect

import numpy as np
import pytest
from house.test_docstrings import strict

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

MODULES = ["numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "scipy.special", "scipy.linalg",
           "scipy.signal",
           "scipy.fft", "scipy.cluster.vq", "scipy.sparse.linalg", "scipy.stats"]
DTYPES = [*((module, "float32") for module in MODULES),
          *((module, "complex64") for module in MODULES if module not in ("nn", "scipy.stats")),
          *((module, "bfloat16") for module in ("nn", "scipy.special", "scipy.signal", "scipy.fft"))]
NEITHER = {"empty", "from_dlpack", "frombuffer", "fromfile", "histogramdd", "load", "printoptions", "save",
           "savez",
           "set_printoptions"}      # files, buffers, and as many axes of bins as there are columns


def functions(module):
    """Public functions; those of the distributions too."""
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if inspect.ismodule(value) and module.__name__.endswith("scipy.stats") and not name.startswith("_"):
            yield from functions(value)
        if callable(value) and not inspect.isclass(value) and not name.startswith("_") and name[-2:] != "_p":
            if name not in NEITHER:
                yield f"{module.__name__}.{name}", value


def gradient(function, seen):
    """Its gradient; `seen` gets the types of the results that it was traced with."""
    def total(*args):
        results = function(*args)
        seen.append(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), results))
        outs = [x for x in jax.tree.leaves(results) if jnp.issubdtype(x.dtype, jnp.inexact)]
        return sum(jnp.sum(x.real).astype(jnp.float32) for x in outs)
    return jax.grad(total)


def types(function, args):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), jax.eval_shape(function, *args))


def passes(function, args):
    try:
        types(function, args)
    except Exception:
        return False
    return True


def strict_types(function, args, smooth):
    """The types of its results under the options; where it is smooth its gradient is traced, and they are seen."""
    seen = []
    try:
        with strict():
            if not smooth:
                return types(function, args)
            types(gradient(function, seen), args)
            return seen[-1]
    except Exception:
        if not smooth or passes(gradient(function, []), args):
            raise
    return strict_types(function, args, False)      # there is no gradient


@pytest.mark.parametrize("module, dtype", DTYPES)
def test_functions_of_one_dtype_promote_nothing(module, dtype):
    values = np.random.RandomState(0).uniform(0.2, 0.9, (3, 5, 5)).astype(np.float32)
    values = jnp.asarray(values @ values.transpose(0, 2, 1) + np.eye(5, dtype=np.float32), dtype)
    refused, passed, seen = [], 0, set()
    for name, function in functions(importlib.import_module(f"hlotrace.{module}")):
        if id(function) in seen:        # under another name
            continue
        seen.add(id(function))
        for args in [tuple(values[:count]) for count in (1, 2, 3)] + [
            tuple(values[:count, 0]) for count in (1, 2, 3)]:
            try:
                want = types(function, args)
            except Exception:       # of another number, rank or dtype
                continue
            smooth = any(jnp.issubdtype(x.dtype, jnp.inexact) for x in jax.tree.leaves(want))
            try:
                found = strict_types(function, args, smooth)
            except Exception as error:
                if "promotion" not in str(error):
                    raise
                refused.append(name)
            else:
                assert found == want, name
                passed += 1
    assert not refused and passed > 1


@pytest.mark.parametrize("function", [jax.scipy.signal.csd, jax.scipy.signal.welch])
def test_medians_of_one_dtype_promote_nothing(function):
    args = [jnp.arange(64.)] * (2 if function is jax.scipy.signal.csd else 1)
    want = function(*args, nperseg=16, average="median")
    with strict():
        found = function(*args, nperseg=16, average="median")
    for a, b in zip(found, want, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


X, I, ROW = jnp.ones((2, 3)), jnp.ones((2, 3), jnp.int32), jnp.ones(3)
MIXES = {
    **{name: lambda name=name: getattr(jnp, name)(X, I) for name in (
        "add", "multiply", "maximum", "hypot", "arctan2", "equal", "power", "floor_divide", "logaddexp",
        "remainder", "vdot",
        "tensordot", "cov", "corrcoef", "polyval", "append", "union1d", "linspace")},
    "where": lambda: jnp.where(X > 0, X, I), "concatenate": lambda: jnp.concatenate([X, I]),
    "dot": lambda: X @ I.T,
    "einsum": lambda: jnp.einsum("ij,ij", X, I), "stack": lambda: jnp.stack([X, I]), "x + i": lambda: X + I,
    "trapezoid": lambda: jnp.trapezoid(X, I), "logsumexp": lambda: jax.nn.logsumexp(X, b=I),
    "vq": lambda: jax.scipy.cluster.vq.vq(X, I), "solve_sylvester": lambda: jax.scipy.linalg.solve_sylvester(
        jnp.eye(2), jnp.eye(3), I), "x + row": lambda: X + ROW, "maximum of row": lambda: jnp.maximum(X, ROW),
    "lax.add": lambda: lax.add(X, I),
    "norm.logpdf": lambda: jax.scipy.stats.norm.logpdf(X, ROW),
    "logaddexp of row": lambda: jnp.logaddexp(X, ROW),
    "vectorize": lambda: jnp.vectorize(lambda a, b: a + b)(X, ROW)}


@pytest.mark.parametrize("name", MIXES)
def test_what_users_mix_is_refused(name):
    with strict(), pytest.raises((TypeError, ValueError), match="promotion|same dtypes"):
        MIXES[name]()
