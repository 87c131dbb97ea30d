"""``ccmem tune``: search for better settings of a model on a validation split, never on test data."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ccmem.io.persistence.atomic import write_whole
from ccmem.paper.datasets import entry_of, load
from ccmem.paper.experiments import model_names, rivals, settings
from ccmem.paper.experiments.tuning import tune


def run(options: argparse.Namespace) -> int:
    models = options.models or model_names()
    models = [name for model in models for name in (settings()["family"] if model == "family" else [model])]
    known = [*model_names(), *settings()["family"], *rivals()["rows"]]
    unknown = [model for model in models if model not in known]
    if unknown:
        raise ValueError(f"unknown model {unknown[0]!r}; there are {', '.join(known)}")
    if options.candidates < 1:
        raise ValueError(f"--candidates {options.candidates} is not possible; it must be at least 1")
    name = entry_of(options.dataset).name
    path = Path(options.out)
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    data = load(name, folder=options.data, pixels=settings()["datasets"][name]["pixels"])
    tuned: dict[str, Any] = {}
    for model in models:
        command = f"ccmem tune {name} --models {model} --candidates {options.candidates} --seed {options.seed}"
        asked = data, model, options.candidates, options.seed, command
        tuned[model] = tune(*asked, jobs=options.jobs, dask=options.dask, say=_say)
        found.setdefault(name, {}).update(tuned[model])
        write_whole(path, (json.dumps(found, indent=1) + "\n").encode())
    if options.json:
        json.dump({row: entry for rows in tuned.values() for row, entry in rows.items()}, sys.stdout, indent=1)
        print()
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
