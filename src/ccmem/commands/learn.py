"""``ccmem learn``: learn from files or a pipe, keep a checkpoint, resume where it stopped."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ccmem._terminal import StatusLine

if TYPE_CHECKING:
    from ccmem.commands.watch import RunPage
    from ccmem.living.events import EventsFile
    from ccmem.living.learner import Learner
    from ccmem.memory import Event
    from ccmem.streams.files import FileStream

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

Exit codes: 0 done, 1 error, 2 wrong command line, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM. A run that
ends early, by a limit, a signal or a bad row, saves what it has learned.
"""
_IDLE_SECONDS = 0.2
_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}  # Windows has no SIGHUP
_STOPPING = {getattr(signal, name): code for name, code in _CODES.items() if hasattr(signal, name)}


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from ccmem import registry
    from ccmem.commands._shared import DEFAULT_MODEL, add_source_options
    from ccmem.commands.watch import add_page_options

    add_source_options(parser)
    parser.add_argument("--checkpoint", metavar="FILE", help="where the memory is kept (a safetensors file)")
    words = ", ".join(word for word in registry.COMMAND_WORDS if word != DEFAULT_MODEL)
    parser.add_argument("--model", help=f"{DEFAULT_MODEL} (default), {words}; fixed by the first run")
    parser.add_argument("--param", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the model")
    parser.add_argument("--label", metavar="COLUMN", help="label column; labels may be missing in any row")
    parser.add_argument("--time", metavar="COLUMN", help="a time or row number: not learned from")
    parser.add_argument(
        "--scale",
        choices=("none", "unit", "standard"),
        help="none (default); unit: every row to length 1; standard: every column by its mean and "
        "deviation so far. Kept in the checkpoint and applied at prediction",
    )
    parser.add_argument(
        "--window",
        metavar="N",
        type=_window,
        help="the rows are a signal: learn windows of N rows (auto: two of its periods) by their level, spread, "
        "spectrum and correlations. Without labels; the answers are the events",
    )
    parser.add_argument(
        "--every", metavar="ROWS", type=_positive, default=1_000_000, help="rows between checkpoints (default 1000000)"
    )
    parser.add_argument(
        "--every-seconds",
        metavar="S",
        type=_seconds,
        default=60.0,
        help="longest time between checkpoints (default 60)",
    )
    parser.add_argument("--events", metavar="FILE", help="append new blocks and recalls to FILE as lines of JSON")
    parser.add_argument("--max-rows", metavar="N", type=_positive, help="stop after N rows")
    parser.add_argument("--max-seconds", metavar="S", type=_seconds, help="stop after S seconds")
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
    """Learn until the source ends, a limit is reached, or a signal comes."""
    if args.checkpoint is None:
        return _Run(args).go()
    from ccmem.persistence.atomic import locked, remove_leftovers

    with locked(args.checkpoint) as stale:
        if stale:
            print(f"ccmem learn: taking over the lock that {stale} left behind", file=sys.stderr)
        remove_leftovers(args.checkpoint)
        return _Run(args).go()


class _Run:
    """One call of the command."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.signal: int | None = None
        self.why: str | None = None
        self.n_events = 0
        self.last_event: Event | None = None
        self.unsaved_rows = 0
        self.whole = True  # whether what is in memory is what a whole number of chunks has led to
        self.running_since: tuple[float, int] | None = None  # when the first chunk was done: code loaded and compiled
        self.saved_at = self.began_at = self.ended_at = time.monotonic()

    def go(self) -> int:
        from ccmem.living.events import EventsFile
        from ccmem.streams.files import FileStream
        from ccmem.streams.tables import SourceError

        args = self.args
        learner, new = self._learner()
        columns = learner.columns
        stream = FileStream(
            args.sources,
            features=args.features or _feature_names(learner),
            label=args.label,
            format=args.format,
            on_bad_row=args.on_bad_row,
            resume=learner.progress,
            columns=columns,
            skip_seen=args.skip_seen,
            chunk_rows=min(args.every, 65_536),
            accept_last_line=args.accept_last_line,
            missing=learner.takes_missing,
            time=args.time,
        )
        _check_apart(args, stream.files)
        if args.again:
            stream.forget(stream.files)
        events = EventsFile(args.events, learner.events, args.checkpoint) if args.events else None
        try:
            if new or (events is not None and events.mark() != learner.events):
                self._save(learner, stream, events)  # from here on a crash leads back to this very state
            before = learner.rows
            problem: BaseException | None = None
            page = self._page(learner, stream)
            try:
                with self._signals():
                    self._learn(learner, stream, events)
            except (SourceError, OSError) as raised:
                if self.signal is None:  # Ctrl-C ends both sides of a pipe: half a line is then no error
                    problem = raised
            if self.whole:  # half a chunk, or an event that could not be written: the last checkpoint is the better one
                self._save(learner, stream, events)
        finally:
            if events is not None:
                events.close()
        if problem is not None:
            if learner.rows > before and self.whole and not isinstance(problem, OSError):
                saved = " and saved" if args.checkpoint else ""
                problem.args = (f"{problem} ({learner.rows - before:,} rows before that were learned{saved})",)
            raise problem
        self._report(learner, stream, learner.rows - before)
        if page is not None and self.signal is None:
            page.stay()
        return 0 if self.signal is None else _STOPPING[signal.Signals(self.signal)]

    def _page(self, learner: Learner, stream: FileStream) -> RunPage | None:
        """The live page, if it was asked for."""
        if not self.args.watch:
            return None
        from ccmem.commands.watch import RunPage

        return RunPage(learner, self.args, lambda: self._save(learner, stream, None))

    def _new_model(self) -> Any:
        from ccmem.commands._shared import DEFAULT_MODEL, build_model

        return build_model(self.args.model or DEFAULT_MODEL, self.args.param, self.args.label is not None)

    def _new_learner(self) -> Learner:
        from ccmem.layers.window import WindowLayer
        from ccmem.living.learner import Learner

        args = self.args
        if args.window is not None and args.label is not None:
            raise ValueError("--window learns from signals without labels; leave out --label")
        front = None if args.window is None else WindowLayer(args.window)
        return Learner(self._new_model(), args.scale or "none", front)

    def _learner(self) -> tuple[Learner, bool]:
        """The learner of the checkpoint if there is one (and it is what was asked for), else a new one."""
        from ccmem.commands._shared import check_against
        from ccmem.living.learner import Learner

        args = self.args
        if args.checkpoint is None or not Path(args.checkpoint).exists():
            return self._new_learner(), True
        learner = Learner.load(args.checkpoint)
        if learner.rows == 0 and not learner.model.__sklearn_is_fitted__():  # a run that ended before its first row
            fresh = self._new_learner()
            fresh.events = learner.events
            return fresh, True
        check_against(learner, args)
        return learner, False

    def _learn(self, learner: Learner, stream: FileStream, events: EventsFile | None) -> None:
        from ccmem.commands._learn_text import ProgressLine

        args = self.args
        chunk_rows: Any = None
        first_step, bad_before = 0, learner.bad_rows

        def on_event(event: Event) -> None:
            self.n_events += 1
            self.last_event = event
            if events is not None:
                place = max(0, event.step - first_step)  # a window found late may have ended in an earlier chunk
                record = event.record()
                if event.column >= 0 and stream.columns is not None:
                    record["column_name"] = stream.columns.features[event.column]
                events.write({**record, "onset": event.onset, "file": chunk_rows[0], "row": int(chunk_rows[1][place])})

        learner.on_event(on_event)
        progress = ProgressLine(StatusLine(not args.quiet))
        try:
            for chunk in stream.chunks_read_ahead(args.max_rows, _IDLE_SECONDS):
                cut_off = chunk is not None and not chunk.ended and self.signal is not None
                if chunk is not None and len(chunk.X) and not cut_off:  # Ctrl-C cuts off both sides of a pipe
                    assert stream.columns is not None
                    chunk_rows = chunk.file, chunk.rows
                    first_step = learner.steps
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
                progress.show(learner, self.last_event, now)
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
        """Rows a second after the first chunk, if there were more."""
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
        """Let Ctrl-C, SIGTERM and SIGHUP end the loop between two chunks; a second one ends the process as usual."""

        def stop(number: int, frame: Any) -> None:
            self.signal = number
            signal.signal(number, signal.SIG_DFL)

        hang_up = getattr(signal, "SIGHUP", None)
        nohup = hang_up is not None and signal.getsignal(hang_up) == signal.SIG_IGN  # the user wants it to go on
        caught = [number for number in _STOPPING if not (nohup and number == hang_up)]
        previous = {number: signal.signal(number, stop) for number in caught}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _report(self, learner: Learner, stream: FileStream, rows: int) -> None:
        from ccmem.commands._learn_text import sentence
        from ccmem.commands._shared import model_name

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
            "events": self.n_events,
            "stopped_by": self.why,
            "left_out": list(stream.left_out),
            "growing": list(stream.growing),
            "labelled": learner.columns is not None and learner.columns.label is not None,
            "checkpoint": args.checkpoint,
            "held_back": len(stream.held_back),
            "window": window,
            "in_open_quote": stream.in_open_quote,
        }
        with contextlib.suppress(OSError) if self.signal is not None else contextlib.nullcontext():
            if args.json:  # whoever hung up may have taken the terminal along
                print(json.dumps(facts), flush=True)
            elif not args.quiet:
                print(sentence(facts), flush=True)


def _feature_names(learner: Learner) -> list[str] | None:
    """Column names that a model learned from Python was given, if it was."""
    if learner.front is not None:  # the names are those of features of windows
        return None
    names = getattr(learner.model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _window(text: str) -> str | int:
    if text != "auto" and _positive(text) < 8:
        raise argparse.ArgumentTypeError(f"{text} rows are too few for a window: at least 8, or auto")
    return text if text == "auto" else _positive(text)


def _positive(text: str) -> int:
    digits = text.replace("_", "")
    if not (digits.isascii() and digits.isdigit() and int(digits[:4000]) >= 1):
        raise argparse.ArgumentTypeError(f"{text[:40]} is not a whole number >= 1")
    return int(digits[:4000])


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # nor NaN
        raise argparse.ArgumentTypeError(f"{text[:40]} is not a number of seconds")
    return value


def _check_apart(args: argparse.Namespace, files: list[str]) -> None:
    """Raise if a file that would be written is one that is read."""
    named = {"--events": args.events, "--checkpoint": args.checkpoint}
    places = {option: os.path.realpath(name) for option, name in named.items() if name is not None}
    if args.events and places["--events"] == places.get("--checkpoint"):
        raise ValueError(f"--events {args.events} is the checkpoint itself; name another file")
    sources = {os.path.realpath(file) for file in files if file != "-"}
    for option, place in places.items():
        if place in sources:
            raise ValueError(f"{option} {named[option]} is one of the sources; name another file")
