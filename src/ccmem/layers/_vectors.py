"""Three winners at every place and their pooling: the vector instructions behind :mod:`ccmem.layers._encode`.

Every unit processes 16 neighbouring places in one vector; the four best responses of each place stay in registers, so
nothing is sorted and nothing branches. The code emits vector instructions because LLVM does not vectorise loops over
this many arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.kernels.lanes import broadcast, fold

PLACES = 16
"""Places per vector; arrays of places are padded to whole vectors."""
WINNERS = 3
TOGETHER = 5
"""Units that share one read of the places: enough to hide latencies, few enough for the registers."""
_I64 = ir.IntType(64)
_I32 = ir.IntType(32)


class _Emitter:
    """Shared emitter: arrays, loops and vectors of ``lanes`` floats."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, lanes: int) -> None:
        self.builder = builder
        self.vector = ir.VectorType(ir.FloatType(), lanes)
        self.zero = ir.Constant(self.vector, [0.0] * lanes)
        self.arguments = arguments
        self.data: list[Any] = []
        self.shapes: list[Any] = []
        for kind, value in zip(signature.args, arguments, strict=True):
            is_array = isinstance(kind, types.Array)
            array: Any = context.make_array(kind)(context, builder, value) if is_array else None
            self.data.append(array.data if is_array else None)
            self.shapes.append(cgutils.unpack_tuple(builder, array.shape, kind.ndim) if is_array else ())
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        self._multiply_add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{lanes}f32")

    def loop(self, start: Any, stop: Any, step: int = 1) -> Any:
        return cgutils.for_range_slice(self.builder, start, stop, _I64(step), intp=_I64)

    def by_units(self, n_units: Any, body: Callable[[Any, int], None]) -> None:
        """Emit ``body(first, n)`` for all units, several at a time."""
        together = self.builder.sub(n_units, self.builder.urem(n_units, _I64(TOGETHER)))
        with self.loop(_I64(0), together, TOGETHER) as (unit, _):
            body(unit, TOGETHER)
        with self.loop(together, n_units) as (unit, _):
            body(unit, 1)

    def zeros(self, n: int) -> list[Any]:
        places = [cgutils.alloca_once(self.builder, self.vector) for _ in range(n)]
        for place in places:
            self.builder.store(self.zero, place)
        return places

    def add_product(self, total: Any, a: Any, b: Any) -> None:
        self.builder.store(self.builder.call(self._multiply_add, [a, b, self.builder.load(total)]), total)

    def pointer(self, data: Any, index: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(data, [index]), self.vector.as_pointer())

    def read(self, data: Any, index: Any) -> Any:
        return self.builder.load(self.pointer(data, index), align=4)

    def write(self, value: Any, data: Any, index: Any) -> None:
        self.builder.store(value, self.pointer(data, index), align=4)

    def at(self, *terms: Any) -> Any:
        """Emit the sum of indices, each a value or a (factor, value) pair."""
        total = _I64(0)
        for term in terms:
            total = self.builder.add(total, self.builder.mul(*term) if isinstance(term, tuple) else term)
        return total

    def larger(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)


