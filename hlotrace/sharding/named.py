"""NamedSharding: a mesh, and for each dimension the mesh axes that split it."""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.avals import Space
from ..core.errors import DuplicateSpecError, did_you_mean
from ..core.jaxpr_trace import JaxprTrace
from ..core.surface.boundary import boundaries
from ..core.symbolic.dimension import Dimension
from .abstract import HOST, Sharding, checked_kind
from .explicit import typed
from .mesh import AbstractMesh, Mesh, current_mesh
from .spec import PartitionSpec

# from now on types may name shardings
JaxprTrace.typed = staticmethod(typed)


@boundaries(but="filled update")
class NamedSharding(Sharding):
    """`NamedSharding(mesh, P("data", None))`: "data" splits dimension 0; other mesh axes hold copies.

    Raises:
        ValueError: for an axis that the mesh does not have and for one that is used twice.

    >>> mesh = jax.make_mesh((2,), ("data",))
    >>> x = jax.device_put(jnp.ones((4, 3)), jax.NamedSharding(mesh, jax.P("data", None)))
    >>> x.sharding.shard_shape(x.shape), x.sharding.is_fully_replicated
    ((2, 3), False)
    """
    __slots__ = ("mesh", "spec")

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec,
                 memory_kind: str | None = None) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"NamedSharding: mesh is a Mesh or an AbstractMesh, got {type(mesh).__name__} "
                            f"{mesh!r}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding: spec is a PartitionSpec, got {spec!r}; write P('axis', None)")
        if memory_kind is not None and not isinstance(memory_kind, str):
            raise TypeError(f"NamedSharding: memory_kind is a string or None, got {memory_kind!r}")
        used = [name for dim in range(len(spec)) for name in spec.axes(dim)]
        for name in (*used, *spec.unreduced, *spec.reduced):
            if name not in mesh.axis_names:
                raise ValueError(f"NamedSharding: Resource axis: {name} of {spec} is not found in mesh: "
                                 f"{mesh.axis_names}{did_you_mean(name, mesh.axis_names)}")
            if used.count(name) > 1:
                raise DuplicateSpecError(
                    "A single NamedSharding spec specification can map every mesh axis to at most one "
                    f"positional dimension, but {spec} has duplicate entries for `{name}`: name it once")
        for name in spec.unreduced | spec.reduced if spec.partial else ():
            if name in mesh.auto_axes:
                kind = "unreduced" if name in spec.unreduced else "reduced"
                raise ValueError(f"{kind.capitalize()} axes can only refer to mesh axes that is of type "
                                 f"`Explicit`. Got {kind} axes: {getattr(spec, kind)} and mesh: {mesh}")
        if not mesh.auto_axes and PartitionSpec.UNCONSTRAINED in spec:
            raise ValueError(f"NamedSharding: {spec} leaves a dimension to the compiler (UNCONSTRAINED), but "
                             f"{mesh} has no axis of type AxisType.Auto")
        self.mesh = mesh
        self.spec = spec
        self._kind = checked_kind(memory_kind, getattr(mesh, "_devices", None), "NamedSharding")
        self._used = used
        self._hash = hash((mesh, spec, self._kind))

    @property
    def _devices(self) -> tuple[Any, ...]:      # type: ignore[override]
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("What asks for devices is not implemented for `jax.sharding.AbstractMesh`: "
                             f"{self} has no devices: its mesh is an AbstractMesh; build it on a Mesh")
        return self.mesh._devices

    @property
    def memory_kind(self) -> str | None:
        return self._kind if isinstance(self.mesh, AbstractMesh) else super().memory_kind

    @property
    def _terms(self) -> frozenset[str]:     # type: ignore[override]
        return self.spec.unreduced

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        """Does each device hold the whole array?"""
        return not self.spec.unreduced and all(self.mesh.shape[name] == 1 for name in self._used)

    def check_rank(self, ndim: int) -> None:
        """Is the spec for arrays of rank `ndim`?

        Raises:
            ValueError: if it has more entries than such an array has dimensions.
        """
        if len(self.spec) > ndim:
            raise ValueError(f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, "
                             f"but was applied to a value of rank {ndim}. Drop entries from the spec.")

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """`check_rank` for arrays of a shape."""
        self.check_rank(len(aval_shape))

    @property
    def replicated_axes(self) -> frozenset[str]:
        """The mesh axes over which devices hold copies."""
        return frozenset(self.mesh.axis_names) - {*self._used} - self.spec.unreduced

    def _tiles(self, ndim: int) -> np.ndarray:
        if any(self.spec.axes(dim) for dim in range(ndim, len(self.spec))):     # else they split nothing
            self.check_rank(ndim)
        mesh = self.mesh
        copies = [name for name in mesh.axis_names if name not in self._used]
        order = [mesh.axis_names.index(name) for name in (*self._used, *copies)]
        counts = [math.prod(mesh.shape[name] for name in self.spec.axes(dim)) for dim in range(ndim)]
        return np.arange(mesh.size).reshape(mesh.axis_sizes).transpose(order).reshape(*counts, -1)

    def _splits(self, dim: int) -> str:
        names = self.spec.axes(dim)
        sizes = " x ".join(f"{n!r} ({self.mesh.shape[n]})" for n in names)
        return f"mesh ax{'is' if len(names) == 1 else 'es'} {sizes}"

    def update(self, **changes: Any) -> NamedSharding:
        """The same but for `mesh`, `spec` or `memory_kind`."""
        return NamedSharding(**{"mesh": self.mesh, "spec": self.spec, "memory_kind": self._kind, **changes})

    def explicit(self, shape: Sequence[Any]) -> NamedSharding | AbstractMesh | None:
        """What the type of an array of `shape` says of this sharding: Explicit axes alone, without devices.

        Returns:
            One with an AbstractMesh and an entry for each dimension; that mesh alone where no Explicit axis
            splits any; None where it has none.
        Raises:
            ValueError: where a dimension does not divide.
        """
        return _explicit(self, tuple(shape))

    def entries(self, ndim: int) -> list[Any]:
        """The entries of the spec, for each of `ndim` dimensions one."""
        return [*self.spec, *[None] * (ndim - len(self.spec))]

    def filled(self, ndim: int) -> NamedSharding:
        missing = self.mesh.explicit_axes and len(self.spec) < ndim
        return self.with_entries(*self.entries(ndim)) if missing else self

    def without_dimension(self, dim: int, ndim: int) -> NamedSharding:
        """For slices along dimension `dim` of arrays of rank `ndim`."""
        entries = self.entries(ndim)
        return self.with_entries(*entries[:dim], *entries[dim + 1:])

    def with_dimension(self, dim: int, ndim: int, entry: Any = None) -> NamedSharding:
        """For arrays of rank `ndim` with one more dimension at `dim`, which `entry` splits."""
        entries = self.entries(ndim)
        return self.with_entries(*entries[:dim], entry, *entries[dim:])

    def along(self, dim: int) -> NamedSharding | None:
        """For vectors along dimension `dim`; None where it is not split."""
        return self.with_spec(PartitionSpec(self.spec[dim])) if self.spec.axes(dim) else None

    def sizes_text(self, shape: Sequence[Any]) -> list[str]:
        """The sizes of `shape`, behind each the axes that split it: `4@x`, `2@(y,z)`."""
        return [f"{size}{_AT[min(len(axes), 2)].format(','.join(axes))}"
                for size, axes in zip(shape, map(self.spec.axes, range(len(shape))))]

    def with_spec(self, spec: PartitionSpec) -> NamedSharding:
        return self.update(spec=spec)

    def with_entries(self, *entries: Any) -> NamedSharding:
        """The same but for the entries of the spec."""
        return self.update(spec=self.spec.update(partitions=entries))

    def cotangent(self) -> NamedSharding:
        """That of cotangents of values that have this one."""
        return self.with_spec(self.spec.to_ct_spec()) if self.spec.partial else self

    def with_memory_kind(self, kind: str | None) -> NamedSharding:
        return self.update(memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, NamedSharding) and (
            (self.mesh, self.spec, self._kind, self._layout) == (
                other.mesh, other.spec, other._kind, other._layout))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec, self._kind)

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{self._memory_repr()})"


