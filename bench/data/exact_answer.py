"""The exact answer: every pair of records whose resemblance reaches the threshold.

    python3 -m bench.data.exact_answer data/videos.txt --join nested_loop > data/videos.pairs.tsv

`nested_loop` is the definition.  `partition` (the default) finds the same pairs by pigeonhole
(PartEnum: Arasu, Ganti, Kaushik, VLDB 2006; Deng, Li, Wen, Feng, VLDB 2015), with no chance in it:

    t ≤ |x∩y| / |x∪y| and |x| ≤ |y|  ⇒  |y| ≤ |x|/t  and  |x△y| ≤ (1-t)/(1+t) · (|x|+|y|)

Say t = 0.9 and the smaller set has 50 to 55 shingles, which is one *size group*: its partner has
at most 61, and d = 6 shingles at most are in one set only.  A hash cuts the universe into d + 1 = 7
*parts*; d shingles spoil at most d of them, so that in one part at least x and y are equal (it may
be empty).  Only records equal in some part are compared.  A hash stands for the content of a
part: where two contents collide, a comparison is wasted, and nothing is lost.

At low thresholds parts get so small that this comes down to comparing everything.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import combinations, islice
from typing import BinaryIO, NamedTuple

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, chunks, shared, spans
from neardup.similarity.measures import Threshold, six_decimals

BATCH = 20_000  # lines parsed at once
STEP = 1 << 20  # candidate pairs looked at in one vector step


class Pairs(NamedTuple):
    """The row numbers of both records of each pair, and how many shingles they share (int64)."""

    left: np.ndarray
    right: np.ndarray
    common: np.ndarray


Join = Callable[[Ragged, Threshold], Pairs]


def nested_loop(rows: Ragged, threshold: Threshold) -> Pairs:
    """Return the pairs that reach the threshold, by comparing every two records.

    >>> rows = Ragged.from_rows([[1, 2, 3], [7], [1, 2, 3, 4]])
    >>> [column.tolist() for column in nested_loop(rows, Threshold.parse("0.75"))]
    [[0], [2], [3]]
    """
    sets = [frozenset(rows.row(i).tolist()) for i in range(len(rows))]
    found = []
    for (i, x), (j, y) in combinations(enumerate(sets), 2):
        common = len(x & y)
        if common * threshold.den >= (len(x) + len(y) - common) * threshold.num:
            found.append((i, j, common))
    return Pairs(*np.array(found, dtype=np.int64).reshape(-1, 3).T)


def partition(rows: Ragged, threshold: Threshold) -> Pairs:
    """Return pairs that reach the threshold; compare only sets with an equal part (PartEnum)."""
    none = np.empty(0, np.int64)
    found = [Pairs(none, none, none)]
    for low, high in size_groups(rows.sizes, threshold):
        found += pairs_of_group(rows, low, high, threshold)
    return Pairs(*map(np.concatenate, zip(*found)))


JOINS: dict[str, Join] = {"partition": partition, "nested_loop": nested_loop}


def size_groups(sizes: np.ndarray, threshold: Threshold) -> Iterator[tuple[int, int]]:
    """Yield ranges of set sizes, (low, ⌊low/t⌋), that cover all `sizes`.

    A pair is in the range of its smaller set.

    >>> list(size_groups(np.array([50, 52, 55, 56, 70]), Threshold.parse("0.9")))
    [(50, 55), (56, 62), (70, 77)]
    """
    high = 0
    for low in np.unique(sizes).tolist():
        if low > high:
            high = low * threshold.den // threshold.num
            yield low, high


def pairs_of_group(rows: Ragged, low: int, high: int, threshold: Threshold) -> Iterator[Pairs]:
    """Yield batches of the pairs whose smaller set has low … high shingles, each pair once."""
    num, den = threshold.num, threshold.den
    members = np.flatnonzero((rows.sizes >= low) & (rows.sizes <= high * den // num))
    group = rows.take(members)
    sizes = group.sizes
    most_together = int(sizes[sizes <= high].max() + sizes.max())
    contents = hashed_parts(group, 1 + (den - num) * most_together // (den + num))
    for part, content in enumerate(contents):
        for i, j in equal_pairs(content):
            smaller, larger = np.minimum(sizes[i], sizes[j]), np.maximum(sizes[i], sizes[j])
            wanted = (smaller <= high) & (larger <= threshold.largest_partner(smaller))
            for earlier in contents[:part]:  # a pair is looked at in its first equal part
                wanted &= earlier[i] != earlier[j]
            i, j = i[wanted], j[wanted]
            common = shared(group, i, j).sizes
            good = threshold.reached(common, sizes[i] + sizes[j] - common)
            yield Pairs(members[i[good]], members[j[good]], common[good])


def hashed_parts(rows: Ragged, parts: int) -> list[np.ndarray]:
    """Split shingles into parts; return, for each part, the sum of each row's hashes (uint64).

    No row is empty (`reduceat` would not see it).
    """
    hashes = mix(rows.values + np.uint64(1))
    part_of = ((hashes >> np.uint64(32)) % np.uint64(parts)).astype(np.uint32)
    starts = rows.offsets[:-1]
    return [
        np.add.reduceat(np.where(part_of == part, hashes, np.uint64(0)), starts)
        for part in range(parts)
    ]


def equal_pairs(content: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of about STEP pairs (i, j) with `content[i] == content[j]`, each pair once.

    >>> [(i.tolist(), j.tolist()) for i, j in equal_pairs(np.array([5, 7, 5, 5]))]
    [([0, 0, 2], [2, 3, 3])]
    """
    order = np.argsort(content, kind="stable")
    content = content[order]
    place = np.arange(len(order))
    run_end = np.searchsorted(content, content, side="right")
    later = run_end - place - 1  # how many equal ones follow
    place, later = place[later > 0], later[later > 0]
    for low, high in chunks(later, STEP):
        left = np.repeat(place[low:high], later[low:high])
        right = spans(place[low:high] + 1, later[low:high])
        yield order[left], order[right]


