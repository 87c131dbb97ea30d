// The event log, and the answers about one event: when, what, before, how long.
const FIRST_EVENTS = 8;
let allEvents = false;

// The visit that an event began: its length, or how long it goes on; and earlier visits of the same block.
function visitOf(event) {
  const at = known.moves.indexOf(event), next = known.moves[at + 1], from = event.start, to = next ? next.start : known.rows;
  let earlier = 0, last = null;
  for (let i = 0; i < at; i++) if (known.moves[i].to === event.to) { earlier += 1; last = [known.moves[i].start, known.moves[i + 1].start]; }
  if (known.moves.length && known.moves[0].from === event.to && at > 0 && known.events.length === known.n_events) { earlier += 1; last = last || [0, known.moves[0].start]; }
  return { from, to, ended: Boolean(next) || Boolean(known.finished), next, earlier, last };
}
function changeText(from, to, most = 3) {
  return movedColumns(from, to).slice(0, most).filter((m) => m.spreads > 1).map(({ column, change }) => `${columnName(column)} ${signed(change, Math.abs(change))}`).join(", ");
}

function eventLine(event) {
  const line = make("li"), button = make("button"), [sign, words, tone] = KINDS[event.kind], what = make("span", null, "what");
  const head = make("span", null, "head"), from = event.kind < CHANGES_BLOCK ? event.from : null;
  head.append(make("b", event.kind < CHANGES_BLOCK ? blockName(event.to) : columnName(event.column), "to"), ` ${words}`, ...(from === null ? [] : [` after ${blockName(from)}`]));
  head.firstChild.style.color = event.kind < CHANGES_BLOCK ? textColour(event.to) : "";
  what.append(head, make("span", "", "details"));
  button.append(explained(make("span", sign, "sign-" + tone), words), explained(make("span", began(event), "when"), "began"), what);
  button.dataset.step = event.step; button.addEventListener("click", () => showWhy(event));
  line.append(button); line.event = event;
  fillLine(line);
  return line;
}
// The second line of an event, which changes while its block is in use: columns that moved, length, earlier visits.
function fillLine(line) {
  const { event } = line, place = line.querySelector(".details");
  let text = "";
  if (event.kind < CHANGES_BLOCK) {
    const { from, to, ended, next, earlier } = visitOf(event), moved = changeText(event.from, event.to);
    text = [moved, next ? `lasted ${span(from, to)}` : `${span(from, to)} ${ended ? "until the end" : "so far"}`, event.kind === 1 && earlier ? `used ${times(earlier)} before` : ""].filter((part) => part).join(" · ");
  }
  if (place.textContent !== text) place.textContent = text;
}

function listEvents(fresh, anew) {
  const list = $("events");
  list.classList.toggle("dated", dated());
  if (anew) list.replaceChildren();
  for (const event of (anew ? known.events.slice(-LISTED) : fresh.slice(-LISTED))) list.prepend(eventLine(event));
  while (list.children.length > LISTED) list.lastChild.remove();
  const hidden = list.children.length - FIRST_EVENTS;
  [...list.children].forEach((line, i) => { line.hidden = !allEvents && i >= FIRST_EVENTS; });
  $("more-events").hidden = hidden <= 0; $("more-events").textContent = allEvents ? "Show fewer" : `Show ${counted(hidden, "more event")}`;
  for (const line of [...list.children].slice(0, 12)) fillLine(line);
  $("no-events").hidden = known.events.length > 0;
  const fewer = known.n_events > list.children.length ? `, the latest ${list.children.length} listed` : "";
  $("n-events").textContent = known.n_events ? `${count(known.n_events)}${fewer}` : "";
}

async function showWhy(event) {
  const { kind, step, from, to, column } = event;
  let why;
  try { const answer = await fetch(`event/${step}/${kind}`); if (!answer.ok) throw new Error(); why = await answer.json(); }
  catch { say("The run no longer responds, or no longer stores this event."); return; }
  const [sign, words, tone] = KINDS[kind], ofBlocks = kind < CHANGES_BLOCK, body = $("why-body");
  $("why-text").replaceChildren(make("span", sign, "sign-" + tone), ` ${capital(words)}: ${ofBlocks ? blockName(to) : columnName(column)}`);
  $("why-answers").replaceChildren(...answers(event, why));
  $("why-show").onclick = () => { $("why").close(); showEvent(event); $("timeline").focus(); };
  body.replaceChildren();
  if (ofBlocks) await explainChange(event, why, body);
  else if (why.samples) body.append(make("h3", "Rows before the change and at its detection"), sampleTable(why, [column]));
  if (!$("why").open) $("why").showModal();
}

