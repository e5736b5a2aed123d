"""Spans of similar frames equal those of a slow definition, in one batch and in several."""

import numpy as np
import pytest

from neardup.media.frames.frame_hashes import SIDE, VARIANTS, hashes
from neardup.media.frames.frame_spans import BATCH, FLAT, SAME, SpanMaker

TICK = 250


def ticks(seed: int, many: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the times and pictures of still, moving and black frames, at irregular times."""
    rng = np.random.default_rng(seed)
    pictures = np.empty((many, SIDE, SIDE), np.uint8)
    k = 0
    while k < many:
        length = int(rng.integers(1, 9))
        kind = rng.integers(3)
        still = np.kron(rng.integers(0, 255, (16, 16)), np.ones((4, 4), int))
        for n in range(k, min(k + length, many)):
            pictures[n] = 16 if kind == 0 else np.roll(still, 3 * (n - k) * (kind - 1), 1)
        k += length
    times = np.cumsum(rng.choice([100, 250, 250, 267, 800], many))
    return times, pictures


def expected(times: np.ndarray, pictures: np.ndarray) -> tuple[list[list[int]], list[np.ndarray]]:
    found, quality = hashes(pictures)
    spans: list[list[int]] = []
    firsts: list[np.ndarray] = []
    last = None
    for k, time in enumerate(times.tolist()):
        if quality[k] < FLAT:
            continue
        following = times[k + 1] if k + 1 < len(times) else time + TICK
        end = min(time + TICK, int(following))
        same = firsts and sum(bin(int(x)).count("1") for x in firsts[-1][0] ^ found[k, 0]) <= SAME
        if same and time - last < 2 * TICK:
            spans[-1][1] = end
        else:
            spans.append([time, end])
            firsts.append(found[k])
        last = time
    return spans, firsts


def made(times: np.ndarray, pictures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    maker = SpanMaker(TICK)
    for time, picture in zip(times.tolist(), pictures):
        maker.add(time, picture)
    return maker.finish()


@pytest.mark.first_case
@pytest.mark.parametrize("many", [1, 7, BATCH, BATCH + 5, 2 * BATCH + 60])
def test_spans_are_those_of_the_definition(many: int) -> None:
    times, pictures = ticks(many, many)
    spans, firsts = expected(times, pictures)
    found, hashed = made(times, pictures)
    assert found.tolist() == spans
    assert (hashed == np.array(firsts, np.uint64).reshape(-1, len(VARIANTS), 4)).all()
    assert many < BATCH or 0 < len(spans) < many


def test_spans_ascend_and_do_not_overlap() -> None:
    spans, _ = made(*ticks(4, 300))
    assert (spans[:, 0] < spans[:, 1]).all()
    assert (spans[1:, 0] >= spans[:-1, 1]).all()


def test_a_video_without_ticks_and_a_black_one_have_no_spans() -> None:
    black = np.full((9, SIDE, SIDE), 16, np.uint8)
    for spans, hashed in (SpanMaker(TICK).finish(), made(np.arange(9) * TICK, black)):
        assert spans.shape == (0, 2)
        assert hashed.shape == (0, len(VARIANTS), 4)


def test_pictures_are_copied() -> None:
    maker = SpanMaker(TICK)
    _, pictures = ticks(5, 4)
    shared = pictures[3].copy()
    maker.add(0, shared)
    shared[:] = 16
    assert len(maker.finish()[0]) == len(made(np.array([0]), pictures[3:4])[0])
