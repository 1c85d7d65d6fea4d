"""Derivatives: grad, jvp, vjp, linearize, linear_transpose, Jacobians, custom rules; oracles are mathematics
and finite differences.
"""
import functools

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

float0 = jax.dtypes.float0
X = np.array([0.3, -0.7, 1.1], np.float32)


def f(x):
    return jnp.sin(x) * x


def df(x):
    return np.cos(x) * x + np.sin(x)


def d2f(x):
    return 2 * np.cos(x) - x * np.sin(x)


def d3f(x):
    return -3 * np.sin(x) - x * np.cos(x)


def total(fun):
    return lambda x: jnp.sum(fun(x))


# --- composition --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("derivative, want", [
    (jax.grad(f), df), (jax.grad(jax.grad(f)), d2f), (jax.grad(jax.grad(jax.grad(f))), d3f),
    (jax.jit(jax.grad(jax.jit(f))), df), (jax.grad(jax.jit(jax.grad(jax.jit(f)))), d2f), (jax.jacfwd(f), df),
    (jax.jacrev(f), df), (jax.hessian(f), d2f), (jax.jacfwd(jax.jacfwd(jax.jacrev(f))), d3f),
    (lambda x: jax.jvp(f, (x,), (1.0,))[1], df), (lambda x: jax.jvp(jax.grad(f), (x,), (1.0,))[1], d2f),
    (jax.grad(lambda x: jax.jvp(f, (x,), (1.0,))[1]), d2f), (lambda x: jax.vjp(f, x)[1](1.0)[0], df),
    (jax.grad(lambda x: jax.vjp(f, x)[1](1.0)[0]), d2f), (lambda x: jax.linearize(f, x)[1](1.0), df),
    (jax.grad(lambda x: jax.linearize(f, x)[1](1.0)), d2f),
    (jax.jit(lambda x: jax.vjp(jax.jit(f), x)[1](1.0)[0]), df),
])
def test_derivatives_compose(derivative, want):
    x = 0.7
    np.testing.assert_allclose(derivative(x), want(x), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(derivative)(X), want(X), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(derivative))(X), want(X), rtol=1e-5)


def test_derivatives_of_mapped_functions():
    same(jax.grad(total(jax.vmap(jax.grad(f))))(X), d2f(X))
    same(jax.hessian(total(jax.vmap(f)))(X), np.diag(d2f(X)))
    same(jax.jacfwd(jax.vmap(f))(X), np.diag(df(X)))
    same(jax.vmap(jax.hessian(lambda x: jnp.prod(x)))(np.array([[2.0, 3.0], [4.0, 5.0]], np.float32)),
         np.tile([[0.0, 1.0], [1.0, 0.0]], (2, 1, 1)))


def test_arguments_used_twice_or_passed_on():
    g = jax.jit(lambda x, y: x * y)
    same(jax.grad(lambda x: g(x, x))(3.0), 6.0)
    same(jax.grad(lambda x: jax.jit(lambda a: (a, a))(x)[0] * x)(3.0), 6.0)
    same(jax.grad(lambda x: jax.jit(lambda a, b: (b, a))(x, 2.0 * x)[0])(1.0), 2.0)


# --- grad and value_and_grad --------------------------------------------------------------------------------

@pytest.mark.parametrize("argnums, want", [(0, np.full(3, 6.0)), (1, X.sum() * 3), (-1, X.sum() * 3),
                                           ((0, 1), (np.full(3, 6.0), X.sum() * 3)), ([1], (X.sum() * 3,)),
                                           ((1, 0), (X.sum() * 3, np.full(3, 6.0)))])
def test_argnums(argnums, want):
    def loss(x, y, *, k=1.0):
        return (x * y * k).sum()
    same(jax.grad(loss, argnums)(X, 2.0, k=3.0), want)
    same(jax.value_and_grad(loss, argnums)(X, 2.0, k=3.0), (X.sum() * 6, want))


def test_pytrees():
    p = {"w": np.arange(4.0, dtype=np.float32).reshape(2, 2), "b": (np.float32(3.0), None)}

    def loss(p):
        return (p["w"] ** 2).sum() * p["b"][0]
    same(jax.grad(loss)(p), {"w": 6 * p["w"], "b": (14.0, None)})
    h = jax.hessian(loss)(p)
    same(h["w"]["w"], 6 * np.eye(4).reshape(2, 2, 2, 2))
    same(h["w"]["b"][0], 2 * p["w"])
    same(h["b"][0]["w"], 2 * p["w"])


