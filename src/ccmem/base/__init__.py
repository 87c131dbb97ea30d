"""Shared parts of all estimators: validation, saving, chunks, growth and prediction."""
