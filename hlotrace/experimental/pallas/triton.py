"""JAX's `pallas.triton`: what kernels for NVIDIA's GPUs are made of."""
import dataclasses

from ... import lax, numpy as jnp
from ...numpy.indexing.index_entries import Slice
from ...numpy.indexing.refs import RefView
from .compiled import triton_text
from .compiled.kernel_memory import memory_of
from .compiled.tpu_parts import multiple_of
from .unsupported import export_functions


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """How Triton compiles a kernel: warps of a program, stages of its pipeline.

    >>> from hlotrace.experimental.pallas import triton
    >>> triton.CompilerParams(num_warps=4).num_warps
    4
    """
    num_warps: int | None = None
    num_stages: int | None = None


def dot(a, b, trans_a=False, trans_b=False, allow_tf32=None, precision=None):
    """The product of two matrices, each transposed first where that is said, in float32 or int32.

    Args:
        allow_tf32: `precision` by another name: True is HIGH, False is HIGHEST
    Raises:
        ValueError: for what is no matrix, and where both names of the precision are given
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"dot: a and b must be matrices, of 2 dimensions: got shapes {a.shape} and "
                         f"{b.shape}")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("dot: only one of allow_tf32 and precision can be given")
        precision = lax.Precision.HIGH if allow_tf32 else lax.Precision.HIGHEST
    floats = jnp.issubdtype(jnp.result_type(a, b), jnp.floating)
    return lax.dot_general(a, b, (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())), precision,
                           preferred_element_type=jnp.float32 if floats else jnp.int32)


def load(ref, *, mask=None, other=None, cache_modifier=None, eviction_policy=None, volatile=False):
    """The value of a Ref, or of a view `ref.at[...]`; where `mask` is False it is `other`.

    How the value is cached is the compiler's here.
    """
    if (found := memory_of(ref)) is not None:
        of, steps, memory = found
        return memory.load(of, steps, mask, other)
    if mask is None:
        return ref[...]
    _, value, index = _with_room(ref)
    value = value[index]
    return value if other is None else jnp.where(mask, value, other).astype(value.dtype)


def store(ref, val, *, mask=None, eviction_policy=None):
    """Write `val` to a Ref, or a view `ref.at[...]`, where `mask` is not False."""
    if (found := memory_of(ref)) is not None:
        of, steps, memory = found
        memory.store(of, steps, val, mask)
        return
    if mask is None:
        ref[...] = val
        return
    of, value, index = _with_room(ref)
    written = value.at[index].set(jnp.where(mask, val, value[index]).astype(value.dtype))
    room = [(a - b) // 2 for a, b in zip(value.shape, of.shape)]
    of[...] = lax.slice(written, room, [r + n for r, n in zip(room, of.shape)])


def _with_room(ref):
    """(A Ref, its value with room on both sides, the index there) of a Ref, or of a part.

    Where a window is under a mask it is not moved: it may go beyond the Ref.
    """
    if type(ref) is not RefView or ref.steps[-1][0] != "at":
        return ref, ref[...], ...
    *steps, (_, index) = ref.steps
    of = RefView(ref.ref, tuple(steps)) if steps else ref.ref
    entries = list(index) if isinstance(index, tuple) else [index]
    axis, room = 0, [0] * of.ndim
    for i, entry in enumerate(entries):
        if isinstance(entry, Slice):
            room[axis] = (entry.size - 1) * entry.stride + 1
            entries[i] = dataclasses.replace(entry, start=jnp.clip(
                entry.start, -room[axis], of.shape[axis]) + room[axis])
        if entry is Ellipsis:
            axis = of.ndim - sum(e is not None for e in entries[i + 1:])
        else:
            axis += entry is not None
    return of, jnp.pad(of[...], [(n, n) for n in room]), tuple(entries)


def _atomic(name, about, how, combine):
    def atomic(x_ref_or_view, idx, val, *, mask=None):
        view = x_ref_or_view if idx is None else x_ref_or_view.at[idx]
        if (found := memory_of(view)) is not None:
            of, steps, memory = found
            return memory.store(of, steps, val, mask, how)
        before = view[...]
        store(view, combine(before, jnp.asarray(val, before.dtype)), mask=mask)
        return before
    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"""{about} a part of a Ref in one step, also where other places of the grid do so.

    Args:
        idx: the index of the part, None for all of it.
        val: as the part, or broadcast to it.
        mask: where it is False nothing happens.
    Returns:
        What was there before.
    """
    return atomic


atomic_add = _atomic("atomic_add", "Add to", triton_text.ATOMIC_ADD, jnp.add)
atomic_max = _atomic("atomic_max", "Write the larger of a value and", triton_text.ATOMIC_MAXIMUM, jnp.maximum)
atomic_min = _atomic("atomic_min", "Write the smaller of a value and", triton_text.ATOMIC_MINIMUM,
                     jnp.minimum)
atomic_and = _atomic("atomic_and", "Combine by bitwise and", triton_text.ATOMIC_AND, jnp.bitwise_and)
atomic_or = _atomic("atomic_or", "Combine by bitwise or", triton_text.ATOMIC_OR, jnp.bitwise_or)
atomic_xor = _atomic("atomic_xor", "Combine by bitwise xor", triton_text.ATOMIC_XOR, jnp.bitwise_xor)
atomic_xchg = _atomic("atomic_xchg", "Replace", triton_text.ATOMIC_EXCHANGE, lambda _before, value: value)


def atomic_cas(ref, cmp, val):
    """Write `val` to a Ref, or a view, where it has `cmp`, in one step; returns what was there before."""
    if (found := memory_of(ref)) is not None:
        of, steps, memory = found
        return memory.compare_and_swap(of, steps, cmp, val)
    before = ref[...]
    ref[...] = jnp.where(before == cmp, val, before).astype(before.dtype)
    return before


def debug_barrier():
    """Where all threads of a place in the grid meet.

    They do so by themselves, between accesses of one Ref of which one writes: nothing happens here.
    """


max_contiguous = multiple_of


__all__ = ["CompilerParams", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min",
           "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load",
           "max_contiguous", "store"]

export_functions(globals(), "approx_tanh elementwise_inline_asm")
