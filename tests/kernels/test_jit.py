"""Kernel cache: never stale, and a long compile is reported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import ccmem
from ccmem.kernels.jit import JIT_ENABLED, kernel_in_place
from ccmem.kernels.sources import source_digest

PACKAGE = Path(ccmem.__file__).parent
needs_jit = pytest.mark.skipif(not JIT_ENABLED, reason="nothing is compiled with the JIT off")


def run(code, source, cache, input=None, check=True, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(source), "CCMEM_KERNEL_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
        input=input,
        check=check,
    )


@needs_jit
def test_kernels_that_check_their_bounds_are_kept_apart(tmp_path):
    code = (
        "import sys; import numpy as np; from ccmem.core.state import JOURNALED;"
        "from ccmem.kernels.journal import note; counters = np.zeros(3, np.int64);"
        "counters[JOURNALED] = int(sys.stdin.read()); note(counters, np.zeros((2, 6), np.int64), 0, 0, 0, 0)"
    )
    for environment, line, good in ({}, "1", True), ({"NUMBA_BOUNDSCHECK": "1"}, "5", False):
        done = run(code, PACKAGE.parent, tmp_path, input=line, check=good, **environment)
        assert ("IndexError" in done.stderr) is not good


@needs_jit
def test_editing_a_helper_in_another_file_is_noticed(tmp_path):
    source, cache = tmp_path / "src", tmp_path / "cache"
    shutil.copytree(PACKAGE, source / "ccmem", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import numpy as np; from ccmem.kernels.update import renormalising_move as f; m = np.array([1.0, 0.0]);"
        "f(m, np.array([0.0, 2.0]), 0.5, 0.5, 0.0); print(m.sum() > 5, sum(f.stats.cache_hits.values()))"
    )
    assert run(code, source, cache).stdout.split() == ["False", "0"]
    assert run(code, source, cache).stdout.split() == ["False", "1"]
    helper = source / "ccmem" / "kernels" / "lanes.py"
    old = "builder.fmul(x, y)"
    planted = "builder.fmul(x, builder.fmul(y, ir.Constant(y.type, [0.01] * LANES)))"
    text = helper.read_text()
    assert old in text
    helper.write_text(text.replace(old, planted))
    assert run(code, source, cache).stdout.split() == ["True", "0"]


@needs_jit
def test_another_environment_of_the_same_version_compiles_nothing(tmp_path):
    """Load a kernel from a copy of the package in another folder, with other times of its files."""
    code = (
        "import numpy as np; from ccmem.kernels.competition import unit_scale as f; f(np.ones(3), 0.0);"
        "print(sum(f.stats.cache_hits.values()), sum(f.stats.cache_misses.values()))"
    )
    printed = []
    for name in ("first", "second"):
        source = tmp_path / name / "lib"
        shutil.copytree(
            PACKAGE, source / "ccmem", ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile
        )
        printed.append(run(code, source, tmp_path / "cache").stdout.split())
    assert printed == [["0", "1"], ["1", "0"]]


@needs_jit
def test_editing_what_no_kernel_needs_recompiles_nothing(tmp_path):
    source, cache = tmp_path / "src", tmp_path / "cache"
    shutil.copytree(PACKAGE, source / "ccmem", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import numpy as np; from ccmem.kernels.competition import unit_scale as f; f(np.ones(3), 0.0);"
        "print(sum(f.stats.cache_hits.values()))"
    )
    assert run(code, source, cache).stdout.split() == ["0"]
    for elsewhere in ("paper/report/page.py", "base/memory.py"):  # only the second is part of the source of a kernel
        file = source / "ccmem" / elsewhere
        file.write_text(file.read_text() + "\n# changed\n")
    assert run(code, source, cache).stdout.split() == ["1"]


def test_only_what_python_calls_has_a_cache_file(tmp_path):
    code = "import numpy as np; from ccmem.kernels.update import renormalise; renormalise(np.ones(3), 0.0)"
    run(code, PACKAGE.parent, tmp_path)
    assert [path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")] == ["update.renormalise"] * JIT_ENABLED


@needs_jit
def test_variants_of_a_kernel_are_compiled_when_a_stream_needs_them(tmp_path):
    code = "import numpy as np, ccmem; ccmem.AdaptiveCCM().partial_fit(np.random.default_rng(0).random((60, 3)))"
    run(code, PACKAGE.parent, tmp_path)
    names = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert "kernels.learn" in names
    assert not names & {"kernels.learn_with_gaps", "kernels._learn_voting"}


def test_the_source_of_a_module_is_that_of_all_it_imports(tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text("from ccmem.kernels import (\n    update,\n)\n")
    assert source_digest(outside) != source_digest("ccmem.kernels.update") == source_digest("ccmem.kernels.update")
    assert source_digest("ccmem.paper.report") != source_digest("ccmem.kernels.update")


@needs_jit
def test_an_unwritable_cache_is_no_obstacle(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = "import numpy as np; from ccmem.kernels.competition import root; print(root(9.0, 2.0))"
    assert run(code, PACKAGE.parent, blocked).stdout.strip() == "3.0"


@needs_jit
def test_a_long_compile_says_so_and_a_short_one_does_not(tmp_path):
    code = (
        "import ccmem.kernels.jit as j; j._SLOW_COMPILE_SECONDS = {}; import numpy as np;"
        "from ccmem.kernels.update import renormalise; renormalise(np.ones(3), 0.0)"
    )
    assert "compiling kernels" in run(code.format(0.01), PACKAGE.parent, tmp_path / "a").stderr
    assert run(code.format(0.01), PACKAGE.parent, tmp_path / "a").stderr == ""  # loaded, not compiled
    assert run(code.format(600), PACKAGE.parent, tmp_path / "b").stderr == ""


@needs_jit
def test_a_terminal_shows_the_progress_of_a_long_compile(tmp_path):
    """Pretend that stderr is a terminal: functions are counted up to at most their number, and the line is erased."""
    code = (
        "import sys; sys.stderr.isatty = lambda: True; import ccmem.kernels.jit as j; j._SLOW_COMPILE_SECONDS = 0.0;"
        "import numpy as np; from ccmem.kernels.update import renormalising_move as f;"
        "f(np.array([1.0, 0.0]), np.array([0.0, 2.0]), 0.5, 0.5, 0.0)"
    )
    lines = run(code, PACKAGE.parent, tmp_path).stderr.split("\x1b[K")
    counts = re.findall(r"(\d+) of (\d+) functions, now (\w+)", " ".join(lines))
    assert counts == [("0", "2", "renormalising_move"), ("0", "2", "renormalise")]
    assert lines[-1] == ""


@needs_jit
def test_a_kernel_in_place_cannot_allocate():
    @kernel_in_place
    def fill(n):
        return np.zeros(n).sum()

    with pytest.raises(numba.core.errors.NumbaError):
        fill(3)


def test_importing_ccmem_loads_nothing_heavy():
    code = (
        "import sys, ccmem, ccmem.cli; ccmem.cli.build_parser(); "
        "print([m for m in ('numpy', 'numba', 'sklearn', 'pyarrow', 'matplotlib') if m in sys.modules])"
    )
    assert run(code, PACKAGE.parent, "unused").stdout.strip() == "[]"


def test_scipy_stats_is_loaded_when_somebody_needs_it():
    code = (
        "import sys, ccmem; ccmem.AdaptiveCCM(); print('scipy.stats._stats_py' in sys.modules);"
        "import scipy.stats; from scipy.stats import norm; import scipy.stats.qmc;"
        "print(scipy.stats.norm is norm, float(norm.cdf(0)), scipy.stats.qmc.Sobol.__name__)"
    )
    assert run(code, PACKAGE.parent, "unused").stdout.split() == ["False", "True", "0.5", "Sobol"]


def test_pandas_is_loaded_when_somebody_needs_it():
    pytest.importorskip("pandas")
    code = (
        "import sys, ccmem; memory = ccmem.AdaptiveCCM(); print('pandas' in sys.modules);"
        "import pandas as pd; memory.partial_fit(pd.DataFrame({'a': [1.0, 2.0], 'b': [3.0, 4.0]}));"
        "kept = sys.modules['sklearn.utils.fixes'].pd; same = kept.__version__ == pd.__version__;"
        "print(*memory.feature_names_in_, pd.__name__, kept.DataFrame is pd.DataFrame, same)"
    )
    assert run(code, PACKAGE.parent, "unused", NUMBA_DISABLE_JIT="1").stdout.split() == [
        "False",
        *("a", "b", "pandas", "True", "True"),
    ]


def test_a_missing_pandas_stays_missing():
    code = (
        "import sys; sys.modules['pandas'] = None; import ccmem; ccmem.AdaptiveCCM();"
        "print(sys.modules['sklearn.utils.fixes'].pd)"
    )
    assert run(code, PACKAGE.parent, "unused", NUMBA_DISABLE_JIT="1").stdout.strip() == "None"
