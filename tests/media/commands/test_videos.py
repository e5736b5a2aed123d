"""Tests of `videos` as a program: pairs, decisions, fingerprints, counts, interruption."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neardup.files.folder_walk import path_id, path_of
from tests.support.drawn_videos import encode, scene
from tests.support.engines import NEARDUP, Result, run
from tests.support.sessions import either_way, interrupt, session, started, wait_for_results

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


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with copies and a clip of one film, other films, and files to be skipped."""
    top = tmp_path_factory.mktemp("made") / "films"
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
    marked = ["1.000", "0", "one picture"]
    assert kinds == {(b, a): ["1.000", "0"], (b, c): marked, (a, c): marked}
    assert "3 pairs among 3 videos, 2 of one picture (removed only with --one-picture)" in found.err
    removed = rows(videos(tmp_path, top, "--output", "removed"), top)
    assert [set(row[:2]) for row in removed] == [{a, b}]
    clusters = videos(tmp_path, top, "--output", "clusters")
    assert {row[1] for row in rows(clusters, top)} == {a, b}
    asked = rows(videos(tmp_path, top, "--one-picture", "--output", "removed"), top)
    assert {row[3].split(",")[0] for row in asked if c in row[:2]} == {"one picture"}
    assert {id_ for row in asked for id_ in row[:2]} == {a, b, c}
    videos(tmp_path, top / "ep 2.mp4", "--output", "prints", "-o", tmp_path / "old.prints")
    new = videos(tmp_path, top, "--against", tmp_path / "old.prints", "--output", "removed")
    assert [set(row[:2]) for row in rows(new, top)] == [{a, b}]


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
    seconds, of_clip, of_long, share, rate, mirror = clip[2:]
    times = [float(time) for part in (of_clip, of_long) for time in part.split("-")]
    assert np.allclose(times, [0, 6, 3, 9], atol=0.6)
    assert abs(float(seconds) - 6) < 0.8
    assert float(share) > 0.85
    assert (rate, mirror) == ("1.000", "0")
    assert all((row[7] == "1") == ("mirror.mp4" in row) for row in rows(result, folder))
    assert "6 pairs among 6 videos\n" in result.err
    assert "6 videos in 9 files, 57.0 seconds; 1 other file" in result.err
    assert "2 files could not be read: 2 damaged\n" in result.err
    assert f"neardup videos: {folder}/empty.mp4: damaged: " in result.err


@pytest.mark.slow
def test_decisions(folder: Path, tmp_path: Path) -> None:
    kept = videos(tmp_path, folder, "--output=kept", f"--removed={tmp_path}/removed")
    assert rows(kept, folder) == [["black.mp4"], ["long.mp4"], ["other.mp4"]]
    assert "3 videos kept, 3 removed\n" in kept.err
    removed = videos(tmp_path, folder, "--output=removed")
    assert (tmp_path / "removed").read_bytes() == removed.out
    found = rows(removed, folder)
    assert {row[0]: row[1] for row in found} == {
        "clip.mp4": "long.mp4",
        "mirror.mp4": "long.mp4",
        "small/long.mp4": "long.mp4",
    }
    assert all(float(row[2]) >= 0.8 for row in found)


@pytest.mark.slow
def test_a_video_is_not_removed_for_its_clip(folder: Path, tmp_path: Path) -> None:
    result = videos(tmp_path, folder, "--output=removed", "--keep=min:seconds")
    gone = {row[0]: row[1] for row in rows(result, folder)}
    assert "clip.mp4" not in gone
    assert "clip.mp4" not in gone.values()
    assert len(gone) == 2
    smallest = videos(tmp_path, folder, "--output=kept", "--keep=min:bytes")
    names = {row[0] for row in rows(smallest, folder)}
    assert names == {"black.mp4", "mirror.mp4", "other.mp4"}


@pytest.mark.slow
def test_preferred_paths(folder: Path, tmp_path: Path) -> None:
    kept = videos(tmp_path, folder, "--output=kept", "--keep=prefer:/(small|x),max:pixels")
    assert ["small/long.mp4"] in rows(kept, folder)
    assert ["long.mp4"] not in rows(kept, folder)


