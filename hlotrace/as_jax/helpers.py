"""The small functions on lists, tuples and caches of `jax._src.util`, which tests and libraries take."""
from __future__ import annotations

import functools
import inspect
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..api.signatures import name_of
from ..core.config import state

CacheInfo = namedtuple("CacheInfo", "hits misses maxsize currsize")


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The list of `zip(*args)` of one sequence or more.  ValueError for different lengths."""
    if not args:
        raise TypeError("safe_zip requires at least 1 argument.")
    lists = list(map(list, args))
    for i, x in enumerate(lists):
        if len(x) != len(lists[0]):
            raise ValueError(f"safe_zip() argument {i} has length {len(x)} but argument 0 has length "
                             f"{len(lists[0])}. All lengths: {(*map(len, lists),)}")
    return list(zip(*lists))


def foreach(f: Callable[..., Any], *args: Iterable[Any]) -> None:
    """Call `f` with the elements of sequences of one length."""
    for each in zip(*args, strict=True):
        f(*each)


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Two tuples of a sequence of pairs."""
    listed = list(pairs)
    return tuple([a for a, _ in listed]), tuple([b for _, b in listed])


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Three tuples of a sequence of triples."""
    listed = list(triples)
    return tuple([tuple([x[i] for x in listed]) for i in range(3)])


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Parts of these lengths, and what is left."""
    rest, parts = list(args), []
    for n in ns:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def split_list_checked(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Parts of these lengths, which are the whole."""
    assert sum(ns) == len(args) and all(n >= 0 for n in ns)
    return split_list(args, ns)[:-1]


def partition_list(bs: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """(those that are marked False, those that are marked True)."""
    assert len(bs) == len(xs)
    return [x for b, x in zip(bs, xs) if not b], [x for b, x in zip(bs, xs) if b]


def merge_lists(bs: Sequence[bool], unmarked: Sequence[Any], marked: Sequence[Any]) -> list[Any]:
    """The inverse of `partition_list`."""
    assert sum(bs) == len(marked) and len(bs) - sum(bs) == len(unmarked)
    off, on = iter(unmarked), iter(marked)
    return [next(on if b else off) for b in bs]


def subvals(xs: Sequence[Any], replace: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """A tuple with some elements replaced: (index, value)."""
    found = list(xs)
    for i, value in replace:
        found[i] = value
    return tuple(found)


def subs_list(subs: Sequence[int | None], src: Sequence[Any], base: Sequence[Any]) -> list[Any]:
    """For each index that element of `src`, for each None the next of `base`."""
    rest = iter(base)
    found = [next(rest) if i is None else src[i] for i in subs]
    assert next(rest, rest) is rest
    return found


def concatenate(xs: Iterable[Sequence[Any]]) -> list[Any]:
    """One list of several."""
    return [x for each in xs for x in each]


flatten = concatenate


def unflatten(xs: Iterable[Any], ns: Sequence[int]) -> list[list[Any]]:
    """The inverse of `flatten` for lists of these lengths."""
    rest = iter(xs)
    found = [[next(rest) for _ in range(n)] for n in ns]
    assert next(rest, rest) is rest
    return found


def tuple_insert(t: tuple[Any, ...], idx: int, val: Any) -> tuple[Any, ...]:
    """`t` with `val` before its element `idx`."""
    assert 0 <= idx <= len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t: tuple[Any, ...], idx: int) -> tuple[Any, ...]:
    """`t` without its element `idx`."""
    assert 0 <= idx < len(t), (idx, len(t))
    return t[:idx] + t[idx + 1:]


def tuple_update(t: tuple[Any, ...], idx: int, val: Any) -> tuple[Any, ...]:
    """`t` with `val` in place of its element `idx`."""
    assert 0 <= idx < len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx + 1:])


def ceil_of_ratio(x: int, y: int) -> int:
    """x / y, rounded up."""
    return -(-x // y)


def wrap_name(transform_name: str, name: str) -> str:
    """The name of a transformed function: "vmap(f)"."""
    return f"{transform_name}({name})"


def fun_name(fun: Callable[..., Any], default_name: str = "<unnamed function>") -> str:
    """The name of a function, or of the one in a functools.partial."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return name_of(fun) if hasattr(fun, "__name__") else default_name


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """`curry(f)(a)(b)` is f(a, b)."""
    return functools.partial(functools.partial, f)


class HashableFunction:
    """A function that is equal to those of the same code and `closure`, its values."""

    def __init__(self, f: Callable[..., Any], closure: Any) -> None:
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableFunction) and (self.f.__code__, self.closure) == (
            other.f.__code__, other.closure)

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<hashable {self.f.__name__} with closure={self.closure}>"


class OrderedSet:
    """A set that is iterated over in the order in which its elements came."""

    def __init__(self) -> None:
        self.elements: dict[Any, None] = {}

    def add(self, element: Any) -> None:
        self.elements[element] = None

    def update(self, elements: Iterable[Any]) -> None:
        self.elements.update(dict.fromkeys(elements))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __contains__(self, element: object) -> bool:
        return element in self.elements


def _key(in_key: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    return (state.trace_key if in_key else None, args, tuple(sorted(kwargs.items())))


def cache(max_size: int | None = 4096, trace_context_in_key: bool = True) -> Callable[[Any], Any]:
    """Decorator: results are kept by arguments, and by the options that programs depend on."""
    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        kept = functools.lru_cache(max_size)(lambda key, args: f(*args, **dict(key[2])))

        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            return kept(_key(trace_context_in_key, args, kwargs), args)
        vars(call).update(cache_clear=kept.cache_clear, cache_info=kept.cache_info)
        return call
    return decorate


def weakref_lru_cache(f: Callable[..., Any] | None = None, *, maxsize: int | None = 2048,
                      trace_context_in_key: bool = True, explain: Any = None) -> Any:
    """Decorator: results are kept by arguments, as long as the first one lives, which is not kept alive."""
    if f is None:
        return functools.partial(weakref_lru_cache, maxsize=maxsize,
                                 trace_context_in_key=trace_context_in_key)
    kept: OrderedDict[Any, Any] = OrderedDict()
    counts = [0, 0]

    @functools.wraps(f)
    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        rest = _key(trace_context_in_key, args, kwargs)
        key = weakref.ref(first), rest
        if key in kept:
            counts[0] += 1
            kept.move_to_end(key)
            return kept[key]
        counts[1] += 1
        found = f(first, *args, **kwargs)
        kept[weakref.ref(first, lambda dead: kept.pop((dead, rest), None)), rest] = found
        if maxsize is not None and len(kept) > maxsize:
            kept.popitem(last=False)
        return found

    def clear() -> None:
        kept.clear()
        counts[:] = [0, 0]
    vars(call).update(cache_clear=clear, cache_info=lambda: CacheInfo(*counts, maxsize, len(kept)),
                      cache_keys=lambda: [(ref(), *rest) for ref, *rest in kept])
    return call


def set_module(module: str) -> Callable[[Any], Any]:
    """Decorator: a function or class says that it is of this module."""
    def decorate(x: Any) -> Any:
        x.__module__ = module
        return x
    return decorate


__all__ = [name for name, value in vars().items() if inspect.isroutine(value) or inspect.isclass(value)
           if getattr(value, "__module__", "") == __name__ and name[0] != "_"] + ["flatten"]
