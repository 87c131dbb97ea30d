"""``ccmem watch``: open a live page of a checkpoint, of a run in progress or of a demonstration."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ccmem.app.learner import Learner

EXAMPLE = """\
examples:
  ccmem watch --demo
  ccmem watch memory.safetensors
  ccmem watch memory.safetensors --port 8000 --no-browser
  ccmem learn sensors.csv --checkpoint memory.safetensors --watch

The page is served on this machine only and can change nothing but the names of blocks. A checkpoint that a run in
progress writes is read again whenever it changes; 'ccmem learn --watch' shows every fifth of a second instead.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("checkpoint", metavar="FILE", nargs="?", help="what ccmem learn or memory.save wrote")
    parser.add_argument(
        "--demo", nargs="?", const="digits", choices=("digits", "sensors"), help="a bundled stream (default digits)"
    )
    parser.add_argument("--changes", metavar="FILE", help="true changes (of ccmem generate), drawn as dotted lines")
    parser.add_argument(
        "--image-shape", metavar="HxW", type=image_shape, help="rows are images of this height and width"
    )
    add_page_options(parser)
    parser.epilog = EXAMPLE


def add_page_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the address of the page."""
    parser.add_argument("--port", type=_port, default=0, help="port of the page (default: any that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open no browser")


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    from ccmem.app.watching import watch

    if (args.checkpoint is None) == (args.demo is None):
        raise ValueError("name a checkpoint, or say --demo")
    if args.demo is not None:
        from ccmem.app.watching.demo import Demo

        demo = Demo(args.demo)
        page = watch(
            demo.model, port=args.port, browser=not args.no_browser, title=f"demo: {args.demo}", changes=demo.changes
        )
        demo.start(page.done)
    else:
        page = watch(
            args.checkpoint,
            port=args.port,
            browser=not args.no_browser,
            changes=true_changes(args.changes),
            image_shape=args.image_shape,
        )
    print(f"watching at {page.url} (Ctrl-C ends the page)", flush=True)
    try:
        page.wait()
    finally:
        page.close()
    return 0


class RunPage:
    """Live page of ``ccmem learn --watch``; block names are saved in the checkpoint of the run."""

    def __init__(self, learner: Learner, args: argparse.Namespace, save: Callable[[], None]) -> None:
        from ccmem.app.watching.facts import described
        from ccmem.app.watching.live import Watch
        from ccmem.app.watching.observer import Observer

        self._ended = False
        self._save, self._checkpoint = save, args.checkpoint
        first, *others = args.sources
        title = ("standard input" if first == "-" else Path(first).name) + (
            f" and {len(others)} more" if others else ""
        )
        observer = Observer(
            lambda: learner.model, title=title, rename=self._rename, describe=lambda: described(learner)
        )
        self._watch = Watch(observer, args.port, browser=not args.no_browser)
        print(f"watching at {self._watch.url}", file=sys.stderr, flush=True)

    def _rename(self, block: int, name: str) -> str:
        if self._checkpoint is None:
            return "kept as long as this run (no --checkpoint)"
        if not self._ended:
            return f"kept in {Path(self._checkpoint).name} at the next save"
        self._save()
        return f"kept in {Path(self._checkpoint).name}"

    def stay(self) -> None:
        """Keep serving the page after learning has ended, until Ctrl-C."""
        self._ended = True
        self._watch.done()
        print(f"the page stays at {self._watch.url} until Ctrl-C", file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            self._watch.wait()
        self._watch.close()


def true_changes(file: str | None) -> list[int]:
    """Return the steps in a file of true changes."""
    if file is None:
        return []
    try:
        return [int(change["step"]) for change in json.loads(Path(file).read_text())["changes"]]
    except (ValueError, TypeError, LookupError) as problem:
        raise ValueError(f"--changes {file}: not a list of changes as ccmem generate writes it") from problem


def image_shape(text: str) -> tuple[int, int]:
    """Parse height and width from a text such as 28x28."""
    height, _, width = text.lower().partition("x")
    if not (height.isdigit() and width.isdigit() and int(height) and int(width)):
        raise argparse.ArgumentTypeError(f"{text} is not HEIGHTxWIDTH, such as 28x28")
    return int(height), int(width)


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text} is not a port: a number from 0 to 65535")
    return int(text)
