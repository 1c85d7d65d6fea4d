"""diffrax: ordinary and stochastic differential equations, events, and derivatives through them."""
import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

DECAY = dfx.ODETerm(lambda t, y, rate: -rate * y)
ADAPTIVE = dfx.PIDController(rtol=1e-6, atol=1e-6)


def decayed(rate, solver=None, **options):
    return dfx.diffeqsolve(DECAY, solver or dfx.Tsit5(), 0., 1., 0.1, jnp.array(2.), rate, **options).ys[-1]


@pytest.mark.parametrize("solver", [dfx.Euler(), dfx.Heun(), dfx.Tsit5(), dfx.Dopri8(), dfx.Kvaerno5()],
                         ids=lambda s: type(s).__name__)
def test_an_exponential(solver):
    options = {} if isinstance(solver, dfx.Euler) else {"stepsize_controller": ADAPTIVE}
    assert abs(decayed(jnp.array(1.5), solver, **options) - 2 * np.exp(-1.5)) < (.1 if not options else 1e-4)


@pytest.mark.parametrize("adjoint", [dfx.RecursiveCheckpointAdjoint(), dfx.DirectAdjoint(), dfx.BacksolveAdjoint()],
                         ids=lambda a: type(a).__name__)
def test_derivatives(adjoint):
    slope = jax.jit(jax.grad(lambda rate: decayed(rate, stepsize_controller=ADAPTIVE, adjoint=adjoint)))(jnp.array(1.5))
    assert abs(slope + 2 * np.exp(-1.5)) < 1e-3


def test_forward_mode_and_a_batch():
    forward = lambda rate: decayed(rate, adjoint=dfx.ForwardMode())
    assert abs(jax.jvp(forward, (jnp.array(1.5),), (jnp.array(1.),))[1] + 2 * np.exp(-1.5)) < 1e-3
    rates = jnp.array([.5, 1., 2.])
    np.testing.assert_allclose(jax.vmap(decayed)(rates), 2 * np.exp(-rates), rtol=1e-3)


def test_saved_times_and_dense_output():
    times = jnp.linspace(0., 1., 5)
    saved = dfx.diffeqsolve(DECAY, dfx.Tsit5(), 0., 1., 0.1, jnp.ones(2), 1., saveat=dfx.SaveAt(ts=times, dense=True))
    np.testing.assert_allclose(saved.ys[:, 0], np.exp(-times), rtol=1e-4)
    np.testing.assert_allclose(saved.evaluate(0.33)[0], np.exp(-0.33), rtol=1e-3)


def test_an_event_ends_a_fall():
    fall = dfx.ODETerm(lambda t, y, _: jnp.array([y[1], -9.8]))
    event = dfx.Event(lambda t, y, args, **_: y[0], optx.Newton(1e-5, 1e-5))
    ended = dfx.diffeqsolve(fall, dfx.Tsit5(), 0., 10., 0.1, jnp.array([10., 0.]), event=event, stepsize_controller=ADAPTIVE)
    assert abs(ended.ts[-1] - (2 * 10 / 9.8) ** .5) < 1e-3


def test_brownian_motion_has_its_variance():
    def path(key):
        noise = dfx.VirtualBrownianTree(0., 1., 1e-2, (), key)
        terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, _: 0. * y), dfx.ControlTerm(lambda t, y, _: jnp.array(0.5), noise))
        return dfx.diffeqsolve(terms, dfx.EulerHeun(), 0., 1., 0.1, jnp.array(0.)).ys[-1]
    ends = jax.jit(jax.vmap(path))(jax.random.split(jax.random.key(0), 2000))
    assert abs(ends.std() - 0.5) < 0.05 and abs(ends.mean()) < 0.05
