"""What the processes of a job exchange: that they have come, one to all, all to all; and global arrays.

All processes call the same function with the same structure and types of values; where they do not, all of
them raise.  What is sent is bytes, in a program over all devices: values arrive as they were, and 64-bit
numbers keep their width.  With one process everything works and nothing is sent.
"""
import contextlib
import functools
import hashlib
import operator

import numpy as np

from ..api.jit import jit
from ..core.avals import ShapedArray, aval_of
from ..core.pytrees import pytree
from ..core.surface.public import export_names
from ..core.trace import Tracer
from ..distributed import job
from ..interpreters import batching  # noqa: F401 - found here in JAX too
from ..placement.device_put import device_put
from ..placement.make_arrays import from_local_data, held_tiles, make_array_from_process_local_data
from ..runtime.array_impl import ArrayImpl, assembled
from ..runtime.devices import client, shards, transfer
from ..sharding.abstract import is_local
from ..sharding.mesh import Mesh
from ..sharding.named import NamedSharding, as_named
from ..sharding.spec import PartitionSpec

__all__ = ["ProcessFailureError", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
           "global_array_to_host_local_array_impl", "gtl_abstract_eval", "host_local_array_to_global_array",
           "host_local_array_to_global_array_impl", "live_devices", "ltg_abstract_eval", "process_allgather",
           "reached_preemption_sync_point", "sync_global_devices"]

_SAID = 512     # bytes in which a process says what it calls
_sharding = functools.lru_cache(256)(NamedSharding)     # what is kept of one is found by identity


def sync_global_devices(name):
    """Wait until every process has called this with the same `name` and all devices have run a program.

    Raises:
        AssertionError: in every process, where names differ.

    >>> multihost_utils.sync_global_devices("data is ready")
    """
    _agree(f"sync_global_devices({name!r})", AssertionError)


def broadcast_one_to_all(in_tree, is_source=None):
    """The values of one process, in all of them.

    Args:
        in_tree: a pytree of NumPy arrays, numbers, and arrays of which this process holds the whole.  Of the
            processes that are not the source only structure, shapes and dtypes matter.
        is_source: this process is the one whose values count; process 0 is, by default.
    Returns:
        The pytree with NumPy arrays of the same shapes and dtypes.
    Raises:
        ValueError: in every process, where structures, shapes or dtypes differ, or the sources are not one.

    >>> multihost_utils.broadcast_one_to_all({"seed": 17})
    {'seed': array(17)}
    """
    values, treedef = _host_values(in_tree)
    source = client.process_index() == 0 if is_source is None else bool(is_source)
    _agree(f"broadcast_one_to_all({_types(treedef, values)})")
    sources = [i for i, said in enumerate(_exchange(str(source))) if said == "True"]
    if len(sources) != 1:
        raise ValueError(f"broadcast_one_to_all: one process must have is_source=True; processes {sources} "
                         "have")
    row = _packed(values)
    return treedef.unflatten(_unpacked(_sum(row if source else np.zeros_like(row)), values))


def process_allgather(in_tree, tiled=False):
    """The values of all processes, in all of them.

    Args:
        in_tree: a pytree of NumPy arrays, numbers and arrays.
        tiled: join values of shape (n, ...) as (processes * n, ...), those of shape () as (processes,), of
            one process as (). Otherwise there is a new first axis: (processes, n, ...).
    Returns:
        The pytree with NumPy arrays.  An array that already is over several processes is one value: the
        result is the whole of it, of its own shape; `tiled` must be true for it.
    Raises:
        ValueError: in every process, where structures, shapes or dtypes differ.

    >>> multihost_utils.process_allgather(np.array([1, 2])).shape == (jax.process_count(), 2)
    True
    """
    leaves, treedef = pytree.tree_flatten(in_tree)
    shared = [isinstance(x, ArrayImpl) and not x.is_fully_addressable for x in leaves]
    values, _ = _host_values([x for x, s in zip(leaves, shared) if not s])
    global_ones = f", over all devices: {[i for i, s in enumerate(shared) if s]}" if any(shared) else ""
    _agree(f"process_allgather({_types(treedef, leaves)}, tiled={bool(tiled)}{global_ones})")
    if any(shared) and not tiled:
        raise ValueError("process_allgather: an array is over several processes, and each will get the "
                         "whole of it, not a copy for each process; pass tiled=True")
    gathered = iter(_unpacked(_gather(_packed(values)), values))
    results = [np.array(transfer.move(x, as_named(x.sharding, x.ndim).with_spec(PartitionSpec()))) if s
               else next(gathered) for x, s in zip(leaves, shared)]
    if tiled:
        def joined(r):
            return r.reshape(r.shape[1:] if client.process_count() == 1 else (-1, *r.shape[2:]))
        results = [r if s else joined(r) for r, s in zip(results, shared)]
    return treedef.unflatten(results)


