"""Dtypes: canonical forms, kinds, Python scalars, weak types and the promotion lattice.

Knows numpy and ml_dtypes only.  The lattice is the one JAX documents under "Type promotion semantics".
"""
from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard

import ml_dtypes
import numpy as np

from . import source_info
from .config import config, state
from .errors import KeyPromotionError, TypePromotionError, did_you_mean

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")
bool_ = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))

# The dtype of tangents of integer and boolean values: no information, no bytes.
float0 = np.dtype([("float0", np.void, 0)])

# Name -> (MLIR element type) for everything that XLA can hold.
MLIR_NAMES = {
    "bool": "i1", "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
    "bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN", "float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e8m0fnu": "f8E8M0FNU",
}
_SHORT = {"bool": "bool", "bfloat16": "bf16", "float0": "float0"}
_NAMES_ONLY = ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn")      # XLA does not compute with them
_EXTRA = {name: np.dtype(getattr(ml_dtypes, name)) for name in (*MLIR_NAMES, *_NAMES_ONLY)
          if hasattr(ml_dtypes, name)}
SUPPORTED = {_EXTRA[name] if name in _EXTRA else np.dtype(name): mlir for name, mlir in MLIR_NAMES.items()
             if name in _EXTRA or hasattr(np, name)}
SMALL_FLOATS = tuple(d for n, d in _EXTRA.items() if n.startswith(("float4", "float6", "float8")))
SMALL_INTS = tuple(_EXTRA[n] for n in ("int1", "uint1", "int2", "uint2", "int4", "uint4"))
# those that share bytes on a GPU: a type that holds their values in bytes of their own
_WIDE = {"int": int8, "uint": uint8, "float4": float32}
PACKED = {d: wide for name, d in _EXTRA.items() for start, wide in _WIDE.items() if name.startswith(start)}

python_scalars = (bool, int, float, complex)
_PYTHON_KINDS = {bool: bool_, int: int64, float: float64, complex: complex128}
_CANONICAL = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}


def plain(value: Any) -> Any:
    """The Python number that an object of a class derived from one is, as the member of an IntEnum."""
    if type(value) in python_scalars or isinstance(value, np.generic):
        return value
    kind: Any = next((kind for kind in python_scalars if isinstance(value, kind)), None)
    return value if kind is None else kind(value)


class ExtendedDType:
    """Base of dtypes that NumPy does not know (PRNG keys): an element is itself a small array.

    Attributes: `name`, `physical_shape` (tuple) and `physical_dtype` of one element; `mlir`, the type of its
    arrays in programs, if that is not the type of an array of such elements.

    A user's own subclass has `_rules`, a class of functions: physical_element_aval(dtype); convert_from and
    convert_to (source, target), whether lax.convert_element_type may; full(shape, value, dtype); and for
    derivatives tangent_dtype(dtype), zero(dtype) and add(dtype, x, y), the sum of two cotangents.
    """
    name: str
    mlir: str | None = None
    _rules: Any = None
    physical_shape = functools.cached_property(lambda self: self._rules.physical_element_aval(self).shape)
    physical_dtype = functools.cached_property(lambda self: self._rules.physical_element_aval(self).dtype)
    itemsize = property(lambda self: self.physical_dtype.itemsize * int(np.prod(self.physical_shape)))
    kind = "V"
    type: Any = None


DType: TypeAlias = np.dtype | ExtendedDType


def is_extended(dtype: object) -> TypeGuard[ExtendedDType]:
    return isinstance(dtype, ExtendedDType)


