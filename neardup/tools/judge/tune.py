"""`tune`: recommend a setting for a file, from a sample of it."""

import argparse
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from neardup.commands import truth
from neardup.joins.bitmap_joins import join_by
from neardup.options import table
from neardup.options.command_parser import FOR_SETS, plain_names
from neardup.options.settings import Settings
from neardup.reading.blocks import Block
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.reading.input_files import check_files
from neardup.reading.missing_fields import check_rows
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, job_command, whole
from neardup.runtime.summary import QUIET, judged
from neardup.schemes import SCHEMES, banding, scheme
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import SetMeasure, promised_as
from neardup.stages.pairs import parsed
from neardup.tools.judge import estimates, line_sample, shingle_lengths
from neardup.tools.judge.estimates import number, short

DESCRIPTION = """Estimate what each setting would find and cost, from a sample, and recommend one.

A few mebibytes are read of files of any size: random lines, or the start of compressed files,
tables and pipes.  All settings that are compared have the recall that you ask for.  For texts,
lengths of shingles are also compared, unless --shingle is given.

    python3 -m neardup tune --threshold 0.8 videos.txt
"""
FLAGS = [flag for flag in truth.SHARED if flag not in truth.PRINTS]
USUAL, MAX_SAMPLED = 3000, 20_000
# Of the input's bytes, without --sample: a run of all of them should cost twice as much.
SHARE, MIN_BYTES = 100, 1 << 16
SHOWN = 6  # bandings
# What a cleaning removes, as the lines of a sample show it.
BEYOND_ASCII = re.compile(rb"[\x80-\xff]|\\u[0-9a-fA-F]{4}")
CLEANINGS = {
    "html": re.compile(rb"</?[A-Za-z][^<>]*>"),
    "accents": BEYOND_ASCII,
    "width": BEYOND_ASCII,
}
BELOW = Fraction(1, 10)  # how far below the threshold pairs are counted, too
SIMILARITIES = [k / 10 for k in range(1, 10)]
HEADS = (
    "|recall|recall of|keys a||candidate|of them|shuffled,|",
    "setting|at T|the pairs|record|keys|pairs|verified|MB|work",
)
NOTES = """\
recall of the pairs: {pairs}
candidate pairs: share a key, and their sizes allow a pair; verified: left by bitmaps
shuffled: what mapper.py writes
work: keys, candidate pairs, and tokens if a scheme counts them first
no recall at T, so not compared: {others}"""
OF_SEEN = "by the similarities of the {seen:,} pairs in the sample"
OF_MODEL = (
    "as if all similarities from T to 1 were equally likely, since the sample\n"
    "has only {seen:,} such pairs"
)


