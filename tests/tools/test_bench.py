"""The benchmark's own parts: what it asks for, how it compares, merges and draws.  Nothing here is timed."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from places import TOOLS


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import bench
    return bench


def report(value, norm=1.0, budget=0.5):
    return {"rows": [{"name": "row", "unit": "s", "value": value, "cpu": 2 * value, "budget": budget}],
            "checks": {"row": {"tolerance": 1e-3, "digest": [[norm, 0.5]]}}}


@pytest.mark.quick
def test_help_names_every_group(bench):
    done = subprocess.run([sys.executable, TOOLS / "bench.py", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and all(f"  {group} " in done.stdout for group in bench.GROUPS)


@pytest.mark.quick
def test_groups_are_chosen_by_the_options(bench):
    names = lambda *argv: [name for name, _, _ in bench.chosen(bench.arguments(argv))]
    assert "growth" not in names() and "chains" in names() and "growth" in names("--full")
    assert "chains" not in names("--quick") and names("--quick", "--only", "growth") == ["growth"]
    with pytest.raises(SystemExit):
        bench.arguments(["--option", "hlotrace_outline"])


@pytest.mark.quick
def test_rows_are_medians_and_their_ratio(bench):
    found = {"hlotrace": [report(1.0), report(9.0), report(2.0)], "jax": [report(4.0)] * 3}
    row, = bench.merge("group", ["hlotrace", "jax"], found)
    assert row["median"] == {"hlotrace": 2.0, "jax": 4.0} and row["ratio"] == row["cpu_ratio"] == 0.5
    assert row["ratio_range"] == [0.25, 2.25] and not bench.line(row).endswith("over")
    row["budget"] = 0.4
    assert bench.line(row).endswith("over")


@pytest.mark.quick
def test_one_side_alone_has_no_ratio(bench):
    row, = bench.merge("group", ["hlotrace", "jax"], {"hlotrace": [report(1.0)]})
    assert row["ratio"] is None and row["ratio_range"] is None and " - " in bench.line(row)
    assert bench.disagreements({"hlotrace": [report(1.0)]}) == []


@pytest.mark.quick
def test_different_results_are_told(bench):
    same, other = report(1.0), report(1.0, norm=1.1)
    assert bench.disagreements({"hlotrace": [same], "jax": [same]}) == []
    assert "disagree: array 0" in bench.disagreements({"hlotrace": [same], "jax": [other]})[0]
    nan = report(1.0, norm=float("nan"))
    assert bench.disagreements({"hlotrace": [nan], "jax": [nan]})


@pytest.mark.quick
def test_a_digest_sees_one_changed_value(bench):
    from bench_programs import digest, disagreement
    x = np.linspace(-1, 1, 100)
    y = x.copy()
    y[7] += 0.1
    assert disagreement(digest([x]), digest([x * (1 + 1e-6)]), 1e-3) is None
    assert disagreement(digest([x]), digest([y]), 1e-3) and disagreement(digest([x]), digest([x, x]), 1e-3)


@pytest.mark.quick
def test_a_size_that_would_take_too_long_is_left_out(bench, capsys):
    asked = []

    def run(side, task, quick, cache, timeout):
        asked.append((side.name, task))
        blocks = int(task.partition(":")[2])
        seconds = blocks**2 if side.package == "jax" else blocks
        return {"rows": [{"name": f"{blocks}: compile", "unit": "s", "value": seconds, "cpu": None, "budget": None}],
                "checks": {}}
    runner = bench.Runner(bench.arguments(["--limit", "200"]), run)
    for blocks in (6, 12, 24):
        runner.task("growth", f"growth:{blocks}", 1)
    assert ("jax", "growth:12") in asked and ("jax", "growth:24") not in asked and ("hlotrace", "growth:24") in asked
    assert "jax not run: its compile would take about 576 s" in runner.notes[0] and not runner.wrong


@pytest.mark.quick
def test_an_option_that_is_not_there_leaves_outline_out(bench):
    runner = bench.Runner(bench.arguments([]), lambda *args: {"skipped": "hlotrace has no option x"})
    runner.task("outline", "outline", 1)
    assert runner.notes and not runner.wrong and not runner.rows
    with pytest.raises(SystemExit, match="no option"):
        runner.task("gpt", "gpt", 1)


@pytest.mark.quick
def test_a_failure_is_wrong_and_the_other_side_is_still_shown(bench):
    def run(side, *_):
        return {"failed": "failed (status 1): KeyError"} if side.package == "hlotrace" else report(1.0)
    runner = bench.Runner(bench.arguments([]), run)
    runner.task("mlp", "mlp", 2)
    assert runner.wrong == ["mlp: hlotrace failed (status 1): KeyError"] and runner.rows[0]["median"] == {"jax": 1.0}


def test_the_picture_is_drawn_from_the_numbers(bench, tmp_path):
    pytest.importorskip("matplotlib")
    rows = bench.merge("group", ["hlotrace", "jax"], {"hlotrace": [report(1.0)] * 2, "jax": [report(4.0)] * 2})
    path = tmp_path / "numbers.json"
    path.write_text(json.dumps({"about": "a machine", "rows": rows, "notes": ["a note"]}))
    bench.main(["--redraw", "--json", str(path)])
    assert path.with_suffix(".png").stat().st_size > 1000


@pytest.mark.quick
def test_without_matplotlib_the_command_that_mends_it_is_told(bench, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    rows = bench.merge("group", ["hlotrace", "jax"], {"hlotrace": [report(1.0)], "jax": [report(4.0)]})
    assert "pip install matplotlib" in bench.draw({"about": "", "rows": rows}, tmp_path / "x.png")


def test_a_child_measures_a_program():
    env = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run([sys.executable, TOOLS / "bench_child.py", "hlotrace", "mlp", "--quick"], capture_output=True,
                          text=True, env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"MLP SGD step: compile", "MLP SGD step: steady step"} <= {row["name"] for row in found["rows"]}
    assert set(found["checks"]) == {"MLP SGD step: first step", "MLP SGD step: loss of step 3"}
