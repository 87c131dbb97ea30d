"""Text output of ``ccmem learn``: a progress line on a terminal and a summary at the end."""

from __future__ import annotations

import time
from typing import Any

from ccmem.app.learner import Learner
from ccmem.core.events import Event
from ccmem.core.terminal import StatusLine, counted

LABEL_NAMES = ("label", "class", "target", "state", "mode", "kind", "y")


def sentence(facts: dict[str, Any]) -> str:
    files = counted(facts["files"], "file") if facts["files"] else "standard input"
    if not facts["rows"] and facts["stopped_by"] is None:
        text = f"nothing new in {files} ({facts['total_rows']:,} rows learned before)"
    else:
        rate = f" ({facts['rows_per_second']:,} rows/s once running)" if facts["rows_per_second"] else ""
        text = f"learned {counted(facts['rows'], 'row')} from {files} in {facts['seconds']:.1f} s{rate}"
        text += f", {facts['total_rows']:,} in all" if facts["total_rows"] != facts["rows"] else ""
    if facts["bad_rows"]:
        text += f"; {counted(facts['bad_rows'], 'bad row')} skipped"
    for new, old in list(facts["renamed"].items())[:5]:
        text += f"\n{new} was learned before as {old}; only rows after those were new"
    if len(facts["renamed"]) > 5:
        text += f"\nso were {len(facts['renamed']) - 5:,} other renamed files"
    if facts["held_back"] and not facts["in_open_quote"]:
        text += "; a last line without its end was left for later (--accept-last-line takes it)"
    if facts["in_open_quote"]:
        text += f"; a quote left open holds back the last {facts['in_open_quote']:,} lines of a file (mend it, or take"
        text += " them by --accept-last-line)"
    if facts["blocks"] is not None:
        parts = [counted(facts[f"{what}s"], what) for what in ("block", "unit", "event")]
        text += f"\n{facts['model']}: {', '.join(parts)} in this run"
    elif facts["units"] is not None:
        text += f"\n{facts['model']}: {counted(facts['units'], 'unit')}"
    if facts["columns"]:
        names = ", ".join(facts["columns"][:8]) + (", ..." if len(facts["columns"]) > 8 else "")
        text += f"\nlearned from {counted(len(facts['columns']), 'column')}: {names}"
    if facts["timing"]:
        text += f"\ntime {facts['time']}: {facts['timing'][0]}" + "".join(f"\n  {line}" for line in facts["timing"][1:])
    if facts["window"] == "unknown":
        text += "\nno window length yet: --window auto looks for a period in the first 1,024 rows (--window N sets one)"
    elif facts["window"] is not None:
        text += f"\nwindows of {facts['window']:,} rows, one every {counted(facts['hop'], 'row')}"
    if facts["left_out"]:
        reasons = [reason for reason in facts["left_out"].values() if ": the time" not in reason]
        texts = [name for name, reason in facts["left_out"].items() if ": text" in reason]
        if reasons:
            text += "\nleft out:" + "".join(f"\n  {reason}" for reason in reasons[:12])
            text += f"\n  ... and {len(reasons) - 12} more" if len(reasons) > 12 else ""
        if texts and not facts["labelled"]:
            text += f"\nto use one of them as the label: --label {_likely(texts)}"
    if facts["two_valued"] and not facts["labelled"] and facts["columns"][-1] in facts["two_valued"]:
        name = facts["columns"][-1]
        text += f"\n{name} holds only 0 and 1; if it is a label, start again with --label {name}"
    for name, code in list(facts["codes"].items())[:3]:
        text += f"\n{name} is often {code}; if this marks a missing value, start again with --missing={code}"
    if facts["growing"]:
        name = facts["growing"][0]
        text += f"\n{name} grows with every row; if it is a time or a row number, start again with --time {name}"
    if facts["stopped_by"]:
        text += f"\nstopped by {facts['stopped_by']}"
    return text + (f"\nsaved to {facts['checkpoint']}" if facts["checkpoint"] else "\nnothing saved (no --checkpoint)")


def _likely(columns: list[str]) -> str:
    """Return the column that is most likely the label: by its name, otherwise the last column."""
    return next((name for name in columns if name.lower() in LABEL_NAMES), columns[-1])


class ProgressLine:
    """Progress line with rows per second, blocks and the last event."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self._at = time.monotonic()
        self._rows: int | None = None

    def show(self, learner: Learner, last: Event | None, now: float) -> None:
        """Redraw the line, at most four times a second."""
        if self._rows is None:
            self._rows = learner.rows
        if not self._line.visible or now - self._at < 0.25:
            return
        rate = (learner.rows - self._rows) / (now - self._at)
        self._at, self._rows = now, learner.rows
        text = f"{learner.rows:,} rows  {rate:,.0f} rows/s"
        if (memory := learner.memory) is not None:
            text += f"  {memory.n_blocks_} blocks" if hasattr(memory, "n_blocks_") else f"  {memory.n_units_} units"
        if last is not None:
            text += f"  last: {str(last).partition(' at ')[0]} at row {last.step:,}"
        self._line.show(text)
