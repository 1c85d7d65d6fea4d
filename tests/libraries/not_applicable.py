"""A plugin of pytest, for tools/libraries.py: tests that table.toml calls not applicable are skipped, with its reason."""
import os
import re
import tomllib
from pathlib import Path

import pytest

LIBRARY = tomllib.loads(Path(__file__).with_name("table.toml").read_text())[os.environ["HLOTRACE_LIBRARY"]]
RULES = LIBRARY.get("not_applicable", [])


def pytest_ignore_collect(collection_path):
    return True if any(collection_path.match(name) for rule in RULES for name in rule.get("files", [])) else None


def pytest_collection_modifyitems(items):
    for item in items:
        for rule in RULES:
            if any(re.search(pattern, item.nodeid) for pattern in rule.get("tests", [])):
                item.add_marker(pytest.mark.skip(reason=rule["reason"]))
