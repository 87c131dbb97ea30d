"""What ``ccmem learn`` says: a line of progress on a terminal, a sentence at the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ccmem._terminal import StatusLine
    from ccmem.living.learner import Learner
    from ccmem.memory import Event


LABEL_NAMES = ("label", "class", "target", "state", "mode", "kind", "y")


def sentence(facts: dict[str, Any]) -> str:
    files = f"{facts['files']} file{'s' if facts['files'] != 1 else ''}" if facts["files"] else "standard input"
    if not facts["rows"] and facts["stopped_by"] is None:
        text = f"nothing new in {files} ({facts['total_rows']:,} rows learned before)"
    else:
        rate = f" ({facts['rows_per_second']:,} rows/s once running)" if facts["rows_per_second"] else ""
        text = f"learned {facts['rows']:,} rows from {files} in {facts['seconds']:.1f} s{rate}"
        text += f", {facts['total_rows']:,} in all" if facts["total_rows"] != facts["rows"] else ""
    if facts["bad_rows"]:
        text += f"; {facts['bad_rows']:,} bad rows skipped"
    if facts["held_back"] and not facts["in_open_quote"]:
        text += "; a last line without its end was left for later (--accept-last-line takes it)"
    if facts["in_open_quote"]:
        text += f"; a quote left open holds back the last {facts['in_open_quote']:,} lines of a file (mend it, or take"
        text += " them by --accept-last-line)"
    if facts["blocks"] is not None:
        blocks = f"{facts['blocks']} block{'s' if facts['blocks'] != 1 else ''}"
        events = f"{facts['events']} event{'s' if facts['events'] != 1 else ''}"
        text += f"\n{facts['model']}: {blocks}, {facts['units']} units, {events} in this run"
    elif facts["units"] is not None:
        text += f"\n{facts['model']}: {facts['units']} units"
    if facts["window"] == "unknown":
        text += "\nno period was found yet, which may take 1,024 rows, so they wait: more rows, or --window N"
    if facts["left_out"]:
        names = ", ".join(facts["left_out"][:5]) + (", ..." if len(facts["left_out"]) > 5 else "")
        hint = "" if facts["labelled"] else f" (if one of them is the label: --label {_likely(facts['left_out'])})"
        text += f"\nleft out, because they hold no numbers: {names}{hint}"
    if facts["growing"]:
        name = facts["growing"][0]
        text += f"\n{name} grows with every row: if it is a time or a row number, start anew with --time {name}"
    if facts["stopped_by"]:
        text += f"\nstopped by {facts['stopped_by']}"
    return text + (f"\nsaved to {facts['checkpoint']}" if facts["checkpoint"] else "\nnothing saved (no --checkpoint)")


def _likely(columns: list[str]) -> str:
    """The column that is most likely the label: by its name, or else the last."""
    return next((name for name in columns if name.lower() in LABEL_NAMES), columns[-1])


class ProgressLine:
    """Rows/s, blocks and the last event."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self._at = time.monotonic()
        self._rows: int | None = None

    def show(self, learner: Learner, last: Event | None, now: float) -> None:
        """Write the line anew, four times a second at most."""
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
            text += f"  last: {str(last).partition(' at sample')[0]} at row {last.step:,}"
        self._line.show(text)

    def clear(self) -> None:
        """Take the line away."""
        self._line.clear()
