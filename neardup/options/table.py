"""`Options`: every option of the programs, declared once with its help.

The command lines of all programs come from here, so an option means the same in each.  Options
that a scheme owns are declared beside the scheme.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Callable

from neardup.decisions import RULES
from neardup.lines.tagged_ids import PRIORITIES
from neardup.reading.cleaning import STEPS
from neardup.reading.input_format import DEFAULT_SHINGLE
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT
from neardup.runtime.errors import UsageError
from neardup.runtime.program import bare_parser
from neardup.runtime.summary import MAX_BAD, in_words
from neardup.schemes import SCHEMES
from neardup.schemes.scheme import Option, whole
from neardup.similarity.estimated import DEFAULT_SIZE
from neardup.verification import OUTPUTS

DEFAULT_SCHEME, DEFAULT_THRESHOLD, EXACT = "minhash", "0.9", "exact"
MAX_LINE_MIB = 64

# What is made of the pairs: nothing that two records have by themselves.
OUTPUT_OPTIONS = {
    "--verify",
    "--output",
    "--rule",
    "--keep",
    "--against",
    "--between",
    "--input-files",
}

# Of all schemes, each flag once.
SCHEME_OPTIONS: Mapping[str, Option] = {
    option.flag: option for scheme in SCHEMES.values() for option in scheme.options
}


def _option(default: Any, **spec: Any) -> Any:
    """A field of `Options`, with what argparse is told of it; what stands between braces in its
    help is filled in by `_options`, from where it is declared."""
    return field(default=default, metadata=spec)


@dataclass(frozen=True)
class Options:
    """What is asked for, as it was typed or given; `Settings.of` reads what it means.

    A command line, keyword arguments, a run's manifest and the arguments of a task each build one.
    Values stay text: so all complaints come from one place, and tasks and manifests repeat what was
    asked.
    """

    scheme: str | None = _option(
        None,
        metavar="NAME",
        help=f"how records meet: {', '.join(SCHEMES)}; minhash and projection find a pair with "
        "probability --recall, partition, prefix, exact and spotsigs every pair, auto every pair "
        "of small sets; supershingle, simhash and imatch find those that are nearly equal, for "
        f"less (default: {DEFAULT_SCHEME})",
    )
    exact: bool = _option(
        False,
        help="miss no pair: for each size the cheaper of the exact schemes, as --scheme exact",
    )
    measure: str | None = _option(
        None,
        metavar="NAME",
        help="how similar two records are: {measures}; one that the scheme cannot promise is "
        "refused (default: {default_measures})",
    )
    threshold: str | None = _option(
        None,
        metavar="T",
        help="the least similarity of a pair, 0 < T <= 1, as 0.9 or 9/10; a pair exactly "
        f"at T counts (default: {DEFAULT_THRESHOLD})",
    )
    seed: str | None = _option(
        None, metavar="N", help="draws the hash functions, 0 to 2^64-1 (default: 0)"
    )
    counts: str | None = _option(
        None,
        metavar="FILE",
        help="token counts, as step.py count makes them; run_local.sh, run_hadoop.sh and job.py "
        "count by themselves where a scheme asks for it",
    )
    own_counts: bool = _option(
        False,
        help="the counts are of this very input, as those that are made by themselves: a shingle "
        "that one record has is no key then; with counts of anything else, pairs would be lost",
    )
    input: str | None = _option(
        None,
        metavar="KIND",
        help="what the files hold: lines of shingles (ID and integers, 0 to 2^64-1; with --weights "
        "own each may be SHINGLE:WEIGHT) or text (ID, tab, text; without a tab the first blank), "
        "or rows: jsonl, csv, tsv, parquet; names tell it that end with .jsonl .ndjson .json .csv "
        ".tsv .parquet, and .gz .bz2 .xz or .zst behind that or not (default: by the names, else "
        "shingles)",
    )
    id: str | None = _option(
        None,
        metavar="NAME",
        help="of rows: the field that is the id, or of a table without a header the number of its "
        "column; where there is none, or with '', rows are numbered (default: {id})",
    )
    text: str | None = _option(
        None,
        metavar="NAME[,NAME]",
        help="of rows: the field that is the text, or several, read one after the other; one that "
        "holds lists of integers is shingles (default: {text})",
    )
    clean: str | None = _option(
        None,
        metavar="WHAT",
        help="of texts: what of them is not to count: {clean}, or several with "
        "commas, as html,punctuation; html: tags and what is not body text, such as scripts and "
        "navigation; accents: é counts as e; digits: numbers, with the marks inside them; "
        "punctuation: marks and symbols",
    )
    shingle: str | None = _option(
        None,
        metavar="UNIT:K",
        help="of texts: every run of K words or characters, as word:3 or char:5; with "
        ":bag behind it, as word:1:bag, repeats count; or spot:C:D, after each stop word a chain "
        "of C other words, each D words on.  So long that a random text seldom has a given one: "
        "char:5 for short texts, char:9 for long ones, or word:1 to word:5; `python3 -m neardup "
        "tune --input text FILE` compares them (default: {shingle}).  With --input "
        "shingles: bag, where repeats count",
    )
    verify: str = _option(
        EXACT,
        metavar="HOW",
        help="exact, or sketch:S for sets too large to send: of each travel its keys and its S "
        "smallest hashes ({sample} unless told), and a pair has an interval, "
        "~0.871123..0.953234, instead of a similarity; all are written whose interval reaches "
        "--threshold (default: exact)",
    )
    output: str = _option(
        next(iter(OUTPUTS)),
        metavar="KIND",
        help="; ".join(f"{name}: {output.help}" for name, output in OUTPUTS.items())
        + f" (default: {next(iter(OUTPUTS))})",
    )
    rule: str | None = _option(
        None,
        metavar="NAME",
        help="who goes, with --output kept or removed; "
        + "; ".join(f"{name}: {rule.help}" for name, rule in RULES.items())
        + f" (default: {next(iter(RULES))})",
    )
    keep: str | None = _option(
        None,
        metavar="WHICH",
        help="who stays of records that are alike, with --output kept or removed; "
        + "; ".join(f"{name}: {tag.help}" for name, tag in PRIORITIES.items())
        + f" (default: {next(iter(PRIORITIES))})",
    )
    against: tuple[str, ...] = _option(
        (),
        metavar="FILE",
        help="old records: pairs have one new record at least; --output kept or removed is of new "
        "records, and old ones always stay; may come several times",
    )
    between: bool = _option(False, help="with --against: no pairs of two new records")
    input_files: str | None = _option(
        None,
        metavar="FILE",
        help="for tasks, that each read a part of the input: its files in order, a line each, old "
        "or new, tab, name; run_hadoop.sh and job.py make it by themselves",
    )
    max_line: str = _option(
        "32",
        metavar="MIB",
        help=f"longer lines are bad lines; in mebibytes, 1 to {MAX_LINE_MIB} (default: 32)",
    )
    max_bad: str | None = _option(
        None,
        metavar="SHARE",
        help="a larger share of bad lines, 0 to 1, as 0.25 or 1/4, ends with exit code 1, after "
        f"the answer; 0 is --strict (default: {in_words(MAX_BAD)})",
    )
    strict: bool = _option(False, help="stop at the first bad line instead of counting it")
    own: Mapping[str, str] = field(default_factory=dict)  # options that schemes own, by flag
    files: tuple[str, ...] = ()  # the input, whose names may say what it holds

    @classmethod
    def of(cls, args: argparse.Namespace) -> Options:
        """The options of the table among those of a program; its files as each one calls them.

        >>> Options.of(argparse.Namespace(threshold="0.8", rows="7", files=["a.csv", "-"]))
        Options(threshold='0.8', own={'--rows': '7'}, files=('a.csv',))
        """
        there = vars(args)
        given: dict[str, Any] = {
            name: tuple(there[name]) if type(there[name]) is list else there[name]
            for name in map(attribute, COMMON_OPTIONS)
            if there.get(name) is not None
        }
        own = {flag: there.get(attribute(flag)) for flag in SCHEME_OPTIONS}
        some = (there.get(name) or [] for name in ("files", "inputs", "args"))
        files = tuple(name for names in some for name in names if name != "-")
        return cls(
            **given, own={flag: text for flag, text in own.items() if text is not None}, files=files
        )

    @classmethod
    def from_arguments(cls, given: Iterable[str]) -> Options:
        """The options that `arguments` has written; ValueError for what it never writes.

        >>> Options.from_arguments(["--exact", "--threshold=0.8"])
        Options(exact=True, threshold='0.8')
        """
        values: dict[str, Any] = {"own": {}}
        for word in given:
            flag, equals, value = word.partition("=")
            name = attribute(flag)
            usual = getattr(cls, name, None) if flag in COMMON_OPTIONS else None
            if flag not in OPTIONS or bool(equals) == (usual is False):
                raise ValueError(f"{word!r} is no option")
            if flag in SCHEME_OPTIONS:
                values["own"][flag] = value
            elif usual == ():
                values[name] = (*values.get(name, ()), value)
            else:
                values[name] = value if equals else True
        return cls(**values)

    def arguments(self) -> list[str]:
        """The options as they were given, for another program's command line."""
        given = ((flag, self.value(flag)) for flag in OPTIONS)
        values = (
            (flag, one)
            for flag, some in given
            for one in (some if isinstance(some, tuple) else [some])
        )
        return [
            flag if value is True else f"{flag}={value}"
            for flag, value in values
            if value not in (None, False)
        ]

    def given_arguments(self) -> list[str]:
        """The same without the defaults: for a line to type."""
        return [word for word in self.arguments() if word not in _ANYHOW]

    def value(self, flag: str) -> str | bool | tuple[str, ...] | None:
        """What was given for an option of the table, or its default."""
        if flag in SCHEME_OPTIONS:
            return self.own.get(flag)
        value: str | bool | tuple[str, ...] | None = getattr(self, attribute(flag))
        return value

    def with_values(self, values: Mapping[str, str | bool]) -> Options:
        """The same with other values, by flag."""
        own = {flag: str(text) for flag, text in values.items() if flag in SCHEME_OPTIONS}
        common = {attribute(flag): value for flag, value in values.items() if flag not in own}
        return replace(self, own={**self.own, **own}, **common)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """Only what is not the default."""
        usual = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        said = [f"{name}={value!r}" for name, value, default in usual if value not in (default, {})]
        return f"Options({', '.join(said)})"


