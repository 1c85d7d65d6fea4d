"""Sparse arrays as types with places in a list of arrays, for those who write rules of `sparsify`."""
from __future__ import annotations

from typing import NamedTuple

from ... import numpy as jnp
from ...core.jaxpr import eval_jaxpr
from ...core.pytrees import pytree
from ...core.surface.public import export_names
from .bcoo import BCOO
from .bcsr import BCSR
from .sparsify import is_sparse, sparsify as _sparsify

__all__ = ["SparsifyEnv", "SparsifyValue", "arrays_to_spvalues", "eval_sparse", "sparsify_raw",
           "spvalues_to_arrays"]


class SparsifyValue(NamedTuple):
    """An array, dense or sparse: its shape, and where its parts are in a SparsifyEnv."""
    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    ndim = property(lambda self: len(self.shape), doc="The number of axes.")

    def is_sparse(self):
        """Does it have indices?"""
        return self.indices_ref is not None

    def is_dense(self):
        """Is it one array?"""
        return self.indices_ref is None

    def is_bcoo(self):
        """Is it a BCOO?"""
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self):
        """Is it a BCSR?"""
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The arrays that SparsifyValues are made of; several may share one."""

    def __init__(self, bufs=()):
        self._buffers = list(bufs)

    def _push(self, x):
        if x is None:
            return None
        self._buffers.append(jnp.asarray(x))
        return len(self._buffers) - 1

    def data(self, spvalue):
        """The numbers of a value."""
        return self._buffers[spvalue.data_ref]

    def indices(self, spvalue):
        """Its indices, or None."""
        return None if spvalue.indices_ref is None else self._buffers[spvalue.indices_ref]

    def indptr(self, spvalue):
        """Where its rows begin, or None."""
        return None if spvalue.indptr_ref is None else self._buffers[spvalue.indptr_ref]

    def dense(self, data):
        """A dense array as a value."""
        return SparsifyValue(jnp.shape(data), self._push(data))

    def sparse(self, shape, data=None, indices=None, indptr=None, *, data_ref=None, indices_ref=None,
               indptr_ref=None, indices_sorted=False, unique_indices=False):
        """A sparse array as a value, of parts that are given, or are here at some place already."""
        parts = (data, data_ref), (indices, indices_ref), (indptr, indptr_ref)
        return SparsifyValue(tuple(shape), *(self._push(x) if at is None else at for x, at in parts),
                             indices_sorted, unique_indices)


def arrays_to_spvalues(spenv, args):
    """A pytree of arrays, dense and sparse, as one of SparsifyValues.

    >>> from hlotrace.experimental import sparse
    >>> from hlotrace.experimental.sparse.transform import SparsifyEnv, arrays_to_spvalues
    >>> value = arrays_to_spvalues(SparsifyEnv(), sparse.eye(3))
    >>> value.shape, value.data_ref, value.indices_ref, value.is_bcoo()
    ((3, 3), 0, 1, True)
    """
    def value(x):
        if not is_sparse(x):
            return spenv.dense(x)
        if not isinstance(x, (BCOO, BCSR)):
            raise NotImplementedError(f"arrays_to_spvalues: {type(x).__name__} is not supported: use BCOO or "
                                      "BCSR")
        return spenv.sparse(x.shape, x.data, x.indices, getattr(x, "indptr", None),
                            indices_sorted=x.indices_sorted, unique_indices=x.unique_indices)
    return pytree.tree_map(value, args, is_leaf=is_sparse)


def spvalues_to_arrays(spenv, spvalues):
    """The arrays, dense and sparse, that a pytree of SparsifyValues is.

    >>> from hlotrace.experimental.sparse.transform import SparsifyEnv, arrays_to_spvalues, spvalues_to_arrays
    >>> env = SparsifyEnv()
    >>> spvalues_to_arrays(env, arrays_to_spvalues(env, [jnp.arange(3)]))
    [Array([0, 1, 2], dtype=int32)]
    """
    def array(v):
        if v.is_dense():
            return spenv.data(v)
        parts = [x for x in (spenv.data(v), spenv.indices(v), spenv.indptr(v)) if x is not None]
        return (BCOO if v.is_bcoo() else BCSR)(parts, shape=v.shape, indices_sorted=v.indices_sorted,
                                               unique_indices=v.unique_indices)
    return pytree.tree_map(array, spvalues, is_leaf=lambda x: isinstance(x, SparsifyValue))


def sparsify_raw(f):
    """`f` as a function (spenv, *spvalues, **params) -> (list of the results' values, their structure).

    >>> from hlotrace.experimental import sparse
    >>> from hlotrace.experimental.sparse import transform
    >>> env = transform.SparsifyEnv()
    >>> eye = transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> (doubled,), _ = transform.sparsify_raw(lambda x: x * 2)(env, eye)
    >>> transform.spvalues_to_arrays(env, doubled).todense()
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    def wrapped(spenv, *spvalues, **params):
        out = _sparsify(f)(*spvalues_to_arrays(spenv, spvalues), **params)
        leaves, tree = pytree.tree_flatten(out, is_leaf=is_sparse)
        known = {id(x): i for i, x in enumerate(spenv._buffers)}

        def value(x):
            v = arrays_to_spvalues(SparsifyEnv(), x)
            parts = [x] if v.is_dense() else [x.data, x.indices, getattr(x, "indptr", None)]
            places = [known[id(x)] if id(x) in known else spenv._push(x) for x in parts]
            return v._replace(**dict(zip(("data_ref", "indices_ref", "indptr_ref"), places)))
        return [value(x) for x in leaves], tree
    return wrapped


def eval_sparse(jaxpr, consts, spvalues, spenv):
    """The values of a program's results, for values of its inputs.

    >>> from hlotrace.experimental import sparse
    >>> from hlotrace.experimental.sparse import transform
    >>> env, program = transform.SparsifyEnv(), jax.make_jaxpr(lambda x: x * 2)(jnp.eye(2))
    >>> inputs = [transform.arrays_to_spvalues(env, jnp.eye(2))]
    >>> [value.shape for value in transform.eval_sparse(program.jaxpr, program.consts, inputs, env)]
    [(2, 2)]
    """
    return sparsify_raw(lambda *xs: eval_jaxpr(jaxpr, consts, *xs))(spenv, *spvalues)[0]


export_names(globals())
