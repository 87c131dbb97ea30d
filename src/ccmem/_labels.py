"""Labels as every classifier here takes them: any of them may be missing, and new ones may come at any time."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from ccmem._typing import BoolArray, IntArray

UNLABELED = -1
"""Code of a missing label."""


def check_labels(y: Any, n_rows: int, unlabeled: Any = None) -> tuple[Any, BoolArray]:
    """Labels as an array, and which of them are missing: None, NaN, or equal to ``unlabeled``."""
    if y is None:
        return np.empty(n_rows), np.ones(n_rows, np.bool_)
    labels = column_or_1d(np.asarray(y), warn=True, dtype=None)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels for {n_rows} rows of X; give one label per row")
    if labels.dtype.kind in "US":
        labels = labels.astype(object)
    missing = np.fromiter(map(_is_missing, labels.tolist()), np.bool_, n_rows)
    if unlabeled is not None:
        missing |= np.asarray(labels == unlabeled, np.bool_)
    if not missing.all():
        known = labels[~missing]
        check_classification_targets(known)
        if type_of_target(known) == "unknown":
            raise ValueError(f"Unknown label type: {known[0]!r} in y; labels must be numbers or strings")
    return labels, missing


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or pandas' NA (which will not even say whether it equals itself)."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def sorted_union(*labels: Any) -> Any:
    """All distinct labels, sorted, in the type of the first array that has any."""
    parts = [part for part in labels if len(part)]
    if not parts:
        return labels[0]
    try:
        return np.unique(np.concatenate([np.asarray(part) for part in parts]))
    except TypeError as problem:
        raise ValueError(
            f"y mixes labels that cannot be sorted together ({problem}); use numbers or strings, not both"
        ) from problem


def encode_labels(labels: Any, missing: BoolArray, classes: Any) -> IntArray:
    """Place of every label among the sorted ``classes``, UNLABELED where it is missing."""
    codes = np.full(len(labels), UNLABELED, np.int64)
    codes[~missing] = np.searchsorted(classes, labels[~missing].astype(classes.dtype))
    return codes


def code_of(classes: Any, y: Any, unlabeled: Any = None) -> int | None:
    """Code of one label already known, UNLABELED for a missing one, None if it takes a closer look."""
    if y is None:
        return UNLABELED
    if unlabeled is not None or y != y:
        return None
    place = np.flatnonzero(classes == y)
    return int(place[0]) if place.size else None
