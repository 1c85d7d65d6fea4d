"""custom_root and custom_linear_solve: derivatives come from the equation, not from the solver."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

A = np.array([[3.0, 1.0, 0.5], [-0.5, 2.0, 0.3], [0.2, -0.4, 4.0]], np.float32)
B = np.array([1.0, -2.0, 0.5], np.float32)


def jacobi(matvec, b, diagonal):
    """Jacobi's iteration: it is a while loop, so nothing could differentiate it in reverse."""
    return lax.while_loop(lambda x: jnp.abs(matvec(x) - b).max() > 1e-6, lambda x: x + (b - matvec(x)) / diagonal, b)


def solved(a, b, **options):
    return lax.custom_linear_solve(lambda x: a @ x, b, lambda f, b: jacobi(f, b, jnp.diag(a)), **options)


def transposed(a, b):
    return solved(a, b, transpose_solve=lambda f, b: jacobi(f, b, jnp.diag(a)))


def test_derivatives_of_a_system():
    def both(f):
        return jax.jit(lambda a, b: (f(a, b), jax.jvp(f, (a, b), (a * a, b * b))[1],
                                     jax.grad(lambda *p: (f(*p) ** 2).sum(), (0, 1))(a, b),
                                     jax.jvp(jax.grad(lambda *p: (f(*p) ** 2).sum(), (0, 1)), (a, b), (a * a, b))[1]))(A, B)
    inverse = np.linalg.inv(A.astype(np.float64))
    x = inverse @ B
    ct = inverse.T @ (2 * x)
    got = both(transposed)
    same(got[0], x.astype(np.float32), 10)
    same(got[1], (inverse @ (B * B - A * A @ x)).astype(np.float32), 30)
    same(got[2], (-np.outer(ct, x).astype(np.float32), ct.astype(np.float32)), 30)

    def series(a, b):       # x as a polynomial in a, differentiated as it stands
        d = jnp.diag(a)
        return jax.lax.fori_loop(0, 40, lambda _, x: x + (b - a @ x) / d, b)
    same(got, both(series), 100)


def test_symmetric_systems_and_pytrees():
    def f(a, b):
        return lax.custom_linear_solve(lambda t: {"p": a * t["p"], "q": (2 * t["q"][0] + t["q"][1], t["q"][0] - t["q"][1])},
                                       b, lambda _, t: {"p": t["p"] / a, "q": ((t["q"][0] + t["q"][1]) / 3,
                                                                               (t["q"][0] - 2 * t["q"][1]) / 3)},
                                       symmetric=True)
    b = {"p": B, "q": (6.0, 3.0)}
    same(f(2.0, b), {"p": B / 2, "q": (3.0, 0.0)})
    gradient = jax.grad(lambda a, b: f(a, b)["p"].sum() + f(a, b)["q"][1] ** 2, (0, 1))(2.0, b)
    same(gradient, (-B.sum() / 4, {"p": np.full(3, 0.5, np.float32), "q": (0.0, 0.0)}))
    same(jax.vmap(f, (0, None))(np.array([1.0, 2.0], np.float32), b)["p"], np.stack([B, B / 2]))


def test_a_system_under_vmap():
    a = np.stack([A, A.T])
    same(jax.vmap(transposed)(a, np.stack([B, -B])), np.stack([np.linalg.solve(A, B), -np.linalg.solve(A.T, B)]), 20)
    same(jax.vmap(transposed, (0, None))(a, B), np.stack([np.linalg.solve(A, B), np.linalg.solve(A.T, B)]), 20)
    same(jax.vmap(jax.grad(lambda a, b: transposed(a, b).sum(), 1), (None, 0))(A, np.stack([B, B]))[1],
         np.linalg.solve(A.T, np.ones(3)).astype(np.float32), 20)


def test_what_a_solver_returns_beside_the_solution():
    def f(a, b):
        return lax.custom_linear_solve(lambda x: a * x, b, lambda _, b: (b / a, {"steps": 3, "residual": b.sum()}),
                                       symmetric=True, has_aux=True)
    x, aux = f(2.0, B)
    same((x, aux), (B / 2, {"steps": 3, "residual": B.sum()}))
    assert jax.grad(lambda b: f(2.0, b)[1]["residual"] + f(2.0, b)[0][0])(B).tolist() == [0.5, 0, 0]
    assert jax.vmap(f, (None, 0))(2.0, np.stack([B, B]))[1]["steps"].tolist() == [3, 3]


def test_the_primitive_has_a_name():
    assert jax.make_jaxpr(solved)(A, B).eqns[0].primitive is lax.linear_solve_p is lax.custom_linear_solve_p


