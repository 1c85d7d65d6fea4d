"""The source reads alike everywhere: docstrings in one style, plain words, lines of 110 columns, few branches."""
from pathlib import Path

import pytest
import source_style
from remembered import found as found_in

pytestmark = pytest.mark.quick

LIBRARY = Path(source_style.__file__).resolve().parent.parent / "hlotrace"
# Files or folders (ending in "/") that are still to be brought to it; the list may only shrink.
PENDING = (Path(source_style.__file__).parent / "style_pending.txt").read_text("utf-8").split()


def files():
    return sorted(path for path in LIBRARY.rglob("*.py") if path.name != "missing_names.py")


def is_pending(path):
    name = path.relative_to(LIBRARY).as_posix()
    return any(name == entry or entry.endswith("/") and name.startswith(entry) for entry in PENDING)


@pytest.mark.parametrize("check", source_style.CHECKS)
def test_no_offence(check):
    found = [text for path in files() if not is_pending(path) for text in found_in(check, path)]
    assert not found, "\n" + "\n".join(found)


def test_pending_entries_are_needed():
    for entry in PENDING:
        path = LIBRARY / entry
        of_entry = sorted(path.rglob("*.py")) if entry.endswith("/") else [path]
        assert any(text for file in of_entry for check in source_style.CHECKS for text in check(file)), entry


@pytest.mark.parametrize(("source", "said"), [
    ('def f(x):\n    """No stop"""\n', "no sentence"),
    ('def f(x):\n    """A sum.\n\n    Args:\n        y: an array.\n    """\n', "'y' does not appear in the function signature"),
    ('def f(x):\n    """A sum.\n\n    x: an array.\n    """\n', "outside of `Args:`"),
    ('def f(x):\n    """A sum.\n\n    Returns: x.\n    """\n', "section of its own"),
    ('def f(x):\n    """A sum.\n\n    Raises:\n        TypeError: for text.\n    Args:\n        x: an array.\n    """\n', "sections are"),
    ('def f(x):\n    """A sum.\n\n    Args:\n        x: an array.\n\n    Returns:\n        x.\n    """\n',
     "without a blank line"),
    ('"""What lies here."""\n', "'lies'"),
    ("y = 1 if a else 2 if b else 3\n", "inside of another"),
    ("from .other import _hidden\n", "private"),
    ("x = " + "1 + " * 40 + "1\n", "columns"),
    ("def f(x):\n" + "    if x:\n        x = 1\n" * 21, "21 branches"),
])
def test_offences_are_found(tmp_path, source, said):
    path = tmp_path / "module.py"
    path.write_text(source, "utf-8")
    found = [text for check in source_style.CHECKS for text in check(path)]
    assert len(found) == 1 and said in found[0]


def test_good_source_has_none(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""A module."""\n\n\ndef f(x, *args):\n    """The sum of all.\n\n    Args:\n        x: an array.\n'
                    "        *args: more arrays.\n    Returns:\n        The sum, of shape ().\n    Raises:\n"
                    '        TypeError: where one is no array.\n\n    >>> f(1)\n    1\n    """\n', "utf-8")
    assert [text for check in source_style.CHECKS for text in check(path)] == []
