"""Mutation testing: change one thing in a function, run the tests that call it, and record whether any fails.

    python -m studies.mutants --number 7 --seed 2027 --out studies/evidence/reliability/mutants_2027.jsonl
    python -m studies.mutants --module ccmem.io.streams.csv --number 20
    python -m studies.mutants --number 7 --seed 2027 --out studies/evidence/reliability/mutants_2027.jsonl --compare 30

The tests run without the JIT, in one process that collects them once. A first run on the unchanged code records whether
each test passes, the functions it calls and its time. Then, in a fork for every mutant, the code of the function is
replaced and the tests that call it run, fastest first, until one fails or takes ten times its usual time. All times are
processor times, so load on the machine has no effect. A mutant that no test kills is a survivor: either a test is
missing, or the mutant is equivalent (`mutants_survivors.json` beside --out says why). A run computes the mutants
missing in --out and drops those of functions that have changed since. --compare repeats mutants of kernels with the
JIT, on a copy of the source, to check that the tests are as sensitive without it.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import inspect
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.mutants_groups import GROUPS, NAMED_ONLY
from studies.mutants_planting import ROOT, Mutant, codes, digest, mutants, plant

REASONS = ROOT / "studies" / "evidence" / "reliability" / "mutants_survivors.json"
NOT_IN_A_FORK = ("subprocess", "torch")
"""Tests that contain these words are skipped: PyTorch waits forever for its threads, which do not survive a fork."""
AT_RANDOM = re.compile(r"\(\d+:\d+\.\d+\)$")
"""Ending of the names of randomly chosen mutants."""

# Running -------------------------------------------------------------------------------------------------------------


class Runner:
    """A pytest plugin that runs the collected tests repeatedly."""

    def __init__(self, chosen: list[Mutant], args: argparse.Namespace, say: Callable[[str], None]) -> None:
        self.chosen, self.args, self.say = chosen, args, say
        self.failed = False
        self.results: list[dict[str, str]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record a failure."""
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run all tests on the unchanged code, then with each mutant."""
        items = [item for item in session.items if not any(word in _source(item) for word in NOT_IN_A_FORK)]
        seconds, calls = self._first_or_known(items)
        self.say(f"{len(seconds)} of {len(items)} tests pass in time; they take {sum(seconds.values()):.0f} s")
        for mutant in self.chosen:
            if time.monotonic() > self.args.end:
                self.say("the time is over; the same command goes on")
                break
            places = {(c.co_filename, c.co_qualname) for c in (mutant.code, *codes(mutant.code))}
            known = sorted((t, i) for i, t in seconds.items() if places & calls[i])
            outcome = self._try(mutant, [items[i] for _, i in known], [t for t, _ in known])
            self.results.append({"error": mutant.name, "function_digest": mutant.digest, **outcome})
            self.say(f"{outcome['result']:>9}  {mutant.name}")
            if self.args.out:
                with Path(self.args.out).open("a") as file:
                    file.write(json.dumps(self.results[-1]) + "\n")
        return True

    def _run(self, item: Any) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

    def _first_or_known(self, items: list[Any]) -> tuple[dict[int, float], dict[int, set[tuple[str, str]]]]:
        """Return the result of :meth:`_first`, cached between runs if --out is given."""
        if not self.args.out:
            return self._first(items)
        digest = hashlib.sha256("".join(item.nodeid for item in items).encode())
        shared = (*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").glob("[!t]*.py"))  # helpers, not tests
        for file in sorted({*shared, *(item.path for item in items)}):
            digest.update(file.read_bytes())
        kept = Path(tempfile.gettempdir()) / f"ccmem-mutants-{digest.hexdigest()[:16]}.json"
        if not kept.exists():
            seconds, calls = self._first(items)
            kept.write_text(json.dumps([[i, t, sorted(calls[i])] for i, t in seconds.items()]))
        found = json.loads(kept.read_text())
        return {i: t for i, t, _ in found}, {i: set(map(tuple, called)) for i, _, called in found}

    def _first(self, items: list[Any]) -> tuple[dict[int, float], dict[int, set[tuple[str, str]]]]:
        """Return the tests that pass within ``--slowest`` seconds, with their times and the functions they call."""
        seconds, calls, start = {}, {}, 0
        while start < len(items):  # one process, and a new one after a test that took too long
            with tempfile.TemporaryFile("w+") as file:
                if (child := os.fork()) == 0:
                    self._tell_all(items, start, file)
                    os._exit(0)
                os.waitpid(child, 0)
                file.seek(0)
                lines = file.readlines()
            for line in lines:
                i, failed, took, called = json.loads(line)
                if failed:
                    self.say(f"{items[i].nodeid} fails without any planted error; left out")
                elif took < self.args.slowest:
                    seconds[i], calls[i] = took, set(map(tuple, called))
            start += len(lines) + 1
        return seconds, calls

    def _tell_all(self, items: list[Any], start: int, file: Any) -> None:
        source = str(ROOT / "src")
        for i in range(start, len(items)):
            called: set[tuple[str, str]] = set()

            def note(frame: Any, event: str, argument: Any, called: Any = called) -> None:
                if frame.f_code.co_filename.startswith(source):
                    called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

            self.failed = False
            signal.setitimer(signal.ITIMER_PROF, 3 * self.args.slowest)
            began = time.process_time()
            threading.settrace(note)
            sys.settrace(note)
            self._run(items[i])
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            file.write(json.dumps([i, self.failed, time.process_time() - began, sorted(called)]) + "\n")
            file.flush()

    def _count_failures(self, items: list[Any], seconds: list[float], file: Any) -> int:
        """Run tests until one fails; return 1 if one did, also if pytest could not report the failure."""
        spent = 0.0
        for item, usual in zip(items, seconds, strict=True):
            file.write(f"{item.nodeid}\n")
            file.flush()
            signal.setitimer(signal.ITIMER_PROF, 10 * usual + 2)
            self.failed = False
            try:
                self._run(item)
            except BaseException:  # such as a mutant that breaks the formatting of its own traceback
                return 1
            if self.failed:
                return 1
            spent += usual
            if spent > self.args.seconds:
                break
        return 0

    def _try(self, mutant: Mutant, items: list[Any], seconds: list[float]) -> dict[str, str]:
        """Run tests with a mutant, in a fork, until one fails."""
        with tempfile.TemporaryFile("w+") as file:
            if (child := os.fork()) == 0:
                plant(mutant)
                os._exit(self._count_failures(items, seconds, file))
            used, since = "", time.monotonic()
            while (status := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() - since < 20:
                time.sleep(0.01)
                if (now := _used(child)) != used:
                    used, since = now, time.monotonic()
            if status[0] == 0:  # it waits forever
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            file.seek(0)
            tests = file.read().splitlines()
        last = tests[-1].replace("../", "") if tests else ""
        if status[0] == 0 or os.WIFSIGNALED(status[1]):
            return {"result": "killed", "by": f"{last}, which does not end"}
        if os.WEXITSTATUS(status[1]):
            return {"result": "killed", "by": last}
        return {"result": "survived", "by": f"none of {len(tests)} tests"}


def _used(process: int) -> str:
    """Return the processor time of a process, as formatted by the system."""
    return " ".join(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13])


def _source(item: Any) -> str:
    try:
        return inspect.getsource(item.function)
    except (AttributeError, OSError):
        return ""


def group(name: str, args: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Test the mutants in the modules of a group."""
    import pytest

    modules, tests = GROUPS[name]
    chosen = []
    done = Path(args.out).read_text().splitlines() if args.out and Path(args.out).exists() else []
    known = {(entry["error"], entry["function_digest"]): entry["result"] for entry in map(json.loads, done)}
    wanted = "survived" if args.survivors else ""
    doctests = tuple(f"src/ccmem/{module.replace('.', '/')}.py" for module in modules)
    tests = tuple(args.tests or (*tests, *doctests))
    for module in (f"ccmem.{module}" for module in modules):
        if not args.module or module in args.module:
            importlib.import_module(module)
            rng, number = random.Random(f"{args.seed} {module}"), 0 if name == NAMED_ONLY else args.number
            only = [error for (error, _), result in known.items() if result == "survived"] if args.survivors else ()
            found = mutants(module, rng, number, only)
            chosen += [mutant for mutant in found if known.get((mutant.name, mutant.digest), "") == wanted]
    if not chosen:
        return
    say(f"{name}: {len(chosen)} errors")
    options = ["-q", "-s", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", str(ROOT)]
    code = pytest.main([*options, *(str(ROOT / test) for test in tests)], plugins=[Runner(chosen, args, say)])
    if code not in (0, 5):
        say(f"the tests could not be collected: {code!r}")


# With the JIT --------------------------------------------------------------------------------------------------------


def compare(args: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Repeat some mutants of kernels with the JIT, and compare the results."""
    out = Path(args.out)
    without = {entry["error"]: entry for entry in map(json.loads, out.read_text().splitlines())}
    done = set()
    if with_jit(out).exists():
        done = {json.loads(line)["error"] for line in with_jit(out).read_text().splitlines()}
    found = []
    for modules, tests in GROUPS.values():
        for module in (f"ccmem.{module}" for module in modules):
            planted = mutants(module, random.Random(f"{args.seed} {module}"), args.number)
            found += [(mutant, tests) for mutant in planted if mutant.compiled and mutant.name in without]
    found.sort(key=lambda pair: pair[0].name)
    chosen = random.Random(args.seed).sample(found, min(args.compare, len(found)))
    for mutant, tests in sorted(chosen, key=lambda pair: without[pair[0].name]["result"]):  # survivors take longest
        if mutant.name in done:
            continue
        if time.monotonic() > args.end:
            say("the time is over; the same command goes on")
            break
        outcome = _try_compiled(mutant, without[mutant.name], tests)
        say(f"{without[mutant.name]['result']:>9} without, {outcome['result']} with  {mutant.name}")
        with with_jit(out).open("a") as file:
            file.write(json.dumps({"error": mutant.name, "function_digest": mutant.digest, **outcome}) + "\n")
    say(str(dict(comparison(out))))


def _try_compiled(mutant: Mutant, without: dict[str, str], tests: tuple[str, ...]) -> dict[str, str]:
    """Run the test that failed without the JIT, or all tests of the group, on a mutated copy of the source."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        text = mutant.source if isinstance(mutant.source, str) else ast.unparse(mutant.source)
        (folder / "src" / Path(*mutant.module.split(".")).with_suffix(".py")).write_text(text)
        environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}"}
        environment["CCMEM_KERNEL_CACHE"] = str(Path(tempfile.gettempdir()) / "ccmem-mutants-kernels")
        noticed = without["result"] == "killed"
        chosen = [without["by"].removesuffix(", which does not end")] if noticed else tests
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "--rootdir", name, *chosen]
        try:
            ended = subprocess.run(
                command, cwd=name, env=environment, capture_output=True, text=True, check=False, timeout=3600
            )
        except subprocess.TimeoutExpired:
            return {"result": "killed", "by": "a test that does not end"}
    if ended.returncode == 0:
        return {"result": "survived", "by": "the same test" if noticed else "all tests of the group"}
    if ended.returncode != 1 and ended.returncode > 0:
        raise SystemExit(f"{mutant.name}: the tests could not be run: {ended.stdout[-1000:]}")
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {"result": "killed", "by": (failed or ["the process, which died"])[0][:200]}


