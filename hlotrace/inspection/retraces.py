"""Why a jitted function is traced again, in words: the argument, and what of it changed.

Imported when something is traced a second time.  A trace's types are (structure, avals, static values,
number of the options in force, named axes), as in the key of its cache; only those are kept, never values.
"""
import collections
import functools
import logging
import types as python_types
from collections.abc import Callable

from ..core import config as options, source_info
from ..core.avals import is_arraylike
from ..core.pytrees import pytree

KEPT = 64            # retraces remembered for each function
ALL_LOGGED = 12      # of one function; later ones at powers of two
FROM = 3             # where nothing else was asked for, one retrace or two may well be meant

_TURN_OFF = "hlotrace.config.update('jax_explain_cache_misses', False) turns these messages off"
_HINTS = {
    "weak": "a Python number is weakly typed, what comes out of the function is an array: start from an "
            "array, jnp.asarray(0.0, jnp.float32)",
    "shape": "each shape is compiled for itself: pad to a few sizes",
    "static": "each value of a static argument is compiled for itself: pass a number that changes as an "
              "array",
    "structure": "a program is compiled for one structure of its arguments",
}


# in a process for JAX, in place of the messages here: (function, its types before or None, those now, line,
# was the same code traced before?)
log_as_jax: Callable[..., None] | None = None


class History:
    """The traces of one function: the first, and the last retraces with their explanations."""

    def __init__(self, types, where):
        self.first = where
        self.count = 0
        self.types = collections.deque([types], KEPT + 1)
        self.lines = collections.deque(maxlen=KEPT)


class Story(list):
    """A list of lines that prints as lines."""

    def __str__(self):
        return "\n".join(self)


def story(jitted, history):
    """What `why_retraced` gives."""
    if history is None:
        return Story()
    if type(history) is tuple:
        history = History(*history)
    dropped = history.count - len(history.lines)
    return Story([f"{jitted._name}: first trace{_at(history.first)}",
                  *([f"{jitted._name}: {dropped} retraces that are no longer remembered"] if dropped else []),
                  *history.lines])


def retraced(jitted, history, types, where, requested):
    """Add a trace to the history, which is made of the first trace's types and line; log it if it is due."""
    if type(history) is tuple:
        history = History(*history)
    history.count += 1
    n, name = history.count, jitted._name
    try:
        found = changes(jitted._fun, nearest(jitted._fun, history.types, types), types)
    except Exception as error:      # a static value's __repr__, say: no explanation is worth a failing call
        found = [("unknown", f"what changed cannot be put into words: {error!r}")]
    shown = [text for _, text in found[:4]]
    if len(found) > 4:
        shown.append(f"and {len(found) - 4} more changes")
    line = f"{name}: retrace {n}: {'; '.join(shown)}{_at(where)}"
    if log_as_jax is not None and options.config.jax_explain_cache_misses:
        log_as_jax(jitted, nearest(jitted._fun, history.types, types), types, where)
    history.types.append(types)
    history.lines.append(line)
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    explain = options.config.jax_explain_cache_misses
    if explain is None:
        explain = n >= FROM and not requested and kinds != ["closure"] and not _of_a_library(jitted._fun)
    if explain and log_as_jax is None:
        hints = [*(_HINTS[kind] for kind in kinds if kind in _HINTS), f"{name}.why_retraced() lists them all",
                 _TURN_OFF]
        _log(n, f"{line} ({'; '.join(hints)})" if n <= FROM else line)
    return history


def another_function(jitted, counts, number, types, where):
    """Count a first trace of a function whose code was traced before; log a function new in each round."""
    captured = []
    key = hash((identity(jitted._fun, captured), number))
    n = counts[key] = 1 + (counts.get(key) or counts.pop(number, 0))
    if len(counts) > 1024:
        counts.pop([*counts][0], None)      # at once: another thread may count too
    explain = options.config.jax_explain_cache_misses
    if log_as_jax is not None and explain:
        return
    if n >= FROM and not _of_a_library(jitted._fun) if explain is None else explain and n > 1:
        passing = (f" and pass {', '.join(dict.fromkeys(captured))}, which it closes over, as arguments"
                   if captured else "")
        _log(n, f"{jitted._name}: function object {n} of the same code is traced for the same argument "
             f"types{_at(where)}. jit keeps its programs by function object: make the jitted function once, "
             f"outside the loop{passing}" + (f" ({_TURN_OFF})" if n <= FROM else ""))


def _of_a_library(fun):
    """Is a function's code in an installed package?  Then it is not the user who can mend it, and nothing is
    said unasked."""
    while isinstance(fun, (functools.partial, python_types.MethodType)):
        fun = fun.func if isinstance(fun, functools.partial) else fun.__func__
    code = getattr(fun, "__code__", None)
    return code is not None and ("site-packages" in code.co_filename or "dist-packages" in code.co_filename)


def _log(n, text):
    if n < ALL_LOGGED or n & (n - 1) == 0:
        logging.getLogger("hlotrace").warning("%s", text)
    elif n == ALL_LOGGED:
        logging.getLogger("hlotrace").warning("%s; from here on only numbers 16, 32, 64, ... are reported",
                                              text)


def _at(where):
    return f", called at {source_info.describe(where)}" if where else ""


# What changed between two traces

def nearest(fun, earlier, new):
    """The types, among those of earlier traces, that differ least from `new`; the latest of equals."""
    def distance(old):
        return ((old.trace_key is not new.trace_key) + len({*old.statics} ^ {*new.statics})
                + sum(a is not b for a, b in zip(old.avals, new.avals)))
    same_structure = [old for old in reversed(earlier) if old.in_tree == new.in_tree]
    if same_structure:
        return min(same_structure, key=distance)
    return min(list(reversed(earlier))[:8], key=lambda old: len(changes(fun, old, new)))


