"""Settings that keep a promised recall, and estimates of what each would find and cost.

Costs are counted, not timed: keys, candidate pairs, bytes sent.  The *work* of a setting is its
keys, its candidate pairs, and the tokens that are counted first, if a scheme asks for it.  The
setting with the least work is recommended; of equal ones, the one that sends the fewest bytes.

Letters: b bands, r rows.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from neardup.lines.keyed_lines import KEY_WIDTH
from neardup.options.settings import Settings, counts_first
from neardup.options.table import Options
from neardup.schemes import SCHEMES, banding, minhash
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import SetMeasure
from neardup.tools.judge.estimates import CandidateCounts, Survey, candidate_counts

MAX_BANDS = 64
ENOUGH_CANDIDATES = 100  # pairs of the sample; with fewer, the expected number is used for banding
ENOUGH_SEEN = 20  # pairs at the threshold; with fewer, similarities are assumed to be uniform
MODEL = 200  # steps


def number(value: float) -> str:
    """Format a number with at most three significant digits: 63,100 or 2.35."""
    digits = float(f"{value:.3g}")
    return f"{digits:,.0f}" if digits >= 100 or digits == int(digits) else f"{digits:g}"


def short(value: float) -> str:
    """Format a number with at most three significant digits, and with k, M or G if it is large.

    >>> short(27_012_345), short(381.5), short(5.04e9)
    ('27M', '382', '5.04G')
    """
    for unit, letter in (10**9, "G"), (10**6, "M"), (10**4, "k"):
        if value >= unit * 0.9995:
            scale = 1000 if letter == "k" else unit
            return f"{float(f'{value / scale:.3g}'):g}{letter}"
    return number(value)


class Setting(NamedTuple):
    name: str  # in the table
    flags: list[str]  # the options that select this setting


class Cost(NamedTuple):
    """The estimated recall and cost of a setting for the whole input.

    at_threshold, of_pairs: recall of a pair at the threshold, and of all pairs; candidates,
    verified: see `CandidateCounts`; shuffled: bytes that mapper.py writes; counted: tokens.
    """

    choice: Setting
    at_threshold: float
    of_pairs: float
    records: float
    keys: float
    candidates: float
    verified: float
    shuffled: float
    counted: float

    @property
    def work(self) -> float:
        return self.keys + self.candidates + self.counted


def choices(measure: SetMeasure, like: str, recall: float) -> Iterator[Setting]:
    """Yield settings of a run that promise at least `recall` for the pairs by a measure.

    like: the measure without parameters whose schemes find these pairs (`promised_as`).

    >>> from neardup.similarity.measures import NINE_TENTHS, Jaccard
    >>> list(choices(Jaccard(NINE_TENTHS), "jaccard", 0.9999))[2]
    Setting(name='8 × 3', flags=['--bands=8', '--rows=3'])
    """
    least = measure.resemblance
    if like in minhash.MinHash.measures and least is not None:
        for rows in range(1, banding.MAX_ROWS + 1):
            bands = banding.bands_needed(float(least), rows, recall)
            if bands <= MAX_BANDS:
                yield Setting(f"{bands} × {rows}", [f"--bands={bands}", f"--rows={rows}"])
    for other, scheme in SCHEMES.items():
        if scheme is not minhash.MinHash and scheme.keeps_recall and like in scheme.measures:
            if banding.RECALL not in scheme.options:
                yield Setting(other, ["--exact" if other == "exact" else f"--scheme={other}"])
            elif least and banding.bands_needed(float(least), 1, recall) <= minhash.MAX_BANDS_ASKED:
                yield Setting(other, [f"--scheme={other}", f"--recall={recall}"])


def cost(survey: Survey, choice: Setting, asked: list[str]) -> Cost:
    """Estimate the recall and cost of a setting; `asked`: the options that define a pair."""
    options = Options.from_arguments([*asked, *choice.flags])
    part, counts = survey.counted if counts_first(options) else (survey, None)
    scheme = Settings.of(options, counts).scheme
    keys = scheme.keys(part.batch.sets)
    found = _candidate_counts(part, scheme, keys)
    each = part.weights.records
    return Cost(
        choice,
        *_recall(scheme, survey),
        survey.records,
        len(keys.values) * each,
        found.candidates,
        found.verified,
        shuffled=float(keys.sizes @ (part.line_sizes + KEY_WIDTH)) * each,
        counted=survey.tokens if counts else 0,
    )


def _candidate_counts(survey: Survey, scheme: Scheme, keys: Ragged) -> CandidateCounts:
    found = candidate_counts(survey.batch.sets, keys, survey.measure, survey.weights)
    known = survey.likeness
    if survey.whole and found:
        return found
    if isinstance(scheme, minhash.MinHash) and (found is None or found.seen < ENOUGH_CANDIDATES):
        b, r = scheme.bands, scheme.rows
        candidates = known.sharing(known.window, b, r)
        verified = known.sharing(known.possible, b, r)
    elif found is None:  # too many share a key to count them: assume that all do
        candidates = verified = float(known.window.sum())
    else:
        candidates, verified = found.candidates, found.verified
    pairs = float(known.matches.sum())  # all of them are candidates
    return CandidateCounts(max(candidates, pairs), max(verified, pairs), 0)


def _recall(scheme: Scheme, survey: Survey) -> tuple[float, float]:
    """Return a scheme's expected recall for a pair at the threshold, and for all similar pairs."""
    least = survey.measure.resemblance
    if least is None:
        return scheme.recall(0.0), scheme.recall(0.0)
    known, t = survey.likeness, float(least)
    if known.seen >= ENOUGH_SEEN:
        some = np.flatnonzero(known.matches)
        similarity, pairs = np.maximum(known.resemblance[some], t), known.matches[some]
    else:
        similarity = np.linspace(t, 1, MODEL)
        pairs = np.ones(MODEL)
    missed = float(pairs @ [1 - scheme.recall(s) for s in similarity.tolist()] / pairs.sum())
    return scheme.recall(t), min(1 - missed, banding.NEARLY_ONE) if missed else 1.0


def costs(survey: Survey, some: Iterable[Setting], asked: list[str], enough: int) -> list[Cost]:
    """Estimate the costs of settings; leave out bandings whose keys alone are too much work.

    At least `enough` settings are returned.
    """
    found: list[Cost] = []
    for choice in some:
        bands = int(choice.name.split(" × ")[0]) if "×" in choice.name else 0
        if len(found) < enough or bands * survey.records <= best(found).work:
            found.append(cost(survey, choice, asked))
    return found


def best(costs: list[Cost]) -> Cost:
    """Return the setting with the least work; ties go to the one that sends the fewest bytes."""
    return min(costs, key=lambda each: (each.work, each.shuffled))


def worth_showing(costs: list[Cost], how_many: int, always: Cost) -> list[Cost]:
    """Return `always`, and up to `how_many` settings of least work that no other setting dominates.

    A setting dominates another if it has no more keys, and fewer candidates.  They are returned in
    the order of `costs`.
    """
    front = [
        each
        for each in costs
        if not any(
            other.keys <= each.keys and other.candidates < each.candidates for other in costs
        )
    ]
    least = sorted(front, key=lambda each: each.work)[:how_many]
    return [each for each in costs if each in least or each is always]
