"""Classifier composed of parts: a memory whose units have labels, and whose parts see the label of every row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ccmem.base.labelled import LabelledUnits
from ccmem.core.parameters import Rule
from ccmem.core.typing import FloatArray, IntArray
from ccmem.ncl.model import Model
from ccmem.ncl.parts import PLACES


class LabelledMemory(Model):
    """Memory of a :class:`Classifier`: a model whose kernel receives label codes with the rows."""

    _codes_of_row: tuple[IntArray, ...] = (np.full(1, -1),)
    """Codes of the rows that are learned; before the first, a row without a label."""

    def _learn_labelled(self, X: FloatArray, codes: IntArray) -> IntArray:
        """Learn rows with labels; return the unit that learned each row, or -1."""
        learn = self._learn_kernel

        def with_labels(state: Any, settings: Any, rows: FloatArray, winners: IntArray) -> int:
            self.__dict__["_codes_of_row"] = (codes[len(codes) - len(rows) :],)
            return int(learn(state, settings, rows, winners, *self._codes_of_row))

        return self._learn(X, with_labels).winners


class Classifier(LabelledUnits):
    """Base of composed classifiers. A subclass names parts, as for :class:`ccmem.ncl.Model`, and has an ``__init__``.

    New classes may appear at any time. A row without a label (None or NaN) is counted, but not learned.
    """

    parameters: ClassVar[dict[str, Any]] = {}
    _rules: ClassVar[dict[str, Rule]]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        names = (*PLACES, "parameters", "__doc__", "__module__")
        named = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
        named["__qualname__"] = f"{cls.__qualname__}._memory_type"  # name under which pickle finds the class
        cls._memory_type = type(f"{cls.__name__}Memory", (LabelledMemory,), named)
        cls._rules, cls._shape_parameters = cls._memory_type._rules, cls._memory_type._shape_parameters
