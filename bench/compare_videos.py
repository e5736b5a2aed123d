"""Measure recall of `neardup videos` for each edit, errors of the matching times, and false pairs.

    python3 -m bench.compare_videos > bench/results/videos.md

Sources, edits and an hour with clips are made in `.bench/videos` (`--folder`) at the first run, by
two processes, in an hour or so; packages are downloaded for that.  The copies by one edit are
joined with all sources, and the hour and its clips as well, as `neardup videos` does by default,
but so that runs of every length are seen.

A pair is *found* at a share of 0.5 of the shorter video, the default.  A pair of different sources
that is found is *false*.  Intervals are exact (Clopper and Pearson) at 95 %.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.machine import machine
from bench.report.tables import markdown
from bench.video_clips import EACH, LENGTHS, SPEED_LENGTHS, Clip, clips, clips_at_speeds
from bench.video_edits import EDITS, Kept, edited
from bench.video_sources import Source, rate_of, sources
from neardup.media.frames.frame_hashes import CORNERS, VARIANTS
from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_files import Reading, print_of
from neardup.media.frames.video_prints import MIRROR, REGIONS, WORDS, VideoPrint
from neardup.media.videos.runs import Run, VideoPair
from neardup.media.videos.video_join import JoinOptions, find
from neardup.reading.decoders import Failure
from neardup.reading.folder_walk import FoundFile
from neardup.similarity.intervals import clopper_pearson

FOUND = 0.5  # share
NEAR_END, NEAR_SPEED = 0.5, 0.01  # seconds; share of the true speed
DRAWN_EDITED = ("moving-0", "talking-0", "slides-0")
OTHER_CONTENT = ("spliced", "picture in picture")  # edits that show something else, too
# Sources that show the same, as was seen by eye: no pair of these is a false one.
SHARED = [
    {"face_noface", "noface_face", "no_face", "single_face"},
    {"bunny", "trailer-15", "trailer-27"},
    {"gradio-b", "world-0"},
    {"langer-0", "langer-10"},
]
ALL_RUNS = JoinOptions(measure="common", at_least=0.0)
PROCESSES = 2


Found = dict[frozenset[str], list[tuple[str, VideoPair]]]  # with the name of the first one


class Hit(NamedTuple):
    """The result for one copy of a video: the share found, and the errors of the matching times."""

    share: float
    offset: float  # error of the line, seconds; nan if nothing was found
    ends: float  # the larger error of both ends


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m bench.compare_videos")
    parser.add_argument("--folder", type=Path, default=Path(".bench/videos"))
    parser.add_argument(
        "--hours", type=int, nargs="*", default=[10, 30, 100], help="hours of video to join"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=1000,
        help="edit at most LIMIT real sources, those with the fewest pixels",
    )
    asked = parser.parse_args()
    print(report(asked.folder, asked.hours, asked.limit))
    return 0


def report(folder: Path, hours: Sequence[int], limit: int) -> str:
    every = sources(folder)
    lengths = {source.name: seconds_of(source.path) for source in every}
    real = sorted((s for s in every if s.real), key=lambda s: pixels_of(s.path))[:limit]
    drawn = [s for s in every if s.name in DRAWN_EDITED]
    copies = edits_of([*real, *drawn], lengths, folder)
    usable = [s for s in every if s.real or s.name.startswith("moving")]
    placed, clip_files, hour = clips(usable, lengths, folder)
    sped, sped_files = clips_at_speeds([s for s in every if s.real], lengths, folder)
    files = {**{s.name: s.path for s in every}, **clip_files, **sped_files, "hour": hour}
    files |= {copy_name(*key): path for key, path in copies.items()}
    started = time.perf_counter()
    prints = prints_of(files)
    hashed = time.perf_counter() - started
    folders = [[copy_name(s, k) for s, k in copies if k == edit] for edit in range(len(EDITS))]
    folders.append([*clip_files, "hour"])
    bare = [source.name for source in every]
    found: Found = defaultdict(list)
    compared: set[frozenset[str]] = set()
    for names in ([*bare, *some] for some in folders):
        new = {frozenset(both) for both in combinations(names, 2)} - compared
        for pair in joined([prints[name] for name in names]):
            both = names[pair.a], names[pair.b]
            if frozenset(both) in new:
                found[frozenset(both)].append((both[0], pair))
        compared |= new
    content = {s.name: s.name for s in every} | {c.name: c.source for c in placed}
    content |= {
        copy_name(*key): key[0]
        for key in copies
        if not EDITS[key[1]].name.startswith(OTHER_CONTENT)
    }
    sections = [
        about(
            every,
            len(real),
            len(files),
            hashed,
            sum(float(p.facts["seconds"]) for p in prints.values()),
        ),
        edit_table(every, list(copies), lengths, found),
        clip_table(placed, found),
        speed_table(sped, prints),
        false_table(content, compared, found),
        growth_table(hours),
    ]
    return "\n\n".join(sections)


# ---- making and joining


def seconds_of(path: Path) -> float:
    import av

    with av.open(str(path)) as file:
        return float((file.duration or 0) / 1e6)


def pixels_of(path: Path) -> int:
    import av

    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        return stream.frames * stream.codec_context.width * stream.codec_context.height


def copy_name(source: str, edit: int) -> str:
    return f"{source}.{edit}"


def edits_of(
    chosen: list[Source], lengths: dict[str, float], folder: Path
) -> dict[tuple[str, int], Path]:
    """Return {(source, number of the edit): path} of the copies; missing files are made."""
    made = folder / "edits"
    made.mkdir(exist_ok=True)
    every = [(source, k) for source in chosen for k in range(len(EDITS))]
    paths = {(s.name, k): made / f"{copy_name(s.name, k)}.mp4" for s, k in every}
    jobs = [
        (s.path, k, paths[s.name, k], lengths[s.name])
        for s, k in every
        if not paths[s.name, k].exists()
    ]
    with ProcessPoolExecutor(PROCESSES) as pool:
        list(pool.map(_make, jobs))
    return paths


def _make(job: tuple[Path, int, Path, float]) -> None:
    source, number, path, seconds = job
    edited(source, EDITS[number], path, rate_of(source), seconds)


def prints_of(files: dict[str, Path]) -> dict[str, VideoPrint]:
    """Return {name: fingerprints of a video}; files that cannot be read are reported on stderr."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        made = dict(zip(files, pool.map(read_print, files.values(), chunksize=8)))
    for name, outcome in made.items():
        if isinstance(outcome, Failure):
            print(f"{name}: {outcome.reason} {outcome.detail}", file=sys.stderr)
    return {name: each for name, each in made.items() if isinstance(each, VideoPrint)}


