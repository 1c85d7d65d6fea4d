// The tree of modules at the left, and at the right what is said of an operation, the source, memory, the mesh.

// --- the tree: named scopes, functions and loops of the first stage

function buildTree() {
  const stage = stages[0];
  const root = { name: data.title, children: new Map(), rows: [], flops: 0, kind: "", folded: false };
  const nodeOf = new Map([[-1, root]]);
  const scopes = new Map([[-1, []]]);
  const child = (node, name, kind, row) => {
    const key = row === undefined ? name : name + " " + row;
    if (!node.children.has(key)) {
      node.children.set(key, { name, kind, children: new Map(), rows: [], flops: 0, folded: false, above: node });
    }
    return node.children.get(key);
  };
  for (let row = 0; row < stage.count; row++) {
    const parent = stage.parent[row];
    let node = nodeOf.get(parent);
    let path = word(stage, "path", row).split("/").slice(0, -1);
    const outer = scopes.get(parent);
    const own = path[0];
    path = path.slice(1);
    if (outer.own === own) {
      let shared = 0;
      while (shared < outer.length && outer[shared] === path[shared]) shared++;
      path.slice(shared).forEach((name) => { node = child(node, name, "scope"); });
    } else {
      path.forEach((name) => { node = child(node, name, "scope"); });
    }
    const held = word(stage, "holds", row);
    if (held && held !== "fusion" && stage.end[row] > row + 1) {
      const note = word(stage, "note", row);
      const named = held === "block" || stage.name !== "jaxpr" ? word(stage, "op", row) : heldName(stage, row);
      const inner = child(node, note.endsWith("times") ? named + " \u00d7 " + parseInt(note, 10) : named, held, row);
      inner.holder = row;
      nodeOf.set(row, inner);
      const inside = word(stage, "path", row) ? path : outer;
      scopes.set(row, Object.assign([...inside], { own: held === "function" ? undefined : own || outer.own }));
    } else {
      nodeOf.set(row, node);
      scopes.set(row, outer);
    }
    node.rows.push(row);
    if (parent === -1 || stages[0].holds[row] !== undefined) node.flops += stage.flops[row] || 0;
  }
  total(root);
  return root;
}

// jit[jaxpr=block ...] is the function `block`.
function heldName(stage, row) {
  const named = stage.text[row].match(/\bname=([\w<>.]+)/);
  return named ? named[1] : word(stage, "op", row);
}

function total(node) {
  node.count = node.rows.length;
  node.seconds = node.rows.reduce((sum, row) => sum + (data.seconds ? stages[0].seconds[row] : 0), 0);
  for (const inner of node.children.values()) {
    total(inner);
    node.count += inner.count;
    node.seconds += inner.seconds;
    // What a holder costs is in its own row, which is one of this node's.
    if (inner.holder === undefined) node.flops += inner.flops;
    else inner.flops = stages[0].flops[inner.holder] || 0;
  }
}

const allRows = (node, rows = []) => {
  for (const row of node.rows) rows.push(row);
  for (const inner of node.children.values()) allRows(inner, rows);
  return rows;
};

let tree = null;
let chosenNode = null;

function showTree() {
  const list = [];
  const visit = (node, depth) => {
    const folds = node.children.size > 0;
    const line = element("div", { class: "node " + node.kind + (node === chosenNode ? " chosen" : ""),
                                  style: `padding-left:${6 + depth * 12}px`, title: node.name },
      element("span", { class: "fold" }, folds ? (node.folded ? "\u25b8" : "\u25be") : ""),
      element("span", { class: "name" }, node.name),
      element("span", { class: "count", style: `background:${heat(node.seconds)}` }, data.seconds ? timeText(node.seconds)
        : node.flops ? flopsText(node.flops) : node.count.toLocaleString("en")));
    line.addEventListener("click", () => chooseNode(node));
    line.firstChild.addEventListener("click", (event) => {
      if (!folds) return;
      event.stopPropagation();
      node.folded = !node.folded;
      showTree();
    });
    list.push(line);
    if (!node.folded) for (const inner of node.children.values()) visit(inner, depth + 1);
  };
  visit(tree, 0);
  byId("tree").replaceChildren(...list);
}

