"""Numbers that stand for "none" wherever units and labels are numbers."""

UNLABELED = -1
"""Code of a missing label."""
REJECTED = -1
"""The winner of a sample that a memory did not learn."""
