"""Arrays written and read again, with a tensorstore of NumPy arrays in memory."""
import asyncio
import sys
import types
from concurrent.futures import Future

import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental.array_serialization import serialization
from hlotrace.experimental.layout import Format, Layout
from hlotrace.sharding import NamedSharding, PartitionSpec as P


class Awaited(Future):
    """As tensorstore's futures: also in an event loop; a write's says when it is copied and when it is there."""

    copy = commit = property(lambda self: self)

    def __await__(self):
        return self.result()
        yield


def done(value):
    future = Awaited()
    future.set_result(value)
    return future


class Store:
    def __init__(self, spec):
        schema = spec["schema"]
        self.shape, self.chunk = tuple(schema["domain"]["shape"]), schema["chunk_layout"]["write_chunk"]["shape"]
        self.values, self.writes = np.zeros(self.shape, spec["dtype"]), 0
        self.dtype = types.SimpleNamespace(numpy_dtype=self.values.dtype)

    def __getitem__(self, index):
        def write(value):
            self.values[index] = value
            self.writes += 1
            return done(None)
        return types.SimpleNamespace(write=write, read=lambda: done(self.values[index]))


@pytest.fixture
def files(monkeypatch):
    files = {}

    def open(spec, create=False, **_):
        path = spec["kvstore"]["path"]
        if path not in files:
            if not create:
                raise ValueError(f"NOT_FOUND {path}")
            files[path] = Store(spec)
        return done(files[path])
    monkeypatch.setitem(sys.modules, "tensorstore", types.SimpleNamespace(open=open, Context=dict))
    return files


def test_arrays_are_read_under_other_shardings(files):
    one, other = (auto_mesh(sizes, ("x", "y")) for sizes in ((4, 2), (2, 4)))
    x = jax.device_put(jnp.arange(32.).reshape(8, 4), NamedSharding(one, P("x")))
    y = jax.device_put(jnp.arange(6, dtype=jnp.bfloat16), jax.devices()[1])
    manager, committed = serialization.GlobalAsyncCheckpointManager(), []
    manager.serialize_with_paths([x, y], ["/c/x", "/c/y"], on_commit_callback=lambda: committed.append(True))
    x.delete()
    manager.wait_until_finished()
    manager.check_for_errors()
    assert committed and files["/c/x"].chunk == [2, 4] and files["/c/x"].writes == 4
    wanted = [NamedSharding(other, P("y", "x")), NamedSharding(other, P())]
    for limit in 0, 32:
        a, b = manager.deserialize_with_paths(wanted, ["/c/x", "/c/y"], concurrent_gb=limit)
        assert a.sharding == wanted[0] and b.sharding == wanted[1] and b.dtype == jnp.bfloat16
        assert (np.asarray(a) == np.arange(32).reshape(8, 4)).all() and b.tolist() == [*range(6)]
    a, b = manager.deserialize_with_paths(wanted, ["/c/x", "/c/y"], [(12, 2), (4,)], ["int32", "float32"])
    assert b.tolist() == [0, 1, 2, 3] and a.dtype == jnp.int32
    assert (np.asarray(a)[:8] == np.arange(32).reshape(8, 4)[:, :2]).all() and not np.asarray(a)[8:].any()
    spec = [serialization.get_tensorstore_spec("/c/again")]
    serialization.run_serialization([b], spec)
    (again,) = serialization.run_deserialization(wanted[1:], spec, [(5,)], ["int8"])
    assert (again.tolist(), again.dtype, again.sharding) == ([0, 1, 2, 3, 0], jnp.int8, wanted[1])


class Limit:
    def __init__(self):
        self.seen = []

    async def wait_for_bytes(self, count):
        self.seen.append(count)

    async def release_bytes(self, count):
        self.seen.append(-count)


