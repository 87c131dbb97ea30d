"""Labels of classifiers: any label may be missing, and new classes may appear at any time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.codes import UNLABELED as UNLABELED
from ccmem.core.sklearn import check_classification_targets, column_or_1d
from ccmem.core.typing import BoolArray, IntArray

_FEW = 16
"""Labels that are looked up one by one; more are quicker to look at together."""
_REMEDY = "use numbers or strings as labels, not both"


def check_labels(y: Any, n_rows: int, unlabeled: Any = None) -> tuple[Any, BoolArray]:
    """Return labels as an array and a mask of missing ones (None, NaN or equal to ``unlabeled``)."""
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
        missing = np.asarray(labels != labels, np.bool_)  # NaN differs from itself
        if unlabeled is not None:
            missing |= labels == unlabeled
    if labels.dtype.kind not in "biufUSO":
        raise ValueError(f"y holds labels of type {labels.dtype}; {_REMEDY}: y.astype(str) turns dates into strings")
    known = labels[~missing]
    if known.dtype.kind == "f" and np.isinf(known).any():
        raise ValueError("y contains infinity, which is not a label; mark rows without a label with NaN or None")
    if len(known):
        check_classification_targets(known)
    return labels, missing


def _as_array(y: Any) -> Any:
    """Convert lists and series through objects.

    numpy alone would turn NaN among strings into "nan", and integers with gaps into floats.
    """
    for method in ("to_pylist", "to_list"):  # Arrow; pandas and polars
        if hasattr(y, method):
            y = getattr(y, method)()
    return np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)


def _of_one_kind(values: list[Any], missing: BoolArray) -> Any:
    """Convert Python objects to one type: strings stay objects, numbers become a numeric array."""
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
    """True if a label is None, NaN or pandas.NA (which does not compare equal to itself)."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def sorted_union(*labels: Any) -> Any:
    """Return all distinct labels, sorted, in the type of the first non-empty array."""
    parts = [np.asarray(part) for part in labels if len(part)]
    if not parts:
        return labels[0]
    try:
        return np.unique(np.concatenate([parts[0], *(_like(parts[0], part) for part in parts[1:])]))
    except TypeError as problem:
        raise ValueError(f"y mixes labels that cannot be sorted together ({problem}); {_REMEDY}") from problem


def _like(first: Any, labels: Any) -> Any:
    """Return ``labels`` in the type of ``first``; numpy alone would turn numbers among texts into texts.

    Whole numbers stay whole numbers: floats would equate labels beyond 2**53 that differ by one.
    """
    numbers = [array.dtype.kind in "biuf" for array in (first, labels)]
    if numbers[0] != numbers[1] and not any(array.dtype.kind == "O" for array in (first, labels)):
        raise TypeError(f"{first[:1].tolist()[0]!r} and {labels[:1].tolist()[0]!r}")
    if not all(numbers) or first.dtype == labels.dtype or np.result_type(first, labels).kind in "biu":
        return labels
    with np.errstate(invalid="ignore"):  # a number that does not fit is noticed below
        same = labels.astype({"f": np.float64, "u": np.uint64}.get(first.dtype.kind, np.int64))
    if (same.astype(labels.dtype) == labels).all() and (np.abs(same.astype(np.float64)) <= 2.0**53).all():
        return same
    if labels.dtype.kind == "f" and (np.abs(first.astype(np.float64)) <= 2.0**53).all():
        return labels
    wide = max(labels.tolist(), key=abs)
    raise ValueError(
        f"y holds {wide!r} among labels of type {first.dtype}, which cannot hold it exactly; "
        "use whole numbers below 2**53, or strings"
    )


def encode_labels(labels: Any, missing: BoolArray, classes: Any) -> IntArray:
    """Return the index of every label in the sorted ``classes``, UNLABELED where the label is missing."""
    codes = np.full(len(labels), UNLABELED, np.int64)
    codes[~missing] = np.searchsorted(classes, labels[~missing].astype(classes.dtype))
    return codes


def codes_by_label(owner: Any) -> dict[Any, int]:
    """Code of every label in ``owner.classes_``, and UNLABELED for those that mean no label; kept until they change."""
    kept = owner.__dict__.get("_label_codes")
    if kept is None or kept[0] is not owner.classes_ or kept[1] is not owner.unlabeled:
        codes = {label: code for code, label in enumerate(owner.classes_.tolist())}
        codes[None] = UNLABELED
        if owner.unlabeled is not None:
            codes[owner.unlabeled] = UNLABELED
        kept = owner.__dict__["_label_codes"] = owner.classes_, owner.unlabeled, codes
    found: dict[Any, int] = kept[2]
    return found


def code_of(owner: Any, y: Any) -> int | None:
    """Code of one label already known to ``owner``, UNLABELED for a missing one, None if it takes a closer look."""
    try:
        return codes_by_label(owner).get(y)
    except TypeError:  # no label at all: it cannot be hashed
        return None


def known_codes(owner: Any, y: Any, n_rows: int) -> IntArray | None:
    """Codes of a few labels all of which ``owner`` knows, or None: scikit-learn takes long to look at one label."""
    if type(y) is np.ndarray and y.shape == (n_rows,) and n_rows <= _FEW:
        y = y.tolist()
    if type(y) not in (list, tuple) or len(y) != n_rows or n_rows > _FEW:
        return None
    codes = [code_of(owner, label) for label in y]
    return None if None in codes else np.array(codes, np.int64)