def test_aux():
    def loss(x):
        return x ** 2, {"a": x + 1, "name": 3}
    same(jax.grad(loss, has_aux=True)(2.0), (4.0, {"a": 3.0, "name": 3}))
    same(jax.jit(jax.value_and_grad(loss, has_aux=True))(2.0), ((4.0, {"a": 3.0, "name": 3}), 4.0))
    same(jax.jacrev(lambda x: (x * 2, x), has_aux=True)(X), (2 * np.eye(3), X))
    same(jax.jacfwd(lambda x: (x * 2, x.sum()), has_aux=True)(X), (2 * np.eye(3), X.sum()))
    same(jax.hessian(lambda x: ((x ** 3).sum(), x), has_aux=True)(X), (np.diag(6 * X), X))
    same(jax.jvp(lambda x: (x * 2, x + 1), (2.0,), (1.0,), has_aux=True), (4.0, 2.0, 3.0))
    out, pullback, aux = jax.vjp(lambda x: (x * 2, x + 1), 2.0, has_aux=True)
    same((out, pullback(1.0), aux), (4.0, (2.0,), 3.0))
    same(jax.linearize(lambda x: (x * 2, x + 1), 2.0, has_aux=True)[2], 3.0)


def test_integers():
    g = jax.grad(lambda x, y: x * y, (0, 1), allow_int=True)(2.0, 3)
    assert float(g[0]) == 3 and g[1].dtype == float0
    assert jax.jit(jax.grad(lambda x, y: x * y, (0, 1), allow_int=True))(2.0, 3)[1].dtype == float0
    same(jax.grad(lambda x, i: x[i])(X, 1), np.array([0.0, 1.0, 0.0]))
    same(jax.grad(lambda x: (x > 0) * x)(2.0), 1.0)
    same(jax.grad(lambda x: x.astype(int).astype(float))(2.5), 0.0)
    same(jax.vjp(lambda x, i: x * i, 2.0, 3)[1](1.0)[0], 3.0)
    same(jax.vjp(lambda b, x: jnp.where(b, x, 0.0), True, 2.0)[1](1.0)[1], 1.0)
    same(jax.vjp(lambda x: x > 0, 1.0)[1](np.zeros((), float0)), (0.0,))
    out, tangent = jax.jvp(lambda x, i: (x * i, i), (2.0, 3), (1.0, np.zeros((), float0)))
    assert float(tangent[0]) == 3 and tangent[1].dtype == float0
    assert jax.jacrev(lambda x: x * 1.0, allow_int=True)(np.arange(2)).shape == (2, 2)


def test_complex():
    same(jax.grad(lambda z: z ** 3, holomorphic=True)(1 + 2j), 3 * (1 + 2j) ** 2)
    assert [jax.grad(jnp.sin, holomorphic=True)(z).weak_type for z in (1j, jnp.complex64(1j))] == [
        True, False]
    same(jax.grad(lambda z: jnp.real(z * jnp.conj(z)))(1 + 2j), 2 - 4j)
    z = np.array([1 + 2j, 3j], np.complex64)
    for jac in (jax.jacfwd, jax.jacrev):
        same(jac(lambda z: z ** 2, holomorphic=True)(z), np.diag(2 * z))
    same(jax.hessian(lambda z: z ** 3, holomorphic=True)(1j), 6j)


@pytest.mark.parametrize("x, dtype, weak", [(2.0, "float32", True), (np.float32(2), "float32", False),
                                            (np.array(2, "float16"), "float16", False)])
def test_a_gradient_has_the_type_of_its_argument(x, dtype, weak):
    for g in (jax.grad(f)(x), jax.jit(jax.grad(f))(x), jax.grad(lambda x: 3.0)(x), jax.grad(lambda x: x)(x),
              jax.grad(lambda x: x * np.float32(3))(x)):
        assert isinstance(g, jax.Array) and (g.dtype, g.weak_type) == (dtype, weak)
    program = jax.make_jaxpr(jax.grad(lambda x: x * x))(x)     # the cotangent that it starts from has it, too
    assert {v.aval.weak_type for e in program.eqns for v in (*e.invars, *e.outvars)} == {weak}
    assert jax.jvp(jax.jit(jax.grad(lambda x: x * x)), (x,), (x,))[0].weak_type is weak
    with jax.enable_x64(True):
        assert jax.typeof(jax.grad(lambda x: x * x)(g)).dtype == dtype


