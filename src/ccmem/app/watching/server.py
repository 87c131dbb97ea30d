"""HTTP server of the page: standard library, loopback only, read-only except for block names.

Eight addresses answer, all others give 404: ``/`` the page, ``/stream`` server-sent events, ``/state`` the whole state,
``/export`` a readable file, ``/signals/FROM/TO/COLUMNS`` the signals of a range, ``/block/N`` and ``/event/STEP/KIND``
the details of a click, and ``POST /name``. A request must name exactly this host and port (which defeats DNS
rebinding) and must not come from another site; a POST also needs the page's token.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from ccmem.app.watching.observer import Observer
from ccmem.core.events import EVENT_KINDS

HOST = "127.0.0.1"
MOST_STREAMS = 24
MOST_BYTES = 4096
BEAT_SECONDS = 0.25
_COMMON = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Server of one page for one observer; :meth:`begin` serves from separate threads."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, observer: Observer, port: int = 0) -> None:
        self.observer = observer
        self.token = secrets.token_urlsafe(24)
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self.closing = threading.Event()
        try:
            super().__init__((HOST, port), Handler)
        except OSError as problem:
            raise OSError(f"port {port} cannot be used ({problem.strerror}); name another, or 0 for any") from problem
        names = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.hosts = names | ({HOST, "localhost"} if self.server_port == 80 else set())

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{HOST}:{self.server_port}/"

    def begin(self) -> None:
        """Serve in threads until :meth:`end`."""
        threading.Thread(target=self.serve_forever, name="ccmem-watch-server", daemon=True).start()

    def end(self) -> None:
        """Stop serving."""
        self.closing.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that disconnected."""


