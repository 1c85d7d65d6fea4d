"""The time of a program's run by operation, by line of the user's and by named scope.

Measured times are those of instructions of the optimized program.  A fusion is one instruction: its time is
its, however many lines it computes, and goes to the line and the scopes that XLA names for it.
"""
import dataclasses
import functools
import re
import statistics
from collections import Counter, defaultdict

from .. import hlo_text
from ..planning import estimates, hlo_costs
from . import time_report, trace_events
from .scopes import scope_of


@dataclasses.dataclass
class Operation:
    """What an instruction of the optimized program took in a run, on one device.

    Attributes:
        name, opcode: of the instruction.
        module: the HLO module that it is in.
        seconds: without what runs inside of it; the mean over devices.
        calls: how often it began.
        source: the line, ("path/train.py", 12), or None.
        path: of named scopes and the operation; "" where there is none.
        scopes, passed: the scopes that the user named; "forward", "backward", "recomputed" or "other".
        lines: how many lines of the user's it computes.
        flops, bytes: of all calls, as planning counts them; None where they are not known.
        least: seconds that all calls take at least at the chip's peak rates; None where there are none.
        bound: what binds that: "matrix unit", "vector unit" or "memory".
    """
    name: str
    opcode: str
    module: str
    seconds: float
    calls: float
    source: tuple | None = None
    path: str = ""
    scopes: tuple = ()
    passed: str = "other"
    lines: int = 1
    flops: int | None = None
    bytes: int | None = None
    least: float | None = None
    bound: str | None = None

    @property
    def roofline(self):
        """The share of the roofline that it reaches; None where that is not known."""
        return self.least / self.seconds if self.least and self.seconds else None


@dataclasses.dataclass(repr=False)
class Profile:
    """Where the time of a run went.  Printed, it is tables by line, by scope and by operation.

    Attributes:
        name: the function's.
        device: its kind of device; `devices` are so many.
        seconds: of the run that the times are of, the fastest of `runs`, which has all of them.
        operations: the Operations, the slowest first.
        unknown: {name: seconds} of what ran and is no instruction of the program.
        idle: seconds in which a device ran nothing: launching, waiting for arguments and for the host.
        chip: the Chip whose peak rates `least` and `bound` are by; None where it is not known.
        measured: are these rates not the maker's but measured here?
    """
    name: str
    device: str
    devices: int
    seconds: float
    runs: list
    operations: list
    unknown: dict
    idle: float
    chip: object = None
    measured: bool = False
    _view: object = None

    def by_line(self):
        """{("path/train.py", 12) or None: {pass: seconds}}, the slowest first."""
        return self._sums(lambda op: [op.source])

    def by_scope(self):
        """{(scope, scope inside of it, ...): {pass: seconds}}, each with what is in the scopes inside of it;
        () is the whole."""
        return self._sums(lambda op: [op.scopes[:n] for n in range(len(op.scopes) + 1)])

    def by_pass(self):
        """{"forward", "backward", "recomputed" or "other": seconds}."""
        total = Counter()
        for op in self.operations:
            total[op.passed] += op.seconds
        return dict(total)

    def _sums(self, keys):
        found = defaultdict(Counter)
        for op in self.operations:
            for key in keys(op):
                found[key][op.passed] += op.seconds
        return dict(sorted(((key, dict(sums)) for key, sums in found.items()),
                           key=lambda item: -sum(item[1].values())))

    def view(self, path=None):
        """The program's page, as `Compiled.view` makes it, with the times in it.

        Args:
            path: a file to save the page in.
        """
        return self._view(path, self)

    def as_dict(self):
        """For JSON."""
        return {"function": self.name, "device": self.device, "devices": self.devices,
                "seconds": self.seconds, "runs": self.runs, "idle": self.idle, "unknown": self.unknown,
                "operations": [dataclasses.asdict(op) | {"roofline": op.roofline} for op in self.operations]}

    def __str__(self):
        return time_report.table(self)

    __repr__ = __str__


