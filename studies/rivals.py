"""Rivals: tables and pictures of the stored comparison, and a check of rivals against published figures.

kept="--data DIR --out studies/evidence/rivals"
ccmem reproduce mnist fashion-mnist notmnist --rows rivals --trials 5 $kept
ccmem reproduce mnist notmnist --rows rivals --models icarl mnemonics --trials 10 $kept
python -m studies.rivals confirm --data DIR        # after other code changed: are the stored trials still valid?
python -m studies.rivals published --data DIR      # GDumb and replay with the stores of other papers
python -m studies.rivals report                    # tables and pictures of the pages
"""

from __future__ import annotations

import argparse
import json
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from ccmem.io.persistence.atomic import write_whole
from ccmem.paper import rivals
from ccmem.paper.datasets import load
from ccmem.paper.experiments import rows
from ccmem.paper.experiments.protocol import PAPER, STRICT, Benchmark
from ccmem.paper.experiments.runs import row_key, run_trial
from ccmem.paper.report.comparison import Contender, contenders, strict_by_budget
from ccmem.paper.report.comparison_figures import draw_comparison
from ccmem.paper.report.tables import COMPARED, compared, figure, mean_and_std, tables, verdicts
from ccmem.paper.report.text import for_markdown, sections
from ccmem.paper.rivals._network import n_weights
from studies.pages import grid, put_between

HERE = Path(__file__).parent
KEPT = HERE / "evidence" / "rivals"
PICTURES = HERE.parent / "docs" / "_static"
DATASETS = ("mnist", "fashion-mnist", "notmnist")
TRIALS = 5
PEER = "scikit-learn's MLPClassifier, 784-400-400-10, batches of 16, trained offline on 440 images of each class"


def report() -> None:
    """Write tables.md and the pictures, and insert the tables by budget into the pages that show them."""
    results, page = kept_results(), (PICTURES.parent / "comparison.md").read_text()
    parts, budgets = [], []
    for result in results:
        budgets.append(for_markdown(strict_by_budget(result)))
        parts += [budgets[-1], *map(for_markdown, sections(result))]
        if quoted := quoted_table(result):
            put_between(HERE.parent / "REPRODUCTION.md", f"quoted on {result['dataset']['name']}", quoted)
        for figure_name, _, drawn in draw_comparison(result):
            if f"rivals_{figure_name}.png" in page:
                drawn.savefig(PICTURES / f"rivals_{figure_name}.png", dpi=90, metadata={"Software": None})
    if (KEPT / "published.json").is_file():
        shown = published_table(json.loads((KEPT / "published.json").read_text()))
        parts.append(shown)
        budgets.append(shown)
    (KEPT / "tables.md").write_text("\n".join(parts))
    put_between(HERE.parent / "REPRODUCTION.md", "comparison", "\n".join(budgets))
    put_between(HERE.parent / "docs" / "results.md", "comparison", short_table(results))


def confirm(folder: str | None) -> None:
    """Repeat the first trial of every rival; if the result is identical, mark its stored trials as valid for this code.

    Stored trials are reused while no file that a row depends on has changed, and most changes do not affect numbers.
    Rows of ccmem are skipped: their rules do change, and the first trial need not show it.
    """
    for path in (KEPT / f"{name}.json" for name in DATASETS):
        result = json.loads(path.read_text())
        name, about = result["dataset"]["name"], result["dataset"]
        benchmark = Benchmark.of(load(name, folder=folder, pixels=about["pixels"]))
        for row in rows(name, kinds=["rivals"]):
            kept = result["rows"].get(row.name, {})
            key = row_key(row, about)
            if not kept.get("trials") or kept["key"] == key or (row.standing and row.standing.ours):
                continue
            first = next(iter(kept["trials"].values()))
            again, _ = run_trial(row, benchmark, first["seed"], list(first["protocols"]))
            same = again["protocols"] == first["protocols"]
            print(f"{name}, {row.title}: {'the same' if same else 'differs, to be run again'}", flush=True)
            if same:
                kept["key"] = key
                write_whole(path, json.dumps(result, indent=1).encode())


def kept_results() -> list[dict[str, Any]]:
    files = [KEPT / f"{name}.json" for name in DATASETS]
    return [json.loads(file.read_text()) for file in files if file.is_file()]


def quoted_table(result: Mapping[str, Any]) -> str:
    """Table of the figures quoted in the paper beside ours at every budget; empty if the paper prints none."""
    (table,) = [table for table in tables(result) if table.protocol == PAPER]
    lines = compared(table.lines)
    return f"{grid(COMPARED, lines)}\n\n{verdicts(table.lines)}; {table.notes[0].split(';')[0]}.\n" if lines else ""


