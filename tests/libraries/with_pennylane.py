"""PennyLane: circuits as functions of arrays, their derivatives, batches and a minimum."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pennylane as qml
import pytest


@pytest.mark.parametrize("method", ["backprop", "parameter-shift", "adjoint"])
def test_a_circuit_and_its_derivative(method):
    @qml.qnode(qml.device("default.qubit", wires=2), diff_method=method)
    def circuit(x):
        qml.RX(x[0], wires=0)
        qml.RY(x[1], wires=1)
        qml.CNOT(wires=[0, 1])
        return qml.expval(qml.PauliZ(1))
    x = jnp.array([0.4, 0.7])
    np.testing.assert_allclose(circuit(x), np.cos(0.4) * np.cos(0.7), rtol=1e-5)
    slope = [-np.sin(0.4) * np.cos(0.7), -np.cos(0.4) * np.sin(0.7)]
    np.testing.assert_allclose(jax.grad(circuit)(x), slope, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.grad(circuit))(x), slope, rtol=1e-4)


def test_states_probabilities_and_batches():
    @qml.qnode(qml.device("default.qubit", wires=2))
    def bell(x):
        qml.RY(x, wires=0)
        qml.CNOT(wires=[0, 1])
        return qml.probs(wires=[0, 1]), qml.state()
    probabilities, state = bell(jnp.array(jnp.pi / 2))
    np.testing.assert_allclose(probabilities, [0.5, 0, 0, 0.5], atol=1e-6)
    np.testing.assert_allclose(np.abs(state) ** 2, probabilities, atol=1e-6)
    batch = jax.vmap(lambda x: bell(x)[0])(jnp.array([0., jnp.pi]))
    np.testing.assert_allclose(batch, [[1, 0, 0, 0], [0, 0, 0, 1]], atol=1e-6)
    hessian = jax.hessian(lambda x: bell(x)[0][0])(0.3)
    np.testing.assert_allclose(hessian, -np.cos(0.3) / 2, rtol=1e-4)


def test_the_ground_state_of_a_hamiltonian():
    energy = qml.Hamiltonian([1., 0.5], [qml.PauliZ(0) @ qml.PauliZ(1), qml.PauliX(0)])

    @jax.jit
    @qml.qnode(qml.device("default.qubit", wires=2))
    def circuit(x):
        for wire in range(2):
            qml.Rot(*x[wire], wires=wire)
        qml.CNOT(wires=[0, 1])
        qml.RY(x[2, 0], wires=0)
        return qml.expval(energy)
    optimizer = optax.adam(0.2)
    x = jnp.full((3, 3), 0.3)
    state = optimizer.init(x)
    for _ in range(80):
        change, state = optimizer.update(jax.grad(circuit)(x), state)
        x = optax.apply_updates(x, change)
    np.testing.assert_allclose(circuit(x), np.linalg.eigvalsh(qml.matrix(energy)).min(), atol=1e-2)
