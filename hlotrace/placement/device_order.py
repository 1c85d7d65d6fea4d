"""Which device comes where in a mesh: TPUs by how they are wired, others in their order.

The chips of a TPU slice are a grid, whose axes are physical axes; those of a mesh are logical ones.  A
logical axis is made of whole physical axes, or of factors of some, so that neighbours along it are neighbours
on the grid.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

TRAYS = ("TPU v2", "TPU v3")    # hosts of 2x2 chips with two cores each, eight devices
STACKED_TRAYS = ("TPU7x",)      # such trays, of which up to that many are wired to a column
PLANES = ("TPU v5 lite", "TPU v6 lite")     # chips in a plane, whose axes do not wrap around below 16
_IN_TRAY = (0, 1, 2, 3, 6, 7, 4, 5)     # the devices of a tray in a ring
_IN_CUBE = (0, 1, 3, 2, 6, 7, 5, 4)     # the chips of a cube of 2x2x2 in a ring
_IN_PLANE = (0, 1, 2, 3, 7, 6, 5, 4)    # eight chips of a plane in a ring, two hosts of four
# The orders in which the devices of each host are a block; JAX has them of these slices alone: (physical
# axes, logical axes) -> which physical axes vary slowest
_BLOCKS: dict[tuple[tuple[int, ...], ...], str] = {
    ((2, 2, 1), (2, 2)): "zyx", ((2, 2, 4), (4, 4)): "zxy", ((4, 4, 4), (16, 4)): "zyx",
    ((4, 8, 8), (64, 4)): "zyx", ((4, 8, 8), (4, 64)): "xzy", ((8, 8, 8), (64, 8)): "zyx",
    ((8, 16, 16), (256, 8)): "zyx", ((8, 16, 16), (8, 256)): "xzy"}
Factors = tuple[tuple[int, ...], ...]       # [physical axis][logical axis] -> size


def arrange(shape: Sequence[int], devices: Sequence[Any], *, split: bool = False,
            contiguous: bool = False) -> np.ndarray:
    """The devices in an array of `shape`.

    Args:
        shape: the logical axes; those with the most communication come last.
        devices: as many as they multiply to.
        split: a physical axis may be divided between logical ones.
        contiguous: the devices of each process of TPUs are a block of the array.
    Raises:
        NotImplementedError: when an axis of TPUs would have to be split, and may not.
        ValueError: when `contiguous` is requested of a slice and axes of which no such order is known.
    """
    shape = tuple(shape)
    found = _wired(shape, devices, split, contiguous)
    return _in_array(devices).reshape(shape) if found is None else found


def _in_array(devices: Sequence[Any]) -> np.ndarray:
    found = np.empty(len(devices), dtype=object)
    found[:] = devices
    return found


def _wired(shape: tuple[int, ...], devices: Sequence[Any], split: bool,
           contiguous: bool) -> np.ndarray | None:
    """The devices by their coordinates; None where they have none or do not fill a box."""
    if not devices or any(getattr(d, "coords", None) is None for d in devices):
        return None
    if devices[0].device_kind in TRAYS:
        return _trays(devices).reshape(shape) if len(devices) == 8 or shape[-1:] == (8,) else None
    if devices[0].device_kind == "TPU v4 lite" and len(devices) == 4:
        return _ring_of(devices, _IN_CUBE[:4]).reshape(shape)
    chips = tuple(len({d.coords[i] for d in devices}) for i in range(3))
    if devices[0].device_kind in PLANES and len(devices) == 8:
        ordered = _ring_of(sorted(devices, key=_place), _IN_PLANE) if chips[2] == 1 else _in_array(
            sorted(devices, key=lambda d: d.coords))
        return ordered.reshape(shape)
    grid = _grid(devices)
    if grid is None:
        return None
    if devices[0].device_kind == "TPU v5p" and grid.shape == (2, 2, 2):
        return _ring_of(sorted(devices, key=_place), _IN_CUBE).reshape(shape)
    if devices[0].device_kind in STACKED_TRAYS and len(devices) % 8 == 0 and all(
            max(place) - min(place) < 2 for place in [[d.coords[i] for d in devices] for i in (0, 1)]):
        return _trays(devices).reshape(shape)
    if devices[0].device_kind in PLANES:
        ring = _ring_of_chips(grid)
        if ring is not None and (len(devices) <= 8 or len(devices) in shape):
            return ring.reshape(shape)
    if contiguous:
        cores = (len(devices) // math.prod(chips),) if devices[0].device_kind in STACKED_TRAYS else ()
        return _in_blocks(shape, devices, (*chips, *cores))
    factors = _first_whole_axes(grid.shape, shape)
    if factors is None:
        several = _divided_axes(grid.shape, shape) if split else _whole_axes(grid.shape, shape)
        factors = next(several, None)
    if factors is None:
        sizes = "x".join(map(str, grid.shape))
        raise NotImplementedError(
            f"create_device_mesh: no axis of mesh_shape {shape} may share a physical axis with another, and "
            f"the devices are a grid of {sizes}: make each size a product of some of these, or pass "
            "allow_split_physical_axes=True")
    return _fold(grid, factors, shape)


def _in_blocks(shape: tuple[int, ...], devices: Sequence[Any], chips: tuple[int, ...]) -> np.ndarray:
    """The devices of a slice of `chips`, those of each host a block."""
    long = tuple(size for size in shape if size > 1)
    if (chips, long) not in _BLOCKS or len(devices) != math.prod(chips):
        known = [axes for slice_, axes in _BLOCKS if slice_ == chips]
        shapes = f"mesh_shape {shape} and " if known else ""
        raise ValueError(f"create_device_mesh cannot create contiguous submeshes for {shapes}physical mesh "
                         f"topology {chips}{f'. Available mesh_shapes: {known}' * bool(known)}; leave "
                         "contiguous_submeshes out")
    slowest = _BLOCKS[chips, long]
    return _in_array(sorted(devices, key=lambda d: [d.coords["xyz".index(axis)] for axis in slowest])
                     ).reshape(shape)


def _trays(devices: Sequence[Any]) -> np.ndarray:
    """The eight devices of each tray in a ring."""
    return _ring_of(devices, _IN_TRAY)


def _ring_of(devices: Sequence[Any], order: Sequence[int]) -> np.ndarray:
    """The devices, of each group of as many as `order` has in that order."""
    return _in_array([devices[start + i] for start in range(0, len(devices), len(order)) for i in order])


def _place(device: Any) -> tuple[int, ...]:
    """Where a device is, for sorting: z, y, x, core."""
    return (*reversed(device.coords), getattr(device, "core_on_chip", 0) or 0)


def _grid(devices: Sequence[Any]) -> np.ndarray | None:
    """The devices by x, y, z and, where chips have several, core; axes of size 1 are left out."""
    places = np.array([(*d.coords, getattr(d, "core_on_chip", 0) or 0) for d in devices])
    places -= places.min(axis=0)
    sizes = places.max(axis=0) + 1
    if len({tuple(place) for place in places.tolist()}) != len(devices) or math.prod(sizes) != len(devices):
        return None
    grid = np.empty(sizes, dtype=object)
    for place, device in zip(places, devices):
        grid[tuple(place)] = device
    return grid.reshape([size for size in sizes if size > 1])


def _ring_of_chips(grid: np.ndarray) -> np.ndarray | None:
    """All devices of a plane of up to 4x4 in a ring of neighbours."""
    if grid.ndim != 2 or max(grid.shape) > 4 or grid.size % 2:
        return None
    if grid.shape[1] % 2:
        grid = grid.T
    return _in_array([grid[at] for at in _ring(*grid.shape)])


def _ring(x: int, y: int) -> Iterator[tuple[int, int]]:
    """All points of a plane, each beside the next, the last beside the first; `y` is even.

    Rows are passed to and fro without their first points, by which the way leads back.
    """
    yield 0, 0
    for row in range(y):
        yield from ((i, row) for i in (range(1, x) if row % 2 == 0 else range(x - 1, 0, -1)))
    yield from ((0, row) for row in range(y - 1, 0, -1))


def _first_whole_axes(physical: tuple[int, ...], logical: tuple[int, ...]) -> Factors | None:
    """Each physical axis for one logical axis, the last choosing first; None where the rest does not fit."""
    free = frozenset(range(len(physical)))
    owners: dict[int, int] = {}
    for index in reversed(range(len(logical))):
        chosen = next(_choices(physical, logical[index], free), None)
        if chosen is None:
            return None
        owners |= dict.fromkeys(chosen, index)
        free = free.difference(chosen)
    return None if free else _owned(physical, logical, owners)


def _choices(physical: tuple[int, ...], size: int, free: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """The physical axes that a logical axis of a size may take, the best first.

    It takes as many as it can: they have more links.
    """
    for count in range(len(free) if size > 1 else 0, -1, -1):
        for chosen in itertools.combinations(sorted(free), count):
            if math.prod(physical[i] for i in chosen) == size:
                yield chosen


def _owned(physical: tuple[int, ...], logical: tuple[int, ...], owners: dict[int, int]) -> Factors:
    return tuple(tuple(size if owners[i] == j else 1 for j in range(len(logical)))
                 for i, size in enumerate(physical))


def _whole_axes(physical: tuple[int, ...], logical: tuple[int, ...]) -> Iterator[Factors]:
    """All ways to give each physical axis to one logical axis, the last of which chooses first."""
    def give(free: frozenset[int], index: int) -> Iterator[dict[int, int]]:
        if index < 0:
            if not free:
                yield {}
            return
        for chosen in _choices(physical, logical[index], free):
            for rest in give(free.difference(chosen), index - 1):
                yield rest | dict.fromkeys(chosen, index)

    for owners in give(frozenset(range(len(physical))), len(logical) - 1):
        yield _owned(physical, logical, owners)


def _divided_axes(physical: tuple[int, ...], logical: tuple[int, ...]) -> Iterator[Factors]:
    """Ways to divide physical axes between logical axes, the last of which chooses first.

    It takes as much as it can of physical axes that it takes whole, and as many of these.
    """
    def choices(free: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
        divisors = [[k for k in range(1, n + 1) if n % k == 0 and size % k == 0] for n in free]
        found = [taken for taken in itertools.product(*divisors) if math.prod(taken) == size]
        whole = [[k for k, n in zip(taken, physical) if k == n] for taken in found]
        best = sorted(range(len(found)), key=lambda i: (math.prod(whole[i]), len(whole[i]), found[i]))
        return [found[i] for i in reversed(best)]

    def give(free: tuple[int, ...], left: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
        if not left:
            yield ()
            return
        for taken in choices(free, left[-1]):
            for rest in give(tuple(n // k for n, k in zip(free, taken)), left[:-1]):
                yield (*rest, taken)

    for taken in give(physical, logical):
        yield tuple(zip(*taken))


def _fold(grid: np.ndarray, factors: Factors, shape: tuple[int, ...]) -> np.ndarray:
    """The grid with the factors of its axes collected by logical axis."""
    sizes = [size for row in factors for size in row]
    order = [i * len(shape) + j for j in range(len(shape)) for i in range(len(factors))]
    return grid.reshape(sizes).transpose(order).reshape(shape)
