"""Kernels in interpret mode: a loop over the grid, in which a kernel has Refs of its blocks.

What of a block is beyond the array, and results and scratch that were not written, hold NaN, the least
integer or False.
"""
import math

from ... import lax, numpy as jnp
from ...core.pytrees import pytree
from ...ref import new_ref
from .grid_blocks import at_place, blocks_of, nothing, place_of


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
    place_of("run_scoped")
    if collective_axes:
        raise NotImplementedError(f"pallas.run_scoped: collective_axes={collective_axes!r}")
    args, keywords = pytree.tree_map(lambda like: new_ref(_memory(like)), (types, named))
    return f(*args, **keywords)


def _memory(like):
    return jnp.full(like.shape, nothing(like.dtype), like.dtype)


def run_as_loop(title, kernel, out_shape, spec, aliases, args):
    """The results of `pallas_call` for these arrays."""
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