def attribute(flag: str) -> str:
    return flag[2:].replace("-", "_")


def _common() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in fields(Options):
        if each.metadata:
            spec = dict(each.metadata)
            if each.default is False:
                spec["action"] = "store_true"
            elif each.default == ():
                spec["action"] = "append"
            elif each.default is not None:
                spec["default"] = each.default
            yield "--" + each.name.replace("_", "-"), spec


COMMON_OPTIONS: Mapping[str, Mapping[str, Any]] = dict(_common())


def integer(flag: str, text: str, low: int, high: int) -> int:
    """The number that `text` is; UsageError where it is none from `low` to `high`."""
    number: int = read(flag, whole(low, high), text)
    return number


def fraction(text: str) -> Fraction:
    """The share, 0 to 1, that "0.25", "1/4" or "1" is; ValueError.

    >>> fraction("1/3")
    Fraction(1, 3)
    """
    try:
        value = Fraction(text if len(text) <= 20 and "e" not in text.lower() else "")
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is neither a decimal number nor a fraction") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is outside 0 <= SHARE <= 1")
    return value


def read(flag: str, reader: Callable[[str], Any], text: str) -> Any:
    """UsageError where `reader` raises ValueError."""
    try:
        return reader(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def measures() -> list[str]:
    """Of all schemes, each name once."""
    return list(dict.fromkeys(name for scheme in SCHEMES.values() for name in scheme.measures))


def _default_measures() -> str:
    """What each scheme takes by default, where it is not what most take."""
    usual = SCHEMES[DEFAULT_SCHEME].measures[0]
    others = [
        f"{scheme.measures[0]} for {name}"
        for name, scheme in SCHEMES.items()
        if scheme.measures[0] != usual
    ]
    return f"{usual}, but {', and '.join(others)}"


def _options() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """In the order of --help, where those of schemes come behind --threshold."""
    told = {
        "measures": ", ".join(measures()),
        "default_measures": _default_measures(),
        "clean": ", ".join(STEPS),
        "id": DEFAULT_ID,
        "text": DEFAULT_TEXT,
        "shingle": DEFAULT_SHINGLE,
        "sample": DEFAULT_SIZE,
    }
    for flag, spec in COMMON_OPTIONS.items():
        yield flag, {**spec, "help": spec["help"].format(**told)}
        if flag == "--threshold":
            for own, option in SCHEME_OPTIONS.items():
                yield own, dict(metavar=option.metavar, help=option.help)


OPTIONS: Mapping[str, Mapping[str, Any]] = dict(_options())
_ANYHOW = Options().arguments()


def parser(
    name: str, description: str, flags: Collection[str] = OPTIONS
) -> argparse.ArgumentParser:
    """A parser of the options in the table; all not among `flags` keep their defaults."""
    result = bare_parser(name, description)
    for flag, spec in OPTIONS.items():
        if flag in flags:
            result.add_argument(flag, **spec)
        else:
            result.set_defaults(**{attribute(flag): spec.get("default")})
    return result
