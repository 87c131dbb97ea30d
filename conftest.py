"""Doctests of what needs PyTorch are passed over where it is not installed; so are its tests."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/ccmem/torch.py"]
