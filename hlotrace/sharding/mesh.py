"""Mesh: devices in an array whose axes have names.  AbstractMesh: the names and sizes alone."""
from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import math
import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, SupportsIndex

import numpy as np

from ..core import source_info
from ..core.config import config, state
from ..core.surface.boundary import boundaries
from .abstract import is_local


class AxisType(enum.Enum):
    """What decides how values are split over a mesh axis: the compiler, types, or the program (`shard_map`).

    >>> jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    Mesh(axis_sizes=(2,), axis_names=('x',), axis_types=(Explicit,))
    """
    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _names(kind: str, axis_names: str | Iterable[str]) -> tuple[str, ...]:
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    for name in names:
        if name is None:
            raise ValueError(f"{kind}: Mesh axis names cannot be None. Got: {names}")
        if not isinstance(name, str):
            raise TypeError(f"{kind}: axis names are strings, got {name!r} in {names}")
        if not name.isascii() or "\\" in name or "'" in name:
            raise ValueError(f"{kind}: axis name {name!r} holds a letter that is not ASCII, a backslash or a "
                             "quote: with these XLA crashes or loses shardings. Use letters, digits and _")
        if names.count(name) > 1:
            raise ValueError(f"{kind}: axis name {name!r} is used more than once in {names}; give each axis "
                             "its own name")
    return names


