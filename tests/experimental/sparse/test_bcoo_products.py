"""Products of BCOO with dense and with sparse arrays."""
import numpy as np
from sparse_arrays import CUBE, OTHER, WIDE, D, dense, same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCOO


def test_products_with_dense_and_with_sparse_arrays():
    stack = [BCOO.fromdense(CUBE, n_batch=b, nse=12 if not b else None) for b in (0, 1)]
    flat = BCOO.fromdense(D)
    numbers = [(((2,), (2,)), ((), ())), (((1, 2), (1, 2)), ((), ())), (((), ()), ((), ())),
               (((0, 2), (0, 2)), ((), ()))]
    of_batch = [(((2,), (2,)), ((0,), (0,))), (((), ()), ((0,), (0,))), (((1,), (1,)), ((0,), (0,)))]

    def products(stack, flat, np_like):
        found = {"mv": flat @ D[0], "mm": flat @ D.T, "rmm": D.T @ flat, "vm": D[:, 0] @ flat}
        for i, mat in enumerate(stack):
            found[f"{i} wide"] = mat @ WIDE
            for j, n in enumerate(numbers + of_batch * (i > 0)):
                found[f"{i} {j}"] = np_like(mat, OTHER, dimension_numbers=n)
                found[f"{i} {j} swapped"] = np_like(OTHER, mat, dimension_numbers=n)
        found["sparse"] = np_like(stack[0], stack[0], dimension_numbers=numbers[0])
        for n in of_batch:
            found[f"sparse {n}"] = np_like(stack[1], stack[1], dimension_numbers=n)
        found["sparse mixed"] = np_like(stack[1], stack[0], dimension_numbers=numbers[0])
        found["sparse batches"] = np_like(stack[1], stack[1], dimension_numbers=(((1, 2), (1, 2)), ((), ())))
        return found
    found = jax.jit(lambda s, f: {k: dense(v) for k, v in products(s, f, sparse.bcoo_dot_general).items()})(
        stack, flat)
    of_dense = lambda a, b, dimension_numbers: lax.dot_general(a, b, dimension_numbers)
    expected = jax.jit(lambda s, f: products(s, f, of_dense))([CUBE] * 2, jnp.asarray(D))
    same(found, expected)
    places = np.array([[0, 2], [2, 2], [3, 3]])
    sampled = sparse.bcoo_dot_general_sampled(D, D, places, dimension_numbers=(((1,), (1,)), ((), ())))
    np.testing.assert_allclose(sampled, [0, 25, 0])
    for padding in ("SAME", "VALID", [(2, 1)]):
        lhs, rhs = np.array([[[0, 1, 2, 0]]], np.float32), np.array([[[1, 3]]], np.float32)
        found = sparse.bcoo_conv_general_dilated(BCOO.fromdense(lhs), BCOO.fromdense(rhs),
                                                 window_strides=(1,),
                                                 padding=padding)
        np.testing.assert_allclose(found.todense(), lax.conv_general_dilated(lhs, rhs, (1,), padding))


def test_factors_of_different_layouts_have_the_batch_axes_of_the_one_with_fewer():
    made = lambda x, **layout: BCOO.fromdense(x, nse=12 if x.ndim == 3 and not layout else None, **layout)
    pairs = {"batch and none": (made(D, n_batch=1), made(D), 0), "row": (made(D), made(D[0], n_batch=1), 0),
             "cube and matrix": (made(CUBE, n_batch=2), made(D), 1),
             "cube and vector": (made(D[0]), made(CUBE, n_batch=1), 1)}
    found = jax.jit(lambda pairs: {k: a * b for k, (a, b, _) in pairs.items()})(pairs)
    for name, (a, b, n_batch) in pairs.items():
        assert found[name].n_batch == n_batch, name
        np.testing.assert_array_equal(found[name].todense(), a.todense() * b.todense(), name)
