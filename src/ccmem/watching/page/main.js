// Takes what the server tells and shows it; nothing here changes the model but the names of blocks.
let paused = false, replayed = null, heard = 0, drawn = false, lastNumber = -1;

function view() {
  const span = Number($("span").value), end = Math.max(1, replayed === null ? known.rows : replayed);
  return span ? [Math.max(0, end - span), Math.max(end, Math.min(span, known.rows || span))] : [0, Math.max(1, known.rows)];
}

function draw() {
  drawn = false;
  const canvas = $("timeline"), cursor = replayed === null ? known.rows : replayed, width = canvas.parentNode.clientWidth;
  const height = Math.round(Math.min(560, Math.max(300, 130 + Math.min(known.n_blocks || 1, 12) * 40)));
  canvas.style.height = height + "px";
  drawTimeline(canvas, width, height, view(), cursor);
  const block = replayed === null ? known.block : blockAt(replayed), card = known.cards.get(block);
  const labels = (card ? card.labels : []).filter(([, share]) => share > 0.2).slice(0, 3).map(([label, share]) => `${label} ${(100 * share).toFixed(0)}%`).join(", ");
  $("chip-name").textContent = known.rows ? blockName(block) : "…";
  $("chip").style.background = known.rows ? colour(block) : ""; $("chip").style.color = known.rows && brightness(block) > 150 ? "#22272e" : "";
  for (const [shown, { root }] of cardElements) root.classList.toggle("in-use", shown === block);
  $("chip-label").textContent = labels || (known.names[block] ? `block ${block}` : "");
  const state = replayed === null ? known.state : stateAt(replayed);
  document.body.dataset.state = state;
  $("state").textContent = replayed !== null ? `replay at ${count(Math.round(replayed))}: ${WORDS[state]}` : WORDS[state] + (known.finished && state === "calm" ? ", finished" : "") + (paused ? " (page paused)" : "");
  $("blind").hidden = !known.blind;
  $("rate").textContent = count(known.rate || 0); $("rows").textContent = count(Math.round(cursor));
  $("n-blocks").textContent = count(known.n_blocks || 0); $("n-units").textContent = count(known.n_units || 0);
}

function stateAt(step) {
  const near = Math.max(1, known.rows * 0.02), event = known.events.findLast((e) => e[1] <= step);
  return event && step - event[1] < near ? KINDS[event[0]][3] : "calm";
}

function later() { if (!drawn) { drawn = true; requestAnimationFrame(draw); } }

function hear(update) {
  heard = performance.now();
  const before = known.n_events, names = known.names, fresh = take(update);
  $("title").textContent = known.title; document.title = `${known.title} · ccmem`;
  if (paused) return;
  listEvents(fresh, lastNumber < 0 || before === 0 || before + fresh.length !== known.n_events || !same(names, known.names));
  lastNumber = known.n_events;
  drawCards(); drawLegend(); later();
}

const source = new EventSource("stream");
source.onmessage = (message) => { $("quiet").hidden = true; hear(JSON.parse(message.data)); };
source.onerror = () => { $("quiet").hidden = false; };

$("pause").addEventListener("click", () => {
  paused = !paused; $("pause").setAttribute("aria-pressed", paused); $("pause").textContent = paused ? "Resume" : "Pause";
  if (!paused) listEvents([], true);
  later();
});
$("replay").addEventListener("click", () => {
  if (replayed !== null) { replayed = null; later(); return; }
  const start = performance.now(), seconds = Math.min(14, 4 + known.events.length * 0.6);
  replayed = 0; $("replay").setAttribute("aria-pressed", true); $("replay").textContent = "Stop";
  const step = (now) => {
    if (replayed === null || now - start > seconds * 1000) { replayed = null; $("replay").setAttribute("aria-pressed", false); $("replay").textContent = "Replay"; draw(); return; }
    replayed = known.rows * Math.max(0, now - start) / (seconds * 1000); draw(); requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
});
$("span").addEventListener("change", later);
$("png").addEventListener("click", exportPng); $("gif").addEventListener("click", exportGif); $("json").addEventListener("click", exportJson);
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  for (const [block, element] of cardElements) element.name.style.color = textColour(block);
  later();
});
addEventListener("resize", later);

function drawLegend() {
  const kinds = KINDS.filter((_, kind) => kind < CHANGES_BLOCK || known.events.some((event) => event[0] === kind));
  const texts = kinds.map(([sign, words, name]) => [`${sign} ${words}`, "sign-" + name]);
  if (known.changes.length) texts.push(["┊ true change", "sign-true"]);
  if (!same(texts, drawLegend.shown)) $("legend").replaceChildren(...texts.map(([text, kind]) => make("span", text, kind)));
  drawLegend.shown = texts;
}

$("timeline").addEventListener("pointermove", (e) => {
  const box = $("timeline").getBoundingClientRect(), shown = view(), L = layout(box.width, box.height, Math.max(1, known.n_blocks));
  const step = Math.round(shown[0] + (e.clientX - box.left - L.left) / (L.right - L.left) * (shown[1] - shown[0]));
  if (step < shown[0] || step > Math.min(shown[1], known.rows)) { $("tip").hidden = true; return; }
  $("tip").textContent = `${count(step)}: ${blockName(blockAt(step))}`; $("tip").hidden = false;
  $("tip").style.left = Math.min(e.clientX - box.left + 12, box.width - 150) + "px"; $("tip").style.top = e.clientY - box.top + 32 + "px";
});
$("timeline").addEventListener("pointerleave", () => { $("tip").hidden = true; });
$("timeline").addEventListener("click", (e) => {
  const box = $("timeline").getBoundingClientRect(), shown = view(), L = layout(box.width, box.height, Math.max(1, known.n_blocks));
  const scale = (shown[1] - shown[0]) / (L.right - L.left), step = shown[0] + (e.clientX - box.left - L.left) * scale;
  let best = null;
  for (const event of known.events) if (Math.abs(event[1] - step) < 8 * scale && (!best || Math.abs(event[1] - step) < Math.abs(best[1] - step))) best = event;
  if (best) showWhy(best);
});
