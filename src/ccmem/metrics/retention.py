"""Retention metrics of a task matrix R, where R[i, j] is the accuracy on task j after learning task i.

Two different numbers are called BWT in the literature, and two "forgetting"; here each has its own name.

>>> R = np.array([[0.9, 0.0, 0.0], [0.7, 0.8, 0.0], [0.8, 0.6, 1.0]])
>>> round(average_accuracy(R), 4), round(backward_transfer(R), 4), round(backward_transfer_triangle(R), 4)
(0.8, -0.15, -0.1667)
>>> round(forgetting_first_to_last(R), 4), round(forgetting_best_to_last(R), 4)
(0.15, 0.15)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray


def _task_matrix(R: Any) -> FloatArray:
    matrix = np.asarray(R, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
        raise ValueError(f"R has the shape {matrix.shape}; it must be square, with one row and one column per task")
    lower = np.tril_indices(len(matrix))
    if not np.isfinite(matrix[lower]).all():
        raise ValueError(
            "R has gaps on or below its diagonal; every task must be tested after itself and all later ones"
        )
    return matrix


def average_accuracy(R: Any) -> float:
    """ACC: mean of the last row, (1/T) sum_j R[T, j]."""
    return float(_task_matrix(R)[-1].mean())


def backward_transfer(R: Any) -> float:
    """BWT as printed in the paper (also Avalanche, Mammoth): mean over j < T of R[T, j] - R[j, j]; 0 for one task."""
    matrix = _task_matrix(R)
    change = matrix[-1, :-1] - np.diag(matrix)[:-1]
    return float(change.mean()) if len(change) else 0.0


def backward_transfer_triangle(R: Any) -> float:
    """Alternative BWT (Continuum, CapyMOA): mean of R[i, j] - R[j, j] over the whole triangle i > j; 0 for one task."""
    matrix = _task_matrix(R)
    later, earlier = np.tril_indices(len(matrix), -1)
    change = matrix[later, earlier] - matrix[earlier, earlier]
    return float(change.mean()) if len(change) else 0.0


def forgetting_first_to_last(R: Any) -> float:
    """Mean loss from just after a task was learned to the end: minus BWT."""
    return -backward_transfer(R) + 0.0


def forgetting_best_to_last(R: Any) -> float:
    """Mean loss from the best accuracy since a task was learned to the end (Chaudhry et al. 2018)."""
    matrix = _task_matrix(R)
    losses = [matrix[task:, task].max() - matrix[-1, task] for task in range(len(matrix) - 1)]
    return float(np.mean(losses)) if losses else 0.0
