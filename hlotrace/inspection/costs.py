"""What an operation computes, counted from its name and its types: the same rule for each form of a program.

A multiplication and an addition are two FLOPs; elementwise operations count one for each element of their
results, whatever they compute; what only moves values counts none.
"""
import functools
import math
import re

_MOVES = frozenset("""
    all_gather all_to_all argument bitcast bitcast_convert bitcast_convert_type broadcast broadcast_in_dim
    collective_broadcast collective_permute concatenate constant convert convert_element_type copy copy_done
    copy_start copy_p custom_call device_put dynamic_iota dynamic_reshape dynamic_slice dynamic_update_slice
    gather get_tuple_element infeed iota optimization_barrier outfeed pad parameter partition_id ppermute
    pvary recv replica_id reshape rev reverse send sharding_constraint slice squeeze stop_gradient transpose
    tuple return get_dimension_size create_token after_all split expand_dims real imag sdy_return
""".split())
_REDUCTIONS = re.compile(r"reduce(?!_precision)|cum(sum|prod|max|min|logsumexp)|arg(max|min)|psum"
                         r"|p(max|min)$")


@functools.lru_cache(4096)      # a program has few types
def elements(shape):
    """How many elements the arrays of a shape hold: `f32[8,16]`, `(f32[8], s32[])`; 0 for open sizes."""
    if "?" in shape:
        return 0
    return sum(math.prod(map(int, re.findall(r"\d+", dims))) for dims in re.findall(r"\[([^\]]*)\]", shape))


def flops(op, result, operands, contracted=()):
    """FLOPs of one application.

    Args:
        op: the name of a primitive, or of an operation of StableHLO or HLO.
        result: the types of its results, `f32[8,16]`.
        operands: those of its operands, a list.
        contracted: of a matrix product the summed axes of its first operand; of a convolution those of its
            kernel over which a result element is a sum.
    """
    op = op.removeprefix("stablehlo.").replace("-", "_")
    if op in _MOVES or op.startswith(("sdy.", "func.", "scatter")):
        return 0
    if op.startswith(("dot", "conv_general", "convolution", "ragged_dot")):
        summed = operands[op.startswith("conv"):][:1]
        sizes = [int(n) for n in re.findall(r"\d+", "".join(summed).partition("[")[2])]
        return 2 * elements(result) * math.prod(sizes[i] for i in contracted if i < len(sizes))
    if _REDUCTIONS.match(op):
        return elements(operands[0]) if operands else 0
    return elements(result)


def add_up(rows, scale=lambda i, flops: flops, own=lambda row: row.flops):
    """Sets the FLOPs of rows that hold others: what is in them together; of branches, of the longest.

    Args:
        scale: (number of a row, that sum) to its FLOPs; rows further down are done before it is called.
        own: the FLOPs of a row that holds none.
    """
    inside = {}         # depth -> FLOPs of rows at that depth that have not met their holder
    for i in reversed(range(len(rows))):
        row = rows[i]
        if row.holds:
            counts = inside.pop(row.depth + 1, [0])
            row.flops = scale(i, max(counts) if row.holds == "branch" else sum(counts))
        else:
            row.flops = own(row)
        inside.setdefault(row.depth, []).append(row.flops or 0)
