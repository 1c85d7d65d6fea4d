"""A program as one device has it, before it is compiled: StableHLO with the shardings that Shardy propagates.

Calls and shard_map's bodies are written out; loops and branches hold their bodies' operations.
"""
import dataclasses
import math
import re
from collections import Counter

from ...runtime.mlir import shardy
from ...runtime.mlir.bindings import ir, parse_module
from .. import costs
from ..needed_values import trip_count
from . import estimates, hlo_costs

_DTYPES = {"i1": ("bool", 8), "bf16": ("bfloat16", 16), "f16": ("float16", 16), "f64": ("float64", 64),
           "f32": ("float32" + hlo_costs.ONE_PASS, 32), "complex<f32>": ("complex64", 64),
           "complex<f64>": ("complex128", 128)}


@dataclasses.dataclass(eq=False)
class Value:
    """An array, or the part of it that a device has.

    Attributes:
        shape: on the device.
        axes: for each dimension the mesh axes that split it.
        dtype: its name; float32 as `hlo_costs` has it.
        bytes: that it takes, with the padding of the chip's tiles.
        kind: "argument", "result" or "temporary".
        name, where: the argument or the operation, "train.py:12"; None where they are not known.
        bits: of an element.
    """
    shape: tuple
    axes: tuple
    dtype: str
    bytes: int
    kind: str = "temporary"
    name: str | None = None
    where: str | None = None
    bits: int = 8


@dataclasses.dataclass(eq=False)
class Op:
    """An operation.

    Attributes:
        name: StableHLO's.
        ins, outs: Values.
        flops, dtype, sent: what a device computes for a product, of what, and what it sends for it or for a
            sum, as in `estimates.Estimate`.
        moved: bytes to and from memory of what is sent, and of what a product reads of it.
        bodies: for a loop or branches, (operations, the Values that they begin with, those that they give).
        trips: how often a loop runs its body; None where that is not known.
    """
    name: str
    ins: list
    outs: list
    flops: int = 0
    dtype: str = ""
    sent: Counter = dataclasses.field(default_factory=Counter)
    moved: int = 0
    bodies: list = dataclasses.field(default_factory=list)
    trips: int | None = 1


def local_program(text, mesh, tiles=None):
    """(operations, arguments, results) of a text with locations, on one device of `mesh`, or None for one
    device alone; `tiles` are those of its chip, if it has any."""
    module = shardy.passed(text, shardy.PROPAGATION) if mesh is not None else parse_module(text)
    reader = _Reader(shardy.functions(module), mesh, tiles)
    main = reader.functions["main"]
    block = main.regions[0].blocks[0]
    arguments = []
    for i, (argument, (type_, sharding)) in enumerate(zip(block.arguments, shardy.signature(main)[0])):
        value = reader.value(type_, sharding, argument.location)
        value.kind, value.name = "argument", value.name or f"argument {i}"
        arguments.append(value)
    ops, results = reader.block(block, dict(zip(block.arguments, arguments)))
    if tiles is not None and mesh is not None:
        results = [reader.ordered_whole(ops, value, *types) for value, *types in zip(
            results, shardy.signature(main)[1], shardy.main_signature(text).outputs)]
    for value in results:
        if value.kind == "temporary":
            value.kind = "result"
    return ops, arguments, results


