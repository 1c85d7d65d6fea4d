"""ShapedArray: what is known of a value while tracing.  Interned: equal avals are the same object."""
from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from . import dtypes, errors
from .config import state
from .symbolic.dimension import Dimension, as_size, is_constant_shape

# An array has fewer elements than this, zeros in its shape left out: jaxlib counts bytes in 63 bits, also
# those of an operand that it widens to 16 bytes an element, and ends the process where they do not suffice.
MOST_ELEMENTS = 2 ** 59

_interned: dict[tuple, ShapedArray] = {}
UNCHANGED: Any = object()

Shape: TypeAlias = tuple[Any, ...]       # of ints and Dimensions


class Space(enum.Enum):
    """A kind of memory, whatever the devices of the array: theirs, or that of their host.

    The types of arrays in the host's say so: what is computed from them is there too, until the program moves
    it or `out_shardings` says otherwise.

    >>> x = jax.device_put(jnp.ones(2), jax.memory.Space.Host)
    >>> x.sharding.memory_kind, jax.typeof(x * 2)
    ('pinned_host', ShapedArray(float32<host>[2]))
    """
    Device = 1
    Host = 2
    Any = 3

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


class OfArrays:
    """What hijax asks of a type: of what types of arrays its values are made, for arrays themselves."""
    __slots__ = ()
    has_qdd = False

    def lo_ty(self) -> list[Any]:
        """The types of what a value is made of: here the type itself."""
        return [self]

    def lower_val(self, val: Any) -> list[Any]:
        """What a value is made of."""
        return [val]

    def raise_val(self, val: Any) -> Any:
        """The value that is made of this."""
        return val

    def normalize(self) -> Any:
        """The type, less what does not matter where two are compared."""
        return self.strip_weak_type()

    def strip_weak_type(self) -> OfArrays:
        return self