def _emit_margins(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    e = _Emitter(context, builder, signature, arguments, PLACES)
    image, units, offsets, _, out = e.data
    n_units, n_taps = e.shapes[1]
    width = e.shapes[4][1]
    lowest = ir.Constant(e.vector, [-3.0e38] * PLACES)
    best = [cgutils.alloca_once(builder, e.vector) for _ in range(WINNERS + 1)]

    with e.loop(_I64(0), arguments[3], PLACES) as (place, _):

        def compete(unit: Any, n: int) -> None:
            sums = e.zeros(n)
            with e.loop(_I64(0), n_taps) as (tap, _):
                x = e.read(image, e.at(place, builder.load(builder.gep(offsets, [tap]))))
                for k, total in enumerate(sums):
                    weight = builder.load(builder.gep(units, [e.at((e.at(unit, _I64(k)), n_taps), tap)]))
                    e.add_product(total, broadcast(builder, weight, e.vector), x)
            for k, total in enumerate(sums):
                value = builder.load(total)
                e.write(value, out, e.at((e.at(unit, _I64(k)), width), place))
                for level in best:
                    held = builder.load(level)
                    builder.store(e.larger(held, value), level)
                    value = builder.select(builder.fcmp_ordered("<", held, value), held, value)

        for level in best:
            builder.store(lowest, level)
        e.by_units(n_units, compete)
        limit = builder.load(best[-1])
        with e.loop(_I64(0), n_units) as (unit, _):
            index = e.at((unit, width), place)
            e.write(e.larger(builder.fsub(e.read(out, index), limit), e.zero), out, index)
    return context.get_dummy_value()


def _emit_pool(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    e = _Emitter(context, builder, signature, arguments, 8)
    margins, _, row_parts, reach, column_parts, line, out = e.data
    n_units, places = e.shapes[0]
    grid, high, wide = e.shapes[2]
    row_length = arguments[1]

    with e.loop(_I64(0), grid) as (row, _):
        first, last = (builder.load(builder.gep(reach, [e.at((row, _I64(2)), _I64(k))])) for k in (0, 1))

        def pool(unit: Any, n: int) -> None:
            with e.loop(_I64(0), wide, 8) as (x, _):
                sums = e.zeros(n)
                with e.loop(first, last) as (y, _):
                    part = e.read(row_parts, e.at((e.at((row, high), y), wide), x))
                    for k, total in enumerate(sums):
                        index = e.at((e.at(unit, _I64(k)), places), (y, row_length), x)
                        e.add_product(total, e.read(margins, index), part)
                for k, total in enumerate(sums):
                    e.write(builder.load(total), line, e.at((_I64(k), wide), x))
            for k in range(n):
                with e.loop(_I64(0), grid) as (column, _):
                    (total,) = e.zeros(1)
                    with e.loop(_I64(0), wide, 8) as (x, _):
                        here = e.read(line, e.at((_I64(k), wide), x))
                        e.add_product(total, here, e.read(column_parts, e.at((column, wide), x)))
                    cell = e.at((e.at((e.at(unit, _I64(k)), grid), row), grid), column)
                    builder.store(fold(builder, builder.load(total), builder.fadd), builder.gep(out, [cell]))

        e.by_units(n_units, pool)
    return context.get_dummy_value()


def _typed(emit: Any, kinds: tuple[Any, ...], integer: int, integers: int) -> Any:
    """Return the signature of a function of float32 arrays, one integer and one array of integers."""
    for place, kind in enumerate(kinds):
        wanted = types.int64 if place == integers else types.float32
        if place != integer and (kind.layout != "C" or kind.dtype != wanted):
            raise TypeError(f"a contiguous array of {wanted} is needed, got {kind}")
    return types.void(*(types.int64 if place == integer else kind for place, kind in enumerate(kinds))), emit


@intrinsic  # type: ignore[untyped-decorator]
def _margins(context: Any, image: Any, units: Any, offsets: Any, count: Any, out: Any) -> Any:
    return _typed(_emit_margins, (image, units, offsets, count, out), integer=3, integers=2)


@intrinsic  # type: ignore[untyped-decorator]
def _pool(context: Any, margins: Any, width: Any, row_parts: Any, reach: Any, columns: Any, line: Any, out: Any) -> Any:
    return _typed(_emit_pool, (margins, width, row_parts, reach, columns, line, out), integer=1, integers=3)


def _margins_in_python(image: FloatArray, units: FloatArray, offsets: IntArray, count: int, out: FloatArray) -> None:
    responses = units @ image[np.arange(count) + offsets[:, np.newaxis]]
    out[:, :count] = np.maximum(responses - np.sort(responses, axis=0)[-1 - WINNERS], 0)


def _pool_in_python(
    margins: FloatArray,
    row_length: int,
    row_parts: FloatArray,
    reach: IntArray,
    column_parts: FloatArray,
    line: FloatArray,
    out: FloatArray,
) -> None:
    high, wide = row_parts.shape[1:]
    places = np.arange(high)[:, np.newaxis] * row_length + np.arange(wide)
    rows = np.einsum("myx,gyx->mgx", margins[:, places], row_parts)
    out[:] = (rows @ column_parts.T).ravel()


margins = _margins if JIT_ENABLED else _margins_in_python
"""``margins(image, units, offsets, count, out)``: store the excess of each unit's response at each place over the
fourth best response there, 0 for all but the three winners. Place p sees ``image[p + offsets]``; ``count`` places are
rounded up to whole vectors, for which ``image`` and the rows of ``out`` must have room.
"""

pool = _pool if JIT_ENABLED else _pool_in_python
"""``pool(margins, row_length, row_parts, reach, column_parts, line, out)``: store the sums of each unit's margins over
the cells of a grid in ``out``. A place in row y and column x has weight ``row_parts[g, y, x] column_parts[c, x]`` in
cell (g, c); ``reach`` holds the first row of each g and the row after its last. ``line`` is scratch space.
"""
