// A card for every block that is shown: a name that can be given, wins, labels, and what the block looks like.
const cardElements = new Map();

function drawCards() {
  const place = $("cards"), order = [...known.cards.values()].sort((a, b) => b.used - a.used || a.block - b.block);
  order.sort((a, b) => (b.block === known.block) - (a.block === known.block));
  for (const [block, element] of cardElements) if (!known.cards.has(block)) { element.root.remove(); cardElements.delete(block); }
  const ranges = columnRanges(known.cards.values()), moved = !same(ranges, drawCards.ranges);
  drawCards.ranges = ranges;
  order.forEach((card, index) => {
    let element = cardElements.get(card.block);
    if (!element) { element = newCard(card.block); cardElements.set(card.block, element); }
    if (place.children[index] !== element.root && !place.contains(document.activeElement)) place.insertBefore(element.root, place.children[index] || null);
    else if (!element.root.parentNode) place.append(element.root);
    const name = known.names[card.block] || "";  // not the card's: it is sent anew only while its block is in use
    if (document.activeElement !== element.name && element.name.value !== name) element.name.value = name;
    element.number.hidden = !name;
    if (element.card !== card || (moved && card.bars)) fillCard(element, card, ranges, moved);
  });
  const more = known.n_blocks - known.cards.size;
  $("shown").textContent = more > 0 ? `the ${known.cards.size} used most recently of ${count(known.n_blocks)}` : "";
}

function newCard(block) {
  const root = make("article", null, "card"), head = make("header"), name = make("input", undefined, "name");
  root.dataset.block = block; root.style.borderLeftColor = colour(block);
  name.maxLength = 80; name.placeholder = `block ${block}`; name.spellcheck = false; name.title = "give this block a name";
  name.setAttribute("aria-label", `name of block ${block}`); name.style.color = textColour(block);
  name.addEventListener("keydown", (e) => { if (e.key === "Enter") name.blur(); if (e.key === "Escape") { name.value = known.names[block] || ""; name.blur(); } });
  name.addEventListener("change", () => rename(block, name.value));
  const number = make("span", `block ${block}`, "number");
  head.append(name, number);
  const facts = make("p", "", "facts"), mix = make("div", null, "mix"), body = make("div");
  root.append(head, facts, mix, body);
  return { root, name, number, facts, mix, body, card: null, wins: new Map() };
}

function fillCard(element, card, ranges, moved) {
  const before = element.card; element.card = card;
  const labels = card.labels.filter(([, share]) => share >= 0.0005).map(([label, share]) => `${label} ${(100 * share).toFixed(share > 0.995 ? 0 : 1)}%`).join(", ");
  element.facts.textContent = `${counted(card.wins, "win")} · ${counted(card.units, "unit")} · since ${count(card.born)}${labels ? " · " + labels : ""}`;
  element.mix.hidden = !card.labels.length;
  if (!before || !same(before.labels, card.labels)) element.mix.replaceChildren(...card.labels.map(([label, share], i) => {
    const part = make("i"); part.style.flex = share; part.style.background = colour(card.block); part.style.opacity = 1 / (1 + 0.8 * i); part.title = label; return part; }));
  if (card.images !== undefined) drawUnits(element, card); else if (moved || !before || !same(before.bars, card.bars)) drawBars(element.body, card, ranges);
  element.wins = new Map(card.drawn.map((unit, i) => [unit, card.won[i]]));
}

function drawUnits(element, card) {
  const pixels = bytes(card.images), [height, width] = known.shape;
  let place = element.body.firstChild;
  if (!place || !place.classList.contains("units")) { place = make("div", null, "units"); element.body.replaceChildren(place); }
  while (place.children.length > card.drawn.length) place.lastChild.remove();
  card.drawn.forEach((unit, i) => {
    let canvas = place.children[i];
    if (!canvas) { canvas = make("canvas"); place.append(canvas); }
    paintImage(canvas, pixels.subarray(i * height * width, (i + 1) * height * width), height, width);
    canvas.title = `unit ${unit}: ${counted(card.won[i], "win")}`;
    const won = element.wins.has(unit) && element.wins.get(unit) < card.won[i];
    canvas.classList.toggle("won", won && card.block === known.block);
    canvas.style.borderColor = won && card.block === known.block ? colour(card.block) : "transparent";
  });
}

function bytes(text) { const raw = atob(text), out = new Uint8Array(raw.length); for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i); return out; }

function paintImage(canvas, pixels, height, width) {
  canvas.width = width; canvas.height = height;
  const g = canvas.getContext("2d"), image = g.createImageData(width, height);
  for (let i = 0; i < pixels.length; i++) { const v = 255 - pixels[i]; image.data.set([v, v, v, 255], 4 * i); }
  g.putImageData(image, 0, 0);
}

// From the lowest to the highest value that any block has in a column: columns may be in any units.
function columnRanges(cards) {
  const ranges = [];
  for (const { bars = [], spread = [] } of cards) bars.forEach((level, i) => {
    const width = spread[i] || 0, range = ranges[i] || (ranges[i] = [Infinity, -Infinity]);
    range[0] = Math.min(range[0], level - width); range[1] = Math.max(range[1], level + width);
  });
  return ranges;
}

// Columns by name, each a bar from its lowest to its highest block, with its spread: those that are named, or all of them;
// of very many a strip of shades.
function drawBars(place, card, ranges, columns = null) {
  const values = card.bars || [], spread = card.spread || [];
  const share = (value, i) => ranges[i] && ranges[i][1] > ranges[i][0] ? Math.min(1, Math.max(0, (value - ranges[i][0]) / (ranges[i][1] - ranges[i][0]))) : 0.5;
  if (values.length > MOST_BARS && !columns) {
    const strip = make("canvas"); strip.width = values.length; strip.height = 1; strip.style.height = "26px"; strip.style.imageRendering = "pixelated";
    const g = strip.getContext("2d");
    values.forEach((value, i) => { g.globalAlpha = share(value, i); g.fillStyle = colour(card.block); g.fillRect(i, 0, 1, 1); });
    place.replaceChildren(strip, make("small", `${count(known.n_features)} columns, from lowest to highest block`)); return;
  }
  const table = make("div", null, "bars");
  for (const i of columns || values.keys()) {
    const value = values[i], bar = make("span", null, "bar"), fill = make("i"), band = make("b"), width = spread[i] || 0, low = share(value - width, i);
    fill.style.background = colour(card.block); fill.style.left = 0; fill.style.width = 100 * share(value, i) + "%";
    band.style.left = 100 * low + "%"; band.style.width = 100 * (share(value + width, i) - low) + "%";
    bar.title = width ? `${neat(value)} ± ${neat(width)}` : neat(value);
    bar.append(fill, band); const name = make("span", middleCut(columnName(i), 18)); name.title = columnName(i);
    table.append(name, bar, make("span", Number(value.toPrecision(3)).toString()));
  }
  place.replaceChildren(table);
}
const middleCut = (text, most) => text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(-Math.floor(most / 2))}`;
const columnName = (i) => known.columns && known.columns[i] !== undefined ? known.columns[i] : `column ${i}`;

async function rename(block, name) {
  try {
    const answer = await fetch("name", { method: "POST", headers: { "X-Token": document.querySelector("meta[name=token]").content, "Content-Type": "application/json" },
      body: JSON.stringify({ block, name }) });
    const told = await answer.json();
    say(told.error ? told.error : (name.trim() ? `${name.trim()}: ${told.said}` : `block ${block} has no name now`));
  } catch { say("the run does not answer; the name was not kept"); }
}
