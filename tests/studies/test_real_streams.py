"""The study of real streams: how its series are cut, and that each peer sees a step and is quiet without one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
pytest.importorskip("scipy")
from studies.real_streams import peers, tables, tssb


def test_a_series_is_cut_as_the_benchmark_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    samples, classes = rng.normal(size=(6, 10)), np.array([2, 1, 2, 1, 1, 2])
    values, changes = tssb.cut(samples, classes, (1, 0), 0, 3)
    first = np.concatenate([(x - x.mean()) / x.std() for x in samples[classes == 2]])
    np.testing.assert_allclose(values[:10], first.reshape(10, 3).mean(axis=1))
    assert (len(values), changes) == (20, (10,))
    _, halves = tssb.cut(samples, classes, (0, 3, 1), 1, 1)
    assert halves[0] in (12, 18)
    assert halves[1] - halves[0] in (12, 18)
    lines = [f"{label}\t" + "\t".join(map(str, row)) for label, row in zip(classes, samples, strict=True)]
    (tmp_path / "ArrowHead_TRAIN.tsv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="as published"):
        tssb.load([tmp_path])


def test_the_table_of_series_is_whole() -> None:
    lines = [line for line in tssb.TABLE.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 76
    published = np.array([line.split(";")[-4:] for line in lines[1:]], float).mean(axis=0)
    np.testing.assert_allclose(published, [0.449, 0.581, 0.567, 0.855], atol=5e-4)  # BOCD, PELT, FLOSS, ClaSP


@pytest.mark.parametrize("name", ["ADWIN", "KSWIN", "Page-Hinkley", "T2 chart", "EWMA chart", "ruptures"])
def test_peers_see_a_step_and_little_else(name: str) -> None:
    pytest.importorskip("ruptures" if name == "ruptures" else "river")
    peer = next(peer for peer in peers.PEERS if peer.name == name)
    quiet = {"KSWIN": 1e-10, "T2 chart": 1e-9, "EWMA chart": 8.0}.get(name, peer.default)
    X = np.random.default_rng(1).normal(size=(900, 3))
    assert len(peer.make(quiet)(X).steps) <= 1
    X[600:, 1] += 6
    assert any(600 <= step < 720 for step in peer.make(quiet)(X).steps)


def test_the_page_shows_what_the_evidence_says(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    page, copy = root / "docs" / "real_streams.md", tmp_path / "page.md"
    copy.write_text(page.read_text())
    found = tables.read(root / "studies" / "evidence" / "real_streams")
    tables.into_page(found, copy)
    assert copy.read_text() == page.read_text()
    assert (root / "studies" / "evidence" / "real_streams" / "tables.md").read_text() == tables.markdown(found)
