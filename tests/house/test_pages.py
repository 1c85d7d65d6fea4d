"""README and the pages of docs/ as their reader takes them: each block pasted in an empty folder runs, and
prints what is said under it.  Tutorials, whose blocks are one program, are in test_tutorials.py.

A ```python block is a program of its own; under "save it as `name.py`" it is a file that the commands use.  A ```text block
is what the block above it prints, with "..." for anything.  What would take minutes or the network has a stand-in that
refuses what the real thing would: `make` shows what it would do, `pip` reads the requirement, bench.py its
options.
"""
import ast
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib

import forked
import pytest
from pages import FRAGMENTS, PAGES, SESSIONS, TUTORIALS, Block, blocks, matches
from places import ROOT, TESTS

from hlotrace.core import config
from hlotrace.runtime.devices import plugins

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


APART = [name for name in PAGES if name not in TUTORIALS + SESSIONS + FRAGMENTS]
BLOCKS = {f"{name} line {block.line}": block
          for name in APART for block in blocks(PAGES[name]) if block.language != "text"}
FILES = {block.name: block.text for block in BLOCKS.values() if block.name != "block.py"}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Runs a block in an empty folder, with the PATH of an environment that hlotrace was installed in: what
    it prints."""
    folder, bin = tmp_path_factory.mktemp("reader"), tmp_path_factory.mktemp("bin")
    stand_ins = {
        "python": f"""
            case "$1" in
                examples/*) test -f "{ROOT}/$1" ;;      # tests/house/test_examples.py runs them
                tools/bench.py) shift; exec "{sys.executable}" "{ROOT}/tools/bench.py" "$@" --help ;;
                *) exec "{sys.executable}" "$@" ;;
            esac""",
        "hlotrace": f'exec "{sys.executable}" -m hlotrace "$@"',
        "hlotrace-dump": f'exec "{sys.executable}" -m hlotrace.tools.dump_hlo "$@"',
        "make": f'exec "{shutil.which("make")}" --dry-run --no-print-directory -C "{ROOT}" "$@"',
        "bash": f'test -f "{ROOT}/$1"',
        "pip": f'exec "{sys.executable}" "{TESTS}/pip_stand_in.py" "$@"',
    }
    for name, script in stand_ins.items():
        (bin / name).write_text(f"#!/bin/sh\n{textwrap.dedent(script)}\n")
        (bin / name).chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = forked.COMPILED | {
        "PATH": f"{bin}:/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8",
        "XLA_FLAGS": forked.of_one_job()["XLA_FLAGS"]}

    def run(block):
        for name, text in (FILES | {block.name: block.text}).items():
            (folder / name).write_text(text, "utf-8")
        if block.language == "python":
            with forked.Process(forked.file(block.name), env=environment, cwd=folder,
                                stderr=subprocess.STDOUT) as process:
                printed, _ = process.communicate(120)
            assert process.returncode == 0, printed
            return printed
        done = subprocess.run(["/bin/sh", "-euc", block.text], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        assert done.returncode == 0, done.stdout
        return done.stdout
    return run


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_every_block_runs_as_it_stands_and_prints_what_is_said(block, reader):
    if "topologies" in block.text and "tpu" not in plugins.find():
        pytest.skip("no libtpu wheel is installed")
    printed = reader(block)
    assert block.output is None or matches(block.output, printed), f"it prints:\n{printed}"


@pytest.mark.quick
def test_every_block_is_in_a_language_that_is_run():
    assert {block.language for block in BLOCKS.values()} == {"sh", "python"} and len(BLOCKS) > 12
    assert all(block.output for block in BLOCKS.values() if block.language == "python"
               and "print(" in block.text
               and "topologies" not in block.text)
    for name in APART:
        fenced = re.sub(r"^( *)```.*?^\1```$", "", PAGES[name], flags=re.M | re.S)
        assert not re.findall(r"\n\n(    .*)", fenced), f"{name}: an indented block is not run: fence it"


COMMANDS = sorted({command for page in ("README.md", "CONTRIBUTING.md", "docs/performance.md")
                   for command in re.findall(
    r"`((?:python|pip|make|bash|hlotrace) [^`]+)`", re.sub(r"```.*?```", "", PAGES[page], flags=re.S))})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_within_a_sentence_runs_as_it_stands(command, reader):
    """Those of bench.py, which would take minutes, with `--help`: it reads its options, and says what they
    are."""
    if command.startswith("python tools/bench.py"):
        _, bench, *options = shlex.split(command)
        assert forked.run(forked.file(ROOT / bench), *options, "--help", check=True).stdout
    else:
        reader(Block(0, "sh", command, "block.py", None))


@pytest.mark.quick
def test_the_citation_is_of_this_version():
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


@pytest.mark.quick
def test_readme_is_a_screen_and_a_half():
    assert len(PAGES["README.md"].splitlines()) <= 120


@pytest.mark.quick
def test_files_that_are_shown_are_those_of_the_examples():
    for name, text in FILES.items():
        assert text == (ROOT / "examples" / name).read_text("utf-8")
    body = lambda text: [ast.dump(statement) for statement in ast.parse(text).body]
    quickstart = body((ROOT / "examples" / "quickstart.py").read_text("utf-8"))
    shown, = [body(block.text) for block in blocks(PAGES["README.md"]) if block.language == "python"]
    assert shown == quickstart[1:len(shown) + 1]


@pytest.mark.quick
def test_every_name_that_is_given_in_full_exists():
    names = {name for page in APART for name in re.findall(r"`(hlotrace(?:\.\w+)+)", PAGES[page])}
    assert len(names) > 12
    for name in names - {"hlotrace.as_jax"}:    # which would change this process
        pkgutil.resolve_name(name)


@pytest.mark.quick
def test_the_page_of_options_has_each_with_its_default():
    said = {}
    for names, defaults, _ in re.findall(r"^\| (`.*?) \| (.*?) \| (.*) \|$", PAGES["docs/options.md"], re.M):
        names, defaults = re.findall(r"`(\w+)`", names), [ast.literal_eval(d) for d in defaults.split(", ")]
        said |= dict(zip(names, defaults * (len(names) if len(defaults) == 1 else 1)))
    # of a guard's kinds
    more = {name for name in re.findall(r"`(jax_\w+)`", PAGES["docs/options.md"]) if name not in said}
    assert said | dict.fromkeys(more) == {name: default for name, (default, _, _) in config._OPTIONS.items()}


@pytest.mark.quick
@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    anchor = lambda title: re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    here = ROOT / page
    for path, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page])):
        if path.startswith("http"):
            continue
        target = here.parent / path if path else here
        assert target.exists(), (path, heading)
        if heading:
            assert heading in [anchor(title)
                               for title in re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.M)]


@pytest.mark.quick
@pytest.mark.parametrize(("wanted", "printed", "same"), [
    ("a\nb", "a\nb\n", True), ("a", "a\nb", False), ("a ... c", "a b c", True),
    ("a\n...\nd", "a\nb\nc\nd", True),
    ("a ... c", "a\nc", False), ("[...]", "[1. 2.]", True), ("a\n...", "a\nb\nc", True),
    ("...\nb", "b", False)])
def test_what_counts_as_the_same_output(wanted, printed, same):
    assert matches(wanted, printed) == same
