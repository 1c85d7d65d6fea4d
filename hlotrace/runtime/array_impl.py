"""ArrayImpl: the concrete Array, a thin immutable holder of one of jaxlib's buffers."""
from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, errors
from ..core.array import Array
from ..core.avals import ShapedArray, aval_of, physical, register_aval
from ..core.caches import ContextCache
from ..core.config import state
from ..core.jaxpr_trace import JaxprTrace
from ..core.platforms import PLATFORMS
from ..core.surface.boundary import boundaries, boundary, reraise_for_user
from ..core.surface.missing import Concrete
from ..core.trace import CONCRETE_METHODS, CONCRETE_PROPERTIES, Tracer
from ..core.watched import ran, unwatch, watched
from ..sharding.abstract import Sharding, is_local
from . import binding, callback_guard
from .devices import client, placement, shards, transfer_guards

if TYPE_CHECKING:
    from ..sharding.layout import Format


class Signature:
    """The type and the sharding of arrays, as one object for all of the same."""
    __slots__ = ("__weakref__",)


_signatures: weakref.WeakValueDictionary[tuple, Signature] = weakref.WeakValueDictionary()


@functools.lru_cache(4096)
def signature_of(aval: ShapedArray, sharding: Sharding, committed: bool = True) -> Signature:
    """The Signature of arrays of this type and sharding that are committed, or not."""
    key = aval, sharding, committed
    return _signatures.get(key) or _signatures.setdefault(key, Signature())


