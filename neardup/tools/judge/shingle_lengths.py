"""Choose a shingle length, given a sample of texts.

If shingles are too short, unrelated texts share most of them: a shingle of k letters, of A possible
ones, is in a random text of n letters with probability about n·A^-k (Leskovec, Rajaraman, Ullman,
Mining of Massive Datasets, ch. 3.2; Broder 1997).  Real letters are not random, so pairs of the
sample are measured: 99 of 100 random pairs should have a similarity of at most 0.1.  If
shingles are too long, pairs are lost: a changed letter or word changes k shingles, and two texts of
n shingles then have a resemblance of (n-k)/(n+k).

So for words and for characters, the smallest k is chosen at which random pairs are dissimilar.  The
better of the two is

    words       if a usual text with a changed letter is still a pair by words: they are fewer
    characters  if it is still a pair by characters only
    the one with the higher similarity, if it is a pair by neither

Letters: k units a shingle, n shingles of a usual (median) record.
Cost: 15 times the shingles of half a million characters, an exact join of each, and 2,000 random
pairs, or as many as have a million characters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from textwrap import fill

import numpy as np

from neardup.joins.bitmap_joins import join_by
from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import Shingler
from neardup.schemes import banding
from neardup.sets.ragged import Ragged, shared_sizes
from neardup.similarity.measures import SetMeasure
from neardup.tools.judge.estimates import Weights, short
from neardup.tools.judge.line_sample import LineSample, as_block

LENGTHS = {"word": range(1, 6), "char": range(3, 13)}
MAX_TEXT, USUAL_TEXT = 1 << 19, 1 << 15  # characters, with and without --sample
PAIRS_DRAWN = 2000  # pairs; fewer if texts are long
PAIRS_TEXT = 1 << 20  # characters
OF_HUNDRED = 99
USUAL_BANDS = 16


@dataclass(frozen=True)
class Texts:
    texts: list[str]  # cleaned, in random order
    weights: Weights

    @classmethod
    def of_sample(
        cls, sample: LineSample, form: InputFormat, seed: int, most: int = MAX_TEXT
    ) -> "Texts":
        """Clean up to `most` characters; StageError if there are fewer than two texts."""
        cleaned = [""] * len(sample.lines)
        for line in form.texts(as_block(sample.lines)):
            cleaned[line.number] = form.clean(line.content)
        good = np.array([bool(text.strip()) for text in cleaned], dtype=bool)
        found, weights = np.flatnonzero(good), Weights.of_sample(sample, good)
        order = np.random.default_rng(seed).permutation(len(found))
        ends = np.cumsum([len(cleaned[i]) for i in found[order].tolist()])
        order = order[: max(2, int(np.searchsorted(ends, most, "right")))]
        return cls([cleaned[i] for i in found[order].tolist()], weights.take(order))

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Length:
    """The measurements and estimates for one shingle length.

    shingles: of a median record; dissimilar: the resemblance that 99 of 100 random pairs do not
    exceed; edited: the similarity of a median record to itself with one letter changed; survives:
    True if these two are a pair; pairs: in the whole input; candidates: candidate pairs in it with
    the usual banding, or None.
    """

    shingler: Shingler
    shingles: int
    dissimilar: float
    edited: float
    survives: bool
    pairs: float
    candidates: "float | None"

    @property
    def parts_dissimilar(self) -> bool:
        return self.dissimilar <= banding.DISSIMILAR


def compared(texts: Texts, measure: SetMeasure, recall: float, seed: int) -> list[Length]:
    """Measure each shingle length on the texts: first lengths in words, then in characters."""
    usual = sum(map(len, texts.texts)) // len(texts) + 1
    drawn = min(PAIRS_DRAWN, max(PAIRS_TEXT // (2 * usual), 1))
    random = _random_pairs(len(texts), drawn, np.random.default_rng(seed))
    shinglers = (Shingler(unit, width) for unit, widths in LENGTHS.items() for width in widths)
    return [_length(shingler, texts, random, measure, recall) for shingler in shinglers]


def _random_pairs(n: int, drawn: int, dice: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw random pairs (left, right) of numbers below n, int64; all pairs if there are few."""
    if n * (n - 1) // 2 <= drawn:
        left, right = np.triu_indices(n, 1)
        return left, right
    left, right = dice.integers(0, n, drawn), dice.integers(0, n - 1, drawn)
    return left, right + (right >= left)