def read_print(path: Path) -> VideoPrint | Failure:
    status = path.stat()
    return print_of(FoundFile(os.fsencode(path), status.st_size, status.st_mtime_ns), Reading())


def joined(prints: Iterable[VideoPrint]) -> list[VideoPair]:
    with tempfile.TemporaryDirectory() as folder:
        return find(FrameStore.write(Path(folder), prints), ALL_RUNS, PROCESSES)[0]


# ---- judging


def hit(found: Found, source: str, copy: str, kept: list[Kept], mirrored: bool | None) -> Hit:
    """Return the best match of a copy with its source; `kept` has the true matching times."""
    best = Hit(0.0, float("nan"), float("nan"))
    for first, pair in found.get(frozenset((source, copy)), []):
        if mirrored is not None and pair.mirrored != mirrored:
            continue
        runs = [run if first == source else run.swapped() for run in pair.runs]
        if pair.share > best.share:
            errors = [off_line((r.a_from, r.a_to), (r.b_from, r.b_to), kept) for r in runs]
            start, end = min(r.a_from for r in runs), max(r.a_to for r in runs)
            ends = max(abs(start - kept[0].start), abs(end - kept[-1].end))
            best = Hit(pair.share, max(errors), ends)
    return best


def off_line(a: tuple[float, float], b: tuple[float, float], kept: list[Kept]) -> float:
    """Return the distance, in seconds, of the middle of a match from the nearest true time.

    >>> off_line((2.0, 4.0), (7.0, 9.0), [Kept(0.0, 10.0, 4.5)])
    0.5
    """
    middle_a, middle_b = sum(a) / 2, sum(b) / 2
    return min(abs(middle_b - k.at - (middle_a - k.start) * k.rate) for k in kept)


# ---- tables