def sizes_and_names(kind: str, axis_sizes: Iterable[SupportsIndex],
                    axis_names: str | Iterable[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Both as tuples.  TypeError where they are no tuples, of ints and of strings; ValueError where their
    numbers differ, a size is below 1, or a name is used twice or unsafe for XLA."""
    names = _names(kind, axis_names)
    if not isinstance(axis_sizes, collections.abc.Iterable):
        raise TypeError(f"{kind}: axis sizes are a tuple of ints, one for each name, got {axis_sizes!r}; "
                        f"write ({axis_sizes!r},)")
    sizes = tuple(map(operator.index, axis_sizes))
    if len(sizes) != len(names):
        raise ValueError(f"{kind}: {len(sizes)} axis sizes {sizes} for {len(names)} axis names {names}; give "
                         "one size for each "
                         f"name{', names being a tuple of texts' if isinstance(axis_names, str) else ''}")
    for name, size in zip(names, sizes):
        if size < 1:
            raise ValueError(f"{kind}: axis {name!r} has size {size}; a size is at least 1")
    return sizes, names


def _types(kind: str, axis_types: AxisType | Iterable[AxisType] | None,
           names: tuple[str, ...]) -> tuple[AxisType, ...]:
    if axis_types is None:
        axis_types = (AxisType.Auto,) * len(names)
    types = (axis_types,) if isinstance(axis_types, AxisType) else tuple(axis_types)
    for type_ in types:
        if not isinstance(type_, AxisType):
            raise TypeError(f"axis_types passed to {kind} must be of type `jax.sharding.AxisType`. Got "
                            f"{type_!r} of type {type(type_)}")
    if len(types) != len(names):
        raise ValueError(f"{kind}: Number of axis names should match the number of axis_types. Got "
                         f"axis_names={names} and axis_types={types}")
    return types


@dataclasses.dataclass(frozen=True, slots=True)
class AbstractDevice:
    """A kind of device, such as programs are compiled for."""
    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return (f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
                f"platform={self.platform})")


_interned: dict = {}


class _Axes:
    """What both kinds of mesh know.  Equal meshes are one object, so they compare and hash by identity."""
    __slots__ = ("__dict__", "__weakref__", "axis_names", "axis_sizes", "axis_types", "size")
    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    size: int

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__slots__ or name == "devices":
            raise AttributeError(f"cannot assign to field {name!r} of {self}: equal meshes are one object; "
                                 "make another with mesh.update(...)")
        super().__setattr__(name, value)

    @classmethod
    def _intern(cls, *key: Any) -> Any:
        found = _interned.get((cls, key))
        if found is None:
            found = object.__new__(cls)
            found._fill(*key)
            found = _interned.setdefault((cls, key), found)      # another thread may have been first
        return found

    def _fill(self, axis_sizes: tuple[int, ...], axis_names: tuple[str, ...],
              axis_types: tuple[AxisType, ...], _of: Any = None) -> None:
        for name, value in zip(("axis_sizes", "axis_names", "axis_types", "size"),
                               (axis_sizes, axis_names, axis_types, math.prod(axis_sizes))):
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> collections.OrderedDict[str, int]:
        """The size of each axis by its name, in order."""
        return collections.OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes))

    @property
    def empty(self) -> bool:
        """Are there no axes?"""
        return not self.axis_names

    def same_axes(self, other: object) -> bool:
        """Is the other a mesh with axes of the same names, sizes and types?"""
        return isinstance(other, _Axes) and self.shape_tuple == other.shape_tuple and (
            self.axis_types == other.axis_types)

    def _of_type(self, wanted: AxisType) -> tuple[str, ...]:
        return tuple(name for name, type_ in zip(self.axis_names, self.axis_types) if type_ is wanted)

    auto_axes = property(lambda self: self._of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_type(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_type(AxisType.Manual))

    def _only(self, *types: AxisType) -> bool:
        return all(type_ in types for type_ in self.axis_types)

    are_all_axes_auto = property(lambda self: self._only(AxisType.Auto))
    are_all_axes_explicit = property(lambda self: self._only(AxisType.Explicit))
    are_all_axes_manual = property(lambda self: self._only(AxisType.Manual))
    are_all_axes_explicit_or_manual = property(lambda self: self._only(AxisType.Explicit, AxisType.Manual))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __str__(self) -> str:
        sizes = "".join(f"{name!r}: {size}, " for name, size in self.shape_tuple)
        return f"{type(self).__name__}({sizes or '(), '}axis_types={self.axis_types})"

    __repr__ = __str__


class _NoDevices(AttributeError, ValueError):
    """An AbstractMesh is asked for its devices."""


@boundaries
class Mesh(_Axes):
    """An array of devices with a name for each axis.  As a context manager: this thread's current mesh.

    Raises:
        ValueError: for a device or a name given twice and where the counts of axes, names and types differ.

    >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]).reshape(2, 1), ("data", "model"))
    >>> mesh.shape["data"], mesh.axis_names, mesh.size
    (2, ('data', 'model'), 2)
    """

    devices: np.ndarray
    _devices: tuple[Any, ...]

    def __new__(cls, devices: Any, axis_names: str | Iterable[str],
                axis_types: AxisType | Iterable[AxisType] | None = None) -> Mesh:
        devices = np.array(devices, dtype=object)
        names = _names("Mesh", axis_names)
        if devices.ndim != len(names):
            raise ValueError("Mesh requires the ndim of its first argument (`devices`) to equal the length "
                             "of its second argument (`axis_names`), but got devices.ndim == "
                             f"{devices.ndim} and len(axis_names) == {len(names)}.")
        if not devices.size:
            raise ValueError(f"Mesh: devices, of shape {devices.shape}, holds no device")
        seen = set()
        for device in devices.flat:
            if not hasattr(device, "id"):
                raise TypeError(f"Mesh: {device!r} is not a device; pass those of hlotrace.devices()")
            if device in seen:
                raise ValueError(f"Mesh: device {device!r} is used more than once in devices; each may be "
                                 "used once")
            seen.add(device)
        return cls._intern(devices.shape, names, _types("Mesh", axis_types, names), tuple(devices.flat))

    def __enter__(self) -> Self:
        """A bare `with mesh:` gives bare PartitionSpecs a meaning, and does no more."""
        if config.jax_disallow_mesh_context_manager:
            raise RuntimeError("`with mesh:` is refused by the option jax_disallow_mesh_context_manager: use "
                               "jax.set_mesh(mesh)")
        warnings.warn("`with mesh:` context manager has been deprecated: enter the mesh with "
                      "`with jax.set_mesh(mesh):`", DeprecationWarning,
                      stacklevel=source_info.user_stacklevel())
        state.enter(meshes=(*state.meshes, (self, False)))
        return self

    def __exit__(self, *_: object) -> None:
        state.put(meshes=state.meshes[:-1])

    def _fill(self, axis_sizes: tuple[int, ...], axis_names: tuple[str, ...],
              axis_types: tuple[AxisType, ...], _of: tuple[Any, ...] = ()) -> None:
        super()._fill(axis_sizes, axis_names, axis_types)
        self._devices = _of
        object.__setattr__(self, "devices", np.array(_of, dtype=object).reshape(axis_sizes))
        self.devices.flags.writeable = False

    def __repr__(self) -> str:
        types = f", axis_types={self.axis_types}" if self.size else ""
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    def __str__(self) -> str:
        return super().__str__() if self.size else "Mesh()"

    @property
    def local_devices(self) -> list[Any]:
        """Those that this process holds."""
        return [device for device in self._devices if is_local(device)]

    @property
    def is_multi_process(self) -> bool:
        """Do other processes hold some of the devices?"""
        return len(self.local_devices) < self.size

    @property
    def is_scalar(self) -> bool:
        """Is it one device?"""
        return self.size == 1

    @property
    def local_mesh(self) -> Mesh:
        """The mesh of this process's devices.

        Raises:
            ValueError: where they are no block of this mesh.
        """
        here = np.vectorize(is_local, otypes=[bool])(self.devices)
        block = np.ix_(*[np.flatnonzero(here.any(tuple({*range(here.ndim)} - {i})))
                         for i in range(here.ndim)])
        if not here[block].all() or not here.any():
            raise ValueError(f"{self}: the devices of this process are no block of it, so there is no mesh "
                             "of them")
        return self.update(devices=self.devices[block])

    def update(self, devices: Any = None, axis_names: str | Iterable[str] | None = None,
               axis_types: AxisType | Iterable[AxisType] | None = None) -> Mesh:
        """The same but for what is given."""
        return Mesh(self.devices if devices is None else devices,
                    self.axis_names if axis_names is None else axis_names,
                    self.axis_types if axis_types is None else axis_types)

    @property
    def device_ids(self) -> np.ndarray:
        """The devices' ids, an integer array of the mesh's shape."""
        return np.array([device.id for device in self.devices.flat]).reshape(self.axis_sizes)

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The names, sizes and types of the axes, and of what kind the devices are."""
        device = self._devices[0]
        kind = AbstractDevice(device.device_kind, getattr(device, "num_cores", None), device.platform) if (
            hasattr(device, "device_kind")) else None
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (np.array(self.devices), self.axis_names, self.axis_types)


