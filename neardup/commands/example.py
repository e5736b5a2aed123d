"""`example`: write a given number of synthetic records, as large as those of real videos.

    python3 -m neardup example --records 2000 --seed 1 --cluster 30 > data/videos.txt

A line is `VIDEO_000000001 4711 17 9 4711 …`: 50-256 different shingles below 20,000 (half of the
records have 101 or fewer) in random order, one in ten of them given twice.

A *family* is an original and its near-copies, none for most and 1-3 for some (`--copies`).  A
copy lacks `removed` of its original's n shingles and has `added` new ones: their resemblance is
(n - removed) / (n + added):

    every fifth copy          1: the same set, in another order
    another fifth             0.9 exactly, unless the original is too small for that
    the others                0.8 … 1: removed + added is 0 … n/5, all equally likely

Sets can be planted, at even distances over the whole file: a *cluster* (`--cluster`), any two of
whose records have 0.923 or more, and a *hot* set (`--hot`), copied unchanged.  A *long* record
(`--long`), the shingles from 0 upwards, comes last, in addition to the others.

Same seed, same bytes, with any Python, numpy and machine.
"""

from collections.abc import Collection, Iterator
from itertools import chain, count, islice
from typing import Any

from neardup.options.command_parser import CommandParser
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, whole, write_all
from neardup.sets.hashing import random_words

MAX_RECORDS = 10**9 - 1  # their ids have nine digits
MAX_LONG = 5_000_000
UNIVERSE = 20_000
SMALLEST, LARGEST = 50, 256
PLANTED_SIZE = 100
WINDOW = 10_000  # records held at once, and put in random order
SHINGLES = [b"%d" % number for number in range(UNIVERSE)]
DESCRIPTION = """Write synthetic records, one per line, to try the programs on.

A record has 50 to 256 different shingles.  A tenth of the originals have one to three
near-copies: about a fifth of the copies are equal to their original, and another fifth have a
similarity of 0.9 to it.  The same options give the same bytes on any machine.  The memory in use
does not depend on the number of records.

    python3 -m neardup example --records 100000 > videos.txt
    python3 -m neardup example --records 2000 --cluster 30 > the-same-as-data-videos.txt
"""


def main() -> None:
    parser = CommandParser("python3 -m neardup example", DESCRIPTION)
    own = flags(
        f"""
        --records N     number of lines [2000]
        --seed N        another seed gives other records; 0 to 2^64-1 [1]
        --copies SHARE  share of the originals that have near-copies; 0 to 1 [0.1]
        --cluster SIZE  number of records that are near-copies of the same record [0]
        --hot SIZE      number of records that are all equal to each other [0]
        --long SIZE     add one record with this many shingles, at most {MAX_LONG:,} [0]
        """,
        **dict.fromkeys(("records", "cluster", "hot"), whole(0, MAX_RECORDS)),
        seed=whole(0, 2**64 - 1),
        copies=_share,
        long=whole(0, MAX_LONG),
    )
    parser.add(*own)
    args = parser.parse_args()
    records, cluster, hot = args.records, args.cluster, args.hot
    if cluster + hot > records:
        planted = f"--cluster {cluster} and --hot {hot}"
        raise UsageError(f"{planted} exceed --records {records}; ask for at least as many records")
    write_all(lines(records, args.seed, args.copies, cluster, hot, args.long))


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is outside 0 <= SHARE <= 1")
    return value


class RandomIntegers:
    """A generator of random integers that gives the same numbers on every machine for a seed."""

    def __init__(self, seed: int):
        blocks = (random_words(seed, 1 << 14, stream).tolist() for stream in count())
        self._words: Iterator[int] = chain.from_iterable(blocks)

    def below(self, limit: int) -> int:
        return next(self._words) % limit

    def hits(self, chance: float) -> bool:
        return next(self._words) < chance * (1 << 64)

    def shuffled(self, items: list[Any]) -> list[Any]:
        words = list(islice(self._words, len(items)))
        return [items[i] for i in sorted(range(len(items)), key=words.__getitem__)]


