"""Programs over several devices in pieces: how the values that pieces leave for one another are split.

Shardy's propagation goes over the whole program first; each piece is then compiled for the shardings that
its operands and results have there.  So the pieces communicate what the whole program would; what XLA could
not join, since it is in different pieces, is added together (`sums_of_pieces.py`).
"""
from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.avals import aval_of
from ...core.jaxpr import Eqn, Jaxpr, Literal, Var
from ...lowering.lowered import Lowered, lower
from ...primitives.arrays.slicing import copy_p
from ...primitives.programs.calls import jit_p
from ...sharding.mesh import Mesh
from ...sharding.named import NamedSharding
from ...sharding.spec import PartitionSpec
from ...transforms.residuals import bytes_of, renamed
from .. import binding
from ..devices import client, shards
from ..processes import consistency_checks
from . import compilation
from .blocks import Block, InBlocks, Steps, blocks_of, compiled_in, in_blocks, steps_of
from .executable import Executable
from .spmd import SpmdExecutable
from .sums_of_pieces import summed_together


class SpmdBlockExecutable(InBlocks, SpmdExecutable):
    """A program over devices, compiled in pieces.  `given` are the shardings of its inputs and outputs."""
    __slots__ = ("steps", "given")

    def __init__(self, lowered: Lowered, device: binding.Device, steps: Steps,
                 given: tuple[Sequence[Any], Sequence[Any]]) -> None:
        self.given, self.steps = given, steps
        super().__init__(None, lowered, device, *compiled_in([e for e, *_ in steps.steps]))

    def _shardings(self, _loaded: Any, _lowered: Lowered) -> tuple[Any, Any]:
        return self.given


def compile_lowered(lowered: Lowered, device: binding.Device,
                    compiler_options: Mapping[str, Any] | None = None) -> Executable:
    """An Executable for a Lowered program over several devices, in pieces where that is better.

    It is not where a mesh cannot say how a value is split, or where pieces would gather again what one has
    gathered.
    """
    plan = _plan(lowered, thin=True) if _over_one_mesh(lowered) else None
    if plan is not None and plan.exchanges:     # what a piece computes again it may gather again
        plan = min((p for p in (plan, _plan(lowered, thin=False)) if p), key=lambda p: p.exchanges)
    if plan is None or plan.exchanges and plan.exchanges > plan.in_one():
        return compilation.compile_whole(lowered, device, compiler_options)
    made = {program: compilation.compile_whole(program, device, compiler_options, len(plan.pieces))
            for program in dict.fromkeys(map(plan.alone, plan.pieces))}
    executables = [made[plan.alone(piece)] for piece in plan.pieces]
    partition: Any = lowered.partition
    shardings, jaxpr = plan.shardings, plan.jaxpr

    @functools.cache
    def size(v: Any) -> int:
        return bytes_of(v) * math.prod(shardings[v].shard_shape(v.aval.shape)) // max(v.aval.size, 1)
    steps = steps_of(jaxpr, plan.pieces, executables, lowered.donated,
                     functools.partial(put_everywhere, mesh=partition.mesh), size)
    return in_blocks(SpmdBlockExecutable, lowered, device, steps, (
        [s or shardings[v] for s, v in zip(partition.ins, jaxpr.invars)],
        [s or shardings[v] for s, v in zip(partition.outs, jaxpr.outvars)]))


@dataclasses.dataclass
class _Plan:
    jaxpr: Jaxpr
    pieces: list[Block]
    shardings: dict[Any, NamedSharding]     # of the inputs, and of what pieces give
    alone: Callable[[Block], Lowered]       # a piece as a program of its own
    exchanges: int                          # values that the pieces gather or move
    in_one: Callable[[], int]               # the same of the whole program


def _plan(lowered: Lowered, thin: bool) -> _Plan | None:
    found = blocks_of(lowered, thin)
    if found is None:
        return None
    from ..mlir import shardy  # only programs in pieces need MLIR
    jaxpr, pieces = found
    partition: Any = lowered.partition
    text, crossing = _with_crossing(lowered, jaxpr, pieces)
    try:
        specs = shardy.main_specs(text, collectives=False)
    except ValueError:
        return None
    pairs = [*zip(jaxpr.invars, specs.arguments),
             *zip((*jaxpr.outvars, *crossing), specs.results, strict=True)]
    if any(isinstance(axis, shardy.SubAxis) for _, spec in pairs for axes in spec for axis in axes):
        return None
    named = functools.cache(functools.partial(_named, partition.mesh))
    shardings = {v: named(spec, v.aval.ndim) for v, spec in pairs}
    whole = NamedSharding(partition.mesh, PartitionSpec())

    @functools.cache
    def lowered_for(program: Jaxpr, ins: tuple[Any, ...], outs: tuple[Any, ...]) -> Lowered:
        return lower(program, platform=lowered.platform, blocks=[],
                     partition=partition._replace(ins=ins, outs=outs))

    def alone(piece: Block) -> Lowered:
        ins, outs = (tuple(whole if type(v) is Literal else shardings[v] for v in vs)
                     for vs in (piece.operands, piece.results))
        return lowered_for(piece.program, ins, outs)
    specs_of = functools.cache(lambda program: shardy.main_specs(program.text))
    moving = [piece for piece in pieces if specs_of(alone(piece)).exchanges]
    gathered = {v: named(spec, v.aval.ndim)
                for piece in moving for i, spec in specs_of(alone(piece)).gathered.items()
                if type(v := piece.operands[i]) is Var}
    pieces = _gathered_once(jaxpr, pieces, shardings, gathered, moving)
    if not partition.mesh.explicit_axes:
        pieces = summed_together(jaxpr, pieces, shardings, [specs_of(alone(piece)).sums for piece in pieces])
    return _Plan(jaxpr, pieces, shardings, alone, sum(specs_of(alone(piece)).exchanges for piece in pieces),
                 lambda: shardy.main_specs(text).exchanges)


