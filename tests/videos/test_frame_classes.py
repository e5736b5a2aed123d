"""Shingles: copies of videos share nearly all, clips share their part, unrelated videos none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neardup.videos.frame_classes import segments_of, shingle_lines
from neardup.videos.frame_store import FrameStore
from neardup.videos.video_prints import VideoPrint
from tests.support import made_up_prints as made


@pytest.fixture(scope="module")
def prints() -> list[VideoPrint]:
    random = np.random.default_rng(8)
    films = [made.made_up(random, f"film{k}", 30) for k in range(3)]
    talks = [made.filmed(f"talk{k}", made.calm_frames(random, 120, 4)) for k in range(2)]
    mixed = made.joined("mixed", films[0], talks[0])
    return [
        *films,
        *talks,
        mixed,
        made.copied(random, films[0], "copy", bits=12),
        made.copied(random, talks[0], "talk-copy", bits=6),
        made.mirrored(films[1], "mirror"),
        made.cut(films[2], "clip", 5, 20),
        made.filmed("empty", made.frames(random, 0)),
    ]


def shingles(prints: list[VideoPrint], folder: Path) -> dict[str, set[int]]:
    folder.mkdir()
    lines = shingle_lines(FrameStore.write(folder, prints), jobs=1)
    found = {}
    for line in lines:
        id_, *tokens = line.decode().split()
        found[id_] = set(map(int, tokens))
        assert len(found[id_]) == len(tokens)
    return found


def jaccard(x: set[int], y: set[int]) -> float:
    return len(x & y) / len(x | y)


@pytest.mark.slow
def test_the_similarity_is_the_time_in_common(prints: list[VideoPrint], tmp_path: Path) -> None:
    sets = shingles(prints, tmp_path / "frames")
    assert "empty" not in sets
    assert len(sets["film0"]) == len(sets["talk0"]) == 120  # quarters of a second
    for a, b, least, most in (
        ("film0", "copy", 0.95, 1),
        ("talk0", "talk-copy", 0.95, 1),
        ("film1", "mirror", 0.95, 1),
        ("film2", "clip", 0.48, 0.52),
        ("film0", "mixed", 0.48, 0.52),
        ("film0", "film1", 0, 0),
        ("talk0", "talk1", 0, 0),
    ):
        assert least <= jaccard(sets[a], sets[b]) <= most, (a, b)


@pytest.mark.slow
def test_the_order_of_videos_changes_the_numbers_only(
    prints: list[VideoPrint], tmp_path: Path
) -> None:
    one = shingles(prints, tmp_path / "one")
    other = shingles(prints[::-1], tmp_path / "other")
    for a in one:
        for b in one:
            assert jaccard(one[a], one[b]) == jaccard(other[a], other[b])


def test_a_segment_has_frames_that_are_like_its_first(
    prints: list[VideoPrint], tmp_path: Path
) -> None:
    store = FrameStore.write(tmp_path, prints)
    segments = segments_of(store)
    own = store.hashes[0]
    for number in np.unique(segments):
        at = np.flatnonzero(segments == number)
        assert len(set(store.owner[at])) == 1
        apart = np.unpackbits((own[at] ^ own[at[:1]]).view(np.uint8), axis=1).sum(axis=1)
        assert (apart <= 24).all()
    assert len(segments[store.frames_of(3)]) > len(np.unique(segments[store.frames_of(3)])) > 0


def test_no_videos(tmp_path: Path) -> None:
    assert list(shingle_lines(FrameStore.write(tmp_path, []), jobs=1)) == []
