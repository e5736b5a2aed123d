"""`index`: store the keys and shingles of old records, so that runs need not read their files.

It is made or extended on all cores, with the first steps of a local run.

files ─┬─ mapper 1 ─┬─ keys ─── sort 1 ─┬─ segment, under a hidden name
       └─ mapper 2 ─┴─ records ─────────┘      └─ its own name ── manifest
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neardup.engines.local import plan as plans
from neardup.engines.local.flow import write_postings
from neardup.engines.local.plan import Plan
from neardup.engines.local.workers import Workers, check_read_once, total_size, working_folder
from neardup.lines.count_lines import format_all
from neardup.options import table
from neardup.options.command_parser import SHARED, plain_names
from neardup.options.settings import Settings, counts_first, settings_before_counts, with_input
from neardup.reading.blocks import InputFile, check_inputs, first_place
from neardup.reading.compressed import opened
from neardup.reading.input_files import Unchanged, contents_of, is_index
from neardup.runtime.counters import Counters, reports_in
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, interrupted
from neardup.runtime.summary import QUIET, judged, many, print_summary, total
from neardup.sets.ragged import Batch
from neardup.stages import index_manifest, segment
from neardup.stages.external_group import ROW_BYTES, in_order
from neardup.stages.token_counting import settings_with_counts, with_cost_printed

NAME = "neardup index"
COPIED = 1 << 20  # bytes; whole rows
ONE_PER_CORE = "number of processes; fewer if the input is small (default: one per core)"
OWN = flags(
    """
    files FILE…     plain or compressed; - is standard input
    --to FOLDER     the index: a new folder, or with --add, --remove and --compact an index  -h
    --add           add to an index that was made with the same options  -h
    --remove        remove the records whose ids FILE lists, one a line, from an index; all of them
                    or, if the index lacks one of the ids, none  -h: remove the ids in FILE
    --compact       write an index again without removed records; the next change of the index
                    deletes the old segments, so that runs that read them can end
    """,
    files={"nargs": "*"},
    to={"required": True},
)
DESCRIPTION = """Make an index of old records, against which later runs compare new records.

It holds the keys and shingles of the old records and replaces their files.  A run reads only the
parts that new records need, and takes its options from the index:

    python3 -m neardup index old.txt --to old.index
    ./run_local.sh --against old.index new.txt > pairs.tsv
    python3 -m neardup index new.txt --to old.index --add
    python3 -m neardup index ids.txt --to old.index --remove
