"""Dialect of a text table: delimiter, lines above the names, names, and offset of the first row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ccmem.io.streams.records import WHITESPACE, CellFormat, decimal_sign, split_records
from ccmem.io.streams.timestamps import is_clock, is_stamp

DELIMITERS = "\t;|,"
"""Delimiters between cells, likeliest first; the first one wins if two fit a file equally well."""
SHOWN_LINES = 60
"""Number of lines from which the delimiter and the line of names are inferred."""
COMMENTS = ("#", "//", "%")
MOST_UNITS = 4
"""Number of lines under which the values begin at the latest: names, a second line of names, units, types."""
ROW_NAMES = "row"
"""Name given to a first column that the line of names omits."""


class Dialect(NamedTuple):
    """Layout of a text table."""

    delimiter: str
    names: list[str]
    skip: int
    """Characters before the first row."""
    header: bool
    """True if the file has a line of names."""
    preamble: int
    """Lines above the names that belong to neither names nor rows."""
    units: bool
    """True if a line of units follows the names."""
    heading: tuple[str, ...] = ()
    """Cells of the line of names."""


def sniff_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that cuts most lines into equally many cells, at least two.

    >>> sniff_delimiter(["a;b", "1,5;2,5", "3,5;4,5"]), sniff_delimiter(["1.0  2.0", " 3.0 4.0"])
    (';', ' ')
    """
    best, best_score = ",", (0.0, 0)
    lines = [line for line in lines if line.strip() and not line.startswith(COMMENTS)]
    for delimiter in (*DELIMITERS, WHITESPACE):
        counts = Counter(len(cells) for line in lines for cells in split_records(line, delimiter)[0])
        width, n_lines = max(counts.items(), key=lambda item: (item[0] > 1, item[1]), default=(1, 0))
        share = n_lines / max(sum(counts.values()), 1)
        if delimiter == WHITESPACE and (share < 0.9 or best_score[0] > 0.5):
            continue
        score = (round(share, 1) if width > 1 else 0.0, width > 1)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def lay_out(text: str, delimiter: str, rules_decimal: str | None) -> Dialect:
    """Return the dialect of ``text``, the first lines of a table."""
    found = zip(*split_records(text, delimiter), strict=True)
    records = [([cell.strip() for cell in cells], int(end)) for cells, end in found]
    preamble = _preamble([cells for cells, _ in records])
    above, start = records[preamble - 1] if preamble else ([], 0)
    comment = bool(above) and above[0].startswith(COMMENTS)  # may hold the names, as numpy writes them
    above = [above[0].lstrip("#/% "), *above[1:]] if comment else []
    records = records[preamble:]
    if not records:
        return Dialect(delimiter, [], start, True, preamble, False)
    first, body = records[0][0], [cells for cells, _ in records[1:]]
    form = CellFormat(rules_decimal or decimal_sign([cell for cells in body or [first] for cell in cells], delimiter))
    width = _width(body) or len(first)
    header = _is_header(first, [cells for cells in body if len(cells) == width], form)
    if not header:
        names = above if len(above) == len(first) else [""] * len(first)
        return Dialect(delimiter, unique(names), start, False, preamble, False)
    names, skip = list(first), records[0][1]
    units, line = False, 1
    while line < min(len(records) - 1, MOST_UNITS) and _is_units(records[line][0], body[line:], form):
        second, skip = records[line]
        if line == 1 and len(set(names)) < len(names) == len(second) and len(set(second)) == len(second):
            names = [f"{group} {name}".strip() for group, name in zip(names, second, strict=True)]  # two lines of names
        else:
            units = True
        line += 1
    if width > len(names):
        if not any(any(cells[len(names) :]) for cells in body if len(cells) == width):
            names += [""] * (width - len(names))  # separators without anything after them
        elif width == len(names) + 1:
            names = [ROW_NAMES, *names]
    return Dialect(delimiter, unique(names), skip, True, preamble, units, tuple(first))


def unique(names: Sequence[str]) -> list[str]:
    """Return distinct names: an unnamed column is named after its number, a second "a" becomes "a.2".

    >>> unique(["a", "", "a"])
    ['a', 'c2', 'a.2']
    """
    found: list[str] = []
    for place, name in enumerate(names, 1):
        base = name or f"c{place}"
        chosen, count = base, 1
        while chosen in found or (chosen != name and chosen in names):
            count += 1
            chosen = f"{base}.{count}"
        found.append(chosen)
    return found


def _preamble(records: Sequence[list[str]]) -> int:
    """Return the number of records above the names: comments, and lines with other cells than the table below them."""
    table = [cells for cells in records if not cells[0].startswith(COMMENTS)]
    width = _width(table)
    ragged = width <= 2 or sum(len(cells) == width for cells in table) <= len(table) / 2
    count = 0
    for cells, below in pairwise(records):
        comment = cells[0].startswith(COMMENTS) or (len(cells) <= 2 and cells[0].lower().startswith("sep="))
        title = not any(cells) or (_filled(cells) == 1 and not _all_values(cells))
        if not comment and (ragged or (len(cells) >= width - 1 and not title)):  # R names one column less
            break
        if not comment and _filled(cells) > 1 and len(below) == width and _all_values(below):
            break  # names of fewer columns than the rows have
        count += 1
    return count


def _all_values(cells: Sequence[str]) -> bool:
    return any(all(_is_value(cell, CellFormat(sign)) for cell in cells) for sign in ".,")


def _filled(cells: Sequence[str]) -> int:
    return sum(1 for cell in cells if cell)


def _width(records: Sequence[list[str]]) -> int:
    """Return the most common number of cells per record; 0 without records."""
    counts = Counter(map(len, records))
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _is_value(cell: str, form: CellFormat) -> bool:
    return form.number(cell) is not None or is_stamp(cell) or is_clock(cell)


def _is_header(first: Sequence[str], body: Sequence[list[str]], form: CellFormat) -> bool:
    """True if the first record holds names: it has text where the rows below have numbers or times."""
    if all(_is_value(cell, form) for cell in first):
        return False
    if not body or len(first) != len(body[0]):
        return True
    values = [sum(_is_value(cells[i], form) for cells in body) >= 0.8 * len(body) for i in range(len(first))]
    return not any(values) or any(
        valued and not _is_value(cell, form) for cell, valued in zip(first, values, strict=True)
    )


def _is_units(second: Sequence[str], body: Sequence[list[str]], form: CellFormat) -> bool:
    """True if the record under the names holds units: text in every column that holds numbers below."""
    rows = [cells for cells in body if len(cells) == len(second)]
    if len(rows) < 3:
        return False
    most = 0.8 * len(rows)
    numbers = [i for i in range(len(second)) if sum(form.number(cells[i]) is not None for cells in rows) >= most]
    texts = [i for i in numbers if second[i] and form.number(second[i]) is None]
    return len(texts) > 0 and all(i in texts or not second[i] or second[i] == "-" for i in numbers)
