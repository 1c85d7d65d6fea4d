"""NVIDIA GPUs that are not here: their topologies by name, and what XLA's compiler asks of one."""
from __future__ import annotations

import os
import re
import shutil
import sys
from typing import Any

from .. import binding
from . import plugins
from .chips import Chip
from .plugins import Plugin

# XLA asks which CUDA and cuDNN the program will meet: those that came with the wheels of these plugins.
_CUDA_VERSIONS = {"jax-cuda12-pjrt": "12.9.0", "jax-cuda13-pjrt": "13.0.0"}
_DRIVER, _CUDNN = "13.0.0", (9, 10, 0)


def topology_options(name: str, chip: Chip, plugin: Plugin) -> dict[str, Any]:
    """What the CUDA plugin takes for a topology by name: "h100" (one), "h100:8", "h100:2x8" (hosts x GPUs).
    ValueError for another form."""
    form = re.fullmatch(r"[^:]+(?::(?:([1-9]\d*)x)?([1-9]\d*))?", name)
    if form is None:
        raise ValueError(f"get_topology_desc: {name!r} is no topology of {chip.name}: say \"{chip.name}:8\" "
                         f"for eight GPUs of one host, \"{chip.name}:2x8\" for two hosts of eight")
    hosts, gpus = (int(number or 1) for number in form.groups())
    return {"target_config": target_config(chip, _CUDA_VERSIONS.get(plugin.package or "", "12.9.0")),
            "topology": f"1x{hosts}x{gpus}"}      # partitions x hosts x GPUs of a host


def target_config(chip: Chip, cuda_version: str) -> str:
    """XLA's GpuTargetConfigProto of a chip, as text."""
    gpu: Any = chip.cuda
    major, minor = gpu.capability
    cudnn = dict(zip(("major", "minor", "patch"), _CUDNN))
    info = {
        "threads_per_block_limit": 1024, "threads_per_warp": 32, "threads_per_core_limit": gpu.core_threads,
        "shared_memory_per_block": 48 << 10, "shared_memory_per_block_optin": gpu.block_shared_bytes,
        "shared_memory_per_core": gpu.shared_bytes,
        "registers_per_core_limit": 1 << 16, "registers_per_block_limit": 1 << 16,
        "core_count": chip.cores, "fpus_per_core": gpu.lanes, "clock_rate_ghz": gpu.clock_ghz,
        "memory_bandwidth": int(chip.bandwidth), "device_memory_size": chip.memory,
        "l2_cache_size": gpu.l2_bytes,
        "block_dim_limit_x": (1 << 31) - 1, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
        "thread_dim_limit_x": 1024, "thread_dim_limit_y": 1024, "thread_dim_limit_z": 64,
        # from Hopper on, instructions of one generation alone: sm_90a
        "cuda_compute_capability": {"major": major, "minor": minor, "feature_extension":
                                    _Word("ACCELERATED_FEATURES" if major >= 9 else "NONE")},
        "name": chip.kind, "driver_version": _DRIVER, "runtime_version": cuda_version,
        "compile_time_toolkit_version": cuda_version, "dnn_version": ".".join(map(str, _CUDNN))}
    return _text({"gpu_device_info": info, "platform_name": "CUDA", "dnn_version_info": cudnn,
                  "device_description_str": chip.kind})


class _Word(str):
    """A value that the text format has without quotes."""
    __slots__ = ()


def _text(fields: dict[str, Any]) -> str:
    """A message in protocol buffers' text format."""
    def value(held: Any) -> str:
        if isinstance(held, dict):
            return f"{{ {_text(held)} }}"
        return f'"{held}"' if type(held) is str else str(held)
    return " ".join(f"{name}: {value(held)}" for name, held in fields.items())


def memory_of(target_config: str) -> int | None:
    """Bytes of memory of the GPU that a target config describes; None where it does not say."""
    found = re.search(r"\bdevice_memory_size:\s*(\d+)", target_config)
    return int(found[1]) if found else None


# CUDA's version -> (wheels of ptxas and libdevice, the folder that they make)
_COMPILER = {"12": ("nvidia-cuda-nvcc-cu12", "nvidia/cuda_nvcc"),
             "13": ("nvidia-cuda-nvcc nvidia-nvvm", "nvidia/cu13")}


def _cuda(plugin: Plugin | None) -> str:
    return "13" if plugin and plugin.package == "jax-cuda13-pjrt" else "12"


def wheels(cuda: str = "12") -> list[str]:
    """What compiling for GPUs that are not here takes, as pip names it: the plugin, and NVIDIA's compiler."""
    return [*(f"jax-cuda{cuda}-{part}=={binding.jaxlib_version}" for part in ("pjrt", "plugin")),
            *_COMPILER[cuda][0].split()]


def install_line(plugin: Plugin | None) -> str:
    """What to type to compile for GPUs that are not here, beside what is installed."""
    lacking = wheels(_cuda(plugin))[2 if plugin else 0:]
    return " ".join(["pip install --no-deps", *(f'"{w}"' if "==" in w else w for w in lacking)])


def compiler_folder(plugin: Plugin | None) -> str | None:
    """Where the plugin's own version of NVIDIA's compiler is installed; None where its wheels are not."""
    folders = (os.path.join(folder or ".", _COMPILER[_cuda(plugin)][1]) for folder in sys.path)
    return next((os.path.abspath(folder) for folder in folders
                 if os.path.isfile(os.path.join(folder, "bin", "ptxas"))), None)


def ptxas() -> str | None:
    """NVIDIA's assembler: of the CUDA plugin's version, or else the machine's; None without one."""
    folder = compiler_folder(plugins.find().get("cuda"))
    return os.path.join(folder, "bin", "ptxas") if folder else shutil.which("ptxas")


def use_compiler(options: Any, plugin: Plugin | None) -> None:
    """Let XLA take NVIDIA's compiler from its wheels.

    It prefers a toolkit of the machine, whose version may know the GPU no longer, or not yet.
    """
    name = "xla_gpu_cuda_data_dir"
    given = dict(options.env_option_overrides)
    folder = compiler_folder(plugin)
    if folder and name not in given and name not in os.environ.get("XLA_FLAGS", ""):
        options.env_option_overrides = [*given.items(), (name, folder)]


def missing(message: str, plugin: Plugin | None) -> str | None:
    """What to say where XLA does not find NVIDIA's compiler; None for another message."""
    for said, part in (("No PTX compilation provider", "ptxas, which makes machine code of PTX,"),
                       ("ptxas too old", "a ptxas for this GPU, which makes machine code of PTX,"),
                       (r"libdevice .*not found", "libdevice, NVIDIA's mathematical functions,")):
        if re.search(said, message):
            return f"{part} is not found, and XLA compiles for no GPU without it: {install_line(plugin)}"
    return None
