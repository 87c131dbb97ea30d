"""Use ccmem as installed from a wheel, with only its declared dependencies: ``make dist`` runs this."""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import ccmem
from ccmem import registry
from ccmem.cli import main

SOURCES = Path(__file__).parents[1] / "src"
LEFT_OUT = ("torch", "pyarrow", "pandas", "river", "matplotlib")


def use(folder: Path) -> None:
    """Learn, predict, save, load and call the command."""
    rows = np.random.default_rng(0).random((60, 4))
    for name in registry.MEMORIES:
        memory = registry.load(name)().fit(rows)
        memory.save(folder / name)
        again = ccmem.load(folder / name)
        assert (again.predict(rows) == memory.predict(rows)).all(), name
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header="a,b,c,d", comments="")
    words = [str(folder / "rows.csv"), "--checkpoint", str(folder / "checkpoint")]
    assert main(["learn", *words]) == 0
    assert main(["predict", *words]) == 0
    assert ccmem.experiments.rows("mnist"), "the paper's settings are data files of the package"


if __name__ == "__main__":
    assert SOURCES not in Path(ccmem.__file__).parents, f"{ccmem.__file__} is not what was installed"
    assert not any(map(find_spec, LEFT_OUT)), "this environment has more than the wheel asks for"
    with tempfile.TemporaryDirectory() as folder:
        use(Path(folder))
    print(f"the wheel of ccmem {ccmem.__version__} works on Python {sys.version.split()[0]}")