@pytest.mark.slow
def test_clusters_and_links(folder: Path, tmp_path: Path) -> None:
    found = rows(videos(tmp_path, folder, "--output=clusters"), folder)
    copies = ["long.mp4", "mirror.mp4", "clip.mp4", "small/long.mp4"]
    assert sorted(found) == sorted(["long.mp4", name] for name in copies)
    links = videos(tmp_path, folder, "--output=links")
    assert len(pairs(links, folder)) == 3
    assert pairs(links, folder) < COPIES


@pytest.mark.slow
def test_formats(folder: Path, tmp_path: Path) -> None:
    lines = rows(videos(tmp_path, folder), folder)
    for name in ("pairs.jsonl", "pairs.jsonl.gz", "pairs.parquet"):
        result = videos(tmp_path, folder, "-o", tmp_path / name)
        assert (result.code, result.out) == (0, b"")
    as_objects = list(map(json.loads, (tmp_path / "pairs.jsonl").read_bytes().splitlines()))
    assert [[f"{o['seconds']}", f"{o['a_from']}-{o['a_to']}"] for o in as_objects] == [
        line[2:4] for line in lines
    ]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(tmp_path / "pairs.parquet").to_pylist() == as_objects


@pytest.mark.slow
def test_formats_of_decisions(folder: Path, tmp_path: Path) -> None:
    for output, names in (("kept", ["id"]), ("clusters", ["cluster", "id"])):
        found = videos(tmp_path, folder, f"--output={output}").out.decode().splitlines()
        assert len(found) > 1
        words = [f"--output={output}", "-o", tmp_path / "x.jsonl"]
        words += ["--removed", tmp_path / "x.parquet"] if output == "kept" else []
        videos(tmp_path, folder, *words)
        objects = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
        assert objects == [dict(zip(names, line.split("\t"))) for line in found]
    removed = videos(tmp_path, folder, "--output=removed").out.decode().splitlines()
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table.column_names == ["id", "kept", "share", "doubt"]
    rows_there = [
        f"{o['id']}\t{o['kept']}\t{o['share']:.6f}\t{o['doubt']}" for o in table.to_pylist()
    ]
    assert rows_there == removed
    assert len(removed) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all.index", "all.jsonl.gz", "all.parquet"])
def test_files_of_prints_give_the_same(name: str, folder: Path, tmp_path: Path) -> None:
    direct = videos(tmp_path, folder)
    made = videos(tmp_path, folder, "--output=prints", "-o", tmp_path / name)
    assert (made.code, made.out) == (0, b"")
    null = videos(tmp_path, folder, "--output=removed", "-0")
    paths = [path for path in null.out.split(b"\0") if path]
    shutil.rmtree(folder)
    again = videos(tmp_path, tmp_path / name)
    assert again.out == direct.out
    for path in map(Path, map(os.fsdecode, paths)):  # other files, which nobody compared
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    gone = videos(tmp_path, tmp_path / name, "--output=removed", "-0")
    assert paths
    assert gone.out == b""
    said = f"; {len(paths)} not printed: with -0, videos of files of prints are left out\n"
    assert said in gone.err
    assert "6 videos in 1 file, 57.0 seconds\nnot compared: 1 without detail (" in again.err


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
def test_the_answer_does_not_depend_on_jobs_or_the_cache(folder: Path, tmp_path: Path) -> None:
    first = videos(tmp_path, folder, "--jobs=1", "--no-cache")
    assert not (tmp_path / "cache").exists()
    for flags in (["--jobs=3"], ["--jobs=2"], ["--cache", str(tmp_path / "own")]):
        again = videos(tmp_path, folder, *flags)
        assert again.out == first.out
    assert "from the cache" not in again.err
    assert "seconds, 6 videos from the cache" in videos(tmp_path, folder).err
    assert (tmp_path / "cache" / "neardup" / "videos.sqlite").is_file()
    assert (tmp_path / "own").is_file()


@pytest.mark.slow
def test_all_counts_and_none(folder: Path, tmp_path: Path) -> None:
    result = videos(tmp_path, folder, "-v")
    counts = {
        "files": 9,
        "videos": 6,
        "skipped: without detail": 1,
        "… damaged": 2,
        "… .txt": 1,
        "skipped: hidden": 1,
        "skipped: hard links of other files": 1,
    }
    for name, count in counts.items():
        assert result.count(name) == count
    quiet = videos(tmp_path, folder, "-q")
    assert (quiet.out, quiet.err) == (result.out, "")


