"use strict";
/* The facts' list: only the rows in view exist. All text reaches the page through textContent, so a label is never markup. */

const byId = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const ascii = /^[\0-\x7f]*$/;
const fold = (text) => {
  const lower = text.toLowerCase();
  if (ascii.test(lower)) return lower;
  return lower.normalize("NFD").replace(/\p{M}+/gu, "").replaceAll("ı", "i").replaceAll("ς", "σ").replaceAll("ß", "ss");
};
/* More columns of ranks than this would leave no room for the fact. */
const MOST_COLUMNS = 8;
const narrow = window.matchMedia("(max-width: 760px)");

const state = { data: null, ways: [], count: 0, table: null, folded: null, foldedUpTo: 0, shown: null, chosen: 0, open: false };

async function readFacts() {
  const packed = byId("facts-data").textContent;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  state.data = await new Response(stream).json();
  state.ways = state.data.verbalisations;
  byId("facts-data").remove();
  const { tables, columns } = state.data;
  state.count = columns.row.length;
  state.table = new Uint16Array(state.count);
  tables.forEach(([, , from, to], index) => state.table.fill(index, from, to));
  state.folded = new Array(state.count);
  state.shown = Uint32Array.from({ length: state.count }, (_, index) => index);
}

const languageOf = (fact) => state.data.tables[state.table[fact]][0];
const relationOf = (fact) => state.data.tables[state.table[fact]][1];
const rankOf = (fact, way) => state.data.ways[way].rank[fact];
/* With several runs a way is "run:verbalisation"; a sentence that an earlier run has too stands there alone. */
const runOf = (way) => way.slice(0, way.lastIndexOf(":"));
const verbalisationOf = (way) => (state.data.runs ? way.slice(way.lastIndexOf(":") + 1) : way);
const wordsOf = (fact, way) => {
  const part = state.data.ways[way];
  return part.sentence[fact] === null && part.like ? state.data.ways[part.like] : part;
};

/* What a search looks through, folded to bare lower-case letters; made in idle time, and at the latest by the first search. */
function foldFact(fact) {
  const { columns, ways, verbalisations } = state.data;
  const parts = new Set([columns.sub, columns.obj, columns.sub_uri, columns.obj_uri, columns.en, columns.en_obj].map((column) => column[fact]));
  for (const way of verbalisations) parts.add(ways[way].sentence[fact] ?? "");
  state.folded[fact] = fold([...parts].join("\n"));
}
function foldUpTo(end) {
  while (state.foldedUpTo < end) foldFact(state.foldedUpTo++);
}
function foldInIdleTime() {
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 16));
  later(() => {
    foldUpTo(Math.min(state.count, state.foldedUpTo + 1500));
    if (state.foldedUpTo < state.count) foldInIdleTime();
    else document.body.dataset.folded = "yes";
  });
}

function outcomeTest(value) {
  const { ways } = state;
  const right = (fact, way) => rankOf(fact, way) !== null && rankOf(fact, way) <= 1;
  if (value === "all") return (fact) => ways.every((way) => rankOf(fact, way) === null || right(fact, way));
  if (value === "none") return (fact) => !ways.some((way) => right(fact, way));
  const [first, second] = value.split(">").map(Number);
  return (fact) => right(fact, ways[first]) && rankOf(fact, ways[second]) !== null && !right(fact, ways[second]);
}

function orderBy(value) {
  const [kind, index] = value.split(":");
  const { ways } = state;
  const way = ways[Number(index)];
  const key = {
    worst: (fact) => -(rankOf(fact, way) ?? -1),
    gain: (fact) => (rankOf(fact, way) === null ? Infinity : rankOf(fact, way) - rankOf(fact, ways[0])),
    loss: (fact) => (rankOf(fact, way) === null ? Infinity : rankOf(fact, ways[0]) - rankOf(fact, way)),
  }[kind];
  const keys = new Float64Array(state.count);
  for (const fact of state.shown) keys[fact] = key(fact);
  state.shown.sort((a, b) => keys[a] - keys[b] || a - b);
}

