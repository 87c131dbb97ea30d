"""Cases that fuzzing found once, or that reviews did, are handled as promised for ever."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from studies import fuzz, fuzz_models


@pytest.mark.parametrize("file", sorted(fuzz.CORPUS.glob("*.json")), ids=lambda file: file.stem)
def test_the_corpus_is_handled_as_promised(file: Path) -> None:
    fuzz.replay(file)


@pytest.mark.parametrize("name", ["events", "csv", "ndjson"])
def test_some_cases_of_each_grammar(name: str) -> None:
    rng = random.Random(1)
    for _ in range(40):
        fuzz.check(name, fuzz.TARGETS[name].make(rng))


def test_a_case_that_fails_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "CORPUS", tmp_path)
    file = fuzz.keep("csv", ["csv", "a,b,c\n1,2,3\n", 0.5])
    assert fuzz.replay(file) == "rows"


def test_every_class_is_forged() -> None:
    from ccmem import registry

    forged = " ".join(map(str, fuzz_models._names()))
    assert all(name in forged for name in registry.ESTIMATORS if name not in ("Stack", "ModalClassifier"))
    assert "stack" in forged
