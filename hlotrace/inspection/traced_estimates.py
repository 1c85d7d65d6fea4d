"""An Estimate from a program's StableHLO and Shardy's propagation, without compiling.

What a compiler would fuse is guessed: operations on elements are computed where they are read, from the values
behind them, unless these take more memory; products write what follows them element by element.  The compiler's own
copies, padding and choices are not in it.
"""
import math
import re
from collections import Counter
from dataclasses import dataclass, field

from ..runtime.mlir.bindings import ir, parse_module
from . import estimates, hlo_costs, shardy

_DTYPES = {"i1": ("bool", 8), "i2": ("int2", 2), "ui2": ("uint2", 2), "i4": ("int4", 4), "ui4": ("uint4", 4),
           "bf16": ("bfloat16", 16), "f16": ("float16", 16), "f32": ("float32" + hlo_costs.ONE_PASS, 32),
           "f64": ("float64", 64), "complex<f32>": ("complex64", 64), "complex<f64>": ("complex128", 128)}
# computed where it is read
_FUSED = set("""abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare complex concatenate
constant convert cosine count_leading_zeros divide exponential exponential_minus_one floor imag iota is_finite log
log_plus_one logistic maximum minimum multiply negate not or pad popcnt power real reduce_precision remainder reshape
reverse round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign
sine slice sqrt subtract tan tanh transpose xor dynamic_slice partition_id create_token erf""".split())
_MOVES = set("""broadcast_in_dim concatenate constant convert iota pad reshape reverse slice transpose dynamic_slice
bitcast_convert partition_id create_token""".split())
_SAME = {"optimization_barrier"}
_PRODUCTS = {"dot_general", "convolution"}
# what reads its operands element by element, so that they need not be in memory
_READS = _PRODUCTS | {"reduce", "all_reduce"}


@dataclass(eq=False)
class _Value:
    """A value on one device; `axes` are the mesh axes that split each dimension."""
    shape: tuple
    axes: tuple
    dtype: str
    bits: int
    kind: str = "temporary"
    name: str | None = None
    where: str | None = None
    bytes: int = 0


@dataclass(eq=False)
class _Op:
    name: str
    ins: list
    outs: list
    flops: int = 0
    dtype: str = ""
    inner: object = None            # (peak of what is inside, those values)
    once: object = None             # _Counts of one round of what is inside
    trips: int = 1

    @property
    def fused(self):
        return self.name in _FUSED


@dataclass
class _Counts:
    flops: Counter = field(default_factory=Counter)
    elementwise: int = 0
    bytes: int = 0
    sent: Counter = field(default_factory=Counter)

    def add(self, other, times):
        for counter, more in ((self.flops, other.flops), (self.sent, other.sent)):
            for key, count in more.items():
                counter[key] += times * count
        self.elementwise += times * other.elementwise
        self.bytes += times * other.bytes


def traced(text, devices, mesh=None, donated=()):
    """The Estimate of a StableHLO text with locations, for `devices` over `mesh`, or for one device.

    Args:
        text: as `Lowered.as_text(debug_info=True)` gives it.
        devices: those it is for.
        mesh: over which they lie, or None.
        donated: the numbers of arguments whose memory results may take.
    """
    module = shardy.propagate(text) if mesh is not None else parse_module(text)
    reader = _Reader(module, mesh)
    ops, arguments, results = reader.main()
    most, values, counts = _live(ops, arguments, results)
    sizes = Counter(v.bytes for v in results)
    aliases = 0
    for number in donated:
        size = arguments[number].bytes if number < len(arguments) else 0
        if sizes[size] > 0:
            sizes[size] -= 1
            aliases += size
    memory = {"arguments": sum(v.bytes for v in arguments), "results": sum(v.bytes for v in results),
              "aliases": aliases, "temporaries": most}
    at_peak = sorted({*arguments, *values}, key=lambda v: -v.bytes)[:10]
    at_peak = [{"bytes": v.bytes, "type": f"{v.dtype.removesuffix(hlo_costs.ONE_PASS)}{list(v.shape)}",
                "kind": v.kind, "name": v.name, "where": v.where} for v in at_peak if v.bytes]
    total = memory["arguments"] + memory["results"] - aliases + most
    notes = ["of what is sent only that of products is counted"] if mesh is not None else []
    return estimates.assembled(
        estimates.chip_of(devices[0]), devices, mesh, "traced", memory, at_peak, total, dict(counts.flops),
        counts.elementwise, counts.bytes, dict(counts.sent), notes)


