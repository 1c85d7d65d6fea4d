"""ragged_all_to_all: each device sends slices of its rows to others, whose sizes are known when it runs.

XLA has it as a kernel, which its CPU compiler lacks: there every device gets all rows and picks its own.
"""
import numpy as np

from ..arrays.elementwise import add, and_p, convert, ge, le, lt, maximum, minimum, select, sub
from ..arrays.gather import gather_p
from ..arrays.gather_numbers import CLIP, GatherDimensionNumbers
from ..arrays.reduce import reduce_max_p, reduce_or_p
from ..arrays.shape import broadcast_in_dim, in_front, linear_jvp, move_axis, reshape, zeros_of
from ..common import Primitive, aval_of, is_undefined_primal, shape_of
from .collectives import all_gather_p, all_to_all_p, groups_text


def _abstract_eval(operand, output, *indices, axes, size, groups):
    slices, = indices[0].shape
    if slices % size:
        raise ValueError(f"lax.ragged_all_to_all: input_offsets has {slices} entries, which is not a "
                         f"multiple of {size}, the number of devices along {axes}")
    return output


def exchanged(values, axes, size, groups):
    """What every device says to each of the others, where it arrives."""
    return all_to_all_p.bind(values, axes=axes, size=size, split=0, concat=0, groups=groups)


def by_gathering(operand, output, *indices, axes, size, groups):
    """The result by collectives of whole arrays."""
    starts, sizes, places, received = [convert(v, np.dtype(np.int32)) for v in indices]
    k = shape_of(starts)[0]
    if 0 in shape_of(operand):
        return output
    starts, sizes, places = (exchanged(v, axes, size, groups) for v in (starts, sizes, places))
    rows = all_gather_p.bind(operand, axes=axes, size=size, dim=0, groups=groups)
    table = (shape_of(output)[0], k)
    inside, here = _written(places, minimum(sizes, received), table)
    senders = np.arange(k, dtype=np.int32) // max(k // size, 1) * shape_of(operand)[0]
    starts, places = (broadcast_in_dim(v, table, (1,)) for v in (starts, places))
    row = add(sub(add(here, starts), places), broadcast_in_dim(senders, table, (1,)))
    found = reduce_max_p.bind(select(inside, row, -1), axes=(1,))
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape_of(rows)))), (0,), (0,))
    where = reshape(maximum(found, np.int32(0)), (table[0], 1))
    taken = gather_p.bind(rows, where, dimension_numbers=numbers, slice_sizes=(1, *shape_of(rows)[1:]),
                          indices_are_sorted=False, unique_indices=False, mode=CLIP, fill_value=None)
    return select(broadcast_in_dim(ge(found, np.int32(0)), shape_of(output), (0,)), taken, output)


def _written(places, sizes, table):
    """For each row of the output and each slice: is it written there?  And the number of the row."""
    here = broadcast_in_dim(np.arange(table[0], dtype=np.int32), table, (0,))
    places, sizes = (broadcast_in_dim(v, table, (1,)) for v in (places, sizes))
    return and_p.bind(le(places, here), lt(here, add(places, sizes))), here


def _lower(ctx, eqn, *names):
    types = ", ".join(v.aval.mlir for v in eqn.invars)
    ctx.module.targets.setdefault("ragged_all_to_all")
    groups = groups_text(ctx, eqn.params["axes"], eqn.params["groups"])
    return ctx.emit(f"stablehlo.custom_call @ragged_all_to_all({', '.join(names)}) {{api_version = 4 : i32, "
                    f"backend_config = {{channel_id = 1 : i64, {groups}}}}} : ({types}) -> "
                    f"{eqn.outvars[0].aval.mlir}")


def _transpose(ct, operand, output, *indices, **params):
    """Slices go back to where they came from; what was written over has no cotangent."""
    starts, sizes, places, received = indices
    back, places = (exchanged(v, **params) for v in (starts, places))
    ct_operand = ct_output = None
    if is_undefined_primal(operand):
        ct_operand = ragged_all_to_all_p.bind(ct, zeros_of(operand.aval), places, received, back, sizes,
                                              **params)
    if is_undefined_primal(output):
        table = (shape_of(ct)[0], shape_of(places)[0])
        inside, _ = _written(*(convert(v, np.dtype(np.int32)) for v in (places, received)), table)
        over = broadcast_in_dim(reduce_or_p.bind(inside, axes=(1,)), shape_of(ct), (0,))
        ct_output = select(over, 0, ct)
    return [ct_operand, ct_output, *[None] * 4]


def _batching(axis, args, dims, *, axes, size, groups):
    """The rows of all examples are exchanged at once: the slices of one follow those of the one before."""
    if axis.name in axes and axis.name is not None:
        raise NotImplementedError(f"ragged_all_to_all over {axis.name!r}, the axis of a vmap")
    args = [in_front(x, axis, d) for x, d in zip(args, dims)]
    operand, output, *indices = args
    flat = []
    for values, rows in zip(indices, (shape_of(operand)[1], 0, shape_of(output)[1], 0)):
        values = move_axis(values, 0, 1)
        dtype, shape = aval_of(values).dtype, shape_of(values)
        if rows:
            first = np.arange(axis.size, dtype=dtype) * np.asarray(rows, dtype)
            values = add(values, broadcast_in_dim(first, shape, (1,)))
        flat.append(reshape(values, (shape[0] * shape[1],)))
    together = [reshape(x, (axis.size * shape_of(x)[1], *shape_of(x)[2:])) for x in (operand, output)]
    out = ragged_all_to_all_p.bind(*together, *flat, axes=axes, size=size, groups=groups)
    return reshape(out, shape_of(output)), 0


ragged_all_to_all_p = Primitive(
    "ragged_all_to_all", abstract_eval=_abstract_eval, transpose=_transpose, batching=_batching,
    lower={"cpu": lambda ctx, eqn, *names: ctx.lower_fun(
        lambda *xs: by_gathering(*xs, **eqn.params), eqn, *names), None: _lower},
    axis_names=lambda params: params["axes"], makes_nan=False,
    shown=lambda eqn: {"axis_index_groups": eqn.params["groups"], "axis_name": eqn.params["axes"]})
ragged_all_to_all_p.jvp = linear_jvp(ragged_all_to_all_p, 2)
