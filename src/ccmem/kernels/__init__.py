"""Compiled arithmetic: who wins, how winners move, how many rows are matched at once. No module here knows a model."""
