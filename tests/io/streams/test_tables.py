"""Columns that are left out, and rows that are skipped with and without a known offset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccmem.io.streams import read_files
from ccmem.io.streams.schema import choose_columns
from ccmem.io.streams.sources import open_table

ROWS = "t,a,b,word\n" + "".join(f"{i},{i % 7}.5,{i % 3},w{i % 2}\n" for i in range(60))


def test_columns_that_the_user_names_leave_nothing_to_report(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(ROWS)
    inferred, named = read_files(tmp_path / "x.csv"), read_files(tmp_path / "x.csv", features=["a", "b"])
    assert [sum(len(X) for X, _ in stream) for stream in (inferred, named)] == [60, 60]
    assert "word" in [column.name for column in inferred.left_out]
    assert [column.name for column in inferred.chosen][-2:] == ["a", "b"]
    assert (named.left_out, named.chosen, named.growing) == ([], [], ())


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("skip", [1, 9, 59, 60])
def test_rows_that_were_read_are_skipped(tmp_path: Path, skip: int, known: bool) -> None:
    file = str(tmp_path / "x.csv")
    Path(file).write_text(ROWS)
    ends: list[int] = []

    def rows(skip: int, end: int | None) -> list[list[float]]:
        table = open_table(file)
        columns = choose_columns(table, file, ["a", "b"], None, None, False)
        found = [(batch.X, batch.ends) for batch in table.batches(columns, skip, end)]
        table.close()
        ends.extend(end for _, batch_ends in found if batch_ends is not None for end in batch_ends.tolist())
        return np.concatenate([X for X, _ in found] or [np.empty((0, 2))]).tolist()

    whole = rows(0, None)
    assert len(whole) == len(ends) == 60
    assert rows(skip, ends[skip - 1] if known else None) == whole[skip:]


@pytest.mark.parametrize(("repeats", "is_counter"), [(1, True), (2, False)])
def test_a_numbered_column_is_left_out_only_if_it_grows_in_every_row(
    tmp_path: Path, repeats: int, is_counter: bool
) -> None:
    rows = "".join(f"{i // repeats},{i % 7}.5\n" for i in range(60))
    (tmp_path / "x.csv").write_text("id,a\n" + rows)
    stream = read_files(tmp_path / "x.csv")
    assert sum(len(X) for X, _ in stream) == 60
    assert ("id" in [column.name for column in stream.left_out]) == is_counter
