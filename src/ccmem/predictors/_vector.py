"""The one loop that networks spend their time in, as vector instructions.

Left to LLVM, a loop over some hundred floats is half bookkeeping: checks for overlap before it, odd ends one by one
after it. Every element is computed alone, so the result is the same bit for bit.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ccmem._jit import JIT_ENABLED
from ccmem._lanes import LANES
from ccmem._typing import FloatArray


def _in_python(total: FloatArray, row: FloatArray, factor: Any) -> None:
    total += factor * row


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    total, row = (context.make_array(t)(context, builder, v)
                  for t, v in zip(signature.args[:2], arguments[:2], strict=True))  # fmt: skip
    dtype = signature.args[0].dtype
    vector = ir.VectorType(context.get_data_type(dtype), LANES)
    pointer = vector.as_pointer()
    i32, i64 = ir.IntType(32), ir.IntType(64)
    align = dtype.bitwidth // 8
    size = cgutils.unpack_tuple(builder, row.shape, 1)[0]
    whole = builder.and_(size, i64(-LANES))

    def repeated(value: Any) -> Any:
        undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
        first = builder.insert_element(undefined, value, i32(0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(i32, LANES), [0] * LANES))

    def at(array: Any, index: Any) -> Any:
        return builder.bitcast(builder.gep(array.data, [index]), pointer)

    factor = repeated(arguments[2])
    with cgutils.for_range_slice(builder, i64(0), whole, i64(LANES), intp=i64) as (index, _):
        place = at(total, index)
        product = builder.fmul(factor, builder.load(at(row, index), align=align))
        builder.store(builder.fadd(builder.load(place, align=align), product), place, align=align)
    with builder.if_then(builder.icmp_unsigned("<", whole, size)):
        left = repeated(builder.trunc(builder.sub(size, whole), i32))
        mask = builder.icmp_unsigned("<", ir.Constant(ir.VectorType(i32, LANES), list(range(LANES))), left)
        zero = ir.Constant(vector, [0.0] * LANES)
        kind = f"v{LANES}f{dtype.bitwidth}.p0"
        loads = ir.FunctionType(vector, [pointer, i32, mask.type, vector])
        stores = ir.FunctionType(ir.VoidType(), [vector, pointer, i32, mask.type])
        load = cgutils.get_or_insert_function(builder.module, loads, f"llvm.masked.load.{kind}")
        store = cgutils.get_or_insert_function(builder.module, stores, f"llvm.masked.store.{kind}")
        end, more = (builder.call(load, [at(array, whole), i32(align), mask, zero]) for array in (total, row))
        result = builder.fadd(end, builder.fmul(factor, more))
        builder.call(store, [result, at(total, whole), i32(align), mask])
    return context.get_dummy_value()


def _compiled() -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def add_scaled(typing_context: Any, total: Any, row: Any, factor: Any) -> Any:
        if total != row or total.ndim != 1 or total.layout != "C" or factor != total.dtype:
            raise TypeError(f"two contiguous vectors and a factor of one type are needed, got {total}, {row}, {factor}")
        return types.none(total, row, factor), _emit

    return add_scaled


add_scaled = _compiled() if JIT_ENABLED else _in_python
"""``add_scaled(total, row, factor)`` for kernels: total <- total + factor * row; ``total`` is as long as ``row``."""
