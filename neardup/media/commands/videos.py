"""`videos`: find copies, clips and common stretches of videos, with the times.

folders ── files ── fingerprints ── pairs of videos, with runs ── lines, or a decision
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Callable

from neardup.engines.local.answer_file import (
    PAGE,
    Answer,
    check_outputs,
    doubts_with_null,
    file_answer,
    names_of_outputs,
)
from neardup.engines.local.workers import Progress, working_folder
from neardup.media.frames.containers import is_video, require_av
from neardup.media.frames.frame_store import FrameStore, is_print_file, write_prints
from neardup.media.frames.print_sources import VIDEOS, PrintSources, work
from neardup.media.frames.video_files import Reading
from neardup.media.pictures import keep_rules
from neardup.media.videos import video_decisions
from neardup.media.videos.common import common_lines, common_objects, stretches_of
from neardup.media.videos.runs import ONE_PICTURE, RUNS, format_run
from neardup.media.videos.video_decisions import FoundPairs
from neardup.media.videos.video_join import JoinOptions, find
from neardup.media.videos.video_tasks import (
    JOIN_OPTIONS,
    TICKS,
    join_options,
    read_share,
)
from neardup.options.command_parser import SHARED, CommandParser
from neardup.options.settings import values_of_paths
from neardup.reading.cache import ResultCache, opened_cache
from neardup.reading.compressed import kind_by_name
from neardup.reading.decoders import Outcome, Work, results
from neardup.reading.field_values import Values
from neardup.reading.folder_walk import PART_HELP, FoundFile, path_of
from neardup.reading.table_rows import JSON, check_row_file, fields_table
from neardup.reading.tally import NO_PART, Rules, Tally
from neardup.runtime.flags import flags
from neardup.runtime.program import (
    STANDARD_OUTPUT,
    StageError,
    UsageError,
    check_file_name,
    cores,
    interrupted,
    not_one_of,
)
from neardup.runtime.summary import many

PROGRAM = "python3 -m neardup videos"
NAME = "neardup videos"
PRINTS, DECISIONS = "prints", ("kept", "removed")
OUTPUTS = {
    "pairs": "each stretch that two videos have in common",
    "links": "as pairs, but just enough pairs to connect each group of similar videos",
    "kept": "the videos without near-duplicates",
    "removed": "each removed video, the kept video it duplicates, the share of it found there, and "
    "why the removal is doubtful, if it is: the kept one is mirrored, cropped, …",
    "clusters": "for each video of a group of similar ones: first video of its group, tab, video",
    PRINTS: "the fingerprints of each video, for --against and for other machines",
}
TABLES = {
    "pairs": RUNS,
    "links": RUNS,
    "kept": fields_table(id=str),
    "removed": video_decisions.REMOVED_VIDEOS,
    "clusters": fields_table(cluster=str, id=str),
}
PARTS = 1000  # units of progress for a whole join
TO_REMOVE = 0.8  # the threshold of kept and removed
DESCRIPTION = """Find videos with the same content, in whole or in part, and the matching times.

Videos are compared by fingerprints of their frames, not by name or sound.  Copies are found even if
they were re-encoded, resized, slowed down or sped up, cropped, mirrored, cut or spliced, or were
given borders, a logo or subtitles.  Files that cannot be read are counted, with the reason.
PyAV is needed: pip install av.

    python3 -m neardup videos films > pairs.tsv
    python3 -m neardup videos films --output kept -o kept.txt --removed removed.tsv
    python3 -m neardup videos films --output prints -o films.index
    python3 -m neardup videos new.mp4 --against films.index

