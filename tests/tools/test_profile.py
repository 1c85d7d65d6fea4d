"""`hlotrace profile`: what it prints, and what it refuses in one line."""
import json

import pytest

from hlotrace.tools import profile as command

PROGRAM = """
import hlotrace as jax, hlotrace.numpy as jnp

def layer(w, x):
    with jax.named_scope("layer"):
        return jnp.tanh(x @ w).sum()
"""


@pytest.mark.quick
@pytest.mark.parametrize(("arguments", "words"), [
    ([], "which function? say hlotrace profile FUNCTION"),
    (["hlotrace.numpy:sin", "f32[4]", "--runs", "0"], "--runs 0"),
    (["hlotrace.numpy:sinn", "f32[4]"], "did you mean 'sin'?")])
def test_the_command_refuses_in_a_line(arguments, words, capsys):
    assert command.main(arguments) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and words in error


def test_the_command_prints_tables_and_json_and_writes_a_page(tmp_path, capsys):
    (tmp_path / "train.py").write_text(PROGRAM)
    given = [f"{tmp_path}/train.py:layer", "f32[64,64]", "f32[32,64]", "--grad", "--runs", "2"]
    assert command.main(given) == 0
    out, _ = capsys.readouterr()
    assert out.startswith("layer on cpu: a run takes") and "train.py:6" in out and "backward" in out
    assert command.main([*given, "--json", "--html", str(tmp_path / "page.html")]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith(str(tmp_path / "page.html")) and len(json.loads(out.partition("\n")[2])["runs"]) == 2
    assert "<script" in (tmp_path / "page.html").read_text("utf-8")


def test_over_a_mesh(capsys):
    given = ["hlotrace.numpy:matmul", "f32[64,64]", "f32[64,64]", "--mesh", "data=2", "--in_spec", "data;-", "--runs", "2"]
    assert command.main(given) == 0
    assert capsys.readouterr().out.startswith("matmul on 2 x cpu: a run takes")
