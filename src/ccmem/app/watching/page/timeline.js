// The block in use over the stream; beneath it signals, evidence and the axis.
const MARGIN = { top: 16, evidence: 46, axis: 26, overview: 10 }, MOST_LANES = 12, LARGEST_EVIDENCE = 50;

// Blocks with a lane: all of them, or those most used in the view and one lane for the others.
function lanesIn(stretches) {
  const index = new Map();
  if (known.n_blocks <= MOST_LANES) { for (let block = 0; block < Math.max(1, known.n_blocks); block++) index.set(block, block); return { blocks: [...index.keys()], index, others: 0 }; }
  const rows = new Map();
  for (const [start, end, block] of stretches) rows.set(block, (rows.get(block) || 0) + end - start);
  const blocks = [...rows.keys()].sort((p, q) => rows.get(q) - rows.get(p)).slice(0, MOST_LANES - 1).sort((p, q) => p - q);
  blocks.forEach((block, lane) => index.set(block, lane));
  return { blocks, index, others: known.n_blocks - blocks.length };
}

function layout(width, lanes) {
  const narrow = width < 560, n = Math.max(1, lanes.blocks.length + (lanes.others ? 1 : 0)), lane = n <= 6 ? 34 : n <= 9 ? 27 : 22;
  const columns = stripColumns(width), bottom = MARGIN.top + n * lane, strips = bottom + (columns.length ? 8 : 0);
  const evidence = strips + columns.length * STRIP + 10, floor = evidence + MARGIN.evidence;
  return { left: narrow ? 92 : 136, right: width - 12, top: MARGIN.top, lane, n, bottom, strips, strip: STRIP, columns, ranges: [], evidence, floor, height: floor + MARGIN.axis + MARGIN.overview };
}

// Draw the timeline at a width; the height follows from what there is to draw.
function drawTimeline(canvas, width, view, cursor) {
  const stretches = stretchesIn(view, cursor), lanes = lanesIn(stretches), L = layout(width, lanes), ratio = canvas.ratio || window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(L.height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(L.height * ratio); }
  canvas.layout = L;
  const g = canvas.getContext("2d"), colours = { ink: css("--ink"), grey: css("--grey"), line: css("--line"), paper: css("--paper"), doubt: css("--doubt") };
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.fillStyle = colours.paper; g.fillRect(0, 0, width, L.height);
  const rows = Math.max(1, view[1] - view[0]), x = (step) => L.left + (step - view[0]) / rows * (L.right - L.left);
  const middle = (block) => L.top + ((lanes.index.get(block) ?? lanes.blocks.length) + 0.5) * L.lane, thick = Math.min(20, L.lane * 0.55);
  const inUse = cursor < known.rows ? blockAt(cursor) : known.block;
  g.save(); g.beginPath(); g.rect(L.left, 0, L.right - L.left + 1, L.height); g.clip();
  g.strokeStyle = colours.grey; g.globalAlpha = 0.65; g.setLineDash([2, 4]);
  for (const step of known.changes) if (step >= view[0] && step <= Math.min(view[1], cursor)) { g.beginPath(); g.moveTo(x(step), L.top); g.lineTo(x(step), L.floor); g.stroke(); }
  g.setLineDash([]); g.globalAlpha = 1;
  drawDoubt(g, L, x, view, cursor, colours);
  drawLanes(g, L, x, middle, thick, stretches);
  drawEvents(g, L, x, middle, thick, view, cursor, colours);
  drawStrips(g, L, x, view, cursor, stretches, colours);
  drawEvidence(g, L, x, view, cursor, colours);
  g.restore();
  g.textBaseline = "middle"; g.textAlign = "right";
  lanes.blocks.forEach((block) => { g.fillStyle = textColour(block); g.font = (block === inUse ? "bold " : "") + "12px system-ui, sans-serif"; g.fillText(fitted(g, blockName(block), L.left - 12), L.left - 8, middle(block)); });
  if (lanes.others) { g.fillStyle = colours.grey; g.font = "12px system-ui, sans-serif"; g.fillText(fitted(g, `${short(lanes.others)} others`, L.left - 12), L.left - 8, L.top + (lanes.blocks.length + 0.5) * L.lane); }
  labelStrips(g, L, colours);
  drawAxis(g, L, x, view, colours);
  drawOverview(g, L, view, colours);
}