@pytest.mark.parametrize("out, weak", [(2.0, True), (3, True), (jnp.float32(2), False), (jnp.ones(2), False)])
@pytest.mark.parametrize("x", [1.0, jnp.float32(1)])
def test_zeros_have_the_weak_type_of_what_they_are_the_derivative_of(x, out, weak):
    assert jax.jacfwd(lambda x: out)(x).weak_type is weak
    moved = jax.linearize(lambda x: out, x)[1](x)
    assert moved.dtype == float0 if isinstance(out, int) else moved.weak_type is weak
    assert jax.hessian(lambda x: 2.0)(x).weak_type is jax.typeof(x).weak_type
    assert jax.grad(lambda z: jnp.float32(2))(x * 1j).weak_type is jax.typeof(x).weak_type


def test_bfloat16():
    x = jnp.arange(3, dtype=jnp.bfloat16)
    g = jax.grad(lambda x: (x.astype(jnp.float32) ** 2).sum())(x)
    assert g.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(g, np.float32), [0, 2, 4])


def test_python_control_flow_runs_on_values():
    def g(x):
        n = 0
        while x < 10:
            x, n = x * x, n + 1
        return x * 3 if x > 20 else x + n * float(x)
    same([jax.grad(g)(5.0), jax.jvp(g, (5.0,), (1.0,))[1], jax.grad(jax.grad(g))(5.0)], [30.0, 30.0, 6.0])
    same(jax.grad(lambda x: x * [1.0, 2.0, 3.0][x.astype(int)] * x.item())(1.0), 2.0)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(jax.grad(g))(2.0)
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.grad(lambda x: x * np.sin(x))(1.0)


def test_arguments_that_are_not_differentiated_may_be_anything():
    same(jax.grad(lambda x, name, *, fn: fn(x) if name == "a" else 0.0)(1.0, "a", fn=jnp.sin), np.cos(1.0))


def test_stop_gradient():
    stop = lax.stop_gradient
    same(jax.grad(lambda x: x * stop(x))(3.0), 3.0)
    same(jax.jvp(stop, (2.0,), (1.0,)), (2.0, 0.0))
    same(jax.hessian(lambda x: stop(x) * x * x)(2.0), 4.0)
    same(stop({"a": 1.0, "b": X}), {"a": 1.0, "b": X})


@pytest.mark.parametrize("call, words", [
    (lambda: jax.grad(lambda x: x)(1), "requires real- or complex-valued inputs.*int32 for x"),
    (lambda: jax.grad(lambda p: p["a"])({"a": 1.0, "b": 2}), r"p\['b'\]"),
    (lambda: jax.grad(lambda x: x)("s"), "Argument 's' of type <class 'str'> is not a valid JAX type"),
    (lambda: jax.grad(lambda x: x)(X), r"scalar-output functions. Output had shape: \(3,\)"),
    (lambda: jax.grad(lambda x: (x, x))(1.0), "scalar-output functions"),
    (lambda: jax.grad(lambda x: None)(1.0), "scalar-output functions"),
    (lambda: jax.grad(lambda x: x * 1j)(1.0), "real-valued outputs.*complex64"),
    (lambda: jax.grad(lambda x: x.astype(int))(1.0), "real-valued outputs.*int32"),
    (lambda: jax.grad(lambda x: x, holomorphic=True)(1.0), "holomorphic=True requires inputs with complex"),
    (lambda: jax.grad(lambda x, y: x, 1)(1.0), "at least 2 positional arguments"),
    (lambda: jax.grad(lambda x: x)(x=1.0), "at least 1 positional"),
    (lambda: jax.grad(lambda x: x, "a")(1.0), "argnums must be an int"),
    (lambda: jax.grad(3), "callable"),
    (lambda: jax.grad(lambda x: x, has_aux=True)(1.0), "return a two-element tuple"),
    (lambda: jax.jacfwd(lambda x: x)(np.arange(3)), "jacfwd requires"),
    (lambda: jax.jacfwd(lambda x: x)(1j), "jacfwd requires real-valued inputs"),
    (lambda: jax.jacrev(lambda x: x.astype(int))(X), "jacrev requires real-valued outputs"),
])
def test_grad_errors(call, words):
    with pytest.raises(TypeError, match=words):
        call()


# --- jvp, vjp, linearize, linear_transpose ------------------------------------------------------------------

def test_vjp_of_pytrees():
    out, pullback = jax.vjp(lambda x, y: {"p": x * y, "q": x + y}, 2.0, 3.0)
    same((out, pullback({"p": 1.0, "q": 1.0})), ({"p": 6.0, "q": 5.0}, (4.0, 3.0)))


