"""Layout of the first lines of a table, and numbers with a decimal comma."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccmem.io.streams.dialect import lay_out
from ccmem.io.streams.records import CellFormat
from ccmem.io.streams.sources import open_table


def test_a_decimal_comma_below_the_first_line_is_seen() -> None:
    found = lay_out("on;1\noff;2,5\non;3,5\noff;0,5\n", ";", None)
    assert (found.header, found.skip, found.names) == (False, 0, ["c1", "c2"])


def test_a_column_with_few_numbers_is_no_column_of_numbers() -> None:
    rows = ["ab;1", *["cd;2"] * 9, "7;2"]
    assert not lay_out("\n".join(rows) + "\n", ";", None).header
    assert lay_out("\n".join(["ab;name", *rows[1:]]) + "\n", ";", None).header


def test_names_of_few_of_the_columns_are_names() -> None:
    found = lay_out("a;b\n" + "1;2;3;4;5\n" * 5, ";", None)
    assert (found.preamble, found.header, found.heading) == (0, True, ("a", "b"))
    title = lay_out("a title;\nv;w;x;y;z\n" + "1;2;3;4;5\n" * 5, ";", None)
    assert (title.preamble, title.names) == (1, ["v", "w", "x", "y", "z"])


def test_points_group_digits_beside_a_decimal_comma() -> None:
    found, wrong = CellFormat(",").numbers(["1.500", "2,5"])
    assert found.tolist() == [1500.0, 2.5]
    assert CellFormat(",").numbers(["1.500", "2.500"])[0].tolist() == [1500.0, 2500.0]
    assert wrong == []


@pytest.mark.parametrize("ordinary", [False, True])
def test_text_among_numbers_is_named_by_its_place(ordinary: bool) -> None:
    found, wrong = CellFormat().numbers(["1.5", "off", "2"], ordinary)
    np.testing.assert_array_equal(found, [1.5, np.nan, 2.0])
    assert wrong == [1]


def test_a_field_of_vectors_is_no_number(tmp_path: Path) -> None:
    rows = np.zeros(4, [("a", "f4"), ("v", "f4", (2,)), ("when", "M8[s]")])
    rows["a"] = [0.5, 1.5, 0.25, 9.0]
    np.save(tmp_path / "x.npy", rows)
    table = open_table(str(tmp_path / "x.npy"))
    kinds = {column.name: column.kind for column in table.schema.columns}
    table.close()
    assert kinds["a"] == "number"
    assert kinds["v"] != "number"
