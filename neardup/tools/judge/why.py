"""`why`: explain why two records are a pair or not: what they share, and which keys both have.

The angle θ of two sets is estimated from the equal bits of their vectors.  Each of F bits is equal
with probability a = 1 - θ/π (Charikar 2002), and their number is binomial: the exact interval of a
gives an interval of θ and one of the cosine.

Letters: F bits (384), of which 372 are equal: θ = 0.098, and the cosine 0.995.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import cos, pi
from typing import NamedTuple

import numpy as np

from neardup.commands.truth import options_of, refuse_others
from neardup.lines.keyed_lines import encode_sets, encoded_size, format_keys
from neardup.options import table
from neardup.options.settings import Settings, counts_first, names_no_scheme, settings_before_counts
from neardup.options.table import OPTIONS, OUTPUT_OPTIONS, Options
from neardup.reading.input_files import check_files, is_index
from neardup.runtime.counters import Counters, RunFile, run_file_name
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, check_file_name, shown
from neardup.runtime.summary import BAD, judged
from neardup.schemes import SCHEMES, bit_keys
from neardup.schemes.fingerprints import Hamming
from neardup.schemes.scheme import Scheme
from neardup.schemes.scheme import shown as shown_chance
from neardup.sets.bit_vectors import BlockPlaces
from neardup.sets.ragged import Batch, Ragged, shared, shared_sizes
from neardup.sets.token_counts import TokenCounter
from neardup.similarity import intervals, measures
from neardup.stages.pairs import parsed
from neardup.stages.pairs_in_memory import Choice
from neardup.stages.sampled_pairs import Comparison
from neardup.tools.judge import pair_elements
from neardup.tools.judge.pair_elements import WIDTH, Lines, Texts, listed
from neardup.verification.not_pairs import set_digests

LEAST = measures.Threshold(1, measures.MAX_DENOMINATOR)
ALPHA = 0.05  # the probability that the interval does not contain the angle
FIRST, SECOND = np.array([0]), np.array([1])
DESCRIPTION = """Explain what two records share, how similar they are, and whether they share a key.

Give the options of the job, so that the keys are the same; --run takes them from the file
that a run writes beside its answer.  For texts, shingles are shown as words, and the difference
word by word.  If a scheme depends on how rare tokens are, all tokens of FILE are counted first,
unless --counts is given.

    python3 -m neardup why --threshold 0.8 videos.txt VIDEO_1 VIDEO_3
    python3 -m neardup why --run pairs.tsv VIDEO_1 VIDEO_3
