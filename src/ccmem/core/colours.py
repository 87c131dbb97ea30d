"""Colours of blocks and markers of events, shared by figures and the live page."""

from __future__ import annotations

BLOCKS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#7A9A01", "#B5651D", "#5F6B7A")
"""A palette for any colour vision (Okabe and Ito, extended); block 11 reuses the first colour."""
NEW, RECALL, LOST, BACK, ALARM = "#C2410C", "#1D4ED8", "#7C3AED", "#0F766E", "#C0392B"
SIGNS = {
    "new_block": ("D", "◆", NEW, "new block"),
    "recall": ("o", "●", RECALL, "recalled"),
    "column_lost": ("v", "▼", LOST, "column lost"),
    "column_back": ("^", "▲", BACK, "column back"),
}
"""Kind of event -> matplotlib marker, text symbol, colour, label."""
INK, GREY, PALE = "#22272E", "#6E7781", "#D0D7DE"


def block_colour(block: int) -> str:
    """Return the colour of a block."""
    return BLOCKS[block % len(BLOCKS)]
