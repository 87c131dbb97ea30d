"""What estimators share: any thread may call them, their shape is fixed once learning has begun, they can be saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from ccmem._sklearn import NotFittedError
from ccmem.guard import GuardedEstimator, reading
from ccmem.memory import aligned
from ccmem.parameters import Rule, check_parameters

_SINGLE = {int, float, str, type(None)}


class Estimator(GuardedEstimator):
    """Base of the estimators; scikit-learn's own comes last."""

    _rules: ClassVar[dict[str, Rule]]
    """What is possible for every parameter."""
    _shape_parameters: ClassVar[tuple[str, ...]]
    """Parameters that cannot change once learning has begun."""
    _began_with: tuple[Any, ...]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def _require_start(self, error: type[Exception] = NotFittedError) -> None:
        if not self.__sklearn_is_fitted__():
            raise error(f"This {type(self).__name__} has learned nothing yet; call fit or partial_fit first")

    def _check_settings(self) -> None:
        """Check the parameters, also against those that learning began with."""
        check_parameters(type(self).__name__, self._rules, vars(self))
        if self.__sklearn_is_fitted__() and self._shape() != self._began_with:
            pairs = zip(self._shape_parameters, self._began_with, self._shape(), strict=True)
            changed = [f"{name} from {old!r} to {new!r}" for name, old, new in pairs if old != new]
            raise ValueError(
                f"{type(self).__name__}: {', '.join(changed)} cannot change once learning has begun; "
                "call fit to start anew"
            )

    def _shape(self) -> tuple[Any, ...]:
        values = [getattr(self, name) for name in self._shape_parameters]
        return tuple(v if type(v) in _SINGLE or not isinstance(v, Sequence) else tuple(v) for v in values)

    def _adopt(self, fresh: Self) -> None:
        """Take over all that ``fresh``, a clone, has learned."""
        self.__dict__.pop("feature_names_in_", None)
        own = (*self.get_params(deep=False), "_guard")  # type: ignore[attr-defined]
        self.__dict__.update((name, value) for name, value in vars(fresh).items() if name not in own)


class SavedEstimator(Estimator):
    """The same for what is registered in ``__init__.pyi``: it can be saved. Its state is a NamedTuple of arrays."""

    _state: Any

    @reading
    def to_bytes(self) -> bytes:
        """All that was learned, as bytes: what :meth:`save` writes in less space; :func:`ccmem.from_bytes` reads it."""
        from ccmem.persistence import to_bytes

        return to_bytes(self)

    @reading
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to a safetensors file, atomically; :func:`ccmem.load` reads it bit for bit."""
        from ccmem.persistence import save

        save(self, path)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if hasattr(self, "_state"):  # unpickled arrays may be read-only maps of a file; learning writes to them
            self._state = self._state._make(map(aligned, self._state))


class Summarised:
    """Base of memories, and of classifiers that hold one: they show themselves in words and in notebooks."""

    @reading
    def summary(self) -> str:
        """What has been learned, in a few lines.

        >>> from ccmem import AdaptiveCCM
        >>> print(AdaptiveCCM().fit([[1.0, 0.0], [0.9, 0.1]]).summary())
        AdaptiveCCM: 2 samples of 2 columns, 1 block, 2 units
        <BLANKLINE>
        block                 units      samples  labels
        block 0            *      2            2  -
        """
        from ccmem.summary import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from ccmem.summary import html

        return html(self) or super()._repr_mimebundle_().get("text/html", "")  # type: ignore[misc]

    def _repr_mimebundle_(self, **more: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
