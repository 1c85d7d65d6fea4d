"""What a program over a mesh will communicate and why, from Shardy's propagation, before anything is
compiled."""
import dataclasses
import math

import numpy as np

from ..runtime.mlir.bindings import ir, sdy
from ..sharding.spec import PartitionSpec
from . import shardy
from .communication import aligned, axes_text, mesh_axes, totals

_PASSES = (f"{shardy.PROPAGATION},sdy-export-pipeline{{enable-insert-explicit-collectives=true}},"
           "symbol-dce")


@dataclasses.dataclass(frozen=True)
class PlannedCollective:
    """What is communicated for an operation at one time."""
    kind: str               # one of communication.KINDS
    axes: tuple | None      # the mesh axes over which it goes; None if none fit
    bytes: int              # of its result on one device, in one run of it
    times: int | None       # how often one run of the program runs it; None where a loop's count is not known

    def __str__(self):
        over = "?" if self.axes is None else axes_text(self.axes)
        times = {1: "", None: " in a loop"}.get(self.times, f" x {self.times}")
        return f"{self.kind} over {over}: {self.bytes:,}{times}"


@dataclasses.dataclass(frozen=True)
class PlannedOperation:
    """An operation, how its values are split, and what is communicated for it."""
    where: str | None       # "file.py:12"
    operation: str          # the path of named scopes and the operation, "jit(step)/layer/dot_general"
    operands: tuple         # a PartitionSpec each, as they come
    results: tuple          # a PartitionSpec each, as they go
    collectives: tuple      # PlannedCollectives in their order


class ShardingPlan:
    """The operations of a program over a mesh, as PlannedOperations; prints as a table."""

    def __init__(self, rows):
        self.rows = tuple(rows)

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    @property
    def collectives(self):
        """All PlannedCollectives."""
        return [c for row in self.rows for c in row.collectives]

    def __str__(self):
        rows = [("line", "operation", "operands", "results", "communicates")]
        for row in self.rows:
            operands, results = (" ".join(map(str, specs)) for specs in (row.operands, row.results))
            first, *others = map(str, row.collectives or ("",))
            rows += [(row.where or "-", row.operation, operands, results, first),
                     *(("", "", "", "", other) for other in others)]
        found = [(c.kind, c.bytes, c.times) for c in self.collectives]
        return "\n".join([*aligned(rows), totals(found) if found else "no collectives"])

    __repr__ = __str__


_OF_SHARDY = {"sdy.all_gather": "all-gather", "sdy.all_reduce": "all-reduce",
              "sdy.reduce_scatter": "reduce-scatter", "sdy.all_to_all": "all-to-all",
              "sdy.collective_permute": "collective-permute", "sdy.all_slice": None,
              "sdy.sharded_to_unreduced": None, "sdy.replicated_to_unreduced": None}
_OF_PROGRAM = {f"stablehlo.{kind.replace('-', '_')}": kind for kind in (
    "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute",
    "collective-broadcast")}
_REDUCING = ("sdy.all_reduce", "sdy.reduce_scatter")
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
_HOLDERS = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.manual_computation")
_SILENT = ("stablehlo.constant", "sdy.constant", "stablehlo.return", "sdy.return", "func.return")


def sharding_plan(text, mesh, on_host):
    """The ShardingPlan of a StableHLO text.

    Args:
        text: with `sdy.mesh` and `sdy.sharding`, as for `shardy.propagated`.
        mesh: what has `axis_names` and `axis_sizes`; partition i is at its i-th place in row-major order.
        on_host: is it for the CPU?  There XLA sums whole arrays where other devices scatter the sum.
    Raises:
        ValueError: for a text that does not parse, that has no @main, or that Shardy rejects.
    """
    return ShardingPlan(_Reader(shardy.passed(text, _PASSES), mesh, on_host).rows())


class _Row:
    def __init__(self, where, operation, operands, results, reshards=False):
        self.where, self.operation, self.operands, self.results = where, operation, operands, results
        self.collectives = []
        self.reshards = reshards    # does it nothing else?

    def frozen(self):
        return PlannedOperation(self.where, self.operation, tuple(self.operands), tuple(self.results),
                                tuple(self.collectives))


