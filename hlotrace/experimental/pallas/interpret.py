"""Kernels in interpret mode: a loop over the grid, in which a kernel has Refs of its blocks.

What of a block is beyond the array, and results and scratch that were not written, hold NaN, the least
integer or False.
"""
import contextlib
import math
import threading

import numpy as np

from ... import lax, numpy as jnp
from ...core import dtypes
from ...core.pytrees import pytree
from ...ref import new_ref
from ...runtime.devices.client import default_backend
from .parts import cdiv
from .specs import Blocked, BlockSpec, Element, GridSpec, Squeezed, no_block_spec

_places = threading.local()


def run_scoped(f, *types, collective_axes=(), **named):
    """`f` with Refs of memory that it alone has, for a kernel.

    Args:
        types: of the memory that its arguments are, such as `tpu.VMEM((8, 128), jnp.float32)`, or pytrees.
        collective_axes: not supported; empty.
        named: those of its keyword arguments.
    Returns:
        What it returns.

    >>> pl, tpu = jax.experimental.pallas, jax.experimental.pallas.tpu
    >>> def kernel(x, out):
    ...     def doubled(memory):
    ...         memory[...] = x[...]
    ...         out[...] = memory[...] * 2
    ...     pl.run_scoped(doubled, tpu.VMEM((3,), jnp.float32))
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), "float32"), interpret=True)(jnp.arange(3.))
    Array([0., 2., 4.], dtype=float32)
    """
    _place("run_scoped")
    if collective_axes:
        raise NotImplementedError(f"pallas.run_scoped: collective_axes={collective_axes!r}")
    args, keywords = pytree.tree_map(lambda like: new_ref(_memory(like)), (types, named))
    return f(*args, **keywords)


def _place(function):
    found = getattr(_places, "stack", [])
    if not found:
        raise ValueError(f"pallas.{function} is for kernels: call it in the function given to pallas_call")
    return found[-1]


def program_id(axis):
    """The place in the grid at which a kernel runs, along an axis.  ValueError outside of kernels."""
    return _place("program_id")[0][axis]


def num_programs(axis):
    """The size of the grid along an axis.  ValueError outside of kernels."""
    return _place("num_programs")[1][axis]


@contextlib.contextmanager
def at_place(ids, grid):
    if not hasattr(_places, "stack"):
        _places.stack = []
    _places.stack.append((ids, grid))
    try:
        yield
    finally:
        _places.stack.pop()


def _nothing(dtype):
    """What memory holds that was not written."""
    if dtypes.is_inexact(dtype):
        return np.array(np.nan, dtype)
    return np.array(dtypes.iinfo(dtype).min if dtypes.is_integer(dtype) else False, dtype)


def _memory(like):
    return jnp.full(like.shape, _nothing(like.dtype), like.dtype)


class Blocks:
    """An operand or a result, called `name` and of the type `like`, by its blocks."""

    def __init__(self, name, spec, like):
        self.name, self.shape, self.dtype = name, tuple(like.shape), like.dtype
        whole = spec is no_block_spec or spec is None or spec.block_shape is None
        self.dims = [Blocked(n) for n in self.shape] if whole else [*map(self._dim, spec.block_shape)]
        self.index_map = None if whole and (spec is no_block_spec or spec is None) else spec.index_map
        if len(self.dims) != len(self.shape):
            raise ValueError(f"pallas_call: the block shape of {name}, {spec.block_shape}, must have the same"
                             f" number of dimensions as the array shape {self.shape}")
        self.sizes = [getattr(dim, "block_size", 1) for dim in self.dims]
        self.inner = tuple(n for n, dim in zip(self.sizes, self.dims) if not isinstance(dim, Squeezed))

    def _dim(self, dim):
        if dim is None:
            return Squeezed()
        if isinstance(dim, (Blocked, Squeezed)) or isinstance(dim, Element) and dim.padding == (0, 0):
            return dim
        if hasattr(dim, "__index__"):
            return Blocked(int(dim))
        raise NotImplementedError(f"pallas_call: dimension {dim} in the block shape of {self.name} is not "
                                  "supported: there are ints, None, Blocked, Squeezed and Element without "
                                  "padding")

    def padded(self, array):
        """The array up to the end of its last blocks."""
        def beyond(n, size, dim):
            return size - 1 if isinstance(dim, Element) else cdiv(n, size) * size - n
        width = [(0, beyond(*each)) for each in zip(self.shape, self.sizes, self.dims)]
        if not any(end for _, end in width):
            return array
        return jnp.pad(array, width, constant_values=_nothing(array.dtype))

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

    def starts(self, ids, scalars):
        """Where that block begins."""
        each = zip(self.index(ids, scalars), self.sizes, self.dims)
        return [i if isinstance(dim, Element) else i * size for i, size, dim in each]

    def read(self, array, starts):
        """The block that begins there, as a kernel has it."""
        return lax.dynamic_slice(array, starts, self.sizes).reshape(self.inner)

    def write(self, array, block, starts):
        """The array with a block."""
        return lax.dynamic_update_slice(array, block.reshape(self.sizes), starts)

    def cut(self, array):
        """What of the padded array is the result."""
        return array[tuple(map(slice, self.shape))]


