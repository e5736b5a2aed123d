"""`tune`: which setting of the job suits a file, from a sample of it."""

import argparse
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace

from neardup.evaluation import choices
from neardup.evaluation.estimates import Survey, check_readable
from neardup.evaluation.exact_answers import check_files, exact_parser, exact_settings, row, share
from neardup.evaluation.line_sample import LineSample, as_block, draw
from neardup.evaluation.shingle_lengths import Texts, best_length, compared, few_seen, in_words
from neardup.options import table
from neardup.options.table import Options
from neardup.reading.missing_fields import check_rows
from neardup.runtime.errors import UsageError
from neardup.runtime.program import job_command, run
from neardup.schemes.banding import DEFAULT_RECALL
from neardup.schemes.scheme import shown

NAME = "neardup tune"
DESCRIPTION = """Estimate what each setting would find and cost, from a sample, and recommend one.

Reads a few mebibytes, whatever the size of the files: lines from all over them, each as likely as
any other, and of packed files and pipes the start.  Every setting it compares keeps the promise.
Of texts it also compares how long shingles may be, unless --shingle says it.

    python3 -m neardup tune --threshold 0.8 videos.txt
"""
FLAGS = ("--threshold", "--input", "--id", "--text", "--clean", "--shingle")
MOST_SAMPLED = 20_000
SHOWN = 6  # bandings
SIMILARITIES = [k / 10 for k in range(1, 10)]
HEADS = (
    "|recall|recall of|keys a||candidate|of them|shuffled,|",
    "setting|at T|the pairs|record|keys|pairs|verified|MB|work",
)
NOTES = """\
recall of the pairs: {pairs}
candidate pairs: share a key and have sizes that allow it; verified: bitmaps leave them
shuffled: what mapper.py writes
work: keys, candidate pairs, and tokens where a scheme counts them first
not compared, since they promise no recall at T: {others}"""
OF_SEEN = "by the similarities of the {seen:,} in the sample"
OF_MODEL = (
    "as if all similarities from T to 1 were equally likely, since there are\n"
    "{seen:,} in the sample"
)


def main() -> int:
    return run(NAME, _tune)


def _tune() -> None:
    args = _command_line()
    recall = share("--recall", args.recall)
    options = replace(Options.of(args), own={})  # what follows is about similarity, not schemes
    settings, measure = exact_settings(options)
    seed = table.integer("--seed", args.seed, 0, 2**64 - 1)
    size = table.integer("--sample", args.sample, 2, MOST_SAMPLED)
    check_files(args.files)
    sample = draw(args.files, size, seed, settings.form)
    if settings.form.fields:
        check_rows(as_block(sample.lines), settings.form.fields, args.files[0])
    check_readable(sample, settings.parse, str(settings.form))
    if settings.form.shingle and options.shingle is None:
        texts = Texts.of_sample(sample, settings.form, seed)
        lengths = compared(texts, measure, recall, seed)
        options = replace(options, shingle=best_length(lengths).name)
        print("\n".join([*in_words(lengths, measure, len(texts)), ""]))
        settings, _ = exact_settings(options)
    survey = Survey.of(sample, settings.parse, measure, seed)
    if settings.form.fields:
        if settings.form.input is None:
            raise UsageError("files of several kinds; tune by those of one kind")
        options = replace(options, input=settings.form.input)
    asked = _asked(options)
    costs = [
        choices.cost(survey, each, asked) for each in choices.choices(measure, args.measure, recall)
    ]
    about, notes = _about(survey, sample), _notes(survey, args.measure)
    print("\n".join([*about, "", *_table(costs), "", notes, ""]))
    flags = [flag for each in (asked, choices.best(costs).choice.flags) for flag in each]
    words = [word for flag in flags for word in flag.split("=", 1)]  # --rows 7, as people write it
    command = shlex.join([*job_command(), *words, *args.files])
    few = few_seen(len(survey), "records")
    print(f"Recommended, by least work{few}:\n\n    {command}")


def _command_line() -> argparse.Namespace:
    parser = exact_parser(NAME, DESCRIPTION, FLAGS)
    parser.add_argument("files", nargs="+", metavar="FILE", help="plain or packed; - is stdin")
    parser.add_argument(
        "--recall",
        metavar="P",
        default=f"{DEFAULT_RECALL}",
        help=f"the promise that every setting keeps (default: {DEFAULT_RECALL})",
    )
    parser.add_argument(
        "--sample", metavar="N", default="3000", help="records at most (default: 3000)"
    )
    parser.add_argument(
        "--seed", metavar="N", default="0", help="draws the sample, 0 to 2^64-1 (default: 0)"
    )
    return parser.parse_args()


def _asked(options: Options) -> list[str]:
    """The options that define a pair, as they are given; the threshold always."""
    asked = [f"--threshold={options.threshold or '0.9'}"]
    if options.measure != "jaccard":
        asked.append(f"--measure={options.measure}")
    for flag in ("--input", "--id", "--text", "--clean", "--shingle"):
        if options.value(flag) is not None:
            asked.append(f"{flag}={options.value(flag)}")
    return asked


def _about(survey: Survey, sample: LineSample) -> Iterator[str]:
    known = survey.likeness
    about = "" if survey.whole else f"about, by {len(survey):,} of them; "
    yield row("records", choices.number(survey.records), about + sample.origin)
    if survey.bad:
        yield row("bad lines", survey.bad, "in the sample")
    if sample.too_long:
        yield row("long lines", sample.too_long, "of more than 1 MiB; left out")
    yield row("tokens a record", choices.number(survey.tokens / survey.records))
    yield row("similar pairs", choices.number(known.matches.sum()), f"{known.seen:,} in the sample")
    yield ""
    yield "pairs of sizes that allow a match, by their resemblance:"
    yield "at least" + "".join(f"{s:9.1f}" for s in SIMILARITIES)
    above = [known.window[known.resemblance >= s].sum() for s in SIMILARITIES]
    yield "        " + "".join(f"{choices.short(each):>9}" for each in above)


def _table(costs: list[choices.Cost]) -> Iterator[str]:
    bandings = [each for each in costs if "×" in each.choice.name]
    others = [each for each in costs if each not in bandings]
    recommended = choices.best(costs)
    for head in HEADS:
        yield _line(head.split("|")).rstrip()
    for each in choices.worth_showing(bandings, SHOWN, recommended) + others:
        cells = (
            each.choice.name,
            shown(each.at_threshold),
            shown(each.of_pairs),
            f"{each.keys / each.records:.1f}",
            *map(choices.short, (each.keys, each.candidates, each.verified)),
            choices.short(each.shuffled / 1e6),
            choices.short(each.work),
        )
        yield _line(cells) + ("  <" if each is recommended else "")


def _line(cells: Iterable[str]) -> str:
    name, *numbers = cells
    return f"{name:10}" + "".join(f"{cell:>10}" for cell in numbers)


def _notes(survey: Survey, measure: str) -> str:
    seen = survey.likeness.seen
    pairs = (OF_SEEN if seen >= choices.ENOUGH_SEEN else OF_MODEL).format(seen=seen)
    return NOTES.format(pairs=pairs, others=", ".join(choices.not_compared(measure)))
