"""From synthetic videos, a pipe of programs and `neardup videos` give the same lines."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from neardup.media.videos import video_tasks
from tests.support.drawn_videos import encode, scene
from tests.support.engines import NEARDUP, ROOT, in_order, run, succeed
from tests.support.fake_hadoop import fake_hadoop, was_asked
from tests.support.programs import program

pytest.importorskip("av")
FRAMES = [sys.executable, str(ROOT / "frames_mapper.py")]
STEP = [sys.executable, str(ROOT / "step.py"), "videos"]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of films, copies, a clip, a shared scene, and two files without video."""
    top = tmp_path_factory.mktemp("of") / "films"
    for seed in (1, 2):
        frames = np.stack(list(scene(seed, 6.0, 12, size=(96, 64))))
        encode(top / f"film{seed}.mp4", frames, 12)
        encode(top / f"a copy{seed}.mkv", frames, 12, options={"crf": "30"})
    encode(top / "clip.mp4", frames[20:60], 12)
    for seed in (3, 4):
        own = np.stack(list(scene(seed, 9.0, 12, size=(96, 64))))
        shared = np.stack(list(scene(9, 6.0, 12, size=(96, 64))))
        encode(top / f"trailer{seed}.mp4", np.concatenate((own, shared)), 12)
    (top / "notes.txt").write_text("text")
    (top / "bad.mp4").write_bytes(b"\0\0\0\x20ftypisom")
    return top


