"""Where exceptions leave this package for the user's code: with the user's frames and the call's words.

A function that users call is made a `boundary`, most of them by `export_names` (`core/surface/public.py`).
Nothing is done until an exception passes; then `reraise_for_user` adds what only this place knows, the name
under which the user called and the operands under the user's names, and filters the traceback as
`jax_traceback_filtering` says.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import linecache
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from opcode import opmap
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from .. import config as options, source_info
from ..array import Array
from ..avals import is_arraylike
from ..config import Config, config
from ..errors import did_you_mean, page_of

_RAISE = opmap["RAISE_VARARGS"]
# Files whose frames count as ours where they are next to ours.
_HELPERS = (*(os.path.dirname(str(sys.modules[name].__file__)) + os.sep
              for name in ("numpy", "ml_dtypes", "jaxlib") if name in sys.modules), functools.__file__,
            os.path.join(os.path.dirname(os.__file__), "contextlib.py"), "<frozen")
_STANDARD = os.path.join(os.path.dirname(os.__file__), "")
_ITEMS = 1000       # of a container that are looked at
_NAMED = 10_000     # objects that are looked at for the name of an operand


class UnfilteredStackTrace(Exception):
    """The cause of an exception under `jax_traceback_filtering=remove_frames`: it has all frames."""
    # where in the traceback of the exception what this one shows whole begins
    folded: TracebackType | None = None


# (function, its args, its kwargs) -> what it gives; runtime/recalled.py puts its own here
recall: Any = None


def boundary(function: Callable[..., Any], called: str | None = None, method: bool = False,
             recalled: bool = False) -> Any:
    """`function` as users call it: what it raises is raised by `reraise_for_user`.  A decorator, too.

    Args:
        called: the name that users call, such as "jnp.sum"; by default the function's own
        method: is its first argument left out of what is said?
        recalled: is it a function of arrays?  Then its calls are found again by `recall`.
    """
    # Neither has cells: libraries put code of their own into functions without them (Qwix).  A question which
    # it is, or a parameter more that has a default, is time in every call.
    def call(*args: Any, _of: Any = None, **kwargs: Any) -> Any:
        try:
            return _of[0](*args, **kwargs)
        except HoldsArray:
            return _of[1](*arrays_of(args), **arrays_of(kwargs))
        except Exception as error:
            reraise_for_user(error, _of[1].called, args[_of[2]:], kwargs)
            raise

    def call_recalled(*args: Any, _of: Any = None, **kwargs: Any) -> Any:
        try:
            return recall(_of[0], args, kwargs)
        except HoldsArray:
            return _of[1](*arrays_of(args), **arrays_of(kwargs))
        except Exception as error:
            reraise_for_user(error, _of[1].called, args[_of[2]:], kwargs)
            raise
    entry: Any = functools.wraps(function)(call_recalled if recalled else call)
    entry.called, entry.inner = function.__name__ if called is None else called, function
    entry.__kwdefaults__["_of"] = function, entry, method
    return entry


class HoldsArray(TypeError):
    """Raised for an argument that gives an array by `__jax_array__`: the call is made again with that."""


def arrays_of(value: Any) -> Any:
    """`value` with the arrays of what has `__jax_array__`, also in lists, tuples and dicts.  TypeError where
    that gives none."""
    if isinstance(value, (list, tuple)):
        return getattr(value, "_make", list if isinstance(value, list) else tuple)(map(arrays_of, value))
    if type(value) is dict:
        return {key: arrays_of(one) for key, one in value.items()}
    if not hasattr(value, "__jax_array__") or is_arraylike(value):
        return value
    found = value.__jax_array__()
    if not is_arraylike(found):     # else the calls would never end
        raise TypeError(f"__jax_array__ of a {type(value).__name__} gives a {type(found).__name__}; it must "
                        "give an array")
    return found


def filtered(function: Callable[..., Any]) -> Any:
    """Decorator of a function that a transformation gives: what it raises has the user's frames alone."""
    call = boundary(function, "")
    call.__wrapped__ = getattr(function, "__wrapped__", function)       # which may be the user's
    return call


