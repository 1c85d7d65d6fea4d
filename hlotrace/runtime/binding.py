"""The one door to jaxlib's extension module; knows nothing of hlotrace.

Every other module reaches jaxlib through here (the rest of `runtime/`) or not at all.  What differs between
the jaxlib versions that pyproject allows is chosen here, once, at import.
"""
from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

# Read by the C++ logger when the extension loads: without it every client creation prints I-lines.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

_INSTALL = 'pip install "jaxlib>=0.10,<0.13" "numpy>=2" ml_dtypes'
try:
    import ml_dtypes  # noqa: F401 - jaxlib would miss it later, in other words
    import numpy as np
    from jaxlib import _jax  # type: ignore[attr-defined]
    from jaxlib.version import __version__ as jaxlib_version
except ImportError as error:
    raise ImportError("hlotrace needs jaxlib, numpy and ml_dtypes, and one could not be imported: "
                      f"{_INSTALL} (its message: {error})") from error
version = tuple(int(part) for part in jaxlib_version.split(".")[:3])
if version < (0, 10):
    raise ImportError(f"hlotrace needs jaxlib 0.10 or newer, and {jaxlib_version} is installed: {_INSTALL}")
pretty_printer: Any = importlib.import_module("jaxlib._pretty_printer")
_hlo: Any = importlib.import_module("jaxlib._hlo")

pytree = _jax.pytree
JaxRuntimeError = _jax.JaxRuntimeError
ArrayImpl = _jax.ArrayImpl
DeviceList = _jax.DeviceList
CompileOptions = _jax.CompileOptions
mlir, ifrt_programs, callback_classes = _jax.mlir, _jax.ifrt_programs, _jax.ffi
HostBufferSemantics = _jax.HostBufferSemantics

if TYPE_CHECKING:       # jaxlib ships no types: what is used here of its classes
    class Client(Protocol):
        """The runtime of one platform in this process."""
        platform: str
        platform_version: str
        devices: Callable[[], list[Device]]
        local_devices: Callable[[], list[Device]]
        process_index: Callable[[], int]
        heap_profile: Callable[[], bytes]
        compile: Callable[..., LoadedExecutable]
        compile_and_load: Callable[..., LoadedExecutable]
        serialize_executable: Callable[..., bytes]
        deserialize_executable: Callable[..., LoadedExecutable]

    class Device(Protocol):
        """One accelerator, or the processor; the same object for as long as its client lives."""
        id: int
        process_index: int
        local_hardware_id: int
        platform: str
        device_kind: str
        client: Client
        get_stream_for_external_ready_events: Callable[[], int]
        __hash__: Callable[[], int]

    class Buffer(Protocol):
        """The memory of an array, on one device or several; _shared: see `devices/shards.py`."""
        _sharding: Any
        _arrays: list[Buffer]
        _shared: Any
        aval: Any
        traceback: Any
        __cuda_array_interface__: dict[str, Any]
        _pjrt_layout: Any
        platform: Callable[[], str]
        is_ready: Callable[[], bool]
        is_deleted: Callable[[], bool]
        _copy_single_device_array_to_host_async: Callable[[], None]
        delete: Callable[[], None]
        block_until_ready: Callable[[], Buffer]
        on_device_size_in_bytes: Callable[[], int]
        unsafe_buffer_pointer: Callable[[], int]
        _rewrap_with_aval_and_sharding: Callable[..., Buffer]
        _to_np_array_did_copy: Callable[[], tuple[np.ndarray, bool]]
        _single_device_array_to_np_array_did_copy: Callable[[], tuple[np.ndarray, bool]]
        __buffer__: Callable[[int], memoryview]

    class LoadedExecutable(Protocol):
        """A compiled program on its devices."""
        execute_sharded: Callable[..., Any]
        get_compiled_memory_stats: Callable[[], Any]
        get_parameter_layouts: Callable[[], list[Any]]
        get_output_layouts: Callable[[], list[Any]]
        get_parameter_shardings: Callable[[], list[Any] | None]
        get_output_shardings: Callable[[], list[Any] | None]
        hlo_modules: Callable[[], list[Any]]
        cost_analysis: Callable[[], dict[str, float]]
        serialize: Callable[[], bytes]
