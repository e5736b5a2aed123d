"""`Settings`: all options of a run, parsed and checked before the first line is read."""

from __future__ import annotations

import os
import re
import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from neardup.decisions import RULES
from neardup.decisions.merged_rows import FLAG, Merge, parse_merge
from neardup.decisions.rules import Rule
from neardup.lines.count_lines import read_counts
from neardup.lines.tagged_ids import COLLECTION, PRIORITIES, Tag, mark_of, tag_of
from neardup.options import table
from neardup.options.table import Options
from neardup.reading.blocks import Block, InputFile, Pieces, numbered, read_files
from neardup.reading.compressed import ROWS
from neardup.reading.field_values import ACROSS, WITHIN, Values
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.reading.folder_walk import part_of_path
from neardup.reading.input_check import Parser
from neardup.reading.input_files import check_regular
from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import Shingler
from neardup.runtime.counters import Counters
from neardup.runtime.flags import read
from neardup.runtime.program import StageError, UsageError, check_file_name, not_one_of, one_of
from neardup.runtime.summary import MAX_BAD
from neardup.schemes import SCHEMES
from neardup.schemes.banding import is_too_low
from neardup.schemes.fingerprints import Hamming
from neardup.schemes.minhash import Sketched
from neardup.schemes.scheme import Request, Scheme
from neardup.sets.bit_vectors import DEFAULT_BITS, DIGIT_BITS
from neardup.sets.token_counts import TokenCounts
from neardup.similarity import measures
from neardup.similarity.intervals import EstimatedJaccard, sample_size
from neardup.similarity.measures import MEASURES, NINE_TENTHS, Measure, SetMeasure, Threshold
from neardup.verification import ESTIMATED, OUTPUTS, RECORDS, Output
from neardup.verification.not_pairs import NotPairs
from neardup.verification.pair_join import PairJoin
from neardup.verification.record_pairs import TwinEdges

IDF_WITHIN = (
    "--within cannot be used with weights by idf, which need the tokens of all records; use "
    "--weights tf, or none"
)
BY = b"!"  # before edges: the options that they were made with; sorts before all tagged ids
# Options of the mapper alone; it may infer --input from names, and --fingerprint changes keys.
READS_BY = {*table.READING, "--clean", "--shingle"} - {"--input"}


