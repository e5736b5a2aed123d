"""`sketch`: write a small sample of each record, from which similarity can be estimated."""

import shlex
import sys
from pathlib import Path

from neardup.commands.exact_answers import check_files
from neardup.engines.local.workers import working_folder
from neardup.options import table
from neardup.options.command_parser import VERBOSITY, flags
from neardup.options.settings import Settings, of_fingerprints
from neardup.runtime.atomic_write import half
from neardup.runtime.counters import Counters
from neardup.runtime.program import NOT_FILES, UsageError, check_file_name, job_command
from neardup.runtime.summary import QUIET
from neardup.stages.pairs import parsed
from neardup.tools.sketches import sketch_file, sketch_kinds

OF_PAIRS = {"--scheme", "--exact", "--measure", "--threshold", "--counts", "--own-counts"}
FLAGS = table.OPTIONS.keys() - table.OUTPUT_OPTIONS - table.SCHEME_OPTIONS.keys() - OF_PAIRS
OWN = flags(
    """
    files FILE…     plain or compressed; - is standard input
    --to SKETCHES   the new file of sketches  -h
    --kind KIND     min:S, the S smallest hashes of a set; mod:M, the hashes that M divides, also
                    for containment; signature:L, the smallest hash in each of L random orders
                    [min:64]  -h: min:S, mod:M or signature:L (default: min:64)
    """,
    to={"required": True},
    kind=sketch_kinds.kind_of,
)
DESCRIPTION = """Write a sketch of each record: a small sample from which similarity is estimated.

A million records take at most some 400 MB with min:64, whatever their size.  Sketches of new
records can be compared with those of old records that no longer exist; make them with the same
options.

    python3 -m neardup sketch videos.txt --to videos.sketches
    python3 -m neardup similar videos.sketches > pairs.tsv
"""


def main() -> None:
    parser = table.parser(
        "python3 -m neardup sketch", DESCRIPTION, FLAGS, [*OWN, *VERBOSITY], table.OF_READERS
    )
    args = parser.parse_intermixed_args()
    options = table.Options.of(args)
    if of_fingerprints(options):
        raise UsageError(
            "a fingerprint is a sketch already, of a few bytes; find pairs of them with "
            + shlex.join(job_command())
        )
    settings = Settings.of(options)
    check_file_name("--to", args.to, NOT_FILES)
    sketch_file.check_new(Path(args.to))
    check_files(args.files)
    counters = Counters("sketch", progress="records", verbosity=args.verbosity)
    options_of = {flag: value for flag, value in settings.keys_of.items() if flag in FLAGS}
    options_of |= {"texts of version": probe} if (probe := settings.form.probe()) else {}
    with working_folder():
        batches = parsed(settings.blocks(args.files), settings, counters)
        seed = int(settings.keys_of["--seed"])
        with half("--to", args.to) as path:
            records = sketch_file.write_sketches(path, batches, args.kind, seed, options_of)
            counters.report()
            size = path.stat().st_size
            sketch_file.check_new(Path(args.to))
    if args.verbosity > QUIET:
        text = f"wrote {args.to}: {args.kind.text} of {records:,} records in {size:,} bytes"
        print(text, file=sys.stderr)
