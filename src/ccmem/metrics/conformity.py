"""Agreement of predicted groups with true classes: FMI, ARI and V-measure, from scikit-learn.

>>> conformity([0, 0, 1, 1], [1, 1, 0, 0])
{'FMI': 1.0, 'ARI': 1.0, 'V-M': 1.0}
"""

from __future__ import annotations

from typing import Any


def conformity(true_classes: Any, predicted_groups: Any) -> dict[str, float]:
    """Return the Fowlkes-Mallows index, adjusted Rand index and V-measure; group names do not matter."""
    from sklearn.metrics import adjusted_rand_score, fowlkes_mallows_score, v_measure_score

    return {
        "FMI": float(fowlkes_mallows_score(true_classes, predicted_groups)),
        "ARI": float(adjusted_rand_score(true_classes, predicted_groups)),
        "V-M": float(v_measure_score(true_classes, predicted_groups)),
    }
