"""What a program needs on a chip, and how fast it can be: memory, operations, communication, rooflines.

A lower bound: every part of the chip at its peak rate, all of them at the same time (Williams, Waterman and
Patterson, "Roofline: an insightful visual performance model for multicore architectures", 2009).  Nothing is run.
"""
import dataclasses
import math
from collections import Counter

from ..runtime.devices import chips
from . import communication, hlo_costs, hlo_memory, hlo_text, plan_report

# Stands for one of several CPU devices of this process, whose rates are not known: it ranks, and times nothing.
NOMINAL_CPU = chips.Chip(
    name="cpu", kind="cpu", platform="cpu", memory=1 << 62, bandwidth=10e9, peak={"float32": 50e9, "float64": 25e9,
    "bfloat16": 50e9, "float16": 50e9, "int8": 50e9}, vector=10e9, cores=1, link_bandwidth=2.5e9, torus=0,
    network=None, sources={"memory bandwidth peak vector cores link_bandwidth torus network": "nominal"})


@dataclasses.dataclass(frozen=True)
class Program:
    """What is kept of a compiled program: all that an estimate is made of.

    Attributes:
        text: its optimized HLO.
        memory: bytes of "arguments", "results", "aliases" (results in the memory of arguments), "temporaries",
            as the compiler says.
        compile_seconds: that compiling took.
    """
    text: str
    memory: dict
    compile_seconds: float


def program_of(compiled, seconds=0.0):
    """The Program of a Compiled."""
    stats = compiled.memory_analysis()
    return Program(compiled.as_text(), {
        "arguments": stats.argument_size_in_bytes, "results": stats.output_size_in_bytes,
        "aliases": stats.alias_size_in_bytes, "temporaries": stats.temp_size_in_bytes}, seconds)


@dataclasses.dataclass(repr=False)
class Estimate:
    """What one run of a program needs of each chip.

    Attributes:
        chip: the Chip of the table; None where the device is in none.
        mesh: {mesh axis: size}; {} for one device.
        source: "compiled", or "traced" for one that is made without compiling.
        memory: bytes of "arguments", "results", "aliases", "temporaries", and "needed", that is arguments, results
            and temporaries without what is in the memory of arguments; "chip" is what the chip has.
        at_peak: what is in memory when most is, the largest values first: dicts of "bytes", "type", "kind", "name",
            "where".
        peak: bytes of all of them together.
        flops: {dtype: FLOPs of matrix products}.
        elementwise: other operations on elements.
        bytes: to and from memory.
        sent: {(kind of collective, mesh axes): bytes that the chip sends}.
        times: seconds that each part of the chip needs at its peak rate: "matrix unit", "vector unit" (where the
            table has it), "memory", "links".
        notes: what is not counted.
    """
    chip: chips.Chip | None
    mesh: dict
    source: str
    memory: dict
    at_peak: list
    peak: int
    flops: dict
    elementwise: int
    bytes: int
    sent: dict
    times: dict
    notes: list

    @property
    def fits(self):
        """Is the memory that it needs less than the chip's?"""
        return self.memory["needed"] <= self.memory["chip"]

    @property
    def seconds(self):
        """The lower bound of a run: the longest of `times`."""
        return max(self.times.values(), default=0.0)

    @property
    def bound(self):
        """What binds it: a key of `times`; None where there are none."""
        return max(self.times, key=self.times.get, default=None)

    def __str__(self):
        return plan_report.estimate_table(self)

    __repr__ = __str__

    def as_dict(self):
        """For JSON."""
        return {
            "chip": self.chip and self.chip.name, "mesh": self.mesh, "source": self.source, "fits": self.fits,
            "memory": self.memory, "peak": self.peak, "at_peak": self.at_peak, "flops": self.flops,
            "elementwise": self.elementwise, "bytes": self.bytes,
            "sent": [{"kind": kind, "axes": axes, "bytes": count} for (kind, axes), count in self.sent.items()],
            "times": self.times, "seconds": self.seconds, "bound": self.bound, "notes": self.notes}


