"""Rivals: tables and pictures of the kept comparison, and rivals held against figures that others published.

ccmem reproduce mnist notmnist --rows rivals --trials 5 --data DIR --out studies/evidence/rivals
ccmem reproduce fashion-mnist --rows rivals --trials 5 --protocols strict --data DIR --out studies/evidence/rivals
python -m studies.rivals published --data DIR      # GDumb and replay with the stores of other papers
python -m studies.rivals report                    # tables.md beside the results, pictures for docs/comparison.md
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import rivals
from ccmem.datasets import load
from ccmem.experiments.protocol import Benchmark
from ccmem.report.comparison_figures import draw_comparison
from ccmem.report.tables import tables
from ccmem.report.text import budgets_for_markdown, comparison_for_markdown, for_markdown
from ccmem.rivals._network import n_weights

HERE = Path(__file__).parent
KEPT = HERE / "evidence" / "rivals"
PICTURES = HERE.parent / "docs" / "_static"
DATASETS = ("mnist", "notmnist", "fashion-mnist")
TRIALS = 2


def report() -> None:
    """Write tables.md and the pictures."""
    parts = []
    for name in DATASETS:
        if not (KEPT / f"{name}.json").is_file():
            continue
        result = json.loads((KEPT / f"{name}.json").read_text())
        parts += [budgets_for_markdown(result), *map(for_markdown, tables(result)), comparison_for_markdown(result)]
        for figure_name, _, figure in draw_comparison(result):
            figure.savefig(PICTURES / f"rivals_{figure_name}.png", dpi=90, metadata={"Software": None})
    if (KEPT / "published.json").is_file():
        parts.append(published_table(json.loads((KEPT / "published.json").read_text())))
    (KEPT / "tables.md").write_text("\n".join(parts))


def published(folder: str | None) -> None:
    """Our GDumb and replay on Split MNIST, strict, with as many stored images as other papers had."""
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


def _cases() -> list[dict[str, Any]]:
    return list(tomllib.loads((HERE / "published_rivals.toml").read_text())["case"])


def _model(entry: dict[str, Any]) -> Any:
    """The rival with a budget that leaves room for just so many images of 784 pixels and their labels."""
    sizes = entry["parameters"].get("hidden_sizes", (110, 104))
    floats = n_weights(784, sizes, 10) + entry["stored"] * 785
    return getattr(rivals, entry["model"])(
        **{**entry["parameters"], "hidden_sizes": tuple(sizes), "max_floats": floats}
    )


def published_table(found: dict[str, Any]) -> str:
    lines = ["### Beside published figures (Split MNIST, strict)", ""]
    lines += ["| ours | stored images | ACC | trials | published | difference | why |", "|---|---|---|---|---|---|---|"]
    for entry in _cases():
        if entry["title"] not in found:
            continue
        scores = found[entry["title"]]["ACC"]
        spread = f" ± {np.std(scores, ddof=1):.4f}" if len(scores) > 1 else ""
        gap = np.mean(scores) - entry["figure"]
        lines.append(
            f"| {entry['title']} | {entry['stored']:,} | {np.mean(scores):.4f}{spread} | {len(scores)} | "
            f"{entry['published']} {entry['figure']:.3f} | {gap:+.4f} | {entry['why']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["report", "published"])
    parser.add_argument("--data", help="your folder with data sets (default: CCMEM_DATA)")
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    if options.part == "report":
        report()
    else:
        published(options.data)


if __name__ == "__main__":
    main()
