"""When two results are the same in a test: one structure, equal shapes, values as near as their dtypes can
say."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp

LEAF = jax.tree.structure(0)
NARROW = {np.dtype("float64"): np.float32, np.dtype("complex128"): np.complex64, np.dtype("int64"): np.int32,
          np.dtype("uint64"): np.uint32}


def tolerance(dtype):
    """What a few operations may lose, relative and absolute; nothing for integers and bools."""
    if not jnp.issubdtype(dtype, np.inexact):
        return 0.0
    info = jnp.finfo(dtype)
    return float(info.eps) * (100 if info.bits >= 32 else 4)


def same(got, want, slack=1, dtype=None):
    """Assert that pytrees have one structure, and leaves one shape and values up to the tolerance of the
    coarser dtype.

    `slack` is how many times that tolerance a longer computation may lose; numbers without a dtype count as
    float32. Where `got` is one array, `want` may be nested lists.  With `dtype`, all of `got` has it.
    """
    leaves, structure = jax.tree.flatten(got)
    assert structure == LEAF or structure == jax.tree.structure(want)
    for g, w in zip(leaves, [want] if structure == LEAF else jax.tree.leaves(want)):
        assert dtype is None or g.dtype == dtype
        limit = slack * max(tolerance(getattr(x, "dtype", np.float32)) for x in (g, w))
        g, w = _wide(g), _wide(w)
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, limit, limit)


def same_as_numpy(got, want, slack=1):
    """Assert that `got` is what NumPy gave: an array, or a sequence of them, with 32 bits where NumPy has 64.
    """
    several = isinstance(want, (list, tuple))
    assert not several or len(got) == len(want)
    for g, w in zip(got, want) if several else [(got, want)]:
        dtype = np.asarray(w).dtype
        same(g, w, slack, NARROW.get(dtype, dtype))


def _wide(x):
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "V" or x.dtype.itemsize < 4 and x.dtype.kind == "f" else x