class _Reader:
    def __init__(self, functions, mesh, tiles):
        self.functions, self.tiles = functions, tiles
        self.sizes = dict(zip(mesh.axis_names, mesh.axis_sizes)) if mesh is not None else {}
        self.source = {}        # what a Value is, in another dtype or another order
        self.loops = 0          # that what is read is in

    def parts(self, names):
        """In how many parts mesh axes, or parts of them, split a dimension."""
        return math.prod(self.sizes.get(n, 1) if isinstance(n, str) else n.size for n in names)

    def bytes(self, dtype, bits, shape, whole=None):
        """What an array takes; `whole`: as in `Tiles.bytes`."""
        if self.tiles is not None:
            return self.tiles.bytes(dtype, bits, shape, whole)
        return -(-math.prod(shape) * bits // 8)

    def value(self, type_, sharding, location, ordered_whole=False):
        if not isinstance(type_, ir.RankedTensorType):
            if not ir.RankedTensorType.isinstance(type_):       # a token
                return Value((), (), "token", 0)
            type_ = ir.RankedTensorType(type_)
        axes = tuple(shardy.spec(type_, sharding))
        shape = tuple(-(-n // self.parts(names)) for n, names in zip(type_.shape, axes))
        dtype, bits = _dtype(str(type_.element_type))
        where, name = _located(str(location))
        size = self.bytes(dtype, bits, shape, tuple(type_.shape) if ordered_whole else None)
        return Value(shape, axes, dtype, size, "temporary", name, where, bits)

    def ordered_whole(self, ops, value, found, given):
        """A result as it is given: with its axes in the order of the whole array, where the text does not say
        how it is split."""
        if given[1] is not None:
            return value
        ordered = self.value(*found, "", ordered_whole=True)
        if ordered.bytes == value.bytes:
            return value
        ordered.name, ordered.where = value.name, value.where
        ops.append(Op("transpose", [value], [ordered]))
        return ordered

    def block(self, block, known, gathered=None):
        """(its operations, what it gives); `known` has the Values of MLIR's values outside of it,
        `gathered` what was gathered there, whole: {(Value, mesh axes): Value}."""
        ops, gathered = [], {} if gathered is None else gathered
        for view in block.operations:
            op = view.operation
            ins, name = [known[v] for v in op.operands], op.name.partition(".")[2]
            if name == "return":
                return ops, ins
            if op.name in ("func.call", "sdy.manual_computation"):
                inner = op
                if op.name == "func.call":
                    inner = self.functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
                body = inner.regions[0].blocks[0]
                more, outs = self.block(body, dict(zip(body.arguments, ins)), gathered)
                ops += more
                known.update(zip(op.results, outs))
                continue
            outs = [self.value(r.type, s, op.location)
                    for r, s in zip(op.results, shardy.result_shardings(op))]
            if name == "optimization_barrier" or name in ("reshard", "sharding_constraint") and (
                    ins[0].axes == outs[0].axes):
                outs = ins
            else:
                ops.append(self.op(op, name, ins, outs, known, ops, gathered))
                if name in ("convert", "transpose"):
                    self.source[outs[0]] = self.source.get(ins[0], ins[0])
            known.update(zip(op.results, outs))
        return ops, []

    def op(self, op, name, ins, outs, known, ops, gathered):
        made = Op(name, ins, outs)
        if name == "while":
            body = op.regions[1].blocks[0]
            made.trips = trip_count(op)
            self.loops += 1
            inner, results = self.block(body, dict(zip(body.arguments, outs)))
            made.bodies.append((inner, outs, results))
            self.loops -= 1
        elif name in ("case", "if"):
            for region in op.regions:
                inner, results = self.block(region.blocks[0], dict(known))
                made.bodies.append((inner, [], results))
        elif name == "dot_general":
            self.dot(op, made, ops, gathered)
        elif name == "convolution":
            self.convolution(op, made, ops, gathered)
        elif name in ("reduce", "scatter"):     # axes that split what is summed up, and not the result
            summed = ins[:len(outs)] if name == "reduce" else ins[-len(outs):]
            self.all_reduced(made, dict.fromkeys(
                axis for v in summed for names in v.axes for axis in names
                if not any(axis in kept for kept in outs[0].axes)))
        return made

    def dot(self, op, made, ops, gathered):
        """A device's part: that of its part of the result, and of the sum where mesh axes split the sum."""
        left, right, out = *made.ins, made.outs[0]
        numbers = str(op.attributes["dot_dimension_numbers"])
        summed, batch = [[[int(n) for n in re.findall(r"\d+", found[1])] if found else [] for found in [
            re.search(rf"{side}_{kind}_dimensions = \[([\d, ]*)\]", numbers) for side in ("lhs", "rhs")]]
            for kind in ("contracting", "batching")]
        # the result's dimensions are those of the batch, then the others of the left, then of the right
        place, places = len(batch[0]), []
        for operand, dims, batched in zip((left, right), summed, batch):
            places.append({dim: i for i, dim in enumerate(batched)})
            for dim in range(len(operand.shape)):
                if dim not in dims and dim not in batched:
                    places[-1][dim], place = place, place + 1
        split = self.communicated(made, summed, places, ops, gathered)
        size = math.prod(left.shape[i] * self.parts(left.axes[i]) for i in summed[0])
        made.flops = costs.product(math.prod(out.shape), [size], left.dtype) // self.parts(split)
        made.dtype = left.dtype
        if "HIGHEST" in str(op.attributes["precision_config"] if "precision_config" in op.attributes else ""):
            made.dtype = made.dtype.removesuffix(hlo_costs.ONE_PASS)

    def convolution(self, op, made, ops, gathered):
        """As `dot`."""
        (left, right), out, window = made.ins, made.outs[0], costs.stablehlo_window(str(op))
        places = [{i: window.result.index(letter) for i, letter in enumerate(window.image) if letter != "f"},
                  {window.kernel.index("o"): window.result.index("f")}]
        summed = window.kernel.index("i")
        split = self.communicated(made, [[window.image.index("f")], [summed]], places, ops, gathered)
        whole = list(right.shape)
        whole[summed] *= self.parts(right.axes[summed])
        made.dtype = left.dtype
        made.flops = costs.convolution(window, left.shape, whole, out.shape, left.dtype) // self.parts(split)

    def communicated(self, made, summed, places, ops, gathered):
        """What devices send for a product, into `made`; the axes that split the sum and not the result.

        Args:
            summed: for each operand the dimensions that are summed, in pairs.
            places: for each operand {dimension: that of the result}.
            ops: those before it; what gathers its operands is added.
            gathered: what was gathered before: see `block`.
        """
        left, right, out = *made.ins, made.outs[0]
        kept = {name for names in out.axes for name in names}
        pairs = [(left.axes[i], right.axes[j]) for i, j in zip(*summed)]
        split = dict.fromkeys(name for pair in pairs for name in (*pair[0], *pair[1]) if name not in kept)
        self.all_reduced(made, split)
        # axes that split the sum, and then the result: each device is sent the sum of its part
        scattered = dict.fromkeys(name for a, b in pairs for name in a if name in b and name in kept)
        if scattered:
            made.moved += out.bytes * 2 * self.parts(scattered)
            made.sent["reduce-scatter", "+".join(map(str, scattered))] += out.bytes * (
                self.parts(scattered) - 1)
        for i, place in enumerate(places):      # what splits an operand otherwise is gathered
            operand = made.ins[i]
            missing = dict.fromkeys(
                name for dim, names in enumerate(operand.axes) for name in names if name not in split
                and name not in scattered and (dim not in place or name not in out.axes[place[dim]]))
            # in loops a TPU gathers for each product, elsewhere compilers do once for all
            key = self.source.get(operand, operand), tuple(missing)
            if missing and (key not in gathered or self.tiles is not None and self.loops):
                gathered[key] = self.gather(ops, operand, missing)
            made.ins[i] = gathered.get(key, operand)
        return split

    def gather(self, ops, operand, names):
        """A Value without the mesh axes `names`; the Op that makes it is added to `ops`."""
        shape = tuple(n * self.parts([name for name in axes if name in names])
                      for n, axes in zip(operand.shape, operand.axes))
        axes = tuple(tuple(name for name in axes if name not in names) for axes in operand.axes)
        whole = dataclasses.replace(operand, shape=shape, axes=axes, kind="temporary",
                                    bytes=self.bytes(operand.dtype, operand.bits, shape))
        ops.append(Op("all_gather", [operand], [whole], sent=Counter({
            ("all-gather", "+".join(map(str, names))): operand.bytes * (self.parts(names) - 1)})))
        return whole

    def all_reduced(self, made, names):
        """Sums over mesh axes, of which each device has a part."""
        if names:
            size = sum(out.bytes for out in made.outs)
            made.moved += 2 * size
            made.sent["all-reduce", "+".join(map(str, names))] += int(
                size * estimates.ring_share("all-reduce", self.parts(names)))


def _dtype(text):
    """(name, bits) of an element type."""
    if text in _DTYPES:
        return _DTYPES[text]
    bits = int(re.search(r"\d+", text)[0])
    if text.startswith("f"):
        return f"float{text[1:].lower()}", bits
    return f"{'u' * text.startswith('u')}int{bits}", bits


def _located(text):
    """("train.py:12" or None, name or None) of an MLIR location."""
    name = re.search(r'loc\("((?:[^"\\]|\\.)*)"(?!:\d)', text)
    file = re.search(r'"([^"]*)":(\d+)', text)
    return file and f"{re.split(r'[/]', file[1])[-1]}:{file[2]}", name and name[1]
