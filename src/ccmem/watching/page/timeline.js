// The block in use over the stream, and the alarm beneath. Details appear when there is room for them.
const MARGIN = { left: 118, right: 12, top: 10, alarm: 64, axis: 24 };

function layout(width, height, blocks) {
  const left = width < 560 ? 74 : MARGIN.left;
  const lanes = height - MARGIN.top - MARGIN.alarm - MARGIN.axis - 12;
  return { left, right: width - MARGIN.right, top: MARGIN.top, lane: lanes / Math.max(blocks, 1), bottom: MARGIN.top + lanes,
    alarm: height - MARGIN.axis - MARGIN.alarm, floor: height - MARGIN.axis };
}

function drawTimeline(canvas, width, height, view, cursor) {
  const ratio = canvas.ratio || window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  const ink = css("--ink"), grey = css("--grey"), line = css("--line"), paper = css("--paper");
  g.fillStyle = paper; g.fillRect(0, 0, width, height);
  const blocks = Math.max(1, known.n_blocks), L = layout(width, height, blocks);
  const span = Math.max(1, view[1] - view[0]), x = (step) => L.left + (step - view[0]) / span * (L.right - L.left);
  const middle = (block) => L.top + (block + 0.5) * L.lane;
  const thick = Math.max(1, Math.min(22, L.lane * 0.5));
  g.save(); g.beginPath(); g.rect(L.left, 0, L.right - L.left + 1, height); g.clip();

  g.strokeStyle = grey; g.globalAlpha = 0.65; g.setLineDash([2, 4]);
  for (const step of known.changes) if (step >= view[0] && step <= view[1] && step <= cursor) { g.beginPath(); g.moveTo(x(step), L.top); g.lineTo(x(step), L.floor); g.stroke(); }
  g.setLineDash([]); g.globalAlpha = 1;

  const inUse = cursor < known.rows ? blockAt(cursor) : known.block;
  const stretches = stretchesIn(view, cursor), born = new Map();
  for (const event of known.events) if (event[1] <= cursor && !born.has(event[3])) born.set(event[3], event[1]);
  if (L.lane >= 6) for (let block = 0; block < blocks; block++) {
    const from = known.events.length && known.events[0][2] === block ? 0 : born.get(block);
    if (from === undefined && block !== inUse) continue;
    g.fillStyle = colour(block); g.globalAlpha = 0.2;
    g.fillRect(x(from || 0), middle(block) - thick * 0.16, x(cursor) - x(from || 0), thick * 0.32);
  }
  g.globalAlpha = 1;
  const full = new Set();  // pixels that are taken: what lies within one need not be drawn again
  for (const [start, end, block] of stretches) {
    const a = x(start), b = x(end);
    if (b - a < 1) { const pixel = Math.round(a) * 8192 + Math.round(middle(block)); if (full.has(pixel)) continue; full.add(pixel); }
    g.fillStyle = colour(block);
    const wide = Math.max(1, b - a - (b - a > 6 ? 2 : 0));
    if (wide > 8 && thick > 6 && g.roundRect) { g.beginPath(); g.roundRect(a + 1, middle(block) - thick / 2, wide, thick, 3); g.fill(); }
    else g.fillRect(a, middle(block) - thick / 2, wide, thick);
  }
  drawEvents(g, L, x, middle, thick, view, cursor, ink, paper);
  drawAlarm(g, L, x, view, cursor);
  g.restore();

  g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle"; g.textAlign = "right";
  const every = roundUp(15 / L.lane);
  for (let block = 0; block < blocks; block += every) {
    g.fillStyle = textColour(block); g.font = (block === inUse ? "bold " : "") + "12px system-ui, sans-serif";
    const name = !known.names[block] && g.measureText(blockName(block)).width > L.left - 12 ? count(block) : blockName(block);
    g.fillText(fitted(g, name, L.left - 12), L.left - 8, middle(block));
  }
  g.font = "12px system-ui, sans-serif"; g.fillStyle = css("--alarm"); g.fillText("alarm", L.left - 8, L.floor - 22);
  if (known.limit) g.fillText("limit " + known.limit, L.left - 8, L.floor - (L.floor - L.alarm) / 1.3);
  g.strokeStyle = line; g.beginPath(); g.moveTo(L.left, L.floor + 0.5); g.lineTo(L.right, L.floor + 0.5); g.stroke();
  g.fillStyle = grey; g.textBaseline = "top";
  for (const step of ticks(view, Math.max(2, Math.floor((L.right - L.left) / 75)))) {
    const text = span < 3e4 ? count(step) : short(step), half = g.measureText(text).width / 2;
    g.textAlign = "center"; g.fillText(text, Math.min(Math.max(x(step), L.left + half), L.right - half), L.floor + 6);
  }
}

// The next of 1, 2, 5, 10, 20, 50, ...
function roundUp(number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, number)));
  return [1, 2, 5, 10].find((n) => n * power >= number) * power;
}