def test_the_pullback_is_a_pytree():
    _, pullback = jax.vjp(lambda x: jnp.sin(x) * 2, 2.0)
    want = 2 * np.cos(2.0)
    same(jax.jit(lambda p, ct: p(ct))(pullback, 1.0), (want,))
    same(jax.jit(lambda x: jax.vjp(lambda x: jnp.sin(x) * 2, x))(2.0)[1](1.0), (want,))
    same(jax.vmap(pullback)(X), (want * X,))
    same(jax.vmap(jax.linearize(jnp.sin, 2.0)[1])(X), np.cos(2.0) * X)


def test_fwd_and_bwd():
    forward, backward = jax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    out, residuals = forward(2.0, 3.0)
    same((out, backward(residuals, 1.0)), (6.0, (3.0, 2.0)))


def test_linear_transpose():
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    same(jax.linear_transpose(lambda x: a @ x,
                              jax.ShapeDtypeStruct((3,), jnp.float32))(np.ones(2, np.float32)),
         (a.sum(0),))
    same(jax.linear_transpose(lambda x, y: {"a": x + 2 * y}, X, X)({"a": X}), (X, 2 * X))
    same(jax.linear_transpose(lambda x: 2 * x, jnp.int32(1))(3), (6,))
    same(jax.linear_transpose(lambda x: jnp.zeros(2), 1.0)(np.ones(2, np.float32)), (0.0,))
    step = lambda c, y: (c * 2 + y, c + y)
    matrix = np.asarray(jax.jacfwd(lambda x: lax.scan(step, x[0], x[1:])[1])(np.zeros(4, np.float32)))
    same(jax.linear_transpose(lambda x: lax.scan(step, x[0], x[1:])[1], np.zeros(4, np.float32))(X),
         (X @ matrix,))


