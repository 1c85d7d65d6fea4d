"""Where the program of a compiled function runs: what in_shardings, out_shardings and device ask for."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..api.flat import TracedProgram
from ..core.avals import aval_of
from ..core.config import state
from ..core.jaxpr import Jaxpr, sub_jaxprs
from ..core.primitive import fact_of
from ..core.pytrees import pytree
from ..lowering.module import put_in_memory
from ..lowering.result_memory import with_memories
from ..primitives.programs.calls import jit_p
from ..runtime import evaluate
from ..runtime.array_impl import ArrayImpl, own
from ..runtime.devices import placement, transfer
from ..sharding.abstract import Sharding
from ..sharding.partition import over_devices


def maps_devices(jaxpr: Jaxpr) -> bool:
    """Does the program hold a shard_map, which needs all devices of its mesh?"""
    return any(eqn.primitive.spans_devices or any(map(maps_devices, sub_jaxprs(eqn.params)))
               for eqn in jaxpr.eqns)


def _taker(jaxpr: Jaxpr, number: int) -> str:
    """The primitive of a program that takes its input of this number over the mesh in use, "" if none."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.says_sharding or eqn.primitive.spans_devices:
            continue        # it says over which mesh
        for i, v in enumerate(eqn.invars):
            if v is jaxpr.invars[number]:
                found = _taker(eqn.params["jaxpr"], i) if eqn.primitive is jit_p else eqn.primitive.name
                if found:
                    return found
    return ""


def _committed(x: Any) -> bool:
    return type(x) is ArrayImpl and x._committed


def _only_devices_differ(x: ArrayImpl, sharding: Any) -> bool:
    held: Any = x.sharding
    return held._devices != sharding._devices and held._kind == sharding._kind and (
        held.is_fully_replicated and sharding.is_fully_replicated or held.divides_alike(sharding, x.ndim))


