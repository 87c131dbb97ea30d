"""``ccmem reproduce``: run the paper's experiments and print published and measured results side by side."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

from ccmem.core.terminal import StatusLine

ROWS, PROTOCOLS = ("paper", "tuned", "adaptive"), ("paper", "strict")
"""Kinds of rows, and protocols, that run by default."""


def run(options: argparse.Namespace) -> int:
    options.rows, options.protocols = options.rows or list(ROWS), options.protocols or list(PROTOCOLS)
    status = StatusLine(in_lines=True)
    status.show("ccmem reproduce: loading ...")
    warnings.filterwarnings("ignore", "CCM cannot recall")  # the settings of the paper cause this: REPRODUCTION.md
    from ccmem.paper import experiments
    from ccmem.paper.datasets import catalogue, entry_of
    from ccmem.paper.experiments.protocol import Benchmark
    from ccmem.paper.experiments.runs import Results, compile_kernels, run_all
    from ccmem.paper.report import bars, for_terminal, headline, sections, summary, write_report

    for words in (options.models or [], options.rows):  # "--models ccm mnist": a data set is not a model
        options.datasets += [word for word in words if word in catalogue()]
        words[:] = [word for word in words if word not in catalogue()]
    for name, value in (("--trials", options.trials), ("--jobs", options.jobs)):
        if value is not None and value < 1:
            raise ValueError(f"{name} {value} is not possible; it must be at least 1")
    for name in options.datasets:
        entry_of(name)
    plan = {name: experiments.rows(name, options.models, options.rows) for name in options.datasets or ["digits"]}
    if not all(plan.values()):
        raise ValueError(
            f"no rows of kind {' '.join(options.rows)} for these models; tuned rows come from 'ccmem tune'"
        )
    out = Path(options.out)
    say = _printer(sys.stderr if options.json else sys.stdout)
    began = time.perf_counter()
    results: dict[str, Any] = {}
    for data in _data(options, say, status):
        rows = experiments.rows(data.name, options.models, options.rows)
        benchmark = Benchmark.of(data)
        kept = Results(
            out, data, benchmark, rows, options.trials, options.seed, fresh=options.fresh, protocols=options.protocols
        )
        try:
            if options.dask is None:
                compile_kernels(kept, rows, benchmark)
            run_all(kept, rows, benchmark, options.jobs, options.dask)
        except KeyboardInterrupt:
            done = sum(len(row["trials"]) for row in kept.content["rows"].values())
            print(
                f"ccmem reproduce: {done} finished trials kept in {kept.path}; the same command resumes",
                file=sys.stderr,
            )
            raise
        results[data.name] = kept.content
        if not options.json:
            for part in (_filled(headline(kept.content)), bars(kept.content)):
                say(part + "\n" if part else "")
            for section in sections(kept.content):
                say(for_terminal(section))
    seconds = time.perf_counter() - began
    command = "ccmem reproduce " + " ".join(_words(options, list(results)))
    path = write_report(results, out, command, figures=not options.no_figures, seconds=seconds)
    if options.json:
        json.dump({name: summary(result) for name, result in results.items()}, sys.stdout, indent=1)
        print()
    say(f"{path} has all of it ({time.perf_counter() - began:.0f} s)")
    return 0


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, subsequent_indent="  ")


def _data(options: argparse.Namespace, say: Any, status: StatusLine) -> Any:
    """Yield the data sets one by one, printing the name of each."""
    from ccmem.paper import experiments
    from ccmem.paper.datasets import DataSetNotFound, load

    def loaded(name: str) -> Any:
        pixels = experiments.settings()["datasets"][name]["pixels"]
        status.show(f"looking for {name}, here and in the places that offer it ...")
        try:
            return load(name, folder=options.data, pixels=pixels, download=not options.offline)
        finally:
            status.clear()

    for name in options.datasets or ["mnist"]:
        why = ""
        try:
            data = loaded(name)
        except DataSetNotFound as problem:
            if options.datasets:
                raise
            print(problem, file=sys.stderr)
            data, why = loaded("digits"), ", because MNIST is not to be had"
        say(f"Data set: {data.title}{why} ({len(data.y_train):,} training images; source: {data.source})\n")
        yield data


def _words(options: argparse.Namespace, names: list[str]) -> list[str]:
    words = [*names, "--trials", str(options.trials)]
    if options.models:
        words += ["--models", *options.models]
    if options.rows != list(ROWS):
        words += ["--rows", *options.rows]
    if options.protocols != list(PROTOCOLS):
        words += ["--protocols", *options.protocols]
    return [*words, "--seed", str(options.seed)] if options.seed else words


def _printer(stream: Any) -> Any:
    """Return a print function that also works on terminals whose encoding lacks the plus-minus sign."""

    def say(text: str) -> None:
        try:
            print(text, file=stream, flush=True)
        except UnicodeEncodeError:
            print(text.replace("±", "+-").encode("ascii", "replace").decode(), file=stream, flush=True)

    return say