// Four questions and their answers: when, what, before, how long.
function answers(event, why) {
  const rows = [], add = (term, text, key) => rows.push(key ? explained(make("dt", term), key) : make("dt", term), make("dd", text));
  add("When", `Began ${at(began(event))}; detected ${at(when(event.step, event.time))}, ${span(event.onset, event.step)} later${event.evidence ? `, with ${event.evidence >= LARGEST_EVIDENCE ? "at least " : ""}${neat(event.evidence)} times the evidence that a change needs` : ""}.`, "began");
  if (event.kind >= CHANGES_BLOCK) { add("What", `${columnName(event.column)} ${event.kind === CHANGES_BLOCK ? "has no readings any more" : "has readings again"}. ${blockTitle(event.to)} stays in use.`, KINDS[event.kind][1]); return rows; }
  const moved = why.columns.filter((line) => line[5] > 1).slice(0, 3).map(([name, before, after]) => `${name} from ${neat(before, Math.abs(after - before))} to ${neat(after, Math.abs(after - before))}`).join(", ");
  add("What", `From ${blockName(event.from)} to ${blockName(event.to)}${moved && !known.shape && why.own_units ? `: ${moved}` : ""}.`, KINDS[event.kind][1]);
  const { from, to, ended, next, earlier, last } = visitOf(event);
  add("Before", event.kind === 0 ? "Never: this was new." : earlier ? `Used ${times(earlier)} before, most recently from ${when(last[0])} to ${when(last[1])} (${span(...last)}).` : "Yes, but before the oldest event kept here.", "recalled");
  add("How long", next ? `${span(from, to)}, until ${when(to)}, when ${blockName(next.to)} followed.` : `${span(from, to)}${ended ? ", until the end of the stream" : " so far"}.`, "block");
  return rows;
}

async function explainChange({ from, to }, why, body) {
  const cards = (await Promise.all([from, to].map(blockCard))).filter((card) => card);
  if (!known.shape) body.append(make("h3", why.own_units ? "Columns that moved most" : "Columns that moved most (rows scaled to length 1)"), columnTable(why));
  body.append(make("h3", known.shape ? "Units of the two blocks" : "Mean of the two blocks"), pair(cards, (card, place) => {
    if (card.images !== undefined) { const units = make("div", null, "units"); place.append(units); drawPictures(units, bytes(card.images), card.drawn.length); }
    else drawBars(place, card, columnRanges([...known.cards.values(), ...cards]), card.bars.length > MOST_BARS ? places(why) : null);
  }, cards.map((card) => card.block)));
  if (!known.shape) body.lastChild.classList.add("columns");
  if (why.samples) body.append(make("h3", "Rows before the change and at its detection"),
    known.shape ? pair([why.samples.before, why.samples.after], (rows, place) => { const units = make("div", null, "units"); place.append(units); drawRows(units, rows); }, [from, to])
      : sampleTable(why));
}

// A block as it is now, or as it was last shown if the run does not answer.
async function blockCard(block) {
  try { const answer = await fetch("block/" + block); if (answer.ok) return await answer.json(); } catch { /* no answer */ }
  return known.cards.get(block);
}

function pair(items, fill, blocks) {
  const box = make("div", null, "pair");
  items.forEach((item, i) => { const side = make("div"), head = make("b", blockName(blocks[i])); head.style.color = textColour(blocks[i]); const inner = make("div"); fill(item, inner); side.append(head, inner); box.append(side); });
  return box;
}

function drawPictures(place, pixels, n) {
  const [height, width] = known.shape;
  for (let i = 0; i < Math.min(n, 12); i++) { const canvas = make("canvas"); paintImage(canvas, pixels.subarray(i * height * width, (i + 1) * height * width), height, width); place.append(canvas); }
}

function drawRows(place, rows) {
  const [height, width] = known.shape;
  for (const row of rows) {
    const low = Math.min(...row), high = Math.max(...row, low + 1e-9), canvas = make("canvas");
    paintImage(canvas, Uint8Array.from(row, (v) => 255 * (v - low) / (high - low)), height, width); place.append(canvas);
  }
}

function tableOf(heads, lines) {
  const table = make("table"), head = make("tr");
  for (const text of heads) { const th = make("th", text); head.append(TERMS[text] ? explained(th, text) : th); }
  table.append(head);
  for (const cells of lines) { const row = make("tr"); for (const cell of cells) { const td = make("td", cell instanceof Node ? null : cell); if (cell instanceof Node) { td.append(cell); td.classList.add("share"); } row.append(td); } table.append(row); }
  const box = make("div", null, "table"); box.append(table);
  return box;
}

function columnTable(why) {
  const table = tableOf(["column", "before", "after", "change", "in spreads", "share of the change"], why.columns.map(([name, before, after, change, share, spreads]) => {
    const bar = make("div", null, "bar"), fill = make("i"), spread = spreads ? Math.abs(change) / spreads : Math.abs(before), scale = Math.max(Math.abs(change), spread);
    fill.style.left = 0; fill.style.width = 100 * share + "%"; fill.style.background = css("--grey"); bar.append(fill); bar.title = (100 * share).toFixed(1) + " %";
    return [name, neat(before, scale), neat(after, scale), signed(change, scale), spreads < 100 ? spreads.toFixed(1) : short(Math.round(spreads)), bar];
  }));
  table.classList.add("moved");
  explained(table.querySelectorAll("th")[4], "spread");
  return table;
}

// Numbers of the columns that moved most.
const places = (why) => why.columns.map(([name]) => [...Array(known.n_features).keys()].find((i) => columnName(i) === name)).filter((i) => i !== undefined);

function sampleTable(why, columns = places(why).slice(0, 5)) {
  const lines = [], rows = [...why.samples.before, ...why.samples.after];
  const scale = (i) => { const values = rows.map((row) => row[i]).filter((v) => v !== null); return Math.max(...values) - Math.min(...values); };
  for (const [time, some] of [["before", why.samples.before], ["when noticed", why.samples.after]]) for (const row of some) lines.push([time, ...columns.map((i) => row[i] === null ? "missing" : neat(row[i], scale(i) || Math.abs(row[i])))]);
  return tableOf(["", ...columns.map((i) => middleCut(columnName(i), 14))], lines);
}
