"""Openings and other stretches that occur in many different videos are found."""

from pathlib import Path

import numpy as np
import pytest

from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import VideoPrint
from neardup.media.videos.common import Stretch, limits, shown_by
from neardup.media.videos.runs import VideoPair
from neardup.media.videos.video_join import JoinOptions, find
from tests.support.made_up_prints import copied, cut, joined, made_up

Answer = tuple[list[VideoPair], list[Stretch]]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def found(folder: Path, prints: list[VideoPrint], old: int = 0, **options: object) -> Answer:
    folder.mkdir(exist_ok=True)
    store = FrameStore.write(folder, prints)
    return find(store, JoinOptions(**options), jobs=1, old=old)  # type: ignore[arg-type]


def episode(random: np.random.Generator, id_: str, opening: VideoPrint, at: float) -> VideoPrint:
    """Return an episode with 30 seconds of its own, and the opening after `at` seconds."""
    parts = made_up(random, "", at), copied(random, opening, "", 5), made_up(random, "", 30 - at)
    return joined(id_, *parts)


def names(prints: list[VideoPrint], pairs: list[VideoPair]) -> set[tuple[str, str]]:
    return {(prints[pair.a].id, prints[pair.b].id) for pair in pairs}


def test_an_opening_makes_no_pairs_and_is_reported(
    random: np.random.Generator, tmp_path: Path
) -> None:
    opening = made_up(random, "", 12)
    prints = [episode(random, f"e{k}", opening, 2.5 * k) for k in range(9)]
    pairs, (stretch,) = found(tmp_path, prints, measure="common")
    assert pairs == []
    assert stretch.seconds == pytest.approx(12, abs=0.5)
    assert [place.id for place in stretch.places] == [f"e{k}" for k in range(9)]
    for k, (_, start, end) in enumerate(stretch.places):
        assert abs(start - 2.5 * k) <= 0.5
        assert abs(end - 2.5 * k - 12) <= 0.5


def test_few_videos_with_one_opening_are_pairs(random: np.random.Generator, tmp_path: Path) -> None:
    opening = made_up(random, "", 12)
    prints = [episode(random, f"e{k}", opening, 5) for k in range(5)]
    pairs, stretches = found(tmp_path, prints)
    assert [pair.kind for pair in pairs] == ["part"] * 10
    assert stretches == []
    assert found(tmp_path / "copies", prints, measure="copy") == ([], [])


def test_an_opening_below_one_percent_makes_clips_but_no_parts(
    random: np.random.Generator, tmp_path: Path
) -> None:
    """Of a large library, a series is less than a hundredth: its opening makes no parts."""
    opening = made_up(random, "", 12)
    prints = [episode(random, f"e{k}", opening, 5) for k in range(9)]
    scene = made_up(random, "", 6)
    prints += [joined(f"f{k}", scene, prints[k], made_up(random, "", 20)) for k in range(2)]
    prints += [copied(random, opening, "g")]
    pairs, stretches = found(tmp_path, prints, common_share=1.0)
    clips = {(f"e{k}", "g") for k in range(9)} | {(f"f{k}", "g") for k in range(2)}
    kinds = {(prints[pair.a].id, prints[pair.b].id): pair.kind for pair in pairs}
    parts = {("f0", "f1"): "part"}
    assert kinds == {
        **dict.fromkeys(clips, "clip"),
        ("e0", "f0"): "copy",
        ("e1", "f1"): "copy",
        **parts,
    }
    (run,) = next(pair for pair in pairs if pair.kind == "part").runs
    assert (run.a_from, run.a_to) == pytest.approx((0, 6), abs=0.5)
    assert [len(stretch.places) for stretch in stretches] == [12]


@pytest.mark.slow
def test_a_copy_of_an_episode_is_a_whole_copy(random: np.random.Generator, tmp_path: Path) -> None:
    opening = made_up(random, "", 12)
    prints = [episode(random, f"e{k}", opening, 5) for k in range(9)]
    prints += [copied(random, prints[3], "f"), cut(prints[4], "g", 0, 20)]
    pairs, (stretch,) = found(tmp_path, prints)
    assert names(prints, pairs) == {("e3", "f"), ("e4", "g")}
    assert min(pair.share for pair in pairs) > 0.97
    assert len(stretch.places) == 11


@pytest.mark.slow
def test_copies_of_one_video_keep_their_votes(random: np.random.Generator, tmp_path: Path) -> None:
    """Of 31 copies, every two are a pair, although each of their frames is in 31 videos."""
    video = made_up(random, "v", 20)
    prints = [video, *(copied(random, video, f"w{k:02}", 4) for k in range(30))]
    prints += [made_up(random, f"x{k}", 20) for k in range(5)]
    pairs, stretches = found(tmp_path, prints)
    assert len(pairs) == 31 * 30 / 2
    assert stretches == []


@pytest.mark.slow
def test_copies_in_an_index_keep_their_votes(random: np.random.Generator, tmp_path: Path) -> None:
    """A clip is found in all 12 copies of its video among the old videos."""
    video = made_up(random, "v", 40)
    prints = [copied(random, video, f"w{k:02}", 4) for k in range(12)]
    prints += [made_up(random, "x", 20), copied(random, cut(video, "", 20, 28), "clip")]
    pairs, stretches = found(tmp_path, prints, old=13)
    assert names(prints, pairs) == {("clip", f"w{k:02}") for k in range(12)}
    assert stretches == []


@pytest.mark.slow
def test_an_opening_of_the_index_makes_no_pairs_with_new_videos(
    random: np.random.Generator, tmp_path: Path
) -> None:
    opening = made_up(random, "", 12)
    prints = [episode(random, f"e{k}", opening, 2.5 * k) for k in range(9)]
    pairs, stretches = found(tmp_path, prints, old=8, measure="common")
    assert pairs == []
    assert [len(stretch.places) for stretch in stretches] == [9]


@pytest.mark.slow
def test_two_openings_are_two_groups(random: np.random.Generator, tmp_path: Path) -> None:
    first, second = made_up(random, "", 12), made_up(random, "", 6)
    prints = [episode(random, f"e{k}", first, 5) for k in range(7)]
    prints += [episode(random, f"f{k}", second, 5) for k in range(8)]
    _, stretches = found(tmp_path, prints)
    assert [(round(s.seconds), len(s.places)) for s in stretches] == [(12, 7), (6, 8)]


def test_the_limit_is_the_larger_of_a_number_and_a_share() -> None:
    assert limits(100, 0.01, 5) == (5, 5)
    assert limits(10_000, 0.01, 5) == (5, 100)


def test_each_cluster_counts_once() -> None:
    random = np.random.default_rng(0)
    frames, clusters = random.integers(0, 20, (2, 300))
    expected = sorted(set(zip(frames.tolist(), clusters.tolist())))
    assert [*zip(*(side.tolist() for side in shown_by(frames, clusters)))] == expected
    assert 20 < len(expected) < 300
