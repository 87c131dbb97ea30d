"""Competitive features of images: units that compete for every patch.

The mean of every channel of an image is subtracted first. Learning uses the patches x of the first ``learning_images``
images whose contrast is above the image's mean contrast, minus their mean and scaled to unit length:

    the first patches with d[j].x < 0.9 for all units j so far become units
    j    = argmax of d[j].x - 0.02 (M wins[j] / sum of wins - 1)        frequent winners are slightly handicapped
    d[j] <- d[j] + (x - d[j]) / wins[j], at unit length

Places of an image are visited in steps of about 0.618 of their number, so that ``patches_per_image`` places are spread
over the image. After learning the units are fixed. Features of an image, at every place (stride 1):

    s[j]  = d[j].x / sqrt(|x - mean(x)|^2 + softening * contrast)       contrast: mean of |x - mean(x)|^2 in the image
    a[j]  = s[j] - (4th largest s) for the three winners, else 0
    f     = a summed over the cells of a grid, each place shared by the nearest cells (bilinear)
    f    <- f^power, at unit length                                     power: 3/8

Units without samples stay random, and so do all units with ``units="random"``, the control. Random units lose little
accuracy on digits and clothes (docs/layers.md has figures), so the competition for places contributes more than the
learned shapes. An image without contrast has features 0 for all units.

>>> import numpy as np
>>> bars = np.zeros((2, 6, 6))
>>> bars[0, :, 3:], bars[1, 3:, :] = 1, 1                                # a vertical edge, a horizontal edge
>>> layer = PatchLayer(n_units=4, patch_size=3, grid=1, random_state=0).partial_fit(bars)
>>> layer.transform(bars).shape, layer.frozen_
((2, 4), False)
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ccmem.base.estimator import SavedEstimator
from ccmem.base.validation import check_finite, check_rows
from ccmem.core.allocation import aligned
from ccmem.core.locking import learning, reading
from ccmem.core.parameters import Rule, check_parameters, choice, integer, number
from ccmem.core.sklearn import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from ccmem.core.typing import FloatArray, IntArray
from ccmem.core.undo import attributes_kept_on_error
from ccmem.layers._encode import Plan, encode, learn_patches, new_plan
from ccmem.layers._vectors import WINNERS

SEEN, UNITS = range(2)
"""Indices into ``counters``: images seen, units learned."""
COUNTERS = ("seen", "units")


class PatchState(NamedTuple):
    units: FloatArray
    wins: IntArray
    counters: IntArray


class PatchLayer(SavedEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Layer of units that compete for image patches; its features suit any classifier or memory.

    Parameters
    ----------
    n_units : int, default=40
        Number of units (M), at least 4.
    patch_size : int, default=4
        Side of a patch.
    grid : int, default=4
        Side of the grid of cells that features are summed over: there are grid x grid x n_units features.
    softening : float, default=0.06
        Contrast, as a fraction of the image's mean contrast, below which patches get less weight. The value is
        relative, so images may have any scale (0 to 1, 0 to 255, standardised), also different scales.
    learning_images : int, default=100
        Number of images to learn from before the units are fixed.
    patches_per_image : int, default=100
        Largest number of patches to learn from per image.
    units : "learned" or "random", default="learned"
        Learned units, or random units that never change.
    image_shape : (height, width) or (height, width, channels), default=None
        Shape of an image; if not given, rows of X are square grey images, for example 28 x 28 for 784 numbers.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the initial units.

    Attributes
    ----------
    units_ : array of shape (n_units, channels, patch_size, patch_size), a copy.
    frozen_ : bool, True if learning is finished and the units are fixed.
    n_floats_ : int, number of floats kept.
    working_floats_ : int, number of temporary floats needed to encode an image.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_units": integer(WINNERS + 1),
        "patch_size": integer(2),
        "grid": integer(1),
        "softening": number(0.0, open_below=True, open_above=True),
        "learning_images": integer(1),
        "patches_per_image": integer(1),
        "units": choice("learned", "random"),
    }
    _shape_parameters: ClassVar[tuple[str, ...]] = ("n_units", "patch_size", "grid", "units", "image_shape")
    _not_pickled: ClassVar[tuple[str, ...]] = ("_plan",)
    _state: PatchState
    _plan: Plan

    def __init__(
        self,
        n_units: int = 40,
        *,
        patch_size: int = 4,
        grid: int = 4,
        softening: float = 0.06,
        learning_images: int = 100,
        patches_per_image: int = 100,
        units: str = "learned",
        image_shape: tuple[int, ...] | None = None,
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    @learning
    def fit(self, X: Any, y: Any = None) -> Self:
        """Reset, then learn from the first images of ``X``. ``y`` is ignored."""
        self._learn(self._begin(X))
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the images in ``X`` until ``learning_images`` were seen; later images change nothing."""
        if self.__sklearn_is_fitted__():
            self._check_settings()
            self._learn(self._check(X))
        else:
            self._learn(self._begin(X))
        return self

    @learning
    def learn_one(self, x: Any) -> None:
        """Learn from one image."""
        self.partial_fit(np.asarray(x)[np.newaxis])

    @reading
    def transform(self, X: Any) -> FloatArray:
        """Return the features of every image as float32, computed with the current units."""
        self._require_start()
        return self._transform(self._check(X))

    @reading
    def transform_one(self, x: Any) -> FloatArray:
        """Return the features of one image."""
        return self.transform(np.asarray(x)[np.newaxis])[0]

    # Reading -----------------------------------------------------------------------------------------------------

    @property
    @reading
    def units_(self) -> FloatArray:
        """Units as a copy of shape (n_units, channels, patch_size, patch_size)."""
        self._require_start()
        side = int(self.patch_size)
        return self._state.units.reshape(len(self._state.units), -1, side, side).copy()

    @property
    @reading
    def win_counts_(self) -> IntArray:
        """Number of patches each unit has learned from, as a copy."""
        self._require_start()
        return self._state.wins.copy()

    @property
    def frozen_(self) -> bool:
        """True if learning is finished and the units are fixed."""
        return self.still_needs_ == 0

    @property
    def still_needs_(self) -> int:
        """Number of images the units will still learn from."""
        self._require_start()
        return max(int(self.learning_images) - int(self._state.counters[SEEN]), 0)

    @property
    def n_samples_seen_(self) -> int:
        """Number of images seen."""
        self._require_start()
        return int(self._state.counters[SEEN])

    @property
    def n_floats_(self) -> int:
        """Number of floats kept."""
        self._require_start()
        return sum(array.size for array in self._state)

    @property
    def working_floats_(self) -> int:
        """Number of temporary floats needed to encode an image."""
        self._require_start()
        return sum(array.size for array in self._plan)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_units * self.grid**2)

    # ---------------------------------------------------------------------------------------------------------------

    def _begin(self, X: Any) -> FloatArray:
        """Validate the first images and reset for images of this shape; on error the state is unchanged."""
        check_parameters("PatchLayer", self._rules, vars(self))
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31, size=4)
        with attributes_kept_on_error(self):
            shape = self._shape_of(X)
            rows = check_rows(self, _as_rows(X), None)
            rows = _as_float32(rows)
            shape = shape or self._read_as_square(rows.shape[1])
            if int(np.prod(shape)) != rows.shape[1]:
                raise ValueError(
                    f"PatchLayer: rows of {rows.shape[1]} numbers are not images of {_times(shape)}; "
                    "set image_shape to (height, width) or (height, width, channels)"
                )
            plan = self._new_plan(shape)
        rng = np.random.default_rng(seed)
        units = rng.standard_normal((int(self.n_units), len(plan.offsets)))
        units -= units.mean(axis=1, keepdims=True)
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        self._state = PatchState(
            aligned(units.astype(np.float32)), np.zeros(int(self.n_units), np.int64), np.zeros(len(COUNTERS), np.int64)
        )
        self._plan, self.image_shape_, self._began_with = plan, shape, self._shape()
        return rows

    def _shape_of(self, X: Any) -> tuple[int, ...] | None:
        """Return the shape of an image from ``image_shape`` or an array of images, or None."""
        shape = self.image_shape
        if shape is not None:
            whole = isinstance(shape, (tuple, list)) and all(integer(1)[0](n) for n in shape)
            if not whole or len(shape) not in (2, 3):
                raise ValueError(
                    f"PatchLayer: image_shape={shape!r} is not possible; it must be (height, width) or "
                    "(height, width, channels)"
                )
            shape = tuple(int(n) for n in shape)
        if np.ndim(X) in (3, 4):
            given = tuple(np.shape(X)[1:])
            if shape is not None and given != shape:
                raise ValueError(f"images of {_times(given)} were given where {_times(shape)} are expected")
            return given
        return shape

    def _read_as_square(self, n: int) -> tuple[int, int]:
        side = round(n**0.5)
        if side * side != n:
            raise ValueError(
                f"PatchLayer: rows of {n} numbers are not square images; set image_shape to (height, width) or "
                "(height, width, channels)"
            )
        return side, side

    def _new_plan(self, shape: tuple[int, ...]) -> Plan:
        height, width, channels = (*shape, 1)[:3]
        places = min(height, width) - int(self.patch_size) + 1
        if places < self.grid:
            raise ValueError(
                f"PatchLayer: patch_size={self.patch_size} and grid={self.grid} do not fit images of {_times(shape)}; "
                "every cell needs at least one position: choose a smaller patch_size or grid"
            )
        return new_plan(height, width, channels, int(self.patch_size), int(self.grid), int(self.n_units))

    def _check(self, X: Any) -> FloatArray:
        if np.ndim(X) in (3, 4) and tuple(np.shape(X)[1:]) != self.image_shape_:
            given, expected = _times(np.shape(X)[1:]), _times(self.image_shape_)
            raise ValueError(f"X has images of {given}, but PatchLayer is expecting images of {expected}")
        with np.errstate(over="ignore"):
            return check_rows(self, _as_rows(X), np.float32)

    def _learn(self, rows: FloatArray) -> None:
        part = rows[: self.still_needs_]
        learn_patches(self._state, part, int(self.patches_per_image) if self.units == "learned" else 0, self._plan)
        self._state.counters[SEEN] += len(rows) - len(part)

    def _transform(self, rows: FloatArray) -> FloatArray:
        out = np.empty((len(rows), self._n_features_out), np.float32)
        encode(rows, self._state.units, float(self.softening), self._plan, out)
        return out

    @reading
    def _export(self) -> dict[str, Any]:
        self._check_settings()
        return {
            "units": self._state.units,
            "wins": self._state.wins,
            "counters": dict(zip(COUNTERS, self._state.counters.tolist(), strict=True)),
            "image_shape_": self.image_shape_,
            **self._export_columns(),
        }

    def _import(self, fields: dict[str, Any]) -> None:
        from ccmem.base.storage import check_array, check_names

        check_parameters("PatchLayer", self._rules, vars(self))
        needed = ("units", "wins", "counters", "image_shape_", "n_features_in_")
        check_names("PatchLayer", fields, needed, ("feature_names_in_",))
        check_names("PatchLayer", fields["counters"], COUNTERS)
        shape, n_features = fields["image_shape_"], fields["n_features_in_"]
        given = self._shape_of(())
        if not (isinstance(shape, tuple) and len(shape) in (2, 3) and all(type(n) is int and n > 0 for n in shape)):
            raise ValueError("PatchLayer: the shape of its images is damaged")
        if math.prod(shape) != n_features or (given or shape) != shape:
            raise ValueError(f"PatchLayer: images of {_times(shape)} do not fit its parameters")
        self._import_columns(fields)
        units, wins, n = fields["units"], fields["wins"], int(self.n_units)
        taps = int(self.patch_size) ** 2 * (*shape, 1)[2]
        check_array("PatchLayer", "units", units, (n, taps), np.float32)
        check_array("PatchLayer", "wins", wins, (n,), np.int64)
        if not np.isfinite(units).all() or np.abs(np.linalg.norm(units, axis=1) - 1).max() > 1e-3:
            raise ValueError("PatchLayer: its units are not of unit length")
        counts = list(fields["counters"].values())
        if not all(type(count) is int and 0 <= count < 2**62 for count in counts) or counts[UNITS] > n:
            raise ValueError("PatchLayer: its counters are damaged")
        if wins.min() < 0 or (wins[: counts[UNITS]] == 0).any():
            raise ValueError("PatchLayer: its wins are damaged")
        self._plan = self._new_plan(shape)
        self._state = PatchState(aligned(units), aligned(wins), np.array(counts, np.int64))
        self.image_shape_, self._began_with = shape, self._shape()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_state"):
            self._plan = self._new_plan(self.image_shape_)


def _as_rows(X: Any) -> Any:
    """Reshape arrays of images to rows; return anything else unchanged."""
    return np.asarray(X).reshape(len(X), -1) if np.ndim(X) in (3, 4) and len(X) else X


def _as_float32(rows: FloatArray) -> FloatArray:
    if rows.dtype == np.float32:
        return rows
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    check_finite(narrow)
    return narrow


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