"""
FREE = {"--strict", "--max-bad"}  # may differ from the run of --run


def main() -> None:
    args = _command_line()
    ids = os.fsencode(args.a), os.fsencode(args.b)
    if ids[0] == ids[1]:
        raise UsageError(
            f"A and B are both {shown(ids[0])}: an id is never paired with itself; name two "
            "different ids"
        )
    records, texts, settings = _read(args, ids)
    for name, text in explained(records, ids, settings, args.measure, texts):
        print(f"{name:{WIDTH}}{text}")


def _read(args: argparse.Namespace, ids: tuple[bytes, bytes]) -> tuple[Batch, Texts, Settings]:
    """Return the records and texts of two ids, and the settings; StageError if an id is missing."""
    options = Options.of(args)
    counting = counts_first(options)
    settings = settings_before_counts(options)
    check_files(args.files)
    counter, choice = TokenCounter(), Choice()
    counters = Counters("why", progress="records")
    held: list[Batch] = []
    texts: Texts = {}
    blocks = settings.blocks(args.files, others=bool(args.indexes))
    if settings.form.shingle is not None:
        blocks = pair_elements.noting(blocks, settings.form, ids, texts)
    for batch in parsed(blocks, settings, counters):
        if counting:
            counter.add(batch.sets)
        choice.add(batch.sets)
        mine = [i for i, id_ in enumerate(batch.ids) if id_ in ids]
        held.append(batch.take(np.array(mine, dtype=np.int64)))
    records = Batch.end_to_end(held)
    judged(counters.as_dict()["counts"], settings.max_bad)
    if args.then and _has_changed(args, counters.counts["records"]):
        print(
            f"neardup why: the input has changed since the run of {args.run}, whose answer may be "
            "another: run again",
            file=sys.stderr,
        )
    for id_ in ids:
        if id_ not in records.ids:
            raise StageError(_missing(id_, counters.counts, args.run, args.indexes))
    if counting:
        settings = Settings.of(options, counter.counts())
    elif names_no_scheme(options) and choice.is_exact(settings):
        settings = Settings.of(replace(options, exact=True))
    return records, texts, settings


def _has_changed(args: argparse.Namespace, records: int) -> bool:
    """Return whether files of --run are newer than its answer, or have more or fewer records."""
    written = os.stat(run_file_name(args.run)).st_mtime_ns
    others = not args.indexes and args.then.counts.get("records", records) != records
    return others or any(os.stat(name).st_mtime_ns > written for name in args.files)


def _missing(id_: bytes, counts: Mapping[str, int], run: str | None, indexes: Sequence[str]) -> str:
    """Return the error message for an id that no record has.

    >>> print(_missing(b"a", {"records": 2, "bad lines: no shingles": 5}, None, []).split(";")[0])
    none of 2 records has the id 'a' (bad lines: 5)
    """
    bad = sum(count for name, count in counts.items() if name.startswith(BAD))
    read = f"none of {counts['records']:,} records has the id {shown(id_)} (bad lines: {bad:,})"
    if indexes:
        return f"{read}; an index has no records to show: name the files of {indexes[0]}"
    if run is not None:
        return f"{read}; have the files changed since the run of {run}?"
    return f"{read}; give the run's options, such as --input, or --run PAIRS if it had -o PAIRS"


def _command_line() -> argparse.Namespace:
    """Parse the command line; --run adds the options and files of an earlier run.

    `indexes` are those of the run's --against, which have no records to show; `then` is the run, if
    the files are its own.
    """
    names = OPTIONS.keys() - OUTPUT_OPTIONS | {"--not-pairs"}
    own = flags(
        """
        --run PAIRS     the file that run_local.sh -o PAIRS wrote: options and files are taken from
                        .PAIRS.neardup.json beside it; name FILE if the files have moved
                        -h: the file that run_local.sh -o PAIRS wrote; options and files are those
                        of that run
        files FILE      plain or compressed; - is standard input
        a A             an id
        b B             another id
        """,
        files={"nargs": "*"},
    )
    parser = table.parser("python3 -m neardup why", DESCRIPTION, names, own)
    args, indexes, then = parser.parse_intermixed_args(), list[str](), None
    if args.run is not None:
        check_file_name("--run", args.run)
        run = RunFile.of(args.run)
        options = options_of(run, args.run)
        for flag in filter(options.value, ("--within", "--across")):
            raise UsageError(
                f"--run {args.run}: that run had {flag} {options.value(flag)}, which leaves out "
                "similar pairs; to see whether two records are similar, name FILE A B without --run"
            )
        given = [word for word in options.arguments() if word.partition("=")[0] in names]
        refuse_others(Options.of(args), given, f"--run {args.run}", FREE)
        args = parser.parse_intermixed_args([*given, *sys.argv[1:]])
        indexes = list(filter(is_index, options.against))
        if not args.files:
            args.files = [name for name in options.against if name not in indexes] + run.files
            _check_there(args.files, args.run)
            then = run
    args.indexes, args.then = indexes, then
    if not args.files:
        parser.error("the following arguments are required: FILE")
    return args


def _check_there(files: Sequence[str], run: str) -> None:
    """Raise StageError if an input of the run was standard input or no longer exists."""
    for file in files:
        if not os.path.isfile(file):
            gone = "was standard input" if file == "-" else "no longer exists"
            raise StageError(
                f"{file}: {gone}, for --run {run}; name the file that has its records: "
                f"python3 -m neardup why --run {run} FILE A B"
            )


# ---- the explanation


class Similarity(NamedTuple):
    text: str
    value: float


def similarity(measure: measures.Measure, name: str, sets: Ragged) -> Similarity:
    """Return the similarity of sets 0 and 1 by a measure, in this direction.

    >>> sets = Ragged.from_rows([[1, 2, 3, 4], [1, 2]])
    >>> similarity(measures.Cosine(LEAST), "cosine", sets)
    Similarity(text='2/√(4·2) = 0.707107', value=0.707107)
    """
    if not isinstance(measure, measures.SetMeasure):
        return _by_scheme(measure, sets)
    common = shared_sizes(sets, FIRST, SECOND)
    x, y = sets.sizes[:1], sets.sizes[1:2]
    part, whole = (int(column[0]) for column in measure.fraction(common, x, y))
    fraction = f"{common[0]}/√({x[0]}·{y[0]})" if name == "cosine" else f"{part}/{whole}"
    return _similarity(fraction, part, whole)


def _by_scheme(measure: measures.Measure, sets: Ragged) -> Similarity:
    if isinstance(measure, bit_keys.EqualBits):  # so that a similarity below `least` is found, too
        measure = replace(measure, least=0)
    elif isinstance(measure, Hamming):
        measure = replace(measure, distance=measure.bits)
    found = measure.verified(sets, FIRST, SECOND)
    if not len(found.part):
        return Similarity("almost 0", 0.0)
    part, whole = int(found.part[0]), int(found.whole[0])
    return _similarity(f"{part}/{whole}", part, whole)


def _similarity(fraction: str, part: int, whole: int) -> Similarity:
    decimals = measures.fraction_text(Fraction(part, whole)).decode()
    return Similarity(f"{fraction} = {decimals}", part / whole)


def explained(
    records: Batch, ids: tuple[bytes, bytes], settings: Settings, measure: str | None, texts: Texts
) -> Lines:
    """Return lines (name, text) on why two ids are a pair or not, given their records and texts."""
    scheme = settings.scheme
    own = scheme.measures[0]  # the measure for which the scheme promises a recall
    name, of_sets = measure or own, measures.usage_of(measure or own) in measures.MEASURES
    pair = _telling_pair(records, ids, settings)
    keys = scheme.keys(pair.sets)
    shared_keys = shared(keys, FIRST, SECOND).row(0)
    as_on_lines = np.sort(shared_keys ^ np.uint64(settings.mark))
    names = [key.decode() for key in format_keys(as_on_lines).tolist()]
    there = similarity(scheme.measure(own, LEAST), own, pair.sets)
    chance = scheme.recall(there.value)
    weighted = "weighted " if scheme.weights and of_sets else ""
    at = f"weighted {own}" if scheme.weights and own in measures.MEASURES else own
    bits = settings.form.bits
    lines = [_head(letter, records, id_, bits) for letter, id_ in zip("AB", ids)]
    if bits:
        a, b = (pair_elements.hexadecimal(pair.sets.row(i), bits) for i in (0, 1))
        lines += [*pair_elements.print_elements(a, b, bits), (own, there.text)]
    else:
        lines += pair_elements.elements(pair, settings.form, texts)
        lines += _similarities(scheme, name, pair.sets)
    if isinstance(settings.measure, Hamming):
        least, most = settings.threshold, settings.measure.distance
        lines += [("threshold", f"{least.num}/{least.den} = {least}: at most {most} bits differ")]
    elif of_sets:
        least = settings.threshold
        lines += [("threshold", f"{least.num}/{least.den} = {least}, by {weighted}{name}")]
    elif isinstance(settings.measure, bit_keys.EqualBits):
        lines += _equal_bits(settings, settings.measure, name, pair.sets)
    in_a, in_b = keys.sizes.tolist()
    return [
        *lines,
        ("keys", f"A has {in_a:,}, B has {in_b:,}; in both {listed(names)}"),
        ("chance", f"{shown_chance(chance)} or more, of sharing a key at this {at} similarity"),
        ("promise", settings.scheme.promise),
        ("verdict", _verdict(pair, settings, name, names, chance)),
    ]


def _similarities(scheme: Scheme, name: str, sets: Ragged) -> Lines:
    """Return lines for the similarity by Jaccard, by the scheme's measure, and by --measure."""
    lines: Lines = [("jaccard", similarity(measures.Jaccard(LEAST), "jaccard", sets.bare()).text)]
    for each in dict.fromkeys((scheme.measures[0], name)):
        measure = scheme.measure(each, LEAST)
        there = similarity(measure, each, sets).text
        if scheme.weights and each in measures.MEASURES:
            lines += [("weighted", f"{there}, by {each}")]
        elif measure.directed:
            back = similarity(measure, each, sets.take(np.array([1, 0]))).text
            how = "in" if each == "containment" else "to"
            lines += [(f"A {how} B", there), (f"B {how} A", back)]
        elif each != "jaccard":
            lines += [(each.partition(":")[0], there)]
    return lines