def canonicalize(dtype: Any, allow_extended_dtype: bool = True) -> DType:
    """`dtype` as np.dtype, 64-bit types narrowed to 32 bits unless x64 is enabled; None is float.

    Those of PRNG keys stay as they are.

    Raises:
        ValueError: for the dtype of PRNG keys with allow_extended_dtype=False

    >>> jax.dtypes.canonicalize_dtype("int64"), jax.dtypes.canonicalize_dtype(float)
    (dtype('int32'), dtype('float32'))
    """
    if not isinstance(dtype, np.dtype):
        dtype = as_dtype(float if dtype is None else dtype)
        if not allow_extended_dtype and is_extended(dtype):
            raise ValueError(f"canonicalize_dtype: {dtype} is an extended dtype, which "
                             "allow_extended_dtype=False excludes")
    return dtype if state.x64 else _CANONICAL.get(dtype, dtype)


def as_dtype(dtype: Any) -> DType:
    """Anything that names a dtype (np.dtype, type, string, `jnp.float32`, Python type) as np.dtype."""
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON_KINDS:
        return canonicalize(_PYTHON_KINDS[dtype])
    if isinstance(dtype, str) and dtype in _EXTRA:
        return _EXTRA[dtype]
    inner = getattr(dtype, "dtype", None)
    if isinstance(inner, (np.dtype, ExtendedDType)):
        return inner
    if dtype is None:
        raise TypeError("expected a dtype, got None")
    try:
        return np.dtype(dtype)
    except TypeError as error:
        advice = did_you_mean(dtype, (*map(str, SUPPORTED),)) if isinstance(dtype, str) else ""
        if isinstance(dtype, (int, np.integer)):
            advice = "; if it is a size, put the sizes into one tuple"
        raise TypeError(f"{str(error):.80}: {dtype!r:.80} is not a dtype: give one such as jnp.float32, "
                        f"'int8' or bool{advice}") from None


def check_user_dtype(dtype: Any, name: str) -> DType:
    """The canonical form of a dtype that the user requested; narrowing it warns."""
    requested = as_dtype(dtype)
    if requested not in SUPPORTED and not is_extended(requested) and requested != float0:
        raise TypeError(f"{name}: dtype {requested} is not a numeric dtype that hlotrace arrays can hold")
    result = canonicalize(requested)
    if result != requested:
        if config.jax_explicit_x64_dtypes == "error":
            raise ValueError(f"Explicitly requested dtype {requested} is not available in {name} while "
                             "64-bit types are off: call hlotrace.config.update('jax_enable_x64', True) "
                             f"first, or ask for {result}")
        warnings.warn(
            f"Explicitly requested dtype {requested} requested in {name} is not available, and will be "
            f"truncated to dtype {result}. For {requested}, call "
            "hlotrace.config.update('jax_enable_x64', True) first or set the environment variable "
            f"JAX_ENABLE_X64=1; without this warning, ask for {result}.",
            UserWarning, stacklevel=source_info.user_stacklevel())
    return result


def long_name(dtype: DType) -> str:
    """`float32`, `float0`: how a dtype is written in a type's text."""
    return dtype.name if dtype != float0 else "float0"


def short_name(dtype: DType) -> str:
    """`f32`, `i8`, `bf16`, `key<fry>`: how a dtype is written in a printed jaxpr."""
    name = long_name(dtype)
    if name in _SHORT:
        return _SHORT[name]
    if name.startswith("complex"):
        return "c" + name[7:]
    for prefix, letter in (("float", "f"), ("uint", "u"), ("int", "i")):
        if name.startswith(prefix):
            return letter + name[len(prefix):]
    return name


@functools.cache
def issubdtype(dtype: Any, kind: Any) -> bool:
    """`np.issubdtype` that also knows bfloat16, float8, int4 and PRNG key dtypes.

    >>> key = jax.random.key(0)
    >>> jax.dtypes.issubdtype("bfloat16", np.floating), jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
    (True, True)
    """
    if isinstance(dtype, ExtendedDType):
        return isinstance(kind, type) and issubclass(dtype.type or extended, kind)
    if isinstance(kind, type) and issubclass(kind, extended):
        return False
    dtype = as_dtype(dtype)
    if dtype in SMALL_INTS:
        signed = not dtype.name.startswith("u")
        if kind in (np.signedinteger, np.unsignedinteger):
            return (kind is np.signedinteger) == signed
        if kind in (np.integer, np.number, np.generic):
            return True
    elif ((dtype == bfloat16 or dtype in SMALL_FLOATS)
          and kind in (np.floating, np.inexact, np.number, np.generic)):
        return True
    if dtype == float0:
        return kind in (np.void, np.generic)
    if isinstance(kind, type) and issubclass(kind, np.generic) and kind.__module__ == "numpy":
        return np.issubdtype(dtype, kind)
    return dtype == as_dtype(kind)


