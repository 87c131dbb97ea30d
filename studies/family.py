"""Put the results of the competitive family into docs/family.md, from studies/evidence/family.

ccmem reproduce mnist fashion-mnist notmnist --rows family --trials 3 --out studies/evidence/family
python -m studies.family
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from studies.pages import put_between

HERE = Path(__file__).parent
EVIDENCE = HERE / "evidence" / "family"
SETS = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "notmnist": "NotMNIST"}
LARGE = "-500"


def cell(row: dict[str, Any] | None, protocol: str, metric: str) -> str:
    """Format the mean of a metric over the trials of a row, with the standard deviation of several trials."""
    if row is None or not row["trials"]:
        return "-"
    values = [trial["protocols"][protocol]["metrics"][metric] for trial in row["trials"].values()]
    text = f"{mean(values):.3f}".replace("0.", ".")
    return text + (f" ± {stdev(values):.3f}".replace("0.", ".") if len(values) > 1 else "")


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return one table per data set: both protocols with 125 units, the strict one with 500."""
    parts = []
    for name, title in SETS.items():
        if name not in results:
            continue
        rows = results[name]["rows"]
        n_trials = max(len(row["trials"]) for row in rows.values())
        parts += [f"### {title}", "", f"{n_trials} trials, mean ± standard deviation.", ""]
        parts += ["| model | paper ACC | paper BWT | strict ACC | strict ACC, 500 units | floats, 125 units |"]
        parts += ["|---|---|---|---|---|---|"]
        for key, row in rows.items():
            if not key.endswith(LARGE) and row["trials"]:
                floats = max(trial["floats"] for trial in row["trials"].values())
                large = cell(rows.get(key + LARGE), "strict", "ACC")
                cells = [cell(row, "paper", "ACC"), cell(row, "paper", "BWT"), cell(row, "strict", "ACC"), large]
                parts.append(f"| {row['title']} | {' | '.join(cells)} | {floats:,} |")
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    """Write the tables."""
    found = {name: json.loads(file.read_text()) for name in SETS if (file := EVIDENCE / f"{name}.json").exists()}
    put_between(HERE.parent / "docs" / "family.md", "family", table(found))


if __name__ == "__main__":
    main()
