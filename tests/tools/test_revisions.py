"""`hlotrace dump f --diff git:REVISION`: a function beside what it was, as text and as a page."""
import re
import subprocess
import sys

import pytest

from hlotrace.tools import dump_hlo

pytestmark = pytest.mark.quick

HELPER = "import hlotrace.numpy as jnp\n\ndef activation(x):\n    return jnp.{}(x)\n"
MODEL = """
import hlotrace.numpy as jnp
from parts.helper import activation

def layer(x, w):
    return activation(x @ w){}
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Of two revisions of a model, which imports from a package beside it."""
    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                       capture_output=True)
    try:
        git("init")
    except FileNotFoundError:
        pytest.skip("no git is installed")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    for activation, more, message in (("tanh", "", "first"), ("sin", " + 1", "second")):
        (tmp_path / "parts" / "helper.py").write_text(HELPER.format(activation))
        (tmp_path / "model.py").write_text(MODEL.format(more))
        git("add", "-A")
        git("commit", "-m", message)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("parts", "parts.helper"):
        sys.modules.pop(name, None)


TYPES = ["model.py:layer", "f32[4,8]", "f32[8,2]"]


def test_a_function_beside_an_earlier_revision_with_what_it_imports(repository, capsys):
    assert dump_hlo.main([*TYPES, "--diff", "git:HEAD~1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(" = |    ", line)[1].split()[0] for line in lines if line[0] in "-+" and " = " in line] == [
        "sin", "add", "tanh"]
    assert any("# HEAD~1:parts/helper.py:4 (activation)" in line for line in lines if line[0] == "+")
    assert dump_hlo.main([*TYPES, "--diff", "git:HEAD"]) == 0
    assert all(line.startswith(" ") for line in capsys.readouterr().out.splitlines())


def test_as_a_page_of_two_columns(repository, capsys):
    assert dump_hlo.main([*TYPES, "--diff", "git:HEAD~1:model.py:layer", "--html", "diff.html"]) == 0
    assert capsys.readouterr().out == "diff.html\n"
    page = (repository / "diff.html").read_text("utf-8")
    assert (page.count("class='minus'"), page.count("class='plus'")) == (3, 2) and "<th>git:HEAD~1:model.py:layer</th>" in page
    assert "tanh" in page and "helper.py:4 (activation)" in page and "<script" not in page


@pytest.mark.parametrize(("arguments", "words"), [
    (["--diff", "git:nothing"], "git archive: "),
    (["--diff", "git:HEAD:other.py:layer"], "revision HEAD has no other.py"),
    (["--diff", "git:"], "want git:REVISION"),
    (["--diff", "git:HEAD~1:model.py:nothing"], "has no nothing")])
def test_what_cannot_be_compared_is_refused_in_a_line(arguments, words, repository, capsys):
    assert dump_hlo.main([*TYPES, *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and words in error


LOOPS = """
import hlotrace as jax, hlotrace.numpy as jnp

def first(x):
    return jax.lax.scan(lambda c, _: (jnp.sin(c).astype("bfloat16").astype("float32"), None), x, None, length=3)[0]

def second(x):
    return jax.lax.scan(lambda c, _: (jnp.cos(c).astype("bfloat16").astype("float32"), None), x, None, length=3)[0]
"""


@pytest.mark.parametrize(("other", "differing"), [("first", []), ("second", ["sin", "cos"])])
def test_what_differs_in_a_loop_is_below_it_and_conversions_have_counterparts(other, differing, tmp_path, capsys):
    (tmp_path / "loops.py").write_text(LOOPS)
    assert dump_hlo.main([f"{tmp_path}/loops.py:first", "f32[4]", "--diff", f"{tmp_path}/loops.py:{other}"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line[0] in "-+" and " = " in line]
    assert [line.partition(" = ")[2].split()[0] for line in lines if "convert" not in line] == differing
    assert bool(lines) == bool(differing)
