"""What one application of an operation computes: the same rule for jaxprs, StableHLO and optimized HLO.

A product is two FLOPs for each element that is multiplied and summed, eight of complex numbers; padding and
gaps of a convolution are left out.  Other operations are one for each element of their results, whatever they
compute, reductions one for each element that they take; what only moves or chooses values is none.
"""
import functools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_MOVES = frozenset("""
    add_dependency after_all all_gather all_to_all argument async_start bitcast bitcast_convert
    bitcast_convert_type broadcast broadcast_in_dim call case collective_broadcast collective_permute
    concatenate conditional constant convert convert_element_type copy copy_p create_token custom_call
    device_put domain dynamic_iota dynamic_reshape dynamic_slice dynamic_update_slice expand_dims fusion
    gather get_dimension_size get_tuple_element if imag infeed iota opt_barrier optimization_barrier
    outfeed pad parameter partition_id ppermute pvary real recv reduce_precision replica_id reshape
    return rev reverse rng_bit_generator sdy_return select select_n send sharding_constraint slice sort
    split squeeze stop_gradient transpose tuple while
""".split())
_PRODUCTS = re.compile(r"dot|conv_general|convolution|ragged_dot")
_REDUCTIONS = re.compile(r"reduce|all_reduce|select_and_scatter|map$|cum(sum|prod|max|min|logsumexp)"
                         r"|arg(max|min)|psum|p(max|min)$")


@functools.lru_cache(4096)      # a program has few operations
def counted(op: str) -> str:
    """What of an operation is counted: "product", the elements of its "result", its "first" or its "last"
    operand, or "nothing".  `op` is the name of a primitive, or of an operation of StableHLO or HLO."""
    op = op.removeprefix("stablehlo.").replace("-", "_")
    if op in _MOVES or op.startswith(("sdy.", "func.")) or op.endswith(("_start", "_done", "_update")):
        return "nothing"
    if _PRODUCTS.match(op):
        return "product"
    if op.startswith("scatter"):
        return "last"
    return "first" if _REDUCTIONS.match(op) else "result"


def elementwise(op: str, results: int, operands: Sequence[int]) -> int:
    """Operations on elements of an operation that is no product, from how many elements its results together
    and each of its operands hold; of a product, none."""
    what = counted(op)
    if what == "result":
        return results
    if what in ("nothing", "product") or not operands:
        return 0
    return operands[0] if what == "first" else operands[-1]


def product(results: int, summed: Sequence[int], dtype: str = "") -> int:
    """FLOPs of a product of `results` elements, each a sum over `summed`, the sizes of axes."""
    return 2 * results * math.prod(summed) * (4 if dtype.startswith("c") else 1)


class Window(NamedTuple):
    """How a convolution goes over its image.

    `image`, `kernel` and `result` name their dimensions, `b01f`, `01io`, `b01f`; the others have a number for
    each of the dimensions 0, 1, ...: steps, padding in front, and by how much image and kernel are dilated.
    """
    image: str
    kernel: str
    result: str
    stride: Sequence[int]
    low: Sequence[int]
    image_dilation: Sequence[int]
    kernel_dilation: Sequence[int]


def convolution(window: Window, x: Sequence[int], w: Sequence[int], y: Sequence[int], dtype: str = "") -> int:
    """FLOPs of a convolution from the shapes of image, kernel and result."""
    results = y[window.result.index("b")] * y[window.result.index("f")]
    each = [taps(x[window.image.index(letter)], w[window.kernel.index(letter)],
                  y[window.result.index(letter)], *(numbers[int(letter)] for numbers in window[3:]))
            for letter in filter(str.isdigit, window.image)]
    return product(results, [w[window.kernel.index("i")], *each], dtype)


def taps(size: int, window: int, out: int, stride: int, low: int, spread: int, gap: int) -> int:
    """How often an element of a window meets one of the array along one axis, not padding or a gap."""
    at = np.arange(out)[:, None] * stride - low + np.arange(window) * gap
    return int(np.sum((at >= 0) & (at % spread == 0) & (at // spread < size)))


def stablehlo_window(text: str) -> Window:
    """The Window of a `stablehlo.convolution`, from its text."""
    labels = re.search(r"dim_numbers = \[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]", text)
    named = [names.replace(", ", "") for names in labels.groups()] if labels else ["bf", "io", "bf"]
    dims = sum(map(str.isdigit, named[0]))

    def numbers(name: str, default: int, each: int = 1) -> list[int]:
        found = re.search(rf"\b{name} = \[(.*?)\](?=, \w|\}})", text)
        return [int(n) for n in re.findall(r"-?\d+", found[1])][::each] if found else [default] * dims
    return Window(*named, numbers("stride", 1), numbers("pad", 0, 2), numbers("lhs_dilate", 1),
                  numbers("rhs_dilate", 1))
