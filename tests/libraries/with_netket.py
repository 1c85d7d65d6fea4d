"""NetKet: operators, expectations of wave functions, and the ground state of the Ising model."""
import jax
import jax.numpy as jnp
import netket as nk
import numpy as np
import pytest

HILBERT = nk.hilbert.Spin(0.5, 6)
ISING = nk.operator.Ising(HILBERT, nk.graph.Chain(6), h=1.0)
EXACT = np.linalg.eigvalsh(ISING.to_dense()).min()


def test_operators():
    states = HILBERT.all_states()
    assert states.shape == (64, 6)
    connected, elements = ISING.to_jax_operator().get_conn_padded(states[:3])
    dense = np.zeros((3, 64))
    for row, (others, values) in enumerate(zip(connected, elements)):
        np.add.at(dense[row], np.asarray(HILBERT.states_to_numbers(others)), np.asarray(values))
    np.testing.assert_allclose(dense, ISING.to_dense()[:3], atol=1e-12)


@pytest.mark.parametrize("model", [nk.models.RBM(alpha=1), nk.models.Jastrow()], ids=lambda m: type(m).__name__)
def test_an_expectation_and_its_derivative(model):
    state = nk.vqs.FullSumState(HILBERT, model, seed=1)
    psi = state.to_array()
    np.testing.assert_allclose(state.expect(ISING).mean, psi.conj() @ (ISING.to_dense() @ psi), rtol=1e-5)

    def energy(parameters):
        log_psi = model.apply({"params": parameters}, HILBERT.all_states())
        psi = jnp.exp(log_psi)
        return jnp.real(jnp.vdot(psi, ISING.to_dense() @ psi) / jnp.vdot(psi, psi))
    for a, b in zip(jax.tree.leaves(state.expect_and_grad(ISING)[1]), jax.tree.leaves(jax.grad(energy)(state.parameters))):
        np.testing.assert_allclose(a, b.conj(), rtol=1e-4, atol=1e-6)


def test_the_ground_state():
    sampler = nk.sampler.MetropolisLocal(HILBERT, n_chains=8)
    state = nk.vqs.MCState(sampler, nk.models.RBM(alpha=1), n_samples=256, seed=2, sampler_seed=3)
    driver = nk.driver.VMC_SR(ISING, nk.optimizer.Sgd(0.1), variational_state=state, diag_shift=0.01)
    driver.run(60, out=nk.logging.RuntimeLog(), show_progress=False)
    assert abs(float(state.expect(ISING).mean.real) - EXACT) < 0.02 * abs(EXACT)
