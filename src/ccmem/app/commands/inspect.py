"""``ccmem inspect``: show the content of a checkpoint without loading any model code."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.app.events import event_record
from ccmem.core.colours import SIGNS
from ccmem.core.events import event_of
from ccmem.core.terminal import counted, printable
from ccmem.core.times import format_time
from ccmem.io.persistence.checkpoint import CheckpointError, read_checkpoint

WIDTH = 100
MOST_BLOCKS, MOST_FILES, LONGEST_NAME = 50, 5, 24


def run(args: argparse.Namespace) -> int:
    """Print the content of a checkpoint and optionally draw it."""
    checkpoint = read_checkpoint(args.checkpoint, build=False)
    facts = {
        "file": args.checkpoint,
        "library_version": checkpoint.library_version,
        "schema": checkpoint.schema,
        "digest": _digest(checkpoint.content["model"]),
    }
    with _doubting(args.checkpoint):
        facts |= describe(checkpoint.content)
        text = text_of(facts, max(args.events, 0))
        document = json.dumps(facts)
    if args.changes:
        facts["score"] = _score(facts["events"], Path(args.changes))
        text += "\n\n" + score_text(facts["score"])
        document = json.dumps(facts)
    print(document if args.json else text)
    if args.plot:
        _draw(args.checkpoint, args.plot)
        if not args.json:
            print(f"\ndrawn to {args.plot}")
    return 0


def _draw(checkpoint: str, path: str) -> None:
    """Draw the block in use over time, and the content of each block."""
    from ccmem import plots
    from ccmem.app.learner import Learner
    from ccmem.plots._figure import new_figure

    if not path.lower().endswith((".png", ".svg", ".pdf")):
        raise ValueError(f"--plot {path}: the name must end in .png, .svg or .pdf")
    memory: Any = Learner.load(checkpoint).memory
    if memory is None:
        raise ValueError(f"{checkpoint} holds no memory that has learned; there is nothing to draw")
    if not hasattr(memory, "unit_blocks_"):
        plots.memory_grid(memory).figure.savefig(path, dpi=120)
        return
    figure = new_figure(11, 7.5)
    above, below = figure.subfigures(2, 1, height_ratios=[1.1, 1])
    plots.timeline(memory, figure=above)
    plots.blocks(memory, figure=below)
    counts = f"{memory.n_samples_seen_:,} samples, {memory.n_blocks_} blocks, {memory.n_units_} units"
    figure.suptitle(f"{type(memory).__name__}: {counts}")
    figure.savefig(path, dpi=120)


@contextlib.contextmanager
def _doubting(file: str) -> Iterator[None]:
    """Convert errors into CheckpointError: a signed checkpoint may hold anything, and no model code has checked it."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError) as problem:
        raise CheckpointError(f"{file} does not hold the fields of a model ({problem!r})") from problem


def _score(events: list[dict[str, Any]], file: Path) -> dict[str, Any]:
    """Compare events with true changes in ``file``: ``{"start": "a", "changes": [{"step": 9, "state": "b"}]}``."""
    from ccmem.metrics.events import score_events  # imports kernels, which the rest of the command does not need

    try:
        truth = json.loads(file.read_text())
        steps, tasks = zip(*((change["step"], change["state"]) for change in truth["changes"]), strict=True)
        score = score_events(events, steps, tasks=[truth["start"], *tasks])
    except (ValueError, TypeError, LookupError) as problem:
        raise ValueError(
            f"--changes {file}: not a list of changes as ccmem generate writes it ({problem})"
        ) from problem
    return {**score._asdict(), "median_delay": score.median_delay, "median_onset_error": score.median_onset_error}