@pytest.mark.slow
def test_strict(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("as before")
    result = videos(tmp_path, folder, "--strict", "--jobs=1", "-o", tmp_path / "pairs")
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert ".mp4: damaged: " in result.err
    assert "without --strict it is counted and left out" in result.err
    assert (tmp_path / "pairs").read_text() == "as before"


@pytest.mark.slow
def test_names(folder: Path, tmp_path: Path) -> None:
    top = os.fsencode(tmp_path / "p")
    os.mkdir(top)
    names = [b"\xff.mp4", b"a b.mp4", b"-x.mp4", b"a[1].mp4", b"%41.mp4", b"l\nine", b"\xc3\xa4"]
    for name in names:
        shutil.copy(folder / "clip.mp4", os.path.join(top, name))
    lines = videos(tmp_path, tmp_path / "p", "--output=clusters").out.splitlines()
    paths = [path_of(line.split(b"\t")[1].decode()) for line in lines]
    assert sorted(paths) == sorted(os.path.join(top, name) for name in names)
    assert any(b"/p/%FF.mp4" in line for line in lines)


@pytest.mark.slow
def test_a_name_that_looks_like_an_option(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "clip.mp4", tmp_path / "-x.mp4")
    env = {"PYTHONPATH": str(Path(__file__).parents[3])}
    words = [*NEARDUP, "videos", "--no-cache", "--output=kept"]
    result = run([*words, "--", "-x.mp4"], tmp_path, cwd=tmp_path, **env)
    assert result.out == b"-x.mp4\n"
    assert run([*words, "-x.mp4"], tmp_path, cwd=tmp_path, **env).code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{}", "--jobs=0"], "--jobs: "),
        (["{}", "--ticks=0"], "--ticks: "),
        (["{}", "--time-limit=0"], "--time-limit: "),
        (["{}", "--threshold=0"], "--threshold: expected 0 < T <= 1, such as 0.8, got '0'"),
        (["{}", "--threshold=50%"], "--threshold: expected 0 < T <= 1, such as 0.8, got '50%'"),
        (
            ["{}", "--measure=common", "--at-least=ten"],
            "--at-least: expected a time above 0, such as 10s or 2m, got 'ten'",
        ),
        (["{}", "--at-least=2m"], "--at-least needs --measure common, but --measure is copy"),
        (
            ["{}", "--measure=common", "--threshold=0.9"],
            "--threshold with --measure common needs --output kept",
        ),
        (["{}", "--keep=prefer:("], "--keep: prefer:(: missing ), unterminated subpattern"),
        (["{}", "--output=pair"], "--output: 'pair' is not one of pairs, "),
        (["{}", "--measure=copies"], "--measure: 'copies' is not one of copy, "),
        (["{}", "--format=csv"], "the name of -o is the format: -o pairs.jsonl, pairs.csv"),
        (["{}", "-o", "x.parquet.gz"], "-o x.parquet.gz: Parquet is compressed inside"),
        (["{}", "--keep=max:size"], "--keep: 'max:size' is not one of straight, "),
        (["{}", "--removed=x"], "--removed needs --output kept, but --output is pairs"),
        (["{}", "--removed=-", "--output=kept"], "--removed -: standard output is for the answer"),
        (["{}", "-o", ""], "-o: expected the name of a file, got ''"),
        (["{}", "--output=prints", "--common=x"], "--common needs pairs, but --output is prints"),
        (
            ["{}", "--against={}"],
            "was not written by --output prints; make such a file: python3 -m neardup videos",
        ),
        (
            ["{}", "--against={}/notes.txt"],
            "notes.txt: was not written by --output prints; make such a file: ",
        ),
        (["{}", "--against="], "--against: expected the name of a file, got ''"),
        (["{}", "--no-cache", "--cache=x"], "--no-cache and --cache exclude each other"),
        (["{}", "--cache="], "--cache: expected the name of a file, got ''"),
        (["{}", "--cache={}/notes.txt"], "notes.txt: is not a cache of videos"),
        (["{}/notes.txt", "-o", "{}/notes.txt"], "notes.txt: is an input; name another file"),
        ([], "the following arguments are required: FOLDER"),
    ],
)
def test_what_is_refused(words: list[str], said: str, folder: Path, tmp_path: Path) -> None:
    result = videos(tmp_path, *(word.format(folder) for word in words))
    assert (result.code, result.out, result.left) == (2, b"", [])
    assert said in result.err


