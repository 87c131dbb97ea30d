"""A self-contained HTML report: tables, figures as inline PNG, settings and versions."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ccmem.paper.report.comparison import at_equal_memory, strict_by_budget
from ccmem.paper.report.tables import VERDICTS, Section, tables
from ccmem.paper.report.text import headline

STYLE = """
:root { color-scheme: light; --line: #e2e8f0; --soft: #f7fafc; --text: #1a202c; --dim: #4a5568; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); max-width: 68rem; margin: 2rem auto; }
body { padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 3rem; border-bottom: 2px solid var(--line); padding-bottom: .3rem; }
h3 { margin-top: 2rem; } p.note, figcaption, .dim { color: var(--dim); font-size: .92rem; }
p.verdict { font-size: 1.15rem; font-weight: 600; }
nav a { margin-right: 1.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: .8rem 0; }
th, td { text-align: left; padding: .28rem .55rem .28rem .3rem; border-bottom: 1px solid var(--line); }
th, td { white-space: nowrap; }
th { background: var(--soft); } tr.first td { border-top: 2px solid var(--line); }
td.verified, td.better { color: #22763c; } td.missed { color: #b83232; font-weight: 600; }
figure { margin: 1.6rem 0; overflow-x: auto; } img { max-width: 100%; height: auto; }
@media (max-width: 40rem) { img.wide { max-width: 40rem; } }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font-size: .82rem; }
details { margin: 1rem 0; } summary { cursor: pointer; }
"""

WIDE = 900
"""Pixels beyond which a picture is not shrunk to the width of a phone, but scrolled."""

PROTOCOLS_TEXT = """
<p>There are two protocols; do not mix their figures. <b>paper</b>: the published tables. All tasks share two labels
(first or second class of the pair), conformity is measured with the task known, and a gated network routes the whole
test pool of a task at once. <b>strict</b>: all classes compete, each sample is routed separately, and tasks are
unknown; there are no published figures. For ACC, FMI, ARI and V-M larger is better; BWT is best at zero or above.</p>
<p>Verdicts: <b>verified</b> means within the tolerance of the printed mean, <b>better</b> outside the tolerance but
better, where this is accepted, and <b>missed</b> neither. Rows that the paper quotes and that were not run are
marked.</p>
"""

COMPARISON_TEXT = """
<p class="note">Floats held between samples: weights, exemplars, prototypes, statistics, optimizer state. Learners that
receive task boundaries also hold the rows of the current task, which are not counted.</p>
"""


def page(
    results: Mapping[str, Mapping[str, Any]],
    figures: Mapping[str, Sequence[tuple[str, bytes]]],
    command: str,
    seconds: float | None = None,
) -> str:
    """Return the report as HTML; ``figures`` holds (caption, PNG) per data set."""
    links = "".join(f'<a href="#{name}">{escape(result["dataset"]["title"])}</a>' for name, result in results.items())
    took = f" It took {seconds:.0f} s." if seconds is not None else ""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>ccmem: the paper's experiments</title><style>{STYLE}</style></head><body>",
        "<h1>Continual competitive memory: the paper's tables beside ours</h1>",
        f'<p class="dim">Made by <code>{escape(command)}</code>.{took}</p><nav>{links}'
        '<a href="#reading">How to read the tables</a></nav>',
    ]
    for name, result in results.items():
        parts.append(_section(name, result, figures.get(name, ())))
    parts.append(f'<h2 id="reading">How to read the tables</h2>{PROTOCOLS_TEXT}')
    return "\n".join([*parts, "</body></html>\n"])


def _section(name: str, result: Mapping[str, Any], figures: Sequence[tuple[str, bytes]]) -> str:
    about = result["dataset"]
    tasks = " | ".join(" ".join(about["class_names"][label] for label in task) for task in about["tasks"])
    notes = "".join(f"<li>{escape(note)}</li>" for note in about["notes"])
    parts = [
        f'<h2 id="{name}">{escape(about["title"])}</h2>',
        f'<p class="dim">{about["n_train"]:,} training and {about["n_test"]:,} test images; source: '
        f"{escape(about['source'])}; pixels: {escape(about['pixels'])}; tasks: {escape(tasks)}.</p>",
        f"<ul>{notes}</ul>" if notes else "",
    ]
    if said := headline(result):
        parts.insert(1, f'<p class="verdict">{escape(said)}.</p>')
    parts[2:2] = [_figure(*figure) for figure in figures[:1]]
    for table in tables(result):
        parts += [f"<h3>{escape(table.title)}</h3>", f'<p class="note">{escape("; ".join(table.notes))}.</p>']
        parts += _tables(table)
    if (comparison := at_equal_memory(result)).parts:
        parts += ["<h3>At equal memory</h3>", COMPARISON_TEXT, "<p>ACC, strict protocol, by budget of floats:</p>"]
        parts += [*_tables(strict_by_budget(result)), *_tables(comparison)]
    parts += [_figure(*figure) for figure in figures[1:]]
    if not figures:
        parts.append('<p class="note">No figures: they need matplotlib, <code>pip install matplotlib</code>.</p>')
    rows = [("row", "settings", "where from")]
    rows += [(row["title"], json.dumps(row["settings"]), row["source"]) for row in result["rows"].values()]
    parts.append(f"<details><summary>Settings of every row</summary>{_lines(rows, wrap=True)}</details>")
    facts = {"versions": result["versions"], "sha256": about["sha256"], "first seed": result["base_seed"]}
    parts.append("<details><summary>Versions, checksums, seeds</summary>")
    parts.append(f"<pre>{escape(json.dumps(facts, indent=1))}</pre></details>")
    return "\n".join(parts)


def _figure(caption: str, png: bytes) -> str:
    data = base64.b64encode(png).decode()
    size = ' class="wide"' if int.from_bytes(png[16:20], "big") > WIDE else ""  # the header of a PNG begins with it
    picture = f'<img{size} alt="{escape(caption, quote=True)}" src="data:image/png;base64,{data}">'
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def _tables(section: Section) -> list[str]:
    return [_lines(lines) + (f"<p><b>{escape(note)}.</b></p>" if note else "") for lines, note in section.parts]


def _lines(lines: Sequence[Sequence[str]], *, wrap: bool = False) -> str:
    head = "".join(f"<th>{escape(word)}</th>" for word in lines[0])
    style = ' style="white-space: normal; overflow-wrap: anywhere"' if wrap else ""
    body = []
    for line in lines[1:]:
        kinds = (f' class="{word}"' if word in VERDICTS else style for word in line)
        cells = "".join(f"<td{kind}>{escape(word)}</td>" for kind, word in zip(kinds, line, strict=True))
        body.append(f'<tr class="first">{cells}</tr>' if line[0] else f"<tr>{cells}</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
