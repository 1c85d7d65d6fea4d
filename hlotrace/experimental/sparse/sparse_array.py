"""What all sparse arrays have in common, and the helpers of their operations.

A sparse array is a few arrays, of which the first holds its numbers, and a shape.  Leading batch axes of the
arrays may have size 1 where the shape has more: then all elements of the batch share what they hold.
"""
import math
from functools import partial

from ... import numpy as jnp
from ...api.shape_dtype_struct import ShapeDtypeStruct, eval_shape
from ...api.vmap import vmap
from ...core.avals import aval_of, is_arraylike
from ...core.trace import is_concrete


class SparseEfficiencyWarning(UserWarning):
    """A sparse array is stored in a way that takes much memory or time."""


class SparseEfficiencyError(ValueError):
    """A layout was requested that takes much memory; `on_inefficient="warn"` makes it a warning."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """For programs that filter it: operations here are gathers and scatters, and cuSPARSE is not called."""


class JAXSparse:
    """The base of the sparse arrays: pytrees whose first leaf is `data`.

    A subclass names its arrays in `_arrays` and its flags in `_flags`; the rest raises NotImplementedError.
    """
    __hash__ = None
    __array_ufunc__ = None      # NumPy arrays leave binary operations to this class
    instead_of_an_array = ("It is sparse: use x @ y and its methods, sparse.sparsify(function), or the array "
                           "of sparse.todense(x).")
    _arrays = ()
    _flags = ()
    _places = None       # `sparsify` sets it: equal where the indices are known to be the same

    def __init__(self, args, *, shape):
        self.shape = tuple(map(int, shape))
        for name, value in zip(self._arrays, args, strict=True):
            setattr(self, name, jnp.asarray(value))

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in ("__neg__ __pos__ __abs__ __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ "
                     "__rtruediv__ __pow__ __rpow__ __matmul__ __rmatmul__ __getitem__ sum").split():
            if not hasattr(cls, name):
                setattr(cls, name, _missing(name))

    dtype = property(lambda self: self.data.dtype)
    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))
    T = property(lambda self: self.transpose())
    _bufs = property(lambda self: tuple(getattr(self, name) for name in self._arrays))

    def _replace(self, data):
        """This array with other numbers."""
        _, (shape, _, flags) = self.tree_flatten()
        new = type(self)((data, *self._bufs[1:]), shape=shape, **dict(zip(self._flags, flags)))
        new._places = self._places
        return new

    def _compare(self, other):
        raise NotImplementedError(f"comparisons of {type(self).__name__} arrays, here with "
                                  f"{type(other).__name__}, are not implemented, as their result is dense: "
                                  "convert the arguments with sparse.todense()")
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare

    def block_until_ready(self):
        """Wait until the arrays are computed; gives the sparse array."""
        for array in self._bufs:
            array.block_until_ready()
        return self

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self):
        kinds = "".join(f", {name}={n}" for name in ("n_batch", "n_dense") if (n := getattr(self, name, 0)))
        try:
            said = f"{type(self).__name__}({self.dtype.name}{list(self.shape)}, nse={self.nse}{kinds})"
        except Exception:       # a pytree of other things than arrays
            return f"<{type(self).__name__}>"
        return said if all(map(is_concrete, self._bufs)) else f"Tracer[{said}]"

    # A transformation may put batch axes in front of the arrays, or take them away: the shape follows.
    def tree_flatten(self):
        return self._bufs, (self.shape, getattr(self, "n_batch", 0),
                            tuple(getattr(self, name) for name in self._flags))

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        shape, known, flags = aux_data
        self = object.__new__(cls)
        vars(self).update(zip((*cls._arrays, *cls._flags), (*children, *flags)))
        sparse_dense = shape[known:]
        found = getattr(self, "n_batch", known) if all(hasattr(x, "ndim") for x in children) else known
        batch = [max(x.shape[axis] if x.ndim > axis else 1 for x in children) for axis in range(found)] \
            if found != known else shape[:known]
        self.shape = (*batch, *sparse_dense)
        return self


def _missing(name):
    def method(self, *_, **__):
        raise NotImplementedError(f"{type(self).__name__}.{name} is not implemented: make it a BCOO, or use "
                                  "todense()")
    method.__name__ = name
    return method


def described(value):
    """What an argument is, in a few words."""
    if is_arraylike(value):
        return aval_of(value).str_short()
    return f"{value!r:.60} of type {type(value).__name__}"


def dense_shape(function, *args, **params):
    """The shape that a function of dense arrays gives for sparse ones, or its error."""
    args = [ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, JAXSparse) else x for x in args]
    return eval_shape(partial(function, **params), *args).shape


def refuse(**given):
    """NotImplementedError for a keyword that has been given."""
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(f"{name}={value!r:.40} of sparse arrays is not implemented")


def batched(fun, n_batch):
    """`fun` mapped over `n_batch` leading axes of its arguments; those of size 1 share an argument."""
    if not n_batch:
        return fun

    def mapped(*args):
        inner = batched(fun, n_batch - 1)
        size = max((x.shape[0] for x in args if x.shape[0] != 1), default=1)
        shared = [x.shape[0] == 1 != size for x in args]
        return vmap(inner, tuple(None if s else 0 for s in shared))(*[x[0] if s else x
                                                                      for x, s in zip(args, shared)])
    return mapped


def columns(indices):
    """Indices [nse, n_sparse] as a tuple of n_sparse arrays."""
    return tuple(indices[:, i] for i in range(indices.shape[1]))


def outside(indices, sizes):
    """[nse]: which elements are padding, as one of their indices is out of bounds?"""
    limits = jnp.asarray(sizes, indices.dtype).reshape((1,) * (indices.ndim - 1) + (-1,))
    return (indices >= limits).any(-1)


def masked(mask, data, other=0):
    """The numbers where `mask` [nse] is True, else `other`."""
    return jnp.where(mask.reshape(mask.shape + (1,) * (data.ndim - mask.ndim)), data,
                     jnp.asarray(other, data.dtype))


def static_count(what, count, error=ValueError):
    """A number that must be known, as an int."""
    if not is_concrete(count):
        raise error(f"{what}: nse must be specified when using the function within jit, vmap, and other "
                         "transformations requiring abstract evaluation: how many elements there are is not "
                         "known then.")
    return int(count)
