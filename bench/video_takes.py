"""Measure whether two takes of one person in one room, with the same gestures, are a pair.

    OPENBLAS_NUM_THREADS=1 python3 -m bench.video_takes >> bench/results/videos.md

A drawn person sways, nods and waves before a wall, in each take at other times, by up to the
seconds in the name of the room.  A clip has the middle of a take.  A real take is a part of a video
of a speaker, in packages as in `video_sources`; all parts of a video show other times.

All takes of a room are joined with two copies of each, as `neardup videos` does by default.  A copy
is *found* if it is a copy or clip of its take.  Pairs of files of two takes are *wrong*, except
those with the words `one picture`, for which no video is removed.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.compare_videos import PROCESSES, read_print, seconds_of
from bench.report.tables import markdown
from bench.still_videos import COLUMN, FPS, HIGH, LANGER, ROW, SPEECH, WIDE, interval, joined
from bench.video_edits import Edit, edited, filtered, write
from bench.video_sources import NEARLY_LOSSLESS, Picture, Real, frames_of, member, rate_of, texture
from bench.workloads import FOLDER
from neardup.media.frames.video_prints import VideoPrint
from neardup.media.videos.runs import PART, VideoPair

TAKES, SECONDS = 6, 8.0
CLIP = (0.25, 0.75)  # of a take
COPIES = [
    Edit("CRF 35", options={"crf": "35", "preset": "veryfast"}),
    Edit("crop", [("crop", "trunc(iw*0.45)*2:trunc(ih*0.45)*2")]),
]


class Room(NamedTuple):
    """A room: its name, its number, and the video and the seconds of its takes, if it is real."""

    name: str
    number: int
    real: Real | None = None
    seconds: float = SECONDS
    apart: float = 0.0  # seconds by which the times of gestures are moved, at most


ROOMS = [
    *(Room(f"drawn, ± {off} s", k, apart=off) for k, off in enumerate((0.15, 0.5, 1.5))),
    *(Room(f"{real.name}, {s} s", s, real, s) for real in (LANGER, SPEECH) for s in (2, 4)),
]


def take(room: Room, number: int) -> Iterator[Picture]:
    """Yield the frames of a take: two nods, a wave of the hand, and a mouth that speaks."""
    wall = 60 + 120 * texture(np.random.default_rng((120, room.number)), 1.6)[:HIGH, :WIDE]
    rng = np.random.default_rng((room.number, number))
    *nods, wave = np.array([2.5, 5.5, 4]) + rng.uniform(-room.apart, room.apart, 3)
    y, x, mouth = 50.0, 80.0, 0.0
    for k in range(round(SECONDS * FPS)):
        now = k / FPS
        y, x = y + rng.normal(0, 0.3) + (50 - y) * 0.1, x + rng.normal(0, 0.4) + (80 - x) * 0.05
        down = y + 10 * np.exp(-(((now - np.array(nods)) / 0.25) ** 2)).sum()
        mouth = abs(0.6 * mouth + rng.normal(0, 2))
        picture = np.where(np.hypot((ROW - 130) / 60, (COLUMN - x) / 50) < 1, 45, wall)
        picture = np.where(np.hypot((ROW - down) / 30, (COLUMN - x) / 22) < 1, 190, picture)
        picture[np.hypot((ROW - down + 8) / 4, (abs(COLUMN - x) - 9) / 5) < 1] = 50
        picture[np.hypot((ROW - down - 13) / (1 + mouth), (COLUMN - x) / 8) < 1] = 80
        if abs(now - wave) < 1:
            side = x + 48 + 8 * np.sin(9 * (now - wave))
            picture[np.hypot(ROW - 60 - 20 * abs(now - wave), COLUMN - side) < 11] = 200
        yield picture.astype(np.uint8)


def takes_of(room: Room, folder: Path) -> list[Path]:
    """Return the files of the takes, which are made once."""
    if not room.real:
        paths = [folder / f"drawn-{room.number}-{k}.mp4" for k in range(TAKES)]
        for k, path in enumerate(paths):
            if not path.exists():
                write(frames_of(take(room, k)), path, FPS, options=NEARLY_LOSSLESS)
        return paths
    file = member(room.real, folder.parent / "packages")
    stem, many = f"{room.real.name}-{room.number}", int(seconds_of(file) // room.seconds)
    paths = [folder / f"{stem}-{k}.mp4" for k in range(min(TAKES, many))]
    for k, path in enumerate(paths):
        if not path.exists():
            chain = [("scale", "-2:'min(240,ih)'"), ("format", "yuv420p")]
            frames = filtered(file, chain, k * room.seconds, (k + 1) * room.seconds)
            write(frames, path, rate_of(file), options=NEARLY_LOSSLESS)
    return paths


def judged(room: Room, folder: Path) -> tuple[list[bool], list[bool], list[str]]:
    """Return which copies are found, which pairs of two takes are wrong, and these as text."""
    files = {}
    clips = [] if room.real else [Edit("clip", part=CLIP)]
    for number, path in enumerate(takes_of(room, folder)):
        files[number, ""] = path
        for edit in [*COPIES, *clips]:
            copy = files[number, edit.name] = path.with_suffix(f".{edit.name}.mp4")
            if not copy.exists():
                edited(path, edit, copy, rate_of(path), seconds_of(path))
    each = ((name, read_print(path)) for name, path in files.items())
    prints = {name: video for name, video in each if isinstance(video, VideoPrint)}
    names = list(prints)
    pairs: dict[frozenset[tuple[int, str]], list[VideoPair]] = defaultdict(list)
    for pair in joined(list(prints.values())):
        pairs[frozenset((names[pair.a], names[pair.b]))].append(pair)
    found = [
        any(pair.kind != PART for pair in pairs[frozenset((name, (name[0], "")))])
        for name in names
        if name[1]
    ]
    wrong, lines = [], []
    for a, b in combinations(names, 2):
        if a[0] != b[0]:
            bad = [pair for pair in pairs[frozenset((a, b))] if not pair.one_picture]
            wrong.append(bool(bad))
            lines += [f"{room.name}: {a} {b} {p.kind} {p.share:.2f} {p.seconds:.1f} s" for p in bad]
    return found, wrong, lines


def main() -> int:
    folder = FOLDER / "videos" / "takes"
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(PROCESSES) as pool:
        every = list(pool.map(judged, ROOMS, [folder] * len(ROOMS)))
    rows = []
    for room, (found, wrong, lines) in zip(ROOMS, every):
        print(*lines, sep="\n", file=sys.stderr)
        rows.append([room.name, interval(found), interval(wrong)])
    copies = [hit for found, _, _ in every for hit in found]
    rows.append(
        ["all", interval(copies), interval([bad for _, wrong, _ in every for bad in wrong])]
    )
    head = ["room", "copies found (95 %)", "wrong pairs of two takes (95 %)"]
    print("\n## Takes of one person in one room\n\n" + markdown(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
