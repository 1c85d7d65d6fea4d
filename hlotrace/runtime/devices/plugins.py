"""PJRT plugins: which are installed and where.  They are not imported: their packages import jax.

Knows files and environment variables; loads nothing until `make_client`.
"""
from __future__ import annotations

import contextlib
import glob
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...core.config import config
from .. import binding

VARIABLE = "HLOTRACE_PJRT_PLUGIN"
_PCI = "/sys/bus/pci/devices"
loaded: dict = {}        # platform -> jaxlib's capsule of the plugin that this process loaded


class Plugin(NamedTuple):
    platform: str
    path: str
    package: str | None     # the wheel it came in; None: named by an environment variable


# platform -> ((file in a folder of sys.path, the wheel that brings it), ...), the preferred one first
WHEELS = {
    "tpu": (("libtpu/libtpu.so", "libtpu"),),
    "cuda": (("jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax-cuda13-pjrt"),
             ("jax_plugins/xla_cuda12/xla_cuda_plugin.so", "jax-cuda12-pjrt")),
}


def named() -> dict[str, str]:
    """{platform: path} from HLOTRACE_PJRT_PLUGIN, "name:/path.so", several separated by commas.

    Raises:
        ValueError: for a text of another form.
    """
    found = {}
    for entry in filter(None, os.environ.get(VARIABLE, "").split(",")):
        name, colon, path = entry.strip().partition(":")
        if not (colon and path and name.isidentifier()) or name in ("cpu", "gpu"):
            raise ValueError(f"{VARIABLE}={entry!r}: want name:/path/to/plugin.so, where name is a word "
                             "other than cpu and gpu (a CUDA plugin is named cuda)")
        found[name] = path
    return found


def find() -> dict[str, Plugin]:
    """{platform: Plugin} of all plugins, in the order in which they are tried."""
    found = {name: Plugin(name, path, None) for name, path in named().items()}
    if path := os.environ.get("TPU_LIBRARY_PATH"):
        found.setdefault("tpu", Plugin("tpu", path, None))
    for platform, wheels in WHEELS.items():
        for file, package in wheels:
            for folder in sys.path:
                path = os.path.join(folder or ".", file)
                if platform not in found and os.path.isfile(path):
                    found[platform] = Plugin(platform, os.path.abspath(path), package)
    return found


def tpu_chips() -> list[str]:
    """Device files of TPU chips.  VFIO's, of any device given to a guest, count beside a chip of Google's."""
    return sorted(glob.glob("/dev/accel[0-9]*") or (glob.glob("/dev/vfio/[0-9]*") if _google_chip() else ()))


def _google_chip() -> bool:
    """Is there a PCI device of Google's that is neither a disk (class 01) nor a network card (class 02)?"""
    def says(device: str, file: str) -> str:
        with contextlib.suppress(OSError), open(os.path.join(device, file)) as opened:
            return opened.read().strip()
        return ""
    return any(says(device, "vendor") == "0x1ae0" and (says(device, "class")
                                                       or "0x01")[:4] not in ("0x01", "0x02")
               for device in glob.glob(f"{_PCI}/*"))


def nvidia_gpus() -> list[str]:
    """Device files of NVIDIA GPUs: the driver's; Windows' for the Linux in it; those of Jetson."""
    return sorted(glob.glob("/dev/nvidia[0-9]*") or (glob.glob("/dev/dxg") if nvidia_driver() else ())
                  or glob.glob("/dev/nvgpu") or glob.glob("/dev/nvhost-gpu"))


def nvidia_driver() -> str | None:
    """What the NVIDIA driver says of its version, or None where there is none."""
    with contextlib.suppress(OSError), open("/proc/driver/nvidia/version") as file:
        return file.readline().strip()
    return None


def has_default(plugin: Plugin) -> bool:
    """Is a plugin tried when the user names no platform?  Those of pip also serve to compile for chips that
    are not here, and to try one takes time and prints: so its chip is looked for first."""
    if plugin.platform == "tpu":
        return bool(tpu_chips())
    return plugin.platform != "cuda" or plugin.package is None or bool(nvidia_gpus())


def install_line(platform: str) -> str:
    """What to type to get a platform's plugin for this jaxlib."""
    if platform == "cuda":
        return f'pip install "jax-cuda13-plugin[with-cuda]=={binding.jaxlib_version}"'
    if platform == "tpu":
        return f'pip install "libtpu=={_LIBTPU.get(binding.version[:2], "0.0.*")}"'
    return f"{VARIABLE}={platform}:/path/to/plugin.so"


_LIBTPU: dict[tuple[int, ...], str] = {(0, 10): "0.0.42.*", (0, 12): "0.0.50.*"}