class Placement:
    """What a compiled function `name` was given of shardings; with `place`, a SingleDeviceSharding, all goes
    there."""

    def __init__(self, name: str, in_shardings: Any, out_shardings: Any, place: Any) -> None:
        self.name, self.place = name, place
        if place is not None:
            in_shardings = out_shardings = place
        self.ins, self.outs = in_shardings, out_shardings
        self.asks = in_shardings is not None or out_shardings is not None
        self.options = () if place is None else (place,)
        self.commits = False        # are all results committed to the one device that it names?
        if self.asks:
            leaves, structure = pytree.tree_flatten((in_shardings, out_shardings), lambda x: x is None)
            from .shardings import check_kind
            for x in leaves:
                check_kind(x, f"jit of {name}, in_shardings and out_shardings", devices=False)
            self.commits = placement.SingleDeviceSharding in map(type, leaves)
            self.options = (*self.options, tuple(leaves), structure)

    def refuse_closure(self) -> None:
        """NotImplementedError if there are shardings, for a program that uses Refs from outside."""
        if pytree.tree_leaves((self.ins, self.outs)):
            raise NotImplementedError(f"jit of {self.name}: in_shardings, out_shardings and device do "
                                      "not go with a Ref that the function closes over")

    def of(self, traced: TracedProgram, leaves: Sequence[Any],
           paths: Callable[[], list[str]]) -> tuple[Any, list[Any] | None]:
        """(device or Partition, the shardings of the program's inputs or None) for these leaves of arguments.

        `paths()` gives their names.
        """
        program, consts, kept, _ = traced.pruned()
        found = fact_of(program, "meshes")
        if self.place is not None:
            return evaluate.device_assignment([*map(aval_of, consts)], None, (self.place,), found)[0], None
        places: Any = list(map(evaluate.committed_sharding, leaves))
        placed = any(places[i] for i in kept)
        if (around := state.mesh_to_run_on) and not placed:
            if all(getattr(m, "_devices", around._devices) == around._devices for m in found):
                found = (around, *found)
        elif found and not placed and not any(hasattr(m, "devices") for m in found):
            # an AbstractMesh has no devices: those of arguments that the program does not use
            found = (*dict.fromkeys(s.mesh for s in places if hasattr(s, "mesh")), *found)
        if around and placed:
            evaluate.check_mesh_in_use([places[i] for i in kept], program.in_avals[len(consts):], lambda i: (
                f"argument {paths()[kept[i]]} of {self.name}"), lambda i: _taker(program, len(consts) + i))
        requested, outs = self.requested(traced, leaves)
        requested = requested and [*[None] * len(consts), *[requested[i] for i in kept]]
        if put := {v: s for v, s in put_in_memory(program).items() if isinstance(s, Sharding)}:
            outs = tuple([s or (put[v].filled(v.aval.ndim) if v in put else None) for s, v in zip(
                outs or [None] * len(program.outvars), program.outvars)])

        def name(i: int) -> str:
            if i < len(consts):
                return f"a constant of {self.name}"
            return f"argument {paths()[kept[i - len(consts)]]} of {self.name}"
        for i, (s, a) in enumerate(zip(requested or (), program.in_avals)):
            if s:
                placement.check_fits(s, a, partial(name, i))
        values = [*consts, *[leaves[i] for i in kept]]
        try:
            where, _ = evaluate.device_assignment(values, requested, outs, found, name)
        except ValueError:
            if not any(map(evaluate.committed_sharding, consts)):
                raise
            values[:len(consts)] = map(aval_of, consts)      # they give way, and are brought there
            where, _ = evaluate.device_assignment(values, requested, outs, found, name)
        return with_memories(program, where), requested

    def requested(self, traced: TracedProgram, leaves: Sequence[Any] = (),
                  ) -> tuple[list[Any] | None, tuple[Any, ...] | None]:
        """The shardings requested for the leaves of the arguments and of the results, lists or None.

        The devices' own layout is as none, but beside one of `leaves` that has another, which it refuses.
        """
        if not self.asks:
            return None, None
        from .shardings import flat_shardings
        requested: list[Any] | None = None
        outs: list[Any] | None = None
        if self.ins is not None:
            requested = self.inputs(traced.in_tree)
            for i, (s, a) in enumerate(zip(requested, traced.jaxpr.in_avals)):
                held = evaluate.committed_sharding(leaves[i]) if leaves else None
                if s:
                    self._check_terms(s, a, f"argument {i}", "in_shardings")
                if s and s._layout is not None and (held is None or held._layout is None):
                    requested[i] = self._settled(s, a, f"argument {i}")
        if self.outs is not None:
            outs = over_devices(flat_shardings(f"jit out_shardings of {self.name}", traced.result_tree,
                                               self.outs, laid_out=True), state.mesh_to_run_on)
            outs = [*outs, *[None] * (traced.out_tree.num_leaves - len(outs))]
            for i, (s, a) in enumerate(zip(outs, traced.closed.out_avals)):
                if s:
                    if s._layout is not None:
                        outs[i] = s = self._settled(s, a, f"result {i}")
                    placement.check_fits(s, a, partial(placement.of_type, f"result {i} of {self.name},", a))
                    self._check_terms(s, a, f"result {i}", "out_shardings")
        return requested, tuple(outs) if outs else None

    def _check_terms(self, sharding: Any, aval: Any, what: str, where: str) -> None:
        """ValueError where a sharding, or the type, is unreduced and the other is not so."""
        terms = getattr(getattr(sharding, "spec", None), "unreduced", ())
        if not (terms or aval.explicit is not None and aval.explicit._terms):
            return
        if hasattr(sharding, "typed") and sharding.typed(aval).explicit != aval.explicit:
            raise ValueError(f"jit of {self.name}: {what} is of type {aval}, and {where} says {sharding}: "
                             "what is unreduced is a matter of the type; reshard in the function")

    def inputs(self, in_tree: Any) -> list[Any]:
        """The shardings requested for the leaves of the arguments."""
        from .shardings import flat_shardings
        alone = isinstance(self.ins, placement.SingleDeviceSharding)
        keywords = in_tree.children()[1].node_data()[1]
        if keywords and not alone:
            raise ValueError(f"jit of {self.name}: in_shardings does not say how keyword arguments "
                             f"({', '.join(keywords)}) are placed; pass them by position")
        given = tuple(self.ins) if type(self.ins) is list else self.ins
        return over_devices(flat_shardings(f"jit in_shardings of {self.name}", in_tree,
                                           (given, given if alone else None), laid_out=True),
                            state.mesh_to_run_on)

    def moved(self, leaves: Sequence[Any], in_tree: Any) -> Sequence[Any]:
        """The leaves of the arguments; those that in_shardings divides as they are, or has whole as they are,
        are moved where they are on other devices, and all to `place`."""
        if self.place is not None:
            return [transfer.move(own(x), self.place) for x in leaves]
        if self.ins is None or not any(map(_committed, leaves)):
            return leaves
        return [transfer.move(x, s) if s and _committed(x) and _only_devices_differ(x, s) else x
                for x, s in zip(leaves, self.inputs(in_tree))]

    def _settled(self, sharding: Any, aval: Any, what: str) -> Any:
        """A sharding in a layout, for values of a type; without, if it is the devices' own."""
        from ..runtime.devices import layouts  # few programs ask for one
        return layouts.settled(sharding, aval, f"jit of {self.name}: {what}")

    def constrained(self, traced: TracedProgram,
                    leaves: Sequence[Any]) -> tuple[Sequence[Any], Callable[[Any], Any]]:
        """(the leaves of the arguments, a function of the results) with what was asked as constraints of a
        program; over Explicit axes the types say it."""
        if not self.asks:
            return leaves, lambda results: results
        from .shardings import constrained, hinted
        requested, outs = self.requested(traced)
        return (constrained(leaves, requested, self.name, hinted),
                lambda results: constrained(results, outs, self.name, hinted))