@boundaries(called="Array", but="__init__ __array__ check_alive mark_deleted is_deleted is_ready devices")
class ArrayImpl(Array):
    """A concrete array.  `_buf` is jaxlib's buffer; `aval` is interned; by `_signature` compiled calls are
    found: `aval` itself, or the Signature of an array that is committed, or may be elsewhere than others."""
    __slots__ = ("aval", "_buf", "_committed", "_host", "_signature")

    def __init__(self, aval: ShapedArray, buf: binding.Buffer, committed: bool = False,
                 signature: Signature | None = None) -> None:
        self.aval = aval
        self._buf = buf
        self._committed = committed
        self._host: Any = None
        self._signature: Any = aval
        if committed:
            self._signature = signature or signature_of(aval, buf._sharding._own)
        elif client.chosen_devices and (own := buf._sharding._own)._devices[0] in client.chosen_devices:
            self._signature = signature_of(aval, own, False)

    # --- the host side ---

    def _numpy(self) -> np.ndarray:
        """The value as a read-only NumPy array, fetched once."""
        unwatch()
        if self._host is not None:
            return self._host
        self.check_alive()
        try:
            devices = self._buf._sharding._own._devices
            value = (binding.to_numpy(self._buf, physical(self.aval)) if len(devices) == 1
                     and is_local(devices[0]) else shards.gathered(self))
            if self.aval.dtype.kind == "V" and self.aval.dtype == dtypes.float0:
                value = np.zeros(self.shape, dtypes.float0)
        except (binding.JaxRuntimeError, BufferError) as error:      # the latter from the buffer protocol
            raise callback_guard.original(error) from None
        value.setflags(write=False)
        self._host = value
        return value

    _value = property(_numpy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        try:
            if dtypes.is_extended(self.aval.dtype):
                raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array: a key "
                                "is no number. Use jax.random.key_data(arr) for its words")
            value = self._numpy()
        except Exception as error:
            reraise_for_user(error, "np.asarray", (self,))
            raise
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(f"cannot give an array of dtype {value.dtype} as {dtype} without a copy")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __bool__(self) -> bool:
        if dtypes.is_extended(self.aval.dtype):
            raise TypeError("a PRNG key has no truth value; compare keys with == or jnp.array_equal")
        if self.aval.size != 1:
            kind, instead = "an array with more than one element", "a.any() or a.all()"
            if self.aval.size == 0:
                kind, instead = "an empty array", "`array.size > 0` to check that an array is not empty."
            raise ValueError(f"The truth value of {kind} is ambiguous. Use {instead}")
        return bool(self._numpy())

    def _scalar(self, convert: Callable[[Any], Any]) -> Any:
        if self.aval.ndim:
            if self.aval.size != 1:
                raise TypeError("Only scalar arrays can be converted to Python scalars; got "
                                f"arr.ndim={self.aval.ndim}: reduce it, as with .sum(), pick one element, as "
                                "in x[0], or take all with .tolist()")
            raise TypeError("Only scalar arrays can be converted to Python scalars; got arr.ndim="
                            f"{self.aval.ndim}. Use x.item() or x[0].")
        return convert(self.__array__().item())

    def __int__(self) -> int:
        return self._scalar(int)

    def __float__(self) -> float:
        return self._scalar(float)

    def __complex__(self) -> complex:
        return self._scalar(complex)

    def __index__(self) -> int:
        if not dtypes.is_integer(self.aval.dtype) or self.aval.ndim:
            raise TypeError("Only integer scalar arrays can be converted to a scalar index; got "
                            f"{self.aval.str_short()}: use x.astype(int) or int(x)" + " of one element" *
                            bool(self.ndim))
        return int(self._numpy())

    def item(self, *args: int) -> Any:
        """The one element (or the element at `args`) as a Python scalar."""
        return self.__array__().item(*args)

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        return self.__array__().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements as bytes."""
        return self.__array__().tobytes(order)

    def __format__(self, spec: str) -> str:
        if not self.aval.ndim and not dtypes.is_extended(self.aval.dtype):
            return format(self._numpy()[()], spec)
        try:
            return format(str(self), spec)
        except ValueError:
            raise TypeError(f"format {spec!r} is for one number, and the array has type "
                            f"{self.aval.str_short()}: format its elements, or use jnp.array_str(x, "
                            "precision=2)") from None

    def __str__(self) -> str:
        if dtypes.is_extended(self.aval.dtype) or not shards.is_shown(self):
            return repr(self)
        return str(self._numpy())

    def __repr__(self) -> str:
        return self._written()

    def _written(self, **options: Any) -> str:
        """The text of `repr`, with options of np.array2string."""
        if self._buf.is_deleted():
            return f"Array(<deleted>, shape={self.shape}, dtype={self.aval.dtype.name})"
        if not shards.is_shown(self):
            return f"Array(shape={self.shape}, dtype={self.aval.dtype.name})"
        weak = ", weak_type=True" if self.aval.weak_type else ""
        if dtypes.is_extended(self.aval.dtype):
            return f"Array({self.shape}, dtype={self.aval.dtype.name}) overlaying:\n{self._numpy()}"
        value = self._numpy()
        if value.size == 0:
            return f"Array([], shape={self.shape}, dtype={value.dtype}{weak})"
        numbers = np.array2string(value, separator=", ", prefix="Array(", suffix=",", **options)
        last = f"dtype={value.dtype}{weak})"
        # where the last line gets too long JAX has the indentation of a line, without the line break
        width = len(numbers) - numbers.rfind("\n") + len(last) + 1
        limit = options.get("max_line_width") or np.get_printoptions()["linewidth"]
        gap = " " * (len("Array(") if width >= limit else 1)
        return f"Array({numbers},{gap}{last}"

    # --- the device side ---

    def check_alive(self) -> None:
        if self._buf.is_deleted():
            raise RuntimeError(
                f"Array has been deleted with shape={self.aval.str_short()}. It was deleted with .delete(), "
                "or donated to a compiled function (donate_argnums), which reused its memory: use the "
                "function's result instead, or do not donate it.")

    def block_until_ready(self) -> ArrayImpl:
        """Wait until the value is computed; returns the array.  Errors of the computation are raised here."""
        self.check_alive()
        try:
            self._buf.block_until_ready()
        except binding.JaxRuntimeError as error:
            raise callback_guard.original(error) from None
        return self

    def is_ready(self) -> bool:
        """Is the value computed?

        Raises:
            RuntimeError: for a deleted array, of which jaxlib would read what is not there.
        """
        self.check_alive()
        return self._buf.is_ready()

    def copy_to_host_async(self) -> None:
        """Begin fetching the value, which `np.asarray` then waits for."""
        self.check_alive()
        for buffer in shards.single_buffers(self):
            buffer._copy_single_device_array_to_host_async()

    def is_deleted(self) -> bool:
        """Was the buffer deleted or donated?"""
        return self._buf.is_deleted()

    def mark_deleted(self) -> None:
        """The buffer is gone: no compiled call is found for this one by its signature."""
        self._committed, self._signature = True, Signature()

    def delete(self) -> None:
        """Free the buffer now; later use raises RuntimeError."""
        self._buf.delete()
        self.mark_deleted()
        self._host = None

    @property
    def sharding(self) -> Sharding:
        sharding = self._buf._sharding._own
        return sharding if sharding._layout is None else sharding.in_layout(None)

    @property
    def format(self) -> Format:
        """The Format: its layout in memory, and its sharding."""
        from .devices import layouts  # few ask
        return layouts.of_array(self)

    @property
    def device(self) -> Any:
        """The device that holds the array; the sharding of an array that several hold."""
        sharding = self._buf._sharding._own
        return sharding._devices[0] if len(sharding._devices) == 1 else sharding

    def devices(self) -> set[binding.Device]:
        """The set of devices that hold the array."""
        return self.sharding.device_set

    def platform(self) -> str:
        """The name of the platform that holds the array, such as "cpu"."""
        return next(iter(self.sharding.device_set)).platform

    @property
    def committed(self) -> bool:
        return self._committed

    _device = device
    is_fully_addressable = property(lambda self: self.sharding.is_fully_addressable)
    is_fully_replicated = property(lambda self: self.sharding.is_fully_replicated)

    @property
    def addressable_shards(self) -> list[shards.Shard]:
        """The parts that this process holds, as a list of Shards in the order of the devices."""
        return shards.shards(self)

    @property
    def global_shards(self) -> list[shards.Shard]:
        """The parts on all devices; `data` is None for those of other processes."""
        return shards.shards(self, addressable=False)

    def addressable_data(self, index: int) -> Any:
        """Part number `index` of those that this process holds, as an array on one device."""
        return shards.shards(self)[index].data

    def on_device_size_in_bytes(self) -> int:
        return self._buf.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """Address of the device memory."""
        self.check_alive()
        if len(self.sharding._devices) > 1:
            raise ValueError("unsafe_buffer_pointer: the array is placed on several devices; ask the data "
                             "of one of its addressable_shards")
        self.block_until_ready()
        return self._buf.unsafe_buffer_pointer()

    @property
    def traceback(self) -> Any:
        """Where it was made, as jaxlib noted it."""
        return self._buf.traceback

    # --- protocols ---

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of an array on one CUDA device, for libraries that share it by version 2 of this
        protocol."""
        platform = client.platform_of(self.sharding._devices[0])
        if platform != "cuda":
            raise AttributeError("__cuda_array_interface__: the array is not on a CUDA device but on "
                                 f"{platform}; __dlpack__ shares the memory of others")
        self.check_alive()
        return self.block_until_ready()._buf.__cuda_array_interface__

    def __buffer__(self, flags: int) -> memoryview:
        value: Any = self.__array__()
        return memoryview(value)

    def __bytes__(self) -> bytes:       # before Python 3.12, bytes(x) does not see __buffer__
        return self.__array__().tobytes()

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """A DLPack capsule that shares the buffer."""
        self.check_alive()
        if self.aval.dtype in dtypes.SMALL_INTS or dtypes.is_extended(self.aval.dtype):
            raise BufferError(f"DLPack has no type for {self.aval.dtype.name}")
        if len(self.sharding._devices) > 1:
            raise BufferError("DLPack shares the memory of one device, and this array is on several; "
                              "share the data of its addressable_shards, or move it to one device with "
                              "device_put")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array is on {self.__dlpack_device__()}, and DLPack shares it there "
                              f"only, not on {tuple(dl_device)}; move it with device_put")
        if copy:
            return self.__copy__().__dlpack__(stream=stream, max_version=max_version)
        self.block_until_ready()
        return binding.to_dlpack(self._buf, stream, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        if len(self.sharding._devices) > 1:
            raise BufferError("__dlpack_device__: DLPack is for arrays on one device, and this is on several")
        device = self.sharding._devices[0]
        platform = client.platform_of(device)
        if platform.dlpack is None:
            raise BufferError(f"DLPack has no number for devices of platform {platform}")
        return platform.dlpack, 0 if platform.on_host else device.local_hardware_id

    def __reduce__(self) -> tuple:
        return _unpickle, (np.asarray(self._numpy()), self.aval.update(sharding=None))

    def __deepcopy__(self, memo: Any) -> ArrayImpl:
        return self.__copy__()

    def __copy__(self) -> ArrayImpl:
        self.check_alive()
        return shards.copied(self)


def _unpickle(value: Any, aval: ShapedArray) -> ArrayImpl:
    return ArrayImpl(aval, put(value, physical(aval), client.default_device()))


def _array_namespace(_x: Array, api_version: str | None = None) -> Any:
    if api_version not in (None, "2024.12"):
        raise ValueError(f"__array_namespace__: version {api_version!r} of the array API is not there; "
                         "'2024.12' is")
    return importlib.import_module(__package__.split(".")[0] + ".numpy")


Array.__array_namespace__ = boundary(  # type: ignore[attr-defined]
    _array_namespace, "__array_namespace__", method=True)
register_aval(ArrayImpl, lambda value: value.aval)
for _name in vars(ArrayImpl):
    if not _name.startswith("_") and (not hasattr(Tracer, _name) or _name in (
            "item", *CONCRETE_METHODS, *CONCRETE_PROPERTIES)):
        setattr(Array, _name, Concrete(_name))


def put(value: np.ndarray, aval: ShapedArray, device: binding.Device) -> binding.Buffer:
    """jaxlib's buffer for a NumPy value on a device.  The value is copied: it may change afterwards."""
    if value.dtype == dtypes.float0:
        value = np.zeros(aval.shape, aval.dtype)
    elif value.dtype != aval.dtype:
        value = value.astype(aval.dtype)
    return binding.device_put(np.asarray(value, order="C"), aval, placement.on_device(device), device)


def from_numpy(value: Any, *, aval: ShapedArray | None = None) -> ArrayImpl:
    """An ArrayImpl from a NumPy value; `aval` gives dtype and weak type."""
    value = np.asarray(value)
    aval = aval_of(value) if aval is None else aval
    made = ArrayImpl(aval, put(value, physical(aval), client.default_device()))
    if watched:
        ran(None, value, made)
    return made


def assembled(aval: ShapedArray, sharding: Sharding, buffers: Sequence[binding.Buffer]) -> ArrayImpl:
    """An ArrayImpl of buffers on one device each, in the order of the sharding's local devices."""
    buffer = binding.join(buffers, physical(aval), sharding)
    shards.share(buffer)
    return ArrayImpl(sharding.typed(aval), buffer, True)


_scalars = ContextCache(1024)


def as_array(value: Any) -> ArrayImpl:
    """The ArrayImpl of any concrete array-like.  Buffers of recently used scalars are kept."""
    kind = type(value)
    if kind is ArrayImpl:
        return value
    if kind in dtypes.python_scalars:
        # repr tells -0.0 from 0.0, which compare equal
        return _kept_scalar(value, (kind, value if value and kind is not complex else repr(value)))
    if kind is np.ndarray and value.ndim and value.flags.c_contiguous:
        aval = aval_of(value)
        if value.dtype is aval.dtype and value.dtype.kind != "V":     # float0 has no place on a device
            device = client.default_device()
            return ArrayImpl(aval, binding.device_put(value, aval, placement.on_device(device), device))
    if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0 and value.dtype in dtypes.SUPPORTED:
        return _kept_scalar(value, (value.dtype, value.tobytes()))
    if isinstance(value, Tracer):
        raise errors.leaked_tracer(value)
    return from_numpy(value, aval=aval_of(value))


_DISPATCHED = {d: d for d in dtypes.SUPPORTED
               if d.itemsize < 8 and d not in dtypes.SMALL_INTS or d == np.complex64}
# with x64 or without it, the dtypes of NumPy arrays that jaxlib's dispatch takes, by those that users pass
_DISPATCHED_AS = {True: _DISPATCHED, False: _DISPATCHED | {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in (("i8", "i4"), ("u8", "u4"), ("f8", "f4"), ("c16", "c8"))}}
_QUICKLY_COPIED = 1 << 16        # bytes


def for_dispatch(value: np.ndarray) -> np.ndarray:
    """The copy of a NumPy array that jaxlib's dispatch is given, which the program may still read when the
    call has returned; the array itself where it is given none."""
    if value.nbytes > _QUICKLY_COPIED:
        return value
    given = value.dtype
    dtype = _DISPATCHED_AS[state.x64].get(given)
    if dtype is given:
        return value.copy()
    return value if dtype is None else value.astype(dtype, "C")


def operand(value: Any) -> Any:
    """What jaxlib's dispatch takes of a concrete array-like: its buffer, or a copy of a NumPy array."""
    if type(value) is ArrayImpl:
        return value._buf
    if type(value) is np.ndarray and (copied := for_dispatch(value)) is not value:
        return copied
    return as_array(value)._buf


def own(value: Any) -> ArrayImpl:
    """As `as_array`, with a buffer of its own for a number: the result may be deleted or donated."""
    is_number = (isinstance(value, (*dtypes.python_scalars, np.generic))
                 or isinstance(value, np.ndarray) and not value.ndim)
    return from_numpy(value, aval=aval_of(value)) if is_number else as_array(value)


def _held(value: Any, before: Any = None) -> ArrayImpl:
    """The Array of a NumPy array as it is now: `before`, of an earlier use, unless it was rewritten since."""
    with transfer_guards.unasked():
        return before if before is not None and _same_bits(value, before._numpy()) else as_array(value)


JaxprTrace.held = staticmethod(_held)


def _same_bits(value: np.ndarray, old: np.ndarray) -> bool:
    if value.shape != old.shape:
        return False
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8)
            for x in (value.astype(old.dtype, copy=False), old))
    step = 1 << 20      # what was rewritten differs early as a rule, and a comparison takes memory
    return all(np.array_equal(a[i:i + step], b[i:i + step]) for i in range(0, a.size, step))


