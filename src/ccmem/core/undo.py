"""Rollback of partly learned chunks: a call that ends early has learned all of its rows or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def attributes_kept_on_error(*owners: Any) -> Iterator[None]:
    """Restore the attributes of ``owners`` if the block raises, including interrupts."""
    attributes = [(owner, dict(vars(owner))) for owner in owners]
    try:
        yield
    except BaseException:
        for owner, known in attributes:
            vars(owner).clear()
            vars(owner).update(known)
        raise


@contextmanager
def undone_on_error(*owners: Any) -> Iterator[None]:
    """Restore the attributes of ``owners`` and the arrays in them if the block raises, including interrupts.

    Arrays are found as attributes and inside tuples; the state of random generators is restored. Other objects must be
    replaced rather than modified in place. The cost is a copy of all arrays, so omit it for single rows.
    """
    values = [value for owner in owners for value in vars(owner).values()]
    arrays = [(array, array.copy()) for array in arrays_in(values)]
    generators = [g.bit_generator for g in values if isinstance(g, np.random.Generator)]
    states = [generator.state for generator in generators]
    try:
        with attributes_kept_on_error(*owners):
            yield
    except BaseException:
        for array, copy in arrays:
            array[...] = copy
        for generator, state in zip(generators, states, strict=True):
            generator.state = state
        raise


def arrays_in(values: Any) -> Iterator[Any]:
    """Yield the writeable arrays among ``values`` and inside tuples."""
    for value in values:
        if isinstance(value, np.ndarray):
            if value.flags.writeable:
                yield value
        elif isinstance(value, tuple):
            yield from arrays_in(value)