"""


def main() -> None:
    names = [flag for flag in table.OPTIONS if flag not in index_manifest.OF_RUNS]
    parser = table.parser("python3 -m neardup index", DESCRIPTION, names, OWN)
    parser.add_shared("--jobs", SHARED["--jobs"]._replace(help=ONE_PER_CORE))
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    if args.to == "":
        raise UsageError("--to: expected the name of a folder, got ''")
    if not args.files and (args.remove or not args.compact):
        ids = ", with an id on each line" if args.remove else ""
        raise UsageError(f"the following arguments are required: FILE{ids}; - is standard input")
    if args.remove or args.compact:
        change(args)
    else:
        build(args)


def change(args: argparse.Namespace) -> None:
    """Remove records from an index, or free their space; UsageError for other options."""
    if given := ["--add"] * args.add + table.Options.of(args).given_arguments():
        raise UsageError(f"{given[0]} cannot be used with --remove and --compact; leave it out")
    if args.files and not args.remove:
        raise UsageError("--compact reads no FILE; leave it out, or add --remove for a FILE of ids")
    index, ids = Path(args.to), set[bytes]()
    if not is_index(index):
        raise UsageError(f"--to {index}: is not an index; name one")
    check_inputs(args.files)
    for name in args.files:
        with opened(name, name) as file:
            ids.update(line.rstrip(b"\r\n") for line in file)
    with interrupted([args.to]), index_manifest.locked(index):
        count = index_manifest.remove(index, ids - {b""})
        if args.compact:
            index_manifest.compact(index)
        manifest = index_manifest.Manifest.of(index)
    if args.verbosity > QUIET:
        print(f"{many(count, 'records')} removed; {_summary(args.to, manifest)}", file=sys.stderr)


def _summary(name: str, manifest: index_manifest.Manifest) -> str:
    held = many(len(manifest.segments), "segments")
    return f"index {name}: {many(manifest.records, 'records')} in {held}"


def build(args: argparse.Namespace) -> None:
    """Make the index that --to names, or add to it; UsageError for invalid options."""
    options = table.Options.of(args)
    if args.add and is_index(args.to):
        options, _ = index_manifest.take_options(options, Path(args.to), args.files)
    index_manifest.check_counts(options)
    settings = with_cost_printed(settings_before_counts(options), options.verbosity)
    options = with_input(options)
    check_inputs(args.files)
    check_read_once(args.files)
    unchanged = Unchanged(args.files)
    with (
        interrupted([args.to]),
        writing(Path(args.to), args.add) as index,
        working_folder() as folder,
    ):
        if args.add:
            manifest = index_manifest.opened(index, options, settings)
        else:
            manifest = index_manifest.Manifest({}, "", given=index_manifest.given_options(options))
        index_manifest.sweep_unfinished(index, manifest)
        files = [
            InputFile(name, name, first_place(manifest.files + i, new=False))
            for i, name in enumerate(args.files)
        ]
        steps = [*["tokens"] * counts_first(options), "count", "sort", "write"]
        named = [name for about in manifest.segments for name in about["files"]]
        more: dict[str, Any] = {"adds_to": ["-", *named], "unchanged": unchanged}
        plan = Plan.of(NAME, steps, settings, files, folder, args.jobs, **more)
        settings, entry = add_segment(plan, manifest.next_name(), index, options, args.add)
        if not args.add:
            manifest = replace(
                manifest,
                options=dict(settings.keys_of),
                probe=settings.probe(),
                counted=options.counts is not None or counts_first(options),
            )
        manifest.segments.append(entry)
        manifest.write(index)
        line = _summary(args.to, manifest)
        print_summary(reports_in(str(folder)), args.verbosity, whole=False, more=[line])


@contextmanager
def writing(index: Path, add: bool) -> Iterator[Path]:
    """Context manager: lock the index against other writers; remove its folder on exit if empty."""
    if index.exists() and not index.is_dir():
        raise UsageError(f"--to {index}: is a file; name a folder")
    if add and not is_index(index):
        raise UsageError(
            f"--to {index}: is not an index, as --add needs; name one, or leave out --add to "
            "make one"
        )
    index.mkdir(exist_ok=True)
    with index_manifest.locked(index):
        try:
            if is_index(index) and not add:
                raise UsageError(
                    f"--to {index}: already exists; add to it with --add, or name another folder"
                )
            yield index
        finally:
            if not any(index.iterdir()):
                index.rmdir()


def add_segment(
    plan: Plan, name: str, index: Path, options: table.Options, add: bool
) -> tuple[Settings, dict[str, Any]]:
    """Write a segment of an index; return the settings with token counts, and a manifest entry."""
    with index_manifest.new_segment(index, name) as folder:
        settings, entry = _segment(plan, folder, options, add)
        plan.unchanged.check()
    names = [file.name for file in plan.files]
    paths = [name if name == "-" else os.path.abspath(name) for name in names]
    contents = [contents_of(file.path) for file in plan.files]
    return settings, {"name": name, "files": paths, index_manifest.CONTENTS: contents, **entry}


def _segment(
    plan: Plan, folder: Path, options: table.Options, add: bool
) -> tuple[Settings, dict[str, Any]]:
    with (
        plan.progress.shown(options.verbosity),
        Workers(NAME, plan.progress.clear, str(plan.folder)) as workers,
    ):
        source: plans.Source = partial(plans.parsed_records, keep=False)
        if counts_first(options):
            # `own` is False: a token without a count may be in records that are added later.
            counts = replace(plans.token_counts(workers, plan), own=False)
            segment.write_checked(folder / segment.COUNTS, format_all(counts))
            plan = plan._replace(settings=settings_with_counts(options, counts))
            source = plans.kept_records
        elif options.counts is not None and not add:
            segment.write_checked(folder / segment.COUNTS, [Path(options.counts).read_bytes()])
        write_postings(workers, plan, partial(indexed, source))
        reports = reports_in(str(plan.folder))
        try:
            judged(total(report["counts"] for report in reports), plan.settings.max_bad)
        except StageError:  # an input with so many bad lines is not indexed
            print_summary(reports, options.verbosity, whole=False)
            raise
        records = [path.stat().st_size // 16 for path in plan.paths("record_sketches")]
        if sum(records) >= segment.MAX_RECORDS:
            raise StageError(f"more than {segment.MAX_RECORDS:,} records; make several indexes")
        parts = range(plan.partitions)
        partitions = [total_size(plan.paths("keys", part)) // ROW_BYTES for part in parts]
        plan.progress.stage("sort", sum(partitions))
        before = np.cumsum([0, *records[:-1]]).astype(np.uint64)
        plans.everywhere(workers, plan, "sort", lambda plan, k: sort_keys(plan, k, before))
        plan.progress.stage("write", 0)
        contents = {name: _pieces(plan, name) for name in segment.FILES}
        return plan.settings, segment.write(folder, contents, sum(records), partitions)


def indexed(source: plans.Source, plan: Plan, k: int, counters: Counters) -> Iterator[Batch]:
    """Yield mapper k's batches after writing their records to temporary files of the segment."""
    end = 0
    with open(plan.path("lines", k), "wb") as records, open(plan.path("rows", k), "wb") as rows:
        for batch in source(plan, k, counters):
            lines = segment.record_lines(batch)
            records.write(b"".join(lines))
            ends = end + np.cumsum([len(line) for line in lines])
            rows.write(np.column_stack((batch.places, ends.astype(np.uint64))).tobytes())
            end = int(ends[-1])
            yield batch


