"""Exclusive times of operations from a profile: nested, at one time, done later, on GPUs and TPUs."""
import pytest
from made_profiles import profile

from hlotrace.inspection.timing import trace_events

pytestmark = pytest.mark.quick


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


def test_tpus_have_a_plane_each_with_instructions_by_their_text():
    op = ("%copy.1 = f32[2]{0:T(128)} copy(f32[2]{0:T(128)} %p.1)", 12, 3, {"hlo_category": "copy"})
    run, = trace_events.runs(profile(
        ("/host:CPU", {"python": [RUN]}),
        ("/device:TPU:1", {
            "Steps": [("0", 10, 20, {})], "XLA Modules": [("jit_f(7)", 10, 10, {}), ("jit_g(8)", 20, 9, {})],
            "XLA Ops": [op, ("%while.2 = (s32[]) while(...)", 21, 8, {}), ("fusion.3", 22, 4, {}),
                        ("%late = f32[2] copy(...)", 40, 1, {})],
            "Async XLA Ops": [("%copy-start.4 = ...", 11, 8, {})]}),
        ("/device:TPU:1 SparseCore 0", {"XLA Ops": [("%other = ...", 11, 8, {})]})))
    assert [(i.module, i.op, i.start, i.end, i.device) for i in run.intervals] == [
        ("jit_f", "copy.1", 12, 15, 1), ("jit_g", "while.2", 21, 29, 1), ("jit_g", "fusion.3", 22, 26, 1),
        (None, "late", 40, 41, 1)]
