"""Where in its arrays a kernel is: the place in the grid, and the blocks of operands and results there."""
import contextlib
import functools
import threading

import numpy as np

from ... import lax, numpy as jnp
from ...api.contexts import make_user_context
from ...core import dtypes
from ...core.config import state
from ...core.pytrees import pytree
from ...numpy.indexing.index_entries import Slice
from ...ref import new_ref
from .parts import cdiv
from .specs import Blocked, BlockSpec, BoundedSlice, Element, Squeezed, no_block_spec

_places = threading.local()
_ANYWHERE = Element, BoundedSlice       # dimensions whose blocks begin at any element
interpreted = make_user_context()       # the InterpretParams of kernels that are not compiled


class Place:
    """A place, `ids`, of a grid, at which a kernel runs; `core` is a Ref where that is compiled."""

    def __init__(self, ids, grid, core=None):
        self.ids, self.grid, self.core, self._trace = ids, grid, core, state.trace

    @functools.cached_property
    def barrier(self):
        """The semaphore for meeting other devices."""
        return self._memory(np.zeros((), np.int32))

    @functools.cached_property
    def random_state(self):
        """The words of the key from which random bits are made."""
        return self._memory(np.zeros(2, np.uint32))

    def _memory(self, value):
        with state.changed(trace=self._trace):      # the kernel's own, also within a branch or a loop of it
            return new_ref(value)


def place_of(function):
    """The Place, for a function of kernels.  ValueError outside of these."""
    found = getattr(_places, "stack", [])
    if not found:
        raise ValueError(f"pallas.{function} is for kernels: call it in the function given to pallas_call")
    return found[-1]


def core_of_kernel():
    """The Ref by which what a core does is in order, in a kernel that is traced to be compiled, or None."""
    found = getattr(_places, "stack", [])
    return found[-1].core if found else None


def program_id(axis):
    """The place in the grid at which a kernel runs, along an axis.  ValueError outside of kernels, and for an
    axis that the grid does not have."""
    return _along("program_id", "ids", axis)


def num_programs(axis):
    """The size of the grid along an axis.  ValueError outside of kernels, and for other axes."""
    return _along("num_programs", "grid", axis)


def _along(function, which, axis):
    found = place_of(function)
    if not 0 <= axis < len(found.grid):
        raise ValueError(f"pallas.{function}({axis}): the grid {found.grid} has axes 0 to "
                         f"{len(found.grid) - 1}" if found.grid else
                         f"pallas.{function}({axis}): the kernel has no grid: give grid=...")
    return getattr(found, which)[axis]


@contextlib.contextmanager
def at_place(ids, grid, core=None):
    """A context in which a kernel runs at a place of a grid."""
    if not hasattr(_places, "stack"):
        _places.stack = []
    _places.stack.append(Place(ids, grid, core))
    try:
        yield
    finally:
        _places.stack.pop()


def nothing(dtype):
    """What memory holds that was not written."""
    if interpreted.value and interpreted.value.uninitialized_memory == "zero":
        return np.zeros((), dtype)
    if dtypes.is_inexact(dtype):
        return np.array(np.nan, dtype)
    return np.array(dtypes.iinfo(dtype).min if dtypes.is_integer(dtype) else False, dtype)