def comparison(out: Path) -> Counter[tuple[str, str]]:
    """Count each pair of results, without the JIT and with it."""
    without = {entry["error"]: entry["result"] for entry in map(json.loads, out.read_text().splitlines())}
    compiled = {e["error"]: e["result"] for e in map(json.loads, with_jit(out).read_text().splitlines())}
    return Counter((without[error], result) for error, result in compiled.items() if error in without)


def with_jit(out: Path) -> Path:
    """Path of the results with the JIT."""
    return out.with_name(f"{out.stem}_with_jit.jsonl")


def forget_changed(out: Path) -> None:
    """Drop the evidence on functions that have changed or no longer exist."""
    known = set()
    for module in {f"ccmem.{module}" for modules, _ in GROUPS.values() for module in modules}:
        path = ROOT / "src" / Path(*module.split(".")).with_suffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            owner = f"{module}.{node.name}." if isinstance(node, ast.ClassDef) else f"{module}."
            known |= {(owner + f.name, digest(f)) for f in ast.iter_child_nodes(node) if isinstance(f, ast.FunctionDef)}
    lines = out.read_text().splitlines(keepends=True)
    entries = [(line, json.loads(line)) for line in lines]
    kept = [line for line, e in entries if (e["error"].partition(": ")[0], e["function_digest"]) in known]
    out.write_text("".join(kept))


