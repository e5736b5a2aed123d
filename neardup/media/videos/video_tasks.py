"""frames_mapper.py and `step.py videos`: find pairs of videos in steps, in pipes or on clusters.

The options that define when two videos are a pair are also those of `neardup videos`.

>>> read_time("1.5m"), read_share("0.8")
(90.0, 0.8)
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Callable

from neardup.engines.hadoop.watching import fs
from neardup.engines.local.workers import working_folder
from neardup.media.frames.containers import require_av
from neardup.media.frames.print_sources import with_file, work
from neardup.media.frames.video_files import Reading
from neardup.media.frames.video_prints import VideoPrint, to_line
from neardup.media.pictures.keep_rules import number
from neardup.media.videos import video_steps
from neardup.media.videos.video_join import MEASURES, JoinOptions
from neardup.media.videos.video_steps import SHARES, Clusters
from neardup.options.command_parser import SHARED, STANDARD_INPUT, VERBOSITY, CommandParser
from neardup.reading import blocks
from neardup.reading.compressed import opened
from neardup.reading.decoders import Failure, Outcome
from neardup.reading.folder_walk import FoundFile, path_id
from neardup.reading.tally import FLAT, Rules, Tally
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, cores, one_of, run, whole, write_all

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def read_share(text: str) -> float:
    """Parse a share T with 0 < T <= 1; ValueError for anything else.

    >>> read_share("0.8")
    0.8
    """
    value = float(text) if NUMBER.fullmatch(text) else 0.0
    if not 0 < value <= 1:
        raise ValueError(f"expected 0 < T <= 1, such as 0.8, got {text!r}")
    return value


def read_time(text: str) -> float:
    """Parse a duration such as 10s, 1.5m or 2h to seconds; ValueError for anything else.

    >>> read_time("10s"), read_time("1.5m"), read_time("2h"), read_time("10")
    (10.0, 90.0, 7200.0, 10.0)
    """
    number, unit = text.rstrip("hms"), text.lstrip("0123456789.")
    if not NUMBER.fullmatch(number) or unit not in UNITS or not 0 < float(number) < math.inf:
        raise ValueError(f"expected a time above 0, such as 10s or 2m, got {text!r}")
    return float(number) * UNITS[unit]


(TICKS,) = flags(
    "--ticks N  frames compared per second, twice as many in a short video [4]", ticks=whole(1, 25)
)
JOIN_OPTIONS = flags(
    """
    --measure NAME      which videos are a pair: copy, if enough of the shorter one is in the other
                        (--threshold); containment, if one stretch alone covers that share; common,
                        as copy, or if they share a part: a stretch of enough time (--at-least)
                        [common]
                        -h: common, copy or containment (default: common)
    --threshold T       the minimum share of the shorter video that is in the other (default: 0.5)
    --at-least TIME     the minimum time of a part, such as 10s or 2m (default: 5s)
                        -h: the minimum time of a shared part, such as 10s (default: 5s)
    """,
    measure=one_of(*MEASURES),
    threshold=read_share,
    at_least=read_time,
)


def join_options(args: argparse.Namespace) -> JoinOptions:
    """Return the options of a video join that JOIN_OPTIONS give."""
    given = {name: getattr(args, name) for name in ("measure", "threshold", "at_least")}
    return JoinOptions(**{name: value for name, value in given.items() if value is not None})


MAX_SHARES = 4096
SPECIAL = re.compile(rb"[*?\[\]{}\\]")
ON_CLUSTER = re.compile(rb"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://")
NO_FILE = "cannot be read"

Step = Callable[[Iterable[bytes]], Iterator[bytes]]

FRAMES = """Write the prints of videos: the fingerprints of their frames, with the times.

Reads paths of videos, one a line: files on this machine or in a mounted folder, or on the cluster,
such as hdfs://HOST/PATH; a file on the cluster is copied here while it is read.

    find films -type f | ./frames_mapper.py > films.prints
    python3 -m neardup videos films.prints

Needs PyAV: pip install av.
"""
VIDEOS = """Find the pairs of videos in steps, with a sort between them: as a pipe, or on a cluster.

    find films -type f | ./frames_mapper.py > prints
    ./step.py videos spread prints | LC_ALL=C sort | ./step.py videos seeds > seeds

    ./step.py videos spread seeds prints | LC_ALL=C sort | ./step.py videos copies \\
        | ./step.py videos clusters > clusters
    ./step.py videos shown seeds | LC_ALL=C sort \\
        | ./step.py videos common --clusters clusters > common

    ./step.py videos spread seeds common prints | LC_ALL=C sort | ./step.py videos pairs \\
        | LC_ALL=C sort > pairs.tsv

