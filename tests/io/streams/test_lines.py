"""CSV and NDJSON as they come: half a line at the end, quotes left open, any encoding, cut anywhere."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmem.io.streams import BadRowError, SourceError, as_chunks, csv, lines, read_files, records
from ccmem.io.streams.csv import CSVTable
from ccmem.io.streams.files import FileStream
from ccmem.io.streams.ndjson import NDJSONTable
from ccmem.io.streams.progress import Progress
from ccmem.io.streams.records import CellFormat
from ccmem.io.streams.schema import Columns, Rules, choose_columns, infer
from ccmem.io.streams.tables import check_batch


def rows_of(data: bytes, cuts: list[int], table: Any = CSVTable, **options: Any) -> Any:
    """Everything a pipe brings that hands over ``data`` in pieces of these lengths."""
    places = iter([*itertools.accumulate(cuts), len(data)])
    start = 0

    def read(_: int) -> bytes:
        nonlocal start
        while start < len(data):
            stop = min(next(places, len(data)), len(data))
            part, start = data[start:stop], max(start, stop)
            if part:
                return part
        return b""

    source = table("f", read, None, lambda: None, **options)
    columns = choose_columns(source, "f", None, "l", np.float64, True)
    found, labels, ends, first = [], [], [], 0
    for batch in source.batches(columns, 0, None):
        chunk, _ = check_batch(batch, columns, "f", first, True)
        columns = columns.knowing(chunk.labels)
        source.text_labels = columns.text_labels
        assert chunk.ends is not None
        assert len(chunk.ends) == chunk.n_rows
        first += chunk.n_rows
        found += list(zip(chunk.rows.tolist(), chunk.X.tolist(), strict=True))
        labels += [None if label != label else label for label in chunk.y.tolist()]
        ends += chunk.ends.tolist()
    return columns.features, found, labels, ends, source.held_back


# Files that grow ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_half_a_last_line_is_left_until_its_end_arrives(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"log.{kind}"
    whole, half, end = {
        "csv": ("a,l\n1,run\n", "2,idl", "e\n3,run\n"),
        "ndjson": ('{"a": 1, "l": "run"}\n', '{"a": 2, "l": "idl', 'e"}\n{"a": 3, "l": "run"}\n'),
    }[kind]
    file.write_text(whole + half)
    stream = read_files(file, label="l")
    with pytest.warns(UserWarning, match=f"has no end yet, {len(half)} bytes were left"):
        assert [(X.tolist(), y.tolist()) for X, y in stream] == [([[1]], ["run"])]
    assert not stream.progress[str(file)].complete
    for _ in range(2):  # nothing new: still waiting
        stream = read_files(file, label="l", resume=stream.progress)
        assert list(stream.chunks()) == []
    with file.open("a") as log:
        log.write(end)
    stream = read_files(file, label="l", resume=stream.progress)
    assert [(X.tolist(), y.tolist()) for X, y in stream] == [([[2], [3]], ["idle", "run"])]
    assert stream.progress[str(file)].complete


@pytest.mark.parametrize(("name", "text"), [("a.csv", "a\n1\n2"), ("a.ndjson", '{"a": 1}\n{"a": 2}')])
def test_a_last_line_without_its_end_is_taken_if_the_user_says_so(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    held = read_files(file)
    assert [chunk.X.tolist() for chunk in held.chunks()] == [[[1]]]
    taken = read_files(file, resume=held.progress, accept_last_line=True)
    assert [X.tolist() for X, _ in taken] == [[[2]]]
    assert taken.progress[str(file)].complete


@pytest.mark.parametrize("text", ["a,b", "a,b\n", "a,b\n1", "a,b\n1,"])
def test_a_file_that_has_only_begun_is_no_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    stream = read_files(file)
    assert list(stream.chunks()) == []
    file.write_text("a,b\n1,2\n")
    assert [X.tolist() for X, _ in read_files(file, resume=stream.progress)] == [[[1, 2]]]


# Files that change --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "ndjson", "npy", "parquet", "arrow", "npz", "csv.gz"])
@pytest.mark.parametrize("part", [None, 700])
def test_a_file_replaced_by_one_that_begins_alike_is_noticed(tmp_path: Path, kind: str, part: int | None) -> None:
    file = tmp_path / f"f.{kind}"
    first, second = np.arange(8000.0).reshape(-1, 4), np.arange(8000.0).reshape(-1, 4)
    second[600, 2] += 0.5
    write(file, kind, first)
    stream = read_files(file)
    assert sum(len(chunk.X) for chunk in stream.chunks(part)) == (part or 2000)
    write(file, kind, first)
    read_files(file, resume=stream.progress).chunks()
    assert sum(len(X) for X, _ in read_files(file, resume=stream.progress)) == 2000 - (part or 2000)
    write(file, kind, second)
    with pytest.raises(SourceError, match=f"{part or 2000} rows were learned before: its beginning has changed"):
        list(read_files(file, resume=stream.progress))


def test_pieces_of_a_large_file_lie_evenly_from_its_first_to_its_last_byte() -> None:
    import io

    from ccmem.io.streams.progress import digest_of

    length = 300_000
    content = bytearray(length)
    before = digest_of(io.BytesIO(content), length)
    for i in range(32):
        start = (length - 4096) * i // 31
        for place in (start, start + 4095):
            content[place] = 1
            assert digest_of(io.BytesIO(content), length) != before
            content[place] = 0
    assert digest_of(io.BytesIO(content + b"more"), length) == before
    assert digest_of(io.BytesIO(content), length - 1) != before


def test_an_empty_line_that_is_read_by_itself_is_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 4)
    (tmp_path / "a.csv").write_text("a\n1\n\n")
    stream = read_files(tmp_path / "a.csv")
    assert [X.tolist() for X, _ in stream] == [[[1]]]
    assert stream.held_back == {}
    assert stream.progress[str(tmp_path / "a.csv")].complete


def write(file: Path, kind: str, X: Any) -> None:
    import gzip

    text = "a,b,c,d\n" + "".join(",".join(f"{v:7.1f}" for v in row) + "\n" for row in X.tolist())
    if kind == "npy":
        np.save(file, X)
    elif kind == "npz":
        np.savez(file, X=X)
    elif kind == "csv":
        file.write_text(text)
    elif kind == "csv.gz":
        file.write_bytes(gzip.compress(text.encode(), mtime=0))
    elif kind == "ndjson":
        file.write_text("".join(json.dumps(dict(zip("abcd", row, strict=True))) + "\n" for row in X.tolist()))
    else:
        pa = pytest.importorskip("pyarrow")
        table = pa.table(dict(zip("abcd", X.T, strict=True)))
        if kind == "arrow":
            with pa.ipc.new_file(str(file), table.schema) as writer:
                writer.write_table(table, max_chunksize=500)
        else:
            pytest.importorskip("pyarrow.parquet").write_table(
                table, file, row_group_size=500, compression="none", write_statistics=False, use_dictionary=False
            )


def test_a_parquet_file_that_got_more_row_groups_is_gone_on_with(tmp_path: Path) -> None:
    X = np.arange(8000.0).reshape(-1, 4)
    write(tmp_path / "f.parquet", "parquet", X[:1000])
    stream = read_files(tmp_path / "f.parquet")
    assert sum(len(X) for X, _ in stream) == 1000
    write(tmp_path / "f.parquet", "parquet", X)
    got = np.concatenate([X for X, _ in read_files(tmp_path / "f.parquet", resume=stream.progress)])
    np.testing.assert_array_equal(got, X[1000:])


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_a_bad_row_may_be_mended_in_place(tmp_path: Path, kind: str) -> None:
    X = np.arange(8000.0).reshape(-1, 4)
    X[5, 1] = np.nan
    file = tmp_path / f"f.{kind}"
    write(file, kind, X)
    stream = read_files(file)
    with pytest.raises(BadRowError, match=r"row 6.*fix it"):
        list(stream)
    X[5, 1] = 1
    write(file, kind, X)
    assert sum(len(X) for X, _ in read_files(file, resume=stream.progress)) == 1995


def test_a_bad_row_that_cannot_be_fixed_in_place_gets_other_advice(tmp_path: Path) -> None:
    X = np.full((9, 4), np.nan)
    write(tmp_path / "f.parquet", "parquet", X)
    with pytest.raises(BadRowError, match="write the file again without it under another name, or skip"):
        list(read_files(tmp_path / "f.parquet"))


def _rest(*files: Path, resume: Any) -> tuple[list[Any], dict[str, str], Any]:
    stream = read_files(list(files), resume=resume)
    rows = [row for X, _ in stream for row in X.tolist()]
    names = {Path(new).name: Path(old).name for new, old in stream.renamed.items()}
    return rows, names, stream.progress


@pytest.mark.parametrize("rows", [2, 3000])
def test_a_renamed_file_goes_on_where_it_was(tmp_path: Path, rows: int) -> None:
    log = tmp_path / "log.csv"
    log.write_text("a,b\n" + "1,2\n" * rows)
    learned, names, progress = _rest(log, resume={})
    assert len(learned) == rows
    assert names == {}
    old = log.rename(tmp_path / "log.1.csv")
    log.write_text("a,b\n7,8\n")
    learned, names, progress = _rest(old, log, resume=progress)
    assert learned == [[7, 8]]
    assert names == {"log.1.csv": "log.csv"}
    older = old.rename(tmp_path / "log.2.csv")  # rotated once more, and the latest has grown
    log.rename(old)
    log.write_text("a,b\n5,6\n")
    learned, names, progress = _rest(log, old, older, resume=progress)
    assert learned == [[5, 6]]
    assert names == {"log.2.csv": "log.1.csv", "log.1.csv": "log.csv"}
    if rows > 2:
        with older.open("a") as file:
            file.write("9,9\n")
        grown = older.rename(tmp_path / "other.csv")
        assert _rest(grown, resume=progress)[:2] == ([[9, 9]], {"other.csv": "log.2.csv"})


def test_copies_and_short_files_that_are_alike_are_files_by_themselves(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("a,b\n1,2\n")
    _, _, progress = _rest(first, resume={})
    second.write_bytes(first.read_bytes())
    os.utime(second, ns=(0, first.stat().st_mtime_ns))
    assert _rest(second, resume=progress)[0] == [[1, 2]]  # a copy
    first.unlink()
    os.utime(second, ns=(0, progress[str(first)].modified + 1))
    assert _rest(second, resume=progress)[0] == [[1, 2]]  # the next one of a machine that always says the same
    os.utime(second, ns=(0, progress[str(first)].modified))
    assert _rest(second, resume=progress)[0] == []
    stream = read_files(second, resume=progress)
    stream.forget([str(second)])
    assert [X.tolist() for X, _ in stream] == [[[1, 2]]]


# Pipes cut anywhere -------------------------------------------------------------------------------------------------

TEXTS = [
    b'a,"b ""x""\nc",l\n1,2,p\n"3",4,"two\nlines"\n\n5,6"7,q\n8,9,"r"" s"\n',
    b'\xef\xbb\xbfa;b;l\r\n1;"2";x\r\n3;4;"y\r\nz"\r\n;5;w\r\n6;7;""\r\n',
    b'a,l\n"1,p\n2,q\n3,r\n',
    b'a,l\n1,x"y\n2,"q"z\n3,"r\n4,s\n5,"t""\n6,u\n',
    b"a,l\n1,caf\xe9\n2,caf\xe8\n3,caf\xc3\xa9\n",
    b"a\tl\n1\tx\ty\n2\tq\r3\tr\n",
    b"a,l\n1,x\n# a pause, of a day\n2,y\na,l\n#\n3,z\n# end\n",
]


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.lists(st.integers(1, 30), max_size=12))
def test_how_a_pipe_is_cut_changes_nothing_in_csv(text: bytes, cuts: list[int]) -> None:
    assert rows_of(text, cuts) == rows_of(text, [])


LINES = [
    b'{"a": 1, "b": 2, "l": "x"}\n{"a": 1, "b": 2, "l": 3}\n{"a": 1, "b": 3, "l": "y"}\n',
    b'{"a": "no", "b": 2, "l": 5}\n{"a": 1, "b": 2, "l": "x"}\n{"a": 1, "b": 2, "l": 7}\n',
    b'\n[1]\n{"a": 1, "b": 0, "l": null}\n \n{"a": 2, "b": 1, "l": 4}\n{"a": 2, "b": 1, "l": "z"}\n{"a": 3, "b": 1}',
]


@settings(max_examples=150)
@given(st.sampled_from(LINES), st.lists(st.integers(1, 40), max_size=12))
def test_how_a_pipe_is_cut_changes_nothing_in_ndjson(text: bytes, cuts: list[int]) -> None:
    first = text[:1] != b"{" or b'"no"' in text
    if first:
        text = b'{"a": 0, "b": 0}\n' + text
    assert rows_of(text, cuts, NDJSONTable) == rows_of(text, [], NDJSONTable)


def test_an_object_that_names_a_value_twice_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1, "l": "x"}\n{"a": 1, "a": 2, "l": "x"}\n{"a": 3, "l": "x"}\n')
    stream = read_files(tmp_path / "a.ndjson", label="l", on_bad_row="skip")
    assert [X.tolist() for X, _ in stream] == [[[1], [3]]]
    assert stream.bad_rows == 1


def test_labels_of_two_kinds_in_one_block_leave_the_good_rows_usable(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(b'{"a": "?", "l": 5}\n{"a": 1, "l": 2}\n{"a": 2, "l": "x"}\n{"a": 3, "l": 4}\n')
    stream = read_files(tmp_path / "a.ndjson", features=["a"], label="l", on_bad_row="skip")
    ((X, y),) = stream
    assert (X.tolist(), y.tolist(), stream.bad_rows) == ([[1], [3]], [2, 4], 2)


def test_a_header_that_arrives_alone_waits_for_the_first_row() -> None:
    features, rows, *_ = rows_of(b"a,b,l\n1,2,x\n", [6, 3])
    assert features == ("a", "b")
    assert rows == [(1, [1, 2])]


@pytest.mark.parametrize(
    ("name", "empty", "full"),
    [("a.csv", "1,,\n", "1,2,x\n"), ("a.ndjson", '{"a": 1, "b": null}\n', '{"a": 1, "b": 2}\n')],
)
def test_a_column_that_is_empty_in_the_first_rows_is_waited_for_then_left_out(
    tmp_path: Path, name: str, empty: str, full: str
) -> None:
    header = "a,b,l\n" if name == "a.csv" else ""
    for empty_rows in (1, 60):
        (tmp_path / name).write_text(header + empty * empty_rows + full)
        stream = read_files(tmp_path / name, label="l", on_bad_row="skip")
        assert [X.tolist() for X, _ in stream] == [[[1, 2]]]
        assert stream.bad_rows == empty_rows
    (tmp_path / name).write_text(header + empty * 300 + full)
    stream = read_files(tmp_path / name, label="l")
    assert sum(X.size for X, _ in stream) == 301
    assert [(column.name, column.why) for column in stream.left_out if column.name == "b"] == [
        ("b", "empty in the first 300 rows")
    ]
    stream = read_files(tmp_path / name, features=["a", "b"], label="l", missing=True)
    assert sum(len(X) for X, _ in stream) == 301


def test_comments_and_repeated_names_between_rows_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("l,a\n#1,1\n# a pause\n#2,2\n//\nl,a\n#3,oops\n% end\n")
    stream = read_files(file, label="l", on_bad_row="skip")
    ((X, y),) = stream
    assert (X.tolist(), y.tolist(), stream.bad_rows) == ([[1], [2]], ["#1", "#2"], 1)  # a text may begin like a comment
    file.write_text("Größe,b\n1,2\nGröße,b\n3,4\n")  # whose bytes are more than its characters
    stream = read_files(file)
    assert [X.tolist() for X, _ in stream] == [[[1, 2], [3, 4]]]
    assert stream.progress[str(file)].end == file.stat().st_size
    file.write_text("a\n1\n# a pause\n2\na\n#\n3\n")
    stream = read_files(file)
    assert [chunk.rows.tolist() for chunk in stream.chunks(2)] == [[1, 2]]
    assert [X.tolist() for X, _ in read_files(file, resume=stream.progress)] == [[[3]]]


@pytest.mark.parametrize("quote", ["", '"'])
def test_runs_of_spaces_and_tabs_separate_and_surround_values(tmp_path: Path, quote: str) -> None:
    gaps = ["  "] * 8 + [" \t "]
    rows = [f"{i}.5   {quote}run{quote}{gap}2.0{' ' * (i % 3)}" for i, gap in enumerate(gaps)]
    (tmp_path / "a.txt").write_text("\r\n".join(["a l b", *rows, " \t", ""]))
    stream = read_files(tmp_path / "a.txt", label="l")
    ((X, y),) = stream
    assert X.tolist() == [[i + 0.5, 2.0] for i in range(9)]
    assert set(y.tolist()) == {"run"}


def test_columns_without_a_name_are_no_question(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,\n1,2,\n")
    assert [X.tolist() for X, _ in read_files(tmp_path / "a.csv")] == [[[1, 2]]]


PLAIN = {
    "csv": b"a,b,l\n1,2,x\n3,4,y\n",
    "csv, other line ends": b"a,b,l\r\n1,2,x\r\n3,4,y\r\n",
    "csv, empty lines": b"a,b,l\r\n1,2,x\r\n\r\n3,4,y\r\n",
    "csv, quotes": b'a,b,l\n1,"2","x, z"\n"3",4,y\n',
    "csv, lines in quotes": b'a,b,l\n1,2,"x\nz"\n3,4,y\n',
    "ndjson": b'{"a": 1, "b": 2, "l": "x"}\n{"a": 3, "b": 4, "l": "y"}\n',
    "ndjson, other line ends": b'{"a": 1, "b": 2, "l": "x"}\r\n{"a": 3, "b": 4, "l": "y"}\r\n',
    "ndjson, whole numbers": b'{"a": 1, "b": 2, "l": 7}\n{"a": 3, "b": 4, "l": 8}\n',
}


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("label", ["l", None])
def test_what_is_plain_is_parsed_the_quick_way(kind: str, label: str | None) -> None:
    """The slow way gives the same, at a tenth of the speed: nothing else would tell."""
    pytest.importorskip("pyarrow")
    rest = iter([PLAIN[kind]])
    table = (CSVTable if "csv" in kind else NDJSONTable)("f", lambda _: next(rest, b""), None, lambda: None)
    columns = choose_columns(table, "f", ["a", "b"], label, np.float64, True)
    if label is not None:
        columns = columns._replace(text_labels="whole" not in kind)
    table.text_labels = columns.text_labels
    block = table._block()
    assert block is not None
    batch = table._parse_fast(block, columns)
    assert batch is not None
    assert batch.X.tolist() == [[1, 2], [3, 4]]
    assert batch.ends is not None
    assert batch.ends[-1] == len(PLAIN[kind])


def test_quotes_are_plain_around_values_only() -> None:
    assert records.quotes_are_plain(b'1,"a"\n', b",")
    assert not records.quotes_are_plain(b'1,x"a"\n', b",")


@pytest.mark.parametrize("skip", [0, 1, 2, 3])
def test_rows_to_skip_without_a_place_to_go_to_are_counted(skip: int) -> None:
    rest = iter([b"a,b\n1,2\n3,4\n", b"5,6\n"])
    table = CSVTable("f", lambda _: next(rest, b""), None, lambda: None)
    columns = choose_columns(table, "f", None, None, np.float64, True)
    found = [row for batch in table.batches(columns, skip, None) for row in batch.X.tolist()]
    assert found == [[1, 2], [3, 4], [5, 6]][skip:]


# Quotes -------------------------------------------------------------------------------------------------------------


def test_an_open_quote_spoils_its_own_line_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'a,l\n1,"p\n' + b"".join(b"%d,q\n" % i for i in range(400, 1, -1))
    _, rows, labels, _, _ = rows_of(text, [9, 5, 7])
    assert [row for row, _ in rows] == list(range(2, 401))
    assert set(labels) == {"q"}
    monkeypatch.setattr(records, "LONGEST_QUOTED", 100)
    assert rows_of(text, [9, 5, 7])[1] == rows
    later = text.replace(b"300,q", b'300,"q')  # its other half comes too late to be one
    _, rows, _, _, _ = rows_of(later, [9, 5, 7])
    assert [row for row, _ in rows] == [row for row in range(2, 401) if row != 102]
    assert rows_of(later, [])[1] == rows


def test_rows_after_an_open_quote_are_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LONGEST_QUOTED", 50)
    asked = 0

    def read(_: int) -> bytes:
        nonlocal asked
        asked += 1
        return b'a,l\n1,"p\n' if asked == 1 else b"2,q\n" * 20_000

    table = CSVTable("f", read, None, lambda: None)
    columns = Columns(("a",), "l", np.dtype(np.float64), True)
    batch = next(itertools.islice((b for b in table.batches(columns, 0, None) if not b.faults), 1))
    assert batch.X[0, 0] == 2
    assert asked < 20


def test_a_quote_that_opens_a_later_value_closes_none_before() -> None:
    text = b'a,l\n1,"p\n2,q\n3,"r\n4,s\n5,"two\nlines"\n6,"t"\n7,"u\n8,v\n'
    for cuts in ([], [1] * len(text), [9, 5, 7]):
        _, rows, labels, _, _ = rows_of(text, cuts)
        assert [row for row, _ in rows] == [2, 4, 5, 6, 8]
        assert labels == ["q", "s", "two\nlines", "t", "v"]
        assert [row for row, _ in rows_of(text, cuts, hold=True)[1]] == [2, 4, 5, 6]  # only the last may be closed yet


def test_lines_in_an_open_quote_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,l\n1,p\n2,"q\n3,r\n4,s\n')
    stream = read_files(tmp_path / "a.csv", label="l")
    assert [chunk.X.tolist() for chunk in stream.chunks()] == [[[1]]]
    assert stream.in_open_quote == 3


@pytest.mark.parametrize("line", [b'1,"p""\n', b'1,"p\n'])
def test_a_file_full_of_open_quotes_takes_time_in_step_with_its_length(
    monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.setattr(records, "LONGEST_QUOTED", 1000)
    monkeypatch.setattr(csv, "_AFTER_A_FAULT", 64)
    scanned = []
    real = records.record_ends
    monkeypatch.setattr(csv, "record_ends", lambda data, d: scanned.append(len(data)) or real(data, d))
    work = {}
    for n in (400, 1600):
        scanned.clear()
        rows_of(b"a,l\n0,z\n" + line * n, [])
        work[n] = sum(scanned)
    assert work[1600] < 6 * work[400]


def test_long_values_and_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * 200_000
    (tmp_path / "a.csv").write_text(f"a,{long},l\n1,{long},p\noops,{long},q\n2,{long},{long}\n")
    stream = read_files(tmp_path / "a.csv", features=["a"], label="l", on_bad_row="skip")
    ((X, y),) = stream
    assert (X.tolist(), y.tolist(), stream.bad_rows) == ([[1], [2]], ["p", long], 1)
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    with pytest.raises(SourceError, match="a line is longer than"):
        rows_of(b"a,l\n" + b"1" * 5000, [500] * 10)


# Encodings ----------------------------------------------------------------------------------------------------------


def test_texts_of_old_spreadsheets_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("a,l\n1,café\n2,cafè\n".encode("latin-1"))
    assert [y.tolist() for _, y in read_files(tmp_path / "a.csv", label="l")] == [["café", "cafè"]]
    (tmp_path / "b.csv").write_bytes("°C,l\n1,x\n".encode("latin-1"))
    stream = read_files(tmp_path / "b.csv", label="l")
    assert [X.tolist() for X, _ in stream] == [[[1]]]
    assert stream.columns is not None
    assert stream.columns.features == ("°C",)
    late = "a,l\n" + "1,x\n" * 2000 + "2,café\n"
    (tmp_path / "d.csv").write_bytes(late.encode("latin-1"))
    with pytest.raises(BadRowError, match=r"row 2001, column 'l'.*is not UTF-8 text"):
        list(read_files(tmp_path / "d.csv", label="l"))
    (tmp_path / "e.csv").write_bytes(b"a,l\n1,x\x81\n2,x\x8d\n")  # bytes that Windows-1252 does not define
    ((_, y),) = read_files(tmp_path / "e.csv", label="l")
    assert y.tolist() == ["x\x81", "x\x8d"]
    (tmp_path / "c.csv").write_bytes("a,l,n\n1,x,né\n2,y,nè\n".encode("latin-1"))  # in a column nobody asked for
    ((_, y),) = read_files(tmp_path / "c.csv", features=["a"], label="l")
    assert y.tolist() == ["x", "y"]
    rows = np.array([(1.0, "café".encode("latin-1")), (2.0, "cafè".encode("latin-1"))], [("a", "f8"), ("l", "S9")])
    np.save(tmp_path / "a.npy", rows)
    with pytest.raises(BadRowError, match="row 1, column 'l'"):
        list(read_files(tmp_path / "a.npy", label="l"))
    (tmp_path / "a.ndjson").write_text('{"a": 1, "l": "x"}\n{"a": 2, "l": "\\ud800"}\n')
    with pytest.raises(BadRowError, match="row 2, column 'l'"):
        list(read_files(tmp_path / "a.ndjson", label="l"))


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_months_and_markers_that_are_not_ascii_are_recognised(tmp_path: Path, encoding: str) -> None:
    rows = [f"{i + 1:02d}-Mär-2015 10:00,{1.5 * i},{'§' if i % 3 == 0 else i / 2}\n" for i in range(20)]
    (tmp_path / "a.csv").write_bytes(("Zeit,a,b\n" + "".join(rows)).encode(encoding))
    (chunk,) = read_files(tmp_path / "a.csv", markers=["§"], missing=True).chunks()
    assert chunk.times is not None
    assert chunk.times[0] == 1425204000.0  # 1 March 2015 10:00
    assert np.isnan(chunk.X[:, 1]).tolist() == [i % 3 == 0 for i in range(20)]


def test_values_and_record_ends_agree_with_the_slow_way() -> None:
    for text in TEXTS:
        for cut in range(len(text)):
            for delimiter in (b",", b";"):
                data = text[:cut]
                ends, opened = records.record_ends(data, delimiter)
                found = records.split_records(data.decode("latin-1"), delimiter.decode())[1].tolist()
                if opened is None:
                    assert set(found[:-1]) <= {*ends.tolist(), *(i + 1 for i, c in enumerate(data) if c == 13)}


def test_files_longest_out_of_use_are_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ccmem.io.streams import files

    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text("x\n1\n")
    stream = read_files([tmp_path / "a.csv", tmp_path / "b.csv"])
    list(stream)
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    again = read_files(tmp_path / "a.csv", resume=stream.progress)
    list(again)
    assert [Path(key).name for key in again.progress] == ["b.csv", "a.csv"]  # a.csv was read last
    monkeypatch.setattr(files, "_MOST_REMEMBERED", 2)
    third = read_files(tmp_path / "c.csv", resume=again.progress)
    list(third)
    assert [Path(key).name for key in third.progress] == ["a.csv", "c.csv"]


# Batches ------------------------------------------------------------------------------------------------------------


def test_a_bad_row_does_not_decide_what_labels_are(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": "?", "l": "x"}\n{"a": 1, "l": 2}\n{"a": 3, "l": 4}\n')
    stream = read_files(tmp_path / "a.ndjson", features=["a"], label="l", on_bad_row="skip")
    assert [(X.tolist(), y.tolist()) for X, y in stream] == [([[1], [3]], [2, 4])]
    assert stream.bad_rows == 1


def test_chunks_tell_of_rows_that_were_all_bad(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\noops\nno\n")
    stream = read_files(tmp_path / "a.csv", features=["a"], on_bad_row="skip")
    assert [(len(chunk.X), chunk.n_rows) for chunk in stream.chunks()] == [(0, 2)]


def test_the_largest_number_is_good_and_what_is_beyond_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1e70\n-1e70\n1.1e70\n-1.1e70\n")
    stream = read_files(tmp_path / "a.csv", on_bad_row="skip", dtype=np.float64)
    assert [X.tolist() for X, _ in stream] == [[[1e70], [-1e70]]]
    assert stream.bad_rows == 2


def test_as_many_rows_as_are_asked_for_cover_the_bad_ones_behind_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n2\noops\n")
    (chunk,) = read_files(tmp_path / "a.csv", on_bad_row="skip").chunks()
    assert (chunk.head(2).n_rows, chunk.head(1).n_rows, chunk.head(0).n_rows) == (3, 1, 0)


def test_labels_of_another_number_than_rows_are_refused_at_once() -> None:
    for labels in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match=f"y has {len(labels)} labels for 3 rows"):
            next(as_chunks(np.eye(3), y=labels))
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1.0, 2.0, 3.0]})

    class Unknown:
        """A stream that does not know its length."""

        def __arrow_c_stream__(self, schema: Any = None) -> Any:
            return table.__arrow_c_stream__(schema)

    assert [y.tolist() for _, y in as_chunks(Unknown(), y=[1, 2, 3])] == [[1, 2, 3]]
    for labels in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match=f"y has {len(labels)} labels for"):
            list(as_chunks(Unknown(), y=labels))


def test_a_pipe_begins_anew_unless_what_was_seen_is_to_be_skipped() -> None:
    known = {"-": Progress(rows=5)}
    for skip_seen, first in ((False, 0), (True, 5)):
        stream = FileStream("-", format="csv", resume=known, skip_seen=skip_seen)
        begun = stream._begin("-", known["-"])
        assert begun is not None
        assert begun.rows == first
        assert stream._begin("-", None) == Progress()


def test_lines_that_hold_no_object_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("[1]\n2\n")
    with pytest.raises(SourceError, match="is a JSON array"):
        list(read_files(tmp_path / "a.ndjson"))
    (tmp_path / "a.ndjson").write_text('{"a":')  # it has only begun
    assert list(read_files(tmp_path / "a.ndjson").chunks()) == []


def test_a_label_that_is_not_in_a_frame_is_named() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0]})
    with pytest.raises(SourceError, match="no column 'l' for the label"):
        next(as_chunks(frame, label="l"))


def test_arrays_that_can_only_be_read_forwards_are_skipped_through() -> None:
    import io

    from ccmem.io.streams.arrays import _stream

    class Forwards(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: Any) -> int:
            raise OSError("a pipe")

    packed = io.BytesIO()
    np.save(packed, np.arange(60.0).reshape(20, 3))
    *_, rows, _ = _stream("f", Forwards(packed.getvalue()), None)
    assert rows(0, 2).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert rows(10, 11).tolist() == [[30, 31, 32]]


def test_the_first_line_decides_whether_carriage_returns_end_lines() -> None:
    for data, expected in (
        (b"a\rb", True),
        (b"a\r", False),
        (b"a\r\nb", False),
        (b"\na\rb\r", False),
        (b"a\nb\rc", False),
    ):
        assert csv._returns_end_lines(data) is expected, data


@pytest.mark.parametrize(("texts", "features"), [(3, ("a", "b")), (5, ("a",))])
def test_a_column_with_a_few_markers_in_ndjson_is_one_of_numbers(
    tmp_path: Path, texts: int, features: tuple[str, ...]
) -> None:
    rows = [{"a": i * i, "b": "off" if i < texts else i / 8} for i in range(20)]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    stream = read_files(tmp_path / "a.ndjson", on_bad_row="skip")
    list(stream)
    assert stream.columns is not None
    assert stream.columns.features == features


@pytest.mark.parametrize(("n", "why"), [(3, "text, one of 'down', 'left', 'up' in the first rows"), (4, "text")])
def test_up_to_three_texts_of_a_column_are_listed(n: int, why: str) -> None:
    texts = [["up", "down", "left", "right"][i % n] for i in range(60)]
    (column,) = infer({"k": texts}, Rules(), CellFormat()).columns
    assert column.why == why
