"""plan: what a program needs on chips that need not be here, how fast it can be, and how to split it."""
from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...core.errors import check_callable
from ...core.pytrees import pytree
from ...distributed import topology_targets
from ...inspection.planning import estimates, plan_report
from ...placement.make_mesh import make_mesh
from ...runtime.devices import client
from ...sharding.mesh import AxisType, Mesh, set_mesh
from ...sharding.named import NamedSharding
from ...sharding.single import SingleDeviceSharding
from ...sharding.spec import PartitionSpec
from ..flat import abstract
from ..jit import jit
from ..stages import struct_of


@dataclasses.dataclass
class Row:
    """What came out for one mesh of one target.

    Attributes:
        target: the name of the chips, "v5e:4x4".
        mesh: {axis: size}; {} for one device.
        estimate: the Estimate; None where there is none.
        error: why there is none, in words.
        seconds: what making it took.
    """
    target: str
    mesh: dict[str, int]
    estimate: estimates.Estimate | None = None
    error: str | None = None
    seconds: float = 0.0

    @property
    def order(self) -> tuple[Any, ...]:
        """What rows are sorted by: those that fit, of the least bound first, of equal ones that of the least
        work in all; then those that need the least memory."""
        if self.estimate is None:
            return (2,)
        if not self.estimate.fits:
            return 1, self.estimate.memory["needed"]
        return 0, self.estimate.seconds, sum(self.estimate.times.values())


@dataclasses.dataclass(repr=False)
class Plan:
    """What `plan` gives; printed, a table for each target.

    Attributes:
        name: the function's.
        targets: {name: its devices}.
        rows: the Rows, by target, in each the best mesh first.
        per_step: how many examples or tokens one run takes; None where `batch` does not say.
        unit: "examples" or "tokens".
    """
    name: str
    targets: dict[str, Sequence[Any]]
    rows: list[Row]
    per_step: int | None = None
    unit: str = "examples"

    @property
    def best(self) -> Row | None:
        """The Row with the least lower bound of all that fit, or None."""
        fitting = [row for row in self.rows if row.order[0] == 0]
        return min(fitting, key=lambda row: row.order, default=None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"function": self.name, "per_step": self.per_step, "unit": self.unit, "rows": [
            {"target": row.target, "mesh": row.mesh, "error": row.error, "seconds": row.seconds,
             "estimate": row.estimate and row.estimate.as_dict()} for row in self.rows]}

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2)

    def to_html(self) -> str:
        """One page that needs nothing else."""
        return plan_report.html(self)

    def __str__(self) -> str:
        return plan_report.table(self)

    __repr__ = __str__


def plan(fun: Callable[..., Any], *types: Any, on: Any = None, mesh: Any = "auto", in_specs: Any = None,
         out_specs: Any = None, batch: str | None = None, quick: bool = False,
         progress: Callable[[str], object] | None = None) -> Plan:
    """What `fun` needs of each chip and how fast it can be, for each way to make a mesh of the chips.

    The program is compiled for each mesh and looked into; nothing is run, and the chips need not be here.
    What was compiled once is kept on disk with other compiled programs.  Times are lower bounds from peak
    rates: no kernel is measured, nothing is tuned.

    Args:
        fun: a function, or what `jit` made of one.
        types: its arguments: ShapeDtypeStructs, arrays, pytrees of them.  Of their shardings the
            PartitionSpecs count.
        on: names of topologies, as `topologies.get_topology_desc` has them, or "cpu:8"; or lists of
            devices.  `devices()` by default.
        mesh: "auto", all factorizations of the mesh axes that the specs name; "data,model", those of these
            axes; "data=4,model=2" or {"data": 4, "model": 2}, this one; or a list of such.  Over several
            hosts or slices, the order of axes is the given one where sizes are given, otherwise the best.
        in_specs: PartitionSpecs of the arguments, a tuple of pytrees, None for what the compiler chooses.
        out_specs: PartitionSpecs of the results.
        batch: "3:0" for one with as many examples as dimension 0 of argument 3 has; "3:0,1", tokens in two.
        quick: do not compile; the traced program alone is looked into.
        progress: called with a line before each program is compiled.
    Returns:
        A Plan.
    Raises:
        ValueError: for a name or a mesh that is none, or where no mesh works.

    >>> x, w = jax.ShapeDtypeStruct((64, 32), "float32"), jax.ShapeDtypeStruct((32, 16), "float32")
    >>> found = jax.plan(lambda x, w: jnp.tanh(x @ w), x, w, on="cpu:1", in_specs=(jax.P("data"), None))
    >>> found.best.estimate.flops["float32 in one pass"], found.best.estimate.memory["arguments"]
    (65536, 10240)
    """
    program = _Program(fun, types, in_specs, out_specs)
    count, unit = _per_step(batch, types)
    targets = dict(_targets(on))
    asked = list(_cases(program, targets, mesh))
    if not asked:
        raise ValueError("plan: mesh=[] names no mesh; 'auto' makes all of them")
    rows: list[Row] = []
    failures = []
    for name, sizes, fixed in asked:
        if progress:
            progress(f"{name} {' '.join(f'{a}={n}' for a, n in sizes.items()) or 'one device'} "
                     f"({len(rows) + 1} of {len(asked)})")
        start, row = time.perf_counter(), Row(name, sizes)
        try:
            row.mesh = sizes if fixed else program.best_order(sizes, targets[name])
            row.estimate = program.estimate(row.mesh, targets[name], quick)
        except (ValueError, RuntimeError) as error:
            row.error = str(error)
            failures.append(error)
        row.seconds = time.perf_counter() - start
        rows.append(row)
    if failures and len(failures) == len(rows) and not any("RESOURCE_EXHAUSTED" in str(e) for e in failures):
        raise failures[0]
    names = list(targets)
    rows.sort(key=lambda row: (names.index(row.target), *row.order))
    return Plan(getattr(fun, "__name__", "the function"), targets, rows, count, unit)


