"""debug.breakpoint: a prompt among the user's frames, with the values they have when the program runs."""
from __future__ import annotations

import cmd
import contextlib
import inspect
import linecache
import pprint
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from ...core import source_info
from ...core.avals import aval_of
from ...core.effects import debug_effect
from ...core.pytrees import pytree
from ...core.trace import Tracer
from ...primitives.programs import callbacks
from .callbacks import as_array, types_in_callback

__all__ = ["breakpoint"]

_prompting = threading.RLock()      # programs on several devices stop one after the other


def breakpoint(*, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None,
               ordered: bool = False, token: Any = None, **kwargs: Any) -> Any:
    """Stop here each time that the program comes by, and look at the variables of the user's functions.

    In a terminal a prompt takes commands: `p` and `pp` print an expression (so does an expression alone), `l`
    lists the source, `u` and `d` go to the frame that called and back, `bt` shows all frames, `c` goes on,
    `q` ends the program by SystemExit, `help` lists these.  Traced values are there as arrays, also under
    jit, grad and vmap; what is not traced is as it was when the function was traced.

    Args:
        backend: "cli", the prompt, which reads `stdin=` and writes to `stdout=` if they are given; "print"
            shows the frames and the variables of the innermost one, and goes on.  By default the first in a
            terminal, else the second.
        filter_frames: leave out frames of the library.
        num_frames: how many frames are shown, the innermost ones.
        ordered: breakpoints are reached in the order of the program.
        token: a pytree of arrays, which is returned: what uses the result runs after the breakpoint.
    Raises:
        ValueError: for an unknown backend (JAX takes the prompt).
        TypeError: for other keywords than `stdin` and `stdout`.

    >>> import io
    >>> @jax.jit
    ... def f(x):
    ...     y = 2 * x
    ...     jax.debug.breakpoint(backend="cli", stdin=io.StringIO("p y\\nc\\n"), stdout=out)
    ...     return y
    >>> out = io.StringIO()
    >>> float(f(3.))
    6.0
    >>> jax.effects_barrier()
    >>> "Array(6., dtype=float32)" in out.getvalue()
    True
    """
    if backend not in (None, "cli", "print"):
        raise ValueError(f"debug.breakpoint: backend={backend!r} is not known: give 'cli', 'print' or None")
    if unknown := kwargs.keys() - {"stdin", "stdout"}:
        raise TypeError(f"debug.breakpoint: unexpected keywords {sorted(unknown)}; stdin and stdout are "
                        "taken")
    if num_frames is not None and num_frames < 1:
        raise ValueError(f"debug.breakpoint: num_frames={num_frames} must be at least 1")
    frames, operands = _captured(filter_frames, num_frames)
    avals = types_in_callback(operands, True)
    leaves, structure = pytree.tree_flatten(token)

    def reached(*values: Any) -> Sequence[Any]:
        values, held = values[:len(operands)], values[len(operands):]
        arrays = [as_array(value, aval) for value, aval in zip(values, avals)]
        _stop([frame.filled(arrays) for frame in frames], backend, **kwargs)
        return held
    function: Any = reached
    function.mapped, function.paths, function.__name__ = False, pytree.leaf_paths(structure), "breakpoint"
    results = callbacks.bind(*operands, *leaves, function=function, out_avals=tuple(map(aval_of, leaves)),
                              effect=debug_effect(ordered), vmap_method="sequential")
    return structure.unflatten(results)


class _Frame(NamedTuple):
    """A frame as it was; `variables` are (name, structure, leaves), a _Traced for each traced leaf."""
    filename: str
    line: int
    function: str
    first: int
    variables: list
    globals: dict

    def filled(self, values: Sequence[Any]) -> tuple[_Frame, dict[str, Any]]:
        """(the frame, its variables by name), with values in place of what was traced."""
        return self, {name: value if structure is None else structure.unflatten(
            [values[x.number] if type(x) is _Traced else x for x in value])
            for name, structure, value in self.variables}

    def __str__(self) -> str:
        text = linecache.getline(self.filename, self.line).strip()
        where = f"  File \"{self.filename}\", line {self.line}, in {self.function}"
        return where + (f"\n    {text}" if text else "")

    def listing(self, around: int) -> str:
        """The lines around, as many before and after, an arrow at this one."""
        with contextlib.suppress(OSError, IndexError, TypeError, SyntaxError):
            lines = linecache.getlines(self.filename, self.globals)
            block = lines[self.first - 1:]
            if self.function != "<module>":
                block = inspect.getblock(block)
            shown = list(enumerate([*block, ""], self.first))
            at = self.line - self.first
            return "\n".join(f"{'->' if number == self.line else '  '}  {text.rstrip()}"
                             for number, text in shown[max(at - around - 1, 0):at + around + 1])
        return "    <no source>"


