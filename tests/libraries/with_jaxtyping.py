"""jaxtyping: annotations of shapes and dtypes, checked by beartype, outside of and inside transformations."""
# ruff: noqa: F722 - "rows inner" are the names of axes
import jax
import jax.numpy as jnp
import pytest
from beartype import beartype
from jaxtyping import Array, Float, Float32, Int, PyTree, Scalar, TypeCheckError, jaxtyped


@jaxtyped(typechecker=beartype)
def product(x: Float[Array, "rows inner"], y: Float[Array, "inner columns"]) -> Float[Array, "rows columns"]:
    return x @ y


def test_shapes_that_agree_pass_and_others_are_refused():
    assert product(jnp.ones((2, 3)), jnp.ones((3, 4))).shape == (2, 4)
    for bad in (jnp.ones((4, 3)), jnp.ones(3), jnp.ones((3, 4), int)):
        with pytest.raises(TypeCheckError):
            product(jnp.ones((2, 3)), bad)


def test_tracers_are_checked():
    assert jax.jit(product)(jnp.ones((2, 3)), jnp.ones((3, 4))).shape == (2, 4)
    assert jax.vmap(product)(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape == (5, 2, 4)
    assert jax.grad(lambda x: product(x, x).sum())(jnp.ones((2, 2))).shape == (2, 2)
    with pytest.raises(TypeCheckError):
        jax.jit(product)(jnp.ones((2, 3)), jnp.ones((2, 3)))


def test_dtypes_keys_trees():
    assert isinstance(jnp.float32(1), Float32[Array, ""]) and isinstance(jnp.array(1.), Scalar)
    assert isinstance(jnp.arange(3), Int[Array, "n"]) and not isinstance(jnp.ones(3), Int[Array, "n"])
    assert isinstance(jnp.ones(3, jnp.bfloat16), Float[Array, "3"])
    assert isinstance({"a": jnp.ones(2)}, PyTree[Float[Array, "2"]])
    assert not isinstance({"a": jnp.ones(3)}, PyTree[Float[Array, "2"]])
    assert isinstance(jax.ShapeDtypeStruct((2,), jnp.float32), Float[jax.ShapeDtypeStruct, "2"])