class _Reader:
    def __init__(self, module, mesh, on_host):
        self.module, self.mesh, self.on_host = module, mesh, on_host
        self.sizes = {shardy.symbol(op.operation): dict(_mesh_sizes(op.operation.attributes["mesh"]))
                      for op in module.body.operations if op.operation.name == "sdy.mesh"}
        self.functions = shardy.functions(module)
        self.live = _Live(self.functions)
        self.found = []
        self.scope = ""         # the path of the calls around
        self.same = {}          # value -> the one that was computed first
        self.row_of = {}        # value -> the _Row of the operation that gives it
        self.moved = {}         # result of Shardy's collectives -> (the value before, collectives)

    def rows(self):
        self.block(self.functions["main"].regions[0].blocks[0], 1)
        return [row.frozen() for row in self.found]

    def block(self, block, times):
        known = {}      # what XLA computes once
        for operation in block.operations:
            op = operation.operation
            if not self.live.runs(op) or self.repeats(op, known) or op.name in _SILENT:
                continue
            if op.name in _OF_SHARDY:
                self.reshard(op, times)
            elif op.name == "func.call":
                outside, self.scope = self.scope, self.path(op) + "/"
                self.block(_callee(op, self.functions).regions[0].blocks[0], times)
                self.scope = outside
            else:
                self.operation(op, times)

    def repeats(self, op, known):
        """Does an operation compute what another one has computed, and XLA sees it?"""
        if op.name in (*_HOLDERS, *_REDUCING, "func.call", "stablehlo.custom_call") or any(
                user.name in _REDUCING for user in _users(op)):
            return False
        if op.name in _OF_SHARDY:
            # products bring their operands into place each on its own
            if any(user.name in _PRODUCTS for user in _users(op)):
                return False
        elif len(op.regions) and op.name not in _OF_PROGRAM:
            return False
        inside = [inner.operation for region in op.regions for inner in region.blocks[0].operations]
        key = tuple(self.operands(op)), *((o.name, *o.attributes.items()) for o in (op, *inside))
        before = known.setdefault(key, op)
        if before is not op:
            self.same.update(zip(op.results, before.results))
        return before is not op

    def operands(self, op):
        return [self.same.get(value, value) for value in op.operands]

    def operation(self, op, times):
        moved = [self.moved.get(value, (value, [])) for value in self.operands(op)]
        row = _Row(_where(op.location), self.path(op), [self.spec(source) for source, _ in moved],
                   [self.spec(value) for value in op.results])
        for _, collectives in moved:
            row.collectives += collectives
            collectives.clear()     # once is enough for all that take the value
        if op.name in _OF_PROGRAM:
            row.collectives.append(PlannedCollective(
                _OF_PROGRAM[op.name], self.group_axes(op), sum(map(self.bytes, op.results)), times))
        if row.collectives or op.name not in _HOLDERS and any(
                isinstance(value.type, ir.RankedTensorType) and value.type.rank for value in op.operands):
            self.found.append(row)
            self.row_of.update((value, row) for value in op.results)
        if op.name in _HOLDERS:
            if op.name == "stablehlo.while":
                trips = _trip_count(op)
                times = None if None in (trips, times) else trips * times
            for region in op.regions:
                self.block(region.blocks[0], times)

    def reshard(self, op, times):
        [source], result = self.operands(op), op.results[0]
        collectives = self.collectives(op, times)
        made = self.row_of.get(source)
        # Shardy gives what it inserts for an operand the line that the operand comes from
        serves = op.location == source.location
        returned = all(user.name in _SILENT for user in _users(op))
        if made and (op.name in _REDUCING or made.reshards and made is self.found[-1] or serves and returned):
            made.collectives += collectives
            made.results[0 if made.reshards else source.result_number] = self.spec(result)
            self.row_of[result] = made
            return
        source, before = self.moved.get(source, (source, []))
        collectives = before + collectives
        if serves and not returned:
            self.moved[result] = source, collectives
            return
        row = _Row(_where(op.location), self.path(op), [self.spec(source)], [self.spec(result)], True)
        row.collectives = collectives
        self.found.append(row)
        self.row_of[result] = row

    def collectives(self, op, times):
        kind = _OF_SHARDY[op.name]
        if not kind:
            return []
        source, result = op.operands[0], op.results[0]
        if kind == "reduce-scatter" and self.on_host:
            kind, size = "all-reduce", self.bytes(source)
        else:
            size = self.bytes(result)
        if kind == "all-reduce":
            attribute = op.attributes["reduction_axes" if "reduction_axes" in op.attributes
                                      else "reduce_scatter_axes"]
            groups = self.by_dimension(source, self.axes(attribute))
        elif kind == "collective-permute":
            before, after = self.split(source), self.split(result)
            groups = [{axis for old, new in zip(before, after) for axis in {*old} ^ {*new}} or
                      {axis for old, new in zip(before, after) if old != new for axis in old}]
        elif kind == "all-to-all":
            groups = [self.axes(op.attributes["params"])]
        else:
            attribute = {"all-gather": "gathering_axes", "reduce-scatter": "reduce_scatter_axes"}[kind]
            groups = [self.axes(op.attributes[attribute])]
        return [PlannedCollective(kind, self.ordered(axes), size, times) for axes in groups]

    def by_dimension(self, value, axes):
        """XLA sums over the dimensions one by one."""
        if isinstance(value, ir.BlockArgument):
            return [axes]
        for operand in _owner(value).operands:
            groups = [[a for a in dim if a in axes] for dim in self.split(operand)]
            groups = [g for g in groups if g]
            if {a for g in groups for a in g} == set(axes):
                return groups[::-1]
        return [axes]

    def ordered(self, axes):
        return tuple(name for name in self.mesh.axis_names if name in axes)

    def axes(self, attribute):
        return [name for name in self.mesh.axis_names if f'"{name}"' in str(attribute)]

    def group_axes(self, op):
        permute = "source_target_pairs" in op.attributes
        groups = np.array(op.attributes["source_target_pairs" if permute else "replica_groups"]).tolist()
        return mesh_axes([[n for n in group if n >= 0] for group in groups], self.mesh, permute)

    def path(self, op):
        location = _first(op.location)
        named = isinstance(location, ir.NameLoc)
        return self.scope + (location.name_str if named else op.name.partition(".")[2])

    # --- values ---

    def sharding(self, value):
        op = _owner(value)
        if isinstance(value, ir.OpResult):
            return shardy.result_shardings(op)[value.result_number]
        number = value.arg_number
        if op.name == "func.func":
            return shardy.signature(op)[0][number][1]
        if op.name == "sdy.manual_computation":
            return list(sdy.TensorShardingPerValueAttr(op.attributes["in_shardings"]).shardings)[number]
        return shardy.result_shardings(op)[number] if op.name == "stablehlo.while" else None

    def split(self, value):
        """The mesh axes that split each dimension, without those that are manual around it."""
        manual = self.manual(value)
        return [[a for a in dim if a not in manual]
                for dim in shardy.spec(value.type, self.sharding(value))]

    def manual(self, value):
        op = _owner(value) if isinstance(value, ir.BlockArgument) else _parent(_owner(value))
        found = set()
        while op.name != "func.func":
            if op.name == "sdy.manual_computation":
                found |= set(shardy.manual_axes(op))
            op = _parent(op)
        return found

    def spec(self, value):
        return PartitionSpec(*(_entry(dim) for dim in self.split(value)))

    def bytes(self, value):
        if not isinstance(value.type, ir.RankedTensorType):
            return 0
        sharding = self.sharding(value)
        sizes = {} if sharding is None else self.mesh_sizes(sharding)
        shape = [-(-size // math.prod(sizes[a] if isinstance(a, str) else a.size for a in axes))
                 for size, axes in zip(value.type.shape, self.split(value))]
        return -(-_bits(value.type.element_type) * math.prod(shape) // 8)

    def mesh_sizes(self, sharding):
        mesh = sdy.TensorShardingAttr(sharding).mesh_or_ref
        if isinstance(mesh, ir.FlatSymbolRefAttr):
            return self.sizes[mesh.value]
        return dict(_mesh_sizes(mesh))


def _mesh_sizes(attribute):
    return [(axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, sdy.MeshAttr(attribute).axes)]


def _bits(type_):
    if isinstance(type_, ir.ComplexType):
        return 2 * _bits(type_.element_type)
    return 8 if str(type_) == "i1" else type_.width


def _entry(axes):
    names = tuple(a if isinstance(a, str) else repr(a).replace("'", "") for a in axes)
    return names[0] if len(names) == 1 else names or None


class _Live:
    """Which values of a program are needed."""

    def __init__(self, functions):
        self.functions = functions
        self.values, self.running, self.waiting = set(), set(), []
        block = functions["main"].regions[0].blocks[0]
        self.effects(block)
        self.waiting += _last(block).operands
        while self.waiting:
            value = self.waiting.pop()
            if value not in self.values:
                self.values.add(value)
                if isinstance(value, ir.BlockArgument):
                    self.argument(_owner(value), value.arg_number)
                else:
                    self.result(_owner(value), value.result_number)

    def runs(self, op):
        return op in self.running or any(value in self.values for value in op.results)

    def effects(self, block):
        for op in block.operations:
            op = op.operation
            if "has_side_effect" in op.attributes and "true" in str(op.attributes["has_side_effect"]):
                while op.name != "func.func":
                    self.run(op)
                    op = _parent(op)
            elif op.name in _HOLDERS:
                for region in op.regions:
                    self.effects(region.blocks[0])

    def run(self, op):
        """`op` runs: what it needs whichever of its results are needed."""
        if op in self.running:
            return
        self.running.add(op)
        if op.name not in _HOLDERS:
            self.waiting += op.operands
        elif op.name == "stablehlo.while":
            self.waiting += _last(op.regions[0].blocks[0]).operands
        elif op.name != "sdy.manual_computation":
            self.waiting.append(op.operands[0])

    def result(self, op, number):
        self.run(op)
        if op.name == "stablehlo.while":
            self.argument(op, number)
        elif op.name in _HOLDERS:
            self.waiting += [_last(region.blocks[0]).operands[number] for region in op.regions]
        elif op.name == "func.call":
            self.waiting.append(_last(_callee(op, self.functions).regions[0].blocks[0]).operands[number])

    def argument(self, op, number):
        if op.name in _HOLDERS:
            self.waiting.append(op.operands[number])
        if op.name == "stablehlo.while":
            self.values.add(op.results[number])
            self.waiting.append(_last(op.regions[1].blocks[0]).operands[number])


def _callee(op, functions):
    return functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]


def _operation(op):
    return getattr(op, "operation", op)


def _users(op):
    return [_operation(use.owner) for result in op.results for use in result.uses]


def _parent(op):
    return _operation(op.parent)


def _owner(value):
    """The operation that gives a value, or in whose region it is an argument."""
    owner = value.owner
    return _operation(owner.owner if isinstance(owner, ir.Block) else owner)


def _last(block):
    return block.operations[len(block.operations) - 1].operation


def _trip_count(op):
    """How often a loop runs that counts up to a constant."""
    cond = _owner(_last(op.regions[0].blocks[0]).operands[0])
    if cond.name != "stablehlo.compare" or "LT" not in str(
            cond.attributes["comparison_direction"]):
        return None
    counter, limit = cond.operands
    if not isinstance(counter, ir.BlockArgument):
        return None
    number = counter.arg_number
    body = op.regions[1].blocks[0]
    step = _owner(_last(body).operands[number])
    if step.name != "stablehlo.add":
        return None
    by = [_constant(value) for value in step.operands if value != body.arguments[number]]
    first, last = _constant(op.operands[number]), _constant(limit)
    if None in (first, last) or len(by) != 1 or not by[0] or by[0] < 0:
        return None
    return max(0, -(-(last - first) // by[0]))


def _constant(value):
    """The number that a value is known to be, or None."""
    op = _owner(value)
    if op.name not in ("stablehlo.constant", "sdy.constant"):
        return None
    return int(np.array(op.attributes["value"]).flat[0])


def _first(location):
    """The location of what an operation was made for, where it has several."""
    return location.locations[0] if isinstance(location, ir.FusedLoc) else location


def _where(location):
    location = _first(location)
    while isinstance(location, ir.NameLoc):
        location = _first(location.child_loc)
    if isinstance(location, ir.FileLineColLoc) and location.filename != "-":
        return f"{location.filename.rpartition('/')[2]}:{location.start_line}"
    return None