class Blocks:
    """An operand or a result, called `name` and of the type `like`, by its blocks."""

    def __init__(self, name, spec, like):
        self.name, self.shape, self.dtype = name, tuple(like.shape), like.dtype
        self.memory_space = getattr(spec, "memory_space", None)
        whole = spec is no_block_spec or spec is None or spec.block_shape is None
        self.dims = [Blocked(n) for n in self.shape] if whole else [*map(self._dim, spec.block_shape)]
        self.index_map = None if whole and (spec is no_block_spec or spec is None) else spec.index_map
        if len(self.dims) != len(self.shape):
            raise ValueError(f"pallas_call: the block shape of {name}, {spec.block_shape}, must have the same"
                             f" number of dimensions as the array shape {self.shape}")
        self.sizes = [getattr(dim, "block_size", 1) for dim in self.dims]
        self.padding = [getattr(dim, "padding", (0, 0)) for dim in self.dims]
        self.inner = tuple(n for n, dim in zip(self.sizes, self.dims) if not isinstance(dim, Squeezed))

    def _dim(self, dim):
        if dim is None:
            return Squeezed()
        if isinstance(dim, (Blocked, Squeezed, Element, BoundedSlice)):
            return dim
        if hasattr(dim, "__index__"):
            return Blocked(int(dim))
        raise NotImplementedError(f"pallas_call: dimension {dim} in the block shape of {self.name} is not "
                                  "supported: there are ints, None, Blocked, Squeezed, Element and "
                                  "BoundedSlice")

    def padded(self, array):
        """The array with its padding, up to the end of its last blocks."""
        def beyond(n, size, dim, padding):
            begin, end = padding
            return begin, max(end, size - 1) if isinstance(dim, _ANYWHERE) else cdiv(n, size) * size - n
        width = [beyond(*each) for each in zip(self.shape, self.sizes, self.dims, self.padding)]
        if not any(map(any, width)):
            return array
        return jnp.pad(array, width, constant_values=nothing(array.dtype))

    def index(self, ids, scalars):
        """The index of the block of a place in the grid."""
        if self.index_map is None:
            return (0,) * len(self.shape)
        index = self.index_map(*ids, *scalars)
        index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        if len(index) != len(self.shape):
            raise ValueError(f"pallas_call: the index map of {self.name} must return {len(self.shape)} "
                             f"values, one for each dimension of its blocks, and returns {len(index)}")
        return index

    def place(self, ids, scalars):
        """Where that block begins, and {dimension: how much of it there is} for those that say so."""
        starts, held = [], {}
        for d, (i, size, dim) in enumerate(zip(self.index(ids, scalars), self.sizes, self.dims)):
            if isinstance(dim, BoundedSlice):
                if isinstance(i, slice):
                    i = Slice(i.start or 0, i.stop - (i.start or 0))
                if not isinstance(i, Slice):
                    raise TypeError(f"pallas_call: the index map of {self.name} must return a slice, such as "
                                    f"pl.ds(start, size), for dimension {d}, a BoundedSlice, not {i!r:.60}")
                i, held[d] = i.start, i.size
            starts.append(i if isinstance(dim, _ANYWHERE) else i * size)
        return starts, held

    def read(self, array, place):
        """The block at a place, as a kernel has it."""
        return lax.dynamic_slice(array, place[0], self.sizes).reshape(self.inner)

    def write(self, array, block, place):
        """The array with a block."""
        starts, held = place
        block = block.reshape(self.sizes)
        for d, size in held.items():
            inside = lax.broadcasted_iota(np.int32, self.sizes, d) < size
            block = jnp.where(inside, block, lax.dynamic_slice(array, starts, self.sizes))
        return lax.dynamic_update_slice(array, block, starts)

    def cut(self, array):
        """What of the padded array is the result."""
        return array[tuple(slice(begin, begin + n) for n, (begin, _) in zip(self.shape, self.padding))]


def blocks_of(what, specs, values, is_leaf=lambda x: False):
    """(The Blocks of a pytree of operands, "in", or results, "out", its structure)."""
    leaves, structure = pytree.tree_flatten(values, is_leaf=is_leaf)
    if specs is no_block_spec:
        flat = [no_block_spec] * len(leaves)
    else:
        flat = pytree.tree_leaves(specs, is_leaf=lambda x: x is None or isinstance(x, BlockSpec))
        each = pytree.tree_leaves(values, is_leaf=lambda x: x is None or is_leaf(x))
        if len(flat) == len(each):      # what is None has no block
            flat = [spec for spec, x in zip(flat, each) if x is not None]
    if len(flat) != len(leaves):
        raise ValueError(f"pallas_call: {what}_specs has {len(flat)} BlockSpecs, and there are "
                         f"{len(leaves)} {what}puts; they must be as many")
    pairs = enumerate(zip(flat, leaves))
    return [Blocks(f"{what}put {i}", spec, x) for i, (spec, x) in pairs], structure
