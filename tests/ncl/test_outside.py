"""Models in a user's file: speed, cache, labels, River, checkpoints and the command line."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import ccmem
from ccmem.cli import main
from ccmem.kernels.jit import JIT_ENABLED

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from user_models import ChainMap, OwnMetric, largest_gap  # noqa: E402

X = np.random.default_rng(0).random((300, 4))
y = (X[:, 0] > 0.5).astype(int)


def test_the_plain_reference_is_the_kernel():
    for step in ("hebbian", "adam", "rmsprop"):
        model = ChainMap(6, radius=2.0, step=step)
        np.testing.assert_array_equal(model.plain().partial_fit(X).prototypes_, model.partial_fit(X).prototypes_)


def test_parameters_come_from_the_parts():
    assert list(ChainMap().get_params()) == sorted(
        ["n_units", "p", "radius", "learning_rate", "rate_decay", "step", "beta_1", "beta_2", "init"]
    )
    with pytest.raises(ValueError, match="radius=-1"):
        ChainMap(radius=-1).fit(X)
    assert "chain" in ChainMap().kernel_source


def test_saved_loaded_and_continued(tmp_path):
    whole = ChainMap(6).partial_fit(X)
    ChainMap(6).partial_fit(X[:100]).save(tmp_path / "model")
    with pytest.raises(ccmem.CheckpointError, match=r"classes=\[ChainMap\]"):
        ccmem.load(tmp_path / "model")
    with pytest.raises(TypeError, match="not a class of models"):
        ccmem.load(tmp_path / "model", classes=["user_models:ChainMap"])
    again = ccmem.load(tmp_path / "model", classes=[ChainMap]).partial_fit(X[100:])
    np.testing.assert_array_equal(again.prototypes_, whole.prototypes_)
    copies = (pickle.loads(pickle.dumps(whole)), ccmem.from_bytes(whole.to_bytes(), classes=[ChainMap]))
    for copy in copies:
        np.testing.assert_array_equal(copy.predict(X), whole.predict(X))


def test_labels(tmp_path):
    for model in (ccmem.ModalClassifier(ChainMap(20)), OwnMetric(10)):
        taught = clone(model).fit(X, y)
        assert taught.score(X, y) > 0.75
        taught.save(tmp_path / "model")
        again = ccmem.load(tmp_path / "model", classes=[ChainMap, OwnMetric])
        np.testing.assert_array_equal(again.predict(X), taught.predict(X))


def test_only_units_with_votes_answer():
    memory = type("ByLargestGap", (ccmem.ncl.Model,), {"activation": largest_gap})(20)
    taught = ccmem.ModalClassifier(memory).partial_fit(X, None).partial_fit(X[:3], y[:3])
    voters = np.flatnonzero(taught.votes_.any(axis=1))
    assert 0 < len(voters) <= 3
    gaps = np.abs(X[:, np.newaxis] - taught.memory_.prototypes_[voters]).max(axis=2)
    np.testing.assert_array_equal(taught.predict_units(X)[1], voters[gaps.argmin(axis=1)])


def test_stack_and_river():
    images = np.random.default_rng(0).random((40, 16))
    layer = ccmem.PatchLayer(4, patch_size=2, grid=2, learning_images=10, patches_per_image=9, random_state=0)
    stack = ccmem.Stack([layer], ChainMap(6)).partial_fit(images)
    assert len(stack.predict(images)) == len(images)
    river = pytest.importorskip("ccmem.river")
    model = river.MemoryClusterer(ChainMap(6))
    for row in X[:20]:
        model.learn_one(dict(enumerate(row.tolist())))
    assert model.predict_one(dict(enumerate(X[0].tolist()))) >= 0


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_models.py").write_text((HERE / "user_models.py").read_text())
    np.savetxt("x.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,y", comments="")
    learn = ["learn", "x.csv", "--label", "y", "--model", "own_models:ChainMap", "--checkpoint", "c", "--quiet"]
    assert main(learn) == 0
    assert main(learn) == 0  # resumes
    assert main(["predict", "x.csv", "--checkpoint", "c", "--model", "own_models:ChainMap", "--out", "p.csv"]) == 0
    assert main(["learn", "x.csv", "--label", "y", "--model", "own_models:OwnMetric", "--checkpoint", "d"]) == 0
    capsys.readouterr()
    assert main(["predict", "x.csv", "--checkpoint", "c"]) != 0
    assert "classes=[ChainMap]" in capsys.readouterr().err
    for wrong in ("own_models:Nothing", "no_module:ChainMap", "os.path:join"):
        assert main(["learn", "x.csv", "--model", wrong, "--checkpoint", "e"]) != 0
        assert wrong in capsys.readouterr().err
    (tmp_path / "faulty_models.py").write_text(FAULTY)
    assert main(["learn", "x.csv", "--model", "faulty_models:Faulty", "--checkpoint", "f"]) == 1
    assert "ccmem learn: activation 'faulty' (faulty_models.py, line 6)" in capsys.readouterr().err


FAULTY = """
from ccmem import ncl

@ncl.activation
def faulty(settings, x, prototype):
    return x[99]

class Faulty(ncl.Model):
    activation = faulty
"""


LEARN = """
import sys, time
import numpy as np, numba
from numba.core import event
from user_models import ChainMap
with event.install_recorder("numba:compile") as compiled:
    ChainMap(6).partial_fit(np.eye(4))
print(len([e for e in compiled.buffer if e[1].is_start]))
"""


@pytest.mark.skipif(not JIT_ENABLED, reason="nothing is compiled")
def test_a_kernel_is_compiled_once_and_again_when_a_part_changes(tmp_path):
    source = (HERE / "user_models.py").read_text()
    helper = "def weight(gap):\n    return 1.0 / (1.0 + gap)\n"
    source = source.replace("1.0 / (1.0 + gap)", "weight(gap)").replace(
        "from ccmem import ncl",
        "from ccmem import ncl\nimport numba\nimport helper\nweight = numba.njit(helper.weight)",
    )
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    environment = {**os.environ, "CCMEM_KERNEL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": path}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    (tmp_path / "user_models.py").write_text(source)

    def compiled():
        done = subprocess.run([sys.executable, "-c", LEARN], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return int(done.stdout)

    (tmp_path / "helper.py").write_text(helper)
    assert compiled() > 0
    assert compiled() == 0
    (tmp_path / "helper.py").write_text(helper.replace("1.0 + gap", "2.0 + gap"))
    assert compiled() > 0
