// PNG, GIF and JSON of what is shown, in files named after the stream.
function download(blob, kind) {
  const link = make("a"), stem = known.title.replace(/\.(csv|txt|tsv|dat|log|gz|jsonl|json|parquet|safetensors|npy|npz|arrow|feather)\b/gi, "").replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "");
  link.href = URL.createObjectURL(blob); link.download = `${stem.slice(0, 80) || "ccmem"}.${kind}`; link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function exportPng() {
  const canvas = make("canvas"); canvas.ratio = 2;
  drawTimeline(canvas, 1100, view(), known.rows);
  canvas.toBlob((blob) => download(blob, "png"));
}

async function exportJson() {
  try { download(new Blob([await (await fetch("export")).text()], { type: "application/json" }), "json"); }
  catch { say("The run no longer responds."); }
}

function exportGif() {
  const canvas = make("canvas"), frames = [], [width, n] = [820, 36]; canvas.ratio = 1;
  for (let i = 1; i <= n; i++) {
    drawTimeline(canvas, width, [0, known.rows], Math.round(known.rows * i / n));
    frames.push(canvas.getContext("2d").getImageData(0, 0, width, canvas.height).data);
  }
  download(new Blob([gif(frames, width, canvas.height, 12, 200)], { type: "image/gif" }), "gif");
}

// An animated GIF: a palette of 6 by 7 by 6 colours, frames packed by LZW; the last one stays longer.
function gif(frames, width, height, delay, lastDelay) {
  const out = [], word = (n) => out.push(n & 255, n >> 8);
  out.push(...new TextEncoder().encode("GIF89a")); word(width); word(height); out.push(0xF7, 0, 0);
  for (let i = 0; i < 256; i++) out.push(Math.round((i % 6) * 51), Math.round((Math.floor(i / 6) % 7) * 42.5), Math.round(Math.min(5, Math.floor(i / 42)) * 51));
  out.push(0x21, 0xFF, 11, ...new TextEncoder().encode("NETSCAPE2.0"), 3, 1, 0, 0, 0);
  frames.forEach((pixels, number) => {
    out.push(0x21, 0xF9, 4, 0); word(number === frames.length - 1 ? lastDelay : delay); out.push(0, 0, 0x2C, 0, 0, 0, 0); word(width); word(height); out.push(0);
    const codes = new Uint8Array(width * height);
    for (let i = 0; i < codes.length; i++) codes[i] = Math.round(pixels[4 * i] / 51) + 6 * Math.round(pixels[4 * i + 1] / 42.5) + 42 * Math.round(pixels[4 * i + 2] / 51);
    out.push(8); const packed = lzw(codes);
    for (let i = 0; i < packed.length; i += 255) { const part = packed.slice(i, i + 255); out.push(part.length, ...part); }
    out.push(0);
  });
  out.push(0x3B);
  return new Uint8Array(out);
}

function lzw(codes) {
  const out = []; let bits = 0, held = 0, size = 9, table = new Map(), next = 258;
  const put = (code) => { held |= code << bits; bits += size; while (bits >= 8) { out.push(held & 255); held >>= 8; bits -= 8; } };
  put(256);
  let prefix = codes[0];
  for (let i = 1; i < codes.length; i++) {
    const key = prefix * 256 + codes[i], found = table.get(key);
    if (found !== undefined) { prefix = found; continue; }
    put(prefix);
    if (next < 4096) { table.set(key, next); if (next === 1 << size && size < 12) size++; next++; }
    else { put(256); table = new Map(); next = 258; size = 9; }
    prefix = codes[i];
  }
  put(prefix); put(257);
  if (bits) out.push(held & 255);
  return out;
}
