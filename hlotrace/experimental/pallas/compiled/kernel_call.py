"""Kernels that are compiled: for TPUs by the Mosaic in libtpu, for NVIDIA's GPUs by the Triton in XLA.

A kernel is traced with Refs that are places in memory, `kernel_memory.py`; its program is written as a text
in the dialect of the platform, which is a custom call of the program around it.
"""
import math
from typing import Any, NamedTuple

import numpy as np

from ....core import dtypes
from ....core.avals import ShapedArray, aval_of
from ....core.config import state
from ....core.jaxpr_trace import trace_to_jaxpr
from ....core.primitive import Primitive
from ....core.pytrees import pytree
from ....core.trace import EVAL, Tracer
from ....numpy.arrays.creation import asarray
from ....primitives.arrays.shape import front
from ..grid_blocks import at_place, blocks_of
from ..specs import BoundedSlice, Element, Squeezed
from . import mosaic_call, triton_rules
from .kernel_memory import kernel_ref, program_id_p
from .tpu_parts import SCALAR, operation, scratch_type, space_of

TRITON, MOSAIC = "__gpu$xla.gpu.triton", "tpu_custom_call"
_MOST = 2 ** 31 - 1     # programs of a grid


class Places:
    """What part of an array a Ref of a kernel is.

    `index` is the program of an index map, [*place in the grid] -> [*block]; `sizes` are those of the block,
    `windows` the dimensions that the map gives in elements, `squeezed` those that the Ref does not have, and
    `beyond` those of which a block may end after the array.
    """

    def __init__(self, blocks, index, mapped):
        one = [1] * mapped      # in front are axes of vmap, of which a kernel has one element
        self.index, self.sizes = index, [*one, *blocks.sizes]
        dims = [*[Squeezed()] * mapped, *blocks.dims]
        self.windows = {d for d, dim in enumerate(dims) if isinstance(dim, Element)}
        self.squeezed = {d for d, dim in enumerate(dims) if isinstance(dim, Squeezed)}
        self.beyond = {d for d, n in enumerate(blocks.shape, mapped)
                       if self.sizes[d] > 1 and (d in self.windows or n % self.sizes[d])}


class Arguments(NamedTuple):
    """What a kernel is called with."""
    scalars: list       # types of what comes first and has no blocks
    blocks: list        # the `Blocks` of operands and results
    scratch: list       # types of memory that it has besides
    first: Any          # the structure of what comes first


class Kernel:
    """A kernel with the types of its arrays, traced for a grid.

    Args:
        call: of the Refs of scalars, operands, results and scratch, to the kernel's arguments: it runs the
            kernel.
        grid: its sizes; None for one that is known when it runs.
        options: CompilerParams of a compiler, or None, and a CostEstimate, or None.
        axes: sizes of axes that vmap has put in front of the grid.
        mapped: for each of the blocks, for each of these axes, whether the array has it, in front.
    """

    def __init__(self, name, call, arguments, grid, options, axes=(), mapped=None):
        self.name, self.call, self.arguments, self.options = name, call, arguments, options
        self.scalars, self.blocks, scratch, _ = arguments
        self.own_grid, self.axes = tuple(grid), tuple(axes)
        self.mapped = [()] * len(self.blocks) if mapped is None else mapped
        self.grid = (*self.axes, *self.own_grid)
        if None not in self.grid and math.prod(self.grid) > _MOST:
            raise ValueError(f"pallas_call of {name}: a grid of {self.grid} has more than {_MOST} places")
        self.core = kernel_ref(SCALAR, None, SCALAR)
        self.refs = [kernel_ref(aval, i, aval, None, "smem") for i, aval in enumerate(self.scalars)]
        for blocks, have in zip(self.blocks, self.mapped, strict=True):
            self.refs.append(self._ref(blocks, have, len(self.refs)))
        for like in scratch:
            aval, space = scratch_type(like)
            self.refs.append(kernel_ref(aval, len(self.refs), aval, None, space))
        self.program = trace_to_jaxpr(self._run, [], name)
        if any(isinstance(c, Tracer) or np.size(c) > 1 for c in self.program.consts):
            shapes = ", ".join(aval_of(c).str_short() for c in self.program.consts)
            raise ValueError(f"pallas_call: the kernel {name} captures constants, {shapes}: pass them as "
                             "operands")

    def _ref(self, blocks, mapped, number):
        have = [axis for axis, has in enumerate(mapped) if has]
        array = ShapedArray((*[self.axes[axis] for axis in have], *blocks.shape), blocks.dtype)
        places = None
        if blocks.index_map is not None or have:
            def index(*ids):
                first = self.arguments.first.unflatten(self.refs[:len(self.scalars)])
                with at_place(ids[len(self.axes):], self._sizes(), self.core):
                    found = blocks.index(ids[len(self.axes):], first)
                return [*[ids[axis] for axis in have], *[asarray(i, dtype="int32") for i in found]]
            axes = [ShapedArray((), "int32")] * len(self.grid)
            places = Places(blocks, trace_to_jaxpr(index, axes, "index_map"), len(have))
        return kernel_ref(array.update(shape=blocks.inner), number, array, places,
                          space_of(blocks.memory_space))

    def _run(self):
        ids = [program_id_p.bind(axis=axis) for axis in range(len(self.grid))]
        with at_place(ids[len(self.axes):], self._sizes(), self.core):
            self.call(self.refs)
        return []

    def _sizes(self):
        """The sizes of its grid, for what is traced: those that are known when it runs are an operation."""
        return [operation("iteration_bound", attributes=f"dim = {axis} : i32", out=SCALAR) if n is None else n
                for axis, n in enumerate(self.own_grid, len(self.axes))]

    def with_axis(self, size, mapped):
        """The kernel for arrays of which those marked have one more axis, in front."""
        marks = [(has, *before) for has, before in zip(mapped, self.mapped, strict=True)]
        return Kernel(self.name, self.call, self.arguments, self.own_grid, self.options, (size, *self.axes),
                      marks)


