"""`truth`: find all similar pairs exactly, with all records in memory.

Other commands that compare records exactly use its options, pair lines and table rows.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Callable

from neardup.joins import JOINS, WEIGHTED_JOINS, inverted_index
from neardup.joins.bitmap_joins import join_by
from neardup.joins.near_bits import each_once, near_records
from neardup.joins.weighted_joins import weighted_nested_loop
from neardup.options import table
from neardup.options.command_parser import FILES, VERBOSITY, CommandParser
from neardup.options.settings import IDF_WITHIN, Settings, of_fingerprints
from neardup.options.table import Options
from neardup.reading.field_values import ACROSS, WITHIN
from neardup.reading.input_files import check_files
from neardup.runtime.counters import Counters, RunFile, run_file_name
from neardup.runtime.flags import Flag, flags, read
from neardup.runtime.program import StageError, UsageError, not_one_of, one_of, write_all
from neardup.runtime.summary import QUIET
from neardup.schemes.fingerprints import Hamming
from neardup.schemes.scheme import KINDS, ONE, WEIGHTS, Weighing
from neardup.sets.bit_vectors import Prints
from neardup.sets.ragged import Batch, Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity import measures
from neardup.similarity.measures import MEASURES, Measure, SetMeasure
from neardup.similarity.weighted_measures import TokenWeights, weighted_measure
from neardup.stages.pairs import dedup_pairs, parsed
from neardup.stages.sampled_pairs import Comparison

MILLION = 10**6
WEIGHTED = ("jaccard", "dice", "cosine")
PRINTS = ("--fingerprint", "--bits", "--distance")
SHARED = ("--threshold", *table.READING, "--clean", "--shingle", *PRINTS)
EXACT = (*SHARED, WITHIN, ACROSS, "--not-pairs", "--max-line", "--max-bad", "--strict")


def exact_parser(
    name: str,
    description: str,
    own: Iterable[Flag],
    names: Collection[str] = EXACT,
    weights: bool = True,
) -> CommandParser:
    """Return a command's parser for options `names`, --measure, maybe --weights, and its own."""
    measure, weight = flags(
        f"""
        --measure NAME  how similar two records are: {", ".join(MEASURES)}; hamming for fingerprints
                        (default: jaccard)
        --weights KIND  weight of a token, as in the job: {", ".join(KINDS)}; idf and tfidf count
                        the tokens of FILE (default: {ONE})
        """
    )
    own = [measure, *[weight] * weights, *own]
    return table.parser(f"python3 -m neardup {name}", description, names, own)


def exact_settings(options: table.Options) -> tuple[Settings, SetMeasure | Hamming]:
    """Return settings with an arbitrary scheme, and the exact measure for fingerprints or sets.

    The measure does not use weights.  UsageError for any invalid option, also in --weights.
    """
    if of_fingerprints(options):
        settings = Settings.of(replace(options, exact=True))
        assert isinstance(settings.measure, Hamming)
        return settings, settings.measure
    name = options.measure or "jaccard"
    if measures.usage_of(name) not in MEASURES:
        raise UsageError(f"--measure: {not_one_of(name, MEASURES)}")
    for flag in PRINTS[1:]:
        if flag in options.own:
            raise UsageError(f"{flag} needs --input fingerprints or, for rows, --fingerprint NAME")
    kind = asked_kind(options)
    settings = Settings.of(replace(options, measure=name, scheme="prefix", own={}))
    if kind:
        settings = settings._replace(parse=settings.form.parser(kind.repeats, kind.own))
    return settings, measures.measure_of(settings.request.measure, settings.threshold)


def pair_options(options: table.Options) -> list[str]:
    """Return the options that define a pair as arguments `FLAG=VALUE`, except for defaults."""
    flags = ("--threshold", "--measure", *SHARED, WEIGHTS.name)
    given = {flag: options.value(flag) for flag in flags}
    return [f"{flag}={text}" for flag, text in given.items() if text not in (None, "jaccard", ONE)]


def asked_kind(options: table.Options) -> Weighing | None:
    """Return the kind of weights, or None for equal weights; UsageError if it cannot be used."""
    weights = options.own.get(WEIGHTS.name, ONE)
    if weights == ONE:
        return None
    kind = KINDS[read(WEIGHTS.name, WEIGHTS.read, weights)]
    if kind.by_idf and options.within is not None:
        raise UsageError(IDF_WITHIN)
    if options.measure not in (None, *WEIGHTED):
        raise UsageError(
            f"{WEIGHTS.name} {weights} requires --measure {' or '.join(WEIGHTED)}, but "
            f"--measure is {options.measure}"
        )
    return kind


