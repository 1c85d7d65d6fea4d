"""A program as a page: one HTML file that needs no network, for a browser or a notebook."""
import html
import importlib.resources
import json
import os
from pathlib import Path

from ...core.source_info import short
from ..communication import collectives
from . import live_memory
from .document import Document, Row, Stage, ends_at
from .hlo_rows import hlo_rows
from .jaxpr_rows import jaxpr_rows
from .stablehlo_rows import stablehlo_rows

_PAGE = importlib.resources.files(__package__) / "page"
_STYLES = ("page.css",)
_SCRIPTS = ("dagre.min.js", "program.js", "panes.js", "side.js", "graph.js", "keys.js")
_WORDS = ("op", "types", "holds", "sharding", "path", "argument", "note")     # columns of repeated texts


class View:
    """A page about a program: `save` writes it, a notebook shows it, `html` is its text.

    `document` holds what it shows, as rows.
    """

    def __init__(self, document):
        self.document = document
        self._html = None

    @property
    def html(self):
        """The page."""
        if self._html is None:
            self._html = _page(self.document)
        return self._html

    def save(self, path):
        """Writes the page into a file, and returns its path."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"view: path={path!r:.60} is not the path of a file to write")
        path = Path(os.fsdecode(path))
        path.write_text(self.html, "utf-8")
        return path

    def _repr_html_(self):
        """In a frame of its own, so that neither its styles nor its keys meet the notebook's."""
        return (f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:720px;border:0" '
                'sandbox="allow-scripts"></iframe>')

    def __repr__(self):
        stages = ", ".join(f"{len(s.rows)} rows of {s.name}" for s in self.document.stages)
        return f"View({self.document.title}: {stages})"


def view(title, *, jaxpr=None, stablehlo=None, mesh=None, optimized=None, totals=None, profile=None,
         path=None):
    """A View of the forms of a program that are given.

    Args:
        stablehlo: its text, with locations.
        mesh: the Mesh that it is divided over, for Shardy's propagation and the axes of collectives.
        optimized: the text of its optimized HLO.
        totals: {name: bytes}, what the compiler says of its memory.
        profile: a Profile of it, as `hlotrace.profile` gives it.
        path: where to save the page, if anywhere.
    """
    if profile is not None and not hasattr(profile, "operations"):
        raise TypeError(f"view: profile={profile!r:.60} is not what hlotrace.profile(f)(*args) gives")
    stages, found = [], []
    if jaxpr is not None:
        stages.append(Stage("jaxpr", jaxpr_rows(jaxpr)))
    if stablehlo is not None:
        stages.append(_stage("StableHLO", stablehlo_rows, stablehlo))
        if mesh is not None:
            stages.append(_stage("sharded", stablehlo_rows, stablehlo, True))
    if optimized is not None:
        found = collectives(optimized, mesh) if mesh is not None else []
        stages.append(Stage("optimized", hlo_rows(optimized, found, profile)))
    of = _with_one_order(stages)
    memory = live_memory.usage(of.rows, *_main(of.rows))
    result = View(Document(title, stages, dict(mesh.shape) if mesh is not None else {}, found,
                           of.name, memory, totals or {}, profile.seconds if profile else 0.0))
    if path is not None:
        result.save(path)
    return result


def _with_one_order(stages):
    """The stage whose rows run in their order: the last, unless it is in pieces or of text that only says
    what depends on what."""
    last = stages[-1]
    return last if last.name == "optimized" and last.rows and last.rows[0].op != "module" else stages[0]


def _main(rows):
    """From where to where the rows of the program itself are."""
    return (1, ends_at(rows, 0)) if rows and rows[0].op == "function" else (0, len(rows))


def _stage(name, make, *args):
    try:
        return Stage(name, make(*args))
    except ValueError as error:     # what jaxlib's parser or Shardy does not take is said where it would be
        return Stage(name, [Row(0, "not shown", str(error), note="this stage could not be read")])


def _page(document):
    data = json.dumps(_data(document), separators=(",", ":"))
    parts = {"TITLE": html.escape(document.title), "DATA": _script_safe(data),
             "STYLES": "".join(map(_text, _STYLES)), "SCRIPTS": "\n".join(map(_text, _SCRIPTS))}
    pieces = _text("page.html").split("@@")
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _text(name):
    return (_PAGE / name).read_text("utf-8")


def _script_safe(text):
    """JSON that ends no script: what is in quotes there may be any text of the user's."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(document):
    """What the page's scripts read: columns instead of rows, and a text that many have once."""
    words = {}
    word = lambda text: words.setdefault(text, len(words))
    stages = []
    for stage in document.stages:
        rows = stage.rows
        columns = {name: [word(getattr(row, name)) for row in rows] for name in _WORDS}
        columns |= {name: [getattr(row, name) for row in rows]
                    for name in ("depth", "text", "flops", "bytes", "size", "operands")}
        if document.seconds:
            columns["seconds"] = [row.seconds or 0 for row in rows]
        columns["file"] = [word(row.source[0]) if row.source else -1 for row in rows]
        columns["line"] = [row.source[1] if row.source else 0 for row in rows]
        stages.append({"name": stage.name, "columns": columns})
    return {
        "title": document.title, "stages": stages, "mesh": list(document.mesh.items()),
        "sources": [[word(file), short(file), list(lines.items())]
                    for file, lines in document.sources().items()],
        "collectives": [[c.kind, c.name, c.shape, c.bytes, c.axes, c.trips, c.where or "", c.op or ""]
                        for c in document.collectives],
        "memory": [document.memory_of, *document.memory], "totals": document.totals,
        "seconds": document.seconds, "words": list(words)}
