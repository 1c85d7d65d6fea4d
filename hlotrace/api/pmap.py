"""pmap: a function run on several devices, each with a slice of the arguments; a shard_map over a mesh of one axis."""
import functools

from ..core import tree
from ..core.avals import aval_of, is_arraylike, not_an_array
from ..core.config import state
from ..core.trace import EVAL
from ..primitives.shape import reshape
from ..runtime import client, transfer
from ..runtime.array import ArrayImpl
from ..sharding.mesh import Mesh
from ..sharding.named import NamedSharding
from ..sharding.spec import PartitionSpec
from .jit import JitFunction
from .shard_map import shard_map
from .signatures import as_tuple, name_of, signature_of
from .vmap import _canonical, _check_axes

_NAMELESS = "_pmap"


def pmap(fun, axis_name=None, *, in_axes=0, out_axes=0, static_broadcasted_argnums=(), devices=None, backend=None,
         axis_size=None, donate_argnums=(), global_arg_shapes=None):
    """Run `fun` on as many devices as the mapped axis is long, each with its slice.

    Args:
      axis_name: a string, the name of the axis for collectives.
      in_axes, out_axes: as for `vmap`; with out_axes None the value of the first device is the result.
      static_broadcasted_argnums: arguments that are part of the program; hashable.
      devices: which devices, in order; those of the process by default, or of the platform `backend`.
      donate_argnums: arguments whose memory the program may reuse.
    Collectives differentiate as in `shard_map` with check_vma=False: a derivative taken inside is each device's own, and
    psum transposes to psum.
    Where there are several processes it maps over devices of this one, which must be given.
    Raises: ValueError where there are fewer devices than slices, sizes differ, or nothing is mapped.
    """
    if not callable(fun):
        raise TypeError(f"pmap expects a callable, got {fun!r}")
    if axis_name is not None and not isinstance(axis_name, str):
        raise TypeError(f"pmap axis_name must be a string, got {axis_name!r}")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if not (in_axes is None or isinstance(in_axes, (int, tuple, dict)) or hasattr(in_axes, "__index__")):
        raise TypeError(f"pmap in_axes must be an int, None, or a tuple of entries for the arguments, got {in_axes!r}")
    _check_axes("pmap in_axes", in_axes)
    _check_axes("pmap out_axes", out_axes)
    statics = as_tuple(static_broadcasted_argnums, int, "static_broadcasted_argnums")
    signature = signature_of(fun)
    if signature is not None and not any(p.kind == p.VAR_POSITIONAL for p in signature.parameters.values()):
        for n in statics:
            if not -len(signature.parameters) <= n < len(signature.parameters):
                raise ValueError(f"pmap of {name_of(fun)}: static_broadcasted_argnums {statics} holds {n}, and there are "
                                 f"{len(signature.parameters)} arguments")
    return _PmapFunction(fun, axis_name or _NAMELESS, in_axes, out_axes, statics, devices, backend, axis_size,
                         as_tuple(donate_argnums, int, "donate_argnums"))


