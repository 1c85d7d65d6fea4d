"""Semaphores, and copies between memories, of kernels for TPUs.

In interpret mode a semaphore is an int32 that begins with 0, and a copy is done where it starts; it adds the
bytes that were copied to its semaphore.  Where a kernel waits for more than a semaphore holds, it would never
end on a TPU: the program fails.  A copy to another device and a signal to it are collectives: all devices of
the mesh have to come to it.  Where a kernel is compiled, they are equations of `compiled/tpu_parts.py`.
"""
import enum
import operator

import numpy as np

from ... import lax, numpy as jnp
from ...core.config import state
from ...core.errors import ShapeError
from ...core.pytrees import pytree
from ...numpy.indexing.refs import indices_of, with_indices
from ...primitives.programs import checks
from .compiled import tpu_parts
from .grid_blocks import core_of_kernel, place_of
from .parts import when
from .specs import MemoryRef


class semaphore:
    """The dtype of semaphores."""


class dma_semaphore(semaphore):
    """The dtype of semaphores for copies."""


class barrier_semaphore(semaphore):
    """The dtype of semaphores for barriers."""


class SemaphoreType(enum.Enum):
    """A kind of semaphore: it is one as scratch, and called, an array of them.

    >>> from hlotrace.experimental.pallas import tpu
    >>> tpu.SemaphoreType.DMA((2,)).shape, tpu.SemaphoreType.REGULAR.shape
    ((2,), ())
    """
    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    shape = property(lambda self: ())
    memory_space = property(lambda self: self)

    @property
    def dtype(self):
        return {"regular": semaphore, "dma": dma_semaphore, "barrier": barrier_semaphore}[self.value]

    def __call__(self, shape):
        return MemoryRef(tuple(shape), self.dtype, self)


class DeviceIdType(enum.Enum):
    """How a device is named: by its place along the axes of the mesh, or by its number in it."""
    MESH = "mesh"
    LOGICAL = "logical"


MESH = DeviceIdType.MESH


def is_semaphore(like):
    """Is scratch of this type one semaphore, or several?"""
    return isinstance(getattr(like, "memory_space", None), SemaphoreType)


# --- other devices --------------------------------------------------------------------------------

def _mesh_axes(what):
    """The axes along which a program is written for each device, in the order of the mesh.  ValueError where
    there are none."""
    names = [name for name, _, kind in state.axis_env if kind in ("manual", "checked")]
    if not names:
        raise ValueError(f"pallas.{what}: device_id names a device of a mesh; call the kernel in "
                         "jax.shard_map")
    order = {name: i for i, name in enumerate(state.meshes[-1][0].axis_names)}
    return tuple(sorted(set(names), key=order.__getitem__))


def _number(what, device_id, device_id_type):
    """The number of a device, the last axis of the mesh fastest."""
    axes = _mesh_axes(what)
    if device_id_type is DeviceIdType.LOGICAL:
        if isinstance(device_id, (tuple, list, dict)):
            raise ValueError(f"pallas.{what}: with DeviceIdType.LOGICAL, device_id is one number, not "
                             f"{device_id!r:.60}")
        return jnp.asarray(device_id, np.int32)
    if isinstance(device_id, dict):
        if unknown := device_id.keys() - set(axes):
            raise ValueError(f"pallas.{what}: device_id names {sorted(map(str, unknown))}; the mesh has axes "
                             f"{axes}")
        places = [device_id[name] if name in device_id else lax.axis_index(name) for name in axes]
    else:
        places = pytree.tree_leaves(device_id)
    if len(places) != len(axes):
        raise ValueError(f"pallas.{what}: device_id has {len(places)} places, and the mesh has axes {axes}: "
                         "give one for each, or a dictionary by name")
    number = 0
    for name, place in zip(axes, places):
        number = number * lax.axis_size(name) + place
    return jnp.asarray(number, np.int32)


def _deliver(what, device, view, values, write):
    """`write(part, *values)` on the device of that number, with the values and the part of the Ref that the
    sending device has; of several, one after another."""
    axes = _mesh_axes(what)
    indices = indices_of(view)
    sent = [lax.all_gather(jnp.asarray(x), axes) for x in (device, *indices, *values)]
    own = lax.axis_index(axes)

    def receive(sender, _):
        to, *rest = [x[sender] for x in sent]

        @when(to == own)
        def _():
            write(with_indices(view, rest[:len(indices)]), *rest[len(indices):])
    lax.fori_loop(0, len(sent[0]), receive, None)


# --- semaphores -----------------------------------------------------------------------------------

def _one(what, sem):
    place_of(what)
    if sem.shape:
        raise ValueError(f"pallas.{what}: there are semaphores of shape {sem.shape}: name one, as by "
                         "sems.at[0]")
    return sem


