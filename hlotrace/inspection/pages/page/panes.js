// The stages side by side: each a list of which only the rows in sight are in the document.

const ROW = 21;
const INDENT = 13;
const selection = { stage: -1, row: -1, kin: nothing.map(() => new Set()), near: nothing.map(() => new Set()),
                    match: nothing.map(() => new Set()) };
const panes = [];
let active = 0;

const PLAIN = new Set(["parameter", "constant", "get-tuple-element", "tuple", "bitcast", "argument", "return",
                       "sdy.constant", "func.return", "sdy.return"]);

const timed = data.seconds ? ["time"] : [];

class Pane {
  constructor(stage) {
    this.stage = stage;
    this.rows = [];
    this.space = element("div", { class: "space" });
    this.scroll = element("div", { class: "scroll", tabindex: "-1", onscroll: () => this.later() }, this.space);
    this.marks = element("canvas", { class: "marks" });
    const columns = element("span", { class: "columns" },
      ...["types", "spec", ...timed, "flops", "bytes", "line"].map((name) =>
        element("span", { class: "cell " + name }, { types: "type", spec: "sharding", flops: "FLOPs" }[name] || name)));
    this.root = element("div", { class: "pane " + stage.name, onmousedown: () => activate(stage.number) },
      element("div", { class: "head" }, element("b", {}, stage.name),
        element("span", {}, stage.count.toLocaleString("en") + " rows"), columns),
      element("div", { class: "body" }, this.scroll, this.marks));
    this.pool = [];
    this.refold();
    new ResizeObserver(() => { this.draw(); this.mark(); }).observe(this.scroll);
  }

  // Which rows are in sight with the folds as they are.
  refold() {
    const { stage } = this;
    const rows = new Int32Array(stage.count);
    let n = 0;
    for (let i = 0; i < stage.count; i = stage.folded[i] ? stage.end[i] : i + 1) rows[n++] = i;
    this.rows = rows.subarray(0, n);
    this.space.style.height = n * ROW + "px";
    this.draw();
    this.mark();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const height = this.scroll.clientHeight;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 8);
    const last = Math.min(this.rows.length, Math.ceil((this.scroll.scrollTop + height) / ROW) + 8);
    while (this.pool.length < last - first) {
      const made = newRow(this);
      this.pool.push(made);
      this.space.append(made.root);
    }
    this.pool.forEach((drawn, i) => {
      const at = first + i;
      const shown = at < last;
      drawn.root.hidden = !shown;
      drawn.root.style.display = shown ? "" : "none";
      if (shown) fill(drawn, this.stage, this.rows[at], at);
    });
  }

  // Where kin and matches are, beside the scroll bar.
  mark() {
    const { marks } = this;
    const height = marks.clientHeight;
    marks.width = 10;
    marks.height = height;
    const context = marks.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const number = this.stage.number;
    for (const [rows, color] of [[selection.match[number], "#2f9e5b"], [selection.kin[number], "#e0a100"]]) {
      context.fillStyle = color;
      let drawn = -1;
      for (const row of rows) {
        const y = Math.round((this.position(row) / this.rows.length) * height);
        if (y !== drawn) context.fillRect(2, y, 6, 2);
        drawn = y;
      }
    }
    if (selection.stage === number) {
      context.fillStyle = style.getPropertyValue("--accent");
      context.fillRect(0, (this.position(selection.row) / this.rows.length) * height, 10, 3);
    }
  }

  // The place of a row among those in sight, or of what it is folded into.
  position(row) {
    let low = 0;
    let high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.rows[middle] <= row) low = middle; else high = middle - 1;
    }
    return low;
  }

  // Unfolds what holds a row and scrolls to it; `always` also if it is in sight.
  reveal(row, always) {
    let folded = false;
    for (let p = this.stage.parent[row]; p >= 0; p = this.stage.parent[p]) {
      if (this.stage.folded[p]) { this.stage.folded[p] = 0; folded = true; }
    }
    if (folded) this.refold();
    const top = this.position(row) * ROW;
    const height = this.scroll.clientHeight;
    if (always || top < this.scroll.scrollTop || top + ROW > this.scroll.scrollTop + height) {
      this.scroll.scrollTop = Math.max(0, top - height / 3);
    }
    this.later();
  }
}