def gpu_options() -> dict[str, Any]:
    """Options of a GPU client from JAX's environment variables.  By default memory is taken as needed.

    XLA_PYTHON_CLIENT_PREALLOCATE=true takes a pool at the start, XLA_PYTHON_CLIENT_MEM_FRACTION=.5 is the
    part of the memory that the pool may have, XLA_PYTHON_CLIENT_ALLOCATOR is default, platform, bfc or
    cuda_async. Raises ValueError that names the variable.
    """
    allocator = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    if allocator not in ("default", "platform", "bfc", "cuda_async"):
        raise ValueError(f"XLA_PYTHON_CLIENT_ALLOCATOR={allocator!r}: want default, platform, bfc or "
                         "cuda_async")
    preallocate = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "false").lower()
    if preallocate not in ("true", "false", "1", "0"):
        raise ValueError(f"XLA_PYTHON_CLIENT_PREALLOCATE={preallocate!r}: want true or false")
    options = {"allocator": allocator, "preallocate": preallocate in ("true", "1")}
    if config.jax_cuda_visible_devices != "all":
        options["visible_devices"] = [int(number) for number in config.jax_cuda_visible_devices.split(",")]
    for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        if text := os.environ.get(name):
            try:
                fraction = float(text)
            except ValueError:
                fraction = -1.0
            if not 0 < fraction <= 1:
                raise ValueError(f"{name}={text!r}: want a part of the GPU's memory, more than 0 and at most "
                                 "1")
            options["memory_fraction"] = fraction
    return options


def said_options() -> dict[str, Any]:
    """Options of a client from jax_pjrt_client_create_options, "name:value;name:value"; numbers are numbers.
    """
    found = {}
    for entry in filter(None, (config.jax_pjrt_client_create_options or "").split(";")):
        name, colon, value = entry.partition(":")
        if not colon:
            raise ValueError(f"jax_pjrt_client_create_options: {entry!r} is not name:value")
        is_number = value.lstrip("-").isdigit()
        found[name] = int(value) if is_number else {"true": True, "false": False}.get(value, value)
    return found


def make_client(plugin: Plugin, world: Any = None) -> binding.Client:
    """A client of a plugin; `world` is this process's place among several (runtime/processes/membership.py).
    RuntimeError that says which file failed, and how."""
    options = {**(gpu_options() if plugin.platform == "cuda" else {}), **said_options()}
    platform, path, _ = plugin
    try:
        load(plugin)
        if world is None:
            return binding._jax.get_c_api_client(platform, options)
        if platform == "cuda":
            options |= {"node_id": world.process_id, "num_nodes": world.num_processes}
            if world.local_device_ids is not None:
                options["visible_devices"] = list(world.local_device_ids)
        return binding._jax.get_c_api_client(platform, options, world.client)
    except binding.JaxRuntimeError as error:
        raise RuntimeError(f"Unable to initialize backend {platform!r}: {str(error).splitlines()[0]} "
                           f"(plugin: {path}; `python -m hlotrace.doctor --try` says more)") from error


def load(plugin: Plugin) -> None:
    """Load a plugin's library, once."""
    platform, path, package = plugin
    if not binding._jax.pjrt_plugin_loaded(platform):
        if not os.path.isfile(path):
            said_by = f" ({'TPU_LIBRARY_PATH or ' * (platform == 'tpu')}{VARIABLE} says so)" * (not package)
            raise RuntimeError(f"Unable to initialize backend {platform!r}: its plugin {path} is not a file"
                               f"{said_by}")
        with without_driver() if platform == "cuda" else contextlib.nullcontext():
            loaded[platform] = binding._jax.load_pjrt_plugin(platform, path, None)
    if not binding._jax.pjrt_plugin_initialized(platform):
        # Where there is no TPU, libtpu would ask the cloud's metadata server for over a minute, and complain.
        absent = platform == "tpu" and not tpu_chips()
        said = {name: value for name, value in _NO_TPU.items() if absent and name not in os.environ}
        os.environ.update(said)
        try:
            binding._jax.initialize_pjrt_plugin(platform)
        finally:
            for name in said:
                del os.environ[name]


_stderr = threading.RLock()      # held by the thread that puts something else in its place


@contextlib.contextmanager
def without_driver() -> Iterator[None]:
    """Where CUDA's libraries are loaded: where no GPU is here, what they say of the driver is left out.

    No variable silences C++ while it is loaded.  Whatever else is written to stderr meanwhile comes after.
    """
    if nvidia_gpus():
        yield
        return
    with _stderr, tempfile.TemporaryFile() as said:
        stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            said.seek(0)
            for line in said:
                if not _NO_DRIVER.search(line):
                    os.write(2, line)


_NO_DRIVER = re.compile(rb"All log messages before absl::InitializeLog|Could not find cuda drivers")
_NO_TPU = {"TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-8",
           "TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0",
           "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}       # one process at a time is for the sake of a TPU
