"""``ccmem learn``: learn from files or a pipe, write checkpoints, resume at the next row."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from ccmem.app.commands._models import build_model, model_name, outside_classes, refuse_changes, refuse_overlap
from ccmem.app.events import Alerts, EventsFile, event_lines, event_record, place_of
from ccmem.app.learner import Learner
from ccmem.app.options import DEFAULT_MODEL, reading
from ccmem.app.stopping import StopRequest, ended_by_signals
from ccmem.base.memory import CompetitiveMemory
from ccmem.core.events import Event
from ccmem.core.terminal import StatusLine, counted, printable
from ccmem.io.persistence.atomic import locked, remove_leftovers
from ccmem.io.streams.errors import SourceError
from ccmem.io.streams.files import FileStream
from ccmem.io.streams.schema import reason_for
from ccmem.layers import ShapeLayer, WindowLayer

_IDLE_SECONDS = 0.2
SHOWN_EVENTS = 20
"""Maximum number of events listed in the final summary."""
LABEL_NAMES = ("label", "class", "target", "state", "mode", "kind", "y")


def run(args: argparse.Namespace) -> int:
    """Learn until the source ends, a limit is reached or a signal arrives."""
    if args.checkpoint is None:
        return _Run(args).go()
    with locked(args.checkpoint) as stale:
        if stale:
            print(f"ccmem learn: taking over the lock that {stale} left behind", file=sys.stderr)
        remove_leftovers(args.checkpoint)
        return _Run(args).go()


class _Run:
    """State of one run of the command."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.stop = StopRequest()
        self.why: str | None = None
        self.kinds: Counter[str] = Counter()
        self.latest: deque[Event] = deque(maxlen=SHOWN_EVENTS)
        self.unsaved_rows = 0
        self.whole = True  # True if the model has learned complete chunks only, so that it may be saved
        self.running_since: tuple[float, int] | None = None  # time and rows after the first chunk: excludes compilation
        self.saved_at = self.began_at = self.ended_at = time.monotonic()
        self.learner, self.is_new = self._learner()
        self.stream = self._stream()
        self.events: EventsFile | None = None
        self.alerts: Alerts | None = None

    def go(self) -> int:
        """Learn, save and report; return the exit code."""
        args, learner = self.args, self.learner
        with contextlib.ExitStack() as opened:
            if args.events:
                self.events = EventsFile(args.events, learner.events, args.checkpoint)
                opened.callback(self.events.close)
            if args.alert:
                self.alerts = Alerts(args.alert)
                opened.callback(self.alerts.close)
            if self.is_new or (self.events is not None and self.events.mark() != learner.events):
                self._save()  # a crash after this point resumes from exactly this state
            before = learner.rows
            problem: BaseException | None = None
            page = None
            if args.watch:
                from ccmem.app.commands.watch import RunPage  # most runs have no page

                page = RunPage(learner, args, self._save)
            try:
                with ended_by_signals() as self.stop:
                    self._learn()
            except (SourceError, OSError) as raised:
                if self.stop.number is None:  # Ctrl-C also ends the sender, so a partial last line is no error
                    problem = raised
            if self.whole:  # after a partial chunk or a lost event, the previous checkpoint stays valid
                self._save()
        if problem is not None:
            if learner.rows > before and self.whole and not isinstance(problem, OSError):
                saved = " and saved" if args.checkpoint else ""
                problem.args = (f"{problem} ({learner.rows - before:,} rows before that were learned{saved})",)
            raise problem
        self._report(learner.rows - before)
        if page is not None and self.stop.number is None:
            self.events = None  # closed; the page may still save block names
            page.stay()
        if self.stop.number is not None:
            return 128 + self.stop.number
        if not learner.rows:
            print("ccmem learn: no row has been learned from; see 'ccmem look'", file=sys.stderr)
            return 2
        if self.stream.in_open_quote:
            print(
                f"ccmem learn: {self.stream.in_open_quote:,} lines were not learned, because a quote is left open "
                "before them; close it, or take them by --accept-last-line",
                file=sys.stderr,
            )
            return 1
        if args.exit_code and (self.kinds["new_block"] or self.kinds["recall"]):
            return 10 if self.kinds["new_block"] else 11
        return 0

    def _stream(self) -> FileStream:
        args, learner = self.args, self.learner
        trained = None if learner.front is not None else getattr(learner.model, "feature_names_in_", None)
        trained = None if trained is None else list(map(str, trained))  # column names of a model trained in Python
        stream = FileStream(
            args.sources,
            **{**reading(args), "features": args.features or trained},
            label=args.label,
            resume=learner.progress,
            columns=learner.columns,
            skip_seen=args.skip_seen,
            chunk_rows=min(args.every, 65_536),
            accept_last_line=args.accept_last_line,
            missing=learner.takes_missing,
        )
        refuse_overlap({"--events": args.events, "--checkpoint": args.checkpoint}, stream.files)
        if args.again:
            stream.forget(stream.files)
        return stream

    def _learner(self) -> tuple[Learner, bool]:
        """Load the learner from the checkpoint and check it against the options, or build a new one."""
        args = self.args
        if args.checkpoint is None or not Path(args.checkpoint).exists():
            return self._new_learner(), True
        learner = Learner.load(args.checkpoint, outside_classes(args.model))
        if learner.rows == 0 and not learner.model.__sklearn_is_fitted__():  # an earlier run ended before its first row
            fresh = self._new_learner()
            fresh.events = learner.events
            return fresh, True
        columns, front = learner.columns, learner.front
        known = {"scale": learner.scale_kind, "window": front and front.window, "shapes": isinstance(front, ShapeLayer)}
        if columns is not None or isinstance(learner.model, CompetitiveMemory):
            known["label"] = columns and columns.label
        refuse_changes(args, args.checkpoint, learner.model, columns and columns.features, known)
        return learner, False

    def _new_learner(self) -> Learner:
        args = self.args
        if args.shapes and args.window is None:
            raise ValueError("--shapes describes windows of a signal; add --window auto, or --window N")
        if args.window is not None and args.label is not None:
            raise ValueError("--window learns from signals without labels; leave out --label")
        layer = ShapeLayer if args.shapes else WindowLayer
        front = None if args.window is None else layer(args.window)
        model = build_model(args.model or DEFAULT_MODEL, args.param, args.label is not None)
        return Learner(model, args.scale or "none", front)

    def _note(self, event: Event) -> None:
        """Count an event, write it to the events file and pass it on to the alerts."""
        self.kinds[event.kind] += 1
        self.latest.append(event)
        if self.events is None and self.alerts is None:
            return
        columns = self.stream.columns and self.stream.columns.features
        record = event_record(event, getattr(self.learner.memory, "block_names_", {}), columns)
        record |= place_of(event, *self.place)
        if self.events is not None:
            self.events.write(record)
        if self.alerts is not None and event.changes_block:
            self.alerts.send(str(event), record)

    def _learn(self) -> None:
        args, learner, stream = self.args, self.learner, self.stream
        bad_before = learner.bad_rows

        learner.on_event(self._note)
        line = StatusLine(not args.quiet)
        progress = ProgressLine(line)
        try:
            for chunk in stream.chunks_read_ahead(args.max_rows, _IDLE_SECONDS):
                cut_off = chunk is not None and not chunk.ended and self.stop.number is not None
                if chunk is not None and len(chunk.X) and not cut_off:  # Ctrl-C may cut off the last line of a pipe
                    assert stream.columns is not None
                    self.place = chunk, learner.steps
                    self.whole = False
                    learner.learn(chunk, stream.columns)
                    self.whole = True
                    self.unsaved_rows += len(chunk.X)
                    if self.running_since is None:
                        self.running_since = time.monotonic(), learner.rows
                now = time.monotonic()
                due = self.unsaved_rows >= args.every or now - self.saved_at >= args.every_seconds
                learner.bad_rows = bad_before + stream.bad_rows
                if self.unsaved_rows and due:
                    self._save()
                progress.show(learner, self.latest[-1] if self.latest else None, now)
                if self.stop.number is not None:
                    return
                if args.max_seconds is not None and now - self.began_at >= args.max_seconds:
                    self.why = "max-seconds"
                    return
        finally:
            learner.bad_rows = bad_before + stream.bad_rows
            line.clear()
            self.ended_at = time.monotonic()

    def _save(self) -> None:
        if self.args.checkpoint is not None:
            self.learner.progress = self.stream.progress
            if self.events is not None:
                self.learner.events = self.events.mark()
            self.learner.save(self.args.checkpoint)
        self.unsaved_rows, self.saved_at = 0, time.monotonic()

    def _report(self, rows: int) -> None:
        args, learner, stream = self.args, self.learner, self.stream
        memory = learner.memory
        seconds = self.ended_at - self.began_at
        if self.stop.number is not None:
            self.why = signal.Signals(self.stop.number).name
        elif self.why is None and args.max_rows is not None and rows >= args.max_rows:
            self.why = "max-rows"
        rate = None  # rows per second after the first chunk, which may wait for the compiler
        if self.running_since is not None and learner.rows > self.running_since[1]:
            rate = round((learner.rows - self.running_since[1]) / max(self.ended_at - self.running_since[0], 1e-9))
        window = getattr(learner.front, "window_", None)
        if learner.front is not None and rows and window is None:
            window = "unknown"
        facts = {
            "model": model_name(learner.model),
            "rows": rows,
            "total_rows": learner.rows,
            "bad_rows": stream.bad_rows,
            "files": sum(file != "-" for file in stream.files),
            "seconds": round(seconds, 3),
            "rows_per_second": rate,
            "units": memory.n_units_ if memory is not None else None,
            "blocks": getattr(memory, "n_blocks_", None),
            "events": self.kinds.total(),
            "stopped_by": self.why,
            "columns": [] if learner.columns is None else list(learner.columns.features),
            "left_out": {column.name: reason_for(column) for column in stream.left_out},
            "time": None if learner.columns is None else ",".join(learner.columns.time) or None,
            "timing": stream.timing.lines(),
            "growing": list(stream.growing),
            "two_valued": [column.name for column in stream.chosen if column.two_valued],
            "codes": {column.name: column.code for column in stream.chosen if column.code},
            "labelled": learner.columns is not None and learner.columns.label is not None,
            "checkpoint": args.checkpoint,
            "renamed": stream.renamed,
            "held_back": len(stream.held_back),
            "window": window,
            "hop": getattr(learner.front, "hop_", None),
            "in_open_quote": stream.in_open_quote,
        }
        with contextlib.suppress(OSError) if self.stop.number is not None else contextlib.nullcontext():
            if args.json:  # after a hang-up the terminal may be gone, so printing may fail
                print(json.dumps(facts), flush=True)
            elif not args.quiet:
                print(printable(sentence(facts)), flush=True)
                if self.latest and memory is not None:
                    many = f"the latest {len(self.latest)} of " if self.kinds.total() > len(self.latest) else ""
                    print(f"\nevents ({many}{self.kinds.total()}):")
                    print(printable("\n".join(event_lines(memory, list(self.latest), stream.timing.last))), flush=True)


# Text output ----------------------------------------------------------------------------------------------------------


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
        text += f"; a quote left open holds back the last {facts['in_open_quote']:,} lines of a file (close it, or take"
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