def sort_keys(plan: Plan, k: int, before: np.ndarray) -> None:
    """Write worker k's keys in order, and for each key the number of its record in the segment.

    before: uint64 (N,), the number of records before those of each mapper.
    """
    jobs = np.uint64(plan.jobs)
    for part in range(k, plan.partitions, plan.jobs):
        sources, done = plan.paths("keys", part), 0
        targets = [plan.path(kind, part) for kind in ("keys", "holders", "fences")]
        with ExitStack() as stack:
            keys, holders, fences = (stack.enter_context(open(path, "wb")) for path in targets)
            for rows in in_order(sources):
                key, record = rows[:, 0].astype(segment.KEY), rows[:, 1]
                keys.write(key.tobytes())
                number = record // jobs + before[(record % jobs).astype(np.int64)]
                holders.write(number.astype(segment.HOLDER).tobytes())
                fences.write(key[-done % segment.FENCE :: segment.FENCE].tobytes())
                done += len(rows)
                plan.progress.add(k, len(rows))
        for path in sources:
            path.unlink()


def _pieces(plan: Plan, name: str) -> Iterator[bytes]:
    """Yield the content of one of the segment's files."""
    if name in ("keys", "holders", "fences"):
        paths = [plan.path(name, part) for part in range(plan.partitions)]
    else:
        paths = plan.paths("lines" if name == "records" else name)
    before = 0
    for k, path in enumerate(paths):
        with open(path, "rb") as file:
            while piece := file.read(COPIED):
                if name == "rows":  # places, and where lines end in the file of all mappers' lines
                    rows = np.frombuffer(piece, np.uint64).reshape(-1, 2)
                    piece = (rows + np.array([0, before], np.uint64)).tobytes()
                yield piece
        if name == "rows":
            before += plan.path("lines", k).stat().st_size
