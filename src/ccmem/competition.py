"""Who wins: similarity and distance of a sample to every unit, and the K best matching units.

Sums have a fixed order, so that a result never depends on the processor, on the chunk it came in, or on which kernel
asked for it: lane ``l`` adds up the terms whose index is ``l`` modulo 32, first to last, and the 32 lanes are then
folded in halves. That is what a vector unit does anyway, so it costs nothing, and it makes "bit for bit" a promise
that tests can hold us to. Terms are formed in the type of the data; sums are handed on as doubles.

Ties go to the lowest index everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ccmem._jit import JIT_ENABLED, kernel
from ccmem._typing import BoolArray, FloatArray, IntArray

LANES = 32


def _sum_in_python(terms: FloatArray) -> float:
    """The lane sum without numba: what the compiled form below must equal (and what runs with the JIT off)."""
    lanes = np.zeros(LANES, terms.dtype)
    for start in range(0, terms.size, LANES):
        part = terms[start : start + LANES]
        lanes[: part.size] += part
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0])


def _lane_sum(term: Callable[[Any, Any, Any], Any], in_python: Callable[..., float]) -> Any:
    """A function ``f(a, b) -> float`` for kernels that sums ``term`` over two vectors in lanes.

    Written as vector instructions, because LLVM may only vectorise a plain loop over floats if it is allowed to
    reorder the sum, and then the order would be its own choice.
    """
    if not JIT_ENABLED:
        return in_python

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = (context.make_array(t)(context, builder, v)
                for t, v in zip(signature.args, arguments, strict=True))  # fmt: skip
        dtype = signature.args[0].dtype
        scalar = context.get_data_type(dtype)
        vector = ir.VectorType(scalar, LANES)
        i32, i64 = ir.IntType(32), ir.IntType(64)
        align = dtype.bitwidth // 8
        size = cgutils.unpack_tuple(builder, a.shape, 1)[0]
        whole = builder.and_(size, i64(-LANES))
        zero = ir.Constant(vector, [0.0] * LANES)
        sums = cgutils.alloca_once_value(builder, zero)

        def add(x: Any, y: Any) -> None:
            builder.store(builder.fadd(builder.load(sums), term(builder, x, y)), sums)

        def at(array: Any, index: Any) -> Any:
            return builder.bitcast(builder.gep(array.data, [index]), vector.as_pointer())

        with cgutils.for_range_slice(builder, i64(0), whole, i64(LANES), intp=i64) as (index, _):
            add(builder.load(at(a, index), align=align), builder.load(at(b, index), align=align))
        with builder.if_then(builder.icmp_unsigned("<", whole, size)):
            counts = ir.VectorType(i32, LANES)
            undefined = ir.Constant(counts, ir.Undefined)
            left = builder.insert_element(undefined, builder.trunc(builder.sub(size, whole), i32), i32(0))
            left = builder.shuffle_vector(left, undefined, ir.Constant(counts, [0] * LANES))
            mask = builder.icmp_unsigned("<", ir.Constant(counts, list(range(LANES))), left)
            load = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(vector, [vector.as_pointer(), i32, mask.type, vector]),
                f"llvm.masked.load.v{LANES}f{dtype.bitwidth}.p0",
            )
            add(*(builder.call(load, [at(array, whole), i32(align), mask, zero]) for array in (a, b)))
        total, width = builder.load(sums), LANES
        while width > 1:
            width //= 2
            low, high = (
                builder.shuffle_vector(total, total, ir.Constant(ir.VectorType(i32, width), list(range(o, o + width))))
                for o in (0, width)
            )
            total = builder.fadd(low, high)
        total = builder.extract_element(total, i32(0))
        return total if dtype is types.float64 else builder.fpext(total, ir.DoubleType())

    @intrinsic  # type: ignore[untyped-decorator]
    def lane_sum(typing_context: Any, a: Any, b: Any) -> Any:
        if a != b or a.ndim != 1 or a.layout != "C":
            raise TypeError(f"two contiguous vectors of one type are needed, got {a} and {b}")
        return types.float64(a, b), emit

    return lane_sum


def _absolute(builder: Any, x: Any, y: Any) -> Any:
    difference = builder.fsub(x, y)
    vector = difference.type
    bits = 32 if isinstance(vector.element, ir.FloatType) else 64
    name = f"llvm.fabs.v{LANES}f{bits}"
    absolute = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), name)
    return builder.call(absolute, [difference])


def _square(builder: Any, x: Any, y: Any) -> Any:
    difference = builder.fsub(x, y)
    return builder.fmul(difference, difference)


dot = _lane_sum(lambda builder, x, y: builder.fmul(x, y), lambda a, b: _sum_in_python(a * b))
squared_distance = _lane_sum(_square, lambda a, b: _sum_in_python((a - b) * (a - b)))
manhattan_distance = _lane_sum(_absolute, lambda a, b: _sum_in_python(np.abs(a - b)))


@kernel
def distance_power(a: FloatArray, b: FloatArray, p: float) -> float:
    """Sum of \\|a - b\\|^p: the p-norm distance before its root (for p = inf, the largest difference).

    The competition compares these: the root keeps the order and would only round away differences.
    """
    if p == 2.0:
        return squared_distance(a, b)
    if p == 1.0:
        return manhattan_distance(a, b)
    total = 0.0
    for i in range(a.shape[0]):
        difference = abs(float(a[i] - b[i]))
        if p == np.inf:
            total = max(total, difference)
        else:
            total += difference**p
    return total


@kernel
def root(power: float, p: float) -> float:
    """The distance itself, from what :func:`distance_power` gives."""
    if p == 2.0:
        return float(np.sqrt(power))
    if p == 1.0 or p == np.inf:
        return power
    return float(power ** (1.0 / p))


@kernel
def unit_scale(x: FloatArray, epsilon: float) -> float:
    """What to multiply ``x`` with for unit length: 1 / (\\|x\\| + epsilon)."""
    return 1.0 / (np.sqrt(dot(x, x)) + epsilon)


@kernel
def find_winners(scores: FloatArray, largest: bool, winners: IntArray) -> None:
    """Fill ``winners`` with the indices of the best scores: distinct, best first, ties to the lowest index.

    An insertion into a list of K: no sorting, nothing allocated, one pass.
    """
    k = winners.shape[0]
    found = 0
    for i in range(scores.shape[0]):
        score = scores[i]
        place = found
        while place > 0 and (score > scores[winners[place - 1]] if largest else score < scores[winners[place - 1]]):
            place -= 1
        if place == k:
            continue
        found = min(found + 1, k)
        for j in range(found - 1, place, -1):
            winners[j] = winners[j - 1]
        winners[place] = i


def find_bmu(scores: FloatArray, n_winners: int = 1, winner_type: str = "max") -> IntArray:
    """The K best matching units of one pre-activation vector (FindBMU, algorithm 1 of the paper).

    As printed, the algorithm overwrites a winner with the maximum and would find it again; here the winners are
    distinct, which is what it says it returns. Ties go to the lowest index.

    >>> import numpy as np
    >>> find_bmu(np.array([0.3, 0.9, 0.1, 0.9]), n_winners=3)
    array([1, 3, 0])
    >>> find_bmu(np.array([0.3, 0.9, 0.1, 0.9]), winner_type="min")
    array([2])
    """
    if winner_type not in ("max", "min"):
        raise ValueError(f"winner_type={winner_type!r} is unknown; say 'max' or 'min'")
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not 1 <= n_winners <= scores.size:
        raise ValueError(
            f"n_winners={n_winners} of scores with shape {scores.shape}: need a vector of at least that many"
        )
    winners = np.empty(n_winners, np.int64)
    find_winners(scores, winner_type == "max", winners)
    return winners


def encode(winners: IntArray, n_units: int) -> BoolArray:
    """One-hot encoding of a set of winners: Enc(w, d_z) of the paper.

    >>> encode([3, 1], 4).astype(int)
    array([0, 1, 0, 1])
    """
    winners = np.asarray(winners, dtype=np.int64)
    if winners.size and not (winners.min() >= 0 and winners.max() < n_units):
        raise ValueError(f"winners {winners.tolist()} do not all lie in 0..{n_units - 1}")
    code = np.zeros(n_units, np.bool_)
    code[winners] = True
    return code


@kernel
def similarities(X: FloatArray, prototypes: FloatArray, epsilon: float, out: FloatArray) -> None:
    """Cosine-like similarity of every row of ``X`` to every prototype."""
    for r in range(X.shape[0]):
        scale = unit_scale(X[r], epsilon)
        for i in range(prototypes.shape[0]):
            out[r, i] = dot(prototypes[i], X[r]) * scale


@kernel
def distances(X: FloatArray, prototypes: FloatArray, p: float, out: FloatArray) -> None:
    """p-norm distance of every row of ``X`` to every prototype."""
    for r in range(X.shape[0]):
        for i in range(prototypes.shape[0]):
            out[r, i] = root(distance_power(X[r], prototypes[i], p), p)


@kernel
def most_similar(X: FloatArray, prototypes: FloatArray, competes: BoolArray, epsilon: float, winners: IntArray) -> None:
    """The most similar competing prototype of every row (-1 where none competes)."""
    for r in range(X.shape[0]):
        scale = unit_scale(X[r], epsilon)
        best, best_score = -1, -np.inf
        for i in range(prototypes.shape[0]):
            if competes[i]:
                score = dot(prototypes[i], X[r]) * scale
                if score > best_score:
                    best, best_score = i, score
        winners[r] = best


@kernel
def nearest(X: FloatArray, prototypes: FloatArray, competes: BoolArray, p: float, winners: IntArray) -> None:
    """The nearest competing prototype of every row (-1 where none competes)."""
    for r in range(X.shape[0]):
        best, best_score = -1, np.inf
        for i in range(prototypes.shape[0]):
            if competes[i]:
                score = distance_power(X[r], prototypes[i], p)
                if score < best_score:
                    best, best_score = i, score
        winners[r] = best