class Settings(NamedTuple):
    """The scheme, measure, input format and output that follow from the options."""

    threshold: Threshold
    measure: Measure
    scheme: Scheme
    form: InputFormat
    pieces: Pieces  # the reader of a file; it refuses rows without the fields if few may be bad
    parse: Parser
    output: Output
    tag: Tag | None  # sent with ids
    way: tuple[object, ...]  # the output options, see `mark`
    rule: type[Rule]
    against: bool
    between: bool
    not_pairs: NotPairs | None
    input_files: str | None
    max_line: int  # bytes
    strict: bool
    max_bad: Fraction  # maximum share of bad lines
    name: str  # of the scheme
    request: Request  # request to the scheme
    mark_prefix: str = ""  # before the names of columns that --output marked adds
    merge: Merge = MappingProxyType({})
    lists_ids: bool = False  # the ids of removed records are listed, and so are to be unique
    given: tuple[str, ...] = ()  # options as words of a command line

    @classmethod
    def of(cls, options: Options, counts: TokenCounts | None = None) -> Settings:
        """Parse options; UsageError if one is invalid.  `counts`, if given, replaces --counts."""
        for flag in ("--counts", "--input-files", "--not-pairs", "--against"):
            if options.value(flag) == "" or (flag == "--against" and "" in options.against):
                check_file_name(flag, "")
        for file in filter(None, (options.counts, options.not_pairs)):
            if Path(file).is_fifo():  # each process of a run reads it
                check_regular([file])
        max_bad = _max_bad(options)
        if counts is None and options.counts is not None:
            counts = read_counts(options.counts, bool(options.own_counts))
        form = form_of(options)
        name = _scheme_name(options)
        request, scheme = _request(options, name, counts)
        measure: Measure = scheme.measure(request.measure, request.threshold)
        output = OUTPUTS[read("--output", one_of(*OUTPUTS), options.output)]
        if output.decides and isinstance(measure, SetMeasure):
            measure = measure.undirected()  # the order of a decision gives the direction
        tag, way, rule = _decision(options, measure.nested, form)
        not_pairs = _not_pairs(options, output, measure.nested, form)
        if options.verify != table.EXACT:
            scheme, measure, output = _estimated(options, scheme, name, request)
        if measure.directed and not output.directed:
            instead = "measure overlap" if request.measure == "containment" else "output clusters"
            raise UsageError(
                f"--measure {request.measure} has a direction, and --output {options.output} has "
                f"none; use --{instead}, the larger of both directions"
            )
        weights = scheme.weights
        if form.values and form.values.equal and weights and weights.idf:
            raise UsageError(IDF_WITHIN)
        max_line = table.DEFAULT_MAX_LINE
        if options.max_line is not None:
            max_line = table.integer("--max-line", options.max_line, 1, table.MAX_LINE_MIB)
        return cls(
            threshold=measure.threshold if isinstance(measure, Hamming) else request.threshold,
            measure=measure,
            scheme=scheme,
            form=form,
            pieces=form.pieces if max_bad <= MAX_BAD else form.pieces_of_any,
            parse=form.parser(weights.repeats, weights.own) if weights else form.parser(),
            output=output,
            tag=tag,
            way=way,
            rule=rule,
            against=bool(options.against),
            between=options.between,
            not_pairs=not_pairs,
            input_files=options.input_files,
            max_line=max_line << 20,
            strict=max_bad == 0,
            max_bad=max_bad,
            name=name,
            request=request,
            mark_prefix=_mark_prefix(options),
            merge=_merge(options, form),
            lists_ids=options.output == "removed",
            given=(*options.given_arguments(),),
        )

    @property
    def keys_of(self) -> dict[str, str]:
        """The options that keys depend on: {flag: value}; "" if an option is not given."""
        request = self.request
        own = self.scheme.option_values(request)
        return {
            "--scheme": self.name,
            "--measure": request.measure,
            "--threshold": request.threshold.exactly(),
            **{flag: "" if value is None else str(value) for flag, value in own.items()},
            "--seed": str(request.seed),
            "--counts": request.counts.description() if request.counts else "",
            **self.form.key_options(),
            "--max-line": str(self.max_line >> 20),
        }

    @property
    def mark(self) -> int:
        """A hash of the options, XORed into keys on lines: mapper and reducer must have the same.

        It is 0 for the default options.
        """
        return mark_of(self._decides_answer) ^ _mark_by_default()

    @property
    def _decides_answer(self) -> tuple[object, ...]:
        form, made = self.form.key_options(), list[tuple[str, str]]()
        if self.output.decides:  # otherwise the keys themselves tell, and the pairs are right
            made = [(flag, value) for flag, value in self.keys_of.items() if flag not in form]
        read = [word for word in self.given if word.partition("=")[0] in READS_BY]
        return made, read, self.way, self.not_pairs and self.not_pairs.mark

    @property
    def rows_by(self) -> bytes:
        """A hash of how a file is cut into rows, which decide their places; b"" for the default."""
        numbered = self.form.fields is not None and self.form.fields.numbered
        cut = [word for word in self.given if word.partition("=")[0] in table.CUTTING]
        return b"-%08x" % (mark_of((numbered, cut)) & 0xFFFFFFFF) if numbered or cut else b""

    @property
    def decides_by(self) -> bytes:
        """A line before all edges, so that reducer and decision have the same options.

        The options follow as words, for `check_edges`.
        """
        words = [quote(word, "/=,:", errors="surrogateescape") for word in self.given]
        return b"%b%010x %b\t\n" % (BY, self.mark, " ".join(words).encode())

    def check_edges(self, by: bytes) -> None:
        """Raise StageError if `by`, the line of `decides_by` before edges, has other options."""
        if by.split()[0] == self.decides_by.split()[0]:
            return
        theirs = [unquote(word, errors="surrogateescape") for word in by.decode().split()[1:]]
        raise StageError(
            "these edges were not made with the options given here; type, with the same files: "
            f"./step.py decide {shlex.join(theirs)}; or give the options to mapper.py and "
            "reducer.py, too"
        )

    def probe(self) -> str:
        """Return a digest that differs if another version would make other keys."""
        return self.scheme.probe() + self.form.probe()

    def blocks(self, files: Iterable[str], **how: Any) -> Iterator[Block]:
        """Yield blocks of lines of the files with these names, for `parse`."""
        return self.read(numbered(files), **how)

    def read(self, files: Sequence[InputFile], **how: Any) -> Iterator[Block]:
        """Yield blocks of lines of the files, for `parse`; see `reading.blocks.read_files`."""
        return read_files(files, self.max_line, pieces=self.pieces, **how)

    def join(self, counters: Counters, kind: type[PairJoin] | None = None) -> PairJoin:
        """Return the join that turns buckets of records into lines of pairs or of edges.

        kind: the class of the join, if not that of the output.
        """
        output = self.output
        parts = output.across if self.against and output.across else output.parts
        parts = output.between if self.between and output.between else parts
        values = self.form.values if self.form.pairs_by_value else None
        equal = values.equal if values else None
        edges, pairs, lines = parts
        if output.decides and equal is False:
            lines = TwinEdges
        nested = output.decides == RECORDS and self.measure.nested
        two = self.against or values is not None
        out = self.not_pairs and replace(self.not_pairs, tag=self.tag)
        pairing = pairs(counters, two, self.between, nested, out, equal)
        written = lines(self.measure, None if output.decides else self.tag)
        return (kind or edges)(self.scheme, self.measure, counters, pairing, written)

    def unsuited(self) -> list[str]:
        """Return a list with a warning if the scheme was made for another --shingle, else []."""
        text, suits = self.form.key_options()["--shingle"], self.scheme.suits_shingle
        if not text or suits is None:
            return []
        given, made_for = Shingler.parse(text), Shingler.parse(suits)
        if given == made_for or given.unit == made_for.unit == "spot":
            return []
        return [f"--scheme {self.name} was made for --shingle {suits}, and --shingle is {given}"]


