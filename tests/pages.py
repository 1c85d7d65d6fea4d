"""The pages of the documentation, and their fenced blocks with what each prints."""
import re
import textwrap
from typing import NamedTuple

from places import ROOT

# README.md, docs/errors.md, ...: text
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
         for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]}

# The blocks of a tutorial are one program; those of other pages are programs of their own.
TUTORIALS = [name for name in PAGES if name.startswith("docs/learn/")] + ["docs/primitives.md", "docs/kernels.md",
                                                                           "docs/tpu_kernels.md"]
SESSIONS = [name for name in PAGES if name.startswith("docs/errors/")]     # of an interpreter, with what it answers
FRAGMENTS = ["ARCHITECTURE.md", "docs/viewer.md"]      # show parts of the library, and of programs


class Block(NamedTuple):
    line: int
    language: str
    text: str
    name: str               # of the file that a Python block is saved as
    output: str | None      # None: the page does not say what it prints


def blocks(page):
    """Every fenced block with what stands under it."""
    pattern = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
    found = [(m.start(), m.end(), m[2], textwrap.dedent(m[3])) for m in pattern.finditer(page)]
    for (start, end, language, text), (following, _, kind, output) in zip(found, [*found[1:], (None, None, None, None)]):
        under = kind == "text" and not page[end:following].strip()
        name, = re.findall(r"save it as `(\w+\.\w+)`:\s*\Z", page[:start]) or ["block.py"]
        yield Block(page.count("\n", 0, start) + 1, language, text, name, output if under else None)


def matches(wanted, printed):
    """Is it what the page says?  A line `...` is for any lines, `...` in a line for anything in it."""
    lines = [".*" if line.strip() == "..." else ".*".join(map(re.escape, line.split("..."))) for line in wanted.splitlines()]
    pattern = "\n".join(line if line != ".*" else r"(?:.*\n)*?.*" for line in lines)
    return re.fullmatch(pattern, printed.rstrip("\n")) is not None