def first_pass(out: Path) -> tuple[int, int]:
    """Count the randomly chosen mutants killed by the tests that existed when they were planted, and all of them."""
    first: dict[str, str] = {}
    for entry in map(json.loads, out.read_text().splitlines()):
        first.setdefault(entry["error"], entry["result"])
    results = [result for error, result in first.items() if AT_RANDOM.search(error)]
    return results.count("killed"), len(results)


def summary(out: Path) -> dict[str, Any]:
    """Summarise the evidence: the latest result of every mutant in a current function."""
    entries = {entry["error"]: entry for entry in map(json.loads, out.read_text().splitlines())}
    reasons = json.loads(REASONS.read_text()) if REASONS.exists() else {}
    survivors = [error for error, entry in entries.items() if entry["result"] == "survived"]
    unexplained = [error for error in survivors if error not in reasons]
    modules = Counter(error.split(":")[0].rpartition(".")[0] for error in entries)
    at_random = {error: entry["result"] == "killed" for error, entry in entries.items() if AT_RANDOM.search(error)}
    killed = len(entries) - len(survivors)
    share = killed / max(1, len(entries) - len(survivors) + len(unexplained))
    return {
        "errors": len(entries),
        "killed": killed,
        "explained": len(survivors) - len(unexplained),
        "survived": unexplained,
        "share_of_those_that_could_be_noticed": round(share, 4),
        "share_of_all": round(killed / max(1, len(entries)), 4),
        "at_random": len(at_random),
        "killed_at_random": sum(at_random.values()),
        "functions": len(modules),
    }


