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

    def part(self, dim):
        """The size of a dimension on each device, padded where they are uneven."""
        return -(-self.sizes[dim] // self.counts[dim])

    @property
    def used(self):
        """The mesh axes that split it."""
        return {axis for axes in self.axes for axis in axes}

    def where(self, dims, other):
        """Divided as it is along `dims`; elsewhere as `other`, where that has larger parts."""
        each = [self if dim in dims or other.counts[dim] >= count else other
                for dim, count in enumerate(self.counts)]
        return self._replace(axes=tuple(one.axes[dim] for dim, one in enumerate(each)),
                             counts=tuple(one.counts[dim] for dim, one in enumerate(each)))

    def bytes(self, sizes=None):
        """On one device, with other `sizes` of some dimensions."""
        rows = [(sizes or {}).get(dim, self.part(dim)) for dim in range(len(self.sizes))]
        return -(-math.prod(rows) * self.bits // 8)


def gathered(value, dims):
    """The exchanges by which each device gets all of some dimensions, the last of them first.

    Of a dimension that fills half of the devices at most, each adds what the others have.
    """
    found, sizes = [], {}
    for dim in sorted((dim for dim in dims if value.counts[dim] > 1), reverse=True):
        few = 2 * value.sizes[dim] <= value.counts[dim]
        sizes[dim] = value.sizes[dim] if few else value.part(dim) * value.counts[dim]
        found.append(("all-reduce" if few else "all-gather", value.axes[dim], value.bytes(sizes)))
    return found


class Applied(NamedTuple):
    """An operation of the program, and its operands and results as Divided, None for those without shapes."""
    op: object
    operands: list
    results: list

    def integers(self, name, count=0):
        """An attribute of integers; ones where there is none."""
        return _integers(self.op, name, count)


def exchanges(applied):
    """The exchanges for an operation of the program, Applied."""
    rule = _RULES.get(applied.op.name)
    return rule(applied) if rule else []


def _slice(applied):
    [operand], [result] = applied.operands, applied.results
    if any(rotation(use.owner.operation) is not None for use in applied.op.results[0].uses):
        return []
    starts, strides = map(applied.integers, ("start_indices", "strides"))
    return [found for dim, (start, stride) in enumerate(zip(starts, strides)) for found in _edges(
        _Need(operand, dim, result, dim, -start, stride, last=operand.sizes[dim]), 1)]


def _pad(applied):
    [operand, _], [result] = applied.operands, applied.results
    lows, between = map(applied.integers, ("edge_padding_low", "interior_padding"))
    return [found for dim, (low, more) in enumerate(zip(lows, between)) for found in _edges(
        _Need(operand, dim, result, dim, low, between=more + 1), 2)]


def _dynamic_update_slice(applied):
    operand, update = applied.operands[:2]
    return gathered(operand, [dim for dim, size in enumerate(update.sizes) if 1 < size < operand.sizes[dim]])


def _reverse(applied):
    [operand] = applied.operands
    return [("collective-permute", operand.axes[dim], operand.bytes())
            for dim in applied.integers("dimensions") if operand.counts[dim] > 1]


def _concatenate(applied):
    shift, [result] = rotation(applied.op), applied.results
    dim = ir.IntegerAttr(applied.op.attributes["dimension"]).value
    if shift is None or result.counts[dim] == 1:
        return []
    distance, rest = divmod(shift, result.part(dim))
    pieces = [(distance, result.part(dim) - rest), (distance + 1, rest)]
    return [("collective-permute", result.axes[dim], result.bytes({dim: rows}))
            for at, rows in pieces if rows and at % result.counts[dim]]


def rotation(op):
    """By how much an operation that puts the end of an array before its start moves it; None for another."""
    if op.name != "stablehlo.concatenate" or len(op.operands) != 2:
        return None
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    parts = [value.owner for value in op.operands]
    if any(isinstance(part, ir.Block) or part.operation.name != "stablehlo.slice" for part in parts):
        return None
    end, start = (part.operation for part in parts)
    shape = list(end.operands[0].type.shape)
    bounds = [[_integers(part, name) for name in ("start_indices", "limit_indices", "strides")]
              for part in (end, start)]
    cut, zeros, ones = bounds[0][0][dim], [0] * len(shape), [1] * len(shape)
    turned = [[_with(zeros, dim, cut), shape, ones], [zeros, _with(shape, dim, cut), ones]]
    return shape[dim] - cut if end.operands[0] == start.operands[0] and bounds == turned else None


def _with(items, index, item):
    return [*items[:index], item, *items[index + 1:]]


def _reduce_window(applied):
    windows = applied.integers("window_dimensions")
    return _windows(applied, [(dim, dim) for dim in range(len(windows))], windows, "base_dilations",
                    "window_dilations")


def _convolution(applied):
    image, kernel = applied.operands
    numbers = stablehlo.ConvDimensionNumbers(applied.op.attributes["dimension_numbers"])
    ins, outs = list(numbers.input_spatial_dimensions), list(numbers.output_spatial_dimensions)
    sums = list(numbers.kernel_spatial_dimensions)
    found = _windows(applied, [*zip(ins, outs)], [kernel.sizes[dim] for dim in sums], "lhs_dilation",
                     "rhs_dilation")
    # the derivative by the kernel: each device has a part of the image and of the cotangent, and sums
    steps, lows = applied.integers("rhs_dilation", len(ins)), _lows(applied, len(ins))
    return found + [one for step, low, dim, part, out in zip(steps, lows, ins, sums, outs) for one in _edges(
        _Need(image, dim, kernel, part, low, step, applied.results[0].sizes[out]))]


def _windows(applied, dims, windows, between, apart):
    count = len(windows)
    strides, between, apart = (applied.integers(n, count) for n in ("window_strides", between, apart))
    spans, lows = [(window - 1) * step + 1 for window, step in zip(windows, apart)], _lows(applied, count)
    return [found for i, (dim, out) in enumerate(dims) for found in _edges(
        _Need(applied.operands[0], dim, applied.results[0], out, lows[i], strides[i], spans[i], between[i]))]


def _lows(applied, count):
    """The padding before each of `count` dimensions."""
    padding = applied.op.attributes["padding"] if "padding" in applied.op.attributes else None
    return [0] * count if padding is None else np.array(padding)[:, 0].tolist()


class _Need:
    """Which rows of an operand, along a dimension, the part of the result on each device is made of.

    A row of the result is made of `window` of them, the first of it of those from `-low`, the next `stride`
    farther; rows that are not there are `between` those of the operand.
    """

    def __init__(self, operand, dim, result, out, low, stride=1, window=1, between=1, last=math.inf):
        self.operand, self.dim = operand, dim
        self.size, self.count = operand.sizes[dim], operand.counts[dim]
        self.split = self.count > 1 and result.counts[out] == self.count
        self.same = (self.size, stride, window, low) == (result.sizes[out], 1, 1, 0)
        self.part, made = operand.part(dim), result.part(out)
        starts = [i * made * stride - low for i in range(self.count)]
        self.reach = (made - 1) * stride + window
        ends = [start + self.reach for start in starts]
        self.rows = [(-(-start // between), min((end - 1) // between + 1, last))
                     for start, end in zip(starts, ends)]
        # of a result on half of the devices at most, the others need nothing
        self.rows = self.rows[:result.sizes[out] if 2 * result.sizes[out] <= self.count else self.count]


def _edges(need, near=None):
    """The exchanges of rows between devices.

    Args:
        near: over how many parts rows go from neighbour to neighbour.  If one has to come from farther away,
            all go straight to where they are needed.  None: from neighbour to neighbour, or all rows to all.
    """
    if not need.split or need.same or not need.part:
        return []
    part = need.part
    before = max([0, *(i * part - start for i, (start, _) in enumerate(need.rows) if i)])
    behind = max([0, *(end - (i + 1) * part for i, (_, end) in enumerate(need.rows[:need.count - 1]))])
    if near is None and before + part + behind >= part * need.count:
        return gathered(need.operand, [need.dim])
    if near is not None and max(before, behind) > min(near * part, 2 * need.reach):
        moved = _straight(need)
    else:
        moved = [min(part, rows - at) for rows in (before, behind) for at in range(0, rows, part)]
    return [("collective-permute", need.operand.axes[need.dim], need.operand.bytes({need.dim: rows}))
            for rows in moved]


def _straight(need):
    """The rows of each permute where they go straight to the devices that need them: in one permute a device
    sends and receives once, and as many rows as the offsets of all span."""
    permutes = []       # [those that receive, those that send, first row, end]
    for target, (start, end) in enumerate(need.rows):
        if end <= 0 or start >= need.size:
            continue
        for source in range(start // need.part, (end - 1) // need.part + 1):
            if source == target:
                continue
            first, last = max(start - source * need.part, 0), min(end - source * need.part, need.part)
            for permute in permutes:
                if target not in permute[0] and source not in permute[1]:
                    break
            else:
                permute = [set(), set(), first, last]
                permutes.append(permute)
            permute[0].add(target)
            permute[1].add(source)
            permute[2:] = min(permute[2], first), max(permute[3], last)
    return [last - first for *_, first, last in permutes]


def _integers(op, name, count=0):
    """An attribute of integers; ones where there is none."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else [1] * count


_RULES = {"stablehlo.slice": _slice, "stablehlo.pad": _pad, "stablehlo.reverse": _reverse,
          "stablehlo.concatenate": _concatenate, "stablehlo.reduce_window": _reduce_window,
          "stablehlo.convolution": _convolution,
          "stablehlo.dynamic_update_slice": _dynamic_update_slice}
