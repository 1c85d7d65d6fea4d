"""Python functions that run on the host of their arguments' devices.

The hosts here are this process alone, so the function is called as it is, on arrays on its CPU devices, and
the call returns when it has.  Devices of other processes, and arrays on accelerators, raise
NotImplementedError: copy the latter to `colocated_cpu_devices` of theirs.
"""
import functools

import numpy as np

from ...api.shape_dtype_struct import ShapeDtypeStruct
from ...core.pytrees import pytree
from ...core.surface.public import export_names
from ...core.trace import Tracer
from ...runtime.array_impl import ArrayImpl
from ...runtime.devices import client
from ...sharding.abstract import is_local
from ...sharding.mesh import Mesh

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def colocated_cpu_devices(devices_or_mesh):
    """The CPU devices on the hosts of devices, in their order: a list; for a Mesh, the mesh of them.

    A CPU device is its own; accelerators of a host share its CPU devices in turn.

    Raises:
        NotImplementedError: for a device of another process.

    >>> from hlotrace.experimental.colocated_python import colocated_cpu_devices
    >>> colocated_cpu_devices(jax.devices("cpu")[:1]) == jax.devices("cpu")[:1]
    True
    """
    if isinstance(devices_or_mesh, Mesh):
        devices = devices_or_mesh.devices
        beside = np.array([_beside(device) for device in devices.flat], object).reshape(devices.shape)
        return devices_or_mesh.update(devices=beside)
    return [_beside(device) for device in devices_or_mesh]


def _beside(device):
    if not is_local(device):
        raise NotImplementedError(f"colocated_cpu_devices: {device} is of process {device.process_index}, "
                                  "and hlotrace runs Python functions in the process that calls them")
    if device.platform == "cpu":
        return device
    cpus, peers = client.local_devices(backend="cpu"), client.local_devices(backend=device.platform)
    return cpus[peers.index(device) % len(cpus)]


def colocated_python(fun):
    """`fun`, a function of pytrees of arrays, to be called on the host of the devices that hold them.

    When called it raises a TypeError for arguments and a ValueError for results that are no concrete arrays,
    and for arguments on different lists of devices; a NotImplementedError for devices that are no CPUs of
    this process.

    Returns:
        A function of the same arguments.  Its `specialize(in_specs=None, out_specs_fn=None, devices=None)`
        gives one that knows more, each of which is said once: `in_specs`, the ShapeDtypeStructs of `(args,
        kwargs)`; `out_specs_fn`, a function of the arguments' ShapeDtypeStructs that gives those of the
        results; `devices`, needed where there are no arguments.  Arrays of other shapes or dtypes than were
        said are a ValueError here (JAX takes some of them).

    >>> from hlotrace.experimental.colocated_python import colocated_python
    >>> @colocated_python
    ... def log(x):
    ...     print("on the host:", np.asarray(x))
    ...     return x + 1
    >>> log(jnp.arange(3))
    on the host: [0 1 2]
    Array([1, 2, 3], dtype=int32)
    """
    if not callable(fun):
        raise TypeError(f"colocated_python(fun): a function, not {fun!r:.80}")
    return _specialized(fun, {})


def _specialized(fun, said):
    name = getattr(fun, "__name__", "a function")

    @functools.wraps(fun)
    def call(*args, **kwargs):
        given = _specs(name, "argument", (args, kwargs))
        _check_devices(name, given, said.get("devices"))
        _check_specs(name, "arguments", said.get("in_specs", given), given)
        results = fun(*args, **kwargs)
        found = _specs(name, "result", results)
        if "out_specs_fn" in said:
            _check_specs(name, "results", said["out_specs_fn"](*given[0], **given[1]), found)
        return results

    def specialize(in_specs=None, out_specs_fn=None, devices=None):
        new = {"in_specs": in_specs, "out_specs_fn": out_specs_fn, "devices": devices and tuple(devices)}
        new = {key: value for key, value in new.items() if value is not None}
        for key in new.keys() & said.keys():
            raise ValueError(f"colocated_python {name!r}: specialize(...) has said {key} before")
        return _specialized(fun, said | new)

    call.specialize = specialize
    return call


def _specs(name, what, values):
    def spec(x):
        if type(x) is ArrayImpl:
            return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
        if isinstance(x, Tracer):
            words = f"a traced array, {x}: call it outside of jit, grad and vmap"
        else:
            words = f"{x!r:.80}"
        error = ValueError if what == "result" else TypeError
        raise error(f"colocated_python {name!r}: arguments and results are jax.Arrays, and one {what} is "
                    f"{words}")
    return pytree.tree_map(spec, values)


def _check_devices(name, given, devices):
    lists = [tuple(spec.sharding._devices) for spec in pytree.tree_leaves(given)]
    if len(set(lists)) > 1:
        raise ValueError(f"colocated_python {name!r}: arguments are on different devices, {lists[0]} and "
                         f"{next(other for other in lists if other != lists[0])}; device_put them on the "
                         "same")
    if devices is None and not lists:
        raise ValueError(f"colocated_python {name!r} has no arguments that tell the devices: say them first, "
                         "by .specialize(devices=jax.devices()[:1])")
    for device in devices or lists[0]:
        if device.platform != "cpu" or not is_local(device):
            raise NotImplementedError(f"colocated_python {name!r} runs on CPU devices of this process, not "
                                      f"{device}; device_put its arguments on colocated_cpu_devices(...)")


def _check_specs(name, what, said, found):
    wanted, treedef = pytree.tree_flatten(said)
    have, other = pytree.tree_flatten(found)
    if treedef != other:
        raise ValueError(f"colocated_python {name!r}: the {what} have the structure {other}, and {treedef} "
                         "was said")
    for a, b in zip(wanted, have):
        if (tuple(a.shape), a.dtype) != (b.shape, b.dtype):
            raise ValueError(f"colocated_python {name!r}: the {what} have a {b.dtype}{list(b.shape)} where "
                             f"{a.dtype}{list(a.shape)} was said")


def colocated_python_class(cls):
    """A class whose objects call the methods of `cls` as `colocated_python` would.

    The object of `cls` is made, with these arguments, for its first call.  Its attributes are not read.

    >>> from hlotrace.experimental.colocated_python import colocated_python_class
    >>> @colocated_python_class
    ... class Counter:
    ...     def __init__(self, start):
    ...         self.count = start
    ...     def next(self, x):
    ...         self.count += 1
    ...         return x + self.count
    >>> counter = Counter(5)
    >>> counter.next(jnp.ones(2)), counter.next(jnp.ones(2))
    (Array([7., 7.], dtype=float32), Array([8., 8.], dtype=float32))
    """
    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class(cls): a class, not {cls!r:.80}")

    def begin(self, *args, **kwargs):
        self._made = functools.cache(lambda: cls(*args, **kwargs))

    def read(self, name):
        method = getattr(cls, name, None)
        if not callable(method) or name.startswith("__"):
            raise AttributeError(f"{cls.__name__!r} is a colocated_python_class: only its methods can be "
                                 f"reached, and {name!r} is none")
        @functools.wraps(method)
        def call(*args, **kwargs):
            return getattr(self._made(), name)(*args, **kwargs)
        return colocated_python(call)

    return type(cls.__name__, (), {"__init__": begin, "__getattr__": read, "__doc__": cls.__doc__,
                                   "__module__": cls.__module__, "__qualname__": cls.__qualname__})


export_names(globals(), lazy={"": "serialization"})