def call_compiled(title, kernel, out_shape, spec, aliases, args, options, kernels):
    """The results of `pallas_call` for these arrays.

    Args:
        kernels: a ContextCache for the Kernels, by the types of the arrays.
    Raises:
        NotImplementedError: for padded blocks.
    """
    count = getattr(spec, "num_scalar_prefetch", 0)
    grid = [int(n) if isinstance(n, (int, np.integer)) else None for n in spec.grid]
    sizes = [asarray(n, dtype="int32") for n, known in zip(spec.grid, grid) if known is None]
    scalars, first_tree = pytree.tree_flatten(args[:count])
    ins, in_tree = blocks_of("in", spec.in_specs, args[count:])
    outs, out_tree = blocks_of("out", spec.out_specs, out_shape)
    scratch, scratch_tree = pytree.tree_flatten(spec.scratch_shapes)
    for block in ins + outs:
        if any(isinstance(dim, BoundedSlice) for dim in block.dims):
            raise NotImplementedError(f"pallas_call of {title}: {block.name} has a BoundedSlice, which is "
                                      "not supported where it is compiled: use it in tpu.emit_pipeline")
        if any(map(any, block.padding)):
            raise NotImplementedError(f"pallas_call of {title}: {block.name} has padding, which is not "
                                      "supported where it is compiled: read under a mask, by triton.load")
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in title)

    def call(refs):
        begin, first = len(scalars), len(scalars) + len(ins)
        last = first + len(outs)
        results = out_tree.unflatten(refs[first:last])
        results = results if isinstance(out_shape, (tuple, list)) else (results,)
        scratch = scratch_tree.unflatten(refs[last:])
        scratch, named = ((), scratch) if isinstance(spec.scratch_shapes, dict) else (scratch, {})
        operands = (*first_tree.unflatten(refs[:begin]), *in_tree.unflatten(refs[begin:first]))
        found = kernel(*operands, *results, *scratch, **named)
        if found is not None:
            raise ValueError(f"pallas_call: the kernel {title} should return None; it returns {found!r:.60}")

    leaves, structure = pytree.tree_flatten(args)
    key = structure, tuple(map(aval_of, leaves)), *grid
    if (made := kernels.get(key)) is None:
        made = Kernel(name, call, Arguments([*map(aval_of, scalars)], [*ins, *outs], scratch, first_tree),
                      grid, options)
        if state.trace is EVAL:     # else it may have what is traced in it
            kernels.keep(key, made)
    out_avals = tuple(ShapedArray(b.shape, b.dtype) for b in outs)
    aliases = {i + len(sizes): result for i, result in aliases.items()}
    return out_tree.unflatten(pallas_call_p.bind(*sizes, *leaves, kernel=made, out_avals=out_avals,
                                                 aliases=tuple(sorted(aliases.items()))))


