"""What the Python array API standard requires a namespace to say of itself
(https://data-apis.org/array-api/2024.12)."""
from types import SimpleNamespace
from typing import Any

from ...core import dtypes
from ...core.config import state
from ...runtime.devices.client import local_devices
from .dtype_objects import isdtype

_NAMES = ("bool int8 int16 int32 uint8 uint16 uint32 float32 complex64", "int64 uint64 float64 complex128")


def _capabilities() -> dict[str, Any]:
    # outside of jit there are the first two
    return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}


def _default_dtypes(*, device: Any = None) -> dict[str, Any]:
    defaults = {"real floating": float, "complex floating": complex, "integral": int, "indexing": int}
    return {kind: dtypes.canonicalize(dtype) for kind, dtype in defaults.items()}


def _dtypes(*, device: Any = None, kind: Any = None) -> dict[str, Any]:
    found = {name: dtypes.as_dtype(name) for names in _NAMES[:1 + state.x64] for name in names.split()}
    return found if kind is None else {name: dtype for name, dtype in found.items() if isdtype(dtype, kind)}


def _default_device() -> None:
    return None     # not a device: results go where their operands are


def _devices() -> list[Any]:
    return [None, *local_devices()]


def __array_namespace_info__() -> SimpleNamespace:
    """What this namespace can do, as the array API standard asks: capabilities(), default_device(),
    devices(), default_dtypes(device=) and dtypes(device=, kind=).  64-bit dtypes are there if x64 is enabled.

    >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    >>> sorted(jnp.__array_namespace_info__().dtypes(kind="signed integer"))
    ['int16', 'int32', 'int8']
    """
    return SimpleNamespace(capabilities=_capabilities, default_device=_default_device, devices=_devices,
                           default_dtypes=_default_dtypes, dtypes=_dtypes)