A line is a stretch that two videos have in common, with tabs between its fields: the two videos;
matched seconds (gaps between from and to are not counted); from-to in the first; from-to in the
second; the share of the shorter video in all stretches of the pair; the speed: seconds of the
second video per second of the first; 1 if one is a mirror image of the other, else 0; and copy, or
clip if only the shorter one is in the other, or part if less than half of it is.  Blanks, % and
bytes that are not UTF-8 are written as %XX.
"""
OWN = flags(
    f"""
    folders FOLDER…     a folder (read with its subfolders), a video, or a file written by --output
                        prints
    --exact             find every pair of frames whose hashes differ in at most 40 bits; many times
                        slower
                        -h: find every pair of similar frames; many times slower
    --one-picture       also remove copies of a still picture, whose sound may differ
    --output KIND       {"; ".join(f"{name}: {about}" for name, about in OUTPUTS.items())} [pairs]
                        -h: pairs, links, kept, removed, clusters or prints (default: pairs)
    --keep RULES        which of several similar videos is kept: {", ".join(keep_rules.NAMES)}
                        (a video whose path matches); or several rules with commas, each breaking
                        ties of those before it [{keep_rules.VIDEOS}]
                        -h: which of several similar videos is kept (default: the original)
    --threshold T       the minimum share of the shorter video that is in the other; with --output
                        kept and removed, of the removed video in the kept one (default: 0.5;
                        {TO_REMOVE} with kept and removed)
                        -h: minimum share of the shorter video (default: 0.5; 0.8 with kept and
                        removed)
    --common FILE       write to FILE the stretches found in more than 5 videos (such as an
                        opening); they make no part, and those in more than 1 %% of the videos do
                        not count as matches; JSON lines if FILE ends with .jsonl
                        -h: write the stretches that many videos have in common to this file
    --time-limit SECONDS  give up on a file after this time (default: 10 minutes plus 2 seconds per
                        megabyte)
    --cache FILE        fingerprints of earlier runs (default: ~/.cache/neardup/videos.sqlite)
    --against FILE…     old videos, a file written by --output prints: find only pairs with a new
                        video; old videos are never removed; may be repeated
                        -h: old videos, a file written by --output prints: find pairs with a new
                        video
    --within PART       find only pairs of videos with the same part of the path: {PART_HELP}
    --across PART       find only pairs of videos with different parts, as with --within
    """,
    keep=keep_rules.keep_rules,
    threshold=read_share,
    time_limit=SHARED["--time-limit"].read,
)


def main() -> None:
    args = _command_line()
    rules = Rules(NAME, "video", args.strict, args.verbosity)
    reading, jobs = Reading(args.ticks), args.jobs or cores()
    if args.output in DECISIONS:
        args.threshold = args.threshold or TO_REMOVE
    options = join_options(args)._replace(exact=args.exact)
    require_av()
    if args.report:
        import_module(PAGE).check_jinja()
    names = names_of_outputs(args, "video", is_video)
    wrote = [*filter(None, names.values())]
    with interrupted(wrote), working_folder() as folder, ExitStack() as stack:
        inputs = [name for name in [*args.folders, *args.against] if os.path.isfile(name)]
        how = "-o", args.answer, inputs, TABLES.get(args.output, RUNS)
        answer = file_answer(*how, null=args.null)
        files = {"-o": stack.enter_context(answer)}
        for flag in ("--removed", "--common", "--report"):
            beside = file_answer(flag, names[flag], inputs, TABLES["removed"])
            files[flag] = stack.enter_context(beside)
        cache = opened_cache(args, VIDEOS, reading.kind())
        stack.callback(cache.close)
        progress = Progress(NAME, ["videos", "pairs"], 1)
        tally = Tally(rules, progress.clear)
        sources = PrintSources(args.folders, tally, folder)
        stack.callback(sources.close)
        summary: list[str] = []
        with progress.shown(args.verbosity):
            sources.read(partial(_outcomes, work(reading, args.time_limit), cache, jobs, progress))
            if args.output == PRINTS:
                with files["-o"].file() as sink:
                    write_prints(sink, files["-o"].name or STANDARD_OUTPUT, sources.prints())
            else:
                found = _found(sources, args.against, folder, options, jobs, progress)
                progress.clear()
                found = _limited(found, args.values, tally) if args.values else found
                knows = sources.walk.knows if args.null else None
                summary = _answer(args, options.threshold, found, files, knows)
        tally.report(cache.note, summary)


def _outcomes(
    how: Work, cache: ResultCache, jobs: int, progress: Progress, files: list[FoundFile]
) -> Iterator[Outcome]:
    """Yield the outcome for each video file; progress is measured by the bytes of the files."""

    def begin(missing: list[FoundFile]) -> None:
        progress.stage("videos", sum(file.size + 1 for file in missing))

    outcomes = results(files, how, cache, jobs, begin)
    return progress.counted(0, outcomes, lambda outcome: outcome.file.size + 1)


def _found(
    sources: PrintSources,
    against: Sequence[str],
    folder: Path,
    options: JoinOptions,
    jobs: int,
    progress: Progress,
) -> FoundPairs:
    """Write all fingerprints to `folder`, old videos first; return pairs and common stretches."""
    progress.stage("pairs", PARTS)
    frames = folder / "frames"
    frames.mkdir()
    store = FrameStore.write(frames, chain(sources.old_prints(against), sources.prints()))
    old = len(store) - len(sources)
    show = progress.of(0)
    pairs, common = find(store, options, jobs, old, lambda share: show(round(PARTS * share)))
    return FoundPairs(store.ids, store.facts, store.seconds.tolist(), old, pairs, common)


def _limited(found: FoundPairs, values: Values, tally: Tally) -> FoundPairs:
    """Leave out pairs by --within or --across; count the new videos without the part of the path.

    The common stretches are those of all videos.
    """
    parts = values.of_ids([id_.encode() for id_ in found.ids])
    for id_, part in zip(found.ids[found.old :], parts[found.old :]):
        if part is None:
            tally.leave_out(NO_PART, path_of(id_))

    def wanted(a: str | None, b: str | None) -> bool:
        return a is not None is not b and (a == b) == values.equal

    return found._replace(pairs=[p for p in found.pairs if wanted(parts[p.a], parts[p.b])])


def _answer(
    args: argparse.Namespace,
    threshold: float,
    found: FoundPairs,
    files: dict[str, Answer],
    knows: Callable[[bytes], bool] | None,
) -> list[str]:
    """Write the answer and the files beside it; return lines for the summary.

    knows: for -0, whether a path is that of a file that was read, and not one in a file of prints
    """
    answer, decision = files["-o"], None
    if args.report or args.output in DECISIONS:
        least = threshold if args.output in DECISIONS else TO_REMOVE
        decision = video_decisions.decide(found, args.keep, least, args.one_picture)
    if args.report:
        gone = dict(map(video_decisions.parse_removed_video, decision.removed)) if decision else {}
        runs = video_decisions.runs_of(found, linking=False)
        stretches = stretches_of(enumerate(found.common, 1))
        names = ", ".join(args.folders)
        with files["--report"].file() as page:
            import_module(PAGE).write_videos(page, runs, gone, stretches, names, args.folders)
    if args.common:
        as_json = kind_by_name(args.common) == JSON
        with files["--common"].opened() as sink:
            sink.writelines((common_objects if as_json else common_lines)(found.common))
    if args.output in ("pairs", "links"):
        runs = video_decisions.runs_of(found, linking=args.output == "links")
        answer.write(map(format_run, runs))
        return video_decisions.summary(found)
    if args.output == "clusters":
        clusters = video_decisions.clusters(found, args.keep, args.one_picture)
        answer.write(clusters)
        count = len({line.partition(b"\t")[0] for line in clusters})
        said = f"{many(len(clusters), 'videos')} in {many(count, 'clusters')}"
    else:
        assert decision
        if args.removed:
            files["--removed"].write(decision.removed)
        lines = getattr(decision, args.output)
        kept, doubtful = args.output == "kept", decision.doubtful
        asked = f"\t{ONE_PICTURE}\n".encode()  # by --one-picture
        stays = dict.fromkeys(x for x in doubtful if args.null and not x.endswith(asked))
        lines = [*lines, *stays] if kept else [line for line in lines if line not in stays]
        of_files = [line for line in lines if not knows or knows(path_of(line.split()[0].decode()))]
        answer.write(of_files)
        said = f"{many(len(decision.kept), 'videos')} kept, {len(decision.removed):,} removed"
        if doubtful:
            said += f", {len(doubtful):,} of them doubtful"
            said += doubts_with_null(len(stays), len(doubtful), kept)
        if left := len(lines) - len(of_files):
            said += f"; {left:,} not printed: with -0, videos of files of prints are left out"
    return [said, *video_decisions.summary(found)]


def _command_line() -> argparse.Namespace:
    parser = CommandParser(PROGRAM, DESCRIPTION)
    parser.add(*OWN, TICKS, *(flag for flag in JOIN_OPTIONS if flag.name != "--threshold"))
    parser.add_shared("--strict --no-cache --jobs -o --removed --report -0")
    args = parser.parse_intermixed_args()
    _check(args)
    return args


def _check(args: argparse.Namespace) -> None:
    """Raise UsageError or StageError for invalid option values and contradictory options."""
    if args.output == "shingles":
        line = f"{PROGRAM} {shlex.join(args.folders)}"
        raise UsageError(f"--output shingles: to find pairs of videos, type: {line}")
    if args.output not in OUTPUTS:
        raise UsageError(f"--output: {not_one_of(args.output, OUTPUTS)}")
    check_outputs(args, args.output)
    if args.at_least and args.measure != "common":
        raise UsageError(f"--at-least needs --measure common, but --measure is {args.measure}")
    if args.at_least and args.output not in ("pairs", "links") and not args.report:
        raise UsageError(
            f"--at-least is for shared parts, which --output {args.output} leaves out; use "
            "--output pairs, or leave it out"
        )
    given = {"--against": args.against, "--common": args.common, "--report": args.report}
    if args.output == PRINTS and any(given.values()):
        flag = next(filter(given.get, given))
        raise UsageError(f"{flag} needs pairs, but --output is {PRINTS}; leave one of them out")
    args.values = values_of_paths(args, "videos")
    if args.output == PRINTS and args.values:
        raise UsageError(f"{args.values.flag} cannot be used with --output {PRINTS}; leave it out")
    if args.output != PRINTS and args.answer:
        check_row_file("-o", args.answer)
    for name in args.against:
        check_file_name("--against", name)
        if os.path.isdir(name) or (os.path.isfile(name) and not is_print_file(name)):
            raise UsageError(
                f"--against {name}: was not written by --output prints; make such a file: "
                f"{PROGRAM} FOLDER --output prints -o FILE"
            )
        if not os.path.exists(name):
            raise StageError(f"{name}: no such file")
