"""The commands as a whole: `python -m hlotrace` lists them, and the library is free of what they alone need."""
import os
import subprocess
import sys
import tomllib

import pytest
from places import ROOT

import hlotrace
from hlotrace.tools.commands import VERBS, commands, main

pytestmark = pytest.mark.quick

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def python(*arguments, cwd):
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_command_is_listed_with_a_line(tmp_path):
    faces = {path.stem for path in (ROOT / "hlotrace").glob("*.py") if "from .tools." in path.read_text("utf-8")}
    assert [typed for typed, _ in commands()] == ["hlotrace", *(f"hlotrace {verb}" for verb in VERBS)]
    assert faces - {"__main__"} <= VERBS.keys()
    said = python("-m", "hlotrace", cwd=tmp_path)
    version, _, *listed, _, _ = said.splitlines()
    assert version == f"hlotrace {hlotrace.__version__}" == f"hlotrace {PROJECT['version']}"
    assert listed == [f"  {command:<20}{purpose}" for command, purpose in commands()]
    assert python("-c", "import sys; from hlotrace.tools.commands import main; sys.exit(main([]))", cwd=tmp_path) == said
    assert all(purpose for _, purpose in commands()) and max(map(len, listed)) < 120


def test_a_verb_runs_its_command(tmp_path, capsys):
    assert main(["dump", "hlotrace.numpy:sin", "f32[3]", "--stage", "jaxpr"]) == 0
    assert "sin a" in capsys.readouterr().out
    assert main(["cache", "list"]) == 0
    assert python("-m", "hlotrace", "dump", "--help", cwd=tmp_path).startswith("`hlotrace dump`: print")


@pytest.mark.parametrize("arguments", [["docter"], ["doctor ", "--json"], ["--quick"]])
def test_a_verb_that_is_none_is_refused(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    error = capsys.readouterr().err
    assert "unrecognized arguments" in error or "invalid choice" in error and "did you mean 'doctor'?" in error


@pytest.mark.parametrize(("files", "words"), [
    ({"numpy/__init__.py": "raise ModuleNotFoundError('No module named numpy')"}, "(its message: "),
    ({"ml_dtypes/__init__.py": "raise ImportError('broken')"}, "(its message: broken)"),
    ({"jaxlib/__init__.py": ""}, "(its message: cannot import name '_jax'"),
    ({"jaxlib/__init__.py": "", "jaxlib/_jax.py": "", "jaxlib/version.py": "__version__ = '0.9.1'"},
     "hlotrace needs jaxlib 0.10 or newer, and 0.9.1 is installed")])
def test_what_is_not_installed_is_told_by_the_doctor_and_by_import(files, words, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for arguments in (["-c", "import hlotrace"], ["-m", "hlotrace.doctor"]):
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1 and words in last and 'pip install "jaxlib>=0.10,<0.13"' in last


def test_the_library_does_not_import_what_only_commands_need(tmp_path):
    (tmp_path / "absl").mkdir()
    (tmp_path / "absl" / "__init__.py").write_text("raise SystemExit('absl was imported')")
    python("-c", "import hlotrace, hlotrace.numpy, hlotrace.doctor, hlotrace.cache, hlotrace.distributed", cwd=tmp_path)
    script = "import sys, hlotrace; hlotrace.jit(lambda x: x + 1)(1); print([m for m in sys.modules if 'absl' in m])"
    assert python("-c", script, cwd=ROOT) == "[]\n"
    assert "absl-py" in PROJECT["dependencies"]
