"""What transformations need of a function's signature: argument numbers, names, static values."""
from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.avals import is_arraylike
from ..core.errors import did_you_mean, name_of
from ..runtime.executables.ready import EQUAL_BUT_NOT_ALIKE


def take_names(wrapper: Any, fun: Any) -> Any:
    """functools.update_wrapper for anything callable: its name is `name_of(fun)`; what fails is left out.

    Attributes that `wrapper` has of its own, or that its class knows, stay.
    """
    for attribute in functools.WRAPPER_ASSIGNMENTS:
        try:
            setattr(wrapper, attribute, getattr(fun, attribute))
        except Exception:       # it has none, or one that fails
            pass
    wrapper.__name__ = name_of(fun)
    for attribute, value in ({} if isinstance(fun, type) else getattr(fun, "__dict__", {})).items():
        if not hasattr(type(wrapper), attribute):
            wrapper.__dict__.setdefault(attribute, value)
    wrapper.__wrapped__ = fun
    return wrapper


def wraps(fun: Any, doc: str = "", original: bool = False) -> Callable[[Any], Any]:
    """functools.wraps for anything callable; see `take_names`.

    Args:
        doc: the wrapper's docstring; without one it is that of `fun`.
        original: does the docstring of `fun` follow `doc`?
    """
    def take(wrapper: Any) -> Any:
        said = take_names(wrapper, fun).__doc__
        if doc:
            wrapper.__doc__ = f"{doc}\n\nOriginal documentation:\n\n{said}" if original and said else doc
        return wrapper
    return take


def signature_of(fun: Any) -> inspect.Signature | None:
    """inspect.signature, or None where Python cannot tell."""
    try:
        return inspect.signature(fun)
    except Exception:       # also what a class raises that is asked for its attributes
        return None


