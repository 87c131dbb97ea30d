"""Modules in which `python -m studies.mutants` plants errors, with the tests that it runs for them."""

from __future__ import annotations

EVERY = "tests/test_every_model.py"
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "kernels and models": (
        ("kernels.competition", "kernels.update", "models.wta", "models.gmm", "models.artc2a", "models.ccm",
         "models._blocks", "ncl.activations", "ncl.competitions", "ncl.neighbourhoods",
         "ncl.rates", "ncl.updates", "ncl.growths", "core.state", "core.events", "core.allocation",
         "kernels.journal", "base.memory"),
        ("tests/kernels/test_competition.py", "tests/kernels/test_update.py", "tests/ncl/test_parts.py",
         "tests/models/test_wta.py", "tests/models/test_gmm.py", "tests/models/test_artc2a.py",
         "tests/models/test_ccm.py", "tests/io/persistence/test_checkpoint.py",
         "tests/metrics/test_events.py", "tests/core/test_state.py", "tests/core/test_locking.py",
         "tests/test_river.py", EVERY),
    ),
    "metrics and protocol": (
        ("metrics.retention", "metrics.events", "paper.experiments.protocol"),
        ("tests/metrics", "tests/paper/experiments/test_protocol.py"),
    ),
    "persistence": (
        ("io.persistence.atomic", "io.persistence.tensorfile", "io.persistence.values", "io.persistence.checkpoint",
         "base.storage"),
        ("tests/io/persistence", "tests/app/commands/test_hostile.py"),
    ),
    "streams and learner": (
        ("io.streams.csv", "io.streams.ndjson", "io.streams.lines", "io.streams.progress", "io.streams.tables",
         "io.streams.files", "io.streams.schema",
         "io.streams.arrays", "io.streams.prefetch", "app.learner", "app.events_file", "layers.scaling"),
        ("tests/io/streams/test_lines.py", "tests/io/streams/test_files.py", "tests/app/commands/test_hostile.py",
         "tests/app/commands/test_living.py", "tests/app/test_learner.py"),
    ),
    "readout, guard and predictors": (
        ("readout.modal", "kernels.votes", "core.locking", "core.labels", "readout.mlp", "readout.gated",
         "readout.network", "readout._classifier", "readout._evidence",
         "readout._estimator", "readout._optimizers", "readout.discriminant"),
        ("tests/readout/test_modal.py", "tests/core/test_locking.py", "tests/readout"),
    ),
    "commands and data sets": (
        ("app.commands.learn", "app.commands.predict", "app.stopping", "app.commands._models",
         "app.commands._inspect_text", "app.commands.datasets", "paper.datasets.sources",
         "paper.datasets.raw", "core.parameters", "base.validation", "io.streams.sources", "layers.stack",
         "layers.window", "readout.metric", "base.estimator"),
        ("tests/app/commands/test_hostile.py", "tests/core/test_locking.py"),
    ),
    "adaptive": (
        ("models.adaptive.kernels", "models.adaptive.hot", "models.adaptive.evidence", "models.adaptive.units",
         "models.adaptive.cold", "models.adaptive.merge"),
        ("tests/models/test_adaptive.py", "tests/models/test_missing.py", EVERY),
    ),
}  # fmt: skip
"""Modules that are mutated together, and the tests that run for them."""
NAMED_ONLY = "commands and data sets"
"""Group without random mutants."""
