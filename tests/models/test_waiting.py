"""What waiting blocks are held against, number by number: quick enough to run without the JIT, too."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem.models.adaptive.columns import (
    ERROR,
    HOME,
    LEVEL,
    N_BLOCK,
    N_GUESS,
    N_KNOWN,
    N_READINGS,
    N_RUNNING,
    N_SLOT,
    NOISE,
    REFERENCE,
    RING,
    RUNNING,
    SILENT,
    SWAY,
)
from ccmem.models.adaptive.waiting import better_by, column_distance, gather, go_home, move_home

D, N, H, WATCHED, BATCHES, AGE = 3, 4, 12.0, 40.0, 50.0, 30.0


def of_block(block, row):
    """A row of means, and that of spreads."""
    return block[[row, N_KNOWN + row]]


def of_stream(readings, row):
    return readings[[RUNNING + row, RUNNING + N_RUNNING + row]]


def two_blocks(seed):
    """A block that waits and one in use, the stream's readings and a guess: levels far apart for their variances."""
    rng = np.random.default_rng(seed)
    known, now = rng.uniform(0.5, 2.0, (2, N_BLOCK, D))
    readings, guess = rng.uniform(0.5, 2.0, (N_READINGS, D)), rng.uniform(0.5, 2.0, (N_GUESS, D))
    for rows, of in ((NOISE, known), (NOISE, now), (SWAY, known), (SWAY, now)):
        of[[rows, N_KNOWN + rows]] = rng.uniform(0.02, 0.2, (2, D))
    readings[[RUNNING + ERROR, RUNNING + N_RUNNING + ERROR]] = rng.uniform(0.02, 0.2, (2, D))
    guess[2:] = rng.uniform(0.02, 0.2, (2, D))
    return known, now, readings, guess


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("at_home", [False, True])
def test_a_block_is_better_by_one_feature_or_by_all_but_than_a_home_by_one_mean(seed, at_home):
    known, now, readings, guess = two_blocks(seed)
    error = of_stream(readings, ERROR)
    variance = np.maximum(np.maximum(error, guess[2:]), np.maximum(of_block(known, NOISE), of_block(now, NOISE)))
    variance = variance + np.maximum(of_block(known, SWAY) - error, 0.0)

    def surprise(levels):
        away = (guess[:2] - levels) ** 2
        return np.minimum(away / (variance + away / (2.0 * (WATCHED + 5.0))), H)

    gains = surprise(of_stream(readings, REFERENCE)) - surprise(of_block(known, LEVEL))
    if at_home:
        gains = (surprise(now[HOME]) - surprise(of_block(known, LEVEL)))[:1]
    most = gains.max() if at_home else max(gains.max(), gains.sum())
    expected = 0.5 * N / (1.0 + N / AGE) * most if gains.sum() > 0.0 else 0.0
    found = better_by(known, now, readings, guess, BATCHES, WATCHED, AGE, N, H, at_home)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_block_that_goes_home_keeps_its_spreads_and_what_it_never_heard():
    known, *_ = two_blocks(0)
    known[SWAY, 2] = SILENT
    expected = known.copy()
    expected[LEVEL, :2], expected[SWAY, :2] = known[HOME, :2], 0.0
    go_home(known)
    np.testing.assert_array_equal(known, expected)


def test_home_follows_levels_but_for_a_part():
    known, *_ = two_blocks(0)
    expected = 0.25 * known[HOME] + 0.75 * known[LEVEL]
    move_home(known, 0.25)
    np.testing.assert_allclose(known[HOME], expected, rtol=1e-12)
    move_home(known, 0.0)
    np.testing.assert_array_equal(known[HOME], known[LEVEL])


def test_distance_of_blocks_goes_by_the_largest_of_three_variances():
    known, now, readings, _ = two_blocks(3)
    there = two_blocks(4)[0]
    variance = np.maximum(of_stream(readings, ERROR), np.maximum(of_block(known, NOISE), of_block(now, NOISE)))
    parts = (of_block(there, LEVEL) - of_block(known, LEVEL)) ** 2 / variance
    assert column_distance(known, now, readings, there, there[SWAY:], N_KNOWN) == pytest.approx(parts.sum(), rel=1e-12)
    there[[SWAY, N_KNOWN + SWAY], 1] = SILENT
    expected = parts[:, [0, 2]].sum()
    assert column_distance(known, now, readings, there, there[SWAY:], N_KNOWN) == pytest.approx(expected, rel=1e-12)


def test_a_guess_is_of_the_batches_that_say_something():
    ring = np.random.default_rng(0).uniform(0.5, 2.0, (RING * N_SLOT, D))
    slots = ring.reshape(RING, N_SLOT, D)
    slots[1, 2:4, 1] = SILENT  # of column 1 the batch before the last says nothing
    guess, now, n = np.zeros((N_GUESS, D)), 2, 3
    gather(guess, ring, now, n)
    whole, heard = slots[[2, 1, 0]], slots[[2, 0], :, 1]
    np.testing.assert_allclose(guess[:, [0, 2]], whole[:, :N_GUESS].mean(axis=0)[:, [0, 2]], rtol=1e-12)
    np.testing.assert_allclose(guess[:2, 1], heard[:, :2].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(guess[2:, 1], heard[:, 2:4].mean(axis=0) * n / 2, rtol=1e-12)
