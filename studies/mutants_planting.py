"""Planting one error in the code of a function, for :mod:`studies.mutants`."""

from __future__ import annotations

import ast
import copy
import gc
import hashlib
import random
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from studies.mutants_named import NAMED

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("naive", "__repr__", "_repr_html_", "_repr_mimebundle_")
"""Functions without mutants: reference implementations, which are tests, and display code."""
NO_RESULT = {"strict", "copy", "daemon"}
"""Keywords that change no result: an internal check, an extra copy, the fate of a thread at process exit."""
KERNELS = {"kernel", "kernel_in_place", "kernel_apart"}
"""Decorators of compiled functions."""
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Mutant(NamedTuple):
    """A planted error."""

    module: str
    function: str
    what: str
    digest: str
    """Digest of the unchanged function."""
    code: CodeType
    source: ast.AST | str
    """Source of the module with the mutant."""
    compiled: bool
    """True if the mutant is in a kernel."""

    @property
    def name(self) -> str:
        """Name of the mutant in the evidence."""
        return f"{self.module}.{self.function}: {self.what}"


def mutants(module: str, rng: random.Random, number: int, only: Collection[str] = ()) -> Iterator[Mutant]:
    """The errors of :data:`~studies.mutants_named.NAMED`, and ``number`` others that can be planted in a module.

    With ``only``, those with these names alone, also where others would be chosen by now.
    """
    path = ROOT / "src" / Path(*module.split(".")).with_suffix(".py")
    source = path.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    original = {code.co_qualname: code for code in codes(compile(tree, str(path), "exec"))}
    digests, starts, nodes = {}, {}, list(ast.walk(tree))
    kernels = {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(d) in KERNELS for d in node.decorator_list)
    }
    for node in nodes:  # the outermost function that contains a node
        for function in ast.iter_child_nodes(node):
            if isinstance(function, ast.FunctionDef) and not hasattr(function, "inside"):
                named = f"{node.name}.{function.name}" if isinstance(node, ast.ClassDef) else function.name
                starts[named] = function.lineno
                digests[named] = digest(function)
                for statement in function.body:
                    for inner in ast.walk(statement):
                        inner.inside = named  # type: ignore[attr-defined]
    for node in nodes:
        for left_out in _left_out(node):
            for inner in ast.walk(left_out):
                inner.inside = None  # type: ignore[attr-defined]

    def built(what: str, changed: ast.AST | str, function: str) -> Mutant:
        code = compile(changed, str(path), "exec")  # type: ignore[arg-type]
        place = (original[function].co_qualname, original[function].co_firstlineno)
        new = next(c for c in codes(code) if (c.co_qualname, c.co_firstlineno) == place)
        return Mutant(module, function, what, digests[function], new, changed, function in kernels)

    for name, before, after in NAMED:
        if f"ccmem.{name}" == module:
            if before not in source:
                raise SystemExit(f"{module} no longer has `{before}`: bring studies/mutants_named.py up to date")
            row = source[: source.index(before)].count("\n") + 1
            function = next(n.inside for n in nodes if getattr(n, "lineno", 0) == row and getattr(n, "inside", None))
            yield built(f"`{before.strip()}` -> `{after.strip()}`", source.replace(before, after, 1), function)
    possible = [
        (place, choice)
        for place, node in enumerate(nodes)
        if (function := getattr(node, "inside", None)) in original and function.rpartition(".")[2] not in LEFT_OUT
        for choice, _ in enumerate(_changes(node))
    ]
    rng.shuffle(possible)

    def position(place: int, choice: int) -> str:  # two mutants on one line may look alike
        node: Any = nodes[place]
        return f"({node.lineno - starts[node.inside]}:{node.col_offset}.{choice})"

    ends = {(name.partition(": ")[0], name.rpartition(" ")[2]) for name in only}
    chosen = [(p, c) for p, c in possible if (f"{module}.{nodes[p].inside}", position(p, c)) in ends]  # type: ignore[attr-defined]
    for place, choice in chosen if only else possible[:number]:
        changed, node = copy.deepcopy(tree), nodes[place]
        target = list(ast.walk(changed))[place]
        before, line = ast.unparse(target), lines[node.lineno - 1].strip()  # type: ignore[attr-defined]
        what = list(_changes(target))[choice](target) or f"{before} -> {ast.unparse(target)}, in `{line}`"
        what += f" {position(place, choice)}"
        yield built(what, ast.fix_missing_locations(changed), node.inside)  # type: ignore[attr-defined]


def _left_out(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node without mutants: error messages, and arguments that affect no result."""
    if isinstance(node, ast.Raise) or (isinstance(node, ast.keyword) and node.arg in NO_RESULT):
        return [node]
    if not isinstance(node, ast.Call):
        return []
    name = ast.unparse(node.func).rpartition(".")[2]
    return [n for n in node.args if name == "reshape" and isinstance(n, ast.UnaryOp)]  # numpy treats -2 like -1


def codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def _changes(node: ast.AST) -> Iterator[Callable[[Any], str | None]]:
    """Return functions that change a node in place; a function may return a description of its change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield lambda n: n.ops.__setitem__(0, SWAPS[type(n.ops[0])]())
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        yield lambda n: setattr(n, "op", SWAPS[type(n.op)]())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield lambda n: setattr(n, "value", not n.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda n: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand))
    if isinstance(node, ast.Name) and node.id in ("min", "max"):
        yield lambda n: setattr(n, "id", "max" if n.id == "min" else "min")
    for i, statement in enumerate(getattr(node, "body", ()) if isinstance(node, ast.stmt) else ()):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        kept = isinstance(statement, (ast.Assign, ast.AugAssign)) and isinstance(target, (ast.Subscript, ast.Attribute))
        if kept or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
            yield lambda n, i=i: _drop(n, i)


def _drop(node: Any, place: int) -> str:
    statement: ast.stmt = node.body[place]
    node.body[place] = ast.copy_location(ast.Pass(), statement)
    return f"without `{ast.unparse(statement)}`"


def plant(mutant: Mutant) -> None:
    """Replace the code of the function, and of functions defined inside it, at every reference."""
    changed = {(c.co_filename, c.co_qualname, c.co_firstlineno): c for c in (mutant.code, *codes(mutant.code))}
    for thing in gc.get_objects():
        if type(thing) is FunctionType:
            c = thing.__code__
            if (new := changed.get((c.co_filename, c.co_qualname, c.co_firstlineno))) is not None:
                thing.__code__ = new


def digest(function: ast.FunctionDef) -> str:
    body = function.body[ast.get_docstring(function) is not None :]
    return hashlib.sha256(ast.dump(ast.Module(body, [])).encode()).hexdigest()[:12]