def put_everywhere(value: Any, mesh: Mesh) -> Any:
    """A constant on each device of a mesh; on those of a topology, as it is."""
    if client.is_elsewhere(mesh._devices[0]):
        return value
    return shards.put(value, aval_of(value), NamedSharding(mesh, PartitionSpec()))


def _over_one_mesh(lowered: Lowered) -> bool:
    """Are all shardings that a program states those of one mesh, over the devices of this process alone?"""
    partition: Any = lowered.partition
    mesh, devices = partition.mesh, partition.devices
    return (type(mesh) is Mesh and len(devices) > 1 and mesh._devices == devices
            and lowered.text.count("sdy.mesh @") == 1 and "unreduced" not in lowered.text
            and all(s is None or (type(s) is NamedSharding and s._kind is None and s._layout is None
                                  and type(s.mesh) is Mesh and s.mesh._devices == devices
                                  and s.mesh.shape_tuple == mesh.shape_tuple)
                    for s in (*partition.ins, *partition.outs))
            and consistency_checks.company_of(devices) is None)


def _with_crossing(lowered: Lowered, jaxpr: Jaxpr, pieces: Sequence[Block]) -> tuple[str, list[Any]]:
    """(the text of the program without calls, whose results are followed by what pieces leave for others,
    these variables).

    Through calls Shardy decides otherwise here and there than in the whole program, and takes longer.
    """
    partition: Any = lowered.partition
    env: dict[Any, Any] = {}
    eqns = _written_out([Eqn(jit_p, piece.operands, piece.results, {"jaxpr": piece.program})
                         for piece in pieces], env)
    outs = {*jaxpr.outvars}
    crossing = list(dict.fromkeys(v for piece in pieces for v in piece.results if v not in outs))
    flat = jaxpr.replace(eqns=eqns, outvars=[env[v] for v in (*jaxpr.outvars, *crossing)])
    partition = partition._replace(outs=(*partition.outs, *[None] * len(crossing)))
    return lower(flat, platform=lowered.platform, blocks=[], debug_info=False,
                 partition=partition).text, crossing


def _written_out(eqns: Sequence[Eqn], env: dict[Any, Any]) -> list[Eqn]:
    """Equations with those of called functions in place of calls; `env` gets what their variables became."""
    found: list[Eqn] = []
    for eqn in eqns:
        if eqn.primitive is not jit_p:
            found += renamed([eqn], env)
            continue
        program = eqn.params["jaxpr"]
        inner = dict(zip(program.invars, [env.get(v, v) for v in eqn.invars]))
        found += _written_out(program.eqns, inner)
        env.update(zip(eqn.outvars, [inner.get(v, v) for v in program.outvars]))
    return found


def _gathered_once(jaxpr: Jaxpr, pieces: Sequence[Block], shardings: dict[Any, NamedSharding],
                   gathered: Mapping[Any, NamedSharding], moving: Sequence[Block]) -> list[Block]:
    """The pieces where what several of them gather is gathered once: by the piece that makes it, or, for
    inputs and results of the program, in a piece of its own.

    Args:
        shardings: of the variables; they change.
        gathered: what pieces gather.
        moving: the pieces in which anything is gathered or moved.  They take what is gathered before.
    """
    stated = {*jaxpr.invars, *jaxpr.outvars}
    shardings.update((v, s) for v, s in gathered.items() if v not in stated)
    uses = collections.Counter(v for piece in moving for v in {*piece.operands})
    moved = {v: Var(v.aval) for v in gathered if v in stated and uses[v] > 1}
    shardings.update((new, gathered[v]) for v, new in moved.items())
    done: set[Any] = set()
    result = []
    for piece in pieces:
        if piece not in moving:
            result.append(piece)
            continue
        if new := [v for v in dict.fromkeys(piece.operands) if v in moved and v not in done]:
            program = Jaxpr((), (), [Var(v.aval) for v in new], (), [], "gathered")
            eqns = [Eqn(copy_p, [v], [Var(v.aval)], {}) for v in program.invars]
            result.append(Block(program.replace(eqns=eqns, outvars=[eqn.outvars[0] for eqn in eqns]),
                                new, [moved[v] for v in new]))
            done.update(new)
        result.append(Block(piece.program, [moved.get(v, v) for v in piece.operands], piece.results))
    return result


def _named(mesh: Mesh, spec: Sequence[Any], ndim: int) -> NamedSharding:
    """The sharding that a Spec says of a variable of rank `ndim`."""
    entries = [axes[0] if len(axes) == 1 else axes or None for axes in spec[:ndim]]
    while entries and entries[-1] is None and not mesh.explicit_axes:
        entries.pop()
    return NamedSharding(mesh, PartitionSpec(*entries))
