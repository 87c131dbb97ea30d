"""Scoreboard: one table of all benchmarks of a decision rule; see ``python -m studies.scoreboard --help``."""
