"""An Estimate from a program's StableHLO and Shardy's propagation, without compiling.

What a compiler would fuse is guessed: operations on elements are computed where they are read, from the
values behind them, unless these take more memory than the result; a product writes what follows it element
by element, unless devices sum it up first; what frees memory is done as soon as it can be.  The compiler's
own copies and choices are not in it.
"""
import math
from collections import Counter
from dataclasses import dataclass

from .. import costs
from . import estimates, hlo_costs, tpu_memory
from .local_program import local_program

# computed where they are read
_FUSED = set("""
    abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare complex concatenate
    constant convert cosine count_leading_zeros create_token divide dynamic_slice erf exponential
    exponential_minus_one floor imag iota is_finite log log_plus_one logistic maximum minimum multiply
    negate not or pad partition_id popcnt power real reduce_precision remainder reshape reverse
    round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic
    shift_right_logical sign sine slice sqrt subtract tan tanh transpose xor
""".split())
_PRODUCTS = {"dot_general", "convolution"}
# what reads its operands element by element, so that they need not be in memory
_READERS = _PRODUCTS | {"reduce", "all_reduce", "gather"}
_SLICES = {"dynamic_slice", "slice", "gather"}
_WRITTEN = {"scatter", "dynamic_update_slice"}      # what they write has the memory of their first operand
_IN_PLACE = _FUSED | {"dynamic_update_slice", "while", "scatter", "sort"}


@dataclass
class _Run:
    """What one run of a body takes: the most bytes of temporaries at one time, these, and Costs."""
    most: int
    values: list
    counts: hlo_costs.Costs


def traced(text, devices, mesh=None, donated=()):
    """The Estimate of a StableHLO text with locations.

    Args:
        text: as `Lowered.as_text(debug_info=True)` gives it.
        devices: those it is for.
        mesh: the mesh that they are over, or None.
        donated: the numbers of arguments whose memory results may take.
    """
    platform, chip = devices[0].platform, estimates.chip_of(devices[0])
    tiles = tpu_memory.Tiles(devices[0]) if platform == "tpu" else None
    ops, arguments, results = local_program(text, mesh, tiles)
    # XLA:GPU's kernels of products write what is as wide as the product; what is wider is computed later
    run = _Body(ops, arguments, results, platform not in ("gpu", "cuda"), chip.vmem if chip else 0).run()
    memory = {"arguments": sum(v.bytes for v in arguments), "results": sum(v.bytes for v in results),
              "aliases": _aliases([arguments[i].bytes for i in donated], results),
              "temporaries": run.most + int(run.most * tpu_memory.GAPS if tiles else 0)}
    total = memory["arguments"] + memory["results"] - memory["aliases"] + run.most
    beside = () if memory["aliases"] else results
    values = sorted({*arguments, *beside, *run.values}, key=lambda v: -v.bytes)
    at_peak = [{"bytes": v.bytes, "type": f"{v.dtype.removesuffix(hlo_costs.ONE_PASS)}{list(v.shape)}",
                "kind": v.kind, "name": v.name, "where": v.where} for v in values[:10] if v.bytes]
    notes = ["of what is sent only that of products and sums is counted"] if mesh is not None else []
    if run.counts.unknown_loops:
        notes.append(estimates.UNKNOWN_LOOPS)
    return estimates.assembled(
        devices, mesh, "traced", memory, at_peak, total, run.counts.products, run.counts.elementwise,
        run.counts.bytes, run.counts.sent, notes)


def _aliases(donated, results):
    """The bytes of results that take the memory of donated arguments, of the same size."""
    free, total = Counter(donated), 0
    for value in results:
        if free[value.bytes] > 0:
            free[value.bytes] -= 1
            total += value.bytes
    return total


