"""Arrays are put on devices, fetched and waited for; their types."""
from __future__ import annotations

import copy
import gc
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..api import adapters
from ..api.flat import abstract
from ..api.shape_dtype_struct import ShapeDtypeStruct
from ..core import dtypes
from ..core.array import Array
from ..core.avals import ShapedArray, aval_of, aval_or_none
from ..core.caches import cached
from ..core.config import state
from ..core.pytrees import pytree
from ..core.trace import Tracer
from ..runtime.array_impl import ArrayImpl, from_numpy
from ..runtime.devices import client, placement, shards, transfer, transfer_guards
from ..sharding.abstract import Sharding

if TYPE_CHECKING:
    from ..sharding.named import NamedSharding

_T = TypeVar("_T")


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False,
               may_alias: Any = None) -> Any:
    """The arrays of a pytree on a device, or over several; committed there if one is given.

    Over devices of several processes all of them call it with the same values.  To compare them costs a
    SHA-256 (a second for a gigabyte) and some milliseconds a call; the option `hlotrace_check_processes`
    turns it off.

    Args:
        x: a pytree of arrays, NumPy arrays and numbers.
        device: a Device, a Sharding, a Format, a PartitionSpec of the current mesh, a `memory.Space`, or a
            pytree of them that is a prefix of `x`.
        src: where the arrays are, which is known without it.
        donate: arrays that had to be moved are deleted; a bool, or a prefix of `x`.
        may_alias: False: results share no memory with `x`; a bool, or a prefix of `x`.
    Raises:
        ValueError: where a dimension does not divide.
        RuntimeError: in all processes, where their values differ.

    >>> x = jax.device_put({"a": 1, "b": np.ones(2)}, jax.devices()[-1])
    >>> x["b"].devices() == {jax.devices()[-1]}
    True
    >>> mesh = jax.make_mesh((2,), ("x",))        # where there are two devices or more
    >>> y = jax.device_put(jnp.arange(4), jax.NamedSharding(mesh, jax.P("x")))
    >>> [shard.data.tolist() for shard in y.addressable_shards]
    [[0, 1], [2, 3]]
    """
    leaves, treedef = pytree.tree_flatten(x)
    targets, options = [None] * len(leaves), []
    if device is not None or src is not None:
        from .shardings import check_targets, flat_shardings
        check_targets(device, "device_put device")
        if src is not None:
            flat_shardings("device_put src", treedef, src)
        targets = flat_shardings("device_put device", treedef, device, laid_out=True)
    for name, value in ("donate", donate), ("may_alias", may_alias):
        options.append([value] * len(leaves) if value is None or type(value) is bool else pytree.flatten_axes(
            f"device_put {name}", treedef, value))
    if client.world is not None:
        from ..runtime.processes import consistency_checks  # hashlib and json, for jobs of several processes
        consistency_checks.check_values("device_put", leaves, targets,
                                        lambda: pytree.leaf_paths(x, prefix="x"))
    placed = []
    with transfer_guards.putting():
        for given in zip(leaves, targets, *options):
            try:
                placed.append(_put(*given))
            except ValueError as error:
                if len(leaves) > 1 and error.args:
                    error.args = (f"{pytree.leaf_paths(x, prefix='x')[len(placed)]}: {error}",)
                raise
    return treedef.unflatten(placed)


def _put(x: Any, sharding: Any, donate: Any, may_alias: Any) -> Any:
    if donate and may_alias:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
        return x        # there is one value of this type, on no device
    held = x._buf._sharding._own if type(x) is ArrayImpl else None
    if may_alias is False and held is not None:
        x = copy.copy(x) if held._layout is None else transfer.move(copy.copy(x), held, x._committed)
    if getattr(sharding, "_layout", None) is not None:
        sharding, held = _settled(sharding, x), None
    if isinstance(x, np.ndarray) and x.dtype.kind == "T":
        return _put_texts(x, sharding)
    if sharding is None:
        return x if isinstance(x, Array) else from_numpy(x, aval=aval_of(x))
    if isinstance(x, Tracer):
        from .shardings import put
        return put(x, sharding)
    retyped = False
    if not isinstance(sharding, Sharding):      # a kind of memory, of the same devices
        if state.mesh_to_run_on is not None and not isinstance(x, ArrayImpl):
            from ..sharding.named import NamedSharding
            from ..sharding.spec import PartitionSpec
            over = NamedSharding(state.mesh_to_run_on, PartitionSpec(), sharding._kind)
            return _put(x, over, donate, may_alias)
        x = x if isinstance(x, ArrayImpl) else from_numpy(x, aval=aval_of(x))
        retyped = x.aval.memory_space is not sharding.space
        sharding = x.sharding.with_memory_kind(sharding._kind).filled(x.ndim)
    if not isinstance(x, ArrayImpl):
        aval = aval_of(x)
        placement.check_fits(sharding, aval, partial(placement.of_type, "device_put: a value", aval))
        plain = sharding.in_layout(None)
        put_there = ArrayImpl(plain.put(aval), shards.put(np.asarray(x), aval, plain), True)
        return put_there if plain is sharding else transfer.move(put_there, sharding)
    placement.check_fits(sharding, x.aval, partial(placement.of_type, "device_put: a value", x.aval))
    if held is not None and held._layout is not None and held.shard_shape(x.shape) == sharding.shard_shape(
            x.shape):       # the bytes of each part are copied as they are
        sharding = sharding.in_layout(held._layout)
    if x._committed and x._buf._sharding._own == sharding and may_alias is not False and not retyped:
        x.check_alive()
        return x
    moved = transfer.move(x, sharding)
    if donate and shards.memory(moved._buf) is not shards.memory(x._buf) and not x.is_deleted():
        x.delete()
    return moved