@pytest.mark.parametrize("jacobian, x, want", [
    (jax.jacfwd(lambda x: jnp.int32(3)), 1.0, np.int32(0)),
    (jax.jacfwd(lambda x: (x, x.astype(int))), X, (np.eye(3, dtype=np.float32), np.zeros((3, 3), np.int32))),
    (jax.jacrev(lambda n: n * 1.0, allow_int=True), np.arange(2), np.zeros((2, 2), np.int32)),
])
def test_jacobians_of_and_by_integers_are_zeros_of_their_type(jacobian, x, want):
    found = jacobian(x)
    same(found, want)
    assert jax.tree.map(lambda a: a.dtype, found) == jax.tree.map(lambda a: a.dtype, want)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jax.jvp(f, 1.0, 1.0), TypeError, "tuples or lists"),
    (lambda: jax.jvp(f, (1.0,), (1.0, 1.0)), TypeError, "tree structure"),
    (lambda: jax.jvp(f, ({"a": 1.0},), ({"b": 1.0},)), TypeError, "only primals has 'a'"),
    (lambda: jax.jvp(f, (X,), (X[:2],)), ValueError, r"shapes.*\(3,\).*\(2,\) for x"),
    (lambda: jax.jvp(f, (X,), (X.astype(np.float16),)), TypeError, "dtypes must be equal.*float16"),
    (lambda: jax.jvp(f, (1.0,), (1,)), TypeError, "dtypes must be equal.*int32"),
    (lambda: jax.jvp(f, (1,), (1,)), TypeError, "float0"),
    (lambda: jax.jvp(f, ("a",), (1.0,)), TypeError, "str"),
    (lambda: jax.vjp(f, X)[1](X[:2]), ValueError, r"float32\[2\].*float32\[3\]"),
    (lambda: jax.vjp(f, X)[1]((X,)), ValueError, "structure"),
    (lambda: jax.vjp(f, X)[1](X.astype(np.float16)), ValueError, r"float16\[3\], but expected float32\[3\]"),
    (lambda: jax.vjp(f, 1.0)[1](1), ValueError, r"int32\[\], but expected float32\[\]"),
    (lambda: jax.vjp(f, 1.0)[1](1.0, 1.0), TypeError, "single argument"),
    (lambda: jax.linearize(f, 1.0)[1](X), ValueError, "inconsistent"),
    (lambda: jax.linearize(f, 1.0)[1](1.0, 1.0), TypeError, "structure"),
    (lambda: jax.linear_transpose(lambda x: x * 2, X)(X[:2]), TypeError, "cotangent type"),
    (lambda: jax.grad(jnp.multiply, 2)(1.0, 1.0), TypeError, "requires at least 3 positional"),
    (lambda: jax.grad(jnp.multiply, (0, -3))(1.0, 1.0), ValueError, r"value -3 for len\(args\) == 2"),
    (lambda: jax.jacfwd(jnp.multiply, 2)(1.0, 1.0), ValueError, r"value 2 for len\(args\) == 2"),
    (lambda: jax.jacrev(jnp.multiply, -3)(1.0, 1.0), ValueError, r"value -3 for len\(args\) == 2"),
    (lambda: jax.linear_transpose(lambda x: x * x, 1.0)(1.0), TypeError, "not linear"),
    (lambda: jax.linear_transpose(jnp.sin, 1.0)(1.0), NotImplementedError,
     "Transpose rule .* for 'sin' not implemented"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- Jacobians ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("jac", [jax.jacfwd, jax.jacrev])
def test_a_compiled_jacobian_makes_its_basis_itself(jac):
    """It has no n x n array of ones and zeros to read, and 0 beside an infinite slope."""
    x = np.array([0, 1, 0, 4], np.float32)
    compiled = jax.jit(jac(jnp.sqrt)).lower(x).compile()
    np.testing.assert_array_equal(compiled(x), np.diag([np.inf, .5, np.inf, .25]))
    assert compiled.memory_analysis().argument_size_in_bytes == x.nbytes


def test_each_jacobian_has_its_own_name():      # suites have it in the names of tests
    assert [f.__name__ for f in (jax.jacfwd, jax.jacrev, jax.jacobian)] == ["jacfwd", "jacrev", "jacobian"]


@pytest.mark.parametrize("jac", [jax.jacfwd, jax.jacrev, jax.jacobian])
def test_jacobians(jac):
    def g(x, y):
        return {"a": x ** 2 * y, "b": [x.sum() * y]}
    want = {"a": np.diag(4 * X), "b": [np.full(3, 2.0)]}
    same(jac(g)(X, 2.0), want)
    both = jac(g, (0, 1))(X, 2.0)
    same((both["a"][1], both["b"][0][1]), (X ** 2, X.sum()))
    assert jac(lambda x: jnp.zeros((2, 0)) * x[0])(X).shape == (2, 0, 3)
    same(jac(lambda x: jnp.ones(2))(X), np.zeros((2, 3)))


def test_hessian_of_two_arguments():
    def g(x, y):
        return jnp.sum(jnp.sin(x) * y ** 2) + x[0] * y[1]
    (xx, xy), (yx, yy) = jax.jit(jax.hessian(jax.jit(g), (0, 1)))(X[:2], X[1:])
    x, y, e = X[:2], X[1:], np.array([[0, 1], [0, 0]])
    same((xx, xy, yx, yy), (np.diag(-np.sin(x) * y ** 2), np.diag(np.cos(x) * 2 * y) + e,
                            np.diag(np.cos(x) * 2 * y) + e.T, np.diag(2 * np.sin(x))))


# --- custom rules -------------------------------------------------------------------------------------------

def scaled_jvp(scale=10.0):
    """sin with the derivative `scale * x`."""
    @jax.custom_jvp
    def g(x):
        return jnp.sin(x)

    @g.defjvp
    def rule(primals, tangents):
        return g(*primals), tangents[0] * scale * primals[0]
    return g


def scaled_vjp(scale=10.0):
    @jax.custom_vjp
    def g(x):
        return jnp.sin(x)
    g.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * scale * x,))
    return g


@pytest.mark.parametrize("make", [scaled_jvp, scaled_vjp])
def test_custom_rules_are_used_everywhere(make):
    g = make()
    x = np.float32(0.5)
    same(g(x), np.sin(x))
    for h in (g, jax.jit(g), lambda x: jax.jit(g)(x), lambda x: lax.cond(x > 0, g, lambda x: x, x)):
        same(jax.grad(h)(x), 5.0)
        same(jax.jit(jax.grad(h))(x), 5.0)
        same(jax.vmap(jax.grad(h))(X[::2]), 10 * X[::2])
        same(jax.grad(total(jax.vmap(h)))(X[::2]), 10 * X[::2])
        same(jax.grad(jax.grad(h))(x), 10.0)
        same(jax.hessian(h)(x), 10.0)
    same(jax.jvp(jax.grad(g), (x,), (x,)), (5.0, 5.0))
    # in a loop, as written out
    loop = lambda x: lax.scan(lambda c, _: (g(c), c), x, None, length=2)[0]
    unrolled = lambda x: g(g(x))
    for derivative in (jax.grad, jax.hessian, lambda h: jax.vmap(jax.grad(h)),
                       lambda h: jax.grad(total(jax.vmap(h)))):
        point = X if derivative not in (jax.grad, jax.hessian) else x
        same(derivative(loop)(point), derivative(unrolled)(point))