class ShapedArray(OfArrays):
    """The type of an array: `shape` (tuple of int), `dtype` (np.dtype or ExtendedDType), `weak_type` (bool),
    `vma`, `explicit`, `mesh`, `memory`.

    A weak type comes from a Python scalar and gives way in promotion.  `vma`, a frozenset of names, are the
    manual axes of a `shard_map` along which the devices hold different values.  `explicit` is a NamedSharding
    over an AbstractMesh that says which Explicit mesh axes split which dimension; None where none does.
    `mesh` is that AbstractMesh, also of a value that is known to be whole on its devices; None where no mesh
    is known.  `memory` is the Space of memory, None being the device's.  `marked`: is there any of them?
    """
    __slots__ = ("shape", "dtype", "weak_type", "vma", "explicit", "mesh", "memory", "marked", "ndim",
                 "size", "mlir", "__weakref__")
    shape: Shape
    dtype: Any       # a dtypes.DType
    weak_type: bool
    vma: frozenset[str]
    explicit: Any    # a NamedSharding or None
    mesh: Any        # an AbstractMesh or None
    memory: Space | None
    marked: bool
    ndim: int
    size: Any        # an int or a Dimension
    mlir: str
    # placement/device_put.py gives it: the sharding of what is split over no axis of a mesh, by default that
    # in use
    unsplit: Callable[..., Any]
    is_high = False     # of arrays, not of a hijax type

    def __new__(cls, shape: Iterable[Any], dtype: Any, weak_type: bool = False,
                vma: Iterable[str] = frozenset(), sharding: Any = None, *, manual_axis_type: Any = None,
                memory_space: Any = None, layout: Any = None) -> ShapedArray:
        if manual_axis_type is not None:        # `vma` under JAX's newer name
            vma = manual_axis_type.varying
        if layout and layout.text != "auto":
            raise NotImplementedError(f"ShapedArray: layout={layout} is not supported: types do not say how "
                                      "values are in memory; formats do")
        key = (shape, dtype, weak_type, vma, sharding, memory_space)
        try:
            return _interned[key]
        except KeyError:
            pass
        except TypeError:
            key = (tuple(shape), dtypes.as_dtype(dtype), bool(weak_type), frozenset(vma), sharding,
                   memory_space)
            if key in _interned:
                return _interned[key]
        shape = tuple(map(as_size, key[0] if hasattr(key[0], "__iter__") else (key[0],)))
        dtype = key[1] if isinstance(key[1], (np.dtype, dtypes.ExtendedDType)) else dtypes.as_dtype(key[1])
        stated = sharding.explicit(shape) if hasattr(sharding, "explicit") else None
        memory = None if memory_space is Space.Device else memory_space
        canonical = (shape, dtype, bool(weak_type), frozenset(vma), stated, memory)
        self = _interned.get(canonical)
        if self is None:
            self = object.__new__(cls)
            self.shape, self.dtype, self.weak_type, self.vma, _, self.memory = canonical
            self.mesh = getattr(stated, "mesh", stated)
            self.explicit = None if stated is self.mesh else stated
            self.marked = bool(self.vma) or stated is not None or memory is not None
            self.ndim = len(shape)
            if is_constant_shape(shape) and math.prod(filter(None, shape)) >= MOST_ELEMENTS:
                raise errors.too_many_elements(shape, dtype, MOST_ELEMENTS)
            self.size = math.prod(shape)
            self.mlir = mlir_type(shape, dtype)
            self = _interned.setdefault(canonical, self)
        _interned[key] = self
        return self

    def update(self, shape: Shape | None = None, dtype: Any = None, weak_type: bool | None = None,
               vma: frozenset[str] | None = None, *, sharding: Any = UNCHANGED,
               memory_space: Any = UNCHANGED) -> ShapedArray:
        """The same but for what is given; of another shape, it is split only if `sharding` says so."""
        if sharding is UNCHANGED:
            sharding = self.explicit or self.mesh
            if self.explicit is not None and shape is not None and shape != self.shape:
                sharding = None
        return ShapedArray(self.shape if shape is None else shape, self.dtype if dtype is None else dtype,
                           self.weak_type if weak_type is None else weak_type,
                           self.vma if vma is None else vma, sharding,
                           memory_space=self.memory if memory_space is UNCHANGED else memory_space)

    def without_axis(self, axis: int | None) -> ShapedArray:
        """The type of a slice along an axis, which has every other axis; as it is for None."""
        if axis is None:
            return self
        explicit = self.explicit and self.explicit.without_dimension(axis, self.ndim)
        return self.update(self.shape[:axis] + self.shape[axis + 1:], sharding=explicit or self.mesh)

    def with_axis(self, axis: int, size: Any, along: Any = None) -> ShapedArray:
        """The type with one more axis, which is split as `along`, a sharding of vectors or None, says."""
        if along is None:
            explicit = self.explicit and self.explicit.with_dimension(axis, self.ndim)
        else:
            explicit = self.explicit or self.unsplit(along.mesh)
            explicit = explicit.with_dimension(axis, self.ndim, along.spec[0])
        return self.update((*self.shape[:axis], size, *self.shape[axis:]), sharding=explicit or self.mesh)

    @property
    def sharding(self) -> Any:
        """The NamedSharding over an AbstractMesh: which Explicit axes split the dimensions.

        Where none does it is over the mesh of the type, or that in use, which is empty where there is none.
        """
        return self.explicit or self.unsplit(self.mesh)

    @property
    def memory_space(self) -> Space:
        """The kind of memory: the device's, or its host's."""
        return self.memory or Space.Device

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def goes_as(self, primal: ShapedArray) -> bool:
        """May it be the type of a tangent or cotangent of one of `primal`, as Explicit axes split them?"""
        return None in (self.mesh, primal.mesh) or self.explicit in (
            primal.explicit, primal.cotangent().explicit)

    @property
    def splits(self) -> list[tuple[str, ...]]:
        """For each dimension the Explicit mesh axes that split it, major first."""
        if self.explicit is None:
            return [()] * self.ndim
        return [self.explicit.spec.axes(dim) for dim in range(self.ndim)]

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """`vma` under JAX's newer name: `.manual_axis_type.varying`."""
        return ManualAxisType(varying=self.vma)

    mat = manual_axis_type

    def tangent(self) -> ShapedArray:
        """The aval of tangents of values of this aval."""
        return self.update(dtype=dtypes.tangent_dtype(self.dtype))

    to_tangent_aval = at_least_vspace = tangent

    def cotangent(self) -> ShapedArray:
        """The aval of cotangents of values of this aval, where it is that of a tangent."""
        return self if self.explicit is None else self.update(sharding=self.explicit.cotangent())

    to_ct_aval = cotangent

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        return self.update(weak_type=weak_type)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.shape, self.dtype, self.weak_type, self.vma, self.explicit or self.mesh,
                             self.memory)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def str_short(self, short_dtypes: bool = False) -> str:
        name = dtypes.short_name(self.dtype) if short_dtypes else dtypes.long_name(self.dtype)
        sizes = map(str, self.shape) if self.explicit is None else self.explicit.sizes_text(self.shape)
        memory = "" if self.memory is None else f"<{self.memory.name.lower()}>"
        return f"{name}{memory}[{','.join(sizes)}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{self.varies()}{weak})"

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short() + self.varies()

    def short(self) -> str:
        """As programs show it: `f32[2,3]`."""
        return self.str_short(True) + self.varies()

    def varies(self) -> str:
        """`{V:data}`, `{V:(x,y)}` for an array that varies over manual axes, `{U:x}`, `{R:x}` for one that is
        unreduced or reduced over Explicit ones, else an empty string."""
        if not self.marked:
            return ""
        sets = [("V", self.vma)]
        if self.explicit is not None:
            sets += ("U", self.explicit.spec.unreduced), ("R", self.explicit.spec.reduced)
        listed = [(letter, ",".join(sorted(names))) for letter, names in sets if names]
        words = [f"{letter}:({names})" if "," in names else f"{letter}:{names}" for letter, names in listed]
        return f"{{{', '.join(words)}}}" if words else ""