// [start, end, block] of every stretch in the view, as far as it was noticed at the cursor.
function stretchesIn(view, cursor) {
  const end = Math.min(view[1], cursor), found = [];
  let at = moveAt(view[0]), from = view[0], block = blockAt(view[0]);
  for (at += 1; at < known.moves.length; at++) {
    const move = known.moves[at];
    if (move.start > end || move.step > cursor) break;
    if (move.start > from) found.push([from, move.start, block]);
    from = Math.max(from, move.start); block = move.to;
  }
  if (end > from) found.push([from, end, block]);
  return found;
}

function drawLanes(g, L, x, middle, thick, stretches) {
  const drawn = new Set();  // what lies within one pixel need not be drawn again
  for (const [start, end, block] of stretches) {
    const a = x(start), b = x(end), y = middle(block);
    if (b - a < 1) { const pixel = Math.round(a) * 8192 + Math.round(y); if (drawn.has(pixel)) continue; drawn.add(pixel); }
    g.fillStyle = colour(block);
    const wide = Math.max(1, b - a - (b - a > 6 ? 1 : 0));
    if (wide > 8 && g.roundRect) { g.beginPath(); g.roundRect(a, y - thick / 2, wide, thick, 3); g.fill(); } else g.fillRect(a, y - thick / 2, wide, thick);
  }
}

// Shade where a change may have begun: onset minus and plus its uncertainty.
function drawDoubt(g, L, x, view, cursor, colours) {
  let last = -1;
  for (const { onset, step, uncertainty } of known.moves) {
    if (!uncertainty || step > cursor || onset + uncertainty < view[0] || onset - uncertainty > view[1]) continue;
    const a = x(onset - uncertainty), b = Math.max(x(onset + uncertainty), a + 2), from = Math.max(a, last);
    if (b <= from) continue;
    g.fillStyle = colours.doubt; g.globalAlpha = 0.2; g.fillRect(from, L.top - 6, b - from, L.floor - L.top + 6); g.globalAlpha = 1;
    last = b;
  }
}

function drawEvents(g, L, x, middle, thick, view, cursor, colours) {
  const visible = known.events.filter((e) => e.onset >= view[0] && e.onset <= view[1] && e.step <= cursor);
  const room = (L.right - L.left) / Math.max(1, visible.length), tones = KINDS.map(([, , name]) => css("--" + name)), ticked = new Set();
  g.font = "12px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle";
  visible.forEach((e, i) => {
    const at = x(e.onset), free = (i + 1 < visible.length ? x(visible[i + 1].onset) : L.right) - at, a = middle(e.from), b = middle(e.to), tone = tones[e.kind];
    if (room < 3) { const pixel = 4 * Math.round(at) + e.kind; if (ticked.has(pixel)) return; ticked.add(pixel); }
    g.fillStyle = g.strokeStyle = tone;
    if (e.kind >= CHANGES_BLOCK) {
      sign(g, e.kind, at, b - thick / 2 - 6, Math.max(2, Math.min(5, room)), colours.paper);
      if (free > g.measureText(columnName(e.column)).width + 14 && L.lane >= 26) { g.fillStyle = tone; g.fillText(columnName(e.column), at + 9, b - thick / 2 - 6); }
    } else if (room >= 14 && a !== b) {
      const way = b > a ? 1 : -1, tip = b - way * (thick / 2 + 1);
      g.lineWidth = 1.5; g.beginPath(); g.moveTo(at, a + way * thick / 2); g.lineTo(at, tip); g.stroke();
      g.beginPath(); g.moveTo(at, tip); g.lineTo(at - 4, tip - way * 7); g.lineTo(at + 4, tip - way * 7); g.fill();
      const text = KINDS[e.kind][1], wide = g.measureText(text).width;
      if (free > wide + 14 && L.lane >= 26) {
        const y = (a + b) / 2 + (Math.abs(b - a) > 1.5 * L.lane ? L.lane / 2 : 0);
        g.globalAlpha = 0.85; g.fillStyle = colours.paper; g.fillRect(at + 5, y - 8, wide + 6, 16); g.globalAlpha = 1; g.fillStyle = tone; g.fillText(text, at + 8, y);
      }
    } else if (room >= 3) sign(g, e.kind, at, b, Math.min(4, 1 + room / 4), colours.paper);
    else g.fillRect(at, L.top - 12, 1, 6);
  });
}

function sign(g, kind, x, y, size, edge) {
  g.beginPath();
  if (kind >= CHANGES_BLOCK) { const way = kind === CHANGES_BLOCK ? 1 : -1; g.moveTo(x, y + way * size * 1.2); g.lineTo(x - size * 1.2, y - way * size); g.lineTo(x + size * 1.2, y - way * size); g.closePath(); }
  else if (kind === 0) { g.moveTo(x, y - size * 1.3); g.lineTo(x + size * 1.3, y); g.lineTo(x, y + size * 1.3); g.lineTo(x - size * 1.3, y); g.closePath(); }
  else g.arc(x, y, size, 0, 7);
  g.fill(); g.strokeStyle = edge; g.lineWidth = 1; g.stroke();
}

