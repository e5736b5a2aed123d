"""The line in time for matching frames is about as good as one found by exhaustive search."""

import numpy as np
import pytest

from neardup.media.videos import time_lines
from neardup.media.videos.time_lines import RATES, Floats, best_line, overlaps, weights_of


def seeds_on(random: np.random.Generator, count: int, rate: float, offset: float) -> Floats:
    """Return matches of frames near a line in time, each moved by up to an eighth of a second."""
    a = np.sort(random.random(count)) * count / 2
    b = rate * a + offset + random.uniform(-0.125, 0.125, count)
    return np.stack((a, a + 0.25, b, b + 0.25), axis=1)


def strays(random: np.random.Generator, count: int, seconds: float) -> Floats:
    a, b = random.random((2, count)) * seconds
    return np.stack((a, a + random.choice([0.25, 0.5, 3.0], count), b, b + 0.25), axis=1)


def most_votes(seeds: Floats, weights: Floats) -> float:
    """Return the maximum votes over all rates, trying every offset at which the slope changes."""
    most = 0.0
    for rate in RATES.tolist():
        a0, a1, b0, b1 = seeds.T
        flat = np.minimum(rate * (a1 - a0), b1 - b0)
        ends = b0 - rate * a1, b1 - rate * a0
        for offset in np.concatenate((*ends, ends[0] + flat, ends[1] - flat)).tolist():
            shared = np.maximum(overlaps(seeds, rate, offset), 0)
            most = max(most, float((shared * weights).sum()))
    return most


@pytest.mark.first_case
@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("many", [False, True])
def test_no_other_line_has_clearly_more_votes(
    count: int, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many:
        monkeypatch.setattr(time_lines, "FEW", 0)
    for seed in range(8):
        random = np.random.default_rng(seed)
        seeds = np.concatenate((seeds_on(random, count, 1, 7.3), strays(random, count, 60)))
        weights = weights_of(seeds)
        line = best_line(seeds, weights)
        most = most_votes(seeds, weights)
        # Another rate than 1 needs 2 % and half a second more; on the grid, tops a hair apart tie.
        assert most * (0.7 if many and count < 30 else 0.97) - 0.5 <= line.votes
        on = np.maximum(overlaps(seeds, line.rate, line.offset), 0)
        assert line.votes == pytest.approx(float((on * weights).sum()))


@pytest.mark.parametrize("rate", [0.9, 0.952, 0.96, 1.0, 25 / 24, 1.05, 1.1])
@pytest.mark.parametrize("count", [40, 4000])
def test_rate_and_offset_are_found_among_strays(rate: float, count: int) -> None:
    random = np.random.default_rng(int(rate * 1000) + count)
    seeds = np.concatenate((seeds_on(random, count, rate, -4), strays(random, count, count / 2)))
    line = best_line(random.permutation(seeds), np.ones(len(seeds)))
    seconds = count / 2
    assert abs(line.rate - rate) * seconds < (0.5 if count > 400 else 0.2 + 0.01 * seconds)
    assert abs(line.rate * seconds / 2 + line.offset - (rate * seconds / 2 - 4)) < 0.25


def test_a_hundred_thousand_strays_hide_no_line() -> None:
    random = np.random.default_rng(0)
    seeds = np.concatenate((seeds_on(random, 400, 1, 1000), strays(random, 100_000, 3600)))
    line = best_line(seeds, weights_of(seeds))
    assert line.rate == 1
    assert abs(line.offset - 1000) < 0.25


def test_no_order_of_the_matches_changes_a_line() -> None:
    for count in (50, 600):
        random = np.random.default_rng(count)
        seeds = np.concatenate((seeds_on(random, count, 1.05, 3), strays(random, count, 60)))
        some = np.unique(random.permutation(seeds), axis=0)
        expected = best_line(np.unique(seeds, axis=0), weights_of(np.unique(seeds, axis=0)))
        assert best_line(some, weights_of(some)) == expected


def test_calm_frames_weigh_less() -> None:
    """A frame that matches ten others weighs about a third of a frame with one match."""
    calm = np.array([[0, 1, b, b + 1] for b in range(10)], float)
    single = np.array([[1, 2, 30, 31]], float)
    weights = weights_of(np.concatenate((calm, single)))
    assert weights[:-1] == pytest.approx(10**-0.5)
    assert weights[-1] == 1
