"""The paper's experiments: rows of the tables, the protocols they run in, their trials, and tuning."""

from ccmem.experiments.table_rows import (
    KINDS,
    TRAINING_IMAGES,
    TUNED,
    Row,
    changed,
    model_class,
    model_names,
    other_rows,
    paper,
    paper_row,
    rows,
    settings,
    tuned,
    tuned_row,
)

__all__ = [
    "KINDS",
    "TRAINING_IMAGES",
    "TUNED",
    "Row",
    "changed",
    "model_class",
    "model_names",
    "other_rows",
    "paper",
    "paper_row",
    "rows",
    "settings",
    "tuned",
    "tuned_row",
]
