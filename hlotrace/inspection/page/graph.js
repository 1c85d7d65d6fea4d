// The graph: blocks of the program and what flows between them; a block opens into its own, down to operations.

const MOST_NODES = 350;
let graphNode = null; // of the tree: what is drawn inside of
let zoom = null; // the part of the picture in sight

// The nodes inside of a module: its blocks, its operations, and where those are too many, lines of the source; of
// the rows in `within` alone, if that is given.
function graphParts(node, within) {
  const stage = stages[0];
  const parts = [];
  const add = (name, kind, rows, inner) => parts.push({ name, kind, rows, inner });
  for (const inner of node.children.values()) {
    // Derivatives are in the scopes of what they are of, and far behind it: a block of their own.
    const rows = allRows(inner).concat(inner.holder === undefined ? [] : [inner.holder]).sort((a, b) => a - b)
      .filter((row) => !within || within.has(row));
    let run = [];
    let count = 0;
    rows.forEach((row, i) => {
      if (i && row - rows[i - 1] > Math.max(rows.length, 24)) {
        add(inner.name + (count++ ? ` (${count})` : ""), "block", run, inner);
        run = [];
      }
      run.push(row);
    });
    if (run.length) add(inner.name + (count ? ` (${count + 1})` : ""), inner.kind === "loop" ? "loop" : "block", run, inner);
  }
  const holders = new Set([...node.children.values()].map((inner) => inner.holder));
  const own = node.rows.filter((row) => !holders.has(row) && !["argument", "return"].includes(word(stage, "op", row)) &&
    (!within || within.has(row)));
  if (parts.length + own.length <= MOST_NODES) {
    for (const row of own) add(word(stage, "op", row), "operation", [row]);
  } else {
    let line = null;
    for (const row of own) {
      if (line !== null && place(stage, row) === line) parts.at(-1).rows.push(row);
      else add((line = place(stage, row)) || word(stage, "op", row), "line", [row]);
    }
  }
  return parts;
}

function layout(parts) {
  const stage = stages[0];
  const partOf = new Map();
  parts.forEach((part, i) => { for (const row of part.rows) partOf.set(row, i); });
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  parts.forEach((part, i) => {
    part.flops = part.rows.reduce((sum, row) => sum + (stage.end[row] === row + 1 ? stage.flops[row] || 0 : 0), 0);
    if (part.inner && part.inner.holder !== undefined) part.flops = stage.flops[part.inner.holder] || 0;
    const types = part.kind === "operation" ? word(stage, "types", part.rows[0]) : part.rows.length + " rows";
    part.below = [types, part.flops ? flopsText(part.flops) : ""].filter(Boolean).join(" \u00b7 ");
    const longest = Math.max(part.name.length * 7.6, Math.min(part.below.length, 40) * 6);
    graph.setNode(String(i), { width: longest + 22, height: 38 });
  });
  const edges = new Map();
  parts.forEach((part, i) => {
    for (const row of part.rows) {
      for (const operand of stage.operands[row]) {
        const from = partOf.get(operand);
        if (from === undefined || from === i) continue;
        const key = from + " " + i;
        edges.set(key, Math.max(edges.get(key) || 0, stage.size[operand]));
      }
    }
  });
  for (const [key, size] of edges) graph.setEdge(...key.split(" "), { size });
  dagre.layout(graph);
  return graph;
}

const SVG = "http://www.w3.org/2000/svg";
function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawGraph(node, within) {
  graphNode = node;
  const parts = graphParts(node, within);
  const crumbs = [];
  for (let up = node; up; up = up.above) crumbs.unshift(up);
  const head = element("div", { class: "head" }, ...crumbs.flatMap((each, i) => [i ? " \u203a " : "",
    element("span", { class: each === node ? "" : "link inline", onclick: () => drawGraph(each) }, each.name)]));
  const shown = parts.slice(0, MOST_NODES);
  if (shown.length < parts.length) head.append(element("span", { class: "quiet" }, `  the first ${MOST_NODES} of ${parts.length}`));
  const graph = layout(shown);
  const { width } = graph.graph();
  const picture = shape("svg", { class: "graph", role: "img" });
  picture.append(shape("defs", {}, shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8,
    markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, shape("path", { d: "M0,0L8,4L0,8Z", class: "arrow" }))));
  for (const edge of graph.edges()) {
    const { points, size } = graph.edge(edge);
    const line = shape("path", { d: "M" + points.map((p) => `${p.x},${p.y}`).join("L"), class: "edge", "marker-end": "url(#arrow)",
      "stroke-width": 1 + Math.min(3, Math.log10(size + 1) / 3) });
    line.append(shape("title", {}, bytesText(size)));
    picture.append(line);
  }
  shown.forEach((part, i) => {
    const { x, y, width: w, height: h } = graph.node(String(i));
    const opens = part.inner || part.kind === "line";
    const group = shape("g", { class: "part " + part.kind, transform: `translate(${x - w / 2},${y - h / 2})` },
      shape("rect", { width: w, height: h, rx: part.kind === "operation" ? 3 : 9 }),
      shape("text", { x: w / 2, y: 16, class: "name" }, part.name),
      shape("text", { x: w / 2, y: 30, class: "below" }, part.below.slice(0, 40)),
      shape("title", {}, part.kind === "operation" ? stages[0].text[part.rows[0]].slice(0, 500)
        : `${part.name}: ${part.rows.length} rows${opens && part.inner ? "; a double click opens it" : ""}`));
    group.addEventListener("click", () => choosePart(part));
    group.addEventListener("dblclick", () => part.inner && drawGraph(part.inner, new Set(part.rows)));
    picture.append(group);
  });
  byId("graph").replaceChildren(head, element("div", { class: "body" }, picture));
  const box = byId("graph").lastChild.getBoundingClientRect();
  // From its top: as large as it is where it fits, and never too small to read.
  const scale = Math.max(0.7, Math.min(1, box.width / Math.max(width, 1)));
  const top = shown.map((_, i) => graph.node(String(i))).reduce((a, b) => (b.y < a.y ? b : a), { x: width / 2, y: 1e9 });
  const middle = width * scale <= box.width ? width / 2 : top.x;
  zoom = { x: middle - box.width / scale / 2, y: 0, scale, picture, box };
  aim();
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    const by = Math.exp(-event.deltaY / 500);
    const [px, py] = [event.clientX - zoom.box.left, event.clientY - zoom.box.top];
    zoom.x += px / zoom.scale - px / (zoom.scale * by);
    zoom.y += py / zoom.scale - py / (zoom.scale * by);
    zoom.scale *= by;
    aim();
  }, { passive: false });
  picture.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    zoom.x -= event.movementX / zoom.scale;
    zoom.y -= event.movementY / zoom.scale;
    aim();
  });
}

function aim() {
  const { x, y, scale, picture, box } = zoom;
  picture.setAttribute("viewBox", `${x} ${y} ${Math.max(box.width, 1) / scale} ${Math.max(box.height, 1) / scale}`);
}

// Lights the rows of a part, and says what its first operation is.
function choosePart(part) {
  if (part.kind === "operation") select(0, part.rows[0]);
  else if (part.inner) chooseNode(part.inner);
}

function toggleGraph() {
  const shown = byId("graph").hidden;
  byId("graph").hidden = !shown;
  byId("panes").style.display = shown ? "none" : "";
  byId("graph-button").setAttribute("aria-pressed", String(shown));
  if (shown) drawGraph(chosenNode && chosenNode.children.size ? chosenNode : graphNode || tree);
  else panes.forEach((pane) => pane.draw());
}
