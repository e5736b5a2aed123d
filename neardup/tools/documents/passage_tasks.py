"""`step.py passages`: find passages in steps, in pipes or on clusters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from neardup.engines.local.workers import working_folder
from neardup.engines.pipe import input_blocks, list_of_files
from neardup.options import table
from neardup.options.command_parser import STANDARD_INPUT, VERBOSITY
from neardup.options.settings import Settings, with_input
from neardup.reading import blocks
from neardup.reading.input_files import task_blocks
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, whole, write_all
from neardup.stages.phases import read_filter, reducers_of_job
from neardup.tools.documents import passage_steps
from neardup.tools.documents.passage_steps import PassageOptions, Records
from neardup.tools.documents.passage_texts import RecordTexts, check_words

DEFAULT_LENGTH, MAX_LENGTH, MAX_RECORDS = "50", 1 << 20, 1 << 40
PASSAGE_FLAGS = (*table.READING, "--clean", "--max-line", "--max-bad", "--strict")
PASSAGE_OPTIONS = flags(
    f"""
    --length N       the minimum number of words of a passage [{DEFAULT_LENGTH}]
    --min-records N  only passages that at least N records have [1]
    --places         a line for each place of a passage, not for the first one alone
    """,
    length=whole(1, MAX_LENGTH),
    min_records=whole(1, MAX_RECORDS),
)
(SHARED_OPTION,) = flags("--shared FILE    for windows: the output of the step shared")
PASSAGES = """Find passages in steps, with a sort between them: as a pipe, or on a cluster.

    ./step.py passages hashes FILE… | LC_ALL=C sort | ./step.py passages shared > shared
    ./step.py passages windows --shared shared FILE… | LC_ALL=C sort \\
        | ./step.py passages runs | LC_ALL=C sort \\
        | ./step.py passages lines > passages.tsv

The lines are those of `python3 -m neardup passages FILE…`, in another order.  All steps take the
same options.  The first two files are read twice.
"""
STEPS = {
    "hashes": "records → hashes of all runs of words, in blocks",
    "shared": "sorted hashes → a filter of those that occur twice",
    "windows": "records → the runs that may occur twice, and the texts around them",
    "runs": "sorted runs → where those that occur twice are first, or all their places",
    "lines": "sorted places → passages",
}
OF_RECORDS = ("hashes", "windows")


def passages() -> None:
    """Run `step.py passages`; the first argument names a step of the search for passages."""
    names = "\n".join(f"    {name:9} {about}" for name, about in STEPS.items())
    description = f"{PASSAGES}\n{names}\n"
    names_of = {*PASSAGE_FLAGS, "--input-files"}
    parser = table.parser("step.py passages", description, names_of, (), table.OF_READERS)
    parser.usage = "step.py passages STEP [OPTIONS] [FILE ...]"
    parser.add_argument("step", choices=STEPS, metavar="STEP", help=argparse.SUPPRESS)
    parser.add(STANDARD_INPUT, *PASSAGE_OPTIONS, SHARED_OPTION, *VERBOSITY)
    args = parser.parse_intermixed_args()
    asked = table.Options.of(args)
    if args.step not in OF_RECORDS:  # they need no more of the options of records
        asked = table.Options(input="text", clean=asked.clean)
    settings = Settings.of(with_input(asked))
    options = PassageOptions(args.length, args.min_records, settings.form.clean)
    lines = blocks.lines_of_stage(sys.stdin.buffer)
    with working_folder():
        if args.step in OF_RECORDS:
            check_words(settings.form)
            of_records(args, settings, options)
            return
        if args.files:
            raise UsageError(f"{args.step} reads standard input, the sorted lines of another step")
        steps: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
            "shared": passage_steps.shared,
            "runs": partial(passage_steps.runs, least=options.least, every=args.places),
            "lines": partial(passage_steps.passage_lines, options=options),
        }
        write_all(steps[args.step](lines))


def of_records(args: argparse.Namespace, settings: Settings, options: PassageOptions) -> None:
    """Run a step that reads records: files, standard input, or a task's part of the input."""
    counters = Counters(f"passages {args.step}", progress="records", verbosity=args.verbosity)
    texts = RecordTexts(settings, (), counters, 1)
    records: Records
    if blocks.in_task():
        settings.form.check_task()
        names = list_of_files(settings.input_files)
        records = texts.of_blocks(task_blocks(names, settings.max_line, settings.pieces))
    else:
        records = texts.of_blocks(input_blocks(None, args.files, settings))
    if args.step == "hashes":
        write_all(passage_steps.hashes(records, options, reducers_of_job()))
    else:
        if not args.shared:
            raise UsageError("needs --shared FILE, the output of `./step.py passages shared`")
        known = read_filter(args.shared, options.digest, "--shared")
        write_all(passage_steps.windows(records, options, known))
    counters.report()
