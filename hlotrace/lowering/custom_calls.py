"""Custom calls as text: a kernel's name, its configuration as typed attributes, its operands' layouts."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import SUPPORTED
from .constants import dense, element

# targets of which each device may call the kernel on its part of leading axes
batch_partitionable: set = set()
# operations that are values, or that end blocks
_WITHOUT_TAGS = ("stablehlo.constant", "stablehlo.return", "return", "sdy.")
_BARRIER = "stablehlo.optimization_barrier "
# Those of linear algebra, by how their names begin.
_FACTORIZATIONS = ("lapack_", "tridiagonal_solve_", "cusolver_", "cuhybrid_", "cusparse_gtsv2_", "cu_lu_",
                   "cu_tridiagonal_")


def cut_by_batch(target: str) -> bool:
    """May each device call this kernel on its part of leading axes?"""
    return target in batch_partitionable or target.startswith(_FACTORIZATIONS)


def cut_in_front(axes: int, avals: Sequence[Any], out_avals: Sequence[Any]) -> str:
    """The attributes by which a call of such a kernel is cut along its `axes` leading axes."""
    leading, sizes, mappings = range(axes), list(avals[0].shape[:axes]), []
    for aval in (*avals, *out_avals):
        mappings.append([(i,) for i in (*leading, *range(len(sizes), len(sizes) + aval.ndim - axes))])
        sizes += aval.shape[axes:]
    return (f', mhlo.frontend_attributes = {{num_batch_dims = "{axes}"}}' +
            sharding_rule(mappings[:len(avals)], mappings[len(avals):], sizes,
                          need_replication=range(axes, len(sizes))))


def sharding_rule(operands: Sequence[Sequence[Iterable[int]]], results: Sequence[Sequence[Iterable[int]]],
                  sizes: Sequence[Any], **kinds: Iterable[int]) -> str:
    """`, sdy.sharding_rule = ...`: which axes of operands and results are cut alike.

    Args:
        operands: for each value and each of its axes the factors that it is made of, as positions in `sizes`.
        results: as `operands`.
        kinds: factors that are more than passed through: `reduction`, `need_replication`, `permutation`.
    """
    def name(factor: int) -> str:       # Shardy's own: i to z, z_1, z_2, ...
        return chr(ord("i") + factor) if factor < 18 else f"z_{factor - 17}"

    def listed(values: Sequence[Sequence[Iterable[int]]]) -> str:
        return ", ".join(f"[{', '.join(''.join(map(name, axis)) for axis in value)}]" for value in values)
    special = "".join(f" {kind}={{{', '.join(map(name, sorted(factors)))}}}"
                      for kind, factors in kinds.items() if factors)
    return (f", sdy.sharding_rule = #sdy.op_sharding_rule<({listed(operands)})->({listed(results)}) "
            f"{{{', '.join(f'{name(i)}={size}' for i, size in enumerate(sizes))}}}{special}, custom>")


class Attribute(str):
    """An attribute as it is written: `attribute` leaves it so."""
    __slots__ = ()


def text(target: str, names: Sequence[str], avals: Sequence[Any], out_avals: Sequence[Any], *,
         layouts: Sequence[Any] | None = None, result_layouts: Sequence[Any] | None = None,
         config: Any = None, aliases: Mapping[int, int] | None = None, api_version: int = 4,
         effect: bool = False, attributes: str = "") -> str:
    """The `stablehlo.custom_call` of a kernel on values of `avals`, with results of `out_avals`.

    Args:
        layouts: for each operand its axes, the fastest one first, or None where the last is the fastest.
        result_layouts: as `layouts`, of the results.
        config: {name: value} for a kernel of the typed FFI (see `attribute`), an `Attribute`; a string for
            one of another API version.
        aliases: {operand: result} of those that are one buffer.
        effect: is it called though nothing uses its results?
        attributes: more of them, as text that starts with a comma.
    Raises:
        TypeError: for a configuration that does not go with the API version, or that has no attribute.
    """
    typed = api_version >= 4
    if config is None:
        config = {} if typed else ""
    kinds = (dict, Attribute) if typed else (str,)
    if type(config) not in kinds:
        raise TypeError(f"{target}: a kernel of API version {api_version} takes a "
                        f"{'dict' if typed else 'str'} as its configuration, not {config!r}")
    parts = [] if typed or api_version == 1 else [f"api_version = {api_version} : i32"]
    parts.append(f"backend_config = {quoted('' if typed else config)}")
    if effect:
        parts.append("has_side_effect = true")
    if typed:       # by which XLA knows the typed FFI
        parts.append(f"mhlo.backend_config = {attribute(config)}")
    if layouts is not None or result_layouts is not None:
        parts += [f"operand_layouts = {_layouts(layouts, avals)}",
                  f"result_layouts = {_layouts(result_layouts, out_avals)}"]
    if aliases:
        parts.append("output_operand_aliases = "
                     f"[{', '.join(_alias(*pair, len(out_avals)) for pair in aliases.items())}]")
    types, out_types = ([a.mlir for a in listed] for listed in (avals, out_avals))
    results = out_types[0] if len(out_types) == 1 else f"({', '.join(out_types)})"
    return (f"stablehlo.custom_call @{_name(target)}({', '.join(names)}) {{{', '.join(parts)}{attributes}}} "
            f": ({', '.join(types)}) -> {results}")


def tagged(operation: str, attributes: Sequence[tuple[str, str]]) -> str:
    """An operation's text with frontend attributes, or as it is where its syntax has no place for them."""
    last = operation.rfind("\n") + 1
    at = operation.rfind(" : ", last)
    while at > 0 and _depth(operation[at:]):
        at = operation.rfind(" : ", last, at)
    if at < 0 or last and operation[0] != '"' or operation.startswith(_WITHOUT_TAGS):
        return operation
    head, mark = operation[:at], f"mhlo.frontend_attributes = {attribute(dict(sorted(attributes)))}"
    if head.startswith(_BARRIER):   # its attributes are before its operands
        return f"{_BARRIER}{{{mark}}} {operation.removeprefix(_BARRIER)}"
    if head.endswith("}"):      # there are attributes already
        return f"{head[:-1]}, {mark}}}{operation[at:]}"
    return f"{head} {{{mark}}}{operation[at:]}"


