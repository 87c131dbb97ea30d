"""Learner: a model together with the state of its stream, stored in one checkpoint.

Beside the model, a checkpoint holds the selection, scaling and windowing of columns, the number of learned rows, the
position in every source file and the position in the events file. One rename replaces all of them, so after a crash no
row is learned twice and no row is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ccmem.app.events import EventsMark
from ccmem.base.memory import CompetitiveMemory
from ccmem.core.clock import Clock
from ccmem.core.events import Event
from ccmem.core.sklearn import names_are_known
from ccmem.core.typing import FloatArray
from ccmem.io.persistence import CheckpointError, outside_classes, read_checkpoint, write_checkpoint
from ccmem.io.streams.progress import Progress
from ccmem.io.streams.records import CellFormat
from ccmem.io.streams.schema import NATIVE, Columns
from ccmem.io.streams.tables import Chunk
from ccmem.io.streams.timestamps import FORMATS
from ccmem.layers._windowed import WindowedLayer
from ccmem.layers.scaling import Scale
from ccmem.models._blocks import BlockMemory
from ccmem.readout.modal import ModalClassifier


class Learner:
    """Model with its columns, scaling and progress; see the module docstring."""

    def __init__(self, model: Any, scale: str = "none", front: WindowedLayer | None = None) -> None:
        self.model = model
        self.front = front
        self.scale_kind = scale
        self.scale: Scale | None = None
        self.columns: Columns | None = None
        self.rows = 0
        self.bad_rows = 0
        self.progress: dict[str, Progress] = {}
        self.events: EventsMark | None = None
        self._clock: Clock | None = None  # times of rows; needed because the memory counts windows

    # Learning and predicting ---------------------------------------------------------------------------------------

    @property
    def memory(self) -> CompetitiveMemory | None:
        """Fitted memory inside the model; None before learning, and for a model without a memory."""
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
        with names_are_known():
            if self.front is None:
                self._teach(X, chunk, columns)
            else:
                names = self._teach_windows(self.front, X, chunk.times, columns)
        if (memory := self.memory) is not None and "feature_names_in_" not in vars(memory):
            memory.feature_names_in_ = np.array(names, object)
        self.rows += len(X)

    def _teach(self, X: Any, chunk: Chunk, columns: Columns) -> None:
        """Learn rows that the reader has validated; only scaling can still produce invalid values."""
        checked = self.scale_kind == "none"
        if isinstance(self.model, ModalClassifier):
            codes, values = chunk.labels or (np.full(len(X), -1, np.int64), [])
            kind: Any = np.int64 if columns.text_labels is False else object
            self.model._teach_coded(X, codes, np.array(values, kind), chunk.times, checked)
        elif columns.label is None and checked and isinstance(self.model, CompetitiveMemory):
            self.model._learn_checked(X, chunk.times)
        elif columns.label is None and isinstance(self.model, CompetitiveMemory):
            self.model.partial_fit(X, times=chunk.times)
        elif columns.label is None:
            self.model.partial_fit(X)
        else:
            self.model.partial_fit(X, chunk.y)

    def _teach_windows(self, front: WindowedLayer, X: Any, times: FloatArray | None, columns: Columns) -> Any:
        """Learn the windows that the rows complete, each dated by its last row; return the feature names."""
        first = self.steps
        windows = front.push(X)
        stamps = None
        if times is not None:
            clock = self._clock = self._clock or Clock()
            clock.expect(first, times)
            ends = [front.rows_of(step)[1] for step in range(front.n_windows_ - len(windows), front.n_windows_)]
            known = [times[end - first] if end >= first else clock.at(end) for end in ends]
            stamps = np.array([np.nan if time is None else time for time in known])
        if len(windows):
            front.set_overlap(self.model)
            self.model.partial_fit(windows, times=stamps)
        if self._clock is not None:
            self._clock.advance(first + len(X))
        return front.get_feature_names_out(columns.features) if len(windows) else columns.features

    def predict(self, X: Any, units: bool = False) -> dict[str, Any]:
        """Return columns of answers: ``label`` if learned from labels, otherwise (or with ``units``) unit and block."""
        if self.front is not None:
            raise ValueError(
                "this checkpoint describes windows of a signal, not rows, and cannot label rows; its results are events"
                " (see 'ccmem inspect')"
            )
        if self.scale is not None:
            X = self.scale.apply(X)
        answers: dict[str, Any] = {}
        with names_are_known():
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
        """True if rows may have missing readings."""
        return bool(getattr(self.front or self.model, "_takes_missing", False))

    @property
    def steps(self) -> int:
        """Step that an event at the next row will have."""
        if self.front is not None:
            return self.front.n_samples_seen_ if self.front.__sklearn_is_fitted__() else 0
        return self.memory.n_samples_seen_ if self.memory is not None else 0

    def answer_kinds(self, units: bool = False) -> dict[str, type]:
        """Return the names of the columns that :meth:`predict` returns, each with its kind: text, integer or number."""
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
        """Register ``callback`` for future events; with windows, steps are converted to rows."""
        if (front := self.front) is not None:
            report = callback

            def callback(event: Event) -> Any:
                found = front.event_in_rows(event)
                if self._clock is None:
                    return report(found)
                self._clock.advance(found.step + 1)
                return report(found._replace(onset_time=self._clock.at(found.onset)))

        for memory in {
            id(m): m for m in (self.model, getattr(self.model, "memory", None), getattr(self.model, "memory_", None))
        }.values():
            if isinstance(memory, BlockMemory):
                memory.on_event(callback)

    # Saving and loading --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model and stream state to ``path`` atomically."""
        columns = None
        if (known := self.columns) is not None:
            columns = known._asdict() | {"dtype": known.dtype.name, "cells": tuple(known.cells)}
        learner = {
            "scale_kind": self.scale_kind,
            "scale": None if self.scale is None else self.scale.export(),
            "columns": columns,
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "progress": [[key, *entry] for key, entry in self.progress.items()],
            "events": None if self.events is None else list(self.events),
            "front": self.front,
            "clock": None if self._clock is None else self._clock.export(),
        }
        write_checkpoint(path, {"model": self.model, "learner": learner}, type(self)._of)

    @classmethod
    def load(cls, path: str | os.PathLike[str], classes: Iterable[type] = ()) -> Learner:
        """Load a learner, or a checkpoint of a bare model; ``classes`` are model classes defined outside ccmem."""
        with outside_classes(classes):
            content = read_checkpoint(path).content
        try:
            return cls._of(content)
        except (ValueError, TypeError, LookupError, AttributeError) as problem:
            raise CheckpointError(f"{path} cannot be loaded: its record of the stream: {problem}") from problem

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Learner:
        """Build a learner from the content of a checkpoint."""
        learner = cls(content["model"])
        if "learner" in content:
            learner._take(content["learner"])
        return learner

    def _take(self, fields: Any) -> None:
        counts = (fields["rows"], fields["bad_rows"])
        if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
            raise ValueError("impossible number of rows")
        self.rows, self.bad_rows = counts
        self.scale_kind = fields["scale_kind"]
        Scale(self.scale_kind, 0)
        self.front = fields.get("front")
        if not (self.front is None or isinstance(self.front, WindowedLayer)):
            raise ValueError("its windows are damaged")
        if fields.get("clock") is not None:
            self._clock = Clock.of(fields["clock"])
        if fields["columns"] is not None:
            columns = Columns(**fields["columns"])
            features, time, cells = tuple(columns.features), columns.time, CellFormat(*columns.cells)
            dtype = np.dtype({"float32": "f4", "float64": "f8"}[fields["columns"]["dtype"]])
            columns = columns._replace(features=features, dtype=dtype, cells=cells, texts=())
            texts = [*features, *time, *cells.missing] + ([columns.label] if columns.label is not None else [])
            if not features or not all(isinstance(name, str) for name in texts):
                raise ValueError("impossible columns")
            if not (columns.text_labels is None or isinstance(columns.text_labels, bool)):
                raise ValueError("impossible kind of labels")
            known = columns.time_format in (*FORMATS, NATIVE)
            if cells.decimal not in (".", ",") or (time and not known) or len(time) > 2:
                raise ValueError("impossible format of cells or times")
            self.columns = columns
            if fields["scale"] is not None:
                self.scale = Scale.of(fields["scale"], len(features))
                if self.scale.kind != self.scale_kind:
                    raise ValueError("two kinds of scaling")
            for part, n in ((self.front or self.model, len(features)), (self.model, self._n_windowed(len(features)))):
                if getattr(part, "n_features_in_", n) != n:
                    raise ValueError(f"{n} columns for a model of {part.n_features_in_}")
        for key, rows, complete, end, size, digest, modified in fields["progress"]:
            numbers = [rows, size, abs(modified), 0 if end is None else end]
            if not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
                raise ValueError("impossible progress")
            self.progress[str(key)] = Progress(rows, bool(complete), end, size, str(digest), modified)
        if fields["events"] is not None:
            file, size, tail = fields["events"]
            if type(size) is not int or not 0 <= size < 2**62:
                raise ValueError("impossible size of the events file")
            self.events = EventsMark(str(file), size, str(tail))

    def _n_windowed(self, n_columns: int) -> int:
        """Return the number of columns that the model receives."""
        return n_columns if self.front is None or self.memory is None else self.front._n_features_out