def estimate(program, devices, mesh=None):
    """The Estimate of a Program.

    Args:
        program: the Program.
        devices: those it is for.
        mesh: over which they lie, or None.
    """
    chip = chip_of(devices[0])
    costs, sent, at_peak, unknown = hlo_costs.Costs(), Counter(), None, 0
    for module in hlo_text.modules(program.text):
        costs.add(hlo_costs.costs(module), module.calls)
        found = hlo_memory.peak(module)
        at_peak = found if at_peak is None or found and found.bytes > at_peak.bytes else at_peak
        if mesh is not None:
            for c in communication.of_module(module, mesh):
                unknown += c.trips is None
                sent[c.kind, axes_text(c.axes)] += sent_bytes(c, mesh) * (1 if c.trips is None else c.trips)
    notes = [f"{name}: {count} calls of a library, which count as no operations"
             for name, count in costs.opaque.items()]
    if costs.unknown_loops or unknown:
        notes.append("loops whose length depends on values count once")
    values = [{"bytes": v.bytes, "type": v.shape, "kind": v.kind, "name": v.name, "where": v.where}
              for v in (at_peak.values[:10] if at_peak else [])]
    return assembled(chip, devices, mesh, "compiled", dict(program.memory), values, at_peak.bytes if at_peak else 0,
                     dict(costs.products), costs.elementwise, costs.bytes, dict(sent), notes)


def assembled(chip, devices, mesh, source, memory, at_peak, peak, flops, elementwise, moved, sent, notes):
    """The Estimate of these counts: the memory summed up, and the times."""
    memory["needed"] = memory["arguments"] + memory["results"] - memory["aliases"] + memory["temporaries"]
    memory["chip"] = chip.memory if chip else 0
    times = {}
    if chip:
        times["matrix unit"] = sum(count / rate(chip, dtype) for dtype, count in flops.items())
        if chip.vector:
            times["vector unit"] = elementwise / chip.vector
        times["memory"] = moved / chip.bandwidth
        times["links"] = sum(count / axis_bandwidth(chip, mesh, axes) for (_, axes), count in sent.items())
    else:
        notes = [*notes, f"no rates are known for {devices[0].device_kind}: no times"]
    shape = dict(zip(mesh.axis_names, mesh.axis_sizes)) if mesh is not None else {}
    return Estimate(chip, shape, source, memory, at_peak, peak, flops, elementwise, moved, sent, times, notes)


def chip_of(device):
    """The Chip of a device; the nominal one for the CPU."""
    return NOMINAL_CPU if device.platform == "cpu" else chips.of_device(device)


def rate(chip, dtype):
    """FLOP/s of products of a dtype.  "float32 in one pass" is what compilers make of float32 where no precision is
    asked for: bfloat16 on TPUs, tf32 on GPUs that have it."""
    if dtype.endswith(_ONE_PASS):
        if chip.platform == "tpu":
            return chip.peak_of("bfloat16")
        return chip.peak_of("tf32" if "tf32" in chip.peak else "float32")
    try:
        return chip.peak_of(dtype)
    except ValueError:          # integers, say, on a chip that has no rate for them
        return chip.vector or chip.peak_of("float32")


_ONE_PASS = hlo_costs.ONE_PASS


def axes_text(axes):
    """The mesh axes of a collective as one text; "?" where they are not known."""
    return "?" if axes is None else "+".join(axes)


def sent_bytes(collective, mesh):
    """What a device sends, in a ring of the n devices of a group (Thakur, Rabenseifner and Gropp, "Optimization of
    collective communication operations in MPICH", 2005)."""
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes))
    n = math.prod(sizes.values() if collective.axes is None else [sizes[a] for a in collective.axes])
    return int(collective.bytes * ring_share(collective.kind, n))


def ring_share(kind, n):
    """Bytes sent for each byte of a collective's result, by a device of n."""
    if n <= 1:
        return 0
    return {"all-reduce": 2 * (n - 1) / n, "all-gather": (n - 1) / n, "reduce-scatter": n - 1,
            "all-to-all": (n - 1) / n}.get(kind, 1)


def axis_bandwidth(chip, mesh, axes):
    """Bytes/s that a chip can send along mesh axes: over the links of the torus dimensions that they run along, and
    where they join hosts or pods, over the network, which a group's devices of one host share the bytes of."""
    names = [] if axes == "?" else axes.split("+")
    dims = [mesh.axis_names.index(name) for name in names if name in mesh.axis_names] or list(
        range(len(mesh.axis_sizes)))
    group = mesh.devices[tuple(slice(None) if i in dims else 0 for i in range(mesh.devices.ndim))].reshape(-1)
    bandwidth = chip.link_bandwidth
    if chip.torus and all(getattr(d, "coords", None) is not None for d in group):
        along = sum(len({d.coords[i] for d in group}) > 1 for i in range(len(group[0].coords)))
        bandwidth *= min(1, max(along, 1) / chip.torus)
    houses = Counter(_house(chip, d) for d in group)
    if len(houses) > 1 and chip.network:
        bandwidth = min(bandwidth, chip.network * max(houses.values()))
    return bandwidth


def _house(chip, device):
    """What the links of a chip do not leave: a TPU's pod slice, a GPU's host."""
    return getattr(device, "slice_index", 0) if chip.torus else getattr(device, "process_index", 0)
