"""`images`: find similar pictures in folders, by 256-bit fingerprints of their content.

folders ── files ── fingerprints ── lines, the one to keep first ── `neardup run --exact`
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from neardup.engines.local import run
from neardup.engines.local.plan import MOST_JOBS
from neardup.engines.local.workers import Progress, working_folder
from neardup.evaluation.exact_answers import add_option
from neardup.images import pictures
from neardup.images.cache import PICTURES, ResultCache, Store, default_file
from neardup.images.folder_walk import CLOSED_FOLDER, FoundFile, Walk, path_id
from neardup.images.perceptual_hash import BITS
from neardup.images.picture_hashes import (
    Fingerprint,
    Variants,
    fingerprints,
    in_order,
    keep_rules,
)
from neardup.images.results import LONGEST_LIMIT, Failure, Outcome
from neardup.images.tally import FLAT, Rules, Tally
from neardup.options.command_parser import CommandParser
from neardup.options.table import integer, read
from neardup.runtime.program import (
    NOT_FILES,
    UsageError,
    check_file_name,
    cores,
    not_one_of,
    write_all,
    write_to,
)
from neardup.runtime.summary import QUIET, VERBOSE, many
from neardup.verification import OUTPUTS

PROGRAM = "python3 -m neardup images"
NAME = "neardup images"
LINES = "fingerprints"
KEEP_HELP = (
    "which of several similar pictures is kept: max:pixels, max:bytes, min:bytes, max:date, "
    "min:date; or several rules with commas, each breaking ties of those before it"
)
OUTPUT_HELP = (
    f"{', '.join(OUTPUTS)}: as with `neardup run`; kept: the paths of the kept pictures; clusters: "
    "first path of the cluster in byte order, tab, path; "
    f"{LINES}: the fingerprints, one line per picture"
)
READ_AT_ONCE = 1 << 20
DESCRIPTION = """Find similar pictures: copies in other sizes or formats, or compressed again.

Pictures are compared by content, not by name.  Each gets a 256-bit fingerprint; those of
similar pictures differ in few bits.  Files that cannot be read are counted, with the reason.
Pillow is needed: pip install 'neardup[images]'; for HEIC also: pip install pillow-heif.

    python3 -m neardup images photos > pairs.tsv
    python3 -m neardup images --mirror --rotate --crops --output removed photos old/photos