def about(every: list[Source], edited_ones: int, files: int, hashed: float, seconds: float) -> str:
    real = sum(source.real for source in every)
    on = machine()
    return (
        "# Videos: what is found\n\n"
        f"{real} real sources out of packages, {len(every) - real} drawn ones, {len(EDITS)} edits "
        f"of {edited_ones} real and {len(DRAWN_EDITED)} drawn ones, and an hour with "
        f"{len(LENGTHS) * EACH} clips: {files} files.  "
        "Default options.  *Found* is a share of at least 0.5 of the shorter video.  "
        "`python3 -m bench.compare_videos` repeats it.\n\n"
        f"{on['processor']}, {on['cores']} cores, {on['system']}.  {seconds / 3600:.1f} hours of "
        f"video were hashed in {hashed:.0f} s by {PROCESSES} processes."
    )


def recall(shares: Sequence[float]) -> list[str]:
    """Return three table cells: copies found, recall, and its confidence interval."""
    hits = sum(share >= FOUND for share in shares)
    low, high = clopper_pearson(hits, len(shares), 0.05)
    return [f"{hits} of {len(shares)}", f"{hits / len(shares):.2f}", f"{low:.2f}–{high:.2f}"]


def quartiles(values: Sequence[float]) -> str:
    return " ".join(f"{v:.2f}" for v in np.percentile(values, [25, 50, 75]))


def error(values: Sequence[float], share: float) -> str:
    known = [value for value in values if value == value]
    return f"{np.percentile(known, 100 * share):.2f}" if known else "–"


def edit_table(
    every: list[Source], copies: list[tuple[str, int]], lengths: dict[str, float], found: Found
) -> str:
    real = {source.name for source in every if source.real}
    rows = []
    for k, edit in enumerate(EDITS):
        hits = {}
        for source, number in copies:
            if number == k and (source in real or source in DRAWN_EDITED):
                kept = edit.kept(lengths[source])
                flipped = True if edit.name == "mirrored" else None
                hits[source] = hit(found, source, copy_name(source, k), kept, flipped)
        ours = [one for name, one in hits.items() if name in real]
        missed = [name for name, one in hits.items() if one.share < FOUND]
        shown = ", ".join(missed[:4]) + (f" and {len(missed) - 4} more" if missed[4:] else "")
        rows.append(
            [
                edit.name,
                *recall([one.share for one in ours]),
                quartiles([one.share for one in ours]),
                error([one.offset for one in ours], 0.5),
                error([one.offset for one in ours], 0.9),
                error([one.ends for one in ours], 0.9),
                shown,
            ]
        )
    head = ["edit", "found", "recall", "95 %", "share: quartiles", "error of the line, s: median"]
    return "## Edits of real sources\n\n" + markdown(
        [*head, "90 %", "error of the ends, s: 90 %", "missed (drawn ones, too)"], rows
    )


def clip_table(placed: list[Clip], found: Found) -> str:
    rows = []
    for seconds in LENGTHS:
        some = [clip for clip in placed if clip.seconds == seconds]
        hits = [hit(found, c.name, "hour", [Kept(0.0, c.seconds, c.at)], None) for c in some]
        missed = [clip.source for clip, one in zip(some, hits) if one.share < FOUND]
        rows.append(
            [
                f"{seconds} s",
                *recall([one.share for one in hits]),
                quartiles([one.share for one in hits]),
                error([one.ends for one in hits], 0.9),
                ", ".join(missed),
            ]
        )
    head = ["clip", "found", "recall", "95 %", "share: quartiles"]
    return "## Clips in an hour\n\n" + markdown(
        [*head, "error of the ends, s: 90 %", "missed"], rows
    )


def speed_table(sped: list[Clip], prints: dict[str, VideoPrint]) -> str:
    """Compare clips of several speeds with their sources; return a section about the speeds."""
    rows = []
    for seconds, changed in product(SPEED_LENGTHS, (False, True)):
        some = [c for c in sped if c.seconds == seconds and (c.speed != 1) == changed]
        runs = [longest_run(prints[c.source], prints[c.name]) for c in some]
        ends = [
            run is not None
            and abs(run.a_from - c.start) <= NEAR_END
            and abs(run.a_to - c.start - c.seconds) <= NEAR_END
            for c, run in zip(some, runs)
        ]
        near = [
            run is not None and abs(run.rate * c.speed - 1) <= NEAR_SPEED
            for c, run in zip(some, runs)
        ]
        speed = "0.9 to 1.1" if changed else "1"
        rows.append(
            [f"{seconds} s", speed, *(" (".join(recall(x)[::2]) + ")" for x in (ends, near))]
        )
    head = ["clip", "speed", "ends right to 0.5 s", "speed right to 0.01"]
    return (
        "## Clips at other speeds\n\nClips of real sources, each compared with its source alone; "
        "in brackets: 95 %.\n\n" + markdown(head, rows)
    )


