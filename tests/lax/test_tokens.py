"""Values as traces see them, shapes of convolutions, polynomials, and the exchange of ragged rows."""
import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

NHWC = ("NHWC", "HWIO", "NHWC")


def test_polynomial():
    x = np.linspace(-1, 1, 5).astype(np.float32)
    for coeffs in ([], [2.0], [1, 5, 2], list(np.arange(12.0)), [np.float32([1, 2, 3, 4, 5]), 2.0]):
        for unroll in (None, 1):
            expected = sum((c * x**i for i, c in enumerate(coeffs)), np.zeros(5))
            np.testing.assert_allclose(lax.polynomial(x, coeffs, unroll=unroll), expected, 1e-5)
    slope = jax.vmap(jax.grad(lambda x: lax.polynomial(x, np.arange(12.0), unroll=3)))(x)
    np.testing.assert_allclose(slope, sum(i * i * x**(i - 1) for i in range(1, 12)), 1e-4)
    assert lax.polynomial(jnp.arange(3), [1.5, 2.0]).tolist() == [1, 3, 5]      # in the dtype of x
    assert lax.polynomial(1.0, [jnp.ones(2), 1.0]).tolist() == [2, 2]
    for bad in (lambda: lax.polynomial(True, [1]), lambda: lax.polynomial(jnp.ones(3), [jnp.ones((2, 3))])):
        with pytest.raises(TypeError, match="polynomial"):
            bad()


def test_values_of_traces():
    assert [lax.dtype(v) for v in (1, np.float64(1), "float64", float, np.int8,
                                   jnp.zeros(2, "bfloat16"))] == [
        "int32", "float32", "float32", "float32", "int8", "bfloat16"]
    for value, error in ((None, ValueError), ([1], TypeError)):
        with pytest.raises(error):
            lax.dtype(value)
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3] and lax.shape_as_value(()).shape == (0,)
    assert str(jax.make_jaxpr(lambda: lax.stage(2.0))()).count("copy") == 1
    with pytest.raises(TypeError, match="stage"):
        lax.stage([1])
    f = jax.jit(jax.grad(lambda x: (lax.dce_sink({"a": x * 2}), x * x)[1]))
    assert f(3.0) == 6 and "dce_sink" in str(jax.make_jaxpr(f)(3.0))
    with pytest.raises(NotImplementedError, match="prevent_mlir_dce"):
        lax.dce_sink(1.0, prevent_mlir_dce=True)


def test_tokens():
    program = jax.make_jaxpr(lambda: lax.after_all(lax.create_token(), lax.create_token()))()
    assert [eqn.primitive for eqn in program.eqns] == [lax.create_token_p] * 2 + [lax.after_all_p]
    assert "stablehlo.after_all" in jax.jit(lambda: lax.after_all(lax.create_token())).lower().as_text()
    with pytest.raises(TypeError, match="no token"):
        lax.after_all(1.0)


def test_shapes_of_convolutions():
    x, k = np.zeros((1, 8, 7, 2), np.float32), np.zeros((3, 2, 2, 5), np.float32)
    for padding in ("SAME", "VALID", [(1, 0), (2, 1)]):
        expected = lax.conv_general_dilated(x, k, (1, 2), padding, dimension_numbers=NHWC).shape
        assert lax.conv_general_shape_tuple(x.shape, k.shape, (1, 2), padding, NHWC) == expected
        expected = lax.conv_transpose(x, k, (1, 2), padding, dimension_numbers=NHWC).shape
        assert lax.conv_transpose_shape_tuple(x.shape, k.shape, (1, 2), padding, NHWC) == expected
    assert [np.transpose(x, order).shape
            for x, order in zip((x, k), lax.conv_general_permutations(NHWC))] == [
        (1, 2, 8, 7), (5, 2, 3, 2)]
    for args in (((4, 2, 8), (3, 2, 3, 3), (1, 2), "SAME"), ((4, 2, 8, 8), (3, 2, 3, 3), (1, 2), [(0, 0)])):
        with pytest.raises(TypeError, match="spatial axes"):
            lax.conv_shape_tuple(*args)


def test_broadcast_like_and_unstack():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert lax.broadcast_like(1, x).tolist() == [[1] * 3] * 2
    assert [part.tolist() for part in lax.unstack(x, -1)] == x.T.tolist() and lax.unstack(x[:0]) == ()
    for bad in (lambda: lax.broadcast_like(x, x[0]), lambda: lax.broadcast_like(x[:, 0], x),
                lambda: lax.unstack(x, 2)):
        with pytest.raises(ValueError):
            bad()


def test_a_python_number_has_its_default_dtype():
    """Beside an array of another it is refused, so that none is rounded or wraps around without a word."""
    for x, y, dtype in ((jnp.ones(2), 2.5, "float32"), (3, jnp.ones(2, int), "int32"),
                        (1j, jnp.ones(2, complex), "complex64")):
        assert lax.add(x, y).dtype == lax.mul(y, x).dtype == dtype
    assert lax.clamp(0, jnp.arange(3), 1).tolist() == [0, 1, 1]
    for x, y in ((jnp.ones(2, int), 1.5), (1, 1.5), (jnp.ones(2), np.float16(1)), (jnp.ones(2), 2),
                 (jnp.int8(1), 300),
                 (jnp.uint8(1), -1), (jnp.bfloat16(1), 2.0), (jnp.ones(2, complex), 1.0)):
        for f in (lax.add, lax.max, lax.eq, lambda x, y: lax.clamp(y, x, y)):
            with pytest.raises(TypeError, match="dtype"):
                f(x, y)


def test_products_of_another_dtype():
    assert lax.mul(np.int8([100]), np.int8([100]), out_dtype="int32").tolist() == [10000]
    assert lax.mul(jnp.ones(2, "bfloat16"), jnp.bfloat16(3), out_dtype="float32").dtype == "float32"


def test_ragged_all_to_all():
    rows, starts, sizes, places, taken = [np.array(v, np.int32) for v in (
        [[1, 2, 2], [3, 4, 0]], [[0, 1], [0, 1]], [[1, 2], [1, 1]], [[0, 0], [1, 2]], [[1, 1], [2, 1]])]

    def exchange(x, *where, **options):
        return lax.ragged_all_to_all(x, jnp.full(4, -1, x.dtype), *where, axis_name="i", **options)
    mapped = jax.vmap(exchange, axis_name="i")
    assert mapped(rows, starts, sizes, places, taken).tolist() == [[1, 3, -1, -1], [2, 2, 4, -1]]
    mesh = auto_mesh((2,), ("i",), devices=jax.devices()[:2])
    spec = jax.P("i")
    parts = jax.shard_map(lambda *xs: exchange(*[x[0] for x in xs])[None], mesh=mesh, in_specs=spec,
                          out_specs=spec)
    assert jax.jit(parts)(rows, starts, sizes, places, taken).tolist() == [[1, 3, -1, -1], [2, 2, 4, -1]]
    grad = jax.grad(
        lambda x: (mapped(x, starts, sizes, places, taken) * np.float32([[1, 2, 9, 9], [3, 4, 5, 9]])).sum())
    assert grad(rows.astype(np.float32)).tolist() == [[1, 3, 4], [2, 5, 0]]
    for bad, error in ((([0.5, 0], [1, 1]), ValueError), (([0], [1, 1]), ValueError),
                       (([[0], [0]], [[1], [1]]), ValueError)):
        starts, sizes = [jnp.stack([jnp.array(v)] * 2) for v in bad]
        with pytest.raises(error, match="ragged_all_to_all"):
            mapped(rows, starts, sizes, starts, sizes)