def test_complex_and_integer_systems():
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    f = lambda a, b: lax.custom_linear_solve(lambda x: a * x, b, lambda _, b: b / a, symmetric=True)
    same(jax.vjp(f, z, z[::-1])[1](z), jax.vjp(lambda a, b: b / a, z, z[::-1])[1](z), 5)
    same(lax.custom_linear_solve(lambda x: 2 * x, np.arange(4), lambda _, b: b // 2), np.arange(4) // 2)
    same(lax.custom_linear_solve(lambda x: x, np.zeros(0, np.float32), lambda _, b: b), np.zeros(0, np.float32))


def test_a_loop_over_systems():
    def f(b):
        return lax.scan(lambda x, _: (transposed(A, x), None), b, None, length=2)[0].sum()
    inverse = np.linalg.inv(A)
    same(jax.jit(jax.grad(jax.checkpoint(f)))(B), inverse.T @ inverse.T @ np.ones(3, np.float32), 20)


@pytest.mark.parametrize(("matvec", "solve", "words"), [
    (lambda x: x[:2], lambda f, b: b, r"matvec\(\) output shapes must match b.* b is float32\[3\], the result float32\[2\]"),
    (lambda x: x, lambda f, b: (b, b), r"solve\(\) output pytree structure must match b"),
    (lambda x: x.astype(jnp.float16), lambda f, b: b, r"matvec\(\) output .* the result float16"),
])
def test_what_does_not_fit(matvec, solve, words):
    with pytest.raises(ValueError, match=f"(?s)lax.custom_linear_solve: {words}"):
        lax.custom_linear_solve(matvec, B, solve)


def test_reverse_mode_needs_the_transposed_system():
    same(jax.jvp(lambda b: solved(A, b), (B,), (B,))[1], np.linalg.solve(A, B), 20)
    with pytest.raises(TypeError, match="transpose_solve required .* or symmetric=True"):
        jax.grad(lambda b: solved(A, b).sum())(B)
    with pytest.raises(TypeError, match="not linear"):
        lax.custom_linear_solve(lambda x: x * x, B, lambda f, b: b, transpose_solve=lambda f, b: b)


# --- roots ------------------------------------------------------------------------------------------------------

def newton(f, x):
    return lax.while_loop(lambda x: jnp.abs(f(x)) > 1e-6, lambda x: x - f(x) / jax.grad(f)(x), x)


def cube_root(a):
    return lax.custom_root(lambda x: x ** 3 - a, 1.0, newton, lambda g, y: y / g(1.0))


def test_derivatives_of_a_root():
    got = jax.jit(lambda a: [f(a) for f in (cube_root, jax.grad(cube_root), jax.grad(jax.grad(cube_root)),
                                            lambda a: jax.jvp(cube_root, (a,), (1.0,))[1])])(8.0)
    same(got, [2.0, 1 / 12, -1 / 144, 1 / 12], 5)
    a = np.array([1.0, 8.0, 27.0], np.float32)
    same(jax.vmap(jax.value_and_grad(cube_root))(a), (np.cbrt(a), a ** (-2 / 3) / 3), 10)
    assert jax.grad(lambda x: lax.custom_root(lambda y: y - 2.0, x, newton, lambda g, y: y / g(1.0)))(1.0) == 0


def test_a_root_of_several_variables():
    def solve(f, x):
        return lax.fori_loop(0, 80, lambda _, x: x - 0.4 * f(x), x)

    def fixed_point(w):
        return lax.custom_root(lambda x: x - jnp.tanh(w @ x + 1), jnp.zeros(3), solve,
                               lambda g, y: lax.fori_loop(0, 60, lambda _, x: x + 0.5 * (y - g(x)), y))
    w = (A / 10).astype(np.float32)
    got = jax.jit(jax.grad(lambda w: fixed_point(w).sum()))(w)
    x = np.zeros(3)
    for _ in range(200):
        x = np.tanh(w @ x + 1)
    slope = np.diag(1 - x * x)
    want = np.outer(np.linalg.solve((np.eye(3) - slope @ w).T, np.ones(3)) @ slope, x)
    np.testing.assert_allclose(got, want, rtol=2e-3)


def test_what_a_root_finder_returns_beside_the_root():
    def f(a):
        return lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: (jnp.sqrt(a), {"steps": 4}), lambda g, y: y / g(1.0),
                               has_aux=True)
    same(jax.value_and_grad(f, has_aux=True)(4.0), ((2.0, {"steps": 4}), 0.25))


def test_roots_that_do_not_fit():
    divide = lambda g, y: y / g(1.0)
    with pytest.raises(TypeError, match="initial_guess must be floating.* 1.0 for 1"):
        lax.custom_root(lambda x: x * x, 1, lambda f, x: x, divide)
    with pytest.raises(TypeError, match=r"f\(\) output pytree structure must match initial_guess"):
        lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, divide)
    with pytest.raises(TypeError, match=r"tangent_solve\(\) output pytree structure must match initial_guess"):
        jax.grad(lambda a: lax.custom_root(lambda x: x - a, 1.0, lambda f, x: x, lambda g, y: (y, y)))(1.0)
    with pytest.raises(TypeError, match="tangent_solve must be a function"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: x, None)