class extended(np.generic):
    """Abstract kind of dtypes that NumPy does not know; use with `issubdtype`."""


class prng_key(extended):
    """Abstract kind of PRNG key dtypes; use with `issubdtype`."""


def itemsize_bits(dtype: Any) -> int:
    """How many bits an element has: 4 of an int4, 8 of a bool.

    Python's float and int have 64, also where 64-bit types are off.

    >>> jax.dtypes.itemsize_bits("int4"), jax.dtypes.itemsize_bits(bool), jax.dtypes.itemsize_bits("bfloat16")
    (4, 8, 16)
    """
    dtype = _PYTHON_KINDS[dtype] if isinstance(dtype, type) and dtype in _PYTHON_KINDS else as_dtype(dtype)
    if dtype == bool_:
        return 8
    return (iinfo if is_integer(dtype) else finfo)(dtype).bits * (1 + is_complex(dtype))


def scalar_type_of(x: Any) -> type:
    """bool, int, float or complex: the Python type whose values are of the kind of `x`, a number or an array.

    Raises:
        TypeError: where there is none, as for PRNG keys

    >>> jax.dtypes.scalar_type_of(jnp.ones(2, "bfloat16")), jax.dtypes.scalar_type_of(True)
    (<class 'float'>, <class 'bool'>)
    """
    dtype = as_dtype(x if hasattr(x, "dtype") or isinstance(x, np.dtype) else type(x))
    for kind, is_of in (bool, is_bool), (int, is_integer), (float, is_float), (complex, is_complex):
        if is_of(dtype):
            return kind
    raise TypeError(f"no Python type holds values of dtype {short_name(dtype)}")


def is_float(dtype: DType) -> bool:
    return issubdtype(dtype, np.floating)


def is_complex(dtype: DType) -> bool:
    return dtype.kind == "c"


def is_inexact(dtype: DType) -> bool:
    return issubdtype(dtype, np.inexact) or is_extended(dtype) and tangent_dtype(dtype) == dtype


def is_integer(dtype: DType) -> bool:
    return issubdtype(dtype, np.integer)


def is_unsigned(dtype: DType) -> bool:
    return issubdtype(dtype, np.unsignedinteger)


def is_bool(dtype: DType) -> bool:
    return dtype == bool_


def tangent_dtype(dtype: DType) -> DType:
    """Floats and complexes are their own tangent dtype; everything else has float0."""
    if is_extended(dtype):
        return dtype._rules.tangent_dtype(dtype) if dtype._rules else float0
    return dtype if is_inexact(dtype) else float0


def real_of(dtype: Any) -> Any:
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: DType) -> np.dtype:
    return complex128 if dtype in (float64, complex128) else complex64


def to_inexact(dtype: DType) -> DType:
    """The floating dtype of `sin`, `mean`, ... of a dtype: float64 for 64-bit ints; floats stay."""
    if is_inexact(dtype):
        return dtype
    return float64 if dtype.itemsize == 8 else float32


@functools.cache
def finfo(dtype: Any) -> Any:
    return ml_dtypes.finfo(as_dtype(dtype))


@functools.cache
def iinfo(dtype: Any) -> Any:
    return ml_dtypes.iinfo(as_dtype(dtype))


