"""Agreement of RELIABILITY.md with the evidence."""

from __future__ import annotations

from studies import reliability


def test_the_page_holds_the_table_of_the_evidence() -> None:
    assert reliability.table() in reliability.PAGE.read_text()


def test_nothing_failed_and_nothing_is_unexplained() -> None:
    assert reliability.torture()["failed"] == 0
    planted = [reliability.summary(file) for file in reliability.EVIDENCE.glob("mutants_*[0-9].jsonl")]
    assert sum(sample["errors"] for sample in planted) >= 300
    assert [sample["survived"] for sample in planted] == [[]] * len(planted)
