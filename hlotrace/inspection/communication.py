"""The communication in a compiled program, read from its optimized HLO: what, how much, over which mesh axes.

Any backend's text will do, of any jaxlib that we allow; what a line does not tell is None.
"""
import dataclasses
import itertools
import math
import re

from .hlo_text import Module, integers, modules, shape_bytes, tuple_parts, without_layouts

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute",
         "collective-broadcast", "ragged-all-to-all")


@dataclasses.dataclass(frozen=True)
class Collective:
    """One instruction that communicates; one that starts in one line and is done in another counts once."""
    kind: str               # one of KINDS
    name: str               # the instruction's
    shape: str              # of the result on one device, without layouts: `f32[4,8]`, `(f32[1,8], f32[1,8])`
    bytes: int              # of that result, in one run of the instruction
    # the mesh axes over which it goes; () where no device talks to another; None if none fit
    axes: tuple | None
    groups: str             # what the text says of the groups, or of the pairs
    where: str | None       # "file.py:12"
    op: str | None          # the path of named scopes and the operation, "jit(step)/layer/dot_general"
    in_loop: bool           # is it in the body of a while loop?
    trips: int | None       # how often one run of the program runs it; None where a loop's count is not known


def collectives(hlo_text, mesh):
    """A list with one Collective for each instruction that communicates, in the order of the text.

    `mesh` has `axis_names` and `axis_sizes`; partition i is at its i-th place in row-major order.
    A TPU fusion that does an all-reduce and keeps a part of it counts as the reduce-scatter that it is.
    """
    return [found for module in modules(hlo_text) for found in of_module(module, mesh)]


def table(found):
    """`found`, Collectives, as an aligned table with a line of totals; "no collectives" if there are none."""
    if not found:
        return "no collectives"
    rows = [("kind", "mesh axes", "result", "bytes", "times", "line", "operation")]
    rows += [(c.kind, _axes_text(c), _shape_text(c.shape), f"{c.bytes:,}",
              "loop" if c.trips is None else str(c.trips), c.where or "-", c.op or "-") for c in found]
    return "\n".join([*aligned(rows, right=(3, 4)), totals([(c.kind, c.bytes, c.trips) for c in found])])


def aligned(rows, right=()):
    """The lines of a table whose cells are texts; the columns in `right`, or from that number on, end where
    their titles end."""
    right = range(right, 1000) if isinstance(right, int) else right
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def axes_text(axes):
    """Names of mesh axes, or `none`."""
    return ", ".join(name if name.isprintable() else repr(name) for name in axes) or "none"


def _axes_text(collective):
    return (collective.groups or "?") if collective.axes is None else axes_text(collective.axes)


def _shape_text(shape):
    """A tuple of many arrays, of a combined one, is cut: `(f32[8] x 12)`, `(f32[8], f32[4], 9 more)`."""
    parts = tuple_parts(shape)
    if len(parts) > 3:
        return f"({parts[0]} x {len(parts)})" if len(set(parts)) == 1 else (
            f"({parts[0]}, {parts[1]}, {len(parts) - 2} more)")
    return shape


def totals(found):
    """The line below a table of (kind, bytes, times)."""
    amounts = {}
    for kind, each, times in found:
        count, size = amounts.get(kind, (0, 0))
        amounts[kind] = count + 1, size + each * (1 if times is None else times)
    parts = ", ".join(f"{count} {kind} {size:,}" for kind, (count, size) in amounts.items())
    unknown = "; loops of unknown length count once" if any(times is None for *_, times in found) else ""
    total = sum(size for _, size in amounts.values())
    return f"total: {len(found)}, {total:,} bytes on each device a run ({parts}{unknown})"


def of_module(module, mesh):
    """The Collectives of a Module of hlo_text."""
    reader, found = _Reader(module, mesh), []
    for line in module.lines:
        kind = line.opcode.removesuffix("-start")
        # a TPU's collective that goes on beside other work is written again in each fusion beside it
        if kind in KINDS and not line.computation.startswith("async_collective_fusion"):
            found.append(reader.collective(kind, line))
    return found


class _Reader:
    """A Module, and of what starts in one line the shape of what is done in another."""

    def __init__(self, module: Module, mesh):
        self.module, self.mesh = module, mesh
        self.done = {}          # (computation, name of a start) -> shape of what is done
        for line in module.lines:
            if line.opcode.endswith("-done") and line.operands:
                self.done[line.computation, line.operands[0]] = line.shape

    def collective(self, kind, line):
        name, shape = line.name, self.payload(kind, line)
        if kind == "all-reduce" and line.computation.startswith("all-reduce-scatter"):
            fusion = self.module.callers.get(line.computation, [line])[0]
            kind, name, shape = "reduce-scatter", fusion.name, fusion.shape
        raw, axes = _axes(kind, line.rest, self.mesh)
        where, op = self.module.source(line)
        loops = self.module.loops(line.computation)
        trips = None if None in loops else math.prod(loops) * self.module.calls
        return Collective(kind, name, without_layouts(shape), shape_bytes(shape), axes, raw, where, op,
                          bool(loops), trips)

    def payload(self, kind, line):
        """The shape of the result alone: what starts may also hold its operands and flags."""
        if not line.opcode.endswith("-start"):
            return line.shape
        if (line.computation, line.name) in self.done:
            return self.done[line.computation, line.name]
        parts = tuple_parts(line.shape)
        whole = len(parts) < 2 or kind == "all-reduce" and not parts[0].startswith("(")
        return line.shape if whole else parts[1]


