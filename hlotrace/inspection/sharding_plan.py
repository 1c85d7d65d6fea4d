"""What a program over a mesh will communicate and why, by Shardy's propagation, without compiling."""
import dataclasses
import functools
import math
from types import SimpleNamespace

import numpy as np

from ..runtime import binding
from ..runtime.mlir import shardy
from ..runtime.mlir.bindings import ir, sdy, stablehlo
from ..sharding.spec import PartitionSpec
from .communication import aligned, axes_text, mesh_axes, totals
from .needed_values import (
    HOLDERS, Needed, body, callee, has_effect, operation, owner, returned, trip_count, users)
from .partitioner_exchanges import Applied, Divided, exchanges, gathered
from .partitioner_reshards import reshard, tiling


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
    exact: bool = True      # or may XLA do otherwise?


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
            first, *others = [f"{'' if row.exact else '~ '}{one}".strip() for one in row.collectives or ("",)]
            rows += [(row.where or "-", row.operation, operands, results, first),
                     *(("", "", "", "", other) for other in others)]
        found = [(c.kind, c.bytes, c.times) for c in self.collectives]
        doubt = [] if all(row.exact for row in self.rows) else ["~: XLA may exchange something else here"]
        return "\n".join([*aligned(rows), totals(found) if found else "no collectives", *doubt])

    __repr__ = __str__


_OF_SHARDY = {f"sdy.{name}" for name in (
    "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute", "all_slice",
    "sharded_to_unreduced", "replicated_to_unreduced")}
_OF_PROGRAM = {f"stablehlo.{kind.replace('-', '_')}": kind for kind in (
    "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")}
_REDUCING = {"sdy.all_reduce": "reduction_axes", "sdy.reduce_scatter": "reduce_scatter_axes"}
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
_SILENT = ("stablehlo.constant", "sdy.constant", "stablehlo.return", "sdy.return", "func.return")


def sharding_plan(text, mesh, on_host):
    """The ShardingPlan of a StableHLO text.

    Args:
        text: with `sdy.mesh` and `sdy.sharding`, as for `propagated_text.propagated`.
        mesh: what has `axis_names` and `axis_sizes`; partition i is at its i-th place in row-major order.
        on_host: is it for the CPU?  There XLA sums whole arrays where other devices scatter the sum, and
            sends bfloat16 as float32, floats of 8 bits as float16.
    Raises:
        ValueError: for a text that does not parse, that has no @main, or that Shardy rejects.
    """
    return ShardingPlan(_Reader(shardy.passed(text, shardy.COLLECTIVES, _mark_alone), mesh, on_host).rows())


def _mark_alone(module):
    """Operations on one device, such as callbacks, get a mark in place of a sharding over another mesh, which
    jaxlib 0.10 cannot bring together with the program's."""
    meshes = _meshes(module)
    for op, _ in shardy.walk(module.operation):
        if "sdy.sharding" in op.attributes and not any(
                shardy.mesh_sizes(sharding, meshes) for sharding in shardy.result_shardings(op)):
            del op.attributes["sdy.sharding"]
            with op.context:
                op.attributes["hlotrace.alone"] = ir.UnitAttr.get()


def _meshes(module):
    return {shardy.symbol(op.operation): op.operation.attributes["mesh"] for op in module.body.operations
            if op.operation.name == "sdy.mesh"}


class _Row:
    def __init__(self, op, scope, operands, results, reshards=False):
        self.where, self.operation = _where(op.location), scope + _path(op)
        self.operands, self.results, self.collectives = operands, results, []
        self.reshards = reshards    # does it nothing else?
        self.exact = True
        self.whole = set()          # mesh axes along which XLA has no sum or parts to exchange any more

    def frozen(self):
        return PlannedOperation(self.where, self.operation, tuple(self.operands), tuple(self.results),
                                tuple(self.collectives), self.exact)


