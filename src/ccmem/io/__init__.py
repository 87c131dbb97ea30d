"""Streams of samples and persistence of memories."""
