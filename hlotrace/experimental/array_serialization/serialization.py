"""Arrays written to storage by tensorstore, while a program goes on, and read again under other shardings.

Orbax does more: this is what older checkpoints, such as Flax's, are made of.  tensorstore, a package of its
own, is imported when a manager is made or an array is written or read.
"""
import abc
import itertools
import math
import os
import re
import threading
from concurrent.futures import Future
from importlib import import_module

import numpy as np

from ...api.shape_dtype_struct import ShapeDtypeStruct
from ...core import dtypes
from ...core.surface.public import export_names
from ...placement.device_put import device_put
from ...placement.make_arrays import make_array_from_callback
from ...runtime.devices import client
from ...runtime.status_line import going_on
from ...sharding.layout import Format

__all__ = ["GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase", "async_deserialize",
           "async_serialize", "get_tensorstore_spec", "run_deserialization", "run_serialization"]

_BUCKETS = {"gs": "gcs", "s3": "s3"}


def get_tensorstore_spec(ckpt_path, *, ocdbt=False, process_idx=None, arr=None, driver="zarr"):
    """Where and how tensorstore is to store an array, as the dict that tensorstore reads.

    Args:
        ckpt_path: the array's own place, a directory or `gs://bucket/path`, `s3://bucket/path`.
        ocdbt: store it in the database of the directory around it, where many arrays are few files; the path
            is absolute then.
        process_idx: of the process whose part of the database this is.
        arr: an array whose shape and dtype are to be written down; its shard is the chunk.
        driver: the format, "zarr" or "zarr3".
    Raises:
        ValueError: for a relative path with `ocdbt`, and for another driver.

    >>> from hlotrace.experimental.array_serialization.serialization import get_tensorstore_spec
    >>> get_tensorstore_spec("/checkpoints/w")
    {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/checkpoints/w'}}
    """
    if driver not in ("zarr", "zarr3"):
        raise ValueError(f"get_tensorstore_spec: driver is 'zarr' or 'zarr3', not {driver!r}")
    path = os.path.normpath(ckpt_path).replace("gs:/", "gs://").replace("s3:/", "s3://")
    bucket = re.fullmatch("(gs|s3)://([^/]+)/(.+)", path)
    if ocdbt and not (bucket or os.path.isabs(path)):
        raise ValueError(f"get_tensorstore_spec: with ocdbt=True ckpt_path is absolute, and {path!r} is not")
    base = {"driver": _BUCKETS[bucket[1]], "bucket": bucket[2]} if bucket else {"driver": "file"}
    path = bucket[3] if bucket else path
    if ocdbt:
        parent, name = os.path.split(path)
        base["path"] = parent if process_idx is None else f"{parent}/process_{process_idx}"
        spec = {"driver": driver, "kvstore": {"driver": "ocdbt", "base": base, "path": name}}
    else:
        spec = {"driver": driver, "kvstore": {**base, "path": path}}
    return spec if arr is None else {**spec, **_described(driver, arr)}