def changes(fun, old, new):
    """A pair (kind, words) for each difference between the types of two traces."""
    before, now = arguments(fun, old), arguments(fun, new)
    found = []
    for name in {**before, **now}:
        if name not in before:
            found.append(("structure", f"{name}: not passed -> {_described(now[name])}"))
        elif name not in now:
            found.append(("structure", f"{name}: {_described(before[name])} -> not passed"))
        else:
            found += _argument_changes(name, before[name], now[name])
    if old.trace_key is not new.trace_key:
        a, b = old.trace_key, new.trace_key
        found += [("option", f"option {name}: {x!r} -> {y!r}")
                  for name, x, y in zip(options.TRACING, a.options, b.options) if x != y]
        (meshes, _), (now, _) = a.meshes, b.meshes
        if meshes != now:
            found.append(("mesh", f"current mesh: {meshes[-1] if meshes else None} -> "
                          f"{now[-1] if now else None}"))
        if a.axes != b.axes:
            found.append(("axes", f"named axes: {_sizes(a.axes)} -> {_sizes(b.axes)}"))
    return found or [(
        "closure", "the types are those of an earlier trace, but it closes over values that an outer "
        "transformation traces, so no trace can be used again: pass them as arguments")]


def _sizes(axis_env):
    return {name: size for name, size, _ in axis_env}


def arguments(fun, types):
    """name -> (how it was passed, structure, avals) or (how, static value, None), for each argument."""
    in_tree, avals, statics, _ = types
    positional, named = in_tree.children()
    keys = named.node_data()[1]
    numbers = {where: value for where, value in statics if type(where) is int}
    names, keywords = pytree.arg_names(fun, len(positional.children()) + len(numbers), keys)
    found, start = {}, 0
    dynamic = [name for i, name in enumerate(names) if i not in numbers]
    for how, name, structure in [*(("by position", *pair) for pair in zip(dynamic, positional.children())),
                                 *(("by keyword", keywords[k], sub)
                                   for k, sub in zip(keys, named.children()))]:
        found[name] = how, structure, avals[start:start + structure.num_leaves]
        start += structure.num_leaves
    for where, value in statics:
        how, name = ("by position", names[where]) if type(where) is int else ("by keyword", where)
        found[name] = how, value, None
    return found


def _argument_changes(name, old, new):
    (how, a, avals), (how_now, b, avals_now) = old, new
    if avals is None and a != b:
        kinds = type(a.value), type(b.value)
        note = f" ({kinds[0].__name__} -> {kinds[1].__name__})" if kinds[0] is not kinds[1] else ""
        yield "static", f"{name}: {a.value!r:.60} -> {b.value!r:.60}{note}"
    elif a != b:
        for line in pytree.structure_mismatch("", a, b, ("the earlier trace", "this one")).split("\n  ")[1:]:
            path, text = line[3:].split(": ", 1) if line.startswith("at ") else ("", line)
            yield "structure", f"{name}{path}: {text}"
    elif avals is not None and avals != avals_now:
        for path, x, y in zip(pytree.leaf_paths(a, prefix=name), avals, avals_now):
            if x is not y:
                kind = next((f for f in ("shape", "dtype") if getattr(x, f) != getattr(y, f)), "weak")
                yield kind, f"{path}: {_type(x)} -> {_type(y)}"
    elif how != how_now:
        yield "structure", f"{name}: passed {how} -> {how_now}"


def _type(aval):
    return f"{'weak ' if aval.weak_type else ''}{aval.str_short(True)}"


def _described(argument):
    _, what, avals = argument
    if avals is None:
        return f"{what.value!r:.60}"
    return _type(avals[0]) if what.num_nodes == 1 and avals else f"a tree of {len(avals)} arrays"


# Which function objects are one function to the user

def identity(fun, captured, depth=5):
    """What makes two function objects the same: their code and what they hold, but numbers and arrays.

    The names under which they close over numbers, arrays and trees of them go to `captured`.
    """
    if isinstance(fun, functools.partial):
        held = [*((f"argument {i} of the partial", x) for i, x in enumerate(fun.args)),
                *sorted(fun.keywords.items())]
        parts = [_held(name, x, captured, depth, True) for name, x in held]
        return "partial", identity(fun.func, captured, depth - 1), *parts
    if isinstance(fun, python_types.MethodType):
        return id(fun.__self__), identity(fun.__func__, captured, depth - 1)
    if not isinstance(fun, python_types.FunctionType) or depth <= 0:
        return id(fun)
    fun = vars(fun).get("inner", fun)       # of a boundary
    code = fun.__code__
    held = []
    for name, cell in zip(code.co_freevars, fun.__closure__ or ()):
        try:
            held.append((name, cell.cell_contents))
        except ValueError:      # not bound yet
            pass
    defaults = (*(fun.__defaults__ or ()), *(fun.__kwdefaults__ or {}).values())
    # In the library's own wrappers (of grad, vmap, ...) numbers say what is done.
    users = not source_info._is_internal(code.co_filename)
    return (code, *(_held(name, value, captured, depth, users) for name, value in held),
            *(_held("default", value, [], depth, users) for value in defaults))


def _held(name, value, captured, depth, users):
    if callable(value):
        return identity(value, captured, depth - 1)
    try:
        leaves = pytree.tree_leaves(value) if users and type(value) is not bool else ()
    except ValueError:      # a dict whose keys have no order
        leaves = ()
    if leaves and all(is_arraylike(x) for x in leaves):
        captured.append(name)
        return name
    if type(value) is tuple:
        return tuple(_held(name, x, captured, depth, users) for x in value)
    return value if isinstance(value, (int, str, type(None))) else id(value)
