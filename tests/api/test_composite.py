"""Library functions of several primitives: eager transformations call each as one program, which is found again."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import jaxpr as jaxprs
from hlotrace.runtime.executables.executable import Executable

A = jnp.asarray(np.random.default_rng(0).standard_normal((5, 4, 4)), jnp.float32)


@pytest.fixture
def runs(monkeypatch):
    """The names of the programs that run on the device."""
    names = []

    def counting(run):
        return lambda self, *args: (names.append(self.lowered.jaxpr.name), run(self, *args))[1]
    for way in ("run", "run_operands", "run_alive"):
        monkeypatch.setattr(Executable, way, counting(getattr(Executable, way)))
    return names


@pytest.mark.parametrize("f", [jnp.linalg.det, jnp.linalg.slogdet, jnp.linalg.inv, jax.nn.relu, jax.nn.softmax, jax.nn.gelu,
                               jnp.linalg.norm])
def test_vmap_of_one_runs_one_program_and_traces_nothing_again(f, runs, monkeypatch):
    want = [f(a) for a in A]
    jax.vmap(f)(A)
    runs.clear()
    monkeypatch.setattr(jaxprs.Jaxpr, "__init__", None)      # nothing is traced
    got = jax.vmap(f)(A)
    assert len(runs) == 1, runs
    for g, *ws in zip(jax.tree.leaves(got), *map(jax.tree.leaves, want), strict=True):
        np.testing.assert_allclose(g, np.stack(ws), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis",
                         [[0, 1], np.array([0, 1]), jnp.array([0, 1]), (jnp.array(0), 1), [np.array(0), 1]])
def test_axes_in_a_list_or_an_array(axis):
    x = jnp.arange(6.0).reshape(2, 3)
    for f in jax.nn.softmax, jax.nn.logsumexp, jnp.median, jnp.mean, jnp.std, jnp.linalg.vector_norm:
        np.testing.assert_array_equal(f(x, axis=axis), f(x, axis=(0, 1)))
        np.testing.assert_array_equal(f(x, axis=np.array(1)), f(x, axis=1))


@pytest.mark.parametrize(("f", "most"), [(jnp.linalg.det, 3), (lambda a: jax.nn.relu(a).sum(), 5)])
def test_the_gradient_of_one_runs_few(f, most, runs):
    want = [jax.jit(jax.grad(f))(a) for a in A]
    for transformed in (lambda: [jax.grad(f)(a) for a in A], lambda: jax.vmap(jax.grad(f))(A)):
        transformed()
        runs.clear()
        got = transformed()
        assert len(runs) <= most * (len(A) if isinstance(got, list) else 1), runs
        np.testing.assert_allclose(got, np.stack(want), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["det", "inv", "slogdet", "solve", "silu"])
def test_programs_name_functions_that_libraries_look_for(name):
    function = getattr(jnp.linalg, name, None) or getattr(jax.nn, name)
    x = jnp.array([[2., 1.], [1., 3.]])
    args = (x, x) if name == "solve" else (x,)
    for f, given in (function, args), (jax.vmap(function), [a[None] for a in args]):
        (eqn,) = jax.make_jaxpr(f)(*given).eqns
        assert eqn.primitive.name == "jit" and eqn.params.get("name") == eqn.params["name"] == name
        assert "name" in eqn.params and len(eqn.invars) == len(args)

    def slope(x):
        return jax.grad(lambda x: sum(y.sum() for y in jax.tree.leaves(function(*[x + 1] * len(args)))))(x)
    np.testing.assert_allclose(jax.jit(slope)(x), slope(x), rtol=1e-5, atol=1e-6)
