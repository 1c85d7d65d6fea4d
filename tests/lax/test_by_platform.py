"""platform_dependent: the function of the platform; composite: an operation that a compiler may know by its
name."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X = np.arange(3, dtype=np.float32)


def chosen(x):
    return lax.platform_dependent(x, cpu=lambda x: jnp.sin(x), tpu=lambda x: jnp.cos(x),
                                  default=lambda x: jnp.exp(x))


def text(f, *args, platform="cpu"):
    return jax.jit(f).trace(*args).lower(lowering_platforms=(platform,)).as_text()


def test_the_platform_chooses_when_a_program_is_lowered():
    for platform, op in ("cpu", "sine"), ("tpu", "cosine"), ("cuda", "exponential"), ("rocm", "exponential"):
        written = text(chosen, X, platform=platform)
        assert [o for o in ("sine", "cosine", "exponential") if f"stablehlo.{o} " in written] == [op]
    traced = jax.make_jaxpr(chosen)(X)
    assert all(f" {op} " in str(traced) for op in ("sin", "cos", "exp"))
    same(chosen(X), np.sin(X))


def test_a_program_lowered_for_several_platforms():
    lowered = jax.jit(chosen, donate_argnums=0).trace(X).lower(lowering_platforms=("tpu", "cpu", "tpu"))
    text = lowered.as_text()
    assert '%arg0: tensor<i32> {jax.global_constant = "_platform_index"}, %arg1: tensor<3xf32> {tf.al' in text
    assert text.index("stablehlo.cosine") < text.index("stablehlo.sine") and text.count("stablehlo.case") == 1
    assert "stablehlo.case" in str(lowered.compiler_ir())
    alike = jax.jit(jnp.sin).trace(X).lower(lowering_platforms=("cpu", "cuda")).as_text()
    assert "_platform_index" in alike and "stablehlo.case" not in alike
    mesh = jax.make_mesh((2,), ("i",))
    placed = jax.device_put(np.ones(4, np.float32), jax.NamedSharding(mesh, jax.P("i")))
    assert "%arg1: tensor<4xf32> {sdy.sharding = " in jax.jit(chosen).trace(placed).lower(
        lowering_platforms=("cpu", "tpu")).as_text()
    with pytest.raises(ValueError, match="was lowered for tpu, cpu: to compile it, lower it for one of them"):
        lowered.compile()


def test_it_is_transformed_before_it_is_chosen():
    def loss(x, y):
        return (chosen(x * y) * lax.platform_dependent(y, default=lambda y: y)).sum()

    def reference(x, y):
        return (jnp.sin(x * y) * y).sum()
    for gradient in jax.grad(loss), jax.jit(jax.grad(jax.checkpoint(loss))), jax.vmap(
        jax.grad(loss), (0, None)):
        same(gradient(X, 2.0), jax.grad(reference)(X, 2.0))
    same(jax.jvp(jax.jit(chosen), (X,), (X,))[1], np.cos(X) * X)
    step = jax.jit(jax.grad(lambda x: lax.scan(lambda c, _: (chosen(c), None), x, None, length=2)[0].sum()))
    same(step(X), np.cos(np.sin(X)) * np.cos(X))
    assert "stablehlo.cosine" in text(jax.grad(lambda x: chosen(x).sum()), X)
    assert "stablehlo.sine" in text(jax.grad(lambda x: chosen(x).sum()), X, platform="tpu")


def test_functions_of_other_platforms_need_no_lowering_here():
    elsewhere = jax.extend.core.Primitive("only_on_tpu")
    elsewhere.def_abstract_eval(lambda x: x)
    same(lax.platform_dependent(X, tpu=lambda x: elsewhere.bind(x), default=lambda x: -x), -X)
    with pytest.raises(NotImplementedError,
                       match="no function for platform cpu, only for tpu, cuda: give one, cpu="):
        lax.platform_dependent(X, tpu=lambda x: x, cuda=lambda x: x)


def test_functions_of_platforms_that_do_not_fit():
    with pytest.raises(NotImplementedError, match="give a function for each platform"):
        lax.platform_dependent(X)
    with pytest.raises(ValueError, match="Use 'cuda' or 'rocm'"):
        lax.platform_dependent(X, gpu=lambda x: x)
    with pytest.raises(TypeError,
                       match=r"cpu= has type float32\[3\] but the corresponding output of default= has type float32\[\]"):
        lax.platform_dependent(X, cpu=lambda x: x, default=lambda x: x.sum())
    with pytest.raises(TypeError, match="tpu= must be a function, got 3"):
        lax.platform_dependent(X, cpu=lambda x: x, tpu=3)


# --- composite ----------------------------------------------------------------------------------------------

def two(a, b, *, k, scale=None):
    return a + b, {"m": a * b * k}


def test_a_composite_is_one_operation():
    op = lax.composite(two, "my.two", version=3)
    written = text(lambda a: op(a, a, k=2), X)
    assert (
        '= stablehlo.composite "my.two" %arg0, %arg0 {composite_attributes = {k = 2 : i64}, decomposition = @my_two, '
            'version = 3 : i32}') in written
    assert written.count("func.func private @my_two(") == 1
    same(op(X, X, k=2), (X + X, {"m": X * X * 2}))
    same(jax.jit(lambda a: op(a, a, k=2, scale="wide"))(X)[1], {"m": X * X * 2})


@pytest.mark.parametrize(("value", "written"), [
    (True, "true"), (1.5, "1.5 : f64"), ('a"b', '"a\\22b"'), ((1, "x"), '[1 : i64, "x"]'), ([], "[]"),
    (np.int8(3), "3 : i8"), (np.arange(2, dtype=np.int32), "dense<[0, 1]> : tensor<2xi32>"),
    ({"q": 1}, "{q = 1 : i64}"),
    (np.dtype(np.float32), "f32")])
def test_attributes(value, written):
    op = lax.composite(lambda x, **_: -x, "my.op")
    assert f"composite_attributes = {{a = {written}}}, decomposition" in text(
        lambda x: op(x, a=value, b=None), X)


def test_a_composite_is_transformed_as_its_decomposition():
    op = lax.composite(lambda x, *, power: x ** power, "my.power")
    same(jax.vmap(lambda x: op(x, power=2))(X), X ** 2)
    same(jax.jit(jax.vmap(jax.grad(lambda x: op(x, power=3))))(X), 3 * X ** 2)
    same(jax.hessian(lambda x: op(x, power=3).sum())(X), np.diag(6 * X))
    same(jax.jvp(lambda x: op(x, power=3), (X,), (X,))[1], 3 * X ** 3)
    same(jax.linear_transpose(lax.composite(lambda x: 2 * x, "my.double"), X)(X), (2 * X,))
    same(jax.jit(lambda x: lax.scan(lambda c, _: (op(c, power=2), None), x, None, length=2)[0])(X), X ** 4)


def test_composites_that_do_not_fit():
    op = lax.composite(lambda x, **_: x, "my.op")
    same(lax.composite(lambda x: x + jnp.asarray(X), "my.op")(X), 2 * X)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="closes over a traced value"):
        jax.jit(lambda y: lax.composite(lambda x: x + y, "my.op")(X))(X)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="attribute k is traced"):
        jax.jit(lambda y: op(X, k=y))(1.0)
    with pytest.raises(TypeError, match="my.op: attribute k: .* cannot be an attribute"):
        jax.jit(lambda x: op(x, k=object()))(X)
    for name in "op", "1.op", "my.", 3:
        nameless = lax.composite(lambda x: x + 1, name)
        same(nameless(X), X + 1)        # the name is that of an operation in a program
        with pytest.raises(ValueError, match="name must have a name space"):
            jax.jit(nameless)(X)
    with pytest.raises(TypeError, match="decomposition must be a function"):
        lax.composite("my.op", lambda x: x)
