"""What XLA's partitioner exchanges for an operation where Shardy leaves it to it: parts beyond the edges of a
device's own, and operands of what it cannot divide.

An exchange is (kind, mesh axes, bytes of the result on a device).
"""
import math
from typing import NamedTuple

import numpy as np

from ..runtime.mlir.bindings import ir, stablehlo


class Divided(NamedTuple):
    """A value over the devices: for each dimension its size, the mesh axes that split it, into how many."""
    sizes: tuple
    axes: tuple
    counts: tuple
    bits: int               # of an element

    def bytes(self, whole=()):
        """On one device, whose part is padded to that of the others; along axes of dimensions that are
        `whole`, of all of them."""
        rows = [-(-size // count) * (count if dim in whole else 1)
                for dim, (size, count) in enumerate(zip(self.sizes, self.counts))]
        return -(-math.prod(rows) * self.bits // 8)


def gathered(value, dims, onto=frozenset()):
    """The exchanges by which each device gets all of some dimensions, the last of them first.

    Of a dimension that fills half of the devices at most, each adds what the others have.
    """
    found, whole = [], {*onto}
    for dim in sorted(dims, reverse=True):
        if value.counts[dim] == 1:
            continue
        whole.add(dim)
        size, count = value.sizes[dim], value.counts[dim]
        if 2 * size <= count:
            each = value.bytes(whole) // -(-size // count) // count * size
            found.append(("all-reduce", value.axes[dim], each))
        else:
            found.append(("all-gather", value.axes[dim], value.bytes(whole)))
    return found


def exchanges(op, operands, results):
    """The exchanges for an operation of the program, whose operands and results are Divided or None."""
    rule = _RULES.get(op.name)
    return rule(op, operands, results) if rule else []


def _slice(op, operands, results):
    if any(rotation(use.owner.operation) is not None for use in op.results[0].uses):
        return []
    starts, strides = (_integers(op, name) for name in ("start_indices", "strides"))
    return [found for dim, (start, stride) in enumerate(zip(starts, strides))
            for found in _halo(operands[0], results[0], dim, stride, 1, -start)]


def _pad(op, operands, results):
    lows, between = (_integers(op, name) for name in ("edge_padding_low", "interior_padding"))
    return [found for dim, low in enumerate(lows) if not between[dim]
            for found in _halo(operands[0], results[0], dim, 1, 1, low)]


def _reverse(op, operands, results):
    return [("collective-permute", operands[0].axes[dim], operands[0].bytes())
            for dim in _integers(op, "dimensions") if operands[0].counts[dim] > 1]


def _concatenate(op, operands, results):
    shift = rotation(op)
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    count, size = results[0].counts[dim], results[0].sizes[dim]
    if shift is None or count == 1:
        return []
    part = size // count
    row = results[0].bytes() // part
    distance, rest = divmod(shift, part)
    pieces = [(distance, part - rest), (distance + 1, rest)]
    return [("collective-permute", results[0].axes[dim], rows * row)
            for at, rows in pieces if rows and at % count]


def rotation(op):
    """By how much an operation that puts the end of an array before its start moves it; None for another."""
    if op.name != "stablehlo.concatenate" or len(op.operands) != 2:
        return None
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    parts = [value.owner for value in op.operands]
    if any(isinstance(part, ir.Block) or part.operation.name != "stablehlo.slice" for part in parts):
        return None
    end, start = (part.operation for part in parts)
    shape = end.operands[0].type.shape
    [(a, b, by), (c, d, also)] = [[_integers(part, name) for name in ("start_indices", "limit_indices", "strides")]
                                  for part in (end, start)]
    other = [i for i in range(len(shape)) if i != dim]
    if (end.operands[0] != start.operands[0] or {*by, *also} != {1} or (c[dim], b[dim]) != (0, shape[dim])
            or a[dim] != d[dim] or any((x[i], y[i]) != (0, shape[i]) for x, y in ((a, b), (c, d)) for i in other)):
        return None
    return shape[dim] - a[dim]


def _reduce_window(op, operands, results):
    rank = len(operands[0].sizes)
    return _windows(op, operands[0], results[0], [(dim, dim, dim) for dim in range(rank)],
                    _integers(op, "window_dimensions"), "base_dilations", "window_dilations")


def _convolution(op, operands, results):
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = numbers.kernel_spatial_dimensions
    if any(operands[1].counts[dim] > 1 for dim in kernel):
        return []
    return _windows(op, operands[0], results[0], [*zip(
        range(len(kernel)), numbers.input_spatial_dimensions, numbers.output_spatial_dimensions)],
        [operands[1].sizes[dim] for dim in kernel], "lhs_dilation", "rhs_dilation")


def _windows(op, operand, result, dims, windows, between, apart):
    strides, between, apart = (_integers(op, name, len(windows)) for name in ("window_strides", between, apart))
    padding = np.array(op.attributes["padding"]) if "padding" in op.attributes else np.zeros((len(windows), 2), int)
    return [found for i, dim, out in dims if between[i] == 1
            for found in _halo(operand, result, dim, strides[i], (windows[i] - 1) * apart[i] + 1,
                               int(padding[i][0]), out, True)]


def _halo(operand, result, dim, stride, window, low, out=None, windows=False):
    """What a device takes from those before it and behind it, to have all that its part of the result needs."""
    out = dim if out is None else out
    size, count = operand.sizes[dim], operand.counts[dim]
    if count == 1 or result.counts[out] != count or (size, stride, window, low) == (result.sizes[out], 1, 1, 0):
        return []
    part, made = -(-size // count), -(-result.sizes[out] // count)
    starts = [i * made * stride - low for i in range(count)]
    ends = [start + (made - 1) * stride + window for start in starts]
    if not windows:
        ends = [min(end, size) for end in ends]
    before = max(i * part - start for i, start in enumerate(starts) if i)
    behind = max(end - (i + 1) * part for i, end in enumerate(ends[:-1]))
    if windows and max(before, 0) + part + max(behind, 0) >= part * count:
        return gathered(operand, [dim])
    row = operand.bytes() // part
    return [("collective-permute", operand.axes[dim], row * min(part, rows - at))
            for rows in (before, behind) for at in range(0, rows, part)]


def _integers(op, name, count=0):
    """An attribute of integers; ones where there is none."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else [1] * count


_RULES = {"stablehlo.slice": _slice, "stablehlo.pad": _pad, "stablehlo.reverse": _reverse,
          "stablehlo.concatenate": _concatenate, "stablehlo.reduce_window": _reduce_window,
          "stablehlo.convolution": _convolution}
