"""Sums over devices that pieces of a program end with, such as the gradients of layers, added by one of them.

XLA joins the collectives of one program, not those of different pieces.  So pieces leave the terms that their
devices have, and the first piece that takes one of the sums adds all that are there by then.
"""
from __future__ import annotations

import collections
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.jaxpr import Eqn, Jaxpr, Var
from ...primitives.arrays.contract import dot_general_p
from ...primitives.arrays.shape import reduce_sum_p, transpose_p
from ...primitives.parallel.sharding import sharding_constraint_p
from ...sharding.mesh import AxisType, Mesh
from ...sharding.named import NamedSharding
from ...sharding.spec import PartitionSpec
from ...transforms.residuals import renamed
from .blocks import Block

if TYPE_CHECKING:
    from ..mlir.shardy import Sum


def summed_together(jaxpr: Jaxpr, pieces: Sequence[Block], shardings: dict[Any, NamedSharding],
                    sums: Sequence[Mapping[int, Sum]]) -> list[Block]:
    """The pieces where what several of them would add over devices is added by one.

    Args:
        jaxpr: the program that they are.
        shardings: of its variables; those of terms are added.
        sums: for each piece the results that it adds, by their numbers.
    """
    first: dict[Any, int] = {}
    for i, piece in enumerate(pieces):
        for v in piece.operands:
            first.setdefault(v, i)
    made = {piece.results[k]: (i, k) for i, piece in enumerate(pieces) for k in sums[i]
            if _adding(piece.program, k, sums[i][k]) is not None}
    places: dict[Any, int] = {}     # sum -> the piece that adds it, or the number of pieces: one of its own
    for v in sorted(made, key=lambda v: first.get(v, len(pieces))):
        place = first.get(v, len(pieces))
        group = [u for u in made if u not in places and made[u][0] < place] if v not in places else []
        if len({made[u][0] for u in group}) > 1:
            places.update(dict.fromkeys(group, place))
    # what one call of a block cannot leave, no other leaves: it is compiled once
    never = {(pieces[i].program, k) for v, (i, k) in made.items() if v not in places}
    terms = {v: Var(v.aval) for v in places if (pieces[made[v][0]].program, made[v][1]) not in never}
    left: dict[int, dict[int, Sum]] = collections.defaultdict(dict)
    for v, new in terms.items():
        i, k = made[v]
        left[i][k] = sums[i][k]
        shardings[new] = _of_terms(shardings[v], sums[i][k].axes)
    times = collections.Counter(piece.program for piece in pieces)
    mesh: Any = next(iter(shardings.values())).mesh
    leaving = functools.cache(functools.partial(_leaving, mesh=mesh))
    result = []
    with_end: Any = [*pieces, None]
    for i, piece in enumerate(with_end):
        if added := [v for v in terms if places[v] == i]:
            then = None if piece is None or times[piece.program] > 1 or i in left else piece
            later = {v for p in pieces[i + (then is not None):] for v in p.operands} | {*jaxpr.outvars}
            result.append(_adding_up(added, [terms[v] for v in added], shardings, then,
                                     [v for v in added if v in later]))
            if then is not None:
                continue
        if piece is not None and i in left:
            program = leaving(piece.program, tuple(left[i].items()))
            piece = Block(program, piece.operands, [terms.get(v, v) for v in piece.results])
        if piece is not None:
            result.append(piece)
    return result