def main() -> None:
    args = _command_line()
    options = replace(table.Options.of(args), own={})  # without options of schemes
    if options.input == FINGERPRINTS:
        raise UsageError(f"--input {FINGERPRINTS}: {FOR_SETS}")
    settings, measure = _settings(options)
    seed, recall = table.integer("--seed", args.seed, 0, 2**64 - 1), args.recall
    check_files(args.files)
    most = line_sample.MAX_BYTES
    if args.sample is None:
        here = sum(os.path.getsize(name) for name in args.files if os.path.isfile(name))
        most = min(max(here // SHARE, MIN_BYTES), most)
    sample = line_sample.draw(args.files, args.sample or USUAL, seed, settings.form, most)
    if settings.form.fields:
        check_rows(line_sample.as_block(sample.lines), settings.form.fields, args.files[0])
    blocks = settings.blocks(args.files) if "-" not in args.files else []
    first = next(iter(blocks), Block("line ", 1, line_sample.as_block(sample.lines)))
    if isinstance(first.data, bytes):  # its start is enough
        start = first.data[: first.data.rfind(b"\n", 0, 1 << 18) + 1]
        first = first._replace(data=start or first.data)
    counters = Counters("tune", "", "", QUIET)
    list(parsed([first], settings, counters))
    judged(counters.counts, Fraction(1))
    pairs = SimilarPairs(sample)
    if settings.form.shingle and options.shingle is None:
        most = shingle_lengths.MAX_TEXT if args.sample else shingle_lengths.USUAL_TEXT
        texts = shingle_lengths.Texts.of_sample(sample, settings.form, seed, most)
        lengths = shingle_lengths.compared(texts, measure, recall, seed)
        print("\n".join([*shingle_lengths.in_words(lengths, measure, len(texts)), ""]))
        best = replace(options, shingle=str(shingle_lengths.best_length(lengths).shingler))
        usual, other = pairs.of(options), pairs.of(best)
        if other < usual:
            more = f"{number(usual)} similar pairs, and not {number(other)}"
            print(f"But the default --shingle finds about {more}; so it is kept.\n")
        options = options if other < usual else best
        settings, _ = _settings(options)
    like = promised_as(settings.request.measure, measure.threshold)
    survey = estimates.Survey.of(sample, settings.parse, measure, seed)
    if settings.form.fields:
        if settings.form.input is None:
            raise UsageError("files of several formats; name files of one format")
        options = replace(options, input=settings.form.input)
    options = replace(options, threshold=options.threshold or table.DEFAULT_THRESHOLD)
    asked = truth.pair_options(options)
    costs = estimates.costs(survey, estimates.choices(measure, like, recall), asked, SHOWN)
    about, notes = _about(survey, sample), _notes(survey, like)
    print("\n".join([*about, "", *_table(costs), "", notes, ""]))
    command = _job([*asked, *estimates.best(costs).choice.flags], args.files)
    few = shingle_lengths.few_seen(len(survey), "records")
    print(f"Recommended, by least work{few}:\n\n    {command}")
    for hint in _hints(sample, options, pairs, args.files):
        print(hint)
    if not measure.directed:
        print("\nIt prints pairs; add --output kept for the records without near-duplicates.")


def _settings(options: table.Options) -> tuple[Settings, SetMeasure]:
    settings, measure = truth.exact_settings(options)
    assert isinstance(measure, SetMeasure)
    return settings, measure


def _job(flags: Iterable[str], files: Iterable[str]) -> str:
    words = [word for flag in flags for word in flag.split("=", 1)]
    return shlex.join([*job_command(), *words, *plain_names(["--", *files])])


class SimilarPairs:
    """Estimates of the number of similar pairs in the input, by a sample that is parsed once."""

    def __init__(self, sample: line_sample.LineSample) -> None:
        self._sample = sample
        self._parsed: dict[tuple[str, ...], tuple[Ragged, estimates.Weights]] = {}

    def of(self, options: table.Options) -> float:
        settings, measure = _settings(options)
        form = tuple(settings.form.key_options().values())
        if form not in self._parsed:
            batch, weights, _ = estimates.parsed(self._sample, settings.parse)
            self._parsed[form] = batch.sets, weights
        sets, weights = self._parsed[form]
        joined = join_by(measure, sets)
        return float(weights.of(joined.left, joined.right).sum())


def _hints(
    sample: line_sample.LineSample, options: table.Options, pairs: SimilarPairs, files: list[str]
) -> Iterator[str]:
    """Yield, for each option that would find more pairs by the sample, how many, and a command."""
    here, tried = pairs.of(options), []
    settings, measure = _settings(options)
    if settings.form.shingle:
        given = options.clean.split(",") if options.clean else []
        for name, marks in CLEANINGS.items():
            lines = (line for line in sample.lines if isinstance(line, bytes))  # rows that are read
            if name not in given and any(map(marks.search, lines)):
                tried.append(("--clean", ",".join([*given, name])))
    t = measure.threshold
    if Fraction(t.num, t.den) > 2 * BELOW and measure.resemblance:
        tried.append(("--threshold", f"{float(Fraction(t.num, t.den) - BELOW):.3g}"))
    for flag, value in tried:
        asked = options.with_values({flag: value})
        there = pairs.of(asked)
        if there > here:
            found = f"about {number(there)} similar pairs instead of {number(here)}"
            command = _job(truth.pair_options(asked), files)
            yield f"\nWith {flag} {value} it would find {found}:\n\n    {command}"


def _command_line() -> argparse.Namespace:
    own = flags(
        f"""
        files FILE…     plain or compressed; - is standard input
        --recall P      the minimum recall at the threshold [{banding.DEFAULT_RECALL}]
        --sample N      maximum size of the sample (default: {USUAL}, and a {SHARE}th of the input's
                        bytes)
        --seed N        seed of the sample, 0 to 2^64-1 [0]
        """,
        recall=truth.share,
        sample=whole(2, MAX_SAMPLED),
    )
    return truth.exact_parser("tune", DESCRIPTION, own, FLAGS, weights=False).parse_args()


def _about(survey: estimates.Survey, sample: line_sample.LineSample) -> Iterator[str]:
    known = survey.likeness
    about = "" if survey.whole else f"about, by {len(survey):,} of them; "
    yield truth.row("records", number(survey.records), about + sample.origin)
    if survey.bad:
        yield truth.row("bad lines", survey.bad, "in the sample")
    if sample.too_long:
        yield truth.row("long lines", sample.too_long, "of more than 1 MiB; left out")
    yield truth.row("tokens a record", number(survey.tokens / survey.records))
    yield truth.row("similar pairs", number(known.matches.sum()), f"{known.seen:,} in the sample")
    yield ""
    yield "pairs of sizes that allow a match, by their resemblance:"
    yield "at least" + "".join(f"{s:9.1f}" for s in SIMILARITIES)
    above = [known.window[known.resemblance >= s].sum() for s in SIMILARITIES]
    yield "        " + "".join(f"{short(each):>9}" for each in above)


def _table(costs: list[estimates.Cost]) -> Iterator[str]:
    bandings = [each for each in costs if "×" in each.choice.name]
    others = [each for each in costs if each not in bandings]
    recommended = estimates.best(costs)
    for head in HEADS:
        yield _line(head.split("|")).rstrip()
    for each in estimates.worth_showing(bandings, SHOWN, recommended) + others:
        cells = (
            each.choice.name,
            scheme.shown(each.at_threshold),
            scheme.shown(each.of_pairs),
            f"{each.keys / each.records:.1f}",
            *map(short, (each.keys, each.candidates, each.verified)),
            short(each.shuffled / 1e6),
            short(each.work),
        )
        yield _line(cells) + ("  <" if each is recommended else "")


def _line(cells: Iterable[str]) -> str:
    name, *numbers = cells
    return f"{name:10}" + "".join(f"{cell:>10}" for cell in numbers)


def _notes(survey: estimates.Survey, like: str) -> str:
    seen = survey.likeness.seen
    pairs = (OF_SEEN if seen >= estimates.ENOUGH_SEEN else OF_MODEL).format(seen=seen)
    others = [
        name for name, each in SCHEMES.items() if not each.keeps_recall or like not in each.measures
    ]
    return NOTES.format(pairs=pairs, others=", ".join(others))
