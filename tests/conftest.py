"""Says at the head of a run which jaxlib the tests stand on. All else about a run is in pyproject.toml."""

import importlib.metadata
import os

# Tests compile: they neither find what an earlier run left on disk nor leave anything (tests/test_disk_cache.py does,
# in directories of its own).
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"


def pytest_report_header() -> str:
    return f"jaxlib: {importlib.metadata.version('jaxlib')}"