def lines(
    records: int, seed: int, copies: float, cluster: int = 0, hot: int = 0, long: int = 0
) -> Iterator[bytes]:
    """Yield the lines of a synthetic file; `copies`: the share of originals that have near-copies.

    >>> first = next(lines(records=10, seed=1, copies=0.1))
    >>> first[:24], len(set(first.split()[1:]))
    (b'VIDEO_000000001 17648 65', 154)
    """
    dice = RandomIntegers(seed)
    sets = mixed_sets(records, copies, cluster, hot, dice)
    texts = (b" ".join([SHINGLES[shingle] for shingle in with_repeats(x, dice)]) for x in sets)
    windows = iter(lambda: dice.shuffled(list(islice(texts, WINDOW))), [])
    last = [b" ".join([b"%d" % i for i in range(long)])] * bool(long)
    for number, text in enumerate(chain(chain.from_iterable(windows), last), 1):
        yield b"VIDEO_%09d %b\n" % (number, text)


def mixed_sets(
    records: int, copies: float, cluster: int, hot: int, dice: RandomIntegers
) -> Iterator[list[int]]:
    """Yield random families of sets and, spread evenly, `cluster` similar and `hot` equal sets."""
    families = chain.from_iterable(family(copies, dice) for _ in count())
    cluster_base, hot_base = (new_shingles(PLANTED_SIZE, (), dice) for _ in range(2))
    planted = cluster + hot
    for i in range(records):
        nth = i * planted // records
        if nth == (i + 1) * planted // records:
            yield next(families)
        elif nth * cluster // planted == (nth + 1) * cluster // planted:
            yield dice.shuffled(hot_base)
        else:
            exchanged = 1 + dice.below(2)
            yield changed(cluster_base, exchanged, exchanged, dice)


def family(copies: float, dice: RandomIntegers) -> Iterator[list[int]]:
    """Yield a random set and, with probability `copies`, one to three near-copies of it."""
    u = dice.below(1 << 32)
    size = SMALLEST + (u * u * (LARGEST + 1 - SMALLEST) >> 64)  # small ones are more likely
    original = new_shingles(size, (), dice)
    yield original
    if dice.hits(copies):
        for _ in range(1 + dice.below(3)):
            yield changed(original, *removed_and_added(size, dice), dice)


def removed_and_added(n: int, dice: RandomIntegers) -> tuple[int, int]:
    """Draw how many of n shingles a copy lacks, and how many it adds, within the allowed sizes."""
    kind = dice.below(5)
    if kind == 0:
        return 0, 0
    if kind == 1:
        added = -n % 10  # (n - removed) / (n + added) = 9/10, so n = 10·removed + 9·added
        removed = (n - 9 * added) // 10
        if removed >= 0 and n - removed + added >= SMALLEST:
            return removed, added
    changes = dice.below(n // 5 + 1)
    least = max(0, (n + changes - LARGEST + 1) // 2)
    most = min(changes, (n + changes - SMALLEST) // 2)
    removed = least + dice.below(most - least + 1)
    return removed, changes - removed


def changed(original: list[int], removed: int, added: int, dice: RandomIntegers) -> list[int]:
    kept = dice.shuffled(original)[removed:]
    return kept + new_shingles(added, frozenset(original), dice)


def new_shingles(how_many: int, taken: Collection[int], dice: RandomIntegers) -> list[int]:
    """Draw `how_many` different shingles that are not in `taken`."""
    found: dict[int, None] = {}  # in the order of the draws
    while len(found) < how_many:
        draws = [dice.below(UNIVERSE) for _ in range(how_many - len(found))]
        found.update((shingle, None) for shingle in draws if shingle not in taken)
    return list(found)


def with_repeats(shingles: list[int], dice: RandomIntegers) -> list[int]:
    """Return the shingles in random order; a tenth of them are repeated."""
    return dice.shuffled(shingles + shingles[: (len(shingles) + 5) // 10])