def test_custom_jvp_forward():
    g = scaled_jvp()
    same(jax.jvp(g, (0.5,), (2.0,)), (np.sin(0.5), 10.0))
    same(jax.jit(lambda x: jax.jvp(g, (x,), (1.0,)))(0.5), (np.sin(0.5), 5.0))
    loop = lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, g(c[1])), (0, x))[1]
    same(jax.jvp(loop, (0.5,), (1.0,))[1], 5.0 * 10 * np.sin(0.5))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(scaled_vjp(), (0.5,), (1.0,))


def test_defjvps():
    @jax.custom_jvp
    def g(x, y):
        return x * y
    g.defjvps(lambda t, out, x, y: 7 * t, None)
    same(jax.grad(g, (0, 1))(2.0, 3.0), (7.0, 0.0))
    same(g(y=3.0, x=2.0), 6.0)


def test_defjvps_rules_of_what_is_constant_are_not_called():
    @jax.custom_jvp
    def g(x, y):
        return x * y["a"] + y["b"]
    g.defjvps(lambda t, out, x, y: t * y["a"], lambda t, out, x, y: t["a"] * x + t["b"])
    same(jax.grad(jax.grad(lambda y: g(2.0, {"a": y**2, "b": 1.0})))(3.0), 4.0)
    g.defjvps(lambda t, out, x, y: t * y["a"], lambda t, out, x, y: lax.igamma_grad_a(x, t["a"]))
    same(jax.hessian(lambda x: g(x**2, {"a": 3.0, "b": 1.0}))(3.0), 6.0)


def test_nondiff_arguments():
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0, 2))
    def g(fun, x, n):
        return fun(x) * n

    @g.defjvp
    def rule(fun, n, primals, tangents):
        return g(fun, primals[0], n), tangents[0] * n * 100

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2))
    def h(fun, x, n):
        return fun(x) * n
    h.defvjp(lambda fun, x, n: (fun(x) * n, None), lambda fun, n, res, ct: (ct * n * 100,))
    for c in (g, h):
        same([c(jnp.sin, 1.0, 2), jax.grad(c, 1)(jnp.sin, 1.0, 2),
              jax.jit(jax.grad(lambda x, c=c: c(jnp.cos, x, 3)))(1.0)],
             [2 * np.sin(1.0), 200.0, 300.0])
        same(jax.vmap(jax.grad(lambda x, c=c: c(jnp.cos, x, 3)))(X), np.full(3, 300.0))


def test_custom_pytrees_and_integers():
    @jax.custom_jvp
    def g(d):
        return {"s": jnp.sin(d["a"]), "i": d["i"]}

    @g.defjvp
    def rule(primals, tangents):
        assert tangents[0]["i"].dtype == float0
        return g(*primals), {"s": tangents[0]["a"] * 3, "i": tangents[0]["i"]}
    same(jax.jit(jax.grad(lambda a: g({"a": a, "i": 2})["s"]))(1.0), 3.0)

    @jax.custom_vjp
    def h(d, i):
        return d["a"] * d["b"] * i
    h.defvjp(lambda d, i: (h(d, i), i), lambda i, ct: ({"a": ct * i, "b": None}, None))
    for transform in (lambda f: f, jax.jit):
        same(transform(jax.grad(h))({"a": 3.0, "b": 1.0}, 2), {"a": 2.0, "b": 0.0})
    k = jax.custom_vjp(lambda d: d["a"])
    k.defvjp(lambda d: (d["a"], None), lambda r, ct: (None,))
    same(jax.grad(k)({"a": 3.0, "b": 1.0}), {"a": 0.0, "b": 0.0})


def test_gradient_clipping():
    @jax.custom_vjp
    def clip(lo, hi, x):
        return x
    clip.defvjp(lambda lo, hi, x: (x, (lo, hi)), lambda res, ct: (None, None, jnp.clip(ct, *res)))
    same(jax.vmap(jax.grad(lambda x: clip(-0.75, 0.75, jnp.sin(x * 10))))(X), 0.75 * 10 * np.cos(10 * X))


def test_custom_gradient_and_closure_convert():
    @jax.custom_gradient
    def g(x):
        return x ** 2, lambda ct: ct * x * 10
    same([jax.grad(g)(3.0), jax.jit(jax.grad(g))(2.0)], [30.0, 20.0])

    def h(x):
        converted, consts = jax.closure_convert(lambda y: y * x * 2 + 1, jax.ShapeDtypeStruct((), "float32"))
        assert len(consts) == 1
        return converted(3.0, *consts)
    same(jax.grad(h)(2.0), 6.0)


