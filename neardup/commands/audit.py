"""`audit`: estimate precision and recall of a run from a sample of a file of any size.

The records of N ids, drawn at random (`sampled_pairs`), are compared exactly with all records of
the file, and the result with the lines of PAIRS that have one of these ids.

All pairs of the file are equally likely to be drawn.  The intervals assume that pairs are right or
wrong independently (Clopper, Pearson 1934).  Those of one dense cluster are not: there the true
interval is wider, and more ids help.

In memory: the records of 2N ids, a block of the file, and the pairs of the sampled ids; for idf
weights the distinct tokens, too.  FILE is read twice.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable

from neardup.commands import truth
from neardup.commands.truth import row
from neardup.lines.answer_lines import ALL_PAIRS, exact_pair, parsed_lines
from neardup.options.command_parser import VERBOSITY
from neardup.options.table import Options, integer
from neardup.reading.input_files import Unchanged, check_files, check_regular
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import as_called, whole
from neardup.runtime.summary import QUIET
from neardup.sets.ragged import Batch
from neardup.sets.token_counts import TokenCounter
from neardup.similarity.intervals import interval, ratio
from neardup.similarity.measures import Measure
from neardup.similarity.weighted_measures import weighted_measure
from neardup.stages.pairs import parsed
from neardup.stages.sampled_pairs import MAX_IDS, Comparison, IdSample, near_rows

SHOWN = 10
DESCRIPTION = """Estimate precision and recall of a run from a sample, if `truth` takes too long.

The records of some ids, drawn at random, are compared exactly with all records of the file, and the
result with the pairs that were written.  FILE is read twice, PAIRS once, block by block.

    ./run_local.sh --threshold 0.8 videos.txt > pairs.tsv
    python3 -m neardup audit --threshold 0.8 videos.txt pairs.tsv
"""
Pairs = dict[tuple[bytes, bytes], bytes]  # with a sampled id, and their similarities


def main() -> None:
    args = _command_line()
    options = Options.of(args)
    settings, plain = truth.exact_settings(options)
    measure: Measure = plain
    kind = truth.asked_kind(options)
    sample = IdSample(args.sample, integer("--seed", args.seed, 0, 2**64 - 1))
    check_files([*args.files, args.pairs])
    truth.check_all_pairs(args.pairs, options)
    check_regular(args.files)
    counters = Counters("audit", progress="records", verbosity=args.verbosity)
    counter = TokenCounter()
    unchanged = Unchanged(args.files)
    for batch in parsed(settings.blocks(args.files), settings, counters):
        sample.add(batch)
        if kind and kind.by_idf:
            counter.add(batch.sets)
    if kind:
        weights = kind.weights(counter.counts())
        measure = weighted_measure(settings.request.measure, settings.threshold, weights)
    drawn = sample.records()
    again = parsed(settings.blocks(args.files), settings, Counters("audit", verbosity=QUIET))
    exactly = Comparison(measure, Counters(""), settings.not_pairs, settings.form)
    true, ids = _true_pairs(again, drawn, exactly), set(drawn.ids)
    written = parsed_lines([args.pairs], exact_pair, ALL_PAIRS)
    printed = {(a, b): similarity for a, b, similarity in written if a in ids or b in ids}
    unchanged.check()
    lines = _report(len(ids), sample.whole, true, printed, args.confidence)
    print(*lines, *_examples(true, printed, options, args.files), sep="\n")
    counters.report()


def _command_line() -> argparse.Namespace:
    own = flags(
        """
        files FILE…     plain or compressed
        pairs PAIRS     the pairs that the job wrote; - is stdin
        --sample N      number of ids to draw [1000]
        --seed N        seed of the draw, 0 to 2^64-1 [0]
        """,
        sample=whole(1, MAX_IDS),
    )
    own = *own, truth.CONFIDENCE, *VERBOSITY
    return truth.exact_parser("audit", DESCRIPTION, own).parse_intermixed_args()


def _true_pairs(batches: Iterable[Batch], drawn: Batch, exactly: Comparison) -> Pairs:
    true: Pairs = {}
    for both, left, right in near_rows(batches, drawn, exactly.measure):
        for line in exactly.lines(both, left, right):
            a, b, similarity = exact_pair(line)
            true[a, b] = max(similarity, true.get((a, b), b""))
    return true


def _report(ids: int, whole: bool, true: Pairs, printed: Pairs, confidence: float) -> list[str]:
    right = true.keys() & printed.keys()
    hits = len(right)
    differ = sum(true[pair] != printed[pair] for pair in right)
    recall, precision = (
        "" if whole else interval(hits, len(pairs), confidence) for pairs in (true, printed)
    )
    return [
        row("ids looked at", ids, "all, so the values are exact" if whole else "drawn at random"),
        row("their pairs", len(true)),
        row("found", hits, f"{differ:,} with another similarity" if differ else ""),
        row("missed", len(true) - hits),
        row("printed, but not a pair", len(printed) - hits),
        row("recall", ratio(hits, len(true)), recall),
        row("precision", ratio(hits, len(printed)), precision),
    ]


def _examples(true: Pairs, printed: Pairs, options: Options, files: list[str]) -> list[str]:
    """Return lines with up to 10 missed and 10 wrong pairs, and the `why` command for one pair."""
    missed = {pair: true[pair] for pair in true.keys() - printed.keys()}
    wrong = {pair: printed[pair] for pair in printed.keys() - true.keys()}
    lines = []
    for what, pairs in ("missed", missed), ("printed, but not a pair", wrong):
        if pairs:
            more = f" (the first {SHOWN} of {len(pairs):,})" if len(pairs) > SHOWN else ""
            lines += ["", f"{what}{more}:"]
            lines += [_text(b"\t".join((*pair, pairs[pair]))) for pair in sorted(pairs)[:SHOWN]]
    if lines:
        flags = truth.pair_options(options)
        if truth.asked_kind(options) and options.measure == "cosine":
            flags.append("--scheme=projection")  # the scheme with a promise for cosine
        words = [*files, *map(_text, min(missed or wrong))]
        words = ["--"] * any(word.startswith("-") for word in words) + words
        command = as_called(shlex.join(["python3", "-m", "neardup", "why", *flags, *words]))
        lines += ["", "Ask why, with the options of the job:", f"    {command}"]
    return lines


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
