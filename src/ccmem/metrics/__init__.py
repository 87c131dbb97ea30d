"""Pure functions of a task matrix R, of labels, or of events."""
