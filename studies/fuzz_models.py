"""Forged checkpoints of every class, and forged stores of a fleet: refused, or something that works."""

from __future__ import annotations

import functools
import json
import random
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import CheckpointError, from_bytes, registry
from ccmem.app.learner import Learner
from ccmem.cli import main as command
from ccmem.fleet.store import Store, _signed
from ccmem.io.streams.errors import SourceError

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from forgery import forge
from studies.torture import MODELS, rows

NASTY: list[Any] = [None, True, -1, 0, 1, 2, 7, 2**31, 2**53, 2**62, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e300, 1e-320]
NASTY += [
    "",
    "x",
    "CCM",
    "$array",
    [],
    [0],
    {},
    {"$float": "nan"},
    {"$float": "inf"},
    {"$tuple": []},
    {"$objects": [1]},
]
NUMBERS = [0.0, 1.0, -1.0, 2.0, 255.0, 2.0**31, 2.0**53, 1e15, 1e70, 1e300, float("inf"), float("-inf"), float("nan")]
_FINE = (CheckpointError, SourceError, ValueError)


def _names() -> list[str]:
    """Names of everything that has a checkpoint: models with classifiers around them, and each class by itself."""
    return [*MODELS, *(f"class {name}" for name in registry.ESTIMATORS if name not in ("Stack", "ModalClassifier"))]


