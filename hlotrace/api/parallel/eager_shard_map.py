"""A shard_map outside of jit: its values are there to be looked at, each device's own.

The program of a device is written as under jit, and runs once, at the end.  When a value is read (by `print`,
`if`, `float`), what was written so far runs first.  Outside of every transformation that part is then done
and its values are inputs of the rest, so side effects happen once; under grad, whose rules need the whole
program, it runs only for the value, and not at all where it has side effects.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import errors, leaks
from ...core.avals import ShapedArray, aval_of
from ...core.config import state
from ...core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, dce, eval_jaxpr
from ...core.jaxpr_trace import JaxprTrace, JaxprTracer
from ...core.primitive import Primitive
from ...core.programs import trace_closed
from ...core.trace import EVAL, Tracer, entering
from ...primitives.arrays.shape import reshape
from ...primitives.parallel.shard_map import shard_map_p
from ...runtime.array_impl import as_array
from ...sharding.mesh import Mesh
from ...sharding.spec import PartitionSpec


class DeviceTracer(JaxprTracer):
    """A value of each device.  As a number, it is that on which all devices agree."""
    __slots__ = ()

    def concrete(self) -> Any:
        blocks = self._trace.blocks(self._var)
        if blocks is None or self.aval.vma or any(b.tobytes() != blocks[0].tobytes() for b in blocks[1:]):
            return None
        return as_array(blocks[0])

    def _known(self, error: Callable[..., Exception], *args: Any) -> Any:
        try:
            return super()._known(error, *args)
        except Exception as raised:
            if self._trace.blocks(self._var) is None:
                raise
            raise type(raised)(
                f"one value is needed here, and each device of the {self._trace.what} has its own, of type "
                f"{self.aval}. Reduce over the devices first (lax.psum, lax.pmax), or use jnp.where or "
                f"lax.cond for a choice that each device makes.\n{self}") from None

    def __repr__(self) -> str:
        blocks = self._trace.blocks(self._var)
        return super().__repr__() if blocks is None else self._trace.shown(blocks)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self._known(errors.scalar_conversion, "format"), spec) if spec else str(self)


class DeviceTrace(JaxprTrace):
    """Writes the program of one device, for operands with values: `operands`, cut by `in_specs`."""
    __slots__ = ("operands", "in_specs", "mesh", "manual", "checked", "live", "known", "done")

    def __init__(self, name: str, operands: Sequence[Any], in_specs: Sequence[PartitionSpec], mesh: Mesh,
                 manual: tuple[str, ...], checked: bool) -> None:
        super().__init__(state.trace, name)
        self.operands, self.in_specs = operands, in_specs
        self.mesh, self.manual, self.checked = mesh, manual, checked
        self.live: weakref.WeakValueDictionary[Atom, DeviceTracer] = weakref.WeakValueDictionary()
        # their blocks, stacked along a new axis: arrays over the mesh
        self.known: dict[Atom, Any] = {}
        self.done = 0                                   # how many equations have run, only for their values

    what = property(lambda self: f"shard_map of {self.name}")

    def _own(self, x: Any) -> Any:
        if type(x) is not JaxprTracer:
            return x
        self.live[x._var] = tracer = DeviceTracer(self, x._var, x._source)
        return tracer

    def input(self, aval: ShapedArray) -> Any:
        return self._own(super().input(aval))

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        found = super().process(primitive, args, params)
        return [self._own(x) for x in found] if primitive.multiple_results else self._own(found)

    def splice(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        return [self._own(x) for x in super().splice(jaxpr, args)]

    def _spec(self, aval: ShapedArray) -> PartitionSpec:
        """The spec of the blocks of a value, stacked: over the axes along which it varies."""
        return PartitionSpec(tuple(a for a in self.manual if not self.checked or a in aval.vma) or None)

    def _program(self, eqns: Sequence[Eqn], outvars: Sequence[Any],
                 stacked: bool) -> tuple[Jaxpr, list[Any], list[PartitionSpec]]:
        """(a program of these equations, its operands, their specs); `stacked` results get an axis."""
        base = Jaxpr((), (), (), eqns, outvars, self.name)
        made = {v for eqn in eqns for v in eqn.outvars}
        free = dict.fromkeys(v for atoms in (*(eqn.invars for eqn in eqns), outvars) for v in atoms
                             if type(v) is not Literal and v not in made)
        given: dict[Atom, Any] = {v: (x, spec) for v, x, spec in zip(
            self.invars, self.operands, self.in_specs)}
        given |= {v: (x, PartitionSpec()) for x, v in self._held()}
        given |= {v: (x, self._spec(v.aval)) for v, x in self.known.items() if v not in given}
        base = base.replace(invars=tuple(free))
        inside = [v in self.known and v not in self.invars for v in free]

        def fun(*xs: Any) -> list[Any]:
            outs = eval_jaxpr(base, (), *[reshape(x, x.shape[1:]) if i else x for x, i in zip(xs, inside)])
            return [reshape(x, (1, *aval_of(x).shape)) for x in outs] if stacked else outs
        avals = [v.aval.update(shape=(1, *v.aval.shape)) if i else v.aval for v, i in zip(free, inside)]
        found = [given[v] for v in free]
        return trace_closed(fun, avals, self.name), [x for x, _ in found], [spec for _, spec in found]

    def _held(self) -> list[tuple[Any, Var]]:
        closed = super().finish([])
        return list(zip(closed.consts, closed.constvars))

    def blocks(self, var: Atom) -> list[np.ndarray] | None:
        """The value on each device, NumPy arrays in the order of the manual axes; None if it is not known."""
        current = state.trace
        while current is not self:
            # of jit in here, where values are not read
            if current is None or isinstance(current, JaxprTrace):
                return None
            current = current.parent
        if var not in self.known and not self._advance(var):
            return None
        stacked = self.known[var]
        if not stacked.is_fully_addressable:
            return None
        found, spec = np.asarray(stacked), self._spec(var.aval)
        sizes = [self.mesh.shape[a] if a in spec.axes(0) else 1 for a in self.manual]
        counts = [self.mesh.shape[a] for a in self.manual]
        found = found.reshape(*sizes, *found.shape[1:])
        shape = found.shape[len(counts):]
        return list(np.broadcast_to(found, (*counts, *shape)).reshape(-1, *shape))

    def _advance(self, var: Atom) -> bool:
        """Run what was written so far, and know `var` and all that is still held."""
        runs = self.parent is EVAL
        eqns = self.eqns[self.done:]
        if not runs and any(eqn.effects for eqn in eqns):
            return False
        unknown = [v for v in self.live if v not in self.known and v not in self.invars]
        wanted = list(dict.fromkeys([var, *unknown]))
        program, operands, specs = self._program(eqns, wanted, True)
        operands = [x.concrete() if isinstance(x, Tracer) else x for x in operands]
        if any(x is None for x in operands):
            return False
        program = dce(program)[0]
        with entering(EVAL):
            found = shard_map_p.bind(*operands, jaxpr=program, mesh=self.mesh, manual=self.manual,
                                     checked=self.checked, in_specs=tuple(specs),
                                     out_specs=tuple([self._spec(v.aval) for v in wanted]))
        self.known = {v: x for v, x in self.known.items() if v in self.live} | dict(zip(wanted, found))
        if runs:
            self.eqns = []
        self.done = len(self.eqns)
        return True

    def shown(self, blocks: list[np.ndarray]) -> str:
        """The blocks as text, each under its device."""
        rest = [i for i, a in enumerate(self.mesh.axis_names) if a not in self.manual]
        order = [self.mesh.axis_names.index(a) for a in self.manual]
        devices = self.mesh.devices.transpose(*order, *rest).reshape(len(blocks), -1)[:, 0]
        places = np.ndindex(*[self.mesh.shape[a] for a in self.manual])
        names = f"({', '.join(self.manual)},)"
        return "\n".join(f"On {d.platform}:{d.id} at mesh coordinates {names} = {at}:\n{block}\n"
                         for d, at, block in zip(devices, places, blocks))

    def rest(self, outputs: Sequence[Any]) -> tuple[Jaxpr, list[Any], list[PartitionSpec]]:
        """(what is left to run as a program without constvars, its operands, their specs)."""
        return self._program(self.eqns, [self.atom(x) for x in outputs], False)


def trace(fun: Callable[..., Any], avals: Sequence[ShapedArray], name: str, operands: Sequence[Any],
          in_specs: Sequence[PartitionSpec], mesh: Mesh, manual: tuple[str, ...],
          checked: bool) -> tuple[Jaxpr, list[Any], list[PartitionSpec]]:
    """(the program of a device, its operands, their specs) of a function of flat lists, which sees values."""
    writer = DeviceTrace(name, operands, in_specs, mesh, manual, checked)
    found = writer.run(lambda: writer.rest(fun(*[writer.input(aval) for aval in avals])))
    leaks.check(writer)
    return found


def visible(leaves: Sequence[Any]) -> bool:
    """Are all these values there?"""
    return all(not isinstance(x, Tracer) or x.concrete() is not None for x in leaves)
