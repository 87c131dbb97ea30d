// Takes what the server sends and shows it. The page changes nothing in the model but the names of blocks.
let paused = false, replayed = null, drawn = false, lastNumber = -1;

function draw() {
  drawn = false;
  const canvas = $("timeline"), cursor = replayed === null ? known.rows : replayed;
  drawTimeline(canvas, canvas.parentNode.clientWidth, view(), cursor);
  canvas.style.height = canvas.layout.height + "px";
  const block = replayed === null ? known.block : blockAt(replayed), card = known.cards.get(block);
  $("chip-name").textContent = known.rows ? blockTitle(block) : "…";
  $("chip").style.background = known.rows ? colour(block) : ""; $("chip").style.color = known.rows && brightness(block) > 150 ? "#22272e" : "";
  for (const [shown, { root }] of cardElements) root.classList.toggle("in-use", shown === block);
  const labels = (card ? card.labels : []).filter(([, share]) => share > 0.2).slice(0, 2).map(labelText).join(", ");
  $("chip-label").textContent = labels || (known.names[block] ? `block ${block}` : "");
  $("since").textContent = known.rows && replayed === null && card && known.n_blocks > 1 ? usage(card) + "." : "";
  if (known.window) $("since").textContent += ` A window has ${counted(known.window, "row")}; one begins every ${counted(known.hop, "row")}.`;
  drawState(cursor);
}

function drawState(cursor) {
  const finished = Boolean(known.finished) && replayed === null, state = replayed !== null ? stateAt(replayed) : finished && known.rows ? "finished" : known.state;
  document.body.dataset.state = state;
  const idle = known.idle > 15 && state === "calm" ? `, no new rows for ${duration(known.idle)}` : "";
  $("state").textContent = replayed !== null ? `Replay at ${when(replayed)}: ${WORDS[state]}`
    : state === "finished" ? `Finished: ${counted(known.rows, stepNoun())} learned` : capital(WORDS[state]) + idle + (paused ? " (page paused)" : "");
  $("state").title = TERMS[{ new: "new block", lost: "column lost", back: "column back" }[state] || state] || (finished ? "Nothing more will be learned. You can still inspect, name blocks and save." : "");
  $("rate").parentNode.hidden = finished; $("blind").hidden = !known.blind;
  $("rate").textContent = count(known.rate || 0); $("rows").textContent = count(Math.round(cursor));
  $("rows").previousElementSibling.textContent = stepNoun() + "s"; $("rate").previousElementSibling.textContent = stepNoun() + "s/s";
  $("n-blocks").textContent = count(known.n_blocks || 0); $("n-units").textContent = count(known.n_units || 0);
}

function stateAt(step) {
  const event = known.events.findLast((e) => e.step <= step);
  return event && step - event.step < Math.max(1, known.rows * 0.02) ? KINDS[event.kind][3] : "calm";
}

function later() { if (!drawn) { drawn = true; requestAnimationFrame(draw); } }

function hear(update) {
  const before = known.n_events, rows = known.rows, names = known.names, wasDated = dated(), fresh = take(update);
  $("title").textContent = known.title; document.title = `${known.finished ? "✓ " : ""}${known.title} · ccmem`;
  if (paused) return;
  followRows(known.rows - rows);
  const anew = lastNumber < 0 || before === 0 || before + fresh.length !== known.n_events || !same(names, known.names) || wasDated !== dated();
  lastNumber = known.n_events;
  drawCards(); listEvents(fresh, anew); drawLegend(); listColumns(); later();
  if (known.rows !== rows || fresh.length || !strips) askSignals();
}

const source = new EventSource("stream");
source.onmessage = (message) => { $("quiet").hidden = true; hear(JSON.parse(message.data)); };
source.onerror = () => { $("quiet").hidden = false; $("quiet").classList.toggle("over", Boolean(known.finished)); $("quiet").textContent = known.finished ? "The run has ended. This page shows its last state." : "No answer from the run."; };

function press(button, pressed, text) { button.setAttribute("aria-pressed", pressed); button.textContent = text; }
$("pause").addEventListener("click", () => {
  paused = !paused; press($("pause"), paused, paused ? "Resume" : "Pause");
  if (!paused) { listEvents([], true); askSignals(); }
  later();
});
$("replay").addEventListener("click", () => {
  if (replayed !== null) { replayed = null; press($("replay"), false, "Replay"); later(); return; }
  const start = performance.now(), seconds = Math.min(14, 4 + known.events.length * 0.6);
  replayed = 0; press($("replay"), true, "Stop");
  const step = (now) => {
    if (replayed === null || now - start > seconds * 1000) { replayed = null; press($("replay"), false, "Replay"); draw(); return; }
    replayed = known.rows * Math.max(0, now - start) / (seconds * 1000); draw(); requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
});
$("signal").addEventListener("change", () => { strips = null; later(); askSignals(); });
$("more-cards").addEventListener("click", () => { allCards = !allCards; drawCards(); });
$("more-events").addEventListener("click", () => { allEvents = !allEvents; listEvents([], false); });
$("help").addEventListener("click", showTerms);
$("png").addEventListener("click", exportPng); $("gif").addEventListener("click", exportGif); $("json").addEventListener("click", exportJson);
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  for (const [block, { name }] of cardElements) name.style.color = textColour(block);
  listEvents([], true); later();
});
addEventListener("resize", later);
document.addEventListener("visibilitychange", askSignals);
listenToView($("timeline"));
for (const element of document.querySelectorAll("[data-term]")) explained(element, element.dataset.term);

function drawLegend() {
  const kinds = KINDS.filter((_, kind) => kind < CHANGES_BLOCK || known.events.some((event) => event.kind === kind));
  const texts = kinds.map(([sign, words, name]) => [`${sign} ${words}`, "sign-" + name, words]);
  if (known.moves.some((move) => move.uncertainty)) texts.push(["▒ uncertain", "sign-doubt", "began"]);
  if (known.changes.length) texts.push(["┊ true change", "sign-true", "true change"]);
  if (same(texts, drawLegend.shown)) return;
  $("legend").replaceChildren(...texts.map(([text, kind, term]) => explained(make("span", text, kind), term)));
  drawLegend.shown = texts;
}
