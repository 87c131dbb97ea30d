"""Every part alone, beside its equation worked out in numpy."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from ccmem import ncl
from ccmem.core.state import SEEN
from ccmem.ncl import competitions, neighbourhoods, rates, updates


def plain(function: Any) -> Any:
    """Return a function before compilation."""
    return getattr(function, "py_func", function)


def values(**arrays: Any) -> Any:
    """Return a named tuple, which functions that stay compiled take too, of arrays and numbers."""
    return namedtuple("values", arrays)(*(np.array(a) if isinstance(a, list) else a for a in arrays.values()))


def competing(h: list[float], **more: Any) -> Any:
    n = len(h)
    scratch = {"best": [-1] * n, "scores": [0.0] * n, "units": [-1] * n, "strengths": [0.0] * n, "order": [0] * n}
    return values(h=h, **{**scratch, **more})


def seen(n: int) -> Any:
    counters = np.zeros(SEEN + 1, np.int64)
    counters[SEEN] = n
    return counters


def test_rates_and_what_a_win_does() -> None:
    state, settings = (
        values(wins=[3], rates=[0.4], counters=seen(50)),
        values(learning_rate=0.2, rate_decay=0.5, horizon=100.0),
    )
    assert plain(ncl.constant)(state, settings, 0) == 0.2
    assert plain(ncl.decaying)(state, settings, 0) == 0.4
    assert plain(ncl.harmonic)(state, settings, 0) == 1 / 4
    assert plain(ncl.scheduled)(state, settings, 0) == 0.4 / 2
    plain(rates.average)(state, settings, 0)
    assert (state.wins[0], state.rates[0]) == (4, 1 / 5)
    plain(rates.count)(state, settings, 0)
    assert (state.wins[0], state.rates[0]) == (5, 1 / 5)
    plain(rates.decay)(state, settings, 0)
    assert (state.wins[0], state.rates[0]) == (6, 1 / 10)


def test_growth_by_distinct_rows_by_class_and_by_vigilance() -> None:
    first, unmatched, of_class = map(plain, (ncl.first_samples, ncl.unmatched, ncl.first_samples_of_class))
    settings = competing([0.0, 2.0, 1.0], limit=3, label=[1], units_per_class=2, similar=False)
    state = values(labels=[1, 0, -1, -1])
    assert first(state, settings, 0, 0)
    assert not first(state, settings, 1, 1)  # equal to unit 0
    settings.h[0] = 0.5
    assert first(state, settings, 2, 1)
    assert not first(state, settings, 3, 1)  # full
    assert first(state, settings._replace(h=np.zeros(3), similar=True), 2, 1)  # a similarity of 0 is not equality
    assert unmatched(state, settings, 2, 0)
    assert not unmatched(state, settings, 2, 1)
    assert not unmatched(state, settings, 3, 0)
    assert of_class(state, settings, 2, 1)
    assert state.labels.tolist() == [1, 0, 1, -1]
    assert not of_class(state, settings, 3, 1)  # two units of the class
    assert state.labels.tolist() == [1, 0, 1, -1]
    settings = settings._replace(units_per_class=3)
    settings.h[2] = 0.0
    assert not of_class(state, settings, 3, 1)  # equal to unit 2
    settings.h[2], settings.h[1] = 1.0, 0.0  # equal to a unit of another class
    assert of_class(state, settings, 3, 1)
    assert state.labels.tolist() == [1, 0, 1, 1]


def test_distances_and_similarities_of_a_row_to_all_units() -> None:
    M, X = np.array([[0.0, 1.0], [0.6, 0.8], [0.2, 0.3]]), np.array([[9.0, 9.0], [0.25, 0.5]])
    state, settings = values(prototypes=M, counters=seen(0)), competing([7.0] * 3, p=3.0, scale=[0.0], epsilon=0.5)
    plain(ncl.p_norm)(state, settings, X, 1, 2)
    np.testing.assert_allclose(settings.h, [*(np.abs(X[1] - M[:2]) ** 3).sum(axis=1), 7.0])
    plain(ncl.euclidean)(state, settings, X, 1, 3)
    np.testing.assert_allclose(settings.h, ((X[1] - M) ** 2).sum(axis=1))
    plain(ncl.cosine)(state, settings, X, 1, 3)
    np.testing.assert_allclose(settings.h, -(M @ X[1]) / (np.linalg.norm(X[1]) + 0.5))
    assert settings.scale[0] == pytest.approx(1 / (np.linalg.norm(X[1]) + 0.5))
    plain(ncl.cosine)(state, settings, np.zeros((1, 2)), 0, 3)
    assert settings.h.tolist() == [0.0, 0.0, 0.0]


def test_fuzzy_minimum_is_choice_and_match() -> None:
    lower, X = np.array([[0.25, 0.5], [0.5, 0.25]]), np.array([[0.25, 0.75]])
    upper = np.array([[0.5, 0.25], [0.25, 0.75]])  # complements of the upper corners
    norms = (lower + upper).sum(axis=1)
    state = values(prototypes=lower, complements=upper, norms=norms)
    settings = competing([0.0] * 2, overlaps=[0.0] * 2, complement=[0.0] * 2, choice=0.5)
    plain(ncl.fuzzy_minimum)(state, settings, X, 0, 2)
    overlap = np.minimum(X[0], lower).sum(axis=1) + np.minimum(1 - X[0], upper).sum(axis=1)
    np.testing.assert_allclose(settings.h, -overlap / (0.5 + norms))
    np.testing.assert_allclose(settings.overlaps, overlap / 2)


@pytest.mark.parametrize("step", ["adam", "rmsprop"])
def test_adaptive_steps_follow_their_papers(step: str) -> None:
    state = values(
        prototypes=np.array([[9.0, 9.0], [1.0, -2.0]]), first_moments=np.zeros((2, 2)),
        second_moments=np.zeros((2, 2)), steps=[5.0, 0.0],
    )  # fmt: skip
    settings = values(beta_1=0.5, beta_2=0.75)
    M, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for t, (x, amount) in enumerate((([2.0, 2.0], 0.1), ([0.0, 5.0], -0.2), ([3.0, 1.0], 0.3)), 1):
        plain(getattr(updates, step))(state, settings, 1, np.array(x), amount)
        g = x - M
        v = 0.75 * v + 0.25 * g**2
        if step == "adam":
            m = 0.5 * m + 0.5 * np.sign(amount) * g
            M = M + abs(amount) * (m / (1 - 0.5**t)) / (np.sqrt(v / (1 - 0.75**t)) + updates.TINY)
        else:
            M = M + amount * g / (np.sqrt(v) + updates.TINY)
        np.testing.assert_allclose(state.prototypes[1], M)
    assert state.prototypes[0].tolist() == [9.0, 9.0]
    assert state.steps[0] == 5.0


def test_steps_towards_a_row_and_its_direction() -> None:
    state, settings = values(prototypes=np.array([[0.0, 1.0], [0.6, 0.8]])), values(scale=[0.2])
    x = np.array([3.0, 4.0])
    plain(ncl.hebbian)(state, settings, 0, x, 0.25)
    assert state.prototypes[0].tolist() == [0.75, 1.75]
    plain(ncl.hebbian)(state, settings, 0, x, 2.0)  # not beyond the row
    assert state.prototypes[0].tolist() == [3.0, 4.0]
    plain(ncl.renormalising)(state, settings, 1, x[::-1].copy(), 0.5)
    np.testing.assert_allclose(state.prototypes[1], [math.sqrt(0.5)] * 2)
    plain(updates.start_with_direction)(state, settings, 0, x)
    np.testing.assert_allclose(state.prototypes[0], [0.6, 0.8])


def test_a_box_shrinks_towards_a_point() -> None:
    state = values(prototypes=np.zeros((1, 2)), complements=np.zeros((1, 2)), norms=[0.0])
    settings = values(complement=[0.75, 0.0])
    plain(updates.start_as_point)(state, settings, 0, np.array([0.5, 0.25]))
    assert (state.prototypes[0].tolist(), state.complements[0].tolist(), state.norms[0]) == (
        [0.5, 0.25],
        [0.5, 0.75],
        2,
    )
    plain(ncl.fuzzy)(state, settings, 0, np.array([0.25, 1.0]), 0.5)
    assert (state.prototypes[0].tolist(), state.complements[0].tolist()) == ([0.375, 0.25], [0.5, 0.375])
    assert state.norms[0] == 1.5


def test_competitions_take_the_first_of_equal_units() -> None:
    settings = competing([2.0, 1.0, 1.0, 3.0], n_winners=3, bias=4.0, label=[1], share_rate=0.5, vigilance=-1.5)
    state = values(wins=[0, 5, 2, 1], shares=[0.0, 0.5, 0.25, 0.25], labels=[0, 1, 1, 0])
    assert plain(ncl.nearest)(state, settings, 4) == 1
    assert settings.best[0] == 1
    assert plain(ncl.nearest)(state, settings, 0) == 0
    assert plain(ncl.k_nearest)(state, settings, 4) == 3
    assert settings.best[:3].tolist() == [1, 2, 0]
    assert plain(ncl.k_nearest)(state, settings, 1) == 1
    assert settings.best[0] == 0
    assert plain(ncl.frequency_sensitive)(state, settings, 4) == 1
    assert settings.best[0] == 0  # never won
    state.wins[0] = 2
    plain(ncl.frequency_sensitive)(state, settings, 4)
    assert settings.best[0] == 2
    assert plain(ncl.conscience)(state, settings, 4) == 1
    assert settings.best[0] == 0
    np.testing.assert_allclose(settings.scores, [1.0, 2.0, 1.0, 3.0])


def test_a_conscience_learns_the_shares_of_the_nearest_units() -> None:
    settings, state = competing([2.0, 1.0, 1.0], share_rate=0.5), values(shares=[0.5, 0.25, 0.25])
    assert not plain(competitions.update_shares)(state, settings, np.zeros((1, 2)), 0, 3, 0)
    assert state.shares.tolist() == [0.25, 0.625, 0.125]


def test_vigilance_and_labels_may_leave_no_winner() -> None:
    settings = competing([-0.5, -0.75, -0.75], vigilance=0.5, label=[1], overlaps=[0.9, 0.4, 0.5])
    state = values(labels=[1, 0, 0])
    assert plain(ncl.vigilant)(state, settings, 3) == 1
    assert settings.best[0] == 1
    assert plain(ncl.vigilant)(state, settings, 1) == 0  # exactly the vigilance
    assert plain(ncl.vigilant)(state, settings, 0) == 0
    assert plain(ncl.vigilant)(state, settings._replace(vigilance=0.4), 1) == 1
    assert plain(ncl.fuzzy_vigilant)(state, settings, 3) == 1
    assert settings.best[0] == 2  # exactly the vigilance is a match
    assert plain(ncl.fuzzy_vigilant)(state, settings, 1) == 1
    assert settings.best[0] == 0
    assert plain(ncl.fuzzy_vigilant)(state, settings._replace(vigilance=0.95), 3) == 0
    assert plain(ncl.label_veto)(state, settings, 3) == 1
    assert settings.best[0] == 0
    settings.label[0] = 0
    plain(ncl.label_veto)(state, settings, 3)
    assert settings.best[0] == 1
    assert plain(competitions.nearest_labelled)(state, settings, 3, False) == 0
    settings.label[0] = 2
    assert plain(ncl.label_veto)(state, settings, 3) == 0


def test_winners_move_alone_and_by_their_label() -> None:
    settings, state = competing([0.0] * 3, label=[1]), values(labels=[0, 1, 1])
    settings.best[:] = [2, 0, 1]
    assert plain(ncl.winners)(state, settings, 3, 2) == 2
    assert (settings.units[:2].tolist(), settings.strengths[:2].tolist()) == ([2, 0], [1.0, 1.0])
    assert plain(ncl.signed)(state, settings, 3, 2) == 2
    assert settings.strengths[:2].tolist() == [1.0, -1.0]


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
def test_neighbours_on_a_map_move_by_their_gap(topology: str) -> None:
    places = neighbourhoods.positions(2, 3, topology)
    settings = competing([0.0] * 6, positions=places, sigma=2.0, horizon=100.0)
    settings.best[0] = 4
    state = values(prototypes=np.zeros((6, 2)), counters=seen(50))  # sigma has fallen to 1
    assert plain(ncl.grid)(state, settings, 6, 1) == 6
    gaps = ((places - places[4]) ** 2).sum(axis=1)
    np.testing.assert_allclose(settings.strengths, np.exp(-gaps / 2))
    assert np.isclose(np.sort(gaps)[1:3], 1.0).all()
    narrow = settings._replace(sigma=0.04)  # exp(-1 / 0.0008) is below the resolution
    assert plain(ncl.grid)(state, narrow, 6, 1) == 1
    assert (settings.units[0], settings.strengths[0]) == (4, 1.0)


@pytest.mark.parametrize("n", [7, 8, 9, 20])
def test_ranks_move_units_in_the_order_of_their_distance(n: int) -> None:
    rng = np.random.default_rng(n)
    settings = competing(
        rng.permutation(n).astype(float).tolist(), reach=4.0, final_reach=1.0, final_rate=0.01, learning_rate=0.04,
        horizon=200.0,
    )  # fmt: skip
    state = values(prototypes=np.zeros((n, 2), np.float32), counters=seen(100))  # halfway: reach 2, rate half
    m = plain(ncl.ranks)(state, settings, n, 1)
    assert m == min(n, int(2 * 23 * math.log(2)) + 1)
    assert settings.units[:m].tolist() == np.argsort(settings.h, kind="stable")[:m].tolist()
    np.testing.assert_allclose(settings.strengths[:m], 0.5 * np.exp(-np.arange(m) / 2))
    state.counters[SEEN] = 10_000  # long after the horizon
    plain(ncl.ranks)(state, settings, n, 1)
    np.testing.assert_allclose(settings.strengths[:3], 0.25 * np.exp(-np.arange(3.0)))


def test_a_choice_of_parts_is_fixed_once_learning_has_begun() -> None:
    class Stepping(ncl.Model):
        update = ncl.by_parameter("way", hebbian=ncl.hebbian, adam=ncl.adam)

    X = np.eye(3)
    with pytest.raises(ValueError, match=r"way='rmsprop'.*'hebbian'.*'adam'"):
        Stepping(way="rmsprop").fit(X)
    begun = Stepping().fit(X).set_params(way="adam")
    with pytest.raises(ValueError, match="way from 'hebbian' to 'adam' cannot change"):
        begun.partial_fit(X)
    assert begun.fit(X).n_units_ == 3