The pairs are those of `python3 -m neardup videos prints`, sorted.  A step reads files or standard
input.  The second group of commands finds the frames that many videos of different content show,
such as an opening; two videos that share only such frames are not a pair.
"""
STEPS = {
    "spread": "prints, seeds, common frames → lines by share of the work",
    "seeds": "sorted prints → seeds: frames of two videos that match",
    "copies": "sorted seeds and prints → videos and their copies",
    "clusters": "copies → clusters of copies",
    "shown": "seeds → the matches of each video's frames",
    "common": "sorted output of shown → common frames",
    "pairs": "sorted seeds, common frames and prints → pairs",
}


FRAMES_OPTIONS = flags(
    """
    --jobs N        number of processes (default: one per core; in a task: 1)
    --time-limit SECONDS  give up on a file after this time (default: by size)
    """,
    jobs=SHARED["--jobs"].read,
    time_limit=SHARED["--time-limit"].read,
)
(CLUSTERS_OPTION,) = flags("--clusters FILE  for common: the output of the step clusters")
SHARED_OPTIONS = (  # of all steps and jobs
    *flags(
        f"--shares N  for spread: number of shares of the work, each with all prints [{SHARES}]",
        shares=whole(1, MAX_SHARES),
    ),
    *JOIN_OPTIONS,
)


def _frames() -> None:
    parser = CommandParser("frames_mapper.py", FRAMES)
    parser.add(TICKS, *FRAMES_OPTIONS, SHARED["--strict"], *VERBOSITY)
    args = parser.parse_args()
    how = Reading(args.ticks)
    jobs = args.jobs or (1 if blocks.in_task() else cores())
    require_av()
    tally = Tally(Rules("frames_mapper.py", "video", args.strict, args.verbosity))
    with working_folder() as folder:
        names = dict.fromkeys(map(_name, blocks.lines_of_stage(sys.stdin.buffer)))
        found = _Files(filter(None, names), folder, tally)
        write_all(map(to_line, found.prints(how, args.time_limit, jobs)))
    if not blocks.in_task():
        if names:  # for an empty input print nothing, like other mappers
            tally.report("")
        return
    counters = Counters("frames", verbosity=args.verbosity)
    counts = {"videos": tally.results, "files that cannot be read": tally.failed}
    for name, count in {**counts, "files of other kinds": sum(tally.others.values())}.items():
        counters.add(name, count)
    counters.report()


def _name(text: bytes) -> bytes:
    """Return the path of a video that an input line names.

    NLineInputFormat puts an offset before it, unless stream.map.input.ignoreKey is set.
    """
    name = text.rstrip(b"\r\n")
    if not blocks.in_task():
        return name
    if os.environ.get("stream_map_input_ignoreKey") != "true":
        name = re.sub(rb"^[0-9]+\t", b"", name)
    return name.rstrip(b"\t")


class _Files:
    """Video files that input lines name; files on a cluster are copied to this machine first."""

    def __init__(self, names: Iterable[bytes], folder: Path, tally: Tally):
        self._names, self._folder, self._tally = names, folder, tally
        self._named: dict[bytes, bytes] = {}  # {path of a copy: name on the cluster}

    def prints(self, how: Reading, limit: int | None, jobs: int) -> Iterator[VideoPrint]:
        """Yield the fingerprints of each readable video as soon as they are computed."""
        for file, result in work(how, limit).outcomes(self._found(), jobs):
            name = self._named.pop(file.path, b"")
            if name:
                os.unlink(file.path)
                file = file._replace(path=name)
            video = self._tally.kept(Outcome(file, result, False))
            if video is not None:
                self._tally.seconds += number(video.facts, "seconds")
                if not len(video.spans):
                    self._tally.leave_out(FLAT, file.path)
                yield video._replace(id=path_id(name)) if name else with_file(video, file)

    def _found(self) -> Iterator[FoundFile]:
        for count, name in enumerate(self._names):
            path, why = name, ""
            if ON_CLUSTER.match(name):
                path = os.fsencode(self._folder / f"{count}")
                why = _copy(name, path)
                self._named[path] = name
            try:
                status = os.stat(path)
            except (OSError, ValueError) as error:  # ValueError: a NUL byte
                why = why or getattr(error, "strerror", "") or str(error)
            if not why:
                yield FoundFile(path, status.st_size, status.st_mtime_ns)
                continue
            if self._named.pop(path, None):
                with suppress(FileNotFoundError):
                    os.unlink(path)  # a copy that is not complete
            self._tally.files += 1
            self._tally.fail(path_id(name), Failure(NO_FILE, why))


def _copy(name: bytes, path: bytes) -> str:
    """Copy a file from the cluster to `path`; return the reason for a failure, or ""."""
    plain = SPECIAL.sub(rb"\\\g<0>", name)  # Hadoop takes the name for a pattern
    done = fs("-get", os.fsdecode(plain), os.fsdecode(path))
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (said[-1] if said else "hadoop failed") if done.returncode else ""


def videos() -> None:
    """Run `step.py videos`; the first argument names a step of the search for video pairs."""
    names = "\n".join(f"    {name:9} {about}" for name, about in STEPS.items())
    parser = CommandParser("step.py videos", f"{VIDEOS}\n{names}\n")
    parser.usage = "step.py videos STEP [OPTIONS] [FILE ...]"
    parser.add_argument("step", choices=STEPS, metavar="STEP", help=argparse.SUPPRESS)
    parser.add(STANDARD_INPUT, CLUSTERS_OPTION, *SHARED_OPTIONS)
    args = parser.parse_intermixed_args()
    options = join_options(args)
    steps: dict[str, Step] = {
        "spread": partial(video_steps.spread, shares=args.shares),
        "seeds": partial(video_steps.seeds, options=options),
        "copies": partial(video_steps.copies, options=options),
        "clusters": video_steps.clusters,
        "shown": video_steps.shown,
        "pairs": partial(video_steps.pairs, options=options),
    }
    if args.step == "common":
        if not args.clusters:
            raise UsageError("needs --clusters FILE, the output of `./step.py videos clusters`")
        found = Clusters.read(lines_of([args.clusters]))
        steps["common"] = partial(video_steps.common_frames, clusters=found, options=options)
    with working_folder():
        write_all(steps[args.step](lines_of(args.files or ["-"])))


def lines_of(names: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines of files, which may be compressed."""
    blocks.check_inputs(list(names))
    for name in names:
        if name == "-":
            yield from blocks.lines_of_stage(sys.stdin.buffer)
        else:
            with opened(name, name) as stream:
                yield from blocks.lines_of_stage(stream)


frames_mapper = partial(run, "frames_mapper.py", _frames)
