"""`videos` prints pairs with their times, decisions, fingerprints and common stretches."""

from __future__ import annotations

import json
import os
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from neardup.reading.folder_walk import path_id, path_of
from tests.support.cases import in_turn
from tests.support.drawn_videos import encode, scene, with_speech
from tests.support.engines import NEARDUP, Result, run

FPS, SECONDS = 12, 12.0
SMALL = (64, 48)


def film(seed: int, seconds: float = SECONDS) -> np.ndarray:
    return np.stack(list(scene(seed, seconds, FPS, (96, 72))))


def filmed(
    frames: np.ndarray, path: Path, crf: int = 20, size: tuple[int, int] | None = None
) -> Path:
    return encode(path, frames, FPS, options={"crf": str(crf)}, size=size)


def videos(tmp: Path, *words: str | Path, **env: str) -> Result:
    command = [*NEARDUP, "videos", *(str(word) for word in words)]
    return run(command, tmp, XDG_CACHE_HOME=str(tmp / "cache"), **env)


def films(top: Path) -> Path:
    """Write copies and a clip of one film, other films, and files to be skipped, to a folder."""
    long = film(1)
    filmed(long, top / "long.mp4")
    filmed(long, top / "small" / "long.mp4", size=SMALL)
    filmed(np.ascontiguousarray(long[:, :, ::-1]), top / "mirror.mp4", crf=35)
    filmed(long[3 * FPS : 9 * FPS], top / "clip.mp4")
    filmed(film(2), top / "other.mp4")
    filmed(np.zeros_like(long[: 3 * FPS]), top / "black.mp4")
    (top / "cut.mp4").write_bytes((top / "long.mp4").read_bytes()[:3000])
    (top / "empty.mp4").touch()
    (top / "notes.txt").write_text("text")
    (top / ".hidden.mp4").write_bytes(b"")
    os.link(top / "long.mp4", top / "zlong.mp4")
    return top


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return films(tmp_path_factory.mktemp("made") / "films")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "films", copy_function=os.link))


def rows(result: Result, top: Path) -> list[list[str]]:
    """Return the fields of each line, with file names relative to the folder."""
    assert result.code == 0, result.err
    return [
        [field.replace(f"{top}/", "") for field in line.decode().split("\t")]
        for line in result.out.splitlines()
    ]


def test_a_copy_with_another_sound_is_removed_doubtfully(tmp_path: Path) -> None:
    """Two narrations of one slideshow are no copies; other codings and volumes of one are."""
    top, shown = tmp_path / "films", filmed(film(1), tmp_path / "mute.mp4")
    with_speech(shown, top / "a.mp4", 1, bits=128000)
    with_speech(shown, top / "b again.mkv", 1, "mp3", 0.3, 40000)
    with_speech(shown, top / "c again.mov", 1, "pcm_s16le", 1.5)
    with_speech(shown, top / "d again.mkv", 1, "ac3", 0.8)
    with_speech(shown, top / "e other.mp4", 2)
    with_speech(shown, top / "f silent.mkv", 1, "mp3", 0.0)
    result = videos(tmp_path, top, "--output", "removed", "--keep", "prefer:a.mp4")
    gone = [(path, doubts) for path, kept, _, doubts in rows(result, top) if kept == "a.mp4"]
    found = {path.partition(".")[0]: doubts.rpartition(",")[2] for path, doubts in gone}
    again = {f"{name}%20again": "" for name in ("b", "c", "d")}
    assert found == {**again, "e%20other": "other sound", "f%20silent": ""}
    sure = {path for path, doubts in gone if not doubts}
    for output in ("removed", "kept"):
        null = videos(tmp_path, top, "--output", output, "-0", "--keep", "prefer:a.mp4")
        names = {os.path.basename(path).decode() for path in null.out.split(b"\0")[:-1]}
        removed = {name.replace("%20", " ") for name in sure}
        assert names == (removed if output == "removed" else {*os.listdir(top)} - removed)
        assert "1 of them doubtful (-0 " in null.err
    videos(tmp_path, top, "--output=prints", "-o", tmp_path / "p")
    null = videos(tmp_path, tmp_path / "p", "--output=removed", "-0", "--keep", "prefer:a.mp4")
    assert "1 of them doubtful (-0 leaves them out); 4 not printed: with -0, videos of" in null.err


