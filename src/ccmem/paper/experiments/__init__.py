"""The paper's experiments: rows of the tables, the protocols they run in, their trials, and tuning."""

from ccmem.paper.experiments.table_rows import (
    KINDS,
    TUNED,
    Row,
    changed,
    model_class,
    model_names,
    named_row,
    paper,
    rival_row,
    rivals,
    rows,
    rows_to_tune,
    settings,
    tuned,
    tuned_row,
)

__all__ = [
    "KINDS",
    "TUNED",
    "Row",
    "changed",
    "model_class",
    "model_names",
    "named_row",
    "paper",
    "rival_row",
    "rivals",
    "rows",
    "rows_to_tune",
    "settings",
    "tuned",
    "tuned_row",
]
