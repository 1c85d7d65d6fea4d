"""Every mistake of the corpus (tests/mistakes/) raises an error that says what, where and how to mend it."""
import contextlib
import importlib
import linecache
import pkgutil
import traceback

import mistakes
import pytest

from hlotrace.core import source_info
from hlotrace.core.config import override

FAMILIES = sorted(m.name for m in pkgutil.iter_modules(mistakes.__path__))
ROWS = [pytest.param(row, id=f"{family}-{row!r}") for family in FAMILIES
        for row in importlib.import_module(f"mistakes.{family}").MISTAKES]


def test_the_corpus_is_large():
    assert len(ROWS) >= 150 and len({p.id for p in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
def test_mistake(row):
    with contextlib.ExitStack() as options, pytest.raises(Exception) as info:
        for option in row.options.items():
            options.enter_context(override(*option))
        row.run()
    error = info.value
    said = "".join(traceback.format_exception_only(error))
    assert isinstance(error, row.kind), f"{type(error).__name__} is no {row.kind.__name__}: {said}"
    lacking = [text for text in row.says if text not in said]
    assert not lacking, f"{lacking} is not said: {said}"
    entries = traceback.extract_tb(error.__traceback__)
    assert not [e.filename for e in entries if e.filename.startswith(source_info.PACKAGE)], "frames of the library are shown"
    assert linecache.getline(entries[-1].filename, entries[-1].lineno).rstrip().endswith("# <-"), (
        f"the traceback ends at {entries[-1].line!r}")
    printed = "".join(traceback.format_exception(error))
    assert "During handling" not in printed and "please report it" not in printed
    assert len(said) < 900 and said.count("\n") <= 6, "an error is read by somebody who wants to go on"
