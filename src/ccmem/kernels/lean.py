"""Compilation by numba without the repeated and the superfluous work.

numba spends most of the time to compile a kernel in Python: it types the same operators again in every function, loads
its registries some twenty times per function, and prepares for closures, array expressions and generated code that a
kernel hardly ever has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, ClassVar

from numba import types
from numba.core import analysis, ir, typed_passes, untyped_passes
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext

_signatures: dict[Any, Any] = {}
_call_type = types.BaseFunction.get_call_type
_load_registries = CPUContext.load_additional_registries


def _call_type_once(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
    """Return the signature of a builtin function for arguments, typed once."""
    if keywords:
        return _call_type(function, context, arguments, keywords)
    key = function, context, tuple(arguments)
    if key not in _signatures:
        _signatures[key] = _call_type(function, context, arguments, keywords)
    return _signatures[key]


def _load_what_is_new(context: Any) -> None:
    """Load new entries of the registries; numba imports all its modules before."""
    for registry in list(context._registries):
        context.install_registry(registry)


@contextmanager
def work_skipped(target_context: Any) -> Iterator[None]:
    """Make numba skip repeated work, while its compiler lock is held."""
    with global_compiler_lock:
        if CPUContext.load_additional_registries is _load_what_is_new:  # a kernel that is compiled for another
            yield
            return
        target_context.refresh()
        types.BaseFunction.get_call_type, CPUContext.load_additional_registries = _call_type_once, _load_what_is_new
        try:
            yield
        finally:
            types.BaseFunction.get_call_type, CPUContext.load_additional_registries = _call_type, _load_registries


class LeanPasses:
    """Passes that a kernel or a part needs; the interface is that of numba's PassManager."""

    pipeline_name = "nopython"
    exec_times: ClassVar[dict[str, Any]] = {}

    def run(self, state: Any) -> None:
        """Compile one function."""
        with global_compiler_lock:
            _translate(state)
            typed_passes.NopythonTypeInference().run_pass(state)
            typed_passes.PreLowerStripPhis().run_pass(state)
            if _has_array_expressions(state):
                typed_passes.NopythonRewrites().run_pass(state)
            typed_passes.IRLegalization().run_pass(state)
            typed_passes.NativeLowering().run_pass(state)
            typed_passes.NoPythonBackend().run_pass(state)


def _translate(state: Any) -> None:
    """Translate bytecode to numba's representation in single static assignments."""
    untyped_passes.TranslateByteCode().run_pass(state)
    untyped_passes.FixupArgs().run_pass(state)
    untyped_passes.IRProcessing().run_pass(state)
    if any(isinstance(constant, CodeType) for constant in state.func_id.func.__code__.co_consts):
        untyped_passes.InlineClosureLikes().run_pass(state)  # comprehensions
    analysis.rewrite_semantic_constants(state.func_ir, state.args)
    analysis.dead_branch_prune(state.func_ir, state.args)
    untyped_passes.GenericRewrites().run_pass(state)
    untyped_passes.ReconstructSSA().run_pass(state)


def _has_array_expressions(state: Any) -> bool:
    """True if an expression of the function has an array as its value."""
    for block in state.func_ir.blocks.values():
        for line in block.find_insts(ir.Assign):
            is_expression = isinstance(line.value, ir.Expr) and line.value.op in (
                "binop", "inplace_binop", "unary", "call",
            )  # fmt: skip
            if is_expression and isinstance(state.typemap[line.target.name], types.Array):
                return True
    return False
