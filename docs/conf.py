"""The settings of the documentation's site, which `make docs` builds (tools/site.py)."""
import tomllib
from pathlib import Path

from sphinx.addnodes import pending_xref

_ROOT = Path(__file__).resolve().parent.parent

project = "hlotrace"
author = "the authors of hlotrace"
version = release = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = ["myst_parser"]
myst_heading_anchors = 4
default_role = "code"
add_module_names = False
toc_object_entries = False
maximum_signature_line_length = 78
python_display_short_literal_types = True
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"hlotrace {version}"
html_static_path = [str(_ROOT / "docs" / "site.css")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False


def _leave_foreign_words(app, doctree):
    """Types that are not hlotrace's are no links; Sphinx would look each up among all names."""
    for node in list(doctree.findall(pending_xref)):
        if node.get("refdomain") == "py" and not node["reftarget"].startswith("hlotrace"):
            node.replace_self(node.children)


def setup(app):
    app.connect("doctree-read", _leave_foreign_words)