# libraries look for this name among the globals of a function, and know a transformation by it
api_boundary = filtered


def boundaries(cls: Any = None, *, called: str | None = None, but: str = "", tell_self: bool = False) -> Any:
    """Class decorator: its public methods, and those that Python calls for users, are boundaries.

    Args:
        called: the name of the class in messages; where that is empty, methods have none there
        but: names, separated by blanks, of methods that are not: what the library itself calls often, and
            what does not fail
        tell_self: is the object itself shown in messages of public methods?  Of arrays it always is.
    """
    if cls is None:
        return functools.partial(boundaries, called=called, but=but, tell_self=tell_self)
    owner = cls.__name__ if called is None else called
    array = issubclass(cls, Array)
    for name, method in list(vars(cls).items()):
        if name == "__new__":       # a staticmethod
            cls.__new__ = staticmethod(boundary(method.__func__, owner, method=True))
        if isinstance(method, (classmethod, staticmethod)) and name not in but.split():
            of_class = isinstance(method, classmethod)
            setattr(cls, name, type(method)(boundary(method.__func__, owner and f"{owner}.{name}",
                                                     method=of_class)))
        if isinstance(method, types.FunctionType) and name not in but.split():
            if name in (_OF_ARRAYS if array else _OF_OTHERS):
                # bool(x)
                setattr(cls, name, boundary(method, name.strip("_") if array else owner, method=not array))
            elif not name.startswith("_"):
                setattr(cls, name, boundary(method, owner and f"{owner}.{name}",
                                            method=not (array or tell_self)))
    return cls


# What Python calls for users.  Of other objects than arrays it also calls __hash__ and kin, which do not fail
# and are hot.
_OF_OTHERS = {f"__{name}__" for name in "init call getitem enter".split()}
_OF_ARRAYS = {f"__{name}__" for name in """init getitem setitem bool int float complex index len iter array
    format str repr dlpack reduce reversed contains round""".split()}


def reraise_for_user(error: BaseException, name: str | None = None, args: tuple[Any, ...] = (),
                     kwargs: Mapping[str, Any] | None = None) -> None:
    """To be called where a function that the user called is about to raise `error` again.  `name` is what the
    user called; None where nothing is to be said of it."""
    # Whatever happens here (odd objects, the end of the stack or of memory), it is `error` that the user is
    # to see.
    with contextlib.suppress(Exception):
        entry = sys._getframe(1)
        caller = entry.f_back      # None: called by the interpreter, as a new thread or at its end
        if caller is not None and caller.f_code.co_filename.startswith(source_info.PACKAGE):
            return                                   # a boundary further out is the user's
        if _last(error.__traceback__) is not None:
            with contextlib.suppress(Exception):
                annotate(error, name, args, kwargs or {}, caller, entry)
                _point_to_page(error)
        filter_traceback(error)


# --- words

def _point_to_page(error: BaseException) -> None:
    """The last line of an error says which page is about its kind, where an option says where pages are."""
    base = config.hlotrace_error_pages
    if base and not any("(more about this: " in note for note in getattr(error, "__notes__", ())):
        page = page_of(error, base)
        if page is not None:
            error.add_note(f"(more about this: {page})")


# What Python raises over a fault of ours, or where a user's function is called with other arguments than it
# takes.
_SLIPS = (TypeError, ValueError, LookupError, AttributeError, NameError, AssertionError, ArithmeticError)