def _depth(text: str) -> int:
    """How many more brackets are closed than opened; an arrow is none."""
    plain = text.replace("->", "")
    return sum(plain.count(closing) - plain.count(opening) for opening, closing in ("{}", "()", "[]", "<>"))


def attribute(value: Any) -> str:
    """The MLIR attribute of a value.

    Args:
        value: a bool, int (i64), float (f64), string, bytes, dtype, NumPy scalar of that type, NumPy array,
            or a tuple, list or table of such.
    Raises:
        TypeError: for any other value.
    """
    match value:
        case bool() | np.bool_():
            return "true" if value else "false"
        case Attribute():
            return value
        case str() | bytes():
            return quoted(value)
        case dict():
            return f"{{{', '.join(f'{_name(key)} = {attribute(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(attribute, value))}]"
        case np.dtype() if value in SUPPORTED:
            return SUPPORTED[value]
        case int() if type(value) is int:
            value = np.int64(value)
        case float() if type(value) is float:
            value = np.float64(value)
    if isinstance(value, np.ndarray) and value.dtype in SUPPORTED:
        return f"{dense(value)} : tensor<{''.join(f'{n}x' for n in value.shape)}{SUPPORTED[value.dtype]}>"
    if isinstance(value, np.generic) and value.dtype in SUPPORTED and value.dtype.kind != "c":
        return f"{element(value, value.dtype)} : {SUPPORTED[value.dtype]}"
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be an attribute of a custom call: use "
                    "booleans, numbers, strings, NumPy scalars and arrays, or tuples and dictionaries of "
                    "them")


# each byte as a string literal of MLIR has it
_BYTES = [chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in range(256)]


def quoted(data: str | bytes) -> str:
    """A string, or bytes, as a string literal of MLIR."""
    codes = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    return f'"{"".join([_BYTES[b] for b in codes])}"'


def _name(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$.]*", text) else quoted(text)


def _layouts(layouts: Sequence[Any] | None, avals: Sequence[Any]) -> str:
    written = []
    for order, aval in zip(layouts or [None] * len(avals), avals, strict=True):
        if order is None:
            order = range(aval.ndim - 1, -1, -1)
        written.append(attribute(np.array(order, np.int64)).replace("i64>", "index>"))
    return f"[{', '.join(written)}]"


def _alias(operand: int, result: int, results: int) -> str:
    indices = f"[{result}]" if results > 1 else "[]"
    return (f"#stablehlo.output_operand_alias<output_tuple_indices = {indices}, operand_index = {operand}, "
            "operand_tuple_indices = []>")


def column_major(ndim: int) -> tuple[int, ...]:
    """The layout of a batch of matrices in column-major order, as LAPACK and its kin read them."""
    return (ndim - 2, ndim - 1, *range(ndim - 3, -1, -1))
