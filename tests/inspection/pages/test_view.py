"""The page about a program: complete in one file, safe for any text of the user's, and it works in a browser.
"""
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.inspection.pages.view import view

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
X = jax.ShapeDtypeStruct((8, 8), "float32")
NASTY = "</script><script>alert(1)</script><!--\u2028<b>'\"&"


def program(x):
    with jax.named_scope("first"):
        y = jnp.tanh(x @ x)  # </script><img src=x onerror=alert(1)>
    with jax.named_scope("second"):
        return jax.lax.fori_loop(0, 3, lambda i, c: c * 2.0 + y, y).sum()


def data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.addresses = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]


@pytest.mark.quick
@pytest.mark.parametrize("make", [
    lambda: jax.make_jaxpr(program)(X),
    lambda: jax.jit(program).lower(X),
])
def test_a_page_is_one_file_that_the_users_text_does_not_break(make, tmp_path):
    view = make().view(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page == view.html
    tags = Tags(page)
    assert tags.tags.count("script") == 2 and not tags.addresses and "img" not in tags.tags
    assert "default-src 'none'" in page
    lines = [text for _, _, source in data(page)["sources"] for _, text in source]
    assert "        y = jnp.tanh(x @ x)  # </script><img src=x onerror=alert(1)>" in lines


@pytest.mark.quick
def test_names_of_the_users_are_text():
    def fun(x):
        with jax.named_scope(NASTY):
            return x + 1
    fun.__name__ = NASTY
    page = jax.make_jaxpr(fun)(X).view().html
    assert page.count("<script") == 2 and page.count("</script") == 2 and "<!--" not in page
    assert data(page)["title"] == NASTY
    assert any(NASTY in word for word in data(page)["words"])


@pytest.mark.quick
def test_a_notebook_shows_it_in_a_frame():
    view = jax.make_jaxpr(program)(X).view()
    shown = view._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.count("<") == 2
    assert html.unescape(re.search(r'srcdoc="(.*?)" style', shown, re.S)[1]) == view.html


@pytest.mark.quick
def test_a_stage_that_cannot_be_read_says_why():
    from hlotrace.inspection.pages.view import view
    jaxpr = jax.make_jaxpr(program)(X)
    stage = view("f", jaxpr=jaxpr, stablehlo="nothing").document.stages[1]
    assert stage.rows[0].op == "not shown" and "line 1, column 1" in stage.rows[0].text


def test_a_compiled_program_has_memory_and_its_optimized_text():
    document = jax.jit(program).lower(X).compile().view().document
    assert [stage.name for stage in document.stages] == ["jaxpr", "StableHLO", "optimized"]
    assert document.memory_of == "optimized" and document.totals["argument"] == 256
    assert 2 * 8**3 in [row.flops for row in document.stages[2].rows]


def in_browser(page, script, folder):
    """What the body of a function, run in the page, returns."""
    path = folder / "page.html"
    path.write_text(page + f"""<script>setTimeout(() => {{
      let result;
      try {{ result = (() => {{ {script} }})(); }} catch (error) {{ result = String(error.stack); }}
      document.documentElement.textContent = JSON.stringify(result);
    }}, 100);</script>""", "utf-8")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
         "--window-size=1600,900", "--virtual-time-budget=2000", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120)
    return json.loads(html.unescape(re.search(r"<html[^>]*>(.*)</html>", done.stdout, re.S)[1]))


LIT = """
  const lit = (kind) => panes.map((pane) => [...pane.space.querySelectorAll(".row." + kind)]
    .filter((row) => row.style.display !== "none").map((row) => row.querySelector(".op").textContent));
  const drawn = () => panes.forEach((pane) => pane.draw());
  const press = (key) => { document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); drawn(); };
"""


@browser
def test_the_page_in_a_browser(tmp_path):
    """Kin, the tree, search, keys, folds and the tabs, in one start of the browser."""
    page = jax.jit(program).lower(X).view().html
    found = in_browser(page, LIT + """
      const out = {};
      const product = stages[0].text.findIndex((text) => text.includes("dot_general"));
      select(0, product); drawn();
      out.kin = lit("kin");
      out.details = byId("tab").textContent;
      out.tree = [...document.querySelectorAll("#tree .name")].map((name) => name.textContent);
      press("j"); out.below = stages[0].text[selection.row].includes("tanh");
      press("k"); out.back = selection.row === product;
      press("l"); out.other = active;
      press("Escape"); out.nothing = lit("kin");
      search("TANH"); drawn(); out.matches = lit("match"); out.count = byId("matches").textContent;
      press("n"); out.next = [selection.stage, selection.row === product];
      const loop = stages[0].holds.findIndex((held) => words[held] === "loop");
      const before = panes[0].rows.length;
      select(0, loop); press("Enter"); out.folded = before - panes[0].rows.length;
      press("Enter"); out.unfolded = before - panes[0].rows.length;
      press("s"); out.source = byId("tab").textContent.includes("onerror=alert(1)>");
      out.images = document.querySelectorAll("img").length;
      chooseLine(lineKey(stages[0], product)); drawn(); out.line = lit("kin");
      press("m"); out.memory = byId("tab").querySelectorAll("svg path").length;
      byId("theme").click(); const one = document.documentElement.dataset.theme;
      byId("theme").click(); out.themes = [one, document.documentElement.dataset.theme].sort();
      return out;
    """, tmp_path)
    assert isinstance(found, dict), found
    assert found["kin"] == [["dot_general"], ["dot_general"]]
    assert "1,024" in found["details"] and "first/dot_general" in found["details"]
    assert found["tree"][:2] == ["program", "first"] and "scan × 3" in found["tree"]
    assert (found["below"], found["back"], found["other"]) == (True, True, 1)
    assert found["nothing"] == [[], []]
    # the line that says tanh made the product too
    assert {"dot_general", "tanh"} <= set(found["matches"][1]) and found["next"] == [0, True]
    assert found["folded"] > 0 and found["unfolded"] == 0
    assert found["source"] and found["images"] == 0
    assert [set(ops) >= {"dot_general", "tanh"} for ops in found["line"]] == [True, True]
    assert found["memory"] == 1 and found["themes"] == ["dark", "light"]


