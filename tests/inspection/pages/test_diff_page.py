"""The page of two programs: lines beside their counterparts, what is the same folded away, text of the user's
as text."""
import pytest

from hlotrace.inspection.matching import Change
from hlotrace.inspection.pages.diff_page import diff_page

pytestmark = pytest.mark.quick


def lines(marks):
    return [Change(mark, f"{mark}{i}") for i, mark in enumerate(marks)]


@pytest.mark.parametrize(("marks", "rows"), [
    ("-+", ["-0|+1"]), ("--+", ["-0|+2", "-1|"]), ("+", ["|+0"]), ("-+-+", ["-0|+1", "-2|+3"]),
    ("- +", ["-0|", " 1| 1", "|+2"])])
def test_lines_are_beside_their_counterparts(marks, rows):
    page = diff_page(("f", "g"), lines(marks))
    cells = [row.split("</td>")[:2] for row in page.split("<tr><td")[1:]]
    assert ["|".join(cell.rpartition(">")[2] for cell in pair) for pair in cells] == rows


def test_long_stretches_that_are_the_same_are_folded():
    page = diff_page(("f", "g"), lines("-" + " " * 30 + "+"))
    assert "22 lines that are the same" in page and "2 lines of 32 differ<" in page
    assert "no lines of 3 differ" in diff_page(("f", "g"), lines("   "))


def test_names_of_the_users_are_text():
    page = diff_page(("<b>f", "g"), [Change("-", "<script>alert(1)</script>")])
    assert "<script" not in page and "<b>f" not in page
