"""ShapeDtypeStruct, and eval_shape, which gives those of results."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

S = jax.ShapeDtypeStruct
X = S((2, 3), jnp.float32)


def test_eval_shape_and_make_jaxpr():
    assert jax.eval_shape(lambda x, y={"a": 1}: (x @ x.T, y), X) == (
        S((2, 2), jnp.float32), {"a": S((), jnp.int32, weak_type=True)})
    assert jax.eval_shape(lambda x: (S((3,), "int8"), x), X) == (S((3,), jnp.int8), S(X.shape, X.dtype))
    jaxpr, shape = jax.make_jaxpr(lambda x, n: {"a": x * n}, static_argnums=1, return_shape=True)(2.0, 3)
    assert [e.primitive.name for e in jaxpr.eqns] == ["mul"] and "mul" in str(jaxpr)
    assert shape == {"a": S((), jnp.float32, weak_type=True)}
    for bad in (lambda: jax.eval_shape(lambda x: x, "s"), lambda: jax.make_jaxpr(lambda x: x)("s"),
                lambda: jax.jit(lambda x: x).lower(object()), lambda: jax.eval_shape(lambda x: "s", 1.0)):
        with pytest.raises(TypeError, match="not a valid JAX type"):
            bad()


def test_shape_dtype_struct():
    s = S((2,), jnp.float32)
    assert repr(s) == "ShapeDtypeStruct(shape=(2,), dtype=float32)" and (s.ndim, s.size, len(s)) == (1, 2, 2)
    assert (
        s == S([2], "float32") and hash(s) == hash(S((2,), np.float32)) and s.update(shape=(3,)).shape == (3,)
    )
    assert s != S((2,), jnp.int32)
    in_blocks = S(((3,), (2, 3)), jnp.float32)
    assert (
        in_blocks.shape == ((3,), (2, 3))
        and repr(in_blocks) == "ShapeDtypeStruct(shape=((3,), (2, 3)), dtype=float32)"
    )
    symbolic = S(("N", 2), jnp.float32)
    assert symbolic.shape == ("N", 2) and symbolic.ndim == 2 and symbolic == S(["N", 2], "float32")
    for apart in (in_blocks, symbolic):
        with pytest.raises(TypeError, match="shape"):
            jax.eval_shape(jnp.sin, apart)
    with pytest.raises(TypeError):
        len(S((), jnp.int8))
    with pytest.raises(ValueError, match="dtype"):
        S((2,), None)


def test_what_gives_types_alone_has_a_shape_and_does_not_run():
    f = lambda: jax.ShapeDtypeStruct((2,), jnp.float32)
    assert jax.eval_shape(f) == f()
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(f)()


def test_eval_shape_and_jit_with_other_options_share_a_trace():
    """So what a function makes anew each time, as the structure of its result, is one for both."""
    traced = []

    def f(x):
        traced.append(x)
        return x * 1.375
    shape = jax.eval_shape(f, jax.ShapeDtypeStruct((3,), jnp.float32))
    assert jax.jit(f)(jnp.ones(3)).shape == jax.jit(f, donate_argnums=0)(jnp.ones(3)).shape == shape.shape
    assert len(traced) == 1
    jax.jit(f).clear_cache()
    jax.jit(f)(jnp.ones(3))
    assert len(traced) == 2


def test_a_type_of_64_bits_stays_one():
    """Checkpoints ask for host arrays by it; programs take what arrays have."""
    for dtype in (np.int64, "float64", float, int, jnp.float64, np.dtype("complex128")):
        told = jax.ShapeDtypeStruct((2,), dtype)
        assert (
            told.dtype == np.dtype(dtype)
            and told.dtype.itemsize > 4
            and told.update(shape=(3,)).dtype == told.dtype
        )
        narrow = jax.dtypes.canonicalize_dtype(dtype)
        assert (
            jax.eval_shape(lambda x: x, told).dtype
            == jnp.zeros_like(told).dtype
            == jnp.result_type(told)
            == narrow
        )
        assert jax.jit(lambda x: x).lower(told).compile()(jnp.zeros(2, narrow)).dtype == narrow
        assert jax.make_jaxpr(lambda x: x)(told).in_avals[0].dtype == narrow and told.size == 2


def test_a_sharding_of_more_dimensions_is_refused():
    sharding = jax.NamedSharding(jax.make_mesh((1, 1), ("x", "y"), devices=jax.devices()[:1]), jax.P("x", "y"))
    assert S((2, 3), jnp.float32, sharding=sharding).sharding == sharding
    for make in (lambda: S((2,), jnp.float32, sharding=sharding),
                 lambda: S((2, 3), jnp.float32, sharding=sharding).update(shape=(2,))):
        with pytest.raises(ValueError, match="rank at least 2"):
            make()