class _Reader:
    """The operations of a module as _Ops, calls written out."""

    def __init__(self, module, mesh):
        self.functions = shardy.functions(module)
        self.module, self.mesh = module, mesh
        self.sizes = dict(zip(mesh.axis_names, mesh.axis_sizes)) if mesh is not None else {}

    def main(self):
        op = self.functions["main"]
        arguments, _ = shardy.signature(op)
        block = op.regions[0].blocks[0]
        known, values = {}, []
        for argument, (type_, sharding) in zip(block.arguments, arguments):
            value = self.value(type_, sharding, argument.location)
            value.kind, value.name = "argument", value.name or f"argument {len(values)}"
            values.append(value)
            known[argument] = value
        ops = []
        results = self.block(block, known, ops)
        for value in results:
            if value.kind == "temporary":
                value.kind = "result"
        return ops, values, results

    def value(self, type_, sharding, location=None):
        ranked = ir.RankedTensorType(type_) if isinstance(type_, ir.RankedTensorType) or (
            ir.RankedTensorType.isinstance(type_)) else None
        if ranked is None:
            return _Value((), (), "token", 0)
        axes = tuple(shardy.spec_of(type_, sharding))
        shape = tuple(-(-n // self.parts(names)) for n, names in zip(ranked.shape, axes))
        text = str(ranked.element_type)
        dtype, bits = _DTYPES.get(text) or _other(text)
        where, name = _located(location) if location is not None else (None, None)
        return _Value(shape, axes, dtype, bits, "temporary", name, where, -(-math.prod(shape) * bits // 8))

    def parts(self, names):
        return math.prod(self.size(n) for n in names)

    def size(self, name):
        return self.sizes.get(name, 1) if isinstance(name, str) else name.size

    def block(self, block, known, ops):
        """Append the _Ops of a block; the values that it returns."""
        for view in block.operations:
            op = view.operation
            name = op.name.partition(".")[2]
            if name == "return":
                return [known[v] for v in op.operands]
            ins = [known[v] for v in op.operands]
            if op.name == "func.call":
                callee = self.functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
                inner = callee.regions[0].blocks[0]
                outs = self.block(inner, dict(zip(inner.arguments, ins)), ops)
                known.update(zip(op.results, outs))
                continue
            if op.name == "sdy.manual_computation":
                inner = op.regions[0].blocks[0]
                outs = self.block(inner, dict(zip(inner.arguments, ins)), ops)
                known.update(zip(op.results, outs))
                continue
            shardings = shardy.result_shardings(op)
            outs = [self.value(r.type, s, op.location) for r, s in zip(op.results, shardings)]
            if name in _SAME or name in ("reshard", "sharding_constraint") and ins[0].axes == outs[0].axes:
                known.update(zip(op.results, ins))
                continue
            known.update(zip(op.results, outs))
            made = _Op(name, ins, outs)
            if name == "while":
                self.loop(op, made)
            elif name in ("case", "if"):
                self.branches(op, made, known)
            elif name == "dot_general":
                self.dot(op, made)
            elif name == "convolution":
                kernel = made.ins[1]
                made.flops = 2 * math.prod(made.outs[0].shape) * math.prod(kernel.shape) // max(kernel.shape)
                made.dtype = made.ins[0].dtype
            ops.append(made)
        return []

    def loop(self, op, made):
        body, condition = op.regions[1].blocks[0], op.regions[0].blocks[0]
        known = dict(zip(body.arguments, made.outs))
        ops = []
        results = self.block(body, known, ops)
        made.trips = _trips(condition, body) or 1
        carried = [out for out, result in zip(made.outs, results) if out is not result]
        made.inner = _live(ops, made.outs, results)
        made.once = made.inner[2]
        # what goes through unchanged is what came in
        for out, given in zip(made.outs, made.ins):
            if out not in carried:
                out.bytes = 0
                made.once.bytes += 0
        made.carried = set(carried)

    def branches(self, op, made, known):
        runs = []
        for region in op.regions:
            ops = []
            results = self.block(region.blocks[0], dict(known), ops)
            runs.append(_live(ops, [], results))
        made.inner = max(runs, key=lambda run: run[0])
        made.once = max((run[2] for run in runs), key=lambda c: sum(c.flops.values()))

    def dot(self, op, made):
        numbers = str(op.attributes["dot_dimension_numbers"])
        def dims(side):
            found = re.search(rf"{side}_contracting_dimensions = \[([\d, ]*)\]", numbers)
            return [int(n) for n in re.findall(r"\d+", found[1])] if found else []
        left, right, out = *made.ins, made.outs[0]
        used = {name for names in out.axes for name in names}
        over = {}
        whole = 1
        for i, j in zip(dims("lhs"), dims("rhs")):
            names = [n for n in dict.fromkeys((*left.axes[i], *right.axes[j])) if n not in used]
            over.update(dict.fromkeys(names))
            whole *= left.shape[i] * self.parts(left.axes[i])
        made.flops = 2 * math.prod(out.shape) * whole // self.parts(over)
        made.dtype = left.dtype
        if "HIGHEST" in str(op.attributes["precision_config"] if "precision_config" in op.attributes else ""):
            made.dtype = made.dtype.removesuffix(hlo_costs.ONE_PASS)
        made.sent = Counter()
        if over:
            made.sent["all-reduce", "+".join(map(str, over))] += int(
                out.bytes * estimates.ring_share("all-reduce", self.parts(over)))
        for operand in (left, right):
            names = [n for axes in operand.axes for n in axes if n not in used and n not in over]
            names += [n for k in (dims("lhs") if operand is left else dims("rhs")) for n in operand.axes[k]
                      if n in used and n not in names]
            if names:
                made.sent["all-gather", "+".join(map(str, names))] += operand.bytes * (self.parts(names) - 1)


def _other(text):
    digits = re.search(r"\d+", text)
    if text.startswith("f"):
        return "float" + text[1:].lower(), int(digits[0])
    return ("u" * text.startswith("u") + "int" + (digits[0] if digits else "32")), int(digits[0]) if digits else 32


def _located(location):
    """("train.py:12" or None, name or None) of an MLIR location."""
    text = str(location)
    name = re.search(r'loc\("((?:[^"\\]|\\.)*)"(?!:\d)', text)
    file = re.search(r'"([^"]*)":(\d+)', text)
    return (f"{re.split(r'[/]', file[1])[-1]}:{file[2]}" if file else None), name[1] if name else None


def _trips(condition, body):
    """How often a loop `while i < n: i = i + 1` runs; None where it is another."""
    constants, compare = {}, None
    for view in condition.operations:
        op = view.operation
        if op.name.endswith(".constant"):
            constants[op.results[0]] = re.search(r"dense<(-?\d+)>", str(op.attributes["value"]))
        elif op.name == "stablehlo.compare":
            compare = op
    if compare is None or "LT" not in str(compare.attributes["comparison_direction"]):
        return None
    limit = constants.get(compare.operands[1])
    return int(limit[1]) if limit else None


def _live(ops, arguments, results):
    """(the most bytes of temporaries at one time, these values, _Counts of one run)."""
    users = {}
    for op in ops:
        for v in op.ins:
            users.setdefault(v, []).append(op)
    ends = set(results)
    outside = {*arguments, *results}
    roots, stored = {v: (v,) for v in arguments}, set(arguments)
    carried_on = set()      # products whose result is written by what follows them
    for op in ops:
        if op.name not in _PRODUCTS:
            continue
        value = op.outs[0]
        while value not in ends and len(users.get(value, ())) == 1 and users[value][0].fused and (
                math.prod(users[value][0].outs[0].shape) == math.prod(value.shape)):
            carried_on.add(value)
            value = users[value][0].outs[0]
        carried_on.discard(value)
    counts = _Counts()
    reads = []              # for each op, the stored values that it reads
    for op in ops:
        behind = list(dict.fromkeys(r for v in op.ins for r in roots[v]))
        for out in op.outs:
            after = users.get(out, ())
            if out in carried_on:
                keep = False
                roots[out] = (out, *behind) if op.name in _PRODUCTS else tuple(behind)
                continue
            follows = any(v in carried_on for v in op.ins)
            if op.fused and not follows:
                needed = out in ends or any(u.name not in _READS and not u.fused for u in after)
                shared = len(after) > 1 or any(u.name in _PRODUCTS for u in after)
                keep = needed or shared and bool(behind) and out.bytes <= sum(r.bytes for r in behind)
            else:
                keep = True
            if keep:
                stored.add(out)
            roots[out] = (out,) if keep else tuple(behind)
        writes = [out for out in op.outs if out in stored]
        happens = bool(writes) or not op.fused
        reads.append([r for r in behind if r in stored] if happens else [])
        if happens:
            counts.bytes += sum(out.bytes for out in writes) + sum(min(r.bytes, _part(op, r)) for r in reads[-1])
        if op.fused and op.name not in _MOVES or op.name == "reduce":
            counts.elementwise += math.prod((op.ins if op.name == "reduce" else op.outs)[0].shape)
        if op.flops:
            counts.flops[op.dtype] += op.flops
            counts.add(_Counts(sent=getattr(op, "sent", Counter())), 1)
        if op.once is not None:
            counts.add(op.once, op.trips)
    last = {}
    for i, values in enumerate(reads):
        last.update(dict.fromkeys(values, i))
    alive, size, most, best = {}, 0, 0, []
    for i, op in enumerate(ops):
        dying = [v for v in reads[i] if last[v] == i and v in alive]
        new = [v for v in op.outs if v in stored and v not in outside and v.bytes]
        in_place = op.fused or op.name in ("dynamic_update_slice", "while", "scatter")
        if in_place:        # a result may take the memory of what is read here for the last time
            for v in new:
                same = next((d for d in dying if d.bytes == v.bytes), None)
                if same is not None:
                    dying.remove(same)
                    size -= alive.pop(same).bytes
        for v in new:
            alive[v] = v
            size += v.bytes
        more, within = op.inner[:2] if op.inner else (0, [])
        if size + more > most:
            most, best = size + more, [*alive, *within]
        for v in [*dying, *(v for v in new if v not in last)]:
            if v in alive:
                size -= alive.pop(v).bytes
    return most, best, counts


def _part(op, value):
    """The bytes that an operation reads of a value."""
    if op.name in ("dynamic_slice", "slice", "gather"):
        return sum(out.bytes for out in op.outs)
    if op.name in ("dynamic_update_slice", "while"):
        return 0
    return value.bytes