class _Body:
    """Operations, what they begin with and what they give.

    Attributes:
        widens: do products write what follows them where it takes more memory than they?
        vmem: bytes of memory beside the cores that the compiler keeps values in.
        last: for each Value in memory, the last operation that reads it.
        near: the Values that are beside the cores, and not in memory.
        users: the operations that read a Value.
        behind: for each Value, those in memory from which it is computed: itself, if it is in memory.
        stored: the Values that are in memory.
        reads: for each operation, the Values in memory that it reads; none for one that is computed where it
            is read.
        parts: for each Value, what computing it reads: {(Value in memory, the slice of it or None): bytes}.
    """

    def __init__(self, ops, arguments, results, widens, vmem, loop=False):
        self.widens, self.vmem = widens, vmem
        self.readers = _READERS if widens else _READERS - _PRODUCTS
        made = {v for op in ops for v in op.outs}
        # branches take values from outside without being given them
        arguments = list(dict.fromkeys([*arguments, *(v for op in ops for v in op.ins if v not in made)]))
        self.ops, self.ends, self.outside = ops, set(results), {*arguments, *results}
        self.users = {}
        for op in ops:
            for v in op.ins:
                self.users.setdefault(v, []).append(op)
        self.constants = set()      # Values that are made of none
        for op in ops:
            if op.name in _FUSED and self.constants.issuperset(op.ins):
                self.constants.update(op.outs)
        self.behind, self.stored = {v: (v,) for v in arguments}, set(arguments)
        self.parts = {v: {(v, None): v.bytes} for v in arguments}
        self.reads = []
        followed = self.followed()
        for op in ops:
            behind = list(dict.fromkeys(r for v in op.ins for r in self.behind[v]))
            for out in op.outs:
                if out not in followed and self.kept(op, out, behind, followed):
                    self.stored.add(out)
                    self.behind[out] = (out,)
                    self.parts[out] = {(out, None): out.bytes}
                else:
                    self.behind[out] = tuple(behind)
                    self.parts[out] = self.parts_read(op)
            computed = op.name not in _FUSED or not self.stored.isdisjoint(op.outs)
            self.reads.append(behind if computed else [])
        self.ops, self.reads = self.scheduled()
        self.last = {v: i for i, reads in enumerate(self.reads) for v in reads}
        updated = {v for op in ops if op.name == "dynamic_update_slice" for v in op.outs}
        self.carried = {v: i for pair in zip(arguments, results) if loop and pair[0] is not pair[1]
                        and pair[1] not in updated for i, v in enumerate(pair)}
        self.near = self.beside_the_cores() if vmem else set()

    def parts_read(self, op):
        """What an operation reads: as in `parts`."""
        ins = op.ins[1:] if op.name == "dynamic_update_slice" else op.ins
        found = {key: size for v in ins for key, size in self.parts[v].items()}
        if op.name in _SLICES:
            return {(value, piece or op.outs[0]): min(size, op.outs[0].bytes)
                    for (value, piece), size in found.items()}
        return {} if op.name == "while" else found

    def scheduled(self):
        """The operations and what they read: those that free more than they take as soon as they can."""
        slots, made, readers = [], {}, {}
        for i, reads in enumerate(self.reads):
            for v in reads:
                readers.setdefault(v, []).append(i)
        for i, (op, reads) in enumerate(zip(self.ops, self.reads)):
            freed = [v for v in reads if readers[v][-1] == i and v not in self.outside]
            taken = sum(v.bytes for v in op.outs if v in self.stored)
            slot = i
            if reads and not op.bodies and op.name not in _IN_PLACE and sum(v.bytes for v in freed) > taken:
                slot = max([made.get(v, 0) for v in reads] +
                           [slots[j] for v in freed for j in readers[v] if j < i])
            slots.append(slot)
            made.update(dict.fromkeys(op.outs, slot))
        order = sorted(range(len(slots)), key=lambda i: (slots[i], i))
        return [self.ops[i] for i in order], [self.reads[i] for i in order]

    def beside_the_cores(self):
        made = {v: i for i, op in enumerate(self.ops) for v in op.outs}
        spans = {}
        for v, first in [*((v, 0) for v, given in self.carried.items() if not given), *made.items()]:
            if v in self.stored and (v not in self.outside or v in self.carried) and v.bytes:
                last = len(self.ops) if self.carried.get(v) else self.last.get(v, first)
                handed_on = last < len(self.ops) and self.ops[last].name in _IN_PLACE and last > first
                spans[v] = first, last - handed_on
        loops = [i for i, op in enumerate(self.ops) if op.bodies]
        return tpu_memory.in_vmem(spans, loops, self.vmem)

    def followed(self):
        """The Values in whose place what follows is written, by their only reader: products, and what is made
        of them element by element; what is scattered into zeros, then added to something."""
        found = set()
        for op in self.ops:
            summed = any(kind != "all-gather" for kind, _ in op.sent)     # over devices, before what follows
            value = op.outs[0] if op.name in _PRODUCTS and not summed else None
            while value is not None and (reader := self.only_reader(value)) and (
                    self.widens or reader.outs[0].bytes <= op.outs[0].bytes):
                found.add(value)
                value = reader.outs[0]
            if op.name == "scatter" and op.ins[0] in self.constants:
                reader = self.only_reader(op.outs[0])
                found.update(op.outs if reader and reader.name == "add" else ())
        return found

    def only_reader(self, value):
        """What alone reads a value, element by element; None where there is no such operation."""
        users = self.users.get(value, ())
        if value in self.ends or len(users) != 1 or users[0].name not in _FUSED:
            return None
        return users[0] if math.prod(users[0].outs[0].shape) == math.prod(value.shape) else None

    def kept(self, op, out, behind, followed):
        """Is a result in memory?"""
        if op.name not in _FUSED or not followed.isdisjoint(op.ins):
            return True
        users = self.users.get(out, ())
        if out in self.constants and users and all(u.name in _WRITTEN for u in users):
            return False
        if out in self.ends or any(u.name not in self.readers and u.name not in _FUSED for u in users):
            return True
        shared = len(users) > 1 or any(u.name in _PRODUCTS for u in users)
        return shared and 2 * out.bytes <= sum(r.bytes for r in behind)

    def run(self):
        """The _Run."""
        inner = {op: [_Body(*body, self.widens, self.vmem, op.name == "while").run() for body in op.bodies]
                 for op in self.ops if op.bodies}
        for op in inner:
            if op.name == "while":      # what goes through a loop unchanged stays where it was
                for out, result in zip(op.outs, op.bodies[0][2]):
                    out.bytes = 0 if out is result else out.bytes
        return _Run(*self.peak(inner), self.counts(inner))

    def counts(self, inner):
        counts, read = hlo_costs.Costs(), set()
        for op, reads in zip(self.ops, self.reads):
            # each is written once, and read once by all that is no product; on TPUs, by products too
            counts.bytes += sum(_written(op, out) for out in op.outs if out in self.stored - self.near)
            parts, apart = self.parts_read(op) if reads else {}, op.name in _PRODUCTS and not self.widens
            counts.bytes += sum(size for (value, piece), size in parts.items() if value not in self.near
                                and (apart or read.isdisjoint({(value, piece), (value, None)})))
            read.update(() if apart else parts)
            counts.bytes += op.moved if op.moved > self.vmem else 0        # less is beside a TPU's cores
            sizes = [[math.prod(v.shape) for v in values] for values in (op.outs, op.ins)]
            counts.elementwise += costs.elementwise(op.name, sum(sizes[0]), sizes[1])
            if op.flops:
                counts.products[op.dtype] += op.flops
            counts.sent.update(op.sent)
            if op in inner:
                most = max(inner[op], key=lambda run: run.counts.flops)
                counts.unknown_loops += op.trips is None
                counts.add(most.counts, op.trips or 1)
        return counts

    def peak(self, inner):
        """(the most bytes of temporaries at one time, these)."""
        last, alive, most, best = self.last, {}, 0, []
        # XLA:GPU's kernels seldom write where they read
        in_place = _IN_PLACE if self.widens else _IN_PLACE - _FUSED
        for i, op in enumerate(self.ops):
            dying = [v for v in self.reads[i] if last[v] == i and v in alive]
            new = [v for v in op.outs
                   if v in self.stored and v not in self.outside and v not in self.near and v.bytes]
            if op.name in in_place:         # a result takes the memory of what is read for the last time
                for v in new:
                    same = next((d for d in dying if d.bytes == v.bytes), None)
                    if same is not None:
                        dying.remove(same)
                        del alive[same]
            alive.update(dict.fromkeys(new))
            within = max(inner.get(op, ()), key=lambda run: run.most, default=_Run(0, [], hlo_costs.Costs()))
            size = sum(v.bytes for v in alive) + within.most
            if size > most:
                most, best = size, [*alive, *within.values]
            for v in [*dying, *(v for v in new if v not in last)]:
                alive.pop(v, None)
        return most, best


def _written(op, out):
    """The bytes of a value in memory that an operation writes."""
    if op.name == "dynamic_update_slice":
        return op.ins[1].bytes
    return 0 if op.name == "while" else out.bytes