def cases(fun: Callable[..., Any], types: Sequence[Any], on: Any, mesh: Any, in_specs: Any,
          out_specs: Any = None) -> Iterator[tuple[str, dict[str, int]]]:
    """(target, mesh) of each program that `plan` compiles, in its order."""
    program, targets = _Program(fun, types, in_specs, out_specs), dict(_targets(on))
    for name, sizes, fixed in _cases(program, targets, mesh):
        try:
            yield name, sizes if fixed else program.best_order(sizes, targets[name])
        except (ValueError, RuntimeError):      # plan says it
            yield name, sizes


def _cases(program: _Program, targets: Mapping[str, Sequence[Any]],
           mesh: Any) -> Iterator[tuple[str, dict[str, int], bool]]:
    """(target, mesh, is the order of its axes the user's?) for each that is asked for."""
    for name, devices in targets.items():
        for sizes, fixed in _meshes(mesh, _axes_of(program.specs), devices):
            yield name, sizes, fixed


class _Program:
    """A function with the types of its arguments, and how they are split."""

    def __init__(self, fun: Any, types: Sequence[Any], in_specs: Any, out_specs: Any) -> None:
        check_callable(fun, "and its arguments behind it")
        self.leaves, self.structure = pytree.tree_flatten(tuple(types))
        self.specs = _specs(self.leaves, self.structure, in_specs)
        self.fun, self.out_specs = fun, out_specs

    def estimate(self, sizes: dict[str, int], devices: Sequence[Any], quick: bool) -> estimates.Estimate:
        """Trace, lower and, unless `quick`, compile for one mesh; the Estimate."""
        fun, mesh = self.fun, _mesh(sizes, devices)
        alone = SingleDeviceSharding(devices[0])
        args = self.structure.unflatten(
            [_typed(x, spec, mesh, alone) for x, spec in zip(self.leaves, self.specs)])
        if self.out_specs is not None and mesh is not None:
            shardings = pytree.tree_map(lambda spec: spec and NamedSharding(mesh, spec), self.out_specs,
                                        is_leaf=_is_spec)
            fun = jit(fun, out_shardings=shardings)
        if not hasattr(fun, "trace"):
            fun = jit(fun)
        with set_mesh(mesh) if mesh is not None else contextlib.nullcontext():
            return fun.trace(*args).lower().estimate(quick=quick)

    def best_order(self, sizes: dict[str, int], devices: Sequence[Any]) -> dict[str, int]:
        """The mesh with its axes in the order in which links take the least time.

        What is sent along each axis is that of the traced program, for any order: over several hosts or
        slices, the axis that sends the most is to stay within one.
        """
        chip = estimates.chip_of(devices[0])
        near = chip is None or len(estimates.groups(chip, devices)) == 1
        if near or sum(n > 1 for n in sizes.values()) < 2:
            return sizes
        sent = self.estimate(sizes, devices, quick=True).sent
        orders = map(dict, itertools.permutations(sizes.items()))
        return min(orders, key=lambda order: estimates.links_time(chip, _mesh(order, devices), sent))


def _mesh(sizes: Mapping[str, int], devices: Sequence[Any]) -> Mesh | None:
    """Of these axes, which the compiler splits arrays over; None for one device."""
    if not sizes:
        return None
    return make_mesh(tuple(sizes.values()), tuple(sizes), (AxisType.Auto,) * len(sizes), devices=devices)


def _typed(x: Any, spec: Any, mesh: Mesh | None, alone: Any) -> Any:
    """The type of an argument with its sharding; what is none, as it is."""
    try:
        aval = abstract(x)
    except TypeError:       # a static argument, or a mistake that tracing tells
        return x
    if mesh is None:
        return struct_of(aval, alone)
    return struct_of(aval, NamedSharding(mesh, spec or PartitionSpec()))


# --- what is asked for

def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _specs(leaves: Sequence[Any], structure: Any, in_specs: Any) -> list[Any]:
    """For each leaf its PartitionSpec, or None."""
    if in_specs is not None:
        return list(pytree.flatten_axes("plan: in_specs", structure, tuple(in_specs)))
    return [getattr(getattr(x, "sharding", None), "spec", None) for x in leaves]