@pytest.fixture(scope="module")
def prints(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp = tmp_path_factory.mktemp("prints")
    names = b"".join(os.fsencode(path) + b"\n" for path in sorted(films.iterdir()))
    result = run([*FRAMES, "--jobs=1"], tmp, names)
    assert result.code == 0, result.err
    assert "7 videos in 9 files, " in result.err
    assert f"1 other file: 1 .txt ({films}/notes.txt)\n" in result.err
    assert "1 file could not be read: 1 damaged\n" in result.err
    (tmp / "films.prints").write_bytes(result.out)
    return tmp / "films.prints"


def at_once(prints: Path, tmp: Path) -> bytes:
    return in_order(succeed([*NEARDUP, "videos", str(prints)], tmp).out)


def step(tmp: Path, name: str, *words: str | Path, stdin: bytes = b"") -> bytes:
    return succeed([*STEP, name, *map(str, words)], tmp, stdin).out


@pytest.mark.slow
def test_a_pipe_finds_the_pairs_of_one_process(films: Path, prints: Path, tmp_path: Path) -> None:
    def kept(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    def spread(*files: Path) -> bytes:
        return in_order(step(tmp_path, "spread", "--shares=2", *files))

    seeds = kept("seeds", step(tmp_path, "seeds", stdin=spread(prints)))
    copies = step(tmp_path, "copies", stdin=spread(seeds, prints))
    clusters = kept("clusters", step(tmp_path, "clusters", stdin=copies))
    shown = in_order(step(tmp_path, "shown", seeds))
    common = kept("common", step(tmp_path, "common", "--clusters", clusters, stdin=shown))
    pairs = in_order(step(tmp_path, "pairs", stdin=spread(seeds, common, prints)))
    assert pairs == at_once(prints, tmp_path)
    found = {tuple(line.split(b"\t")[:2]) for line in pairs.splitlines()}
    top = os.fsencode(films)
    assert {(top + b"/a%20copy1.mkv", top + b"/film1.mp4")} < found
    assert (top + b"/film1.mp4", top + b"/film2.mp4") not in found
    parts = [line.split(b"\t")[:2] for line in pairs.splitlines() if line.endswith(b"\tpart")]
    assert parts == [[top + b"/trailer3.mp4", top + b"/trailer4.mp4"]]


def test_files_of_a_cluster_are_copied_and_removed(films: Path, tmp_path: Path) -> None:
    """Files on a cluster are copied by `hadoop fs -get`; the copies are removed after use."""
    (tmp_path / "f[1].mp4").write_bytes((films / "film1.mp4").read_bytes())
    half = 'case $3 in *half.mp4) echo half > "$4"; echo "get: I/O error" >&2; exit 1;; esac'
    pattern = 'case $3 in *"f["*) exit 1;; esac'  # of which f[1].mp4 is no match
    name = """name=$(printf %s "${3#hdfs://}" | tr -d '\\\\')"""
    script = 'test "$1 $2" = "fs -get" && cp "$name" "$4" && echo "$4" >> copies'
    program(tmp_path / "bin" / "hadoop", half, pattern, name, script)
    names = [f"hdfs://{tmp_path}/f[1].mp4", "hdfs:///missing.mp4", films / "clip.mp4"]
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    given = "".join(f"{name}\n" for name in [*names, "hdfs:///half.mp4"]).encode()
    result = run([*FRAMES, "--jobs=2"], tmp_path, given, PATH=path, cwd=tmp_path)
    assert result.code == 0, result.err
    assert sorted(line.split(b'"')[3] for line in result.out.splitlines()) == [
        os.fsencode(films / "clip.mp4"),
        b"hdfs://" + os.fsencode(tmp_path) + b"/f[1].mp4",
    ]
    assert "frames_mapper.py: hdfs:///half.mp4: cannot be read: get: I/O error" in result.err
    assert "frames_mapper.py: hdfs:///missing.mp4: cannot be read: " in result.err
    (copy,) = (tmp_path / "copies").read_text().splitlines()
    assert not os.path.exists(copy)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["common"], "needs --clusters FILE"),
        (["pairs", "--threshold=2"], "--threshold: expected 0 < T <= 1"),
        (["spread", "--shares=0"], "--shares: "),
        (["videos"], "invalid choice: 'videos'"),
    ],
)
def test_refusals(words: list[str], said: str, tmp_path: Path) -> None:
    result = run([*STEP, *words], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert said in result.err
    assert "step.py videos: " in result.err


def test_names_of_videos_in_the_lines_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Hadoop tasks, the offset before a name is removed, unless Hadoop has left it out."""
    assert video_tasks._name(b"7\tfilms/a.mp4\n") == b"7\tfilms/a.mp4"
    monkeypatch.setenv("mapreduce_map_input_file", "/in")
    assert video_tasks._name(b"7\tfilms/a.mp4\t\n") == b"films/a.mp4"
    monkeypatch.setenv("stream_map_input_ignoreKey", "true")
    assert video_tasks._name(b"7\tfilms/a.mp4\t\n") == b"7\tfilms/a.mp4"


VIDEO_JOBS = [sys.executable, str(ROOT / "neardup/media/videos/video_jobs.py")]
RUNS = "echo 'Running job: job_1_0001' >&2"


def test_after_a_failure_its_own_folders_are_removed(tmp_path: Path) -> None:
    """The folder between the jobs is removed, but OUTPUT only if the last job has written to it."""
    exists = 'if [ "$1 $2" = "fs -test" ]; then exit 1; fi'
    for fails, removed in (("/copies ", False), ("/out ", True)):
        made = tmp_path / fails.strip("/ ")
        made.mkdir()
        seen = f'if [ "$1" = jar ]; then {RUNS}; case "$*" in *"-output "*"{fails}"*)'
        ends = "echo 'Job job_1_0001 failed with state FAILED' >&2; exit 1;; esac; fi"
        env = fake_hadoop(made, exists, f"{seen} {ends}")
        result = run([*VIDEO_JOBS, "/in", "/out"], tmp_path, **env)
        assert result.code == 1
        (clean_up,) = [line for line in was_asked(made) if line.startswith("fs -rm")]
        assert re.fullmatch("fs -rm -r -f -skipTrash /_neardup-[0-9a-f]{16}.out( /out)?", clean_up)
        assert clean_up.endswith(" /out") == removed
        assert not any(line.startswith("fs -touchz") for line in was_asked(made))


def test_words_that_hadoop_would_split_are_refused(tmp_path: Path) -> None:
    exists = 'if [ "$1 $2" = "fs -test" ]; then exit 1; fi'
    env = fake_hadoop(tmp_path, exists)
    result = run([*VIDEO_JOBS, "--python", "/my python", "/in", "/out"], tmp_path, **env)
    assert result.code == 2
    assert "Hadoop cannot pass '/my python' to a task" in result.err