// Evidence for a change against its threshold: linear up to the threshold, logarithmic beyond it.
const height = (evidence) => evidence <= 1 ? 0.4 * evidence : 0.4 + 0.6 * Math.min(1, Math.log(evidence) / Math.log(LARGEST_EVIDENCE));
function drawEvidence(g, L, x, view, cursor, colours) {
  const { width, peaks } = known.trace, tone = css("--alarm"), high = L.floor - L.evidence, line = L.floor - height(1) * high;
  const first = Math.max(0, Math.floor(view[0] / width)), last = Math.min(peaks.length, Math.ceil(Math.min(view[1], cursor) / width) + 1);
  g.fillStyle = tone; g.globalAlpha = 0.85;
  for (let i = first; i < last; i++) if (peaks[i]) { const tall = height(peaks[i]) * high; g.fillRect(x(i * width), L.floor - tall, Math.max(2, x((i + 1) * width) - x(i * width)), tall); }
  g.globalAlpha = 1;
  g.strokeStyle = tone; g.lineWidth = 1; g.setLineDash([1, 3]); g.beginPath(); g.moveTo(L.left, line); g.lineTo(L.right, line); g.stroke(); g.setLineDash([]);
}

function drawAxis(g, L, x, view, colours) {
  const high = L.floor - L.evidence;
  g.font = "12px system-ui, sans-serif"; g.textAlign = "right"; g.textBaseline = "middle"; g.fillStyle = css("--alarm");
  g.fillText("evidence", L.left - 8, L.evidence + 8);
  g.font = "11px system-ui, sans-serif"; g.fillText("threshold", L.left - 8, L.floor - height(1) * high);
  g.strokeStyle = colours.line; g.lineWidth = 1; g.beginPath(); g.moveTo(L.left, L.floor + 0.5); g.lineTo(L.right, L.floor + 0.5); g.stroke();
  g.fillStyle = colours.grey; g.font = "12px system-ui, sans-serif"; g.textBaseline = "top"; g.textAlign = "center";
  const most = Math.max(2, Math.floor((L.right - L.left) / 95));
  let free = L.left;
  for (const [step, text] of dated() ? timeTicks(view, most) : ticks(view, most)) {
    const half = g.measureText(text).width / 2, at = Math.min(Math.max(x(step), L.left + half), L.right - half);
    if (at - half < free) continue;
    g.fillText(text, at, L.floor + 7); g.fillRect(x(step), L.floor, 1, 4); free = at + half + 8;
  }
}

// The whole history with the part that is shown, when only a part is.
function drawOverview(g, L, view, colours) {
  const rows = Math.max(1, known.rows), at = (step) => L.left + step / rows * (L.right - L.left), y = L.height - 6;
  if (view[0] <= 0 && view[1] >= rows) return;
  g.fillStyle = colours.line; g.fillRect(L.left, y, L.right - L.left, 4);
  g.fillStyle = colours.grey; g.fillRect(at(view[0]), y, Math.max(4, at(Math.min(view[1], rows)) - at(view[0])), 4);
}

// The next of 1, 2, 5, 10, 20, 50, ...
function roundUp(number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, number)));
  return [1, 2, 5, 10].find((n) => n * power >= number) * power;
}
function ticks(view, most) {
  const every = roundUp((view[1] - view[0]) / most), found = [];
  for (let step = Math.ceil(view[0] / every) * every; step <= view[1]; step += every) found.push([step, view[1] - view[0] < 3e4 ? count(step) : short(step)]);
  return found;
}
const TIME_STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];
function timeTicks(view, most) {
  const [from, to] = view.map(timeAt), every = TIME_STEPS.find((size) => (to - from) / size <= most) || roundUp((to - from) / most), found = [];
  let day = "";
  for (let time = Math.ceil(from / every) * every; time <= to; time += every) {
    const d = new Date(1000 * time), seconds = every < 60 ? ":" + two(d.getUTCSeconds()) : "", hours = clockText(d) + seconds, date = dayText(d);
    found.push([stepAt(time), every >= 2592000 ? `${MONTHS[d.getUTCMonth()]} ${d.getUTCFullYear()}` : every >= 86400 ? date : date === day ? hours : hours === "00:00" ? date : `${date} ${hours}`]);
    day = date;
  }
  return found;
}

function fitted(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  while (text.length > 1 && g.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}
