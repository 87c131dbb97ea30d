"""Registry: one line makes a class public everywhere; a new model is a file and that line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ccmem
from ccmem import registry

PACKAGE = Path(ccmem.__file__).parent
TESTS = Path(__file__).parent

MODEL = '''
"""One unit that follows the stream.

>>> import numpy as np
>>> Follower(learning_rate=0.5).fit(np.array([[0.0], [4.0]])).prototypes_
array([[2.]])
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ccmem.base.memory import CompetitiveMemory
from naive import plain
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import copy_scaled, count_win, hebbian_move
from ccmem.core.state import SEEN, UNITS, UnitState, new_units
from ccmem.core.parameters import number


def naive(X, learning_rate):
    M, C = X[0], 1
    for x in X[1:]:
        M, C = plain.faded(M + X.dtype.type(learning_rate) * (x - M)), C + 1
    return {"prototypes_": [M], "learning_rates_": [learning_rate], "win_counts_": [C], "winners": [0] * len(X)}


class FollowerSettings(NamedTuple):
    learning_rate: float


@kernel_in_place
def learn(state, settings, X, winners):
    for r in range(X.shape[0]):
        if state.counters[UNITS] == 0:
            copy_scaled(state.prototypes[0], X[r], 1.0)
            state.counters[UNITS] = 1
        else:
            hebbian_move(state.prototypes[0], X[r], settings.learning_rate)
        count_win(state.rates, state.wins, 0, 1.0)
        winners[r] = 0
        state.counters[SEEN] += 1
    return X.shape[0]


class Follower(CompetitiveMemory):
    """One unit."""

    _rules: ClassVar[Any] = {"learning_rate": number(0.0, 1.0, open_below=True)}
    _shape_parameters = ()
    _learn_kernel = staticmethod(learn)

    def __init__(self, learning_rate=0.1):
        self.learning_rate = learning_rate

    def _new_state(self, n_features, dtype, rng):
        return new_units(1, n_features, dtype, self.learning_rate)

    def _settings(self):
        return FollowerSettings(float(self.learning_rate))
'''
LINE = "from ccmem.models.follower import Follower as Follower\n"
USE = """
import sys
import numpy as np
import ccmem
from ccmem import registry
from ccmem.cli import main
from zoo import ALL, parameters

assert ccmem.Follower in ALL and "learning_rate" in parameters(ccmem.Follower)
memory = ccmem.Follower().fit(np.eye(3))
memory.save("follower.safetensors")
assert (ccmem.load("follower.safetensors").prototypes_ == memory.prototypes_).all()
np.savetxt("x.csv", np.eye(3), delimiter=",", header="a,b,c", comments="")
assert main(["learn", "x.csv", "--model", "follower", "--param", "learning_rate=0.5", "--checkpoint", "c"]) == 0
assert main(["predict", "x.csv", "--checkpoint", "c"]) == 0
sys.path.insert(0, sys.argv[1])
import make_api
assert "   Follower\\n" in make_api.page()
"""


@pytest.fixture(scope="module")
def with_follower(tmp_path_factory):
    """Return the environment of a process that sees the package with one more model."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(PACKAGE, source / "ccmem", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "ccmem" / "models" / "follower.py").write_text(MODEL)
    with (source / "ccmem" / "__init__.pyi").open("a") as listed:
        listed.write(LINE)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(TESTS)])}


def run(words, environment, folder):
    done = subprocess.run([sys.executable, *words], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_a_file_and_a_line_make_a_model(with_follower, tmp_path):
    run(["-c", USE, str(TESTS.parent / "docs")], with_follower, tmp_path)


def test_the_generic_tests_try_it(with_follower, tmp_path):
    chosen = "Follower and (twin or cut or holds_no_view or bad_rows)"
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-c", str(TESTS.parent / "pyproject.toml")]
    printed = run(["-m", "pytest", *options, str(TESTS / "test_every_model.py"), "-k", chosen], with_follower, tmp_path)
    assert "passed" in printed


def test_every_listed_name_is_there():
    for name in [*registry.PUBLIC, *(module for module in registry.MODULES if module not in ("river", "torch"))]:
        assert registry.load(name) is not None
    for name, module in registry.PUBLIC.items():
        assert getattr(ccmem, name).__module__.startswith(module), name


def test_only_public_names_are_seen():
    assert set(dir(ccmem)) == {*ccmem.__all__, *registry.MODULES}
    assert ccmem.plots.memory_grid
    with pytest.raises(AttributeError, match="no attribute 'CMC'"):
        _ = ccmem.CMC


def test_every_word_of_the_command_is_one_model():
    assert registry.COMMAND_WORDS["adaptive"] == "AdaptiveCCM"
    assert list(registry.COMMAND_WORDS.values()) == [*registry.MEMORIES, *registry.PREDICTORS]