function chooseNode(node) {
  chosenNode = node;
  selection.stage = selection.row = -1;
  const own = allRows(node).sort((a, b) => a - b);
  const keys = new Set(own.map((row) => exactKeys(stages[0])[row]).filter(Boolean));
  light(stages.map((stage, s) => (s ? [...exactKeys(stage).keys()].filter((row) => keys.has(exactKeys(stage)[row])) : own)),
    nothing);
  showTree();
}

// --- tabs

const tabs = {
  operation: ["Operation", drawOperation],
  source: ["Source", drawSource],
  memory: ["Memory", drawMemory],
};
if (data.mesh.length) tabs.mesh = ["Mesh", drawMesh];
let openTab = "operation";

function showTab(name) {
  openTab = name;
  byId("tabs").replaceChildren(...Object.entries(tabs).map(([key, [title]]) =>
    element("button", { role: "tab", "aria-selected": String(key === name), onclick: () => showTab(key) }, title)));
  const tab = byId("tab");
  tab.replaceChildren(...tabs[name][1]());
  tab.scrollTop = 0;
  if (name === "source") showLit();
}

function showOperation() {
  if (openTab === "operation" || openTab === "memory") {
    const top = byId("tab").scrollTop;
    showTab(openTab);
    if (openTab === "memory") byId("tab").scrollTop = top;
  }
}

const link = (stage, row, text) => element("span", { class: "link mono", title: stage.text[row].slice(0, 500),
  onclick: () => select(stage.number, row) }, text || stage.text[row].slice(0, 200));

function drawOperation() {
  if (selection.row < 0) {
    const first = stages[0];
    const counts = stages.map((stage) => [stage.name, stage.count.toLocaleString("en") + " rows"]);
    return [element("h2", {}, data.title), facts(counts),
      element("p", { class: "quiet" }, "Choose an operation, a line of the source or a module: its kin in the other " +
        "stages are lit. FLOPs count a multiplication and an addition as two; bytes are what an operation reads and " +
        "writes" + (data.mesh.length ? ", on each device in the optimized stage." : ".")),
      data.seconds ? element("p", { class: "quiet" }, `A run took ${timeText(data.seconds)}. Times are those of the ` +
        "optimized program's operations; in other stages they are spread over the operations that these came of.") : null,
      first.count ? element("p", { class: "quiet" }, "? lists the keys.") : null].filter(Boolean);
  }
  const stage = stages[selection.stage];
  const row = selection.row;
  const file = data.sources.find(([name]) => name === stage.file[row]);
  const source = file && file[2].find(([number]) => number === stage.line[row]);
  const out = [element("pre", {}, stage.text[row]), facts([
    ["stage", stage.name + ", row " + (row + 1)], ["result", word(stage, "types", row)],
    ["sharding", word(stage, "sharding", row)], ["argument", word(stage, "argument", row)],
    ["scopes", word(stage, "path", row)], ["note", word(stage, "note", row)],
    ["time", data.seconds ? timeText(stage.total[row]) + share(stage.total[row]) : ""],
    ["FLOPs", stage.flops[row] ? stage.flops[row].toLocaleString("en") : ""],
    ["bytes", stage.bytes[row] ? stage.bytes[row].toLocaleString("en") : ""],
    ["result size", stage.size[row] ? bytesText(stage.size[row]) : ""], ["line", place(stage, row, true)]])];
  if (source) out.push(element("pre", { title: "the line in the source", class: "link",
    onclick: () => showTab("source") }, String(source[1]).trim()));
  list(out, "Operands", stage, stage.operands[row]);
  list(out, "Used by", stage, users(stage, row));
  kin(stage, row).forEach((rows, s) => {
    if (s !== stage.number) list(out, "In " + stages[s].name, stages[s], rows);
  });
  return out;
}

const share = (seconds) => (seconds ? ` (${(100 * seconds / data.seconds).toFixed(1)} %)` : "");

function list(out, title, stage, rows) {
  if (!rows.length) return;
  out.push(element("h2", {}, title), ...rows.slice(0, 12).map((row) => link(stage, row)));
  if (rows.length > 12) out.push(element("span", { class: "quiet" }, `and ${rows.length - 12} more`));
}

