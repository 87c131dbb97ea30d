"""The paper's experiments: rows of the tables, the protocols they run in, their trials, and tuning."""

from ccmem.paper.experiments.rival_rows import rival_names, rival_row, rival_rows, rivals, tuned_rows
from ccmem.paper.experiments.table_rows import (
    KINDS,
    TRAINING_IMAGES,
    TUNED,
    Row,
    Standing,
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
    "Standing",
    "changed",
    "model_class",
    "model_names",
    "other_rows",
    "paper",
    "paper_row",
    "rival_names",
    "rival_row",
    "rival_rows",
    "rivals",
    "rows",
    "settings",
    "tuned",
    "tuned_row",
    "tuned_rows",
]