@pytest.mark.slow
def test_episodes_with_one_cover_are_never_removed(tmp_path: Path) -> None:
    top = tmp_path / "films"
    cover = np.repeat(film(7)[:1], 30 * FPS, axis=0)
    filmed(cover[: 27 * FPS], top / "ep 1.mp4")
    filmed(cover, top / "ep 2.mp4", crf=22)
    (top / "ep 1 (1).mp4").write_bytes((top / "ep 1.mp4").read_bytes())
    found = videos(tmp_path, top)
    kinds = {tuple(row[:2]): row[6:] for row in rows(found, top)}
    a, b, c = (path_id(os.fsencode(f"ep {name}.mp4")) for name in ("1", "1 (1)", "2"))
    marked = ["1.000", "0", "copy", "one picture"]
    assert kinds == {(b, a): ["1.000", "0", "copy"], (b, c): marked, (a, c): marked}
    assert "3 pairs among 3 videos, 2 of one picture (removed only with --one-picture)" in found.err
    removed = rows(videos(tmp_path, top, "--output", "removed"), top)
    assert [set(row[:2]) for row in removed] == [{a, b}]
    clusters = videos(tmp_path, top, "--output", "clusters")
    assert {row[1] for row in rows(clusters, top)} == {a, b}
    asked = rows(videos(tmp_path, top, "--one-picture", "--output", "removed"), top)
    assert {row[3].split(",")[0] for row in asked if c in row[:2]} == {"one picture"}
    assert {id_ for row in asked for id_ in row[:2]} == {a, b, c}
    null = videos(tmp_path, top, "--one-picture", "--output", "removed", "-0")
    sure = [path_of(row[0]) for row in asked if row[3] in ("", "one picture")]
    assert [os.path.basename(path) for path in null.out.split(b"\0")[:-1]] == sure
    videos(tmp_path, top / "ep 2.mp4", "--output", "prints", "-o", tmp_path / "old.prints")
    new = videos(tmp_path, top, "--against", tmp_path / "old.prints", "--output", "removed")
    assert [set(row[:2]) for row in rows(new, top)] == [{a, b}]


@pytest.mark.slow
def test_an_equal_file_that_is_mostly_black_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "films"
    opening = film(7)[: 4 * FPS]
    black = np.zeros_like(opening[:1]).repeat(12 * FPS, axis=0)
    filmed(np.concatenate((opening, black)), top / "a.mp4")
    filmed(np.concatenate((opening, black)), top / "b.mp4", crf=22)
    shutil.copy(top / "a.mp4", top / "c.mp4")
    removed = rows(videos(tmp_path, top, "--output", "removed"), top)
    assert [row[:2] for row in removed] == [["c.mp4", "a.mp4"]]


def pairs(result: Result, top: Path) -> set[tuple[str, str]]:
    return {(row[0], row[1]) for row in rows(result, top)}


COPIES = {
    *[("clip.mp4", "long.mp4"), ("clip.mp4", "mirror.mp4"), ("clip.mp4", "small/long.mp4")],
    *[("long.mp4", "mirror.mp4"), ("long.mp4", "small/long.mp4"), ("mirror.mp4", "small/long.mp4")],
}


def test_videos_that_are_too_short_to_be_found_are_named(tmp_path: Path) -> None:
    short = film(1)[:FPS]
    for name in ("a b.mp4", "c.mp4"):
        filmed(short, tmp_path / "films" / name)
    result = videos(tmp_path, "--output=kept", tmp_path / "films")
    assert len(result.out.splitlines()) == 2
    assert "not compared: 2 below 1.2 seconds (" in result.err
    assert "/a%20b.mp4: below 1.2 seconds\n" in videos(tmp_path, "-v", tmp_path / "films").err


