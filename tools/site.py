"""The documentation's site: the pages of docs/, those at the root of the repository, and the reference, built by Sphinx.

    python tools/site.py            into build/site/html; a warning is an error, and so is a link that leads nowhere

It needs the extra `docs`.  Pages are Markdown that reads in the repository as it does on the site; their links are made those
of the site here.  A link to a file that is no page leads to the repository: to the address in HLOTRACE_SOURCE_URL, or, without
one, to the files of this checkout.
"""
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
SOURCE, HTML = SITE / "source", SITE / "html"

# The contents: every page of the repository, under the heading that it has on the site.
CONTENTS = {
    "Tutorials": [*(f"docs/learn/{name}.md" for name in """start transformations random devices processes from_numpy
                    from_pytorch""".split()), "docs/coming_from_jax.md", "docs/learn/flax.md", "docs/inside_a_program.md",
                  "docs/viewer.md", "docs/not_here.md", "docs/plan.md", "docs/profile.md", "docs/chips.md", "docs/primitives.md", "docs/kernels.md",
                  "docs/tpu_kernels.md"],
    "Errors": ["docs/errors.md", *(f"docs/errors/{name}.md" for name in
               "tracers shapes dtypes indices loops keys devices running".split())],
    "Guides": [*(f"docs/{name}.md" for name in """devices many_devices many_processes compiling
               performance libraries""".split())],
    "Reference": ["docs/modules.md", "docs/options.md", "reference/index", "docs/differences.md", "docs/glossary.md", "CHANGELOG.md"],
    "The code": ["ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", *(f"docs/inside/{name}.md" for name in
                 "programs transformations lowering running devices functions tests site".split())],
}


def docname(path):
    """Where a page of the repository is on the site."""
    return {"README.md": "index"}.get(path, path.removeprefix("docs/").removesuffix(".md").lower())


def source_link(page, path, line=None):
    """The address of a file of the repository, for a page of the site."""
    base = os.environ.get("HLOTRACE_SOURCE_URL") or "../" * page.count("/") + os.path.relpath(ROOT, HTML)
    return f"{base.rstrip('/')}/{path}{f'#L{line}' if line else ''}"


def linked(path, text):
    """A page with its links as the site has them."""
    pages = {page for listed in CONTENTS.values() for page in listed} | {"README.md"}
    here = docname(path)

    def link(match):
        image, words, target, anchor = match.groups()
        if re.match(r"\w+:", target) or not target:
            return match[0]
        inside = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if inside in pages:
            return f"[{words}](/{docname(inside)}.md{anchor})"
        if not (ROOT / inside).exists():
            sys.exit(f"{path}: a link leads to {target}, which is not there")
        if image:
            return f"![{words}](/{inside.removeprefix('docs/')})"
        return f'<a href="{source_link(here, inside)}">{words}</a>'

    fence = re.compile(r"^( *```.*?^ *```$)", re.M | re.S)
    return "".join(piece if i % 2 else re.sub(r"(!?)\[([^\]]+)\]\(([^)#\s]*)((?:#[^)\s]*)?)\)", link, piece)
                   for i, piece in enumerate(fence.split(text)))


def contents():
    """The tables of contents, at the end of the first page."""
    return "\n".join(f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n" + "\n".join(map(docname, listed)) + "\n```\n"
                     for heading, listed in CONTENTS.items())


def write():
    """Write the sources of the site; returns the names of those that changed."""
    texts = {docname(page) + ".md": linked(page, (ROOT / page).read_text("utf-8"))
             for listed in ({"": ["README.md"]} | CONTENTS).values() for page in listed if page.endswith(".md")}
    texts["index.md"] += contents()
    from tools.reference import Reference
    texts |= {f"{page}.rst": text for page, text in Reference(source_link).pages().items()}
    left = {path for path in SOURCE.rglob("*") if path.is_file()} if SOURCE.exists() else set()
    changed = set()
    for name, text in texts.items():
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            changed.add(name)
        left.discard(path)
    for image in [*(ROOT / "docs").rglob("*.png"), *(ROOT / "docs").rglob("*.svg")]:
        shutil.copy(image, SOURCE / image.relative_to(ROOT / "docs"))
        left.discard(SOURCE / image.relative_to(ROOT / "docs"))
    for path in left:
        path.unlink()
    return changed


def main():
    from sphinx.cmd.build import build_main
    everything = ["-a"] if "index.md" in write() else []        # every page shows the contents, which are there
    return build_main([*everything, "-q", "-W", "--keep-going", "-j", "auto", "-c", str(ROOT / "docs"),
                       "-d", str(SITE / "doctrees"), str(SOURCE), str(HTML)])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
