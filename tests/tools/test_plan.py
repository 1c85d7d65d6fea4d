"""`hlotrace plan`: what it prints, and what it refuses in one line."""
import io
import json
import sys

import pytest

from hlotrace.core.config import override
from hlotrace.inspection.planning.hlo_costs import ONE_PASS
from hlotrace.tools import plan as command

KEY = "float32" + ONE_PASS


@pytest.mark.quick
@pytest.mark.parametrize(("arguments", "words"), [
    ([], "which function? say hlotrace plan FUNCTION"),
    (["hlotrace.numpy:sin", "f32[4]"], "on which chips? say --on"),
    (["hlotrace.numpy:sin", "f32[4]", "--on", "cpu:8", "--in_spec", "data;data"], "2 SPECs for 1 arguments")])
def test_the_command_refuses_in_a_line(arguments, words, capsys):
    assert command.main(arguments) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and words in error


def test_the_command_prints_the_table_json_and_writes_a_page(tmp_path, capsys):
    given = ["hlotrace.numpy:dot", "f32[8,8]", "f32[8,8]", "--on", "cpu:2", "--in_spec", "data;-"]
    assert command.main(given) == 0
    out, error = capsys.readouterr()
    assert out.startswith("cpu:2: 2 x cpu") and error == ""         # no terminal, no progress
    assert command.main([*given, "--json", "--quick"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["estimate"]["flops"] == {KEY: 512}
    assert command.main([*given, "--html", str(tmp_path / "plan.html")]) == 0
    assert "<svg" in (tmp_path / "plan.html").read_text("utf-8")


def test_on_a_terminal_a_line_says_how_far_it_is(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    assert command.main(["hlotrace.numpy:sin", "f32[8,8]", "--on", "cpu:2", "--in_spec", "data", "--quick"]) == 0
    assert "\rhlotrace plan: cpu:2 data=2 (1 of 1)" in stream.getvalue() and stream.getvalue().endswith("\r")


def test_other_processes_compile_what_takes_long(monkeypatch, capsys, tmp_path):
    with override("jax_enable_compilation_cache", True):
        monkeypatch.setattr(command, "LONG", -1)
        ran = []

        def run(given, **_):
            ran.append(given)
        monkeypatch.setattr(command.subprocess, "run", run)
        given = ["hlotrace.numpy:dot", "f32[8,8]", "f32[8,8]", "--on", "cpu:2", "--in_spec", "a;-,b", "--jobs", "2"]
        assert command.main(given) == 0
    assert sorted(arguments[-1] for arguments in ran) == ["--mesh=a=1,b=2", "--mesh=a=2,b=1"]
    assert all({"hlotrace.numpy:dot", "--in_spec=a;-,b", "--jobs=1", "--json", "--on=cpu:2"} <= {*each} for each in ran)
    assert not any("" in each for each in ran)
    assert capsys.readouterr().out.startswith("cpu:2: 2 x cpu")
