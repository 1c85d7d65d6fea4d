"""Says at the head of a run which jaxlib the tests stand on. All else about a run is in pyproject.toml."""

import importlib.metadata


def pytest_report_header() -> str:
    return f"jaxlib: {importlib.metadata.version('jaxlib')}"
