"""PPJoin+: a prefix join that adds two filters to All-Pairs (`weighted_joins`), in vector steps.

PPJoin (Xiao, Wang, Lin, Yu: Efficient Similarity Joins for Near Duplicate Detection, WWW 2008)
takes records in order of size, their tokens rarest first, so that the prefix in the index can be
shorter than the one that is looked up.  The positions of a common token bound how many tokens both
can still share:

    x   a c d │ f g h i j         both have a, then d: 2 tokens, and at most 4 more follow
    y   a b d │ f g h i

PPJoin+ (the same paper) adds the suffix filter.  A *posting* is a token in the indexing prefix of a
record x, a *probe* is a token in the probing prefix of a record y, and a *collision* is a posting
and a probe with the same token, x before y.  The filters look at the last collision of a pair,
where their bounds are tightest.

Letters: x < y records; i, j the positions in x and y of the last collision; common the number of
collisions.  Cost: sorts of one word for each token, posting, probe and collision.  In
memory: a few words for each token, and STEP collisions at a time, or those of one record.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neardup.joins import filters
from neardup.joins.filters import Ordered, indexing_prefix, overlap_needed, probing_prefix, token_of
from neardup.joins.inverted_index import Joined
from neardup.sets.ragged import PAIR_STEP, Ragged, chunks, spans, starts_of_runs
from neardup.similarity.measures import Threshold

STEP = 1 << 18  # collisions in one vector step, which has a dozen arrays of 2 MB
SUFFIX_DEPTH = 2  # cuts each suffix in four


def ppjoin_plus(rows: Ragged, threshold: Threshold) -> Joined:
    """Return the pairs at or above the threshold, by PPJoin+.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)]])
    >>> joined = ppjoin_plus(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
    ([0], [1], [9])
    >>> joined.candidates
    {'all': 3, 'length': 3, 'prefix': 1, 'positional': 1, 'suffix': 1, 'pairs': 1}
    """
    records = Ordered.of(rows)
    first = records.first_partner(threshold)
    counts = {**records.counts(first), "prefix": 0, "positional": 0, "suffix": 0}
    found = [np.empty((0, 3), np.int64)]
    prefixes = indexing_prefix(threshold, records.sizes), probing_prefix(threshold, records.sizes)
    for candidates in candidates_of(records, first, *prefixes):
        counts["prefix"] += len(candidates.x)
        x_size, y_size = records.sizes[candidates.x], records.sizes[candidates.y]
        most = filters.most_common(x_size, y_size, *candidates[2:])
        candidates = candidates.only(most >= overlap_needed(threshold, x_size, y_size))
        counts["positional"] += len(candidates.x)
        candidates = _after_suffix_filter(records, threshold, candidates)
        counts["suffix"] += len(candidates.x)
        pairs = overlapping(records, candidates)
        sizes = records.sizes[pairs[:, 0]] + records.sizes[pairs[:, 1]]
        found.append(pairs[threshold.reached(pairs[:, 2], sizes - pairs[:, 2])])
    return Joined.of(records.row, np.concatenate(found), counts)


class Candidates(NamedTuple):
    """Candidate pairs of records x and y: count and last positions of common prefix tokens (int64).

    i, j: positions of the last one in x and y; common: the number of common prefix tokens.
    """

    x: np.ndarray
    y: np.ndarray
    i: np.ndarray
    j: np.ndarray
    common: np.ndarray

    def only(self, kept: np.ndarray) -> "Candidates":
        return Candidates(*(column[kept] for column in self))


def candidates_of(
    records: Ordered, first: np.ndarray, indexing: np.ndarray, probing: np.ndarray
) -> Iterator[Candidates]:
    """Yield pairs that pass the length filter and share a prefix token, in batches of records y.

    All int64 (n,): the first possible partner of each record, and the lengths of its prefixes.

    In order of token, then record, the postings that a probe finds are side by side:

        token    4 4 4 4 4 5 5 …
        record   0 2 3 7 9 1 3 …      the probe with token 4 of record 9, whose first partner
                   └─┴─┘              may be 2, finds records 2, 3 and 7
    """
    starts = records.offsets[:-1]
    posted = spans(starts, indexing)
    postings = _by_token(records, posted)
    order = np.argsort(postings)
    postings, posted = postings[order], posted[order]
    owner = token_of(postings, len(records).bit_length()).astype(np.int64)

    probed, y = spans(starts, probing), np.repeat(np.arange(len(records)), probing)
    probes = _by_token(records, probed)
    order = np.argsort(probes)
    probes = probes[order]  # ascending, so that each search begins near where the last one ended
    low, high = np.empty_like(y), np.empty_like(y)
    high[order] = np.searchsorted(postings, probes)
    probes -= (y - first[y])[order].astype(np.uint64)
    low[order] = np.searchsorted(postings, probes)

    collisions = high - low
    ends = np.append(0, np.cumsum(probing))
    for here, there in chunks(np.diff(np.append(0, np.cumsum(collisions))[ends]), STEP):
        some = slice(ends[here], ends[there])
        posting = spans(low[some], collisions[some])
        probe = np.repeat(np.arange(ends[here], ends[there]), collisions[some])
        yield _together(records, owner[posting], y[probe], posted[posting], probed[probe])


def _by_token(records: Ordered, places: np.ndarray) -> np.ndarray:
    """Return the keys at `places` with the token in the high bits, so that they sort by token."""
    keys = records.keys[places]
    high = token_of(keys, records.bits) << np.uint64(len(records).bit_length())
    return high | keys >> np.uint64(records.bits)


def _together(
    records: Ordered, x: np.ndarray, y: np.ndarray, x_place: np.ndarray, y_place: np.ndarray
) -> Candidates:
    """Merge the collisions of each pair of records into one candidate."""
    pair = (y - y[:1]) << len(records).bit_length() | x
    order = np.argsort(pair)
    first = starts_of_runs(pair[order])
    common = np.diff(first, append=len(pair))
    last = np.maximum.reduceat(order, first) if len(first) else first
    x, y = x[last], y[last]
    i, j = x_place[last] - records.offsets[x] + 1, y_place[last] - records.offsets[y] + 1
    return Candidates(x, y, i, j, common)


def _after_suffix_filter(records: Ordered, t: Threshold, c: Candidates) -> Candidates:
    most = filters.most_apart(t, records.sizes[c.x], records.sizes[c.y], c.i, c.j, c.common)
    step = (c.x - c.y).astype(np.uint64) << np.uint64(records.bits)
    x, y = _rest(records, c.x, c.i), _rest(records, c.y, c.j)
    return c.only(filters.least_apart(records.keys, step, x, y, SUFFIX_DEPTH) <= most)


def _rest(records: Ordered, record: np.ndarray, seen: np.ndarray) -> filters.Parts:
    """Return the (from, to) positions of the tokens after the first `seen` of each record."""
    return records.offsets[record] + seen, records.offsets[record + 1]


def overlapping(records: Ordered, c: Candidates) -> np.ndarray:
    """Return the candidates with their overlaps, as rows (x, y, overlap): int64 (P, 3)."""
    x, y = _rest(records, c.x, c.i), _rest(records, c.y, c.j)
    bits, common = np.uint64(records.bits), c.common.copy()
    for low, high in chunks(x[1] - x[0] + y[1] - y[0], PAIR_STEP):
        some = slice(low, high)
        pair = np.arange(high - low, dtype=np.uint64) << bits
        sides = []
        for start, end in ((start[some], end[some]) for start, end in (x, y)):
            tokens = token_of(records.keys[spans(start, end - start)], records.bits)
            sides.append(np.repeat(pair, end - start) | tokens)
        both = np.concatenate(sides)
        both.sort()
        owner = both[1:][both[1:] == both[:-1]] >> bits
        common[some] += np.bincount(owner.astype(np.int64), minlength=high - low)
    return np.stack((c.x, c.y, common), axis=1)
