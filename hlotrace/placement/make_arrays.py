"""Arrays over several devices from parts: computed for each, on the devices already, or held by a process."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.avals import ShapedArray, aval_of
from ..core.caches import cached
from ..core.pytrees import pytree
from ..runtime import array_impl
from ..runtime.array_impl import ArrayImpl
from ..runtime.devices import placement, shards, transfer
from ..sharding.abstract import Sharding, is_local
from ..sharding.layout import Format
from ..sharding.spec import PartitionSpec


def _check_sharding(name: str, sharding: Any) -> None:
    if not isinstance(sharding, Sharding):
        error = ValueError if isinstance(sharding, PartitionSpec) else TypeError
        raise error(f"{name}: sharding is a Sharding, got {sharding!r} of type {type(sharding).__name__}; "
                    "write NamedSharding(mesh, spec), or SingleDeviceSharding(device)")


@cached(1024)
def _types(name: str, shape: tuple[int, ...], dtype: Any,
           sharding: Sharding) -> tuple[ShapedArray, ShapedArray]:
    """The types of an array and of its part on each device."""
    aval = ShapedArray(shape, dtypes.canonicalize(dtype))
    placement.check_divides(sharding, aval, lambda: name)
    return aval, aval.update(shape=sharding.shard_shape(shape))


@functools.lru_cache(1024)
def _pieces(sharding: Sharding, shape: tuple[int, ...]) -> tuple[list[Any], list[Any], list[int]]:
    """The different parts of an array that this process holds, as indices; its devices, and which of these
    each has."""
    where = sharding.addressable_devices_indices_map(shape)
    found: dict[Any, Any] = {}
    keys = [tuple([(s.start, s.stop) for s in index]) for index in where.values()]
    for key, index in zip(keys, where.values()):
        found.setdefault(key, index)
    return list(found.values()), list(where), [list(found).index(key) for key in keys]


def make_array_from_callback(shape: Iterable[int], sharding: Sharding, data_callback: Callable[[Any], Any],
                             dtype: Any = None) -> ArrayImpl:
    """An array of `shape` whose part at `index`, a tuple of slices, is `data_callback(index)`.

    Args:
        sharding: a Sharding, or a Format.
        data_callback: called once for each different part that this process holds.
        dtype: needed where this process holds no part.
    Raises:
        ValueError: where a part has another shape, or another dtype than the rest.

    >>> sharding = jax.NamedSharding(jax.make_mesh((2,), ("x",)), jax.P("x"))
    >>> whole = np.arange(6).reshape(2, 3)
    >>> x = jax.make_array_from_callback((2, 3), sharding, lambda index: whole[index])
    >>> x.shape, x.addressable_shards[1].data
    ((2, 3), Array([[3, 4, 5]], dtype=int32))
    """
    name = "make_array_from_callback"
    if isinstance(sharding, Format) and sharding.sharding is not None:
        plain: Any = sharding.sharding
        made = make_array_from_callback(shape, plain, data_callback, dtype)
        return transfer.move(made, plain.in_layout(sharding.layout))
    _check_sharding(name, sharding)
    shape = tuple(shape)
    indices, devices, held = _pieces(sharding, shape)
    values = [data_callback(index) for index in indices]
    if dtype is None and not values:
        raise ValueError(f"{name}: no device of {sharding} belongs to this process; pass dtype=")
    if values and isinstance(values[0], array_impl.ArrayImpl) and dtypes.is_extended(values[0].dtype):  # keys
        return make_array_from_single_device_arrays(shape, sharding, [
            transfer.move(values[i], placement.on_device(device)) for i, device in zip(held, devices)])
    values = [*map(np.asarray, values)]
    aval, part = _types(name, shape, values[0].dtype if dtype is None else dtype, sharding)
    for index, value in zip(indices, values):
        if value.shape != part.shape or value.dtype != aval.dtype and (
                dtypes.canonicalize(value.dtype) != aval.dtype):
            raise ValueError(f"{name}: the part at {index} must have shape {part.shape} and dtype "
                             f"{aval.dtype.name}; the callback returned shape {value.shape} and dtype "
                             f"{value.dtype}: return value[index]. "
                             + _wrong_part(aval, sharding, part, value.shape, value.dtype))
    return _of_parts([values[i] for i in held], part, aval, sharding, devices)


def _of_parts(values: Sequence[np.ndarray], part: ShapedArray, aval: ShapedArray, sharding: Any,
              devices: Sequence[Any]) -> ArrayImpl:
    """An array whose part on each of this process's devices, of type `part`, is one of `values`."""
    plain = sharding if sharding._kind is None and sharding._layout is None else (
        sharding.in_layout(None).with_memory_kind(None))
    buffer = shards.put_parts([np.asarray(v, aval.dtype, order="C") for v in values], part, aval, plain,
                              devices)
    made = array_impl.ArrayImpl(plain.typed(aval), buffer, True)
    return made if plain is sharding else transfer.move(made, sharding)


