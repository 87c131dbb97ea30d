"""Validation of rows: arrays are what they claim to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmem import AdaptiveCCM, IncrementalWTA, ModalClassifier


class Contradiction:
    """An object with a shape that differs from that of its array."""

    def __init__(self, *shape: int) -> None:
        self.shape, self.ndim = shape, len(shape)

    def __len__(self) -> int:
        return 3

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.eye(5)[:3]


@pytest.mark.parametrize("model", [AdaptiveCCM(), IncrementalWTA(2), ModalClassifier(IncrementalWTA(2))])
def test_an_array_that_contradicts_its_shape_is_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="says it has 4 columns and converts to an array of 5"):
        model.partial_fit(Contradiction(3, 4), [0, 1, 0])
    with pytest.raises(ValueError, match="says it has 0 columns and converts to an array of 5"):
        model.partial_fit(Contradiction(3), [0, 1, 0])
    assert not model.__sklearn_is_fitted__()
    model.partial_fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="converts to an array of 5"):
        model.partial_fit(Contradiction(3, 4), [0, 1, 0])


def test_more_winners_than_units_are_refused_also_in_a_checkpoint() -> None:
    memory = IncrementalWTA(3).partial_fit(np.eye(3)).set_params(n_winners=2**53)
    memory.partial_fit(np.eye(3))  # all of them win
    with pytest.raises(ValueError, match="n_winners=9007199254740992 cannot exceed n_units=3"):
        type(memory)(3, n_winners=2**53)._import(memory._export())
