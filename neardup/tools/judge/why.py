"""`why`: explain why two records are a pair or not: what they share, and which keys both have."""

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neardup.commands import exact_answers
from neardup.options import table
from neardup.options.command_parser import flags
from neardup.options.settings import (
    Settings,
    counts_first,
    names_no_scheme,
    settings_before_counts,
)
from neardup.options.table import OPTIONS, OUTPUT_OPTIONS, Options
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError, shown
from neardup.runtime.summary import BAD, judged
from neardup.sets.ragged import Batch
from neardup.sets.token_counts import TokenCounter
from neardup.stages.pairs import parsed
from neardup.stages.scheme_choice import Choice
from neardup.tools.judge import explanation, pair_elements

DESCRIPTION = """Explain what two records share, how similar they are, and whether they share a key.

Give the options of the job, so that the keys are the same; --run takes them from the file
that a run writes beside its answer.  For texts, shingles are shown as words, and the difference
word by word.  If a scheme depends on how rare tokens are, all tokens of FILE are counted first,
unless --counts is given.

    python3 -m neardup why --threshold 0.8 videos.txt VIDEO_1 VIDEO_3
    python3 -m neardup why --run pairs.tsv VIDEO_1 VIDEO_3
"""


def main() -> None:
    args, run_of = _command_line()
    ids = os.fsencode(args.a), os.fsencode(args.b)
    if ids[0] == ids[1]:
        raise UsageError(
            f"A and B are both {shown(ids[0])}: an id is never paired with itself; name two "
            "different ids"
        )
    records, texts, settings = _read(args, run_of, ids)
    for name, text in explanation.explained(records, ids, settings, args.measure, texts):
        print(f"{name:{pair_elements.WIDTH}}{text}")


def _read(
    args: argparse.Namespace, run_of: "exact_answers.AskedRun | None", ids: tuple[bytes, bytes]
) -> tuple[Batch, pair_elements.Texts, Settings]:
    """Return the records and texts of two ids, and the settings; StageError if an id is missing."""
    options = Options.of(args)
    counting = counts_first(options)
    settings = settings_before_counts(options)
    exact_answers.check_files(args.files)
    counter, choice = TokenCounter(), Choice()
    counters = Counters("why", progress="records")
    held: list[Batch] = []
    texts: pair_elements.Texts = {}
    blocks = settings.blocks(args.files, others=bool(run_of and run_of.indexes))
    if settings.form.shingle is not None:
        blocks = pair_elements.noting(blocks, settings.form, ids, texts)
    for batch in parsed(blocks, settings, counters):
        if counting:
            counter.add(batch.sets)
        choice.add(batch.sets)
        mine = [i for i, id_ in enumerate(batch.ids) if id_ in ids]
        held.append(batch.take(np.array(mine, dtype=np.int64)))
    records = Batch.end_to_end(held)
    judged(counters.as_dict()["counts"], settings.max_bad)
    for id_ in ids:
        if id_ not in records.ids:
            raise StageError(_missing(id_, counters.counts, run_of))
    if counting:
        settings = Settings.of(options, counter.counts())
    elif names_no_scheme(options) and choice.is_exact(settings):
        settings = Settings.of(replace(options, exact=True))
    return records, texts, settings


def _missing(id_: bytes, counts: Mapping[str, int], run: "exact_answers.AskedRun | None") -> str:
    """Return the error message for an id that no record has.

    >>> print(_missing(b"a", {"records": 2, "bad lines: no shingles": 5}, None).partition(";")[0])
    none of 2 records has the id 'a' (bad lines: 5)
    """
    bad = sum(count for name, count in counts.items() if name.startswith(BAD))
    read = f"none of {counts['records']:,} records has the id {shown(id_)} (bad lines: {bad:,})"
    if run and run.indexes:
        return f"{read}; an index has no records to show: name the files of {run.indexes[0]}"
    if run:
        return f"{read}; have the files changed since the run of {run.name}?"
    return f"{read}; give the run's options, such as --input, or --run PAIRS if it had -o PAIRS"


def _command_line() -> "tuple[argparse.Namespace, exact_answers.AskedRun | None]":
    """Parse the command line; --run adds the options and files of an earlier run."""
    names = OPTIONS.keys() - OUTPUT_OPTIONS
    own = flags(
        """
        --run PAIRS     the file that run_local.sh -o PAIRS wrote: options and files are taken from
                        .PAIRS.neardup.json beside it; name FILE if the files have moved
                        -h: the file that run_local.sh -o PAIRS wrote; options and files are those
                        of that run
        files FILE      plain or compressed; - is standard input
        a A             an id
        b B             another id
        """,
        files={"nargs": "*"},
    )
    parser = table.parser("python3 -m neardup why", DESCRIPTION, names, own)
    args, run_of = parser.parse_intermixed_args(), None
    if args.run is not None:
        run_of = exact_answers.AskedRun.of(args.run)
        asked, source = run_of.arguments, f"--run {args.run}"
        exact_answers.refuse_others(Options.of(args), asked, source, exact_answers.FREE)
        args = parser.parse_intermixed_args([*asked, *sys.argv[1:]])
        if not args.files:
            run_of.check_files()
            args.files = run_of.files
    if not args.files:
        parser.error("the following arguments are required: FILE")
    return args, run_of