def share(text: str) -> float:
    """Parse a number P with 0 < P < 1, such as a confidence; ValueError for anything else."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not (0 < value < 1 and 0 < 1 - value < 1):  # rounding may make 1 - P equal to 1
        raise ValueError(f"{text} is outside 0 < P < 1, or too close to 0 or 1")
    return value


(CONFIDENCE,) = flags("--confidence P  confidence of the intervals [0.95]", confidence=share)


def options_of(run: RunFile, name: str | os.PathLike[str]) -> table.Options:
    """Return the options of a run; StageError if this version does not have all of them."""
    try:
        return table.Options.from_arguments(run.options)
    except ValueError as error:
        raise StageError(
            f"{run_file_name(name)}: written by neardup {run.version}: {error} of this version; "
            "run again with -o"
        ) from None


def check_all_pairs(name: str, asked: table.Options | None = None) -> None:
    """Raise UsageError if the run file beside an answer shows that it lacks pairs.

    asked: options, whose --within and --across must be those of the run.
    """
    if name == "-" or not os.path.isfile(run_file_name(name)):
        return
    run = options_of(RunFile.of(name), name)
    for flag in (WITHIN, ACROSS):
        given = run.value(flag)
        if asked and given != asked.value(flag):
            advice = f"had {flag} {given}; give it, too" if given else f"had none; leave {flag} out"
            raise UsageError(f"{name}: the run {advice}")
    kind = run.output
    if kind != "pairs":
        raise UsageError(f"{name}: has {kind}, not all pairs; run again with --output pairs")


def refuse_others(
    options: table.Options, asked: list[str], source: str | os.PathLike[str], free: Collection[str]
) -> None:
    """Raise UsageError for an option that differs from the run's, unless it is in `free`."""
    for option in options.given_arguments():
        flag = option.partition("=")[0]
        if flag not in free and option not in asked:
            raise UsageError(f"{option}: differs from the options in {source}; leave {flag} out")


def row(name: str, value: int | str, note: str = "") -> str:
    """Format a line of a table: a name, a value and a note."""
    shown = value if isinstance(value, str) else f"{value:,}"
    return f"{name:33} {shown:>10}  {note}".rstrip()


Join = Callable[[Ragged], inverted_index.Joined]
FASTEST, FASTEST_WEIGHTED = "bitmap_join", "all_pairs"
DESCRIPTION = """Write all similar pairs, computed exactly, to compare the pairs of the job with.

All records are held in memory.  The lines are those of a job that misses no pair; stderr reports
how many candidates each filter of the join leaves.

    python3 -m neardup truth --threshold 0.8 videos.txt > truth.tsv
    python3 -m neardup evaluate pairs.tsv truth.tsv
"""


def main() -> None:
    args = _command_line()
    options = Options.of(args)
    settings, plain = exact_settings(options)
    measure: Measure = plain
    kind = asked_kind(options)
    name = settings.request.measure
    join = _join(args, name, plain, weighted=kind is not None)
    check_files(args.files)
    counters = Counters("truth", progress="records", verbosity=args.verbosity)
    blocks = settings.blocks(args.files)
    records = Batch.end_to_end(parsed(blocks, settings, counters))
    if kind:
        weights = kind.weights(TokenCounts.of_sets(records.sets) if kind.by_idf else None)
        sets = replace(records.sets, weights=weights.of(records.sets))
        records = replace(records, sets=sets)
        measure = weighted_measure(name, settings.threshold, TokenWeights())
    joined = join(records.sets)
    exactly = Comparison(measure, counters, settings.not_pairs, settings.form)
    lines = sorted(exactly.lines(records, joined.left, joined.right))
    counters.add("pairs", len(lines))
    write_all(dedup_pairs(lines, counters))
    counters.report()
    if args.verbosity > QUIET:
        print(f"candidates: {_steps(joined.candidates)}", file=sys.stderr)


def _command_line() -> argparse.Namespace:
    join = flags(
        f"""
        --join NAME     {", ".join(JOINS)}: all give the same pairs; overlap, containment, and
                        tversky:A,B with a 0 need {FASTEST} or nested_loop, and --weights needs
                        {" or ".join(WEIGHTED_JOINS)} (default: {FASTEST}; with --weights
                        {FASTEST_WEIGHTED})
        """,
        join=one_of(*JOINS),
    )
    own = FILES, *VERBOSITY, *join
    return exact_parser("truth", DESCRIPTION, own).parse_intermixed_args()


def _join(
    args: argparse.Namespace, measure_name: str, measure: SetMeasure | Hamming, weighted: bool
) -> Join:
    if isinstance(measure, Hamming):
        if args.join is not None:
            raise UsageError(f"--join {args.join}: is for sets, not fingerprints; leave it out")
        return lambda sets: _near(sets, measure)
    if weighted:
        name = args.join or FASTEST_WEIGHTED
        if name not in WEIGHTED_JOINS:
            raise UsageError(
                f"--join {name}: its filters count tokens, and with --weights {args.weights} some "
                f"count for more; use --join {FASTEST_WEIGHTED}"
            )
        return lambda sets: WEIGHTED_JOINS[name](sets, measure_name, measure.threshold)
    if args.join in (None, FASTEST):
        return lambda sets: join_by(measure, sets)
    least = measure.resemblance
    if least is not None:
        return lambda sets: JOINS[args.join](sets, least)
    if args.join != "nested_loop":
        raise UsageError(
            f"--join {args.join}: its filters need a minimum Jaccard similarity, and pairs by "
            f"--measure {measure_name} have none; use --join {FASTEST}"
        )
    return lambda sets: weighted_nested_loop(sets.bare(), measure_name, measure.threshold)


def _near(sets: Ragged, measure: Hamming) -> inverted_index.Joined:
    rows = Prints.of(sets, measure.bits).rows
    left, right = each_once(near_records(rows, None, measure.bits, measure.distance))
    every = len(sets) * (len(sets) - 1) // 2
    return inverted_index.Joined(left, right, left, {"all": every, "pairs": len(left)})


def _steps(candidates: dict[str, int]) -> str:
    """Return one line with the number of candidate pairs that each filter leaves.

    >>> _steps({"all": 1999000, "length": 71000, "pairs": 790})
    '1,999,000 in all; left by length 71,000; pairs 790'
    """
    names = {"all": "{:,} in all", "pairs": "pairs {:,}"}
    parts = [names.get(name, f"left by {name} {{:,}}").format(n) for name, n in candidates.items()]
    return "; ".join(parts)
