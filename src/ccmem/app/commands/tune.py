"""``ccmem tune``: search for better settings of a model on a validation split, never on test data."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

EPILOG = """\
example:
  ccmem tune mnist --models ccm iwta --candidates 24 --out tuned.json

What is found is written after every model; the spaces searched are in settings.toml and rivals.toml of
ccmem/experiments.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("dataset", metavar="DATASET", help="mnist, fashion-mnist, notmnist or digits")
    parser.add_argument(
        "--models", nargs="+", metavar="MODEL", help="iwta igmm art ccm mlp ccm-mlp (default: these), family, or rivals"
    )
    parser.add_argument("--candidates", type=int, default=24, metavar="N", help="settings to try a model (default: 24)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of split, search and streams (default: 0)"
    )
    parser.add_argument("--data", metavar="DIR", help="your folder with data sets (default: CCMEM_DATA)")
    parser.add_argument("--out", metavar="FILE", default="tuned.json", help="JSON file to add to (default: tuned.json)")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: one a core)")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on this Dask cluster; 'local' starts one of --jobs")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def run(options: argparse.Namespace) -> int:
    from ccmem.io.persistence.atomic import write_whole
    from ccmem.paper.datasets import load
    from ccmem.paper.datasets.raw import entry_of
    from ccmem.paper.experiments import model_names, rival_names, settings
    from ccmem.paper.experiments.tuning import tune

    models = options.models or model_names()
    models = [name for model in models for name in (settings()["family"] if model == "family" else [model])]
    known = [*model_names(), *settings()["family"], *rival_names()]
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
        tuned[model] = tune(
            data,
            model,
            options.candidates,
            options.seed,
            command,
            jobs=options.jobs,
            dask=options.dask,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
        found.setdefault(name, {}).update(tuned[model])
        write_whole(path, (json.dumps(found, indent=1) + "\n").encode())
    if options.json:
        json.dump({row: entry for rows in tuned.values() for row, entry in rows.items()}, sys.stdout, indent=1)
        print()
    return 0
