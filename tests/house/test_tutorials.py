"""The tutorials under docs/: the blocks of each are one program, which runs as it stands and prints what is said.  The pages
about errors are sessions of an interpreter, in which `jax`, `jnp` and `lax` are imported."""
import ast
import doctest
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys

import forked
import pytest
from pages import PAGES, SESSIONS, TUTORIALS, blocks, matches

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

BROUGHT = ("hlotrace", "jax")       # what `import jax` means under hlotrace.as_jax


def prepare(page, folder):
    """Write the files of a page and run its commands; returns its Python program and what each block must
    print."""
    code, wanted = [], []
    for block in blocks(page):
        if block.language == "cpp" or block.name != "block.py":
            (folder / block.name).write_text(block.text, "utf-8")
        elif block.language == "sh":
            done = subprocess.run(["/bin/sh", "-euc",
                                   block.text.replace("python ", f"{shlex.quote(sys.executable)} ")],
                                  cwd=folder, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
            assert block.output is None or matches(block.output, done.stdout), f"it prints:\n{done.stdout}"
        elif block.language == "python":
            code.append(f"{block.text}\nprint('--- end of block')\n")
            wanted.append(block.output or "")
    return "\n".join(code), wanted


def absent(page):
    """A package that a page's programs import and that is not installed."""
    trees = [ast.parse(block.text) for block in blocks(page) if block.language == "python"]
    found = [name for tree in trees for node in ast.walk(tree)
             for name in ([each.name for each in node.names] if isinstance(node, ast.Import)
                          else [node.module] if isinstance(node, ast.ImportFrom) else [])]
    return next((name for name in found if name.partition(".")[0] not in BROUGHT
                 and importlib.util.find_spec(name.partition(".")[0]) is None), None)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_and_prints_what_it_says(name, tmp_path):
    if "g++" in PAGES[name] and shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the kernel with")
    if lacking := absent(PAGES[name]):
        pytest.skip(f"{lacking} is not installed")
    program, wanted = prepare(PAGES[name], tmp_path)
    (tmp_path / "tutorial.py").write_text(program, "utf-8")
    done = forked.run(forked.file("tutorial.py"), cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    printed = re.split(r"--- end of block\n", done.stdout)[:-1]
    assert len(printed) == len(wanted)
    for block, output in zip(wanted, printed):
        assert matches(block.rstrip("\n"), output), f"it prints:\n{output}\nand not:\n{block}"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_goes_as_the_page_shows_it(name):
    text = "\n".join(block.text for block in blocks(PAGES[name]) if block.language == "pycon")
    session = doctest.DocTestParser().get_doctest(text, {"jax": jax, "jnp": jnp, "lax": lax}, name, None,
                                                  None)
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert session.examples and not runner.run(session, out=report.append).failed, "".join(report)


@pytest.mark.quick
def test_every_class_of_errors_is_on_a_page():
    text = "".join(PAGES[name] for name in SESSIONS)
    assert [name for name, value in vars(jax.errors).items() if isinstance(value, type)
            and f"`{name}`" not in text] == []


@pytest.mark.quick
def test_every_block_of_a_tutorial_is_in_a_language_that_is_run():
    for name in TUTORIALS:
        assert {block.language for block in blocks(PAGES[name])} <= {"cpp", "sh", "python", "text"}
