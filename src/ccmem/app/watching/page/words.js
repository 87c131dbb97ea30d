// Numbers, dates and durations as text, and the meaning of every term.
const TERMS = {
  row: "One line of the stream: one reading of every column.",
  window: "Rows of a signal that are described together. Neighbouring windows overlap.",
  shape: "A learned waveform. The column holds how active the shape is in a window.",
  block: "A state of the stream that the memory has learned, such as an operating state of a machine. One block is in use at a time.",
  unit: "One prototype: a typical row. A block consists of several units.",
  win: "A row counts as a win for the unit that is closest to it.",
  event: "A change that the memory detected: a new block, a recall, a column that was lost or is back.",
  "new block": "The stream changed to an unknown state, and the memory opened a block for it.",
  recalled: "The stream returned to a known state, and the memory uses its block again.",
  "column lost": "A column no longer has readings. The block in use does not change.",
  "column back": "A lost column has readings again.",
  evidence: "Strength of the evidence for a change, in multiples of the threshold. At 1 the memory reports a change.",
  began: "The estimated row at which the change began. The shaded stretch is the uncertainty of that estimate.",
  noticed: "The row at which the memory had enough evidence for the change.",
  spread: "Standard deviation of a column within a block.",
  "share of the change": "Share of the total squared change that is due to this column. Each column is measured in units of its spread.",
  signal: "The values of a column: the line is the mean, the band reaches from the lowest to the highest value.",
  profile: "The values of a unit in all columns, each column from the lowest to the highest value of any unit shown.",
  label: "Share of the block's labelled rows that carry this label.",
  calm: "The rows fit the block in use.",
  suspicious: "Some rows do not fit the block in use, but the evidence is not enough for a change yet.",
  "true change": "A true change from the file that you passed (--changes).",
};
const WORDS = { waiting: "waiting for the first rows (a first run compiles for a while)", calm: "calm", suspicious: "suspicious", new: "a new block", recalled: "a block was recalled",
  lost: "a column is lost", back: "a column is back" };

const count = (n) => Number(n).toLocaleString("en");
const short = (n) => Math.abs(n) >= 1e6 ? (n / 1e6).toFixed(n >= 1e7 ? 0 : 1) + "M" : Math.abs(n) >= 1e4 ? Math.round(n / 1e3) + "k" : count(n);
const counted = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const times = (n) => n === 1 ? "once" : n === 2 ? "twice" : `${count(n)} times`;
const middleCut = (text, most) => text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(-Math.floor(most / 2))}`;
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const percent = (share) => share > 0.995 && share < 1 ? ">99" : share < 0.005 ? "<1" : String(Math.round(100 * share));
const labelText = ([label, share]) => `${known.label ? known.label + " = " : ""}${label}: ${percent(share)} %`;

// A number with two digits of its scale, the size of what matters in its column: rounding errors show as 0.
function neat(value, scale = Math.abs(value)) {
  if (!Number.isFinite(value)) return "–";
  scale = Math.abs(scale) || Math.abs(value) || 1;
  const size = Math.max(scale, Math.abs(value));
  if (Math.abs(value) < 5e-3 * scale || Math.abs(value) < 1e-15) return "0";
  if (size < 1e-4 || size >= 1e9) return Number(value.toPrecision(3)).toString();
  const digits = Math.min(9, Math.max(0, Math.ceil(1.3 - Math.log10(scale))));
  if (Number(value.toFixed(digits)) === 0) return "0";
  return value.toLocaleString("en", { minimumFractionDigits: Number.isInteger(value) ? 0 : Math.min(digits, 4), maximumFractionDigits: digits }).replace("-", "−");
}
const signed = (value, scale) => (value > 0 ? "+" : "") + neat(value, scale);

// Pairs of row and time (seconds since 1970) in order of both, from all of the stream and from its events.
let anchors = [];
function findAnchors() {
  const pairs = [...known.times];
  for (const e of known.events) { if (e.onsetTime !== null) pairs.push([e.onset, e.onsetTime]); if (e.time !== null) pairs.push([e.step, e.time]); }
  pairs.sort((a, b) => a[0] - b[0]);
  anchors = [];
  for (const pair of pairs) { const last = anchors[anchors.length - 1]; if (!last || (pair[0] > last[0] && pair[1] >= last[1])) anchors.push(pair); }
}
const dated = () => anchors.length > 1;
// Interpolate from column `a` of the anchors to column `b`; beyond the ends at the pace of the whole.
function interpolate(value, a, b) {
  let low = 0, high = anchors.length;
  while (low < high) { const middle = (low + high) >> 1; if (anchors[middle][a] <= value) low = middle + 1; else high = middle; }
  const inside = low > 0 && low < anchors.length, p = inside ? anchors[low - 1] : anchors[0], q = inside ? anchors[low] : anchors[anchors.length - 1];
  const base = low === anchors.length ? q : p;
  return q[a] > p[a] ? base[b] + (value - base[a]) * (q[b] - p[b]) / (q[a] - p[a]) : base[b];
}
const timeAt = (step) => interpolate(step, 0, 1), stepAt = (time) => interpolate(time, 1, 0);

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" "), two = (n) => String(n).padStart(2, "0");
function dateText(seconds, withSeconds = false) {
  const d = new Date(1000 * seconds);
  return `${dayText(d)} ${d.getUTCFullYear()} ${clockText(d)}${withSeconds ? ":" + two(d.getUTCSeconds()) : ""}`;
}
const dayText = (d) => `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`, clockText = (d) => `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;

// "5 Feb 2015 09:24", with seconds where rows come more often than every 20 seconds; "row 1,234" without times.
function when(step, time = null) {
  if (!dated()) return `${stepNoun()} ${count(Math.round(step))}`;
  return dateText(time ?? timeAt(step), (timeAt(known.rows) - timeAt(0)) / Math.max(1, known.rows) < 20);
}
const DURATIONS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
function duration(seconds) {
  if (seconds < 1) return `${neat(seconds)} s`;
  const first = Math.max(0, DURATIONS.findIndex(([, size]) => seconds >= size)), [unit, size] = DURATIONS[first], whole = Math.floor(seconds / size);
  if (first === 3 || whole >= 20) return `${count(Math.round(seconds / size))} ${unit}`;
  const [next, small] = DURATIONS[first + 1], rest = Math.round((seconds - whole * size) / small);
  return rest * small >= size ? `${whole + 1} ${unit}` : rest ? `${whole} ${unit} ${rest} ${next}` : `${whole} ${unit}`;
}
const at = (text) => dated() ? text : "at " + text;
const span = (from, to) => dated() ? duration(Math.max(0, timeAt(to) - timeAt(from))) : counted(Math.max(0, Math.round(to - from)), stepNoun());
const began = (e) => (e.uncertainty ? "" : "about ") + when(e.onset, e.onsetTime) + (e.uncertainty ? ` ± ${dated() ? span(e.onset, e.onset + e.uncertainty) : count(e.uncertainty)}` : "");

// Give an element the meaning of a term as its tooltip.
function explained(element, term) { element.title = TERMS[term]; element.classList.add("term"); return element; }
function showTerms() {
  const list = make("dl");
  for (const [term, meaning] of Object.entries(TERMS)) list.append(make("dt", term), make("dd", meaning));
  $("terms-body").replaceChildren(list); $("terms").showModal();
}