@cache
def _mark_by_default() -> int:
    return mark_of(Settings.of(Options())._decides_answer)


def form_of(options: Options) -> InputFormat:
    """Return the input format that options and file names imply; UsageError if they disagree."""
    old = [name for name in options.against if not os.path.isdir(name)]  # a folder is an index
    how = options.input, options.shingle, options.clean, options.id, options.text
    bits = table.SCHEME_OPTIONS["--bits"]
    number = DEFAULT_BITS
    if of_fingerprints(options) and bits.name in options.own:
        number = read(bits.name, bits.read, options.own[bits.name])
        if number % DIGIT_BITS:
            raise UsageError(
                f"{bits.name} {number} is not a multiple of {DIGIT_BITS}, the bits of a "
                "hexadecimal digit"
            )
    ranked = tag_of_records(options.keep).fields if options.keep is not None else ()
    files = [*old, *options.files]
    written = options.delimiter, options.encoding, options.quote, options.escape
    values = values_of(options)
    return InputFormat.of(*how, files, options.fingerprint, number, ranked, *written, values)


def values_of(options: Options) -> Values | None:
    """Return the field of --within or --across; UsageError if both are given."""
    if options.within is not None and options.across is not None:
        raise UsageError("--within and --across limit the same pairs; leave one of them out")
    if options.within is not None:
        in_ids = options.not_pairs is not None  # whose digests are those of the sets as they are
        return Values.of(WITHIN, options.within)._replace(in_ids=in_ids)
    return None if options.across is None else Values.of(ACROSS, options.across)