const facts = (pairs) => element("dl", {}, ...pairs.filter(([, value]) => value).flatMap(([name, value]) =>
  [element("dt", {}, name), element("dd", {}, value)]));

// --- source

function drawSource() {
  if (!data.sources.length) return [element("p", { class: "quiet" }, "No operation knows a line of a file.")];
  const costs = new Map();
  const stage = data.seconds ? stages.at(-1) : stages[0];
  for (let row = 0; row < stage.count; row++) {
    const key = lineKey(stage, row);
    const cost = data.seconds ? stage.seconds[row] : stage.end[row] === row + 1 ? stage.flops[row] : 0;
    if (key && cost) costs.set(key, (costs.get(key) || 0) + cost);
  }
  const costText = data.seconds ? timeText : flopsText;
  return data.sources.flatMap(([file, name, lines]) => {
    const out = [];
    let before = null;
    for (const [number, text] of lines) {
      if (before !== null && number > before + 1) {
        out.push(element("div", { class: "gap" }, element("span", { class: "number" }, "\u22ef"),
          element("span", {}), element("span", {})));
      }
      before = number;
      const key = file + ":" + number;
      const made = lineOf().has(key);
      out.push(element("div", { class: made ? "made" : "", "data-key": key, ...(made ? { onclick: () => chooseLine(key) } : {}) },
        element("span", { class: "number" }, String(number)),
        element("span", { class: "cost", style: `background:${heat(data.seconds ? costs.get(key) : 0)}` },
          costs.get(key) ? costText(costs.get(key)) : ""),
        element("span", { class: "text" }, text || " ")));
    }
    return [element("h2", {}, name), element("div", { class: "code" }, ...out)];
  });
}

function chooseLine(key) {
  selection.stage = selection.row = -1;
  light(lineOf().get(key), nothing);
}

// Lights the lines of what is lit in the panes.
function showLit() {
  if (openTab !== "source") return;
  const lit = new Set();
  selection.kin.forEach((rows, s) => { for (const row of rows) lit.add(lineKey(stages[s], row)); });
  let first = null;
  for (const line of byId("tab").querySelectorAll("[data-key]")) {
    const on = lit.has(line.dataset.key);
    line.classList.toggle("kin", on);
    if (on && !first) first = line;
  }
  if (first && selection.row >= 0) first.firstChild.scrollIntoView({ block: "center" });
}

// --- memory

function drawMemory() {
  const [name, alive, peak, largest] = data.memory;
  const stage = stages.find((each) => each.name === name);
  const most = alive.reduce((bytes, each) => Math.max(bytes, each[1]), 1);
  const [width, height] = [360, 150];
  const x = (i) => (i / Math.max(alive.length, 1)) * width;
  const y = (bytes) => height - (bytes / most) * (height - 14);
  const svg = (tag, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };
  // No more steps than there are pixels: of rows that share one, the one where most is alive.
  const each = Math.max(1, Math.ceil(alive.length / (2 * width)));
  let steps = "";
  for (let i = 0; i < alive.length; i += each) {
    const top = y(alive.slice(i, i + each).reduce((bytes, pair) => Math.max(bytes, pair[1]), 0));
    steps += `L${x(i)},${top}L${x(Math.min(i + each, alive.length))},${top}`;
  }
  const at = Math.max(0, alive.findIndex(([row]) => row === peak));
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  chart.append(svg("path", { d: `M0,${height}${steps}L${width},${height}Z`, class: "area" }),
    svg("line", { x1: 0, x2: width, y1: y(most), y2: y(most), class: "peakline" }),
    svg("text", { x: Math.min(x(at), width - 90), y: 10 }, "peak " + bytesText(most)));
  if (selection.row >= 0 && stages[selection.stage] === stage) {
    const here = alive.findLastIndex(([row]) => row <= selection.row);
    chart.append(svg("line", { x1: x(here), x2: x(here), y1: 0, y2: height, class: "here" }));
  }
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    const i = Math.floor(((event.clientX - box.left) / box.width) * alive.length);
    if (alive[i]) select(stage.number, alive[i][0]);
  });
  const totals = Object.entries(data.totals).filter(([, bytes]) => bytes);
  return [element("h2", {}, `Alive while ${name === "optimized" ? "the compiled program" : "its jaxpr"} runs` +
      (data.mesh.length && name === "optimized" ? ", on each device" : "")), chart,
    element("p", { class: "quiet" }, "From the rows alone, first to last; click to go there. " +
      (totals.length ? "What XLA assigned:" : "")),
    facts(totals.map(([key, bytes]) => [key, bytesText(bytes)])),
    element("h2", {}, "Largest at the peak"),
    table([["bytes", "number"], ["value", "mono wide"], ["line"]], largest.filter(([, bytes]) => bytes).map(([row, bytes]) => ({
      cells: [bytesText(bytes), word(stage, "argument", row) || stage.text[row].slice(0, 300), place(stage, row)],
      chosen: selection.row === row && selection.stage === stage.number, go: () => select(stage.number, row) })))];
}