@functools.cache
def min_value(dtype: DType) -> np.ndarray:
    """The identity of `max`: -inf for floats that have it, else the least value, as an array scalar."""
    return _extreme(dtype, -1)


@functools.cache
def max_value(dtype: DType) -> np.ndarray:
    """The identity of `min`: inf for floats that have it, else the greatest value, as an array scalar."""
    return _extreme(dtype, +1)


def _extreme(dtype: Any, sign: int) -> np.ndarray:
    if is_bool(dtype):
        return np.array(sign > 0)
    if is_float(dtype):
        value = np.array(sign * np.inf).astype(dtype)
        if np.isinf(value.astype(np.float64)):
            return value
        return np.array(finfo(dtype).max if sign > 0 else finfo(dtype).min, dtype)
    if is_complex(dtype):
        return np.array(complex(sign * np.inf, sign * np.inf), dtype)
    info = iinfo(dtype)
    return np.array(info.max if sign > 0 else info.min).astype(dtype)


def scalar_dtype(value: Any) -> DType:
    """The canonical dtype of a Python scalar.  OverflowError for an int that does not fit."""
    kind = _PYTHON_KINDS.get(type(value)) or next(d for t, d in _PYTHON_KINDS.items() if isinstance(value, t))
    dtype = canonicalize(kind)
    if dtype.kind == "i" and not holds(dtype, value):
        raise overflow(value, dtype)
    return dtype


def holds(dtype: DType, value: int) -> bool:
    """Can an integer dtype hold a Python int?"""
    info = iinfo(dtype)
    return info.min <= value <= info.max


def overflow(value: int, dtype: DType) -> OverflowError:
    """The error for a Python int that does not fit: OverflowError, which names a dtype that holds it."""
    limits = iinfo(dtype) if is_integer(dtype) else finfo(dtype)
    wide = next((d for d in (int32, uint32, int64, uint64) if holds(d, value)), None)
    if wide is None:
        mend = "no integer dtype does: write it as a float, which rounds it"
    elif canonicalize(wide) == wide:
        mend = f"{wide.name} does: jnp.{wide.name}(...), and .astype(jnp.{wide.name}) of what it meets"
    else:
        mend = (f"{wide.name} does: enable 64-bit types with config.update('jax_enable_x64', True), or write "
                "it as a float")
    small = isinstance(value, float) or -10**40 < value < 10**40
    text = str(value) if small else f"of {value.bit_length()} bits"
    numpys = f" (Python integer {text} out of bounds for {dtype.name})" if isinstance(value, int) else ""
    return OverflowError(f"Python {type(value).__name__} {text} is too large to convert to {dtype.name}, "
                         f"which holds {limits.min} to {limits.max}; {mend}{numpys}")


# --- promotion ------------------------------------------------------------------------------------

Node: TypeAlias = np.dtype | str        # of the lattice: a dtype, or a weak kind
_WEAK_INT, _WEAK_FLOAT, _WEAK_COMPLEX = "i*", "f*", "c*"


@functools.cache
def _uppers() -> dict[Node, frozenset[Node]]:
    """Node -> all nodes at or above it.  Nodes are np.dtypes and the three weak kinds."""
    above = {
        bool_: [_WEAK_INT],
        _WEAK_INT: [uint8, int8, *SMALL_INTS],
        uint8: [int16, uint16], uint16: [int32, uint32], uint32: [int64, uint64], uint64: [_WEAK_FLOAT],
        int8: [int16], int16: [int32], int32: [int64], int64: [_WEAK_FLOAT],
        _WEAK_FLOAT: [*SMALL_FLOATS, bfloat16, float16, _WEAK_COMPLEX],
        bfloat16: [float32], float16: [float32], float32: [float64, complex64], float64: [complex128],
        _WEAK_COMPLEX: [complex64], complex64: [complex128], complex128: [],
        **{d: [] for d in (*SMALL_FLOATS, *SMALL_INTS)},
    }
    reach = {}

    def visit(node: Node) -> frozenset[Node]:
        if node not in reach:
            reach[node] = frozenset([node]).union(*(visit(n) for n in above[node]))
        return reach[node]
    for node in above:
        visit(node)
    return reach


