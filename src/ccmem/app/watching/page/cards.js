// A card for every block that is shown: its name, when it was in use, its labels, columns and units.
const cardElements = new Map(), FIRST_CARDS = 6, CARD_BARS = 8;
let allCards = false;

function drawCards() {
  const place = $("cards"), order = [...known.cards.values()].sort((a, b) => b.used - a.used || a.block - b.block);
  order.sort((a, b) => (b.block === known.block) - (a.block === known.block));
  for (const [block, element] of cardElements) if (!known.cards.has(block)) { element.root.remove(); cardElements.delete(block); }
  const ranges = columnRanges(known.cards.values()), moved = !same(ranges, drawCards.ranges), units = unitRanges(known.cards.values());
  drawCards.ranges = ranges;
  order.forEach((card, index) => {
    let element = cardElements.get(card.block);
    if (!element) { element = newCard(card.block); cardElements.set(card.block, element); }
    if (place.children[index] !== element.root && !place.contains(document.activeElement)) place.insertBefore(element.root, place.children[index] || null);
    else if (!element.root.parentNode) place.append(element.root);
    element.root.hidden = !allCards && index >= FIRST_CARDS;
    const name = known.names[card.block] || "";  // not the card's: a card is sent anew only while its block is in use
    if (document.activeElement !== element.name && element.name.value !== name) element.name.value = name;
    element.number.hidden = !name;
    fillDates(element, card);
    if (element.card !== card || (moved && card.bars)) fillCard(element, card, ranges, units, moved);
  });
  const more = known.n_blocks - known.cards.size, hidden = order.length - FIRST_CARDS;
  $("shown").textContent = more > 0 ? `the ${known.cards.size} used most recently of ${count(known.n_blocks)}` : "";
  $("more-cards").hidden = hidden <= 0; $("more-cards").textContent = allCards ? "Show fewer" : `Show ${counted(hidden, "more block")}`;
}

function newCard(block) {
  const root = make("article", null, "card"), head = make("header"), name = make("input", undefined, "name");
  root.dataset.block = block; root.style.borderLeftColor = colour(block);
  name.maxLength = 80; name.placeholder = `block ${block}`; name.spellcheck = false; name.title = "Click to name this block. The name is saved with the memory.";
  name.setAttribute("aria-label", `name of block ${block}`); name.style.color = textColour(block);
  name.addEventListener("keydown", (e) => { if (e.key === "Enter") name.blur(); if (e.key === "Escape") { name.value = known.names[block] || ""; name.blur(); } });
  name.addEventListener("change", () => rename(block, name.value));
  const number = make("span", `block ${block}`, "number");
  head.append(name, number);
  const dates = make("p", "", "dates"), labels = explained(make("p", "", "labels"), "label"), mix = make("div", null, "mix"), body = make("div"), facts = make("p", "", "facts");
  root.append(head, dates, labels, mix, body, facts);
  return { root, name, number, dates, labels, facts, mix, body, card: null, wins: new Map() };
}

// When a block was in use: now, the last time, how often, and for how long in all.
function usage(card) {
  const now = card.block === known.block, { since } = known, all = card.in_use + (now ? known.rows - since : 0), visits = card.visits + (now ? 1 : 0);
  const text = now ? `${known.finished ? "In use at the end" : "In use"} since ${when(since)} (${span(since, known.rows)})` : card.last ? `Last used ${when(card.last[0])}, for ${span(card.last[0], card.last[1])}` : "";
  if (visits < 2 || !text) return text;
  return `${text}; used ${times(visits)}, ${dated() ? duration(all * (timeAt(known.rows) - timeAt(0)) / Math.max(1, known.rows)) : counted(all, stepNoun())} in all`;
}
function fillDates(element, card) { const text = usage(card); if (element.dates.textContent !== text) element.dates.textContent = text; }

function fillCard(element, card, ranges, units, moved) {
  const before = element.card; element.card = card;
  const labels = card.labels.filter(([, share]) => share >= 0.03), rest = 1 - labels.reduce((sum, [, share]) => sum + share, 0);
  element.labels.textContent = labels.map(labelText).join(", ") + (labels.length && rest > 0.005 ? `, others: ${percent(rest)} %` : "");
  element.labels.hidden = element.mix.hidden = !card.labels.length;
  element.facts.hidden = !card.units;
  element.facts.replaceChildren(explained(make("span", counted(card.units, "unit")), "unit"), ", ", explained(make("span", counted(card.wins, "win")), "win"));
  if (!before || !same(before.labels, card.labels)) element.mix.replaceChildren(...card.labels.map((label, i) => {
    const part = make("i"); part.style.flex = label[1]; part.style.background = colour(card.block); part.style.opacity = 1 / (1 + 0.8 * i); part.title = labelText(label); return part; }));
  if (card.images !== undefined) drawUnits(element, card);
  else if (moved || !before || !same(before.bars, card.bars) || !same(before.profiles, card.profiles)) {
    const bars = make("div"), top = tellingColumns(card.block);
    drawBars(bars, card, ranges, top);
    element.body.replaceChildren(bars);
    if (top && top.length < (card.bars || []).length) element.body.append(make("small", `the ${top.length} columns that differ most, of ${count(known.n_features)}`));
    if (card.profiles && card.profiles.length && card.bars.length > 2) element.body.append(profiles(card, units));
  }
  element.wins = new Map(card.drawn.map((unit, i) => [unit, card.won[i]]));
}

