"""Calls that end early, by an error or an interrupt, learn nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmem import AdaptiveCCM, ModalClassifier
from ccmem.core.undo import undone_on_error
from ccmem.readout import DiscriminantClassifier, _sums
from zoo import ALL, seeded


def regimes(seed: int) -> np.ndarray:
    """Rows of three regimes, so that blocks, units and journals grow inside a chunk."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, 5))[np.arange(600) // 100 % 3] + rng.normal(0, 0.1, (600, 5))


class Interrupted:
    """Raise KeyboardInterrupt at the n-th call of a function, like Ctrl-C between two kernels."""

    def __init__(self, function: Any, n: int) -> None:
        self.function, self.left = function, n

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.function(*args, **kwargs)


def learn_interrupted(model: Any, memory: Any, *chunk: Any) -> int:
    """Interrupt ``partial_fit`` at every step until it completes; return the number of rollbacks."""
    before = model.to_bytes()
    for n in range(1000):
        memory.__dict__["_settings"] = Interrupted(type(memory)._settings.__get__(memory), n)
        try:
            model.partial_fit(*chunk)
        except KeyboardInterrupt:
            memory.__dict__.pop("_settings")
            assert model.to_bytes() == before
        else:
            memory.__dict__.pop("_settings")
            return n
    raise AssertionError("it never got through")


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.__name__)
def test_an_interrupted_chunk_is_learned_whole_or_not_at_all(model: type) -> None:
    straight, memory = seeded(model).partial_fit(regimes(0)), seeded(model).partial_fit(regimes(0))
    assert learn_interrupted(memory, memory, regimes(1)) >= 1
    assert memory.to_bytes() == straight.partial_fit(regimes(1)).to_bytes()


def test_votes_and_classes_go_with_the_memory() -> None:
    names = np.array(["a", "b", "c"])[np.arange(600) // 100 % 3]
    for metric in ("own", "shared"):
        made, straight = (ModalClassifier(AdaptiveCCM(), metric=metric) for _ in range(2))
        for model in (made, straight):
            model.partial_fit(regimes(0), names)
        more = np.where(names == "a", "d", names)  # a class that is new
        assert learn_interrupted(made, made.memory_, regimes(1), more) >= 1
        assert made.to_bytes() == straight.partial_fit(regimes(1), more).to_bytes()


def test_running_sums_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.arange(600) // 100 % 3
    model = DiscriminantClassifier(buffer_rows=64, forgetting="none").partial_fit(regimes(0), y)
    before = model.to_bytes()
    for n in range(3):
        monkeypatch.setattr(_sums, "add_products", Interrupted(_sums.add_products, n))
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(regimes(1), y + 1)
        monkeypatch.undo()
        assert model.to_bytes() == before


def test_a_first_chunk_that_is_interrupted_leaves_a_model_that_has_learned_nothing() -> None:
    memory = AdaptiveCCM()
    memory.__dict__["_settings"] = Interrupted(memory._settings, 0)
    with pytest.raises(KeyboardInterrupt):
        memory.partial_fit(regimes(0))
    memory.__dict__.pop("_settings", None)
    assert memory.partial_fit(regimes(1)).to_bytes() == AdaptiveCCM().partial_fit(regimes(1)).to_bytes()


def test_attributes_arrays_and_random_generators_are_restored() -> None:
    class Owner:
        pass

    owner: Any = Owner()
    owner.array, owner.parts, owner.rng = np.zeros(3), (np.ones(2),), np.random.default_rng(0)
    array, part, expected = owner.array, owner.parts[0], np.random.default_rng(0).random(4)

    def interrupted() -> None:
        with undone_on_error(owner):
            owner.array[:] = owner.parts[0][0] = owner.rng.random()
            owner.array, owner.new = np.full(3, 9.0), 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert owner.array is array
    assert not hasattr(owner, "new")
    assert (array.tolist(), part.tolist()) == ([0.0] * 3, [1.0] * 2)
    assert owner.rng.random(4).tolist() == expected.tolist()