function table(heads, rows) {
  return element("table", {}, element("thead", {}, element("tr", {},
    ...heads.map(([name, kind]) => element("th", { class: kind || "" }, name)))),
  element("tbody", {}, ...rows.map((row) => element("tr", { class: row.chosen ? "chosen" : "", onclick: row.go },
    ...row.cells.map((cell, i) => element("td", { class: heads[i][1] || "", title: cell }, cell))))));
}

// --- the mesh and what goes over it

const COLORS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#edc948", "#9c755f"];
let chosenCollective = -1;

function drawMesh() {
  const axes = data.mesh;
  const over = chosenCollective < 0 ? [] : data.collectives[chosenCollective][4] || [];
  const columns = axes.at(-1)[1];
  const count = axes.reduce((n, [, size]) => n * size, 1);
  const grid = element("div", { class: "mesh", style: `grid-template-columns:repeat(${columns}, minmax(34px, 1fr))` });
  for (let device = 0; device < Math.min(count, 1024); device++) {
    // Devices that talk to each other have one colour: they differ along those axes alone.
    let left = device;
    let group = 0;
    let scale = 1;
    const at = [];
    for (let i = axes.length - 1; i >= 0; i--) {
      const [name, size] = axes[i];
      const place = left % size;
      left = Math.floor(left / size);
      at.unshift(`${name} ${place}`);
      if (!over.includes(name)) { group += place * scale; scale *= size; }
    }
    const color = over.length ? `border-color:${COLORS[group % 8]};box-shadow:inset 0 0 0 2px ${COLORS[group % 8]}` : "";
    grid.append(element("div", { class: "device", title: at.join(", "), style: color }, String(device)));
  }
  const optimized = stages.find((stage) => stage.name === "optimized");
  const rowOf = (name) => (optimized ? optimized.text.findIndex((text) => text.startsWith(`%${name} = `)) : -1);
  const sent = (i) => data.collectives[i][3] * (data.collectives[i][5] ?? 1);
  const order = data.collectives.map((_, i) => i).sort((i, j) => sent(j) - sent(i));     // what sends the most is first
  const shown = order.map((i) => [...data.collectives[i], i]).map(([kind, name, shape, bytes, names, trips, where, op, i]) => ({
    cells: [kind, names ? names.join(", ") || "none" : "?", bytesText(bytes), trips === null ? "loop" : "\u00d7 " + trips,
            where || lastName(op)],
    chosen: i === chosenCollective,
    go: () => {
      chosenCollective = i;
      const row = rowOf(name);
      if (row >= 0) select(optimized.number, row);
      const top = byId("tab").scrollTop;
      showTab("mesh");
      byId("tab").scrollTop = top;
    } }));
  const total = order.reduce((sum, i) => sum + sent(i), 0);
  return [element("h2", {}, axes.map(([name, size]) => `${name} ${size}`).join(" \u00d7 ")), grid,
    element("p", { class: "quiet" }, optimized
      ? `${data.collectives.length} collectives, ${bytesText(total)} on each device a run` +
        (data.collectives.length ? ". Choose one: devices of one colour talk to each other." : ".")
      : "What devices say to each other is known when the program has been compiled."),
    data.collectives.length ? table([["kind", "wide"], ["axes"], ["bytes", "number"], ["times", "number"], ["line"]], shown) : ""];
}
