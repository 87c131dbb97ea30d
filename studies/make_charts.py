"""Draw the charts of the docs anew from what is kept in studies/evidence: ``python studies/make_charts.py``.

Nothing is measured: the studies themselves do that (``python studies/adaptive.py``, ``python -m studies.layers``,
``ccmem reproduce --rows rivals``, ``python -m studies.real_streams``).
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from studies import adaptive_report, layers_report, rivals
from studies.real_streams import tables

HERE = Path(__file__).parent


def main() -> None:
    """Every chart of the pages adaptive, layers, comparison and real_streams."""
    adaptive = {path.stem: json.loads(path.read_text()) for path in (HERE / "evidence" / "adaptive").glob("*.json")}
    adaptive_report.draw(adaptive)
    layers_report.report()
    rivals.report()
    tables.picture(tables.read(HERE / "evidence" / "real_streams"), adaptive_report.PICTURES / "real_streams.png")


if __name__ == "__main__":
    main()