def as_tuple(value: Any, convert: Callable[[Any], Any], what: str) -> tuple[Any, ...]:
    """An int or a str, or a sequence of them, as a tuple."""
    if value is None:
        return ()
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        value = (value,)
    try:
        return tuple(convert(v) for v in value)
    except TypeError:
        raise TypeError(f"{what} must be {'an int' if convert is operator.index else 'a str'} or a sequence "
                        f"of them, got {value!r}") from None


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def numbers_and_names(fun: Callable[..., Any], numbers: Any, names: Any,
                      what: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(argument numbers, argument names); where only one is given, the other through the signature of `fun`.

    With both they are as given: the signature may be that of a function that `fun` wraps, with its own
    arguments before.

    Raises:
        ValueError: for a number or a name that the signature does not have.
    """
    both = numbers is not None and names is not None
    numbers = as_tuple(numbers, operator.index, f"{what}_argnums")
    names = as_tuple(names, _name, f"{what}_argnames")
    if not numbers and not names:
        return (), ()
    signature = signature_of(fun)
    if signature is None:
        return tuple(sorted(numbers)), names
    parameters = list(signature.parameters.values())
    kinds = inspect.Parameter
    either = kinds.POSITIONAL_OR_KEYWORD
    positional = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, either)]
    keyword = [p.name for p in parameters if p.kind in (either, kinds.KEYWORD_ONLY)]
    has_rest = any(p.kind == kinds.VAR_POSITIONAL for p in parameters)
    if not any(p.kind == kinds.VAR_KEYWORD for p in parameters):
        for n in names:
            if n not in keyword:
                raise ValueError(f"Jitted function has invalid argnames {{{n!r}}} in {what}_argnames. "
                                 f"Function does not take these args: the parameters of {name_of(fun)} are "
                                 f"{', '.join(p.name for p in parameters)}{did_you_mean(n, keyword)}")
    if not has_rest:
        for n in numbers:
            if not -len(positional) <= n < len(positional):
                raise ValueError(f"Jitted function has {what}_argnums={numbers}, but only accepts "
                                 f"{len(positional)} positional arguments. Argument number {n} of "
                                 f"{name_of(fun)} does not exist.")
    numbers = tuple(n + len(positional) if n < 0 and not has_rest else n for n in numbers)
    if both:
        return tuple(sorted(numbers)), names
    all_numbers = {*numbers, *(positional.index(n) for n in names if n in positional)}
    all_names = {*names, *(positional[n] for n in numbers if 0 <= n < len(positional)
                           and positional[n] in keyword)}
    return tuple(sorted(all_numbers)), tuple(sorted(all_names))


def split_statics(args: Any, kwargs: dict[str, Any], numbers: Sequence[int],
                  names: Iterable[str] = ()) -> tuple[Any, dict[str, Any], tuple[Any, ...]]:
    """(args, kwargs, ((position or name, value), ...)): arguments without those that are named, and those."""
    statics = [(n, args[n]) for n in numbers if n < len(args)]
    if statics:
        args = tuple([a for i, a in enumerate(args) if i not in numbers])
    named = [(k, kwargs[k]) for k in names if k in kwargs]
    if named:
        kwargs = {k: v for k, v in kwargs.items() if k not in names}
    return args, kwargs, (*statics, *named)


def insert_statics(args: Iterable[Any], kwargs: dict[str, Any],
                   statics: Iterable[tuple[int | str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """The inverse of `split_statics`."""
    args, kwargs = list(args), dict(kwargs)
    for where, value in statics:
        if isinstance(where, str):
            kwargs[where] = value
        else:
            args.insert(where, value)
    return args, kwargs


def static_key(statics: Iterable[tuple[int | str, Any]],
               name: object) -> tuple[tuple[int | str, Static], ...]:
    """These arguments as part of a cache key: ((position or name, Static), ...)."""
    return tuple([(where, Static(value, where, name)) for where, value in statics])


def static_values(key: Iterable[tuple[int | str, Static]]) -> list[tuple[int | str, Any]]:
    """The inverse of `static_key`."""
    return [(where, static.value) for where, static in key]


def donation_vector(donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: Any,
                    kws: bool = True) -> tuple[bool, ...]:
    """For each leaf of the arguments whether it is donated.

    Args:
        in_tree: as for `flatten_fun`, without keywords if not `kws`.
        kws: there are keywords.

    >>> jax.api_util.donation_vector((0,), ("c",), jax.tree.structure(((1, (2, 3)), {"c": 4})))
    (True, False, False, True)
    """
    args, *rest = in_tree.children() if kws else (in_tree,)
    marked = [(i in donate_argnums, sub) for i, sub in enumerate(args.children())]
    for keywords in rest:
        marked += [(name in donate_argnames, sub)
                   for name, sub in zip(keywords.node_data()[1], keywords.children())]
    return tuple(mark for mark, sub in marked for _ in range(sub.num_leaves))


def rebase_donate_argnums(donate_argnums: Iterable[int],
                          static_argnums: Iterable[int]) -> tuple[int, ...]:
    """The numbers of donated arguments where static ones are left out.

    >>> jax.api_util.rebase_donate_argnums((3, 4), (0, 1))
    (1, 2)
    """
    return tuple(sorted({n - sum(s < n for s in set(static_argnums)) for n in donate_argnums}))


class NotHashable(ValueError):
    """A static argument is not hashable."""


NotHashable.__name__ = NotHashable.__qualname__ = "ValueError"      # as tracebacks show it
NotHashable.__module__ = "builtins"


class Static:
    """A static argument in a cache key: equal in type as well as in value (1, 1.0 and True differ)."""
    __slots__ = ("value", "hash")

    def __init__(self, value: Any, where: int | str, name: object) -> None:
        self.value = value
        try:
            self.hash = hash(value)
        except TypeError as error:
            mend = ("an array is data: pass it as an argument that is not static" if is_arraylike(value) else
                    "pass a tuple instead of a list, or define __hash__ and __eq__")
            raise NotHashable(
                "Non-hashable static arguments are not supported. An error occurred while trying to hash an "
                f"object of type {type(value)}, {value!s:.200}, argument {where!r} of {name}. The error "
                f"was:\n{type(error).__name__}: {error}\nStatic arguments are part of a cache key: "
                f"{mend}.") from None

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: Any) -> bool:
        try:
            return alike(self.value, other.value)
        except Exception as error:
            raise ValueError(
                "static arguments should be comparable using __eq__. The following error was raised when "
                f"comparing two objects of types {type(self.value)} and {type(other.value)}. The error was:\n"
                f"{type(error).__name__}: {error}") from error


def alike(a: Any, b: Any) -> bool:
    """Are they equal in type and value, also what tuples hold, and the signs of zeros?"""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    return repr(a) == repr(b) if isinstance(a, EQUAL_BUT_NOT_ALIKE) else bool(a == b)