def assert_equal(in_tree, fail_message=""):
    """Check that all processes have the same structure, types and bits in `in_tree`.

    Raises:
        AssertionError: in every process, unless they have.

    >>> multihost_utils.assert_equal({"seed": 17}, "seeds differ")
    """
    values, treedef = _host_values(in_tree)
    digest = hashlib.sha256(_packed(values)).hexdigest()[:16]
    shown = str(values[0] if len(values) == 1 else values).replace("\n", "")
    _agree(f"assert_equal({_types(treedef, values)}: {shown}, digest {digest})", AssertionError, fail_message)


def host_local_array_to_global_array(local_inputs, global_mesh, pspecs):
    """Arrays over all processes, from what each process holds of them.

    Args:
        local_inputs: a pytree of arrays, or of values that become arrays; those that already are over several
            processes stay as they are.
        global_mesh: a Mesh over the devices of all processes.
        pspecs: a PartitionSpec, or a pytree of them that is a prefix of `local_inputs`.
    Returns:
        The pytree of arrays with `NamedSharding(global_mesh, spec)`.  A dimension is as much larger than the
        local one as there are processes along the mesh axes that split it.
    Raises:
        ValueError: where a spec is missing, or a process's part of an array is not a block of it.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> x = multihost_utils.host_local_array_to_global_array(np.arange(4), mesh, jax.P("x"))
    >>> x.shape, x.sharding.spec
    ((4,), P('x',))
    """
    name = "host_local_array_to_global_array"
    leaves, treedef = pytree.tree_flatten(local_inputs)
    return treedef.unflatten([host_local_array_to_global_array_impl(x, global_mesh=global_mesh, pspec=spec)
                              for x, spec in zip(leaves, _specs(name, treedef, pspecs))])


def host_local_array_to_global_array_impl(arr, *, global_mesh, pspec):
    """`host_local_array_to_global_array` of one array.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> to_global = multihost_utils.host_local_array_to_global_array_impl
    >>> to_global(np.arange(4), global_mesh=mesh, pspec=jax.P("x"))
    Array([0, 1, 2, 3], dtype=int32)
    """
    if isinstance(arr, ArrayImpl) and not arr.is_fully_addressable:
        return arr
    if isinstance(arr, Tracer):
        return _same_shape("host_local_array_to_global_array", arr, ltg_abstract_eval, global_mesh, pspec)
    return from_local_data("host_local_array_to_global_array", _sharding(global_mesh, pspec), arr, None)


