"""The join of videos finds edited copies and nothing else, however it is computed."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import VideoPrint
from neardup.media.videos import alignment, seed_files
from neardup.media.videos.runs import format_run, pair_runs
from neardup.media.videos.video_join import JoinOptions, find
from neardup.reading.decoders import in_order
from neardup.runtime.program import StageError
from tests.support.made_up_prints import (
    VARIANTS,
    at_rate,
    calm_frames,
    copied,
    cut,
    filmed,
    frames,
    joined,
    made_up,
    mirrored,
)


def library(random: np.random.Generator) -> list[VideoPrint]:
    """Return videos, edited copies, a compilation, episodes with an opening, and camera takes."""
    first = [made_up(random, f"v{k}", 30) for k in range(8)]
    opening = made_up(random, "", 8)
    episodes = [
        joined(f"e{k}", copied(random, opening, "", 4), made_up(random, "", 20)) for k in range(7)
    ]
    camera = calm_frames(random, 1, 0).repeat(80, axis=0)
    takes = [copied(random, filmed("", camera), f"t{k}", 12) for k in range(2)]
    parts = [cut(video, "", 3, 9) for video in first[4:8]]
    return [
        *first,
        copied(random, first[0], "copy", 12),
        mirrored(copied(random, first[1], "", 6), "mirror"),
        at_rate(first[2], "slow", 1.05),
        copied(random, cut(first[3], "", 10, 20), "clip", 20),
        joined("compilation", *parts),
        *episodes,
        copied(random, episodes[0], "e0 copy"),
        *takes,
        filmed("black", np.empty((0, 2, 4), np.uint64)),
    ]


def lines(
    folder: Path, prints: list[VideoPrint], jobs: int = 1, old: int = 0, **options: object
) -> list[bytes]:
    """Return the answer's lines, and its common stretches with the ids of videos."""
    folder.mkdir()
    store = FrameStore.write(folder, prints)
    pairs, stretches = find(store, JoinOptions(**options), jobs, old)  # type: ignore[arg-type]
    assert not [path for path in folder.iterdir() if path.is_dir()]
    found = [format_run(run) for pair in pairs for run in pair_runs(pair, store.ids)]
    for seconds, places in stretches:
        rows = sorted(map(tuple, places))
        found.append(f"{seconds} {rows}".encode())
    return found


def pairs_in(found: list[bytes], *kinds: str) -> dict[tuple[str, str], float]:
    """Return {pair: share}, of some kinds only."""
    fields = [line.decode().rstrip("\n").split("\t") for line in found if b"\t" in line]
    return {(row[0], row[1]): float(row[5]) for row in fields if not kinds or row[8] in kinds}


def test_frames_whose_bars_are_cut_elsewhere_match_with_their_borders(tmp_path: Path) -> None:
    """A plain edge of a slide is taken for a bar of another height in each copy."""
    random = np.random.default_rng(0)
    names = ("whole", "tight", "upper", "lower", "uncut")
    prints = []
    for id_ in "ab":
        hashes = random.integers(0, 2**64, (80, len(names), 4), dtype=np.uint64)
        hashes[:, 4] = np.random.default_rng(1).integers(0, 2**64, (80, 4), dtype=np.uint64)
        prints.append(filmed(id_, hashes)._replace(variants=names))
    assert pairs_in(lines(tmp_path / "store", prints), "copy") == {("a", "b"): 1.0}


PARTS = {("compilation", f"v{k}") for k in range(4, 8)}


def test_each_edit_is_found_and_nothing_else(tmp_path: Path) -> None:
    found = lines(tmp_path / "store", library(np.random.default_rng(0)))
    pairs = ("copy", "v0"), ("mirror", "v1"), ("slow", "v2"), ("clip", "v3"), ("e0", "e0 copy")
    alike = pairs_in(found, "copy", "clip")
    assert {pair: round(share, 1) for pair, share in alike.items()} == dict.fromkeys(pairs, 1)
    assert pairs_in(found, "clip").keys() == {("clip", "v3")}
    assert pairs_in(found, "part").keys() == PARTS
    assert sum(b"\t" not in line for line in found) == 1
    copies = lines(tmp_path / "copies", library(np.random.default_rng(0)), measure="copy")
    assert copies == [line for line in found if b"\tpart" not in line]


def test_frames_that_come_late_for_their_tick_are_no_missing_seconds(tmp_path: Path) -> None:
    """At 12 frames a second and 8 ticks, a share of 0.70 was 0.84: the video was removed."""
    random = np.random.default_rng(0)
    starts = np.ceil(np.arange(160) * 1.5) / 12 * 1000
    spans = np.stack((starts, np.minimum(starts + 125, np.append(starts[1:], 20_000))), axis=1)
    assert np.ptp(spans, axis=1).sum() < 17_000
    first = frames(random, 160)
    second = np.concatenate((first[:112], frames(random, 48)))
    prints = [
        VideoPrint(id_, {"seconds": 20.0}, VARIANTS, spans.astype(np.int64), hashes)
        for id_, hashes in (("a", first), ("b", second))
    ]
    assert pairs_in(lines(tmp_path / "store", prints)) == {("a", "b"): 0.7}
    assert FrameStore.write(tmp_path, prints).seconds.tolist() == [20.0, 20.0]


