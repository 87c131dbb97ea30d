// State of the page and small helpers. Text from outside the page only ever reaches textContent.
const BLOCKS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#7A9A01", "#B5651D", "#5F6B7A"];
// Kinds of events in the order of the library: sign, words, name of the colour and of the state. The first two change the block.
const KINDS = [["◆", "new block", "new", "new"], ["●", "recalled", "recall", "recalled"], ["▼", "column lost", "lost", "lost"], ["▲", "column back", "back", "back"]];
const CHANGES_BLOCK = 2;
const MOST_EVENTS = 10000, LISTED = 300, MOST_BARS = 24;
const known = { rows: 0, block: 0, n_blocks: 0, events: [], moves: [], n_events: 0, cards: new Map(), names: {}, times: [], signals: 0, since: 0,
  trace: { width: 1, peaks: [] }, changes: [], columns: null, shape: null, label: null, window: 0, hop: 0, shapes: {}, state: "waiting", n_features: 0 };

const $ = (id) => document.getElementById(id);
const colour = (block) => BLOCKS[block % BLOCKS.length];
const isDark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const parts = (block) => [1, 3, 5].map((i) => parseInt(colour(block).slice(i, i + 2), 16));
const brightness = (block) => parts(block).reduce((sum, part, i) => sum + part * [0.3, 0.59, 0.11][i], 0);
// The colour of a block for text: lighter on dark paper, darker on white if the colour is bright, so that it can be read.
function textColour(block) {
  const [towards, share] = isDark() ? [255, 0.38] : [0, brightness(block) > 135 ? 0.28 : 0];
  return `rgb(${parts(block).map((part) => Math.round(part + (towards - part) * share)).join(",")})`;
}
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const blockName = (block) => known.names[block] || `block ${block}`, blockTitle = (block) => known.names[block] || `Block ${block}`;
const columnName = (i) => known.columns && known.columns[i] !== undefined ? known.columns[i] : `column ${i}`;
// What a step of the memory is: a row of the stream, or a window of rows.
const stepNoun = () => known.window ? "window" : "row";
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function make(kind, text, ...classes) {
  const element = document.createElement(kind);
  if (text !== undefined && text !== null) element.textContent = text;
  if (classes.length) element.classList.add(...classes);
  return element;
}

function take(update) {
  const lines = update.events || [];
  if (update.rows !== undefined && update.rows < known.rows) { known.events = []; known.cards.clear(); }
  if (update.n_events !== undefined && update.n_events - lines.length < known.n_events) known.events = [];
  const fresh = lines.map(([kind, step, from, to, uncertainty, onset, column, evidence, time, onsetTime]) =>
    ({ kind, step, from, to, uncertainty, onset, column, evidence, time: time ?? null, onsetTime: onsetTime ?? null }));
  known.events.push(...fresh);
  if (known.events.length > MOST_EVENTS) known.events.splice(0, known.events.length - MOST_EVENTS);
  for (const card of update.cards || []) known.cards.set(card.block, card);
  if (update.shown) { const shown = new Set(update.shown); for (const block of known.cards.keys()) if (!shown.has(block)) known.cards.delete(block); }
  const { events, cards, ...rest } = update;
  Object.assign(known, rest);
  if (fresh.length || !known.events.length) findMoves();
  if (fresh.length || update.times) findAnchors();
  return fresh;
}

// Events that changed the block, each with the row at which its block begins: the onset, but never before the previous one.
function findMoves() {
  known.moves = known.events.filter((event) => event.kind < CHANGES_BLOCK);
  let before = 0;
  for (const move of known.moves) before = move.start = Math.max(before, move.onset);
}

// Index of the last move that had begun at a row, or -1.
function moveAt(step) {
  let low = 0, high = known.moves.length;
  while (low < high) { const middle = (low + high) >> 1; if (known.moves[middle].start <= step) low = middle + 1; else high = middle; }
  return low - 1;
}
function blockAt(step) {
  const at = moveAt(step);
  return at >= 0 ? known.moves[at].to : known.moves.length ? known.moves[0].from : known.block;
}

function say(text) {
  $("said").textContent = text; $("said").hidden = false;
  clearTimeout(say.timer); say.timer = setTimeout(() => { $("said").hidden = true; }, 5000);
}
