"""Memory as TPUs have it: arrays in tiles, and a memory beside the cores that the compiler fills first."""
import functools
import math

import numpy as np

from ...sharding.layout import Layout
from . import hlo_costs

# The rest is where kernels keep the tiles that they work on; of values larger than half of the whole there
# are few, found by comparing with what libtpu 0.0.42 does.
_FOR_VALUES = 7 / 8
# Added to the values that are alive, for gaps between them: of three programs 9, 14 and 23 % are gaps.
GAPS = 1 / 8


class Tiles:
    """The bytes that arrays take on a TPU: their two fastest axes are filled up to whole tiles."""

    def __init__(self, device):
        self.device = device
        self.layout = functools.cache(self._layout)

    def _layout(self, dtype, shape):
        dtype = np.dtype(dtype.removesuffix(hlo_costs.ONE_PASS))
        return Layout.parse(str(self.device.client.get_default_layout(dtype, shape, self.device)))

    def bytes(self, dtype, bits, shape, whole=None):
        """Those of an array; `whole` is the shape for which its axes are ordered, if not its own."""
        layout = self.layout(dtype, shape if whole is None else whole)
        sizes = [shape[axis] for axis in layout.major_to_minor]
        for i, tile in enumerate(reversed(layout.tiling[0] if layout.tiling else ()), 1):
            if i > len(sizes):
                sizes.insert(0, 1)
            sizes[-i] = -(-sizes[-i] // tile) * tile
        return math.prod(sizes) * bits // 8


def in_vmem(spans, loops, vmem):
    """The values that the compiler keeps beside the cores, the shortest-lived first.

    Args:
        spans: {value: (the operation that makes it, the last that reads it)}.
        loops: the operations that hold others: what lives across one is not there.
    """
    budget = int(vmem * _FOR_VALUES)
    used = np.zeros(1 + max((last for _, last in spans.values()), default=0), np.int64)
    found = set()
    for value, (first, last) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
        during = slice(first, last + 1)
        if any(first <= i <= last for i in loops) or (
                2 * value.bytes > vmem or used[during].max() + value.bytes > budget):
            continue
        used[during] += value.bytes
        found.add(value)
    return found