def _unpickled(shape: Shape, dtype: Any, weak_type: bool, vma: frozenset[str], sharding: Any,
               memory: Space | None) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type, vma, sharding, memory_space=memory)


class ManualAxisType(NamedTuple("ManualAxisType", [("varying", frozenset), ("unreduced", frozenset),
                                                   ("reduced", frozenset), ("unreduced_kind", object)])):
    """The manual axes of a `shard_map` over which a value differs between devices.

    Raises:
        NotImplementedError: for axes that are unreduced.
    """
    __slots__ = ()

    def __new__(cls, *, varying: Iterable[str] = frozenset(), unreduced: Iterable[str] = frozenset(),
                reduced: Iterable[str] = frozenset(), unreduced_kind: object = None) -> ManualAxisType:
        given = {"unreduced": unreduced, "reduced": reduced, "unreduced_kind": unreduced_kind}
        if any(given.values()):
            words = ", ".join(f"{name}={value!r}" for name, value in given.items() if value)
            raise NotImplementedError(f"ManualAxisType: {words} over manual axes is not supported: sum with "
                                      "lax.psum in the shard_map, or name Explicit axes outside of it")
        return super().__new__(cls, frozenset(varying), frozenset(), frozenset(), None)

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, frozenset]]:
        return (), {"varying": self.varying, "unreduced": self.unreduced, "reduced": self.reduced}


def mlir_type(shape: Shape, dtype: Any) -> str:
    """The StableHLO tensor type of an array, `tensor<2x3xf32>`.

    A symbolic size is written in braces, which `lowering/symbolic_shapes.py` reads.
    """
    if dtypes.is_extended(dtype):
        if dtype.mlir is not None:
            return dtype.mlir
        shape, dtype = (*shape, *dtype.physical_shape), dtype.physical_dtype
    element = dtypes.SUPPORTED.get(dtype, "i1")    # float0 has no element type of its own
    return f"tensor<{''.join(f'{{{d}}}x' if type(d) is Dimension else f'{d}x' for d in shape)}{element}>"


def physical(aval: ShapedArray) -> ShapedArray:
    """The aval of the data of `aval` on a device: PRNG keys are their words, float0 is false bits."""
    if aval.dtype.kind != "V":
        return aval
    if aval.dtype == dtypes.float0:
        return ShapedArray(aval.shape, dtypes.bool_)
    if dtypes.is_extended(aval.dtype):
        return ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
    return aval


_python_avals: dict[tuple[type, bool], ShapedArray] = {}
_SMALL = 1 << 31        # ints from minus this to this fit with x64 or without