// Of many columns those in which the blocks differ most; null for all of them.
function tellingColumns(block) {
  const card = known.cards.get(block), n = (card && card.bars || []).length;
  if (n <= CARD_BARS) return null;
  const ranges = columnRanges(known.cards.values()), spread = (i) => card.spread ? card.spread[i] + 1e-6 * Math.abs(card.bars[i]) + 1e-300 : 1;
  return [...Array(n).keys()].sort((a, b) => (ranges[b][1] - ranges[b][0]) / spread(b) - (ranges[a][1] - ranges[a][0]) / spread(a)).slice(0, CARD_BARS).sort((a, b) => a - b);
}

// The lowest and highest value of any unit in each column.
function unitRanges(cards) {
  const ranges = [];
  for (const { profiles: rows = [] } of cards) for (const row of rows) row.forEach((value, i) => {
    const range = ranges[i] || (ranges[i] = [Infinity, -Infinity]); range[0] = Math.min(range[0], value); range[1] = Math.max(range[1], value); });
  return ranges;
}
// Small profiles of the busiest units: a bar per column.
function profiles(card, ranges) {
  const place = explained(make("div", null, "profiles"), "profile");
  card.profiles.forEach((row, number) => {
    const canvas = make("canvas"), wide = Math.max(2, Math.floor(56 / row.length)), tall = 26, g = canvas.getContext("2d");
    canvas.width = wide * row.length * 2; canvas.height = 2 * tall; g.scale(2, 2); g.fillStyle = colour(card.block);
    row.forEach((value, i) => {
      const [low, high] = ranges[i], part = high > low ? (value - low) / (high - low) : 0.5;
      g.globalAlpha = 0.22; g.fillRect(i * wide, 0, wide - 0.5, tall); g.globalAlpha = 1; g.fillRect(i * wide, (1 - part) * (tall - 2), wide - 0.5, part * (tall - 2) + 2);
    });
    canvas.title = `unit ${card.drawn[number]}: ${counted(card.won[number], "win")}. ` + row.slice(0, 12).map((value, i) => `${columnName(i)} ${neat(value, ranges[i][1] - ranges[i][0])}`).join(", ");
    place.append(canvas);
  });
  return place;
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

// Columns by name, each a bar from its lowest to its highest block, with its spread.
function drawBars(place, card, ranges, columns = null) {
  const values = card.bars || [], spread = card.spread || [], table = make("div", null, "bars");
  const size = (i) => ranges[i] ? ranges[i][1] - ranges[i][0] : 0, share = (value, i) => size(i) > 0 ? Math.min(1, Math.max(0, (value - ranges[i][0]) / size(i))) : 0.5;
  for (const i of columns || values.keys()) {
    const value = values[i], bar = make("span", null, "bar"), fill = make("i"), band = make("b"), width = spread[i] || 0, low = share(value - width, i), scale = size(i) || width;
    fill.style.background = colour(card.block); fill.style.left = 0; fill.style.width = 100 * share(value, i) + "%";
    band.style.left = 100 * low + "%"; band.style.width = 100 * (share(value + width, i) - low) + "%";
    const name = known.shapes[columnName(i)] ? shapePicture(columnName(i), card.block) : make("span", middleCut(columnName(i), 18));
    name.title = columnName(i); bar.title = `${columnName(i)}: mean ${neat(value, scale)}${width ? `, spread ${neat(width)}` : ""}`;
    bar.append(fill, band); table.append(name, bar, make("span", neat(value, scale)));
  }
  place.replaceChildren(table);
}

// A learned shape drawn in the place of its name, one line per channel, beside its length and channel.
function shapePicture(column, block) {
  const lines = known.shapes[column], all = lines.flat(), low = Math.min(...all), high = Math.max(...all), canvas = make("canvas"), g = canvas.getContext("2d");
  const wide = 44, tall = 14, n = lines[0].length, place = make("span"), [channel, length] = column.split(/ shape \d+ of /);
  canvas.width = 2 * wide; canvas.height = 2 * tall; canvas.style.cssText = `width:${wide}px;height:${tall}px;display:inline-block;vertical-align:middle;margin-right:6px`;
  g.scale(2, 2); g.strokeStyle = textColour(block); g.lineWidth = 1.2; g.lineJoin = "round";
  for (const line of lines) {
    g.beginPath();
    line.forEach((value, i) => g.lineTo(1 + (wide - 2) * i / (n - 1), tall - 1.5 - (tall - 3) * (high > low ? (value - low) / (high - low) : 0.5)));
    g.stroke();
  }
  place.append(canvas, `${length}, ${channel}`); place.title = column;
  return place;
}

async function rename(block, name) {
  try {
    const answer = await fetch("name", { method: "POST", headers: { "X-Token": document.querySelector("meta[name=token]").content, "Content-Type": "application/json" },
      body: JSON.stringify({ block, name }) });
    const result = await answer.json();
    say(result.error ? result.error : (name.trim() ? `${name.trim()}: ${result.said}` : `block ${block} has no name now`));
  } catch { say("The run does not respond. The name was not saved."); }
}
