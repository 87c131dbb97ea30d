// The event log, and why an event happened.
const began = (onset, within) => within ? `${count(onset)} ± ${count(within)}` : `about ${count(onset)}`;

function eventLine(event) {
  const [kind, step, origin, target, , uncertainty, onset, column] = event, line = make("li"), button = make("button");
  const [sign, words, tone] = KINDS[kind], what = kind < CHANGES_BLOCK ? `${blockName(origin)} → ${blockName(target)}` : columnName(column);
  button.append(make("span", sign, "sign-" + tone), make("span", count(step)), make("span", words, "sign-" + tone),
    make("span", `${what}, since ${began(onset, uncertainty)}`, "blocks"));
  button.dataset.step = step; button.addEventListener("click", () => showWhy(event));
  line.append(button);
  return line;
}

function listEvents(fresh, anew) {
  const list = $("events");
  if (anew) list.replaceChildren();
  for (const event of (anew ? known.events.slice(-LISTED) : fresh.slice(-LISTED))) list.prepend(eventLine(event));
  while (list.children.length > LISTED) list.lastChild.remove();
  $("no-events").hidden = known.events.length > 0;
  const fewer = known.n_events > list.children.length ? `, the latest ${list.children.length}` : "";
  $("n-events").textContent = known.n_events ? `${count(known.n_events)}${fewer}` : "";
}

async function showWhy(event) {
  const [kind, step, origin, target, , , , column] = event;
  let why;
  try { const answer = await fetch(`event/${step}/${kind}`); if (!answer.ok) throw new Error(); why = await answer.json(); }
  catch { say("the run does not answer any more, or no longer knows this event"); return; }
  const [sign, words, tone] = KINDS[kind], ofBlocks = kind < CHANGES_BLOCK, body = $("why-body");
  $("why-text").replaceChildren(make("span", sign, "sign-" + tone), ` ${words[0].toUpperCase()}${words.slice(1)}: ${ofBlocks ? blockName(target) : columnName(column)}`);
  $("why-onset").textContent = `Noticed at sample ${count(step)}; ${ofBlocks ? "the change" : "it"} began at ${began(why.onset, why.uncertainty)}${why.evidence ? `, with ${why.evidence.toPrecision(2)} times the evidence a change takes` : ""}. ` +
    (ofBlocks ? `Before it, ${blockName(origin)} was in use.` : `${blockName(target)} stays in use; what a lost column would say is left open.`);
  body.replaceChildren();
  if (!ofBlocks) {
    if (why.samples) body.append(make("h3", "Samples from before it, and when it was noticed"), sampleTable(why, [column]));
    if (!$("why").open) $("why").showModal();
    return;
  }
  const cards = (await Promise.all([origin, target].map(blockCard))).filter((card) => card);
  if (!known.shape) body.append(make("h3", why.own_units ? "Columns that moved most" : "Columns that moved most (rows brought to length 1)"), columnTable(why));
  body.append(make("h3", known.shape ? "What the two blocks hold" : "Mean of the two blocks"), pair(cards, (card, place) => {
    if (card.images !== undefined) { const units = make("div", null, "units"); place.append(units); drawPictures(units, bytes(card.images), card.drawn.length); }
    else drawBars(place, card, columnRanges([...known.cards.values(), ...cards]), card.bars.length > MOST_BARS ? places(why) : null);
  }, cards.map((card) => card.block)));
  if (!known.shape) body.lastChild.classList.add("columns");
  if (why.samples) body.append(make("h3", "Samples from before the change, and when it was noticed"),
    known.shape ? pair([why.samples.before, why.samples.after], (rows, place) => { const units = make("div", null, "units"); place.append(units); drawRows(units, rows); }, [origin, target])
      : sampleTable(why));
  if (!$("why").open) $("why").showModal();
}

// A block as it is now; as it was last shown, if the run does not answer.
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
  for (const text of heads) head.append(make("th", text));
  table.append(head);
  for (const cells of lines) { const row = make("tr"); for (const cell of cells) { const td = make("td", cell instanceof Node ? null : cell); if (cell instanceof Node) { td.append(cell); td.classList.add("share"); } row.append(td); } table.append(row); }
  const box = make("div", null, "table"); box.append(table);
  return box;
}
const neat = (v) => Number(Number(v).toPrecision(4)).toString();

function columnTable(why) {
  const table = tableOf(["column", "before", "after", "change", "in spreads", "share of the change"], why.columns.map(([name, before, after, change, share, spreads]) => {
    const bar = make("div", null, "bar"), fill = make("i"); fill.style.left = 0; fill.style.width = 100 * share + "%"; fill.style.background = css("--grey"); bar.append(fill); bar.title = (100 * share).toFixed(1) + " %";
    return [name, neat(before), neat(after), (change > 0 ? "+" : "") + neat(change), spreads < 100 ? spreads.toFixed(1) : short(Math.round(spreads)), bar];
  }));
  table.classList.add("moved");
  return table;
}

// Numbers of the columns that moved most.
const places = (why) => why.columns.map(([name]) => [...Array(known.n_features).keys()].find((i) => columnName(i) === name)).filter((i) => i !== undefined);

function sampleTable(why, columns = places(why).slice(0, 5)) {
  const lines = [];
  for (const [when, rows] of [["before", why.samples.before], ["when noticed", why.samples.after]]) for (const row of rows) lines.push([when, ...columns.map((i) => row[i] === null ? "missing" : neat(row[i]))]);
  return tableOf(["", ...columns.map((i) => middleCut(columnName(i), 14))], lines);
}
