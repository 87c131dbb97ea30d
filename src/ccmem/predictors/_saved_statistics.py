"""A discriminant classifier's state as it comes from a checkpoint, looked at before it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.kernels.packed import diagonal
from ccmem.memory import aligned
from ccmem.persistence.memories import check_names, check_vector
from ccmem.predictors._statistics import COUNTERS, Statistics

if TYPE_CHECKING:
    from ccmem.predictors.discriminant import DiscriminantClassifier


def check_statistics(owner: DiscriminantClassifier, fields: dict[str, Any]) -> Statistics:
    """The state in ``fields``, or ValueError if learning could not have led to it."""
    name = type(owner).__name__
    needed = (
        "counts",
        "classes",
        "scatter",
        "buffer",
        "buffer_codes",
        "calibration",
        "counters",
        "classes_",
        "n_features_in_",
    )
    check_names(name, fields, needed, ("feature_names_in_",))
    check_names(name, fields["counters"], COUNTERS)
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
    counts = fields["counters"]
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts.values()):
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
