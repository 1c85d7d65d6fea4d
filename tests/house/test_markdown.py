"""Documents are whole: code blocks open and close, their Python parses, the files that they name are there.
"""
import ast
import re

import pytest
from pages import PAGES
from places import ROOT

pytestmark = pytest.mark.quick


def fences(text):
    """(language, code, line) of each block; ValueError where one does not close, or a fence is inside of a
    line."""
    language, start, block = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r" *```(\w*) *$", line)
        if "```" in line and not mark:
            raise ValueError(f"line {number}: a fence that is not alone on its line")
        if mark and language is None:
            language, start, block = mark[1], number, []
        elif mark and mark[1]:
            raise ValueError(f"line {number}: a block opens in the one of line {start}")
        elif mark:
            yield language, "\n".join(block), start
            language = None
        elif language is not None:
            block.append(line)
    if language is not None:
        raise ValueError(f"line {start}: a block that does not close")


@pytest.mark.parametrize("page", PAGES)
def test_blocks_close_and_their_python_parses(page):
    for language, code, line in fences(PAGES[page]):
        if language in ("python", "py") and ">>>" not in code:
            try:
                ast.parse(re.sub(r"(?m)^ {0,3}(?=\S)", "", code) if code.startswith(" ") else code)
            except SyntaxError as error:
                pytest.fail(f"line {line}: {error}")


def test_files_that_architecture_names_are_there():
    """In backquotes, with a folder in front and `.py` behind; a table of tests is read from `tests/`."""
    for page in [ROOT / "ARCHITECTURE.md", ROOT / "docs" / "glossary.md",
                 *sorted((ROOT / "docs" / "inside").glob("*.md"))]:
        for name in re.findall(r"`([\w/]+/[\w]+\.(?:py|txt|toml))`", page.read_text("utf-8")):
            assert any((base / name).exists()
                       for base in (ROOT, ROOT / "hlotrace", ROOT / "tests")), f"{page.name}: {name}"


@pytest.mark.parametrize(("text", "said"),
                         [("```python\nx = 1\n", "does not close"), ("a ```\n", "not alone"),
                                            ("```\na\n```python\n", "opens in")])
def test_broken_blocks_are_found(text, said):
    with pytest.raises(ValueError, match=said):
        list(fences(text))


def test_architecture_is_short():
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= 150
