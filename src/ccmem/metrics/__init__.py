"""Pure functions of a task matrix R, of labels, or of events."""

from ccmem.metrics.conformity import conformity
from ccmem.metrics.events import EventScore, score_events
from ccmem.metrics.maps import quantisation_error, topographic_error
from ccmem.metrics.retention import (
    average_accuracy,
    backward_transfer,
    backward_transfer_triangle,
    forgetting_best_to_last,
    forgetting_first_to_last,
)

__all__ = [
    "EventScore",
    "average_accuracy",
    "backward_transfer",
    "backward_transfer_triangle",
    "conformity",
    "forgetting_best_to_last",
    "forgetting_first_to_last",
    "quantisation_error",
    "score_events",
    "topographic_error",
]
