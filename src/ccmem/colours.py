"""One colour for every block, and one colour and sign for each kind of event, in figures and on the live page alike."""

from __future__ import annotations

BLOCKS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#7A9A01", "#B5651D", "#5F6B7A")
"""Told apart with any kind of colour vision as far as that goes; the eleventh block has the first colour again."""
NEW, RECALL, LOST, BACK, ALARM = "#C2410C", "#1D4ED8", "#7C3AED", "#0F766E", "#C0392B"
SIGNS = {
    "new_block": ("D", "◆", NEW, "new block"),
    "recall": ("o", "●", RECALL, "recalled"),
    "column_lost": ("v", "▼", LOST, "column lost"),
    "column_back": ("^", "▲", BACK, "column back"),
}
"""Kind of event -> matplotlib's marker, the sign in text, colour, words."""
INK, GREY, PALE = "#22272E", "#6E7781", "#D0D7DE"


def block_colour(block: int) -> str:
    """The colour of a block."""
    return BLOCKS[block % len(BLOCKS)]
