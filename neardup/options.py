"""Every option, declared once, and checked before the first line is read.

`OPTIONS` is the table: scripts, job.py and run_local.sh take their options from it, so a flag means
the same everywhere.  `Settings` is what the stages see.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neardup import lsh
from neardup.errors import UsageError
from neardup.keys import MAX_BANDS
from neardup.measures import Threshold
from neardup.records import Parser, parse_shingle_lines, text_line_parser
from neardup.schemes import SCHEMES, Scheme
from neardup.shingling import Shingler

MAX_ROWS = 256
MAX_LINE_MIB = 64

# Values stay text until `Settings.of` reads them, so that all complaints come from one place.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--threshold": dict(
        metavar="T",
        default="0.9",
        help="the least similarity (Jaccard) of a pair, 0 < T <= 1, as 0.9 or 9/10; a pair exactly "
        "at T counts (default: 0.9)",
    ),
    "--recall": dict(
        metavar="P",
        help="the promise: a pair exactly at T is found with probability P or more, and one above "
        "T still more likely; bands and rows follow from it (default: 0.9999)",
    ),
    "--max-bands": dict(
        metavar="N",
        help="the most bands the promise may cost; each band sends every record once more, and "
        "fewer bands leave more false candidates to verify (default: 16)",
    ),
    "--bands": dict(metavar="B", help="bands by hand, together with --rows"),
    "--rows": dict(metavar="R", help="min-hashes in a band, together with --bands"),
    "--seed": dict(
        metavar="N", default="0", help="draws the hash functions, 0 to 2^64-1 (default: 0)"
    ),
    "--input": dict(
        metavar="KIND",
        default="shingles",
        help="what a line is: shingles (ID and integers, 0 to 2^64-1) or text (ID, tab, text; "
        "without a tab the first blank) (default: shingles)",
    ),
    "--shingle": dict(
        metavar="UNIT:K",
        help="with --input text: every run of K words or characters, as word:3 or char:5 "
        "(default: word:3)",
    ),
    "--output": dict(
        metavar="KIND",
        default="pairs",
        help="pairs: every pair; links: only the edges that a spanning forest of each bucket "
        "needs, so a thousand copies give 999 lines and not 499,500 (default: pairs)",
    ),
    "--max-line": dict(
        metavar="MIB",
        default="32",
        help=f"longer lines are bad lines; in mebibytes, 1 to {MAX_LINE_MIB} (default: 32)",
    ),
    "--strict": dict(action="store_true", help="stop at the first bad line instead of counting it"),
}


@dataclass(frozen=True)
class Settings:
    """The options, read and checked."""

    threshold: Threshold
    scheme: Scheme
    promise: str
    parse: Parser
    links: bool
    max_line: int  # bytes
    strict: bool

    @classmethod
    def of(cls, args: argparse.Namespace) -> Settings:
        """UsageError for anything wrong or impossible."""
        threshold = _read("--threshold", Threshold.parse, args.threshold)
        bands, rows = _bands_and_rows(args, threshold)
        scheme = SCHEMES["minhash"](bands, rows, integer("--seed", args.seed, 0, 2**64 - 1))
        input_ = _one_of("--input", args.input, "shingles", "text")
        if args.shingle is not None and input_ != "text":
            raise UsageError("--shingle is for --input text, and --input is shingles")
        shingler = _read("--shingle", Shingler.parse, _given(args.shingle, "word:3"))
        return cls(
            threshold=threshold,
            scheme=scheme,
            promise=f"{bands} bands of {rows} rows find a pair at {threshold} "
            f"with probability {scheme.recall(float(threshold)):.6f}",
            parse=text_line_parser(shingler) if input_ == "text" else parse_shingle_lines,
            links=_one_of("--output", args.output, "pairs", "links") == "links",
            max_line=integer("--max-line", args.max_line, 1, MAX_LINE_MIB) << 20,
            strict=args.strict,
        )


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """A parser of all options in the table."""
    result = bare_parser(name, description)
    for flag, spec in OPTIONS.items():
        result.add_argument(flag, **spec)
    return result


def bare_parser(name: str, description: str) -> argparse.ArgumentParser:
    """One without options of its own, that shows `description` as it is laid out."""
    return argparse.ArgumentParser(
        prog=name,
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def as_arguments(args: argparse.Namespace) -> list[str]:
    """The table's options as they were given, for another script's command line."""
    values = {flag: getattr(args, flag[2:].replace("-", "_")) for flag in OPTIONS}
    return [
        flag if value is True else f"{flag}={value}"
        for flag, value in values.items()
        if value not in (None, False)
    ]


def integer(flag: str, text: str, low: int, high: int) -> int:
    """The number that `text` is; UsageError where it is none from `low` to `high`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and low <= int(text) <= high):
        raise UsageError(f"{flag}: {text!r} is not an integer from {low} to {high}")
    return int(text)


def _bands_and_rows(args: argparse.Namespace, threshold: Threshold) -> tuple[int, int]:
    """From the promise, or by hand and not against it."""
    t = float(threshold)
    promise = _read("--recall", _probability, _given(args.recall, "0.9999"))
    max_bands = integer("--max-bands", _given(args.max_bands, "16"), 1, MAX_BANDS)
    if args.bands is None and args.rows is None:
        try:
            return lsh.choose(t, promise, max_bands)
        except ValueError as error:
            raise UsageError(str(error)) from None
    if args.bands is None or args.rows is None:
        given, missing = ("--rows", "--bands") if args.bands is None else ("--bands", "--rows")
        raise UsageError(f"{given} needs {missing}; or leave both to --recall")
    bands = integer("--bands", args.bands, 1, MAX_BANDS)
    rows = integer("--rows", args.rows, 1, MAX_ROWS)
    if args.max_bands and bands > max_bands:
        raise UsageError(f"--bands {bands} is more than --max-bands {max_bands}")
    reached = lsh.recall(t, bands, rows)
    if args.recall and reached < promise:
        raise UsageError(
            f"{bands} bands of {rows} rows have a recall of {reached:.6f} at threshold "
            f"{threshold}, and --recall asks for {promise:g}"
        )
    return bands, rows


def _given(text: str | None, default: str) -> str:
    return default if text is None else text


def _read(flag: str, read: Any, text: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not 0 < value < 1:
        raise ValueError(f"{text} is outside 0 < P < 1; only an exact scheme finds every pair")
    return value


def _one_of(flag: str, text: str, *kinds: str) -> str:
    if text not in kinds:
        raise UsageError(f"{flag}: {text!r} is not {' or '.join(kinds)}")
    return text