class _Traced(NamedTuple):
    number: int


def _captured(filter_frames: bool, most: int | None) -> tuple[list[_Frame], list[Any]]:
    """([_Frame], the tracers in their variables), the innermost frame first."""
    frames: list[_Frame] = []
    operands: list[Any] = []
    numbers: dict[int, int] = {}
    at: FrameType | None = sys._getframe(2)

    def stand_in(x: Any) -> Any:
        if not isinstance(x, Tracer) or not x._trace.alive:
            return x
        if id(x) not in numbers:
            numbers[id(x)] = len(operands)
            operands.append(x)
        return _Traced(numbers[id(x)])

    def variable(name: str, value: Any) -> tuple[str, Any, Any]:
        try:
            leaves, structure = pytree.tree_flatten(value)
        except Exception:       # a container that cannot be flattened is shown as it is
            return name, None, value
        if not any(isinstance(x, Tracer) for x in leaves):
            return name, None, value
        return name, structure, [stand_in(x) for x in leaves]
    while at is not None and (most is None or len(frames) < most):
        code = at.f_code
        if not (filter_frames and source_info._is_internal(code.co_filename)):
            inside = code.co_name != "<module>"
            variables = [variable(*item) for item in at.f_locals.items()] if inside else []
            frames.append(_Frame(code.co_filename, at.f_lineno, code.co_qualname, code.co_firstlineno,
                                 variables, at.f_globals))
        at = at.f_back
    return frames, operands


def _stop(frames: list[tuple[_Frame, dict[str, Any]]], backend: str | None, stdin: Any = None,
          stdout: Any = None) -> None:
    if backend is None:
        interactive = stdin is not None or _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
        backend = "cli" if interactive else "print"
    with _prompting:
        if backend == "cli":
            _Prompt(frames, stdin, stdout).cmdloop()
        else:
            frame, variables = frames[0]
            shown = [f"    {name} = {_short(value)}" for name, value in variables.items()]
            print("\n".join([f"Breakpoint at {source_info.short(frame.filename)}:{frame.line} "
                             f"({frame.function})", *(str(f) for f, _ in reversed(frames)), "Variables:",
                             *shown]), file=stdout, flush=True)


def _is_terminal(stream: Any) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):        # none, or a closed one
        return False


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<its repr raises {error!r}>"
    return text if len(text) <= 500 else f"{text[:500]}..."


class _Prompt(cmd.Cmd):
    prompt = "(jdb) "

    def __init__(self, frames: list[tuple[_Frame, dict[str, Any]]], stdin: Any, stdout: Any) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames, self.at = frames, 0
        self.intro = "Entering jdb:"

    def _say(self, text: str) -> None:
        print(text, file=self.stdout, flush=True)

    def _evaluate(self, text: str, show: Callable[[Any], str]) -> None:
        frame, variables = self.frames[self.at]
        try:
            self._say(show(eval(text, {**frame.globals, **variables}, variables)))
        except Exception as error:
            words = error.msg if isinstance(error, SyntaxError) else error
            self._say(f"*** {type(error).__name__}: {words}")

    def default(self, line: str) -> None:
        self._evaluate(line, repr)

    def do_p(self, arg: str) -> None:
        """p EXPRESSION: its value."""
        self._evaluate(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp EXPRESSION: its value, over several lines if it is long."""
        self._evaluate(arg, pprint.pformat)

    def do_list(self, _: str) -> None:
        """l(ist): the source of this frame's function."""
        self._show(5)

    def _show(self, around: int) -> None:
        frame = self.frames[self.at][0]
        self._say(f"> {frame.filename}({frame.line})\n{frame.listing(around)}")

    def _go(self, step: int, end: str) -> None:
        if not 0 <= self.at + step < len(self.frames):
            self._say(f"At {end} frame.")
        else:
            self.at += step
        self._show(2)

    def do_up(self, _: str) -> None:
        """u(p): to the frame that called this one."""
        self._go(1, "topmost")

    def do_down(self, _: str) -> None:
        """d(own): to the frame that this one called."""
        self._go(-1, "bottommost")

    def do_where(self, _: str) -> None:
        """w(here), bt: all frames, the innermost last."""
        self._say("\n".join(["Traceback:", *(str(frame) for frame, _ in reversed(self.frames))]))

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, _: str) -> NoReturn:
        """q(uit), exit: end the program."""
        raise SystemExit(0)

    do_l, do_u, do_d, do_w, do_bt = do_list, do_up, do_down, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit
