"""Discriminant analysis from running sums: a readout without forgetting.

For rows x with label c, d columns, and all sums over the rows seen so far:

    m_c    = mean of the rows of class c                            n_c of them, n in all
    W      = sum over classes of (x - m_c)(x - m_c)' / n            one covariance for all classes: d (d + 1) / 2 floats
    V_c    = the n_axes largest axes of (x - m_c)(x - m_c)'         per class; V_c'V_c approximates its scatter
    B      = (1 - own_share) W + ridge R                            R: trace(W) / d I, or the diagonal of W
    S_c    = B + own_share V_c'V_c / (n_c + n_axes)                 with few rows, B alone
    g_c(x) = (x - m_c)' S_c^-1 (x - m_c) + log det S_c              the class with the smallest score wins
    p_c(x) ~ exp(-g_c(x) / (2 T))

The sums do not depend on the order of rows, so the order of classes or tasks cannot cause forgetting: up to rounding,
the sums are those of the shuffled stream. Only the axes depend slightly on the order, because axes beyond n_axes are
dropped each time the buffer is added. S_c is never formed: by Woodbury's identity a prediction takes one product with
B^-1 m_c and n_axes others per class. Rows wait in a buffer, and predictions use the sums without it: at most
``buffer_rows`` rows wait, and of every class at most an eighth of the number of its rows in the sums. Priors are
multiplied to p_c. T is learned online: from time to time rows are scored before they are learned, and T moves towards
the minimum of their log loss. The diagonal of W is used where columns do not share a unit
(:mod:`ccmem.base.normalised`). A class of one sample has the shared covariance; if all variances are 0, the
nearest mean wins. This is regularised discriminant analysis (Friedman, 1989) with low-rank class covariances; it
involves no competition.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2)) @ [[3.0, 0.0], [0.0, 0.3]] + np.repeat([[0.0, 0.0], [0.0, 2.0]], 150, axis=0)
>>> clf = DiscriminantClassifier(n_axes=1).partial_fit(X[:150], ["low"] * 150)
>>> clf.partial_fit(X[150:], ["high"] * 150).predict([[6.0, 0.2], [-6.0, 1.8]])      # one class after the other
array(['low', 'high'], dtype=object)
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.classifier import CountingClassifier
from ccmem.base.storage import check_names
from ccmem.base.validation import check_finite, check_rows, plain_row
from ccmem.core.locking import learning, reading
from ccmem.core.parameters import Rule, boolean, check_parameters, choice, integer, number
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.core.undo import arrays_in, attributes_kept_on_error, undone_on_error
from ccmem.kernels.discriminant import Settings
from ccmem.kernels.priors import AUTO, COUNTS, EQUAL, PREVIOUS, STREAM
from ccmem.readout._following import Following
from ccmem.readout._reject import check_reject, rejected
from ccmem.readout._saved import check_classes
from ccmem.readout._sums import TAUGHT, Sums

FEW_COLUMNS = 32
"""Largest number of columns for which forgetting is chosen by evidence; each row then costs d^3 / 6 steps per class."""
_PRIORS: dict[str, int] = {"auto": AUTO, "all": COUNTS, "stream": STREAM, "equal": EQUAL}


class DiscriminantClassifier(CountingClassifier):
    """Discriminant analysis for streams: tracks drift if columns are few; the order of classes causes no forgetting.

    For informative features: those of a :class:`ccmem.PatchLayer`, embeddings of a pretrained network, sensor readings,
    columns of a table in any units. New classes may appear at any time; rows without a label are skipped.

    With at most 32 columns, several sets of sums with different memory lengths are kept. Each is weighted by its
    forecasts of the latest labels, and so are archived copies of earlier sums (:mod:`ccmem.readout._following`). An
    absent class does not decay. With more columns there is one set of running sums.

    Parameters
    ----------
    n_axes : int, default=20
        Number of principal axes kept per class (k). They take n_axes x d floats per class.
    own_share : float, default=0.4
        Weight of a class's covariance; the rest is the weight of the shared covariance. 0 gives linear discriminant
        analysis.
    ridge : float, default=0.02
        Fraction added to every variance: of that variance or, if columns share a unit, of the mean variance.
    buffer_rows : int, default=64
        Maximum number of rows that are added to the sums together; predictions do not use rows that wait. Small buffers
        are slower.
    forgetting : "auto" or "none", default="auto"
        "auto" tracks drift if columns are few; "none" always keeps one set of running sums.
    priors : "auto", "all", "stream" or "equal", default="auto"
        Class priors. "all": frequencies among all rows learned, which do not depend on their order. "equal": equal
        priors, so that rare classes are not missed. "stream": recent frequencies. "auto": "all" or "equal", by the
        number of the latest 500 rows that each predicts. With forgetting="none" or many columns, "auto" and "stream"
        are "all".
    autoregressive : bool, default=False
        True to condition the priors on the previous label: recent frequencies after that label. For streams whose
        labels arrive before the next row is predicted; needs forgetting.
    unlabeled : label or None, default=None
        A value of ``y`` that also means "no label", besides None and NaN.

    Attributes
    ----------
    classes_ : array of the labels seen or announced so far, sorted.
    class_counts_, means_ : number of rows of each class, and their mean; copies.
    temperature_ : float, divisor of the scores before the softmax.
    n_floats_ : int, number of floats kept, including the buffer.
    working_floats_ : int, number of temporary floats needed to learn or predict.
    n_samples_seen_, n_samples_taught_ : number of rows seen, and of rows with a label.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_axes": integer(1),
        "own_share": number(0.0, 1.0, open_above=True),
        "ridge": number(0.0, open_below=True, open_above=True),
        "buffer_rows": integer(1),
        "forgetting": choice("auto", "none"),
        "priors": choice(*_PRIORS),
        "autoregressive": boolean(),
    }
    _shape_parameters: ClassVar[tuple[str, ...]] = ("n_axes", "buffer_rows", "forgetting")
    _not_pickled: ClassVar[tuple[str, ...]] = ("_made", "_label_codes", "_unchanged")
    _state: Sums | Following
    _made: list[Any]
    """Cached rule of the running sums, and what it was made from."""

    def __init__(
        self,
        n_axes: int = 20,
        *,
        own_share: float = 0.4,
        ridge: float = 0.02,
        buffer_rows: int = 64,
        forgetting: str = "auto",
        priors: str = "auto",
        autoregressive: bool = False,
        unlabeled: Any = None,
    ) -> None:
        self._assign(locals())

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the rows of ``X`` that have a label; the result does not depend on chunk boundaries.

        ``classes`` may announce future labels; it is optional.
        """
        self._teach_safely(X, y, classes)
        return self

    @learning
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one sample, if it has a label."""
        self._learn_one(x, y)

    def _learn_row(self, row: FloatArray, code: int) -> None:
        self._check_unchanged()
        self._state.learn(row, np.array([code]), self._settings())

    def _teach(self, X: Any, y: Any, classes: Any) -> None:
        self._check_unchanged()
        rows = self._check(X)
        codes, all_classes = self._codes(y, len(rows), classes)
        with undone_on_error(self) if len(rows) > 1 else nullcontext():
            self._learn_all(rows, codes, all_classes)

    def _learn_all(self, rows: FloatArray, codes: IntArray, classes: Any) -> None:
        first = not self.__sklearn_is_fitted__()
        known = classes[:0] if first else self.classes_
        places = np.searchsorted(classes, known.astype(classes.dtype))
        if first:
            kind = self._kind(rows.shape[1])
            if self.autoregressive and kind is Sums:
                raise ValueError(
                    f"DiscriminantClassifier: autoregressive=True needs forgetting='auto' and at most {FEW_COLUMNS} "
                    f"columns; there are {rows.shape[1]}"
                )
            state, self._made = kind.new(rows.shape[1], int(self.n_axes), int(self.buffer_rows)), []
        else:
            state = self._state
        self._state = state.with_classes(places, len(classes))
        self.classes_, self._began_with = classes, self._shape()
        self._check_unchanged()  # so that predictions leave the attributes as they are
        self._state.learn(rows, codes, self._settings())

    def _settings(self) -> Settings:
        priors = PREVIOUS if self.autoregressive else _PRIORS[self.priors]
        return Settings(float(self.own_share), float(self.ridge), int(self.n_axes), priors)

    def _kind(self, n_features: int) -> type[Sums] | type[Following]:
        return Following if self.forgetting == "auto" and n_features <= FEW_COLUMNS else Sums

    @learning
    def _widen(self, n_features: int) -> None:
        """Add columns that were 0 in all earlier rows."""
        self._state = self._state.with_columns(n_features)
        self.n_features_in_ = n_features

    # Reading -----------------------------------------------------------------------------------------------------

    @reading
    def predict(self, X: Any, reject: float | None = None) -> Any:
        """Return the most likely label of every row.

        With ``reject``, a probability, the answer is None if the most likely label is less likely than ``reject`` or,
        with few columns, if :meth:`is_unknown` holds.
        """
        check_reject("DiscriminantClassifier", reject)
        p, distances = self._answers(X)
        labels = self.classes_[p.argmax(axis=1)]
        if reject is None:
            return labels
        unknown = False if distances is None else self.is_unknown(X)
        return rejected(labels, (p.max(axis=1) < reject) | unknown)

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the most likely label of one sample."""
        self._require_labels()
        row = self._check_one(x)
        p, _ = self._answers(np.asarray(x).reshape(1, -1)) if row is None else self._answers_to_rows(row)
        return self.classes_[p[0].argmax()]

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for every row."""
        return self._answers(X)[0]

    @reading
    def is_unknown(self, X: Any, level: float = 1e-3) -> BoolArray:
        """Return True for rows farther from every class than a share 1 - ``level`` of rows are from their own class."""
        distances = self._answers(X)[1]
        if not isinstance(self._state, Following) or distances is None:
            raise ValueError(
                "DiscriminantClassifier: is_unknown needs distances to classes, which only forgetting='auto' with at "
                f"most {FEW_COLUMNS} columns has"
            )
        return self._state.unknown(distances, level)

    def _answers(self, X: Any) -> tuple[FloatArray, FloatArray | None]:
        self._require_labels()
        return self._answers_to_rows(self._check(X))

    def _answers_to_rows(self, rows: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return class probabilities of validated rows, and squared distances to the nearest class if available."""
        self._check_unchanged()
        return self._state.probabilities(rows, self._settings(), self._made)

    @property
    @reading
    def class_counts_(self) -> IntArray:
        """Number of rows of each class."""
        self._require_start()
        return self._state.class_counts

    @property
    @reading
    def means_(self) -> FloatArray:
        """Mean of the rows of each class, an array of shape (n_classes, n_features_in_)."""
        self._require_start()
        return self._state.class_means

    @property
    def temperature_(self) -> float:
        """Temperature that divides the scores; with several forecasters, that of the Gaussian with most weight."""
        self._require_start()
        return self._state.temperature

    @property
    def working_floats_(self) -> int:
        """Number of temporary floats needed to learn or predict, in units of float32.

        An upper bound: a copy of the state, to undo a chunk that fails, and the temporary arrays.
        """
        self._require_start()
        return sum(array.nbytes for array in arrays_in(vars(self).values())) // 4 + self._state.working_floats

    # ---------------------------------------------------------------------------------------------------------------

    def _check(self, X: Any) -> FloatArray:
        """Return ``X`` as validated rows of the state's type; raise without changing the state."""
        if self.__sklearn_is_fitted__():
            with np.errstate(over="ignore"):
                rows = check_rows(self, X, self._state.dtype())
        else:
            with attributes_kept_on_error(self):
                rows = check_rows(self, X, None)
                with np.errstate(over="ignore"):
                    rows = rows.astype(self._kind(rows.shape[1]).dtype(), copy=False)
                check_finite(rows)
        return rows

    def _check_one(self, x: Any) -> FloatArray | None:
        """Return ``x`` as a row without copying, or None if it needs conversion."""
        return plain_row(x, self._state.dtype(), self.n_features_in_)

    def _require_labels(self) -> None:
        self._require_start()
        self._require_label(self._state.counters[TAUGHT] > 0)

    @reading
    def _export(self) -> dict[str, Any]:
        self._check_unchanged()
        fields = self._state._asdict()
        counters = dict(zip(self._state.counter_names(), fields.pop("counters").tolist(), strict=True))
        return {**fields, "counters": counters, "classes_": self.classes_, **self._export_columns()}

    def _import(self, fields: dict[str, Any]) -> None:
        name = type(self).__name__
        check_parameters(name, self._rules, vars(self))
        kind = Following if "scatters" in fields else Sums
        check_names(name, fields, (*kind._fields, "classes_", "n_features_in_"), ("feature_names_in_",))
        check_names(name, fields["counters"], kind.counter_names())
        classes, d = fields["classes_"], fields["n_features_in_"]
        check_classes(name, classes, self.unlabeled)
        self._import_columns(fields)
        if kind is not self._kind(d):
            raise ValueError(f"{name}: n_features_in_={d!r} does not fit its sums")
        empty = kind.new(d, int(self.n_axes), int(self.buffer_rows)).with_classes(np.empty(0, np.int64), len(classes))
        self._state, self.classes_, self._made = kind.checked(name, fields, empty), classes, []  # type: ignore[arg-type]
        self._began_with = self._shape()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_state"):
            self._made = []
