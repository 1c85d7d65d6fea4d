"""The line while a program compiles."""
import io
import os
import re
import subprocess
import sys
import time

import pytest
from places import ROOT

import hlotrace as jax
from hlotrace.runtime.executables import progress

# The line while a program compiles

PROGRAM = """
import sys
import hlotrace as jax, hlotrace.numpy as jnp
from hlotrace.runtime.executables import progress
progress.AFTER, progress.EVERY = 0.02, 0.01
def big(x):
    for _ in range(12):
        x = jnp.sort(jnp.sin(x)) + x @ x
    return x
{setup}
print(jax.jit(big)(jnp.ones((8, 8))).shape)
"""


def run(setup="", **streams):
    return subprocess.Popen([sys.executable, "-c", PROGRAM.format(setup=setup)], cwd=ROOT, stdout=subprocess.PIPE, **streams)


def test_a_terminal_shows_a_line():
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = run(stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 4096):
            text += chunk
    except OSError:      # how Linux says that the other end is closed
        pass
    os.close(ours)
    out, _ = process.communicate()
    assert (process.returncode, out) == (0, b"(8, 8)\n")
    assert re.search(rb"\rcompiling big: \d+ equations, 0 s *\r", text)
    assert re.search(rb"\rcompiled big: \d+ equations in \d\.\d s *\r?\n$", text)


@pytest.mark.parametrize("setup", ["", "sys.stderr.close()", "sys.stderr = None", "import os; os.close(2)"])
def test_no_terminal_no_line(setup):
    process = run(setup, stderr=subprocess.PIPE)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, b"(8, 8)\n", b"")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("show, fail, last", [
    (True, False, r"\rcompiled f: 2 equations in 0\.\d s\n$"), (True, True, r"\r +\r$"), (False, False, r"^$")])
def test_a_slow_compile_shows_its_progress(monkeypatch, show, fail, last):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "AFTER", 0.05)
    monkeypatch.setattr(progress, "EVERY", 0.02)
    monkeypatch.setattr(progress, "_watcher", None)
    monkeypatch.setattr(progress, "LINGER", 0.1)
    jax.config.update("hlotrace_compile_progress", show)
    jaxpr = jax.make_jaxpr(lambda x: x * x + 1)(1.0).replace(name="f")
    try:
        with progress.compiling(jaxpr):
            time.sleep(0.3)
            if fail:
                raise KeyError
    except KeyError:
        pass
    finally:
        jax.config.update("hlotrace_compile_progress", True)
    text = terminal.getvalue()
    assert ("\rcompiling f: 2 equations, 0 s" in text) == show
    assert re.search(last, text)
    monkeypatch.setattr(progress, "AFTER", 60)
    with progress.compiling(jaxpr):
        pass
    assert terminal.getvalue() == text       # a short one shows nothing
    deadline = time.time() + 60
    while progress._watcher is not None and time.time() < deadline:
        time.sleep(0.02)
    assert progress._watcher is None and not progress._running       # the thread ends when there is nothing to do
