"""Grammars of CSV, NDJSON and events files: the same rows however a file is cut, read and resumed."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

from ccmem import CheckpointError
from ccmem.app.events import EventsFile
from ccmem.io.streams import SourceError, read_files

_CELLS = [
    "1",
    "-2.5",
    "1e3",
    "",
    "nan",
    "inf",
    "1e400",
    "x",
    '"3"',
    '"a""b"',
    '"un',
    'clo"sed',
    '"a\nb"',
    " 4 ",
    "0x1F",
]
_CELLS += [
    "٣",
    "\ufeff1",
    "1_000",
    "true",
    "null",
    "\0",
    "é",
    "1;2",
    "\t",
    "'5'",
    '"',
    '""',
    "9" * 400,
    "-",
    "+6",
    ".5",
]
_VALUES = ["1", "-2.5", "1e3", "null", "NaN", "1e400", '"x"', '"3"', "[]", "{}", "true", '"\\ud800"', '"\\u0000"', "01"]
_VALUES += ["9" * 400, "-", "[" * 50, '{"a": 1}', "1 ", ' "', "tru"]
_SETTLED = "1,2,3\n"
"""Row of a CSV file that settles its layout: two odd rows may look like another layout than these and those after."""
_ENDS = ["\n", "\n", "\n", "\r\n", "\r", "", "\n\n"]


def make_lines(rng: random.Random, kind: str) -> Any:
    """Text of a file, and where it is cut for a first reading."""
    lines = []
    for _ in range(rng.choice((0, 1, 3, 8, 30))):
        if kind == "csv":
            n = 3 if rng.random() < 0.8 else rng.randrange(5)
            cells = [str(rng.randrange(9)) if rng.random() < 0.7 else rng.choice(_CELLS) for _ in range(n)]
            lines.append(rng.choice((",", ",", ",", ";")).join(cells))
        else:
            names = ["a", "b", "c"] if rng.random() < 0.8 else rng.choices(["a", "b", "", "a b"], k=3)
            values = [str(rng.randrange(9)) if rng.random() < 0.7 else rng.choice(_VALUES) for _ in names]
            lines.append("{" + ", ".join(f'"{n}": {v}' for n, v in zip(names, values, strict=True)) + "}")
    head = "a,b,c\n" + _SETTLED * 40 if kind == "csv" else '{"a": 1, "b": 2, "c": 3}\n'
    text = head + "".join(line + rng.choice(_ENDS) for line in lines)
    return [kind, text, rng.random()]


def _rows(file: Path, **options: Any) -> tuple[list[Any], Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # over a last line without its end
        stream = read_files(file, features=["a", "b", "c"], on_bad_row="skip", dtype="float64", missing=True, **options)
        rows = [[repr(value) for value in row] for X, _ in stream for row in X.tolist()]
    return rows, stream.progress


def check_lines(case: Any, folder: Path) -> str:
    """The rows of a file are the same in any chunks, and if reading stops and resumes when the file has grown."""
    kind, text, cut = case
    file, data = folder / f"f.{kind}", text.encode("utf-8", "surrogatepass")
    file.write_bytes(data)
    try:
        whole, _ = _rows(file)
    except SourceError:
        return "refused"
    assert _rows(file, chunk_rows=1)[0] == whole
    settled = data.find(b"\n") + 1 + len(_SETTLED) * data.count(_SETTLED.encode())
    file.write_bytes(data[: max(settled, int(cut * len(data)))])
    try:
        first, progress = _rows(file)
    except SourceError:
        return "refused when cut"
    file.write_bytes(data)
    rest, _ = _rows(file, resume=progress)
    assert first + rest == whole, f"{first} and {rest} are not {whole}"
    return "rows" if whole else "no rows"


def make_events(rng: random.Random) -> Any:
    """Lines after the last event that a checkpoint counts."""
    ours = '{"kind": "recall", "step": 7, "checkpoint": "m"}\n'
    lines = [
        ours,
        ours,
        ours[:20],
        "# note\n",
        "{}\n",
        "[1]\n",
        "half a note",
        '{"checkpoint": "other"}\n',
        "\n",
        "[" * 3000,
    ]
    lines += ['{"kind": ', '{"checkpoint": null}\n', '{"checkpoint": 3}\n', "\ufeff" + ours]
    return [rng.choice(lines) for _ in range(rng.randrange(5))]


def check_events(case: Any, folder: Path) -> str:
    """Lines that ccmem did not write are kept, or the file is refused and stays as it is."""
    file = folder / "e.jsonl"
    events = EventsFile(file, None, str(folder / "m"))
    events.write({"kind": "recall", "step": 1})
    mark = events.mark()
    events.close()
    counted, more = file.read_bytes(), "".join(case).encode()
    file.write_bytes(counted + more)
    try:
        EventsFile(file, mark, str(folder / "m")).close()
    except CheckpointError:
        assert file.read_bytes() == counted + more
        return "refused"
    left = file.read_bytes()
    if left == counted:
        lines = more.split(b"\n")
        assert all(b'"m"}' in line or line == b"" for line in lines[:-1])
        assert lines[-1][:8] == b'{"kind": "'[: min(8, len(lines[-1]))]
        return "cut off"
    assert left.rstrip(b"\n") == (counted + more).rstrip(b"\n")
    return "kept"
