"""Videos on a real Hadoop, as fingerprints and as files, give the lines of `neardup videos`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from neardup.media.frames.video_prints import VideoPrint, to_line
from tests.support import hadoop_cluster
from tests.support.drawn_videos import write_scene
from tests.support.engines import NEARDUP, in_order, succeed
from tests.support.made_up_prints import copied, cut, joined, made_up

pytest.importorskip("av")
pytestmark = pytest.mark.hadoop
JOBS = [sys.executable, "-m", "neardup.media.videos.video_jobs", "--python"]
# LocalJobRunner: Hadoop in the one JVM of its client.
HERE = ["-D", "mapreduce.framework.name=local", "-D", "mapreduce.task.io.sort.mb=100"]


def sixty() -> list[VideoPrint]:
    """Return fingerprints of films, copies, clips, compilations and episodes with one opening."""
    random = np.random.default_rng(60)
    films = [made_up(random, f"film {k}", 20 + k) for k in range(24)]
    opening = made_up(random, "opening", 6)
    episodes = [
        joined(f"episode {k}", copied(random, opening, "o"), made_up(random, "e", 15))
        for k in range(8)
    ]
    copies = [copied(random, film, f"copy {k}") for k, film in enumerate(films[:12])]
    clips = [copied(random, cut(films[k], "c", 5, 11), f"clip {k}") for k in range(12)]
    both = [joined(f"both {k}", films[k], made_up(random, "m", 9), films[k + 1]) for k in range(4)]
    videos = [*films, *episodes, *copies, *clips, *both]
    assert len(videos) == 60
    return videos


def jobs(tmp: Path, inputs: list[str], *options: str) -> bytes:
    output = hadoop_cluster.new_output()
    command = [*JOBS, hadoop_cluster.PYTHON, "--reducers=2", *HERE, *options, *inputs, output]
    result = hadoop_cluster.attempt(command, tmp)
    assert result.code == 0, result.err
    return hadoop_cluster.pairs_in(output)


def test_prints(tmp_path: Path) -> None:
    lines = [to_line(video._replace(id=video.id.replace(" ", "%20"))) for video in sixty()]
    (tmp_path / "videos.prints").write_bytes(b"".join(lines))
    here = in_order(succeed([*NEARDUP, "videos", tmp_path / "videos.prints"], tmp_path).out)
    assert len(here.splitlines()) > 24
    parts = [
        hadoop_cluster.put(b"".join(lines[k::3]), f"/videos{os.getpid()}/{k}.prints")
        for k in range(3)
    ]
    assert jobs(tmp_path, [os.path.dirname(parts[0])]) == here


def test_paths(tmp_path: Path) -> None:
    """With --paths, videos in a folder that all nodes have are read, and a text file is skipped."""
    films = tmp_path / "films"
    films.mkdir()
    for seed in (1, 2):
        write_scene(films / f"film {seed}.mp4", seed)
        write_scene(films / f"copy{seed}.mkv", seed, options={"crf": "30"})
    (films / "notes.txt").write_text("text")
    here = in_order(succeed([*NEARDUP, "videos", "--no-cache", films], tmp_path).out)
    assert len(here.splitlines()) == 2
    names = "".join(f"{path}\n" for path in sorted(films.iterdir()))
    paths = hadoop_cluster.put(names.encode(), f"/names{os.getpid()}/names.txt")
    assert jobs(tmp_path, [paths], "--paths") == here