@pytest.mark.parametrize("flag", ["-o", "--common", "--removed"])
def test_no_video_is_replaced(flag: str, folder: Path, tmp_path: Path) -> None:
    for name in sorted(folder.rglob("*.mp4"))[:2]:
        before = name.read_bytes()
        result = videos(tmp_path, folder, "--output=kept", flag, name)
        assert (result.code, result.out) == (2, b"")
        assert result.err.endswith(f"{flag} {name}: is a video; name another file\n")
        assert name.read_bytes() == before


@pytest.mark.slow
def test_no_video_at_all(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "answer").write_text("as before")
    for output in ("prints", "pairs", "kept", "clusters"):
        result = videos(
            tmp_path, tmp_path / "empty", f"--output={output}", "-o", tmp_path / "answer"
        )
        assert (result.code, result.out) == (1, b"")
        assert "found no video that could be read; name a folder of videos" in result.err
    assert (tmp_path / "answer").read_text() == "as before"


@pytest.mark.slow
def test_a_time_limit(folder: Path, tmp_path: Path) -> None:
    """If a decoder hangs, as on a file system that does not answer, only its file is skipped."""
    script = (
        "import sys, time; from neardup.media.videos import video_run\n"
        "print_of = video_run.print_of\n"
        "def slow(file, how):\n"
        "    if b'other' in file.path: time.sleep(99)\n"
        "    return print_of(file, how)\n"
        "video_run.print_of = slow\n"
        "sys.argv = ['neardup videos', '--time-limit=2', '--no-cache', sys.argv[1]]\n"
        "from neardup.media.commands.videos import main; main()\n"
    )
    result = run([sys.executable, "-c", script, str(folder)], tmp_path)
    assert "other.mp4: time limit: not done after 2 seconds" in result.err
    assert pairs(result, folder) == COPIES


@pytest.fixture(scope="session")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of twenty films, each with a copy and a clip."""
    top = tmp_path_factory.mktemp("sixty")
    for k in range(20):
        frames = film(40 + k)
        filmed(frames, top / f"{k}.mp4")
        filmed(frames, top / "copies" / f"{k}.mp4", size=SMALL)
        filmed(frames[2 * FPS : 8 * FPS], top / "clips" / f"{k}.mp4")
    return top


@pytest.mark.slow
def test_sixty_files(sixty: Path, tmp_path: Path) -> None:
    found = pairs(videos(tmp_path, sixty), sixty)
    three = (("{}", "clips/{}"), ("{}", "copies/{}"), ("clips/{}", "copies/{}"))
    wanted = {
        tuple(sorted(f"{name.format(k)}.mp4" for name in two)) for k in range(20) for two in three
    }
    assert {tuple(sorted(pair)) for pair in found} == wanted
    kept = rows(videos(tmp_path, sixty, "--output=kept"), sixty)
    assert sorted(row[0] for row in kept) == sorted(f"{k}.mp4" for k in range(20))


@either_way
@pytest.mark.slow
def test_interruption(how: str, sixty: Path, tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("as before")
    command = [*NEARDUP, "videos", str(sixty), "-o", str(tmp_path / "answer")]
    with session(command, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")) as it:
        started(it, 3)
        code = interrupt(it, how)
        assert it.ended_clean() == code
    assert (tmp_path / "answer").read_text() == "as before"


@pytest.mark.slow
def test_kill_9_and_the_cache(sixty: Path, tmp_path: Path) -> None:
    """After kill -9, the next run reads the cache, and gives the same answer as without it."""
    command = [*NEARDUP, "videos", str(sixty)]
    with session(command, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")) as it:
        started(it, 3)
        wait_for_results(tmp_path / "cache" / "neardup" / "videos.sqlite")
        it.process.kill()
        it.ended()
    result = videos(tmp_path, sixty)
    assert result.err.count("from the cache") == 1
    assert result.out == videos(tmp_path, sixty, "--no-cache").out


@pytest.mark.slow
def test_without_pyav(folder: Path, tmp_path: Path) -> None:
    script = "import sys; sys.modules['av'] = None; from neardup.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "videos", str(folder)], capture_output=True, text=True
    )
    assert "pip install 'av>=12,<20'" in done.stderr
    assert "Traceback" not in done.stderr
