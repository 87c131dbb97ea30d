"""Numbers that stand for "none" wherever units and labels are numbers."""

UNLABELED = -1
"""Code of a missing label."""
REJECTED = -1
"""The winner of a sample that a memory did not learn."""

NEW_BLOCK, RECALL, MERGE, MOVE, REMOVE, QUESTION, COLUMN_LOST, COLUMN_BACK = range(8)
"""What a line of the journal tells: blocks that begin or return, units that merge, change their index or are removed
(``from``; nothing is left of what they learned), columns (``from``) without readings any more, or with readings again,
while block ``to`` is in use. A question is the last line: a kernel that writes it stops, for the model to answer it and
call the kernel again."""

EVIDENCE_UNIT = 1000
"""Journals and files hold whole numbers: evidence is kept in thousandths."""
