"""`why`: explain why two records are a pair or not: what they share, and which keys both have."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from neardup.commands.truth import options_of, refuse_others
from neardup.options import table
from neardup.options.settings import (
    Settings,
    counts_first,
    names_no_scheme,
    settings_before_counts,
)
from neardup.options.table import OPTIONS, OUTPUT_OPTIONS, Options
from neardup.reading.input_files import check_files, is_index
from neardup.runtime.counters import Counters, RunFile
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, check_file_name, shown
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
FREE = {"--strict", "--max-bad"}  # may differ from the run of --run


def main() -> None:
    args = _command_line()
    ids = os.fsencode(args.a), os.fsencode(args.b)
    if ids[0] == ids[1]:
        raise UsageError(
            f"A and B are both {shown(ids[0])}: an id is never paired with itself; name two "
            "different ids"
        )
    records, texts, settings = _read(args, ids)
    for name, text in explanation.explained(records, ids, settings, args.measure, texts):
        print(f"{name:{pair_elements.WIDTH}}{text}")


def _read(
    args: argparse.Namespace, ids: tuple[bytes, bytes]
) -> tuple[Batch, pair_elements.Texts, Settings]:
    """Return the records and texts of two ids, and the settings; StageError if an id is missing."""
    options = Options.of(args)
    counting = counts_first(options)
    settings = settings_before_counts(options)
    check_files(args.files)
    counter, choice = TokenCounter(), Choice()
    counters = Counters("why", progress="records")
    held: list[Batch] = []
    texts: pair_elements.Texts = {}
    blocks = settings.blocks(args.files, others=bool(args.indexes))
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
            raise StageError(_missing(id_, counters.counts, args.run, args.indexes))
    if counting:
        settings = Settings.of(options, counter.counts())
    elif names_no_scheme(options) and choice.is_exact(settings):
        settings = Settings.of(replace(options, exact=True))
    return records, texts, settings


def _missing(id_: bytes, counts: Mapping[str, int], run: str | None, indexes: Sequence[str]) -> str:
    """Return the error message for an id that no record has.

    >>> print(_missing(b"a", {"records": 2, "bad lines: no shingles": 5}, None, []).split(";")[0])
    none of 2 records has the id 'a' (bad lines: 5)
    """
    bad = sum(count for name, count in counts.items() if name.startswith(BAD))
    read = f"none of {counts['records']:,} records has the id {shown(id_)} (bad lines: {bad:,})"
    if indexes:
        return f"{read}; an index has no records to show: name the files of {indexes[0]}"
    if run is not None:
        return f"{read}; have the files changed since the run of {run}?"
    return f"{read}; give the run's options, such as --input, or --run PAIRS if it had -o PAIRS"


def _command_line() -> argparse.Namespace:
    """Parse the command line; --run adds the options and files of an earlier run.

    `indexes` are those of the run's --against, which have no records to show.
    """
    names = OPTIONS.keys() - OUTPUT_OPTIONS | {"--not-pairs"}
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
    args, indexes = parser.parse_intermixed_args(), list[str]()
    if args.run is not None:
        check_file_name("--run", args.run)
        run = RunFile.of(args.run)
        options = options_of(run, args.run)
        for flag in filter(options.value, ("--within", "--across")):
            raise UsageError(
                f"--run {args.run}: that run had {flag} {options.value(flag)}, which leaves out "
                "similar pairs; to see whether two records are similar, name FILE A B without --run"
            )
        given = [word for word in options.arguments() if word.partition("=")[0] in names]
        refuse_others(Options.of(args), given, f"--run {args.run}", FREE)
        args = parser.parse_intermixed_args([*given, *sys.argv[1:]])
        indexes = list(filter(is_index, options.against))
        if not args.files:
            args.files = [name for name in options.against if name not in indexes] + run.files
            _check_there(args.files, args.run)
    args.indexes = indexes
    if not args.files:
        parser.error("the following arguments are required: FILE")
    return args


def _check_there(files: Sequence[str], run: str) -> None:
    """Raise StageError if an input of the run was standard input or no longer exists."""
    for file in files:
        if not os.path.isfile(file):
            gone = "was standard input" if file == "-" else "no longer exists"
            raise StageError(
                f"{file}: {gone}, for --run {run}; name the file that has its records: "
                f"python3 -m neardup why --run {run} FILE A B"
            )
