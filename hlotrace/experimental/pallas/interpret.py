"""Kernels in interpret mode: a loop over the grid, in which a kernel has Refs of its blocks.

What of a block is beyond the array, and results and scratch that were not written, hold NaN, the least
integer or False; see `InterpretParams`.
"""
import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any

from ... import lax, numpy as jnp
from ...core.config import keep_overridden, override
from ...core.pytrees import pytree
from ...ref import new_ref
from .compiled import tpu_parts
from .copies import is_semaphore
from .grid_blocks import at_place, blocks_of, interpreted, nothing, place_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """How a kernel runs in interpret mode.

    Memory that was not written holds NaN, or 0 with `uninitialized_memory="zero"`; an index beyond a Ref
    raises IndexError, or reads the nearest element with `out_of_bounds_reads="uninitialized"`.  A copy is
    done where it starts.  NotImplementedError for others than these values of what else there is.

    >>> from hlotrace.experimental.pallas import tpu
    >>> tpu.InterpretParams(uninitialized_memory="zero").out_of_bounds_reads
    'raise'
    """
    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: str = "eager"
    random_seed: int | None = None
    grid_point_recorder: Callable[..., Any] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value, choices = getattr(self, field.name), _CHOICES.get(field.name)
            if choices and value not in choices:
                raise ValueError(f"InterpretParams: {field.name} is one of {choices}, not {value!r}")
            if not choices and value != field.default:
                raise NotImplementedError(f"InterpretParams: {field.name}={value!r} is not supported; it is "
                                          f"{field.default!r}")


_CHOICES = {"out_of_bounds_reads": ("raise", "uninitialized"), "uninitialized_memory": ("nan", "zero"),
            "allow_hbm_allocation_in_run_scoped": (False, True)}


def force_tpu_interpret_mode(params=InterpretParams()):
    """A context in which kernels run in interpret mode, on this thread, as with `interpret=params`.

    >>> pl, tpu = jax.experimental.pallas, jax.experimental.pallas.tpu
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> with tpu.force_tpu_interpret_mode():
    ...     pl.pallas_call(double, jax.ShapeDtypeStruct((2,), "float32"))(jnp.arange(2.))
    Array([0., 2.], dtype=float32)
    """
    return interpreted(params)


def set_tpu_interpret_mode(params=InterpretParams()):
    """Have kernels run in interpret mode, on this thread, from now on; None ends it."""
    keep_overridden(interpreted, params)


def reset_tpu_interpret_mode_state():
    """Forget what kernels in interpret mode left behind: nothing here."""


@contextlib.contextmanager
def interpreting(params):
    """A context in which a kernel runs with these InterpretParams; True is JAX's other interpret mode."""
    if params is True:
        with interpreted(None):
            yield
        return
    with interpreted(params), override("hlotrace_check_bounds", params.out_of_bounds_reads == "raise"):
        yield


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
    place = place_of("run_scoped")
    if collective_axes:
        raise NotImplementedError(f"pallas.run_scoped: collective_axes={collective_axes!r}")
    if place.core is not None:
        return tpu_parts.scoped(f, types, named)
    args, keywords = pytree.tree_map(lambda like: new_ref(memory_of(like)), (types, named))
    return f(*args, **keywords)


def with_scoped(*types, collective_axes=(), **named):
    """Decorator: the function gets, behind its own arguments, Refs of memory that it alone has, as by
    `run_scoped`."""
    def decorated(f):
        def call(*args, **kwargs):
            return run_scoped(lambda *refs, **its: f(*args, *refs, **kwargs, **its), *types,
                              collective_axes=collective_axes, **named)
        return call
    return decorated


def memory_of(like):
    """What scratch of this type holds before it is written."""
    return jnp.zeros(like.shape, jnp.int32) if is_semaphore(like) else _unwritten(like)


def _unwritten(like):
    return jnp.full(like.shape, nothing(like.dtype), like.dtype)


def run_as_loop(title, kernel, out_shape, spec, aliases, args, params=True):
    """The results of `pallas_call` for these arrays; `params`: see `interpreting`."""
    with interpreting(params):
        return _run(title, kernel, out_shape, spec, aliases, args)


def _run(title, kernel, out_shape, spec, aliases, args):
    count, grid = getattr(spec, "num_scalar_prefetch", 0), spec.grid
    scalars, operands = args[:count], args[count:]
    ins, in_tree = blocks_of("in", spec.in_specs, operands)
    outs, out_tree = blocks_of("out", spec.out_specs, out_shape)
    arrays = [b.padded(x) for b, x in zip(ins, pytree.tree_leaves(operands))]
    results = [b.padded(_unwritten(like)) for b, like in zip(outs, pytree.tree_leaves(out_shape))]
    for i, j in aliases.items():
        results[j] = outs[j].padded(pytree.tree_leaves(args)[i])
    named = isinstance(spec.scratch_shapes, dict)
    kept, scratch_tree = pytree.tree_flatten(spec.scratch_shapes)
    scratch = [memory_of(like) for like in kept]

    def step(number, state):
        results, scratch = state
        ids = [number // math.prod(grid[axis + 1:]) % n for axis, n in enumerate(grid)]
        first = pytree.tree_map(new_ref, scalars)
        with at_place(ids, grid):
            at_in, at_out = ([b.place(ids, first) for b in each] for each in (ins, outs))
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
