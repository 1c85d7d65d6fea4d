"""The pieces of JAX's jacfwd and jacrev: put together they give Jacobians of pytrees."""
from functools import partial

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.as_jax import jacobians
from hlotrace.extend.linear_util import wrap_init

X = {"a": jnp.arange(3.), "b": jnp.ones((2, 2))}


def function(x):
    return jnp.sin(x["a"]) * x["b"].sum(), x["b"] ** 2


def test_forward_and_backward_pieces_make_jacobians():
    wanted = jax.jacfwd(function)(X)
    push = partial(jacobians.jvp, wrap_init(function), (X,))
    columns = jax.vmap(lambda t: push((t,))[1], out_axes=-1)(jacobians.std_basis(X))
    forward = jax.tree.map(partial(jacobians.jacfwd_unravel, X, None), columns)
    value, pull = jax.vjp(function, X)
    rows = jax.vmap(pull)(jacobians.std_basis(value))[0]
    backward = jax.tree.map(partial(jacobians.jacrev_unravel, value, None), rows)
    for name in "a", "b":
        for i in range(2):
            np.testing.assert_allclose(forward[i][name], wanted[i][name], rtol=1e-6)
            np.testing.assert_allclose(backward[name][i], wanted[i][name], rtol=1e-6)


@pytest.mark.parametrize("check, right, wrong", [
    (partial(jacobians.check_input_dtype_jacfwd, False), 1., 1),
    (partial(jacobians.check_input_dtype_jacfwd, True), 1j, 1.),
    (partial(jacobians.check_output_dtype_jacfwd, True), 1j, 1.),
    (partial(jacobians.check_input_dtype_jacrev, False, False), 1., 1),
    (partial(jacobians.check_input_dtype_jacrev, True, False), 1j, 1.),
    (partial(jacobians.check_output_dtype_jacrev, False), 1., 1),
    (partial(jacobians.check_output_dtype_jacrev, True), 1j, 1.)])
def test_dtypes(check, right, wrong):
    check(right)
    with pytest.raises(TypeError, match="jac"):
        check(wrong)
    jacobians.check_input_dtype_jacrev(False, True, 1)
