"""Labels as every classifier here takes them: any of them may be missing, and new ones may come at any time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._codes import UNLABELED as UNLABELED
from ccmem._sklearn import check_classification_targets, column_or_1d
from ccmem._typing import BoolArray, IntArray

_REMEDY = "use numbers or strings as labels, not both"


def check_labels(y: Any, n_rows: int, unlabeled: Any = None) -> tuple[Any, BoolArray]:
    """Labels as an array, and which of them are missing: None, NaN, or equal to ``unlabeled``."""
    if y is None:
        return np.empty(n_rows), np.ones(n_rows, np.bool_)
    labels = column_or_1d(_as_array(y), warn=True, dtype=None)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels for {n_rows} rows of X; give one label per row")
    if labels.dtype.kind in "OUS":
        values = labels.tolist()
        missing = np.fromiter((_is_missing(v) or (unlabeled is not None and v == unlabeled) for v in values), np.bool_)
        labels = _of_one_kind(values, missing)
    else:
        missing = np.asarray(labels != labels, np.bool_)  # NaN is not itself
        if unlabeled is not None:
            missing |= labels == unlabeled
    known = labels[~missing]
    if known.dtype.kind == "f" and np.isinf(known).any():
        raise ValueError("y contains infinity, which is not a label; mark rows without a label with NaN or None")
    if len(known):
        check_classification_targets(known)
    return labels, missing


def _as_array(y: Any) -> Any:
    """Lists and series go through objects: numpy alone would make the NaN among strings the string "nan", and whole
    numbers with gaps floats."""
    for method in ("to_pylist", "to_list"):  # Arrow; pandas and polars
        if hasattr(y, method):
            y = getattr(y, method)()
    return np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)


def _of_one_kind(values: list[Any], missing: BoolArray) -> Any:
    """Labels that came as Python objects: strings stay objects, numbers become an array of numbers."""
    known = [value for value, gone in zip(values, missing, strict=True) if not gone]
    texts = sum(isinstance(value, str) for value in known)
    if texts not in (0, len(known)):
        raise ValueError(f"y mixes labels that cannot be sorted together ({known[0]!r} and others); {_REMEDY}")
    labels = np.array(known) if known and not texts else np.array(known, dtype=object)
    if labels.ndim != 1 or labels.dtype.kind not in "biufO":
        raise ValueError(f"Unknown label type: {known[0]!r} in y; {_REMEDY}")
    whole = np.zeros(len(values), labels.dtype)
    whole[~missing] = labels
    return whole


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
        raise ValueError(f"y mixes labels that cannot be sorted together ({problem}); {_REMEDY}") from problem


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