def read_records(file: BinaryIO) -> tuple[list[bytes], Ragged]:
    """Read the ids and sets of a well-formed file; SystemExit if a record has no shingles."""
    ids: list[bytes] = []
    batches = []
    while True:
        lines = [line.partition(b" ") for line in islice(file, BATCH)]
        if not lines:
            break
        ids += [id_ for id_, _, _ in lines]
        sets = [np.fromstring(numbers, dtype=np.uint64, sep=" ") for _, _, numbers in lines]
        sizes = np.array([len(numbers) for numbers in sets], dtype=np.int64)
        if not sizes.all():
            raise SystemExit(
                f"bench.data.exact_answer: {ids[sizes.argmin() - len(sizes)]!r} has no shingles"
            )
        batches.append(Ragged.from_unsorted(np.concatenate(sets), sizes))
    values = np.concatenate([np.empty(0, np.uint64)] + [batch.values for batch in batches])
    sizes = np.concatenate([np.zeros(1, np.int64)] + [batch.sizes for batch in batches])
    return ids, Ragged(values, np.cumsum(sizes))


def pair_lines(ids: list[bytes], sizes: np.ndarray, pairs: Pairs) -> list[bytes]:
    """Return lines `a TAB b TAB similarity` with a < b, in the order of `LC_ALL=C sort`."""
    union = sizes[pairs.left] + sizes[pairs.right] - pairs.common
    names = [sorted((ids[i], ids[j])) for i, j in zip(pairs.left.tolist(), pairs.right.tolist())]
    similarities = six_decimals(pairs.common, union)
    return sorted(b"%b\t%b\t%b" % (a, b, s) for (a, b), s in zip(names, similarities))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.data.exact_answer",
        description="Print every pair with resemblance ≥ t.",
    )
    parser.add_argument("file")
    parser.add_argument("--threshold", type=Threshold.parse, default="0.9")
    parser.add_argument("--join", choices=JOINS, default="partition")
    args = parser.parse_args()
    with open(args.file, "rb") as file:
        ids, rows = read_records(file)
    pairs = JOINS[args.join](rows, args.threshold)
    for line in pair_lines(ids, rows.sizes, pairs):
        sys.stdout.buffer.write(line + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
