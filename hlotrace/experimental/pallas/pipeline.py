"""Pipelines within kernels for TPUs: a function run at the places of a grid, with blocks of Refs.

In interpret mode no block is fetched before it is needed: the places are gone through one after another.
"""
import math

from ... import lax, numpy as jnp
from ...core.pytrees import pytree
from ...ref import new_ref
from .grid_blocks import at_place, blocks_of, place_of
from .parts import cdiv
from .specs import BlockSpec


def emit_pipeline(body, *, grid, in_specs=(), out_specs=(), tiling=None, core_axis=None, core_axis_name=None,
                  dimension_semantics=None, trace_scopes=True, no_pipelining=False, _explicit_indices=False):
    """A function of a kernel's Refs that runs `body` at each place of a grid, with blocks of them.

    Args:
        body: a function of Refs: of blocks of operands and results, and of scratch; with `_explicit_indices`
            the place comes first.
        grid: sizes, which may be traced.
        in_specs: a BlockSpec for each operand; without a block shape, `body` has the Ref itself.
        out_specs: one for each result.
        core_axis_name: of the cores, or several names, that share the places along a dimension.
        dimension_semantics: `tpu.PARALLEL` or `tpu.ARBITRARY` for each dimension; cores share the first that
            is parallel.
        core_axis: the axis of the kernel's own grid that counts the cores, in the place of a name.
        tiling: for TPUs, as are `trace_scopes` and `no_pipelining`; nothing depends on them.
    Returns:
        The function, of the Refs of operands and results, `scratches=` of Refs that are passed on, and
        `allocations=`, on which nothing depends.

    >>> pl, tpu = jax.experimental.pallas, jax.experimental.pallas.tpu
    >>> def kernel(x, out):
    ...     def body(block, doubled):
    ...         doubled[...] = block[...] * 2
    ...     spec = pl.BlockSpec((2,), lambda i: (i,))
    ...     tpu.emit_pipeline(body, grid=(3,), in_specs=[spec], out_specs=[spec])(x, out)
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((6,), "float32"), interpret=True)(jnp.arange(6.))
    Array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
    """
    grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)

    def pipeline(*refs, scratches=(), allocations=None):
        place = place_of("emit_pipeline")
        structures = [pytree.tree_structure(specs, is_leaf=_is_spec) for specs in (in_specs, out_specs)]
        count = structures[0].num_leaves
        if len(refs) != count + structures[1].num_leaves:
            raise ValueError(f"pallas.emit_pipeline: {len(refs)} Refs are given for {count} in_specs and "
                             f"{structures[1].num_leaves} out_specs")
        operands, results = ([_block(b, ref) for b, ref in zip(blocks_of(what, specs, refs)[0], refs)]
                             for what, specs, refs in (("in", in_specs, list(refs[:count])),
                                                       ("out", out_specs, list(refs[count:]))))
        firsts, sizes = _share(grid, place, core_axis, core_axis_name, dimension_semantics)

        def step(number, _):
            ids = [first + number // math.prod(sizes[axis + 1:]) % n
                   for axis, (first, n) in enumerate(zip(firsts, sizes))]
            with at_place(ids, grid):
                at_in, at_out = ([read(ids) for read, _ in each] for each in (operands, results))
                body(*[tuple(ids)] * _explicit_indices, *at_in, *at_out, *scratches)
                for (_, write), ref in zip(results, at_out):
                    write(ids, ref)
        lax.fori_loop(0, math.prod(sizes), step, None)
    return pipeline


def emit_pipeline_with_allocations(body, *, grid, in_specs=(), out_specs=()):
    """(`emit_pipeline`, a function of the Refs that gives the `allocations=` for it)."""
    return emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs), lambda *_refs, **_how: ()


def _is_spec(x):
    return x is None or isinstance(x, BlockSpec)


def _block(blocks, ref):
    """(What gives a Ref of the block at a place, what writes it back)."""
    if blocks.index_map is None:
        return lambda ids: ref, lambda ids, block: None

    def read(ids):
        return new_ref(blocks.read(blocks.padded(ref[...]), blocks.starts(ids, ())))

    def write(ids, block):
        whole = blocks.write(blocks.padded(ref[...]), block[...], blocks.starts(ids, ()))
        ref[...] = blocks.cut(whole)
    return read, write


def _share(grid, place, core_axis, core_axis_name, semantics):
    """(where this core begins along each dimension, how many places it has there)."""
    firsts, sizes = [0] * len(grid), list(grid)
    if core_axis is not None:
        axes = core_axis if isinstance(core_axis, tuple) else (core_axis,)
        cores = [place.grid[axis] for axis in axes]
        index = 0
        for axis, n in zip(axes, cores):
            index = index * n + place.ids[axis]
    elif core_axis_name is not None:
        cores, index = [lax.axis_size(core_axis_name)], lax.axis_index(core_axis_name)
    else:
        return firsts, sizes
    count = math.prod(cores)
    kinds = [getattr(kind, "value", kind) for kind in semantics or ["arbitrary"] * len(grid)]
    if count > 1:
        if "parallel" not in kinds:
            raise ValueError("pallas.emit_pipeline: cores share the places along a dimension: say which one "
                             "with dimension_semantics=(tpu.PARALLEL, ...)")
        axis = kinds.index("parallel")
        each = cdiv(grid[axis], count)
        firsts[axis] = jnp.minimum(index * each, grid[axis])
        sizes[axis] = jnp.minimum(each, grid[axis] - firsts[axis])
    return firsts, sizes