function applyFilters() {
  const begin = performance.now();
  const words = fold(byId("search").value).split(/\s+/).filter(Boolean);
  const language = byId("language").value;
  const relation = byId("relation").value;
  const outcome = byId("outcome").value && outcomeTest(byId("outcome").value);
  const wanted = state.data.tables.map(([lang, rel]) => (!language || lang === language) && (!relation || rel === relation));
  if (words.length) foldUpTo(state.count);
  const found = [];
  for (let fact = 0; fact < state.count; fact++) {
    if (!wanted[state.table[fact]]) continue;
    if (outcome && !outcome(fact)) continue;
    if (words.length && !words.every((word) => state.folded[fact].includes(word))) continue;
    found.push(fact);
  }
  state.shown = Uint32Array.from(found);
  if (byId("order").value) orderBy(byId("order").value);
  state.chosen = 0;
  byId("viewport").scrollTop = 0;
  close();
  const n = state.shown.length;
  byId("count").textContent = `${n.toLocaleString("en")} of ${state.count.toLocaleString("en")} facts`;
  byId("grid").setAttribute("aria-rowcount", String(n + 1));
  draw();
  document.body.dataset.filterMs = (performance.now() - begin).toFixed(1);
}

const rowHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));

function rankCell(fact, way) {
  const rank = rankOf(fact, way);
  const level = rank === null ? "" : rank <= 1 ? " first" : rank <= 3 ? " top" : "";
  const cell = make("span", `rank${level}`, rank === null ? "–" : String(rank));
  cell.title = rank === null ? `not in ${way}` : `rank ${rank} in ${way}`;
  return cell;
}

function layRow(row) {
  const ways = state.ways.length;
  row.style.gridTemplateColumns = narrow.matches
    ? `minmax(0, 1fr) repeat(${ways}, 2.6rem)`
    : `3rem 4rem minmax(0, 1.3fr) minmax(0, 1fr) repeat(${ways}, minmax(3.5rem, 5.5rem))`;
  return row;
}

function makeRow(place, height) {
  const fact = state.shown[place];
  const { columns } = state.data;
  const row = layRow(make("div", place === state.chosen ? "row item chosen" : "row item"));
  row.id = `fact-${place}`;
  row.setAttribute("role", "row");
  row.setAttribute("aria-rowindex", String(place + 2));
  row.setAttribute("aria-selected", String(place === state.chosen));
  row.style.top = `${place * height}px`;
  const subject = make("span", "subject", columns.sub[fact] || columns.en_sub[fact] || columns.sub_uri[fact]);
  const object = make("span", "object", columns.obj[fact] || columns.en_obj[fact] || columns.obj_uri[fact]);
  let cells;
  if (narrow.matches) {
    const words = make("span", "words");
    words.append(subject.textContent, " → ", object.textContent);
    words.style.gridColumn = "1 / -1";
    cells = [words, make("span", "relation", `${languageOf(fact)} · ${relationOf(fact)}`)];
  } else {
    cells = [make("span", "language", languageOf(fact)), make("span", "relation", relationOf(fact)), subject, object];
  }
  for (const cell of cells) cell.dir = "auto";
  cells.push(...state.ways.map((way) => rankCell(fact, way)));
  for (const cell of cells) cell.setAttribute("role", "gridcell");
  row.append(...cells);
  return row;
}

function draw() {
  const viewport = byId("viewport");
  const height = rowHeight();
  const first = Math.max(0, Math.floor(viewport.scrollTop / height) - 4);
  const last = Math.min(state.shown.length, Math.ceil((viewport.scrollTop + viewport.clientHeight) / height) + 4);
  const rows = [];
  for (let place = first; place < last; place++) rows.push(makeRow(place, height));
  const spacer = byId("spacer");
  spacer.style.height = `${state.shown.length * height}px`;
  spacer.replaceChildren(...rows);
  if (state.shown.length) byId("grid").setAttribute("aria-activedescendant", `fact-${state.chosen}`);
  else byId("grid").removeAttribute("aria-activedescendant");
}

function choose(place, open) {
  if (!state.shown.length) return;
  state.chosen = Math.max(0, Math.min(state.shown.length - 1, place));
  const viewport = byId("viewport");
  const height = rowHeight();
  const room = viewport.clientHeight - byId("head").offsetHeight;
  const top = state.chosen * height;
  if (top < viewport.scrollTop) viewport.scrollTop = top;
  else if (top + height > viewport.scrollTop + room) viewport.scrollTop = top + height - room;
  if (open || state.open) showDetail(state.shown[state.chosen]);
  draw();
}

