"""Classifier composed of parts: a memory whose units have labels, and whose parts see the label of every row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ccmem.base.labelled import LabelledUnits
from ccmem.core.parameters import Rule, declare
from ccmem.core.typing import FloatArray, IntArray
from ccmem.ncl import competitions, growths
from ccmem.ncl.errors import check_names, check_parameters_taken
from ccmem.ncl.model import Model
from ccmem.ncl.parts import PLACES, declared_by, with_defaults


class LabelledMemory(Model):
    """Memory of a :class:`Classifier`: a model whose kernel receives label codes with the rows."""

    _codes: tuple[IntArray, ...] = (np.empty(0, np.int64),)

    def _learn_labelled(self, X: FloatArray, codes: IntArray) -> IntArray:
        """Learn rows with labels; return the unit that learned each row, or -1."""
        learn, self.__dict__["_codes"] = self._learn_kernel, (codes,)

        def with_labels(state: Any, settings: Any, rows: FloatArray, winners: IntArray) -> int:
            return int(learn(state, settings, rows, winners, codes[len(codes) - len(rows) :]))

        return self._learn(X, with_labels).winners


class Classifier(LabelledUnits):
    """Base of composed classifiers. A subclass names parts, as for :class:`ccmem.ncl.Model`.

    By default the first rows of a class become its units, and only the units of the row's own class compete. New
    classes may appear at any time. A row without a label (None or NaN) is counted, but not learned.
    """

    competition: ClassVar[Any] = competitions.label_veto
    growth: ClassVar[Any] = growths.first_samples_of_class
    parameters: ClassVar[dict[str, Any]] = {}
    _rules: ClassVar[dict[str, Rule]]
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **defaults: Any) -> None:
        super().__init_subclass__()
        check_names(cls, PLACES)
        names = (*PLACES, "parameters", "__doc__", "__module__")
        named = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
        named["__qualname__"] = f"{cls.__qualname__}._memory_type"  # name under which pickle finds the class
        memory: Any = type(f"{cls.__name__}Memory", (LabelledMemory,), named)
        cls._defaults = {**cls._defaults, **defaults}
        declared = with_defaults(cls, memory._declared, cls._defaults)
        order = dict.fromkeys([*declared_by(memory.growth), *memory._rules])  # the size of the model comes first
        declare(cls, Classifier, {name: declared[name] for name in order})
        check_parameters_taken(cls, order)
        cls._memory_type, cls._rules, cls._shape_parameters = memory, memory._rules, memory._shape_parameters

    def __init__(self, *sizes: Any, **parameters: Any) -> None:
        raise TypeError("ccmem.ncl.Classifier is a base class; name the parts of a model in a subclass")