def _adding(program: Jaxpr, k: int, each: Sum) -> tuple[int, int | None] | None:
    """(the equation of a program that is the Sum of result k, that which transposes it), None where it is
    another than Shardy's."""
    maker: dict[Any, int] = {v: i for i, eqn in enumerate(program.eqns) for v in eqn.outvars}
    uses = collections.Counter(v for eqn in program.eqns for v in eqn.invars)
    uses.update(program.outvars)
    v, transposing = program.outvars[k], None
    if each.transposed is not None:
        transposing = maker.get(v)
        if transposing is None or uses[v] != 1:
            return None
        eqn = program.eqns[transposing]
        if eqn.primitive is not transpose_p or tuple(eqn.params["permutation"]) != each.transposed:
            return None
        v = eqn.invars[0]
    i = maker.get(v)
    if i is None or uses[v] != 1 or program.eqns[i].primitive not in (dot_general_p, reduce_sum_p):
        return None
    invars = program.eqns[i].invars
    found = [x.aval.ndim for x in (*invars, v) if type(x) is Var]
    return (i, transposing) if found == [*map(len, (*each.operands, each.result))] else None


def _leaving(program: Jaxpr, left: tuple[tuple[int, Sum], ...], mesh: Mesh) -> Jaxpr:
    """A program that leaves the terms of some of its results.

    XLA believes that a value is terms whatever it finds, so what is added is said to be split as it is.
    """
    eqns: list[list[Eqn]] = [[eqn] for eqn in program.eqns]

    def split(spec: Any, axes: frozenset[str] = frozenset()) -> NamedSharding:
        return _of_terms(NamedSharding(mesh, PartitionSpec(*(tuple(a) or None for a in spec))), axes)

    def said(eqn: Eqn, sharding: NamedSharding) -> list[Eqn]:
        """An equation with its result constrained."""
        new = Var(eqn.outvars[0].aval)
        return [eqn.replace(outvars=[new]),
                Eqn(sharding_constraint_p, [new], eqn.outvars, {"sharding": sharding})]
    for k, each in left:
        at: Any = _adding(program, k, each)
        eqn = program.eqns[at[0]]
        operands = [Var(v.aval) for v in eqn.invars]
        before = [Eqn(sharding_constraint_p, [v], [new], {"sharding": split(spec)})
                  for v, new, spec in zip(eqn.invars, operands, each.operands)]
        eqns[at[0]] = [*before, *said(eqn.replace(invars=operands), split(each.result, each.axes))]
        if at[1] is not None:
            spec = [each.result[d] for d in each.transposed or ()]
            eqns[at[1]] = said(program.eqns[at[1]], split(spec, each.axes))
    return program.replace(eqns=[eqn for each in eqns for eqn in each])


def _adding_up(sums: Sequence[Var], terms: Sequence[Var], shardings: Mapping[Any, NamedSharding],
               then: Block | None, kept: Sequence[Var]) -> Block:
    """A piece that makes sums of their terms and does what the piece `then` does; it gives `kept`."""
    ins = [Var(v.aval) for v in sums]
    outs = {v: Var(v.aval) for v in sums}
    eqns = [Eqn(sharding_constraint_p, [new], [outs[v]], {"sharding": shardings[v]})
            for v, new in zip(sums, ins)]
    if then is None:
        return Block(Jaxpr((), (), ins, eqns, [outs[v] for v in kept], "summed"), terms, kept)
    program = then.program
    env: dict[Any, Any] = {new: outs[v] for v, new in zip(then.operands, program.invars) if v in outs}
    eqns += renamed(program.eqns, env)
    others = [(v, new) for v, new in zip(then.operands, program.invars) if v not in outs]
    results = [env.get(v, v) for v in program.outvars]
    return Block(program.replace(invars=[*ins, *(new for _, new in others)], eqns=eqns,
                                 outvars=[*results, *(outs[v] for v in kept)]),
                 [*terms, *(v for v, _ in others)], [*then.results, *kept])


def _of_terms(sharding: NamedSharding, axes: frozenset[str]) -> NamedSharding:
    """A sharding of values of which each device along some axes has a term."""
    if not axes:
        return sharding
    mesh = sharding.mesh
    mesh = mesh.update(axis_types=(AxisType.Explicit,) * len(mesh.axis_names))
    return NamedSharding(mesh, sharding.spec.update(unreduced=axes))
