"""Measure what the variants of a frame for crops at a corner cost, and which crops they find.

    python3 -m bench.video_variants >> bench/results/videos.md

Copies show 98 to 78 % of each side of every third real source, at one of its corners in turn.  A
copy is found at a share of 0.5, as by default.  All real sources are joined with the copies.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.compare_videos import ALL_RUNS, FOUND, PROCESSES, seconds_of
from bench.report.tables import markdown
from bench.video_edits import Edit, edited
from bench.video_sources import Source, rate_of, sources
from bench.workloads import FOLDER
from neardup.media.frames import frame_hashes, frame_spans
from neardup.media.frames.containers import opened
from neardup.media.frames.decoding import Decoder
from neardup.media.frames.frame_hashes import CORNERS
from neardup.media.frames.frame_spans import Shrinker, SpanMaker
from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import VideoPrint, to_bytes
from neardup.media.videos.video_join import find

EACH, TICKS = 3, 8
SIZES = (0.98, 0.97, 0.95, 0.93, 0.92, 0.9, 0.88, 0.87, 0.85, 0.83, 0.82, 0.8, 0.78)
CROPS = [(), (0.9,), (0.95, 0.9), (0.9, 0.8), (0.95, 0.9, 0.85), (0.95, 0.9, 0.85, 0.8)]
PLACED = {"top": "0", "bottom": "ih-oh", "left": "0", "right": "iw-ow"}

Shown = list[tuple[int, NDArray[np.uint8]]]  # milliseconds, and a picture


def main() -> int:
    folder = FOLDER / "videos"
    real = [source for source in sources(folder) if source.real]
    copies = copies_of(real[::EACH], folder / "corners")
    paths = {source.name: source.path for source in real} | copies
    with ProcessPoolExecutor(PROCESSES) as pool:
        shown = dict(zip(paths, pool.map(shown_in, paths.values(), chunksize=4)))
    default = " and ".join(f"{100 * share:.0f}" for share in frame_hashes.AT_CORNERS)
    rows = [row(crops, shown, [source.name for source in real[::EACH]]) for crops in CROPS]
    head = [
        "corners, %",
        "hashes a frame",
        "bytes a frame",
        "hashing, µs a frame",
        "joining, CPU s",
    ]
    print(
        "## Crops at a corner\n\n"
        f"{len(real[::EACH])} copies of each size, out of real sources, and how many of them are "
        "found, by the sizes (% of each side) of the variants for the four corners.  The default "
        f"is {default}.  Bytes are those of the cache.  `python3 -m bench.video_variants` writes "
        "this.\n\n" + markdown([*head, *(f"{100 * size:.0f}" for size in SIZES)], rows)
    )
    return 0


def copies_of(chosen: Sequence[Source], folder: Path) -> dict[str, Path]:
    """Return {source@size: file} of copies that show a corner; missing files are made."""
    folder.mkdir(exist_ok=True)
    paths, jobs = {}, []
    for source, corner in zip(chosen, [*CORNERS] * len(chosen)):
        y, x = (PLACED[side] for side in corner.split())
        for size in SIZES:
            crop = f"trunc(iw*{size / 2})*2:trunc(ih*{size / 2})*2:{x}:{y}"
            paths[f"{source.name}@{size}"] = path = folder / f"{source.name}.{size}.mp4"
            if not path.exists():
                jobs.append((source.path, Edit("", [("crop", crop)]), path))
    with ProcessPoolExecutor(PROCESSES) as pool:
        list(pool.map(_make, jobs))
    return paths


def _make(job: tuple[Path, Edit, Path]) -> None:
    source, edit, path = job
    edited(source, edit, path, rate_of(source), seconds_of(source))


def shown_in(path: Path) -> Shown:
    """Return the frames of a video at TICKS ticks a second, small."""
    with opened(os.fsencode(path)) as (container, stream):
        frames, shrinker = Decoder(container, stream, TICKS).at_ticks(), Shrinker()
        return [(round(1000 * at), np.array(shrinker.small(frame))) for at, frame in frames]


def row(crops: Sequence[float], shown: dict[str, Shown], chosen: Sequence[str]) -> list[str]:
    """Hash and join with some sizes of corners; return the figures."""
    use(crops)
    started = time.process_time()
    prints = {name: print_of(name, frames) for name, frames in shown.items()}
    hashing = (time.process_time() - started) / sum(map(len, shown.values()))
    size = sum(len(to_bytes(each)) for each in prints.values())
    per_frame = size / sum(len(each.spans) for each in prints.values())
    started = cpu()
    with tempfile.TemporaryDirectory() as folder:
        pairs = find(FrameStore.write(Path(folder), prints.values()), ALL_RUNS, 1)[0]
    joining = cpu() - started
    names = [*prints]
    found = {frozenset((names[p.a], names[p.b])) for p in pairs if p.share >= FOUND}
    hits = [sum(frozenset((s, f"{s}@{size}")) in found for s in chosen) for size in SIZES]
    text = " ".join(f"{100 * share:.0f}" for share in crops) or "none"
    figures = [len(frame_hashes.VARIANTS), f"{per_frame:.0f}", f"{1e6 * hashing:.0f}"]
    return [text, *map(str, figures), f"{joining:.1f}", *map(str, hits)]


def use(crops: Sequence[float]) -> None:
    """Let the program hash corners of these sizes."""
    others = frame_hashes.VARIANTS[: frame_hashes.VARIANTS.index("uncut 90") + 1]
    names = [f"{corner} {100 * share:.0f}" for corner in CORNERS for share in crops]
    salt = np.zeros((len(names), frame_hashes.WORDS), np.uint64)
    found = {"VARIANTS": (*others, *names), "AT_CORNERS": tuple(crops)}
    vars(frame_hashes).update(found, SALT=np.vstack((frame_hashes.SALT[: len(others)], salt)))
    vars(frame_spans).update(found)


def print_of(name: str, frames: Shown) -> VideoPrint:
    maker = SpanMaker(1000 // TICKS)
    for at, picture in frames:
        maker.add(at, picture)
    spans, hashes = maker.finish()
    facts = {"seconds": (frames[-1][0] + 1000 / TICKS) / 1000}
    return VideoPrint(name, facts, frame_hashes.VARIANTS, spans, hashes)


def cpu() -> float:
    """Return the CPU seconds of this process and its children that ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    sys.exit(main())