def _put_texts(x: np.ndarray, sharding: Any) -> ArrayImpl:
    """An array of texts: on CPUs only, and given back as it is; no operation takes it."""
    if not isinstance(sharding, Sharding) or any(d.platform != "cpu" for d in sharding.device_set):
        raise TypeError("device_put: String arrays can only be sharded to CPU devices. Received unsupported "
                        f"device or sharding: {sharding}: name one, as jax.devices('cpu')[0]")
    aval = ShapedArray(x.shape, x.dtype)
    placement.check_fits(sharding, aval, partial(placement.of_type, "device_put: a value", aval))
    return ArrayImpl(sharding.typed(aval), shards.put(x, aval, sharding), True)


def _settled(sharding: Any, x: Any) -> Any:
    """A sharding in a layout, for a value.  ValueError for a layout that does not fit."""
    from ..runtime.devices import layouts  # few programs ask for one
    from ..sharding.layout import Layout
    if sharding._layout is Layout.AUTO:
        raise ValueError("device_put: sharding and layout must be concrete, got Layout.AUTO: the compiler "
                         "chooses layouts; give that of an array, x.format, or of compiled.input_formats")
    return layouts.settled(sharding, aval_of(x), "The value of device_put")


def device_get(x: Any) -> Any:
    """The values of a pytree as NumPy arrays.

    Other leaves stay as they are, tracers and arrays of keys too.  It waits for what is computed still.

    >>> jax.device_get({"x": jnp.arange(3), "n": 5})
    {'n': 5, 'x': array([0, 1, 2], dtype=int32)}
    """
    def get(v: Any) -> Any:
        if isinstance(v, np.generic):
            return np.asarray(v)
        return v._numpy() if isinstance(v, ArrayImpl) and not dtypes.is_extended(v.dtype) else v
    with transfer_guards.getting():
        return pytree.tree_map(get, x)


def block_until_ready(x: _T) -> _T:
    """Wait for every array of a pytree; returns the pytree.

    Computations run while Python goes on; to measure one, wait for it.

    >>> x = jax.block_until_ready(jnp.ones((500, 500)) @ jnp.ones((500, 500)))
    >>> x[0, 0]
    Array(500., dtype=float32)
    """
    for leaf in pytree.tree_leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: _T) -> _T:
    """Begin fetching every array of a pytree; returns the pytree.

    What reads the values afterwards, as `np.asarray`, then waits less.

    >>> x = jax.copy_to_host_async(jnp.arange(3))
    >>> np.asarray(x)
    array([0, 1, 2], dtype=int32)
    """
    for leaf in pytree.tree_leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """All concrete arrays that are alive, on devices of a platform ("cpu", "gpu", ...) if one is named.

    For finding what fills the memory.

    >>> x = jnp.arange(7) + 1
    >>> any(y is x for y in jax.live_arrays())
    True
    """
    arrays = [a for a in gc.get_objects() if type(a) is ArrayImpl and not a.is_deleted()]
    if platform is not None:
        devices = {*client.local_devices(backend=platform)}
        arrays = [a for a in arrays if not devices.isdisjoint(a.sharding.device_set)]
    return [*arrays]


def typeof(x: Any) -> Any:
    """The aval of an array-like or a ShapeDtypeStruct, the AbstractRef of a Ref, the HiType of what has one.

    Its `sharding` says which Explicit mesh axes split the array; Auto axes are not in types: how they split
    values is propagated when programs are compiled.  The sharding of an array is `x.sharding`.  Under a mesh
    with Explicit axes the type of what is over no mesh is that of what is whole on that one's devices.

    >>> jax.typeof(jnp.ones((2, 3))), jax.typeof(1)
    (ShapedArray(float32[2,3]), ShapedArray(int32[], weak_type=True))
    >>> @jax.jit
    ... def f(x):
    ...     print(jax.typeof(x), jax.typeof(x).shape)
    >>> f(jnp.ones(2))
    float32[2] (2,)
    """
    aval = aval_or_none(x)
    if aval is None:
        if (adapter := adapters.adapter_of(x)) is not None:
            return adapter.type_of(x)
        aval = abstract(x) if type(x) is ShapeDtypeStruct else aval_of(x)
    if state.meshes and isinstance(aval, ShapedArray) and aval.mesh is None:
        return _under_the_mesh(aval)
    return aval


@cached(4096)
def _under_the_mesh(aval: ShapedArray) -> ShapedArray:
    return aval.update(sharding=aval.sharding.mesh)


def _unsplit(aval: ShapedArray, mesh: Any = None) -> NamedSharding:
    from ..sharding.mesh import get_abstract_mesh
    from ..sharding.named import NamedSharding
    from ..sharding.spec import PartitionSpec
    return NamedSharding(get_abstract_mesh() if mesh is None else mesh, PartitionSpec(*[None] * aval.ndim))


# avals may not know meshes
ShapedArray.unsplit = _unsplit

