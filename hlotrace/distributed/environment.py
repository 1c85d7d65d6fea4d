"""What a report of a fault should say of where it happened."""
from __future__ import annotations

import platform
import sys

import numpy as np

from ..runtime import binding
from ..runtime.devices import client

__all__ = ["print_environment_info"]


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of hlotrace, jaxlib, numpy and Python, the devices and the platform.

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
    if return_string:
        return "\n".join(lines)
    print("\n".join(lines))
    return None