def describe(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a checkpoint as plain values."""
    outer = model = content["model"]
    votes = classes = None
    if "memory_" in (model["fitted"] or {}):
        fitted = model["fitted"]
        votes, classes = fitted.get("votes"), fitted.get("classes_")
        model = fitted["memory_"]
    elif "memory" in model["parameters"] and isinstance(model["parameters"]["memory"], dict):
        model = model["parameters"]["memory"]
    facts: dict[str, Any] = {
        "model": (outer["class"] if outer is model else f"{outer['class']} on {model['class']}").replace(":", ""),
        "parameters": {k: v for k, v in model["parameters"].items() if isinstance(v, (str, int, float, type(None)))},
        "learner": _stream(content.get("learner")),
    }
    fitted = model["fitted"]
    if fitted is None or "state" not in fitted:
        return {**facts, "rows_seen": 0, "units": 0, "blocks": [], "events": []}
    counters, state = fitted["counters"], fitted["state"]
    if not all(type(count) is int and count >= 0 for count in counters.values()):
        raise ValueError("its counters are damaged")
    if "wins" not in state:  # a network has no units, and raw weights are not readable
        known = {"rows_seen": counters["seen"], "rows_taught": counters["taught"], "weights": len(state["parameters"])}
        labels = [str(label) for label in fitted["classes_"]]
        return {**facts, **known, "units": 0, "labels": labels, "blocks": [], "events": []}
    n_units, n_blocks = counters["units"], counters.get("blocks", 1)
    capacity = max(1, len(state["prototypes"]))
    if not (0 <= n_units <= capacity and 0 <= n_blocks <= capacity and state["wins"].dtype.kind in "iu"):
        raise ValueError(f"{n_units} units in {n_blocks} blocks")
    wins = _per_unit(state["wins"], n_units)
    members = state.get("unit_blocks")
    equal = np.arange(n_units) * n_blocks // max(n_units, 1)
    members = equal if members is None else _per_unit(members, n_units)
    sums = np.zeros((n_blocks, 3), np.int64)
    np.add.at(sums, members, np.array([np.ones_like(wins), wins > 0, wins]).T)
    given = {int(block): str(name) for block, name in fitted.get("block_names", [])}
    blocks: list[dict[str, Any]] = []
    for block, (units, used, won) in enumerate(sums.tolist()):
        name = {"name": given[block]} if block in given else {}
        blocks.append({"block": block, **name, "units": units, "used": used, "wins": won})
    if votes is not None and classes is not None and len(classes):
        counts = np.zeros((n_blocks, len(classes)), np.int64)
        np.add.at(counts, members, votes[:n_units])
        for entry, row in zip(blocks, counts, strict=True):
            order = (i for i in row.argsort(kind="stable")[::-1] if row[i])
            entry["labels"] = {str(classes[i]): int(row[i]) for i in order}
    events = list(map(event_of, fitted["events"].tolist()))
    if "times" in fitted:
        pairs = [[None if time != time else time for time in pair] for pair in fitted["times"]["events"].tolist()]
        events = [event._replace(time=t, onset_time=o) for event, (t, o) in zip(events, pairs, strict=True)]
    columns = fitted.get("feature_names_in_")
    return {
        **facts,
        "rows_seen": counters["seen"],
        "units": n_units,
        "features": fitted["n_features_in_"],
        "dtype": str(state["prototypes"].dtype),
        "block_in_use": counters.get("pointer"),
        "alarm": counters.get("alarm"),
        "labels": None if classes is None else [str(c) for c in classes],
        "blocks": blocks,
        "events": [event_record(event, given, columns) for event in events],
    }


def _per_unit(array: Any, n_units: int) -> Any:
    """Return one integer per unit, padded with zeros because a checkpoint omits trailing zeros."""
    return np.pad(array[:n_units].astype(np.int64), (0, max(0, n_units - len(array))))


def _digest(value: Any) -> str:
    """Return the SHA-256 digest of the learned state, independent of the paths of the source files."""
    digest = hashlib.sha256()

    def take(value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            digest.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, dict):
            for key in sorted(value):
                digest.update(f"{key}:".encode())
                take(value[key])
        elif isinstance(value, (list, tuple, np.ndarray)):
            digest.update(f"[{len(value)}".encode())
            for item in value:
                take(item)
        elif isinstance(value, np.random.Generator):
            digest.update(str(value.bit_generator.state).encode())
        else:
            digest.update(repr(value).encode())

    take(value)
    return digest.hexdigest()


def _stream(learner: Any) -> dict[str, Any] | None:
    if learner is None:
        return None
    columns = learner["columns"] or {"features": [], "label": None}
    return {
        "rows_learned": learner["rows"],
        "bad_rows": learner["bad_rows"],
        "scale": learner["scale_kind"],
        "features": columns["features"],
        "label": columns["label"],
        "windows": _windows(learner.get("front")),
        "files": [{"file": entry[0], "rows": entry[1], "complete": entry[2]} for entry in learner["progress"]],
    }


def _windows(layer: Any) -> dict[str, Any] | None:
    """Return the layer that turns rows into windows, its window length in rows (None if not yet known) and its hop."""
    if layer is None:
        return None
    from ccmem.layers._windowed import HOPS  # only needed for windows

    fitted = layer["fitted"] or {}
    rows = fitted.get("window_")
    hop = None if rows is None else min(rows, layer["parameters"]["hop"] or max(1, rows // HOPS))
    return {"layer": layer["class"], "rows": rows, "hop": hop}


# Text, in lines of at most 100 characters -----------------------------------------------------------------------------


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
