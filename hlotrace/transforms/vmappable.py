"""Classes that say themselves how vmap slices their values: JAX's `interpreters.batching.register_vmappable`.

A value of such a class is one leaf for vmap.  Inside of the mapped function is the value that its `to_elt`
makes, of arrays that have lost the mapped axis; a result is put together by `from_elt`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from ..core.pytrees import pytree


class _Rules(NamedTuple):
    spec_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


_rules: dict[type, _Rules] = {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable[..., Any],
                       from_elt: Callable[..., Any], make_iota: Callable[..., Any] | None = None) -> None:
    """Let vmap take values of a class and give them back.

    Args:
        spec_type: what in_axes and out_axes have for such a value: a class, `int` for that of arrays.
        axis_size_type: the class of the axis' size: `int`.
        to_elt: `to_elt(cont, get_idx, value, spec)` gives the value of one element, in which
            `cont(array, axis)` is in the place of each array that is mapped.
        from_elt: `from_elt(cont, axis_size, value, spec)` gives the value of all elements from that of one,
            with `cont(axis_size, array, axis)` in the place of each array.
        make_iota: what makes an index of the axis, where `axis_size_type` is not `int`.
    Raises:
        NotImplementedError: for axes whose size is no int.
    """
    if axis_size_type is not int or make_iota is not None:
        raise NotImplementedError(f"register_vmappable({data_type.__name__}): axis_size_type is int, and "
                                  "make_iota None: mapped axes have ints as sizes here, got "
                                  f"{axis_size_type.__name__} and {make_iota}")
    _rules[data_type] = _Rules(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Let vmap forget what `register_vmappable` said of a class."""
    del _rules[data_type]


def any_registered() -> bool:
    """Is there such a class?"""
    return bool(_rules)


def is_spec(axes: Any) -> bool:
    """Is it what in_axes has for a value of one of the classes?"""
    return any(isinstance(axes, rules.spec_type) for rules in _rules.values())


class Sliced:
    """The arguments of a call of a mapped function as plain arrays: `arrays`, mapped along `dims`."""

    def __init__(self, arguments: Any, axes: Any) -> None:
        leaves, self.structure = pytree.tree_flatten(arguments, is_leaf=is_vmappable)
        specs = pytree.flatten_axes("vmap in_axes", self.structure, axes)
        self.pairs = list(zip(leaves, specs, strict=True))
        self.arrays: list[Any] = []
        self.dims: list[Any] = []
        for leaf, spec in self.pairs:
            _to_elt(self._take, leaf, spec)

    def _take(self, x: Any, dim: Any) -> Any:
        self.arrays.append(x)
        self.dims.append(dim)
        return x

    def elements(self, arrays: Iterator[Any]) -> Any:
        """(args, kwargs) of one element, made of these arrays of one."""
        return self.structure.unflatten([_to_elt(lambda *_: next(arrays), *pair) for pair in self.pairs])


class Stacked:
    """A result of a mapped function as plain arrays: `arrays`, each to have its axis at `dims`."""

    def __init__(self, result: Any, axes: Any, size: int) -> None:
        leaves, self.structure = pytree.tree_flatten(result, is_leaf=is_vmappable)
        specs = pytree.flatten_axes("vmap out_axes", self.structure, axes)
        self.pairs, self.size = list(zip(leaves, specs, strict=True)), size
        self.arrays: list[Any] = []
        self.dims: list[Any] = []
        for leaf, spec in self.pairs:
            _from_elt(self._take, size, leaf, spec)

    def _take(self, _size: int, x: Any, dim: Any) -> Any:
        self.arrays.append(x)
        self.dims.append(dim)
        return x

    def whole(self, arrays: Iterator[Any]) -> Any:
        """The result of all elements, made of these arrays of all."""
        return self.structure.unflatten([_from_elt(lambda *_: next(arrays), self.size, *pair)
                                         for pair in self.pairs])


def is_vmappable(x: Any) -> bool:
    """Is it a value of one of the classes?"""
    return type(x) in _rules


def _to_elt(take: Callable[..., Any], x: Any, spec: Any) -> Any:
    def cont(x: Any, spec: Any) -> Any:
        rules = _rules.get(type(x))
        return take(x, spec) if rules is None else rules.to_elt(cont, _no_index, x, spec)
    return cont(x, spec)


def _from_elt(take: Callable[..., Any], size: int, x: Any, spec: Any) -> Any:
    def cont(size: int, x: Any, spec: Any) -> Any:
        rules = _rules.get(type(x))
        return take(size, x, spec) if rules is None else rules.from_elt(cont, size, x, spec)
    return cont(size, x, spec)


def _no_index() -> NoReturn:
    raise NotImplementedError("get_idx() of register_vmappable's to_elt: use jax.lax.axis_index, with an "
                              "axis_name for vmap")
