"""scikit-learn without scipy.stats and pandas, which it imports for a function or two that are never called here.

The two take twice as long as all other imports together (``python -X importtime -c "import sklearn.base"``). While
scikit-learn loads, stand-ins are in their place; it keeps a stand-in, which imports the real module when something is
looked up in it. Afterwards the stand-ins are gone from ``sys.modules``: ``import pandas`` elsewhere is the real thing,
and whoever asks ``sys.modules`` whether pandas is in use, as scikit-learn does with every array, is told the truth.
(importlib's LazyLoader cannot do that: its module has to stay there.) A thread that imports one of the two at that very
moment keeps a stand-in, too, and it serves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A module that is imported when it is first looked into."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            if name.startswith("__") and name not in ("__path__", "__all__"):  # tools that look at every module
                raise AttributeError(f"module {self.__name__!r} has not been loaded yet")
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _put_off(*modules: str) -> Iterator[None]:
    """Leave ``modules`` out of the imports in this block, unless they are there or something is needed of them."""
    stand_ins = {name: _Later(name) for name in modules if name not in sys.modules and _is_installed(name)}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


def _is_installed(name: str) -> bool:
    """Whether there is such a module; whoever can do without it must be told so. Parts of a package are there."""
    return "." in name or find_spec(name) is not None


with _put_off("scipy.stats", "pandas"):
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import ClassNamePrefixFeaturesOutMixin as ClassNamePrefixFeaturesOutMixin
    from sklearn.base import ClusterMixin as ClusterMixin
    from sklearn.base import MetaEstimatorMixin as MetaEstimatorMixin
    from sklearn.base import TransformerMixin as TransformerMixin
    from sklearn.base import clone as clone
    from sklearn.exceptions import NotFittedError as NotFittedError
    from sklearn.utils.metaestimators import available_if as available_if
    from sklearn.utils.multiclass import check_classification_targets as check_classification_targets
    from sklearn.utils.validation import column_or_1d as column_or_1d
    from sklearn.utils.validation import validate_data as validate_data