def values_of_paths(args: Namespace, what: str) -> Values | None:
    """Return the value of --within or --across of files; put it into `args` as that of their ids.

    UsageError if it is invalid, or unknown of old files (args.against); what: pictures or videos
    """
    parts = args.within, args.across
    args.within, args.across = map(part_of_path, (WITHIN, ACROSS), parts, [args.folders] * 2)
    if args.against and "root" in parts:
        raise UsageError(f"--against: old {what} have no root; type folder or path:REGEX instead")
    return values_of(Options(within=args.within, across=args.across))


def tag_of_records(keep: str) -> Tag:
    """Return the format of tagged ids for the rules of --keep; UsageError if a rule is invalid."""
    return read("--keep", tag_of, keep)


def of_fingerprints(options: Options) -> bool:
    return options.input == FINGERPRINTS or options.fingerprint is not None


def of_distance(options: Options) -> bool:
    """Return whether the named scheme compares by Hamming distance, and no measure is given."""
    scheme = SCHEMES.get(options.scheme or "")
    return scheme is not None and scheme.measures[0] == "hamming" and not options.measure


def with_input(options: Options) -> Options:
    """Return the options with --input, if file names imply it, for tasks that get no file names."""
    form = form_of(options)
    named = options.input is None and form.fields
    return replace(options, input=form.input) if named else options


def settings_before_counts(options: Options) -> Settings:
    """Return the settings, with empty token counts if the run will count tokens first."""
    return Settings.of(options, TokenCounts.empty() if counts_first(options) else None)


def counts_first(options: Options) -> bool:
    """Return whether a run with these options has to count tokens first."""
    scheme = SCHEMES[_scheme_name(options)]
    return options.counts is None and scheme.asks_for_counts(_scheme_values(options, scheme))


def names_no_scheme(options: Options) -> bool:
    """Return whether a run on one machine may choose the scheme; the default needs no counts."""
    named = options.scheme, options.seed, options.counts
    plain = options.verify == table.EXACT and options.output != "links" and not options.exact
    usual = named == (None, None, None) and not options.own and plain
    return usual and _scheme_name(options) == table.DEFAULT_SCHEME


def stays_exact(options: Options) -> bool:
    """Return whether a scheme counts tokens, and keeps its recall with counts of other records."""
    scheme = SCHEMES[_scheme_name(options)]
    return scheme.counting and scheme.keeps_recall


def _scheme_name(options: Options) -> str:
    """Return the name of the scheme; UsageError if it is unknown or an option does not fit it."""
    name, prints = options.scheme, of_fingerprints(options)
    if name is None:
        low = options.threshold is not None and _is_too_low(options.threshold, options)
        name = "exact" if options.exact or low else table.DEFAULT_SCHEME
        name = FINGERPRINTS if prints else name
    if name not in SCHEMES:
        raise UsageError(f"--scheme: {not_one_of(name, SCHEMES)}")
    if prints and name != FINGERPRINTS:
        raise UsageError(f"--scheme {name} compares sets, not fingerprints; leave out --scheme")
    if name == FINGERPRINTS and not prints:
        raise UsageError(
            f"--scheme {name} needs --input {FINGERPRINTS} or, for rows, --fingerprint NAME"
        )
    if options.exact and name not in ("exact", FINGERPRINTS):
        raise UsageError(
            f"--exact means --scheme exact, but --scheme is {name}; leave out one of them"
        )
    for flag in options.own:
        option = table.SCHEME_OPTIONS[flag]
        if option not in SCHEMES[name].options:
            if prints:
                raise UsageError(f"{flag} does not apply to fingerprints; leave it out")
            users = [other for other, scheme in SCHEMES.items() if option in scheme.options]
            raise UsageError(f"{flag} needs --scheme {' or '.join(users)}, but --scheme is {name}")
    if options.own_counts and options.counts is None:
        raise UsageError("--own-counts needs --counts")
    return name


