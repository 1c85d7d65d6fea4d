"""The line on a terminal about work that goes on: there for long work, off by one option, cleared at the end."""
import io
import sys
import time

import pytest

from hlotrace.core.config import override
from hlotrace.runtime.status_line import going_on

pytestmark = pytest.mark.quick


def terminal(monkeypatch):
    """A terminal in place of stderr; no fixture, as pytest puts its own there when a test begins."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def work(stream, words="", after=0.01):
    """Work until the line says `words`."""
    done = []
    with going_on(lambda: f"step {len(done)}", after):
        end = time.monotonic() + 10
        while words not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
            done.append(1)
    return stream.getvalue()


def test_long_work_says_what_it_does_and_since_when(monkeypatch):
    said = work(terminal(monkeypatch), ", 0 s")
    assert said.startswith("\rstep ") and said.endswith("\r") and said.split("\r")[-2].strip() == ""


def test_short_work_says_nothing(monkeypatch):
    assert work(terminal(monkeypatch), after=60) == ""


def test_one_option_turns_all_off(monkeypatch):
    with override("hlotrace_compile_progress", False):
        assert work(terminal(monkeypatch)) == ""


def test_what_fails_clears_the_line_too(monkeypatch):
    stream, end = terminal(monkeypatch), time.monotonic() + 10
    with pytest.raises(KeyError), going_on(lambda: "looking", 0.01):
        while "looking" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        raise KeyError
    assert "looking" in stream.getvalue()
    assert stream.getvalue().endswith("\r")