def _wrong_part(aval: Any, sharding: Any, part: Any, shape: tuple[int, ...], dtype: Any) -> str:
    """What is wrong with the part of an array that has this shape and dtype and not those of `part`."""
    if shape != part.shape:
        return (f"Expected shard shape {part.shape} doesn't match the single device array shape {shape}. "
                f"Shape of Array is {aval.str_short()} with sharding {sharding}")
    return f"Input buffers to `Array` must have matching dtypes. Got {dtype}, expected {part.dtype.name}"


def make_array_from_single_device_arrays(shape: Iterable[int], sharding: Sharding,
                                         arrays: Sequence[ArrayImpl], *, dtype: Any = None) -> ArrayImpl:
    """An array of `shape` made of `arrays`, one on each device of this process, in any order.

    Nothing is copied.

    Raises:
        ValueError: where their number, shapes, dtypes or devices are not those of `sharding`.
        TypeError: where they are no list of arrays.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> parts = [jax.device_put(jnp.full(2, i), d) for i, d in enumerate(mesh.devices)]
    >>> jax.make_array_from_single_device_arrays((4,), jax.NamedSharding(mesh, jax.P("x")), parts)
    Array([0, 0, 1, 1], dtype=int32, weak_type=True)
    """
    name = "make_array_from_single_device_arrays"
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got {type(arrays)}: of "
                        "arrays on one device each")
    _check_sharding(name, sharding)
    if dtype is None and not arrays:
        raise ValueError(f"{name}: arrays is empty; pass dtype=")
    aval, part = _types(name, tuple(shape), arrays[0].dtype if dtype is None else dtype, sharding)
    local = [d for d in sharding._devices if is_local(d)]
    if len(arrays) != len(local):
        raise ValueError(f"{name}: {sharding}: Expected {len(local)} per-device arrays (this is how many "
                         f"devices are addressable by the sharding), but got {len(arrays)}")
    by_device = {}
    for i, x in enumerate(arrays):
        if not isinstance(x, array_impl.ArrayImpl):
            raise TypeError(f"{name}: Unsupported type for elements in `arrays`: {type(x)}, of arrays[{i}]; "
                            "put it on its device with device_put")
        if len(x.sharding._devices) != 1:
            raise ValueError(f"{name}: arrays[{i}] is over several devices; pass the data of its shards")
        x.check_alive()
        if x.shape != part.shape or x.dtype != part.dtype:
            raise ValueError(f"{name}: arrays[{i}] must have shape {part.shape} and dtype {part.dtype.name}. "
                             + _wrong_part(aval, sharding, part, x.shape, x.dtype))
        by_device[x.device] = x
    if set(by_device) != set(local):
        if len(by_device) < len(arrays):
            raise ValueError(f"{name}: When making an array from single-device arrays, the input arrays "
                             "must be from distinct devices, but got device IDs "
                             f"{[x.device.id for x in arrays]}")
        raise ValueError(f"{name}: the arrays are on {sorted(map(str, by_device))}, and {sharding} needs one "
                         f"on each of {sorted(map(str, local))}")
    aval = aval.update(weak_type=all(x.weak_type for x in arrays) and bool(arrays))
    return array_impl.assembled(aval, sharding, [by_device[d]._buf for d in local])


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """An array over all processes from the part that this one holds; for a pytree, an array for each leaf.

    `global_shape` is the shape of the whole; without it, each dimension is as much larger than the local one
    as there are processes along it.  With one process the data is the whole.  Raises ValueError where shapes
    do not fit.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> x = jax.make_array_from_process_local_data(jax.NamedSharding(mesh, jax.P("x")), np.arange(4))
    >>> x.shape, x.addressable_shards[1].data
    ((4,), Array([2, 3], dtype=int32))
    """
    name = "make_array_from_process_local_data"
    leaves, treedef = pytree.tree_flatten(local_data)
    several = global_shape is not None and not isinstance(global_shape, tuple)
    if several or not pytree.treedef_is_strict_leaf(treedef):
        shapes = [global_shape] * len(leaves) if global_shape is None else treedef.flatten_up_to(global_shape)
        targets = pytree.flatten_axes(f"{name} sharding", treedef, sharding)
        return treedef.unflatten([from_local_data(name, s, v, g) for s, v, g in zip(targets, leaves, shapes)])
    return from_local_data(name, sharding, local_data, global_shape)


