"""Pickles in a process for JAX: arrays, keys, types, specs and shardings are written as JAX writes them.

So JAX reads what is written here, and here what JAX wrote is read: below are its constructors, under the
names that are in the bytes.  Elsewhere pickles are this package's own; those are read here too.
"""
import copyreg
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..api.shape_dtype_struct import ShapeDtypeStruct
from ..core import dtypes
from ..core.array import Array
from ..core.avals import ShapedArray, Space
from ..primitives.arrays.random import (
    KEY, RBG, UNSAFE_RBG, KeyDType, generator, random_unwrap_p, random_wrap_p)
from ..runtime.array_impl import ArrayImpl, from_numpy

_new = copyreg.__newobj__  # type: ignore[attr-defined]
_new_by_names = copyreg.__newobj_ex__  # type: ignore[attr-defined]
constructors: dict[str, Any] = {}       # by the full names that are in the bytes


def _named(module: str, name: str) -> Callable[[Any], Any]:
    """Decorator: a class or function has the name under which JAX's pickles ask for it."""
    def rename(value: Any) -> Any:
        value.__module__, value.__name__, value.__qualname__ = f"jax._src.{module}", name, name
        constructors[f"jax._src.{module}.{name}"] = value
        return value
    return rename


# --- arrays

@_named("array", "_reconstruct_array")
def reconstruct_array(fun: Callable[..., Any], args: Any, arr_state: Any, aval_state: Any) -> ArrayImpl:
    """An array of what NumPy's array of its elements is made of."""
    value = fun(*args)
    value.__setstate__(arr_state)
    aval = ShapedArray(value.shape, dtypes.canonicalize(value.dtype), aval_state["weak_type"])
    return from_numpy(value, aval=aval)


def _array(x: ArrayImpl) -> Any:
    if dtypes.is_extended(x.dtype):
        return PRNGKeyArray, (_impl(x.dtype), random_unwrap_p.bind(x))
    return reconstruct_array, (*np.asarray(x).__reduce__(), {"weak_type": x.aval.weak_type})


# --- keys

@_named("random.prng", "PRNGImpl")
class PRNGImpl(NamedTuple):
    """A generator of keys, as JAX has it."""
    key_shape: tuple[int, ...]
    seed: Callable[..., Any]
    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]
    name: str
    tag: str


def _functions(of: KeyDType, module: str, prefix: str) -> Iterator[Any]:
    """The functions of a generator under JAX's names, whose parameters are positional there."""
    for what, params in (("seed", ()), ("split", ("shape",)), ("random_bits", ("bit_width", "shape")),
                         ("fold_in", ())):
        def function(*args: Any, _what: str = what, _params: Any = params) -> Any:
            operands = len(args) - len(_params)
            return getattr(of, _what)(*args[:operands], **dict(zip(_params, args[operands:])))
        yield _named(f"random.{module}", prefix + what)(function)


threefry_seed, threefry_split, threefry_random_bits, threefry_fold_in = _functions(
    KEY, "threefry2x32", "threefry_")
rbg_seed, rbg_split, rbg_random_bits, rbg_fold_in = _functions(RBG, "rbg", "_rbg_")
_, unsafe_rbg_split, _, unsafe_rbg_fold_in = _functions(UNSAFE_RBG, "rbg", "_unsafe_rbg_")
_OF = {KEY: (threefry_seed, threefry_split, threefry_random_bits, threefry_fold_in),
       RBG: (rbg_seed, rbg_split, rbg_random_bits, rbg_fold_in),
       UNSAFE_RBG: (rbg_seed, unsafe_rbg_split, rbg_random_bits, unsafe_rbg_fold_in)}


def _impl(dtype: KeyDType) -> PRNGImpl:
    if dtype not in _OF:
        raise TypeError(f"keys of {dtype} cannot be pickled for JAX: their generator is one of the program's "
                        "own; pickle jax.random.key_data(keys)")
    return PRNGImpl(dtype.physical_shape, *_OF[dtype], dtype.impl, dtype.tag)


class _OfKeys(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Array) and dtypes.is_extended(value.dtype)


class _Key(ArrayImpl):
    """A key array that pickle has made and not filled yet."""
    __slots__ = ()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        found = PRNGKeyArray(state["_impl"], state["_base_array"])
        ArrayImpl.__init__(self, found.aval, found._buf)
        self.__class__ = ArrayImpl


@_named("random.prng", "PRNGKeyArray")
class PRNGKeyArray(metaclass=_OfKeys):
    """The class of arrays of keys, for `isinstance` and for pickle."""

    def __new__(cls, impl: PRNGImpl | None = None, key_data: Any = None) -> Any:
        if impl is None:
            return object.__new__(_Key)
        return random_wrap_p.bind(key_data, impl=generator(impl.name))


