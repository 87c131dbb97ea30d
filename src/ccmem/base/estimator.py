"""Base classes of estimators: thread-safe methods, a fixed shape once learning has begun, and saving."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

from ccmem.core.allocation import aligned
from ccmem.core.locking import GuardedEstimator, reading
from ccmem.core.parameters import Rule, check_parameters
from ccmem.core.sklearn import NotFittedError
from ccmem.core.undo import undone_on_error

_SINGLE = {int, float, str, type(None)}


class Estimator(GuardedEstimator):
    """Base of the estimators; scikit-learn's base class must come later in the method resolution order."""

    _rules: ClassVar[dict[str, Rule]]
    """Validation rule of every parameter."""
    _shape_parameters: ClassVar[tuple[str, ...]]
    """Parameters that cannot change once learning has begun."""
    _began_with: tuple[Any, ...]
    _kept_until_assigned: ClassVar[tuple[str, ...]] = ("_unchanged",)
    """Results that are forgotten when an attribute is assigned."""
    _begun: ClassVar[str] = "_state"
    """Attribute that exists once learning has begun."""

    def _assign(self, given: dict[str, Any]) -> None:
        """Store parameters: the local variables of an ``__init__`` that has nothing else to do."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun in self.__dict__

    def _require_start(self, error: type[Exception] = NotFittedError) -> None:
        if not self.__sklearn_is_fitted__():
            raise error(f"This {type(self).__name__} has learned nothing yet; call fit or partial_fit first")

    def _check_settings(self) -> None:
        """Check the parameters, including that shape parameters equal their values at the start of learning."""
        check_parameters(type(self).__name__, self._rules, vars(self))
        if self.__sklearn_is_fitted__() and self._shape() != self._began_with:
            pairs = zip(self._shape_parameters, self._began_with, self._shape(), strict=True)
            changed = [f"{name} from {old!r} to {new!r}" for name, old, new in pairs if old != new]
            raise ValueError(
                f"{type(self).__name__}: {', '.join(changed)} cannot change once learning has begun; "
                "call fit to start again"
            )

    def _check_unchanged(self) -> None:
        """Check the settings as :meth:`_check_settings` does; the result is kept until an attribute is assigned."""
        if "_unchanged" not in self.__dict__:
            self._check_settings()
            self.__dict__["_unchanged"] = True

    def __setattr__(self, name: str, value: Any) -> None:
        for kept in self._kept_until_assigned:
            self.__dict__.pop(kept, None)
        super().__setattr__(name, value)

    def _shape(self) -> tuple[Any, ...]:
        values = [getattr(self, name) for name in self._shape_parameters]
        return tuple(v if type(v) in _SINGLE or not isinstance(v, Sequence) else tuple(v) for v in values)

    @contextmanager
    def _anew(self) -> Iterator[None]:
        """Forget all that was learned, and learn it anew in the block; if the block raises, nothing has changed."""
        with undone_on_error(self):
            for name in [name for name in vars(self) if name.endswith("_") or name == self._begun]:
                del self.__dict__[name]  # scikit-learn keeps attributes of its own beside these
            yield

    def _first_chunk(self) -> AbstractContextManager[None]:
        """Return the context in which a chunk is learned: if it is the first one and raises, nothing has changed."""
        return nullcontext() if self.__sklearn_is_fitted__() else self._anew()


class SavedEstimator(Estimator):
    """Base of the estimators in ``__init__.pyi``, which can be saved. Their state is a NamedTuple of arrays."""

    _state: Any
    n_features_in_: Any

    @reading
    def to_bytes(self) -> bytes:
        """Return all learned state as bytes, more compact than :meth:`save`; :func:`ccmem.from_bytes` reads them."""
        from ccmem.io.persistence import to_bytes

        return to_bytes(self)

    @reading
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all learned state to a safetensors file, atomically; :func:`ccmem.load` restores it bit for bit."""
        from ccmem.io.persistence import save

        save(self, path)

    def _export_columns(self) -> dict[str, Any]:
        """Return the number of columns, and their names if they had any."""
        names = {name: vars(self)[name] for name in ("feature_names_in_",) if name in vars(self)}
        return {"n_features_in_": int(self.n_features_in_), **names}

    def _import_columns(self, fields: dict[str, Any]) -> None:
        """Restore the result of :meth:`_export_columns`; raise ValueError if it is damaged."""
        from ccmem.base.storage import check_vector

        width = fields["n_features_in_"]
        if type(width) is not int or not 0 < width < 2**62:
            raise ValueError(f"{type(self).__name__}: n_features_in_={width!r} is not a number of columns")
        if "feature_names_in_" in fields:
            check_vector("feature_names_in_", fields["feature_names_in_"], width)
        self.__dict__.update({name: fields[name] for name in fields if name.endswith("_in_")})

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if hasattr(self, "_state"):  # unpickled arrays may be read-only maps of a file, but learning writes to them
            self._state = self._state._make(map(aligned, self._state))


class Summarised:
    """Base of memories, and of classifiers that hold one, with a text summary and a notebook display."""

    @reading
    def summary(self) -> str:
        """Return a description of the learned state, in a few lines.

        >>> from ccmem import AdaptiveCCM
        >>> print(AdaptiveCCM().fit([[1.0, 0.0], [0.9, 0.1]]).summary())
        AdaptiveCCM: 2 samples of 2 columns, 1 block, 2 units
        <BLANKLINE>
        block                 units      samples  labels
        block 0            *      2            2  -
        """
        from ccmem.core.summary import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from ccmem.core.summary import html

        return html(self) or super()._repr_mimebundle_().get("text/html", "")  # type: ignore[misc]

    def _repr_mimebundle_(self, **more: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
