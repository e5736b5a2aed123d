"""The exact schemes partition, prefix and exact (the cheapest keys for each size), and auto.

*Partition*.  Exact, without token counts: PartEnum (Arasu, Ganti, Kaushik, VLDB 2006; Deng, Li,
Wen, Feng, VLDB 2015).  A pair in the size group of its smaller set (`by_size`) differs in at most d
elements, so both are equal in one of d+1 parts of the universe; a key is the content of one part.
A set has d+1 = ⌊(1-t)/t·n⌋+1 keys (4) at the end of its group, and more if it may be the larger set
of a pair of the group before.  At low t there are many keys, and small parts in which dissimilar
records are equal.

*Prefix*.  A key is one of a record's first tokens, with the rare ones first: every pair shares one
of n - ⌈t·n⌉ + 1 (4).  Tokens that only one record has are not keys.  Without token counts it is
exact too, but slow if some tokens are frequent.  If a measure implies no resemblance, such as
containment, all tokens are keys.

*Exact*.  The cheapest kind of keys in each size group.  For a few large sets that is one key, by
which all pairs are compared.  `estimate` computes the costs from the token counts.  Without counts,
parts are used where dissimilar sets hardly ever share one, and tokens elsewhere.

*Auto*.  At t = 0.9 a set of 35 elements has 4 parts instead of some 15 bands, but one of 300 has
34.  A size group uses parts if they are fewer keys and dissimilar sets seldom share one, and
MinHash otherwise.  Its promise is that of MinHash, or better.

The costs are estimated from how many records have each size and each token, and from a sample:

    parts    two sets that differ in D elements are equal in about p·(1-1/p)^D of p parts
    tokens   a set shares a key with the others that have one of its first tokens, by their sizes
    all      all pairs that the sizes allow

Letters: n a record's size (35), t the minimum resemblance (0.9); G groups; p parts (4); D elements
that only one of two sets has (60 of 2·35).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.schemes import banding, by_size
from neardup.schemes.by_size import All, BySize, Groups, InAllGroups, Parts, groups_of
from neardup.schemes.minhash import MinHash
from neardup.schemes.scheme import Request, Scheme
from neardup.sets.hashing import mix, random_words
from neardup.sets.ragged import Ragged, first_of_run, shared_sizes
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Threshold

TYPICAL = 100  # elements of a set, if nothing is known about the records
MAX_BY_CHANCE = 1e-3  # the maximum expected number of parts equal in dissimilar sets
PARTS, TOKENS, ALL = 0, 1, 2
PARTS_PROMISE = "exact: every pair is found, as its sets are equal in a part of all possible tokens"
SAMPLED_TOKENS = 1 << 18  # tokens of sample sets compared for one group
DEARER = 100  # a run prints a warning from this multiple of the cost of the cheapest keys
WORTH_SAYING = 10  # seconds, from which a run prints a warning
MANY = 1e18  # other sets that share a key, if unknown
# Microseconds, measured on one core; only their ratios matter.
KEY = 1.0  # to make a key and sort it
KEY_TOKEN = np.array([[0.02], [0.2], [0.2]])  # to send a token with a key
PAIR, PAIR_TOKEN = 0.1, 0.0005  # to compare the bitmaps of two sets, and for each of their tokens


class Partition(BySize):
    """The scheme partition: a key is a set's content in a part of the universe.

    Huge sets have one key for each of their size groups instead.

    >>> t = Threshold.parse("0.8")
    >>> sets = Ragged.from_rows([[1, 2, 3, 4, 5], [1, 2, 3, 4], [11, 12, 13, 14]])
    >>> keys = Partition.of(Request(t, t)).keys(sets)
    >>> keys = [set(keys.row(i).tolist()) for i in range(3)]
    >>> [len(row) for row in keys], len(keys[0] & keys[1]), len(keys[0] & keys[2])
    ([2, 2, 2], 1, 0)
    """

    keeps_recall = finds_every_pair = True
    promise = PARTS_PROMISE

    @classmethod
    def of(cls, request: Request) -> Partition:
        groups = groups_of(request.least)
        # With more parts than bands, parts would be so small that all sets are equal in one.
        too_many = groups.differ >= by_size.MAX_DIFFER
        seed = request.key_seed("partition")
        return cls(groups, (Parts(groups, seed), All(seed)), np.where(too_many, 1, 0))

    def cost(self) -> list[str]:
        group = self.groups.own(np.array([TYPICAL]))[0]
        chance = float(by_size.by_chance(self.groups)[group])
        if chance < 1:
            return []
        return [
            f"--scheme partition at a Jaccard similarity of {self.groups.threshold}: dissimilar "
            f"records of {TYPICAL} elements share about {chance:,.0f} keys, so that nearly all are "
            "compared, again and again; --exact finds the same pairs with less work"
        ]


@dataclass(eq=False)
class Prefix(Scheme):
    """The scheme prefix: the rarest tokens of each set as keys, all in band 0.

    >>> scheme = Prefix(Threshold.parse("0.8"), TokenCounts.of_sets(
    ...     Ragged.from_rows([[1, 2, 3, 4, 5], [1, 2, 3, 4], [4, 7, 8], [4, 9]])))
    >>> keys = scheme.keys(Ragged.from_rows([[1, 2, 3, 4, 5], [1, 2, 3, 4]]))
    >>> keys.sizes.tolist()  # the first 2 and 1 tokens, without 5: no other record has it
    [1, 1]
    """

    resemblance: Threshold | None
    counts: TokenCounts | None = None
    seed: int = 0
    measures: ClassVar[tuple[str, ...]] = ("jaccard", "dice", "cosine", "overlap", "containment")
    counting: ClassVar[bool] = True
    keeps_recall: ClassVar[bool] = True
    finds_every_pair: ClassVar[bool] = True
    one_a_band: ClassVar[bool] = False
    name: ClassVar[str] = "prefix"

    @classmethod
    def of(cls, request: Request) -> Prefix:
        return cls(request.resemblance, request.counts, request.key_seed(cls.name))

    @property
    def promise(self) -> str:
        return "exact: every pair shares one of its rarest tokens"

    def recall(self, similarity: float) -> float:
        return float(self.resemblance is None or similarity >= float(self.resemblance))

    def cost(self) -> list[str]:
        """Return [a warning] if --exact would cost far less, else []."""
        if self.resemblance is None or self.counts is None or not len(self.counts.sample):
            return []
        costs = estimate(groups_of(self.resemblance), self.counts)
        used = costs.keys[ALL] > 0
        here, least = costs.seconds[TOKENS, used].sum(), costs.seconds[:, used].min(axis=0).sum()
        if here < max(DEARER * least, WORTH_SAYING):
            return []
        return [
            f"--scheme {self.name} will take about {here / max(least, 1e-3):,.0f} times the work "
            f"of --exact: some {costs.pairs[TOKENS, used].sum():,.0f} candidate pairs"
        ]

    def probe(self) -> str:
        """Return the digest without token counts, which would reject sets that were not counted."""
        return super().probe() if self.counts is None else replace(self, counts=None).probe()

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return by_size.prefix_sizes(sizes, self.resemblance)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        if not low <= 0 < high:
            return Ragged(np.empty(0, np.uint64), np.zeros(len(sets) + 1, np.int64))
        return self._keys(sets)

    def _keys(self, sets: Ragged) -> Ragged:
        tokens = by_size.first_tokens(sets, self.resemblance, self.counts)
        words = mix(tokens.values ^ random_words(self.seed, 1, stream=3))
        return Ragged.from_unsorted(words >> np.uint64(64 - HASH_BITS), tokens.sizes)


class Auto(BySize):
    """The scheme auto: contents of parts as keys for some size groups, MinHash for the others."""

    options = banding.OPTIONS
    keeps_recall = True
    minhash: MinHash

    @classmethod
    def of(cls, request: Request) -> Auto:
        groups = groups_of(request.least)
        minhash = MinHash.of(request)
        keys = 2 * (groups.differ + 1)  # in two groups
        parts = (keys <= minhash.bands) & (by_size.by_chance(groups) <= MAX_BY_CHANCE)
        ways = Parts(groups, request.key_seed("auto")), InAllGroups(minhash, "minhash")
        scheme = cls(groups, ways, np.where(parts & (groups.differ < by_size.MAX_DIFFER), 0, 1))
        scheme.minhash = minhash
        return scheme

    @property
    def promise(self) -> str:
        long = np.flatnonzero(self.choice == 1)
        if not len(long):
            return PARTS_PROMISE
        if not long[0]:
            return self.minhash.promise
        short = self.groups.highs[long[0] - 1]
        return f"exact if a set of a pair has at most {short} elements; else {self.minhash.promise}"

    def cost(self) -> list[str]:
        return self.minhash.cost()

    def recall(self, similarity: float) -> float:
        if similarity < float(self.groups.threshold):
            return 0.0
        return self.minhash.recall(similarity)


@dataclass(eq=False)
class Exact(BySize):
    """The scheme exact: the keys with the lowest of `costs` (None: unknown) for each size group."""

    costs: Costs | None = None
    counting = True
    keeps_recall = finds_every_pair = True
    promise = "exact: every pair shares a key: a part of its sets, a rare token or a range of sizes"

    @classmethod
    def of(cls, request: Request) -> Exact:
        groups = groups_of(request.least)
        seed = request.key_seed("exact")
        tokens = InAllGroups(Prefix(request.least, request.counts, seed), "tokens")
        ways = Parts(groups, seed), tokens, All(seed)
        possible = groups.differ < by_size.MAX_DIFFER
        if request.counts is None or not len(request.counts.sample):
            choice = np.where(
                possible & (by_size.by_chance(groups) <= MAX_BY_CHANCE), PARTS, TOKENS
            )
            return cls(groups, ways, choice)
        costs = estimate(groups, request.counts)
        seconds = np.where(possible | (np.arange(3) != PARTS)[:, np.newaxis], costs.seconds, np.inf)
        # Machines may differ in the last digits, so near ties go to the first kind of keys.
        rounded = np.round(np.log(np.maximum(seconds, 1e-9)), 3)
        return cls(groups, ways, np.argmin(rounded, axis=0), costs)

    def seconds(self, request: Request, sets: Ragged) -> float:
        made = self.of(request._replace(counts=TokenCounts.of_sets(sets)))
        assert made.costs
        return float(made.costs.seconds[made.choice, np.arange(len(made.choice))].sum())

    def cost(self) -> list[str]:
        """Return one line about the cost of each range of sizes that uses the same kind of keys."""
        if self.costs is None or not self.costs.keys[ALL].any():
            return []
        used = np.flatnonzero(self.costs.keys[ALL])
        lines = []
        for run in np.split(used, np.flatnonzero(np.diff(self.choice[used])) + 1):
            way = self.choice[run[0]]
            low = int(self.groups.highs[run[0] - 1]) + 1 if run[0] else 1
            keys, pairs = self.costs.keys[way, run].sum(), self.costs.pairs[way, run].sum()
            lines.append(
                f"sizes {low:,} to {self.groups.highs[run[-1]]:,} by {self.ways[way].name}: "
                f"about {keys:,.0f} keys, {pairs:,.0f} candidate pairs"
            )
        return lines


@dataclass(eq=False)
class Costs:
    """Estimated keys, pairs and seconds, by kind of keys and size group: float64 (3, G) each."""

    keys: np.ndarray
    pairs: np.ndarray
    seconds: np.ndarray


def estimate(groups: Groups, counts: TokenCounts) -> Costs:
    """Estimate the cost of each kind of keys in each size group, from token counts and a sample."""
    sizes, holders, t = counts.sizes, counts.holders, groups.threshold
    count = len(groups.highs)
    size, group = groups.memberships(sizes)  # an index into `sizes`, and a group of that size
    members = np.bincount(group, weights=holders[size], minlength=count)
    elements = np.bincount(group, weights=(holders * sizes)[size], minlength=count)
    mean = elements / np.maximum(members, 1)

    up_to = np.cumsum(holders)[np.searchsorted(sizes, t.largest_partner(sizes), "right") - 1]
    window = holders * (up_to - np.cumsum(holders)) + holders * (holders - 1) / 2
    allowed = np.bincount(groups.own(sizes), weights=window, minlength=count)

    first, sharing = _first_tokens(groups, counts)
    keys = np.stack((members * (groups.differ + 1), members * first, members))
    equal = np.zeros(count)
    for some in np.flatnonzero(allowed).tolist():
        equal[some] = _equal(groups, some, counts.sample)
    pairs = np.stack((allowed * equal, np.minimum(allowed, members * sharing / 2), allowed))
    seconds = keys * (KEY + KEY_TOKEN * mean) + pairs * (PAIR + PAIR_TOKEN * mean)
    return Costs(keys, pairs, seconds / 1e6)


def _first_tokens(groups: Groups, counts: TokenCounts) -> tuple[np.ndarray, np.ndarray]:
    """Estimate, by size group, how many keys a set has, and how many other sets share one of them.

    Returns two float64 (G,), the means.  A group without a sample gets the largest numbers.
    """
    sample = counts.sample
    group = groups.own(sample.sizes)
    first = by_size.first_tokens(sample, groups.threshold, counts)
    row, token = np.repeat(np.arange(len(sample)), first.sizes), first.values
    # Other sets share the key if the token is in their prefix, too; equally rare tokens mostly are.
    rarity = np.frexp(counts.of(sample.values))[1]
    frequency = counts.of(token)
    is_first = np.bincount(np.frexp(frequency)[1], minlength=64) / np.maximum(
        np.bincount(rarity, minlength=64), 1
    )
    others = (frequency - 1) * is_first[np.frexp(frequency)[1]] * _allowed(groups, counts)[row]
    held = np.bincount(group, minlength=len(groups.highs))
    most = by_size.prefix_sizes(groups.highs, groups.threshold)
    return (
        np.where(held, np.bincount(group[row], minlength=len(held)) / np.maximum(held, 1), most),
        np.where(held, np.bincount(group[row], others, len(held)) / np.maximum(held, 1), MANY),
    )


def _allowed(groups: Groups, counts: TokenCounts) -> np.ndarray:
    """Return, for each record of the sample, the share of records that pass its length filter."""
    t, sizes = groups.threshold, counts.sample.sizes
    ends = np.append(0, np.cumsum(counts.holders))
    largest = np.searchsorted(counts.sizes, t.largest_partner(sizes), "right")
    smallest = np.searchsorted(counts.sizes, t.smallest_partner(sizes))
    return (ends[largest] - ends[smallest]) / counts.records


def _equal(groups: Groups, group: int, sample: Ragged) -> float:
    """Estimate the share of a group's pairs of sets that are equal in at least one part."""
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
        return min(1.0, parts * np.exp(-2 * low / parts))  # as for sets without common tokens
    limit = max(100, SAMPLED_TOKENS // (2 * int(sizes[left].mean())))
    chosen = np.linspace(0, ends[-1] - 1, min(limit, int(ends[-1]))).astype(np.int64)
    chosen = chosen[first_of_run(chosen)]
    x = np.searchsorted(ends, chosen, "right")
    y = left[x] + 1 + chosen - (ends[x] - counts[x])
    x, y = order[left[x]], order[y]
    apart = sample.sizes[x] + sample.sizes[y] - 2 * shared_sizes(sample, x, y)
    return float(np.minimum(parts * (1 - 1 / parts) ** apart, 1).mean())
