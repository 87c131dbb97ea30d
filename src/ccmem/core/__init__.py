"""Parameters, labels, events, state, allocation and locking, used by every other package."""
