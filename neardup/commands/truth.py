"""`truth`: find all similar pairs exactly, with all records in memory."""

import argparse
import sys
from dataclasses import replace
from typing import Callable

from neardup.commands import exact_answers
from neardup.joins import JOINS, WEIGHTED_JOINS, inverted_index
from neardup.joins.bitmap_joins import join_by
from neardup.joins.near_bits import each_once, near_records
from neardup.joins.weighted_joins import weighted_nested_loop
from neardup.options.command_parser import FILES, VERBOSITY, flags
from neardup.options.table import Options
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError, one_of, write_all
from neardup.runtime.summary import QUIET
from neardup.schemes.fingerprints import Hamming
from neardup.sets.bit_vectors import Prints
from neardup.sets.ragged import Batch, Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Measure, SetMeasure
from neardup.similarity.weighted_measures import TokenWeights, weighted_measure
from neardup.stages.pairs import dedup_pairs, parsed
from neardup.stages.sampled_pairs import pair_lines

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
    settings, plain = exact_answers.exact_settings(options)
    measure: Measure = plain
    kind = exact_answers.asked_kind(options)
    name = settings.request.measure
    join = _join(args, name, plain, weighted=kind is not None)
    exact_answers.check_files(args.files)
    counters = Counters("truth", progress="records", verbosity=args.verbosity)
    blocks = settings.blocks(args.files)
    records = Batch.end_to_end(parsed(blocks, settings, counters))
    if kind:
        weights = kind.weights(TokenCounts.of_sets(records.sets) if kind.by_idf else None)
        sets = replace(records.sets, weights=weights.of(records.sets))
        records = replace(records, sets=sets)
        measure = weighted_measure(name, settings.threshold, TokenWeights())
    joined = join(records.sets)
    how = measure, joined.left, joined.right, counters, settings.not_pairs, settings.form
    lines = sorted(pair_lines(records, *how))
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
    return exact_answers.exact_parser("truth", DESCRIPTION, own).parse_intermixed_args()


def _join(
    args: argparse.Namespace, measure_name: str, measure: "SetMeasure | Hamming", weighted: bool
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
