"""Settings shared by all tests: hypothesis without deadlines (a first call compiles), and image data if available."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

_quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("usual", deadline=None, max_examples=60, suppress_health_check=_quiet)
settings.register_profile("few", deadline=None, max_examples=8, suppress_health_check=_quiet)
settings.register_profile(  # studies/mutants.py: any failure is enough, and it must be reproducible
    "mutants", settings.get_profile("few"), phases=[Phase.explicit, Phase.generate], derandomize=True, database=None
)
_plain = "mutants" if os.environ.get("CCMEM_MUTANTS") == "1" else "few"
settings.load_profile(_plain if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "usual")


@pytest.fixture(scope="session")
def mnist() -> Any:
    """MNIST, if a copy is available (``CCMEM_DATA``, or the cache); tests download nothing."""
    from ccmem.paper.datasets import DataSetNotFound, load

    try:
        return load("mnist", download=False)
    except DataSetNotFound:
        pytest.skip("no copy of MNIST at hand; CCMEM_DATA may name a folder with one")


@pytest.fixture
def hang_up_heard() -> Iterator[None]:
    """Restore the default SIGHUP, because tests under nohup would inherit an ignored one."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