def _described(driver, x):
    """The part of a spec that says an array's shape, dtype, and chunks, which are its shards."""
    chunk = [max(1, size) for size in x.sharding.shard_shape(x.shape)]
    spec = {"dtype": x.dtype.name,
            "schema": {"domain": {"shape": [*x.shape]}, "chunk_layout": {"write_chunk": {"shape": chunk}}}}
    return spec | ({"metadata": {"compressor": {"id": "zstd"}}} if driver == "zarr" else {})


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The base of what writes arrays of several processes in the background, one checkpoint at a time."""

    @abc.abstractmethod
    def check_for_errors(self):
        """Fail with what went wrong in the background, if something did; do not wait."""

    @abc.abstractmethod
    def wait_until_finished(self):
        """Wait until everything is written; fail with what went wrong."""

    @abc.abstractmethod
    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback):
        """Begin to write arrays, each as its spec says; the callback is called when all are."""

    @abc.abstractmethod
    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None):
        """The arrays that were written, under these shardings."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Writes arrays in the background.

    Every process of a job makes one, and calls the same methods with the same arrays.

    Args:
        timeout_secs: how long a process waits for the others to have written theirs.
    Raises:
        ImportError: without tensorstore.

    >>> from hlotrace.experimental.array_serialization.serialization import GlobalAsyncCheckpointManager
    >>> manager = GlobalAsyncCheckpointManager()                                    # doctest: +SKIP
    >>> manager.serialize_with_paths([w], ["/checkpoints/w"])                       # doctest: +SKIP
    >>> manager.wait_until_finished()                                               # doctest: +SKIP
    >>> w, = manager.deserialize_with_paths([w.sharding], ["/checkpoints/w"])       # doctest: +SKIP
    """
    _numbers = itertools.count()

    def __init__(self, timeout_secs=300):
        self._timeout, self._done, self._context = timeout_secs, None, _tensorstore().Context()

    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback=None, transaction=None):
        """Write arrays, each where its spec says; they are copied first, and written in the background.

        What went wrong with the last checkpoint is raised.

        Args:
            tensorstore_specs: for each what `get_tensorstore_spec` gives.
            on_commit_callback: called in process 0, in the background, once all processes have written.
            transaction: tensorstore's, to write within.
        Raises:
            TypeError: for what is not a jax.Array, or keys (write their `key_data`).
            ValueError: unless there is a spec for each array.
        """
        self.wait_until_finished()
        _same_number("serialize", arrays, tensorstore_specs)
        stores = [_opened("serialize", x, spec, context=self._context, transaction=transaction)
                  for x, spec in zip(arrays, tensorstore_specs)]
        writes = [write for x, store in zip(arrays, stores) for write in _writes(x, store.result())]
        with going_on(lambda: f"checkpoint: copying {len(arrays)} arrays"):
            for write in writes:
                write.copy.result()
        self._done = Future()
        name = f"array_serialization_{next(self._numbers)}"
        threading.Thread(target=self._finish, args=(self._done, writes, on_commit_callback, name)).start()

    def _finish(self, done, writes, on_commit, name):
        try:
            finished = 0
            with going_on(lambda: f"checkpoint: {finished} of {len(writes)} parts of arrays written"):
                for finished, write in enumerate(writes):       # noqa: B007  the line reads it
                    write.result()
            self._together(f"{name}_written")
            if on_commit is not None and client.process_index() == 0:
                on_commit()
            self._together(f"{name}_committed")
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    def _together(self, name):
        if client.world is not None:
            client.world.client.wait_at_barrier(name, self._timeout * 1000)

    def serialize_with_paths(self, arrays, paths, *, on_commit_callback=None, transaction=None):
        """As `serialize`, with a path for each array."""
        self.serialize(arrays, [*map(get_tensorstore_spec, paths)], on_commit_callback=on_commit_callback,
                       transaction=transaction)

    def wait_until_finished(self):
        """Wait until everything is written and committed; fail, once, with what went wrong."""
        done, self._done = self._done, None
        if done is not None:
            done.result()

    def check_for_errors(self):
        """Fail with what has gone wrong so far; do not wait."""
        if self._done is not None and self._done.done():
            self.wait_until_finished()

    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None, concurrent_gb=32):
        """The arrays that specs describe, one for each sharding.

        Args:
            shardings: of any mesh, or Formats; each process reads what its devices hold.
            tensorstore_specs: for each what `get_tensorstore_spec` gives.
            global_shapes: those of the results, if not what was written; where an array was smaller there are
                zeros behind it, where it was larger it ends.
            dtypes: those of the results, if not what was written.
            concurrent_gb: begin to read while what is read and not yet in arrays has fewer bytes, in 10^9.
        Raises:
            ValueError: where nothing was written, and unless there are as many of each argument.
        """
        self.wait_until_finished()
        unsaid, found, begun = [None] * len(shardings), [], []
        each = shardings, tensorstore_specs, global_shapes or unsaid, dtypes or unsaid
        _same_number("deserialize", *each)
        with going_on(lambda: f"checkpoint: {len(found)} of {len(shardings)} arrays read"):
            for sharding, spec, shape, dtype in zip(*each):
                while sum(size for size, _ in begun) > concurrent_gb * 10 ** 9:
                    found.append(begun.pop(0)[1]())
                store = _tensorstore().open(spec, open=True, context=self._context).result()
                size, begin = _reading(store, sharding, shape, dtype)
                begun.append((size, begin()[1]))
            for _, finish in begun:
                found.append(finish())
        return found

    def deserialize_with_paths(self, shardings, paths, global_shapes=None, dtypes=None, concurrent_gb=32):
        """As `deserialize`, with a path for each sharding."""
        return self.deserialize(shardings, [*map(get_tensorstore_spec, paths)], global_shapes, dtypes,
                                concurrent_gb)


def run_serialization(arrays, tensorstore_specs):
    """Write arrays, each where its spec says; it returns when all processes have written theirs.

    >>> from hlotrace.experimental.array_serialization import serialization
    >>> serialization.run_serialization([w], [serialization.get_tensorstore_spec("/w")])    # doctest: +SKIP
    """
    manager = GlobalAsyncCheckpointManager()
    manager.serialize(arrays, tensorstore_specs)
    manager.wait_until_finished()


def run_deserialization(shardings, tensorstore_specs, global_shapes=None, dtypes=None, concurrent_gb=32):
    """The arrays that specs describe; the arguments are those of `GlobalAsyncCheckpointManager.deserialize`.

    >>> from hlotrace.experimental.array_serialization import serialization
    >>> w, = serialization.run_deserialization(                                             # doctest: +SKIP
    ...     [w.sharding], [serialization.get_tensorstore_spec("/w")])
    """
    return GlobalAsyncCheckpointManager().deserialize(shardings, tensorstore_specs, global_shapes, dtypes,
                                                      concurrent_gb)


async def async_serialize(arr_inp, tensorstore_spec, commit_future=None, context=None, chunk_layout=None,
                          primary_host=None, replica_id=0, transaction=None):
    """Write an array as its spec says, within an event loop.

    Args:
        arr_inp: an array, of which each process of a job writes parts.
        tensorstore_spec: what `get_tensorstore_spec` gives, or a tensorstore.Spec.
        commit_future: a list, to which what is still being written is added once it is copied: objects to
            await.  Without one it is written when this returns.
        context: tensorstore's, with its caches and limits.
        chunk_layout: tensorstore's, in place of chunks that are shards.
        primary_host: the process that creates the store; all if None.
        replica_id: which of the devices that hold a shard writes it.
        transaction: tensorstore's, to write within.
    Raises:
        ImportError: without tensorstore.
        TypeError: for what is not a jax.Array, or keys (write their `key_data`).

    >>> import asyncio
    >>> from hlotrace.experimental.array_serialization import serialization
    >>> spec = serialization.get_tensorstore_spec("/checkpoints/w")
    >>> asyncio.run(serialization.async_serialize(w, spec))                                 # doctest: +SKIP
    """
    creates = primary_host is None or client.process_index() == primary_host
    store = await _opened("async_serialize", arr_inp, tensorstore_spec, chunk_layout, create=creates,
                          context=context, transaction=transaction)
    writes = _writes(arr_inp, store, replica_id)
    for write in writes:
        await write.copy
    if commit_future is not None:
        commit_future += writes
    else:
        for write in writes:
            await write.commit


async def async_deserialize(in_type, tensorstore_spec, global_shape=None, dtype=None, byte_limiter=None,
                            context=None, chunk_layout=None, assume_metadata=False):
    """The array that a spec describes, within an event loop.

    Args:
        in_type: a sharding, a Format, or a ShapeDtypeStruct that has one.
        tensorstore_spec: what `get_tensorstore_spec` gives, or a tensorstore.Spec.
        global_shape: that of the result, as for `GlobalAsyncCheckpointManager.deserialize`.
        dtype: that of the result, if not what was written.
        byte_limiter: its `await byte_limiter.wait_for_bytes(count)` is called before the array is read, and
            `await byte_limiter.release_bytes(count)` after.
        context: tensorstore's, with its caches and limits.
        chunk_layout: tensorstore's.
        assume_metadata: trust the spec's metadata rather than what was written.
    Raises:
        ImportError: without tensorstore.
        ValueError: where nothing was written.

    >>> import asyncio
    >>> from hlotrace.experimental.array_serialization import serialization
    >>> spec = serialization.get_tensorstore_spec("/checkpoints/w")
    >>> w = asyncio.run(serialization.async_deserialize(w.sharding, spec))                  # doctest: +SKIP
    """
    if isinstance(in_type, ShapeDtypeStruct):
        global_shape = in_type.shape if global_shape is None else global_shape
        dtype, in_type = dtype or in_type.dtype, in_type.sharding
    store = await _tensorstore().open(tensorstore_spec, open=True, assume_metadata=assume_metadata,
                                      **_given(context=context, chunk_layout=chunk_layout))
    size, begin = _reading(store, in_type, global_shape, dtype)
    if byte_limiter is not None:
        await byte_limiter.wait_for_bytes(size)
    try:
        reads, finish = begin()
        for read in reads:
            await read
        return finish()
    finally:
        if byte_limiter is not None:
            await byte_limiter.release_bytes(size)


def _tensorstore():
    try:
        return import_module("tensorstore")
    except ImportError:
        raise ImportError("arrays are written and read with tensorstore, which is not installed: pip install "
                          "tensorstore") from None


def _given(**options):
    return {name: value for name, value in options.items() if value is not None}


def _opened(name, x, spec, chunk_layout=None, create=True, **options):
    """The future of the store that an array is to be written to."""
    if not hasattr(x, "addressable_shards") or dtypes.is_extended(x.dtype):
        raise TypeError(f"{name}: jax.Arrays of numbers are written, not {x!r:.80}")
    spec = spec if isinstance(spec, dict) else spec.to_json()
    described = _described(spec["driver"], x)
    if chunk_layout is not None:
        del described["schema"]["chunk_layout"]
    return _tensorstore().open({**described, **spec}, create=create, open=True, assume_metadata=not create,
                               **_given(chunk_layout=chunk_layout, **options))


def _writes(x, store, replica_id=0):
    """Begin to write what this process holds of an array."""
    return [store[shard.index].write(shard.data.__array__()) for shard in x.addressable_shards
            if shard.replica_id == replica_id]


def _same_number(name, *each):
    if len({*map(len, each)}) > 1:
        raise ValueError(f"{name}: there are {', '.join(str(len(one)) for one in each)} arrays and things "
                         "said of each; there must be as many of all")


def _reading(store, in_type, shape, dtype):
    """(bytes of what this process is to hold of an array, a function that begins to read it and returns what
    it reads and a function that waits for the array)."""
    sharding = in_type.sharding if isinstance(in_type, Format) else in_type
    shape = store.shape if shape is None else tuple(shape)
    dtype = dtypes.canonicalize(store.dtype.numpy_dtype) if dtype is None else dtypes.as_dtype(dtype)

    def bounds(index):
        return tuple(s.indices(size)[:2] for s, size in zip(index, shape))

    keys = set(map(bounds, sharding.addressable_devices_indices_map(shape).values()))

    def begin():
        reads = {key: store[tuple(slice(min(a, n), min(b, n)) for (a, b), n in zip(key, store.shape))].read()
                 for key in keys}

        def part(index):
            key = bounds(index)
            read, whole = reads[key].result(), np.zeros([b - a for a, b in key], dtype)
            whole[tuple(map(slice, read.shape))] = read
            return whole

        def finish():
            found = make_array_from_callback(shape, sharding, part, dtype=dtype)
            return found if in_type is sharding else device_put(found, in_type)
        return [*reads.values()], finish
    return sum(math.prod(b - a for a, b in key) for key in keys) * dtype.itemsize, begin


export_names(globals())
