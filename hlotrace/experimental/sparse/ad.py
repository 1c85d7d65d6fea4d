"""Derivatives by sparse arrays: of the numbers that are stored, as sparse arrays with the same indices."""
import functools

from ... import numpy as jnp
from ...api import autodiff, jacobians
from ...core.pytrees import pytree
from ...core.surface.public import export_names
from .bcoo import BCOO
from .sparsify import is_sparse

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


def _numbers(x):
    return pytree.tree_map(lambda v: v.data if is_sparse(v) else v, x, is_leaf=is_sparse)


def _filled(like, numbers):
    """`like` with these numbers in its sparse arrays; the numbers may have axes in front."""
    def one(old, new):
        if not is_sparse(old) or new.ndim == old.data.ndim:
            return old._replace(new) if is_sparse(old) else new
        front = new.shape[:new.ndim - old.data.ndim]
        if not isinstance(old, BCOO):
            raise NotImplementedError(f"sparse Jacobians with respect to {type(old).__name__}: make it a "
                                      "BCOO")
        return BCOO((new, jnp.broadcast_to(old.indices, front + old.indices.shape)), shape=front + old.shape,
                    indices_sorted=old.indices_sorted, unique_indices=old.unique_indices)
    return pytree.tree_map(one, like, numbers, is_leaf=is_sparse)


def _by_numbers(transformation, fun, argnums, has_aux, kwargs, filled):
    """`transformation` of `fun` as a function of the numbers; `filled(result, like, out_tree)` undoes it."""
    @functools.wraps(fun)
    def wrapped(*args, **named):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        places = [n % len(args) for n in numbers]
        out_tree = None

        def of_numbers(*given):
            nonlocal out_tree
            whole = list(args)
            for place, data in zip(places, given):
                whole[place] = _filled(args[place], data)
            out = fun(*whole, **named)
            out_tree = pytree.tree_structure(out[0] if has_aux else out)
            return out
        which = 0 if isinstance(argnums, int) else tuple(range(len(places)))
        result = transformation(of_numbers, which, has_aux, **kwargs)(*(_numbers(args[p]) for p in places))
        like = args[places[0]] if isinstance(argnums, int) else tuple(args[p] for p in places)
        return filled(result, like, out_tree)
    return wrapped


def value_and_grad(fun, argnums=0, has_aux=False, **kwargs):
    """`hlotrace.value_and_grad` of a function of sparse arrays, with respect to the numbers that they store.

    >>> value, gradient = sparse.value_and_grad(lambda m: (m @ jnp.array([1., 2.])).sum())(sparse.eye(2))
    >>> value, gradient.data
    (Array(3., dtype=float32), Array([1., 2.], dtype=float32))
    """
    filled = lambda result, like, _: (result[0], _filled(like, result[1]))
    return _by_numbers(autodiff.value_and_grad, fun, argnums, has_aux, kwargs, filled)


def grad(fun, argnums=0, has_aux=False, **kwargs):
    """`hlotrace.grad` of a function of sparse arrays, with respect to the numbers that they store.

    A gradient with respect to a sparse array is one with the same indices.

    >>> sparse.grad(lambda m: (m @ jnp.array([1., 2.])).sum())(sparse.eye(2)).todense()
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    def filled(result, like, _):
        return (_filled(like, result[0]), result[1]) if has_aux else _filled(like, result)
    return _by_numbers(autodiff.grad, fun, argnums, has_aux, kwargs, filled)


def _jacobian_filled(has_aux):
    def filled(result, like, out_tree):
        jacobian, aux = result if has_aux else (result, None)
        whole = out_tree.unflatten([_filled(like, part) for part in out_tree.flatten_up_to(jacobian)])
        return (whole, aux) if has_aux else whole
    return filled


def jacfwd(fun, argnums=0, has_aux=False, **kwargs):
    """`hlotrace.jacfwd` of a function of sparse arrays, with respect to the numbers that they store.

    With respect to a BCOO it is a BCOO with the axes of the result as batch axes in front.

    >>> sparse.jacfwd(lambda m: m @ jnp.array([1., 2.]))(sparse.eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _by_numbers(jacobians.jacfwd, fun, argnums, has_aux, kwargs, _jacobian_filled(has_aux))


def jacrev(fun, argnums=0, has_aux=False, **kwargs):
    """`hlotrace.jacrev` of a function of sparse arrays; the result is that of `sparse.jacfwd`.

    >>> sparse.jacrev(lambda m: m @ jnp.array([1., 2.]))(sparse.eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _by_numbers(jacobians.jacrev, fun, argnums, has_aux, kwargs, _jacobian_filled(has_aux))


jacobian = jacrev

export_names(globals())
