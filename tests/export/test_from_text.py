"""StableHLO text as a function: what lowering wrote gives what the function gives; wrong texts say where."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import NamedSharding, PartitionSpec as P


def two_results(x, y):
    return {"sum": x + y, "rows": jnp.tanh(x).sum(1)}


X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize(("fun", "args"), [
    (lambda x: jnp.sin(x) @ x.T, (X,)),
    (two_results, (X, X[:1] * 2)),
    (lambda x: jax.lax.scan(lambda c, r: (c + r, c), x[0], x), (X,)),
    (lambda x: x.astype("bfloat16"), (X,)),
    (lambda x: x > 0, (X,)),
    (lambda x: x + 1j, (X,)),
])
def test_a_text_gives_what_its_function_gives(fun, args):
    loaded = jax.load_text(jax.jit(fun).lower(*args).as_text())
    wanted = jax.tree.leaves(fun(*map(jnp.asarray, args)))
    for got, want in zip(jax.tree.leaves(loaded(*args)), wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got, "complex64"), np.asarray(want, "complex64"), rtol=1e-6)


def test_an_edited_text_within_another_function():
    text = jax.jit(lambda x: x * 3 + 1).lower(X).as_text().replace("stablehlo.add", "stablehlo.subtract")
    loaded = jax.load_text(text)
    np.testing.assert_allclose(jax.jit(lambda x: loaded(x) * 2)(X), (X * 3 - 1) * 2, rtol=1e-6)


def test_shardings_are_those_of_the_text():
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = jax.device_put(np.ones((8, 4), "float32"), NamedSharding(mesh, P("a", "b")))
    loaded = jax.load_text(jax.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P("b"))).lower(x).as_text())
    y = loaded(x)
    assert y.sharding.is_equivalent_to(NamedSharding(mesh, P("b")), 2) and (y == 2).all()


GOOD = "func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {\n  return %arg0 : tensor<3xf32>\n}"


@pytest.mark.quick
@pytest.mark.parametrize(("text", "error", "words"), [
    (GOOD.replace("return %arg0", "return %arg1"), ValueError, "line 2, column 10"),
    (GOOD.replace("return %arg0", "stablehlo.nothing %arg0"), ValueError, "line 2, column 3"),
    (GOOD.replace("@main", "@other"), ValueError, "no public function @main"),
    (GOOD.replace("tensor<3xf32>", "tensor<?xf32>"), NotImplementedError, r"argument 0 is of type tensor<\?xf32>"),
    (3, TypeError, "as a string, got int"),
])
def test_a_wrong_text_says_where(text, error, words):
    with pytest.raises(error, match="load_text.*" + words):
        jax.load_text(text)


@pytest.mark.quick
def test_a_text_that_calls_python_is_refused():
    def fun(x):
        jax.debug.print("{}", x)
        return x
    with pytest.raises(NotImplementedError, match="calls Python"):
        jax.load_text(jax.jit(fun).lower(X).as_text())


@pytest.mark.quick
@pytest.mark.parametrize(("args", "error", "words"), [
    ((), TypeError, "takes 1 arrays"), ((np.ones(4, "float32"),), ValueError, "Shape mismatch"),
    ((np.ones(3, "int32"),), ValueError, "Dtype mismatch"),
])
def test_arguments_are_those_of_main(args, error, words):
    with pytest.raises(error, match=words):
        jax.load_text(GOOD)(*args)
