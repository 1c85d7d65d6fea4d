"""PositionalSharding: devices in an array that has the array's own axes."""
import numpy as np

from .base import Sharding


class PositionalSharding(Sharding):
    """One tile for each device, laid out as the devices are; `replicate` lets devices along an axis hold copies.

    The rank must be that of the array: `PositionalSharding(devices).reshape(4, 2)` is for matrices.
    """

    def __init__(self, devices, *, memory_kind=None):
        devices = np.array(devices, dtype=object)
        if not devices.size:
            raise ValueError(f"PositionalSharding: devices, of shape {devices.shape}, holds no device")
        if len(set(devices.flat)) < devices.size:
            raise ValueError("PositionalSharding: a device stands more than once in devices; each may be used once")
        self._devices = tuple(devices.flat)
        self._numbers = np.arange(devices.size).reshape(*devices.shape, 1)      # the last axis: copies
        self.memory_kind = memory_kind

    def _with(self, numbers, **changes):
        new = object.__new__(PositionalSharding)
        new._devices, new._numbers, new.memory_kind = self._devices, numbers, self.memory_kind
        vars(new).update(changes)
        return new

    @property
    def shape(self):
        """How many tiles there are along each axis."""
        return self._numbers.shape[:-1]

    @property
    def ndim(self):
        return self._numbers.ndim - 1

    @property
    def ids(self):
        """The ids of the devices that hold each tile: an array of tuples."""
        found = np.empty(self.shape, object)
        for tile in np.ndindex(self.shape):
            found[tile] = tuple(self._devices[number].id for number in self._numbers[tile])
        return found

    @property
    def is_fully_replicated(self):
        """Does each device hold the whole array?"""
        return all(count == 1 for count in self.shape)

    def reshape(self, *shape):
        """The same tiles in another shape; one size may be -1."""
        if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)):
            shape = tuple(shape[0])
        try:
            return self._with(self._numbers.reshape(*shape, self._numbers.shape[-1]))
        except ValueError:
            raise ValueError(f"PositionalSharding.reshape: {int(np.prod(self.shape))} tiles of shape {self.shape} cannot "
                             f"take shape {tuple(shape)}") from None

    def transpose(self, *axes):
        """The axes in another order, reversed by default."""
        if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)):
            axes = tuple(axes[0] if axes[0] is not None else ())
        axes = axes or tuple(range(self.ndim))[::-1]
        if sorted(axis % self.ndim for axis in axes) != list(range(self.ndim)):
            raise ValueError(f"PositionalSharding.transpose: {axes} is no order of the {self.ndim} axes")
        return self._with(self._numbers.transpose(*(axis % self.ndim for axis in axes), self.ndim))

    T = property(transpose)

    def replicate(self, axis=None, keepdims=True):
        """Devices along `axis` (None: all; or a tuple) hold copies.  The axis stays with size 1 if `keepdims`."""
        axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, (int, np.integer)) else axis
        for axis in axes:
            if not -self.ndim <= axis < self.ndim:
                raise ValueError(f"PositionalSharding.replicate: axis {axis} of a sharding with {self.ndim} axes")
        axes = {axis % self.ndim for axis in axes}
        rest = [axis for axis in range(self.ndim) if axis not in axes]
        kept = [1 if axis in axes else n for axis, n in enumerate(self.shape) if keepdims or axis not in axes]
        return self._with(self._numbers.transpose(*rest, *sorted(axes), self.ndim).reshape(*kept, -1))

    def _tiles(self, ndim):
        if ndim != self.ndim:
            raise ValueError(f"{self}, of shape {self.shape}, is for arrays of rank {self.ndim}; the array has rank {ndim}. "
                             "Use reshape or replicate(axis, keepdims=...) to give it that rank.")
        return self._numbers

    def _splits(self, dim):
        return f"axis {dim} of the devices"

    def with_memory_kind(self, kind):
        return self._with(self._numbers, memory_kind=kind)

    def __eq__(self, other):
        return self is other or isinstance(other, PositionalSharding) and (
            (self._devices, self.memory_kind) == (other._devices, other.memory_kind)
            and np.array_equal(self._numbers, other._numbers))

    def __hash__(self):
        return hash((self._devices, self.memory_kind, self._numbers.shape))

    def __repr__(self):
        name = "PositionalSharding"
        platform = self._devices[0].platform.upper()
        body = np.array2string(self.ids, prefix=name + "(", formatter={
            "object": lambda ids: "{" + platform + " " + ",".join(map(str, ids)) + "}"})
        return f"{name}({body}{self._memory_repr()})"