def _length(
    shingler: Shingler,
    texts: Texts,
    random: tuple[np.ndarray, np.ndarray],
    measure: SetMeasure,
    recall: float,
) -> Length:
    sets = Ragged.from_unsorted(*shingler.many(texts.texts))
    common = shared_sizes(sets, *random)
    alike = np.sort(common / (sets.sizes[random[0]] + sets.sizes[random[1]] - common))
    n = np.sort(sets.sizes)[[len(sets) // 2]]
    unchanged = np.maximum(n - shingler.width, 0)
    part, whole = measure.fraction(unchanged, n, n)
    least = measure.resemblance
    joined = join_by(measure, sets)
    pairs = float(texts.weights.of(joined.left, joined.right).sum())
    records = texts.weights.records * len(texts)
    met = _met(alike, float(least), recall) * records * (records - 1) / 2 if least else 0.0
    return Length(
        shingler,
        int(n[0]),
        dissimilar=float(alike[-(-OF_HUNDRED * len(alike) // 100) - 1]),
        edited=float(part[0] / whole[0]),
        survives=bool(measure.may_reach(unchanged, n, n)[0]),
        pairs=pairs,
        candidates=met + pairs if least else None,
    )


def _met(alike: np.ndarray, least: float, recall: float) -> float:
    """Return the expected share of random pairs that are dissimilar but share a key."""
    most = max(USUAL_BANDS, banding.bands_needed(least, 1, recall))
    bands, rows = banding.choose(least, recall, most)
    missed = np.exp(bands * np.log1p(-(alike[alike < least] ** rows)))
    return float((1 - missed).sum()) / len(alike)


def best_length(lengths: Sequence[Length]) -> Length:
    """Choose the best length; if none qualifies, the one that makes random pairs least similar."""
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
NOTES = f"""
dissimilar share: the resemblance that {OF_HUNDRED} of 100 random pairs do not exceed
one letter changed: the similarity of a median record to itself with one letter changed
similar, candidate pairs: expected at T in the whole input; candidates by --scheme minhash
"""


def in_words(lengths: Sequence[Length], measure: SetMeasure, texts: int) -> Iterator[str]:
    """Yield the lines to print: the table of shingle lengths, and the recommendation."""
    best = best_length(lengths)
    yield f"Shingle lengths, by {texts:,} texts of the sample:\n"
    for name, *cells in HEADS:
        yield f"{name:10}" + "".join(f"{cell:>12}" for cell in cells)
    for each in lengths:
        candidates = "-" if each.candidates is None else short(each.candidates)
        alike = f"{ceil(each.dissimilar * 1000 - 1e-9) / 1000:.3f}"
        cells = [short(each.shingles), alike, _down(each.edited), short(each.pairs), candidates]
        row = f"{each.shingler!s:10}" + "".join(f"{cell:>12}" for cell in cells)
        yield row + ("  <" if each is best else "")
    yield NOTES
    yield f"Recommended{few_seen(texts, 'texts')}: --shingle {best.shingler}"
    yield fill(_why(best, measure), 100)


def few_seen(count: int, what: str) -> str:
    """Return a note that a recommendation is based on few samples, or "" if there are enough.

    >>> few_seen(99, "texts"), few_seen(100, "texts")
    (', from only 99 texts', '')
    """
    return f", from only {count} {what}" if count < ENOUGH else ""


def _why(best: Length, measure: SetMeasure) -> str:
    if not best.parts_dissimilar:
        return (
            f"Random pairs share more than {banding.DISSIMILAR} at every length, and least at this "
            "one; --clean may remove what texts have in common."
        )
    words = best.shingler.unit == "word"
    shortest = (
        f"It is the shortest run of {'words' if words else 'characters'} at which dissimilar "
        f"records share no more than {banding.DISSIMILAR}; longer ones only lose pairs. A median "
        "record with one letter changed is"
    )
    if best.survives:
        return f"{shortest} still a pair{'' if words else ', and not by words'}."
    threshold = _down(best.edited)
    able = f"--threshold {threshold}" if float(threshold) else "no threshold"
    return f"{shortest} not a pair at T = {measure.threshold}; {able} finds such pairs."


def _down(share: float) -> str:
    """Format a share as a threshold that it reaches: with two decimals, rounded down."""
    return f"{floor(share * 100 + 1e-9) / 100:.2f}"
