"""What one run of a compiled program computes and moves on one device, counted from its optimized HLO.

Loops count with their trip counts, a conditional as the branch with the most products.  A product is 2 for
each element that is multiplied and summed; padding and gaps of a convolution are left out.
"""
from collections import Counter
from dataclasses import dataclass, field

from .. import costs as operation_costs
from ..hlo_text import arrays, through
from .library_calls import call_target, convolution_flops, library_flops

ONE_PASS = " in one pass"      # float32 products without a requested precision: see estimates.rate
_FREE = set("""parameter constant tuple get-tuple-element bitcast after-all partition-id replica-id iota
add-dependency opt-barrier optimization-barrier domain""".split())
_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "c64": "complex64",
           "c128": "complex128", "pred": "bool"}


@dataclass
class Costs:
    """Sums over one run, on one device.

    Attributes:
        products: {dtype: FLOPs of matrix products and convolutions of it}.
        elementwise: operations on elements besides.
        bytes: to and from the chip's main memory.
        unknown_loops: loops whose count is not known, and which count once.
        opaque: calls of libraries that count as nothing, by name.
        sent: as in `estimates.Estimate`.
    """
    products: Counter = field(default_factory=Counter)
    elementwise: int = 0
    bytes: int = 0
    unknown_loops: int = 0
    opaque: Counter = field(default_factory=Counter)
    sent: Counter = field(default_factory=Counter)

    @property
    def flops(self):
        return sum(self.products.values())

    def add(self, other, times=1):
        for counter, more in ((self.products, other.products), (self.opaque, other.opaque),
                              (self.sent, other.sent)):
            for key, count in more.items():
                counter[key] += times * count
        self.elementwise += times * other.elementwise
        self.bytes += times * other.bytes
        self.unknown_loops += other.unknown_loops


def costs(module):
    """The Costs of a Module of hlo_text."""
    return _Counting(module).of(module.entry) if module.entry else Costs()


def by_instruction(module):
    """{name: the Costs of running it once} of a Module's instructions; of loops, calls and fusions, those of
    what is in them.  What is inside of a fusion moves no bytes."""
    counting, found = _Counting(module), {}
    fused = {line.called("calls") for line in module.lines if line.opcode == "fusion"}
    for line in module.lines:
        found[line.name] = Costs()
        counting.line(line, line.computation in fused, found[line.name])
    return found


