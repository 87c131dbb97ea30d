// The signals beneath the lanes: a strip per column in the colour of the block in use.
const STRIP = 46, ASK_MILLISECONDS = 800;
let strips = null, asking = false, askAgain = false, askTimer = 0, askedAt = 0;

// Columns that differ between two blocks, the plainest first: change in multiples of the spread.
function movedColumns(from, to) {
  const a = known.cards.get(from), b = known.cards.get(to);
  if (!a || !b || !a.bars || !b.bars || known.shape) return [];
  const sizes = b.bars.map((after, column) => {
    const before = a.bars[column], spread = a.spread ? Math.hypot(a.spread[column], b.spread[column]) / Math.SQRT2 : 0;
    return { column, change: after - before, spread, spreads: Math.abs(after - before) / (spread + 1e-6 * (Math.abs(after) + Math.abs(before)) + 1e-300) };
  });
  return sizes.sort((p, q) => q.spreads - p.spreads);
}

// Columns of the strips: the one that was chosen, and those that moved most in the latest events.
function stripColumns(width) {
  const most = known.shape ? 0 : Math.min(known.signals || known.n_features, width < 560 ? 3 : 4), chosen = $("signal").value;
  if (chosen === "none" || !most) return [];
  const score = new Map();
  for (const { from, to } of known.moves.slice(-30)) for (const { column, spreads } of movedColumns(from, to)) score.set(column, (score.get(column) || 0) + Math.min(spreads, 10));
  const order = [...Array(known.signals || Math.min(known.n_features, 32)).keys()].sort((p, q) => (score.get(q) || 0) - (score.get(p) || 0) || p - q);
  const first = chosen === "most" ? [] : [Number(chosen)];
  return [...first, ...order.filter((column) => !first.includes(column))].slice(0, most);
}

function askSignals() {
  if (!known.signals || document.hidden) return;
  if (asking) { askAgain = true; return; }
  clearTimeout(askTimer);
  askTimer = setTimeout(fetchSignals, Math.max(60, askedAt + ASK_MILLISECONDS - performance.now()));
}
async function fetchSignals() {
  const columns = stripColumns($("timeline").clientWidth), [from, to] = view(), margin = 0.2 * (to - from);
  if (!columns.length) return;
  asking = true; askedAt = performance.now();
  try {
    const answer = await (await fetch(`signals/${Math.max(0, Math.floor(from - margin))}/${Math.ceil(to + margin)}/${columns.join(",")}`)).json();
    const numbers = (text) => new Float64Array(bytes(text).buffer), { n } = answer;
    const [low, high, mean] = ["low", "high", "mean"].map((name) => numbers(answer[name]));
    strips = new Map(answer.columns.map((column, i) => [column, { step: numbers(answer.step), low: low.subarray(i * n, (i + 1) * n), high: high.subarray(i * n, (i + 1) * n), mean: mean.subarray(i * n, (i + 1) * n) }]));
    later();
  } catch { /* the run does not answer: the page keeps what it has */ }
  asking = false;
  if (askAgain) { askAgain = false; askSignals(); }
}

// Bins of a column: its signal, or without one the level and spread of the block in use.
function binsOf(column, stretches) {
  const kept = strips && strips.get(column);
  if (kept) return kept;
  const shown = known.signals ? [] : stretches.filter(([, , block]) => known.cards.has(block) && known.cards.get(block).bars);
  const of = (sign) => shown.map(([, , block]) => { const { bars, spread } = known.cards.get(block); return bars[column] + sign * (spread ? spread[column] : 0); });
  return { step: shown.map(([start]) => start), low: of(-1), high: of(1), mean: of(0), levels: true };
}
function binAt(bins, step) {
  let low = 0, high = bins.step.length;
  while (low < high) { const middle = (low + high) >> 1; if (bins.step[middle] <= step) low = middle + 1; else high = middle; }
  return low - 1;
}
function signalTexts(step) {
  const shown = $("timeline").layout, stretches = stretchesIn(view(), known.rows);
  return (shown ? shown.columns : []).map((column, number) => {
    const bins = binsOf(column, stretches), i = binAt(bins, step);
    if (i < 0) return null;
    const [low, high] = shown.ranges[number], scale = high - low || Math.abs(bins.mean[i]), apart = bins.high[i] - bins.low[i] > 0.01 * scale;
    return Number.isNaN(bins.mean[i]) ? `${columnName(column)}: missing`
      : `${columnName(column)}: ${neat(bins.mean[i], scale)}${apart ? ` (${neat(bins.low[i], scale)} to ${neat(bins.high[i], scale)})` : ""}`;
  }).filter((text) => text);
}

