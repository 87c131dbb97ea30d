"""``ccmem look``: show the columns that would be learned from a file, and the reasons, without learning."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.app.options import reading
from ccmem.core.terminal import counted, printable
from ccmem.io.streams.csv import CSVTable
from ccmem.io.streams.errors import NothingToLearnError, SourceError
from ccmem.io.streams.files import FileStream
from ccmem.io.streams.schema import such_as

LOOKED_AT = 20_000
"""Number of rows read to find ranges, missing values and times."""
_FORMATS = {"CSVTable": "text table", "NDJSONTable": "NDJSON", "ArrowTable": "Parquet or Arrow"}
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}


def run(args: argparse.Namespace) -> int:
    """Print a description of the sources."""
    facts = facts_of(args)
    print(json.dumps(facts) if args.json else printable(_text(facts)))
    return 0 if facts["learn"] else 2


def facts_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return a description of the first source as plain values."""
    options = {**reading(args), "on_bad_row": "skip"}
    stream = FileStream(args.sources, label=args.label, missing=True, accept_last_line=True, **options)
    found: dict[str, dict[str, Any]] = {}
    rows = 0
    problem = ""
    try:
        for chunk in stream.chunks(LOOKED_AT):
            rows += chunk.n_rows
            assert stream.columns is not None
            for place, name in enumerate(stream.columns.features):
                _widen(found.setdefault(name, {"missing": 0}), chunk.X[:, place])
    except NothingToLearnError as raised:
        problem = str(raised).partition(":\n")[0]
    table = stream.first_table
    if table is None:
        raise SourceError(f"{stream.files[0]} is empty; there is nothing to learn from")
    schema, layout = table.schema, getattr(table, "dialect", None)
    facts: dict[str, Any] = {
        "file": stream.files[0],
        "files": len(stream.files),
        "format": _FORMATS.get(type(table).__name__, "numpy array"),
    }
    if isinstance(table, CSVTable) and layout is not None:
        facts |= {"delimiter": layout.delimiter, "header": layout.header, "skipped_lines": layout.preamble}
        facts |= {"units_line": layout.units, "decimal": schema.cells.decimal}
    chosen = () if stream.columns is None else stream.columns.features
    columns = []
    for column in schema.columns:
        use = "learn" if column.name in chosen else "label" if column.name == args.label else column.kind
        entry: dict[str, Any] = {"name": column.name, "use": use, "why": "" if use == "learn" else column.why}
        entry |= {name: getattr(column, name) for name in ("example", "code", "missing", "low", "high")}
        columns.append(entry | found.get(column.name, {}))
    timing = stream.timing
    return {
        **facts,
        "rows_read": rows,
        "bad_rows": stream.bad_rows,
        "columns": columns,
        "learn": [name for name in chosen if not problem],
        "problem": problem,
        "growing": list(stream.growing),
        "time": None if stream.columns is None else ",".join(stream.columns.time) or None,
        "time_format": None if stream.columns is None else stream.columns.time_format or None,
        "interval_seconds": timing.interval,
        "sampling_rate": None if not timing.interval else 1.0 / timing.interval,
        "gaps": timing.gaps,
        "out_of_order": timing.out_of_order,
        "timing": timing.lines(),
    }


def _widen(known: dict[str, Any], values: Any) -> None:
    """Extend the range of a column by new values."""
    present = values[~np.isnan(values)]
    known["missing"] += len(values) - len(present)
    if present.size:
        low, high = float(present.min()), float(present.max())
        known["low"] = min(low, known.get("low", low))
        known["high"] = max(high, known.get("high", high))


def _text(facts: dict[str, Any]) -> str:
    lines = [f"{Path(facts['file']).name}: {_layout(facts)}"]
    if facts["files"] > 1:
        lines[0] += f" (the first of {facts['files']} files)"
    if facts["timing"]:
        lines += [f"time {facts['time']}: {facts['timing'][0]}", *(f"  {line}" for line in facts["timing"][1:])]
    else:
        lines.append("no time column; events are counted in rows")
    wide = min(32, max([6, *(len(column["name"]) for column in facts["columns"])]))
    lines += ["", f"{'column':<{wide}}  {'use':<8} {'range':<24} {'missing':>7}  note"]
    for column in facts["columns"]:
        low, high = column["low"], column["high"]
        span = "" if low is None else f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        note = column["why"] or ("grows with every row" if column["name"] in facts["growing"] else "")
        note += f"{column['code']} may mark a missing value (--missing={column['code']})" if column["code"] else ""
        note += such_as(column["why"], column["example"])
        use = {"learn": "learn", "label": "label", "time": "time"}.get(column["use"], "left out")
        lines.append(f"{column['name'][:wide]:<{wide}}  {use:<8} {span:<24} {column['missing']:>7,}  {note}".rstrip())
    n_learn = len(facts["learn"])
    lines += [
        "",
        facts["problem"] or f"ccmem learn would learn from {n_learn} of {counted(len(facts['columns']), 'column')}",
    ]
    if facts["bad_rows"]:
        bad = counted(facts["bad_rows"], "row")
        lines.append(f"{bad} of {facts['rows_read']:,} cannot be read (--on-bad-row skip)")
    if not facts["learn"]:
        lines.append("name columns with --features, the decimal sign with --decimal, missing values with --missing")
    return "\n".join(lines)


def _layout(facts: dict[str, Any]) -> str:
    parts = [facts["format"]]
    if "delimiter" in facts:
        parts.append(f"{_DELIMITERS[facts['delimiter']]}-separated")
        parts.append("decimal comma" if facts["decimal"] == "," else "decimal point")
        parts.append("with a header line" if facts["header"] else "without a header line")
        if facts["skipped_lines"]:
            parts.append(f"{counted(facts['skipped_lines'], 'line')} above the table skipped")
        if facts["units_line"]:
            parts.append("a line of units skipped")
    if not facts["problem"]:
        parts.append(counted(facts["rows_read"], "row") + (" read" if facts["rows_read"] >= LOOKED_AT else ""))
    return ", ".join([*parts, counted(len(facts["columns"]), "column")])
