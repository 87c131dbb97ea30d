"""State of a stream as OpenMetrics text, for Prometheus and compatible programs."""

from __future__ import annotations

import time
from typing import Any

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def metrics_text(memory: Any, title: str, noticed: float = 0.0, now: float | None = None) -> str:
    """Return the metrics of a memory, or of a stream that has not begun if there is no memory.

    The last event is dated by its time, otherwise by ``noticed``, the monotonic clock when the page first saw it.
    ``ccmem_seconds_since_event`` is left out if neither is known.
    """
    label = f'stream="{_quoted(title)}"'
    if memory is None:
        return f"# TYPE ccmem_rows counter\nccmem_rows_total{{{label}}} 0\n# EOF\n"
    events = getattr(memory, "events_", [])
    block = getattr(memory, "task_pointer_", 0)
    name = getattr(memory, "block_names_", {}).get(block, f"block {block}")
    lines = ["# TYPE ccmem_rows counter", "# HELP ccmem_rows Rows learned."]
    lines.append(f"ccmem_rows_total{{{label}}} {memory.n_samples_seen_}")
    lines += ["# TYPE ccmem_blocks gauge", "# HELP ccmem_blocks Blocks in the memory."]
    lines.append(f"ccmem_blocks{{{label}}} {getattr(memory, 'n_blocks_', 1)}")
    lines += ["# TYPE ccmem_current_block gauge", "# HELP ccmem_current_block Number of the block in use."]
    lines.append(f'ccmem_current_block{{{label},name="{_quoted(name)}"}} {block}')
    lines += ["# TYPE ccmem_events counter", "# HELP ccmem_events Events by kind, of those that the memory keeps."]
    for kind in ("new_block", "recall", "column_lost", "column_back"):
        count = sum(event.kind == kind for event in events)
        lines.append(f'ccmem_events_total{{{label},kind="{kind}"}} {count}')
    dated = bool(events) and events[-1].time is not None
    if dated or (events and noticed):
        since = (time.time() if now is None else now) - events[-1].time if dated else time.monotonic() - noticed
        lines.append("# TYPE ccmem_seconds_since_event gauge")
        lines.append("# HELP ccmem_seconds_since_event Seconds from the time of the last event until now.")
        lines.append(f"ccmem_seconds_since_event{{{label}}} {max(0.0, since):.3f}")
    return "\n".join([*lines, "# EOF\n"])


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
