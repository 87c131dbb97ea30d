"""Requests to the live page: every one is answered, and the page goes on."""

from __future__ import annotations

import functools
import random
import re
import socket
from pathlib import Path
from typing import Any

import numpy as np

import ccmem

_PATHS = [
    "/",
    "/state",
    "/stream",
    "/name",
    "/event/89/0",
    "/event/1/9",
    "/event/-1/0",
    f"/event/{'9' * 40}/0",
    "/../x",
]
_PATHS += ["/%00", "/state?x=1", "//", "*", "/" + "a" * 70_000, "/é", "http://evil.example/state", ""]
_BODIES = [
    '{"block": 0, "name": "a"}',
    '{"block": 9, "name": "a"}',
    "[" * 4000,
    "{",
    "",
    "\0",
    '{"block": 1e400, "name": 1}',
]
_BODIES += [
    '{"block": true, "name": "x"}',
    '{"block": 0, "name": "' + "\\u202e" * 50 + '"}',
    "9" * 4000,
    '"' + "x" * 4000 + '"',
]


def make_request(rng: random.Random) -> Any:
    """A request as text; PORT and TOKEN stand for those of the server."""
    body = rng.choice(_BODIES)
    lines = [f"{rng.choice(('GET', 'GET', 'POST', 'POST', 'PUT', 'HEAD', 'x', ''))} {rng.choice(_PATHS)} HTTP/1.1"]
    headers = [
        "Host: 127.0.0.1:PORT",
        "Origin: http://127.0.0.1:PORT",
        "X-Token: TOKEN",
        f"Content-Length: {len(body)}",
    ]
    odd = [
        "Host: evil.example",
        "Origin: null",
        "X-Token: é",
        "Content-Length: -1",
        "Content-Length: 99999999999999999999",
    ]
    odd += [
        "Transfer-Encoding: chunked",
        "X: " + "y" * 70_000,
        "no colon",
        "Sec-Fetch-Site: cross-site",
        "Expect: 100-continue",
    ]
    lines += [line if rng.random() < 0.85 else rng.choice(odd) for line in headers]
    if rng.random() < 0.3:
        lines.append(rng.choice(odd))
    return "\r\n".join(lines) + "\r\n\r\n" + body


@functools.cache
def _page() -> Any:
    memory = ccmem.CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
    memory.fit(np.repeat(np.eye(3)[[0, 2, 0]], 30, axis=0))
    return ccmem.watch(memory, browser=False), memory


def _answer(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before all of it was read
        try:
            return connection.recv(65_536)
        except ConnectionResetError:
            return b"HTTP/1.1 reset"


def check_request(case: Any, folder: Path) -> str:
    """A request gets an answer, and the page answers the next one."""
    shown, _ = _page()
    port = int(re.search(r":(\d+)", shown.url).group(1))  # type: ignore[union-attr]
    text = case.replace("PORT", str(port)).replace("TOKEN", shown._server.token)
    answer = _answer(port, text.encode("utf-8", "surrogatepass"))
    plain = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    assert _answer(port, plain.encode()).startswith(b"HTTP/1.1 200"), "the page answers no more"
    assert answer.startswith(b"HTTP/1"), f"answered {answer[:80]!r}"
    return answer.split()[1].decode()