def from_local_data(name: str, sharding: Sharding, value: Any,
                    global_shape: Sequence[int | None] | None) -> ArrayImpl:
    """`make_array_from_process_local_data` for one value; `name` begins errors."""
    _check_sharding(name, sharding)
    aval_of(value)      # TypeError for what is no array
    value = np.asarray(value)
    shape, indices, devices = _of_process(name, sharding, value.shape,
                                          global_shape if global_shape is None else tuple(global_shape))
    aval, part = _types(name, shape, value.dtype, sharding)
    return _of_parts([value[index] for index in indices], part, aval, sharding, devices)


@functools.lru_cache(1024)
def _of_process(name: str, sharding: Sharding, local_shape: tuple[int, ...],
                global_shape: tuple[int, ...] | None) -> tuple[tuple[int, ...], list[Any], list[Any]]:
    """The shape of an array of which a process holds a value of `local_shape`; the index in that value of the
    part of each of its devices; these devices."""
    grid = held_tiles(name, sharding, len(local_shape))
    if global_shape is None:
        shape = tuple([size * total // len(held) for size, (held, total) in zip(local_shape, grid)])
    else:
        shape = global_shape
        if None in shape:
            raise ValueError(f"{name}: global_shape {shape} has Nones. This is not supported: leave it out, "
                             "or give every size")
    if len(shape) != len(local_shape):
        raise ValueError(f"{name}: global_shape {global_shape} has {len(shape)} dimensions and the local "
                         f"data, of shape {local_shape}, has {len(local_shape)}")
    placement.check_divides(sharding, ShapedArray(shape, bool), lambda: name)
    at = []     # for each dimension where a tile of the whole begins in the local data, by where in the whole
    for dim, (size, local, (held, total)) in enumerate(zip(shape, local_shape, grid, strict=True)):
        tile = size // total
        if local == size:
            at.append({n * tile: n * tile for n in held})
        elif local * total == size * len(held):
            at.append({n * tile: i * tile for i, n in enumerate(held)})
        else:
            raise ValueError(f"{name}: dimension {dim} of the local data, of shape {local_shape}, must have "
                             f"size {size * len(held) // total}, this process's part of {shape} as "
                             f"{sharding} divides it, or the whole size {size}")
    part, where = sharding.shard_shape(shape), sharding.addressable_devices_indices_map(shape)
    return shape, [tuple([slice(first := begins[s.start or 0], first + size)
                          for s, begins, size in zip(index, at, part)])
                   for index in where.values()], list(where)


@functools.lru_cache(1024)
def held_tiles(name: str, sharding: Sharding, ndim: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """(the numbers of the tiles that this process holds, how many there are) along each dimension.
    ValueError where those are no grid: then no array can hold exactly what the process holds."""
    tiles = sharding._tiles(ndim)
    local = np.isin(tiles, [i for i, d in enumerate(sharding._devices) if is_local(d)]).any(-1)
    if not local.any():
        raise ValueError(f"{name}: no device of {sharding} belongs to this process")
    held = [sorted({*numbers}) for numbers in np.argwhere(local).T.tolist()]      # np.unique imports numpy.ma
    if local.sum() != math.prod(map(len, held)):
        raise ValueError(f"{name}: the parts of {sharding} that this process holds do not form a block; use "
                         "make_array_from_callback")
    return tuple((tuple(numbers), total) for numbers, total in zip(held, local.shape))


__all__ = ["make_array_from_callback", "make_array_from_process_local_data",
           "make_array_from_single_device_arrays"]
