"""``ccmem.watch``: live page of a model that learns in this process, or of a checkpoint written by another process."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ccmem.app.watching.facts import described, memory_of
from ccmem.app.watching.observer import Observer
from ccmem.app.watching.server import Server
from ccmem.base.images import image_shape as checked_shape


class Watch:
    """Handle of a served page; :meth:`close` ends the page, learning continues. Shows as a link in a notebook."""

    def __init__(self, observer: Observer, port: int, browser: bool) -> None:
        self._observer = observer
        self._server = Server(observer, port)
        self.url = self._server.url
        observer.look()  # register before the first chunk, so that it is observed too
        observer.start()
        self._server.begin()
        if browser:
            _open(self.url)

    def wait(self) -> None:
        """Serve the page until Ctrl-C."""
        threading.Event().wait()

    def done(self) -> None:
        """Mark the stream as finished; the page stays open."""
        self._observer.look()
        with self._observer.news:
            self._observer.finished = True
            self._observer.news.notify_all()

    def close(self) -> None:
        """Close the page."""
        self._observer.stop()
        self._server.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ccmem.watch at {self.url}>"

    def _repr_html_(self) -> str:
        return f'Watching at <a href="{self.url}" target="_blank" rel="noopener">{self.url}</a>'


def _open(url: str) -> None:
    """Open a browser, except a text browser that would take over the terminal and that the user did not choose."""
    with contextlib.suppress(webbrowser.Error):
        found = webbrowser.get()
        if type(found) is not webbrowser.GenericBrowser or "BROWSER" in os.environ:
            found.open(url)


def watch(
    memory: Any,
    *,
    port: int = 0,
    browser: bool = True,
    title: str | None = None,
    changes: Sequence[int] | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Watch:
    """Open a live page of a memory, or of a classifier or network that holds one, while it learns.

    The page is served on this machine only, from separate threads; learning does not wait for it.

    Parameters
    ----------
    memory : model, or the name of a checkpoint file
        A file is read again whenever it changes.
    port : int, default=0
        0 for any that is free.
    browser : bool, default=True
        True to open a browser.
    title : str, optional
    changes : steps at which the stream really changed, optional
        Drawn as dotted lines.
    image_shape : (height, width), optional
        Needed for images that are not square.

    Returns
    -------
    Watch, with ``url`` and ``close()``

    Examples
    --------
    >>> import ccmem
    >>> memory = ccmem.AdaptiveCCM()
    >>> with ccmem.watch(memory, browser=False) as page:
    ...     _ = memory.partial_fit([[1.0, 0.0], [0.9, 0.1]])
    ...     page.url.startswith("http://127.0.0.1:")
    True
    """
    steps = [int(step) for step in (changes if changes is not None else ())]
    if isinstance(memory, (str, Path)):
        file = WatchedFile(Path(memory))
        observer = Observer(
            file.model,
            title=title or file.path.name,
            changes=steps,
            image_shape=image_shape,
            rename=file.rename,
            learns_here=False,
            describe=file.describe,
        )
        return Watch(observer, port, browser)
    if not hasattr(memory, "partial_fit"):
        raise TypeError(f"watch needs a memory, a model that holds one, or a file, not {memory!r}")
    known = memory_of(memory)
    if known is not None and image_shape is not None:
        checked_shape(known, image_shape)
    observer = Observer(lambda: memory, title=title or type(memory).__name__, changes=steps, image_shape=image_shape)
    return Watch(observer, port, browser)


class WatchedFile:
    """Checkpoint that is reloaded when it changes; block names from pages are written once the file is unlocked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._learner: Any = None
        self._names: dict[int, str] = {}
        self._tried = 0.0
        self._one_at_a_time = threading.RLock()  # one thread reads the file while others write names
        self.model()

    def model(self) -> Any:
        """Return the model currently in the file."""
        from ccmem.app.learner import Learner

        with self._one_at_a_time:
            status = self.path.stat()
            if (seen := (status.st_mtime_ns, status.st_size)) != self._seen:
                self._learner, self._seen = Learner.load(self.path), seen
                self._give_names()
            if self._names and time.monotonic() - self._tried > 2.0:
                self._write()
            return self._learner.model

    def describe(self) -> dict[str, Any]:
        """Return the facts of the file about its stream."""
        return described(self._learner)

    def rename(self, block: int, name: str) -> str:
        """Write the name of a block to the file."""
        with self._one_at_a_time:
            self._names[block] = name
            return self._write()

    def _give_names(self) -> None:
        memory = memory_of(self._learner.model)
        for block, name in self._names.items():
            if memory is not None and block < getattr(memory, "n_blocks_", 0):
                memory.name_block(block, name)

    def _write(self) -> str:
        from ccmem.app.learner import Learner
        from ccmem.io.persistence.atomic import BusyError, locked

        self._tried = time.monotonic()
        try:
            with locked(self.path):
                self._learner = Learner.load(self.path)
                self._give_names()
                self._learner.save(self.path)
                status = self.path.stat()
                self._seen = status.st_mtime_ns, status.st_size
        except BusyError:
            return f"{self.path.name} is being written by a run in progress: the name is kept once that has ended"
        self._names.clear()
        return f"kept in {self.path.name}"
