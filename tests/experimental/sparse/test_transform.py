"""Sparse arrays as values with places in a list, and functions mapped over axes that broadcast."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse.transform import (
    SparsifyEnv, SparsifyValue, arrays_to_spvalues, eval_sparse, sparsify_raw, spvalues_to_arrays)
from hlotrace.experimental.sparse.util import SparseInfo, broadcasting_vmap, nfold_vmap

X = jnp.arange(2.0)
MAT, ROWS = sparse.BCOO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]])), sparse.BCSR.fromdense(jnp.eye(2))


def test_arrays_go_to_values_and_back():
    env = SparsifyEnv()
    values = arrays_to_spvalues(env, {"a": [X, MAT], "b": ROWS})
    assert values["a"] == [SparsifyValue((2,), 0), SparsifyValue((2, 2), 1, 2, None, True, True)]
    assert [v.is_bcoo() for v in (*values["a"], values["b"])] == [False, True, False]
    assert values["b"].is_bcsr() and values["a"][0].is_dense() and values["b"].ndim == 2
    assert env.indptr(values["b"]) is ROWS.indptr and env.indices(values["a"][0]) is None
    back = spvalues_to_arrays(env, values)
    assert back["a"][0] is X and type(back["a"][1]) is sparse.BCOO and type(back["b"]) is sparse.BCSR
    np.testing.assert_array_equal(back["a"][1].todense(), MAT.todense())
    with pytest.raises(NotImplementedError, match="COO is not supported"):
        arrays_to_spvalues(env, sparse.COO.fromdense(jnp.eye(2)))


def test_raw_functions_share_what_they_do_not_change():
    env = SparsifyEnv()
    x, mat = arrays_to_spvalues(env, (X, MAT))
    (product, twice), tree = sparsify_raw(lambda x, mat, k: (mat @ x, mat * k))(env, x, mat, k=2.0)
    assert tree == jax.tree.structure((0, 0)) and twice.indices_ref == mat.indices_ref != twice.data_ref
    product, twice = spvalues_to_arrays(env, (product, twice))
    np.testing.assert_array_equal(product, MAT.todense() @ X)
    np.testing.assert_array_equal(twice.todense(), 2 * MAT.todense())
    program = jax.make_jaxpr(lambda m: -m)(MAT.todense())
    negative, = spvalues_to_arrays(env, eval_sparse(program.jaxpr, program.consts, [mat], env))
    np.testing.assert_array_equal(negative.todense(), -MAT.todense())
    other = env.sparse((2, 2), jnp.ones(2), indices_ref=mat.indices_ref)
    assert other.indices_ref == mat.indices_ref and other.data_ref == len(env._buffers) - 1


@pytest.mark.parametrize("shapes, options, wanted", [
    ([(1, 4), (3, 4)], {}, (3, 4)), ([(3, 4), (1, 4)], {}, (3, 4)), ([(3, 4), (3, 4)], {}, (3, 4)),
    ([(1, 4), (4, 3)], {"in_axes": (0, 1), "out_axes": 1}, (4, 3)),
    ([(3, 4), (4,)], {"in_axes": (0, None)}, (3, 4))])
def test_mapped_axes_of_size_one_fit_to_others(shapes, options, wanted):
    assert broadcasting_vmap(jnp.add, **options)(*map(jnp.ones, shapes)).shape == wanted


def test_many_axes():
    assert nfold_vmap(jnp.dot, 2)(jnp.ones((1, 3, 4)), jnp.ones((2, 3, 4))).shape == (2, 3)
    assert nfold_vmap(jnp.dot, 1, broadcasted=False)(jnp.ones((3, 4)), jnp.ones((3, 4))).shape == (3,)
    with pytest.raises(ValueError, match=r"mismatched input shapes: the mapped axes have sizes \[2, 3\]"):
        nfold_vmap(jnp.dot, 1)(jnp.ones((3, 4)), jnp.ones((2, 4)))
    assert SparseInfo((2, 3)) == ((2, 3), False, False)