@pytest.mark.slow
def test_copies_and_clips_with_their_times(folder: Path, tmp_path: Path) -> None:
    result = videos(tmp_path, folder)
    assert pairs(result, folder) == COPIES
    (clip,) = (row for row in rows(result, folder) if row[:2] == ["clip.mp4", "long.mp4"])
    seconds, of_clip, of_long, share, rate, mirror, kind = clip[2:]
    times = [float(time) for part in (of_clip, of_long) for time in part.split("-")]
    assert np.allclose(times, [0, 6, 3, 9], atol=0.6)
    assert abs(float(seconds) - 6) < 0.8
    assert float(share) > 0.85
    assert (rate, mirror) == ("1.000", "0")
    assert kind in ("copy", "clip")  # the clip is half of the film
    assert all(row[8] == "copy" for row in rows(result, folder) if "clip.mp4" not in row)
    assert all((row[7] == "1") == ("mirror.mp4" in row) for row in rows(result, folder))
    assert "6 pairs among 6 videos\n" in result.err
    assert "6 videos in 9 files, 57.0 seconds; 1 other file" in result.err
    assert "2 files could not be read: 2 damaged\n" in result.err
    assert f"neardup videos: {folder}/empty.mp4: damaged: " in result.err


@pytest.mark.slow
def test_decisions(folder: Path, tmp_path: Path) -> None:
    videos(tmp_path, folder, "--output=kept", f"--removed={tmp_path}/removed.jsonl")
    kept = videos(tmp_path, folder, "--output=kept", f"--removed={tmp_path}/removed")
    assert rows(kept, folder) == [["black.mp4"], ["long.mp4"], ["other.mp4"]]
    assert "3 videos kept, 3 removed\n" in kept.err
    removed = videos(tmp_path, folder, "--output=removed")
    assert (tmp_path / "removed").read_bytes() == removed.out
    objects = map(json.loads, (tmp_path / "removed.jsonl").read_bytes().splitlines())
    lines = [f"{o['id']}\t{o['kept']}\t{o['share']:.6f}\t{o['doubt']}" for o in objects]
    assert lines == removed.out.decode().splitlines()
    found = rows(removed, folder)
    copies = ("clip.mp4", "mirror.mp4", "small/long.mp4")
    assert {row[0]: row[1] for row in found} == dict.fromkeys(copies, "long.mp4")
    assert all(float(row[2]) >= 0.8 for row in found)


@pytest.mark.slow
def test_the_rules_of_keep_never_remove_a_video_for_its_clip(folder: Path, tmp_path: Path) -> None:
    result = videos(tmp_path, folder, "--output=removed", "--keep=min:seconds")
    gone = {row[0]: row[1] for row in rows(result, folder)}
    assert "clip.mp4" not in gone
    assert "clip.mp4" not in gone.values()
    assert len(gone) == 2
    smallest = videos(tmp_path, folder, "--output=kept", "--keep=min:bytes")
    assert rows(smallest, folder) == [["black.mp4"], ["mirror.mp4"], ["other.mp4"]]
    kept = videos(tmp_path, folder, "--output=kept", "--keep=prefer:/(small|x),max:pixels")
    assert ["small/long.mp4"] in rows(kept, folder)
    assert ["long.mp4"] not in rows(kept, folder)


PARTS = {
    "folder": os.path.dirname,
    "ext": lambda path: os.path.splitext(path)[1],
    "path:/([a-z])[^/]*$": lambda path: os.path.basename(path)[0],
    "path:(small)": lambda path: "small" if "small" in path else None,
    "root": lambda path: path.split("/films/")[0],
}


@pytest.fixture(scope="module")
def every(made: Path) -> list[bytes]:
    return videos(made.parent, made).out.splitlines()


