"""What a program needs on a chip, and how fast it can be: memory, operations, communication, rooflines.

A lower bound: every part of the chip at its peak rate, all of them at the same time (Williams, Waterman and
Patterson, "Roofline: an insightful visual performance model for multicore architectures", 2009).  Nothing is
run.
"""
import dataclasses
import math
from collections import Counter

from ...runtime.devices import chips
from .. import communication, hlo_text
from . import hlo_costs, hlo_memory, plan_report

# One of several CPU devices of this process, whose rates are not known: with it meshes compare.
NOMINAL_CPU = chips.Chip(
    name="cpu", kind="cpu", platform="cpu", memory=1 << 62, bandwidth=10e9, vector=10e9, cores=1, torus=0,
    peak={"float32": 50e9, "float64": 25e9, "bfloat16": 50e9, "float16": 50e9, "int8": 50e9},
    link_bandwidth=2.5e9, network=None,
    sources={"memory bandwidth peak vector cores link_bandwidth torus network": "nominal"})
UNKNOWN_LOOPS = "loops whose length depends on values count once"


@dataclasses.dataclass(frozen=True)
class Program:
    """What is kept of a compiled program: all that an estimate is made of.

    Attributes:
        text: its optimized HLO.
        memory: bytes of "arguments", "results", "aliases" (results in the memory of arguments) and
            "temporaries", as the compiler says.
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
    """What one run of a program needs of each chip.  Printed, it is a table.

    Attributes:
        chip: the Chip of the table; None where the device is in none.
        mesh: {mesh axis: size}; {} for one device.
        source: "compiled", or "traced" for one that is made without compiling.
        memory: bytes of "arguments", "results", "aliases" (results in the memory of arguments) and
            "temporaries"; "needed", all together; "chip", what the chip has.
        at_peak: the ten largest values of when most is in memory: dicts of "bytes", "type", "kind", "name",
            "where".
        peak: the bytes of all that is in memory then.
        flops: {dtype: FLOPs of matrix products}.
        elementwise: other operations on elements.
        bytes: to and from memory.
        sent: {(kind of collective, mesh axes): bytes that the chip sends}.
        times: seconds that each part of the chip needs at its peak rate: "matrix unit", "vector unit" (where
            the table has it), "memory", "links".
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
            "sent": [{"kind": kind, "axes": axes, "bytes": n} for (kind, axes), n in self.sent.items()],
            "times": self.times, "seconds": self.seconds, "bound": self.bound, "notes": self.notes}


def estimate(program, devices, mesh=None):
    """The Estimate of a Program for `devices` over `mesh`, or for one device."""
    costs, sent, largest, unknown = hlo_costs.Costs(), Counter(), hlo_memory.Peak(0, []), 0
    for module in hlo_text.modules(program.text):
        costs.add(hlo_costs.costs(module), module.calls)
        largest = max(largest, hlo_memory.peak(module), key=lambda peak: peak.bytes)
        for c in communication.of_module(module, mesh) if mesh is not None else ():
            unknown += c.trips is None
            sent[c.kind, _axes_text(c.axes)] += _sent_bytes(c, mesh) * (1 if c.trips is None else c.trips)
    notes = [f"{name}: {count} calls of a library, which count as no operations"
             for name, count in costs.opaque.items()]
    if costs.unknown_loops or unknown:
        notes.append(UNKNOWN_LOOPS)
    values = [{"bytes": v.bytes, "type": v.shape, "kind": v.kind, "name": v.name, "where": v.where}
              for v in largest.values[:10]]
    return assembled(devices, mesh, "compiled", program.memory, values, largest.bytes, costs.products,
                     costs.elementwise, costs.bytes, sent, notes)


