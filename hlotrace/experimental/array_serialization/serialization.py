"""Arrays written to storage by tensorstore, while a program goes on, and read again under other shardings.

Orbax does more: this is what older checkpoints, such as Flax's, are made of.  tensorstore, a package of its
own, is imported when a manager is made.
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

from ...core import dtypes
from ...core.surface.public import export_names
from ...placement.make_arrays import make_array_from_callback
from ...runtime.devices import client
from ...runtime.status_line import going_on

__all__ = ["GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase", "get_tensorstore_spec",
           "run_deserialization", "run_serialization"]

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
        try:
            self._ts = import_module("tensorstore")
        except ImportError:
            raise ImportError("GlobalAsyncCheckpointManager writes with tensorstore, which is not installed: "
                              "pip install tensorstore") from None
        self._timeout, self._done, self._context = timeout_secs, None, self._ts.Context()

    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback=None, transaction=None):
        """Write arrays, each where its spec says; they are copied first, and written in the background.

        What went wrong with the last checkpoint is raised.

        Args:
            tensorstore_specs: for each what `get_tensorstore_spec` gives.
            on_commit_callback: called in process 0, in the background, when all processes have written
                everything.
            transaction: tensorstore's, to write within.
        Raises:
            TypeError: for what is not a jax.Array, or keys (write their `key_data`).
            ValueError: unless there is a spec for each array.
        """
        self.wait_until_finished()
        _same_number("serialize", arrays, tensorstore_specs)
        for x in arrays:
            if not hasattr(x, "addressable_shards") or dtypes.is_extended(x.dtype):
                raise TypeError(f"serialize: jax.Arrays of numbers are written, not {x!r:.80}")
        stores = [self._ts.open({**_described(spec["driver"], x), **spec}, create=True, open=True,
                                context=self._context, transaction=transaction)
                  for x, spec in zip(arrays, tensorstore_specs)]
        writes = [store.result()[shard.index].write(shard.data.__array__())
                  for x, store in zip(arrays, stores)
                  for shard in x.addressable_shards if shard.replica_id == 0]
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
            shardings: of any mesh; each process reads what its devices hold.
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
                store = self._ts.open(spec, open=True, context=self._context).result()
                begun.append(_reading(store, sharding, shape, dtype))
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


def _same_number(name, *each):
    if len({*map(len, each)}) > 1:
        raise ValueError(f"{name}: there are {', '.join(str(len(one)) for one in each)} arrays and things "
                         "said of each; there must be as many of all")


def _reading(store, sharding, shape, dtype):
    """Begin to read what this process holds of an array: its bytes, and a function that waits for it."""
    shape = store.shape if shape is None else tuple(shape)
    dtype = dtypes.canonicalize(store.dtype.numpy_dtype) if dtype is None else dtypes.as_dtype(dtype)

    def bounds(index):
        return tuple(s.indices(size)[:2] for s, size in zip(index, shape))

    reads = {}
    for key in set(map(bounds, sharding.addressable_devices_indices_map(shape).values())):
        reads[key] = store[tuple(slice(min(a, n), min(b, n)) for (a, b), n in zip(key, store.shape))].read()

    def part(index):
        key = bounds(index)
        read, whole = reads[key].result(), np.zeros([b - a for a, b in key], dtype)
        whole[tuple(map(slice, read.shape))] = read
        return whole

    size = sum(math.prod(b - a for a, b in key) for key in reads) * dtype.itemsize
    return size, lambda: make_array_from_callback(shape, sharding, part, dtype=dtype)


export_names(globals())