@pytest.mark.slow
@in_turn(1, part=list(PARTS), flag=["across", "within"])
def test_parts_of_paths(part: str, flag: str, made: Path, every: list[bytes]) -> None:
    """The pairs are those of all videos of which both have the part, and the same or another."""
    of = PARTS[part]

    def wanted(a: str, b: str) -> bool:
        return of(a) is not None is not of(b) and (of(a) == of(b)) == (flag == "within")

    pairs = [line for line in every if wanted(*line.decode().split("\t")[:2])]
    result = videos(made.parent, made, f"--{flag}={part}")
    assert result.out.splitlines() == pairs
    assert ("5 without the part of the path" in result.err) == (part == "path:(small)")
    assert bool(pairs) == (part not in NO_PAIRS)
    gone = videos(made.parent, made, f"--{flag}={part}", "--output=removed").out.decode()
    assert all(wanted(*line.split("\t")[:2]) for line in gone.splitlines())
    assert bool(gone) == bool(pairs)


NO_PAIRS = ["path:(small)", "root"]


@pytest.mark.slow
def test_folders_are_decided_on_alone(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "small" / "long.mp4", folder / "small" / "same.mp4")
    here = [path for path in folder.iterdir() if path.is_file()]
    alone = [videos(tmp_path, "--output=kept", *some).out for some in (here, [folder / "small"])]
    kept = videos(tmp_path, "--output=kept", "--within=folder", folder)
    assert sorted(kept.out.splitlines()) == sorted(b"".join(alone).splitlines())
    assert b"/small/long.mp4\n" in kept.out
    assert b"clip" not in kept.out
    clusters = videos(tmp_path, "--output=clusters", "--within=folder", folder)
    assert len({row[0] for row in rows(clusters, folder)}) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--within=folder", "--across=ext"], "limit the same pairs; leave one of them out"),
        (["--within=x"], "--within: 'x' is not one of folder, ext, root, path:REGEX"),
        (["--across=path:x"], "'path:x' has no group; put what to compare in ( )"),
        (["--within=folder", "--output=prints"], "--within cannot be used with --output prints"),
        (["--within=root", "--against=x"], "--against: old videos have no root; type folder or"),
    ],
)
def test_parts_that_are_refused(flags: list[str], message: str, tmp_path: Path) -> None:
    wrong = videos(tmp_path, ".", *flags)
    assert (wrong.code, message in wrong.err) == (2, True), wrong.err


@pytest.mark.slow
def test_clusters_and_links(folder: Path, tmp_path: Path) -> None:
    found = rows(videos(tmp_path, folder, "--output=clusters"), folder)
    copies = ["long.mp4", "mirror.mp4", "clip.mp4", "small/long.mp4"]
    assert sorted(found) == sorted(["long.mp4", name] for name in copies)
    links = videos(tmp_path, folder, "--output=links")
    assert len(pairs(links, folder)) == 3
    assert pairs(links, folder) < COPIES


@pytest.mark.slow
def test_files_of_prints_give_the_same(folder: Path, tmp_path: Path) -> None:
    direct = videos(tmp_path, folder)
    names = ["all.index", "all.jsonl.gz", "all.parquet"]
    for name in names:
        made = videos(tmp_path, folder, "--output=prints", "-o", tmp_path / name)
        assert (made.code, made.out) == (0, b"")
    null = videos(tmp_path, folder, "--output=removed", "-0")
    paths = [path for path in null.out.split(b"\0") if path]
    shutil.rmtree(folder)
    for name in names:
        again = videos(tmp_path, tmp_path / name)
        assert again.out == direct.out
        assert "6 videos in 1 file, 57.0 seconds\nnot compared: 1 without detail (" in again.err
    for path in map(Path, map(os.fsdecode, paths)):  # other files, which nobody compared
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    gone = videos(tmp_path, tmp_path / name, "--output=removed", "-0")
    assert paths
    assert gone.out == b""
    said = f"; {len(paths)} not printed: with -0, videos of files of prints are left out\n"
    assert said in gone.err


