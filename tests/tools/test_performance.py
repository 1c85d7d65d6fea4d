"""The picture of the page on performance is of the table there."""
import importlib.util

import pytest
from places import ROOT

pytestmark = pytest.mark.quick


def test_every_row_of_the_table_has_ratios():
    spec = importlib.util.spec_from_file_location("performance", ROOT / "tools" / "performance.py")
    performance = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(performance)
    page = "| what | jaxlib 1 | 2 | how |\n|---|---|---|---|\n| `f` | 0.20 (2.1 s, JAX 9.3) to 1.5 | | x |\n| g | 0.5 ¹ | 2.0 | y |\n\n"
    assert performance.ratios(page) == [("f", {"1": (0.2, 1.5)}), ("g", {"1": (0.5, 0.5), "2": (2.0, 2.0)})]
    found = performance.ratios(performance.PAGE.read_text("utf-8"))
    assert len(found) > 10 and all(spans for _, spans in found)
