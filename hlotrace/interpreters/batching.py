"""JAX's `interpreters.batching`: how primitives act on operands with a mapped axis.

A rule takes operands and, for each, the position of its mapped axis, or `not_mapped`; it gives results and
their positions.
"""
from functools import partial

from ..core.axes import same_axes
from ..core.jaxpr import eval_jaxpr, sub_jaxprs
from ..core.primitive import fact_of
from ..core.programs import embed_constants, trace_closed
from ..core.surface.public import install_getattr as _explain
from ..core.symbolic_zeros import MappedAxis
from ..extend.linear_util import transformation_with_aux2
from ..primitives.arrays.shape import batch_by_axes, broadcast_axis, move_axis
from ..transforms.vmap import BatchTrace, BatchTracer, batch_flat, place_axis
from ..transforms.vmappable import register_vmappable, unregister_vmappable
from .registry import Registry

__all__ = ["BatchTrace", "BatchTracer", "axis_primitive_batchers", "batch_jaxpr_axes", "batch_subtrace",
           "bdim_at_front", "broadcast", "defbroadcasting", "defreducer", "defvectorized",
           "fancy_primitive_batchers", "moveaxis", "not_mapped", "primitive_batchers", "register_vmappable",
           "unregister_vmappable"]

not_mapped = None


def moveaxis(x, source, target):
    """`x` with axis `source` at `target`; `x` itself where it has no mapped axis."""
    if source is not_mapped:
        return x
    return move_axis(x, source, target if target >= 0 else target + x.ndim)


def broadcast(x, size, axis, mesh_axis=None):
    """`x` repeated `size` times along a new axis at `axis`."""
    _no_mesh_axis("broadcast", mesh_axis)
    return broadcast_axis(x, size, axis)


def bdim_at_front(x, bdim, size, mesh_axis=None):
    """`x` with its mapped axis in front, made there by repetition if it has none."""
    _no_mesh_axis("bdim_at_front", mesh_axis)
    return place_axis(x, size, bdim, 0)


def batch_jaxpr_axes(closed_jaxpr, axis_data, in_axes, out_axes_dest):
    """(the program over a mapped axis, for each output whether it has that axis).

    Args:
        axis_data: has a `size` and a `name`.
        in_axes: positions, `not_mapped` for none.
        out_axes_dest: positions; a result that does not depend on mapped inputs is repeated where there is
            one.
    """
    jaxpr, axis = embed_constants(closed_jaxpr), MappedAxis(axis_data.size, axis_data.name)

    def fun(*args):
        outs, dims = batch_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), axis, args, in_axes)
        for d, to in zip(dims, out_axes_dest, strict=True):
            if to is None and d is not None:
                raise ValueError("batch_jaxpr_axes: out_axes_dest is not_mapped for a result that depends on "
                                 "mapped inputs")
        return [x if to is None else place_axis(x, axis.size, d, to)
                for x, d, to in zip(outs, dims, out_axes_dest)]
    avals = [a if d is None else a.with_axis(d, axis.size)
             for a, d in zip(jaxpr.in_avals, in_axes, strict=True)]
    return trace_closed(fun, avals, jaxpr.name), [to is not None for to in out_axes_dest]


@transformation_with_aux2
def batch_subtrace(call, store, _tag, axis_data, in_dims, *args):
    """`batch_subtrace(fun, tag, axis_data, in_dims)`: (a WrappedFun over a mapped axis, what gives
    positions).

    It takes and gives values that have the axis, whose size and name `axis_data` says; `in_dims` are
    positions, or a function that gives them.  The positions in the results are known when it was called.
    """
    dims = in_dims() if callable(in_dims) else in_dims
    outs, out_dims = batch_flat(call, MappedAxis(axis_data.size, axis_data.name), args, dims)
    store.store(out_dims)
    return outs


def _no_mesh_axis(name, mesh_axis):
    if mesh_axis is not None:
        raise NotImplementedError(f"batching.{name}(mesh_axis={mesh_axis!r}): types do not carry mesh axes "
                                  "here")


# --- between the signatures: ours begins with the axis: its size, and its name or None ------------

def _results(primitive, out, dims):
    if not primitive.multiple_results:
        return out, dims
    out = list(out)
    return out, list(dims) if isinstance(dims, (list, tuple)) else [dims] * len(out)


def _axis_of(args, dims):
    """The mapped axis where JAX's signature leaves it out: its size is that of the operands."""
    return MappedAxis(next(a.shape[d] for a, d in zip(args, dims) if d is not None))


class AxisRegistry(Registry):
    """Rules that see the axis: over a named axis in the parameters they run even where nothing is mapped."""

    def __setitem__(self, primitive, rule):
        super().__setitem__(primitive, rule)
        primitive.axis_names = primitive.axis_names or _names


def _names(params):
    given = [params.get(key, ()) for key in ("axis_name", "axis_names", "axes")]
    named = [n for g in given for n in (g if isinstance(g, (tuple, list)) else (g,)) if isinstance(n, str)]
    return tuple(dict.fromkeys([*named, *(n for jaxpr in sub_jaxprs(params)
                                          for n in fact_of(jaxpr, "axis_names"))]))


primitive_batchers = Registry(
    "primitive_batchers", "batching",
    lambda p, rule, _, args, dims, **params: _results(p, *rule(tuple(args), tuple(dims), **params)),
    lambda _, rule, args, dims, **params: rule(_axis_of(args, dims), list(args), list(dims), **params))
fancy_primitive_batchers = AxisRegistry(
    "fancy_primitive_batchers", "batching",
    lambda p, rule, axis, args, dims, **params: _results(p, *rule(axis, tuple(args), tuple(dims), **params)),
    lambda _, rule, axis, args, dims, **params: rule(axis, list(args), list(dims), **params))
axis_primitive_batchers = AxisRegistry(
    "axis_primitive_batchers", "batching",
    lambda p, rule, axis, args, dims, **params: _results(
        p, *rule(axis.size, axis.name, None, tuple(args), tuple(dims), **params)),
    lambda _, rule, size, name, mesh, args, dims, **params: rule(
        MappedAxis(size, name), list(args), list(dims), **params))


# --- rules of common kinds ------------------------------------------------------------------------

def defbroadcasting(primitive):
    """A primitive that acts on each element alone; unmapped operands are repeated along the new axis."""
    primitive.axes = same_axes()
    primitive_batchers[primitive] = partial(_elementwise, primitive)


defvectorized = defbroadcasting


def _elementwise(primitive, args, dims, **params):
    if len(set(dims)) == 1:
        return primitive.bind(*args, **params), dims[0]
    return batch_by_axes(primitive, _axis_of(args, dims), args, dims, **params)


def defreducer(primitive):
    """A primitive with one operand and a parameter `axes`, which its result lacks."""
    def batch(args, dims, *, axes, **params):
        dim, = dims
        out = primitive.bind(*args, axes=tuple(a + (a >= dim) for a in axes), **params)
        return out, dim - sum(a < dim for a in axes)
    primitive_batchers[primitive] = batch

_explain(globals())
