"""`find`: look up the records of an index that are similar to each record of a file."""

import sys
from collections.abc import Iterator
from pathlib import Path

from neardup.engines.local.answer_file import file_answer
from neardup.lines.answer_lines import PAIRS
from neardup.options import table
from neardup.options.command_parser import plain_names
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.input_files import check_files, is_index
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, whole
from neardup.runtime.summary import QUIET, VERBOSE, describe, judged, many
from neardup.similarity.measures import fraction_text
from neardup.stages import index_manifest
from neardup.stages.lookup import similar_to_each
from neardup.stages.pairs import parsed, portions, with_keys

FLAGS = (*table.READING, "--fingerprint", "--max-line", "--max-bad", "--strict")
OWN = flags(
    """
    index INDEX     an index made by `neardup index`
    files FILE…     plain or compressed; - is stdin
    --top N         at most N similar records for each record of FILE (default: all)  -h
    --threshold T   the minimum similarity (default: that of the index)  -h
    """,
    top=whole(1, 1_000_000),
)
DESCRIPTION = """Find the records of an index that are similar to each record of a file.

    python3 -m neardup index old.txt --to old.index
    python3 -m neardup find old.index new.txt --top 5 > similar.tsv

A line has the id of a record of FILE, the id of a similar record of the index, and their
similarity; for each record of FILE, the most similar come first.  Records at or above the index's
threshold are found with the index's recall; below it, only some are found.  If the index is for
--measure containment, similarity is the share of the record of FILE that is in the other one; for
tversky:A,B it is that of the record of FILE to the other one.
"""


def main() -> None:
    parser = table.parser("python3 -m neardup find", DESCRIPTION, FLAGS, OWN, table.OF_READERS)
    parser.add_shared("-o")
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    if args.index == "":
        raise UsageError("INDEX: expected the name of a folder, got ''")
    index = Path(args.index)
    if not index.exists():
        raise StageError(f"{index}: no such file")
    if not is_index(index):
        raise StageError(
            f"{index}: is not an index; name one, or make one in a new folder: neardup index OLD "
            "--to FOLDER"
        )
    check_files(args.files)
    wanted, args.threshold = args.threshold, None
    options, _ = index_manifest.take_options(Options.of(args), index, args.files)
    settings = Settings.of(options)
    manifest = index_manifest.opened(index, options, settings)
    measure = index_manifest.lookup_measure(settings, wanted)
    segments = manifest.segments_at(index, 0)
    counters = Counters("find", verbosity=args.verbosity)

    def lines() -> Iterator[bytes]:
        batches = portions(parsed(settings.blocks(args.files), settings, counters), settings)
        for batch, keys in with_keys(batches, settings, counters):
            found = similar_to_each(segments, batch, keys, measure, args.top)
            for id_, similar in zip(batch.ids, found):
                for other, value in similar:
                    counters.add("similar", 1)
                    yield b"%b\t%b\t%b\n" % (id_, other, fraction_text(value))

    with file_answer("-o", args.answer, [str(index), *args.files], PAIRS) as answer:
        answer.write(lines())
    own = counters.as_dict()
    counts = own["counts"]
    if args.verbosity > QUIET:
        records, found = counts["records"], counts.get("similar", 0)
        said = f"{many(found, 'matches')} for {many(records, 'records')}, in an index of "
        print(f"{said}{many(manifest.records, 'records')}", file=sys.stderr)
    if args.verbosity >= VERBOSE:
        print(describe([own], VERBOSE), file=sys.stderr)
    judged(counts, settings.max_bad)