class _PmapFunction(JitFunction):
    """The function that `pmap` returns: compiled as by jit."""

    def __init__(self, fun, axis_name, in_axes, out_axes, statics, devices, backend, axis_size, donated):
        self._mapped, self._axis_name, self._in_axes, self._out_axes = fun, axis_name, in_axes, out_axes
        self._statics, self._devices, self._backend, self._axis_size = statics, devices, backend, axis_size
        self._where = f"pmap of {name_of(fun)}"
        self._known = {}        # shapes -> the mapped axes, the mesh

        @functools.wraps(fun)
        def run(*args, **kwargs):
            return self._run(args, kwargs)
        super().__init__(run, statics, donate_argnums=donated)

    def __call__(self, *args, **kwargs):
        if state.trace is EVAL:
            args, kwargs = self._placed(args, kwargs)
        return super().__call__(*args, **kwargs)

    def _placed(self, args, kwargs):
        """The arguments; arrays that are committed to other devices than those of this call are moved."""
        leaves, treedef, dims, mesh = self._flat(args, kwargs)
        moved = False
        for i, (x, dim) in enumerate(zip(leaves, dims)):
            if type(x) is ArrayImpl and x._committed and x.sharding._devices != mesh._devices:
                leaves[i], moved = transfer.move(x, NamedSharding(mesh, _spec(dim, self._axis_name))), True
        if not moved:
            return args, kwargs
        dynamic, kwargs = treedef.unflatten(leaves)
        dynamic = iter(dynamic)
        return tuple(a if self._is_static(i, args) else next(dynamic) for i, a in enumerate(args)), kwargs

    def _is_static(self, i, args):
        return i in self._statics or i - len(args) in self._statics

    def _flat(self, args, kwargs):
        """(leaves of what is not static, their structure, the mapped axis of each or None, the mesh)"""
        leaves, treedef = tree.tree_flatten((tuple(a for i, a in enumerate(args) if not self._is_static(i, args)), kwargs))
        for i, x in enumerate(leaves):
            if not is_arraylike(x):
                raise TypeError(f"{self._where}: {not_an_array(x, tree.leaf_paths(treedef.unflatten(leaves))[i])}")
        key = treedef, len(args), tuple([aval_of(x).shape for x in leaves])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._axes_and_mesh(leaves, treedef, args)
        return leaves, treedef, *found

    def _axes_and_mesh(self, leaves, treedef, args):
        where, axes = self._where, self._in_axes
        if isinstance(axes, tuple):
            if len(axes) != len(args):
                raise ValueError(f"{where}: in_axes {axes} has {len(axes)} entries for {len(args)} arguments")
            axes = tuple(a for i, a in enumerate(axes) if not self._is_static(i, args))
        dims = tree.flatten_axes("pmap in_axes", treedef, (axes, 0))
        paths = tree.leaf_paths(treedef.unflatten(leaves))
        dims = [_canonical(x, d, f"{where}: argument{p}") for x, d, p in zip(leaves, dims, paths)]
        sizes = {}
        for x, d, path in zip(leaves, dims, paths):
            if d is not None:
                sizes.setdefault(aval_of(x).shape[d], f"argument{path}")
        if not sizes:
            raise ValueError(f"{where} needs an argument with a mapped axis: in_axes is {self._in_axes}")
        if self._axis_size is not None:
            sizes.setdefault(self._axis_size, "axis_size")
        if len(sizes) > 1:
            raise ValueError(f"{where} got inconsistent sizes for the axis to be mapped: "
                             + ", ".join(f"{size} ({what})" for size, what in sizes.items()))
        (size,) = sizes
        if self._devices is None and client.process_count() > 1:
            raise NotImplementedError(f"{where}: over the devices of several processes use shard_map; with devices= pmap "
                                      "maps over some of this process")
        devices = list(self._devices) if self._devices is not None else client.local_devices(backend=self._backend)
        if size > len(devices):
            raise ValueError(f"{where}: the mapped axis has size {size}, and there are {len(devices)} devices; each slice "
                             "needs one of its own")
        return dims, Mesh(devices[:size], (self._axis_name,))

    def _run(self, args, kwargs):
        leaves, treedef, dims, mesh = self._flat(args, kwargs)
        name = self._axis_name
        found = {}

        def body(*blocks):
            slices = [x if d is None else _without(x, d) for x, d in zip(blocks, dims)]
            dynamic, named = treedef.unflatten(slices)
            dynamic = iter(dynamic)
            outs, found["tree"] = tree.tree_flatten(self._mapped(
                *[a if self._is_static(i, args) else next(dynamic) for i, a in enumerate(args)], **named))
            axes = tree.flatten_axes("pmap out_axes", found["tree"], self._out_axes)
            found["axes"] = axes = [_out_axis(x, a, self._where) for x, a in zip(outs, axes)]
            return [x if a is None else _with(x, a) for x, a in zip(outs, axes)]

        mapped = shard_map(body, mesh=mesh, in_specs=tuple(_spec(d, name) for d in dims), check_vma=False,
                           out_specs=lambda: [_spec(a, name) for a in found["axes"]])      # once the body was traced
        outs = mapped(*leaves)
        return found["tree"].unflatten(outs)


def _spec(dim, name):
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, name)


def _without(x, dim):
    return reshape(x, (*x.shape[:dim], *x.shape[dim + 1:]))


def _with(x, dim):
    shape = aval_of(x).shape
    return reshape(x, (*shape[:dim], 1, *shape[dim:]))


def _out_axis(x, axis, where):
    if axis is None:
        return None
    ndim = aval_of(x).ndim + 1
    if not -ndim <= axis < ndim:
        raise ValueError(f"{where}: out_axes {axis} is no axis of a result of rank {ndim}")
    return axis % ndim