def annotate(error: Any, name: str | None, args: Sequence[Any], kwargs: Mapping[str, Any],
             caller: FrameType | None, entry: FrameType) -> None:
    """Complete the message of an exception of this package; `caller` is the user's frame, `entry` ours."""
    if getattr(error, "annotated", False):
        return
    error.annotated = True
    last: Any = _last(error.__traceback__)      # the caller has looked: there is one
    plain = len(error.args) == 1 and isinstance(error.args[0], str)
    # what Python refused
    slip = last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISE
    refused = slip and re.match(r"[\w.<>]*?([\w<>]+)\(\) ((?:missing|takes|got) [^.;]*)", str(error))
    if slip and (refused or not (plain and name and _name_unfit(error, args, kwargs, entry))):
        if refused:         # by Python: the arguments of a call
            _name_parameters(error, refused, name, entry)
        elif str(error).startswith("INVALID_ARGUMENT: Disallowed "):
            error.add_note(f"({name or 'This call'} copies between host and device, which transfer_guard "
                           "refuses here; device_put and device_get say that it is meant.)")
        elif isinstance(error, _SLIPS) and not _holds_function(     # else it may be the user's slip
                x for a in (*args, *kwargs.values()) for x in (a, *(_items(a) or ()))):
            where = last.tb_frame.f_code.co_filename.removeprefix(source_info.PACKAGE)
            error.add_note(f"(raised inside of hlotrace, at {where}:{last.tb_lineno}, and not by one of its "
                           "checks: please report it. JAX_TRACEBACK_FILTERING=off shows all frames.)")
        return
    if not name or not plain:
        return
    first, newline, rest = error.args[0].partition("\n")
    call, origins = "", ""
    if not _holds_function(args) and not _holds_function(kwargs.values()):
        call, origins = _call(name, args, kwargs, caller, error.args[0])
    bare = name.rpartition(".")[2]      # its message may begin with what it calls itself
    own = re.match(rf"({re.escape(name)}|\w*{re.escape(bare)}{'|[a-z_.]+' if call else ''}): ", first)
    if not (own or call) and name != bare and first.startswith(f"{bare} "):
        first = name + first[len(bare):]
    elif own or call or not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", first.partition(". ")[0]):
        first = f"{call or name}: {first[own.end() if own else 0:]}"
    text = f"{first}{origins}{newline}{rest}"
    error.args = (text,)
    if hasattr(error, "_msg"):      # NumPy's AxisError
        error._msg = text


# From here on objects of the user's are looked at, and none of his code may run: no `__repr__`, `__eq__`,
# `__getattr__`, no property.  So `type(x)` is compared (`isinstance` would read `x.__class__`), and methods
# are those of dict, list.

def _is(x: object, kinds: Any) -> bool:
    return issubclass(type(x), kinds)


# names of parameters in other libraries
_ELSEWHERE = {"dim": "axis", "dims": "axis", "interpolation": "method"}


def _called_by(entry: FrameType) -> Any:
    """The function within the boundary of this frame."""
    return entry.f_locals.get("_of", (None,))[0]


def _name_parameters(error: BaseException, refused: re.Match[str], name: str | None,
                     entry: FrameType) -> None:
    """Add to Python's message about arguments the name that the user called, and its parameters."""
    function = _called_by(entry)
    if isinstance(function, types.FunctionType) and refused[1] == function.__name__:
        code = inspect.unwrap(function).__code__
        names = [n for n in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
                 if n not in ("self", "cls")]
        if not names:       # it hands on what it is given
            return
        keyword, mending = re.search(r"unexpected keyword argument '(\w+)'", refused[2]), ""
        if keyword:
            other = _ELSEWHERE.get(keyword[1])
            mending = f"; did you mean {other!r}?" if other in names else did_you_mean(keyword[1], names)
        of_keys = str(name).startswith("random.") and names[0] == "key"
        key = ", where key is a PRNG key such as random.key(0)" if of_keys else ""
        error.args = (f"{name or refused[1]}() {refused[2]}{mending or ';'} its parameters are "
                      f"{', '.join(names)}{key}",)


def _name_unfit(error: BaseException, args: Sequence[Any], kwargs: Mapping[str, Any],
                entry: FrameType) -> bool:
    """Is it one of the arguments that cannot do what Python asked of it, by the message, which has the name
    of its type, or its text?  Then the message says which."""
    quoted = set(re.findall(r"'([\w.]+)'", error.args[0]))
    function = _called_by(entry)
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[:code.co_argcount] if code else ()
    names += tuple(map("argument {}".format, range(len(names), len(args))))
    given = {**dict(zip(names, args)), **kwargs}
    unfit = [k for k, x in given.items() if not _is(x, Array) and not quoted.isdisjoint(
        (type(x).__name__, f"{type(x).__module__}.{type(x).__name__}", x if type(x) is str else ""))]
    if unfit and "integer" not in error.args[0]:
        shown = ", ".join([f"{k} = {_show(given[k], {})}" for k in unfit])
        error.args = (f"{error.args[0]}; it was given {shown}",)
    return bool(unfit) or error.args[0].endswith(" object cannot be interpreted as an integer")