@functools.cache
def _learned(name: str) -> bytes:
    """Bytes of a model that has learned a little, as a checkpoint with a tensor for each array."""
    X, y = rows(0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in MODELS:
            model = MODELS[name]().partial_fit(X, y)
        else:
            kind = registry.load(name.removeprefix("class "))
            try:
                model = kind().partial_fit(X, y)
            except ValueError:  # it wants larger images, or parameters
                model = kind()
        model.save(Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


def make_checkpoint(rng: random.Random) -> Any:
    """A model, and some changes of its document and arrays: what, where, and to what."""
    kinds = ["value", "value", "remove", "number", "number", "all", "shape", "type", "rename", "copy"]
    changes = [
        [rng.choice(kinds), rng.random(), rng.random(), rng.choice(NUMBERS if rng.random() < 0.5 else NASTY)]
        for _ in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    return [rng.choice(_names()), json.loads(json.dumps(changes))]


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in nested lists and dictionaries."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(leaf for key, item in items for leaf in _leaves(item, (*path, key)))]


def _change(document: Any, arrays: dict[str, Any], kind: str, where: float, inside: float, value: Any) -> None:
    paths = _leaves(document)[1:]
    path = paths[int(where * len(paths))]
    parent = functools.reduce(lambda part, key: part[key], path[:-1], document)
    if kind == "value":
        parent[path[-1]] = value
    elif kind == "remove":
        del parent[path[-1]]
    elif kind == "rename" and isinstance(parent, dict):
        parent[str(value)] = parent.pop(path[-1])
    elif kind == "copy":
        other = paths[int(inside * len(paths))]
        parent[path[-1]] = json.loads(json.dumps(functools.reduce(lambda part, key: part[key], other, document)))
    elif arrays:
        name = sorted(arrays)[int(where * len(arrays))]
        array = arrays[name].copy()
        number = value if isinstance(value, (int, float)) else 3
        with np.errstate(all="ignore"):
            if kind == "number" and array.size:
                array.flat[int(inside * array.size)] = np.asarray(number, float).astype(array.dtype)
            elif kind == "all":
                array = np.full_like(array, np.asarray(number, float).astype(array.dtype))
            elif kind == "shape":
                array = array[: int(inside * 2 * len(array))] if inside < 0.5 or not array.ndim else array[..., None]
            elif kind == "type":
                array = array.astype(["<f8", "<f4", "<i8", "|u1", "|b1", "<u8"][int(inside * 6)])
        arrays[name] = array


def check_checkpoint(case: Any, folder: Path) -> str:
    """A forged checkpoint is refused by CheckpointError, or gives a model that works and can be saved."""
    name, changes = case

    def change(document: Any, arrays: Any, metadata: Any) -> None:
        for one in changes:
            try:
                _change(document, arrays, *one)
            except (LookupError, TypeError, AttributeError, ValueError, OverflowError, ZeroDivisionError):
                continue  # an earlier change has left nothing there

    try:
        data = forge(_learned(name), change)
    except (TypeError, ValueError, OverflowError, LookupError):
        return "not a file"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = from_bytes(data)
        except CheckpointError:
            return "refused"
        _use(model, folder)
    return "works"


def _use(model: Any, folder: Path) -> None:
    """Call what a user or the page would call; errors about values are fine, any other error fails."""
    X, y = rows(1)
    some = np.resize(X, (30, getattr(model, "n_features_in_", X.shape[1])))
    labels = getattr(model, "classes_", y)
    for call in ("repr", "explain", "predict", "partial_fit", "predict", "explain", "save"):
        try:
            if call == "repr":
                repr(model)
            elif call == "explain":
                memory = getattr(model, "memory_", model)
                for event in getattr(memory, "events_", [])[-20:]:
                    memory.explain(event)
            elif call == "predict" and hasattr(model, "predict"):
                model.predict(some)
            elif call == "partial_fit":
                model.partial_fit(some, np.resize(labels, 30) if len(labels) else None)
            elif call == "save":
                model.save(folder / "again")
                Learner.load(folder / "again")
        except _FINE as problem:
            if not str(problem):
                raise


# Stores -----------------------------------------------------------------------------------------------------------


@functools.cache
def _store() -> tuple[Path, Path]:
    """A store that has learned one file, and a file that is still to be learned."""
    folder = Path(tempfile.mkdtemp(prefix="ccmem-fuzz-store-"))
    for name, first in (("a", 0), ("b", 60)):
        lines = [
            f"{key},{time},{(key + time) % 7}.5,{time % 3}" for time in range(first, first + 60) for key in range(5)
        ]
        (folder / f"{name}.csv").write_text("key,time,x,y\n" + "\n".join(lines) + "\n")
    words = ["--key", "key", "--order", "time", "--buckets", "2", "--quiet"]
    assert command(["fleet", "learn", str(folder / "a.csv"), "--store", str(folder / "s"), *words]) == 0
    return folder / "s", folder / "b.csv"


def make_store(rng: random.Random) -> Any:
    """A change of the manifest, signed or not, or of bytes of a file of the store."""
    if rng.random() < 0.3:
        return ["bytes", rng.random(), [[rng.random(), rng.randrange(256)] for _ in range(rng.choice((0, 1, 4)))]]
    changes = [[rng.choice(("value", "remove", "copy")), rng.random(), rng.random(), rng.choice(NASTY)]]
    return ["manifest", rng.random() < 0.8, json.loads(json.dumps(changes))]


def check_store(case: Any, folder: Path) -> str:
    """A forged store is refused and stays as it is, or goes on to learn and can be read."""
    kind, how, changes = case
    original, new = _store()
    store = folder / "s"
    shutil.copytree(original, store)
    if kind == "manifest":
        manifest = json.loads((store / "manifest.json").read_text())
        for one in changes:
            try:
                _change(manifest, {}, *one)
            except (LookupError, TypeError):
                continue
        (store / "manifest.json").write_bytes(_signed(manifest) if how else json.dumps(manifest).encode())
    else:
        files = sorted(file for file in store.rglob("*") if file.is_file())
        file = files[int(how * len(files))]
        data = bytearray(file.read_bytes())
        for place, value in changes:
            data[int(place * len(data))] = value
        file.write_bytes(data if changes else data[: len(data) // 2])
    code = command(["fleet", "learn", str(new), "--store", str(store), "--quiet", "--late", "drop"])
    assert code in (0, 1), f"exit code {code}"
    if code:
        return "refused"
    opened = Store(store)
    for bucket in range(opened.buckets):
        for key, _ in opened.states(bucket):
            opened.member(key)
    return "works"
