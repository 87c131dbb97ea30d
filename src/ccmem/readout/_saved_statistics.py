"""Validation of a discriminant classifier's state loaded from a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.base.storage import check_names, check_vector
from ccmem.core.allocation import aligned
from ccmem.readout import _following as following
from ccmem.readout._following import Following
from ccmem.readout._statistics import COUNTERS, Statistics
from ccmem.readout.packed import diagonal

if TYPE_CHECKING:
    from ccmem.readout.discriminant import DiscriminantClassifier


def check_statistics(owner: DiscriminantClassifier, fields: dict[str, Any]) -> Statistics | Following:
    """Return the state in ``fields``; raise ValueError if learning cannot produce such a state."""
    name = type(owner).__name__
    follows = "scatters" in fields
    kind, counters = (Following, following.COUNTERS) if follows else (Statistics, COUNTERS)
    check_names(name, fields, (*kind._fields, "classes_", "n_features_in_"), ("feature_names_in_",))
    check_names(name, fields["counters"], counters)
    check_vector("classes_", fields["classes_"])
    if not np.array_equal(np.unique(fields["classes_"]), fields["classes_"]):
        raise ValueError(f"{name}: its classes are not sorted and distinct")
    d, n_classes = fields["n_features_in_"], len(fields["classes_"])
    if type(d) is not int or d < 1:
        raise ValueError(f"{name}: n_features_in_={d!r} is not a number of columns")
    if "feature_names_in_" in fields:
        check_vector("feature_names_in_", fields["feature_names_in_"], d)
    if not (owner.unlabeled is None or isinstance(owner.unlabeled, (str, int, float))):
        raise ValueError(f"{name}: unlabeled is neither text nor a number")
    counts = fields["counters"]
    if not all(type(count) is int and -1 <= count < 2**62 for count in counts.values()):
        raise ValueError(f"{name}: its counters are damaged")
    if follows:
        if owner.forgetting == "none" or not isinstance(fields["means"], np.ndarray):
            raise ValueError(f"{name}: its sums are not those of its settings")
        return following.checked_following(name, fields, d, n_classes)
    layout: dict[str, tuple[tuple[int, ...], Any]] = {
        "counts": ((n_classes,), np.int64),
        "classes": ((n_classes, 1 + owner.n_axes, d), np.float32),
        "scatter": ((d * (d + 1) // 2,), np.float32),
        "buffer": ((owner.buffer_rows, d), np.float32),
        "buffer_codes": ((owner.buffer_rows,), np.int64),
        "calibration": ((2,), np.float64),
    }
    for key, (shape, kind) in layout.items():
        array = fields[key]
        if not (isinstance(array, np.ndarray) and array.shape == shape and array.dtype == kind):
            raise ValueError(f"{name}: {key} is not an array of {np.dtype(kind)} of shape {shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name}: {key} holds NaN or infinity")
    if min(counts.values()) < 0:
        raise ValueError(f"{name}: its counters are damaged")
    waiting = counts["waiting"]
    codes = fields["buffer_codes"][:waiting]
    if waiting >= owner.buffer_rows or (codes.size and not (codes.min() >= 0 and codes.max() < n_classes)):
        raise ValueError(f"{name}: the rows that wait are damaged")
    if fields["counts"].min(initial=0) < 0 or fields["counts"].sum() + waiting != counts["taught"]:
        raise ValueError(f"{name}: its counts do not add up")
    if counts["taught"] > counts["seen"] or abs(fields["calibration"]).max() > 1e9:
        raise ValueError(f"{name}: its counters are damaged")
    if (fields["scatter"][diagonal(d)] < 0).any():
        raise ValueError(f"{name}: its scatter has negative variances")
    arrays = {key: aligned(fields[key]) for key in layout}
    return Statistics(**arrays, counters=np.array(list(counts.values()), np.int64))