_AT = "", "@{}", "@({})"      # by the number of axes


@functools.lru_cache(4096)
def _explicit(sharding: NamedSharding, shape: tuple[Any, ...]) -> NamedSharding | AbstractMesh | None:
    names = {*sharding.mesh.explicit_axes}
    split = [tuple(name for name in sharding.spec.axes(dim) if name in names)
             for dim in range(len(sharding.spec))]
    unreduced, reduced = (names & given for given in (sharding.spec.unreduced, sharding.spec.reduced))
    if not (any(split) or unreduced or reduced):
        return sharding.mesh.abstract_mesh if names else None
    sharding.check_rank(len(shape))
    spec = PartitionSpec(*split, *[None] * (len(shape) - len(split)), unreduced=unreduced, reduced=reduced)
    found = NamedSharding(sharding.mesh.abstract_mesh, spec)
    # an error where it does not divide
    found.shard_shape([0 if type(n) is Dimension else n for n in shape])
    return found


def over_mesh_in_use(sharding: Any) -> Any:
    """A sharding over an AbstractMesh on the mesh in use, if that has these axes; None if it has no axes.

    Any other sharding is returned as it is.
    """
    if not isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        return sharding
    mesh = current_mesh()
    if isinstance(mesh, Mesh) and mesh.same_axes(sharding.mesh):
        return sharding.update(mesh=mesh)
    return sharding if sharding.mesh.axis_names else None


