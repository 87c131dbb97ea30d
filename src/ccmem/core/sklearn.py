"""Import scikit-learn without loading scipy.stats and pandas.

scikit-learn imports both for functions that ccmem never calls, and the two take twice as long as all other imports
together (``python -X importtime -c "import sklearn.base"``). While scikit-learn loads, lazy proxy modules take their
place; a proxy imports the real module on first attribute access. Afterwards the proxies are removed from
``sys.modules``, so ``import pandas`` elsewhere gets the real module and code that checks ``sys.modules`` for pandas, as
scikit-learn does for every array, sees the truth. (importlib's LazyLoader would have to stay in ``sys.modules``.) A
thread that imports one of the two at the same moment keeps a working proxy.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A proxy that imports its module on first attribute access."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            if name.startswith("__") and name not in ("__path__", "__all__"):  # tools that inspect every module
                raise AttributeError(f"module {self.__name__!r} has not been loaded yet")
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _put_off(*modules: str) -> Iterator[None]:
    """Replace ``modules`` by proxies inside this block, unless they are loaded already or missing."""
    stand_ins = {name: _Later(name) for name in modules if name not in sys.modules and _is_installed(name)}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


def _is_installed(name: str) -> bool:
    """True if the module can be imported; submodules are assumed to exist."""
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


@contextmanager
def names_are_known() -> Iterator[None]:
    """Suppress scikit-learn's warning about missing feature names; the reader of the rows selects columns by name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
