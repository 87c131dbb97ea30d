"""A model that lives with a stream: what the command keeps in one checkpoint.

Beside the model a checkpoint holds how the columns are chosen, scaled and cut into windows, how many rows have been
learned, how far every file has been read, and how far the events file was written. All of it is replaced in one rename,
so that after a crash nothing is learned twice and nothing is lost.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ccmem.base import CompetitiveMemory
from ccmem.layers.window import WindowLayer
from ccmem.living.events import EventsMark
from ccmem.living.scaling import Scale
from ccmem.memory import Event
from ccmem.models._blocks import BlockMemory
from ccmem.persistence import CheckpointError, read_checkpoint, write_checkpoint
from ccmem.readout import ModalClassifier
from ccmem.streams.progress import Progress
from ccmem.streams.tables import Chunk, Columns


class Learner:
    """A model with its columns, scaling and progress; see the module."""

    def __init__(self, model: Any, scale: str = "none", front: WindowLayer | None = None) -> None:
        self.model = model
        self.front = front
        self.scale_kind = scale
        self.scale: Scale | None = None
        self.columns: Columns | None = None
        self.rows = 0
        self.bad_rows = 0
        self.progress: dict[str, Progress] = {}
        self.events: EventsMark | None = None

    # Learning and predicting ---------------------------------------------------------------------------------------

    @property
    def memory(self) -> CompetitiveMemory | None:
        """The memory that learns, once it has begun to."""
        memory = getattr(self.model, "memory_", self.model)
        return memory if isinstance(memory, CompetitiveMemory) and memory.__sklearn_is_fitted__() else None

    def learn(self, chunk: Chunk, columns: Columns) -> None:
        """Learn the rows of a chunk."""
        if self.columns is not None and self.columns.features != columns.features:
            raise CheckpointError(f"the columns changed from {self.columns.features} to {columns.features}")
        self.columns = columns
        if self.scale is None:
            self.scale = Scale(self.scale_kind, len(columns.features))
        X, names = self.scale.learn(chunk.X), columns.features
        with _names_are_known():
            if self.front is None:
                self._teach(X, chunk, columns)
            elif len(windows := self.front.push(X)):
                names = self.front.get_feature_names_out(columns.features)
                self.model.partial_fit(windows)
        if (memory := self.memory) is not None and "feature_names_in_" not in vars(memory):
            memory.feature_names_in_ = np.array(names, object)
        self.rows += len(X)

    def _teach(self, X: Any, chunk: Chunk, columns: Columns) -> None:
        if isinstance(self.model, ModalClassifier):
            codes, values = chunk.labels or (np.full(len(X), -1, np.int64), [])
            kind: Any = np.int64 if columns.text_labels is False else object
            self.model._teach_coded(X, codes, np.array(values, kind))
        elif columns.label is None:
            self.model.partial_fit(X)
        else:
            self.model.partial_fit(X, chunk.y)

    def predict(self, X: Any, units: bool = False) -> dict[str, Any]:
        """Columns of answers: ``label`` if labels were learned; else, or with ``units``, ``unit`` and ``block``."""
        if self.front is not None:
            raise ValueError("this checkpoint has learned windows, not rows: its answers are the events it tells")
        if self.scale is not None:
            X = self.scale.apply(X)
        answers: dict[str, Any] = {}
        with _names_are_known():
            memory = self.memory
            if units and isinstance(self.model, ModalClassifier):
                answers["label"], answers["unit"] = self.model.predict_units(X)
            elif not isinstance(self.model, CompetitiveMemory):
                answers["label"] = self.model.predict(X)
            if memory is not None and (units or not answers):
                if "unit" not in answers:
                    answers["unit"] = memory.predict(X)
                if isinstance(memory, BlockMemory):
                    answers["block"] = memory.unit_blocks_[answers["unit"]]
        return answers

    @property
    def takes_missing(self) -> bool:
        """Whether readings may be missing from a row."""
        return self.front is None and bool(getattr(self.model, "_takes_missing", False))

    @property
    def steps(self) -> int:
        """Step that the events of the next row to come will have."""
        if self.front is not None:
            return self.front.n_samples_seen_ if self.front.__sklearn_is_fitted__() else 0
        return self.memory.n_samples_seen_ if self.memory is not None else 0

    def answer_kinds(self, units: bool = False) -> dict[str, type]:
        """Names of the columns that :meth:`predict` gives, and whether they hold text, whole numbers or numbers."""
        kinds: dict[str, type] = {}
        if not isinstance(self.model, CompetitiveMemory):
            classes = self.model.classes_.tolist()
            kinds["label"] = type(classes[0]) if classes and type(classes[0]) in (int, float) else str
        memory = self.memory
        if memory is not None and (units or not kinds):
            kinds["unit"] = int
            if hasattr(memory, "unit_blocks_"):
                kinds["block"] = int
        return kinds

    def on_event(self, callback: Callable[[Event], Any]) -> None:
        """Call ``callback`` for every event from now on; with windows, counted in rows."""
        if (front := self.front) is not None:
            tell = callback

            def callback(event: Event) -> Any:
                return tell(front.event_in_rows(event))

        for memory in {
            id(m): m for m in (self.model, getattr(self.model, "memory", None), getattr(self.model, "memory_", None))
        }.values():
            if isinstance(memory, BlockMemory):
                memory.on_event(callback)

    # Keeping -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to ``path``, atomically."""
        columns: dict[str, Any] | None = None
        if self.columns is not None:
            columns = {
                **self.columns._asdict(),
                "features": list(self.columns.features),
                "dtype": self.columns.dtype.name,
            }
        learner = {
            "scale_kind": self.scale_kind,
            "scale": None if self.scale is None else self.scale.export(),
            "columns": columns,
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "progress": [
                [
                    key,
                    entry.rows,
                    entry.complete,
                    list(entry.anchor) if entry.anchor else None,
                    entry.size,
                    entry.digest,
                ]
                for key, entry in self.progress.items()
            ],
            "events": None if self.events is None else list(self.events),
            "front": self.front,
        }
        write_checkpoint(path, {"model": self.model, "learner": learner})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Learner:
        """Bring back what ``save`` wrote; also takes a checkpoint that holds a model alone."""
        content = read_checkpoint(path).content
        learner = cls(content["model"])
        if "learner" in content:
            try:
                learner._take(content["learner"])
            except (ValueError, TypeError, LookupError, AttributeError) as problem:
                raise CheckpointError(f"{path} cannot be loaded: its record of the stream: {problem}") from problem
        return learner

    def _take(self, fields: Any) -> None:
        counts = (fields["rows"], fields["bad_rows"])
        if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
            raise ValueError("impossible number of rows")
        self.rows, self.bad_rows = counts
        self.scale_kind = fields["scale_kind"]
        Scale(self.scale_kind, 0)
        self.front = fields.get("front")
        if not (self.front is None or isinstance(self.front, WindowLayer)):
            raise ValueError("its windows are damaged")
        if fields["columns"] is not None:
            given = dict(fields["columns"])
            features = tuple(given.pop("features"))
            columns = Columns(features, dtype=np.dtype({"float32": "f4", "float64": "f8"}[given.pop("dtype")]), **given)
            texts = [*features] + ([columns.label] if columns.label is not None else [])
            if not features or not all(isinstance(name, str) for name in texts):
                raise ValueError("impossible columns")
            if not (columns.text_labels is None or isinstance(columns.text_labels, bool)):
                raise ValueError("impossible kind of labels")
            self.columns = columns
            if fields["scale"] is not None:
                self.scale = Scale.of(fields["scale"], len(features))
                if self.scale.kind != self.scale_kind:
                    raise ValueError("two kinds of scaling")
            for part, n in ((self.front or self.model, len(features)), (self.model, self._n_windowed(len(features)))):
                if getattr(part, "n_features_in_", n) != n:
                    raise ValueError(f"{n} columns for a model of {part.n_features_in_}")
        for key, rows, complete, anchor, size, digest in fields["progress"]:
            numbers = [rows, size, *(anchor or (0, 0))]
            if not all(type(n) is int and 0 <= n < 2**62 for n in numbers) or len(numbers) != 4:
                raise ValueError("impossible progress")
            self.progress[str(key)] = Progress(
                rows, bool(complete), tuple(anchor) if anchor else None, size, str(digest)
            )
        if fields["events"] is not None:
            file, size, tail = fields["events"]
            if type(size) is not int or not 0 <= size < 2**62:
                raise ValueError("impossible size of the events file")
            self.events = EventsMark(str(file), size, str(tail))

    def _n_windowed(self, n_columns: int) -> int:
        """Columns that reach the model."""
        return n_columns if self.front is None or self.memory is None else self.front._n_features_out


@contextlib.contextmanager
def _names_are_known() -> Iterator[None]:
    """Columns are picked by name when they are read; scikit-learn need not warn that the arrays no longer have any."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