def _python_scalar(value: Any) -> ShapedArray:
    aval = _python_avals.get((type(value), state.x64))
    if aval is None:
        dtype = dtypes.scalar_dtype(type(value)(0) if type(value) in dtypes.python_scalars else value)
        aval = _python_avals[type(value), state.x64] = ShapedArray((), dtype, dtype != dtypes.bool_)
    if aval.dtype.kind == "i" and not -_SMALL <= value < _SMALL:
        dtypes.scalar_dtype(value)      # raises when it does not fit
    return aval


def _numpy(value: Any) -> ShapedArray:
    dtype = value.dtype
    if dtype in dtypes.SUPPORTED:
        return ShapedArray(value.shape, dtype if state.x64 else dtypes.canonicalize(dtype))
    if dtype == dtypes.float0:
        return ShapedArray(value.shape, dtype)
    raise TypeError(f"a NumPy value of dtype {dtype} is not a valid array: hlotrace arrays hold numbers")


def _masked(value: Any) -> ShapedArray:
    raise ValueError("numpy masked arrays are not supported as direct inputs to JAX functions: the mask "
                     f"of this one, of shape {value.shape}, would be lost. Use arr.filled(), which says what "
                     "the masked elements are.")


# type -> function from value to aval; values not here are found through their base classes once.
avals_by_type: dict[type, Callable[[Any], ShapedArray]] = {
    **dict.fromkeys(dtypes.python_scalars, _python_scalar), np.ndarray: _numpy, np.generic: _numpy,
    Dimension: lambda _: ShapedArray((), dtypes.canonicalize(dtypes.int64), True)}


def register_aval(cls: type, function: Callable[[Any], ShapedArray]) -> None:
    """Make instances of `cls` array-like; `function(value)` gives the aval."""
    avals_by_type[cls] = function


def aval_of(value: Any) -> ShapedArray:
    """The aval of an array, tracer, NumPy value or Python scalar.  TypeError for anything else."""
    function = avals_by_type.get(type(value))
    if function is None:
        function = _find(type(value))
        if function is None:
            raise fault_of(value)(not_an_array(value))
    return function(value)


def aval_or_none(value: Any) -> ShapedArray | None:
    """As `aval_of`; None for what is not array-like, which costs no words."""
    function = avals_by_type.get(type(value)) or _find(type(value))
    return None if function is None else function(value)


def _find(cls: type) -> Callable[[Any], ShapedArray] | None:
    for base in cls.__mro__:
        if str(base.__module__).startswith("numpy.ma"):     # which NumPy imports where it is used
            avals_by_type[base] = _masked
        if base in avals_by_type:
            avals_by_type[cls] = avals_by_type[base]
            return avals_by_type[base]
    return None


def is_arraylike(value: object) -> bool:
    return type(value) in avals_by_type or _find(type(value)) is not None


MARK_STATIC = ("Mark it with static_argnums/static_argnames if it is not data, or register its class as a "
               "pytree.")


def fault_of(value: Any) -> type[TypeError]:
    """The class of the error that a value is not an array."""
    return errors.HoldsArrayError if hasattr(value, "__jax_array__") else TypeError


def not_an_array(value: Any, name: str = "", mend: str = MARK_STATIC) -> str:
    """The words for a value that is not an array; `mend` says what to do about it."""
    # a Ref, whose numbers are not looked at: then it could not be donated
    if hasattr(value, "instead_of_an_array"):
        which = f"argument {name}" if name else "value"
        return f"{which} is a {getattr(value, 'aval', value)}, not an array. {value.instead_of_an_array}"
    where = f"Argument '{value!s:.80}' of type {type(value)}"
    if isinstance(value, (list, tuple)):
        mend = "A Python list or tuple is not converted by itself: wrap it in jnp.array(...)."
    if isinstance(value, type):
        mend = ("A type without a value is written jax.ShapeDtypeStruct(shape, dtype), for lower, trace and "
                "eval_shape.")
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        mend = ("It is a type without a value, for lower, trace and eval_shape: give an array, such as "
                "jnp.zeros(s.shape, s.dtype).")
    if hasattr(value, "__jax_array__"):
        mend = ("Triggering __jax_array__() during abstractification is no longer supported: give "
                "jnp.array(...) of it, or register its class as a pytree.")
    if isinstance(value, range):
        mend = "For a range write jnp.arange(...)."
    at = f"(it is argument {name}) " if name else ""
    return f"{where} is not a valid JAX type: {at}expected an array, a NumPy array or a Python number. {mend}"