def _fill_dtype(self: KeyDType, state: Mapping[str, Any]) -> None:
    vars(self).update(vars(generator(state["_impl"].name)))


def _dtype(x: KeyDType) -> Any:
    return _new, (KeyDType,), {"_impl": _impl(x)}


# --- types, specs, shardings

def _struct(x: ShapeDtypeStruct) -> Any:
    fields = {"shape": x.shape, "dtype": x.dtype, "_sharding": x.sharding, "_dll": x.format.layout,
              "weak_type": x.weak_type, "manual_axis_type": x.manual_axis_type, "is_ref": x.is_ref}
    return _new, (ShapeDtypeStruct,), (None, fields)


def _fill_struct(self: ShapeDtypeStruct, state: Any) -> None:
    fields = dict(state[1])
    if "_sharding" not in fields:       # written where there is no process for JAX
        for name, value in fields.items():
            setattr(self, name, value)
        return
    sharding, layout = fields.pop("_sharding"), fields.pop("_dll")
    if fields.pop("_memory_space", None) not in (None, Space.Device):
        raise NotImplementedError("a ShapeDtypeStruct of another memory space cannot be read")
    if layout is not None:
        from ..sharding.layout import Format  # few have one
        sharding = Format(layout, sharding)
    made = ShapeDtypeStruct(fields.pop("shape"), fields.pop("dtype"), sharding=sharding, **fields)
    self.__class__ = type(made)
    for name in ShapeDtypeStruct.__slots__:
        setattr(self, name, getattr(made, name))


def _aval(x: ShapedArray) -> Any:
    from ..sharding import AbstractMesh, NamedSharding, P  # at once only what all programs need
    sharding = x.explicit or NamedSharding(x.mesh or AbstractMesh((), ()), P(*[None] * x.ndim))
    named = {"sharding": sharding, "manual_axis_type": x.manual_axis_type, "memory_space": x.memory_space}
    return _new_by_names, (ShapedArray, (x.shape, x.dtype, x.weak_type), named)


def _spec(x: Any) -> Any:
    return _new_by_names, (type(x), x.partitions, {"unreduced": x.unreduced, "reduced": x.reduced})


def _mesh(x: Any) -> Any:
    return _new_by_names, (type(x), (x.axis_sizes, x.axis_names, x.axis_types),
                           {"abstract_device": x.abstract_device})


@_named("partition_spec", "_get_default_unconstrained")
def unconstrained() -> Any:
    """`PartitionSpec.UNCONSTRAINED`."""
    from ..sharding import P  # at once only what all programs need
    return P.UNCONSTRAINED


@_named("named_sharding", "_unpickle_named_sharding")
def unpickle_named_sharding(mesh: Any, spec: Any, memory_kind: str | None, logical_device_ids: Any) -> Any:
    """The sharding of these."""
    from ..sharding import NamedSharding  # at once only what all programs need
    if logical_device_ids is not None:
        raise NotImplementedError("a NamedSharding with logical_device_ids cannot be read")
    return NamedSharding(mesh, spec, memory_kind)


def _sharding(x: Any) -> Any:
    return unpickle_named_sharding, (x.mesh, x.spec, x._kind, None)


_REDUCERS: dict[str, Callable[[Any], Any]] = {
    "api.shape_dtype_struct.ShapeDtypeStruct": _struct, "core.avals.ShapedArray": _aval,
    "primitives.arrays.random.KeyDType": _dtype, "runtime.array_impl.ArrayImpl": _array,
    "sharding.mesh.AbstractMesh": _mesh, "sharding.named.NamedSharding": _sharding,
    "sharding.spec.PartitionSpec": _spec}
_FILLERS = {"api.shape_dtype_struct.ShapeDtypeStruct": _fill_struct,
            "primitives.arrays.random.KeyDType": _fill_dtype}


def register(cls: type, home: str) -> None:
    """Let pickle, and what builds on it, write objects of a class, in a module of this package, as JAX does,
    and read what JAX wrote.
    """
    if home in _REDUCERS:
        for each in (cls, *cls.__subclasses__()):
            copyreg.pickle(each, _REDUCERS[home])
    if home == "sharding.spec.PartitionSpec":
        copyreg.pickle(type(cls.UNCONSTRAINED), lambda _: (unconstrained, ()))  # type: ignore[attr-defined]
    if home in _FILLERS:
        cls.__setstate__ = _FILLERS[home]  # type: ignore[attr-defined]
