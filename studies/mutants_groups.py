"""Modules in which `python -m studies.mutants` plants errors, with the tests that it runs for them."""

from __future__ import annotations

EVERY = "tests/test_every_model.py"
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "metrics and protocol": (
        ("metrics.retention", "metrics.events", "metrics.maps", "metrics.conformity", "paper.experiments.protocol"),
        ("tests/metrics", "tests/paper/experiments/test_protocol.py", "tests/test_map_plots.py"),
    ),
    "framework": (
        ("kernels.competition", "kernels.update", "kernels.graph", "kernels.journal",
         "ncl.activations", "ncl.classifier", "ncl.competitions", "ncl.compose", "ncl.errors", "ncl.graph",
         "ncl.growths", "ncl.model", "ncl.neighbourhoods", "ncl.parts", "ncl.rates", "ncl.updates"),
        ("tests/kernels/test_competition.py", "tests/kernels/test_graph.py", "tests/kernels/test_update.py",
         "tests/ncl", "tests/models/test_labelled.py", "tests/models/test_twins.py", EVERY),
    ),
    "models": (
        ("models.wta", "models.gmm", "models.artc2a", "models.ccm", "models.artmap", "models.fscl",
         "models.fuzzy_art", "models.gas", "models.gng", "models.lvq", "models.soinn", "models.som"),
        ("tests/models/test_wta.py", "tests/models/test_gmm.py", "tests/models/test_artc2a.py",
         "tests/models/test_ccm.py", "tests/models/test_labelled.py", "tests/models/test_twins.py",
         "tests/ncl/test_oracles.py", EVERY),
    ),
    "blocks": (
        ("models._blocks", "models._explain", "models._frame"),
        ("tests/core", "tests/base", "tests/models/test_adaptive.py", "tests/models/test_ccm.py",
         "tests/models/test_explain.py", "tests/models/test_missing.py", "tests/io/persistence/test_checkpoint.py",
         "tests/io/persistence/test_faults.py", "tests/app/commands/test_events.py", "tests/test_plots.py"),
    ),
    "core and base": (
        ("core.allocation", "core.clock", "core.events", "core.labels", "core.locking", "core.parameters",
         "core.state", "core.summary", "core.times", "core.undo", "base.arrays", "base.estimator", "base.labelled",
         "base.matching", "base.memory", "base.prediction", "base.times", "base.validation", "kernels.rows", "river"),
        ("tests/core", "tests/base", "tests/metrics/test_events.py", "tests/models/test_labelled.py",
         "tests/models/test_ccm.py", "tests/test_registry.py", "tests/test_river.py"),
    ),
    "persistence": (
        ("io.persistence.atomic", "io.persistence.tensorfile", "io.persistence.values", "io.persistence.checkpoint",
         "base.storage"),
        ("tests/io/persistence", "tests/app/commands/test_hostile.py"),
    ),
    "streams and learner": (
        ("io.streams.arrays", "io.streams.arrow", "io.streams.csv",
         "io.streams.dialect", "io.streams.drift", "io.streams.errors", "io.streams.files",
         "io.streams.lines", "io.streams.ndjson",
         "io.streams.progress", "io.streams.records", "io.streams.schema", "io.streams.sources", "io.streams.splits",
         "io.streams.tables", "io.streams.timestamps", "io.streams.write", "app.learner", "app.events",
         "app.stopping", "kernels.sources", "layers.scaling"),
        ("tests/io/streams", "tests/io/real_files", "tests/app/commands", "tests/app/test_learner.py"),
    ),
    "readout": (
        ("kernels.votes", "kernels.discriminant", "kernels.neighbours", "base.classifier",
         "readout._estimator", "readout._evidence", "readout._following", "readout._kernels", "readout._optimizers",
         "readout._reject", "readout._saved", "readout._sums", "readout._vector", "readout._voting",
         "readout.discriminant", "readout.gated", "readout.metric", "readout.mlp", "readout.modal",
         "readout.network", "readout.packed", "readout.per_block"),
        ("tests/readout", "tests/kernels/test_neighbours.py", "tests/core/test_locking.py"),
    ),
    "layers": (
        ("layers._encode", "layers._shapes", "layers._signal", "layers._windowed", "layers.patch", "layers.shape",
         "layers.stack", "layers.window"),
        ("tests/layers", "tests/core/test_locking.py"),
    ),
    "fleet": (
        ("fleet.answers", "fleet.local", "fleet.merge", "fleet.step", "fleet.store", "fleet.tables"),
        ("tests/fleet/test_local.py", "tests/fleet/test_merge.py", "tests/fleet/test_step.py"),
    ),
    "commands and data sets": (
        ("app.commands.learn", "app.commands.predict", "app.commands._models", "app.commands.inspect",
         "app.commands.datasets", "paper.datasets.sources", "paper.datasets.raw"),
        ("tests/app/commands/test_hostile.py", "tests/core/test_locking.py", "tests/paper/datasets"),
    ),
    "adaptive": (
        ("models.adaptive.kernels", "models.adaptive.hot", "models.adaptive.evidence", "models.adaptive.slots",
         "models.adaptive.cold", "fleet.shards", "models.adaptive.columns", "models.adaptive.density",
         "models.adaptive.windows", "models.adaptive.batches", "models.adaptive.bound", "models.adaptive.start",
         "base.normalised"),
        ("tests/models/test_adaptive.py", "tests/models/test_missing.py", EVERY),
    ),
}  # fmt: skip
"""Modules that are mutated together, and the tests that run for them.

``kernels.jit``, ``kernels.lanes`` and ``layers._vectors``, which emit machine code, do not run without the JIT.
"""
NAMED_ONLY = "commands and data sets"
"""Group without random mutants."""
