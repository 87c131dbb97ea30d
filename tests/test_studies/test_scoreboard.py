"""The scoreboard: scores of made-up alarms, peers that find a step, missing data, and the page that shows the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")
from studies.scoreboard import budget, made, pages, peers, recordings, signals, tasks
from studies.scoreboard.candidates import Candidate, Found, blind, load, rand_index
from studies.scoreboard.run import run
from studies.scoreboard.table import Figure, Row, cells
from studies.scoreboard.trial import Size

from ccmem import Event


class Oracle:
    """A memory that finds the fault of a plant 20 rows late and recalls block 0 at its end."""

    n_blocks_ = 2

    def partial_fit(self, X: Any) -> None:
        self.events_ = [Event("new_block", made.FAULT + 20, 0, 1, 21), Event("recall", made.BACK + 20, 1, 0, 21)]
        self.events_ = [event for event in self.events_ if event.step < len(X)]


def test_a_perfect_memory_meets_the_targets_of_plants(tmp_path: Path) -> None:
    size = Size(plants=8)
    found = run(["plants", "skab"], Oracle, tmp_path, size, report=lambda line: None)
    row, clock = found["plants"]["rows"]
    assert {name: figure.value for name, figure in row.figures.items() if figure.target} == {
        "faults": 8, "returns": 8, "false": 0
    }  # fmt: skip
    assert row.ari.value > 0.9 > 0.3 > clock.ari.value
    assert cells(row)[-1] == ""
    assert "no *.csv*" in found["skab"]["skipped"]


def test_the_blind_clock_raises_as_many_alarms_evenly() -> None:
    clock = blind(Found.of([7, 8, 9], 100))
    assert clock.steps == [25, 50, 75]
    assert clock.blocks[[0, 24, 25, 99]].tolist() == [0, 0, 1, 3]


def test_unlabelled_rows_do_not_count() -> None:
    assert rand_index([0, 0, -1, 1, 1], [3, 3, 3, 4, 4]) == 1.0
    assert rand_index([0, 0, 0, 1, 1], [3, 3, 4, 4, 4]) < 1.0


def test_activity_is_scored_by_changes_returns_and_alarms() -> None:
    truth = np.repeat([1, -1, 4, 1, 2, 3], [1000, 100, 1000, 1000, 1000, 1000])
    person = recordings.Activity("p", np.zeros((5100, 1)), truth)
    assert [s[:2] for s in person.segments] == [(0, 1000), (1100, 2100), (2100, 3100), (3100, 4100), (4100, 5100)]
    blocks = np.repeat([0, 1, 0, 2], [1050, 1100, 2600, 350])
    found = Found([1050, 2150, 4750], [1000, 2100, 4700], blocks, 3)
    row = signals._score_activity([(0, person)], [found], "activity, waist, rows", 250, {"found": Figure(0, least=0.6)})
    values = {name: (figure.value, figure.of) for name, figure in row.figures.items()}
    assert values["found"] == (2, 4)  # the last alarm comes too late
    assert row.figures["found"].target == ">= 2.40"
    assert values["right returns"] == (1, 1)
    assert values["between stairs"] == (0, 1)
    assert values["alarms per change"] == (0.75, None)


def test_tasks_are_scored_by_the_block_of_each_alarm() -> None:
    stream = tasks.Tasks([100, 200, 300], [0, 1, 0, 1])
    blocks = np.repeat([0, 1, 0, 2], [110, 100, 100, 90])
    row = tasks.row("t", [stream], [Found([110, 210, 310], [100, 200, 300], blocks, 3)])
    assert str(row.figures["missed"]) == "0 of 3"
    assert str(row.figures["right returns"]) == "1 of 2"


def test_figures_name_their_targets() -> None:
    row = Row("b", {"found": Figure(3, 4, least=4), "false": Figure(1, most=1)}, Figure(0.4123, least=0.5))
    assert cells(row) == ["b", "0.412", "found 3 of 4, false 1", "ARI >= 0.500, found >= 4, false <= 1", "ARI, found"]
    assert not Figure(None, least=1).met


def test_segmented_series_and_fault_recordings_are_read(tmp_path: Path) -> None:
    (tmp_path / "segments" / "tssb").mkdir(parents=True)
    (tmp_path / "segments" / "tssb" / "desc.txt").write_text("A,10,2\nB,10,\n")
    for name in "AB":
        np.savetxt(tmp_path / "segments" / "tssb" / f"{name}.txt", np.arange(4.0))
    assert [series.changes for series in recordings.segmented(tmp_path, "tssb")] == [[2], []]
    with pytest.raises(recordings.MissingData, match="utsa"):
        recordings.segmented(tmp_path, "utsa")


def test_a_candidate_is_named_by_module_and_object() -> None:
    assert load("ccmem:AdaptiveCCM").__name__ == "AdaptiveCCM"
    with pytest.raises(ValueError, match=r"package\.module:name"):
        load("ccmem.AdaptiveCCM")


def test_windows_are_counted_in_rows() -> None:
    wave = np.sin(2 * np.pi * np.arange(4000) / 40)
    found = Candidate(Oracle).windows(wave)
    assert found.steps == [1520 * 2 + 79]  # the last row of window 1,520: 80 rows, two rows apart
    assert len(found.blocks) == 4000


@pytest.mark.parametrize("name", ["ADWIN", "KSWIN", "Page-Hinkley", "T2 chart", "EWMA chart", "ruptures"])
def test_peers_find_a_step_and_little_else(name: str) -> None:
    pytest.importorskip("ruptures" if name == "ruptures" else "river")
    peer = next(peer for peer in peers.PEERS if peer.name == name)
    quiet = {"KSWIN": 1e-10, "T2 chart": 1e-9, "EWMA chart": 8.0}.get(name, peer.default)
    X = np.random.default_rng(1).normal(size=(900, 3))
    assert len(peer.make(quiet)(X)) <= 1
    X[600:, 1] += 6
    assert any(600 <= step < 720 for step in budget.PeerCandidate(peer, quiet).rows(X).steps)


def test_a_peer_gets_the_most_sensitive_setting_within_the_budget() -> None:
    peer = peers.Peer("every", lambda n: lambda X: list(range(n, len(X), n)), 10, (10, 20, 50), "n")
    assert list(budget._settings(peer, [np.zeros((100, 1))], 0, 4).values()) == [10, 20]
    assert list(budget._settings(peer, [np.zeros((100, 1))], 0, 0).values()) == [10]


def test_the_page_shows_what_the_evidence_says(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "real_streams.md"
    copy = tmp_path / "page.md"
    copy.write_text(page.read_text())
    pages.write(copy)
    assert copy.read_text() == page.read_text()
