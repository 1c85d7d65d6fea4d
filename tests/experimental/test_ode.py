"""experimental.ode.odeint, held against SciPy's solver, exact solutions and finite differences."""
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.experimental import ode
from hlotrace.experimental.ode import odeint

TIMES = np.linspace(0, 10, 7)
RATES = np.array([1.1, 0.4, 0.4, 0.1])
START = np.array([10.0, 5.0])


def prey(y, t, rates):
    """Lotka and Volterra's equations, with a season."""
    a, b, c, d = rates
    return jnp.stack([(a + 0.1 * jnp.sin(t)) * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])


def reference(t, y):
    a, b, c, d = RATES
    return [(a + 0.1 * np.sin(t)) * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]]


def loss(y0, t, rates):
    return jnp.sum(jnp.sin(odeint(prey, y0, t, rates)))


def test_the_solution_is_scipys_and_its_gradient_that_of_finite_differences():
    with override("jax_enable_x64", True):
        solved = jax.jit(odeint, static_argnums=0)
        ys = solved(prey, START, TIMES, RATES)
        exact = solve_ivp(reference, (0, 10), START, t_eval=TIMES, rtol=1e-12, atol=1e-12).y.T
        np.testing.assert_allclose(ys, exact, rtol=1e-6)
        found = jax.jit(jax.grad(loss, (0, 1, 2)))(START, TIMES, RATES)
        for which, point in enumerate((START, TIMES, RATES)):
            for i in range(len(point)):
                beside = [np.array([START, TIMES, RATES][which]) for _ in range(2)]
                beside[0][i] += 1e-5
                beside[1][i] -= 1e-5
                values = [
                    np.sin(solved(prey, *[b if k == which else x
                                          for k, x in enumerate((START, TIMES, RATES))])).sum()
                          for b in beside]
                np.testing.assert_allclose(found[which][i], (values[0] - values[1]) / 2e-5, rtol=1e-4,
                                           atol=1e-4)


def decay(y, t, *scale):
    return -y if not scale else -scale[0] * y


def test_values_are_those_that_jax_gives():
    np.testing.assert_allclose(odeint(decay, 1.0, jnp.array([0.0, 1.0])), [1, 0.36787942], rtol=2e-7)
    # it closes over what is differentiated
    loss = lambda y, t, a: odeint(lambda y, t: -a * y, y, t).sum()
    found = jax.jit(jax.grad(loss, (0, 1, 2)))(1.0, jnp.array([0.0, 1.0, 2.0]), 1.0)
    np.testing.assert_allclose(found[0], 1.5032147, rtol=1e-6)
    np.testing.assert_allclose(found[1], [0.5032147, -0.36787942, -0.13533528], rtol=1e-5)
    np.testing.assert_allclose(found[2], -0.63855004, rtol=1e-5)


def test_states_are_trees_of_any_inexact_dtype():
    def f(y, t, n):
        return {"z": 1j * y["z"] * n["k"], "w": (-y["w"][0], y["w"][1] * 0)}
    y0 = {"z": jnp.ones((2, 1), np.complex64), "w": (jnp.bfloat16(1), jnp.zeros((0, 3), np.float32))}
    ys = odeint(f, y0, jnp.array([0.0, 0.5, 1.0]), {"k": 2})
    np.testing.assert_allclose(ys["z"][:, 1, 0], np.exp([0, 1j, 2j]), rtol=1e-5)
    assert ys["w"][0].dtype == jnp.bfloat16 and ys["w"][1].shape == (3, 0, 3)
    moved = jax.grad(lambda k, n: odeint(lambda y, t, k, n: -k * y * n, 1.0, jnp.array([0.0, 1.0]), k,
                                         n)[-1])(1.0, 2)
    np.testing.assert_allclose(moved, -2 * np.exp(-2), rtol=1e-5)     # an integer beside it has no derivative


def test_under_vmap_and_twice_differentiated():
    last = lambda y: odeint(lambda y, t: -y * y, y, jnp.array([0.0, 1.0]))[-1]      # y / (1 + y)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(last)))(jnp.array([1.0, 2.0])), [1 / 4, 1 / 9],
                               rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(jax.grad(last)))(1.0), -0.25, rtol=1e-4)


def test_steps_and_their_limits():
    t = jnp.array([0.0, 10.0])
    np.testing.assert_allclose(odeint(decay, 1.0, t, hmax=0.1), [1, np.exp(-10)], rtol=1e-4)
    assert odeint(decay, 1.0, t, mxstep=3)[1] > 1, "too few steps: it is extrapolated"
    assert abs(odeint(decay, 1.0, t, rtol=1e-2, atol=1e-2)[1] - np.exp(-10)) > 1e-7
    np.testing.assert_allclose(odeint(lambda y, t: jnp.zeros_like(y), 1.0, t), [1, 1])
    blown = odeint(lambda y, t: y * y, 1.0, jnp.array([0.0, 0.5, 2.0]))
    np.testing.assert_allclose(blown[:2], [1, 2], rtol=1e-5)
    assert np.isnan(blown[2]), "there is no solution from 1 on"
    np.testing.assert_allclose(odeint(decay, 1.0, jnp.array([0.0, 0.0, 1.0])), [1, 1, np.exp(-1)], rtol=1e-5)
    np.testing.assert_array_equal(odeint(decay, 1.0, jnp.array([3.0])), [1])