class _Reader:
    """Walks through a program with Shardy's collectives, and writes the rows."""

    def __init__(self, module, mesh, on_host):
        self.module, self.mesh, self.on_host = module, mesh, on_host
        self.axis_sizes = dict(zip(mesh.axis_names, mesh.axis_sizes))
        self.meshes = _meshes(module)
        self.functions = shardy.functions(module)
        self.needed = Needed(self.functions)
        # each value is looked at by what gives it and by all that take it
        for look in (self.sharding, self.split, self.divided):
            setattr(self, look.__name__, functools.cache(look))
        self.found = []
        self.scope = ""         # the path of the calls around
        self.runs = [1]         # how often the blocks run that hold one another, None if not known
        self.level = {}         # value -> in which of these it is computed, as XLA takes it out of loops
        self.same = {}          # value -> the one that was computed first
        self.row_of = {}        # value -> the _Row of the operation that gives it
        self.moved = {}         # result of Shardy's collectives -> (the value before, collectives)
        self.brought = {}       # what has been gathered of values -> the axes that products sum over then
        self.summed = {}        # value -> (the row, its all-reduces) that make it of terms

    def rows(self):
        self.block(body(self.functions["main"]))
        return [row.frozen() for row in self.found]

    def block(self, block):
        known = {}      # what XLA computes once
        for op in map(operation, block.operations):
            if not self.needed.runs(op) or op.name in _SILENT or self.repeats(op, known):
                continue
            if op.name in _OF_SHARDY:
                self.reshard(op)
            elif op.name == "func.call":
                self.call(op, body(callee(op, self.functions)))
            else:
                self.compute(op)

    def repeats(self, op, known):
        """Does an operation compute what another one has computed, and XLA sees it?"""
        takers = [user.name for user in users(op)]
        if op.name in (*HOLDERS, *_REDUCING, "func.call", "stablehlo.custom_call") or not _REDUCING.keys(
                ).isdisjoint(takers):
            return False
        # products bring their operands into place each on its own
        if op.name in _OF_SHARDY and not {*_PRODUCTS}.isdisjoint(takers) or len(
                op.regions) and op.name not in _OF_PROGRAM:
            return False
        inside = [operation(inner) for region in op.regions for inner in region.blocks[0].operations]
        key = tuple(self.operands(op)), *((o.name, *o.attributes.items()) for o in (op, *inside))
        before = known.setdefault(key, op)
        if before is not op:
            self.same.update(zip(op.results, before.results))
        return before is not op

    def operands(self, op):
        return [self.same.get(value, value) for value in op.operands]

    def call(self, op, block):
        outside, self.scope = self.scope, f"{self.scope}{_path(op)}/"
        for inner, outer in zip(block.arguments, op.operands):
            self.level[inner] = self.level_of([outer])
        self.block(block)
        for inner, outer in zip(returned(block), op.results):
            self.level[outer] = self.level_of([inner])
        self.scope = outside

    def hold(self, op):
        """Walk through the regions of an operation."""
        self.level.update((value, len(self.runs) - 1) for value in op.results)
        changing = set()
        if op.name == "stablehlo.while":
            trips, step = trip_count(op), body(op, 1)
            self.runs.append(None if None in (trips, self.runs[-1]) else trips * self.runs[-1])
            changing = {i for i, (old, new) in enumerate(zip(step.arguments, returned(step))) if old != new}
        for block in [region.blocks[0] for region in op.regions]:
            for i, (inner, outer) in enumerate(zip(block.arguments, op.operands)):
                self.level[inner] = len(self.runs) - 1 if i in changing else self.level_of([outer])
            self.block(block)
        if op.name == "stablehlo.while":
            self.runs.pop()

    def level_of(self, values):
        return max((self.level.get(value, 0) for value in values), default=0)

    # --- rows ---

    def compute(self, op):
        operands = self.operands(op)
        moved = [self.moved.get(value, (value, [])) for value in operands]
        row = _Row(op, self.scope, [self.spec(source) for source, _ in moved],
                   [self.spec(value) for value in op.results])
        level = len(self.runs) - 1 if has_effect(op) else self.level_of(operands)
        self.level.update((value, level) for value in op.results)
        if op.name in _OF_PROGRAM:
            row.collectives = [PlannedCollective(_OF_PROGRAM[op.name], self.group_axes(op),
                                                 sum(self.bytes(v) for v in op.results), self.runs[level])]
        elif op.name not in HOLDERS:
            row.collectives = self.not_as_shardy(op, row, moved)
        row.exact = row.exact and not self.is_doubtful(op, operands, moved)
        for _, collectives in moved:
            row.collectives += collectives
            collectives.clear()     # once is enough for all that take the value
        if not self.on_host:
            self.join_sums(op, row, operands)
        if op.name not in (*HOLDERS, *_OF_PROGRAM):
            row.collectives += self.left_to_xla(op, row, operands)
        if row.collectives or op.name not in HOLDERS and any(
                isinstance(value.type, ir.RankedTensorType) and value.type.rank for value in operands):
            self.found.append(row)
            self.row_of.update((value, row) for value in op.results)
        if op.name in HOLDERS:
            self.hold(op)

    def is_doubtful(self, op, operands, moved):
        """Is what XLA exchanges for an operation not known, and something moves or is split there?"""
        split = [self.split(value) for value in (*[source for source, _ in moved], *op.results)]
        if any(not isinstance(axis, str) for dims in split for axes in dims for axis in axes):
            return True     # parts of a mesh axis
        if op.name in ("stablehlo.gather", "stablehlo.scatter"):
            of_operand, of_indices = [{a for axes in dims for a in axes} for dims in split[:2]]
            return bool(of_operand & of_indices)
        if op.name == "stablehlo.reshape":      # Shardy of jaxlib 0.12 takes dimensions apart, XLA does not
            return any(found and owner(source).name == op.name and owner(source).location == op.location
                       for source, found in moved)
        if op.name == "stablehlo.select_and_scatter" and any(found for _, found in moved):
            return True
        if op.name == "stablehlo.dot_general":      # what comes to be split otherwise is its result
            takers = users(op)
            while len(takers) == 1 and takers[0].name in _REDUCING:
                takers = users(takers[0])
            if len(takers) == 1 and _is_move(takers[0]) and takers[0].name != "sdy.all_slice":
                return True
        return len(operands) > 1 and any(c.kind == "collective-permute" for _, found in moved for c in found)

    def join_sums(self, op, row, operands):
        """Of a sum of two sums over the same mesh axes that nothing else takes, XLA first adds the terms."""
        if op.name == "stablehlo.all_reduce":
            self.summed[op.results[0]] = row, row.collectives
        known = [self.summed.get(value) for value in operands]
        if op.name == "stablehlo.reshape" and known[0] and len([*operands[0].uses]) == 1:
            self.summed[op.results[0]] = known[0]
        if op.name == "stablehlo.add" and None not in known and operands[0] != operands[1]:
            (_, kept), (later, same) = known
            if kept == same and all(len([*value.uses]) == 1 for value in operands):
                later.collectives = [c for c in later.collectives if not any(c is d for d in same)]
                self.summed[op.results[0]] = known[0]

    def not_as_shardy(self, op, row, moved):
        """The PlannedCollectives of XLA in place of those of Shardy, which are dropped."""
        before = [self.divided(source) for source, _ in moved]
        if op.name == "stablehlo.dynamic_slice":
            sizes = list(ir.DenseI64ArrayAttr(op.attributes["slice_sizes"]))
            dims, contracting = [[dim for dim, size in enumerate(sizes) if size < before[0].sizes[dim]]], [()]
        elif op.name == "stablehlo.dot_general":
            numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
            contracting = [[*numbers.lhs_contracting_dimensions], [*numbers.rhs_contracting_dimensions]]
            dims = [[dim for dim, its in zip(contracting[side], contracting[1 - side])
                     if not before[1 - side].axes[its]] for side in (0, 1)]
            if self.sums_rather(op, before, dims):
                dims = [[], []]
        else:
            return []
        dims = [[dim for dim in chosen if value.axes[dim]] for value, chosen in zip(before, dims)]
        row.whole = {axis for value, chosen in zip(before, dims) for dim in chosen
                     for axis in value.axes[dim]}
        summed = self.summed_whole(op, before, contracting)
        row.whole |= {axis for _, axes, _ in summed for axis in axes}
        for _, collectives in moved if row.whole else ():
            collectives[:] = [c for c in collectives if row.whole.isdisjoint(c.axes)]
        found = self.planned(summed, op.operands)
        for (source, collectives), value, operand, chosen, summed in zip(
                moved, before, op.operands, dims, contracting):
            value = value.where(chosen, self.divided(operand)) if chosen else value
            own = self.planned(gathered(value, chosen), [source])
            if self.is_brought(row, source, operand, chosen, summed, own + collectives):
                collectives.clear()
            else:
                found += own
        return found

    def summed_whole(self, op, before, contracting):
        """The sum of a product whose operands are divided alike where they are contracted, and that Shardy
        divides along these axes in another way: XLA cuts it after."""
        if op.name != "stablehlo.dot_general":
            return []
        result, kept = self.divided(op.results[0]), [self.divided(value) for value in op.operands]
        axes = {axis for i, j in zip(*contracting) if before[0].axes[i] == before[1].axes[j] and not (
            kept[0].axes[i] or kept[1].axes[j]) for axis in before[0].axes[i]}
        split = [dim for dim, used in enumerate(result.axes) if used and axes.issuperset(used)]
        if not split:
            return []
        if not self.on_host:
            return [("reduce-scatter", axes, result.bytes())]
        return [("all-reduce", axes, result.bytes({dim: result.sizes[dim] for dim in split}))]

    def is_brought(self, row, source, operand, dims, summed, collectives):
        """Is an operand gathered, also along `dims`, as it was for an earlier operation?"""
        axes = [() if dim in dims else axes for dim, axes in enumerate(self.divided(operand).axes)]
        value, gathers = (len(self.runs), source, *axes), all(c.kind == "all-gather" for c in collectives)
        roles = self.brought.setdefault(value, set())
        role = frozenset(axis for dim in summed for axis in axes[dim])
        # where the other axes split another kind of dimensions XLA may have it already, or not
        row.exact = row.exact and not (collectives and gathers and roles and role not in roles)
        before = role in roles
        roles.add(role)
        return before and gathers

    def sums_rather(self, op, before, dims):
        """Does XLA sum a product, one operand of which is not divided where the other is, in `dims` of each?

        It does where the sum is smaller than that operand, and the product is divided in other ways too.
        """
        operands, result = [self.divided(value) for value in op.operands], self.divided(op.results[0])
        summed = [{axis for dim in chosen for axis in value.axes[dim]}
                  for value, chosen in zip(operands, dims)]
        other = {axis for value in (*operands, result) for axis in value.used} - summed[0] - summed[1]
        whole = sum(value.bytes({dim: value.sizes[dim] for dim in chosen})
                    for value, chosen in zip(operands, dims) if any(value.axes[dim] for dim in chosen))
        apart = all(axes.isdisjoint(before[1 - side].used) for side, axes in enumerate(summed))
        return bool(other) and apart and result.bytes() < whole

    def left_to_xla(self, op, row, operands):
        """The PlannedCollectives for an operation of which Shardy's collectives say nothing."""
        values, results = ([self.divided(v) for v in given] for given in (operands, op.results))
        found = self.planned(exchanges(Applied(op, values, results)), operands[:1])
        kept = {axis for result in results if result for axes in result.axes for axis in axes} | row.whole
        kept.update(axis for value in op.results for axis in shardy.unreduced(self.sharding(value)))
        kept.update(axis for user in users(op) if user.name in _REDUCING
                    for axis in self.axes(user.attributes[_REDUCING[user.name]]))
        if op.name == "stablehlo.fft" and not binding.divides_transforms:
            kept.clear()
        # what it cannot divide it computes on each device
        for i, (operand, value) in enumerate(zip(operands, values)):
            whole = [dim for dim, axes in enumerate(value.axes) if kept.isdisjoint(axes)] if value else []
            split = [axis for dim in whole for axis in value.axes[dim]]
            if op.name == "stablehlo.reduce" and len(op.results) > 1 and split:
                found += self.planned([self.looked_through(split, op.results[i])], [operand])
            else:
                found += self.planned(gathered(value, whole), [operand])
        # what one device has computed the others add to nothing of theirs
        alone = [("all-reduce", self.mesh.axis_names, self.bytes(value)) for value in op.results
                 if "hlotrace.alone" in op.attributes and value in self.needed.values]
        return found + self.planned(alone, operands)

    def reshard(self, op):
        [source], result = self.operands(op), op.results[0]
        made = self.row_of.get(source)
        self.level[result] = self.level_of([source])
        collectives = self.planned(self.exchanged(op, made.whole if made else set()), [source])
        # Shardy gives what it inserts for an operand the line that the operand comes from
        serves = op.location == source.location
        ends = all(user.name in _SILENT for user in users(op))
        if made and (op.name in _REDUCING or made.reshards and made is self.found[-1] or serves and ends):
            made.collectives += collectives
            if op.name == "sdy.all_reduce":
                self.summed[result] = made, collectives
            made.results[0 if made.reshards else source.result_number] = self.spec(result)
            self.row_of[result] = made
            return
        source, before = self.moved.get(source, (source, []))
        collectives = before + collectives
        if serves and not ends:
            self.moved[result] = source, collectives
            return
        row = _Row(op, self.scope, [self.spec(source)], [self.spec(result)], True)
        row.collectives = collectives
        self.found.append(row)
        self.row_of[result] = row

    # --- collectives ---

    def planned(self, found, values):
        """PlannedCollectives of exchanges that need `values`."""
        times = self.runs[self.level_of(values)]
        return [PlannedCollective(kind, axes and tuple(name for name in self.mesh.axis_names if name in axes),
                                  size, times) for kind, axes, size in found]

    def exchanged(self, op, whole):
        """What XLA does for a collective of Shardy's, but for mesh axes along which the value is `whole`."""
        if op.name in _REDUCING:
            axes = [a for a in self.axes(op.attributes[_REDUCING[op.name]]) if a not in whole]
            return self.reduced(op, axes) if axes else []
        if [_is_move(user) for user in users(op)] == [True]:
            return []       # the next one says where all of them lead
        source, result = op.operands[0], op.results[0]
        after = self.divided(result).axes
        moving = [dim for dim, axes in enumerate(self.divided(source).axes) if axes != after[dim]]
        while _is_move(owner(source)) and len([*source.uses]) == 1:
            source = owner(source).operands[0]
        before = self.divided(source)
        if op.name == "sdy.all_gather" and not any(after[dim] for dim in moving) and all(
                then in (axes, ()) for axes, then in zip(before.axes, after)):
            return gathered(before, [dim for dim, axes in enumerate(before.axes)
                                     if axes != after[dim] and not whole.issuperset(axes)])
        return [found for found in self.resharded(source, result) if whole.isdisjoint(found[1] or ())]

    def reduced(self, op, axes):
        """What XLA does for a sum of Shardy's over mesh axes."""
        source, result = op.operands[0], op.results[0]
        if op.name == "sdy.reduce_scatter" and not self.on_host:
            return [("reduce-scatter", axes, self.bytes(result))]
        made = owner(source)
        if made.name == "stablehlo.reduce" and len(made.results) > 1:       # all at once, with the first
            first = min(user.operands[0].result_number for user in users(made)
                        if user.name in _REDUCING and self.needed.runs(user))
            return [self.looked_through(axes, value) for value in made.results
                    if first == source.result_number]
        groups = self.by_dimension(source, axes) if self.on_host else [axes]
        return [("all-reduce", group, self.bytes(source)) for group in groups if group]

    def looked_through(self, axes, result):
        """The exchange by which all that devices have found for one of several results is reduced by each."""
        count = math.prod(self.axis_sizes[name] for name in {*axes})
        return "all-gather", axes, count * self.bytes(result)

    def resharded(self, source, result):
        """The exchanges that bring a value where another one is."""
        before, manual = self.divided(source), shardy.manual_around(owner(result))
        sizes = {name: size for name, size in self.axis_sizes.items() if name not in manual}
        mesh = SimpleNamespace(axis_names=[*sizes], axis_sizes=[*sizes.values()])
        found = reshard(before.sizes, before.bits, *[tiling(self.split(v), mesh) for v in (source, result)])
        if found is None:
            return gathered(before, [dim for dim, axes in enumerate(before.axes) if axes])
        return [(kind, mesh_axes(groups, mesh, kind == "collective-permute"), size)
                for kind, groups, size in found]

    def by_dimension(self, value, axes):
        """XLA sums over the dimensions one by one; over those of an image alone over all devices at once."""
        if owner(value).name == "stablehlo.convolution":
            numbers = stablehlo.ConvDimensionNumbers(owner(value).attributes["dimension_numbers"])
            split = self.split(owner(value).operands[0])
            if {a for dim in numbers.input_spatial_dimensions for a in split[dim]}.issuperset(axes) and axes:
                return [self.mesh.axis_names]
        for operand in owner(value).operands if isinstance(value, ir.OpResult) else ():
            groups = [[a for a in dim if a in axes] for dim in self.split(operand)]
            if {a for group in groups for a in group} == set(axes):
                return groups[::-1]
        return [axes]

    def axes(self, attribute):
        return [name for name in self.mesh.axis_names if f'"{name}"' in str(attribute)]

    def group_axes(self, op):
        permute = "source_target_pairs" in op.attributes
        groups = np.array(op.attributes["source_target_pairs" if permute else "replica_groups"]).tolist()
        return mesh_axes([[n for n in group if n >= 0] for group in groups], self.mesh, permute)

    # --- values ---

    def sharding(self, value):
        op = owner(value)
        if isinstance(value, ir.OpResult):
            return shardy.result_shardings(op)[value.result_number]
        if op.name == "func.func":
            return shardy.signature(op)[0][value.arg_number][1]
        if op.name == "sdy.manual_computation":
            return sdy.TensorShardingPerValueAttr(op.attributes["in_shardings"]).shardings[value.arg_number]
        return shardy.result_shardings(op)[value.arg_number] if op.name == "stablehlo.while" else None

    def split(self, value):
        """The mesh axes that split each dimension, without those that are manual around it."""
        manual = shardy.manual_around(owner(value), isinstance(value, ir.BlockArgument))
        return [tuple(a for a in dim if a not in manual)
                for dim in shardy.spec(value.type, self.sharding(value))]

    def spec(self, value):
        names = [tuple(a if isinstance(a, str) else repr(a).replace("'", "") for a in dim)
                 for dim in self.split(value)]
        return PartitionSpec(*(dim[0] if len(dim) == 1 else dim or None for dim in names))

    def divided(self, value):
        if not isinstance(value.type, ir.RankedTensorType):
            return None
        split, sharding = self.split(value), self.sharding(value)
        sizes = {} if sharding is None else shardy.mesh_sizes(sharding, self.meshes)
        counts = tuple(math.prod(sizes[a] if isinstance(a, str) else a.size for a in dim) for dim in split)
        axes = tuple(tuple(a if isinstance(a, str) else a.name for a in dim) for dim in split)
        return Divided(tuple(value.type.shape), axes, counts, self.bits(value.type.element_type))

    def bytes(self, value):
        return self.divided(value).bytes() if isinstance(value.type, ir.RankedTensorType) else 0

    def bits(self, type_):
        if isinstance(type_, ir.ComplexType):
            return 2 * self.bits(type_.element_type)
        name = str(type_)
        if self.on_host and name.startswith(("bf16", "f8")):
            return 32 if name == "bf16" else 16
        return 8 if name == "i1" else type_.width


def _is_move(op):
    """Does an operation of Shardy's bring a value elsewhere, as it is?"""
    return op.name in _OF_SHARDY and op.name not in _REDUCING


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


def _path(op):
    location = _first(op.location)
    return location.name_str if isinstance(location, ir.NameLoc) else op.name.partition(".")[2]
