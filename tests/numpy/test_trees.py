"""ravel_pytree: all numbers of a pytree as a vector, and back."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.flatten_util import ravel_pytree

TREES = [     # a tree, the dtype of its vector, is that weak?
    (None, "float32", False), ({}, "float32", False), ([1, 2], "int32", True), ({"a": 1, "b": 2.0}, "float32", False),
    ([np.int8(1), np.float16(2)], "float16", False), ([np.ones((2, 2)), np.arange(3)], "float32", False),
    ([True, 1.0, 1j], "complex64", False), (jnp.ones((2, 2), "bfloat16"), "bfloat16", False),
    ([np.zeros((0, 3), "int8")], "int8", False),
]


def test_there_and_back():
    for tree, dtype, weak in TREES:
        flat, unravel = ravel_pytree(tree)
        leaves = jax.tree.leaves(tree)
        assert (flat.ndim, flat.dtype, flat.weak_type) == (1, dtype, weak)
        np.testing.assert_array_equal(flat, np.concatenate([np.ravel(x) for x in leaves]) if leaves else [])
        back = unravel(flat)
        assert jax.tree.structure(back) == jax.tree.structure(tree)
        assert jax.tree.map(jnp.result_type, back) == jax.tree.map(jnp.result_type, tree)
        assert all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(back), leaves))
        assert unravel == ravel_pytree(tree)[1]         # so it can be a static argument
        with pytest.raises(ValueError, match=f"{flat.size} elements"):
            unravel(np.zeros(flat.size + 1, flat.dtype))


def test_dtypes_of_vectors():
    flat, unravel = ravel_pytree([1.0, np.ones(2, "float32")])
    assert [x.dtype for x in unravel(flat.astype("complex64"))] == ["complex64"] * 2      # all leaves have the vector's
    with pytest.raises(TypeError, match=r"dtype complex64, but expected dtype float32"):
        ravel_pytree([1, 2.0])[1](np.zeros(2, "complex64"))
    for leaf in "text", jax.random.key(0):
        with pytest.raises(TypeError, match="ravel_pytree"):
            ravel_pytree([leaf])


def test_in_transformations():
    tree = {"a": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)}
    def back(v):
        return ravel_pytree(tree)[1](v)["a"].sum()
    np.testing.assert_array_equal(jax.grad(back)(jnp.ones(3)), [1, 1, 0])
    found = jax.jit(jax.vmap(lambda x: ravel_pytree({"a": x, "b": x[0]})[0]))(jnp.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal(found, [[0, 1, 0], [2, 3, 2]])