def _holds_function(values: Iterable[object]) -> bool:
    return any(callable(v) and not _is(v, (type, np.dtype, Array)) for v in values)


def _items(x: object) -> Sequence[Any] | None:
    """The elements of a list or tuple, not too many; None for other objects."""
    kind: Any
    for kind in (list, tuple):
        if _is(x, kind):
            return kind.__getitem__(x, slice(_ITEMS))
    return None


def _call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], caller: FrameType | None,
          said: str) -> tuple[str, str]:
    """(the call as the user would write it, with types for arrays; where traced operands are from)."""
    updated = None
    if name.startswith("x.at[]"):       # what was called on `x.at[index]`, which is the first argument
        updated, *args = args
    given = (*args, *kwargs.values(), getattr(updated, "array", None))
    arrays = [x for a in given for x in (_items(a) or (a,)) if _is(x, (Array, np.ndarray))]
    if not arrays:
        return "", ""
    names = {} if caller is None else _names(caller, {id(x) for x in arrays})
    if updated is not None:
        index = (_items(updated.index) or ()) if _is(updated.index, tuple) else (updated.index,)
        name = f"({_show(updated.array, names)}).at[{', '.join(_show(x, names) for x in index)}]{name[6:]}"
    shown = [_show(x, names) for x in args]
    if name == "[]":
        index = (_items(args[1]) or ()) if _is(args[1], tuple) else args[1:]
        call = f"({shown[0]})[{', '.join(_show(x, names) for x in index)}]"
    elif name[0].isalpha() or updated is not None:
        call = f"{name}({', '.join([*shown, *(f'{k}={_show(v, names)}' for k, v in kwargs.items())])})"
    else:
        call = f" {name} ".join(f"({s})" for s in shown) if len(shown) == 2 else f"{name}({shown[0]})"
    here = caller and f"{source_info.short(caller.f_code.co_filename)}:{caller.f_lineno} "
    origins: dict[str, None] = {}
    for x in arrays:
        label = names.get(id(x)) or f"the {_show(x, names)}"
        origin = x.origin() if hasattr(x, "origin") else ""
        if origin and not (here and here in origin or origin in said or f"argument {label} of" in origin):
            origins[f"; {label} {origin}"] = None
    return call, "".join(list(origins)[:3])


def _show(x: Any, names: Mapping[int, str], depth: int = 0) -> str:
    if _is(x, (Array, np.ndarray)):
        kind = x.aval.str_short() if _is(x, Array) else f"{x.dtype.name}[{','.join(map(str, x.shape))}]"
        return f"{names[id(x)]}: {kind}" if id(x) in names else kind
    if _is(x, (type, types.FunctionType)):
        return x.__name__
    if x is Ellipsis:
        return "..."
    if _is(x, (dict, set, frozenset)):
        return "{}" if type(x) is dict and not x else "{...}"
    items = _items(x)
    if items is not None:
        most = 4 if any(_is(v, (Array, np.ndarray, list, tuple)) for v in items) else 16
        inner = ", ".join([_show(v, names, depth + 1)
                           for v in items[:most * (depth < 3)]] + ["..."] * (len(items) > most))
        text = f"[{inner}]" if _is(x, list) else f"({inner}{',' * (len(items) == 1)})"
    elif _is(x, slice):
        start, stop, step = ("" if part is None else _show(part, names, depth + 1)
                             for part in (x.start, x.stop, x.step))
        text = f"{start}:{stop}{step and ':' + step}"
    elif type(x) in (str, bytes):
        text = repr(x[:50])
    elif type(x) is int and x.bit_length() > 128 or type(x).__module__.partition(".")[0] not in _READABLE:
        text = f"{type(x).__name__}(...)"
    else:
        text = repr(x)
    short = len(text) <= 40 or items is not None and most == 4
    return text if short and "\n" not in text else f"{type(x).__name__}(...)"


