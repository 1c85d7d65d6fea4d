"""What a compiled kernel for TPUs does beside computing with values: equations that are operations of Mosaic.

`operation_p` has values as operands.  `memory_p` has places in memory: Refs with the static parts of their
indices as a parameter, and the traced parts as operands, followed by values.  `scope_begin_p` and
`scope_end_p` are around what uses memory of its own.
"""
import dataclasses

from ....core.avals import ShapedArray, aval_of
from ....core.pytrees import pytree
from ....core.refs import TRACED, Access
from ....core.trace import Tracer
from ....numpy.indexing.index_entries import Slice
from ....numpy.indexing.refs import RefView, layout_of
from ..grid_blocks import core_of_kernel
from .kernel_memory import kernel_part, kernel_ref, memory_of

SCALAR = ShapedArray((), "int32")
SEMAPHORES = "regular", "dma", "barrier"


def _on_core(params):
    return (Access(ref=params["core"], writes=True),) if params["core"] is not None else ()


def _on_places(params):
    return tuple([Access(ref=view[0], writes=True) for view in params["views"] if view is not None])


# name, attributes: of the operation, as they are written; out: the type of its result, or None; core: what is
# changed by it, in order, or None
operation_p = kernel_part("operation", multiple_results=True, effects=_on_core,
                          abstract_eval=lambda *_, out, **params: [] if out is None else [out])
# how: "copy", "wait_copy", "signal", "wait", "read"; views: (Ref, layout, number of operands), or None
memory_p = kernel_part("memory", multiple_results=True, effects=_on_places,
                       abstract_eval=lambda *_, out, **params: [] if out is None else [out])
scope_begin_p = kernel_part("scope_begin", multiple_results=True, effects=_on_core,
                            abstract_eval=lambda **params: [])
scope_end_p = kernel_part("scope_end", multiple_results=True, effects=_on_core,
                          abstract_eval=lambda *avals, **params: list(avals))


def operation(name, *operands, attributes="", out=None, in_order=False):
    """The result of an operation of Mosaic, of the type `out`; None without.

    It is kept, and in the order of others, if `in_order`.
    """
    found = operation_p.bind(*operands, name=name, attributes=attributes, out=out,
                             core=core_of_kernel() if in_order else None)
    return found[0] if found else None


def on_memory(how, refs, values=(), out=None, priority=0):
    """Do something to Refs, or views of them; None is one that is not there."""
    views, operands = [], []
    for ref in refs:
        if ref is None:
            views.append(None)
            continue
        of, layout, indices = _view(ref)
        views.append((of, layout, len(indices)))
        operands += indices
    found = memory_p.bind(*operands, *values, how=how, views=tuple(views), out=out, priority=priority)
    return found[0] if found else None


def multiple_of(x, values):
    """`x`, of which the program says that it is a multiple of `values`, an int or several."""
    if core_of_kernel() is None or not isinstance(x, Tracer) or x.ndim:
        return x
    for value in values if isinstance(values, (tuple, list)) else (values,):
        x = operation("assume_multiple", x, attributes=f"multiple = {value} : i32", out=aval_of(x))
    return x


def has_traced_size(ref):
    """Does a window of this view have a size that is traced, as copies may?"""
    return type(ref) is RefView and any(map(_is_traced, _entries(ref.steps)))


def _is_traced(entry):
    return type(entry) is Slice and isinstance(entry.size, Tracer)


def _entries(steps):
    return [e for how, what in steps if how == "at" for e in (what if type(what) is tuple else (what,))]


def _view(ref):
    """(the Ref, the static parts of the indices, their operands) of a Ref or a view; a traced size is the
    operand behind that of where the window begins."""
    of, steps, _ = memory_of(ref)
    sizes = [e.size for e in _entries(steps) if _is_traced(e)]
    if not sizes:
        return of, *layout_of(steps)
    steps = [(how, tuple([dataclasses.replace(e, size=TRACED) if _is_traced(e) else e
                          for e in _entries([(how, what)])]) if how == "at" else what) for how, what in steps]
    layout, starts = layout_of(steps)
    operands, starts, sizes = [], iter(starts), iter(sizes)
    for entry in _entries(layout):
        _, start, size, _ = entry if type(entry) is tuple else (None, entry, None, None)
        if start is TRACED:
            operands.append(next(starts))
        if size is TRACED:
            operands.append(next(sizes))
    return of, layout, operands


def barrier_semaphore():
    """The Ref of the semaphore that a kernel has for meeting other devices."""
    core_of_kernel()._value.barrier = True
    return _inside(SCALAR, "barrier", "barrier")


def scoped(f, types, named):
    """What `f` returns for Refs of memory that it alone has; see `run_scoped`."""
    core, made = core_of_kernel(), []

    def ref(like):
        core._value.scoped += 1
        aval, space = scratch_type(like)
        made.append(_inside(aval, f"scoped{core._value.scoped}", space))
        return made[-1]
    args, keywords = pytree.tree_map(ref, (types, named))
    scope_begin_p.bind(refs=tuple(made), core=core)
    leaves, tree = pytree.tree_flatten(f(*args, **keywords))
    return tree.unflatten(scope_end_p.bind(*leaves, core=core))


def _inside(aval, number, space):
    """The Ref of memory that begins within a kernel; it is that kernel's as its arguments are."""
    ref = kernel_ref(aval, number, aval, None, space)
    ref.home = core_of_kernel().home
    return ref


def scratch_type(like):
    """(the type of the values, the kind of memory) of scratch; semaphores count."""
    space = getattr(like, "memory_space", None)
    if getattr(space, "value", None) in SEMAPHORES:
        return ShapedArray(like.shape, "int32"), space.value
    return ShapedArray(like.shape, like.dtype), space_of(space)


def space_of(memory_space):
    """The kind of memory that a memory space is: "vmem" where none is said."""
    return getattr(memory_space, "value", "vmem")