else:
    Client, Device = _jax.Client, _jax.Device

# XLA's CPU backend of 0.12 counts by 16 elements in 32 bits: a loop over more ends the process, or leaves
# some out.
most_cpu_elements = 2 ** 36 - 16 if version >= (0, 11) else None

# XLA's CPU backend of 0.10 compiles in half the time without its fusion emitters and in one part; what it
# makes is as fast on arrays of some thousand elements, in loops of some hundred, and slower on more.
sooner = ({"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
          if version < (0, 11) else {})

# XLA of 0.10 reads a slice of a slice at the sum of their starts, in range or not.
sums_slice_starts = version < (0, 11)
# does a Ref made of a Python number give way to other dtypes, as the number does?
refs_have_weak_types = version < (0, 11)

# XLA of 0.10 computes a Fourier transform on each device as a whole, its batches too.
divides_transforms = version >= (0, 11)

# JAX of 0.10 does not reshape split axes where axes of size 1 come or go and others are cut or merged.
counts_units = version < (0, 11)

# JAX of 0.12 computes lgamma in float32 exactly, in other operations than XLA's formula.
exact_lgamma = version >= (0, 11)


_unchecked = () if version >= (0, 11) else (True,)


def result_handler(aval: Any, sharding: Any) -> Callable[..., Any]:
    """A C++ callable that wraps an executable's output buffer with `aval` and `sharding`."""
    return _jax.array_result_handler(aval, sharding._of_jaxlib, True, *_unchecked)


def transfer_guards(everywhere: bool = False) -> Any:
    """jaxlib's guards of this thread or of the process: an object with a level or None for each direction."""
    return _jax.guard_lib.global_state() if everywhere else _jax.guard_lib.thread_local_state()


def guard_level(name: str | None) -> Any:
    """jaxlib's level for "allow", "log", ...; None for None."""
    return None if name is None else getattr(_jax.guard_lib.TransferGuardLevel, name.upper())


def start_transfer_server(*options: Any) -> Any:
    """jaxlib's server from which others pull buffers."""
    return _jax.start_transfer_server(*options)


def make_error_array(client: Client, like: Any, message: str) -> Buffer:
    """A buffer that raises when it is read; `like` has a shape, a dtype and jaxlib's sharding."""
    return _jax._make_error_array(client, like, message)


def profiler() -> tuple[Any, Any]:
    """jaxlib's modules of the profiler, and of what it finds."""
    from jaxlib import _profile_data, _profiler  # type: ignore[attr-defined]
    return _profiler, _profile_data


def xla_transforms() -> Any:
    """jaxlib's module of passes in Python over what XLA compiles."""
    from jaxlib import _xla  # type: ignore[attr-defined]
    return _xla


def garbage_level(name: str | None) -> Any:
    """jaxlib's level of the guard of arrays in cycles for "allow", "log", "fatal"; that of "allow" for None.
    """
    return getattr(_jax.guard_lib.GarbageCollectionGuardLevel, (name or "allow").upper())


def device_put(value: np.ndarray, aval: Any, sharding: Any, device: Device) -> Buffer:
    """A buffer with a copy of a C-contiguous NumPy array."""
    return device_put_shards([value], aval, sharding, [device])


def device_put_shards(values: Sequence[np.ndarray], aval: Any, sharding: Any,
                      devices: Sequence[Device]) -> Buffer:
    """A buffer of an array of `aval` whose shards, C-contiguous NumPy arrays, are copied to a device each."""
    try:
        return _jax.batched_device_put(aval, sharding._of_jaxlib, values, devices, enable_x64=True,
                                       host_buffer_semantics=HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
    except JaxRuntimeError as error:
        if "compile-only client" not in str(error):
            raise
        raise RuntimeError(
            f"{devices[0]} is a device of a topology, which is not here: no array can be on it. Compile with "
            "a ShapeDtypeStruct(shape, dtype, sharding=) in its place") from None


def join(shards: Sequence[Buffer], aval: Any, sharding: Any) -> Buffer:
    """A buffer of an array of `aval` from buffers on one device each, in the order of the sharding."""
    return ArrayImpl(aval, sharding._of_jaxlib, shards, True, _skip_checks=True)


def rewrap(buf: Buffer, aval: Any, sharding: Any) -> Buffer:
    """A buffer over the same memory with another aval and sharding."""
    return buf._rewrap_with_aval_and_sharding(aval, sharding._of_jaxlib)


def copy_to_device(buf: Buffer, sharding: Any, device: Device) -> Buffer:
    """A copy of a buffer on one device on another one of the same client."""
    copied, = _jax.batched_copy_array_to_devices_with_sharding(
        [buf], [DeviceList((device,))], [sharding._of_jaxlib], [_jax.ArrayCopySemantics.ALWAYS_COPY])
    return copied


class OneDevice(_jax.SingleDeviceSharding):
    """The sharding of a buffer on one device, as jaxlib's dispatch wants it; `_own` is the array's."""

    def __init__(self, device: Device, own: Any) -> None:
        super().__init__(device)
        self._own = own

    _to_xla_hlo_sharding = staticmethod(functools.cache(lambda ndim: _hlo.HloSharding.replicate()))

    def __repr__(self) -> str:
        return repr(self._own)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self._own, name)      # jaxlib asks for each copy to a device
        return found


class Several(_jax.GSPMDSharding):
    """The sharding of a buffer over devices: jaxlib asks one of its own class nothing in Python.  How the
    array is split `_own` says alone, which is the array's.

    In a process that imports JAX too, jaxlib's class has methods, by which it would be whole everywhere.
    """

    def __init__(self, devices: Sequence[Device], kind: str | None, own: Any) -> None:
        super().__init__(DeviceList(tuple(devices)), _hlo.HloSharding.replicate(), memory_kind=kind)
        self._own = own

    __repr__, __getattr__ = OneDevice.__repr__, OneDevice.__getattr__
    is_fully_replicated = property(lambda self: self._own.is_fully_replicated)
    is_fully_addressable = property(lambda self: self._own.is_fully_addressable)

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self._own._to_xla_hlo_sharding(ndim)


class _FastPath(NamedTuple):
    """A program for jaxlib's dispatch; the names are its own."""
    xla_executable: LoadedExecutable
    out_pytree_def: Any
    in_shardings: list[Any]
    out_shardings: list[Any]
    out_avals: list[Any]
    out_committed: list[bool]
    kept_var_bitvec: list[bool]
    in_device_local_layouts: list[None]
    const_args: list[Any]


_registry = pytree.PyTreeRegistry(enable_none=True, enable_tuple=True, enable_namedtuple=True,
                                  enable_list=True, enable_dict=True)
_dispatches = _jax.PjitFunctionCache(capacity=4096)


@functools.cache
def _set_dispatch_options() -> None:
    """jaxlib's dispatch reads three options of the process, which a jax in it may have set."""
    def nothing() -> tuple[list[Buffer], None, bool]:
        return [], None, False
    try:
        _jax.pjit("hlotrace", nothing, nothing, [], [], (), _registry, nothing, _dispatches)()
        return
    except ValueError:      # they are not set
        pass
    for name in ("enable_x64", "disable_jit", "post_hook"):
        option = _jax.config.Config(f"hlotrace_{name}", None if name == "post_hook" else False)
        getattr(_jax.jax_jit, f"set_{name}_state")(option)


def dispatch(loaded: LoadedExecutable, handlers: Sequence[Any], in_avals: Sequence[Any],
             out_avals: Sequence[Any], device: Device, sharding: Any) -> Callable[..., list[Buffer]]:
    """A function of buffers and NumPy arrays, of the program's types but not of 64 bits, that runs a program
    on one device.  jaxlib's C++ copies the arrays to the device, in a tenth of the time of `device_put`; it
    may still read them after the call.  JaxRuntimeError for a buffer that is deleted, or on another device.
    """
    _set_dispatch_options()
    place, ins, outs = sharding._of_jaxlib, len(in_avals), len(out_avals)
    known = _FastPath(loaded, _registry.flatten([0] * outs)[1], [place] * ins, [place] * outs,
                      list(out_avals), [True] * outs, [True] * ins, [None] * ins, [])

    def run(*operands: Any) -> list[Buffer]:       # called by itself where a jax beside says `disable_jit`
        buffers = [x if type(x) is ArrayImpl else device_put(x, aval, sharding, device)
                   for x, aval in zip(operands, in_avals)]
        return loaded.execute_sharded(buffers).consume_with_handlers(handlers)

    def first(*operands: Any) -> tuple[list[Buffer], Any, bool]:
        return run(*operands), known, False
    return _jax.pjit("hlotrace", run, first, [], [], (), _registry, lambda *_: None, _dispatches)


_ASKED_FOR = "jax._src.sharding_impls"
_hiding = threading.local()


class _HiddenJax:
    """Asked for buffers that have no aval, jaxlib's C++ imports jax to make one, or does without where there
    is none."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if (name == "jax" or name.startswith("jax.")) and getattr(_hiding, "on", False):
            raise ModuleNotFoundError("hlotrace runs without jax", name=name)


def shards(buf: Buffer) -> list[Buffer]:
    """The buffers, on one device each, each a shard that this process holds of an array."""
    if _HiddenJax not in sys.meta_path:
        sys.meta_path.insert(0, _HiddenJax)
    _hiding.on = True
    modules: dict[str, Any] = sys.modules
    if "jax" not in modules:        # no thread is importing it: the imports for buffers fail without a search
        modules[_ASKED_FOR] = None
    try:
        return buf._arrays
    finally:
        _hiding.on = False
        if modules.get(_ASKED_FOR, modules) is None:
            modules.pop(_ASKED_FOR, None)


# Element types that the buffer protocol can describe; the others are fetched as bytes.
_BUFFER_KINDS = frozenset("biufc")


def to_numpy(buf: Buffer, aval: Any) -> np.ndarray:
    """A NumPy array over (CPU) or with a copy of a buffer's data; waits for it.  Never imports jax."""
    if aval.size == 0:
        return np.empty(aval.shape, aval.dtype)
    buf.block_until_ready()     # raises if the computation failed, where what follows would end the process
    if aval.dtype.kind in _BUFFER_KINDS and aval.dtype.isbuiltin == 1 and buf.platform() == "cpu":
        try:
            return np.asarray(memoryview(buf))
        except BufferError:     # in another layout, or it was donated
            return np.asarray(buf._single_device_array_to_np_array_did_copy()[0])
    return _fetch(buf, aval)


if hasattr(ArrayImpl, "_to_np_array_did_copy"):
    def _fetch(buf: Buffer, aval: Any) -> np.ndarray:
        return np.asarray(buf._to_np_array_did_copy()[0])
else:
    def _fetch(buf: Buffer, aval: Any) -> np.ndarray:
        if buf.platform() != "cpu" or aval.dtype.kind == "T":       # texts
            return np.asarray(buf._single_device_array_to_np_array_did_copy()[0])
        bits = _NARROW.get(aval.dtype.name, aval.dtype.itemsize * 8)
        raw = (ctypes.c_char * -(-aval.size * bits // 8)).from_address(buf.unsafe_buffer_pointer())
        order = str(buf._pjrt_layout)[1:].partition("}")[0].partition(":")[0].split(",")[::-1]
        axes = [int(axis) for axis in order if axis]    # from the slowest to the fastest
        flat = _unpacked(np.frombuffer(raw, np.uint8), bits, aval) if bits < 8 else np.frombuffer(
            raw, aval.dtype)
        value = flat.reshape([aval.shape[axis] for axis in axes]).transpose(np.argsort(axes))
        return value.copy()

    # Bits of the elements that share a byte on the device, the first one in its low bits.
    _NARROW = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}

    def _unpacked(packed: np.ndarray, bits: int, aval: Any) -> np.ndarray:
        """NumPy keeps each such element in the low bits of a byte of its own."""
        elements = packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & (1 << bits) - 1
        return elements.ravel()[:aval.size].view(aval.dtype)


if version >= (0, 12):
    def to_dlpack(buf: Buffer, stream: Any, max_version: Any) -> Any:
        return _jax.buffer_to_dlpack_managed_tensor(buf, stream=stream, max_version=max_version)
else:
    def to_dlpack(buf: Buffer, stream: Any, max_version: Any) -> Any:
        return _jax.buffer_to_dlpack_managed_tensor(buf, stream)


class _DLTensor(ctypes.Structure):
    """The head of DLPack's `DLManagedTensor` (dlpack.h, version 0)."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


def dlpack_type(capsule: Any) -> tuple[tuple[int, ...], str, bool, int]:
    """(shape, name of the dtype, is it row-major?, address) of a DLPack capsule that is not versioned."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    if tensor.code not in _DLPACK_KINDS or tensor.lanes != 1:
        raise TypeError(f"from_dlpack: DLPack element type (code {tensor.code}, {tensor.bits} bits, "
                        f"{tensor.lanes} lanes) is not supported")
    kind = _DLPACK_KINDS[tensor.code]
    shape = tuple(tensor.shape[:tensor.ndim])
    row_major, stride = True, 1
    for axis in reversed(range(tensor.ndim)) if tensor.strides else ():
        row_major = row_major and (shape[axis] <= 1 or tensor.strides[axis] == stride)
        stride *= shape[axis]
    dtype = kind if kind == "bool" else f"{kind}{tensor.bits}"
    return shape, dtype, row_major, (tensor.data or 0) + tensor.byte_offset


def from_dlpack(capsule: Any, device: Device, aval: Any, sharding: Any, stream: int | None = None) -> Buffer:
    """A buffer over the memory of a DLPack capsule, or with a copy of it where its alignment forbids that.

    `stream` is the one that the capsule was made for, on which its values are ready.
    """
    buf = _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream)
    return rewrap(buf, aval, sharding)


def device_assignment(ids: Any) -> Any:
    """A DeviceAssignment from device ids, [replica][partition]."""
    from jaxlib import xla_client
    return xla_client.DeviceAssignment.create(np.array(ids, np.int32))


def compile_options(devices: Sequence[Device], overrides: Mapping[str, Any] | None = None,
                    effort: int | None = None, memory_effort: int | None = None,
                    profile_version: int = 0) -> Any:
    """CompileOptions for one partition on each of `devices`; `overrides` are XLA flags by name, the others
    XLA's if None."""
    options = new_compile_options(1, len(devices), [[device.id for device in devices]], overrides)
    build = options.executable_build_options
    if effort is not None:
        build.optimization_level = effort
    if memory_effort is not None:
        build.memory_fitting_level = memory_effort
    if profile_version:
        options.profile_version = profile_version
    return options


# compiler options that are no flags of XLA: how hard it tries to make programs fast, and small in memory
EFFORTS = [name for name in ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
                             "memory_fitting_level") if hasattr(_jax.ExecutableBuildOptions, name)]


def new_compile_options(replicas: int, partitions: int, ids: Any,
                        overrides: Mapping[str, Any] | None = None) -> Any:
    """CompileOptions for devices with these `ids`, [replica][partition], or for any where that is None."""
    options = CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = replicas
    options.num_partitions = build.num_partitions = partitions
    build.use_spmd_partitioning = build.use_shardy_partitioner = partitions > 1
    if ids is not None:
        options.device_assignment = device_assignment(ids)
    flags = []
    for name, value in (overrides or {}).items():
        if name in EFFORTS:
            setattr(build, name, value)
        else:
            flags.append((name, value))
    options.env_option_overrides = flags
    return options


def readable(message: str) -> str:
    """jaxlib ends every MLIR error with a guess about versions, which is wrong here."""
    return message.split("Failed to parse using StableHLO")[0].strip()
