"""Text output of ``ccmem inspect``, in lines of at most 100 characters."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from ccmem.core.colours import SIGNS
from ccmem.core.terminal import counted, printable
from ccmem.core.times import format_time

WIDTH = 100
MOST_BLOCKS, MOST_FILES, LONGEST_NAME = 50, 5, 24


def text_of(facts: dict[str, Any], n_events: int) -> str:
    """Return the facts of a checkpoint as text, with its latest ``n_events`` events."""
    saved = f"saved by ccmem {facts['library_version']}, digest {facts['digest'][:12]}"
    lines = [f"{facts['file']}: {facts['model']}, {saved}"]
    lines += _under("parameters", ", ".join(f"{k}={v}" for k, v in facts["parameters"].items()))
    if facts["learner"] is not None:
        lines += _stream_lines(facts["learner"])
    if not facts["rows_seen"]:
        lines.append("nothing learned yet")
    elif "weights" in facts:
        taught = f"{facts['rows_seen']:,} samples seen, {facts['rows_taught']:,} of them with a label"
        lines += _under("network", f"{taught}; {facts['weights']:,} weights; labels {', '.join(facts['labels'])}")
    else:
        shape = f"{facts['units']} units of {facts['features']} features ({facts['dtype']})"
        lines += _under("memory", f"{facts['rows_seen']:,} samples seen, {shape}")
        if facts["block_in_use"] is not None:
            lines.append(f"            block {facts['block_in_use']} in use, alarm at {facts['alarm']}")
        lines += _block_lines(facts)
        if facts["events"]:
            lines += _event_lines(facts, n_events)
    # labels and column names come from files, and terminals execute escape sequences
    return "\n".join(printable(text).replace("\n", "\\n") for text in lines)


def score_text(score: dict[str, Any]) -> str:
    """Return the comparison of the events with the true changes as text."""
    found = f"{score['found']} of {score['changes']} changes found, {counted(score['false_alarms'], 'false alarm')}"
    delay = f"median delay {score['median_delay']} samples, onset off by {score['median_onset_error']}"
    return f"{found}, {delay}; {score['right_recalls']} of {score['returns']} returns to the right block"


def _under(word: str, text: str) -> list[str]:
    """Return ``text`` wrapped in a column to the right of ``word``."""
    indent = " " * 12
    return textwrap.wrap(f"{word:<12}{text}", WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _stream_lines(learner: dict[str, Any]) -> list[str]:
    names = learner["features"]
    shown = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
    lines = _under(
        "columns", f"{shown or 'not yet known'}; label {learner['label'] or 'none'}; scale {learner['scale']}"
    )
    if (windows := learner["windows"]) is not None:
        length = "of a length not yet known" if windows["rows"] is None else f"of {windows['rows']:,} rows"
        step = "" if windows["hop"] is None else f", one every {counted(windows['hop'], 'row')}"
        lines += _under("windows", f"{windows['layer']}: windows {length}{step}; samples and events below are windows")
    bad = f", {learner['bad_rows']:,} bad rows skipped" if learner["bad_rows"] else ""
    lines.append(f"learned     {learner['rows_learned']:,} rows{bad}")
    for entry in learner["files"][-MOST_FILES:]:
        file = Path(entry["file"])
        name = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
        lines.append(f"  {entry['rows']:>11,} of {name}{'' if entry['complete'] else ' (to be continued)'}")
    return lines


def _block_lines(facts: dict[str, Any]) -> list[str]:
    blocks = facts["blocks"][:MOST_BLOCKS]
    wide = max((min(len(block["name"]), LONGEST_NAME) + 2 for block in blocks if "name" in block), default=0)
    head = f"{'name':<{wide}}" if wide else ""
    lines = ["", f"{'block':>5} {head}{'units':>6} {'used':>6} {'wins':>12}  labels"]
    for block in blocks:
        votes = block.get("labels", {})
        total = sum(votes.values())
        shares = [(label, count / total) for label, count in list(votes.items())[:3]]
        shown = ", ".join(f"{label} {share:.1%}" for label, share in shares if share >= 0.0005) or "-"
        mark = "*" if block["block"] == facts["block_in_use"] else " "
        name = f"{block.get('name', '')[:LONGEST_NAME]:<{wide}}" if wide else ""
        counts = f"{block['units']:>6} {block['used']:>6} {block['wins']:>12,}"
        lines.append(f"{block['block']:>4}{mark} {name}{counts}  {shown}"[:WIDTH])
    if len(facts["blocks"]) > MOST_BLOCKS:
        lines.append(f"  ... and {len(facts['blocks']) - MOST_BLOCKS} more blocks (--json shows all)")
    return lines


def _event_lines(facts: dict[str, Any], n_events: int) -> list[str]:
    events = facts["events"]
    count = {kind: sum(event["kind"] == kind for event in events) for kind in SIGNS}
    words = [counted(count["new_block"], "new block"), counted(count["recall"], "recall")]
    if count["column_lost"] or count["column_back"]:
        words += [counted(count["column_lost"], "column") + " lost", f"{count['column_back']} back"]
    lines = ["", f"events      {', '.join(words)}; the latest:"]
    for event in events[len(events) - n_events :] if n_events else []:
        _, sign, _, what = SIGNS[event["kind"]]
        place = f"{_block(facts, event['from_block'])} -> {_block(facts, event['to_block'])}"
        if "column" in event:
            place = event.get("column_name", f"column {event['column']}")[:LONGEST_NAME]
        began = f"began at {event['onset']:,}" + (f" ± {event['uncertainty']:,}" if event["uncertainty"] else "")
        at = f"{event['step']:>13,}"
        if event.get("time") is not None:
            at, began = f"{event['when']:>20}", f"began {format_time(event['onset_time'])}"
        lines.append(f"{at}  {sign} {what:<11} {place:<10} {began}")
    return lines


def _block(facts: dict[str, Any], block: int) -> str:
    """Return the name of a block, or its number."""
    known = facts["blocks"][block] if block < len(facts["blocks"]) else {}
    return str(known.get("name", block))[:LONGEST_NAME]
