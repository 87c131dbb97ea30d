"""One data set as a stream of tasks: order of the rows, and task changes.

A stream holds indices into the data set, one per step, and never a copy of the data; iteration yields chunks of
indices. Learning is sample by sample for any chunk size.

>>> y = np.array([0, 1, 2, 3, 0, 1, 2, 3])
>>> stream = split_by_class(y, n_tasks=2, random_state=0)
>>> stream.tasks, stream.change_points
(((0, 1), (2, 3)), (4,))
>>> [y[chunk.indices].tolist() for chunk in stream]
[[0, 0, 1, 1], [3, 2, 3, 2]]
>>> recurring_tasks(y, visits=[0, 1, 0], n_tasks=2, random_state=0).visits
(0, 1, 0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import IntArray

CHUNK_SIZE = 4096


class Steps(NamedTuple):
    """Consecutive steps of a stream, all of one visit."""

    indices: IntArray
    """Rows of the data set, in stream order."""
    visit: int
    """Index of the visit to which the chunk belongs."""


@dataclass(frozen=True)
class TaskStream:
    """Steps in order, divided into visits to tasks."""

    indices: IntArray
    tasks: tuple[tuple[Any, ...], ...]
    """Classes of every task."""
    visits: tuple[int, ...]
    """Task of every visit."""
    change_points: tuple[int, ...]
    """First step of every visit except the first; the middle of the zone for a blurred boundary."""
    sample_tasks: IntArray
    """Task of every step's class; it may differ from the task of the visit inside a blurred boundary."""
    chunk_size: int = CHUNK_SIZE

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.indices)

    def __iter__(self) -> Iterator[Steps]:
        """Yield chunks in order; no chunk crosses a change point."""
        edges = (0, *self.change_points, len(self))
        for visit, (begin, end) in enumerate(pairwise(edges)):
            for start in range(begin, end, self.chunk_size):
                part = slice(start, min(start + self.chunk_size, end))
                yield Steps(self.indices[part], visit)


def class_tasks(y: Any, n_tasks: int = 5, class_order: Sequence[Any] | None = None) -> tuple[tuple[Any, ...], ...]:
    """Return the classes of every task: all classes in order, divided evenly, with larger tasks first."""
    present = np.unique(y)
    order = present if class_order is None else np.asarray(class_order)
    if len(np.unique(order)) != len(order) or not np.isin(order, present).all():
        raise ValueError(f"class_order={list(order)} must name classes of y ({present.tolist()}), each once")
    if not 1 <= n_tasks <= len(order):
        raise ValueError(f"n_tasks={n_tasks} is not possible with {len(order)} classes; it must be 1 to {len(order)}")
    return tuple(tuple(part.tolist()) for part in np.array_split(order, n_tasks))


def split_by_class(
    y: Any, n_tasks: int = 5, *, class_order: Sequence[Any] | None = None, blur: float = 0.0, random_state: Any = None
) -> TaskStream:
    """Return a class-incremental stream: one task after the other, with disjoint classes, each shuffled once.

    Parameters
    ----------
    y : array of labels
    n_tasks : int, default=5
        Number of tasks among which the classes are divided; they need not divide evenly.
    class_order : sequence of labels, optional
        Order of the classes; sorted by default. Classes that are not listed are left out of the stream.
    blur : float in [0, 1], default=0
        Width of the mixed zone at every boundary, as a fraction of the shorter of the two visits: inside the zone the
        share of the new task grows from 0 to 1.
    random_state : int or Generator
        Seed for shuffling.
    """
    tasks = class_tasks(y, n_tasks, class_order)
    return _stream(np.asarray(y), tasks, tuple(range(len(tasks))), blur, random_state)


def recurring_tasks(
    y: Any,
    visits: Sequence[int],
    n_tasks: int = 5,
    *,
    class_order: Sequence[Any] | None = None,
    blur: float = 0.0,
    random_state: Any = None,
) -> TaskStream:
    """Return a stream of recurring tasks: ``visits`` lists the task of every visit (0 1 0 2 1 ...).

    The samples of a task are divided evenly over its visits, so no sample occurs twice. Other parameters as in
    :func:`split_by_class`.
    """
    tasks = class_tasks(y, n_tasks, class_order)
    if not visits or not all(0 <= task < len(tasks) for task in visits):
        raise ValueError(f"visits={list(visits)} must name tasks from 0 to {len(tasks) - 1}, at least one")
    if any(first == second for first, second in pairwise(visits)):
        raise ValueError(f"visits={list(visits)} goes from a task to itself; that is one visit")
    return _stream(np.asarray(y), tasks, tuple(int(task) for task in visits), blur, random_state)


def shuffled(y: Any, *, random_state: Any = None) -> TaskStream:
    """Return a stream without task structure: all classes at once, in random order."""
    return _stream(np.asarray(y), class_tasks(y, 1), (0,), 0.0, random_state)


def _stream(
    y: Any, tasks: tuple[tuple[Any, ...], ...], visits: tuple[int, ...], blur: float, random_state: Any
) -> TaskStream:
    if not 0.0 <= blur <= 1.0:
        raise ValueError(f"blur={blur!r} is not possible; it must be a number in [0, 1]")
    rng = np.random.default_rng(random_state)
    parts: list[IntArray] = [np.empty(0, np.int64)] * len(visits)
    for task, classes in enumerate(tasks):
        of_task = [visit for visit, t in enumerate(visits) if t == task]
        if not of_task:
            continue
        rows = rng.permutation(np.flatnonzero(np.isin(y, classes)))
        if len(rows) < len(of_task):
            raise ValueError(
                f"task {task} has {len(rows)} samples for {len(of_task)} visits; give it more, or fewer visits"
            )
        for visit, part in zip(of_task, np.array_split(rows, len(of_task)), strict=True):
            parts[visit] = part
    indices = np.concatenate(parts)
    lengths = [len(part) for part in parts]
    change_points = tuple(np.cumsum(lengths)[:-1].tolist())
    if blur > 0.0:
        for place, before, after in zip(change_points, lengths, lengths[1:], strict=False):
            _mix(indices, place, max(1, int(blur * min(before, after) / 2)), rng)
    sample_tasks = np.empty(len(indices), np.int64)
    for task, classes in enumerate(tasks):
        sample_tasks[np.isin(y[indices], classes)] = task
    return TaskStream(indices, tasks, visits, change_points, sample_tasks)


def _mix(indices: IntArray, place: int, half: int, rng: np.random.Generator) -> None:
    """Mix ``half`` steps on either side of ``place``; later steps are more likely to belong to the new task.

    Every step is assigned a random position around its own, drawn from a triangular distribution as wide as the zone,
    and the zone is sorted by position; no step is duplicated or lost.
    """
    zone = slice(place - half, place + half)
    spot = np.arange(2 * half) + rng.triangular(-half, 0, half, 2 * half)
    indices[zone] = indices[zone][np.argsort(spot, kind="stable")]