function newRow(pane) {
  const part = (name) => element("span", { class: name });
  const drawn = { fold: part("fold"), left: part("rest left"), op: part("op"), rest: part("rest"), types: part("cell types"), spec: part("cell spec"),
                  time: part("cell time"), flops: part("cell flops"), bytes: part("cell bytes"), line: part("cell line"), row: -1 };
  drawn.root = element("div", { class: "row" }, drawn.fold,
    element("span", { class: "what" }, drawn.left, drawn.op, drawn.rest),
    drawn.types, drawn.spec, ...timed.map(() => drawn.time), drawn.flops, drawn.bytes, drawn.line);
  drawn.root.addEventListener("click", () => select(pane.stage.number, drawn.row));
  drawn.root.addEventListener("dblclick", () => toggle(pane.stage.number, drawn.row));
  drawn.fold.addEventListener("click", (event) => {
    event.stopPropagation();
    toggle(pane.stage.number, drawn.row);
  });
  return drawn;
}

function fill(drawn, stage, row, at) {
  const number = stage.number;
  const holder = stage.end[row] > row + 1;
  const op = word(stage, "op", row);
  drawn.row = row;
  drawn.root.style.top = at * ROW + "px";
  let name = "row";
  if (holder || word(stage, "holds", row)) name += " holder";
  if (PLAIN.has(op)) name += " plain";
  if (selection.match[number].has(row)) name += " match";
  if (selection.near[number].has(row)) name += " near";
  if (selection.kin[number].has(row)) name += " kin";
  if (selection.stage === number && selection.row === row) name += " chosen";
  drawn.root.className = name;
  drawn.fold.style.marginLeft = stage.depth[row] * INDENT + "px";
  drawn.fold.textContent = holder ? (stage.folded[row] ? "\u25b8" : "\u25be") : "";
  const text = stage.text[row];
  const equals = text.indexOf(" = ");
  const begin = Math.max(text.indexOf(op, Math.max(equals, 0)), 0);
  const end = begin + (text.startsWith(op, begin) ? op.length : 0);
  drawn.left.textContent = equals < 0 || end === begin ? "" : names(text.slice(0, equals)) + " = ";
  drawn.op.textContent = text.slice(begin, end);
  drawn.rest.textContent = text.slice(end, end + 400);
  drawn.root.title = text.length > 40 ? text.slice(0, 1000) : "";
  drawn.types.textContent = word(stage, "types", row);
  drawn.spec.textContent = word(stage, "sharding", row);
  if (data.seconds) {
    drawn.time.textContent = timeText(stage.total[row]);
    drawn.time.style.background = heat(stage.total[row]);
  }
  drawn.flops.textContent = stage.flops[row] ? flopsText(stage.flops[row]) : "";
  drawn.bytes.textContent = stage.bytes[row] ? bytesText(stage.bytes[row]) : "";
  drawn.line.textContent = place(stage, row) || word(stage, "argument", row);
}

// `a b` of what a row defines, `a:f32[8] b:f32[3]`: the types have a column of their own.
function names(defined) {
  if (defined.length > 24 && defined.startsWith("%")) return defined.slice(0, 22) + "\u2026";
  const each = defined.startsWith("%") ? [defined] : defined.split(" ").map((name) => name.split(":")[0]);
  return each.length > 3 ? `${each.slice(0, 2).join(" ")} \u2026 ${each.at(-1)}` : each.join(" ");
}

function redraw() {
  for (const pane of panes) { pane.later(); pane.mark(); }
}

function activate(number) {
  active = number;
  panes.forEach((pane, i) => pane.root.classList.toggle("active", i === number));
}

function toggle(number, row) {
  const stage = stages[number];
  if (stage.end[row] === row + 1) return;
  stage.folded[row] ^= 1;
  panes[number].refold();
}

// Chooses a row: its kin are lit in every stage, and come into sight.
function select(number, row) {
  const stage = stages[number];
  selection.stage = number;
  selection.row = row;
  light(kin(stage, row), lineOf().get(lineKey(stage, row)) || nothing);
  activate(number);
  panes[number].reveal(row);
  showOperation();
}

function light(kinRows, nearRows) {
  selection.kin = kinRows.map((rows) => new Set(rows));
  selection.near = nearRows.map((rows) => new Set(rows));
  panes.forEach((pane, i) => {
    const first = kinRows[i].length ? kinRows[i] : nearRows[i];
    if (i === selection.stage || !first.length || pane.root.hidden) return;
    if (!first.some((row) => inSight(pane, row))) pane.reveal(first[0], true);
  });
  redraw();
  showLit();
}

function inSight(pane, row) {
  const at = pane.position(row);
  const top = at * ROW - pane.scroll.scrollTop;
  return pane.rows[at] === row && top >= 0 && top + ROW <= pane.scroll.clientHeight;
}

function clear() {
  selection.stage = selection.row = -1;
  selection.match = nothing.map(() => new Set());
  light(nothing, nothing);
  showOperation();
}
