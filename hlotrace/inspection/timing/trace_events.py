"""A profile's events as the time that each HLO instruction took, without what ran inside of it.

What devices leave in a profile differs.  A CPU device's operations are events on the threads that ran them,
with the instruction in `hlo_op`, the module in `hlo_module` and the device in `device_ordinal`.  A loop or a
branch is an event around those in it.  An operation may go on after its event, on other threads: a second
event, `end: <operation>`, of the same number in `_c` as the first has in `_p`, says when it was done.  GPUs
have a plane each, `/device:GPU:0`, with a line for each stream; events are kernels and copies, one after the
other, and those of loops are not among them.  TPUs have a plane each, `/device:TPU:0`, with the line
`XLA Ops`: an event is an instruction, by its text, `%fusion.1 = ...`, those of loops around those in them.
Its module is an event around it on the line `XLA Modules`, `jit_step(1234)`.
"""
import math
import re
import warnings
from collections import Counter
from typing import NamedTuple

RUN = "hlotrace profile run"        # the annotation around a run
_DEVICE = re.compile(r"/device:([A-Z]+):(\d+)")


class Interval(NamedTuple):
    """When an instruction ran, in nanoseconds; `module` and `op` are None where the profile does not say."""
    start: float
    end: float
    device: int
    module: str | None
    op: str | None
    name: str


class Run(NamedTuple):
    """What ran between the start and the end of one run of the program."""
    start: float
    end: float
    intervals: list


def runs(profile_data):
    """The Runs of a ProfileData, in their order."""
    with warnings.catch_warnings():     # of jaxlib 0.12, which ends the process where it is an error
        warnings.simplefilter("ignore", DeprecationWarning)
        marks, found, ends = _read(profile_data)
    # a thread may say late, or when the profile has ended, that an operation is done: it was when the run was
    intervals = [Interval(start, end if mark is None else max(end, ends.get(mark, math.inf)), *rest)
                 for start, end, mark, *rest in sorted(found, key=lambda event: event[0])]
    return [Run(first, last, [i._replace(end=min(i.end, last)) for i in intervals if first <= i.start < last])
            for first, last in sorted(marks)]


def _read(profile_data):
    """(start and end of each run, operations as start, end, mark and the rest of an Interval, when those of
    a mark were done)."""
    marks, found, ends = [], [], {}
    for plane in profile_data.planes:
        device = _DEVICE.fullmatch(plane.name)
        if device and device[1] == "TPU":
            found += _tpu(plane, int(device[2]))
            continue
        for line in plane.lines:
            for event in line.events:
                if event.name == RUN:
                    marks.append((event.start_ns, event.end_ns))
                    continue
                stats = {name: value for name, value in event.stats if name is not None}
                if event.name.startswith("end: "):
                    ends[stats.get("_c")] = event.start_ns
                elif "hlo_op" in stats or device and line.name.startswith("Stream"):
                    number = int(device[2]) if device else stats.get("device_ordinal", 0)
                    found.append((event.start_ns, event.end_ns, stats.get("_p"), number,
                                  stats.get("hlo_module"), stats.get("hlo_op"), event.name))
    return marks, found, ends


def _tpu(plane, number):
    """The operations of a TPU's plane, as `_read` gives them."""
    lines = {line.name: list(line.events) for line in plane.lines}
    modules = [(m.start_ns, m.end_ns, m.name.partition("(")[0]) for m in lines.get("XLA Modules", ())]
    for event in lines.get("XLA Ops", ()):
        name = event.name.partition(" = ")[0].removeprefix("%")
        module = next((of for start, end, of in modules if start <= event.start_ns < end), None)
        yield event.start_ns, event.end_ns, None, number, module, name, name


def exclusive(intervals, inside):
    """(the nanoseconds of each instruction, those in which one ran, how often each began) on one device.

    An instruction that runs others takes the time in which none of them runs; where several run at a time,
    each takes an equal part of it.  So times add up to that in which any runs.

    Args:
        intervals: Intervals of one device.
        inside: (module, op) to the set of instructions that it is inside of.
    """
    times, calls, busy = Counter(), Counter(), 0.0
    calls.update(map(_key, intervals))
    changes = sorted((moment, begins, i) for i, each in enumerate(intervals) if each.end > each.start
                     for moment, begins in ((each.start, 1), (each.end, 0)))
    active, before = {}, None
    for moment, begins, i in changes:
        if active and moment > before:
            innermost = _innermost(active.values(), inside)
            busy += moment - before
            for key in innermost:
                times[key] += (moment - before) / len(innermost)
        before = moment
        if begins:
            active[i] = _key(intervals[i])
        else:
            del active[i]
    return times, busy, calls


def _key(interval):
    return interval.module, interval.op or interval.name


def _innermost(keys, inside):
    """Those of the instructions that no other of them is inside of."""
    outer = {(key[0], name) for key in keys for name in inside(*key)}
    return {key for key in keys if key not in outer} or set(keys)