@pytest.mark.slow
def test_the_answer_is_the_same_however_it_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    prints = library(random)
    expected = lines(tmp_path / "plain", prints, measure="common")
    assert len(expected) > 9
    assert lines(tmp_path / "three", prints, jobs=3, measure="common") == expected
    monkeypatch.setattr(seed_files, "ROWS", 1000)
    monkeypatch.setattr(alignment, "AT_ONCE", 7)
    shuffled = [prints[k] for k in random.permutation(len(prints))]
    assert lines(tmp_path / "shuffled", shuffled, jobs=2, measure="common") == expected


@pytest.mark.slow
def test_by_masks_nothing_is_lost_that_the_exact_join_finds(tmp_path: Path) -> None:
    prints = library(np.random.default_rng(0))
    by_masks = lines(tmp_path / "masks", prints)
    exact = lines(tmp_path / "exact", prints, exact=True)
    assert pairs_in(by_masks).keys() == pairs_in(exact).keys()


@pytest.mark.slow
def test_parts_are_as_long_as_asked_for(tmp_path: Path) -> None:
    prints = library(np.random.default_rng(0))
    common = pairs_in(lines(tmp_path / "three", prints, at_least=3.0))
    assert {pair for pair in common if pair[0] == "compilation"} == PARTS
    longer = pairs_in(lines(tmp_path / "seven", prints, at_least=7.0))
    assert longer.keys() < common.keys()
    assert not PARTS & longer.keys()


def test_scenes_that_longer_videos_share(tmp_path: Path) -> None:
    """Two compilations with a scene of 6 seconds are a pair, with one of 4 seconds they are not."""
    random = np.random.default_rng(3)
    six, four = (made_up(random, "", seconds) for seconds in (6, 4))

    def compiled(id_: str, *scenes: VideoPrint) -> VideoPrint:
        parts = [part for scene in scenes for part in (made_up(random, "", 15), scene)]
        return joined(id_, *(copied(random, part, "", 8) for part in parts))

    prints = [compiled("a", six, four), compiled("b", four, six), compiled("c", four)]
    (line,) = lines(tmp_path / "store", prints)
    a, b, seconds, of_a, of_b, share, *rest = line.decode().rstrip("\n").split("\t")
    assert (a, b, *rest) == ("a", "b", "1.000", "0", "part")
    times = [float(time) for part in (of_a, of_b) for time in part.split("-")]
    assert times == pytest.approx([15, 21, 34, 40], abs=0.5)
    assert float(share) == pytest.approx(float(seconds) / 40, abs=0.01)
    shorter = pairs_in(lines(tmp_path / "shorter", prints, at_least=3.0))
    assert shorter.keys() == {("a", "b"), ("a", "c"), ("b", "c")}


@pytest.mark.slow
def test_containment_needs_one_run_through_the_shorter(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    video = made_up(random, "v", 40)
    halves = joined("halves", cut(video, "", 30, 40), cut(video, "", 0, 10))
    prints = [video, halves, cut(video, "clip", 10, 20), made_up(random, "x", 40)]
    assert pairs_in(lines(tmp_path / "copies", prints)).keys() == {("clip", "v"), ("halves", "v")}
    contained = lines(tmp_path / "in", prints, measure="containment", threshold=0.9)
    assert pairs_in(contained).keys() == {("clip", "v")}


def test_a_higher_threshold_finds_a_part_of_the_pairs(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    video = made_up(random, "v", 40)
    prints = [video]
    for seconds in (10, 20, 30):
        prints.append(joined(f"w{seconds}", cut(video, "", 0, seconds), made_up(random, "", 20)))
    kept = [
        pairs_in(lines(tmp_path / f"{t}", prints, threshold=t), "copy", "clip").keys()
        for t in (0.3, 0.55, 0.9)
    ]
    assert kept[2] < kept[1] < kept[0]


@pytest.mark.slow
@pytest.mark.parametrize("old", [1, 8, 15])
def test_with_an_index_the_pairs_are_those_with_a_new_video(tmp_path: Path, old: int) -> None:
    prints = library(np.random.default_rng(0))
    number = {video.id: k for k, video in enumerate(prints)}
    every = pairs_in(lines(tmp_path / "all", prints, measure="common"))
    new = pairs_in(lines(tmp_path / "new", prints, old=old, measure="common"))
    expected = {(a, b) for a, b in every if max(number[a], number[b]) >= old}
    assert new.keys() == expected
    assert len(expected) > 0


@pytest.mark.parametrize("count", [0, 1])
def test_no_pair_of_no_videos(tmp_path: Path, count: int) -> None:
    prints = [made_up(np.random.default_rng(0), f"v{k}", 10) for k in range(count)]
    assert lines(tmp_path / "store", prints) == []


def test_a_process_that_is_killed_ends_the_run() -> None:
    def task(number: int) -> int:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(StageError, match="was killed, probably because memory ran out"):
        list(in_order(task, range(6), jobs=2))


def test_an_error_of_the_program_is_not_called_a_lack_of_memory() -> None:
    def fails(_: int) -> int:
        raise ValueError("not so")

    with pytest.raises(StageError, match=r"error of the program: ValueError: not so$"):
        list(in_order(fails, [1, 2], jobs=2))


@pytest.mark.slow
def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    store = FrameStore.write(tmp_path, library(np.random.default_rng(0)))
    shares: list[float] = []
    find(store, JoinOptions(), 1, done=shares.append)
    assert shares == sorted(shares)
    assert len(shares) > 50
    assert shares[-1] == pytest.approx(1)
