"""Integer codes for missing labels, rejected samples and lines of the journal."""

UNLABELED = -1
"""Code of a missing label."""
REJECTED = -1
"""Winner of a sample that the memory rejected."""

NEW_BLOCK, RECALL, MERGE, MOVE, REMOVE, QUESTION, COLUMN_LOST, COLUMN_BACK = range(8)
"""Kinds of journal lines.

Blocks that begin or return; units that merge, change their index or are removed (``from``; their learned state is
discarded); columns (``from``) that lose their readings or regain them while block ``to`` is in use. A question is the
last line: the kernel that writes it stops, so that the model can answer it and call the kernel again.
"""

EVIDENCE_UNIT = 1000
"""Units of stored evidence per 1.0; evidence is stored in thousandths because journals hold integers."""