def short_table(results: Sequence[Mapping[str, Any]]) -> str:
    """Table of strict ACC within two budgets, one line per learner; a dash where it does not fit."""
    found = [{(one.family, one.budget): one for one in contenders(result)} for result in results]
    families = dict.fromkeys(
        (one.family, one.family_title, one.ours, one.told) for each in found for one in each.values()
    )
    head = ["strict ACC within 100k / 400k floats", "given", *(result["dataset"]["title"] for result in results)]
    rows = []
    for family, title, ours, told in families:
        if not told.endswith("all data"):
            cells = [" / ".join(_within(each, family, floats) for floats in (100_000, 400_000)) for each in found]
            rows.append([f"**{title}**" if ours else title, told, *cells])
    return grid(head, rows) + "\n"


def _within(found: Mapping[tuple[str, int | None], Contender], family: str, floats: int) -> str:
    """Return the strict ACC of a family at its largest budget that fits."""
    fits = [one for one in found.values() if one.family == family and one.floats <= floats and STRICT in one.accuracy]
    best = max(fits, key=lambda one: one.floats, default=None)
    return "-" if best is None else f"{best.accuracy[STRICT][0]:.3f}"


def published(folder: str | None) -> None:
    """Run GDumb and replay on Split MNIST, strict, with the numbers of stored images in other papers."""
    benchmark = Benchmark.of(load("mnist", folder=folder, pixels="unit"))
    path = KEPT / "published.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    for entry in _cases():
        if entry["title"] in found:
            continue
        scores = []
        for seed in range(TRIALS):
            model = _model(entry).set_params(random_state=seed)
            for chunk in benchmark.stream([seed, 0]):
                model.partial_fit(benchmark.X[chunk.indices], benchmark.y[chunk.indices], classes=range(10))
            right = model.predict(benchmark.X_test) == benchmark.y_test
            scores.append(round(float(np.mean([right[part].mean() for part in benchmark.test_parts])), 4))
        found[entry["title"]] = {"parameters": entry["parameters"], "stored": entry["stored"], "ACC": scores}
        print(entry["title"], scores, flush=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
    if PEER not in found:
        found[PEER] = {"ACC": [peer(benchmark, seed) for seed in range(2)]}
        path.write_text(json.dumps(found, indent=1) + "\n")


def peer(benchmark: Benchmark, seed: int) -> float:
    """Train scikit-learn's network of GDumb's size on 440 images of each class, in 25 epochs."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(benchmark.y == label))[:440] for label in range(10)])
    network = MLPClassifier((400, 400), solver="sgd", batch_size=16, learning_rate_init=0.02, max_iter=25, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.set_params(random_state=seed, n_iter_no_change=25).fit(benchmark.X[rows], benchmark.y[rows])
    return round(float(network.score(benchmark.X_test, benchmark.y_test)), 4)


def _cases() -> list[dict[str, Any]]:
    return list(tomllib.loads((HERE / "published_rivals.toml").read_text())["case"])


def _model(entry: dict[str, Any]) -> Any:
    """Create the rival with a budget for exactly this number of images of 784 pixels and their labels."""
    sizes = entry["parameters"].get("hidden_sizes", (110, 104))
    floats = n_weights(784, sizes, 10) + entry["stored"] * 785
    return getattr(rivals, entry["model"])(
        **{**entry["parameters"], "hidden_sizes": tuple(sizes), "max_floats": floats}
    )


def published_table(found: dict[str, Any]) -> str:
    """Return the accuracies beside those of other papers."""
    rows = []
    for entry in (entry for entry in _cases() if entry["title"] in found):
        scores = found[entry["title"]]["ACC"]
        mean, spread = mean_and_std(scores)
        published, gap = f"{entry['published']} {entry['figure']:.3f}", f"{mean - entry['figure']:+.4f}"
        ours = figure(mean, spread, alone="")
        rows.append((entry["title"], f"{entry['stored']:,}", ours, str(len(scores)), published, gap, entry["why"]))
    table = grid(("ours", "stored images", "ACC", "trials", "published", "difference", "why"), rows)
    text = f"### Beside published figures (Split MNIST, strict)\n\n{table}\n"
    if PEER in found:
        scores = found[PEER]["ACC"]
        text += f"\nFor 4,400 images: {PEER} reaches {np.mean(scores):.4f} ({len(scores)} trials).\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["report", "published", "confirm"])
    parser.add_argument("--data", help="your folder with data sets (default: CCMEM_DATA)")
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    if options.part == "report":
        report()
    else:
        {"published": published, "confirm": confirm}[options.part](options.data)


if __name__ == "__main__":
    main()
