"""Common parts of the commands that compare records exactly: options, pair lines, table rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from neardup.options import table
from neardup.options.command_parser import CommandParser, Flag, flags, read
from neardup.options.settings import IDF_WITHIN, Settings, of_fingerprints
from neardup.reading.blocks import check_inputs
from neardup.reading.field_values import ACROSS, WITHIN
from neardup.runtime.manifest import RunFile, run_file_name
from neardup.runtime.program import StageError, UsageError, not_one_of
from neardup.schemes.fingerprints import Hamming
from neardup.schemes.scheme import KINDS, ONE, WEIGHTS, Weighing
from neardup.similarity import measures
from neardup.similarity.measures import MEASURES, SetMeasure

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
    flags = ("--threshold", "--measure", *SHARED, WEIGHTS.flag)
    given = {flag: options.value(flag) for flag in flags}
    return [f"{flag}={text}" for flag, text in given.items() if text not in (None, "jaccard", ONE)]


def asked_kind(options: table.Options) -> Weighing | None:
    """Return the kind of weights, or None for equal weights; UsageError if it cannot be used."""
    weights = options.own.get(WEIGHTS.flag, ONE)
    if weights == ONE:
        return None
    kind = KINDS[read(WEIGHTS.flag, WEIGHTS.read, weights)]
    if kind.by_idf and options.within is not None:
        raise UsageError(IDF_WITHIN)
    if options.measure not in (None, *WEIGHTED):
        raise UsageError(
            f"{WEIGHTS.flag} {weights} requires --measure {' or '.join(WEIGHTED)}, but "
            f"--measure is {options.measure}"
        )
    return kind


def check_files(files: list[str]) -> None:
    """Raise StageError for folders and missing files, UsageError if `-` is given twice."""
    if files.count("-") > 1:
        raise UsageError("-: standard input can be read only once; name - once")
    check_inputs(files)


def check_regular(files: list[str]) -> None:
    """Raise UsageError for a pipe or standard input, which cannot be read twice."""
    for name in files:
        if not os.path.isfile(name):
            raise UsageError(
                f"{name}: must be read twice, but is not a regular file; copy it to one"
            )


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