def test_a_function_is_compiled_once():
    traces = []

    def f(y, t, k):
        traces.append(1)
        return -k * y
    for k in 1.0, 2.0:
        before = len(traces)
        odeint(f, 1.0, jnp.array([0.0, 1.0]), k)
        traces.append(len(traces) - before)
    assert traces[-1] <= 1, "only to see what it closes over"


T = np.array([0.0, 1.0], np.float32)


@pytest.mark.parametrize("args, error, words", [
    ((decay, 1.0, np.array([0, 1])), TypeError, "t must be an array of floats with one axis"),
    ((decay, 1, T), TypeError, "y0 must be an array of floats or of complex numbers, but got 1"),
    ((decay, 1.0, T, "fast"), TypeError, r"must be arrays or scalars, but got 'fast' at args\[0\]"),
    ((lambda y, t: (y, y), 1.0, T), ValueError, "func gives a value of another structure than y0 has"),
    ((lambda y, t: jnp.stack([y, y]), 1.0, T), ValueError,
     r"func gives result of shape \(2,\), where y0 has \(\)"),
    ((lambda y, t: 1j * y, 1.0, T), TypeError, "func gives result of dtype complex64, where y0 has float32")])
def test_what_does_not_fit_is_refused(args, error, words):
    with pytest.raises(error, match=words):
        odeint(*args)


def test_there_is_no_forward_mode():
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        jax.jvp(lambda y: odeint(decay, y, jnp.asarray(T)), (1.0,), (1.0,))


def test_the_parts_of_the_method():
    f = lambda y, t: -y * t
    with override("jax_enable_x64", True):
        y, t, dt = jnp.array([1.0, 2.0]), 0.5, 0.1
        y1, f1, error, rates = ode.runge_kutta_step(f, y, f(y, t), t, dt)
        exact = lambda h: np.array(y) * np.exp((t * t - (t + h) ** 2) / 2)
        np.testing.assert_allclose(y1, exact(dt), rtol=1e-8)
        np.testing.assert_allclose(f1, f(y1, t + dt))
        assert rates.shape == (7, 2) and np.all(abs(error) < 1e-7)
        polynomial = ode.interp_fit_dopri(y, y1, rates, dt)
        for part in (0.0, 0.3, 0.5, 1.0):
            np.testing.assert_allclose(jnp.polyval(polynomial, part), exact(part * dt), rtol=1e-6)
        quartic = np.array([1.0, -2.0, 0.5, 3.0, 4.0])      # of (t - t0) / dt
        at = lambda c, x: np.polyval(c, x)
        fitted = ode.fit_4th_order_polynomial(at(quartic, 0), at(quartic, 1), at(quartic, 0.5),
                                              at(np.polyder(quartic), 0) / dt,
                                              at(np.polyder(quartic), 1) / dt, dt)
        np.testing.assert_allclose(fitted, quartic)
    for x in (np.array([3 + 4j, -2j]), np.array([-3, 2]), np.float32(-1.5)):
        np.testing.assert_array_equal(ode.abs2(x), np.abs(x) ** 2)
    assert ode.abs2(3).dtype == np.int32 and ode.abs2(1j).dtype == np.float32
    for z in (1, 1 + 2j):
        ratios = np.array([1, 2]) * z / (1e-4 + 1e-3 * np.array([3, 6]))
        found = ode.mean_error_ratio(jnp.array([1.0, 2.0]) * z, 1e-3, 1e-4, jnp.array([1.0, 2.0]),
                                     jnp.array([-3.0, -6.0]))
        np.testing.assert_allclose(found, np.sqrt(np.mean(np.abs(ratios) ** 2)), rtol=1e-5)
    scaled = 0.09 * np.array([0.5, 2.0]) ** -0.2
    for ratio, size in [(0.0, 1.0), (0.5, scaled[0]), (0.9, 0.1), (2.0, scaled[1]), (1e9, 0.02),
                        (np.nan, np.nan)]:
        np.testing.assert_allclose(ode.optimal_step_size(0.1, ratio), size, rtol=1e-6)
    step = ode.initial_step_size(f, 0.5, jnp.array([1.0, 2.0]), 4, 1e-3, 1e-4, f(jnp.array([1.0, 2.0]), 0.5))
    np.testing.assert_allclose(step, 0.10052215, rtol=1e-6)     # what JAX takes
    np.testing.assert_allclose(ode.initial_step_size(f, 0.5, jnp.zeros(2), 4, 1e-3, 1e-4, jnp.zeros(2)), 1e-6)
    flat = ode.ravel_first_arg(lambda y, t: (y[1] * t, y[0]), lambda v: (v[:1], v[1:]))
    np.testing.assert_array_equal(flat(jnp.arange(3.0), 2), [2, 4, 0])
