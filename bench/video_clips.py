"""Make an hour of video that contains short clips, a file of each clip, and clips at other speeds.

The hour has scenes of moving texture (drawn by `video_sources.moving`), and among them stretches of
3, 5 and 10 seconds of the sources, with bars where their shape is another one.  It is written at 12
frames a second and 180 lines.  Each stretch is also written as a file, at its own rate and size.

Clips of 2 to 10 seconds of real sources are also written at seven speeds, the usual one included.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.video_edits import Chain, filtered, write
from bench.video_sources import Source, moving, rate_of

LENGTHS = (3, 5, 10)  # seconds of a clip
EACH = 20  # clips of a length
SPEEDS = (1.0, 0.95, 1.1, 25 / 24, 0.9, 1.05, 24 / 25)
SPEED_LENGTHS, EACH_SPEED = (2, 3, 4, 6, 8, 10), 4  # clips of each length at each speed
HOUR, FPS = 3600, 12
SHAPE: Chain = [
    ("fps", str(FPS)),
    ("scale", "320:180:force_original_aspect_ratio=decrease:force_divisible_by=2"),
    ("pad", "320:180:-1:-1"),
    ("format", "yuv420p"),
]
CODED = {"crf": "30", "preset": "superfast"}


class Clip(NamedTuple):
    """A clip: a stretch of a source video, and its start time in the one-hour video."""

    name: str
    source: str
    start: float  # of the source, seconds
    seconds: float
    at: float = 0.0  # of the hour
    speed: float = 1.0


def clips(
    sources: list[Source], lengths: dict[str, float], folder: Path
) -> tuple[list[Clip], dict[str, Path], Path]:
    """Return the clips, {name of a clip: file}, and the one-hour video file; make missing files."""
    made = folder / "clips"
    made.mkdir(parents=True, exist_ok=True)
    chosen = _chosen(sources, lengths)
    by_name = {source.name: source.path for source in sources}
    files = {clip.name: made / f"{clip.name}.mp4" for clip in chosen}
    for clip in chosen:
        if not files[clip.name].exists():
            path = by_name[clip.source]
            cut = filtered(path, [("format", "yuv420p")], clip.start, clip.start + clip.seconds)
            write(cut, files[clip.name], rate_of(path), options=CODED)
    hour, times = made / "hour.mp4", made / "hour.json"
    if not hour.exists():
        starts: list[float] = []
        write(_hour(chosen, by_name, starts), hour, FPS, options=CODED)
        times.write_text(json.dumps(starts))
    placed = [clip._replace(at=at) for clip, at in zip(chosen, json.loads(times.read_text()))]
    return placed, files, hour


def clips_at_speeds(
    sources: list[Source], lengths: dict[str, float], folder: Path
) -> tuple[list[Clip], dict[str, Path]]:
    """Return clips of sources at SPEEDS, and {name: file}; a clip's seconds are of its source."""
    made = folder / "speeds"
    made.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(8)
    by_name = {source.name: source.path for source in sources}
    chosen, files = [], {}
    for seconds in SPEED_LENGTHS:
        long = [name for name in by_name if lengths[name] >= seconds + 0.5]
        names = itertools.cycle(rng.permutation(long).tolist())
        for k, name in zip(range(EACH_SPEED * len(SPEEDS)), names):
            start = round(float(rng.uniform(0.1, lengths[name] - seconds - 0.1)), 3)
            clip = Clip(f"speed-{seconds}-{k}", name, start, seconds, 0.0, SPEEDS[k % len(SPEEDS)])
            chosen.append(clip)
            files[clip.name] = made / f"{clip.name}.mp4"
            if not files[clip.name].exists():
                chain = [("setpts", f"PTS/{clip.speed}"), ("format", "yuv420p")]
                cut = filtered(by_name[name], chain, start, start + seconds)
                write(cut, files[clip.name], rate_of(by_name[name]) * clip.speed, options=CODED)
    return chosen, files


def _chosen(sources: list[Source], lengths: dict[str, float]) -> list[Clip]:
    """Choose random clips in random order; sources that are long enough take turns."""
    rng = np.random.default_rng(7)
    found = []
    for seconds in LENGTHS:
        long = [s.name for s in sources if lengths[s.name] >= seconds + 0.5]
        for k, name in zip(range(EACH), itertools.cycle(rng.permutation(long).tolist())):
            start = float(rng.uniform(0.1, lengths[name] - seconds - 0.1))
            found.append(Clip(f"clip-{seconds}-{k}", name, round(start, 3), seconds))
    return [found[k] for k in rng.permutation(len(found))]


def _hour(chosen: list[Clip], paths: dict[str, Path], starts: list[float]) -> Iterator[Any]:
    """Yield the frames of the hour of video; append the start time of each clip to `starts`."""
    import av

    number = 0
    gap = (HOUR - sum(clip.seconds for clip in chosen)) / (len(chosen) + 1)
    for k in range(len(chosen) + 1):
        for picture in moving(5000 + k, gap, FPS):
            frame = av.VideoFrame.from_ndarray(picture[:90], format="gray")
            yield frame.reformat(320, 180, "yuv420p", interpolation="BICUBIC")
            number += 1
        if k < len(chosen):
            starts.append(number / FPS)
            clip = chosen[k]
            end = clip.start + clip.seconds
            for frame in filtered(paths[clip.source], SHAPE, clip.start, end):
                yield frame
                number += 1
