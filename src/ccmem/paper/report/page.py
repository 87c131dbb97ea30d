"""A self-contained HTML report: tables, figures as inline PNG, settings and versions."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ccmem.paper.report.comparison import at_equal_memory, strict_by_budget
from ccmem.paper.report.tables import VERDICTS, Section, tables
from ccmem.paper.report.text import headline

WIDE = 900
"""Pixels beyond which a picture is not shrunk to the width of a phone, but scrolled."""

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
    sections = "\n".join(_section(name, result, figures.get(name, ())) for name, result in results.items())
    took = f" It took {seconds:.0f} s." if seconds is not None else ""
    parts = {"command": escape(command), "took": took, "links": links, "sections": sections}
    frame = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], frame)


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