# How the numbers of partitions are grouped.

_GROUPS = re.compile(r"\breplica_groups=("
                     r"mesh\[[^\]]*\](?:,\s*device_ids=\((?:[^()]|\([^()]*\))*\))?\s*\{[^}]*\}"
                     r"|\[[\d,\s]*\]<=\[[\d,\s]*\](?:T\([\d,\s]*\))?"
                     r"|\{(?:\s*\{[\d,\s]*\},?)*\s*\})")
_PAIRS = re.compile(r"\bsource_target_pairs=(\{(?:\s*\{[\d,\s]*\},?)*\s*\})")


def _axes(kind, rest, mesh):
    """(what the text says, the axes of the mesh that fit it or None)."""
    permute = kind == "collective-permute"
    found = (_PAIRS if permute else _GROUPS).search(rest)
    if not found:
        return "", None
    groups = _listed(found[1]) if permute else _grouped(found[1], math.prod(mesh.axis_sizes))
    return found[1], mesh_axes(groups, mesh, permute)


def mesh_axes(groups, mesh, pairs=False):
    """The axes of the mesh along which groups of partitions, lists of their numbers, differ.

    None if the groups are not those that the axes make; `pairs` need not be.
    """
    count = math.prod(mesh.axis_sizes)
    if groups is None or any(not 0 <= number < count for group in groups for number in group):
        return None
    place = [_place(number, mesh.axis_sizes) for number in range(count)]
    used = {dim for group in groups for number in group
            for dim, (a, b) in enumerate(zip(place[group[0]], place[number])) if a != b}
    if not pairs:
        expected = {}
        for number in range(count):
            key = tuple(at for dim, at in enumerate(place[number]) if dim not in used)
            expected.setdefault(key, set()).add(number)
        if sorted(map(sorted, groups)) != sorted(map(sorted, expected.values())):
            return None
    return tuple(name for dim, name in enumerate(mesh.axis_names) if dim in used)


def _place(number, sizes):
    """The coordinates of the `number`-th place, row-major."""
    place = []
    for size in reversed(sizes):
        number, at = divmod(number, size)
        place.append(at)
    return tuple(reversed(place))


def _listed(text):
    """The groups of `{{0,1},{2,3}}`."""
    return [group for group in map(integers, re.findall(r"\{([\d,\s]*)\}", text)) if group]


def _grouped(text, count):
    """The groups that a text represents, lists of numbers, or None; `{}` is one group of all `count`."""
    if text.startswith("mesh"):
        return _mesh_groups(text)
    if text.startswith("["):
        shape, _, order = text.partition("<=")
        numbers = _iota(order)
        size = integers(shape)[-1] if integers(shape) else 0
        return [numbers[i:i + size] for i in range(0, len(numbers), size)] if size and numbers else None
    return _listed(text) or [list(range(count))]


def _iota(text):
    """The numbers that `[4,2]T(1,0)` represents: 0 to 7 in shape (4, 2), transposed, row-major."""
    sizes, _, order = text.partition("T")
    sizes = integers(sizes)
    order = integers(order) or list(range(len(sizes)))
    if sorted(order) != list(range(len(sizes))):
        return None
    strides = [math.prod(sizes[dim + 1:]) for dim in order]
    return [sum(at * stride for at, stride in zip(place, strides))
            for place in itertools.product(*(range(sizes[dim]) for dim in order))]


def _mesh_groups(text):
    """`mesh['x'=4,'y'=2] {'x'}`; also with `device_ids=(...)`, and with a part of an axis, `{'x':(1)2}`."""
    head, _, chosen = text.rpartition("{")
    axes, _, ids = head.partition("]")
    sizes = {name: int(size) for name, size in re.findall(r"['\"]?([^'\"\[,=]+)['\"]?=(\d+)", axes)}
    count = math.prod(sizes.values())
    ids = ids.partition("=(")[2].rstrip(" )")
    if not ids:
        numbers = range(count)
    else:
        numbers = _iota(ids + ")" * ids.count("(")) if "[" in ids else integers(ids)
    parts = []      # (dimension, how far one step goes, how many steps)
    for name, before, size in re.findall(r"['\"]?([^'\"{},:]+)['\"]?(?::\((\d+)\)(\d+))?", chosen):
        if name not in sizes:
            return None
        whole, before = sizes[name], int(before or 1)
        size = int(size or whole)
        parts.append((list(sizes).index(name), whole // (before * size), size))
    if numbers is None or len(numbers) != count or any(step == 0 for _, step, _ in parts):
        return None
    groups = {}
    for number, place in zip(numbers, itertools.product(*map(range, sizes.values()))):
        key = list(place)
        for dim, step, size in parts:
            key[dim] -= place[dim] // step % size * step
        groups.setdefault(tuple(key), []).append(number)
    return list(groups.values())