def assembled(devices, mesh, source, memory, at_peak, peak, flops, elementwise, moved, sent, notes):
    """The Estimate of these counts: the memory summed up, and the times."""
    chip, times = chip_of(devices[0]), {}
    needed = memory["arguments"] + memory["results"] - memory["aliases"] + memory["temporaries"]
    memory = {**memory, "needed": needed, "chip": chip.memory if chip else 0}
    if chip:
        times = times_of(chip, flops, elementwise, moved)
        times["links"] = links_time(chip, mesh, sent)
    else:
        notes = [*notes, f"no rates are known for {devices[0].device_kind}: no times"]
    shape = dict(zip(mesh.axis_names, mesh.axis_sizes)) if mesh is not None else {}
    return Estimate(chip, shape, source, memory, at_peak, peak, dict(flops), elementwise, moved, dict(sent),
                    times, notes)


def times_of(chip, flops, elementwise, moved):
    """Seconds that the parts of a chip need at their peak rates, without its links."""
    times = {"matrix unit": sum(count / rate(chip, dtype) for dtype, count in flops.items())}
    if chip.vector:
        times["vector unit"] = elementwise / chip.vector
    return times | {"memory": moved / chip.bandwidth}


def chip_of(device):
    """The Chip of a device; the nominal one for the CPU, None for one that is not in the table."""
    return NOMINAL_CPU if device.platform == "cpu" else chips.of_device(device)


def rate(chip, dtype):
    """FLOP/s of products of a dtype.

    Float32 in one pass is what compilers make of float32 where no precision is requested: bfloat16 on TPUs,
    tf32 on GPUs that have it.
    """
    if dtype.endswith(hlo_costs.ONE_PASS):
        return chip.peak_of({"tpu": "bfloat16", "cuda": "tf32"}.get(chip.platform, "float32"))
    try:
        return chip.peak_of(dtype)
    except ValueError:          # no unit multiplies it
        return chip.vector or chip.peak_of("float32")


def _axes_text(axes):
    """The mesh axes of a collective as one text; "?" where they are not known."""
    return "?" if axes is None else "+".join(axes)


def _sent_bytes(collective, mesh):
    """What a device sends for a Collective."""
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes))
    n = math.prod(sizes.values() if collective.axes is None else [sizes[a] for a in collective.axes])
    return int(collective.bytes * ring_share(collective.kind, n))


def ring_share(kind, n):
    """Bytes sent for each byte of a collective's result, by a device of n in a ring (Thakur, Rabenseifner and
    Gropp, "Optimization of collective communication operations in MPICH", 2005)."""
    if n <= 1:
        return 0
    return {"all-reduce": 2 * (n - 1) / n, "all-gather": (n - 1) / n, "reduce-scatter": n - 1,
            "all-to-all": (n - 1) / n}.get(kind, 1)


def links_time(chip, mesh, sent):
    """Seconds that the links of a chip need at their peak rates for `sent`, {(kind, mesh axes): bytes}."""
    return sum(count / axis_bandwidth(chip, mesh, axes) for (_, axes), count in sent.items())


def groups(chip, devices):
    """How many of the devices are in each pod or host, between which what is sent goes over the network."""
    return Counter(getattr(d, "slice_index" if chip.torus else "process_index", 0) for d in devices)


def axis_bandwidth(chip, mesh, axes):
    """Bytes/s that a chip can send along mesh axes: over the links of the dimensions of the torus that they
    run along, and where they join hosts or pods, over the network, of which each device of a host or pod has
    its share."""
    names = axes.split("+")
    dims = [i for i, name in enumerate(mesh.axis_names) if name in names] or range(len(mesh.axis_names))
    group = mesh.devices[tuple(slice(None) if i in dims else 0 for i in range(mesh.devices.ndim))].reshape(-1)
    bandwidth = chip.link_bandwidth
    if chip.torus:
        along = sum(len({d.coords[i] for d in group}) > 1 for i in range(len(group[0].coords)))
        bandwidth *= min(1, max(along, 1) / chip.torus)
    near = groups(chip, group)
    if len(near) > 1 and chip.network:
        bandwidth = min(bandwidth, chip.network * max(near.values()))
    return bandwidth