def _add(sem, count):
    sem[...] = sem[...] + jnp.asarray(count, np.int32)


def semaphore_read(sem_or_view):
    """What a semaphore holds, an int32.

    Raises:
        ValueError: outside of kernels, for an array of semaphores.
    """
    sem = _one("semaphore_read", sem_or_view)
    return sem[...] if core_of_kernel() is None else tpu_parts.on_memory("read", [sem], (), tpu_parts.SCALAR)


def semaphore_signal(sem_or_view, inc=1, *, device_id=None, device_id_type=MESH, core_index=None):
    """Add `inc` to a semaphore, that of the device `device_id` if it is given.

    Args:
        device_id: the place of a device along each axis of the mesh, a dictionary {axis: place} (along the
            others the same device), or, with `DeviceIdType.LOGICAL`, its number.
        core_index: not supported; None.
    Raises:
        ValueError: outside of kernels, for an array of semaphores, for no device of the mesh.
        NotImplementedError: for `core_index`.
    """
    sem = _one("semaphore_signal", sem_or_view)
    if core_index is not None:
        raise NotImplementedError("pallas.semaphore_signal: core_index: cores cannot signal each other here")
    inc = jnp.asarray(inc, np.int32)
    to = None if device_id is None else _number("semaphore_signal", device_id, device_id_type)
    if core_of_kernel() is not None:
        tpu_parts.on_memory("signal", [sem], [inc] if to is None else [inc, to])
    elif to is None:
        _add(sem, inc)
    else:
        _deliver("semaphore_signal", to, sem, [inc], _add)


def semaphore_wait(sem_or_view, value=1, *, decrement=True):
    """Wait until a semaphore holds `value`, and take it away if `decrement`.

    Raises:
        ValueError: outside of kernels, for an array of semaphores; when the program has run, where it holds
            less, and a TPU would wait forever.
    """
    if core_of_kernel() is None:
        _wait("semaphore_wait", sem_or_view, value, decrement)
        return
    if not decrement:
        raise NotImplementedError("pallas.semaphore_wait(decrement=False) in a kernel that is compiled")
    tpu_parts.on_memory("wait", [_one("semaphore_wait", sem_or_view)], [jnp.asarray(value, np.int32)])


_NEVER = ("pallas.{what}: a kernel waits until a semaphore holds {{}}, and it holds {{}}: on a TPU it would "
          "never end. Start the copy, or signal, before")


def _wait(what, sem, value, decrement=True):
    held, value = _one(what, sem)[...], jnp.asarray(value, np.int32)
    avals = (checks.type_of(value), checks.type_of(held))
    checks.report(held < value, checks.Failure(checks.KernelError, _NEVER.format(what=what), avals),
                  [value, held])
    if decrement:
        _add(sem, -value)


# --- copies ---------------------------------------------------------------------------------------

class AsyncCopyDescriptor:
    """A copy from a Ref to another of its shape and dtype: `start()` begins it, `wait()` waits for its end.

    One to another device has two semaphores: `wait_send()` waits until the source may be written again,
    `wait_recv()` for what another device copies here.
    """

    def __init__(self, what, src_ref, dst_ref, dst_sem, src_sem=None, device_id=None, device_id_type=MESH):
        place_of(what)
        traced = tpu_parts.has_traced_size(src_ref) or tpu_parts.has_traced_size(dst_ref)
        if traced and core_of_kernel() is None:
            raise NotImplementedError(f"pallas.{what}: a part of a traced size is copied by compiled kernels "
                                      "alone; in interpret mode a size is an int")
        if not traced and src_ref.shape != dst_ref.shape:
            raise ShapeError(f"pallas.{what}: from shape {src_ref.shape} to shape {dst_ref.shape}; they must "
                             "be equal")
        if not traced and src_ref.dtype != dst_ref.dtype:
            raise TypeError(f"pallas.{what}: from {src_ref.dtype.name} to {dst_ref.dtype.name}; a copy does "
                            "not convert")
        self._what = what
        self.src_ref, self.dst_ref, self.dst_sem, self.src_sem = src_ref, dst_ref, dst_sem, src_sem
        self.device_id, self.device_id_type = device_id, device_id_type

    is_remote = property(lambda self: self.src_sem is not None)

    @property
    def _bytes(self):
        return np.int32(self.src_ref.size * self.src_ref.dtype.itemsize)

    def start(self, priority=0, *, add=False):
        """Begin the copy; with `add`, what is copied is added.  `priority` is for TPUs."""
        write = _added if add else _copied
        if core_of_kernel() is not None:
            self._start_compiled(priority, add)
        elif not self.is_remote:
            self._start_here(write)
        else:
            self._start_remote(write)

    def _start_compiled(self, priority, add):
        if add:
            raise NotImplementedError(f"pallas.{self._what}: add=True where a kernel is compiled")
        to = ()
        if self.is_remote:
            to = [_number(self._what, self.device_id, self.device_id_type)]
        tpu_parts.on_memory("copy", [self.src_ref, self.dst_ref, self.dst_sem, self.src_sem], to,
                            priority=operator.index(priority))

    def _start_here(self, write):
        write(self.dst_ref, self.src_ref[...])
        _add(_one(self._what, self.dst_sem), self._bytes)

    def _start_remote(self, write):
        to = _number(self._what, self.device_id, self.device_id_type)
        _deliver(self._what, to, self.dst_ref, [self.src_ref[...]], write)
        _deliver(self._what, to, _one(self._what, self.dst_sem), [self._bytes], _add)
        _add(_one(self._what, self.src_sem), self._bytes)

    def wait(self):
        """Wait until the copy has ended; of one to another device, for both."""
        if self.is_remote:
            self.wait_send()
        self.wait_recv()

    def wait_recv(self):
        """Wait until what is copied to `dst_ref` is there."""
        if core_of_kernel() is None:
            _wait(self._what, self.dst_sem, self._bytes)
        else:
            tpu_parts.on_memory("wait_copy", [self.dst_sem, self.src_ref, self.dst_ref])

    def wait_send(self):
        """Wait until `src_ref` has been read.  ValueError for a copy on one device."""
        if not self.is_remote:
            raise ValueError(f"pallas.{self._what}: only a copy to another device has wait_send; use wait()")
        if core_of_kernel() is None:
            _wait(self._what, self.src_sem, self._bytes)
        else:
            tpu_parts.on_memory("wait_copy", [self.src_sem, self.src_ref, self.src_ref])


