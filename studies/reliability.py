"""Table of RELIABILITY.md, made from studies/evidence/reliability by `python -m studies.reliability`.

Soak, torture and mutation tests store their results there:

    python -m studies.soak --minutes 60 --rate 1000 --out studies/evidence/reliability/soak.json
    make torture ARGS="--minutes 15 --seed 80000 --out studies/evidence/reliability/torture_80000.json"
    make fuzz ARGS="--minutes 5 --out studies/evidence/reliability/fuzz.jsonl"
    python -m studies.mutants --number 1 --modules 70 --seed 2041 --out studies/evidence/reliability/mutants_2041.jsonl
    python -m studies.mutants --number 7 --seed 2027 --out studies/evidence/reliability/mutants_2027.jsonl --compare 30
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from studies.mutants import comparison, first_pass, summary

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "studies" / "evidence" / "reliability"
PAGE = ROOT / "RELIABILITY.md"
TABLE = re.compile(r"(?<=<!-- made by python -m studies.reliability -->\n).*?(?=\n<!-- end -->)", re.S)
FRESH = "--number 1 --modules 70 --seed 2041 --out studies/evidence/reliability/mutants_2041.jsonl"
PLANTED = "--number 6 --seed 2028 --out studies/evidence/reliability/mutants_2028.jsonl"
COMPARED = "--number 7 --seed 2027 --out studies/evidence/reliability/mutants_2027.jsonl --compare 30"
KINDS = ("csv", "ndjson", "parquet", "arrow", "npy", "npz")


def torture() -> dict[str, Any]:
    """Add up the counts of all torture runs."""
    counts: Counter[str] = Counter()
    for file in sorted(EVIDENCE.glob("torture_*.json")):
        found = json.loads(file.read_text())
        plain = found.pop("NUMBA_DISABLE_JIT", None) == "1"
        checked = found.pop("NUMBA_BOUNDSCHECK", None) == "1" and not plain
        found.pop("seed")
        counts.update({name: value for name, value in found.items() if isinstance(value, (int, float))})
        counts["pieces"] += 1
        counts["pieces as plain Python"] += plain
        counts["pieces with kernels that check their bounds"] += checked
    return counts


def fuzzed() -> str:
    """Describe all runs of the fuzzer."""
    runs = [json.loads(line) for line in (EVIDENCE / "fuzz.jsonl").read_text().splitlines()]
    counts: Counter[str] = Counter()
    for run in runs:
        for name, n in run["tried"].items():
            counts[name.partition(":")[0]] += n
    tried = ", ".join(f"{n:,} {name}" for name, n in sorted(counts.items()))
    return f"{tried}; {runs[0]['failed']} failed in the first run, {sum(run['failed'] for run in runs[1:])} since"


def fresh(seed: int) -> str:
    """Describe a sample of mutants: those killed before any test was written for it, and the survivors."""
    file = EVIDENCE / f"mutants_{seed}.jsonl"
    killed, planted = first_pass(file)
    found = summary(file)
    equivalent = found["at_random"] - found["killed_at_random"]
    return (
        f"seed {seed}: {killed} of {planted} noticed at first ({killed / planted:.1%}), {equivalent} equivalent with "
        f"a reason ({killed / (planted - equivalent):.1%} of those that are not), "
        f"{planted - killed - equivalent} noticed now, by new tests or by tests of another group"
        + (f"; {len(found['survived'])} unexplained" if found["survived"] else "")
    )


def rows() -> list[tuple[str, str, str]]:
    """Return rows of test, method and result."""
    tried, soak = torture(), json.loads((EVIDENCE / "soak.json").read_text())
    planted, compared = summary(EVIDENCE / "mutants_2028.jsonl"), comparison(EVIDENCE / "mutants_2027.jsonl")
    earlier = summary(EVIDENCE / "mutants_2027.jsonl")
    runs = soak["each_run"]
    ends = Counter(run["ended_by"] for run in runs)
    growth = max(run["mib_most_since"] - run["mib_after_a_quarter"] for run in runs)
    models = {name: n for name, n in tried.items() if name.startswith("threads on ")}
    files = ", ".join(f"{tried[f'{kind} files']} {kind}" for kind in KINDS)
    return [
        (
            "`ccmem learn` killed at random moments: bytes of model and events as if it had not been",
            "`make torture`, trials of `killed`",
            f"{tried['trials of killed']} trials, {tried['kills']} kills, {tried['failed']} failed",
        ),
        (
            "fleets killed at random moments: every file of the store as if they had not been",
            "trials of `killed_fleet`",
            f"{tried['trials of killed_fleet']} trials, {tried['kills of fleets']} kills, {tried['failed']} failed",
        ),
        (
            "disks that are full at a random size; the run goes on to the same bytes",
            "trials of `full_disk`",
            f"{tried['trials of full_disk']} trials, {tried['disks that were full']} full, {tried['failed']} failed",
        ),
        (
            "wall clocks that jump anywhere, at every look",
            "trials of `jumping_clock`",
            f"{tried['trials of jumping_clock']} trials, {tried['failed']} failed",
        ),
        (
            "two threads teach a model, others predict, save and copy it: bytes as if by one thread",
            "trials of `threads`",
            f"{tried['trials of threads']} trials over {len(models)} models, {tried['failed']} failed",
        ),
        (
            "checkpoints with changed bytes, and signed ones with changed content: refused, or a model that works",
            "trials of `mutated`",
            f"{tried['files with changed bytes']:,} and {tried['signed files with changed content']:,} files, "
            f"{tried['forged files that load'] + tried['forged_in_one_piece files that load']:,} of them loaded, "
            f"{tried['failed']} failed",
        ),
        (
            "forged checkpoints, stores and events files, odd tables and requests",
            '`make fuzz ARGS="--minutes 5"`',
            fuzzed(),
        ),
        (
            "sources of the trials above",
            f"{tried['pieces']} pieces, {tried['pieces with kernels that check their bounds']} with kernels that "
            f"check their bounds, {tried['pieces as plain Python']} as plain Python, where numpy does",
            f"{files}; {tried['processor_minutes']:.1f} minutes of a processor",
        ),
        (
            "an endless pipe, with restarts",
            f"`python -m studies.soak --minutes {soak['minutes']:.0f} --rate 1000`",
            f"{soak['rows']:,} rows in {soak['minutes']:.0f} minutes, {soak['runs']} runs "
            f"({', '.join(f'{n} ended by {end}' for end, n in ends.items())}); "
            f"at most {max(run['mib_most_since'] for run in runs):.0f} MiB, "
            f"{growth:.1f} more than after a quarter of a run; model and events "
            + ("the same bytes as in one piece" if soak["same_model_and_events_as_in_one_piece"] else "DIFFER"),
        ),
        (
            "errors planted in functions, one at random in each of 70 modules drawn at random, tests run without the "
            "JIT: does a test turn red, before any was written for these errors?",
            f'`make mutants ARGS="{FRESH}"`, and with seed 2042; without the groups layers and adaptive; persistence, '
            "streams, readout and fleet with tests of at most 2 seconds",
            f"{fresh(2041)}; {fresh(2042)}",
        ),
        (
            "an earlier sample, in the code of that time, after tests were added for what it had shown",
            f'`make mutants ARGS="{PLANTED}"`, 4 to 6 errors a module in metrics, persistence, locking, labels, votes, '
            "readers of text, the learner and what AdaptiveCCM does once per alarm",
            f"{planted['errors']} errors, {planted['killed']} noticed ({planted['share_of_all']:.1%}): "
            f"{planted['killed_at_random']} of {planted['at_random']} chosen at random, and "
            f"{planted['killed'] - planted['killed_at_random']} of {planted['errors'] - planted['at_random']} that "
            f"take back what was mended; {planted['explained']} that change nothing that can be seen, each with its "
            "reason in `studies/evidence/reliability/mutants_survivors.json`"
            + (f"; {len(planted['survived'])} unexplained" if planted["survived"] else ""),
        ),
        (
            "the sample before, in the code of that time",
            "the same with `--number 7 --seed 2027`",
            f"{earlier['errors']} errors, {earlier['killed']} noticed ({earlier['share_of_all']:.1%}), "
            f"{earlier['explained']} with a reason"
            + (f"; {len(earlier['survived'])} unexplained" if earlier["survived"] else ""),
        ),
        (
            "some of the earlier ones in kernels once more, compiled: are the tests as sharp without the JIT?",
            f'`make mutants ARGS="{COMPARED}"`',
            f"{sum(compared.values())} errors: {compared['killed', 'killed']} noticed by the same test both ways, "
            f"{compared['killed', 'survived']} by that test only without the JIT; of those that no test noticed "
            f"without it, {compared['survived', 'killed']} with it and {compared['survived', 'survived']} neither way",
        ),
    ]


def table() -> str:
    """Format the rows as Markdown."""
    return "\n".join(["| what | how | result |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows())])


def main() -> None:
    """Write the table into the page."""
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text()))


if __name__ == "__main__":
    main()
