"""Provenance: which line of the user's program made a value.

A source is the pair (code object, instruction offset): cheap to take while tracing, and turned into a line
only when one is needed.
"""
from __future__ import annotations

import functools
import itertools
import opcode
import os
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

from .watched import unwatch

Source: TypeAlias = tuple[CodeType, int]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_internal: dict[str, bool] = {}    # file name -> is it ours, or of what calls on our behalf?
_excluded: tuple[str, ...] = ()    # files of libraries that are not to be taken for the user's


@functools.lru_cache(4096)
def scope_text(stack: str) -> str:
    """Named scopes as JAX writes them in front of the name of an operation: empty, or with a slash behind."""
    if "()" not in stack:
        return f"{stack}/" if stack else ""
    parts, around = [], ""
    for scope in [*stack.split("/"), ""]:
        if scope.endswith("()"):
            around += scope[:-1]
        elif scope or around:
            parts.append(around + scope + ")" * around.count("("))
            around = ""
    return "/".join(parts) + "/"


class NameStack(NamedTuple):
    """A path of named scopes, `outer/inner`; a transformation's, `jvp()`, is written around what follows."""
    path: str = ""

    def extend(self, name: str) -> NameStack:
        return NameStack(f"{self.path}/{name}" if self.path else name)

    def transform(self, name: str) -> NameStack:
        """With the scope of a transformation inside."""
        return self.extend(f"{name}()")

    def __str__(self) -> str:
        return scope_text(self.path)[:-1]


class SourceInfo(NamedTuple):
    """A line of the user's, as (code object, instruction offset) or None, and the scopes around it."""
    source: Source | None
    name_stack: NameStack

    @property
    def traceback(self) -> Source | None:
        """The source, by JAX's name for what it has of one."""
        return self.source

    def replace(self, **fields: Any) -> SourceInfo:
        """A copy in which fields are others."""
        return self._replace(**fields)


def exclude(path: str) -> None:
    """From now on, lines of files whose name begins with `path` are not the user's."""
    global _excluded
    _excluded = (*_excluded, path)
    _internal.clear()


def include(path: str) -> None:
    """Undo one `exclude(path)`.  ValueError where there was none."""
    global _excluded
    left = list(_excluded)
    left.remove(path)
    _excluded = tuple(left)
    _internal.clear()


def excluded() -> tuple[str, ...]:
    """The paths given to `exclude`."""
    return _excluded


def is_package(filename: str) -> bool:
    """Is it a file of this package, or of a library that is to be taken for one?"""
    return filename.startswith(PACKAGE) or filename.startswith(_excluded)


def _is_internal(filename: str) -> bool:
    ours = is_package(filename) or filename.startswith("<frozen") or filename.endswith(
        (os.sep + "functools.py", os.sep + "contextlib.py"))
    _internal[filename] = ours
    return ours


def user_frame() -> Source | None:
    """(code, lasti) of the innermost frame outside this package, or None."""
    frame: FrameType | None = sys._getframe(2)      # the caller is ours
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        ours = _internal.get(filename)
        if ours is None:
            ours = _is_internal(filename)
        if not ours:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def user_stacklevel() -> int:
    """The `stacklevel` with which warnings.warn, called by the caller, points at the user's line."""
    unwatch()       # a call that warns is to do so each time
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and (_internal.get(frame.f_code.co_filename)
                                 or _is_internal(frame.f_code.co_filename)):
        frame, level = frame.f_back, level + 1
    return level


def unpacked_into(frame: FrameType) -> int | None:
    """To how many targets (fewer than 256) a frame unpacks what it is reading; None where it does not."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] != opcode.opmap["UNPACK_SEQUENCE"] or at and code[at - 2] == opcode.EXTENDED_ARG:
        return None
    return code[at + 1]


def position(source: Source) -> tuple[str, int, int, str]:
    """(file name, line, column, function name) of a source."""
    code, lasti = source
    line, _, column, _ = next(itertools.islice(code.co_positions(), lasti // 2, None), (None,) * 4)
    column = 0 if line is None else (column or 0) + 1
    return code.co_filename, line or code.co_firstlineno, column, code.co_qualname


def describe(source: Source | None, with_column: bool = False) -> str:
    """`train.py:12 (loss_fn)` or `train.py:12:4 (loss_fn)`; an empty string where the source is unknown."""
    if source is None:
        return ""
    filename, line, column, function = position(source)
    place = f"{line}:{max(column - 1, 0)}" if with_column else line
    return f"{short(filename)}:{place} ({function})"


def short(filename: str) -> str:
    """A file below the working directory as one writes it from there."""
    return filename.removeprefix(os.path.join(os.getcwd(), ""))
