"""Says at the head of a run which jaxlib the tests stand on. All else about a run is in pyproject.toml."""

import importlib.metadata
import os

# Tests compile: they neither find what an earlier run left on disk nor leave anything (tests/runtime/executables/test_disk_cache.py does,
# in directories of its own).
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"

# Eight CPU devices: arrays and programs may lie over them.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)


def pytest_report_header() -> str:
    return f"jaxlib: {importlib.metadata.version('jaxlib')}"