def profile_of(name, text, profile_data, devices, chip, measured=False, view=None):
    """The Profile of the fastest run that a ProfileData has.

    Args:
        text: the optimized HLO of its program.
        profile_data: taken while it ran, each run in an annotation of the name `trace_events.RUN`.
        chip: the Chip of peak rates, or None; `measured`: are they measured?
        view: makes the page.
    Raises:
        RuntimeError: where the profile has no run of the program.
    """
    program = _Program(text)
    found = trace_events.runs(profile_data)
    if not found:
        raise RuntimeError(f"profile: the profile of {name} has no run in it: jaxlib's profiler recorded no "
                           "annotations. Is TF_CPP_MIN_VLOG_LEVEL or another profiler at work?")
    run = min(found, key=lambda run: run.end - run.start)
    seconds, calls, busy, ran = Counter(), Counter(), [], set()
    for interval in run.intervals:
        ran.add(interval.device)
    for device in sorted(ran):
        own = [program.identified(i) for i in run.intervals if i.device == device]
        times, ran_for, began = trace_events.exclusive(own, program.inside)
        busy.append(ran_for)
        seconds.update(times)
        calls.update(began)
    count = max(len(ran), 1)
    operations, unknown = [], {}
    for key, nanoseconds in seconds.most_common():
        if key in program.lines:
            operations.append(program.operation(key, nanoseconds / count / 1e9, calls[key] / count, chip))
        else:
            unknown[key[1]] = unknown.get(key[1], 0) + nanoseconds / count / 1e9
    whole = (run.end - run.start) / 1e9
    idle = whole - statistics.fmean(busy or [0]) / 1e9
    return Profile(name, devices[0].device_kind, len(devices), whole,
                   [(each.end - each.start) / 1e9 for each in found], operations, unknown, idle, chip,
                   measured, view)


class _Program:
    """The instructions of an optimized HLO by (module, name)."""

    def __init__(self, text):
        self.modules = {module.name: module for module in hlo_text.modules(text)}
        self.lines = {(name, line.name): line for name, module in self.modules.items()
                      for line in module.lines}
        self.costs = {name: hlo_costs.by_instruction(module) for name, module in self.modules.items()}
        self.kernels = {re.sub("[.-]", "_", name): (module, name) for module, name in self.lines}
        self.inside = functools.cache(self.inside)

    def identified(self, interval):
        """An Interval with its instruction, where it says none but has the name of its kernel."""
        if interval.op is None and interval.name in self.kernels:
            module, op = self.kernels[interval.name]
            return interval._replace(module=module, op=op)
        return interval

    def inside(self, module, name):
        """The names of the instructions that run an instruction: loops, branches, calls."""
        line = self.lines.get((module, name))
        found = set()
        for caller in self.modules[module].callers.get(line.computation, ()) if line else ():
            found |= {caller.name} | self.inside(module, caller.name)
        return found

    def origin(self, module, line):
        """(its line in the user's program, its path of scopes, the number of its lines) of an instruction.

        What XLA put into a program without saying why belongs to what uses it, or to the loop that it is in.
        """
        places = _places(module, line)
        lines = len({where for where, _ in places if where}) or 1
        waiting, seen = [line], {line.name}
        while not places and waiting:
            for user in module.users.get((line.computation, waiting.pop(0).name), ()):
                if user.name not in seen:
                    seen.add(user.name)
                    waiting.append(user)
                    places = places or _places(module, user)
        if places:
            return *places[0], lines
        callers = module.callers.get(line.computation)
        return (*self.origin(module, callers[0])[:2], 1) if callers else (None, None, 1)

    def operation(self, key, seconds, calls, chip):
        name, line = key[0], self.lines[key]
        module = self.modules[name]
        source, path, lines = self.origin(module, line)
        scopes, passed = scope_of(path)
        made = Operation(line.name, line.opcode, name, seconds, calls, source, path or "", scopes, passed,
                         lines)
        if line.opcode in ("while", "conditional", "call"):
            return made         # its time is that in which nothing of it runs
        costs = self.costs[name].get(line.name, hlo_costs.Costs())
        if costs.opaque:
            return made
        made.flops, made.bytes = round(costs.flops * calls), round(costs.bytes * calls)
        if chip is not None:
            times = estimates.times_of(chip, costs.products, costs.elementwise, costs.bytes)
            bound = max(times, key=times.get)
            if times[bound]:
                made.bound, made.least = bound, calls * times[bound]
        return made


def _places(module, line):
    """What an instruction, and a fusion's inside, says of lines and paths: pairs, its own first."""
    parts = [line]
    if line.opcode == "fusion":
        parts += reversed(module.computations.get(line.called("calls"), {}).values())
    found = (module.location(part) for part in parts if hlo_text.METADATA.search(part.rest))
    return [place for place in found if any(place)]
