"""How long shingles should be, from a sample of texts, and why.

A shingle too short is in most texts, and unrelated texts are alike then: one of k letters, of an
alphabet of A, is in a random text of n letters with probability about n·A^-k (Leskovec, Rajaraman,
Ullman, Mining of Massive Datasets, ch. 3.2; Broder 1997).  Real letters and words are not random,
so dissimilar records are measured: 99 of 100 random pairs of the sample should be no more similar
than 0.1, as similar as schemes take dissimilar records to be.  A shingle too long loses pairs: a
changed letter or word spoils the k that it is in, which leaves texts of n shingles with n-k in
common, a resemblance of (n-k)/(n+k).

So k is the smallest, of words and of characters, at which dissimilar records are dissimilar;
longer ones only lose pairs.  Of the two the better is

    words       where a changed letter leaves a usual text a pair: they are the fewer shingles
    characters  where only they leave it one
    the one that it leaves more of, where it leaves none a pair

Letters: k units a shingle, n shingles of a usual (median) record.
Cost: 14 times the shingles of half a million characters, an exact join of each, and 5,000 pairs of
dissimilar records, or as many as have four million characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from textwrap import fill

import numpy as np

from neardup.evaluation.choices import short
from neardup.evaluation.estimates import Weights, check_enough
from neardup.evaluation.line_sample import LineSample, as_block
from neardup.joins import JOINS
from neardup.joins.inverted_index import all_against_all
from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import Shingler
from neardup.schemes import banding
from neardup.schemes.banding import DISSIMILAR
from neardup.sets.ragged import Ragged, shared
from neardup.similarity.measures import SetMeasure

LENGTHS = {"word": range(1, 6), "char": range(3, 13)}
MOST_TEXT = 1 << 19  # characters
PAIRS_DRAWN = 5000  # pairs, or fewer of longer texts
PAIRS_TEXT = 1 << 22  # characters
OF_HUNDRED = 99  # dissimilar records, as similar as `dissimilar` at most
USUAL_BANDS = 16


@dataclass(frozen=True)
class Texts:
    """Cleaned texts in random order, and what they stand for."""

    texts: list[str]
    weights: Weights

    @classmethod
    def of_sample(cls, sample: LineSample, form: InputFormat, seed: int) -> Texts:
        """StageError where there are no two."""
        cleaned = [""] * len(sample.lines)
        for line in form.texts(as_block(sample.lines)):
            cleaned[line.number] = form.clean(line.text)
        good = np.array([bool(text.strip()) for text in cleaned], dtype=bool)
        found = np.flatnonzero(good)
        check_enough(len(found), sample)
        order = np.random.default_rng(seed).permutation(len(found))
        ends = np.cumsum([len(cleaned[i]) for i in found[order].tolist()])
        order = order[: max(2, int(np.searchsorted(ends, MOST_TEXT, "right")))]
        weights = Weights.of_sample(sample, good).take(order)
        return cls([cleaned[i] for i in found[order].tolist()], weights)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Length:
    """What shingles of one length make of the texts.

    shingles: of a usual record; dissimilar: the resemblance that 99 of 100 random pairs do not
    exceed; edited: the similarity that one changed letter leaves to a usual record and itself, and
    whether that is a pair; pairs: that are similar enough; candidates: of the usual banding, None
    where the measure allows none.  pairs and candidates are of the whole input.
    """

    shingler: Shingler
    shingles: int
    dissimilar: float
    edited: float
    survives: bool
    pairs: float
    candidates: float | None

    @property
    def name(self) -> str:
        return str(self.shingler)

    @property
    def parts_dissimilar(self) -> bool:
        return self.dissimilar <= banding.DISSIMILAR


def compared(texts: Texts, measure: SetMeasure, recall: float, seed: int) -> list[Length]:
    """All lengths: those of words, and then those of characters."""
    usual = sum(map(len, texts.texts)) // len(texts) + 1
    drawn = min(PAIRS_DRAWN, max(PAIRS_TEXT // (2 * usual), 1))
    dissimilar = _random_pairs(len(texts), drawn, np.random.default_rng(seed))
    every = texts.weights.records * len(texts)
    return [
        _length(Shingler(unit, width), texts, dissimilar, every, measure, recall)
        for unit, widths in LENGTHS.items()
        for width in widths
    ]


def _length(
    shingler: Shingler,
    texts: Texts,
    drawn: tuple[np.ndarray, np.ndarray],
    records: float,
    measure: SetMeasure,
    recall: float,
) -> Length:
    rows = [shingler(text) for text in texts.texts]
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    # Ranks instead of hashes: what follows is faster with small numbers.
    _, ranks = np.unique(np.concatenate(rows), return_inverse=True)
    sets = Ragged.from_unsorted(ranks.astype(np.uint64), sizes)
    usual = int(np.sort(sets.sizes)[len(sets) // 2])
    alike = _resemblance(sets, *drawn)
    n = np.array([usual])
    spared = np.maximum(n - shingler.width, 0)
    part, whole = measure.fraction(spared, n, n)
    pairs = _similar_pairs(sets, measure, texts.weights)
    return Length(
        shingler,
        usual,
        dissimilar=float(alike[-(-OF_HUNDRED * len(alike) // 100) - 1]),
        edited=float(part[0] / whole[0]),
        survives=bool(measure.may_reach(spared, n, n)[0]),
        pairs=pairs,
        candidates=_candidates(alike, records * (records - 1) / 2, pairs, measure, recall),
    )


def _random_pairs(n: int, drawn: int, dice: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(left, right), int64: as many pairs of 0 … n-1, or all where there are no more."""
    if n * (n - 1) // 2 <= drawn:
        left, right = np.triu_indices(n, 1)
        return left, right
    left, right = dice.integers(0, n, drawn), dice.integers(0, n - 1, drawn)
    return left, right + (right >= left)