function close() {
  state.open = false;
  byId("detail").hidden = true;
  byId("detail").replaceChildren();
  document.querySelector(".browser").classList.remove("open");
}

function smallTable(headers, rows) {
  const table = make("table");
  const head = table.createTHead().insertRow();
  for (const header of headers) head.append(make("th", "", header));
  const body = table.createTBody();
  for (const { cells, className } of rows) {
    const row = body.insertRow();
    row.className = className;
    for (const cell of cells) {
      const node = row.insertCell();
      node.textContent = cell;
      node.dir = "auto";
    }
  }
  return table;
}

/* One way of one fact: its heading with the rank, its sentence unless that was told already, its forms and best candidates. */
function wayParts(fact, way, heading, told) {
  const part = state.data.ways[way];
  if (part.rank[fact] === null) {
    heading.append(make("span", "muted", "not in this dump"));
    return [heading];
  }
  const parts = [heading];
  const rank = rankCell(fact, way);
  rank.textContent = `rank ${rank.textContent}`;
  heading.append(rank);
  const words = wordsOf(fact, way);
  const text = words.sentence[fact];
  if (text !== told) {
    const sentence = make("p", "sentence");
    sentence.dir = "auto";
    sentence.lang = languageOf(fact);
    const [start, end] = [words.start[fact], words.end[fact]];
    sentence.append(text.slice(0, start));
    if (end > start) sentence.append(make("mark", "", text.slice(start, end)));
    sentence.append(text.slice(end));
    parts.push(sentence);
  }
  if (part.prompt_prob[fact] !== null) parts.push(make("p", "muted", `log-probability of the prompt ${part.prompt_prob[fact]}`));
  const forms = part.forms[fact];
  if (forms) {
    const rows = [];
    for (let i = 0; i < forms.length; i += 2) rows.push({ cells: [forms[i], forms[i + 1]], className: "" });
    parts.push(smallTable(["correct form", "rank"], rows));
  }
  const best = part.candidates[fact];
  if (best) {
    const rows = [];
    for (let i = 0; i < best.length; i += 3) {
      rows.push({ cells: [best[i], best[i + 1], best[i + 2] ? "right" : "distractor"], className: best[i + 2] ? "right" : "" });
    }
    parts.push(smallTable(["best candidates", "log-probability", ""], rows));
  }
  return parts;
}

function showDetail(fact) {
  const { columns, verbalisations } = state.data;
  const detail = byId("detail");
  const button = make("button", "close", "Close");
  button.type = "button";
  button.addEventListener("click", () => { close(); draw(); byId("grid").focus(); });
  const title = make("h3", "", `${columns.sub[fact]} → ${columns.obj[fact]}`);
  title.dir = "auto";
  const where = `${languageOf(fact)} ${relationOf(fact)}, row ${columns.row[fact]}: ${columns.sub_uri[fact]} → ${columns.obj_uri[fact]}`;
  detail.replaceChildren(button, title, make("p", "muted", where));
  if (columns.en[fact]) detail.append(make("p", "muted", columns.en[fact]));
  for (const name of new Set(verbalisations.map(verbalisationOf))) {
    let told = null;
    if (state.data.runs) detail.append(make("h4", "", name));
    for (const way of verbalisations.filter((other) => verbalisationOf(other) === name)) {
      detail.append(...wayParts(fact, way, state.data.runs ? make("h5", "", runOf(way)) : make("h4", "", name), told));
      if (rankOf(fact, way) !== null) told = wordsOf(fact, way).sentence[fact];
    }
  }
  detail.hidden = false;
  detail.scrollTop = 0;
  state.open = true;
  document.querySelector(".browser").classList.add("open");
}

function onKey(event) {
  const page = Math.max(1, Math.floor(byId("viewport").clientHeight / rowHeight()) - 2);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in moves) choose(state.chosen + moves[event.key], false);
  else if (event.key === "Enter" || event.key === " ") choose(state.chosen, true);
  else if (event.key === "Escape") { close(); draw(); }
  else return;
  event.preventDefault();
}

