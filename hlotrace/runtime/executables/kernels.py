"""Kernels that programs call by name: registered with jaxlib before it compiles or loads such a program.

On the CPU jaxlib brings LAPACK's (they find it through scipy); on CUDA those of cuSOLVER, cuSPARSE, random
bits and host callbacks are in the Python package of the plugin, whose extension modules import nothing of
jax.  Others are the user's. A name of none of these is left to XLA, which knows some and says so of the
rest.  This file is imported by the first program with such a name.
"""
from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jaxlib
from jaxlib import cpu_sparse, lapack
from jaxlib.cpu import _lapack

from ...core.platforms import Platform, platform_named
from ...lowering import custom_calls
from .. import binding
from ..devices import plugins

_lock = threading.RLock()
_registered: set = set()      # (platform, target)
_XLA_NAMES = {"cpu": "cpu", "cuda": "CUDA"}
_given: dict = {}             # (platform, target) -> (kernel, API version, traits), from users


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, *,
                        traits: int = 0) -> None:
    """Let programs call a compiled kernel by name, as `ctx.custom_call(name, ...)` writes it.

    Args:
        fn: a PyCapsule around the address of an XLA FFI handler, or a dict of them by stage: "instantiate",
            "prepare", "initialize", "execute".
        platform: "cpu", "cuda", ..., in letters of either case.
        api_version: 1 for the typed FFI (api_version 4 of a custom call), 0 for an untyped function.
    Raises:
        ValueError: where jaxlib refuses it: another kernel has the name, or it is no handler.

    >>> import ctypes
    >>> library = ctypes.cdll.LoadLibrary("./libkernels.so")                                 # doctest: +SKIP
    >>> jax.ffi.register_ffi_target("add", jax.ffi.pycapsule(library.Add), platform="cpu")   # doctest: +SKIP
    >>> jax.ffi.register_ffi_target("add", "no capsule")
    Traceback (most recent call last):
        ...
    ValueError: ffi.register_ffi_target: ...
    """
    key = platform_named(platform.lower()), name
    with _lock:
        _given[key] = fn, api_version, traits
        _registered.discard(key)
        if key[0] == "cpu":     # elsewhere the plugin may not be loaded yet
            try:
                register([name], key[0])
            except binding.JaxRuntimeError as error:
                del _given[key]
                raise ValueError(f"register_ffi_target({name!r}): {error}; fn, a {type(fn).__name__}, must "
                                 "be a PyCapsule around a handler, as ffi.pycapsule makes one, or a dict of "
                                 "them by stage") from None


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Let kernels pass values of a C++ type of their own, such as a state from one stage to the next.

    `type_registration` is a dict of PyCapsules: "type_id", around the address of the type's `XLA_FFI_TypeId`,
    and "type_info", around that of its `XLA_FFI_TypeInfo`.  Raises ValueError where jaxlib refuses it.

    >>> import ctypes
    >>> library = ctypes.cdll.LoadLibrary("./libkernels.so")                    # doctest: +SKIP
    >>> types = {"type_id": jax.ffi.pycapsule(library.StateTypeId()),             # doctest: +SKIP
    ...          "type_info": jax.ffi.pycapsule(library.StateTypeInfo())}
    >>> jax.ffi.register_ffi_type("state", types)                               # doctest: +SKIP
    """
    platform = platform_named(platform.lower())
    if platform == "cpu":
        registrar = binding._jax.register_custom_type
    elif platform in plugins.loaded:
        registrar = functools.partial(_extension().register_custom_type, plugins.loaded[platform])
    else:
        raise NotImplementedError(f"register_ffi_type({name!r}, platform={str(platform)!r}): no plugin of "
                                  "that platform is loaded; ask for its devices first")
    try:
        registrar(name, type_registration)
    except (binding.JaxRuntimeError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"register_ffi_type({name!r}): {error}") from None


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """JAX's older name of `register_ffi_type`.

    >>> jax.ffi.register_ffi_type_id("state", types)                            # doctest: +SKIP
    """
    register_ffi_type(name, obj, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let a program over devices call the kernel `name` on parts, cut along leading axes of its operands.

    Unsaid, each device calls it on whole values.

    >>> jax.ffi.register_ffi_target_as_batch_partitionable("rowwise_norm")
    """
    binding._jax.register_custom_call_as_batch_partitionable(name)
    custom_calls.batch_partitionable.add(name)


