"""Numbers that stand for "none" wherever units and labels are numbers."""

UNLABELED = -1
"""Code of a missing label."""
REJECTED = -1
"""The winner of a sample that a memory did not learn."""

NEW_BLOCK, RECALL, MERGE, MOVE, REMOVE, QUESTION = range(6)
"""What a line of the journal tells: blocks that begin or return, units that merge, change their index or are removed
(``from``; nothing is left of what they learned). A question is the last line: a kernel that writes it stops, for the
model to answer it and call the kernel again."""
