"""Redraw the charts of the docs from studies/evidence: ``python -m studies.make_charts``.

The measurements are made by the studies (``python -m studies.adaptive``, ``python -m studies.layers``,
``ccmem reproduce --rows rivals``).
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from studies import adaptive_report, layers_report, rivals

HERE = Path(__file__).parent


def main() -> None:
    """Draw every chart of the pages adaptive, layers and comparison."""
    adaptive = {path.stem: json.loads(path.read_text()) for path in (HERE / "evidence" / "adaptive").glob("*.json")}
    adaptive_report.draw(adaptive)
    layers_report.report()
    rivals.report()


if __name__ == "__main__":
    main()