function fillControls() {
  const { tables, runs, verbalisations } = state.data;
  for (const lang of [...new Set(tables.map(([name]) => name))]) addOption("language", lang, lang);
  const relations = [...new Set(tables.map(([, name]) => name))];
  for (const name of relations.sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) addOption("relation", name, name);
  if (runs) {
    const names = [...new Set(verbalisations.map(verbalisationOf))];
    if (verbalisations.length <= MOST_COLUMNS) addOption("ranks", "all", "all runs");
    if (runs.length <= MOST_COLUMNS) names.forEach((name, i) => addOption("ranks", `verbalisation:${i}`, `${name}, by run`));
    runs.forEach((run, i) => addOption("ranks", `run:${i}`, `${run}, by verbalisation`));
  }
  showWays();
}

const addOption = (select, value, text) => byId(select).append(new Option(text, value));

/* Which ranks stand in the list; outcomes and orders speak of these. */
function showWays() {
  const { runs, verbalisations } = state.data;
  const [kind, index] = (runs ? byId("ranks").value : "all").split(":");
  const wanted = kind === "run" ? runs[Number(index)] : [...new Set(verbalisations.map(verbalisationOf))][Number(index)];
  const tests = { all: () => true, run: (way) => runOf(way) === wanted, verbalisation: (way) => verbalisationOf(way) === wanted };
  state.ways = verbalisations.filter(tests[kind]);
  const shown = { all: (way) => way, run: verbalisationOf, verbalisation: runOf }[kind];
  const names = state.ways.map(shown);
  for (const select of ["outcome", "order"]) byId(select).length = 1;
  const each = { all: runs ? "way" : "verbalisation", run: "verbalisation", verbalisation: "run" }[kind];
  addOption("outcome", "all", `rank 1 in every ${each}`);
  addOption("outcome", "none", "rank 1 in none");
  names.forEach((first, i) => names.forEach((second, j) => {
    if (i !== j) addOption("outcome", `${i}>${j}`, `rank 1 in ${first}, not in ${second}`);
  }));
  names.forEach((name, i) => {
    addOption("order", `worst:${i}`, `worst rank in ${name} first`);
    if (i) addOption("order", `gain:${i}`, `largest gain of ${name} first`);
    if (i) addOption("order", `loss:${i}`, `largest loss of ${name} first`);
  });
  const head = layRow(byId("head"));
  head.setAttribute("aria-rowindex", "1");
  head.replaceChildren(...["lang.", "relation", "subject", "object", ...names].map((name, i) => {
    const cell = make("span", i > 3 ? "rank" : "", name);
    cell.setAttribute("role", "columnheader");
    cell.title = i > 3 ? `rank in ${name}` : name;
    return cell;
  }));
}

async function start() {
  if (!("DecompressionStream" in window)) {
    byId("count").textContent = "This browser is too old to unpack the list of facts; the tables above are complete.";
    return;
  }
  await readFacts();
  fillControls();
  let waiting = 0;
  byId("search").addEventListener("input", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(applyFilters); });
  for (const id of ["language", "relation", "outcome", "order"]) byId(id).addEventListener("change", applyFilters);
  if (state.data.runs) byId("ranks").addEventListener("change", () => { showWays(); applyFilters(); });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("viewport").addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  byId("grid").addEventListener("keydown", onKey);
  /* by place, not by node: scrolling may have replaced the row between the press and the release */
  byId("spacer").addEventListener("click", (event) => choose(Math.floor((event.clientY - byId("spacer").getBoundingClientRect().top) / rowHeight()), true));
  byId("detail").addEventListener("keydown", (event) => { if (event.key === "Escape") { close(); draw(); byId("grid").focus(); } });
  const relay = () => { layRow(byId("head")); draw(); };
  narrow.addEventListener("change", relay);
  window.addEventListener("resize", relay);
  applyFilters();
  document.body.dataset.readyAt = performance.now().toFixed(0);
  document.body.dataset.ready = "yes";
  foldInIdleTime();
}

/* After the first frame, so that unpacking never delays it. */
requestAnimationFrame(() => setTimeout(start, 0));
