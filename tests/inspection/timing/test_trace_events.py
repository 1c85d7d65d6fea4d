"""Exclusive times of operations from the events of a profile: nested, at one time, done later, on GPUs."""
import pytest

from hlotrace.inspection.timing import trace_events
from hlotrace.profiler import ProfileData

pytestmark = pytest.mark.quick


def profile(*planes):
    """A ProfileData of (name of a plane, {name of a line: [(event, start, length, {stat: value})]})."""
    texts = []
    for plane, lines in planes:
        events = sorted({e[0] for line in lines.values() for e in line})
        stats = sorted({s for line in lines.values() for e in line for s in e[3]})
        body = [f'name: "{plane}"']
        body += [f'event_metadata {{ key: {i} value {{ id: {i} name: "{e}" }} }}'
                 for i, e in enumerate(events, 1)]
        body += [f'stat_metadata {{ key: {i} value {{ id: {i} name: "{s}" }} }}'
                 for i, s in enumerate(stats, 1)]
        for line, found in lines.items():
            body.append(f'lines {{ name: "{line}" timestamp_ns: 0 ' + " ".join(
                f"events {{ metadata_id: {events.index(name) + 1} offset_ps: {start * 1000} duration_ps: {length * 1000} "
                + " ".join(f"stats {{ metadata_id: {stats.index(key) + 1} " +
                           (f'str_value: "{value}"' if isinstance(value, str) else f"int64_value: {value}")
                           + " }"
                           for key, value in given.items()) + " }"
                for name, start, length, given in found) + " }")
        texts.append("planes { " + " ".join(body) + " }")
    return ProfileData.from_text_proto(" ".join(texts))


def op(name, start, length, mark=None, device=0):
    return name, start, length, {"hlo_op": name, "hlo_module": "m", "device_ordinal": device} | (
        {} if mark is None else {"_p": mark})


def done(name, at, mark):
    return f"end: {name}", at, 0, {"_c": mark}


RUN = (trace_events.RUN, 0, 100, {})
INSIDE = {"body": {"loop"}, "deep": {"loop", "body"}}


@pytest.mark.parametrize(("lines", "times", "busy"), [
    ({"a": [op("x", 10, 5, 1), done("x", 15, 1)]}, {"x": 5}, 5),
    ({"a": [op("loop", 0, 50), op("body", 10, 20), op("body", 30, 10)]}, {"loop": 20, "body": 30}, 50),
    ({"a": [op("loop", 0, 50), op("body", 10, 20), op("deep", 10, 15)]}, {"loop": 30, "body": 5, "deep": 15},
     50),
    # what is at work on other threads, each half of the time that they share
    ({"a": [op("x", 0, 20)], "b": [op("y", 10, 20)]}, {"x": 15, "y": 15}, 30),
    # launched, and done 40 later on another thread, while y ran
    ({"a": [op("x", 0, 10, 1), op("y", 10, 20, 2), done("y", 30, 2)], "b": [done("x", 50, 1)]},
     {"x": 40, "y": 10}, 50),
    # nothing says that it was done: the end of the run does, and no operation lasts longer
    ({"a": [op("x", 80, 5, 1)]}, {"x": 20}, 20),
    ({"a": [op("x", 80, 5, 1), done("x", 130, 1)]}, {"x": 20}, 20),
    ({"a": [op("x", 10, 0), op("y", 10, 5)]}, {"y": 5}, 5)])
def test_times_without_what_runs_inside(lines, times, busy):
    run, = trace_events.runs(profile(("/host:CPU", {"python": [RUN], **lines})))
    found, ran, calls = trace_events.exclusive(run.intervals, lambda module, name: INSIDE.get(name, ()))
    assert ({name: seconds for (_, name), seconds in found.items()}, ran) == (times, busy)
    assert sum(calls.values()) == sum(not e[0].startswith("end") for line in lines.values() for e in line)


def test_runs_have_their_own_operations_and_devices_theirs():
    again = (trace_events.RUN, 200, 50, {})
    first, second = trace_events.runs(profile(("/host:CPU", {
        "python": [RUN, again, ("other", 0, 300, {})],
        "a": [op("x", 5, 1), op("x", 150, 1), op("y", 210, 2, device=3)]})))
    assert [(i.op, i.device) for i in first.intervals] == [("x", 0)]
    assert [(i.op, i.device) for i in second.intervals] == [("y", 3)]


def test_gpus_have_a_plane_each_with_streams():
    kernel = ("loop_fusion", 10, 5, {"hlo_op": "loop_fusion", "hlo_module": "m"})
    run, = trace_events.runs(profile(
        ("/host:CPU", {"python": [RUN]}),
        ("/device:GPU:1", {"Stream #7(Compute)": [kernel, ("MemcpyD2D", 20, 5, {})],
                           "Steps": [("1", 0, 90, {})]})))
    assert [(i.op, i.name, i.device) for i in run.intervals] == [
        ("loop_fusion", "loop_fusion", 1), (None, "MemcpyD2D", 1)]