def test_a_rule_cannot_differentiate_what_it_closes_over():
    def g(x):
        h = jax.custom_vjp(lambda y: x * y)
        h.defvjp(lambda y: (x * y, y), lambda y, ct: (ct,))
        return h(x)
    same(jax.jit(g)(2.0), 4.0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.grad(g)(2.0)


def jvp_rule(rule):
    g = jax.custom_jvp(lambda x: x)
    g.defjvp(rule)
    return lambda: jax.grad(g)(1.0)


def vjp_rule(fwd, bwd):
    g = jax.custom_vjp(lambda x: x)
    g.defvjp(fwd, bwd)
    return lambda: jax.grad(g)(1.0)


def forward(x):
    return x, None


@pytest.mark.parametrize("call, error, words", [
    (lambda: jax.custom_jvp(f)(1.0), AttributeError, "No JVP defined for custom_jvp function f"),
    (lambda: jax.custom_vjp(f)(1.0), AttributeError, "No VJP defined for custom_vjp function f"),
    (jvp_rule(lambda p, t: p[0]), TypeError, "must produce a pair"),
    (jvp_rule(lambda p, t: (p[0], jnp.ones(3))), TypeError, "corresponding shapes and dtypes"),
    (jvp_rule(lambda p, t: (p[0], (t[0],))), TypeError, r"equal container \(pytree\) structures"),
    (jvp_rule(lambda p, t: (p[0], t[0].astype(jnp.bfloat16))), TypeError, "corresponding shapes and dtypes"),
    (vjp_rule(lambda x: x, lambda r, ct: (ct,)), TypeError, "fwd rule .* must produce a pair"),
    (vjp_rule(forward, lambda r, ct: ct), TypeError, "bwd rule .* must produce a tuple"),
    (vjp_rule(forward, lambda r, ct: (ct, ct)), TypeError, "arguments to the primal function, but got"),
    (vjp_rule(forward, lambda r, ct: (jnp.ones(3),)), ValueError,
     r"float32\[3\] corresponding to an input of type float32\[\]"),
    (vjp_rule(forward, lambda r, ct: ({"a": ct},)), TypeError, "structure as the args tuple"),
])
def test_errors_of_rules(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_reverse_mode_agrees_with_finite_differences():
    w = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)

    def loss(w, x):
        h = jnp.tanh(x @ w)
        h = jnp.where(h > 0, h, 0.1 * h)
        return jnp.sum(jax.nn.softmax(h) * jnp.arange(3.0)) + jnp.max(h)
    with jax.enable_x64(True):
        g = np.asarray(jax.grad(loss)(w.astype(float), X.astype(float)))
        d = np.random.default_rng(0).normal(size=w.shape)
        eps = 1e-6
        numeric = (loss(w + eps * d, X.astype(float)) - loss(w - eps * d, X.astype(float))) / (2 * eps)
        np.testing.assert_allclose((g * d).sum(), numeric, rtol=1e-5)


# --- what vjp and linearize give is data --------------------------------------------------------------------

def test_the_derivative_that_linearize_gives_is_a_pytree():
    def f(x, n):
        return {"y": jnp.sin(x["a"]) * n, "n": n}
    args = {"a": jnp.arange(3.)}, 2
    tangents = {"a": jnp.ones(3)}, np.zeros((), jax.float0)
    along = jax.linearize(f, *args)[1]
    assert isinstance(along, jax.tree_util.Partial) and jax.tree.leaves(along)
    want = along(*tangents)
    same(jax.jit(lambda along, *t: along(*t)["y"])(along, {"a": jnp.ones(3)}, tangents[1]), want["y"])
    compiled = jax.jit(lambda *args: jax.linearize(f, *args)[1])
    same(compiled(*args)(*tangents)["y"], want["y"])
    same(compiled({"a": jnp.zeros(3)}, 3)(*tangents)["y"], jnp.full(3, 3.))
    doubled = jax.tree.map(lambda x: 2 * x, jax.linearize(jnp.sin, 1.)[1])
    same(doubled(1.), 2 * jnp.cos(1.))


WISHES = {"ref": None, "value": jax.ad.GradValue(), "none": jax.ad.DontWant()}


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("first", WISHES)
@pytest.mark.parametrize("second", WISHES)
def test_cotangents_go_where_with_refs_says(first, second, stage):
    def f(p, x):
        return {"y": p["a"] * x, "z": x * x}
    args, ct = ({"a": jnp.arange(2.)}, jnp.ones(2)), {"y": jnp.array([1., 2.]), "z": jnp.ones(2)}
    want_a, want_x = jax.vjp(f, *args)[1](ct)
    refs = [jax.new_ref(jnp.full(2, 10.)) for _ in range(2)]

    @stage
    def run(refs, p, x):
        given = [ref if name == "ref" else WISHES[name] for ref, name in zip(refs, (first, second))]
        return jax.vjp(f, p, x)[1].with_refs({"a": given[0]}, given[1])(ct)
    for _ in range(2):
        found = run(refs, *args)
        for got, name, want in zip((found[0]["a"], found[1]), (first, second), (want_a["a"], want_x)):
            if name == "value":
                same(got, want)
            else:
                assert got == (jax.ad.GradRef() if name == "ref" else jax.ad.DidntWant())
    for ref, name, want in zip(refs, (first, second), (want_a["a"], want_x)):
        same(ref[...], 10 + 2 * want if name == "ref" else jnp.full(2, 10.))


@pytest.mark.parametrize("wishes, error, words", [
    ((), TypeError, "with_refs takes a Ref"), ((jax.ad.DontWant(),) * 2, TypeError, "with_refs takes a Ref"),
    (("bfloat16",), ValueError, r"the Ref at \[0\] is bfloat16\[2\]"),
    ((3,), ValueError, "make it like its argument")])
def test_wishes_that_do_not_fit(wishes, error, words):
    pullback = jax.vjp(lambda x: x * 2, jnp.ones(2))[1]
    made = [jax.new_ref(jnp.ones(2, w)) if w == "bfloat16" else jax.new_ref(jnp.ones(w)) if w == 3 else w
            for w in wishes]
    with pytest.raises(error, match=words):
        pullback.with_refs(*made)(jnp.ones(2))
    assert "mul" in str(pullback.jaxpr)


ZERO = np.zeros((2,), jax.dtypes.float0)


@pytest.mark.parametrize("made", [
    lambda: jnp.asarray(ZERO), lambda: jax.device_put(ZERO), lambda: jax.jit(lambda x: x)(ZERO),
    lambda: jax.jit(lambda x: (1, x))(ZERO)[1],
    lambda: jax.jvp(lambda x: 2 * x, (jnp.arange(2),), (ZERO,))[1],
    lambda: jax.linearize(lambda x: 2 * x, jnp.arange(2))[1](ZERO),
    lambda: jax.vjp(lambda x: 2 * x, jnp.arange(2))[1](ZERO)[0],
    lambda: jax.jit(jax.grad(lambda x, n: x * n.sum(), (0, 1), allow_int=True))(1., jnp.arange(2))[1]])
def test_values_of_float0_are_arrays_of_numpy(made):
    found = made()
    assert type(found) is np.ndarray and found.dtype == jax.dtypes.float0 and found.shape == (2,)


def _same_objects(got, wanted):
    return all(g is w for g, w in zip(jax.tree.leaves(got), wanted, strict=True))


def test_what_comes_back_as_it_went_in_is_what_was_given():
    """Also a Python number or a NumPy array, of which computing makes an Array."""
    x, t, row = 2.5, 1.5, np.array([1.0, 2.0])
    assert _same_objects(jax.jvp(lambda x: x, (x,), (t,)), (x, t))
    assert _same_objects(jax.jvp(lambda x, r: (r, x), (x, row), (t, row))[0], (row, x))
    assert _same_objects(jax.jvp(lambda x: (x * 2, x), (x,), (t,), has_aux=True)[2], (x,))
    assert _same_objects(jax.vjp(lambda x: x, x)[0], (x,))
    assert _same_objects(jax.vjp(lambda x: x, x)[1](t), (t,))
    assert _same_objects(jax.value_and_grad(lambda x: (x * 2, x), has_aux=True)(x)[0][1], (x,))
    y, along = jax.linearize(lambda x: (x, x * 3), x)
    assert y[0] is x and along(t)[0] is t and isinstance(along(t)[1], jax.Array)
    assert _same_objects(jax.linear_transpose(lambda x: x, x)(t), (t,))
    assert jax.checkpoint(lambda x: (x, x * 2))(x)[0] is x
    assert lax.scan(lambda c, x: (c, x), (x, row), row)[0][1] is row
    assert lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, row))[1] is row
    assert isinstance(lax.cond(True, lambda x: x, lambda x: x, x), jax.Array)
    jaxpr = jax.make_jaxpr(lambda: lax.scan(lambda c, x: (c, x), x, row)[0])()
    assert "convert" not in str(jaxpr)
