"""The speed of a short stretch is found from all its frames, and is 1 unless another is better."""

import numpy as np
import pytest

from neardup.media.videos import alignment, time_lines
from neardup.media.videos.alignment import Frames, align, distances
from neardup.media.videos.time_lines import FINE_STEP, SHIFTS, SPEEDS, Line, refined
from neardup.sets.bit_vectors import bits_apart
from tests.support.made_up_prints import filmed, frames, joined, made_up, noisy

TICK = 125  # milliseconds
PACE = 12  # bits that change in a tick


def scene(seconds: float, seed: int = 0, rate: float = 1.0, pace: int = PACE) -> np.ndarray:
    """Return the frames of a slow scene, (n, 2, 4): at another rate it lasts `seconds` · rate."""
    random = np.random.default_rng(seed)
    start, order = frames(random, 1)[0], random.permutation(256)
    shown = []
    for tick in range(round(rate * seconds * 1000 / TICK)):
        flips = np.zeros(256, np.uint8)
        np.add.at(flips, order[np.arange(round(tick / rate * pace)) % 256], 1)
        shown.append(start ^ np.packbits(flips % 2, bitorder="little").view(np.uint64))
    return np.stack(shown)


def compared(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Frames, Frames]:
    """Return the seeds of two videos, and their frames."""
    x, y = (Frames.of(filmed(id_, each, tick=TICK), False) for id_, each in (("a", a), ("b", b)))
    i, j = (side.ravel() for side in np.indices((len(a), len(b))))
    near = distances(x, y, i, j) <= 31
    return np.hstack((x.spans[i[near]], y.spans[j[near]])), x, y


@pytest.mark.parametrize("rate", [0.9, 0.95, 0.96, 1.0, 25 / 24, 10 / 9])
@pytest.mark.parametrize("turned", [False, True])
def test_the_speed_of_ten_seconds_is_right_to_a_hundredth(rate: float, turned: bool) -> None:
    film = np.concatenate((scene(3, 1), scene(10), scene(3, 2)))
    clip = scene(10, rate=rate)
    runs = align(*(compared(film, clip) if turned else compared(clip, film)))
    assert len(runs) == 1
    run = runs[0] if turned else runs[0].swapped()
    assert run.rate == pytest.approx(rate, abs=0.01 if rate != 1 else 0)
    assert (run.a_from, run.a_to) == pytest.approx((3, 13), abs=0.3)


def test_a_speed_is_changed_for_a_clearly_better_one_only() -> None:
    """A scene in which hardly anything moves keeps speed 1, whatever was first found near it."""
    random = np.random.default_rng(0)
    film, clip = scene(8, pace=1), noisy(random, scene(4, rate=1.05, pace=1), 6)
    seeds, a, b = compared(film, clip)
    bits = lambda i, j: distances(a, b, i, j)  # noqa: E731
    plain = Line(1.0, 0.0, 1.0)
    assert refined(plain, seeds / 1000, a.spans, b.spans, bits) == plain
    assert refined(Line(1.05, 0.0, 1.0), seeds / 1000, a.spans, b.spans, bits).rate == 1


def test_no_line_of_the_grid_has_a_lower_cost() -> None:
    """The costs are those of a loop over speeds, shifts and pictures."""
    film, clip = scene(6), scene(3, rate=1.04)
    _, x, y = compared(clip, film)
    line, middle = Line(1.0, 0.5, 1.0), 1.5
    times, i = time_lines._pictures(x.spans, 0, 3)
    bits = lambda i, j: distances(x, y, i, j)  # noqa: E731
    apart = time_lines._bits_beside(line, times, i, y.spans, middle, bits)
    costs = time_lines._costs(line, times - middle, apart)
    shown = y.spans[:, 0] / 1000
    for k, m in ((0, 0), (10, 16), (14, 9), (20, 32), (3, 25)):
        total = 0.0
        for time, frame in zip(times, i):
            steps = round((SPEEDS[k] - 1) * (time - middle) / FINE_STEP) + SHIFTS[m]
            at = time + line.offset + steps * FINE_STEP
            after = int(np.searchsorted(shown, at, "right"))
            if not shown[0] - 0.25 <= at <= shown[-1] + 0.25:
                total += time_lines.FAR
                continue
            pair = max(after - 1, 0), min(after, len(shown) - 1)
            ends = [
                min(time_lines.FAR, int(bits_apart(clip[frame, :1], film[j, :1])[0])) for j in pair
            ]
            part = min(max((at - shown[pair[0]]) / (TICK / 1000), 0), 1) if pair[0] < pair[1] else 0
            total += (1 - part) * ends[0] + part * ends[1]
        assert costs[k, m] == pytest.approx(total / len(times), abs=1e-4)


def test_a_long_stretch_and_videos_without_frames_near_keep_their_line() -> None:
    random = np.random.default_rng(0)
    film = made_up(random, "a", 30)
    a = Frames.of(film, False)
    seeds = np.hstack((a.spans, a.spans)) / 1000
    line = Line(1.02, 0.0, 1.0)
    bits = lambda i, j: distances(a, a, i, j)  # noqa: E731
    assert refined(line, seeds, a.spans, a.spans, bits) == line
    apart = Frames.of(joined("b", film), False).spans + 10**7
    assert refined(line, seeds[:4], a.spans[:4], apart, bits).votes == 1.0


def test_a_run_on_the_line_of_the_votes_is_kept_if_the_refined_line_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared_frames = compared(scene(8), scene(8))
    expected = align(*compared_frames)
    assert len(expected) == 1
    monkeypatch.setattr(alignment, "refined", lambda *_: Line(1.1, 50.0, 1.0))
    assert align(*compared_frames) == expected


@pytest.mark.parametrize("seed", range(3))
def test_a_stretch_is_printed_once_at_one_speed(seed: int) -> None:
    """The scene goes on before and after, so the ends match at another speed, too."""
    shown = scene(16, seed, rate=10 / 9, pace=2)[round(30 / 9 * 8) : round(130 / 9 * 8)]
    clip = noisy(np.random.default_rng(seed), shown, 6)
    (run,) = align(*compared(clip, scene(16, seed, pace=2)))
    assert run.rate == pytest.approx(0.9, abs=0.01)
    assert (run.b_from, run.b_to) == pytest.approx((3, 13), abs=0.3)