# modules of classes whose `__repr__` runs no code of others
_READABLE = {"builtins", "numpy", "ml_dtypes", "hlotrace", "jax", "jaxlib"}


def _names(frame: FrameType, wanted: set[int]) -> dict[int, str]:
    """{id: how the code of `frame` can write it} of the objects `wanted`, also inside of containers."""
    code = frame.f_code
    if (code.co_filename.startswith((*_HELPERS, _STANDARD))
            and "site-packages" not in code.co_filename[len(_STANDARD):]):
        return {}       # threading, functools, numpy: their names say nothing to the user
    found: dict[int, str] = {}
    spaces, left = (_locals(frame), frame.f_globals), _NAMED
    # Those that the code names, not all that there are: in a notebook, `x` and not the `_3` that it once was.
    written = dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names))
    level = [(name, space[name]) for name in written for space in spaces if name in space]
    for _ in range(4):
        below = []
        for path, value in level:
            if id(value) in wanted:
                found.setdefault(id(value), path)
            elif left > 0 and not _is(value, (types.ModuleType, type, Array)):
                inside = [(path + step, v) for step, v in _inside(value)]
                left -= len(inside)
                below += inside
        if len(found) == len(wanted):
            break
        level = below
    return found


def _locals(frame: FrameType) -> dict[str, Any]:
    """The local variables of a frame, by name."""
    space = frame.f_locals
    if not _is(space, dict):        # a view of them; in the body of a class it may be of a user's own class
        return dict(space) if frame.f_code.co_flags & inspect.CO_OPTIMIZED else {}
    variables = dict.copy(space)
    if _is_copy(frame) and sys.getrefcount(space) < 4:
        space.clear()       # it would keep what its function deletes; nothing else refers to it
    return variables


def _is_copy(frame: FrameType) -> bool:
    """Are the `f_locals` of a frame a copy of its variables that the frame keeps?"""
    return sys.version_info < (3, 13) and bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)


def _inside(x: Any) -> list[tuple[str, Any]]:
    """[(how it is written after x, object)] of what x holds."""
    if _is(x, dict):
        return [(f"[{k!r}]", v) for k, v in list(itertools.islice(dict.items(x), _ITEMS))
                if type(k) in (str, int)]
    items = _items(x)
    if items is not None:
        fields = next((vars(c)["_fields"] for c in type(x).__mro__ if "_fields" in vars(c)), None)
        return [(f".{fields[i]}" if fields else f"[{i}]", v) for i, v in enumerate(items)]
    if type(x).__module__ in ("builtins", "types"):
        return []
    space = next((vars(c)["__dict__"] for c in type(x).__mro__ if "__dict__" in vars(c)), None)
    return [(f".{k}", v) for k, v in list(itertools.islice(space.__get__(x).items(), _ITEMS))
            ] if type(space) is types.GetSetDescriptorType else []


# --- frames

def _last(tb: TracebackType | None) -> TracebackType | None:
    """The innermost entry of a traceback if it is this package's or of what it calls, else None."""
    inside, last = False, None
    while tb is not None:
        filename = tb.tb_frame.f_code.co_filename
        ours = filename.startswith(source_info.PACKAGE)
        inside = ours or inside and filename.startswith(_HELPERS)
        if ours or not inside:
            last = tb if ours else None
        tb = tb.tb_next
    return last


note = ""       # for errors whose tracebacks are filtered; in a process for JAX it is JAX's


def filter_traceback(error: BaseException) -> None:
    """Take this package's frames out of the traceback of `error`, and its errors out of the contexts."""
    mode = config.jax_traceback_filtering
    if mode == "off":
        return
    _drop_contexts(error)
    whole = error.__traceback__
    folded = _folded(whole, mode)
    if folded is not whole:
        if mode == "remove_frames":
            _keep_whole(error, whole, folded)
        elif note and mode != "tracebackhide" and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    _set_traceback(error, folded)