@pytest.mark.slow
def test_bad_lines_of_prints(folder: Path, tmp_path: Path) -> None:
    prints = tmp_path / "prints"
    prints.write_bytes(videos(tmp_path, folder, "--output=prints", "-q").out)
    with prints.open("ab") as file:
        file.write(b'\n{"id": "x"}\nnonsense\n')
    shutil.rmtree(folder)
    result = videos(tmp_path, prints)
    assert pairs(result, folder) == COPIES
    assert "2 files could not be read: 2 bad line\n" in result.err
    assert f"{prints}: bad line: line 8: expected the print of a video, got '" in result.err
    assert videos(tmp_path, prints, "--strict").code == 1


@pytest.mark.slow
def test_against_an_index(folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "library.index"
    old = tmp_path / "old"
    old.mkdir()
    (folder / "zlong.mp4").unlink()
    for name in ("long.mp4", "mirror.mp4", "other.mp4"):
        (folder / name).rename(old / name)
    assert videos(tmp_path, old, "--output=prints", "-o", index).code == 0
    result = videos(tmp_path, folder, "--against", index)
    found = {frozenset(pair) for pair in pairs(result, tmp_path)}
    new, of_old = ("films/clip.mp4", "films/small/long.mp4"), ("old/long.mp4", "old/mirror.mp4")
    assert found == {frozenset(new), *(frozenset((a, b)) for a in new for b in of_old)}
    assert "found: 3 new videos against 3 old ones\n" in result.err
    kept = videos(tmp_path, folder, "--against", index, "--output=kept", "--keep=min:bytes")
    assert rows(kept, folder) == [["black.mp4"]]


@pytest.mark.slow
def test_a_video_is_no_copy_of_itself(folder: Path, tmp_path: Path) -> None:
    """A video is not a copy of itself, even if an index has it under this or another name."""
    index = tmp_path / "library.index"
    videos(tmp_path, folder, "--output=prints", "-o", index)
    os.symlink(folder, tmp_path / "again")
    for name in (folder, tmp_path / "again"):
        result = videos(tmp_path, name / "long.mp4", "--against", index)
        found = {id_ for pair in pairs(result, tmp_path) for id_ in pair}
        copies = {f"films/{file}" for file in ("clip.mp4", "mirror.mp4", "small/long.mp4")}
        assert found == {f"{name.name}/long.mp4", *copies}
    everything = videos(tmp_path, folder, index)
    assert pairs(everything, folder) == COPIES
    assert "6 videos in 10 files" in everything.err


def episodes(top: Path) -> Path:
    """Write eight films that share an opening of four seconds, and a copy of one; return `top`."""
    for k in range(8):
        filmed(np.concatenate((film(99, 4), film(20 + k, 9))), top / f"{k}.mp4")
    filmed(np.concatenate((film(99, 4), film(20, 9))), top / "0 copy.mp4", size=SMALL)
    return top


@pytest.mark.slow
def test_a_common_opening(tmp_path: Path) -> None:
    top = episodes(tmp_path / "series")
    result = videos(tmp_path, top, f"--common={tmp_path}/common", "--output=pairs")
    assert pairs(result, top) == {("0%20copy.mp4", "0.mp4")}
    found = [line.split("\t") for line in (tmp_path / "common").read_text().splitlines()]
    assert {row[0] for row in found} == {"1"}
    assert len({row[2] for row in found}) == 9
    for row in found:
        assert np.allclose([float(time) for time in row[3].split("-")], [0, 4], atol=0.8)
    assert "seconds are common to 9 videos, such as " in result.err
    videos(tmp_path, top, f"--common={tmp_path}/common.jsonl", "-q")
    (line,) = (tmp_path / "common.jsonl").read_text().splitlines()
    assert len(json.loads(line)["places"]) == 9


@pytest.mark.slow
def test_a_scene_that_two_compilations_share_is_printed_and_removes_nothing(tmp_path: Path) -> None:
    top, six, four = tmp_path / "films", film(60, 6), film(61, 4)
    filmed(np.concatenate((film(62, 10), six, film(63, 8))), top / "a.mp4")
    filmed(np.concatenate((film(64, 5), six, film(65, 7), four)), top / "b.mp4", size=SMALL)
    for k in range(2):
        filmed(np.concatenate((film(66 + k, 9), four, film(68 + k, 9))), top / f"c{k}.mp4", crf=30)
    result = videos(tmp_path, top, "--report", tmp_path / "page.html")
    ((a, b, _, of_a, of_b, *_, kind),) = rows(result, top)
    assert (a, b, kind) == ("a.mp4", "b.mp4", "part")
    times = [float(time) for part in (of_a, of_b) for time in part.split("-")]
    assert np.allclose(times, [10, 16, 5, 11], atol=0.6)
    assert "1 pair among 4 videos, 1 with a shared part only (never removed)\n" in result.err
    assert "Shared parts" in (tmp_path / "page.html").read_text("utf-8")
    assert videos(tmp_path, top, "--output=links").out == result.out
    for name in ("pairs.jsonl", "pairs.parquet"):
        videos(tmp_path, top, "-o", tmp_path / name)
    row = json.loads((tmp_path / "pairs.jsonl").read_text())
    assert (row["kind"], row["one_picture"]) == ("part", False)
    assert pq.read_table(tmp_path / "pairs.parquet").to_pylist() == [row]
    kept = videos(tmp_path, top, "--output=kept", "--keep=min:seconds")
    assert len(rows(kept, top)) == 4
    assert videos(tmp_path, top, "--output=clusters").out == b""
    assert videos(tmp_path, top, "--measure=copy").out == b""


@pytest.mark.parametrize("flag", ["-o", "--common", "--removed"])
def test_no_video_is_replaced(flag: str, folder: Path, tmp_path: Path) -> None:
    for name in sorted(folder.rglob("*.mp4"))[:2]:
        before = name.read_bytes()
        result = videos(tmp_path, folder, "--output=kept", flag, name)
        assert (result.code, result.out) == (2, b"")
        assert result.err.endswith(f"{flag} {name}: is a video; name another file\n")
        assert name.read_bytes() == before


@pytest.mark.slow
def test_eight_films_each_with_a_copy_and_a_clip(tmp_path: Path) -> None:
    top, wanted = tmp_path / "films", set()
    for k in range(8):
        frames, names = film(40 + k), [f"{folder}{k}.mp4" for folder in ("", "clips/", "copies/")]
        filmed(frames, top / names[0])
        filmed(frames[2 * FPS : 8 * FPS], top / names[1])
        filmed(frames, top / names[2], size=SMALL)
        wanted |= set(map(frozenset, combinations(names, 2)))
    assert set(map(frozenset, pairs(videos(tmp_path, top), top))) == wanted
    kept = rows(videos(tmp_path, top, "--output=kept"), top)
    assert sorted(row[0] for row in kept) == sorted(f"{k}.mp4" for k in range(8))


@pytest.mark.parametrize("share", [0.98, 0.9])
def test_a_larger_crop_does_not_remove_the_whole_video(share: float, tmp_path: Path) -> None:
    """Whatever the order; nor is the whole with bars a crop of it, or a copy of one size."""
    whole = np.stack(list(scene(1, 4, FPS, (320, 240))))
    high, wide = (round(side * (1 - share) / 2) for side in whole.shape[1:3])
    crop = np.ascontiguousarray(whole[:, high : 240 - high, wide : 320 - wide])
    top = tmp_path / "films"
    filmed(whole, top / "whole.mp4", crf=30, size=(160, 120))
    filmed(crop, top / "crop.mp4", crf=12, size=(480, 360))
    for keep in ("max:bytes", "max:pixels"):
        found = rows(videos(tmp_path, top, "--output=removed", f"--keep={keep}"), top)
        assert [row[:2] for row in found] == [["crop.mp4", "whole.mp4"]]
    filmed(np.pad(whole, ((0, 0), (40, 40), (0, 0), (0, 0))), top / "crop.mp4", size=(240, 240))
    found = rows(videos(tmp_path, top, "--output=removed", "--keep=max:bytes"), top)
    assert [row[:2] for row in found] == [["whole.mp4", "crop.mp4"]]
