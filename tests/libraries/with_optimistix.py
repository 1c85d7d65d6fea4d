"""optimistix: roots, fixed points, least squares, minima, and derivatives through them."""
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest


@pytest.mark.parametrize("solver", [optx.Newton(1e-6, 1e-6), optx.Chord(1e-6, 1e-6), optx.Dogleg(1e-4, 1e-4)],
                         ids=lambda s: type(s).__name__)
def test_a_root_and_its_derivative(solver):
    root = lambda a: optx.root_find(lambda y, a: y ** 2 - a, solver, jnp.array(1.5), a).value
    assert abs(root(jnp.array(2.)) - 2 ** .5) < 1e-4
    assert abs(jax.jit(jax.grad(root))(jnp.array(2.)) - 0.5 / 2 ** .5) < 1e-4


def test_bisection_and_fixed_points():
    found = optx.root_find(lambda y, _: y ** 3 - 2, optx.Bisection(1e-6, 1e-6), jnp.array(1.),
                           options={"lower": 0., "upper": 2.})
    assert abs(found.value - 2 ** (1 / 3)) < 1e-4
    fixed = optx.fixed_point(lambda y, _: jnp.cos(y), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(1.))
    assert abs(fixed.value - 0.739085) < 1e-4


@pytest.mark.parametrize("solver", [optx.LevenbergMarquardt(1e-6, 1e-6), optx.GaussNewton(1e-6, 1e-6)],
                         ids=lambda s: type(s).__name__)
def test_an_exponential_is_fitted(solver):
    t = jnp.linspace(0., 1., 20)
    data = 2 * jnp.exp(-1.5 * t)
    fitted = optx.least_squares(lambda p, _: p["scale"] * jnp.exp(-p["rate"] * t) - data, solver,
                                {"scale": jnp.array(1.), "rate": jnp.array(1.)})
    np.testing.assert_allclose([fitted.value["scale"], fitted.value["rate"]], [2, 1.5], rtol=1e-3)


@pytest.mark.parametrize("solver", [optx.BFGS(1e-5, 1e-5), optx.NelderMead(1e-5, 1e-5), optx.NonlinearCG(1e-5, 1e-5)],
                         ids=lambda s: type(s).__name__)
def test_a_minimum(solver):
    bowl = lambda y, _: (y[0] - 1) ** 2 + 2 * (y[1] + 2) ** 2 + 0.5 * (y[0] - 1) * (y[1] + 2)
    found = optx.minimise(bowl, solver, jnp.zeros(2), max_steps=1000).value
    np.testing.assert_allclose(found, [1, -2], atol=1e-2)


def test_too_few_steps_are_told():
    slow = lambda **options: optx.fixed_point(lambda y, _: y + 1, optx.FixedPointIteration(1e-6, 1e-6), jnp.array(1.),
                                              max_steps=4, **options)
    assert slow(throw=False).result != optx.RESULTS.successful
    with pytest.raises(Exception, match="maximum number of steps"):
        slow()
