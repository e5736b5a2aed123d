"""Every option, declared once, and checked before the first line is read.

`OPTIONS` is the table: scripts, job.py and run_local.sh take their options from it, so a flag means
the same everywhere.  What schemes and outputs own is declared where they are.  `Settings` is what
the stages see.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from neardup.decisions import RULES
from neardup.decisions.rule import Rule
from neardup.lines.count_lines import read_counts
from neardup.lines.tagged_ids import COLLECTION, PRIORITIES, Tag
from neardup.process.arguments import bare_parser
from neardup.process.counters import Counters
from neardup.process.errors import UsageError
from neardup.reading.bad_lines import Parser
from neardup.reading.cleaning import STEPS
from neardup.reading.line_form import DEFAULT_SHINGLE, LineForm
from neardup.reading.shingling import Shingler
from neardup.schemes import SCHEMES
from neardup.schemes.request import Option, Request, one_of, whole
from neardup.schemes.scheme import Scheme
from neardup.schemes.sketched import Sketched
from neardup.similarity.estimated import DEFAULT_SIZE, EstimatedJaccard, sample_size
from neardup.similarity.measures import MEASURES, Measure
from neardup.similarity.threshold import Threshold
from neardup.similarity.weights import TokenWeights
from neardup.token_counts.counts import TokenCounts
from neardup.verification import ESTIMATED, OUTPUTS, RECORDS, Output
from neardup.verification.pair_join import PairJoin

DEFAULT_SCHEME, DEFAULT_THRESHOLD = "minhash", "0.9"
MAX_LINE_MIB = 64

# Of all schemes, each flag once.
SCHEME_OPTIONS: Mapping[str, Option] = {
    option.flag: option for scheme in SCHEMES.values() for option in scheme.options
}


def _measures() -> list[str]:
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

# Values stay text until `Settings.of` reads them, so that all complaints come from one place.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--scheme": dict(
        metavar="NAME",
        help=f"how records meet: {', '.join(SCHEMES)}; docs/choosing.md says which one when "
        f"(default: {DEFAULT_SCHEME})",
    ),
    "--exact": dict(
        action="store_true",
        help="miss no pair: for each size the cheaper of the exact schemes, as --scheme exact",
    ),
    "--measure": dict(
        metavar="NAME",
        help=f"how similar two records are: {', '.join(_measures())}; one that the scheme cannot "
        f"promise is refused (default: {_default_measures()})",
    ),
    "--threshold": dict(
        metavar="T",
        help="the least similarity of a pair, 0 < T <= 1, as 0.9 or 9/10; a pair exactly "
        f"at T counts (default: {DEFAULT_THRESHOLD})",
    ),
    **{
        flag: dict(metavar=option.metavar, help=option.help)
        for flag, option in SCHEME_OPTIONS.items()
    },
    "--seed": dict(metavar="N", help="draws the hash functions, 0 to 2^64-1 (default: 0)"),
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
        help="what a line is: shingles (ID and integers, 0 to 2^64-1; with --weights own each may "
        "be SHINGLE:WEIGHT) or text (ID, tab, text; without a tab the first blank) (default: "
        "shingles)",
    ),
    "--clean": dict(
        metavar="WHAT",
        help=f"with --input text: what of it is not to count: {', '.join(STEPS)}, or several with "
        "commas, as html,punctuation; docs/formats.md says what each takes out",
    ),
    "--shingle": dict(
        metavar="UNIT:K",
        help="with --input text: every run of K words or characters, as word:3 or char:5; with "
        ":bag behind it, as word:1:bag, repeats count; or spot:C:D, after each stop word a chain "
        "of C other words, each D words on.  So long that a random text seldom has a given one: "
        "char:5 for short texts, char:9 for long ones, or word:1 to word:5; `python3 -m neardup "
        f"tune --input text FILE` compares them (default: {DEFAULT_SHINGLE}).  With --input "
        "shingles: bag, where repeats count",
    ),
    "--verify": dict(
        metavar="HOW",
        default="exact",
        help="exact, or sketch:S for sets too large to send: of each travel its keys and its S "
        f"smallest hashes ({DEFAULT_SIZE} unless told), and a pair has an interval, "
        "~0.871123..0.953234, instead of a similarity; all are written whose interval reaches "
        "--threshold (default: exact)",
    ),
    "--output": dict(
        metavar="KIND",
        default=next(iter(OUTPUTS)),
        help="; ".join(f"{name}: {output.help}" for name, output in OUTPUTS.items())
        + f" (default: {next(iter(OUTPUTS))})",
    ),
    "--rule": dict(
        metavar="NAME",
        help="who goes, with --output kept or removed; "
        + "; ".join(f"{name}: {rule.help}" for name, rule in RULES.items())
        + f" (default: {next(iter(RULES))})",
    ),
    "--keep": dict(
        metavar="WHICH",
        help="who stays of records that are alike, with --output kept or removed; "
        + "; ".join(f"{name}: {tag.help}" for name, tag in PRIORITIES.items())
        + f" (default: {next(iter(PRIORITIES))})",
    ),
    "--against": dict(
        metavar="FILE",
        action="append",
        help="old records: pairs have one new record at least; --output kept or removed is of new "
        "records, and old ones always stay; may come several times",
    ),
    "--between": dict(action="store_true", help="with --against: no pairs of two new records"),
    "--input-files": dict(
        metavar="FILE",
        help="for tasks, that each read a part of the input: its files in order, a line each, old "
        "or new, tab, name; run_hadoop.sh and job.py make it by themselves",
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
    output: Output
    tag: Tag | None  # where ids travel with one
    rule: type[Rule]
    against: bool
    between: bool
    input_files: str | None
    max_line: int  # bytes
    strict: bool
    keys_of: Mapping[str, str]  # all that the keys of a line depend on, by flag; "" without one

    @classmethod
    def of(cls, args: argparse.Namespace, counts: TokenCounts | None = None) -> Settings:
        """UsageError for anything wrong or impossible; `counts` are instead of --counts."""
        for flag in ("--counts", "--against", "--input-files"):
            if (name := value_of(args, flag)) == "" or (isinstance(name, list) and "" in name):
                raise UsageError(f"{flag}: expected the name of a file, got ''")
        if counts is None and args.counts is not None:
            counts = read_counts(args.counts, bool(args.own_counts))
        form = LineForm.of(args.input, args.shingle, args.clean)
        name = _scheme_name(args)
        request = _request(args, name, counts)
        try:
            scheme = SCHEMES[name].of(request)
        except ValueError as error:
            raise UsageError(str(error)) from None
        measure: Measure = scheme.measure(request.measure, request.threshold)
        weights = scheme.weights or TokenWeights()
        kind = _read("--output", one_of(*OUTPUTS), args.output)
        tag, rule = _decision(args, kind)
        output = OUTPUTS[kind]
        if size := _read("--verify", sample_size, args.verify):
            _check_estimates(args, scheme, name, request.measure)
            scheme = Sketched(scheme, size, request.seed)
            measure, output = EstimatedJaccard(request.threshold, size), ESTIMATED
        if measure.directed and not OUTPUTS[kind].directed:
            raise UsageError(
                f"--measure {request.measure} has a direction, and --output {kind} has none; use "
                "--measure overlap, the larger of both directions"
            )
        max_line = integer("--max-line", args.max_line, 1, MAX_LINE_MIB)
        return cls(
            threshold=request.threshold,
            measure=measure,
            scheme=scheme,
            parse=form.parser(weights.repeats, weights.own),
            output=output,
            tag=tag,
            rule=rule,
            against=bool(args.against),
            between=args.between,
            input_files=args.input_files,
            max_line=max_line << 20,
            strict=args.strict,
            keys_of={
                "--scheme": name,
                **request.told(scheme.options),
                **form.told(),
                "--max-line": str(max_line),
            },
        )

    def join(self, counters: Counters) -> PairJoin:
        """What verifies the buckets."""
        if self.against and self.output.across:
            return self.output.across(self.scheme, self.measure, counters, self.between)
        return self.output.join(self.scheme, self.measure, counters)

    @property
    def promise(self) -> str:
        return self.scheme.promise

    def unsuited(self) -> list[str]:
        """Where --shingle is not what the scheme was made for: a line in words.  Spots of any
        length are spots."""
        text, suits = self.keys_of["--shingle"], self.scheme.suits_shingle
        if not text or suits is None:
            return []
        given, made_for = Shingler.parse(text), Shingler.parse(suits)
        if given == made_for or given.unit == made_for.unit == "spot":
            return []
        name = self.keys_of["--scheme"]
        return [f"--scheme {name} was made for --shingle {suits}, and --shingle is {given}"]


def settings_before_counts(args: argparse.Namespace) -> Settings:
    """As far as they are known before the tokens are counted, where a run counts them first."""
    return Settings.of(args, TokenCounts.empty() if counts_first(args) else None)


def counts_first(args: argparse.Namespace) -> bool:
    """Whether a run with these options should count tokens first."""
    scheme = SCHEMES[_scheme_name(args)]
    return args.counts is None and scheme.asks_for_counts(_scheme_values(args, scheme))


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


def as_arguments(args: argparse.Namespace) -> list[str]:
    """The table's options as they were given, for another script's command line."""
    given = ((flag, value_of(args, flag)) for flag in OPTIONS)
    values = (
        (flag, one) for flag, some in given for one in (some if isinstance(some, list) else [some])
    )
    return [
        flag if value is True else f"{flag}={value}"
        for flag, value in values
        if value not in (None, False)
    ]


def integer(flag: str, text: str, low: int, high: int) -> int:
    """The number that `text` is; UsageError where it is none from `low` to `high`."""
    number: int = _read(flag, whole(low, high), text)
    return number


def value_of(args: argparse.Namespace, flag: str) -> Any:
    return getattr(args, _attribute(flag))


def _scheme_name(args: argparse.Namespace) -> str:
    name = _given(args.scheme, "exact" if args.exact else DEFAULT_SCHEME)
    if name not in SCHEMES:
        raise UsageError(f"--scheme: {name!r} is not one of {', '.join(SCHEMES)}")
    if args.exact and name != "exact":
        raise UsageError(f"--exact is --scheme exact, and --scheme is {name}")
    for flag, option in SCHEME_OPTIONS.items():
        if value_of(args, flag) is not None and option not in SCHEMES[name].options:
            users = [other for other, scheme in SCHEMES.items() if option in scheme.options]
            raise UsageError(f"{flag} is for --scheme {' or '.join(users)}, not for {name}")
    if args.own_counts and args.counts is None:
        raise UsageError("--own-counts says what --counts are, and there are none")
    return name


def _scheme_values(args: argparse.Namespace, scheme: type[Scheme]) -> dict[str, Any]:
    """What was given for the options that the scheme owns, by flag."""
    given = ((option, value_of(args, option.flag)) for option in scheme.options)
    return {
        option.flag: _read(option.flag, option.read, text)
        for option, text in given
        if text is not None
    }


def _decision(args: argparse.Namespace, kind: str) -> tuple[Tag | None, type[Rule]]:
    """How ids are tagged, and who goes."""
    output = OUTPUTS[kind]
    users = " or ".join(name for name, other in OUTPUTS.items() if other.decides == RECORDS)
    for flag in ("--rule", "--keep"):
        if value_of(args, flag) is not None and output.decides != RECORDS:
            raise UsageError(f"{flag} is for --output {users}, and --output is {kind}")
    if args.against and not output.across:
        able = " or ".join(name for name, other in OUTPUTS.items() if other.across)
        raise UsageError(f"--against is for --output {able}, and --output is {kind}")
    if args.between and not args.against:
        raise UsageError("--between leaves out pairs of new records, and needs --against")
    rule = _read("--rule", one_of(*RULES), _given(args.rule, next(iter(RULES))))
    keep = _read("--keep", one_of(*PRIORITIES), _given(args.keep, next(iter(PRIORITIES))))
    if args.against and rule == "cluster":
        raise UsageError("--rule cluster is for one collection; with --against use --rule direct")
    tag: Tag | None = COLLECTION if args.against else None
    if output.decides:
        tag = PRIORITIES[keep if output.decides == RECORDS else "smallest"]
    return tag, RULES[rule].rule


def _check_estimates(args: argparse.Namespace, scheme: Scheme, name: str, measure: str) -> None:
    """UsageError where --verify sketch cannot be."""
    if measure != "jaccard":
        raise UsageError(
            f"--verify sketch estimates --measure jaccard, and --measure is {measure}; name "
            "--measure jaccard, or leave --verify out"
        )
    if scheme.weights is not None:
        raise UsageError(
            "--verify sketch estimates the similarity of sets, without weights; leave out one of "
            "--weights and --verify"
        )
    if args.output != "pairs":
        raise UsageError(
            f"--output {args.output} needs exact pairs, and --verify sketch has estimates; leave "
            "--verify out"
        )
    if args.against:
        raise UsageError(
            "--against is for exact pairs, and --verify sketch has estimates; leave --verify out"
        )
    if counts_first(args):
        raise UsageError(
            f"--scheme {name} counts the tokens of all records first, and --verify sketch sends "
            "none; take --scheme minhash, or name --counts FILE, as count_tokens.py makes them"
        )


def _request(args: argparse.Namespace, name: str, counts: TokenCounts | None) -> Request:
    """What is asked of the scheme of that name."""
    scheme = SCHEMES[name]
    measure = _given(args.measure, scheme.measures[0])
    if measure not in scheme.measures:
        raise UsageError(_cannot_promise(measure, name))
    values = _scheme_values(args, scheme)
    text = _given(args.threshold, DEFAULT_THRESHOLD)
    threshold = _read("--threshold", Threshold.parse, text)
    resemblance = None
    if measure in MEASURES:
        resemblance = _read("--threshold", lambda _: MEASURES[measure](threshold).resemblance, text)
    return Request(
        threshold=threshold,
        resemblance=resemblance,
        measure=measure,
        threshold_given=args.threshold is not None,
        seed=integer("--seed", _given(args.seed, "0"), 0, 2**64 - 1),
        counts=counts if scheme.asks_for_counts(values) else None,
        values=values,
    )


def _cannot_promise(measure: str, scheme: str) -> str:
    able = [name for name, other in SCHEMES.items() if measure in other.measures]
    if not able:
        return f"--measure: {measure!r} is not one of {', '.join(_measures())}"
    why = ""
    if measure in ("overlap", "containment"):
        why = ": a small set inside a large one has next to no Jaccard similarity"
    others = " or ".join(able)
    return f"--scheme {scheme} cannot promise --measure {measure}{why}; use --scheme {others}"


def _attribute(flag: str) -> str:
    return flag[2:].replace("-", "_")


def _given(text: str | None, default: str) -> str:
    return default if text is None else text


def _read(flag: str, read: Callable[[str], Any], text: str) -> Any:
    """UsageError where `read` raises ValueError."""
    try:
        return read(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None
