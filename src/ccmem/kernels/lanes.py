"""Lane sums: the vector instructions behind :mod:`ccmem.kernels.competition`, and their equivalent without the JIT.

A sum of n terms has one order: lane ``l`` adds the terms whose index is ``l`` modulo 32, first to last, and the 32
lanes are then folded in halves. Code in this module must not change that order, nor contract a product and a sum into
one instruction, because bit-identical results depend on both. The amount of work per pass over memory may change.

The code emits vector instructions because LLVM vectorises a plain loop over floats only if it may reorder the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import JIT_ENABLED

LANES = 32
ROWS = 5
"""Matrix rows that share one pass over a vector: enough to hide latencies, few enough to fit the registers."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def sum_in_python(terms: FloatArray) -> float:
    """Compute the lane sum without numba; the compiled versions must equal it."""
    lanes = np.zeros(LANES, terms.dtype)
    for start in range(0, terms.size, LANES):
        part = terms[start : start + LANES]
        lanes[: part.size] += part
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0])


def fold(builder: Any, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Emit the fold of a vector in halves, down to one number."""
    width = vector.type.count
    while width > 1:
        width //= 2
        parts = (ir.Constant(ir.VectorType(_I32, width), list(range(at, at + width))) for at in (0, width))
        vector = combine(*(builder.shuffle_vector(vector, vector, part) for part in parts))
    return builder.extract_element(vector, _I32(0))


class _Pass:
    """One pass over vectors of equal length, 32 elements at a time; ``step`` emits the work at a position."""

    def __init__(self, context: Any, builder: Any, dtype: Any, size: Any) -> None:
        self.builder, self.dtype, self.size = builder, dtype, size
        self.vector = ir.VectorType(context.get_data_type(dtype), LANES)
        self.zero = ir.Constant(self.vector, [0.0] * LANES)
        self.mask: Any = None
        self._index: Any = None

    def run(self, step: Callable[[], None]) -> None:
        builder = self.builder
        whole = builder.and_(self.size, _I64(-LANES))
        with cgutils.for_range_slice(builder, _I64(0), whole, _I64(LANES), intp=_I64) as (self._index, _):
            step()
        with builder.if_then(builder.icmp_unsigned("<", whole, self.size)):
            counts = ir.VectorType(_I32, LANES)
            undefined = ir.Constant(counts, ir.Undefined)
            left = builder.insert_element(undefined, builder.trunc(builder.sub(self.size, whole), _I32), _I32(0))
            left = builder.shuffle_vector(left, undefined, ir.Constant(counts, [0] * LANES))
            self.mask = builder.icmp_unsigned("<", ir.Constant(counts, list(range(LANES))), left)
            self._index = whole
            step()

    def load(self, data: Any) -> Any:
        """Load the 32 elements at the current position; zeros beyond the end of the vector."""
        if self.mask is None:
            return self.builder.load(self._at(data), align=self._align)
        kind = ir.FunctionType(self.vector, [self.vector.as_pointer(), _I32, self.mask.type, self.vector])
        name = f"llvm.masked.load.v{LANES}f{self.dtype.bitwidth}.p0"
        load = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(load, [self._at(data), _I32(self._align), self.mask, self.zero])

    def fold(self, lanes: Any) -> Any:
        """Fold the 32 lanes in halves to their sum, as a double."""
        total = fold(self.builder, lanes, self.builder.fadd)
        return total if self.dtype is types.float64 else self.builder.fpext(total, ir.DoubleType())

    @property
    def _align(self) -> int:
        return int(self.dtype.bitwidth // 8)

    def _at(self, data: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(data, [self._index]), self.vector.as_pointer())


Term = Callable[[Any, Any, Any], Any]


def _emit_sums(context: Any, builder: Any, term: Term, dtype: Any, rows: Sequence[Any], x: Any, size: Any) -> list[Any]:
    """Emit lane sums of ``term(row, x)`` for every row in one pass over x."""
    work = _Pass(context, builder, dtype, size)
    sums = [cgutils.alloca_once_value(builder, work.zero) for _ in rows]

    def step() -> None:
        right = work.load(x)
        for row, lanes in zip(rows, sums, strict=True):
            builder.store(builder.fadd(builder.load(lanes), term(builder, work.load(row), right)), lanes)

    work.run(step)
    return [work.fold(builder.load(lanes)) for lanes in sums]


def _array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value)


def pair_sum(term: Term, in_python: Callable[..., float]) -> Any:
    """Return a kernel function ``f(a, b) -> float`` that sums ``term`` over two contiguous vectors of one type."""
    if not JIT_ENABLED:
        return np.errstate(over="ignore", invalid="ignore")(in_python)  # compiled sums do not warn either

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = (_array(context, builder, t, v) for t, v in zip(signature.args, arguments, strict=True))
        size = cgutils.unpack_tuple(builder, a.shape, 1)[0]
        return _emit_sums(context, builder, term, signature.args[0].dtype, [a.data], b.data, size)[0]

    @intrinsic  # type: ignore[untyped-decorator]
    def lane_sum(typing_context: Any, a: Any, b: Any) -> Any:
        if a != b or a.ndim != 1 or a.layout != "C":
            raise TypeError(f"two contiguous vectors of one type are needed, got {a} and {b}")
        return types.float64(a, b), emit

    lane_sum.in_python = in_python
    return lane_sum


def row_sums(term: Term, in_python: Callable[..., float], with_x: bool = False) -> Any:
    """Return a kernel function ``f(matrix, first, x) -> ROWS floats``: :func:`pair_sum` of ROWS rows in one pass.

    ``with_x`` adds the sum of x with itself as the last of ROWS + 1.
    """

    def sums_in_python(matrix: FloatArray, first: int, x: FloatArray) -> tuple[float, ...]:
        return tuple(in_python(row, x) for row in [*matrix[first : first + ROWS], x][: ROWS + with_x])

    if not JIT_ENABLED:
        return sums_in_python

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = _array(context, builder, signature.args[0], arguments[0])
        x = _array(context, builder, signature.args[2], arguments[2])
        size = cgutils.unpack_tuple(builder, x.shape, 1)[0]
        starts = [builder.mul(builder.add(arguments[1], _I64(k)), size) for k in range(ROWS)]
        rows = [builder.gep(matrix.data, [start]) for start in starts] + [x.data] * with_x
        sums = _emit_sums(context, builder, term, signature.args[2].dtype, rows, x.data, size)
        return context.make_tuple(builder, signature.return_type, sums)

    @intrinsic  # type: ignore[untyped-decorator]
    def lane_sums(typing_context: Any, matrix: Any, first: Any, x: Any) -> Any:
        fits = matrix.ndim == 2 and matrix.layout == "C" and x.ndim == 1 and x.layout == "C"
        if not fits or matrix.dtype != x.dtype:
            raise TypeError(f"a contiguous matrix and vector of one type are needed, got {matrix} and {x}")
        return types.UniTuple(types.float64, ROWS + with_x)(matrix, types.int64, x), emit

    lane_sums.in_python = sums_in_python
    return lane_sums


def broadcast(builder: Any, value: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, _I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count))


def _product(builder: Any, x: Any, y: Any) -> Any:
    return builder.fmul(x, y)


def _square(builder: Any, x: Any, y: Any) -> Any:
    difference = builder.fsub(x, y)
    return builder.fmul(difference, difference)


def _absolute(builder: Any, x: Any, y: Any) -> Any:
    return _magnitude(builder, builder.fsub(x, y))


def _lesser(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def _magnitude(builder: Any, value: Any) -> Any:
    bits = 32 if isinstance(value.type.element, ir.FloatType) else 64
    kind = ir.FunctionType(value.type, [value.type])
    magnitude = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fabs.v{LANES}f{bits}")
    return builder.call(magnitude, [value])


PRODUCT = (_product, lambda a, b: sum_in_python(a * b))
SQUARE = (_square, lambda a, b: sum_in_python((a - b) * (a - b)))
ABSOLUTE = (_absolute, lambda a, b: sum_in_python(np.abs(a - b)))
MINIMUM = (_lesser, lambda a, b: sum_in_python(np.minimum(a, b)))
"""Terms of a sum: the emitter of one term, and the whole sum without numba."""