def of_type(aval: Any, mesh: Mesh | AbstractMesh, others: Sequence[Any] = ()) -> NamedSharding | None:
    """The sharding over `mesh`, or one of the `others` that a program names, of results of this type.

    None where Auto axes leave it to the compiler.
    """
    if aval.explicit is not None and aval.explicit.mesh.shape_tuple == mesh.shape_tuple:
        mesh, spec = mesh.update(axis_types=aval.explicit.mesh.axis_types), aval.explicit.spec
    elif aval.explicit is not None:     # the program goes from one mesh to another
        wanted = aval.explicit.mesh
        over = next((m for m in others if isinstance(m, Mesh) and m.abstract_mesh == wanted), None)
        found = over_mesh_in_use(aval.explicit) if over is None else aval.explicit.update(mesh=over)
        return found if isinstance(found.mesh, Mesh) else None
    else:
        spec = PartitionSpec(*[None] * aval.ndim)
    kind = HOST if aval.memory is Space.Host else None
    return None if mesh.auto_axes and not spec.partial else NamedSharding(mesh, spec, kind)


def as_named(sharding: Sharding, ndim: int) -> NamedSharding:
    """A NamedSharding, equivalent for arrays of rank `ndim`; its mesh is made up if the sharding has none."""
    if isinstance(sharding, NamedSharding):
        if len(sharding.spec) <= ndim:
            return sharding
        sharding._tiles(ndim)       # unless entries that split nothing are all there is too many
        return sharding.with_entries(*sharding.spec[:ndim])
    tiles = sharding._tiles(ndim)
    names = [f"_{dim}" if count > 1 else None for dim, count in enumerate(tiles.shape[:-1])]
    axes = {name: count for name, count in zip(names, tiles.shape) if name}
    if tiles.shape[-1] > 1 or not axes:
        axes["_copies"] = tiles.shape[-1]
    devices = np.array(sharding._devices, dtype=object)[tiles]
    mesh = Mesh(devices.reshape(tuple(axes.values())), tuple(axes))
    return NamedSharding(mesh, PartitionSpec(*names), sharding._kind)
