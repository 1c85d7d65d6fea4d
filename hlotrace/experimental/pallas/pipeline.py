"""Pipelines within kernels for TPUs: a function run at the places of a grid, with blocks of Refs.

In interpret mode no block is fetched before it is needed: the places are gone through one after another.
Where a kernel is compiled there are two blocks of each Ref in VMEM: one is copied while the other is used.
"""
import functools
import math

import numpy as np

from ... import lax, numpy as jnp
from ...core.pytrees import pytree
from ...core.refs import RefOrView
from ...numpy.indexing.index_entries import ds
from ...ref import new_ref
from .compiled.tpu_parts import multiple_of
from .copies import SemaphoreType, make_async_copy
from .grid_blocks import at_place, blocks_of, place_of
from .interpret import run_scoped
from .parts import cdiv, when
from .specs import Blocked, MemoryRef, Squeezed


def emit_pipeline(body, *, grid, in_specs=(), out_specs=(), tiling=None, core_axis=None, core_axis_name=None,
                  dimension_semantics=None, trace_scopes=True, no_pipelining=False, _explicit_indices=False):
    """A function of a kernel's Refs that runs `body` at each place of a grid, with blocks of them.

    Args:
        body: a function of Refs: of blocks of operands and results, and of scratch; with `_explicit_indices`
            the place comes first.
        grid: sizes, which may be traced.
        in_specs: a BlockSpec for each operand, or a pytree of them as that is one of Refs; without a block
            shape, `body` has the Ref itself.
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
        count, results = (len(specs) if isinstance(specs, (tuple, list)) else 1
                          for specs in (in_specs, out_specs))
        if len(refs) != count + results:
            raise ValueError(f"pallas.emit_pipeline: {len(refs)} Refs are given for {count} in_specs and "
                             f"{results} out_specs")
        each = []
        for what, specs, given in ("in", in_specs, refs[:count]), ("out", out_specs, refs[count:]):
            leaves = pytree.tree_leaves(given, is_leaf=_is_ref)
            each.append([*zip(blocks_of(what, specs, given, _is_ref)[0], leaves)])
        structure = pytree.tree_structure(refs, is_leaf=_is_ref)
        firsts, sizes = _share(grid, place, core_axis, core_axis_name, dimension_semantics)

        def ids_of(number):
            return [first + number // math.prod(sizes[axis + 1:]) % n
                    for axis, (first, n) in enumerate(zip(firsts, sizes))]

        def run(number, blocks):
            ids = ids_of(number)
            with at_place(ids, grid, place.core):
                body(*[tuple(ids)] * _explicit_indices, *structure.unflatten(blocks), *scratches)

        def find(blocks, number):
            ids = ids_of(number)
            with at_place(ids, grid, place.core):
                return blocks.place(ids, ())
        (_run_in_turn if place.core is None else _run_buffered)(run, find, math.prod(sizes), *each)
    return pipeline


def emit_pipeline_with_allocations(body, *, grid, in_specs=(), out_specs=()):
    """(`emit_pipeline`, a function of the Refs that gives the `allocations=` for it)."""
    return emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs), lambda *_refs, **_how: ()


def _is_ref(x):
    return isinstance(x, RefOrView)


def _run_in_turn(run, find, total, operands, results):
    """`run(number, the Refs of blocks)` for each place; operands and results are (Blocks, Ref), of which
    `find(blocks, number)` says where the block is."""
    def step(number, _):
        held = []
        for blocks, ref in operands + results:
            held.append(ref if blocks.index_map is None else new_ref(
                blocks.read(blocks.padded(ref[...]), find(blocks, number))))
        run(number, held)
        for (blocks, ref), block in zip(results, held[len(operands):]):
            if blocks.index_map is not None:
                whole = blocks.write(blocks.padded(ref[...]), block[...], find(blocks, number))
                ref[...] = blocks.cut(whole)
    lax.fori_loop(0, total, step, None)


def _run_buffered(run, find, total, operands, results):
    """As `_run_in_turn`, with two blocks of each Ref in VMEM; a block is copied once for all places in a row
    that have it."""
    memory = [(MemoryRef((2, *blocks.inner), blocks.dtype, None), SemaphoreType.DMA((2,)))
              for blocks, _ in operands + results if blocks.index_map is not None]

    def with_memory(*memory):
        made = iter(memory)
        pairs = [[ref if blocks.index_map is None else _Buffered(blocks, ref, find, *next(made))
                  for blocks, ref in each] for each in (operands, results)]
        ins, outs = ([x for x in each if isinstance(x, _Buffered)] for each in pairs)
        for x in ins:
            when(total > 0)(lambda x=x: x.copy_in(0, 0).start())

        def step(number, counts):
            def comes_next(x):
                return jnp.logical_and(number + 1 < total, x.differ(number, number + 1))
            slots = {x: count % 2 for x, count in zip([*ins, *outs], counts)}
            count_of = dict(zip([*ins, *outs], counts))
            for x in ins:
                when(comes_next(x))(lambda x=x: x.copy_in(number + 1, 1 - slots[x]).start())
            for x in [*ins, *outs]:
                begins = jnp.logical_or(number == 0, x.differ(number - 1, number))
                if x in ins:
                    when(begins)(lambda x=x: x.copy_in(number, slots[x]).wait())
                else:
                    when(begins & (count_of[x] >= 2))(lambda x=x: x.copy_out(number, slots[x]).wait())
            run(number, [x.memory.at[slots[x]] if isinstance(x, _Buffered) else x
                         for each in pairs for x in each])
            ends = [comes_next(x) for x in ins] + [
                jnp.logical_or(number + 1 == total, x.differ(number, number + 1)) for x in outs]
            for x, end in zip(outs, ends[len(ins):]):
                when(end)(lambda x=x: x.copy_out(number, slots[x]).start())
            return [count + end.astype(np.int32) for count, end in zip(counts, ends)]
        counts = lax.fori_loop(0, total, step, [jnp.int32(0)] * len(ins + outs))
        for x, count in zip(outs, counts[len(ins):]):
            for last in (1, 2):
                when(count >= last)(lambda x=x, at=count - last: x.copy_out(0, at % 2).wait())
    run_scoped(with_memory, *memory)


class _Buffered:
    """The two blocks of a Ref that are in VMEM."""

    def __init__(self, blocks, ref, find, memory, semaphores):
        if any(n % size for n, size, dim in zip(blocks.shape, blocks.sizes, blocks.dims)
               if isinstance(dim, Blocked)):
            raise NotImplementedError(f"pallas.emit_pipeline: blocks of {blocks.sizes} do not divide an "
                                      f"array of shape {blocks.shape}, where a kernel is compiled")
        self.blocks, self.ref, self.memory, self.semaphores = blocks, ref, memory, semaphores
        self._place = functools.partial(find, blocks)

    def differ(self, one, other):
        """Do two places have other blocks?"""
        pairs = zip(*[[*starts, *held.values()] for starts, held in map(self._place, (one, other))])
        return functools.reduce(jnp.logical_or, [jnp.asarray(a != b) for a, b in pairs], jnp.asarray(False))

    def _copy(self, number, slot, turned):
        starts, held = self._place(number)
        entries = []
        for d, (start, size, dim) in enumerate(zip(starts, self.blocks.sizes, self.blocks.dims)):
            if isinstance(dim, Squeezed):
                entries.append(start)
            else:
                begin = multiple_of(start, size) if isinstance(dim, Blocked) else start
                entries.append(ds(begin, held.get(d, size)))
        part, memory = self.ref.at[tuple(entries)], self.memory.at[slot]
        if held:
            memory = memory.at[tuple([ds(0, held.get(d, size)) for d, (size, dim) in enumerate(
                zip(self.blocks.sizes, self.blocks.dims)) if not isinstance(dim, Squeezed)])]
        return make_async_copy(*((memory, part) if turned else (part, memory)), self.semaphores.at[slot])

    def copy_in(self, number, slot):
        """The copy of a place's block to VMEM."""
        return self._copy(number, slot, False)

    def copy_out(self, number, slot):
        """The copy of a place's block from VMEM."""
        return self._copy(number, slot, True)


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
