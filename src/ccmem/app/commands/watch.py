"""``ccmem watch``: open a live page of a checkpoint, of a run in progress or of a demonstration."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ccmem.app.learner import Learner
from ccmem.app.watching.demo import Demo
from ccmem.app.watching.facts import described, windows_of
from ccmem.app.watching.live import Watch, watch
from ccmem.app.watching.observer import Observer


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    if (args.checkpoint is None) == (args.demo is None):
        raise ValueError("name a checkpoint, or use --demo")
    place: Any = {"port": args.port, "browser": not args.no_browser}
    if args.demo is not None:
        demo = Demo(args.demo)
        page = watch(demo.model, title=f"demo: {args.demo}", changes=demo.changes, **place)
        demo.start(page.done)
    else:
        changes = true_changes(args.changes)
        page = watch(args.checkpoint, changes=changes, image_shape=args.image_shape, **place)
    print(f"watching at {page.url} (Ctrl-C ends the page)", flush=True)
    try:
        page.wait()
    finally:
        page.close()
    return 0


class RunPage:
    """Live page of ``ccmem learn --watch``; block names are saved in the checkpoint of the run."""

    def __init__(self, learner: Learner, args: argparse.Namespace, save: Callable[[], None]) -> None:
        self._ended = False
        self._save, self._checkpoint = save, args.checkpoint
        first, *others = args.sources
        name = "standard input" if first == "-" else Path(first).name
        title = name + (f" and {len(others)} more" if others else "")
        windows = windows_of(learner)
        more: Any = {"rename": self._rename, "describe": lambda: {**described(learner), **windows()}}
        observer = Observer(lambda: learner.model, title=title, **more)
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
