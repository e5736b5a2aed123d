"""Video fingerprints are written to the files of a folder, and read again."""

from pathlib import Path

import numpy as np
import pytest

from neardup.media.frames.frame_store import FrameStore, fresh_variants
from neardup.media.frames.video_prints import VideoPrint
from neardup.runtime.program import StageError
from tests.support.made_up_prints import filmed, frames, made_up, same


def test_prints_come_back(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    prints = [made_up(random, f"v{k}", seconds) for k, seconds in enumerate((2, 0, 7.5))]
    store = FrameStore.write(tmp_path, prints)
    assert len(store) == 3
    assert store.frames == 38
    assert store.owner.tolist() == [0] * 8 + [2] * 30
    assert all(same(video, store.print_of(number)) for number, video in enumerate(prints))


@pytest.mark.parametrize("prints", [[], [filmed("black", np.empty((0, 2, 4), np.uint64))]])
def test_no_frames(tmp_path: Path, prints: list[VideoPrint]) -> None:
    store = FrameStore.write(tmp_path, prints)
    assert len(store) == len(prints)
    assert store.frames == len(store.owner) == len(store.spans) == len(store.fresh) == 0
    assert [len(store.print_of(number).spans) for number in range(len(prints))] == [0] * len(prints)


def test_prints_of_other_variants_are_refused(tmp_path: Path) -> None:
    video = made_up(np.random.default_rng(0), "a", 1)
    other = video._replace(id="b", variants=("whole",), hashes=video.hashes[:, :1])
    with pytest.raises(StageError, match="prints of b and a have different variants"):
        FrameStore.write(tmp_path, [video, other])


def test_rank_is_the_byte_order_of_ids(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    store = FrameStore.write(tmp_path, [made_up(random, id_, 1) for id_ in ("ä", "b", "B", "b")])
    assert store.rank.tolist() == [3, 1, 0, 2]


def test_variants_that_are_equal_to_one_before_are_not_fresh() -> None:
    hashes = frames(np.random.default_rng(0), 50)[:, [0, 1, 0, 1]]
    hashes[::2, 3] = 7
    expected = [
        sum(1 << v for v in range(4) if not any((row[v] == row[u]).all() for u in range(v)))
        for row in hashes
    ]
    assert fresh_variants(hashes).tolist() == expected
    assert set(expected) == {0b11, 0b1011}
