"""The stream table: rows of every stream are numbers, scores are what they say, tables keep all models."""

from __future__ import annotations

from studies import tables


def test_a_model_is_scored_before_it_learns_and_kappa_is_adjusted_for_chance():
    rows = [({"a": float(i % 2)}, i % 2) for i in range(200)]
    before = tables.run("NoChange (label before)", rows)
    assert before["accuracy"] == 0.0  # every label differs from the one before
    assert before["kappa"] < 0
    ours = tables.run("DiscriminantClassifier()", rows)
    assert ours["accuracy"] > 0.95
    assert ours["kappa"] > 0.9
    assert ours["floats"] > 0


def test_streams_are_numbers_and_tables_show_every_model():
    rows = tables.STREAMS["wine"](None)
    assert len(rows) == 178
    assert all(isinstance(value, float) for x, _ in rows for value in x.values())
    models = [
        {"model": name, "accuracy": 0.5, "kappa": 0.0, "microseconds per row": 1.0, "floats": 3}
        for name in tables.MODELS
    ]
    text = tables.markdown({"wine": {"rows": 178, "columns": 13, "classes": 3, "models": models}})
    assert all(name in text for name in tables.MODELS)
    assert tables.STREAMS["electricity"](None) is None
