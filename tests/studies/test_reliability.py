"""RELIABILITY.md says what the evidence says."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from studies import reliability


def test_the_page_holds_the_table_of_the_evidence() -> None:
    assert reliability.table() in reliability.PAGE.read_text()


def test_nothing_failed_and_nothing_is_unexplained() -> None:
    assert reliability.torture()["failed"] == 0
    planted = [reliability.summary(file) for file in reliability.EVIDENCE.glob("mutants_*[0-9].jsonl")]
    assert sum(sample["errors"] for sample in planted) >= 300
    assert [sample["survived"] for sample in planted] == [[]] * len(planted)