def _axes_of(specs: Sequence[Any]) -> list[str]:
    """The mesh axes that PartitionSpecs name, in their order."""
    found: dict[str, None] = {}
    for spec in specs:
        for entry in filter(None, spec or ()):
            found.update(dict.fromkeys(entry if isinstance(entry, tuple) else (entry,)))
    return list(found)


def _targets(on: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """(name, devices) of each of `on`."""
    if on is None:
        devices = client.devices()
        yield f"{devices[0].platform}:{len(devices)}", devices
        return
    if not isinstance(on, (str, Iterable)):
        raise TypeError(f"plan: on={on!r:.60} is neither names of chips, as 'v5e:4x4', nor devices")
    names = [on] if isinstance(on, str) else list(on)
    if names and hasattr(names[0], "device_kind"):
        names = [names]
    if not names:
        raise ValueError('plan: on=[] names no chips; say on=["v5e:4x4"]')
    for name in names:
        if not isinstance(name, str):
            if not isinstance(members := getattr(name, "devices", name), Iterable):
                raise TypeError(f"plan: on={on!r:.60}: {name!r:.60} is neither a name of chips, as "
                                "'v5e:4x4', nor a list of devices")
            devices = list(members)
            yield getattr(name, "name", f"{devices[0].platform}:{len(devices)}"), devices
        elif name.partition(":")[0] == "cpu":
            yield name, _cpus(name)
        else:
            yield name, topology_targets.get_topology_desc(name).devices


def _cpus(name: str) -> Sequence[Any]:
    _, colon, text = name.partition(":")
    if colon and not text.isdigit():
        raise ValueError(f"plan: on={name!r}: behind cpu: is a number of devices, as in cpu:8")
    devices = client.devices("cpu")
    count = int(text or len(devices))
    if not 0 < count <= len(devices):
        raise ValueError(f"plan: on={name!r}: there are {len(devices)} CPU devices; "
                         "config.update('jax_num_cpu_devices', n), before any is used, gives more")
    return devices[:count]


def _meshes(asked: Any, axes: Sequence[str], devices: Sequence[Any]) -> Iterator[tuple[dict[str, int], bool]]:
    """The meshes of `mesh=`, each {axis: size}, {} for a program of one device; and whether the order of axes
    is the user's."""
    count = len(devices)
    for one in asked if isinstance(asked, (list, tuple)) else [asked]:
        if isinstance(one, Mapping):
            sizes = dict(one)
            if not all(isinstance(n, int) and n > 0 for n in sizes.values()):
                raise TypeError(f"plan: mesh {sizes}: sizes are positive integers")
            if (needed := math.prod(sizes.values())) > count:
                raise ValueError(f"plan: mesh {sizes} needs {needed} devices and there are {count}")
            yield sizes, True
        elif not isinstance(one, str):
            raise TypeError(f"plan: mesh={one!r:.60} is neither \"auto\", \"data,model\", "
                            "\"data=4,model=2\" nor a dict of sizes")
        elif one == "auto":
            yield from ((sizes, False) for sizes in _factorizations(count, axes))
        elif "=" in one:
            found = [re.fullmatch(r"\s*([A-Za-z_]\w*)=([1-9]\d*)\s*", p) for p in one.split(",")]
            sizes = {part[1]: int(part[2]) for part in found if part}
            if len(sizes) < len(found):
                raise ValueError(f"plan: mesh {one!r} is not of the form data=4,model=2, or names an axis "
                                 "twice")
            yield from _meshes(sizes, axes, devices)
        else:
            names = [name.strip() for name in one.split(",")]
            if not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
                raise ValueError(f"plan: mesh {one!r} is neither auto nor names of axes, as data,model, nor "
                                 "sizes, as data=4,model=2")
            yield from ((sizes, False) for sizes in _factorizations(count, names))


def _factorizations(count: int, axes: Sequence[str]) -> Iterator[dict[str, int]]:
    """Every way to write `count` as a product over the axes, the first axis falling."""
    if not axes:
        yield {}
        return
    first, *others = axes
    for size in (n for n in range(count, 0, -1) if count % n == 0):
        if others:
            for rest in _factorizations(count // size, others):
                yield {first: size, **rest}
        elif size == count:
            yield {first: size}


def _per_step(batch: str | None, types: Sequence[Any]) -> tuple[int | None, str]:
    """(how many, of what) of `batch`."""
    if batch is None:
        return None, "examples"
    found = re.fullmatch(r"(\d+):(\d+(?:,\d+)*)", str(batch).replace(" ", ""))
    dims = list(map(int, found[2].split(","))) if found else []
    if not found or int(found[1]) >= len(types):
        raise ValueError(f"plan: batch={batch!r} is not of the form ARGUMENT:DIMENSION with one of the "
                         f"{len(types)} arguments, as 3:0, or 3:0,1 for tokens")
    argument = types[int(found[1])]
    shape = getattr(argument, "shape", None)
    if shape is None or max(dims) >= len(shape):
        raise ValueError(f"plan: batch={batch!r}: argument {found[1]} is "
                         f"{'no array' if shape is None else f'of shape {tuple(shape)}'}")
    return math.prod(shape[d] for d in dims), "tokens" if len(dims) > 1 else "examples"
