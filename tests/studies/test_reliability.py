"""RELIABILITY.md says what the evidence says."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from studies import reliability


def test_the_page_holds_the_table_of_the_evidence() -> None:
    assert reliability.table() in reliability.PAGE.read_text()


def test_nothing_failed_and_nothing_is_unexplained() -> None:
    tried, planted = reliability.torture(), reliability.summary(reliability.EVIDENCE / "mutants.jsonl")
    assert tried["failed"] == 0
    assert planted["errors"] >= 300
    assert planted["survived"] == []
