"""Reference implementations of the models in plain numpy, one per file, written from their equations."""
