"""Errors that tests once did not notice; `python -m studies.mutants` plants them before it plants any at random."""

from __future__ import annotations

NAMED: tuple[tuple[str, str, str], ...] = (
    ("models.artc2a", "counters[JOURNALED] + 2 >", "counters[JOURNALED] + 1 >"),
    ("models.artc2a", "state.moved[b] = True", "pass"),
    ("models.ccm", "state.recalls[: counters[BLOCKS]] = 0", "pass"),
    ("models.adaptive.kernels", "4 * votes[unit, most] > 3 * total", "4 * votes[unit, most] >= 3 * total"),
    ("models.adaptive.kernels", "    state.errors[unit] = 0.0", "    pass"),
    ("models.adaptive.kernels", "state.errors[best] = 0.0", "pass"),
    ("models.adaptive.decision", "state.partners[state.members[k]] = TO_FIND", "pass"),
    ("models.adaptive.merging", "state.errors[a] = 0.0", "pass"),
    ("models.adaptive.merging", "if cost < least:", "if cost <= least:"),
    ("models.adaptive.merging", "if state.costs[unit] < least:", "if state.costs[unit] <= least:"),
    ("models.adaptive.merging", "(cost == state.costs[unit] and merged < partner)", "False"),
    ("models.adaptive.merging", "if gap == last:", "if True:"),
    ("readout", "max(score * score if by_distance", "max(score if by_distance"),
    ("readout", "codes[len(codes) - len(X) :]", "codes[: len(X)]"),
    ("metrics.events", "here[0].step - change <= max_delay", "here[0].step - change < max_delay"),
    ("experiments.protocol", "classes = np.full(benchmark.width, -1)", "classes = np.full(benchmark.width, 0)"),
    (
        "experiments.protocol",
        "predicted = np.full(len(benchmark.y_test), -1)",
        "predicted = np.full(len(benchmark.y_test), 0)",
    ),
    ("experiments.protocol", "np.random.default_rng(seed).permutation", "np.random.default_rng(0).permutation"),
    ("persistence.atomic", "os.ftruncate(handle, 0)", "pass"),
    ("persistence.tensorfile", "if first != end:", "if first < end:"),
    ("persistence.values", "or position > last or", "or"),
    ("streams.files", "self._progress.pop(opened.key, None)", "pass"),
)
"""Module, what stands there, and what it becomes."""
