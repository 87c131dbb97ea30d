"""``ccmem learn``: learn from files or a pipe, write checkpoints, resume at the next row."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ccmem.core.terminal import StatusLine

if TYPE_CHECKING:
    from ccmem.app.alerts import Alerts
    from ccmem.app.commands.watch import RunPage
    from ccmem.app.events_file import EventsFile
    from ccmem.app.learner import Learner
    from ccmem.core.events import Event
    from ccmem.io.streams.files import FileStream

EXAMPLE = """\
examples:
  ccmem generate drift sensors.csv
  ccmem learn sensors.csv --label state --checkpoint memory.safetensors --events events.jsonl
  tail -f log.ndjson | ccmem learn - --format ndjson --features a,b --checkpoint memory.safetensors
  ccmem learn more/*.csv --checkpoint memory.safetensors
  ccmem learn vibration.csv --window auto --events events.jsonl
  ccmem learn sensors.csv --watch

If the checkpoint exists, learning resumes from it, with its model, columns and scaling. It remembers how many rows of
every file it has learned: a file that has grown resumes at its next row, files learned in full are skipped, and each
row is learned once, however often the command is stopped, killed or repeated. --again forgets that for the files named;
leave it out when you resume such a run.

Standard input cannot be rewound; a pipe that starts over from its first row needs --skip-seen.

A last line without its line end is left for later, because the rest of it may be on its way; --accept-last-line takes
it, and so does the end of a pipe.

Exit codes: 0 done, 1 error (also lines behind an open quote), 2 wrong command line or
nothing to learn from, with --exit-code 10 for new blocks and 11 for recalls alone,
129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM. A run that
ends early, by a limit, a signal or a bad row, saves what it has learned.
"""
_IDLE_SECONDS = 0.2
SHOWN_EVENTS = 20
"""Maximum number of events listed in the final summary."""
_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}  # Windows has no SIGHUP
_STOPPING = {getattr(signal, name): code for name, code in _CODES.items() if hasattr(signal, name)}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    from ccmem import registry
    from ccmem.app.commands._shared import (
        DEFAULT_MODEL,
        add_source_options,
        add_time_options,
        positive,
        seconds,
        window_length,
    )
    from ccmem.app.commands.watch import add_page_options

    add_source_options(parser)
    parser.add_argument("--checkpoint", metavar="FILE", help="where the memory is kept (a safetensors file)")
    words = ", ".join(word for word in registry.COMMAND_WORDS if word != DEFAULT_MODEL)
    parser.add_argument("--model", help=f"{DEFAULT_MODEL} (default), {words}, or module:Class; fixed by the first run")
    parser.add_argument("--param", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the model")
    parser.add_argument("--label", metavar="COLUMN", help="label column; labels may be missing in any row")
    add_time_options(parser)
    parser.add_argument(
        "--scale",
        choices=("none", "unit", "standard"),
        help="none (default); unit: every row to length 1; standard: every column by its mean and "
        "deviation so far. Kept in the checkpoint and applied at prediction",
    )
    parser.add_argument(
        "--window",
        metavar="N",
        type=window_length,
        help="the rows are a signal: learn windows of N rows (auto: two of its periods) by their level, spread, "
        "spectrum and correlations. Without labels; the answers are the events",
    )
    parser.add_argument(
        "--shapes", action="store_true", help="with --window: describe windows by shapes learned from the first rows"
    )
    parser.add_argument(
        "--every", metavar="ROWS", type=positive, default=1_000_000, help="rows between checkpoints (default 1000000)"
    )
    parser.add_argument(
        "--every-seconds", metavar="S", type=seconds, default=60.0, help="longest time between checkpoints (default 60)"
    )
    parser.add_argument("--events", metavar="FILE", help="append new blocks and recalls to FILE as lines of JSON")
    parser.add_argument(
        "--alert",
        metavar="CMD",
        help="run CMD for each new block and recall, without a shell: the event in words as last argument, as JSON on "
        "standard input. After a crash, events since the last checkpoint are repeated",
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with 10 if a new block began, 11 if only known blocks returned"
    )
    parser.add_argument("--max-rows", metavar="N", type=positive, help="stop after N rows")
    parser.add_argument("--max-seconds", metavar="S", type=seconds, help="stop after S seconds")
    parser.add_argument("--again", action="store_true", help="learn the files from their first row, learned or not")
    parser.add_argument(
        "--skip-seen", action="store_true", help="skip as many rows of standard input as were read from it before"
    )
    parser.add_argument(
        "--watch", action="store_true", help="open a live page; it stays after the last row, until Ctrl-C"
    )
    add_page_options(parser)
    parser.add_argument(
        "--accept-last-line", action="store_true", help="learn a file's last line even if its line end is missing"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--quiet", action="store_true", help="print no progress and no summary")
    parser.epilog = EXAMPLE


def run(args: argparse.Namespace) -> int:
    """Learn until the source ends, a limit is reached or a signal arrives."""
    if args.checkpoint is None:
        return _Run(args).go()
    from ccmem.io.persistence.atomic import locked, remove_leftovers

    with locked(args.checkpoint) as stale:
        if stale:
            print(f"ccmem learn: taking over the lock that {stale} left behind", file=sys.stderr)
        remove_leftovers(args.checkpoint)
        return _Run(args).go()


class _Run:
    """State of one run of the command."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.signal: int | None = None
        self.why: str | None = None
        self.kinds: Counter[str] = Counter()
        self.latest: deque[Event] = deque(maxlen=SHOWN_EVENTS)
        self.unsaved_rows = 0
        self.whole = True  # True if the model has learned complete chunks only, so that it may be saved
        self.running_since: tuple[float, int] | None = None  # time and rows after the first chunk: excludes compilation
        self.saved_at = self.began_at = self.ended_at = time.monotonic()

    def go(self) -> int:
        from ccmem.app.alerts import Alerts
        from ccmem.app.commands._shared import check_apart, feature_names, reading_rules
        from ccmem.app.events_file import EventsFile
        from ccmem.io.streams.files import FileStream
        from ccmem.io.streams.tables import SourceError

        args = self.args
        learner, new = self._learner()
        columns = learner.columns
        stream = FileStream(
            args.sources,
            features=args.features or feature_names(learner),
            label=args.label,
            format=args.format,
            on_bad_row=args.on_bad_row,
            resume=learner.progress,
            columns=columns,
            skip_seen=args.skip_seen,
            chunk_rows=min(args.every, 65_536),
            accept_last_line=args.accept_last_line,
            missing=learner.takes_missing,
            rules=reading_rules(args),
        )
        check_apart(args, stream.files)
        if args.again:
            stream.forget(stream.files)
        events = EventsFile(args.events, learner.events, args.checkpoint) if args.events else None
        alerts = Alerts(args.alert) if args.alert else None
        try:
            if new or (events is not None and events.mark() != learner.events):
                self._save(learner, stream, events)  # a crash after this point resumes from exactly this state
            before = learner.rows
            problem: BaseException | None = None
            page = self._page(learner, stream)
            try:
                with self._signals():
                    self._learn(learner, stream, events, alerts)
            except (SourceError, OSError) as raised:
                if self.signal is None:  # Ctrl-C also ends the sender, so a partial last line is no error
                    problem = raised
            if self.whole:  # after a partial chunk or a lost event, the previous checkpoint stays valid
                self._save(learner, stream, events)
        finally:
            if events is not None:
                events.close()
            if alerts is not None:
                alerts.close()
        if problem is not None:
            if learner.rows > before and self.whole and not isinstance(problem, OSError):
                saved = " and saved" if args.checkpoint else ""
                problem.args = (f"{problem} ({learner.rows - before:,} rows before that were learned{saved})",)
            raise problem
        self._report(learner, stream, learner.rows - before)
        if page is not None and self.signal is None:
            page.stay()
        if self.signal is not None:
            return _STOPPING[signal.Signals(self.signal)]
        if not learner.rows:
            print("ccmem learn: no row has been learned from; see 'ccmem look'", file=sys.stderr)
            return 2
        if stream.in_open_quote:
            print(
                f"ccmem learn: {stream.in_open_quote:,} lines were not learned, because a quote is left open before "
                "them; mend it, or take them by --accept-last-line",
                file=sys.stderr,
            )
            return 1
        if args.exit_code and (self.kinds["new_block"] or self.kinds["recall"]):
            return 10 if self.kinds["new_block"] else 11
        return 0

    def _page(self, learner: Learner, stream: FileStream) -> RunPage | None:
        """Open the live page if ``--watch`` was given, otherwise return None."""
        if not self.args.watch:
            return None
        from ccmem.app.commands.watch import RunPage

        return RunPage(learner, self.args, lambda: self._save(learner, stream, None))

    def _new_model(self) -> Any:
        from ccmem.app.commands._shared import DEFAULT_MODEL, build_model

        return build_model(self.args.model or DEFAULT_MODEL, self.args.param, self.args.label is not None)

    def _new_learner(self) -> Learner:
        from ccmem.app.learner import Learner
        from ccmem.layers import ShapeLayer, WindowLayer

        args = self.args
        if args.shapes and args.window is None:
            raise ValueError("--shapes describes windows of a signal; add --window auto, or --window N")
        if args.window is not None and args.label is not None:
            raise ValueError("--window learns from signals without labels; leave out --label")
        layer = ShapeLayer if args.shapes else WindowLayer
        front = None if args.window is None else layer(args.window)
        return Learner(self._new_model(), args.scale or "none", front)

    def _learner(self) -> tuple[Learner, bool]:
        """Load the learner from the checkpoint and check it against the options, or build a new one."""
        from ccmem.app.commands._shared import check_against, outside_classes
        from ccmem.app.learner import Learner

        args = self.args
        if args.checkpoint is None or not Path(args.checkpoint).exists():
            return self._new_learner(), True
        learner = Learner.load(args.checkpoint, outside_classes(args.model))
        if learner.rows == 0 and not learner.model.__sklearn_is_fitted__():  # an earlier run ended before its first row
            fresh = self._new_learner()
            fresh.events = learner.events
            return fresh, True
        check_against(learner, args)
        return learner, False

    def _learn(self, learner: Learner, stream: FileStream, events: EventsFile | None, alerts: Alerts | None) -> None:
        from ccmem.app.commands._learn_text import ProgressLine
        from ccmem.app.happenings import RowPlaces, event_record

        args = self.args
        places, bad_before = RowPlaces(), learner.bad_rows

        def on_event(event: Event) -> None:
            self.kinds[event.kind] += 1
            self.latest.append(event)
            if events is None and alerts is None:
                return
            names = getattr(learner.memory, "block_names_", {})
            record = {**event_record(event, names, stream.columns), **places.of(event)}
            if events is not None:
                events.write(record)
            if alerts is not None and event.changes_block:
                alerts.send(str(event), record)

        learner.on_event(on_event)
        progress = ProgressLine(StatusLine(not args.quiet))
        try:
            for chunk in stream.chunks_read_ahead(args.max_rows, _IDLE_SECONDS):
                cut_off = chunk is not None and not chunk.ended and self.signal is not None
                if chunk is not None and len(chunk.X) and not cut_off:  # Ctrl-C may cut off the last line of a pipe
                    assert stream.columns is not None
                    places.enter(chunk, learner.steps)
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
                    self._save(learner, stream, events)
                progress.show(learner, self.latest[-1] if self.latest else None, now)
                if self.signal is not None:
                    return
                if args.max_seconds is not None and now - self.began_at >= args.max_seconds:
                    self.why = "max-seconds"
                    return
        finally:
            learner.bad_rows = bad_before + stream.bad_rows
            progress.clear()
            self.ended_at = time.monotonic()

    def _rate(self, learner: Learner) -> int | None:
        """Return rows per second after the first chunk, or None if no rows followed it."""
        if self.running_since is None or learner.rows == self.running_since[1]:
            return None
        return round((learner.rows - self.running_since[1]) / max(self.ended_at - self.running_since[0], 1e-9))

    def _save(self, learner: Learner, stream: FileStream, events: EventsFile | None) -> None:
        if self.args.checkpoint is not None:
            learner.progress = stream.progress
            if events is not None:
                learner.events = events.mark()
            learner.save(self.args.checkpoint)
        self.unsaved_rows, self.saved_at = 0, time.monotonic()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Let Ctrl-C, SIGTERM and SIGHUP end the loop between chunks; a second signal ends the process."""

        def stop(number: int, frame: Any) -> None:
            self.signal = number
            signal.signal(number, signal.SIG_DFL)

        hang_up = getattr(signal, "SIGHUP", None)
        nohup = hang_up is not None and signal.getsignal(hang_up) == signal.SIG_IGN  # under nohup, ignore SIGHUP
        caught = [number for number in _STOPPING if not (nohup and number == hang_up)]
        previous = {number: signal.signal(number, stop) for number in caught}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _report(self, learner: Learner, stream: FileStream, rows: int) -> None:
        from ccmem.app.commands._learn_text import sentence
        from ccmem.app.commands._shared import model_name
        from ccmem.app.happenings import event_lines
        from ccmem.cli import printable
        from ccmem.io.streams.tables import reason_for

        args, memory = self.args, learner.memory
        seconds = self.ended_at - self.began_at
        if self.signal is not None:
            self.why = signal.Signals(self.signal).name
        elif self.why is None and args.max_rows is not None and rows >= args.max_rows:
            self.why = "max-rows"
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
            "rows_per_second": self._rate(learner),
            "units": memory.n_units_ if memory is not None else None,
            "blocks": getattr(memory, "n_blocks_", None),
            "events": self.kinds.total(),
            "stopped_by": self.why,
            "columns": [] if learner.columns is None else list(learner.columns.features),
            "left_out": {column.name: reason_for(column) for column in stream.left_out},
            "time": None if learner.columns is None else ",".join(learner.columns.time) or None,
            "timing": stream.timing.lines(),
            "growing": list(stream.growing),
            "two_valued": stream.two_valued,
            "codes": stream.codes,
            "labelled": learner.columns is not None and learner.columns.label is not None,
            "checkpoint": args.checkpoint,
            "renamed": stream.renamed,
            "held_back": len(stream.held_back),
            "window": window,
            "in_open_quote": stream.in_open_quote,
        }
        with contextlib.suppress(OSError) if self.signal is not None else contextlib.nullcontext():
            if args.json:  # after a hang-up the terminal may be gone, so printing may fail
                print(json.dumps(facts), flush=True)
            elif not args.quiet:
                print(sentence(facts), flush=True)
                if self.latest and memory is not None:
                    many = f"the latest {len(self.latest)} of " if self.kinds.total() > len(self.latest) else ""
                    print(f"\nevents ({many}{self.kinds.total()}):")
                    print(printable("\n".join(event_lines(memory, list(self.latest), stream.timing.last))), flush=True)
