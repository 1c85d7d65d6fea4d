"""The documentation's site: every page is in its contents, links lead where they led, every public name has an entry."""
import re

import pytest
from pages import PAGES
from places import ROOT

import hlotrace.numpy as jnp
from tools import site

pytestmark = pytest.mark.quick


def test_every_page_is_in_the_contents():
    listed = [page for pages in site.CONTENTS.values() for page in pages if page != "reference/index"]
    assert sorted([*listed, "README.md"]) == sorted(PAGES)


@pytest.mark.parametrize(("page", "text", "there"), [
    ("README.md", "[a](docs/errors.md)", "[a](/errors.md)"),
    ("docs/errors.md", "[a](errors/shapes.md#products)", "[a](/errors/shapes.md#products)"),
    ("docs/inside/tests.md", "[a](../../ARCHITECTURE.md)", "[a](/architecture.md)"),
    ("docs/inside/tests.md", "[a](../../examples)", '<a href="../../../../examples">a</a>'),
    ("docs/viewer.md", "![a](viewer.png)", "![a](/viewer.png)"),
    ("README.md", "[a](LICENSE)", '<a href="../../../LICENSE">a</a>'),
    ("README.md", "[a](https://x.y/z), [b](#c)", "[a](https://x.y/z), [b](#c)"),
    ("README.md", "```sh\nx[a](b)\n```", "```sh\nx[a](b)\n```")])
def test_links_of_pages_are_those_of_the_site(page, text, there, monkeypatch):
    monkeypatch.delenv("HLOTRACE_SOURCE_URL", raising=False)
    assert site.linked(page, text) == there


def test_links_to_the_repository_take_the_address_that_is_set(monkeypatch):
    monkeypatch.setenv("HLOTRACE_SOURCE_URL", "https://host/project/blob/v1/")
    assert site.source_link("reference/hlotrace", "hlotrace/api/jit.py", 7) == "https://host/project/blob/v1/hlotrace/api/jit.py#L7"


def test_a_link_that_leads_nowhere_ends_the_build():
    with pytest.raises(SystemExit, match="docs/errors.md: a link leads to nowhere.md"):
        site.linked("docs/errors.md", "[a](nowhere.md)")


@pytest.fixture(scope="module")
def reference():
    pytest.importorskip("sphinx")
    from tools.reference import Reference
    return Reference(lambda page, path, line: path)


def test_every_public_name_has_one_entry_and_its_source(reference):
    entries, pages = [], reference.pages()
    for text in pages.values():
        module, = set(re.findall(r"^\.\. py:(?:current)?module:: ([\w.]+)$", text, re.M)) or {""}
        entries += [f"{module}.{name}" for name in re.findall(r"^\.\. py:(?:function|class|exception|data):: (\w+)", text, re.M)]
    assert sorted(set(reference.known) - set(entries)) == [] and len(entries) == len(set(entries))
    sources = set(re.findall(r"^ +`Source: (\S+)", "\n".join(pages.values()), re.M))
    assert len(sources) > 100 and all((ROOT / path).exists() for path in sources)


def test_members_of_a_class_are_described_once(reference):
    for page, text in reference.pages().items():
        for entry in re.split(r"^\.\. py:", text, flags=re.M):
            members = re.findall(r"^ +\.\. (?:py:)?(?:attribute|property|method):: ([\w\\]+)", entry, re.M)
            assert len(members) == len(set(members)), (page, entry[:50], members)


@pytest.mark.parametrize(("doc", "lines"), [
    ("Give `x` and `lax.scan(f)`.", ["Give ``x`` and :py:obj:`lax.scan(f) <hlotrace.lax.scan>`."]),
    ("Of `*args`, x_1 and a*b.", [r"Of ``*args``, x\_1 and a\*b."]),
    ("Text.\n>>> f(1)\n2", ["Text.", "", ">>> f(1)", "2"]),
    ("Of x.\n\n    Args:\n        x: what `f` takes\n", ["Of x.", "", ":param x: what ``f`` takes", ""])])
def test_docstrings_become_restructured_text(doc, lines, reference):
    assert reference.text.lines(doc) == lines


def test_types_of_signatures_are_links(reference):
    assert reference.signatures("hlotrace.numpy", "sin", jnp.sin) == [
        "(x: ~hlotrace.typing.ArrayLike, out: None=None, where: None=None) -> ~hlotrace.Array"]
