"""What the exact ways to meet would cost in each size group, from token counts and a sample.

    parts    two sets that differ in D elements are equal in about p·(1-1/p)^D of p parts
    tokens   a set meets the others that have one of its first tokens, if their size allows
    all      all pairs that the sizes allow

How many records have each size and each token is known; D is that of pairs in the sample.

Letters: G groups; p parts (4); D elements that only one of two sets has (60 of 2·35).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neardup.schemes.by_size import Groups, Tokens, first_tokens, groups_of
from neardup.sets.ragged import Ragged, shared
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Threshold

PARTS, TOKENS, ALL = 0, 1, 2
SAMPLED_TOKENS = 1 << 18  # compared for one group
DEARER = 100  # times the work of the cheapest ways, from which a run says so
WORTH_SAYING = 10  # seconds
MANY = 1e18  # partners of a set, where it is not known better
# Microseconds, measured on one core; only their ratios matter.
KEY = 1.0  # to make a key and sort it
KEY_TOKEN = np.array([[0.02], [0.2], [0.2]])  # for each token that goes with it to where it meets
PAIR, PAIR_TOKEN = 0.1, 0.0005  # to look at the bitmaps of two sets, and for each of their tokens


@dataclass(eq=False)
class Costs:
    """Of each way in each group: float64 (3, G)."""

    keys: np.ndarray
    pairs: np.ndarray
    seconds: np.ndarray


def estimate(groups: Groups, tokens: Tokens, counts: TokenCounts) -> Costs:
    """The costs; a group without records has none."""
    sizes, holders, t = counts.sizes, counts.holders, groups.threshold
    count = len(groups.highs)
    size, group = groups.meetings(sizes)  # which of the sizes, and in which group
    members = np.bincount(group, weights=holders[size], minlength=count)
    elements = np.bincount(group, weights=(holders * sizes)[size], minlength=count)
    mean = elements / np.maximum(members, 1)

    up_to = np.cumsum(holders)[np.searchsorted(sizes, t.largest_partner(sizes), "right") - 1]
    window = holders * (up_to - np.cumsum(holders)) + holders * (holders - 1) / 2
    allowed = np.bincount(groups.own(sizes), weights=window, minlength=count)

    first, meetings = _first_tokens(groups, tokens, counts)
    keys = np.stack((members * (groups.differ + 1), members * first, members))
    equal = np.zeros(count)
    for some in np.flatnonzero(allowed).tolist():
        equal[some] = _equal(groups, some, counts.sample)
    pairs = np.stack((allowed * equal, np.minimum(allowed, members * meetings / 2), allowed))
    seconds = keys * (KEY + KEY_TOKEN * mean) + pairs * (PAIR + PAIR_TOKEN * mean)
    return Costs(keys, pairs, seconds / 1e6)


def dearer_than_exact(
    name: str, way: int, resemblance: Threshold, counts: TokenCounts
) -> list[str]:
    """What to say of a scheme that has one way for all sizes, where another would cost far less."""
    if not len(counts.sample):
        return []
    groups = groups_of(resemblance)
    costs = estimate(groups, Tokens(resemblance, counts, 0), counts)
    used = costs.keys[ALL] > 0
    here, least = costs.seconds[way, used].sum(), costs.seconds[:, used].min(axis=0).sum()
    if here < max(DEARER * least, WORTH_SAYING):
        return []
    times = here / max(least, 1e-3)
    return [
        f"--scheme {name} will take about {times:,.0f} times the work of --exact: "
        f"some {costs.pairs[way, used].sum():,.0f} candidate pairs"
    ]


def _first_tokens(
    groups: Groups, tokens: Tokens, counts: TokenCounts
) -> tuple[np.ndarray, np.ndarray]:
    """float64 (G,): how many first tokens a set has that others have, and with how many it meets.

    Of a group that the sample has nothing of, the most.
    """
    sample = counts.sample
    group = groups.own(sample.sizes)
    first = first_tokens(sample, groups.threshold, counts)
    row, token = np.repeat(np.arange(len(sample)), first.sizes), first.values
    # Others meet it there if the token is one of their first too, as tokens as rare mostly are.
    rarity = np.frexp(counts.of(sample.values))[1]
    frequency = counts.of(token)
    is_first = np.bincount(np.frexp(frequency)[1], minlength=64) / np.maximum(
        np.bincount(rarity, minlength=64), 1
    )
    others = (frequency - 1) * is_first[np.frexp(frequency)[1]] * _allowed(groups, counts)[row]
    held = np.bincount(group, minlength=len(groups.highs))
    most = tokens.key_counts(groups.highs, np.arange(len(groups.highs)))
    return (
        np.where(held, np.bincount(group[row], minlength=len(held)) / np.maximum(held, 1), most),
        np.where(held, np.bincount(group[row], others, len(held)) / np.maximum(held, 1), MANY),
    )


def _allowed(groups: Groups, counts: TokenCounts) -> np.ndarray:
    """float64: the share of all records that the sizes allow as a partner of each in the sample."""
    t, sizes = groups.threshold, counts.sample.sizes
    ends = np.append(0, np.cumsum(counts.holders))
    largest = np.searchsorted(counts.sizes, t.largest_partner(sizes), "right")
    smallest = np.searchsorted(counts.sizes, t.smallest_partner(sizes))
    return (ends[largest] - ends[smallest]) / counts.records


def _equal(groups: Groups, group: int, sample: Ragged) -> float:
    """How likely it is that two sets meet in a part, of those that the group may have as pairs."""
    order = np.argsort(sample.sizes, kind="stable")
    sizes = sample.sizes[order]
    low = int(groups.highs[group - 1]) + 1 if group else 1
    left = np.arange(*np.searchsorted(sizes, [low, groups.highs[group] + 1]))
    counts = (
        np.searchsorted(sizes, groups.threshold.largest_partner(sizes[left]), "right") - left - 1
    )
    ends = np.cumsum(counts)
    parts = int(groups.differ[group]) + 1
    if not len(left) or not ends[-1]:
        return min(1.0, parts * np.exp(-2 * low / parts))  # as if they had nothing in common
    limit = max(100, SAMPLED_TOKENS // (2 * int(sizes[left].mean())))
    chosen = np.unique(np.linspace(0, ends[-1] - 1, min(limit, int(ends[-1]))).astype(np.int64))
    x = np.searchsorted(ends, chosen, "right")
    y = left[x] + 1 + chosen - (ends[x] - counts[x])
    x, y = order[left[x]], order[y]
    apart = sample.sizes[x] + sample.sizes[y] - 2 * shared(sample, x, y).sizes
    return float(np.minimum(parts * (1 - 1 / parts) ** apart, 1).mean())
