"""docs/chips.md is what its tool writes."""
import pytest

from tools import chips


@pytest.mark.quick
def test_the_page_is_what_the_tool_writes():
    assert chips.PAGE.read_text("utf-8") == chips.page(), "run: make chips"
