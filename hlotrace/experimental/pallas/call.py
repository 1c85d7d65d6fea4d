"""pallas_call: a kernel as a function of arrays."""
import math

import numpy as np

from ... import numpy as jnp
from ...api.jit import jit
from ...api.signatures import name_of
from ...core.caches import ContextCache
from ...core.pytrees import pytree
from .compiled.kernel_call import call_compiled
from .grid_blocks import interpreted
from .interpret import InterpretParams, run_as_loop
from .specs import CostEstimate, GridSpec, no_block_spec


def pallas_call(kernel, out_shape, *, grid_spec=None, grid=(), in_specs=no_block_spec,
                out_specs=no_block_spec, scratch_shapes=(), input_output_aliases=None, interpret=False,
                name=None, debug=False, compiler_params=None, cost_estimate=None, metadata=None):
    """The function of arrays that a kernel is, run at each place of a grid.

    Args:
        kernel: a function of Refs: of the operands' blocks, the results' blocks and scratch; it returns None.
        out_shape: the type of the result, or a pytree of them.
        grid_spec: a GridSpec, in the place of the next four.
        grid: sizes; places are gone through in order, the last axis fastest.  They may be traced where a
            kernel runs as a loop.
        in_specs: a BlockSpec for each operand; without, a kernel has whole arrays.
        out_specs: one for each result.
        scratch_shapes: types of memory that a kernel has besides and keeps from place to place; those of a
            dictionary are keyword arguments.
        input_output_aliases: {operand: result}: numbers; what is not written of the result is the operand's.
        interpret: true, or a `tpu.InterpretParams`, runs a loop of operations, on any device; false compiles
            the kernel, for NVIDIA's GPUs with Triton, for TPUs with Mosaic.
        name: for people, as are `debug` and `metadata`, on which nothing depends.
        compiler_params: a `triton.CompilerParams`, or a `tpu.CompilerParams`, for a kernel that is compiled.
        cost_estimate: a CostEstimate, for the compiler of TPUs.
    Raises:
        ValueError: on the CPU without `interpret`, for specs that do not fit, for a kernel that returns a
            value.
        NotImplementedError: without `interpret`, for traced sizes of a grid, for padded blocks, for scratch
            on a GPU, and for what Triton or Mosaic cannot do.

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
    title = name or name_of(kernel)

    kernels = ContextCache(16)

    def call(*args):
        params = how(interpret, f"pallas_call of {title}")
        arrays = pytree.tree_map(jnp.asarray, args)
        if params:
            return run_as_loop(title, kernel, out_shape, spec, input_output_aliases or {}, arrays, params)
        return call_compiled(title, kernel, out_shape, spec, input_output_aliases or {}, arrays,
                             (compiler_params, cost_estimate), kernels)
    call.__name__ = title
    return call


def estimate_cost(fun, *args, **kwargs):
    """What a function of arrays costs, as XLA counts its operations: a CostEstimate.  Arguments that are no
    arrays are passed as they are.

    >>> jax.experimental.pallas.estimate_cost(lambda x: jnp.exp(x) * 2, jnp.ones(8))
    CostEstimate(flops=8, transcendentals=8, bytes_accessed=64, remote_bytes_transferred=0)
    """
    leaves, tree = pytree.tree_flatten((args, kwargs))
    arrays = {i: x for i, x in enumerate(leaves) if hasattr(x, "shape")}

    def of_arrays(found):
        args, kwargs = tree.unflatten([found.get(i, x) for i, x in enumerate(leaves)])
        return fun(*args, **kwargs)
    lowered = jit(of_arrays).lower(arrays)
    counts = lowered.cost_analysis()
    values = [*arrays.values(), *pytree.tree_leaves(lowered.out_info)]
    return CostEstimate(int(counts.get("flops", 0)), int(counts.get("transcendentals", 0)),
                        sum(math.prod(np.shape(x)) * jnp.result_type(x).itemsize for x in values))


def how(interpret, called):
    """What `interpret` is where a kernel is called, False where it is compiled."""
    if interpret is not True and interpret is not False and not isinstance(interpret, InterpretParams):
        raise NotImplementedError(f"{called}: interpret={interpret!r} is not supported: True and "
                                  "tpu.InterpretParams() run it as a loop, False compiles it")
    return interpret or interpreted.value or False

