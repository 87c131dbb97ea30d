"""Every study can be imported; what it imports from ccmem exists."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import studies

NAMES = [
    module.name
    for module in pkgutil.walk_packages(studies.__path__, "studies.")
    if not module.name.endswith(".__main__")
]


@pytest.mark.parametrize("name", NAMES)
def test_a_study_can_be_imported(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as problem:
        missing = str(problem.name).partition(".")[0]
        if missing in ("ccmem", "studies", "benchmarks"):
            raise
        pytest.skip(f"{missing} is not installed")