def _join(nodes: Iterable[Node]) -> Node:
    uppers = _uppers()
    common = functools.reduce(operator.and_, (uppers[n] for n in nodes))
    for node in common:
        if uppers[node] == common:
            return node
    names = ", ".join(n if isinstance(n, str) else n.name for n in nodes)
    raise TypePromotionError(
        f"Input dtypes ({names}) have no available implicit dtype promotion path. Cast one of the operands "
        "explicitly with .astype(dtype); small floats and 2- and 4-bit integers never promote by themselves.")


def _weak_node(dtype: Any) -> Node:
    if dtype == bool_:
        return bool_
    if is_complex(dtype):
        return _WEAK_COMPLEX
    return _WEAK_FLOAT if is_float(dtype) else _WEAK_INT


_WEAK_DTYPES = {_WEAK_INT: int64, _WEAK_FLOAT: float64, _WEAK_COMPLEX: complex128}


@functools.lru_cache(maxsize=4096)
def _lattice_result(pairs: tuple[tuple[DType, bool], ...], strict: bool, x64: bool) -> tuple[Any, bool]:
    dtypes: list[Any] = [d for d, _ in pairs]
    if any(is_extended(d) for d in dtypes):
        if len(set(dtypes)) == 1:
            return dtypes[0], False
        names = ", ".join(short_name(d) for d in dtypes)
        raise KeyPromotionError(f"dtypes {names} do not mix: a PRNG key is not a number; see random.key_data "
                                f"(arithmetic does not accept dtypes {', '.join(d.name for d in dtypes)})")
    for d in dtypes:
        if d == float0:
            raise TypeError("called with a float0 array. float0s do not support any operations by design: "
                            "they are the tangents of integers; np.zeros_like(x, dtype=float) makes numbers "
                            "of one")
        if d not in SUPPORTED:
            raise TypeError(f"a value of dtype {d} is not valid in arithmetic: hlotrace arrays hold numbers")
    if len(set(dtypes)) == 1:
        return dtypes[0], all(weak for _, weak in pairs) and dtypes[0] != bool_
    if all(weak for _, weak in pairs):
        result, weak = _join(tuple(dict.fromkeys(dtypes))), True
    else:
        nodes = tuple(dict.fromkeys(_weak_node(d) if weak else d for d, (_, weak) in zip(dtypes, pairs)))
        if strict and (len({n for n in nodes if not isinstance(n, str)}) > 1 or not _strictly_safe(pairs)):
            raise TypePromotionError(
                f"Input dtypes {tuple(d.name for d in dtypes)} have no available implicit dtype promotion "
                "path when jax_numpy_dtype_promotion='strict'. Cast the operands to a common dtype with "
                ".astype(dtype), or set numpy_dtype_promotion('standard').")
        result = _join(nodes)
        weak = isinstance(result, str)
    if isinstance(result, str):
        result = _WEAK_DTYPES[result]
    return canonicalize(result), weak and result != bool_


def _strictly_safe(pairs: Iterable[tuple[Any, bool]]) -> bool:
    """Strict promotion lets a weak value meet a strong one only if the strong dtype does not change."""
    strong = {d for d, weak in pairs if not weak}
    return len(strong) == 1 and _join((*strong, *(_weak_node(d) for d, weak in pairs if weak))) in strong


def lattice_result(pairs: tuple[tuple[DType, bool], ...]) -> tuple[Any, bool]:
    """(dtype, weak_type) of the join of (dtype, weak_type) pairs, given as a tuple.  TypePromotionError where
    the lattice, or strict promotion, has no answer."""
    return _lattice_result(pairs, config.jax_numpy_dtype_promotion == "strict", state.x64)
