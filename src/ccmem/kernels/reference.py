"""NamedTuples that kernels pass to their parts by reference.

numba passes a NamedTuple as one argument per number in it: a state of fifteen arrays is more than a hundred arguments
of every function and every call, and most of the time to compile a kernel went into them. A part receives a pointer
instead. Nothing modifies a NamedTuple, so parts see the same values.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.core.imputils import impl_ret_borrowed, lower_cast, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr


class Reference(types.Type):  # type: ignore[misc]
    """Type of a pointer to a NamedTuple."""

    def __init__(self, content: Any) -> None:
        self.content = content
        digest = hashlib.sha256(str(content).encode()).hexdigest()[:16]  # numba puts names into every symbol
        super().__init__(name=f"{content.instance_class.__name__}({digest})")

    @property
    def key(self) -> Any:
        return self.content


def by_reference(argument: Any) -> Any:
    """Return the type with which a part receives an argument."""
    if isinstance(argument, types.BaseNamedTuple):
        return Reference(argument)
    return types.unliteral(argument)


def declare_unchanged(module: Any) -> None:
    """Tell LLVM that nothing overwrites the NamedTuples that the functions of a module receive."""
    for function in module.functions:
        for argument in function.args:
            kind = argument.type
            if isinstance(kind, ir.PointerType) and isinstance(getattr(kind, "pointee", None), ir.LiteralStructType):
                argument.add_attribute("noalias")


@register_default(Reference)
class _ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, frontend: Any) -> None:
        content = manager.lookup(frontend.content).get_value_type()
        super().__init__(manager, frontend, content.as_pointer())


@infer_getattr
class _ReferenceAttribute(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        content = reference.content
        return content[content.fields.index(name)] if name in content.fields else None


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def _load_field(context: Any, builder: Any, reference: Any, pointer: Any, name: str) -> Any:
    index = reference.content.fields.index(name)
    field = builder.load(cgutils.gep_inbounds(builder, pointer, 0, index))
    return impl_ret_borrowed(context, builder, reference.content[index], field)


@lower_cast(types.BaseNamedTuple, Reference)  # type: ignore[untyped-decorator]
def _refer(context: Any, builder: Any, content: Any, reference: Any, value: Any) -> Any:
    return cgutils.alloca_once_value(builder, value)
