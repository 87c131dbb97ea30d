"""Integer codes for missing labels, rejected samples and lines of the journal."""

UNLABELED = -1
"""Code of a missing label."""
REJECTED = -1
"""Winner of a sample that the memory rejected."""

NEW_BLOCK, RECALL, COLUMN_LOST, COLUMN_BACK, MERGE, MOVE, REMOVE = range(7)
"""Kinds of journal lines.

Events: blocks that begin or return; columns (``from``) that lose their readings or regain them while block ``to`` is in
use. Changes of units: units that merge, change their index or are removed (``from``; their learned state is discarded).
"""

EVIDENCE_UNIT = 1000
"""Units of stored evidence per 1.0; evidence is stored in thousandths because journals hold integers."""