// Round numbers within a view, at most about so many.
function ticks(view, most) {
  const every = roundUp((view[1] - view[0]) / most), found = [];
  for (let step = Math.ceil(view[0] / every) * every; step <= view[1]; step += every) found.push(step);
  return found;
}

function fitted(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  while (text.length > 1 && g.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}

// [start, end, block] of every stretch that is visible.
function stretchesIn(view, cursor) {
  const events = known.events, end = Math.min(view[1], cursor), stretches = [];
  let from = view[0], block = blockAt(view[0]);
  for (const event of events) {
    if (event[1] <= view[0]) continue;
    if (event[1] > end) break;
    stretches.push([from, event[1], block]);
    from = event[1]; block = event[3];
  }
  if (end > from) stretches.push([from, end, block]);
  return stretches;
}

function drawEvents(g, L, x, middle, thick, view, cursor, ink, paper) {
  const visible = known.events.filter((event) => event[1] >= view[0] && event[1] <= Math.min(view[1], cursor));
  const room = (x(Math.min(view[1], cursor)) - L.left) / Math.max(1, visible.length);
  g.font = "12px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle";
  const tones = KINDS.map(([, , name]) => css("--" + name)), ticked = new Set();
  visible.forEach(([kind, step, origin, target, , , , column], i) => {
    const at = x(step), free = (i + 1 < visible.length ? x(visible[i + 1][1]) : L.right) - at, a = middle(origin), b = middle(target), tone = tones[kind];
    if (room < 3) { const pixel = 4 * Math.round(at) + kind; if (ticked.has(pixel)) return; ticked.add(pixel); }
    if (kind >= CHANGES_BLOCK) {
      const y = L.lane >= 14 ? b - thick / 2 - 7 : L.top - 5;
      g.fillStyle = tone; sign(g, kind, at, y, Math.max(2, Math.min(5, room)), paper);
      if (free > g.measureText(columnName(column)).width + 14 && L.lane >= 26) g.fillText(columnName(column), at + 9, y);
      return;
    }
    g.strokeStyle = g.fillStyle = tone;
    if (room >= 14 && L.lane >= 14) {
      const way = b > a ? 1 : -1, tip = b - way * (thick / 2 + 2);
      g.lineWidth = 1.5; g.beginPath(); g.moveTo(at, a + way * (thick / 2 + 2)); g.lineTo(at, tip); g.stroke();
      g.beginPath(); g.moveTo(at, tip); g.lineTo(at - 4, tip - way * 7); g.lineTo(at + 4, tip - way * 7); g.fill();
      const text = KINDS[kind][1];
      if (free > g.measureText(text).width + 14 && L.lane >= 26) {
        const y = (a + b) / 2 + (Math.abs(b - a) > 1.5 * L.lane ? L.lane / 2 : 0);
        g.globalAlpha = 0.85; g.fillStyle = paper; g.fillRect(at + 5, y - 8, g.measureText(text).width + 6, 16);
        g.globalAlpha = 1; g.fillStyle = tone; g.fillText(text, at + 8, y);
      }
    } else if (room >= 3) sign(g, kind, at, b, Math.min(4, 1 + room / 4), paper);
    else g.fillRect(at, L.top - 8, 1, 5);
  });
}

function sign(g, kind, x, y, size, edge) {
  g.beginPath();
  if (kind >= CHANGES_BLOCK) { const way = kind === CHANGES_BLOCK ? 1 : -1; g.moveTo(x, y + way * size * 1.2); g.lineTo(x - size * 1.2, y - way * size); g.lineTo(x + size * 1.2, y - way * size); }
  else if (kind === 0) { g.moveTo(x, y - size * 1.3); g.lineTo(x + size * 1.3, y); g.lineTo(x, y + size * 1.3); g.lineTo(x - size * 1.3, y); }
  else g.arc(x, y, size, 0, 7);
  g.fill(); g.strokeStyle = edge; g.lineWidth = 1; g.stroke();
}

function drawAlarm(g, L, x, view, cursor) {
  const { width, peaks } = known.trace, top = Math.max(known.limit || 1, 1) * 1.3, tone = css("--alarm");
  const first = Math.max(0, Math.floor(view[0] / width)), last = Math.min(peaks.length, Math.ceil(Math.min(view[1], cursor) / width) + 1);
  g.fillStyle = tone; g.globalAlpha = 0.85;
  for (let i = first; i < last; i++) if (peaks[i]) {
    const high = Math.min(1, peaks[i] / top) * (L.floor - L.alarm);
    g.fillRect(x(i * width), L.floor - high, Math.max(1.5, x((i + 1) * width) - x(i * width)), high);
  }
  g.globalAlpha = 1;
  if (known.limit) {
    const y = L.floor - (L.floor - L.alarm) / 1.3;
    g.strokeStyle = tone; g.lineWidth = 1; g.setLineDash([1, 3]); g.beginPath(); g.moveTo(L.left, y); g.lineTo(L.right, y); g.stroke(); g.setLineDash([]);
  }
}
