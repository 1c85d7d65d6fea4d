"""What a report of a fault should say of where it happened."""
from __future__ import annotations

import platform
import shutil
import subprocess
import sys

import numpy as np

from ..runtime import binding
from ..runtime.devices import client
from ..runtime.devices.plugins import nvidia_gpus

__all__ = ["print_environment_info"]


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of hlotrace, jaxlib, numpy and Python, the devices and the platform; of NVIDIA GPUs
    what `nvidia-smi` says.

    `python -m hlotrace.doctor` says more, and makes no client.

    >>> jax.print_environment_info(return_string=True).split(":")[0]
    'hlotrace'
    """
    kinds = ", ".join(f"{kind}-{client.device_count()}"
                      for kind in sorted({d.device_kind for d in client.devices()}))
    here = sys.modules["hlotrace"]
    lines = [f"hlotrace: {here.__version__}", f"jaxlib: {binding.jaxlib_version}",
             f"numpy:  {np.__version__}", f"python: {sys.version}",
             f"device info: {kinds}, {client.local_device_count()} local devices",
             f"process_count: {client.process_count()}", f"platform: {platform.uname()}"]
    if nvidia_gpus() and (tool := shutil.which("nvidia-smi")):
        said = subprocess.run([tool], capture_output=True, text=True, timeout=60, check=False)
        lines += ["", "$ nvidia-smi", said.stdout or said.stderr]
    if return_string:
        return "\n".join(lines)
    print("\n".join(lines))
    return None