@browser
def test_a_long_program_puts_few_rows_into_the_document(tmp_path):
    def long(x):
        for _ in range(2500):
            x = jnp.sin(x) + 1.0
        return x
    found = in_browser(jax.make_jaxpr(long)(X).view().html, LIT + """
      const pane = panes[0];
      const out = { rows: stages[0].count, drawn: pane.pool.length };
      pane.scroll.scrollTop = 1e9; pane.draw();
      out.last = [...pane.space.querySelectorAll(".row")].some((row) => row.textContent.includes("return"));
      out.still = pane.pool.length;
      return out;
    """, tmp_path)
    assert found["rows"] == 5002
    assert found["drawn"] < 80 and found["still"] < 80 and found["last"]


@browser
def test_the_graph_opens_from_blocks_to_operations(tmp_path):
    def blocks(x):
        for name in ("one", "two"):
            with jax.named_scope(name):
                x = jnp.tanh(x @ x)
        return x.sum()
    found = in_browser(jax.make_jaxpr(blocks)(X).view().html, """
      const names = () => [...document.querySelectorAll("svg.graph .part .name")].map((text) => text.textContent);
      const edges = () => document.querySelectorAll("svg.graph .edge").length;
      byId("graph-button").click();
      const out = { names: names(), edges: edges(), hidden: byId("panes").style.display };
      document.querySelector("svg.graph .part.block").dispatchEvent(new MouseEvent("dblclick"));
      out.inside = names(); out.inner = edges();
      document.querySelector("svg.graph .part").dispatchEvent(new MouseEvent("click"));
      out.chosen = stages[0].text[selection.row];
      byId("graph-button").click(); out.shown = byId("panes").style.display;
      return out;
    """, tmp_path)
    assert isinstance(found, dict), found
    assert sorted(found["names"]) == ["one", "reduce_sum", "two"] and found["edges"] == 2
    assert found["inside"] == ["dot_general", "tanh"] and found["inner"] == 1
    assert "dot_general" in found["chosen"] and (found["hidden"], found["shown"]) == ("none", "")


@browser
def test_what_sends_the_most_is_the_first_collective(tmp_path):
    mesh = jax.sharding.Mesh(jax.devices()[:2], "x")
    split, whole = (jax.sharding.NamedSharding(mesh, spec) for spec in (jax.P("x"), jax.P()))
    x = jax.ShapeDtypeStruct((8, 64), "float32", sharding=split)
    page = jax.jit(lambda x: (jax.lax.with_sharding_constraint(x[:, :1], whole), x.sum(0)),
                   out_shardings=whole).lower(x).compile().view()
    found = in_browser(page.html, """
      showTab("mesh");
      const bytes = [...document.querySelectorAll("#tab tbody tr")].map((row) => row.children[2].textContent);
      document.querySelector("#tab tbody tr").click();
      return { bytes, kind: document.querySelector("#tab tr.chosen").children[0].textContent };
    """, tmp_path)
    assert isinstance(found, dict), found
    assert found == {"bytes": ["256 B", "32 B"], "kind": "all-reduce"}


def test_a_compiled_program_that_was_read_has_its_optimized_text():
    from hlotrace.experimental import serialize_executable
    compiled = jax.jit(program).lower(X).compile()
    read = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    assert [stage.name for stage in read.view().document.stages] == ["optimized"]


TIMED = LIT + """
  const rows = (stage) => stages[stage].seconds.reduce((sum, seconds) => sum + seconds, 0);
  return {
    sums: stages.map((_, i) => rows(i)), tree: tree.seconds, run: data.seconds,
    column: panes.map((pane) => pane.root.querySelector(".head .time").textContent),
    loop: stages.map((stage, s) => [...stage.total.keys()].filter((row) => word(stage, "holds", row) === "loop")
      .map((row) => stage.total[row])[0]),
    nodes: [...document.querySelectorAll("#tree .node")].map((node) => node.textContent.trim()),
    lines: (showTab("source"), [...document.querySelectorAll("#tab .cost")].filter((cell) => cell.textContent).length) };
"""


@browser
def test_measured_time_is_in_every_stage_the_tree_and_the_source(tmp_path):
    profile = jax.profile(program, runs=2)(jnp.ones((8, 8)))
    found = in_browser(profile.view().html, TIMED, tmp_path)
    measured = sum(op.seconds for op in profile.operations)
    assert found["run"] == profile.seconds and found["column"] == ["time"] * 3
    assert found["sums"] + [found["tree"]] == pytest.approx([measured] * 4)
    # a small one may be one kernel of XLA
    assert all(0 < seconds <= measured for seconds in found["loop"][:2])
    assert any(re.fullmatch(r"first\d.*s", node) for node in found["nodes"]) and found["lines"] >= 2


def test_a_page_without_a_profile_has_no_times():
    assert "seconds" not in data(jax.jit(program).lower(X).compile().view().html)["stages"][-1]["columns"]


@pytest.mark.quick
def test_what_is_no_path_and_no_profile_is_refused():
    lowered = jax.jit(program).lower(X)
    with pytest.raises(TypeError, match="path=3 is not the path of a file"):
        lowered.view(3)
    with pytest.raises(TypeError, match="profile=3 is not what hlotrace.profile"):
        view(title="program", profile=3)
