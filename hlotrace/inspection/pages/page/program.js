"use strict";
// The program that the page shows: columns of rows, what is inside of what, and which rows are kin.

const data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;

// A row's text in one of the columns that name a word.
const word = (stage, column, row) => words[stage[column][row]];

const stages = data.stages.map((given, number) => {
  const stage = { name: given.name, number, ...given.columns };
  const count = (stage.count = stage.depth.length);
  // The row behind what a row holds, and the row that holds it.
  stage.end = new Int32Array(count);
  stage.parent = new Int32Array(count).fill(-1);
  const open = [];
  for (let i = 0; i < count; i++) {
    while (open.length && stage.depth[open.at(-1)] >= stage.depth[i]) stage.end[open.pop()] = i;
    if (open.length) stage.parent[i] = open.at(-1);
    open.push(i);
  }
  for (const i of open) stage.end[i] = count;
  stage.folded = new Uint8Array(count);
  for (let i = 0; i < count; i++) if (word(stage, "holds", i) === "fusion") stage.folded[i] = 1;
  return stage;
});

// Rows of different stages are kin if they come of one operation on one line, near if only of one line.
const lastName = (path) => path.slice(path.lastIndexOf("/") + 1);
const scopeOf = (path) => path.slice(path.indexOf("/") + 1);

const lineKey = (stage, row) => (stage.file[row] < 0 ? "" : stage.file[row] + ":" + stage.line[row]);
function kinKey(stage, row, exact) {
  const argument = word(stage, "argument", row);
  if (argument) return "argument " + argument;
  const path = word(stage, "path", row);
  const line = lineKey(stage, row);
  return line && path ? line + " " + (exact ? scopeOf(path) : lastName(path)) : "";
}

// The rows of every stage by their key: [rows of the first, ...]; made when it is asked for, not before the page is seen.
function rowsBy(keyOf) {
  let found;
  return () => {
    if (found) return found;
    found = new Map();
    for (const stage of stages) {
      for (let row = 0; row < stage.count; row++) {
        const key = keyOf(stage, row);
        if (!key) continue;
        if (!found.has(key)) found.set(key, stages.map(() => []));
        found.get(key)[stage.number].push(row);
      }
    }
    return found;
  };
}
const kinOf = rowsBy((stage, row) => kinKey(stage, row, false));
const lineOf = rowsBy(lineKey);

const nothing = stages.map(() => []);
// The rows of every stage that are kin of a row: of the same scopes where a stage has such, or of any; the n-th of
// several where two stages have as many, which are in one order until the compiler has them.
function kin(stage, row) {
  const all = kinOf().get(kinKey(stage, row, false)) || nothing;
  const key = kinKey(stage, row, true);
  const exact = all.map((rows, s) => rows.filter((r) => kinKey(stages[s], r, true) === key));
  const own = exact[stage.number];
  const compiled = ["optimized", "PTX"];
  const ordered = (s) => !compiled.includes(stages[s].name) && !compiled.includes(stage.name);
  return all.map((rows, s) => {
    if (s === stage.number) return [row];
    if (ordered(s) && exact[s].length === own.length) return exact[s].slice(own.indexOf(row)).slice(0, 1);
    return exact[s].length ? exact[s] : rows;
  });
}

// Seconds of rows, where a run was measured: `seconds` are theirs alone, `total` with what is inside of them.  What the
// optimized program's took is spread over those of the same operation in other stages; where there is none, the first
// of the same line has it.
function spread(measured) {
  for (const stage of stages) {
    if (stage === measured) continue;
    const exact = new Map();
    exactKeys(stage).forEach((key, row) => { if (key) exact.has(key) ? exact.get(key).push(row) : exact.set(key, [row]); });
    const holds = (row) => stage.end[row] > row + 1;
    stage.seconds = new Float64Array(stage.count);
    measured.seconds.forEach((seconds, row) => {
      if (!seconds) return;
      const loop = measured.end[row] > row + 1 && word(measured, "holds", row) !== "fusion";
      const alike = (rows) => (rows || []).filter((each) => holds(each) === loop);
      const of = (map, key) => (map.get(key) || nothing)[stage.number];
      const found = [alike(exact.get(exactKeys(measured)[row])), alike(of(kinOf(), kinKey(measured, row, false))),
                     of(lineOf(), lineKey(measured, row)).slice(0, 1)].find((rows) => rows.length) || [];
      for (const each of found) stage.seconds[each] += seconds / found.length;
    });
  }
  for (const stage of stages) {
    stage.total = Float64Array.from(stage.seconds);
    for (let row = stage.count - 1; row >= 0; row--) {
      if (stage.parent[row] >= 0) stage.total[stage.parent[row]] += stage.total[row];
    }
  }
}

function exactKeys(stage) {
  if (!stage.exact) stage.exact = stage.text.map((_, row) => kinKey(stage, row, true));
  return stage.exact;
}

function users(stage, row) {
  if (!stage.users) {
    stage.users = new Map();
    stage.operands.forEach((operands, user) => {
      for (const operand of operands) {
        if (!stage.users.has(operand)) stage.users.set(operand, []);
        stage.users.get(operand).push(user);
      }
    });
  }
  return stage.users.get(row) || [];
}

const fileNames = new Map(data.sources.map(([file, short]) => [file, short]));
const base = (name) => name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1);
const place = (stage, row, whole) => {
  if (stage.file[row] < 0) return "";
  const name = fileNames.get(stage.file[row]);
  return (whole ? name : base(name)) + ":" + stage.line[row];
};

// 1234567 -> 1.23 M
function short(n, units) {
  if (n === null || n === undefined) return "";
  let at = 0;
  let value = n;
  while (value >= 999.5 && at < units.length - 1) { value /= 1000; at++; }
  return (at ? value.toPrecision(3) : String(value)) + units[at];
}
const flopsText = (n) => short(n, ["", " k", " M", " G", " T", " P"]);
const timeText = (seconds) => {
  if (!seconds) return "";
  const [value, unit] = seconds >= 1 ? [seconds, " s"] : seconds >= 1e-3 ? [seconds * 1e3, " ms"] : [seconds * 1e6, " \u00b5s"];
  return value.toPrecision(value >= 100 ? 3 : 2) + unit;
};
// How warm a part of the run is drawn.
const heat = (seconds) => data.seconds && seconds
  ? `color-mix(in srgb, var(--hot) ${Math.round(Math.min(1, 2 * seconds / data.seconds) * 80)}%, transparent)` : "";
const bytesText = (n) => short(n, [" B", " kB", " MB", " GB", " TB"]);

// The DOM, always by text: nothing of the user's is read as HTML.
function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") made.style.cssText = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
const byId = (id) => document.getElementById(id);

if (data.seconds) spread(stages.find((stage) => stage.name === "optimized"));