def _kept_scalar(value: Any, key: Any) -> ArrayImpl:
    array = _scalars.entries.get((key, state.trace_key))
    if array is None or array._buf.is_deleted():
        aval = aval_of(value)
        array = _scalars.keep(key, from_numpy(np.asarray(value, aval.dtype), aval=aval))
    return array


def from_dlpack(x: Any) -> tuple[ArrayImpl, bool]:
    """(An ArrayImpl over the memory of an object with `__dlpack__`, is it a copy?); layout or alignment may
    forbid sharing.

    TypeError for element types that arrays cannot hold, BufferError for devices and strides that jaxlib does
    not take. 64-bit numbers on a device that is not the host stay so, also while those are off.
    """
    kind, number = x.__dlpack_device__()
    device, on_host = _device_of_dlpack(int(kind), number), kind in _ON_HOST
    stream = None if on_host else device.get_stream_for_external_ready_events()
    capsule = x.__dlpack__() if on_host else x.__dlpack__(stream=stream)
    shape, name, row_major, address = binding.dlpack_type(capsule)
    dtype = dtypes.as_dtype(name)
    if on_host and (dtypes.canonicalize(dtype) != dtype or not row_major):
        return from_numpy(np.from_dlpack(x)), True
    aval = ShapedArray(shape, dtype)
    found = ArrayImpl(aval, binding.from_dlpack(capsule, device, aval, placement.on_device(device), stream))
    if not row_major:
        from .devices import layouts  # few arrays are in another layout than the devices' own
        return ArrayImpl(aval, layouts.moved(found, found.sharding)), True
    return found, found.size > 0 and found.unsafe_buffer_pointer() != address


_ON_HOST = (1, 3)       # DLPack's numbers of memory of the host: of any program, and pinned for CUDA


def _device_of_dlpack(kind: int, number: int) -> binding.Device:
    """The device of this process that DLPack calls by two numbers."""
    if kind in _ON_HOST:
        return client.client("cpu").local_devices()[0]
    platform = next((platform for platform in PLATFORMS if platform.dlpack == kind), None)
    if platform is None:
        raise BufferError(f"from_dlpack: no platform here has devices of DLPack's kind {kind}; move the "
                          "value to the host, with its own library")
    devices = client.client(platform).local_devices()
    found = next((device for device in devices if device.local_hardware_id == number), None)
    if found is None:
        raise BufferError(f"from_dlpack: this process has no {platform} device {number}, its devices are "
                          f"{devices}")
    return found