def _lower_triton(ctx, eqn, *names):
    kernel = eqn.params["kernel"]
    same = {len(eqn.invars) + result: operand for operand, result in eqn.params["aliases"]}
    warps, stages = triton_rules.options(kernel)
    config = {"name": kernel.name, "ir": triton_rules.text(kernel, same),
              "num_stages": np.int32(stages), "num_warps": np.int32(warps),
              "grid_x": np.int32(math.prod(kernel.grid)), "grid_y": np.int32(1), "grid_z": np.int32(1),
              "debug": False}
    avals, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    return _call(ctx, eqn, TRITON, names, avals, outs, config=config)


def _lower_mosaic(ctx, eqn, *names):
    kernel = eqn.params["kernel"]
    config, attributes, effect = mosaic_call.config(kernel, ctx.module.manual[0])
    avals, outs = ([_in_memory(v.aval) for v in variables] for variables in (eqn.invars, eqn.outvars))
    names = [_converted(ctx, name, v.aval, aval) for name, v, aval in zip(names, eqn.invars, avals)]
    found = _call(ctx, eqn, MOSAIC, names, avals, outs, config=config, api_version=1, effect=effect,
                  attributes=attributes)
    return [_converted(ctx, name, aval, v.aval) for name, aval, v in zip(found, outs, eqn.outvars)]


def _in_memory(aval):
    """The type of an array as TPUs have it in memory: a bool has 32 bits."""
    return aval.update(dtype=SCALAR.dtype) if dtypes.is_bool(aval.dtype) else aval


def _converted(ctx, name, old, new):
    if old.dtype == new.dtype:
        return name
    return ctx.emit(f"stablehlo.convert {name} : ({old.mlir}) -> {new.mlir}")


def _call(ctx, eqn, target, names, avals, outs, **options):
    return ctx.custom_call(target, names, avals, outs, layouts=[None] * len(avals),
                           result_layouts=[None] * len(outs), aliases=dict(eqn.params["aliases"]), **options)


def _not_here(ctx, eqn, *_names):
    title = eqn.params["kernel"].name
    if ctx.platform == "cpu":
        raise ValueError(f"pallas_call of {title}: only interpret mode is supported on the CPU: pass "
                         "interpret=True")
    raise NotImplementedError(f"pallas_call of {title}: kernels are compiled for TPUs and NVIDIA's GPUs, "
                              f"not for {ctx.platform}; interpret=True runs them as a loop")


def _jvp(_primals, _tangents, *, kernel, **_):
    raise NotImplementedError(
        f"pallas_call of {kernel.name} has no derivative where it is compiled: give one with "
        "jax.custom_vjp, or differentiate it with interpret=True"
    )


def _shown(eqn):
    kernel, aliases = eqn.params["kernel"], eqn.params["aliases"]
    return {"name": kernel.name, "grid": kernel.grid, "jaxpr": kernel.program, "aliases": aliases}


def _batching(axis, args, dims, *, kernel, out_avals, aliases):
    count = kernel.grid.count(None) + len(kernel.scalars)
    if any(d is not None for d in dims[:count]):
        raise NotImplementedError(
            f"vmap of pallas_call of {kernel.name} over scalars that come before its operands"
        )
    mapped = [d is not None for d in dims[count:]]
    many = kernel.with_axis(axis.size, [*mapped, *[True] * len(out_avals)])
    outs = pallas_call_p.bind(*front(args, dims), kernel=many, aliases=aliases,
                              out_avals=tuple(a.with_axis(0, axis.size) for a in out_avals))
    return outs, [0] * len(outs)


pallas_call_p = Primitive(
    "pallas_call", multiple_results=True, jvp=_jvp, batching=_batching, shown=_shown,
    lower={"cuda": _lower_triton, "tpu": _lower_mosaic, None: _not_here},
    abstract_eval=lambda *avals, out_avals, **_: list(out_avals))
