"""Text and notebook representations of a memory."""

from __future__ import annotations

import numpy as np

from ccmem import CCM, AdaptiveCCM, IncrementalWTA, ModalClassifier


def test_summary_and_notebook_tell_blocks_labels_and_names_and_escape_them() -> None:
    X = np.repeat(np.eye(3)[[0, 2]], 30, axis=0)
    memory = CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
    classifier = ModalClassifier(memory).fit(X, np.array(["<b>x</b>", "y"], object).repeat(30))
    classifier.memory_.name_block(0, "<script>")
    text, page = classifier.summary(), classifier._repr_mimebundle_()["text/html"]
    assert "ModalClassifier on CCM: 60 samples of 3 columns" in text
    assert "<script>" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<b>x</b>" not in page
    assert str(classifier.events_[0]) in text


def test_what_has_learned_nothing_or_has_no_blocks_can_be_shown_too() -> None:
    for model in (AdaptiveCCM(), ModalClassifier(AdaptiveCCM())):
        assert "nothing learned yet" in model.summary()
        assert "AdaptiveCCM" in model._repr_html_()
    memory = IncrementalWTA(n_units=2).fit(np.eye(2))
    assert memory.summary() == "IncrementalWTA: 2 samples of 2 columns, 2 units"
    assert "2 units" in memory._repr_html_()
