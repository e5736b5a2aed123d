"""The video benchmark makes edits and clips, and counts hits and false pairs correctly."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")

from bench import compare_videos, video_clips, video_sources
from bench.video_edits import EDITS, Edit, Kept, edited, filtered, write
from bench.video_sources import Source, frames_of, moving
from neardup.media.videos.runs import Run, VideoPair

FPS, SECONDS = 10, 3.0


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("videos") / "source.mp4"
    write(frames_of(moving(1, SECONDS, FPS)), path, FPS, options={"preset": "ultrafast"})
    return path


def grey(path: Path) -> np.ndarray:
    return np.stack([f.to_ndarray(format="gray") for f in filtered(path, [("format", "gray")])])


def copy(source: Path, name: str, folder: Path) -> np.ndarray:
    edit = next(edit for edit in EDITS if edit.name == name)
    edited(source, edit, folder / "copy.mp4", FPS, SECONDS)
    return grey(folder / "copy.mp4")


def test_names_of_edits_and_sources_differ() -> None:
    assert len({edit.name for edit in EDITS}) == len(EDITS) >= 25
    names = [real.name for real in video_sources.REAL] + list(video_sources.DRAWN)
    assert len(set(names)) == len(names) >= 60
    assert len(video_sources.REAL) >= 25
    assert {real.package for real in video_sources.REAL} == set(video_sources.PACKAGES)


@pytest.mark.first_case
@pytest.mark.parametrize(
    "edit", [e for e in EDITS if e.codec == "libx264"][::3], ids=lambda e: e.name
)
def test_a_copy_has_the_length_that_its_edit_says(source: Path, edit: Edit, tmp_path: Path) -> None:
    edited(source, edit, tmp_path / "copy.mp4", FPS, SECONDS)
    last = edit.kept(SECONDS)[-1]
    expected = last.at + (last.end - last.start) * last.rate
    assert compare_videos.seconds_of(tmp_path / "copy.mp4") == pytest.approx(expected, abs=0.3)


@pytest.mark.slow
def test_edits_do_what_they_say(source: Path, tmp_path: Path) -> None:
    before = grey(source).astype(int)
    mirrored = copy(source, "mirrored", tmp_path)
    assert np.abs(before[:, :, ::-1] - mirrored).mean() < 6 < np.abs(before - mirrored).mean()
    brighter = copy(source, "brightness + 15 %", tmp_path)
    assert 15 < (brighter.astype(int) - before).mean() < 50
    framed = copy(source, "letterbox", tmp_path)
    assert framed.shape[1] > before.shape[1] * 1.3
    assert framed[:, :20].max() < 24
    third = copy(source, "first third cut", tmp_path)
    assert np.abs(before[10 : 10 + len(third)] - third).mean() < 6


@pytest.mark.slow
def test_clips_are_in_the_hour_where_the_list_says(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_clips, "HOUR", 12)
    monkeypatch.setattr(video_clips, "LENGTHS", (1, 2))
    monkeypatch.setattr(video_clips, "EACH", 2)
    sources = [Source("a", True, source)]
    placed, files, hour = video_clips.clips(sources, {"a": SECONDS}, tmp_path)
    assert len(placed) == len(files) == 4
    frames, original = grey(hour).astype(int), grey(source).astype(int)
    for clip in placed:
        middle = clip.seconds / 2
        shown = frames[round((clip.at + middle) * video_clips.FPS)]
        expected = original[round((clip.start + middle) * FPS)]
        small = expected[::4, ::4][:45, :60]  # 240 lines became 180: only the mean is compared
        assert abs(shown[:, 40:280].mean() - small.mean()) < 25


@pytest.mark.slow
def test_drawn_sources_are_the_same_for_a_seed() -> None:
    for draw in video_sources.DRAWN.values():
        first, second = (list(itertools.islice(draw(), 3)) for _ in range(2))
        assert all((a == b).all() for a, b in zip(first, second))
        assert first[0].shape == (120, 160)
        assert first[0].dtype == np.uint8


def test_a_hit_is_judged_by_the_truth() -> None:
    run = Run(5.0, 1.0, 6.0, 0.5, 5.5, 1.0, 20)
    found = {frozenset(("a", "a.1")): [("a", VideoPair(0, 1, False, (run,), 5.0, 0.8, 0.5, 0.8))]}
    kept = [Kept(1.0, 6.5, 0.0)]
    hit = compare_videos.hit(found, "a", "a.1", kept, None)
    assert (hit.share, hit.offset, hit.ends) == (0.8, 0.5, 0.5)
    assert compare_videos.hit(found, "a", "a.1", kept, True).share == 0
    assert compare_videos.hit(found, "a", "a.2", kept, None).share == 0
    turned = {
        frozenset(("a", "a.1")): [("a.1", VideoPair(0, 1, False, (run,), 5.0, 0.8, 0.5, 0.8))]
    }
    assert compare_videos.hit(turned, "a", "a.1", [Kept(0.5, 5.5, 1.0)], None).offset == 0


def test_false_pairs_are_those_of_different_sources() -> None:
    run = (Run(5.0, 1.0, 6.0, 0.5, 5.5, 1.0, 20),)
    content = {"a": "a", "a.1": "a", "b": "b", "bunny": "bunny", "trailer": "trailer-27"}
    shares = {("a", "a.1"): [0.9], ("a.1", "b"): [0.6, 0.2], ("b", "hour"): [0.9]}
    shares[("bunny", "trailer")] = [0.9]  # which share footage
    found: compare_videos.Found = {
        frozenset(names): [(names[0], VideoPair(0, 1, False, run, 5.0, s, s, s)) for s in some]
        for names, some in shares.items()
    }
    compared = [*found, frozenset(("a", "b"))]
    text = compare_videos.false_table(content, compared, found)
    assert "1 of 2 pairs of files" in text
    assert "| a and b | 1 | 2 | 0.60 |" in text
    assert "bunny" not in text


@pytest.mark.slow
def test_growth_finds_the_copies() -> None:
    text = compare_videos.growth_table([2])
    assert re.search(r"\| 2 \| [\d.]+ \| 1 of 1 \| 1 \|", text)