def blocks_of(what, specs, values):
    leaves, structure = pytree.tree_flatten(values)
    if specs is no_block_spec:
        flat = [no_block_spec] * len(leaves)
    else:
        flat = pytree.tree_leaves(specs, is_leaf=lambda x: x is None or isinstance(x, BlockSpec))
    if len(flat) != len(leaves):
        raise ValueError(f"pallas_call: {what}_specs has {len(flat)} BlockSpecs, and there are "
                         f"{len(leaves)} {what}puts; they must be as many")
    each = enumerate(zip(flat, leaves))
    return [Blocks(f"{what}put {i}", spec, x) for i, (spec, x) in each], structure


def pallas_call(kernel, out_shape, *, grid_spec=None, grid=(), in_specs=no_block_spec,
                out_specs=no_block_spec, scratch_shapes=(), input_output_aliases=None, interpret=False,
                name=None, debug=False, compiler_params=None, cost_estimate=None, metadata=None):
    """The function of arrays that a kernel is, run at each place of a grid.

    Args:
        kernel: a function of Refs: of the operands' blocks, the results' blocks and scratch; it returns None.
        out_shape: the type of the result, or a pytree of them.
        grid_spec: a GridSpec, in the place of the next four.
        grid: sizes; places are gone through in order, the last axis fastest.
        in_specs: a BlockSpec for each operand; without, a kernel has whole arrays.
        out_specs: one for each result.
        scratch_shapes: types of memory that a kernel has besides and keeps from place to place; those of a
            dictionary are keyword arguments.
        input_output_aliases: {operand: result}: numbers; what is not written of the result is the operand's.
        interpret: must be true: a loop of operations, on any device.
        name: for people, as is `debug`, of which nothing depends.
        compiler_params: for compilers of kernels, as are `cost_estimate` and `metadata`.
    Raises:
        ValueError: on the CPU without `interpret`, for specs that do not fit, for a kernel that returns a
            value.
        NotImplementedError: without `interpret` elsewhere, and for a grid of traced sizes.

    >>> from hlotrace.experimental import pallas as pl
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> pl.pallas_call(double, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(2,), interpret=True,
    ...                in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
    ...                out_specs=pl.BlockSpec((4,), lambda i: (1 - i,)))(jnp.arange(8.))
    Array([ 8., 10., 12., 14.,  0.,  2.,  4.,  6.], dtype=float32)
    """
    if not callable(kernel):
        raise TypeError(f"pallas_call: the kernel is a function of Refs, not {kernel!r:.60}")
    spec = grid_spec or GridSpec(grid, in_specs, out_specs, scratch_shapes)
    title = name or getattr(kernel, "__name__", "kernel")

    def call(*args):
        _check(title, interpret, spec.grid)
        arrays = pytree.tree_map(jnp.asarray, args)
        if interpret is True:
            return _run(title, kernel, out_shape, spec, input_output_aliases or {}, arrays)
        from .compiled import call_compiled
        return call_compiled(title, kernel, out_shape, spec, input_output_aliases or {}, arrays, compiler_params)
    call.__name__ = title
    return call


def _check(title, interpret, grid):
    if interpret is not True and interpret is not False:
        raise NotImplementedError(f"pallas_call of {title}: interpret={interpret!r} is not supported: True runs "
                                  "it as a loop, False compiles it")
    if not all(isinstance(n, (int, np.integer)) for n in grid):
        raise NotImplementedError(f"pallas_call of {title}: grid={grid} has a size that is no int; sizes are "
                                  "known when a kernel is traced")


def _run(title, kernel, out_shape, spec, aliases, args):
    count, grid = getattr(spec, "num_scalar_prefetch", 0), spec.grid
    scalars, operands = args[:count], args[count:]
    ins, in_tree = blocks_of("in", spec.in_specs, operands)
    outs, out_tree = blocks_of("out", spec.out_specs, out_shape)
    arrays = [b.padded(x) for b, x in zip(ins, pytree.tree_leaves(operands))]
    results = [b.padded(_memory(like)) for b, like in zip(outs, pytree.tree_leaves(out_shape))]
    for i, j in aliases.items():
        results[j] = outs[j].padded(pytree.tree_leaves(args)[i])
    named = isinstance(spec.scratch_shapes, dict)
    kept, scratch_tree = pytree.tree_flatten(spec.scratch_shapes)
    scratch = [_memory(like) for like in kept]

    def step(number, state):
        results, scratch = state
        ids = [number // math.prod(grid[axis + 1:]) % n for axis, n in enumerate(grid)]
        first = [new_ref(x) for x in scalars]
        with at_place(ids, grid):
            at_in, at_out = ([b.starts(ids, first) for b in each] for each in (ins, outs))
            read = [new_ref(b.read(x, at)) for b, x, at in zip(ins, arrays, at_in)]
            written = [new_ref(b.read(x, at)) for b, x, at in zip(outs, results, at_out)]
            held = [new_ref(x) for x in scratch]
            own, targets = scratch_tree.unflatten(held), out_tree.unflatten(written)
            targets = targets if isinstance(out_shape, (tuple, list)) else (targets,)
            refs = [*first, *in_tree.unflatten(read), *targets]
            found = kernel(*refs, **own) if named else kernel(*refs, *own)
        if found is not None:
            raise ValueError(f"pallas_call: the kernel {title} should return None; it returns {found!r:.60}")
        return ([b.write(x, ref[...], at) for b, x, ref, at in zip(outs, results, written, at_out)],
                [ref[...] for ref in held])
    results, _ = lax.fori_loop(0, math.prod(grid), step, (results, scratch))
    return out_tree.unflatten([b.cut(x) for b, x in zip(outs, results)])