A line has the paths of two pictures, the share of equal bits, and the number of bits that differ.
In paths, blanks, % and bytes that are not UTF-8 are written as %XX.
"""
SHORT = {
    "--mirror": "also find mirrored pictures",
    "--rotate": "also find pictures turned by 90, 180 or 270 degrees",
    "--crops": "also find crops: the central 95 %% or 90 %% of a picture",
    "--output": "pairs, links, kept, removed, clusters or fingerprints (default: pairs)",
    "--keep": "which of several similar pictures is kept (default: max:pixels,max:bytes)",
    "--jobs": "number of processes (default: one per core)",
    "--no-cache": "do not read or write the cache",
    "-v": "print all counts at the end",
}


def main() -> None:
    args = _command_line()
    variants = Variants(args.mirror, args.rotate, args.crops)
    rules = Rules(NAME, "picture", args.strict, args.verbosity)
    quality = integer("--quality", args.quality, 0, 100)
    jobs = cores() if args.jobs is None else integer("--jobs", args.jobs, 1, MOST_JOBS)
    seconds = integer("--time-limit", args.time_limit, 1, LONGEST_LIMIT)
    keep = read("--keep", keep_rules, args.keep)
    integer("--distance", args.distance, 0, BITS // 2)
    pictures.require_pillow()
    with working_folder() as folder, ExitStack() as stack:
        named = args.cache is not None
        cache = ResultCache(PICTURES, cache_file(args, PICTURES), variants.kind(), named)
        stack.callback(cache.close)
        progress = Progress(rules.program, ["pictures"], 1)
        tally = Tally(rules, progress.clear)
        walk = Walk(skip=tally.leave_out)
        files = list(walk.files(args.folders))
        for path, why in walk.closed:
            tally.fail(path_id(path), Failure(CLOSED_FOLDER, why))
        with progress.shown(args.verbosity):
            found = fingerprints(
                files,
                variants,
                cache,
                jobs,
                seconds,
                begin=lambda missing: progress.stage("pictures", len(missing)),
            )
            kept = _kept(progress.counted(0, found, lambda _: 1), tally, quality)
            lines = folder / "fingerprints"
            with lines.open("wb") as sink:
                write_to(sink, in_order(kept, keep))
        if lines.stat().st_size:
            find(lines, args)
        tally.report(cache.note)


def find(lines: Path, args: argparse.Namespace) -> None:
    """Print the answer for a file of fingerprint lines, which are in the order of --keep."""
    if args.output == LINES:
        with lines.open("rb") as source:
            write_all(iter(lambda: source.read(READ_AT_ONCE), b""))
        return
    words = ["--input=fingerprints", "--exact", f"--distance={args.distance}"]
    words += [f"--output={args.output}", *([] if args.jobs is None else [f"--jobs={args.jobs}"])]
    loud = {QUIET: ["-q"], VERBOSE: ["-v"]}.get(args.verbosity, [])
    if args.output not in ("pairs", "kept"):
        run.main(NAME, PROGRAM, [*words, *loud, str(lines)])
        return
    kept, answer = args.output == "kept", lines.with_name(args.output)
    loud = ["-q"] if kept or not loud else loud
    run.main(NAME, PROGRAM, [*words, *loud, "-o", str(answer), str(lines)])
    with answer.open("rb") as found:
        write_all(map(_kept_path if kept else with_bits, found))
    if args.verbosity > QUIET:
        pictures, rows = many(_lines_in(lines), "pictures"), _lines_in(answer)
        said = (
            f"{many(rows, 'pictures')} kept" if kept else f"{many(rows, 'pairs')} among {pictures}"
        )
        print(said, file=sys.stderr)


def _lines_in(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _kept_path(line: bytes) -> bytes:
    return line.split()[0] + b"\n"


def with_bits(line: bytes) -> bytes:
    r"""Return a pair line with one more field: the number of bits in which the fingerprints differ.

    >>> with_bits(b"a.png\tb.png\t0.976562\n")
    b'a.png\tb.png\t0.976562\t6\n'
    """
    share = float(line.rpartition(b"\t")[2])
    return b"%b\t%d\n" % (line.rstrip(b"\n"), round(BITS * (1 - share)))


def _command_line() -> argparse.Namespace:
    parser = CommandParser(PROGRAM, DESCRIPTION, SHORT)
    about = "a folder (read with its subfolders), or a picture"
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help=about)
    for flag, about in (
        ("--mirror", "also find mirrored pictures"),
        ("--rotate", "also find pictures turned by 90, 180 or 270 degrees"),
        ("--crops", "also find crops: the central 95 %% or 90 %% of a picture"),
        ("--strict", "stop at the first file that cannot be read"),
        ("--no-cache", "do not read or write the cache"),
    ):
        parser.add_argument(flag, action="store_true", help=about)
    for flag, metavar, default, about in (
        ("--quality", "N", "50", "ignore pictures with less detail than N, 0 to 100"),
        ("--time-limit", "SECONDS", "60", "give up on a file after this time"),
        ("--keep", "RULES", "max:pixels,max:bytes", KEEP_HELP),
        ("--distance", "D", "31", "the maximum number of bits, of 256, in which a pair differs"),
        ("--output", "KIND", "pairs", OUTPUT_HELP),
    ):
        add_option(parser, flag, metavar, default, about)
    parser.add_argument("--jobs", metavar="N", help="number of processes (default: one per core)")
    parser.add_argument(
        "--cache",
        metavar="FILE",
        help="fingerprints of earlier runs (default: ~/.cache/neardup/images.sqlite)",
    )
    parser.add_verbosity()
    args = parser.parse_intermixed_args()
    if args.output not in (LINES, *OUTPUTS):
        raise UsageError(f"--output: {not_one_of(args.output, (LINES, *OUTPUTS))}")
    return args


def cache_file(args: argparse.Namespace, store: Store) -> "Path | None":
    """Return the path of the cache that the options ask for, or None with --no-cache."""
    if args.no_cache and args.cache is not None:
        raise UsageError("--no-cache and --cache exclude each other; give one of them")
    check_file_name("--cache", args.cache, NOT_FILES)
    if args.no_cache:
        return None
    return default_file(store) if args.cache is None else Path(args.cache)


def _kept(
    outcomes: Iterator[Outcome], tally: Tally, quality: int
) -> Iterator[tuple[FoundFile, Fingerprint]]:
    """Yield (file, fingerprint) for pictures with enough detail; count all outcomes in `tally`."""
    for outcome in outcomes:
        found = tally.kept(outcome)
        if found and found.quality < quality:
            tally.leave_out(FLAT, outcome.file.path)
        elif found:
            yield outcome.file, found