def _equal_bits(settings: Settings, measure: bit_keys.EqualBits, name: str, sets: Ragged) -> Lines:
    """Return two lines: how many bits must be equal, and the cosine estimated from equal bits."""
    least, bits = measure.least, measure.bits
    equal = round(similarity(measure, name, sets).value * bits)
    cosine, high, low = map(cos, angles(equal, bits, ALPHA))
    many = ", if tokens are many" if settings.scheme.weights is None else ""
    between = f"from {low:.6f} to {high:.6f} with {1 - ALPHA:.0%} confidence"
    return [
        ("threshold", f"{least}/{bits} = {least / bits:.9g}, by {name}"),
        ("cosine", f"about {cosine:.6f}{many}, by the equal bits; {between}"),
    ]


def _head(letter: str, records: Batch, id_: bytes, bits: int) -> tuple[str, str]:
    rows = [i for i, other in enumerate(records.ids) if other == id_]
    sets = set(encode_sets(records.sets.take(np.array(rows))))
    each = BlockPlaces(bits).blocks if bits else 1
    sizes = ", ".join(f"{size // each:,}" for size in sorted(map(encoded_size, sets)))
    what = f"fingerprint{'' if sizes == '1' else 's'} of {bits} bits" if bits else "shingles"
    text = f"{shown(id_)} {'with' if bits else 'of'} {sizes} {what}"
    if len(sets) > 1:
        text += f"; {len(sets)} different records, of which one is shown"
    elif len(rows) > 1:
        text += f"; the same record {len(rows)} times, which counts as one"
    return letter, text