@boundaries
class AbstractMesh(_Axes):
    """A mesh whose devices are not known, at most their kind: enough to check and to lower a program.

    >>> mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"))
    >>> jax.NamedSharding(mesh, jax.P("data")).shard_shape((8, 8))
    (2, 8)
    """

    def __new__(cls, axis_sizes: Iterable[SupportsIndex], axis_names: str | Iterable[str],
                axis_types: AxisType | Iterable[AxisType] | None = None, *,
                abstract_device: AbstractDevice | None = None) -> AbstractMesh:
        sizes, names = sizes_and_names("AbstractMesh", axis_sizes, axis_names)
        return cls._intern(sizes, names, _types("AbstractMesh", axis_types, names), abstract_device)

    def _fill(self, axis_sizes: tuple[int, ...], axis_names: tuple[str, ...],
              axis_types: tuple[AxisType, ...], _of: AbstractDevice | None = None) -> None:
        super()._fill(axis_sizes, axis_names, axis_types)
        self.abstract_device = _of

    def __getattr__(self, name: str) -> Any:
        devices = name in ("devices", "device_ids", "local_devices", "local_mesh", "is_multi_process")
        raise (_NoDevices if devices else AttributeError)(f"AbstractMesh does not implement {name}")

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def explicit(self, _shape: Sequence[Any]) -> AbstractMesh | None:
        """What the type of an array that no axis splits says of the mesh; None without Explicit axes."""
        return self if self.explicit_axes else None

    def update(self, axis_sizes: Iterable[SupportsIndex] | None = None,
               axis_names: str | Iterable[str] | None = None,
               axis_types: AxisType | Iterable[AxisType] | None = None, **device: Any) -> AbstractMesh:
        """The same but for what is given, `abstract_device` among it."""
        return AbstractMesh(self.axis_sizes if axis_sizes is None else axis_sizes,
                            self.axis_names if axis_names is None else axis_names,
                            self.axis_types if axis_types is None else axis_types,
                            **{"abstract_device": self.abstract_device, **device})

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> AbstractMesh:
        """The same but for the types of the axes that are named.

        Raises:
            ValueError: for an axis that the mesh does not have.
        """
        for name in name_to_type:
            if name not in self.axis_names:
                raise ValueError(f"update_axis_types: {self} has no axis {name!r}; its axes are "
                                 f"{self.axis_names}")
        return self.update(axis_types=[name_to_type.get(name, kind) for name, kind in
                                       zip(self.axis_names, self.axis_types)])

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(AbstractMesh, abstract_device=self.abstract_device), (
            self.axis_sizes, self.axis_names, self.axis_types)

    def __str__(self) -> str:
        text, device = super().__str__(), self.abstract_device
        return text if device is None else f"{text[:-1]}, {repr(device).partition('(')[2]}"

    __repr__ = __str__


def only_mesh(like: _Axes) -> Mesh | None:
    """The mesh of devices with these axes, if there is one alone in this process."""
    found = [mesh for (cls, _), mesh in list(_interned.items()) if cls is Mesh and mesh.shape_tuple ==
             like.shape_tuple]
    return found[0] if len({mesh._devices for mesh in found}) == 1 else None


