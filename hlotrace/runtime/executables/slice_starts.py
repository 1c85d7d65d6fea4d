"""Programs as XLA of jaxlib 0.10 must have them: with starts of slices that are in range.

It reads a slice of a slice at the sum of their starts, before either is moved into range, which HLO's
DynamicSlice does first: `dynamic_slice(dynamic_slice(x, i), j)` would read other elements than it should.  It
makes such slices of gathers and scatters at one place, and of operands that it divides.
"""
from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts).replace("TYPE", r"tensor<(?:[^<>]|<[^<>]*>)*>"), re.MULTILINE)


_SLICE = _pattern(r"^( *)(%\S+ = stablehlo\.dynamic_slice %[^\s,]+, )([^=\n]+)",
                  r"(, sizes = \[([^\]\n]+)\] : \((TYPE)(?:, (TYPE))+\) -> .*)$")
_GATHER = _pattern(r'^( *)(%\S+ = "stablehlo\.gather"\(%[^\s,]+, )(%[^\s,)]+)',
                   r"(\) <\{.*#stablehlo\.gather<([^>\n]*)>",
                   r".*slice_sizes = array<i64: ([^>\n]*)>\}> : \((TYPE), (TYPE)\) -> .*)$")
_SCATTER = _pattern(r'^( *)(%\S+ = "stablehlo\.scatter"\()(%[^\s,]+)(, .*#stablehlo\.scatter<([^>\n]*)>',
                    r"(?:.*\n)*?\1\}\) : \((TYPE), (TYPE), .*)$")


def in_range(text: str) -> str:
    """The text of a module in which starts are moved into range before they are used.

    The start of a scatter may be out of range, and nothing is written then: where it is one window, a barrier
    keeps what is around it from being joined with its parts.
    """
    if "stablehlo.dynamic_slice" not in text and '"stablehlo.scatter"' not in text:
        return text
    names = (f"%in_range{i}" for i in itertools.count())
    text = _SLICE.sub(lambda found: _slice(found, names), text)
    text = _GATHER.sub(lambda found: _gather(found, names), text)
    return _SCATTER.sub(lambda found: _scatter(found, names), text)


def _sizes(text: str) -> list[int]:
    """Those of a tensor's type; none of a type with bounded sizes."""
    return [int(n) for n in re.findall(r"(\d+)x", text)] if "?" not in text else []


def _clamped(start: str, last: list[int], kind: str, names: Iterator[str], indent: str) -> tuple[str, str]:
    """(operations that move `start`, of this type, between 0 and `last`, the name of their result)."""
    unsigned, bits = re.findall(r"(u?)i(\d+)", kind)[0]
    largest = 2 ** (int(bits) - (not unsigned)) - 1
    rows = len(_sizes(kind))
    most = "[" * rows + ", ".join(str(min(n, largest)) for n in last) + "]" * rows
    low, high, moved = next(names), next(names), next(names)
    return (f"{indent}{low} = stablehlo.constant dense<0> : {kind}\n"
            f"{indent}{high} = stablehlo.constant dense<{most}> : {kind}\n"
            f"{indent}{moved} = stablehlo.clamp {low}, {start}, {high} : {kind}\n", moved)


def _slice(found: re.Match[str], names: Iterator[str]) -> str:
    indent, head, starts, tail, sizes, operand, kind = found.groups()
    shape = _sizes(operand)
    if not shape:
        return found[0]
    before, after = zip(*(_clamped(start, [n - int(size)], kind, names, indent) for start, n, size
                          in zip(starts.split(", "), shape, sizes.split(", "), strict=True)))
    return "".join(before) + indent + head + ", ".join(after) + tail


def _gather(found: re.Match[str], names: Iterator[str]) -> str:
    indent, head, indices, tail, numbers, sizes, operand, kind = found.groups()
    places = re.findall(r"start_index_map = \[([^\]]+)\]", numbers)
    shape, axes = _sizes(operand), [int(d) for entries in places for d in entries.split(", ")]
    if not axes or not shape or not _is_one(kind, numbers):
        return found[0]
    last = [shape[d] - int(sizes.split(", ")[d]) for d in axes]
    before, moved = _clamped(indices, last, kind, names, indent)
    return before + indent + head + moved + tail


def _scatter(found: re.Match[str], names: Iterator[str]) -> str:
    indent, head, operand, tail, numbers, kind, indices = found.groups()
    if not _is_one(indices, numbers):
        return found[0]
    held = next(names)
    return f"{indent}{held} = stablehlo.optimization_barrier {operand} : {kind}\n{indent}{head}{held}{tail}"


def _is_one(indices: str, numbers: str) -> bool:
    """Are indices of this type one vector, along the last dimension?  By these dimension numbers, whose zeros
    jaxlib does not print."""
    vector = int((re.findall(r"index_vector_dim = (\d+)", numbers) or [0])[0])
    sizes = _sizes(indices)
    return "?" not in indices and math.prod(sizes[:vector]) == 1 and len(sizes) <= vector + 1