def include_dir() -> str:
    """The folder with `xla/ffi/api/ffi.h`, which kernels are compiled against: `g++ -I` it.

    >>> import os
    >>> os.path.exists(os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return str(Path(jaxlib.__file__).parent / "include")


def pycapsule(funcptr: Any) -> Any:
    """A function of a library that ctypes loaded, as the PyCapsule that `register_ffi_target` takes.

    >>> import ctypes
    >>> type(jax.ffi.pycapsule(ctypes.pythonapi.Py_IncRef)).__name__
    'PyCapsule'
    """
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(funcptr, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


def given_by_user(targets: Iterable[str], platform: Platform) -> bool:
    """Is one of these kernels the user's, so that no other process has it?"""
    return any((platform, target) in _given for target in targets)


def register(targets: Iterable[str], platform: str) -> None:
    """Make jaxlib know these targets.  RuntimeError, ImportError if a package that brings one is missing."""
    with _lock:
        for target in targets:
            if (platform, target) in _registered:
                continue
            found = _given.get((platform, target)) or _shipped(platform).get(target)
            if found is not None:
                _registrar(platform)(target, *found)
            _registered.add((platform, target))


@functools.cache
def _shipped(platform: str) -> dict[str, Any]:
    """{target: (kernel, API version)} of those that jaxlib and the platform's plugin bring."""
    if platform == "cpu":
        modules: tuple[Any, ...] = lapack, cpu_sparse
        found = {}
    elif platform == "cuda":
        with plugins.without_driver():
            from jaxlib import gpu_linalg, gpu_prng, gpu_solver, gpu_sparse
        modules = gpu_solver, gpu_linalg, gpu_sparse, gpu_prng
        found = {target: (handler, 1) for target, handler in _extension().ffi_handlers().items()}
    else:
        return {}
    for module in modules:
        found.update((target, rest) for target, *rest in module.registrations()[_XLA_NAMES[platform]])
    return found


@functools.cache
def _registrar(platform: str) -> Callable[..., None]:
    """(target, kernel, API version, traits) -> None: tells jaxlib, or the plugin."""
    if platform != "cuda":
        return _register_here
    extension, plugin = _extension(), plugins.loaded.get(platform)
    if plugin is None:      # jax loaded it, and has registered these kernels
        return lambda *_: None
    for name, kind in extension.ffi_types().items():
        extension.register_custom_type(plugin, name, kind)

    def register_there(target: str, kernel: Any, api_version: int, traits: int = 0) -> None:
        if target.startswith("cuhybrid_"):
            from jaxlib.gpu_solver import initialize_hybrid_kernels
            _with_scipy(initialize_hybrid_kernels)
        extension.register_custom_call_target(plugin, target, kernel, _XLA_NAMES[platform], api_version,
                                              traits)
        if custom_calls.cut_by_batch(target):
            binding._jax.register_custom_call_as_batch_partitionable(target, plugin)
    return register_there


def _register_here(target: str, kernel: Any, api_version: int, traits: int = 0) -> None:
    if target.startswith("lapack_"):
        _with_scipy(_lapack.initialize)     # otherwise the first call crashes
    binding._jax.register_custom_call_target(target, kernel, "cpu", api_version, traits)
    if custom_calls.cut_by_batch(target):
        binding._jax.register_custom_call_as_batch_partitionable(target)


def _with_scipy(initialize: Any) -> None:
    try:
        initialize()
    except ImportError as error:
        raise ImportError("jaxlib finds LAPACK through scipy, which could not be imported: pip install "
                          f"scipy (its message: {error})") from error


@functools.cache
def _extension() -> Any:
    """The extension module of the CUDA plugin's Python package."""
    from jaxlib.plugin_support import import_from_plugin
    with plugins.without_driver():
        found = import_from_plugin("cuda", "cuda_plugin_extension")
    if found is None:
        plugin = plugins.find().get("cuda")
        beside = plugin and plugin.package and plugin.package.replace("pjrt", "plugin")
        raise RuntimeError("kernels for CUDA are in a package that is not installed: " + (
            f'pip install --no-deps "{beside}=={binding.jaxlib_version}"' if beside
            else plugins.install_line("cuda")))
    return found
