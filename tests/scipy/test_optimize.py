"""Iterative solvers and minimization against direct solutions and SciPy."""
from functools import partial

import numpy as np
import pytest
import scipy.optimize
from derivatives import check_derivatives

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.scipy.optimize import OptimizeResults, minimize
from hlotrace.scipy.sparse.linalg import bicgstab, cg, gmres

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(2, 6, 6)) * [[[1]], [[1j]]] + 4 * np.eye(6)
MATRICES = {"real": PLAIN[0].real, "complex": PLAIN.sum(0)}
B = RNG.normal(size=6)
SOLVERS = [(cg, {}), (bicgstab, {}), (gmres, {}), (gmres, dict(solve_method="incremental")), (gmres, dict(restart=3))]
LBFGS = "l-bfgs-experimental-do-not-rely-on-this"


def in_parts(A, x):
    x = A @ jnp.concatenate([x["u"], x["v"]])
    return {"u": x[:2], "v": x[2:]}


def matrix(solver, kind):
    A = MATRICES[kind]
    return A @ A.conj().T if solver is cg else A


@pytest.mark.parametrize("kind", MATRICES)
def test_solutions(kind):
    """All solvers in one program: plainly, started elsewhere, preconditioned, with a callable, of several right sides."""
    with jax.enable_x64():
        def all_of(b):
            found = []
            for solver, more in SOLVERS:
                A = jnp.asarray(matrix(solver, kind))
                calls = [(A, b, {}), (A, b, dict(x0=b + 1)), (A, b, dict(M=jnp.diag(1 / jnp.diag(A)))),
                         (partial(in_parts, A), {"u": b[:2], "v": b[2:]}, {})]
                calls = calls[:1] if "restart" in more else calls
                found.append([solver(A, b, tol=1e-11, **more, **extra)[0] for A, b, extra in calls])
            return found
        for (solver, _), results in zip(SOLVERS, jax.jit(all_of)(B)):
            want = np.linalg.solve(matrix(solver, kind), B)
            for got in results:
                got = np.concatenate([got["u"], got["v"]]) if isinstance(got, dict) else got
                np.testing.assert_allclose(got, want, atol=1e-8)


def test_derivatives_are_those_of_the_system():
    for solver, more in SOLVERS[:3]:
        for kind in MATRICES:
            def solution(A, b, solver=solver, more=more):
                return solver(A @ A.conj().T if solver is cg else A, b, tol=1e-12, **more)[0]
            check_derivatives(solution, MATRICES[kind], B + 1j * B[::-1] if kind == "complex" else B)
    with jax.enable_x64():
        f = lambda s: cg(lambda x: s * A.real @ x, B, tol=1e-12)[0].sum()
        A = matrix(cg, "real")
        second = jax.grad(jax.grad(f))(2.)
        np.testing.assert_allclose(second, np.linalg.solve(A, B).sum() / 4, rtol=1e-6)
        many = jax.vmap(lambda b: gmres(A, b, tol=1e-11)[0])(np.stack([B, 2 * B]))
        np.testing.assert_allclose(many[1], 2 * np.linalg.solve(A, B), rtol=1e-6)


def test_ends_and_types():
    A = matrix(cg, "real").astype(np.float32)
    systems = [(np.zeros((2, 2)), np.ones(2), np.full(2, np.nan)), (np.eye(3), np.zeros(3), np.zeros(3)), (A, 0 * B, 0 * B),
               (np.zeros((0, 0)), np.ones(0), np.ones(0)), (2 * np.eye(3, dtype=int), np.arange(3), [0, 0.5, 1]),
               (jnp.eye(3, dtype="bfloat16"), jnp.ones(3, "bfloat16"), np.ones(3)),
               (2 * np.eye(2) + 0j, np.ones(2), [0.5, 0.5]), (lambda x: 3 * x, 6., 2.)]
    found = jax.jit(lambda: [[solver(A, b) for A, b, _ in systems] for solver in (cg, bicgstab, gmres)])()
    for results in found:
        for (x, info), (_, _, want) in zip(results, systems):
            np.testing.assert_allclose(np.asarray(x, np.complex64), want, rtol=1e-6)
            assert info is None or info == (-1 if np.isnan(want).any() else 0)
        assert [x.dtype.name for x, _ in results[4:7]] == ["float32", "bfloat16", "complex64"]
    assert not cg(A, B, maxiter=0)[0].any()
    near = np.linalg.norm(B) * 1.01     # what is so near to begin with is where it ends
    for solver in (cg, bicgstab, gmres):
        assert not solver(A, B, atol=near)[0].any() and not solver(A, B, tol=1.01)[0].any()


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


@pytest.mark.parametrize("method", ["BFGS", LBFGS])
def test_minima(method):
    starts = [(rosenbrock, np.zeros(2)), (rosenbrock, np.array([1.3, 0.7, 0.8, 1.9])), (himmelblau, np.zeros(2)),
              (lambda x: jnp.sum(jnp.cosh(x - jnp.arange(3.))), np.full(3, 0.2)), (lambda x: jnp.sum(x ** 2), np.ones(0))]
    with jax.enable_x64():
        options = dict(options=dict(ftol=0., gtol=1e-7)) if method == LBFGS else dict(tol=1e-7)
        found = jax.jit(lambda: [minimize(f, x, method=method, **options) for f, x in starts])()
        for (f, x), got in zip(starts, found):
            assert isinstance(got, OptimizeResults) and got.success and got.status == 0 and abs(got.jac).sum() < 1e-6
            if len(x):
                want = scipy.optimize.minimize(jax.jit(f), x, method="BFGS", jac=jax.jit(jax.grad(f)))
                np.testing.assert_allclose(got.x, want.x, atol=1e-4)
                assert got.nfev < 40 + 1.5 * want.njev
        np.testing.assert_allclose(found[3].fun, 3)
        if method == "BFGS":
            hessian = jax.jit(jax.hessian(himmelblau))(found[2].x)
            np.testing.assert_allclose(found[2].hess_inv, np.linalg.inv(hessian), rtol=0.2)
        else:
            assert found[2].hess_inv is None
    narrow = minimize(rosenbrock, jnp.zeros(2), method=method, options=dict(ftol=1e-12) if method == LBFGS else {})
    assert narrow.success and narrow.x.dtype == "float32"
    np.testing.assert_allclose(narrow.x, 1, atol=1e-3)