def _copied(part, value):
    part[...] = value


def _added(part, value):
    part.addupdate(value)


def make_async_copy(src_ref, dst_ref, sem):
    """A copy from a Ref to another, not yet begun: an AsyncCopyDescriptor.

    Raises:
        TypeError, ValueError: for Refs of other dtypes or shapes, outside of kernels.

    >>> pl, tpu = jax.experimental.pallas, jax.experimental.pallas.tpu
    >>> def kernel(x, out, memory, sem):
    ...     copy = tpu.make_async_copy(x.at[1], memory, sem)
    ...     copy.start()
    ...     copy.wait()
    ...     out[...] = memory[...] * 2
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), "float32"), interpret=True,
    ...                in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    ...                scratch_shapes=[tpu.VMEM((3,), jnp.float32), tpu.SemaphoreType.DMA])(
    ...     jnp.arange(6.).reshape(2, 3))
    Array([ 6.,  8., 10.], dtype=float32)
    """
    return AsyncCopyDescriptor("make_async_copy", src_ref, dst_ref, sem)


def async_copy(src_ref, dst_ref, sem, *, priority=0, add=False):
    """As `make_async_copy`, begun; with `add`, what is copied is added."""
    copy = AsyncCopyDescriptor("async_copy", src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref, dst_ref, *, add=False):
    """Copy Refs, in a pytree, to others; with `add`, what is copied is added.

    Raises:
        TypeError, ValueError: for Refs of other dtypes or shapes, outside of kernels.
    """
    for src, dst in zip(pytree.tree_leaves(src_ref), pytree.tree_leaves(dst_ref), strict=True):
        if core_of_kernel() is not None:
            tpu_parts.scoped(lambda sem, pair=(src, dst): async_copy(*pair, sem, add=add).wait(),
                             (SemaphoreType.DMA,), {})
            continue
        copy = AsyncCopyDescriptor("sync_copy", src, dst, None)
        (_added if add else _copied)(copy.dst_ref, copy.src_ref[...])


def make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type=MESH):
    """A copy from a Ref to `dst_ref` of another device, not yet begun: an AsyncCopyDescriptor.

    Args:
        send_sem: the semaphore, here, that says when `src_ref` has been read.
        recv_sem: that of the other device, which says when the copy is there.
        device_id: as for `semaphore_signal`.
    Raises:
        TypeError, ValueError: for Refs of other dtypes or shapes, outside of kernels and of `shard_map`.
    """
    return AsyncCopyDescriptor("make_async_remote_copy", src_ref, dst_ref, recv_sem, send_sem, device_id,
                               device_id_type)


def async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type=MESH):
    """As `make_async_remote_copy`, begun."""
    copy = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    copy.start()
    return copy


def get_barrier_semaphore():
    """The semaphore that a kernel has for meeting other devices.  ValueError outside of kernels."""
    place = place_of("get_barrier_semaphore")
    return place.barrier if place.core is None else tpu_parts.barrier_semaphore()

