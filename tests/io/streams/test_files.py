"""Readers: the same rows from every format, exact resuming, and an error that names the place for everything bad."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmem.io.streams import BadRowError, SourceError, as_chunks, read_files
from ccmem.io.streams.csv import CSVTable
from ccmem.io.streams.drift import drifting_sensors
from ccmem.io.streams.ndjson import NDJSONTable
from ccmem.io.streams.sources import expand
from ccmem.io.streams.write import write_table

pa = pytest.importorskip("pyarrow")

FORMATS = ("csv", "ndjson", "parquet", "arrow", "npy", "npz", "csv.gz", "ndjson.gz", "arrows")


@pytest.fixture(scope="module")
def sensors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One stream in every format."""
    folder = tmp_path_factory.mktemp("sensors")
    stream = drifting_sensors(n_rows=3000, n_features=3, segment=500, missing=0.2, seed=1)
    for kind in ("csv", "ndjson", "parquet", "arrow", "npy", "npz"):
        write_table(folder / f"s.{kind}", stream.names, stream.chunks())
    for kind in ("csv", "ndjson"):
        (folder / f"s.{kind}.gz").write_bytes(gzip.compress((folder / f"s.{kind}").read_bytes()))
    table = pa.ipc.open_file(folder / "s.arrow").read_all()
    with pa.ipc.new_stream(str(folder / "s.arrows"), table.schema) as writer:
        writer.write_table(table, max_chunksize=700)
    return folder


def collected(stream: Any) -> tuple[np.ndarray, list[Any] | None]:
    parts = list(stream)
    X = np.concatenate([X for X, _ in parts])
    return X, None if parts[0][1] is None else [label for _, y in parts for label in y.tolist()]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_rows(sensors: Path, kind: str) -> None:
    stream = drifting_sensors(n_rows=3000, n_features=3, segment=500, missing=0.2, seed=1)
    wanted = list(stream.chunks())
    names = ["0", "1", "2"] if kind == "npz" else list(stream.names)
    X, y = collected(read_files(sensors / f"s.{kind}", features=names, label="state"))
    np.testing.assert_array_equal(X, np.concatenate([x for x, _ in wanted]), strict=True)
    assert y == [label for _, labels in wanted for label in labels]
    X, y = collected(read_files(sensors / f"s.{kind}", features=names[::-2]))
    np.testing.assert_array_equal(X, np.concatenate([x for x, _ in wanted])[:, ::-2])
    assert y is None


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("cut", [1, 999, 2999, 3000])
def test_a_stream_resumes_at_the_very_next_row(sensors: Path, kind: str, cut: int) -> None:
    file = sensors / f"s.{kind}"
    whole, labels = collected(read_files(file, label="state"))
    first = read_files(file, label="state")
    parts = list(first.chunks(max_rows=cut))
    second = read_files(file, label="state", resume=first.progress)
    parts += list(second.chunks())
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in parts]), whole)
    assert [label for chunk in parts for label in chunk.y.tolist()] == labels
    assert np.concatenate([chunk.rows for chunk in parts]).tolist() == list(range(1, 3001))
    assert list(read_files(file, label="state", resume=second.progress)) == []


def test_a_file_that_grows_is_gone_on_with_and_one_that_changed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("a,b\n1,2\n3,4\n")
    stream = read_files(file)
    assert collected(stream)[0].tolist() == [[1, 2], [3, 4]]
    with file.open("a") as log:
        log.write("5,6\n")
    again = read_files(file, resume=stream.progress)
    assert collected(again)[0].tolist() == [[5, 6]]
    file.write_text("a,b\n9,9\n3,4\n5,6\n7,8\n")
    with pytest.raises(SourceError, match="3 rows were learned before: its beginning has changed"):
        list(read_files(file, resume=again.progress))


