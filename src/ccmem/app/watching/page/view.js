// The rows that are shown: all, the latest, or a range chosen by zoom and pan.
const LEAST_ROWS = 20;
let range = null, follows = false;  // a range that reaches the last row moves along with it

function view() {
  const end = Math.max(1, replayed === null ? known.rows : replayed), latest = Number($("span").value);
  if (range) return range;
  return latest > 0 ? [Math.max(0, end - latest), Math.max(end, Math.min(latest, known.rows || latest))] : [0, Math.max(1, known.rows)];
}

function setView(from, to) {
  const rows = Math.max(1, known.rows), width = Math.min(rows, Math.max(LEAST_ROWS, to - from));
  from = Math.min(Math.max(0, (from + to - width) / 2), rows - width);
  range = width >= rows ? null : [from, from + width];
  follows = range !== null && range[1] >= rows - 1e-9;
  $("span").value = range ? "-1" : "0";
  later(); askSignals();
}
function followRows(more) { if (follows && range && more > 0) { range = [range[0] + more, range[1] + more]; } }
function zoom(factor, centre) { const [a, b] = view(), at = centre ?? (a + b) / 2; setView(at - (at - a) * factor, at + (b - at) * factor); }
function pan(rows) { const [a, b] = view(), move = Math.min(Math.max(rows, -a), Math.max(0, known.rows - b)); setView(a + move, b + move); }
function showEvent(event) {
  const at = moveAt(event.start ?? event.step), next = known.moves[at + 1], length = Math.max(60, 4 * event.uncertainty, ((next ? next.start : known.rows) - event.onset) * 0.5, event.step - event.onset);
  setView(event.onset - 0.8 * length, event.onset + 1.2 * length);
}
function nextEvent(way) {
  const [a, b] = view(), middle = (a + b) / 2, near = 0.01 * (b - a);
  const found = way > 0 ? known.events.find((e) => e.onset > middle + near) : known.events.findLast((e) => e.onset < middle - near);
  if (found) setView(found.onset - (b - a) / 2, found.onset + (b - a) / 2);
}

function stepUnder(e) {
  const box = $("timeline").getBoundingClientRect(), L = $("timeline").layout, [a, b] = view();
  return L ? a + (e.clientX - box.left - L.left) / (L.right - L.left) * (b - a) : 0;
}
const rowsPerPixel = () => { const L = $("timeline").layout, [a, b] = view(); return L ? (b - a) / (L.right - L.left) : 1; };

const KEYS = { ArrowLeft: () => pan(-(view()[1] - view()[0]) / 5), ArrowRight: () => pan((view()[1] - view()[0]) / 5),
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => setView(0, known.rows),
  Home: () => pan(-known.rows), End: () => pan(known.rows), n: () => nextEvent(1), p: () => nextEvent(-1) };

function listenToView(canvas) {
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("wheel", (e) => {
    if (!known.rows || (!range && e.deltaY > 0)) return;  // all is shown already: the page scrolls
    e.preventDefault();
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(e.deltaX * rowsPerPixel());
    else zoom(1.0016 ** Math.max(-300, Math.min(300, e.deltaY * (e.deltaMode ? 30 : 1))), stepUnder(e));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (e) => { if (e.button) return; pointers.set(e.pointerId, e); moved = 0; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", (e) => {
    const last = pointers.get(e.pointerId);
    if (!last) { showTip(e); return; }
    pointers.set(e.pointerId, e); moved += Math.abs(e.clientX - last.clientX);
    if (moved < 4) return;
    $("tip").hidden = true;
    if (pointers.size === 1) { pan((last.clientX - e.clientX) * rowsPerPixel()); return; }
    const other = [...pointers.values()].find((p) => p.pointerId !== e.pointerId), apart = (p) => Math.max(10, Math.abs(p.clientX - other.clientX));
    zoom(apart(last) / apart(e), stepUnder({ clientX: (e.clientX + other.clientX) / 2 }));
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => {
    if (name === "pointerup" && pointers.has(e.pointerId) && moved < 4) clickAt(e);
    pointers.delete(e.pointerId);
  });
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("dblclick", () => setView(0, known.rows));
  canvas.addEventListener("keydown", (e) => { const act = KEYS[e.key]; if (act && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); act(); } });
  $("zoom-in").addEventListener("click", () => zoom(0.5)); $("zoom-out").addEventListener("click", () => zoom(2));
  $("earlier").addEventListener("click", () => nextEvent(-1)); $("later").addEventListener("click", () => nextEvent(1));
  $("span").addEventListener("change", () => { range = null; later(); askSignals(); });
}

function clickAt(e) {
  const step = stepUnder(e), near = 8 * rowsPerPixel();
  let best = null;
  for (const event of known.events) { const far = Math.min(Math.abs(event.onset - step), Math.abs(event.step - step)); if (far < near && (!best || far < best.far)) best = { event, far }; }
  if (best) showWhy(best.event);
}

function showTip(e) {
  const canvas = $("timeline"), step = Math.floor(stepUnder(e)), [a, b] = view(), tip = $("tip"), box = canvas.getBoundingClientRect();
  if (step < a || step > Math.min(b, known.rows)) { tip.hidden = true; return; }
  const at = moveAt(step), move = known.moves[at], from = move ? move.start : 0, to = known.moves[at + 1] ? known.moves[at + 1].start : known.rows;
  const lines = [make("b", blockName(blockAt(step))), make("div", when(step) + (dated() ? `, row ${count(step)}` : "")), make("div", `in use for ${span(from, to)}`)];
  const doubtful = known.moves.find((m) => Math.abs(m.onset - step) <= m.uncertainty);
  if (doubtful) lines.push(make("div", `uncertain: a change began at ${began(doubtful)}`));
  for (const text of signalTexts(step)) lines.push(make("div", text));
  tip.replaceChildren(...lines); tip.hidden = false;
  tip.style.left = Math.max(0, Math.min(e.clientX - box.left + 14, box.width - tip.offsetWidth - 4)) + "px"; tip.style.top = e.clientY - box.top + 42 + "px";
}