function drawStrips(g, L, x, view, cursor, stretches, colours) {
  const end = Math.min(view[1], cursor);
  L.columns.forEach((column, number) => {
    const bins = binsOf(column, stretches), top = L.strips + number * L.strip + 5, bottom = L.strips + (number + 1) * L.strip - 5, n = bins.step.length;
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < n; i++) if ((i + 1 === n || bins.step[i + 1] >= view[0]) && bins.step[i] <= end) { if (bins.low[i] < low) low = bins.low[i]; if (bins.high[i] > high) high = bins.high[i]; }
    L.ranges[number] = [low, high];
    g.strokeStyle = colours.line; g.lineWidth = 1; g.beginPath(); g.moveTo(L.left, bottom + 5.5); g.lineTo(L.right, bottom + 5.5); g.stroke();
    if (!(low <= high)) { g.fillStyle = colours.grey; g.font = "12px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle"; g.fillText("no signal kept from here", L.left + 8, (top + bottom) / 2); return; }
    const flat = high - low <= 1e-9 * Math.max(Math.abs(high), Math.abs(low)), y = (value) => flat ? (top + bottom) / 2 : bottom - (value - low) / (high - low) * (bottom - top);
    let open = false, shown = -1;
    g.lineWidth = 1.4;
    const close = () => { if (open) g.stroke(); open = false; };
    for (let i = 0; i < n && bins.step[i] <= end; i++) {
      const a = bins.step[i], b = i + 1 < n ? bins.step[i + 1] : Math.max(a, end), block = blockAt(Math.min((a + b) / 2, cursor));
      if (b < view[0]) continue;
      if (Number.isNaN(bins.mean[i])) { close(); continue; }
      const left = x(a), right = Math.max(x(Math.min(b, end)), left + 0.7), high = y(bins.high[i]);
      g.fillStyle = colour(block); g.globalAlpha = 0.3; g.fillRect(left, high, right - left, Math.max(1, y(bins.low[i]) - high)); g.globalAlpha = 1;
      const middle = (left + right) / 2, at = y(bins.mean[i]);
      if (open && block === shown && !bins.levels) { g.lineTo(middle, at); continue; }
      if (open && !bins.levels) g.lineTo(middle, at);
      close();
      g.strokeStyle = textColour(block); g.beginPath(); open = true; shown = block;
      if (bins.levels) { g.moveTo(left, at); g.lineTo(right, at); } else g.moveTo(middle, at);
    }
    close();
  });
}

function labelStrips(g, L, colours) {
  g.textAlign = "right"; g.textBaseline = "middle";
  L.columns.forEach((column, number) => {
    const y = L.strips + (number + 0.5) * L.strip, [low, high] = L.ranges[number] || [];
    g.font = "12px system-ui, sans-serif"; g.fillStyle = colours.ink; g.fillText(fitted(g, columnName(column), L.left - 12), L.left - 8, y - 8);
    g.font = "11px system-ui, sans-serif"; g.fillStyle = colours.grey;
    if (low <= high) g.fillText(fitted(g, high > low ? `${neat(low, high - low)} … ${neat(high, high - low)}` : neat(low), L.left - 12), L.left - 8, y + 8);
  });
}

function listColumns() {
  const n = known.shape ? 0 : known.signals || Math.min(known.n_features, 32), names = [...Array(n).keys()].map(columnName);
  if (same(names, listColumns.names)) return;
  listColumns.names = names;
  const select = $("signal"), chosen = select.value, option = (value, text) => { const o = make("option", text); o.value = value; return o; };
  select.replaceChildren(option("most", "columns that moved most"), ...names.map((name, i) => option(i, middleCut(name, 30))), option("none", "no columns"));
  select.value = [...select.options].some((o) => o.value === chosen) ? chosen : "most";
  select.parentNode.hidden = !n;
}