class Handler(BaseHTTPRequestHandler):
    """Handler of one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # HTTP/0.9, the default, would leave out the status line
    server_version, sys_version = "ccmem", ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer a read request."""
        if not self._is_ours():
            return self._refuse(403)
        place = urlsplit(self.path)
        match place.path.split("/")[1:]:
            case [""]:
                return self._send(200, "text/html; charset=utf-8", page(self.server.token), policy())
            case ["stream"]:
                return self._stream()
            case ["metrics"]:
                observer = self.server.observer
                text = metrics_text(observer._memory, observer.title, observer._noticed)
                return self._send(200, CONTENT_TYPE, text.encode())
            case ["state"]:
                return self._json(self.server.observer.update())
            case ["export"]:
                return self._json(self.server.observer.export())
            case ["signals", start, stop, columns] if all(map(_is_number, (start, stop, *columns.split(",")))):
                wanted = [int(column) for column in columns.split(",")]
                return self._json(self.server.observer.signals(int(start), int(stop), wanted))
            case ["block", number] if _is_number(number):
                return self._found(self.server.observer.card, int(number))
            case ["event", number, kind] if _is_number(number) and _is_number(kind):
                return self._found(self.server.observer.why, int(number), int(kind))
        return self._refuse(404)

    def do_POST(self) -> None:
        """Name a block, the only change that a page can make."""
        length = self.headers.get("Content-Length", "")
        ours = self._is_ours() and self.headers.get("Origin") in {f"http://{host}" for host in self.server.hosts}
        token = self.headers.get("X-Token", "")
        self.close_connection = True
        if not ours or not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return self._refuse(403)
        if self.path != "/name" or not _is_number(length) or int(length) > MOST_BYTES:
            return self._refuse(404 if self.path != "/name" else 400)
        try:
            wish = json.loads(self.rfile.read(int(length)))
            block, name = wish["block"], wish["name"]
            if type(block) is not int or not isinstance(name, str):
                raise ValueError("a number and a text are needed")
            said = self.server.observer.name(block, name)
        except (ValueError, LookupError, TypeError, OSError, RecursionError) as problem:
            return self._json({"error": str(problem)}, 400)
        return self._json({"said": said})

    def _is_ours(self) -> bool:
        """True if the request names this server and does not come from another site."""
        origin = self.headers.get("Origin")
        return (
            self.headers.get("Host") in self.server.hosts
            and (origin is None or origin in {f"http://{host}" for host in self.server.hosts})
            and self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        )

    def _stream(self) -> None:
        """Send server-sent events with each change until the browser disconnects."""
        if not self.server.streams.acquire(blocking=False):
            return self._refuse(503)
        observer, look, n_events, sent = self.server.observer, 0, 0, -1.0
        try:
            self.send_response(200)
            for name, value in {**_COMMON, "Content-Type": "text/event-stream"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = True
            self.connection.settimeout(5)
            while not self.server.closing.is_set():
                observer.wait_for_look(look, timeout=1.0)
                update = observer.update(look, n_events)
                look, n_events = update["look"], update.get("n_events", 0)
                self.wfile.write(b"data: " + _dump(update) + b"\n\n")
                self.wfile.flush()
                time.sleep(max(0.0, BEAT_SECONDS - (time.monotonic() - sent)))
                sent = time.monotonic()
                if update["finished"]:
                    self.server.closing.wait(2.0)
        except OSError:
            pass  # the browser disconnected or stopped reading
        finally:
            self.server.streams.release()

    def _found(self, find: Any, *numbers: int) -> None:
        try:
            self._json(find(*numbers))
        except LookupError:
            self._refuse(404)

    def _json(self, value: Any, code: int = 200) -> None:
        self._send(code, "application/json", _dump(value))

    def _refuse(self, code: int) -> None:
        self.close_connection = True
        self._send(code, "text/plain", b"")

    def _send(self, code: int, kind: str, body: bytes, rules: str = "default-src 'none'") -> None:
        self.send_response(code)
        own = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": rules}
        for name, value in {**_COMMON, **own}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Discard log messages, because the terminal belongs to the command."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


# Content of the page -------------------------------------------------------------------------------------------------

_SCRIPTS = ("look", "words", "view", "signals", "timeline", "cards", "why", "export", "main")


@lru_cache(maxsize=1)
def _parts() -> tuple[str, str, str]:
    folder = files("ccmem.app.watching") / "page"
    page, style = ((folder / name).read_text("utf-8") for name in ("page.html", "style.css"))
    script = "\n".join((folder / f"{name}.js").read_text("utf-8") for name in _SCRIPTS)
    return page, style, f'"use strict";\n(() => {{\n{script}\n}})();\n'


def page(token: str) -> bytes:
    """Return the page; ``token`` authorises the page to name blocks."""
    html, style, script = _parts()
    html = html.replace("{{style}}", style).replace("{{script}}", script)
    return html.replace("{{token}}", token).encode()


def policy() -> str:
    """Return the content security policy: only the page's style and script, only requests to this server."""
    _, style, script = _parts()
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# OpenMetrics text, for Prometheus and compatible programs -------------------------------------------------------------

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def metrics_text(memory: Any, title: str, noticed: float = 0.0) -> str:
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
    counts = {f',kind="{kind}"': sum(event.kind == kind for event in events) for kind in EVENT_KINDS}
    metrics: list[tuple[str, str, str, dict[str, Any]]] = [
        ("rows", "counter", "Rows learned.", {"": memory.n_samples_seen_}),
        ("blocks", "gauge", "Blocks in the memory.", {"": getattr(memory, "n_blocks_", 1)}),
        ("current_block", "gauge", "Number of the block in use.", {f',name="{_quoted(name)}"': block}),
        ("events", "counter", "Events by kind, of those that the memory keeps.", counts),
    ]
    dated = bool(events) and events[-1].time is not None
    if dated or (events and noticed):
        since = max(0.0, time.time() - events[-1].time if dated else time.monotonic() - noticed)
        what = "Seconds from the time of the last event until now."
        metrics.append(("seconds_since_event", "gauge", what, {"": f"{since:.3f}"}))
    lines = []
    for name, kind, text, values in metrics:
        total = "_total" if kind == "counter" else ""
        lines += [f"# TYPE ccmem_{name} {kind}", f"# HELP ccmem_{name} {text}"]
        lines += [f"ccmem_{name}{total}{{{label}{more}}} {value}" for more, value in values.items()]
    return "\n".join([*lines, "# EOF\n"])


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