def _is_too_low(threshold: str, options: Options) -> bool:
    """Return whether the threshold is so low that an exact scheme is the default."""
    measure = options.measure or "jaccard"
    if options.own or options.verify != table.EXACT or measures.usage_of(measure) not in MEASURES:
        return False
    try:
        least = measures.measure_of(measure, Threshold.parse(threshold)).resemblance
    except ValueError:
        return False  # `_request` refuses such a threshold
    return least is not None and is_too_low(float(least))


def _scheme_values(options: Options, scheme: type[Scheme]) -> dict[str, Any]:
    """Return {flag: parsed value} for the options of the scheme that were given."""
    return {
        option.name: read(option.name, option.read, options.own[option.name])
        for option in scheme.options
        if option.name in options.own
    }


def _max_bad(options: Options) -> Fraction:
    """Return the maximum share of bad lines; UsageError if --strict and --max-bad disagree."""
    if options.max_bad is None:
        return Fraction(0) if options.strict else MAX_BAD
    max_bad = read("--max-bad", table.fraction, options.max_bad)
    if options.strict and max_bad:
        raise UsageError(
            f"--strict means --max-bad 0, but --max-bad is {options.max_bad}; leave out one of them"
        )
    return max_bad


def _not_pairs(
    options: Options, output: Output, nested: bool, form: InputFormat
) -> NotPairs | None:
    """Return the pairs of --not-pairs; UsageError if another option does not fit it."""
    if options.not_pairs is None:
        return None
    if output.decides and nested and options.against:
        raise UsageError(
            f"--not-pairs cannot be used with --measure {options.measure}, --against and "
            f"--output {options.output}; use --output pairs"
        )
    return NotPairs.read(options.not_pairs, form.making())


def _decision(
    options: Options, nested: bool, form: InputFormat
) -> tuple[Tag | None, tuple[object, ...], type[Rule]]:
    """Return the format of tagged ids, the options that decide it, and the kind of --rule.

    nested: a larger set comes before a smaller one, and --keep decides between sets of one size.
    """
    kind = options.output
    output = OUTPUTS[kind]
    users = " or ".join(name for name, other in OUTPUTS.items() if other.decides == RECORDS)
    for flag, given in (("--rule", options.rule), ("--keep", options.keep)):
        if given is not None and output.decides != RECORDS:
            raise UsageError(f"{flag} needs --output {users}, but --output is {kind}")
    if options.against and not output.across:
        able = " or ".join(name for name, other in OUTPUTS.items() if other.across)
        raise UsageError(f"--against needs --output {able}, but --output is {kind}")
    if options.between and not options.against:
        raise UsageError("--between leaves out pairs of new records, and needs --against")
    rule, keep = next(iter(RULES)), next(iter(PRIORITIES))
    if options.rule is not None:
        rule = read("--rule", one_of(*RULES), options.rule)
    if options.keep is not None:
        keep = options.keep
    if options.against and rule == "cluster":
        raise UsageError("--rule cluster cannot be used with --against; use --rule direct")
    tag: Tag | None = COLLECTION if options.against else None
    if output.decides:
        kept_first = f"longest,{keep}" if nested else keep
        tag = tag_of_records(kept_first if output.decides == RECORDS else "smallest")
    keeps = keep if output.decides == RECORDS else ""
    if form.values and form.pairs_by_value:
        by_values = form.values.flag
        if kind == "links" and not form.values.equal:
            raise UsageError(
                f"{by_values} cannot be used with --output {kind}; use --output pairs or clusters"
            )
        if options.against and nested and output.decides == RECORDS:
            raise UsageError(
                f"{by_values} with --against and --output {kind} cannot be used with --measure "
                f"{options.measure}; use --output pairs"
            )
        tag = (tag or COLLECTION)._replace(valued=True, apart=not form.values.equal)
    values = str(form.values or "")
    way = output.decides, keeps, rule, bool(options.against), options.between, values
    return tag, way, RULES[rule]


def _mark_prefix(options: Options) -> str:
    prefix, flag = options.mark_prefix, "--mark-prefix"
    if prefix is not None and options.output != "marked":
        raise UsageError(f"{flag} needs --output marked, but --output is {options.output}")
    if not re.fullmatch(r"[\w.-]*", prefix or ""):
        raise UsageError(f"{flag}: expected letters, digits, _ . or -, got {prefix!r}")
    return prefix or ""