def ltg_abstract_eval(arr, *, global_mesh, pspec):
    """The type of what `host_local_array_to_global_array` makes of an array of the type `arr`.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> multihost_utils.ltg_abstract_eval(jax.core.ShapedArray((4,), "f"), global_mesh=mesh, pspec=jax.P("x"))
    ShapedArray(float32[4])
    """
    grid = held_tiles("host_local_array_to_global_array", NamedSharding(global_mesh, pspec), arr.ndim)
    return arr.update(shape=tuple(n * total // len(held) for n, (held, total) in zip(arr.shape, grid)))


def gtl_abstract_eval(arr, *, global_mesh, pspec):
    """The type of what `global_array_to_host_local_array` makes of an array of the type `arr`.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> multihost_utils.gtl_abstract_eval(jax.core.ShapedArray((4,), "f"), global_mesh=mesh, pspec=jax.P("x"))
    ShapedArray(float32[4])
    """
    grid = held_tiles("global_array_to_host_local_array", NamedSharding(global_mesh, pspec), arr.ndim)
    return arr.update(shape=tuple(n // total * len(held) for n, (held, total) in zip(arr.shape, grid)))


def global_array_to_host_local_array(global_inputs, global_mesh, pspecs):
    """What this process holds of arrays over all processes, as arrays over its own devices.

    The arguments are those of `host_local_array_to_global_array`, the other way round; arrays with other
    shardings are moved first, and those of this process alone stay as they are.  The results are over this
    process's part of the mesh.

    Raises:
        ValueError: where that is not a block of the mesh, or its part of an array not one of the array.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> x = multihost_utils.host_local_array_to_global_array(np.arange(4), mesh, jax.P("x"))
    >>> multihost_utils.global_array_to_host_local_array(x, mesh, jax.P("x"))
    Array([0, 1, 2, 3], dtype=int32)
    """
    name = "global_array_to_host_local_array"
    leaves, treedef = pytree.tree_flatten(global_inputs)
    return treedef.unflatten([global_array_to_host_local_array_impl(x, global_mesh=global_mesh, pspec=spec)
                              for x, spec in zip(leaves, _specs(name, treedef, pspecs))])


def global_array_to_host_local_array_impl(arr, *, global_mesh, pspec):
    """`global_array_to_host_local_array` of one array.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> to_global = multihost_utils.host_local_array_to_global_array_impl
    >>> x = to_global(np.arange(4), global_mesh=mesh, pspec=jax.P("x"))
    >>> multihost_utils.global_array_to_host_local_array_impl(x, global_mesh=mesh, pspec=jax.P("x"))
    Array([0, 1, 2, 3], dtype=int32)
    """
    if isinstance(arr, ArrayImpl) and arr.is_fully_addressable:
        return arr
    if isinstance(arr, Tracer):
        return _same_shape("global_array_to_host_local_array", arr, gtl_abstract_eval, global_mesh, pspec)
    return _local("global_array_to_host_local_array", arr, NamedSharding(global_mesh, pspec))


def reached_preemption_sync_point(step_id):
    """Is this the step at which all processes are to save what they have, since one got SIGTERM?

    All call it at every step, with the number of the step, from the first on: the first call begins to listen
    for SIGTERM, which then no longer ends the process at once.  False in a process that is none of several.

    >>> multihost_utils.reached_preemption_sync_point(0)
    False
    """
    step_id = operator.index(step_id)
    return job.is_initialized() and client.world.preemption().reached_sync_point(step_id)


class ProcessFailureError(Exception):
    """A process that holds devices of `live_devices` died in its block.

    >>> issubclass(multihost_utils.ProcessFailureError, Exception)
    True
    """


@contextlib.contextmanager
def live_devices(devices):
    """The devices of processes that live, for a block; all of these processes enter and leave it together.

    By default the death of a process ends all others, within the time that `distributed.initialize` says; so
    this finds all devices, or is not returned from.

    Raises:
        ProcessFailureError: at the end of the block, where a process has died in it.
        RuntimeError: in a process that is none of several.
        ValueError: without devices, or for one that is named twice.

    >>> with multihost_utils.live_devices(jax.devices()) as alive:      # doctest: +SKIP
    ...     step(alive)
    """
    if not job.is_initialized():
        raise RuntimeError("live_devices: Distributed JAX not initialized: this process is none of several; "
                           "distributed.initialize() joins them")
    devices = list(devices)
    if not devices or len(set(devices)) < len(devices):
        raise ValueError(f"live_devices: want devices, each once; got {devices}")
    alive = _living(devices)
    yield alive
    if dead := set(alive) - set(_living(devices)):
        raise ProcessFailureError(f"Devices failed: {dead}")


def _living(devices):
    """Those of the devices whose processes live: it waits until each has called it, or is known as dead."""
    alive = client.world.client.get_live_nodes(sorted({d.process_index for d in devices}))
    return [d for d in devices if d.process_index in alive]


def _specs(name, treedef, pspecs):
    specs = pytree.flatten_axes(f"{name} pspecs", treedef, pspecs)
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ValueError(f"{name}: {spec!r} in pspecs is not a PartitionSpec; for a value that each "
                             "process holds whole, write PartitionSpec()")
    return specs


def _same_shape(name, x, typed, mesh, spec):
    """`x`, a value of a program, if this process holds the whole of such an array."""
    if typed(aval_of(x), global_mesh=mesh, pspec=spec).shape != x.shape:
        raise NotImplementedError(f"{name}: within a program an array has one shape in all processes, and "
                                  f"{spec} divides {aval_of(x).str_short()} between them: call it outside")
    return x


def _local(name, x, sharding):
    if not isinstance(x, ArrayImpl):        # the same in all processes
        return device_put(x, NamedSharding(_local_mesh(name, sharding.mesh), sharding.spec))
    x = transfer.move(x, sharding)
    shape = gtl_abstract_eval(x.aval, global_mesh=sharding.mesh, pspec=sharding.spec).shape
    local = NamedSharding(_local_mesh(name, sharding.mesh), sharding.spec)
    return assembled(ShapedArray(shape, x.dtype, x.weak_type), local, shards.single_buffers(x))


@functools.cache
def _local_mesh(name, mesh):
    """This process's part of a mesh; ValueError where it is not a block."""
    mine = np.vectorize(is_local, otypes=[bool])(mesh.devices)
    held = np.argwhere(mine)
    if not len(held):
        raise ValueError(f"{name}: no device of {mesh} belongs to this process")
    block = mesh.devices[tuple(slice(low, high + 1) for low, high in zip(held.min(0), held.max(0)))]
    if block.size != len(held):
        raise ValueError(f"{name}: the devices of {mesh} that belong to this process do not form a block of "
                         "it")
    return Mesh(block, mesh.axis_names, mesh.axis_types)


def _host_values(in_tree):
    leaves, treedef = pytree.tree_flatten(in_tree)
    for x in leaves:
        aval_of(x)      # TypeError for what is no array
    return [np.asarray(x) for x in leaves], treedef


def _types(treedef, leaves):
    avals = [x.aval if isinstance(x, ArrayImpl) else np.asarray(x) for x in leaves]
    types = [f"{a.dtype.name}[{','.join(map(str, a.shape))}]" for a in avals]
    return types[0] if len(types) == 1 else f"{treedef} {' '.join(types)}"


def _packed(values):
    """The bytes of arrays one after the other: uint8[n]."""
    pieces = [np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in values]
    return np.concatenate([np.zeros(0, np.uint8), *pieces])


def _unpacked(rows, values):
    """Arrays like `values` from their bytes, uint8[..., n]; leading axes of `rows` come before their own."""
    at, results = 0, []
    for v in values:
        piece = rows[..., at:at + v.nbytes].copy()
        results.append(piece.view(v.dtype).reshape(rows.shape[:-1] + v.shape))
        at += v.nbytes
    return results


@functools.cache
def _mesh():
    """The devices as a mesh of (processes, the same number of devices of each)."""
    devices = [client.local_devices(i) for i in range(client.process_count())]
    count = min(map(len, devices))
    return Mesh(np.array([found[:count] for found in devices], dtype=object), ("processes", "devices"))


def _rows(row):
    return make_array_from_process_local_data(NamedSharding(_mesh(), PartitionSpec("processes")), row[None])


def _gather(row):
    """The bytes uint8[n] of all processes: uint8[processes, n]."""
    if client.process_count() == 1 or not row.size:
        return np.broadcast_to(row, (client.process_count(), *row.shape))
    return np.asarray(transfer.move(_rows(row), NamedSharding(_mesh(), PartitionSpec())))


def _sum(row):
    """The sum of the bytes uint8[n] of all processes: uint8[n]."""
    return row if client.process_count() == 1 or not row.size else np.asarray(_total()(_rows(row)))


@functools.cache
def _total():
    def total(rows):
        return rows.sum(0, dtype=np.uint8)
    program = jit(total, out_shardings=NamedSharding(_mesh(), PartitionSpec()))
    program.explained = False       # each size is compiled once, and there is nothing to do about it
    return program


def _exchange(text):
    """What every process says: a list of str, long ones cut to a beginning and a digest."""
    said = text.encode()
    if len(said) > _SAID:
        said = said[:_SAID - 40] + b"... digest " + hashlib.sha256(said).hexdigest()[:16].encode()
    rows = _gather(np.frombuffer(said.ljust(_SAID), np.uint8))
    return [bytes(row).rstrip().decode(errors="replace") for row in rows]


def _agree(text, error=ValueError, message=""):
    """`error`, raised in every process, unless all say the same."""
    said = _exchange(text)
    for i, other in enumerate(said):
        if other != said[0]:
            raise error(f"{f'{message} ' if message else ''}The processes of the job differ: process 0 calls "
                        f"{said[0]}, process {i} {other}. All must make the same calls in the same order.")


export_names(globals())