def _resemblance(sets: Ragged, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of these pairs, ascending."""
    common = shared(sets, left, right).sizes
    return np.sort(common / (sets.sizes[left] + sets.sizes[right] - common))


def _similar_pairs(sets: Ragged, measure: SetMeasure, weights: Weights) -> float:
    """In the whole input."""
    least = measure.resemblance
    joined = JOINS["ppjoin_plus"](sets, least) if least else all_against_all(sets, measure)
    x, y = sets.sizes[joined.left], sets.sizes[joined.right]
    found = measure.may_reach(joined.common, x, y)
    return float(weights.of(joined.left, joined.right) @ found)


def _candidates(
    alike: np.ndarray, every: float, pairs: float, measure: SetMeasure, recall: float
) -> float | None:
    """Those of banding, as a mean of all seeds: of dissimilar records, and all similar pairs."""
    if measure.resemblance is None:
        return None
    least = float(measure.resemblance)
    most = max(USUAL_BANDS, banding.bands_needed(least, 1, recall))
    bands, rows = banding.choose(least, recall, most)
    strange = alike[alike < least]
    met = sum(banding.recall(s, bands, rows) for s in strange.tolist()) / len(alike)
    return float(met * every + pairs)


def best_length(lengths: Sequence[Length]) -> Length:
    """The length that the head of this file describes; where dissimilar records are alike at every
    length, the one at which they are least so."""
    of_units = [[each for each in lengths if each.shingler.unit == unit] for unit in LENGTHS]
    firsts = [next((each for each in some if each.parts_dissimilar), None) for some in of_units]
    able = [each for each in firsts if each]
    if not able:
        return min(lengths, key=lambda each: each.dissimilar)
    return max(able, key=lambda each: (each.survives, not each.survives and each.edited))


ENOUGH = 100
HEADS = (
    ("", "shingles", "dissimilar", "one letter", "similar", "candidate"),
    ("shingle", "a record", "share", "changed", "pairs", "pairs"),
)
NOTES = f"""\
dissimilar share: the resemblance that {OF_HUNDRED} of 100 random pairs do not exceed
one letter changed: what that leaves of the similarity of a usual record with itself
similar, candidate pairs: at T, in the whole input; of the usual bands and rows, as a mean"""


def in_words(lengths: Sequence[Length], measure: SetMeasure, texts: int) -> Iterator[str]:
    """Lines; `texts` were compared."""
    best = best_length(lengths)
    yield f"Shingle lengths, by {texts:,} texts of the sample:"
    yield ""
    for head in HEADS:
        yield _line(head).rstrip()
    for each in lengths:
        candidates = "-" if each.candidates is None else short(each.candidates)
        figures = (short(each.shingles), _up(each.dissimilar), _down(each.edited))
        cells = (each.name, *figures, short(each.pairs), candidates)
        yield _line(cells) + ("  <" if each is best else "")
    yield ""
    yield NOTES
    yield ""
    yield f"Recommended{few_seen(texts, 'texts')}: --shingle {best.name}"
    yield fill(_why(lengths, best, measure), 100)


def few_seen(count: int, what: str) -> str:
    """What a recommendation from a sample that is too small to rely on says of it.

    >>> few_seen(99, "texts"), few_seen(100, "texts")
    (', from no more than 99 texts', '')
    """
    return f", from no more than {count} {what}" if count < ENOUGH else ""


def _why(lengths: Sequence[Length], best: Length, measure: SetMeasure) -> str:
    if not best.parts_dissimilar:
        return (
            f"Random pairs share more than {DISSIMILAR} at every length, and least at this one: "
            "texts have much in common that says little, and --clean may take some of it out."
        )
    unit = best.shingler.unit
    shorter = [each for each in lengths if each.shingler.unit == unit and not each.parts_dissimilar]
    but = f" ({shorter[-1].name} leaves them {_up(shorter[-1].dissimilar)})" if shorter else ""
    units = "words" if unit == "word" else "characters"
    shortest = (
        f"It is the shortest run of {units} at which dissimilar records share no more than "
        f"{DISSIMILAR}"
    )
    if not best.survives:
        edited = f"is no pair at T = {measure.threshold}: texts are short, and "
        threshold = _down(best.edited)
        edited += (
            f"to find such pairs takes --threshold {threshold}"
            if float(threshold)
            else "no threshold finds such pairs"
        )
    elif unit == "word":
        edited = "is a pair still, and words are fewer shingles than characters"
    else:
        edited = "is a pair still, which it is not by words"
    return (
        f"{shortest}{but}; longer ones only lose pairs. A usual record with one letter changed "
        f"{edited}."
    )


def _up(share: float) -> str:
    """Rounded away from what is allowed."""
    return f"{ceil(share * 1000 - 1e-9) / 1000:.3f}"


def _down(share: float) -> str:
    """A threshold that it reaches."""
    return f"{floor(share * 100 + 1e-9) / 100:.2f}"


def _line(cells: Sequence[str]) -> str:
    name, *numbers = cells
    return f"{name:10}" + "".join(f"{cell:>12}" for cell in numbers)