def _telling_pair(records: Batch, ids: tuple[bytes, bytes], settings: Settings) -> Batch:
    """Choose one record of each id: two that are found as a pair, or else the most similar two."""
    rows = [[i for i, other in enumerate(records.ids) if other == id_] for id_ in ids]
    left, right = np.array(list(product(*rows)), dtype=np.int64).T
    found = settings.measure.verified(records.sets, left, right)
    similar = dict.fromkeys(zip(left.tolist(), right.tolist()), 0.0)
    for i, j, value in zip(found.left, found.right, found.part / found.whole):
        pair = (i, j) if (i, j) in similar else (j, i)  # directed measures have both orders
        similar[pair] = max(similar[pair], float(value))
    meet = shared_sizes(settings.scheme.keys(records.sets), left, right) > 0
    common = shared_sizes(records.sets, left, right)
    closeness = common / (records.sets.sizes[left] + records.sets.sizes[right] - common)
    if isinstance(settings.measure, Hamming):
        anything = replace(settings.measure, distance=settings.measure.bits)
        closeness = anything.verified(records.sets, left, right).part

    def rank(p: int) -> tuple[bool, float, float]:
        value = similar[int(left[p]), int(right[p])]
        return bool(value and meet[p]), value, float(closeness[p])

    best = max(range(len(left)), key=rank)
    return records.take(np.array([left[best], right[best]]))


def _verdict(pair: Batch, settings: Settings, name: str, keys: list[str], chance: float) -> str:
    lines = list(Comparison(settings.measure, Counters("")).lines(pair, FIRST, SECOND))
    if not lines and keys:
        return f"no pair: they meet at {keys[0]} and are compared, but are not similar enough"
    if not lines:
        return "no pair: they are not similar enough, and never compared"
    out = settings.not_pairs
    if out and out.has(pair.ids[0], pair.ids[1], *set_digests(pair.sets)):
        return "similar enough for a pair, but kept out by --not-pairs"
    texts = [line.rstrip().replace(b"\t", b"  ") for line in lines]
    printed = " and ".join(shown(text, len(text)) for text in texts)
    if keys:
        return f"a pair: printed at {keys[0]}, the smallest key in both, as {printed}"
    return f"a pair, {printed}, that is MISSED: no key in both\n{_advice(settings, name, chance)}"


def _advice(settings: Settings, name: str, chance: float) -> str:
    """Return lines of advice: options that may find a missed pair, or a request to report it."""
    if chance == 1:
        return f"{'':{WIDTH}}which contradicts the promise: please report it"
    advice = []
    prints = isinstance(settings.measure, Hamming)
    if isinstance(settings.measure, (measures.SetMeasure, Hamming)):  # other schemes have it, too
        able = (
            prints
            or measures.promised_as(name, settings.request.threshold) in SCHEMES["exact"].measures
        )
        exact = "--exact" if able else "--scheme prefix"
        advice += [f"{exact} finds every pair"]
    advice += filter(None, [settings.scheme.finds_more])
    if chance > 0:
        advice += ["another --seed misses other pairs: merge both runs with dedup_reducer.py"]
    return "\n".join(f"{'':{WIDTH}}{line}" for line in advice)


def angles(equal: int, bits: int, alpha: float) -> tuple[float, float, float]:
    """Estimate an angle (radians) from equal bits, and an interval that misses it with P ≤ alpha.

    >>> [round(each, 3) for each in angles(372, 384, 0.05)]
    [0.098, 0.051, 0.169]
    """
    low, high = intervals.clopper_pearson(equal, bits, alpha)
    return pi * (1 - equal / bits), pi * (1 - high), pi * (1 - low)
