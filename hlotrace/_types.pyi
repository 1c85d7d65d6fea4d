"""What the stubs of the public modules share.  For checkers only: there is no such module when a program runs.

Written by hand.  The stubs beside the public modules are written by tools/stubs.py.
"""
import functools
from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from hlotrace import Array
from hlotrace.stages import Lowered, Traced
from hlotrace.typing import ArrayLike, DTypeLike

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_T = TypeVar("_T")
_C = TypeVar("_C")
_Y = TypeVar("_Y")
_F = TypeVar("_F", bound=Callable[..., Any])

Int: TypeAlias = int | np.integer[Any]
ShapeLike: TypeAlias = int | Sequence[Int] | np.ndarray[Any, Any]
Axis: TypeAlias = Int | Sequence[Int] | None
AxisName: TypeAlias = Any  # any hashable, or a tuple of them
_One: TypeAlias = int | slice | EllipsisType | Array | np.ndarray[Any, Any] | np.integer[Any] | np.bool_ | None
Index: TypeAlias = _One | tuple[_One | list[Any] | tuple[Any, ...], ...]  # a list alone is refused
Argnums: TypeAlias = int | Sequence[int]
Names: TypeAlias = str | Sequence[str]
Place: TypeAlias = Any  # a Device, a Sharding, a PartitionSpec, or a pytree of them
MatmulPrecision: TypeAlias = Any
IsLeaf: TypeAlias = Callable[..., bool]
NestedArrays: TypeAlias = Any  # a number, an array, or nested lists and tuples of them


class Device(Protocol):
    """One of `devices()`."""
    @property
    def id(self) -> int: ...
    @property
    def process_index(self) -> int: ...
    @property
    def platform(self) -> str: ...
    @property
    def device_kind(self) -> str: ...
    @property
    def client(self) -> Any: ...
    @property
    def local_hardware_id(self) -> int | None: ...
    def memory_stats(self) -> dict[str, int] | None: ...
    def addressable_memories(self) -> list[Any]: ...
    def default_memory(self) -> Any: ...


class Shard(Protocol):
    """One device's part of an array."""
    @property
    def data(self) -> Array: ...
    @property
    def device(self) -> Device: ...
    @property
    def index(self) -> tuple[slice, ...]: ...
    @property
    def replica_id(self) -> int: ...


class ScalarType(type):
    """The type of `jnp.float32` and its kin: a dtype, and called with a value an array of it."""
    @property
    def dtype(cls) -> np.dtype[Any]: ...
    def __call__(cls, x: Any) -> Array: ...


class Ufunc1(Protocol):
    """An elementwise function of one array."""
    nin: int
    nout: int
    nargs: int
    identity: Any
    __name__: str
    def __call__(self, x: ArrayLike, out: None = None, where: None = None) -> Array: ...
    def at(self, a: ArrayLike, indices: Any, b: None = None, /, *, inplace: bool = True) -> Array: ...


class Ufunc2(Protocol):
    """An elementwise function of two arrays, with NumPy's methods."""
    nin: int
    nout: int
    nargs: int
    identity: Any
    __name__: str
    def __call__(self, x1: ArrayLike, x2: ArrayLike, out: None = None, where: None = None) -> Array: ...
    def reduce(self, a: ArrayLike, axis: Axis = 0, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
               initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array: ...
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array: ...
    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
                 ) -> Array: ...
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array: ...
    def outer(self, a: ArrayLike, b: ArrayLike, /) -> Array: ...


class JitFunction(Generic[_P, _R]):
    """What `jit` gives: the function, with its signature, and what was traced and compiled for it."""
    __name__: str
    __wrapped__: Callable[_P, _R]
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: type | None = None) -> JitFunction[_P, _R]: ...
    @overload
    def __get__(self: Callable[Concatenate[Any, _Q], _R], instance: object, owner: type | None = None
                ) -> Callable[_Q, _R]: ...
    # Arguments may be ShapeDtypeStructs in place of arrays, so their types are not those of the call.
    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def why_retraced(self) -> list[str]: ...
    def tiers(self, wait: bool = False) -> list[str]: ...
    def clear_cache(self) -> None: ...
    def _cache_size(self) -> int: ...


class JitDecorator(Protocol):
    """`jit(static_argnums=...)`"""
    def __call__(self, fun: Callable[_P, _R], /) -> JitFunction[_P, _R]: ...


class Decorator(Protocol):
    """What takes a function and gives one of the same type."""
    def __call__(self, fun: _F, /) -> _F: ...


class Context(Protocol):
    """A context manager that is no value."""
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: object) -> None: ...


class CustomFunction(Generic[_P, _R]):
    """What custom_jvp and custom_vjp share."""
    fun: Callable[_P, _R]
    nondiff_argnums: Any
    __name__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


class custom_jvp(CustomFunction[_P, _R]):
    """A function with a derivative of its own."""
    def __init__(self, fun: Callable[_P, _R], nondiff_argnums: Argnums = ..., nondiff_argnames: Names = ...) -> None: ...
    def defjvp(self, jvp: _F, symbolic_zeros: bool = False) -> _F: ...
    def defjvps(self, *jvps: Callable[..., Any] | None) -> None: ...


class custom_vjp(CustomFunction[_P, _R]):
    """A function with a reverse-mode derivative of its own."""
    def __init__(self, fun: Callable[_P, _R], nondiff_argnums: Argnums = ..., nondiff_argnames: Names = ...) -> None: ...
    def defvjp(self, fwd: Callable[..., tuple[_R, Any]], bwd: Callable[..., Any], symbolic_zeros: bool = False,
               optimize_remat: bool = False) -> None: ...


class Partial(functools.partial[_T]):
    """A functools.partial that is a pytree."""


class PyTreeDef:
    """The structure of a pytree."""
    num_leaves: int
    num_nodes: int
    def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
    def flatten_up_to(self, tree: Any, /) -> list[Any]: ...
    def children(self) -> list[PyTreeDef]: ...
    def compose(self, inner: PyTreeDef, /) -> PyTreeDef: ...
    def node_data(self) -> tuple[type, Any] | None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array

class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array

class QRResult(NamedTuple):
    Q: Array
    R: Array

class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array

class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array