@pytest.mark.parametrize("method", ["BFGS", LBFGS])
def test_minima_from_far_away(method):
    """Gradients of up to 1e11, and of 1e-7, in float32."""
    for f, x in ((lambda x: jnp.mean((1e4 * x) ** 2), [1., 1.]), (lambda x: jnp.mean((1e4 * x) ** 2), [-300., 200.]),
                 (lambda x: jnp.sum(jnp.array([1., 1e3, 1e6]) * x ** 2), [20., -9., 7.]),
                 (lambda x: jnp.sum(jnp.cosh(x)), [20., -25.]), (himmelblau, [300., -100.]), (rosenbrock, [-30., 20.])):
        found = minimize(f, jnp.array(x), method=method)
        assert found.success or found.status == 4       # ftol
        assert found.fun - (2 if x == [20., -25.] else 0) < 1e-4, (x, found)


def test_minima_of_complex_numbers():
    def f(z, w):
        return jnp.sum(abs(z - w) ** 2 + abs(z - w) ** 4)
    w = jnp.array([1 + 2j, -3j])
    found = jax.jit(lambda z, w: minimize(f, z, (w,), method=LBFGS))(jnp.zeros(2, complex), w)
    assert found.success and found.x.dtype == found.jac.dtype == "complex64"
    np.testing.assert_allclose(found.x, w, atol=1e-4)
    start = minimize(f, jnp.zeros(2, complex), (w,), method=LBFGS, options=dict(maxiter=0))
    np.testing.assert_allclose(start.jac, jax.grad(f)(jnp.zeros(2, complex), w).conj(), rtol=1e-5)
    with pytest.raises(TypeError, match="complex64"):
        minimize(f, jnp.zeros(2, complex), (w,), method="BFGS")


def test_what_ends_a_search():
    def ends(method, f=himmelblau, x=(0., 0.), **options):
        found = minimize(f, jnp.array(x), method=method, options=options)
        return int(found.status), int(found.nit)
    assert ends("BFGS", maxiter=2) == ends(LBFGS, maxiter=2) == (1, 2) and ends("BFGS", maxiter=0) == (1, 0)
    assert ends(LBFGS, maxfun=2)[0] == 2 and ends(LBFGS, maxgrad=2)[0] == 3 and ends(LBFGS, ftol=0.5)[0] == 4
    assert ends("BFGS", lambda x: jnp.nan * x[0]) == (5, 1) and ends("bfgs", gtol=1e3) == (0, 0)
    assert ends(LBFGS, maxcor=1, maxls=5, ftol=1e-12, norm=jnp.inf)[0] == ends("BFGS", line_search_maxiter=3, norm=2)[0] == 0


def test_minima_under_transformations():
    def at(a):
        return minimize(lambda x, a: jnp.sum((x - a) ** 2 + (x - a) ** 4), jnp.ones(2), (a,), method="BFGS").x
    np.testing.assert_allclose(jax.vmap(at)(jnp.arange(6.).reshape(3, 2)), np.arange(6.).reshape(3, 2), atol=1e-4)
    np.testing.assert_allclose(jax.jacfwd(at)(jnp.array([3., 4.])), np.eye(2), atol=1e-2)


@pytest.mark.parametrize("call, error, words", [
    (lambda: cg(jnp.ones((3, 2)), jnp.ones(3)), ValueError, r"square matrix, got shape \(3, 2\)"),
    (lambda: cg("A", jnp.ones(3)), TypeError, "A"), (lambda: cg(jnp.eye(3), jnp.ones(2)), ValueError, r"3\), got \(2,\)"),
    (lambda: cg(lambda x: x[:2], jnp.ones(3)), ValueError, "what A gives"),
    (lambda: bicgstab(lambda x: x, jnp.ones(3), {"a": jnp.ones(3)}), ValueError, "x0 must have the structure"),
    (lambda: gmres(jnp.eye(3), jnp.ones(3), M=lambda x: (x,)), ValueError, "what M gives"),
    (lambda: gmres(jnp.eye(3), jnp.ones(3), solve_method="batch"), ValueError, "did you mean 'batched'"),
    (lambda: gmres(jnp.eye(3), jnp.ones(3), restart=0), ValueError, "at least 1, got 0"),
    (lambda: minimize(himmelblau, jnp.ones(2), method="Newton"), ValueError, "'BFGS'"),
    (lambda: minimize(himmelblau, jnp.ones(2), 3., method="BFGS"), TypeError, "must be a tuple"),
    (lambda: minimize(himmelblau, jnp.ones((2, 2)), method="BFGS"), ValueError, r"ravel"),
    (lambda: minimize(himmelblau, jnp.arange(2), method="BFGS"), TypeError, "astype"),
    (lambda: minimize(himmelblau, jnp.ones(2), method="BFGS", options=dict(maxcor=3)), TypeError, "maxcor")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
