// What the page knows, and small helpers. All text from outside goes through textContent.
const BLOCKS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#7A9A01", "#B5651D", "#5F6B7A"];
const WORDS = { waiting: "waiting for the first rows (a first run compiles for a while)", calm: "calm", suspicious: "suspicious", new: "a new block", recalled: "recalled",
  lost: "a column is lost", back: "a column is back" };
// Kinds of events, in the order of the library's: sign, words, name of its colour, what the state is called. Two change the block.
const KINDS = [["◆", "new block", "new", "new"], ["●", "recalled", "recall", "recalled"], ["▼", "column lost", "lost", "lost"], ["▲", "column back", "back", "back"]];
const CHANGES_BLOCK = 2;
const MOST_EVENTS = 10000, LISTED = 300, MOST_BARS = 24;
const known = { rows: 0, block: 0, n_blocks: 0, alarm: 0, limit: null, events: [], n_events: 0, cards: new Map(), names: {},
  trace: { width: 1, peaks: [] }, changes: [], columns: null, shape: null, state: "waiting" };

const $ = (id) => document.getElementById(id);
const colour = (block) => BLOCKS[block % BLOCKS.length];
const isDark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const parts = (block) => [1, 3, 5].map((i) => parseInt(colour(block).slice(i, i + 2), 16));
const brightness = (block) => parts(block).reduce((sum, part, i) => sum + part * [0.3, 0.59, 0.11][i], 0);
// The colour of a block for text: lighter on dark paper, darker on white if it is a bright one, so that it can be read.
function textColour(block) {
  const [towards, share] = isDark() ? [255, 0.38] : [0, brightness(block) > 135 ? 0.28 : 0];
  return `rgb(${parts(block).map((part) => Math.round(part + (towards - part) * share)).join(",")})`;
}
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const count = (n) => Number(n).toLocaleString("en");
const short = (n) => Math.abs(n) >= 1e6 ? (n / 1e6).toFixed(n >= 1e7 ? 0 : 1) + "M" : Math.abs(n) >= 1e4 ? Math.round(n / 1e3) + "k" : count(n);
const counted = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const blockName = (block) => known.names[block] || `block ${block}`;
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function make(kind, text, ...classes) {
  const element = document.createElement(kind);
  if (text !== undefined && text !== null) element.textContent = text;
  if (classes.length) element.classList.add(...classes);
  return element;
}

function take(update) {
  const fresh = update.events || [];
  if (update.rows !== undefined && update.rows < known.rows) { known.events = []; known.cards.clear(); }
  if (update.n_events !== undefined && update.n_events - fresh.length < known.n_events) known.events = [];
  known.events.push(...fresh);
  if (known.events.length > MOST_EVENTS) known.events.splice(0, known.events.length - MOST_EVENTS);
  for (const card of update.cards || []) known.cards.set(card.block, card);
  if (update.shown) { const shown = new Set(update.shown); for (const block of known.cards.keys()) if (!shown.has(block)) known.cards.delete(block); }
  const { events, cards, ...rest } = update;
  Object.assign(known, rest);
  return fresh;
}

// The block in use at a step: events are in order of their steps.
function blockAt(step) {
  const events = known.events;
  let low = 0, high = events.length;
  while (low < high) { const middle = (low + high) >> 1; if (events[middle][1] <= step) low = middle + 1; else high = middle; }
  return low ? events[low - 1][3] : events.length ? events[0][2] : known.block;  // events of columns have the block in use in both places
}

function say(text) {
  $("said").textContent = text; $("said").hidden = false;
  clearTimeout(say.timer); say.timer = setTimeout(() => { $("said").hidden = true; }, 5000);
}
