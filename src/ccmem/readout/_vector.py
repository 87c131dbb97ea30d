"""Inner loops of the networks, written as vector instructions.

LLVM spends half the time of a loop over a few hundred floats on overlap checks and remainders. The loops here avoid
both, and keep sums over many rows in registers, 128 numbers at a time. Every element is summed separately in the order
of the rows, so the result is equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.kernels.lanes import LANES, broadcast

_TILE = 4
"""Number of 32-float vectors kept in registers (AVX-512 has room for sixteen)."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)


class _Columns:
    """Iteration over the columns of rows stored in one flat vector, several 32-float vectors at a time."""

    def __init__(self, context: Any, builder: Any, dtype: Any, n_columns: Any) -> None:
        self.builder, self.n_columns, self.bits = builder, n_columns, dtype.bitwidth
        self.vector = ir.VectorType(context.get_data_type(dtype), LANES)
        self._align = _I32(self.bits // 8)
        self._zero = ir.Constant(self.vector, [0.0] * LANES)
        self._masks: list[Any] = []
        self._first: Any = None

    def run(self, step: Callable[[], None]) -> None:
        """Call ``step`` to emit the code for the current columns: wide tiles first, then single vectors."""
        builder = self.builder
        wide = builder.and_(builder.add(self.n_columns, _I64(LANES)), _I64(-_TILE * LANES))  # the last may be partial
        self._loop(_I64(0), wide, _TILE, step)
        self._loop(wide, self.n_columns, 1, step)

    def load(self, data: Any) -> list[Any]:
        """Emit a masked load of the current columns of the row that begins at ``data``; nothing beyond it is read."""
        kind = ir.FunctionType(self.vector, [self.vector.as_pointer(), _I32, self._masks[0].type, self.vector])
        load = self._masked("load", kind)
        places = (self._at(data, k) for k in range(len(self._masks)))
        return [
            self.builder.call(load, [place, self._align, mask, self._zero])
            for place, mask in zip(places, self._masks, strict=True)
        ]

    def store(self, values: list[Any], data: Any) -> None:
        kind = ir.FunctionType(ir.VoidType(), [self.vector, self.vector.as_pointer(), _I32, self._masks[0].type])
        store = self._masked("store", kind)
        for k, (value, mask) in enumerate(zip(values, self._masks, strict=True)):
            self.builder.call(store, [value, self._at(data, k), self._align, mask])

    def plus(self, values: list[Any], factor: Any, more: list[Any]) -> list[Any]:
        """Emit values + factor * more."""
        factor = broadcast(self.builder, factor, self.vector)
        pairs = zip(values, more, strict=True)
        return [self.builder.fadd(value, self.builder.fmul(factor, other)) for value, other in pairs]

    def _loop(self, start: Any, stop: Any, n_vectors: int, step: Callable[[], None]) -> None:
        builder, counts = self.builder, ir.VectorType(_I32, LANES)
        with cgutils.for_range_slice(builder, start, stop, _I64(n_vectors * LANES), intp=_I64) as (self._first, _):
            left = broadcast(builder, builder.trunc(builder.sub(self.n_columns, self._first), _I32), counts)
            columns = (ir.Constant(counts, list(range(k * LANES, (k + 1) * LANES))) for k in range(n_vectors))
            self._masks = [builder.icmp_signed("<", those, left) for those in columns]
            step()

    def _at(self, data: Any, k: int) -> Any:
        place = self.builder.add(self._first, _I64(k * LANES))
        return self.builder.bitcast(self.builder.gep(data, [place]), self.vector.as_pointer())

    def _masked(self, what: str, kind: Any) -> Any:
        name = f"llvm.masked.{what}.v{LANES}f{self.bits}.p0"
        return cgutils.get_or_insert_function(self.builder.module, kind, name)


def _emit(context: Any, builder: Any, signature: Any, arguments: Any, into_rows: bool) -> Any:
    """Emit either direction between one row and many; values used by all rows are loaded once per tile of columns."""
    arrays = [
        context.make_array(t)(context, builder, v) for t, v in zip(signature.args[:4], arguments[:4], strict=True)
    ]
    one, many, rows, factors = (array.data for array in arrays)
    stride, count = arguments[4:]
    n_columns = cgutils.unpack_tuple(builder, arrays[0].shape, 1)[0]
    work = _Columns(context, builder, signature.args[0].dtype, n_columns)

    def step() -> None:
        held = [cgutils.alloca_once_value(builder, value) for value in work.load(one)]
        with cgutils.for_range_slice(builder, _I64(0), count, _I64(1), intp=_I64) as (k, _):
            if into_rows:  # last to first: the rows read last are still cached
                k = builder.sub(builder.sub(count, _I64(1)), k)
            row = builder.gep(many, [builder.mul(builder.load(builder.gep(rows, [k])), stride)])
            factor = builder.load(builder.gep(factors, [k]))
            values = [builder.load(value) for value in held]
            if into_rows:
                work.store(work.plus(work.load(row), factor, values), row)
            else:
                for place, value in zip(held, work.plus(values, factor, work.load(row)), strict=True):
                    builder.store(value, place)
        if not into_rows:
            work.store([builder.load(value) for value in held], one)

    work.run(step)
    return context.get_dummy_value()


def _compiled(into_rows: bool) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit(context, builder, signature, arguments, into_rows)

    @intrinsic  # type: ignore[untyped-decorator]
    def walk(typing_context: Any, one: Any, many: Any, rows: Any, factors: Any, stride: Any, count: Any) -> Any:
        fits = one == many == factors and one.ndim == rows.ndim == 1 and one.layout == rows.layout == "C"
        if not fits or rows.dtype != types.int64:
            raise TypeError(f"contiguous vectors are needed, got {one}, {many}, {rows}, {factors}")
        return types.none(one, many, rows, factors, types.int64, types.int64), emit

    return walk


def _add_rows_in_python(
    total: FloatArray, flat: FloatArray, rows: IntArray, factors: FloatArray, stride: int, count: int
) -> None:
    for row, factor in zip(rows[:count], factors[:count], strict=True):
        total += factor * flat[row * stride : row * stride + total.size]


def _add_to_rows_in_python(
    one: FloatArray, flat: FloatArray, rows: IntArray, factors: FloatArray, stride: int, count: int
) -> None:
    for row, factor in zip(rows[:count], factors[:count], strict=True):
        flat[row * stride : row * stride + one.size] += factor * one


add_rows = _compiled(into_rows=False) if JIT_ENABLED else _add_rows_in_python
"""``add_rows(total, flat, rows, factors, stride, count)`` for kernels: add factors[k] times row rows[k] of the matrix
in ``flat`` to ``total``, for k = 0 to ``count`` - 1 in order. A row begins every ``stride`` numbers.
"""

add_to_rows = _compiled(into_rows=True) if JIT_ENABLED else _add_to_rows_in_python
"""``add_to_rows(one, flat, rows, factors, stride, count)`` for kernels: add factors[k] * ``one`` to row rows[k] of the
matrix in ``flat``, for k = 0 to ``count`` - 1. The rows must be distinct.
"""