def _merge(options: Options, form: InputFormat) -> Merge:
    if options.merge is None:
        return {}
    merge = read(FLAG, parse_merge, options.merge)
    if not OUTPUTS[options.output].rows:
        raise UsageError(f"{FLAG} needs --output kept or marked, but --output is {options.output}")
    if not form.fields:
        raise UsageError(f"{FLAG} needs --input {' or '.join(ROWS)}, but --input is {form.input}")
    for field in merge:
        if field.isdecimal() != form.fields.numbered:
            raise UsageError(f"{FLAG} and --text must both be column numbers, or both be names")
        if field in (form.fields.id, *form.fields.texts):
            raise UsageError(f"{FLAG} {field}: is the id or the text; name another field")
    return merge


def _estimated(
    options: Options, scheme: Scheme, name: str, request: Request
) -> tuple[Scheme, Measure, Output]:
    """Return scheme, measure and output for --verify sketch; UsageError if options do not fit."""
    size = read("--verify", sample_size, options.verify)
    refused = {
        f"--measure {request.measure}": request.measure != "jaccard",
        f"--weights {options.own.get('--weights')}": scheme.weights is not None,
        "--against": bool(options.against),
        "--not-pairs": options.not_pairs is not None,
        "--across": options.across is not None,
        f"--output {options.output}": options.output != "pairs",
    }
    for flag in filter(refused.__getitem__, refused):
        raise UsageError(
            f"{flag} needs exact pairs, not estimates; leave --verify out: it estimates only "
            "--measure jaccard, without --weights"
        )
    if counts_first(options):
        raise UsageError(
            f"--scheme {name} needs the token counts of all records, and --verify sketch sends no "
            "tokens; use --scheme minhash, or --counts FILE with a file made by step.py count"
        )
    sketched = Sketched(scheme, size, request.seed)
    return sketched, EstimatedJaccard(request.threshold, size), ESTIMATED


def _request(options: Options, name: str, counts: TokenCounts | None) -> tuple[Request, Scheme]:
    """Return the `Request` that the options describe, and its scheme; UsageError if invalid."""
    scheme = SCHEMES[name]
    measure = scheme.measures[0] if options.measure is None else options.measure
    measure = read("--measure", measures.canonical, measure)
    threshold = NINE_TENTHS
    try:
        if options.threshold is not None:
            threshold = Threshold.parse(options.threshold)
        sets = measures.usage_of(measure) in MEASURES
        resemblance = measures.measure_of(measure, threshold).resemblance if sets else None
    except ValueError as error:
        raise UsageError(f"--threshold: {error}") from None
    like = measures.promised_as(measure, threshold)
    if like not in scheme.measures:
        raise UsageError(_cannot_promise(measure, like, name))
    values = _scheme_values(options, scheme) if options.own else {}
    request = Request(
        threshold=threshold,
        resemblance=resemblance,
        measure=measure,
        threshold_given=options.threshold is not None,
        exact=options.exact,
        seed=0 if options.seed is None else table.integer("--seed", options.seed, 0, 2**64 - 1),
        counts=counts if counts and scheme.asks_for_counts(values) else None,
        values=values,
    )
    try:
        return request, scheme.of(request)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _cannot_promise(measure: str, like: str, scheme: str) -> str:
    able = [name for name, other in SCHEMES.items() if like in other.measures]
    if not able:
        return f"--measure: {not_one_of(measure, table.measures())}"
    if scheme == FINGERPRINTS:
        return f"--measure {measure} compares sets, not fingerprints; leave out --measure"
    why = ""
    if like in ("overlap", "containment"):
        why = ": a small set inside a large one has next to no Jaccard similarity"
    others = " or ".join(able)
    return (
        f"--scheme {scheme} cannot promise a recall for --measure {measure}{why}; use --scheme "
        f"{others}"
    )
