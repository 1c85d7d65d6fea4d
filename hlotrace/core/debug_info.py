"""Of the function that a program was traced from: where it is, and what its values are called."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from .pytrees import pytree

_TRACED_FOR = {"eval_shape": "jit", "checkpoint": "checkpoint / remat", "custom_jvp": "custom_jvp fun",
               "custom_vjp": "custom_vjp fun", "while_loop": "while_body", "while_loop cond": "while_cond"}


def traced_for(what: str) -> str:
    """JAX's word for what a function is traced for here."""
    what = what.removeprefix("lax.")
    return _TRACED_FOR.get(what, what)


class DebugInfo(NamedTuple):
    """What is known of a function that is traced: for what, its place, the names of arguments and results."""
    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | Callable[[], tuple[str, ...]] | None = None

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" at ")[0]

    @property
    def func_filename(self) -> str | None:
        return self._place()[0] or None

    @property
    def func_lineno(self) -> int | None:
        line = self._place()[2]
        return int(line) if line.isdigit() else None

    def _place(self) -> tuple[str, str, str]:
        return self.func_src_info.partition(" at ")[2].rpartition(":")

    def safe_arg_names(self, expected_count: int) -> tuple[str, ...]:
        """The names of the arguments; empty ones where there are not so many."""
        names = self.arg_names
        return names if names is not None and len(names) == expected_count else ("",) * expected_count

    def safe_result_paths(self, expected_count: int) -> tuple[str, ...]:
        """The names of the results; empty ones where there are not so many."""
        paths = self.resolve_result_paths().result_paths
        known = isinstance(paths, tuple) and len(paths) == expected_count
        return paths if known and isinstance(paths, tuple) else ("",) * expected_count

    def filter_arg_names(self, keep: Sequence[bool]) -> tuple[str, ...] | None:
        """The names of some arguments."""
        names = self.arg_names
        return None if names is None else tuple([n for n, kept in zip(names, keep, strict=True) if kept])

    def filter_result_paths(self, keep: Sequence[bool]) -> tuple[str, ...] | None:
        """The names of some results."""
        paths = self.resolve_result_paths().result_paths
        return tuple([n for n, kept in zip(paths, keep, strict=True) if kept]) if isinstance(
            paths, tuple) else None

    def replace_func_name(self, name: str) -> DebugInfo:
        """The same of a function of another name."""
        _, at, place = self.func_src_info.partition(" at ")
        return self._replace(func_src_info=f"{name}{at}{place}")

    def resolve_result_paths(self) -> DebugInfo:
        """The same with the names of the results, where a function was to give them."""
        return self._replace(result_paths=self.result_paths()) if callable(self.result_paths) else self

    def with_unknown_names(self) -> DebugInfo:
        """The same without names of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)


class Origin(NamedTuple):
    """What a DebugInfo is made of when it is asked for; it keeps no function alive."""
    what: str
    name: str
    code: CodeType | None
    bound: tuple[int, frozenset[str]]       # arguments that a method or functools.partial gives
    in_tree: pytree.PyTreeDef
    statics: tuple[int | str, ...]
    out_tree: pytree.PyTreeDef | None

    def debug_info(self, num_args: int, num_results: int) -> DebugInfo:
        """Of a program with so many inputs, the last of which are those of the function, and results."""
        names = self._arg_names()
        closed_over = num_args - len(names)
        paths = None if self.out_tree is None else pytree.leaf_paths(self.out_tree, prefix="result")
        return DebugInfo(
            traced_for(self.what), located(self.name, self.code),
            ("",) * closed_over + tuple(names) if closed_over >= 0 else None,
            None if paths is None or len(paths) != num_results else tuple(paths))

    def _arg_names(self) -> list[str]:
        args, kwargs = (tree.children() for tree in self.in_tree.children())
        keywords = self.in_tree.children()[1].node_data()[1]
        fixed = [where for where in self.statics if isinstance(where, int)]
        signature = signature_of(self.code, *self.bound) if self.code is not None else self.what
        positional, by_keyword = pytree.arg_names(signature, len(args) + len(fixed), keywords)
        dynamic = [name for i, name in enumerate(positional) if i not in fixed]
        named = [*zip(dynamic, args), *zip(map(by_keyword.__getitem__, keywords), kwargs)]
        return [path for name, tree in named for path in pytree.leaf_paths(tree, prefix=name)]


def located(name: str, code: CodeType | None) -> str:
    """`f at file.py:12`, or the name alone where it is not known where the function is."""
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def code_of(fun: Any) -> tuple[CodeType | None, tuple[int, frozenset[str]]]:
    """(the code of the function behind decorators, methods and functools.partial; what these give of it)."""
    count: int = 0
    names: frozenset[str] = frozenset()
    while True:
        if isinstance(fun, functools.partial):
            count, names, fun = count + len(fun.args), names.union(fun.keywords), fun.func
        elif inspect.ismethod(fun):
            count, fun = count + 1, fun.__func__
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            return getattr(fun, "__code__", None), (count, names)


def signature_of(code: CodeType, count: int, given: frozenset[str]) -> inspect.Signature:
    """The parameters of a function of this code, without the first `count` and those that are `given`."""
    kinds: Any = inspect.Parameter
    rest = code.co_argcount + code.co_kwonlyargcount
    listed = [(name, kinds.POSITIONAL_ONLY if i < code.co_posonlyargcount else kinds.POSITIONAL_OR_KEYWORD)
              for i, name in enumerate(code.co_varnames[:code.co_argcount])][count:]
    variable = bool(code.co_flags & inspect.CO_VARARGS)
    if variable:
        listed.append((code.co_varnames[rest], kinds.VAR_POSITIONAL))
    listed += [(name, kinds.KEYWORD_ONLY) for name in code.co_varnames[code.co_argcount:rest]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        listed.append((code.co_varnames[rest + variable], kinds.VAR_KEYWORD))
    return inspect.Signature([kinds(name, kind) for name, kind in listed if name not in given],
                             __validate_parameters__=False)
