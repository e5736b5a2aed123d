"""Explain two records for `why`: their similarity, and the keys that both have.

The angle θ of two sets is estimated from the equal bits of their vectors.  Each of F bits is equal
with probability a = 1 - θ/π (Charikar 2002), and their number is binomial: the exact interval of a
gives an interval of θ and one of the cosine.

Fingerprints are compared by the nearest two.  A record has its own fingerprint, number 0, and may
have fingerprints of variants.  A variant is compared only with the own fingerprint of the other
record:

    differ      2 of 64 bits: A's own fingerprint, and variant 1 of B
    of A        ffd8a0b2c4e6f801
    of B        ffd8a0b2c4e6f80b
    xor         ...............a

Letters: F bits (384), of which 372 are equal: θ = 0.098, and the cosine 0.995.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby, product
from math import cos, pi
from typing import NamedTuple

import numpy as np

from neardup.lines.keyed_lines import encode_sets, encoded_size, format_keys
from neardup.options.settings import Settings
from neardup.runtime.counters import Counters
from neardup.runtime.program import shown
from neardup.schemes import SCHEMES, bit_keys
from neardup.schemes.fingerprints import Hamming
from neardup.schemes.scheme import Scheme
from neardup.schemes.scheme import shown as shown_chance
from neardup.sets.bit_vectors import BLOCK_BITS, DIGITS_OF_BLOCK, BlockPlaces
from neardup.sets.ragged import Batch, Ragged, shared, shared_sizes
from neardup.similarity import intervals, measures
from neardup.stages.sampled_pairs import Comparison
from neardup.tools.judge.pair_elements import (
    ONLY_A,
    ONLY_B,
    SAME,
    WIDTH,
    Lines,
    Texts,
    elements,
    listed,
)
from neardup.verification.not_pairs import set_digests

LEAST = measures.Threshold(1, measures.MAX_DENOMINATOR)
ALPHA = 0.05  # the probability that the interval does not contain the angle
FIRST, SECOND = np.array([0]), np.array([1])


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
    records: Batch,
    ids: tuple[bytes, bytes],
    settings: Settings,
    measure: "str | None",
    texts: Texts,
) -> Lines:
    """Return lines (name, text) on why two ids are a pair or not, given their records and texts."""
    scheme = settings.scheme
    own = scheme.measures[0]  # the measure for which the scheme promises a recall
    name, of_sets = measure or own, measures.usage_of(measure or own) in measures.MEASURES
    pair = _telling_pair(records, ids, settings)
    keys = scheme.keys(pair.sets)
    shared_keys = shared(keys, FIRST, SECOND).row(0)
    names = [key.decode() for key in format_keys(shared_keys).tolist()]
    there = similarity(scheme.measure(own, LEAST), own, pair.sets)
    chance = scheme.recall(there.value)
    weighted = "weighted " if scheme.weights and of_sets else ""
    at = f"weighted {own}" if scheme.weights and own in measures.MEASURES else own
    bits = settings.form.bits
    lines = [_head(letter, records, id_, bits) for letter, id_ in zip("AB", ids)]
    if bits:
        a, b = (hexadecimal(pair.sets.row(i), bits) for i in (0, 1))
        lines += [*print_elements(a, b, bits), (own, there.text)]
    else:
        lines += elements(pair, settings.form, texts)
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


# ---- fingerprints


class Nearest(NamedTuple):
    bits: int  # the number of bits that differ
    i: int  # number of the fingerprint of A
    j: int
    a: str  # in hexadecimal
    b: str


def nearest(a: Sequence[str], b: Sequence[str]) -> Nearest:
    """Return the nearest fingerprints of two records; at least one is the first of its record.

    >>> nearest(["00ff"], ["ff00", "01ff", "00ff"])
    Nearest(bits=0, i=0, j=2, a='00ff', b='00ff')
    """
    pairs = [(0, j) for j in range(len(b))] + [(i, 0) for i in range(1, len(a))]
    apart = [(f"{int(a[i], 16) ^ int(b[j], 16):b}".count("1"), i, j) for i, j in pairs]
    bits, i, j = min(apart)
    return Nearest(bits, i, j, a[i], b[j])


def hexadecimal(tokens: np.ndarray, bits: int) -> list[str]:
    """Return a record's fingerprints in hexadecimal, given tokens (uint64) of `sets.bit_vectors`.

    >>> hexadecimal(np.array([0xAB12, 1 << 16 | 0x3, 2 << 16 | 0xF], np.uint64), 36)
    ['ab120003f']
    """
    form = BlockPlaces(bits)
    rows = (tokens & np.uint64((1 << BLOCK_BITS) - 1)).reshape(-1, form.blocks).tolist()
    last = form.digits - DIGITS_OF_BLOCK * (form.blocks - 1)
    return ["".join(f"{x:04x}" for x in row[:-1]) + f"{row[-1]:0{last}x}" for row in rows]


def print_elements(a: Sequence[str], b: Sequence[str], bits: int) -> Lines:
    """Return lines that compare two records by their nearest fingerprints."""
    found = nearest(a, b)
    numbers = zip("AB", found[1:3])
    which = [f"variant {n} of {x}" if n else f"{x}'s own fingerprint" for x, n in numbers]
    about = f": {which[0]}, and {which[1]}" if len(a) + len(b) > 2 else ""
    digits = [f"{int(x, 16) ^ int(y, 16):x}" for x, y in zip(found.a, found.b)]
    return [
        ("differ", f"{found.bits} of {bits} bits{about}"),
        ("of A", found.a),
        ("of B", found.b),
        ("xor", "".join(digits).replace("0", ".")),
    ]


def block_difference(a: str, b: str) -> list[tuple[str, str]]:
    """Compare the nearest fingerprints of two texts "HEX HEX…", block by block of 16 bits.

    >>> block_difference("0000ffff", "00ffffff 0001ffff")
    [('only_a', '0000'), ('only_b', '0001'), ('same', 'ffff')]
    """
    found = nearest(a.lower().split(), b.lower().split())
    starts = range(0, len(found.a), DIGITS_OF_BLOCK)
    blocks = [(found.a[k : k + 4], found.b[k : k + 4]) for k in starts]
    parts: list[tuple[str, str]] = []
    for same, run in groupby(blocks, key=lambda pair: pair[0] == pair[1]):
        ours, theirs = map(" ".join, zip(*run))
        parts += [(SAME, ours)] if same else [(ONLY_A, ours), (ONLY_B, theirs)]
    return parts