def main() -> None:
    """Run mutants and print how many were killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10, help="most errors to plant in a module (default 10)")
    parser.add_argument("--module", action="append", help="only in this module, such as ccmem.io.streams.csv")
    parser.add_argument("--modules", type=int, metavar="N", help="only in N modules, drawn at random")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only in the modules of this group")
    parser.add_argument("--survivors", action="store_true", help="only those that survived so far")
    parser.add_argument("--tests", nargs="*", help="run these tests instead of those of the group")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slowest", type=float, default=4.0, help="leave out tests of more seconds (default 4)")
    parser.add_argument("--seconds", type=float, default=15.0, help="most seconds of tests for an error (default 15)")
    parser.add_argument("--out", metavar="FILE", help="append what became of each error as a line of JSON, and go on")
    parser.add_argument("--minutes", type=float, default=1e6, help="plant no more after so many minutes")
    parser.add_argument(
        "--compare", type=int, metavar="N", help="plant N errors in kernels of --out once more, with the JIT"
    )
    args = parser.parse_args()
    args.end = time.monotonic() + 60 * args.minutes
    if args.compare:
        compare(args, lambda text: print(text, flush=True))
        return
    if args.modules:
        every = [f"ccmem.{module}" for name in GROUPS if name != NAMED_ONLY for module in GROUPS[name][0]]
        args.module = random.Random(args.seed).sample(every, args.modules)
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["CCMEM_MUTANTS"] = "1"  # hypothesis stops at the first failure, without shrinking it
    terminal = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)

    def say(text: str) -> None:
        print(text, file=terminal, flush=True)

    if args.out and Path(args.out).exists():
        forget_changed(Path(args.out))
    for name in args.group or GROUPS:
        if time.monotonic() > args.end:
            break
        if (child := os.fork()) == 0:  # modules and tests are loaded again for each group
            try:
                group(name, args, say)
            except BaseException as problem:
                say(f"{name}: {problem!r}")
            os._exit(0)
        os.waitpid(child, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(f"{(used.ru_utime + used.ru_stime) / 60:.1f} minutes of the processor")
    if args.out and Path(args.out).exists():
        say(json.dumps(summary(Path(args.out)), indent=1))


if __name__ == "__main__":
    main()
