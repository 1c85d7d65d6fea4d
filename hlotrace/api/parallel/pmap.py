"""pmap: a function run on several devices, each with a slice: a shard_map over a mesh of one axis."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.avals import aval_of
from ...core.caches import LRUCache
from ...core.config import state
from ...core.errors import IndivisibleError, check_callable
from ...core.pytrees import pytree
from ...core.trace import EVAL
from ...primitives.arrays.shape import new_axis, reshape
from ...runtime.array_impl import ArrayImpl, assembled, own
from ...runtime.devices import client, shards, transfer
from ...sharding.abstract import is_local
from ...sharding.mesh import Mesh
from ...sharding.named import NamedSharding
from ...sharding.spec import PartitionSpec
from ..flat import FlatFunction
from ..jit import JitFunction
from ..signatures import as_tuple, numbers_and_names, split_statics, wraps
from ..vmap import check_axes, mapped_axes
from .shard_map import shard_map

_NAMELESS = "_internal_pmap_axis_name"


def pmap(fun: Callable[..., Any], axis_name: str | None = None, *, in_axes: Any = 0, out_axes: Any = 0,
         static_broadcasted_argnums: Any = (), devices: Any = None, backend: str | None = None,
         axis_size: int | None = None, donate_argnums: Any = ()) -> _PmapFunction:
    """Run `fun` on as many devices as the mapped axis is long, each with its slice.

    Collectives differentiate as in `shard_map` with check_vma=False: a derivative taken inside is each
    device's own, and psum transposes to psum.  It is not checked that all devices come to a collective: in a
    branch or loop for which they decide differently it hangs, where `shard_map` with check_vma=True raises.
    Where there are several processes it maps over the devices of all, unless `devices` says otherwise: each
    process passes the slices of its own devices, and gets those of the result.  Within another transformation
    (jit, vmap, grad) it maps over the devices of this process.

    Args:
        axis_name: a string, the name of the axis for collectives.
        in_axes: which axes of the arguments are mapped, as for `vmap`.
        out_axes: as for `vmap`; with None the value of the first device is the result.
        static_broadcasted_argnums: arguments that are part of the program; hashable.
        devices: which devices, in order; those of the process by default.
        backend: the platform whose devices it runs on, by default.
        axis_size: the size of the mapped axis, where arguments do not say it; that over all processes.
        donate_argnums: arguments whose memory the program may reuse.
    Raises:
        ValueError: where there are fewer devices than slices, sizes differ, or nothing is mapped.

    >>> f = jax.pmap(lambda x: x / lax.psum(x, "devices"), axis_name="devices")
    >>> f(jnp.array([1., 3.]))      # on two devices
    Array([0.25, 0.75], dtype=float32)
    """
    check_callable(fun)
    if axis_name is not None and not isinstance(axis_name, str):
        raise TypeError(f"pmap axis_name must be a string, got {axis_name!r}")
    in_axes = check_axes("pmap", in_axes, out_axes)
    if devices is not None and not list(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None, which is all of the process")
    statics = as_tuple(static_broadcasted_argnums, int, "static_broadcasted_argnums")
    numbers_and_names(fun, statics, None, "static_broadcasted")
    return _PmapFunction(fun, axis_name or _NAMELESS, in_axes, out_axes, statics, devices, backend, axis_size,
                         as_tuple(donate_argnums, int, "donate_argnums"))


class _PmapFunction(JitFunction):
    """The function that `pmap` returns: compiled as by jit."""

    def __init__(self, fun: Callable[..., Any], axis_name: str, in_axes: Any, out_axes: Any,
                 statics: tuple[int, ...], devices: Any, backend: str | None, axis_size: int | None,
                 donated: tuple[int, ...]) -> None:
        self._mapped, self._axis_name, self._in_axes, self._out_axes = fun, axis_name, in_axes, out_axes
        self._devices, self._backend, self._axis_size = devices, backend, axis_size
        self._meshes = LRUCache(1024)      # structure and shapes -> the mapped axes, the mesh

        @wraps(fun)
        def run(*args: Any, **kwargs: Any) -> Any:
            return self._run(args, kwargs)
        super().__init__(run, statics, donate_argnums=donated)
        self.__wrapped__ = fun

    def call_any(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                 fast_key: tuple[Any, ...] | None) -> Any:
        """A call that is not found by the types of its arguments, which say where arrays are."""
        if any(number >= len(args) for number in self._static_numbers):
            raise ValueError(f"pmap of {self._name} has static_broadcasted_argnums={self._static_numbers}, "
                             f"and was called with {len(args)} positional argument"
                             f"{'s' * (len(args) != 1)}: pass static ones by position")
        if state.trace is EVAL:
            if client.process_count() > 1 and not all(map(is_local, self._candidates())):
                args, kwargs = self._over_processes(args, kwargs)
                return pytree.tree_map(_of_this_process, super().call_any(args, kwargs, None))
            moved = self._moved_here(args, kwargs)
            if moved is not None:
                (args, kwargs), fast_key = moved, None
        return super().call_any(args, kwargs, fast_key)

    def _candidates(self) -> list[Any]:
        """The devices of which it takes as many as the mapped axis is long."""
        return list(client.devices(self._backend) if self._devices is None else self._devices)

    def _over_processes(self, args: tuple[Any, ...],
                        kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of all processes, of which this one was given the slices of its devices."""
        dynamic, named, statics = split_statics(args, kwargs, self._static_numbers, self._static_names)
        flat = FlatFunction(self._mapped, *pytree.tree_flatten((dynamic, named)), "pmap", statics)
        dims, size = mapped_axes(flat, (self._axes_of(flat, len(args)), 0), None)
        mesh = Mesh(self._candidates(), (self._axis_name,))
        mine = mesh.local_mesh
        if size != mine.size:
            raise ValueError(f"{flat}: the mapped axis has size {size}, and {mine.size} of the devices are "
                             "of this process: pass it a slice for each, or devices= of this process alone")
        leaves = []
        for x, dim in zip(flat.leaves, dims):
            spec = _spec(dim, self._axis_name)
            x = transfer.move(own(x), NamedSharding(mine, spec))
            shape = [n * mesh.size // size if i == dim else n for i, n in enumerate(x.shape)]
            leaves.append(assembled(x.aval.update(shape=tuple(shape)), NamedSharding(mesh, spec),
                                    shards.single_buffers(x)))
        return flat.arguments(leaves)

    def _moved_here(self, args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments, if among them are arrays that are committed to other devices than those of this
        call, which are moved."""
        flat, dims, mesh = self._flat(args, kwargs)
        moved = False
        for i, (x, dim) in enumerate(zip(flat.leaves, dims)):
            if type(x) is ArrayImpl and x._committed and x.sharding._devices != mesh._devices:
                sharding = NamedSharding(mesh, _spec(dim, self._axis_name))
                flat.leaves[i], moved = transfer.move(x, sharding), True
        return flat.arguments(flat.leaves) if moved else None

    def _flat(self, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> tuple[FlatFunction, list[int | None], Mesh]:
        """The call as (a FlatFunction, the mapped axis of each of its leaves or None, the mesh)."""
        dynamic, named, statics = split_statics(args, kwargs, self._static_numbers, self._static_names)
        flat = FlatFunction(self._mapped, *pytree.tree_flatten((dynamic, named)), "pmap", statics)
        key = flat.in_tree, len(args), tuple([a.shape for a in flat.avals()])
        return flat, *(self._meshes.get(key) or self._meshes.keep(key, self._axes_and_mesh(flat, len(args))))

    def _axes_and_mesh(self, flat: FlatFunction, nargs: int) -> tuple[list[int | None], Mesh]:
        dims, size = mapped_axes(flat, (self._axes_of(flat, nargs), 0), self._axis_size)
        if all(d is None for d in dims):
            raise ValueError(f"{flat} needs an argument with a mapped axis: in_axes is {self._in_axes}")
        devices = self._candidates()
        if size != len(devices) and client.process_count() > 1:
            devices = [*filter(is_local, devices)]      # within another transformation
        if size > len(devices):
            error = IndivisibleError if size % len(devices) else ValueError
            raise error(f"{flat}: the mapped axis has size {size}, and there are {len(devices)} "
                             "devices; each slice needs one of its own: reshape so that several go to one "
                             "device, with vmap inside, or use jit")
        return dims, Mesh(devices[:size], (self._axis_name,))

    def _axes_of(self, flat: FlatFunction, nargs: int) -> Any:
        """in_axes of the arguments that are no static ones."""
        axes = self._in_axes
        if type(axes) is not tuple:
            return axes
        if len(axes) != nargs:
            raise ValueError(f"{flat}: in_axes {axes} has {len(axes)} entries for {nargs} arguments")
        return tuple(a for i, a in enumerate(axes) if i not in self._static_numbers)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        flat, dims, mesh = self._flat(args, kwargs)
        name = self._axis_name
        axes: list[int | None] = []

        def body(*blocks: Any) -> list[Any]:
            outs = flat(*[x if d is None else _without(x, d) for x, d in zip(blocks, dims)])
            targets = pytree.flatten_axes("pmap out_axes", flat.out_tree, self._out_axes)
            axes[:] = [_out_axis(flat, i, x, a) for i, (x, a) in enumerate(zip(outs, targets))]
            return [x if a is None else new_axis(x, a) for x, a in zip(outs, axes)]

        mapped = shard_map(body, mesh=mesh, in_specs=tuple(_spec(d, name) for d in dims), check_vma=False,
                           out_specs=lambda: [_spec(a, name) for a in axes])      # once the body was traced
        outs = mapped(*flat.leaves)
        return flat.out_tree.unflatten(outs)


def _of_this_process(x: Any) -> Any:
    """What this process holds of a result, over its own devices."""
    if x.is_fully_addressable:
        return x
    sharding = NamedSharding(x.sharding.mesh.local_mesh, x.sharding.spec)
    shape = [n * sharding.mesh.size // x.sharding.mesh.size if sharding.spec.axes(dim) else n
             for dim, n in enumerate(x.shape[:len(sharding.spec)])]
    return assembled(x.aval.update(shape=(*shape, *x.shape[len(shape):])), sharding, shards.single_buffers(x))


def _spec(dim: int | None, name: str) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, name)


def _without(x: Any, dim: int) -> Any:
    return reshape(x, (*x.shape[:dim], *x.shape[dim + 1:]))


def _out_axis(flat: FlatFunction, i: int, x: Any, axis: int | None) -> int | None:
    if axis is None:
        return None
    ndim = aval_of(x).ndim + 1
    if not -ndim <= axis < ndim:
        raise ValueError(f"{flat}: out_axes {axis} is no axis of {flat.out_path(i)}, of rank {ndim}")
    return axis % ndim
