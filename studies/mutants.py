"""Planted errors: change one thing in a module, run the tests that matter for it, and see whether any turns red.

    python -m studies.mutants --number 300 --out mutants.jsonl
    python -m studies.mutants --module ccmem.streams.csv --number 20

Each error is planted in a process of its own, forked from one that has loaded everything but ccmem; tests run without
the JIT. A planted error that nothing notices is a survivor: either a test is missing, or the error changes nothing that
can be seen (`EQUIVALENT` says why). The share of errors that were noticed is printed last.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EVERY = "tests/test_every_model.py"
TESTS: dict[str, tuple[str, ...]] = {
    "ccmem.kernels.competition": ("tests/kernels/test_competition.py", EVERY),
    "ccmem.kernels.update": ("tests/kernels/test_update.py", EVERY),
    "ccmem.models.wta": ("tests/models/test_wta.py", EVERY),
    "ccmem.models.gmm": ("tests/models/test_gmm.py", EVERY),
    "ccmem.models.artc2a": ("tests/models/test_artc2a.py", EVERY),
    "ccmem.models.ccm": ("tests/models/test_ccm.py", EVERY),
    "ccmem.models.adaptive.kernels": ("tests/models/test_adaptive.py", EVERY),
    "ccmem.models.adaptive.change": ("tests/models/test_adaptive.py", EVERY),
    "ccmem.models.adaptive.merging": ("tests/models/test_adaptive.py", EVERY),
    "ccmem.readout": ("tests/test_readout.py", "tests/test_guard.py"),
    "ccmem.guard": ("tests/test_guard.py",),
    "ccmem.predictors.gated": ("tests/predictors/test_gated.py",),
    "ccmem.predictors.mlp": ("tests/predictors/test_mlp.py",),
    "ccmem.persistence.atomic": ("tests/persistence/test_atomic.py", "tests/commands/test_hostile.py"),
    "ccmem.persistence.tensorfile": ("tests/persistence/test_faults.py", "tests/persistence/test_atomic.py"),
    "ccmem.persistence.values": ("tests/persistence/test_checkpoint.py", "tests/persistence/test_faults.py"),
    "ccmem.living.learner": ("tests/commands/test_living.py", "tests/commands/test_hostile.py"),
    "ccmem.living.events": ("tests/commands/test_hostile.py",),
    "ccmem.streams.csv": ("tests/streams/test_lines.py",),
    "ccmem.streams.ndjson": ("tests/streams/test_lines.py",),
    "ccmem.streams.lines": ("tests/streams/test_lines.py",),
    "ccmem.streams.progress": ("tests/streams/test_lines.py",),
    "ccmem.streams.tables": ("tests/streams/test_lines.py",),
    "ccmem.metrics.retention": ("tests/metrics/test_retention.py",),
    "ccmem.metrics.events": ("tests/metrics/test_events.py",),
    "ccmem.experiments.protocol": ("tests/experiments/test_protocol.py",),
}
EQUIVALENT: dict[str, str] = {}
"""Module and planted error -> why nothing that can be seen changes."""
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def mutations(source: str) -> Iterator[tuple[str, str]]:
    """Every error that can be planted in a module: what it is, and the module's source with it."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            changed = copy.deepcopy(tree)
            target = next(n for i, n in enumerate(ast.walk(changed)) if i == number)
            before = ast.unparse(target)
            dropped = change(target)
            after = ast.unparse(target)
            if before != after:
                what = f"without {ast.unparse(dropped)}" if dropped is not None else f"{before} -> {after}"
                line = getattr(dropped if dropped is not None else node, "lineno", 0)
                yield f"line {line}: {what}", ast.unparse(ast.fix_missing_locations(changed))


def _changes(node: ast.AST) -> Iterator[Callable[[Any], ast.stmt | None]]:
    """Ways to change a node in place; one that drops a statement returns it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield lambda n: n.ops.__setitem__(0, SWAPS[type(n.ops[0])]())
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        yield lambda n: setattr(n, "op", SWAPS[type(n.op)]())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda n: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand))
    for i, statement in enumerate(getattr(node, "body", ()) if isinstance(node, ast.stmt) else ()):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if isinstance(statement, (ast.Assign, ast.AugAssign)) and isinstance(
            targets[0], (ast.Subscript, ast.Attribute)
        ):
            yield lambda n, i=i: _drop(n, i)


def _drop(node: Any, place: int) -> ast.stmt:
    statement: ast.stmt = node.body[place]
    node.body[place] = ast.copy_location(ast.Pass(), statement)
    return statement


class _Planted(importlib.abc.Loader):
    """Loads one module from a source of ours."""

    def __init__(self, source: str, path: str) -> None:
        self._source, self._path = source, path

    def exec_module(self, module: Any) -> None:
        exec(compile(self._source, self._path, "exec"), module.__dict__)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, source: str, path: Path) -> None:
        self._name, self._source, self._path = name, source, path

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        loader = _Planted(self._source, str(self._path))
        return importlib.util.spec_from_file_location(name, self._path, loader=loader)


def noticed(name: str, source: str, seconds: int) -> str:
    """Run the tests of a module with another source: "killed", "timeout" or "survived"."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(seconds)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            import pytest

            sys.meta_path.insert(0, _Finder(name, source, ROOT / "src" / Path(*name.split(".")).with_suffix(".py")))
            tests = [str(ROOT / test) for test in TESTS[name] if (ROOT / test).exists()]
            known = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis was loaded before
            code = pytest.main(["-q", "-x", "-W", known, "-p", "no:cacheprovider", "--rootdir", str(ROOT), *tests])
        finally:
            os._exit(int(code))
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "timeout"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def main() -> None:
    """Plant errors and print how many were noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300, help="how many errors to plant (default 300)")
    parser.add_argument("--module", action="append", choices=sorted(TESTS), help="only in this module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120, help="longest run of the tests (default 120)")
    parser.add_argument("--out", metavar="FILE", help="append what became of each error as a line of JSON")
    args = parser.parse_args()
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    import hypothesis
    import numba
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet
    import pytest
    import sklearn.utils.estimator_checks

    print(f"{hypothesis.__version__=} {numba.__version__=} {pytest.__version__=} {sklearn.__version__=}", flush=True)
    assert pyarrow.csv is not None
    chosen = []
    for name in args.module or TESTS:
        path = ROOT / "src" / Path(*name.split(".")).with_suffix(".py")
        chosen += [(name, what, source) for what, source in mutations(path.read_text())]
    random.Random(args.seed).shuffle(chosen)
    sound: dict[str, bool] = {}
    counts = {"killed": 0, "timeout": 0, "survived": 0, "equivalent": 0}
    for name, what, source in chosen[: args.number]:
        if name not in sound:
            path = ROOT / "src" / Path(*name.split(".")).with_suffix(".py")
            sound[name] = noticed(name, path.read_text(), 20 * args.seconds) == "survived"
        if not sound[name]:
            print(f"{name}: its tests fail without any planted error, or take too long; left out", flush=True)
            continue
        result = noticed(name, source, args.seconds)
        if result == "survived" and f"{name} {what}" in EQUIVALENT:
            result = "equivalent"
        counts[result] += 1
        print(f"{result:>10}  {name}, {what}", flush=True)
        if args.out:
            with Path(args.out).open("a") as file:
                file.write(json.dumps({"module": name, "error": what, "result": result}) + "\n")
    dead = counts["killed"] + counts["timeout"]
    print(f"{dead} of {dead + counts['survived']} noticed; {counts}")


if __name__ == "__main__":
    main()
