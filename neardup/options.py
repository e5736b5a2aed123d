"""Every option, declared once, and checked before the first line is read.

`OPTIONS` is the table: scripts, job.py and run_local.sh take their options from it, so a flag means
the same everywhere.  `Settings` is what the stages see.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neardup.lines.count_lines import read_counts
from neardup.lines.keys import MAX_BANDS
from neardup.process.errors import UsageError
from neardup.reading.bad_lines import Parser
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.reading.shingling import Shingler
from neardup.reading.text_lines import text_line_parser
from neardup.schemes import SCHEMES
from neardup.schemes.scheme import Request, Scheme
from neardup.similarity.measures import MEASURES, Measure
from neardup.similarity.threshold import Threshold
from neardup.token_counts.counts import TokenCounts

MAX_ROWS = 256
MAX_LINE_MIB = 64
MAX_LEXICONS = 100
MAX_DISTANCE = 16

SCHEME_OPTIONS = (
    "--recall",
    "--max-bands",
    "--bands",
    "--rows",
    "--distance",
    "--weights",
    "--idf",
    "--lexicons",
)

# Values stay text until `Settings.of` reads them, so that all complaints come from one place.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--scheme": dict(
        metavar="NAME",
        help=f"how records meet: {', '.join(SCHEMES)}; the README says which one when "
        "(default: minhash)",
    ),
    "--exact": dict(
        action="store_true",
        help="miss no pair: for each size the cheaper of the exact schemes, as --scheme exact",
    ),
    "--measure": dict(
        metavar="NAME",
        help="how similar two records are: jaccard, dice, cosine, overlap or containment, and for "
        "simhash hamming; one that the scheme cannot promise is refused (default: jaccard, but "
        "hamming for simhash, and cosine for projection)",
    ),
    "--threshold": dict(
        metavar="T",
        help="the least similarity of a pair, 0 < T <= 1, as 0.9 or 9/10; a pair exactly "
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
        "fewer bands leave more false candidates to verify (default: 16; projection 128)",
    ),
    "--bands": dict(metavar="B", help="bands by hand, together with --rows"),
    "--rows": dict(
        metavar="R", help="min-hashes (bits, with projection) in a band, together with --bands"
    ),
    "--seed": dict(metavar="N", help="draws the hash functions, 0 to 2^64-1 (default: 0)"),
    "--distance": dict(
        metavar="K",
        help="with --scheme simhash: the most bits in which the fingerprints of a pair differ "
        "(default: 3)",
    ),
    "--weights": dict(
        metavar="KIND",
        help="with simhash and projection: one for every token, or idf, so that rare tokens weigh "
        "more (default: one)",
    ),
    "--idf": dict(
        metavar="LOW:HIGH",
        help="with --scheme imatch: which tokens are kept, by their idf as a share of the highest "
        "possible (default: 0.1:0.9)",
    ),
    "--lexicons": dict(
        metavar="L",
        help="with --scheme imatch: of how many random lexicons records must agree in one "
        "(default: 1)",
    ),
    "--counts": dict(
        metavar="FILE",
        help="token counts, as count_tokens.py makes them; run_local.sh, run_hadoop.sh and job.py "
        "count by themselves where a scheme asks for it",
    ),
    "--own-counts": dict(
        action="store_true",
        help="the counts are of this very input, as those that are made by themselves: a shingle "
        "that one record has is no key then; with counts of anything else, pairs would be lost",
    ),
    "--input": dict(
        metavar="KIND",
        default="shingles",
        help="what a line is: shingles (ID and integers, 0 to 2^64-1) or text (ID, tab, text; "
        "without a tab the first blank) (default: shingles)",
    ),
    "--shingle": dict(
        metavar="UNIT:K",
        help="with --input text: every run of K words or characters, as word:3 or char:5; with "
        ":bag behind it, as word:1:bag, repeats count; or spot:C:D, after each stop word a chain "
        "of C other words, each D words on (default: word:3)",
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
    measure: Measure
    scheme: Scheme
    parse: Parser
    links: bool
    max_line: int  # bytes
    strict: bool

    @classmethod
    def of(cls, args: argparse.Namespace, counts: TokenCounts | None = None) -> Settings:
        """UsageError for anything wrong or impossible; `counts` are instead of --counts."""
        if args.counts == "":
            raise UsageError("--counts: expected the name of a file, got ''")
        if counts is None and args.counts is not None:
            counts = read_counts(args.counts, args.own_counts)
        input_ = _one_of("--input", args.input, "shingles", "text")
        if args.shingle is not None and input_ != "text":
            raise UsageError("--shingle is for --input text, and --input is shingles")
        shingler = _read("--shingle", Shingler.parse, _given(args.shingle, "word:3"))
        name = _scheme_name(args)
        request = _request(args, SCHEMES[name], counts)
        try:
            scheme = SCHEMES[name].of(request)
        except ValueError as error:
            raise UsageError(str(error)) from None
        measure = scheme.measure(request.measure, request.threshold)
        links = _one_of("--output", args.output, "pairs", "links") == "links"
        if links and measure.directed:
            raise UsageError(
                f"--output links have no direction, and --measure {request.measure} has"
            )
        return cls(
            threshold=request.threshold,
            measure=measure,
            scheme=scheme,
            parse=text_line_parser(shingler) if input_ == "text" else parse_shingle_lines,
            links=links,
            max_line=integer("--max-line", args.max_line, 1, MAX_LINE_MIB) << 20,
            strict=args.strict,
        )

    @property
    def promise(self) -> str:
        return self.scheme.promise


def parser(
    name: str, description: str, flags: Collection[str] = OPTIONS
) -> argparse.ArgumentParser:
    """A parser of the options in the table; all not among `flags` keep their defaults."""
    result = bare_parser(name, description)
    for flag, spec in OPTIONS.items():
        if flag in flags:
            result.add_argument(flag, **spec)
        else:
            result.set_defaults(**{_attribute(flag): spec.get("default")})
    return result


def bare_parser(name: str, description: str) -> argparse.ArgumentParser:
    """One without options of its own, that shows `description` as it is laid out."""
    return _Parser(
        prog=name,
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


class _Parser(argparse.ArgumentParser):
    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """`--rows=--` has a value, which Python before 3.13 takes away."""
        alone = action.nargs is None and arg_strings == ["--"]
        return "--" if alone else super()._get_values(action, arg_strings)

    def parse_known_intermixed_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """What stands behind `--` is no option; the same Pythons read it twice, and forget."""
        given = sys.argv[1:] if args is None else list(args)
        known = self.parse_known_args if "--" in given else super().parse_known_intermixed_args
        return known(given, namespace)


def as_arguments(args: argparse.Namespace) -> list[str]:
    """The table's options as they were given, for another script's command line."""
    values = {flag: value_of(args, flag) for flag in OPTIONS}
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


def _scheme_name(args: argparse.Namespace) -> str:
    name = _given(args.scheme, "exact" if args.exact else "minhash")
    if name not in SCHEMES:
        raise UsageError(f"--scheme: {name!r} is not one of {', '.join(SCHEMES)}")
    if args.exact and name != "exact":
        raise UsageError(f"--exact is --scheme exact, and --scheme is {name}")
    for flag in SCHEME_OPTIONS:
        if value_of(args, flag) is not None and flag not in SCHEMES[name].options:
            users = [other for other, scheme in SCHEMES.items() if flag in scheme.options]
            raise UsageError(f"{flag} is for --scheme {' or '.join(users)}, not for {name}")
    if args.own_counts and args.counts is None:
        raise UsageError("--own-counts says what --counts are, and there are none")
    return name


def _request(args: argparse.Namespace, scheme: type[Scheme], counts: TokenCounts | None) -> Request:
    """What is asked of the scheme."""
    measure = _given(args.measure, scheme.measures[0])
    if measure not in scheme.measures:
        raise UsageError(_cannot_promise(measure, _scheme_name(args)))
    if measure == "hamming" and args.threshold is not None:
        raise UsageError(
            "--threshold: fingerprints are verified by --distance, or name a --measure"
        )
    threshold = _read("--threshold", Threshold.parse, _given(args.threshold, "0.9"))
    resemblance = None
    if measure in MEASURES:
        text = _given(args.threshold, "0.9")
        resemblance = _read("--threshold", lambda _: MEASURES[measure](threshold).resemblance, text)
    return Request(
        threshold=threshold,
        resemblance=resemblance,
        measure=measure,
        recall=_optional("--recall", _probability, args.recall),
        max_bands=_number(args, "--max-bands", 1, MAX_BANDS),
        bands=_number(args, "--bands", 1, MAX_BANDS),
        rows=_number(args, "--rows", 1, MAX_ROWS),
        seed=integer("--seed", _given(args.seed, "0"), 0, 2**64 - 1),
        distance=integer("--distance", _given(args.distance, "3"), 0, MAX_DISTANCE),
        weighted=_one_of("--weights", _given(args.weights, "one"), "one", "idf") == "idf",
        idf=_read("--idf", _band, _given(args.idf, "0.1:0.9")),
        lexicons=integer("--lexicons", _given(args.lexicons, "1"), 1, MAX_LEXICONS),
        counts=counts if scheme.counting or args.weights == "idf" else None,
    )


def settings_before_counts(args: argparse.Namespace) -> Settings:
    """As far as they are known before the tokens are counted, where a run counts them first."""
    return Settings.of(args, TokenCounts.empty() if counts_first(args) else None)


def counts_first(args: argparse.Namespace) -> bool:
    """Whether a run with these options should count tokens first."""
    asked = SCHEMES[_scheme_name(args)].counting or args.weights == "idf"
    return asked and args.counts is None


def _cannot_promise(measure: str, scheme: str) -> str:
    able = [name for name, other in SCHEMES.items() if measure in other.measures]
    if not able:
        names = dict.fromkeys(name for other in SCHEMES.values() for name in other.measures)
        return f"--measure: {measure!r} is not one of {', '.join(names)}"
    why = ""
    if measure in ("overlap", "containment"):
        why = ": a small set inside a large one has next to no Jaccard similarity"
    others = " or ".join(able)
    return f"--scheme {scheme} cannot promise --measure {measure}{why}; use --scheme {others}"


def value_of(args: argparse.Namespace, flag: str) -> Any:
    return getattr(args, _attribute(flag))


def _attribute(flag: str) -> str:
    return flag[2:].replace("-", "_")


def _number(args: argparse.Namespace, flag: str, low: int, high: int) -> int | None:
    return _optional(flag, lambda text: integer(flag, text, low, high), value_of(args, flag))


def _optional(flag: str, read: Any, text: str | None) -> Any:
    return None if text is None else _read(flag, read, text)


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


def _band(text: str) -> tuple[float, float]:
    """Read "0.1:0.9"."""
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"{text!r} is not LOW:HIGH, such as 0.1:0.9") from None
    if not 0 <= low < high <= 1:
        raise ValueError(f"{text} is outside 0 <= LOW < HIGH <= 1")
    return low, high


def _one_of(flag: str, text: str, *kinds: str) -> str:
    if text not in kinds:
        raise UsageError(f"{flag}: {text!r} is not {' or '.join(kinds)}")
    return text