def _keep_whole(error: BaseException, whole: TracebackType | None, folded: TracebackType | None) -> None:
    cause = error.__cause__
    if cause is None:
        cause = UnfilteredStackTrace("The stack trace below excludes JAX-internal frames.\nThe preceding is "
                                     "the original exception that occurred, unmodified.")
        _set_cause(error, cause)
    # what it has begins at the boundary that made it, further in
    elif type(cause) is UnfilteredStackTrace:
        outer = []
        while whole is not None and whole is not cause.folded:
            outer.append(whole)
            whole = whole.tb_next
        whole = cause.__traceback__
        for tb in reversed(outer):
            whole = types.TracebackType(whole, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    else:
        return
    cause.folded, cause.__traceback__ = folded, whole


# Exceptions of the user's may be of a class that refuses to be written to, such as a frozen dataclass.
_set_traceback, _set_context, _set_cause = (
    vars(BaseException)[f"__{name}__"].__set__ for name in ("traceback", "context", "cause"))


def _folded(tb: TracebackType | None, mode: str) -> TracebackType | None:
    """The traceback without entries that are ours, or with those marked for tools that hide them."""
    entries, kept, inside = [], [], False
    while tb is not None:
        entries.append(tb)
        tb = tb.tb_next
    for tb, following in zip(entries, [*entries[1:], None]):
        filename = tb.tb_frame.f_code.co_filename
        inside = source_info.is_package(filename) or filename.startswith(_HELPERS) and (
            inside or following is not None and source_info.is_package(following.tb_frame.f_code.co_filename))
        if not inside:
            kept.append(tb)
        elif mode == "tracebackhide":
            space = tb.tb_frame.f_locals
            if _is_copy(tb.tb_frame):
                space.clear()       # it has `error`, whose traceback has the frame
            space["__tracebackhide__"] = True
    if mode == "tracebackhide" or len(kept) == len(entries):
        return entries[0] if entries else None
    result = None
    for tb in reversed(kept):
        # where the user's code called ours, which called the user's again, the line is enough: no carets
        # below it
        direct = result is None or result.tb_frame.f_back is tb.tb_frame
        result = types.TracebackType(result, tb.tb_frame, tb.tb_lasti if direct else _uncareted(tb),
                                     tb.tb_lineno)
    return result


def _uncareted(tb: TracebackType) -> int:
    """A place in the code of a traceback's entry, on the same line, for which Python prints no carets."""
    line = linecache.getline(tb.tb_frame.f_code.co_filename, tb.tb_lineno).rstrip("\n")
    whole = (tb.tb_lineno, tb.tb_lineno, len(line) - len(line.lstrip()), len(line.rstrip()))
    places = list(tb.tb_frame.f_code.co_positions())
    for wanted in whole, (None,) * 4:
        if wanted in places:
            return 2 * places.index(wanted)
    return -1 if sys.version_info >= (3, 13) else tb.tb_lasti      # before, -1 prints an empty line


def _drop_contexts(error: BaseException | None) -> None:
    """What was caught and dealt with in this package is no part of the user's story."""
    seen = set()
    while error is not None and id(error) not in seen and type(error) is not UnfilteredStackTrace:
        seen.add(id(error))
        if error.__cause__ is not None:
            error = error.__cause__
            if type(error) is not UnfilteredStackTrace:
                _set_traceback(error, _folded(error.__traceback__, "auto"))
            continue
        context = error.__context__
        while context is not None and id(context) not in seen and _dealt_with(context.__traceback__):
            seen.add(id(context))
            context = context.__context__
        if context is not error.__context__:
            _set_context(error, context)
        error = context


def _dealt_with(tb: TracebackType | None) -> bool:
    """Does a traceback begin in this package, where it was caught, and end there, where it was raised?"""
    return (tb is not None and tb.tb_frame.f_code.co_filename.startswith(source_info.PACKAGE)
            and _last(tb) is not None)


boundaries(Config, called="config")
options.leave = reraise_for_user