def longest_run(source: VideoPrint, clip: VideoPrint) -> Run | None:
    pairs = [pair for pair in joined([source, clip]) if not pair.mirrored and pair.share >= FOUND]
    runs = [run if pair.a == 0 else run.swapped() for pair in pairs for run in pair.runs]
    return max(runs, key=lambda run: run.seconds, default=None)


def false_table(content: dict[str, str], compared: Iterable[frozenset[str]], found: Found) -> str:
    """Return a section about false pairs: their number, and the pairs of sources with matches.

    Left out are sources that share footage, and copies that show something else, too.
    """
    counts: Counter[tuple[str, str]] = Counter()
    false: Counter[tuple[str, str]] = Counter()
    largest: dict[tuple[str, str], float] = defaultdict(float)
    for names in compared:
        a, b = sorted(content.get(name, "") for name in names)
        if a and a != b and not any({a, b} <= group for group in SHARED):
            counts[a, b] += 1
            share = max((pair.share for _, pair in found.get(names, ())), default=0.0)
            false[a, b] += share >= FOUND
            largest[a, b] = max(largest[a, b], share)
    possible = sum(counts.values())
    wrong = sum(false.values())
    rows = [
        [f"{a} and {b}", str(false[a, b]), str(counts[a, b]), f"{share:.2f}"]
        for (a, b), share in sorted(largest.items(), key=lambda item: -item[1])
        if share
    ]
    return (
        f"## False pairs\n\n{wrong} of {possible:,} pairs of files of different sources are "
        "found.  These sources have any runs in common:\n\n"
        + markdown(["sources", "false pairs", "of", "largest share"], rows)
    )


# ---- growth


def growth_table(hours: Sequence[int]) -> str:
    """Join synthetic hours of video, of which a tenth have a copy; return a table of the times."""
    rows = []
    for number in hours:
        started = time.perf_counter()
        found = joined(made_up(number))
        seconds = time.perf_counter() - started
        good = sum(pair.b == pair.a + 1 and pair.a % 10 == 0 for pair in found)
        rows.append(
            [
                str(number),
                f"{seconds:.1f}",
                f"{good} of {len(range(1, number, 10))}",
                str(len(found)),
            ]
        )
    head = ["hours", "seconds", "copies found", "pairs with runs"]
    return "## Growth of the join\n\n" + markdown(head, rows)


def made_up(hours: int) -> Iterable[VideoPrint]:
    """Yield prints of one-hour videos with random frames; one in ten is a noisy copy.

    As in a real video without bars, the variants without bars are those with them, centres differ
    from the whole in one bit in eight, and mirror images and corners are other frames.
    """
    rng = np.random.default_rng(1)
    spans = (np.arange(12_000, dtype=np.int64)[:, np.newaxis] + np.arange(2)) * 300
    last = np.empty((0, len(VARIANTS), WORDS), np.uint64)
    for number in range(hours):
        hashes = random_hashes(rng, 0)
        for v, name in enumerate(VARIANTS):
            if not name.startswith((*REGIONS, *CORNERS)):
                hashes[:, v] = hashes[:, VARIANTS.index("whole" + MIRROR * name.endswith(MIRROR))]
            if name.startswith("centre"):
                hashes[:, v] ^= random_hashes(rng, 2)[:, v]
            if name in ("uncut 95", "uncut 90"):
                hashes[:, v] = hashes[:, VARIANTS.index(name.replace("uncut ", "centre"))]
        if number % 10 == 1:
            hashes = last ^ random_hashes(rng, 3)
        yield VideoPrint(f"{number:06}", {"seconds": 3600.0}, VARIANTS, spans, hashes)
        last = hashes


def random_hashes(rng: np.random.Generator, halvings: int) -> NDArray[np.uint64]:
    """Return hashes (12,000, V, 4) of random bits; each halving clears half of the bits set."""
    hashes = rng.integers(0, 2**64, (12_000, len(VARIANTS), WORDS), np.uint64)
    for _ in range(halvings):
        hashes &= rng.integers(0, 2**64, hashes.shape, np.uint64)
    return hashes


if __name__ == "__main__":
    sys.exit(main())
