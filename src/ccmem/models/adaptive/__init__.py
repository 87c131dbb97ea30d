"""CCM without thresholds: what a block looks like, when that changes, and how units make room."""
