// Search, keys, the buttons above, and the start.

let found = []; // [stage, row] of what matches, in the order of the stages
let at = -1;

function search(text) {
  const wanted = text.trim().toLowerCase();
  found = [];
  at = -1;
  selection.match = nothing.map(() => new Set());
  if (wanted) {
    // A repeated text is looked into once.
    const hit = words.map((each) => each.toLowerCase().includes(wanted));
    const lines = new Set();
    for (const [file, name, source] of data.sources) {
      for (const [number, line] of source) {
        if (`${name}:${number} ${line}`.toLowerCase().includes(wanted)) lines.add(file + ":" + number);
      }
    }
    for (const stage of stages) {
      for (let row = 0; row < stage.count; row++) {
        if (hit[stage.path[row]] || hit[stage.sharding[row]] || hit[stage.argument[row]] || hit[stage.note[row]] ||
            stage.text[row].toLowerCase().includes(wanted) || lines.has(lineKey(stage, row))) {
          selection.match[stage.number].add(row);
          found.push([stage.number, row]);
        }
      }
    }
  }
  byId("matches").textContent = wanted ? found.length.toLocaleString("en") + " rows" : "";
  panes.forEach((pane, i) => {
    const [first] = selection.match[i];
    if (first !== undefined) pane.reveal(first, true);
  });
  redraw();
}

function nextMatch(step) {
  if (!found.length) return;
  at = (at + step + found.length) % found.length;
  byId("matches").textContent = `${(at + 1).toLocaleString("en")} of ${found.length.toLocaleString("en")}`;
  select(...found[at]);
}

function move(step) {
  const pane = panes[active];
  const here = selection.stage === active ? pane.position(selection.row) + step : pane.position(0);
  const next = Math.min(Math.max(here, 0), pane.rows.length - 1);
  if (pane.rows.length) select(active, pane.rows[next]);
}

function otherPane(step) {
  const shown = panes.map((pane, i) => i).filter((i) => !panes[i].root.hidden);
  const next = shown[(shown.indexOf(active) + step + shown.length) % shown.length];
  const kinHere = selection.row >= 0 ? kin(stages[selection.stage], selection.row)[next] : [];
  activate(next);
  if (kinHere.length) select(next, kinHere[0]);
}

function foldAll() {
  const stage = stages[active];
  let any = false;
  for (let i = 0; i < stage.count; i++) any = any || (stage.end[i] > i + 1 && !stage.folded[i] && stage.depth[i] > 0);
  for (let i = 0; i < stage.count; i++) stage.folded[i] = any && stage.end[i] > i + 1 && stage.depth[i] > 0 ? 1 : 0;
  panes[active].refold();
}

const keys = {
  "/": ["search", () => byId("search").focus()],
  j: ["next row", () => move(1)],
  k: ["row above", () => move(-1)],
  Enter: ["fold or unfold", () => selection.row >= 0 && toggle(selection.stage, selection.row)],
  z: ["fold or unfold everything in a stage", foldAll],
  l: ["the stage to the right, at the kin", () => otherPane(1)],
  h: ["the stage to the left", () => otherPane(-1)],
  n: ["next match", () => nextMatch(1)],
  N: ["match before", () => nextMatch(-1)],
  o: ["the operation", () => showTab("operation")],
  s: ["the source", () => showTab("source")],
  g: ["the graph, or the stages", toggleGraph],
  m: ["memory", () => showTab("memory")],
  Escape: ["choose nothing", clear],
  "?": ["these keys", () => byId("help").showModal()],
};
const ALSO = { ArrowDown: "j", ArrowUp: "k", ArrowRight: "l", ArrowLeft: "h", " ": "Enter" };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (event.target === byId("search")) {
    if (event.key === "Escape") { byId("search").value = ""; search(""); byId("search").blur(); }
    if (event.key === "Enter") { nextMatch(event.shiftKey ? -1 : 1); byId("search").blur(); }
    return;
  }
  const key = keys[ALSO[event.key] || event.key];
  if (!key) return;
  event.preventDefault();
  key[1]();
});

let typing = 0;
byId("search").addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => search(event.target.value), 120);
});
byId("graph-button").addEventListener("click", toggleGraph);
byId("help-button").addEventListener("click", () => byId("help").showModal());
byId("help").querySelector("dl").append(...Object.entries(keys).flatMap(([key, [what]]) =>
  [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)]));

// A browser may refuse a page from a file its storage.
function stored(value) {
  try {
    if (value !== undefined) localStorage.setItem("hlotrace-theme", value);
    return localStorage.getItem("hlotrace-theme");
  } catch { return null; }
}
function theme(name) {
  document.documentElement.dataset.theme = name;
  redraw();
}
byId("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  stored(next);
  theme(next);
});

byId("title").textContent = byId("title").title = data.title;
for (const stage of stages) panes.push(new Pane(stage));
byId("panes").append(...panes.map((pane) => pane.root));
byId("stage-buttons").append(...stages.map((stage, i) => {
  const button = element("button", { "aria-pressed": "true" }, stage.name);
  const toggled = () => {
    const hidden = (panes[i].root.hidden = !panes[i].root.hidden);
    panes[i].root.style.display = hidden ? "none" : "";
    button.setAttribute("aria-pressed", String(!hidden));
    redraw();
  };
  button.addEventListener("click", toggled);
  // The sharded text says all that StableHLO says: on most screens it is enough.
  if (stage.name === "StableHLO" && stages.some((other) => other.name === "sharded") && innerWidth < 2000) toggled();
  return button;
}));
tree = buildTree();
showTree();
showTab("operation");
activate(0);
theme(stored() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
requestAnimationFrame(() => requestAnimationFrame(() => {
  document.documentElement.dataset.opened = String(Math.round(performance.now()));
}));
