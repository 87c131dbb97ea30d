"""Where `python -m studies.mutants` plants errors, and which tests it runs for them."""

from __future__ import annotations

EVERY = "tests/test_every_model.py"
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "kernels and models": (
        ("kernels.competition", "kernels.update", "models.wta", "models.gmm", "models.artc2a", "models.ccm",
         "models._blocks", "models._distance", "models._recall", "memory", "base"),
        ("tests/kernels/test_competition.py", "tests/kernels/test_update.py", "tests/kernels/test_sketch.py",
         "tests/models/test_wta.py", "tests/models/test_gmm.py", "tests/models/test_artc2a.py",
         "tests/models/test_ccm.py", "tests/persistence/test_checkpoint.py",
         "tests/metrics/test_events.py", "tests/test_memory.py", "tests/test_guard.py", "tests/test_river.py", EVERY),
    ),
    "metrics and protocol": (
        ("metrics.retention", "metrics.events", "metrics.segments", "experiments.protocol"),
        ("tests/metrics", "tests/experiments/test_protocol.py"),
    ),
    "persistence": (
        ("persistence.atomic", "persistence.tensorfile", "persistence.values", "persistence.checkpoint",
         "persistence.memories"),
        ("tests/persistence", "tests/commands/test_hostile.py"),
    ),
    "streams and learner": (
        ("streams.csv", "streams.ndjson", "streams.lines", "streams.progress", "streams.tables", "streams.files",
         "streams.arrays", "streams.prefetch", "living.learner", "living.events", "living.scaling"),
        ("tests/streams/test_lines.py", "tests/streams/test_files.py", "tests/commands/test_hostile.py",
         "tests/commands/test_living.py", "tests/living/test_parts.py"),
    ),
    "readout, guard and predictors": (
        ("readout", "kernels.votes", "guard", "labels", "predictors.mlp", "predictors.gated", "predictors.network",
         "predictors._estimator", "predictors._optimizers", "predictors.discriminant"),
        ("tests/test_readout.py", "tests/test_guard.py", "tests/predictors"),
    ),
    "commands and data sets": (
        ("commands.learn", "commands.predict", "commands._inspect_text", "commands.datasets", "datasets.cache",
         "datasets.idx", "parameters", "kernels.rows", "streams.sources", "layers.stack",
         "layers.window", "deviations", "estimator"),
        ("tests/commands/test_hostile.py", "tests/test_guard.py"),
    ),
    "adaptive": (
        ("models.adaptive.kernels", "models.adaptive.change", "models.adaptive.merging", "models.adaptive.signature",
         "models.adaptive.decision", "models.adaptive.columns", "models.adaptive.batches", "models.adaptive.waiting",
         "models.adaptive.missing", "models.adaptive.onset"),
        ("tests/models/test_adaptive.py", "tests/models/test_missing.py", "tests/models/test_waiting.py", EVERY),
    ),
}  # fmt: skip
"""Modules that are tried together, and the tests that are run for them."""
NAMED_ONLY = "commands and data sets"
"""A group in which nothing is planted at random."""
