"""`videos`: find copies, clips and common stretches of videos, with the times.

folders ── files ── prints ── pairs of videos, with runs ── lines, or a decision
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from neardup.commands.images import LONGEST_LIMIT, cache_file
from neardup.decisions import pair_list
from neardup.engines.local.plan import MOST_JOBS
from neardup.engines.local.workers import Progress, working_folder
from neardup.evaluation.exact_answers import add_option
from neardup.images.cache import ResultCache
from neardup.images.pictures import OUT_OF_MEMORY, UNREADABLE, bound_memory
from neardup.images.results import Work
from neardup.images.tally import Rules, Tally, many
from neardup.options.command_parser import CommandParser
from neardup.options.table import integer, read
from neardup.reading.compressed import kind_by_name, packing
from neardup.runtime.atomic_write import whole_or_not
from neardup.runtime.program import (
    STANDARD_OUTPUT,
    STDOUT,
    StageError,
    UsageError,
    cores,
    interrupted,
    not_one_of,
    write_to,
)
from neardup.runtime.summary import QUIET, SHOWN_BAD_LINES
from neardup.videos import pair_lines, video_answers, video_files
from neardup.videos.frame_store import FrameStore
from neardup.videos.print_files import is_print_file, write_prints
from neardup.videos.print_sources import VIDEOS, PrintSources, Reader, time_limit
from neardup.videos.runs import CommonStretch, VideoPair
from neardup.videos.stored_prints import from_bytes, to_bytes
from neardup.videos.video_answers import Videos, keep_rules
from neardup.videos.video_join import MEASURES, JoinOptions, find

PROGRAM = "python3 -m neardup videos"
PRINTS, DECIDED = "prints", ("kept", "removed")
OUTPUTS = {
    "pairs": "a line for each stretch that two videos have in common",
    "links": "as pairs, but only those that connect similar videos",
    "kept": "videos without their near-duplicates",
    "removed": "each other video, the one that it duplicates, and how much of it is in that one",
    "clusters": "each video of each group of similar ones, behind the first of the group",
    PRINTS: "what is kept of each video, for --against and for other machines",
}
FORMATS = ("lines", "json", "parquet")
LARGEST_TICKS = 25
THRESHOLD, OF_DECISIONS = 0.5, 0.8
KEEP_HELP = (
    f"which of similar videos comes first: {', '.join(video_answers.KEEP)}; or several with "
    "commas, each for ties of those before it"
)
DESCRIPTION = """Find videos that show the same, or of which one is a part of the other, with the times.

Videos are compared by their frames, not by name or sound: compressed again, in another size or at
another speed, cropped, mirrored, with borders, a logo or subtitles, cut or spliced.  Files that
cannot be read are counted, with the reason.  PyAV is needed: pip install 'neardup[videos]'.

    python3 -m neardup videos films > pairs.tsv
    python3 -m neardup videos films --output kept -o kept.txt --removed removed.tsv
    python3 -m neardup videos films --output prints -o films.index
    python3 -m neardup videos new.mp4 --against films.index

A line is a stretch that two videos have in common, separated by tabs: the two videos, its seconds,
from-to in the first, from-to in the second, the share of the shorter video that all stretches of the
two are, the speed of the second (1.000: the same), and 1 if one is mirrored, else 0.  In paths,
blanks, % and what is not UTF-8 are written as % and two hex digits.
"""
SHORT = {
    "--measure": "copy, containment or common (default: copy)",
    "--threshold": "the share of the shorter video (default: 0.5, or 0.8 to remove videos)",
    "--at-least": "the least time in common, such as 10s (default: 3s)",
    "--output": "pairs, links, kept, removed, clusters or prints (default: pairs)",
    "--keep": "which of similar videos comes first (default: max:pixels,max:bitrate,min:bytes)",
    "--removed": "with --output kept: the removed videos, into this file",
    "--common": "stretches that are common to many videos, into this file",
    "--against": "a file of prints: find pairs with a new video",
    "--fast": "read key frames only",
    "-o": "the file of the answer",
    "--jobs": "processes (default: cores)",
    "--no-cache": "read all videos again, and keep nothing",
    "-v": "print all counts at the end",
}


class Asked(NamedTuple):
    """The options that are numbers or rules, checked."""

    rules: Rules
    how: "video_files.Reading"
    join: JoinOptions
    keep: list[str]
    jobs: int
    format: str


class Found(NamedTuple):
    """The videos of a run, and what was found."""

    videos: Videos
    pairs: Sequence[VideoPair]
    common: Sequence[CommonStretch]


def main() -> None:
    args = _command_line()
    asked = _asked(args)
    video_files.require_av()
    wrote = [name for name in (args.answer, args.removed, args.common) if name]
    left = f"{' and '.join(wrote)} left as before" if wrote else "the answer is not complete"
    with interrupted(left), working_folder() as folder, ExitStack() as stack:
        inputs = [name for name in [*args.folders, *args.against] if Path(name).is_file()]
        sinks = {
            flag: stack.enter_context(whole_or_not(flag, name, inputs)) if name else None
            for flag, name in (
                ("-o", args.answer),
                ("--removed", args.removed),
                ("--common", args.common),
            )
        }
        cache = ResultCache(
            VIDEOS, cache_file(args, VIDEOS), asked.how.kind(), args.cache is not None
        )
        stack.callback(cache.close)
        progress = Progress(asked.rules.program, ["videos", "pairs"], 1)
        tally = Tally(asked.rules, progress.clear)
        with progress.shown(args.verbosity):
            sources = PrintSources(args.folders, tally, folder)
            _read(sources, Reader(_work(args, asked.how), cache, asked.jobs), progress)
            if args.output == PRINTS:
                said = _write_prints(sources, sinks["-o"], args)
            else:
                progress.stage("pairs", 1)
                found = _find(sources, folder, args.against, asked)
                progress.clear()
                said = _answer(found, folder, sinks, args, asked)
        tally.report(sources.walk.skipped, cache.note, said)


def _work(args: argparse.Namespace, how: "video_files.Reading") -> Work:
    seconds = time_limit
    if args.time_limit is not None:
        limit = integer("--time-limit", args.time_limit, 1, LONGEST_LIMIT)
        seconds = lambda _: limit  # noqa: E731
    task = partial(video_files.print_of, how=how)
    passing = {UNREADABLE, OUT_OF_MEMORY}
    return Work(task, bound_memory, seconds, to_bytes, from_bytes, passing, ahead=1)


def _read(sources: PrintSources, reader: Reader, progress: Progress) -> None:
    sources.read(
        reader,
        lambda missing: progress.stage("videos", sum(file.size + 1 for file in missing)),
        lambda outcomes: progress.counted(0, outcomes, lambda outcome: outcome.file.size + 1),
    )


def _find(sources: PrintSources, folder: Path, against: Sequence[str], asked: Asked) -> Found:
    """Write all prints to files of the folder, old ones first, and find what they share."""
    shown: list[float] = []

    def prints() -> Iterator[video_files.VideoPrint]:
        for some in (sources.old_prints(against), sources.prints()):
            for video in some:
                shown.append(float((video.spans[:, 1] - video.spans[:, 0]).sum()) / 1000)
                yield video

    frames = folder / "frames"
    frames.mkdir()
    store = FrameStore.write(frames, prints())
    old = len(store) - len(sources)
    if against and not old:
        raise StageError(f"{' '.join(against)}: has no print of another video")
    pairs, common = find(store, asked.join, asked.jobs, old)
    return Found(Videos(store.ids, store.facts, shown, old), pairs, common)
