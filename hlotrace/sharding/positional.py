"""PositionalSharding: devices in an array that has the array's own axes."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.surface.boundary import boundaries
from .abstract import Sharding, checked_kind


@boundaries
class PositionalSharding(Sharding):
    """One tile for each device, in an array like that of the devices; `replicate` lets devices along an axis
    hold copies.

    `PositionalSharding(devices).reshape(4, 2)` is for matrices.  An array of lower rank takes the trailing
    axes, where the others have size 1, as in broadcasting: `.reshape(4, 2).replicate(0)` splits a vector in
    2.  Where every device holds the whole, `.replicate()`, any rank will do.

    >>> sharding = jax.sharding.PositionalSharding(jax.devices()[:2]).reshape(2, 1)
    >>> [shard.data.shape for shard in jax.device_put(jnp.ones((4, 3)), sharding).addressable_shards]
    [(2, 3), (2, 3)]
    """

    def __init__(self, devices: Any, *, memory_kind: str | None = None) -> None:
        devices = np.array(devices, dtype=object)
        if not devices.size:
            raise ValueError(f"PositionalSharding: devices, of shape {devices.shape}, holds no device")
        if len(set(devices.flat)) < devices.size:
            raise ValueError("PositionalSharding: a device is used more than once in devices; each may be "
                             "used once")
        self._devices = tuple(devices.flat)
        self._numbers = np.arange(devices.size).reshape(*devices.shape, 1)      # the last axis: copies
        self._kind = checked_kind(memory_kind, self._devices, "PositionalSharding")

    def _with(self, numbers: np.ndarray) -> PositionalSharding:
        new = object.__new__(PositionalSharding)
        new._devices, new._numbers, new._kind = self._devices, numbers, self._kind
        return new

    @property
    def shape(self) -> tuple[int, ...]:
        """How many tiles there are along each axis."""
        return self._numbers.shape[:-1]

    @property
    def ndim(self) -> int:
        return self._numbers.ndim - 1

    @property
    def ids(self) -> np.ndarray:
        """The ids of the devices that hold each tile: an array of tuples."""
        found = np.empty(self.shape, object)
        for tile in np.ndindex(self.shape):
            found[tile] = tuple(self._devices[number].id for number in self._numbers[tile])
        return found

    @property
    def is_fully_replicated(self) -> bool:
        """Does each device hold the whole array?"""
        return all(count == 1 for count in self.shape)

    def reshape(self, *shape: Any) -> PositionalSharding:
        """The same tiles in another shape; one size may be -1."""
        if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)):
            shape = tuple(shape[0])
        try:
            return self._with(self._numbers.reshape(*shape, self._numbers.shape[-1]))
        except ValueError:
            raise ValueError(f"PositionalSharding.reshape: {int(np.prod(self.shape))} tiles of shape "
                             f"{self.shape} cannot take shape {tuple(shape)}") from None

    def transpose(self, *axes: Any) -> PositionalSharding:
        """The axes in another order, reversed by default."""
        if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)):
            axes = tuple(axes[0] if axes[0] is not None else ())
        axes = axes or tuple(range(self.ndim))[::-1]
        if sorted(axis % self.ndim for axis in axes) != list(range(self.ndim)):
            raise ValueError(f"PositionalSharding.transpose: {axes} is no order of the {self.ndim} axes")
        return self._with(self._numbers.transpose(*(axis % self.ndim for axis in axes), self.ndim))

    T = property(transpose)

    def replicate(self, axis: int | Iterable[int] | None = None, keepdims: bool = True) -> PositionalSharding:
        """Devices along `axis` (None: all; or a tuple) hold copies.

        Args:
            keepdims: does the axis remain, with size 1?
        """
        if axis is None:
            axis = range(self.ndim)
        given = (axis,) if isinstance(axis, (int, np.integer)) else axis
        for one in given:
            if not -self.ndim <= one < self.ndim:
                raise ValueError(f"PositionalSharding.replicate: axis {one} of a sharding with {self.ndim} "
                                 "axes")
        axes = {one % self.ndim for one in given}
        rest = [i for i in range(self.ndim) if i not in axes]
        kept = [1 if i in axes else n for i, n in enumerate(self.shape) if keepdims or i not in axes]
        return self._with(self._numbers.transpose(*rest, *sorted(axes), self.ndim).reshape(*kept, -1))

    def _tiles(self, ndim: int) -> np.ndarray:
        if ndim == self.ndim:
            return self._numbers
        if self.is_fully_replicated:
            return self._numbers.reshape(*(1,) * ndim, -1)
        extra = self.ndim - ndim
        if extra < 0:
            raise ValueError(f"{self}, of shape {self.shape}, is for arrays of rank {self.ndim} or less; the "
                             f"array has rank {ndim}. Use reshape or replicate(axis, keepdims=...) to give "
                             "it that rank.")
        if any(count > 1 for count in self.shape[:extra]):
            raise ValueError(f"{self}, of shape {self.shape}, is for arrays of rank {self.ndim}; an array of "
                             f"rank {ndim} takes the trailing axes, and the leading ones, of shape "
                             f"{self.shape[:extra]}, would split axes that it does not have. Make copies "
                             f"along them: replicate({tuple(range(extra))}).")
        return self._numbers.reshape(*self.shape[extra:], -1)

    def _splits(self, dim: int) -> str:
        return f"axis {dim} of the devices"

    def with_memory_kind(self, kind: str | None) -> PositionalSharding:
        return PositionalSharding(self._devices, memory_kind=kind)._with(self._numbers)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, PositionalSharding) and (
            (self._devices, self._kind, self._layout) == (other._devices, other._kind, other._layout)
            and np.array_equal(self._numbers, other._numbers))

    def __hash__(self) -> int:
        return hash((self._devices, self._kind, self._numbers.shape))

    def __repr__(self) -> str:
        name = "PositionalSharding"
        platform = self._devices[0].platform.upper()

        form: Any = {"object": lambda ids: "{" + platform + " " + ",".join(map(str, ids)) + "}"}
        body = np.array2string(self.ids, prefix=name + "(", formatter=form)
        return f"{name}({body}{self._memory_repr()})"
