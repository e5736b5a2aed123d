"""Options and inputs of the commands that compare exactly, whatever the scheme of the job."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable

from neardup.options import table
from neardup.options.settings import Settings
from neardup.process.errors import UsageError
from neardup.reading.blocks import check_inputs
from neardup.schemes.weighting import KINDS, ONE, WEIGHTS, Weighing
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import MEASURES, SetMeasure

WEIGHTED = ("jaccard", "dice", "cosine")
EXACT = (
    "--threshold",
    "--input",
    "--id",
    "--text",
    "--clean",
    "--shingle",
    "--max-line",
    "--max-bad",
    "--strict",
)


def exact_parser(
    name: str, description: str, flags: Collection[str] = EXACT
) -> argparse.ArgumentParser:
    """A parser of the options that say what a pair is, and not how it is found."""
    parser = table.parser(f"python3 -m {name}", description, flags)
    parser.add_argument(
        "--measure",
        metavar="NAME",
        default="jaccard",
        help=f"how similar two records are: {', '.join(MEASURES)} (default: jaccard)",
    )
    return parser


def take_weights(parser: argparse.ArgumentParser) -> None:
    """An option more, of what tokens weigh."""
    parser.add_argument(
        WEIGHTS.flag,
        metavar=WEIGHTS.metavar,
        help=f"what a token weighs, as in the job: {', '.join(KINDS)}; idf and tfidf count the "
        f"tokens of FILE (default: {ONE})",
    )


def exact_settings(args: argparse.Namespace) -> tuple[Settings, SetMeasure]:
    """The settings, of which the scheme means nothing, and the measure where nothing weighs more.

    UsageError for anything wrong, in --weights too.
    """
    if args.measure not in MEASURES:
        raise UsageError(f"--measure: {args.measure!r} is not one of {', '.join(MEASURES)}")
    kind = asked_kind(args)
    any_measure = argparse.Namespace(**{**vars(args), "scheme": "prefix", "weights": None})
    settings = Settings.of(any_measure)
    if kind:
        settings = settings._replace(parse=settings.form.parser(kind.repeats, kind.own))
    return settings, MEASURES[args.measure](settings.threshold)


def asked_kind(args: argparse.Namespace) -> Weighing | None:
    """What tokens weigh; None where it is the same for all.  UsageError."""
    if args.weights in (None, ONE):
        return None
    try:
        kind = KINDS[WEIGHTS.read(args.weights)]
    except ValueError as error:
        raise UsageError(f"{WEIGHTS.flag}: {error}") from None
    if args.measure not in WEIGHTED:
        raise UsageError(
            f"{WEIGHTS.flag} {args.weights} is for --measure {' or '.join(WEIGHTED)}, and "
            f"--measure is {args.measure}"
        )
    return kind


def check_files(files: list[str]) -> None:
    """Every file must be there, and standard input comes once."""
    if files.count("-") > 1:
        raise UsageError("-: standard input can be read only once")
    check_inputs(files)


def share(flag: str, text: str) -> float:
    """The number between 0 and 1 that `text` is, such as a confidence."""
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{flag}: {text!r} is no number") from None
    if not (0 < value < 1 and 0 < 1 - value < 1):  # where 1 - P is 1, too
        raise UsageError(f"{flag}: {text} is outside 0 < P < 1, or too near an end")
    return value


def gathered(batches: Iterable[Batch]) -> Batch:
    """All records in one batch.

    >>> one, two = (Batch([id_], Ragged.from_rows([[1, 2]])) for id_ in (b"a", b"b"))
    >>> records = gathered([one, two])
    >>> records.ids, records.sets.offsets.tolist()
    ([b'a', b'b'], [0, 2, 4])
    """
    held = list(batches)
    ids = [id_ for batch in held for id_ in batch.ids]
    return Batch(ids, Ragged.end_to_end([batch.sets for batch in held]))