def current_mesh() -> Mesh | AbstractMesh | None:
    """The mesh entered last on this thread, or None; one without axes counts as none."""
    return state.meshes[-1][0] if state.meshes and state.meshes[-1][0].axis_names else None


@boundaries
class set_mesh:
    """Make `mesh` this thread's current mesh, for good or, as a context manager, until the block ends.

    Bare PartitionSpecs name its axes, and jit programs that nothing else places run on all its devices. With
    None there is no current mesh.

    >>> with jax.set_mesh(jax.make_mesh((2,), ("x",))):
    ...     jax.jit(lambda v: jax.reshard(v, jax.P("x")))(jnp.arange(4)).sharding.spec
    P('x',)
    """

    def __init__(self, mesh: Mesh | AbstractMesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}; for an "
                             "AbstractMesh there is use_abstract_mesh")
        if state.trace.staging:
            raise ValueError("set_mesh inside of a function that jit traces would outlast it; set the mesh "
                             "outside, or use `with use_abstract_mesh(mesh):`")
        self._saved = dict(meshes=state.meshes, mesh_to_run_on=state.mesh_to_run_on)
        state.enter(meshes=() if mesh is None else (*state.meshes, (mesh, True)), mesh_to_run_on=mesh)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        state.put(**self._saved)


use_mesh = set_mesh      # a name that it had in JAX


class using:
    """As a context manager: `mesh` is this thread's current mesh; it does not say where programs run."""

    def __init__(self, mesh: Mesh | AbstractMesh) -> None:
        self._mesh = mesh

    def __enter__(self) -> Mesh | AbstractMesh:
        self._saved = state.meshes
        state.enter(meshes=(*self._saved, (self._mesh, True)))
        return self._mesh

    def __exit__(self, *_: object) -> None:
        state.put(meshes=self._saved)


class use_abstract_mesh(using):
    """As a context manager, also inside of functions that jit traces: `mesh` is this thread's current mesh.

    Bare PartitionSpecs name its axes; it does not say where programs run.

    Raises:
        ValueError: for what is no AbstractMesh, or of another size than the mesh in use.

    >>> mesh = jax.sharding.AbstractMesh((2,), ("x",))
    >>> with jax.sharding.use_abstract_mesh(mesh):
    ...     jax.sharding.get_abstract_mesh()
    AbstractMesh('x': 2, axis_types=(Auto,))
    """

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}")
        super().__init__(mesh)

    def __enter__(self) -> Mesh | AbstractMesh:
        before = mesh_in_use()
        if not before.empty and before.size != self._mesh.size:
            raise ValueError("use_abstract_mesh cannot change the size of the mesh. Got new mesh: "
                             f"{self._mesh} with size={self._mesh.size} and prev mesh: {before} with "
                             f"size={before.size}")
        return super().__enter__()


def _without_devices() -> Mesh:
    mesh = object.__new__(Mesh)
    fields = dict(axis_sizes=(), axis_names=(), axis_types=(), size=0, _devices=(),
                  devices=np.empty((), object))
    for name, value in fields.items():
        object.__setattr__(mesh, name, value)       # the class lets none be set
    return mesh


NO_MESH = _without_devices()


def get_mesh() -> Mesh:
    """The mesh of devices in use, by `set_mesh`; one without axes and devices if there is none.

    Raises:
        ValueError: inside of a function that jit traces.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.get_mesh().axis_names
    ('x',)
    """
    if state.trace.staging:
        raise ValueError("`get_mesh` can only be used outside of `jax.jit`. Maybe you want "
                         "`jax.sharding.get_abstract_mesh()`?")
    return next((mesh for mesh, in_use in reversed(state.meshes) if in_use and isinstance(mesh, Mesh)),
                NO_MESH)


def mesh_in_use() -> Mesh | AbstractMesh:
    """The mesh in use, by `set_mesh` or `use_abstract_mesh`; an empty one if there is none."""
    return next((mesh for mesh, in_use in reversed(state.meshes) if in_use), AbstractMesh((), ()))


def get_abstract_mesh() -> AbstractMesh:
    """Names, sizes and types of the axes of the mesh in use, or of that of the `shard_map` around, its own
    being Manual.

    >>> with jax.use_abstract_mesh(jax.sharding.AbstractMesh((4,), ("x",))):
    ...     jax.get_abstract_mesh().axis_sizes
    (4,)
    """
    manual = {name for name, _, kind in state.axis_env if kind != "vmap"}
    mesh = state.meshes[-1][0] if manual else mesh_in_use()
    return mesh.abstract_mesh.update_axis_types({name: AxisType.Manual for name in mesh.axis_names
                                                 if name in manual})
