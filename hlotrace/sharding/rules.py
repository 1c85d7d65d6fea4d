"""Shardy rules as users write them: which axes of operands and results are cut alike."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

BATCHING = "…"      # in front of the dimensions of an array: all those that are not named


def _check_name(factor: str) -> None:
    if not factor[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got {factor!r}")


class CompoundFactor(tuple):
    """A dimension that is several factors, the slowest first: `CompoundFactor("b", "c")`, in text `(b c)`."""
    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(f"A compound factor should contain at least two factors, got {factors}")
        for factor in factors:
            if factor == BATCHING:
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """The dimensions of an array: factors, compound factors, `BATCHING` in front."""
    __slots__ = ()

    def __new__(cls, *dims: str | CompoundFactor) -> ArrayMapping:
        for i, dim in enumerate(dims):
            if not isinstance(dim, (str, CompoundFactor)):
                raise ValueError(f"ArrayMapping: dimension {i} must be a factor, a str, or a CompoundFactor, "
                                 f"got {dim!r}")
            if isinstance(dim, str) and dim != BATCHING:
                _check_name(dim)
            if dim == BATCHING and i:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
        return super().__new__(cls, dims)


class SdyShardingRule:
    """A rule: an ArrayMapping for each operand and each result, which factors are more than passed through,
    and the sizes of those that occur in compound factors alone.
    """

    def __init__(self, operand_mappings: Iterable[Iterable[Any]], result_mappings: Iterable[Iterable[Any]], *,
                 reduction_factors: tuple[str, ...] = (), need_replication_factors: tuple[str, ...] = (),
                 permutation_factors: tuple[str, ...] = (), **factor_sizes: int) -> None:
        self.operand_mappings, self.result_mappings = ([ArrayMapping(*m) for m in part] for part in (
            operand_mappings, result_mappings))
        self.kinds: dict[str, tuple[str, ...]] = {}
        for kind, given in (("reduction", reduction_factors), ("need_replication", need_replication_factors),
                            ("permutation", permutation_factors)):
            if not isinstance(given, tuple):
                raise ValueError(f"{kind}_factors must be a tuple of factors, got {given!r}")
            self.kinds[kind] = given
        said = [factor for factors in self.kinds.values() for factor in factors]
        for factor in said:
            if said.count(factor) > 1:
                raise ValueError(f"Factor {factor} can only be in one of the reduction, need replication, or "
                                 "permutation factor sets.")
        self.factor_sizes = factor_sizes
        named = {f for m in (*self.operand_mappings, *self.result_mappings) for dim in m
                 for f in (dim if isinstance(dim, CompoundFactor) else (dim,))}
        for kind, factors in (*self.kinds.items(), ("size", tuple(factor_sizes))):
            for factor in factors:
                if factor not in named:
                    raise ValueError(f"Factor {factor!r}, of which a {kind} is said, is not in the sharding "
                                     f"rule, whose factors are {', '.join(sorted(named))}")
        alone = {dim for m in (*self.operand_mappings, *self.result_mappings) for dim in m
                 if isinstance(dim, str)}
        for factor in sorted(alone & set(factor_sizes)):
            raise ValueError(f"Factor {factor} represents a whole dimension; do not specify its size")
        for factor in sorted(named - alone - set(factor_sizes)):
            raise ValueError(f"Factor {factor} is only used in compound factors; must specify its size")

    def resolved(
            self, shapes: Sequence[Sequence[int]], out_shapes: Sequence[Sequence[int]],
    ) -> tuple[list[Any], list[Any], list[int | None], dict[str, list[int]]]:
        """The rule for operands and results of these shapes, with numbers for factors.

        Returns:
            The factors of each dimension of operands, those of results, sizes of factors, {kind: factors}.
        """
        numbers: dict[Any, int] = {}
        sizes: list[int | None] = []

        def number(factor: Any, size: int | None) -> int:
            if factor not in numbers:
                numbers[factor] = len(sizes)
                sizes.append(size)
            elif sizes[numbers[factor]] is None:
                sizes[numbers[factor]] = size
            return numbers[factor]
        parts = []
        for what, mappings, given in (("operand", self.operand_mappings, shapes),
                                      ("result", self.result_mappings, out_shapes)):
            if len(mappings) != len(given):
                raise ValueError(f"Sharding rule has {len(mappings)} {what}s, but the operation has "
                                 f"{len(given)} {what}s")
            parts.append([self._dims(f"{i}th {what}", m, shape, number)
                          for i, (m, shape) in enumerate(zip(mappings, given))])
        kinds = {kind: [numbers[f] for f in factors if f in numbers] for kind, factors in self.kinds.items()}
        return parts[0], parts[1], sizes, kinds

    def _dims(self, what: str, mapping: ArrayMapping, shape: Sequence[int],
              number: Callable[[Any, int | None], int]) -> list[tuple[int, ...]]:
        batched = mapping[:1] == (BATCHING,)
        if len(mapping) - batched > len(shape) or not batched and len(mapping) != len(shape):
            raise ValueError(f"Sharding rule {what} has rank {len(mapping) - batched}, but the operation "
                             f"{what} has rank {len(shape)}")
        leading = len(shape) - len(mapping) + batched if batched else 0
        dims: list[tuple[int, ...]] = [(number((BATCHING, i), shape[i]),) for i in range(leading)]
        for dim, size in zip(mapping[batched:], shape[leading:]):
            if isinstance(dim, CompoundFactor):
                factors = [number(f, self.factor_sizes.get(f)) for f in dim]
                sizes = [self.factor_sizes[f] for f in dim if f in self.factor_sizes]
                if len(sizes) == len(dim) and prod(sizes) != size:
                    raise ValueError(f"Sharding rule {what}: the sizes of ({' '.join(dim)}) do not multiply "
                                     f"to its size {size}")
                dims.append(tuple(factors))
            else:
                dims.append((number(dim, size),))
        return dims


_TOKEN = re.compile(r"\s*(\.\.\.|[A-Za-z_][A-Za-z0-9_]*|[()]|\S)")


def parsed(text: str, **more: Any) -> SdyShardingRule:
    """The rule that is written as a string such as "... i k, k j -> ... i j"."""
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is {'no' if len(sides) < 2 else 'more than one'} -> in rule: {text!r}")
    return SdyShardingRule(*([_mapping(one) for one in side.split(",")] for side in sides), **more)


def _mapping(text: str) -> ArrayMapping:
    dims: list[str | CompoundFactor] = []
    compound: list[str] | None = None
    for token in _TOKEN.findall(text):
        if token == "(" and compound is None:
            compound = []
        elif token == ")" and compound is not None:
            dims.append(CompoundFactor(*compound))
            compound = None
        elif token == "..." and compound is None:
            dims.append(BATCHING)
        elif token[0].isalpha() or token[0] == "_":
            (dims if compound is None else compound).append(token)
        else:
            raise ValueError(f"Unknown character {token!r} in the sharding rule {text!r}")
    if compound is not None:
        raise ValueError(f"Brackets are not balanced in the sharding rule {text!r}")
    return ArrayMapping(*dims)