def test_order_of_folders_and_patterns(tmp_path: Path) -> None:
    for name in ("part10.csv", "part2.csv", "sub/a.csv", ".hidden.csv", "_SUCCESS.csv", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n1\n")
    named = [Path(file).relative_to(tmp_path).as_posix() for file in expand(tmp_path)]
    assert named == ["part2.csv", "part10.csv", "sub/a.csv"]
    pattern = [Path(file).name for file in expand(str(tmp_path / "part*.csv"))]
    assert pattern == ["part2.csv", "part10.csv"]
    assert expand([tmp_path / "part10.csv", tmp_path / "part2.csv"]) == [
        str(tmp_path / f"part{i}.csv") for i in (10, 2)
    ]


def test_a_new_file_in_a_folder_is_all_that_is_learned(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(f"a,b\n{i},0\n")
    stream = read_files(tmp_path, features=["a", "b"])
    assert len(collected(stream)[0]) == 3
    (tmp_path / "1b.csv").write_text("b,a\n7,8\n")
    assert collected(read_files(tmp_path, features=["a", "b"], resume=stream.progress))[0].tolist() == [[8, 7]]


@pytest.mark.parametrize("make", ["pandas", "polars", "arrow", "interchange"])
def test_frames_of_every_kind(sensors: Path, make: str) -> None:
    table = pa.ipc.open_file(sensors / "s.arrow").read_all()
    frame: Any = table
    if make == "pandas":
        frame = table.to_pandas()
    elif make == "polars":
        frame = pytest.importorskip("polars").from_arrow(table)
    elif make == "interchange":

        class Frame:
            def __dataframe__(self, **options: Any) -> Any:
                return table.__dataframe__(**options)

        frame = Frame()
    X, y = collected(as_chunks(frame, label="state"))
    np.testing.assert_array_equal(X, collected(read_files(sensors / "s.arrow", label="state"))[0])
    assert y == table.column("state").to_pylist()


def test_arrays_with_labels_apart() -> None:
    X = np.arange(6.0).reshape(3, 2)
    assert collected(as_chunks(X, y=np.array([1, 0, 1])))[1] == [1, 0, 1]
    assert collected(as_chunks(X, y=[1, None, 0]))[1][::2] == [1.0, 0.0]
    assert collected(as_chunks(X.tolist()))[0].tolist() == X.tolist()
    assert next(iter(as_chunks(X.astype(np.float32))))[0].dtype == np.float32
    with pytest.raises(BadRowError, match="row 2, column '1'"):
        list(as_chunks(np.array([[1, 2], [3, np.nan]])))
    with pytest.raises(SourceError, match="shape"):
        list(as_chunks(np.zeros((2, 2, 2))))


# Bad rows -----------------------------------------------------------------------------------------------------------

BAD = {
    "text for a number": ("a,b,l\n1,2,x\n3,oops,y\n5,6,z\n", 2, "b", "'oops' is not a number"),
    "missing number": ("a,b,l\n1,2,x\n,4,y\n5,6,z\n", 2, "a", "is missing or not a number"),
    "NaN": ("a,b,l\n1,2,x\n3,nan,y\n5,6,z\n", 2, "b", "is missing or not a number"),
    "infinity": ("a,b,l\n1,2,x\n3,-inf,y\n5,6,z\n", 2, "b", "too large"),
    "too large": ("a,b,l\n1,2,x\n3,1e200,y\n5,6,z\n", 2, "b", "too large"),
    "too few values": ("a,b,l\n1,2,x\n3\n5,6,z\n", 2, None, "has 1 values under 3 column names"),
    "too many values": ("a,b,l\n1,2,x\n3,4,y,9\n5,6,z\n", 2, None, "has 4 values under 3 column names"),
    "underscore": ("a,b,l\n1,2,x\n1_0,4,y\n5,6,z\n", 2, "a", "'1_0' is not a number"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_csv_rows_are_named_or_skipped(tmp_path: Path, name: str) -> None:
    text, row, column, what = BAD[name]
    file = tmp_path / "a.csv"
    file.write_text(text)
    stream = read_files(file, features=["a", "b"], label="l")
    got = []
    with pytest.raises(BadRowError, match=what) as caught:
        got.extend((X.tolist(), y.tolist()) for X, y in stream)
    assert (caught.value.file, caught.value.row, caught.value.column) == (str(file), row, column)
    assert f"row {row}" in str(caught.value)
    assert got == [([[1, 2]], ["x"])]  # what stands before the bad row is handed over
    skipping = read_files(file, features=["a", "b"], label="l", on_bad_row="skip")
    X, y = collected(skipping)
    assert (X.tolist(), y, skipping.bad_rows) == ([[1, 2], [5, 6]], ["x", "z"], 1)


BAD_LINES = {
    "text for a number": ('{"a": "1", "b": 2}', "a", "'1' is not a number"),
    "truth for a number": ('{"a": true, "b": 2}', "a", "'True' is not a number"),
    "null": ('{"a": 1, "b": null}', "b", "is missing"),
    "absent": ('{"a": 1}', "b", "is missing"),
    "NaN": ('{"a": 1, "b": NaN}', "b", "is missing or not a number"),
    "not JSON": ("{a: 1}", None, "is not JSON"),
    "no object": ("[1, 2]", None, "not a JSON object"),
    "two objects": ('{"a": 1, "b": 2}{"a": 3, "b": 4}', None, "is not JSON"),
    "huge": ('{"a": 1, "b": 1' + "0" * 400 + "}", "b", "not a number"),
    "odd label": ('{"a": 1, "b": 2, "l": [1]}', "l", "cannot be a label"),
    "fraction for a label": ('{"a": 1, "b": 2, "l": 0.5}', "l", "cannot be a label"),
    "number among text labels": ('{"a": 1, "b": 2, "l": 7}', "l", "the label 7 is a number, all before were text"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_ndjson_rows_are_named_or_skipped(tmp_path: Path, name: str) -> None:
    line, column, what = BAD_LINES[name]
    file = tmp_path / "a.ndjson"
    file.write_text('{"a": 1, "b": 2, "l": "x"}\n\n' + line + '\n{"a": 5, "b": 6}\n')
    with pytest.raises(BadRowError, match=what) as caught:
        list(read_files(file, features=["a", "b"], label="l"))
    assert (caught.value.row, caught.value.column) == (2, column)
    stream = read_files(file, features=["a", "b"], label="l", on_bad_row="skip")
    X, y = collected(stream)
    assert (X.tolist(), y, stream.bad_rows) == ([[1, 2], [5, 6]], ["x", None], 1)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "npy", "npz"])
def test_bad_rows_in_columnar_files(tmp_path: Path, kind: str) -> None:
    X = np.arange(20.0).reshape(10, 2)
    X[6, 1] = np.nan
    file = tmp_path / f"a.{kind}"
    write_table(file, ["u", "v"], [(X, ["s"] * 10)])
    column = {"npz": "1"}.get(kind, "v")
    with pytest.raises(BadRowError, match="row 7") as caught:
        list(read_files(file))
    assert caught.value.column == column
    stream = read_files(file, on_bad_row="skip")
    assert len(collected(stream)[0]) == 9
    assert stream.bad_rows == 1


def test_labels_of_every_kind_in_parquet(tmp_path: Path) -> None:
    from pyarrow import parquet

    for labels, wanted in (
        (pa.array([1, None, 3]), [1.0, None, 3.0]),
        (pa.array([True, False, True]), [1, 0, 1]),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"]),
        (pa.array([1.0, 2.0, np.nan]), [1.0, 2.0, None]),
        (pa.array([None, None, None]), [None] * 3),
        (pa.array([2**40, 5, 5], pa.uint64()), [2**40, 5, 5]),
    ):
        parquet.write_table(pa.table({"x": pa.array([1, 2, 3], pa.int16()), "y": labels}), tmp_path / "a.parquet")
        ((X, y),) = read_files(tmp_path / "a.parquet", label="y")
        assert X.dtype == np.float32
        assert [None if label != label else label for label in y.tolist()] == wanted
    parquet.write_table(pa.table({"x": [1.0, 2.0], "y": [0.5, 1.0]}), tmp_path / "a.parquet")
    with pytest.raises(BadRowError, match=r"0\.5 cannot be a label"):
        list(read_files(tmp_path / "a.parquet", label="y"))


# Bad files ----------------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    garbage = {
        "a.parquet": (b"PAR1 nonsense PAR1", "not a Parquet file"),
        "a.arrow": (b"ARROW1\0\0nonsense", "not an Arrow file"),
        "a.npy": (b"\x93NUMPY\x01\x00\x10\x00nonsense" + bytes(20), "not an NPY file"),
        "a.npz": (b"PK nonsense", "not an NPZ file"),
        "b.csv": (b"\n", "is empty"),
        "a.ndjson": (b"[1]\n[2]\n", "JSON array; write one object per line"),
        "a.csv.gz": (gzip.compress(b"a,b\n1,2\n")[:-9], "is damaged"),
        "a.xls": (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the sheet as CSV"),
        "a.db": (b"SQLite format 3\0", "an SQLite database"),
        "a.bin": (b"\1\0\2\3\0", "a binary file of unknown format"),
    }
    for name, (data, message) in garbage.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(SourceError, match=message):
            list(read_files(tmp_path / name))
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(SourceError, match="Python objects, which are not loaded"):
        list(read_files(tmp_path / "o.npy"))
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((4, 3))))
    with pytest.raises(SourceError, match="column by column"):
        list(read_files(tmp_path / "f.npy"))
    np.save(tmp_path / "t.npy", np.ones((1000, 3)))
    (tmp_path / "t.npy").write_bytes((tmp_path / "t.npy").read_bytes()[:5000])
    with pytest.raises(SourceError, match="ends early"):
        list(read_files(tmp_path / "t.npy"))
    np.savez(tmp_path / "z.npz", X=np.ones((4, 3)), y=np.ones(3))
    with pytest.raises(SourceError, match="vectors of as many rows"):
        list(read_files(tmp_path / "z.npz"))


def test_texts_that_are_not_utf8_name_their_file(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], "i4")), pa.py_buffer(b"a\xfe")]
    )
    parquet.write_table(pa.table({"x": [1.0, 2.0], "l": texts}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet is damaged"):
        list(read_files(tmp_path / "a.parquet", label="l"))


def test_what_is_asked_for_must_be_there(sensors: Path, tmp_path: Path) -> None:
    file = sensors / "s.csv"
    for options, message in (
        ({"features": ["sensor_0", "sensor_9"]}, "no column 'sensor_9'; its columns are 'sensor_0'"),
        ({"label": "condition"}, "no column 'condition' for the label"),
        ({"features": ["state"], "label": "state"}, "both"),
        ({"features": ["sensor_0", "sensor_0"]}, "twice"),
        ({"format": "parquet"}, "not a Parquet file"),
    ):
        with pytest.raises(SourceError, match=message):
            list(read_files(file, **options))
    with pytest.raises(SourceError, match="not numeric"):
        list(read_files(sensors / "s.parquet", features=["state"]))
    with pytest.raises(FileNotFoundError, match="no file"):
        read_files(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read_files(str(tmp_path / "*.csv"))
    with pytest.raises(SourceError, match="holds no file"):
        read_files(tmp_path)
    with pytest.raises(SourceError, match="twice"):
        read_files([file, file])
    with pytest.raises(ValueError, match="on_bad_row"):
        read_files(file, on_bad_row="ignore")
    with pytest.raises(ValueError, match="format"):
        read_files(file, format="xml")


# Text in every disguise ---------------------------------------------------------------------------------------------


def test_csv_with_quotes_semicolons_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes('\ufeff"x";"a; ""note""";l\r\n1;"two\nlines";"p;q"\r\n\r\n2;"";""\r\n'.encode())
    ((X, y),) = read_files(file, features=["x"], label="l")
    assert X.tolist() == [[1], [2]]
    assert y.tolist() == ["p;q", None]


_cells = st.sampled_from(["1", "-2.5", "1e3", "", "x", "nan", '"3"', " 4 ", "1_0", "0x1", "5\n6", "é", "1e400"])


@settings(max_examples=300)
@given(st.lists(st.lists(_cells, min_size=2, max_size=4), min_size=1, max_size=8), st.integers(1, 40))
def test_csv_parsed_fast_or_slowly_in_blocks_of_any_size_is_the_same(rows: list[list[str]], size: int) -> None:
    data = ("a,b,l\n" + "".join(",".join(row) + "\n" for row in rows)).encode()
    compare_parsers(CSVTable, data, size)


_lines = st.sampled_from(
    [
        '{"a": 1, "b": 2, "l": "x"}',
        '{"b": 2.5, "a": -1e3}',
        '{"a": 1, "b": null}',
        '{"a": "1", "b": 2}',
        "",
        "[]",
        "{",
        '{"a":1}{"a":2}',
        '{"a": 1, "b": 2, "l": 3}',
        '{"a": 12345678901234567890, "b": 0.1, "l": null}',
        '{"a": 1, "b": 2, "c": {"d": [1]}, "l": ""}',
        '{"a": NaN, "b": 2}',
        '{"a": 1, "a": 2, "b": 3}',
        '{"a": 1,',
        '"b": 2}',
        '{"a": 1e999, "b": 1}',
        '{"a": 0.1, "b": 1e-320, "l": "é"}',
    ]
)


@settings(max_examples=300)
@given(st.lists(_lines, min_size=1, max_size=8), st.integers(1, 60))
def test_ndjson_parsed_fast_or_slowly_in_blocks_of_any_size_is_the_same(lines: list[str], size: int) -> None:
    compare_parsers(NDJSONTable, ('{"a": 0, "b": 0, "l": "x"}\n' + "\n".join(lines)).encode(), size)


def compare_parsers(table: Any, data: bytes, size: int) -> None:
    from ccmem.io.streams.schema import Columns
    from ccmem.io.streams.tables import check_batch

    results = []
    for slow, most in ((False, 1 << 20), (True, 1 << 20), (False, size)):
        place = 0

        def read(_: int, most: int = most) -> bytes:
            nonlocal place
            place += most
            return data[place - most : place]

        source = table("f", read, None, lambda: None)
        if slow:
            source._parse_fast = lambda *_: None
        columns = Columns(("a", "b"), "l", np.dtype(np.float64), True)
        rows, labels, numbers, first = [], [], [], 0
        for batch in source.batches(columns, 0, None):
            chunk, _ = check_batch(batch, columns, "f", first, True)
            first += chunk.n_rows
            rows += chunk.X.tolist()
            labels += chunk.y.tolist()
            numbers += chunk.rows.tolist()
        results.append((rows, labels, numbers, first))
    assert results[0] == results[1]
    assert results[0] == results[2]


# Fuzzing ------------------------------------------------------------------------------------------------------------


@settings(max_examples=1500)
@given(st.sampled_from(["csv", "ndjson", "parquet", "arrow", "arrows", "npy", "npz", "csv.gz"]), st.integers(0, 2**32))
def test_files_changed_at_random_are_read_or_refused(
    small: dict[str, bytes], folder: Path, kind: str, seed: int
) -> None:
    rng = random.Random(seed)
    data = bytearray(small[kind])
    for _ in range(rng.randrange(1, 5)):
        place, how = rng.randrange(len(data)), rng.randrange(4)
        if how == 0:
            data[place] = rng.randrange(256)
        elif how == 1:
            del data[place : place + rng.randrange(1, 30)]
        elif how == 2:
            data[place:place] = rng.randbytes(rng.randrange(1, 30))
        else:
            del data[place:]
        if not data:
            break
    file = folder / f"f.{kind}"
    file.write_bytes(bytes(data))
    stream = read_files(
        file,
        features=["sensor_0", "sensor_1"] if kind != "npz" else ["0", "1"],
        label="state",
        on_bad_row="skip",
        accept_last_line=bool(seed % 2),
    )
    try:
        for chunk in stream.chunks():
            assert chunk.X.shape == (len(chunk.y), 2)
            assert np.isfinite(chunk.X).all()
    except (SourceError, OSError):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


class Files(dict[str, bytes]):
    """Contents by name; hypothesis shows it when a test fails, so it is brief."""

    def __repr__(self) -> str:
        return "small"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("small")
    stream = drifting_sensors(n_rows=40, n_features=2, n_states=2, segment=10, seed=1)
    for kind in ("csv", "ndjson", "parquet", "arrow", "npy", "npz"):
        write_table(folder / f"s.{kind}", stream.names, stream.chunks())
    table = pa.ipc.open_file(folder / "s.arrow").read_all()
    with pa.ipc.new_stream(str(folder / "s.arrows"), table.schema) as writer:
        writer.write_table(table)
    (folder / "s.csv.gz").write_bytes(gzip.compress((folder / "s.csv").read_bytes()))
    return Files({file.name.removeprefix("s."): file.read_bytes() for file in folder.iterdir()})


def test_a_made_up_stream_is_what_it_says(tmp_path: Path) -> None:
    stream = drifting_sensors(n_rows=5000, n_features=4, n_states=3, segment=400, missing=0.5, seed=2)
    X = np.concatenate([x for x, _ in stream.chunks()])
    labels = [label for _, y in stream.chunks() for label in y]
    assert X.shape == (5000, 4)
    assert 0.4 < labels.count(None) / 5000 < 0.6
    assert len({state for _, state in stream.changes}) == 3  # every state comes back
    for (step, _), label in zip(stream.changes, [labels[step] for step, _ in stream.changes], strict=True):
        assert label is None or label != next(known for known in reversed(labels[:step]) if known is not None)
    assert json.dumps(stream.changes) == json.dumps(drifting_sensors(5000, 4, 3, 400, 0.5, 2).changes)


CUT_SHORT = """
import os, sys
import numpy as np
import pyarrow as pa
from ccmem.io.streams import SourceError, read_files
with pa.OSFile("a.arrow", "wb") as file:
    table = pa.table({"a": np.arange(300_000.0) % 7})
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=100_000)
chunks = iter(read_files("a.arrow"))
next(chunks)
os.truncate("a.arrow", 4096)
try:
    list(chunks)
except SourceError as problem:
    print(problem)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows does not cut files that are open")
def test_an_arrow_file_cut_short_while_it_is_read_is_an_error_and_not_the_end(tmp_path):
    """Were it mapped into memory, reading on would end the process."""
    ended = subprocess.run([sys.executable, "-c", CUT_SHORT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "a.arrow is damaged" in ended.stdout


def test_labels_of_a_later_file_are_of_the_kind_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1, "l": 1}\n{"a": 2, "l": 2}\n')
    (tmp_path / "b.ndjson").write_text('{"a": 3, "l": "x"}\n')
    with pytest.raises(BadRowError, match="is text, all before were whole numbers"):
        list(read_files([tmp_path / "a.ndjson", tmp_path / "b.ndjson"], label="l"))


def test_npy_files_with_long_headers_are_read(tmp_path: Path) -> None:
    X = np.arange(6.0).reshape(3, 2)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version=(2, 0))
    assert [rows.tolist() for rows, _ in read_files(tmp_path / "a.npy")] == [X.tolist()]


def test_a_column_of_a_union_is_text_also_without_rows(tmp_path: Path) -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1.0, 2.0])])
    for n in (0, 2):
        table = pa.table({"a": union[:n], "b": pa.array([1.0, 2.0])[:n]})
        with pa.ipc.new_file(str(tmp_path / "u.arrow"), table.schema) as writer:
            writer.write_table(table)
        assert [len(X) for X, _ in read_files(tmp_path / "u.arrow")] == [n] * (n > 0)
