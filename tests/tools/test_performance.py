"""The page on performance: its table is what the tool makes of what is known, its picture has every measurement."""
import importlib.util
import json
import sys

import pytest
from places import ROOT

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def performance():
    spec = importlib.util.spec_from_file_location("performance", ROOT / "tools" / "performance.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(load, *rows):
    return {"jaxlib": "0.10.2", "commit": "abc", "cores": 2, "load_before": [load], "load_after": [0.0],
            "rows": [dict(zip(("group", "name", "unit", "ratio", "cpu_ratio"), row)) for row in rows]}


@pytest.mark.parametrize("load, kept", [(1.0, {"a": 0.5, "b": 0.25}), (9.0, {"b": 0.25})])
def test_ratios_are_of_cpu_time_and_on_a_busy_machine_of_nothing_else(performance, load, kept):
    rows = ("g", "a", "s", 0.5, None), ("g", "b", "ms", 2.0, 0.25), ("g", "memory", "MiB", 0.7, None), ("g", "c", "s", None, None)
    known = performance.added({}, result(load, *rows))
    assert known["0.10.2"]["g"]["ratios"] == kept


def test_a_group_that_is_measured_again_is_replaced_and_others_stay(performance):
    known = {"0.10.2": {"g": {"result": "old 2020-01-01", "load": 1, "ratios": {"a": 9.0}}, "h": {"ratios": {"z": 1.0}}}}
    known = performance.added(known, result(1.0, ("g", "b", "s", 0.5, None)))["0.10.2"]
    assert known["g"]["ratios"] == {"b": 0.5} and known["h"] == {"ratios": {"z": 1.0}}


def test_the_table_of_the_page_is_what_is_known(performance, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import bench
    about = {name: group.about.partition(":")[0] for name, group in bench.GROUPS.items()}
    written = performance.table(json.loads(performance.KNOWN.read_text("utf-8")), about)
    assert written in performance.PAGE.read_text("utf-8"), "run: python tools/performance.py"
    assert written.count("bench.py --only") > 3
    for name in ("bench", "bench_child"):
        sys.modules.pop(name, None)
