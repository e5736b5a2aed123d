"""`Options`: the options that decide the answer of a job, declared once with their help texts.

Options of single schemes are declared beside these schemes.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from neardup.decisions import RULES
from neardup.lines.tagged_ids import PRIORITIES
from neardup.options.command_parser import OF_SCHEMES, CommandParser
from neardup.reading.cleaning import STEPS
from neardup.reading.compressed import BY_SUFFIX, INPUTS, OPENERS, ROWS
from neardup.reading.input_format import DEFAULT_SHINGLE
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT
from neardup.runtime.flags import Flag, read
from neardup.runtime.program import whole
from neardup.runtime.summary import MAX_BAD, SHORT_SUMMARY, in_words
from neardup.schemes import SCHEMES
from neardup.similarity.intervals import DEFAULT_SIZE
from neardup.similarity.measures import MEASURES, NINE_TENTHS, parse_fraction
from neardup.verification import OUTPUTS

DEFAULT_SCHEME, DEFAULT_THRESHOLD, EXACT = "minhash", str(NINE_TENTHS), "exact"
DEFAULT_MAX_LINE, MAX_LINE_MIB = 32, 64

# Options of every program that reads records.
CUTTING = ("--delimiter", "--quote", "--escape", "--encoding")
READING = ("--input", *CUTTING, "--id", "--text")

# Options for the use of the pairs, which do not change keys and similarities.
OUTPUT_OPTIONS = {
    "--verify",
    "--output",
    "--rule",
    "--keep",
    "--mark-prefix",
    "--merge",
    "--against",
    "--between",
    "--not-pairs",
    "--within",
    "--across",
    "--input-files",
}
SCHEME_OPTIONS: Mapping[str, Flag] = {
    option.name: option for scheme in SCHEMES.values() for option in scheme.options
}
_USUAL_MEASURE = SCHEMES[DEFAULT_SCHEME].measures[0]
_OTHER_MEASURES = [
    f"{scheme.measures[0]} for {name}"
    for name, scheme in SCHEMES.items()
    if scheme.measures[0] != _USUAL_MEASURE
]


def measures() -> list[str]:
    """Return the distinct names of the measures that any scheme supports."""
    others = (name for scheme in SCHEMES.values() for name in scheme.measures)
    return list(dict.fromkeys((*MEASURES, *others)))


def _option(metavar: str, about: str, default: Any = None, short: str | bool = False) -> Any:
    """Declare a field of `Options`, and so the option of its name; without `metavar` it is a flag.

    short: its text in -h, as in `Flag`.
    """
    return field(default=default, metadata=dict(metavar=metavar, help=about, short=short))


def _flag(about: str, short: str | bool = False) -> Any:
    return _option("", about, False, short)


def _choices(kinds: Mapping[str, Any]) -> str:
    each = "; ".join(f"{name}: {kind.help}" for name, kind in kinds.items())
    return f"{each} (default: {next(iter(kinds))})"


@dataclass(frozen=True)
class Options:
    """The values of a job's options, unparsed: from a command line, keywords, a manifest or a task.

    `Settings.of` parses them, so that all refusals come from one place, and tasks and manifests
    repeat what was typed.
    """

    scheme: str | None = _option(
        "NAME",
        f"how candidate pairs are found: {', '.join(SCHEMES)}; minhash, projection, "
        "fingerprints: a pair is found with probability --recall; partition, prefix, exact, "
        "spotsigs: every pair; auto: every pair of small sets; supershingle, simhash, imatch: "
        f"records that are nearly equal, at a lower cost (default: {DEFAULT_SCHEME}; exact at low "
        "thresholds and, on one machine, where that costs less)",
    )
    exact: bool = _flag(
        "find every pair, by the cheapest exact scheme for each size; same as --scheme exact",
        "find every pair; without it, at most 1 in 10,000 at the threshold is missed",
    )
    measure: str | None = _option(
        "NAME",
        f"how similarity is measured: {', '.join(measures())}; a measure for which "
        f"the scheme cannot promise a recall is refused (default: {_USUAL_MEASURE}; "
        f"{'; '.join(_OTHER_MEASURES)})",
    )
    threshold: str | None = _option(
        "T",
        "the minimum similarity of a pair, 0 < T <= 1, such as 0.9 or 9/10; pairs exactly "
        f"at T are included (default: {DEFAULT_THRESHOLD})",
        short=f"the minimum similarity of a pair (default: {DEFAULT_THRESHOLD})",
    )
    seed: str | None = _option("N", "seed of the hash functions, 0 to 2^64-1 (default: 0)")
    counts: str | None = _option(
        "FILE",
        "token counts from step.py count; run_local.sh, run_hadoop.sh and job.py count "
        "tokens themselves if a scheme needs it",
    )
    own_counts: bool = _flag(
        "if the file of --counts was made from exactly this input: make no keys from shingles "
        "that only one record has; with counts of another input, pairs would be lost"
    )
    input: str | None = _option(
        "KIND",
        "format of the files: shingles (lines of an ID and integers, 0 to 2^64-1; with "
        "--weights own each may be SHINGLE:WEIGHT), text (lines of an ID, a tab or else a blank, "
        "and a text), fingerprints (lines of an ID and bits in hexadecimal), or rows: "
        f"{', '.join(ROWS)}; inferred from the extension {' '.join(BY_SUFFIX)}, also before "
        f"{' '.join(OPENERS)} (default: by the extension, else shingles)",
        short=f"{', '.join(INPUTS)} (default: by the extension)",
    )
    delimiter: str | None = _option(
        "CHAR", "for CSV: character between fields, such as ';', or '\\t' for tab (default: comma)"
    )
    quote: str | None = _option(
        "CHAR", 'for CSV: what fields are in; if named, rows may have over 1,000 lines (default: ")'
    )
    escape: str | None = _option(
        "CHAR",
        "for CSV: character before a quote, delimiter or line end in a field, such as '\\' if "
        "quotes in it are not doubled; with '' none (default: none, and stop at \\\" in quotes)",
    )
    encoding: str | None = _option(
        "NAME",
        "encoding of files of text without a byte order mark, such as latin-1 or cp1252; kept "
        "records are written in it, too (default: utf-8; utf-16 and utf-32 by their marks)",
    )
    id: str | None = _option(
        "NAME",
        "for rows: the field with the id, or the column's number in a table without a "
        "header; a row without an id gets FILE:ROW, or its number alone if no row has one, as with "
        f"'' (default: {DEFAULT_ID})",
        short=f"the field of the id (default: {DEFAULT_ID})",
    )
    text: str | None = _option(
        "NAME[,NAME]",
        "for rows: the field with the text, or several, which are joined; lists of integers "
        f"are read as shingles (default: {DEFAULT_TEXT})",
        short=f"the field of the text, or several (default: {DEFAULT_TEXT})",
    )
    fingerprint: str | None = _option(
        "NAME[,NAME]",
        "for rows: the field with the fingerprint, in hexadecimal, base64 or binary, or "
        "several fields: all but the first have fingerprints of variants",
    )
    clean: str | None = _option(
        "WHAT",
        f"for texts: what to ignore: {', '.join(STEPS)}, or several with commas, such as "
        "html,punctuation; html: tags, scripts, navigation and other text outside the body; "
        "width: Ａ counts as A, ﬁ as fi; accents: é counts as e, with the points of Arabic and "
        "Hebrew; digits: numbers, with the marks inside them; punctuation: marks and symbols",
        short="ignore html, width, accents, digits or punctuation; several with commas",
    )
    shingle: str | None = _option(
        "UNIT:K",
        "for texts: every run of K words or characters, such as word:3 or char:5; with :bag "
        "added, such as word:1:bag, repeats count; or spot:C:D, chains of C words that are D words "
        "apart, one after each stop word.  Choose shingles long enough to be rare in unrelated "
        "texts: char:5 for short texts, char:9 for long ones, or word:1 to word:5; `python3 -m "
        f"neardup tune --input text FILE` compares them (default: {DEFAULT_SHINGLE}).  With "
        "--input shingles: bag, if repeats count",
        short="runs of K words or characters, such as word:3 or char:5 "
        f"(default: {DEFAULT_SHINGLE})",
    )
    verify: str = _option(
        "HOW",
        "exact, or sketch:S for sets too large to send: only the keys and the S smallest "
        f"hashes of each set are sent (S is {DEFAULT_SIZE} if omitted), and pairs have an "
        "interval, ~0.871123..0.953234, instead of a similarity; pairs whose interval reaches "
        "--threshold are written (default: exact)",
        EXACT,
    )
    output: str = _option(
        "KIND",
        _choices(OUTPUTS),
        next(iter(OUTPUTS)),
        short="pairs, links, kept, marked, removed or clusters (default: pairs)",
    )
    rule: str | None = _option("NAME", f"which records are removed; {_choices(RULES)}")
    keep: str | None = _option(
        "RULES",
        "which of several similar records to keep; "
        f"{_choices(PRIORITIES)}.  Rules may be joined with commas, such as max:stars,min:date: "
        "each breaks ties left by earlier rules, and the order of the input breaks those that "
        "remain; a record without a number or date in the field comes last",
        short="of similar records, the one to keep: first, longest, max:FIELD … (default: first)",
    )
    mark_prefix: str | None = _option(
        "TEXT",
        "what the names of the columns begin with that --output marked adds: duplicate_of, "
        "similarity, cluster and copies",
    )
    merge: str | None = _option(
        "FIELD[:DELIMITER]",
        "with --output kept or marked: add to each kept row what the rows that are removed for it "
        "have in a field, or in several with commas: lists, or texts with a delimiter, such as "
        "'tags:;' for red;round",
    )
    against: tuple[str, ...] = _option(
        "FILE",
        "old records: each pair has at least one new record, and only new records are kept or "
        "removed in an answer; may be repeated",
        (),
        short="old records: find only pairs with a new record; may be repeated",
    )
    between: bool = _flag("with --against: find only pairs of a new and an old record")
    not_pairs: str | None = _option(
        "FILE",
        "pairs to keep out, which are never printed, and never the reason of a removal or of a "
        "cluster: a file of verdicts of `neardup judge`, of which those that are different count, "
        "or lines of two ids with a tab between them.  A verdict holds for records with the "
        "shingles that were judged, under any id",
    )
    within: str | None = _option(
        "FIELD",
        "find only pairs of records with the same value of a field, such as site, compared as "
        "text; FIELD:REGEX: of what the group of a regular expression matches in it, such as "
        "'id:^([^/]*)/'; a record without a value is compared with none",
    )
    across: str | None = _option(
        "FIELD", "find only pairs of records with different values of a field, as with --within"
    )
    input_files: str | None = _option(
        "FILE",
        "for tasks that read a part of the input: a list of all its files in order, each on a "
        "line: old or new, tab, name; run_hadoop.sh and job.py make this file themselves",
    )
    max_line: str | None = _option(
        "MIB",
        f"longer lines are bad lines; in mebibytes, 1 to {MAX_LINE_MIB} "
        f"(default: {DEFAULT_MAX_LINE})",
    )
    max_bad: str | None = _option(
        "SHARE",
        "the maximum share of bad lines, 0 to 1, such as 0.25 or 1/4; with more, the exit "
        f"code is 1, after the answer; 0 means --strict (default: {in_words(MAX_BAD)})",
    )
    strict: bool = _flag("stop at the first bad line instead of counting it")
    own: Mapping[str, str] = field(default_factory=dict)  # options of schemes, by flag
    files: tuple[str, ...] = ()  # the input, whose kind may be inferred from their names
    verbosity: int = SHORT_SUMMARY

    @classmethod
    def of(cls, args: argparse.Namespace) -> Options:
        """Make options from the arguments that argparse has parsed; input files are included.

        >>> options = Options.of(argparse.Namespace(seed="8", rows="7", files=["a.csv", "-"]))
        >>> options.seed, options.own, options.files
        ('8', {'--rows': '7'}, ('a.csv',))
        """
        there = vars(args)
        given: dict[str, Any] = {
            name: tuple(there[name]) if type(there[name]) is list else there[name]
            for name in map(attribute, COMMON_OPTIONS)
            if there.get(name) is not None
        }
        values = {flag: there.get(attribute(flag)) for flag in SCHEME_OPTIONS}
        own = {flag: text for flag, text in values.items() if text is not None}
        some = (there.get(name) or [] for name in ("files", "inputs", "args"))
        files = tuple(n for names in some for n in names if n != "-")
        verbosity = there.get("verbosity", SHORT_SUMMARY)
        return cls(**given, own=own, files=files, verbosity=verbosity)

    @classmethod
    def from_arguments(cls, given: Iterable[str]) -> Options:
        """Make options from the words that `arguments` returned; ValueError for an unknown option.

        >>> Options.from_arguments(["--exact", "--seed=8"]) == Options(exact=True, seed="8")
        True
        """
        values: dict[str, Any] = {"own": {}}
        for word in given:
            flag, equals, value = word.partition("=")
            name = attribute(flag)
            default = getattr(cls, name, None) if flag in COMMON_OPTIONS else None
            if flag not in OPTIONS or bool(equals) == (default is False):
                raise ValueError(f"{word!r} is not an option")
            if flag in SCHEME_OPTIONS:
                values["own"][flag] = value
            elif default == ():
                values[name] = (*values.get(name, ()), value)
            else:
                values[name] = value if equals else True
        return cls(**values)

    def arguments(self) -> list[str]:
        """Return the options as command-line arguments for another program."""
        words = []
        for flag in OPTIONS:
            value = self.value(flag)
            for one in value if isinstance(value, tuple) else [value]:
                if one not in (None, False):
                    words.append(flag if one is True else f"{flag}={one}")
        return words

    def given_arguments(self) -> list[str]:
        """Return the command-line arguments of the options that differ from their defaults."""
        return [word for word in self.arguments() if word not in _DEFAULT_ARGUMENTS]

    def value(self, flag: str) -> str | bool | tuple[str, ...] | None:
        """Return an option's value as given, or else its default: for a scheme's option, None."""
        if flag in SCHEME_OPTIONS:
            return self.own.get(flag)
        value: str | bool | tuple[str, ...] | None = getattr(self, attribute(flag))
        return value

    def with_values(self, values: Mapping[str, str | bool]) -> Options:
        """Return a copy in which the options in `values`, {flag: value}, are replaced."""
        own = {flag: str(text) for flag, text in values.items() if flag in SCHEME_OPTIONS}
        common = {attribute(flag): value for flag, value in values.items() if flag not in own}
        return replace(self, own={**self.own, **own}, **common)  # type: ignore[arg-type]


def attribute(flag: str) -> str:
    return flag[2:].replace("-", "_")


def _all_options() -> Iterator[Flag]:
    """Yield all options; help groups keep this order."""
    for each in fields(Options):
        if each.metadata:
            metavar, about, short = each.metadata.values()
            usage = (
                f"--{each.name.replace('_', '-')} {metavar}{'…' * (each.default == ())}".rstrip()
            )
            how = {} if each.default is False else {"default": each.default or None}
            yield Flag(usage, about, short=short, how=how)
        if each.name == "threshold":
            yield from (Flag(option.usage, option.about) for option in SCHEME_OPTIONS.values())


OPTIONS = {flag.name: flag for flag in _all_options()}
COMMON_OPTIONS = [flag for flag in OPTIONS if flag not in SCHEME_OPTIONS]
_DEFAULT_ARGUMENTS = Options().arguments()


def integer(flag: str, text: str, low: int, high: int) -> int:
    """Parse the value of an option, an integer from `low` to `high`; UsageError if invalid."""
    number: int = read(flag, whole(low, high), text)
    return number


def fraction(text: str) -> Fraction:
    """Parse a share such as "0.25", "1/4" or "1"; ValueError outside 0 … 1.

    >>> fraction("1/3")
    Fraction(1, 3)
    """
    value = parse_fraction(text)
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is outside 0 <= SHARE <= 1")
    return value


def help_without(flag: str, part: str) -> str:
    """Return the help text of an option without a part that does not apply to a program."""
    assert part in OPTIONS[flag].help
    return OPTIONS[flag].help.replace(part, "")


# Help in programs without --weights, which write no records.
OF_READERS = {
    "--input": help_without("--input", "; with --weights own each may be SHINGLE:WEIGHT"),
    "--encoding": help_without("--encoding", "; kept records are written in it, too"),
}


def parser(
    name: str,
    description: str,
    names: Collection[str] = OPTIONS,
    own: Iterable[Flag] = (),
    texts: Mapping[str, str] = MappingProxyType({}),
) -> CommandParser:
    """Make a parser of the options in `names`; all other options keep their defaults.

    own: further options; texts: {name: help}, of options that do less, or something else, here.
    """
    result = CommandParser(name, description)
    for flag in OPTIONS.values():
        if flag.name in names:
            section = OF_SCHEMES if flag.name in SCHEME_OPTIONS else None
            result.add(flag._replace(help=texts.get(flag.name, flag.help)), section=section)
        else:
            result.set_defaults(**{attribute(flag.name): flag.spec.get("default")})
    result.add(*own)
    return result