class _Counting:
    def __init__(self, module):
        self.module = module
        self.found = {}

    def of(self, computation, fused=False):
        """The Costs of a computation; `fused`: its values are not in memory."""
        key = computation, fused
        if key not in self.found:
            total = Costs()
            for line in self.module.computations.get(computation, {}).values():
                self.line(line, fused, total)
            self.found[key] = total
        return self.found[key]

    def line(self, line, fused, total):
        kind, module = line.opcode, self.module
        if kind == "while":
            trips = module.trips(line)
            total.unknown_loops += trips is None
            for name in ("body", "condition"):
                total.add(self.of(line.called(name)), 1 if trips is None else trips)
            return
        if kind == "conditional":
            total.add(max(map(self.of, line.branches), key=lambda b: (b.flops, b.bytes)))
            return
        if kind in ("call", "async-start"):
            total.add(self.of(line.called("to_apply") or line.called("calls"), fused))
            return
        if kind == "fusion":
            inner = self.of(line.called("calls"), fused=True)
            total.add(inner)
        elif kind in ("dot", "convolution"):
            left, right, out = self.operand(line, 0), self.operand(line, 1), arrays(line.shape)[0]
            count = self.dot(line, left, out) if kind == "dot" else convolution_flops(line, left, right, out)
            total.products[self.dtype(line)] += count
        elif kind == "custom-call":
            self.library(line, total)
        else:
            what = operation_costs.counted(kind)
            if what == "result":
                total.elementwise += sum(a.size for a in arrays(line.shape))
            elif what != "nothing":
                total.elementwise += self.operand(line, 0 if what == "first" else -1).size
        if not fused:
            total.bytes += self.moved(line)

    def operand(self, line, i):
        """The (first) Array of an operand."""
        lines = self.module.computations[line.computation]
        return arrays(lines[line.operands[i]].shape)[0]

    def dtype(self, line):
        """Of a product: that of its operands, and whether one pass of float32 will do."""
        dtype = self.operand(line, 0).dtype
        precise = "highest" in (line.attribute("operand_precision") or "")
        return _DTYPES.get(dtype, dtype) + ONE_PASS * (dtype == "f32" and not precise)

    def dot(self, line, left, out):
        summed = [left.dims[dim] for dim in line.numbers("lhs_contracting_dims")]
        return operation_costs.product(out.size, summed, out.dtype)

    def library(self, line, total):
        """What a library computes; what there is no formula for counts as nothing, and is named."""
        target = call_target(line)
        if target in _MARKS:
            return
        count = library_flops(self.module, line)
        if count is None:
            total.opaque[target] += 1
        elif count:
            total.products[self.dtype(line)] += count

    def moved(self, line):
        """The bytes that an instruction reads from and writes to main memory."""
        kind = line.opcode
        if kind in _FREE or kind.endswith(("-done", "-update")) or 'target="AllocateBuffer"' in line.rest or (
                'target="ConcatBitcast"' in line.rest):
            return 0
        lines = self.module.computations[line.computation]
        out = _held(line.shape)
        operands = [_held(lines[name].shape) for name in line.operands if name in lines]
        if kind in ("dynamic-slice", "slice", "gather"):
            return out + min(out, sum(operands[:1]))
        if kind in ("copy-start", "slice-start"):
            target = arrays(line.shape)[1:2]
            return sum(a.padded_bytes for a in target) * (
                (target[0].space == 0) + (self.operand(line, 0).space == 0)) if target else 0
        if kind.endswith("-start"):     # what it gives is behind what it takes
            return 2 * sum(operands)
        if kind == "dynamic-update-slice":
            return 2 * operands[1]
        if kind == "scatter":
            return 2 * operands[-1] + sum(operands[1:-1])
        if kind != "fusion":
            return out + sum(operands)
        return self.fusion_moved(line, lines, out)

    def fusion_moved(self, line, lines, out):
        """A fusion reads of an operand that it only slices the slices, and writes of what it updates the
        update."""
        inner = self.module.computations.get(line.called("calls"), {})
        total, root = out, self.module.root(line.called("calls")) if inner else None
        roots = [inner[name] for name in root.operands] if root and root.opcode == "tuple" else [root]
        updated = set()
        for result in roots:
            result = through(inner, result)
            if result is not None and result.opcode == "dynamic-update-slice":
                target = through(inner, inner[result.operands[0]])
                update = _held(inner[result.operands[1]].shape) if self.in_memory(result) else 0
                total -= _held(result.shape) - update
                updated.add(target.name)
        for parameter in inner.values():
            if parameter.opcode != "parameter":
                continue
            number = int(parameter.operands[0])
            whole = _held(lines[line.operands[number]].shape) if number < len(line.operands) else 0
            if parameter.name in updated:
                continue
            total += min(whole, self.read(parameter)) if whole else 0
        return total

    def read(self, value):
        """The bytes that are read of a value inside of a fusion."""
        total = 0
        for user in self.module.users.get((value.computation, value.name), ()):
            if user.opcode in ("dynamic-slice", "slice", "gather") and user.operands[0] == value.name:
                total += sum(a.padded_bytes for a in arrays(user.shape))
            elif user.opcode in ("bitcast", "reshape", "copy"):
                total += self.read(user)
            elif user.opcode == "fusion":
                number = user.operands.index(value.name)
                nested = self.module.computations.get(user.called("calls"), {})
                parameter = next((p for p in nested.values() if p.opcode == "parameter"
                                  and int(p.operands[0]) == number), None)
                total += self.read(parameter) if parameter else 0
            else:
                return sum(a.padded_bytes for a in arrays(value.shape))
        return total

    def in_memory(self, line):
        return any(a.space == 0 for a in arrays(line.shape))


# What libraries' calls are only marks of.
_MARKS = {"AllocateBuffer", "ConcatBitcast", "AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked",
          "AsyncCollectiveStart", "AsyncCollectiveDone", "Sharding", "SPMDFullToShardShape", "SliceToDynamic",
          "SPMDShardToFullShape", "annotate_device_placement", "MoveToHost", "MoveToDevice", "PadToStatic"}


def _held(shape):
    """The bytes of a shape that are in main memory."""
    return sum(a.padded_bytes for a in arrays(shape) if a.space == 0)
