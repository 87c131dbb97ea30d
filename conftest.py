"""Doctests of what needs an optional package are passed over where it is missing; the end of a run names what was."""

from importlib.util import find_spec

SWITCHES = {"torch": "TORCH=1", "distributed": "DASK=1", "pyspark": "SPARK=1"}
"""Package -> what to say to ``make test`` to have it."""
MISSING = [package for package in SWITCHES if find_spec(package) is None]

collect_ignore = ["src/ccmem/torch.py"] if "torch" in MISSING else []


def pytest_terminal_summary(terminalreporter) -> None:
    if MISSING:
        switches = " ".join(SWITCHES[package] for package in MISSING)
        terminalreporter.write_line(f"Tests that need {', '.join(MISSING)} were left out: make test {switches}")