def test_an_array_is_written_and_read_within_an_event_loop(files):
    mesh, limit, begun = auto_mesh((4, 2), ("x", "y")), Limit(), []
    x = jax.device_put(jnp.arange(32.).reshape(8, 4), NamedSharding(mesh, P("x")))
    spec = serialization.get_tensorstore_spec("/c/x")
    asyncio.run(serialization.async_serialize(x, spec))
    asyncio.run(
        serialization.async_serialize(x * 2, types.SimpleNamespace(to_json=lambda: spec), begun, replica_id=1)
    )
    assert len(begun) == 4 and files["/c/x"].writes == 8
    columns = NamedSharding(mesh, P(None, "y"))
    by_columns = Format(Layout((1, 0)), columns)
    for in_type in columns, by_columns, jax.ShapeDtypeStruct((8, 4), np.int32, sharding=columns):
        y = asyncio.run(serialization.async_deserialize(in_type, spec, byte_limiter=limit))
        assert y.sharding == columns and y.dtype == getattr(in_type, "dtype", np.float32)
        assert (np.asarray(y) == np.arange(32).reshape(8, 4) * 2).all()
        assert (y.format.layout.major_to_minor == (1, 0)) is (in_type is by_columns)
    with pytest.raises(ValueError, match="major_to_minor"):
        asyncio.run(
            serialization.async_deserialize(Format(Layout((2, 1, 0)), columns), spec, byte_limiter=limit)
        )
    assert limit.seen == [128, -128] * 4
    y = asyncio.run(serialization.async_deserialize(columns, spec, (9, 2), np.int8))
    assert y.shape == (9, 2) and y.dtype == np.int8 and y[:, 1].tolist() == [*range(2, 64, 8), 0]
    with pytest.raises(TypeError, match="async_serialize: jax.Arrays of numbers"):
        asyncio.run(serialization.async_serialize(np.ones(3), spec))
    with pytest.raises(ValueError, match="NOT_FOUND"):
        asyncio.run(
            serialization.async_serialize(x, serialization.get_tensorstore_spec("/c/z"), primary_host=1)
        )


def test_what_goes_wrong_is_told(files, monkeypatch):
    manager, x, path = serialization.GlobalAsyncCheckpointManager(), jnp.ones(3), serialization.get_tensorstore_spec("/c/x")
    for ask in manager.wait_until_finished, lambda: manager.serialize([], []):
        manager.serialize([x], [path], on_commit_callback=lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask()
        manager.check_for_errors()      # told once
    for arrays, specs, error, words in [
            ([x], [], ValueError, "1, 0 arrays"), ([np.ones(3)], [path], TypeError, "jax.Arrays of numbers"),
            ([jax.random.key(0)], [path], TypeError, "jax.Arrays of numbers")]:
        with pytest.raises(error, match=words):
            manager.serialize(arrays, specs)
    with pytest.raises(ValueError, match="1, 1, 2, 1"):
        manager.deserialize([x.sharding], [path], [(3,), (4,)])
    with pytest.raises(ValueError, match="NOT_FOUND /none"):
        manager.deserialize_with_paths([x.sharding], ["/none"])
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    with pytest.raises(ImportError, match="pip install tensorstore"):
        serialization.GlobalAsyncCheckpointManager()
    with pytest.raises(TypeError, match="abstract"):
        serialization.GlobalAsyncCheckpointManagerBase()


def test_specs():
    file = {"driver": "file", "path": "/a/w"}
    for arguments, more, store in [
            (["/a/w"], {}, file), (["/a/w/"], {"driver": "zarr3"}, file),
            (["gs://b/a/w"], {}, {"driver": "gcs", "bucket": "b", "path": "a/w"}),
            (["s3://b/a/w"], {"ocdbt": True}, {"driver": "ocdbt", "path": "w",
                                               "base": {"driver": "s3", "bucket": "b", "path": "a"}}),
            (["/a/w"], {"ocdbt": True, "process_idx": 3}, {"driver": "ocdbt", "path": "w",
                                                           "base": {"driver": "file", "path": "/a/process_3"}})]:
        wanted = {"driver": more.get("driver", "zarr"), "kvstore": store}
        assert serialization.get_tensorstore_spec(*arguments, **more) == wanted
    spec = serialization.get_tensorstore_spec("/a/w", arr=jnp.ones((3, 0), "int8"))
    assert spec["dtype"] == "int8" and spec["schema"]["chunk_layout"]["write_chunk"]["shape"] == [3, 1]
    for arguments, words in [({"ckpt_path": "w", "ocdbt": True}, "is absolute, and 'w' is not"),
                             ({"ckpt_path": "/w", "driver": "n5"}, "'zarr' or 'zarr3', not 'n5'")]:
        with pytest.raises(ValueError, match=words):
            serialization.get_tensorstore_spec(**arguments)
