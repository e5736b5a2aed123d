"""Candidate keys, one for each group of records that share keys, and a filter for them.

    key     records
    000:a   1  7         a candidate key
    001:b   9            no other record has this key
    002:c   1  7         the same group of records as at 000:a
    003:d   1  7  9      a candidate key

Near-copies share a dozen keys, and one is enough.  No pair is lost: it is printed at the smallest
key that its records share, and a key is left out only if a smaller one has the same records.  A
group of records is identified by the sum of their hashes, mixed again.

A record is identified by a hash of all its keys: records with the same keys are together at each of
them, and two different groups have the same 48 bits once in 2^48.  A reducer knows only the keys of
its partition, so with many partitions fewer keys are left out.

*Filter.*  The second phase gets the keys as a blocked Bloom filter (Putze, Sanders, Singler, WEA
2007) of words of 48 bits: each key sets four bits of one word, or two where there are few bits a
key.  A false positive costs a line and no pair; a shared key always passes.  Per thousand:

    bits a key         32    16    13    10     8     6     4     2
    false positives   1.2   6.7    11    21    37    74   160   400

Each reducer of the first phase writes one part, for its partition of the digests, with 32 bits a
key unless all parts together become too large.  A part is text, and lookups need no decoding:

    shared PARTITION OF DIGESTS WORDS OPTIONS CHECKSUM …    128 bytes, filled up with blanks
    8191 words, @@@@@@ TAB LF
    …
    up to 8191 words, @@@@@@ TAB LF

A word is eight characters, from @ (no bit) to DEL (all six): 48 bits.  As line ends take eight
bytes too, a part is an array of words of 64 bits, and word i is the one at i + i // 8191.  The tab
is there because Hadoop adds one to a line that has none.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from mmap import PAGESIZE
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from neardup.runtime.program import StageError, shown
from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, first_of_run, starts_of_runs
from neardup.stages.external_group import by_key, grouped

HASH_BITS = 48
DIGEST_BITS = 40  # of a key's digest in a filter; a false positive costs a line, but no pair
MANY = 256  # rows of a key that are in memory together; more are replaced by `SHARED` rows
SHARED = np.uint64((1 << HASH_BITS) - 1)  # instead of a record's hash


def digests_of(keys: np.ndarray) -> np.ndarray:
    """Return 40-bit digests (uint64) of keys, for looking them up in a filter."""
    return mix(keys) >> np.uint64(64 - DIGEST_BITS)


def partition_of(digests: np.ndarray, partitions: int) -> np.ndarray:
    """Return the number of each digest's partition (uint64)."""
    return digests % np.uint64(partitions)


def rows_of(keys: Ragged) -> np.ndarray:
    """Return a row (key, hash of its record) for each key of the records: uint64 (n, 2).

    >>> rows = rows_of(Ragged.from_rows([[1, 2], [], [3]]))
    >>> rows[:, 0].tolist(), len(set(rows[:, 1].tolist()))
    ([1, 2, 3], 2)
    """
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mix(keys.values + np.uint64(1)))))
    hashes = mix(sums[keys.offsets[1:]] - sums[keys.offsets[:-1]]) >> np.uint64(64 - HASH_BITS)
    return np.column_stack((keys.values, np.repeat(hashes, keys.sizes)))


def at_most_twice(rows: np.ndarray) -> np.ndarray:
    """Keep at most two copies of each row; a very frequent key gets two `SHARED` rows instead.

    rows: sorted by key.

    Subtle: groups of records stay the same, since records with one hash are together at all their
    keys and are dropped together.  If more than MANY rows of a key are left, two `SHARED`
    rows replace them: the key is then a candidate key, whatever its group.

    >>> at_most_twice(np.array([[3, 1], [5, 2], [5, 4], [5, 2], [5, 2]], np.uint64)).tolist()
    [[3, 1], [5, 2], [5, 2], [5, 4]]
    """
    members = _members(rows)
    several = np.flatnonzero(members > 2)
    if not len(several):
        return rows
    some = rows[several]
    rows[several] = some[np.lexsort((some[:, 1], some[:, 0]))]
    kept = first_of_run(rows[:, 0]) | first_of_run(rows[:, 1])
    kept[1:] |= kept[:-1].copy()
    rows = rows[kept]
    many = _members(rows) > MANY
    if many.any():
        keys = rows[many, 0]
        keys = np.repeat(keys[first_of_run(keys)], 2)
        shared = np.column_stack((keys, np.full(len(keys), SHARED)))
        rows = by_key(np.concatenate((rows[~many], shared)))
    return rows


def _members(rows: np.ndarray) -> np.ndarray:
    """Return, for each row, how many rows have its key (int64); rows must be sorted by key."""
    starts = starts_of_runs(rows[:, 0])
    members = np.diff(starts, append=len(rows))
    return np.repeat(members, members)


def candidate_keys(pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the smallest key of each group of records that share keys, from rows (key, record).

    The keys are distinct, in arrays of uint64.  pieces: uint64 (n, 2), as `rows_of` makes them.
    """
    for rows in grouped(map(_groups, grouped(pieces))):
        starts = starts_of_runs(rows[:, 0])
        yield np.minimum.reduceat(rows[:, 1], starts) if len(starts) else rows[:, 1]


def _groups(rows: np.ndarray) -> np.ndarray:
    """Return rows (group of records, key), one for each key that several rows have.

    A `SHARED` key is a group of its own.
    """
    starts = starts_of_runs(rows[:, 0])
    if not len(starts):
        return rows
    keys, hashes = rows[starts, 0], rows[:, 1]
    several = np.diff(starts, append=len(rows)) > 1
    sums = np.add.reduceat(mix(hashes + np.uint64(1)), starts)
    of_its_own = np.logical_or.reduceat(hashes == SHARED, starts)
    sums[of_its_own] = mix(keys[of_its_own] + np.uint64(1))
    return np.column_stack((sums[several], keys[several]))


WORD_BITS = 48
HEAD_BYTES = 128
LINE_WORDS = 8191  # 64 KiB, including the line end
MAPPED_BYTES = 2 << 30  # bytes of all parts, if processes share them as mapped files
HELD_BYTES = 256 << 20  # bytes of all parts, if each process has its own copy
PART_BYTES = 256 << 20  # bytes of one part, in the memory of its reducer
BITS_A_KEY = 32
SETS_FOUR = 5  # with so many bits per key, or more, a key sets four bits
_FIXED = 0x10  # MAP_FIXED
ADVICE = "run the first round again, with the options of this round, including --input"
_NO_BITS, _LINE_END = (int.from_bytes(word, "little") for word in (b"@" * 8, b"@@@@@@\t\n"))
_HEAD = re.compile(
    rb"(shared ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9a-f]{16}) )([0-9a-f]{8}) *\t\n"
)
_Places = TypeVar("_Places", int, np.ndarray)


def words_in_text(words: int) -> np.ndarray:
    """Return the text of an empty filter of `words` words and line ends, 8 bytes per uint64."""
    text = np.full(place_in_text(words - 1) + 2, _NO_BITS, "<u8")
    text[LINE_WORDS :: LINE_WORDS + 1] = _LINE_END
    text[-1] = _LINE_END
    return text


def place_in_text(word: _Places) -> _Places:
    """Return the index of a filter word, or of several, in the text of the filter.

    >>> place_in_text(8190), place_in_text(8191)
    (8190, 8192)
    """
    return word + word // LINE_WORDS


def bit_in_word(bit: np.ndarray) -> np.ndarray:
    """Return words (uint64) with one bit set, bit 0 … 47; a byte holds six, so bit 6 is 0x100."""
    return np.uint64(1) << (bit + bit // 6 * 2).astype(np.uint64)


def parse_parts(text: memoryview, options: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield (partition, partitions, digests, words, start) for each part of a filter's text.

    start: the index of its first word, in units of eight bytes.  Files begin at page boundaries.

    StageError if a part is damaged, or was made with other `options`.
    """
    start = 0
    while start < len(text):
        head = bytes(text[start : start + HEAD_BYTES])
        found = _HEAD.fullmatch(head)
        if not found:
            raise StageError(f"expected shared keys, got {shown(head)}; {ADVICE}")
        if found[6] != options:
            raise StageError(
                f"the shared keys were made with other options or by another version; {ADVICE}"
            )
        number, of, digests, words = map(int, found.groups()[1:5])
        start += HEAD_BYTES
        end = start + 8 * (place_in_text(words - 1) + 2)
        if end > len(text) or crc32(text[start:end], crc32(found[1])) != int(found[7], 16):
            raise StageError(f"the shared keys of partition {number} are damaged; {ADVICE}")
        yield number, of, digests, words, start // 8
        start = end
        if start < len(text) and not text[start]:  # padding at the end of a mapped file
            start = _in_pages(start)


_BIT = bit_in_word(np.arange(256) * WORD_BITS >> 8)  # the bit for each value of a byte of a hash
_TWO_BITS = np.bitwise_or.outer(_BIT, _BIT).ravel()


def fingerprint(keys_of: Mapping[str, str]) -> bytes:
    """Return a hash, as 16 hexadecimal digits, of the options on which keys depend."""
    text = "\n".join(f"{flag} {keys_of[flag]}" for flag in sorted(keys_of))
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16].encode()


def filter_part(
    shared: Iterable[np.ndarray], partition: int, partitions: int, options: bytes, most: int
) -> Iterator[bytes]:
    """Yield the lines of one part of a filter, for a partition's distinct digests (uint64).

    The words of all parts together take at most `most` bytes, and those of this one PART_BYTES.
    """
    with tempfile.TemporaryFile() as file:
        count = 0
        for digests in shared:
            file.write(digests.data)
            count += len(digests)
        bound = min(most // partitions, PART_BYTES) // 8
        words = max(1, min(bound, count * BITS_A_KEY // WORD_BITS))
        text = words_in_text(words)
        file.seek(0)
        while data := file.read(8 << 16):
            place, bits = _marks(np.frombuffer(data, np.uint64), _sets_four(words, count))
            np.bitwise_or.at(text, _scaled(place, np.uint64(words)), bits)
    head = b"shared %d %d %d %d %b " % (partition, partitions, count, words, options)
    head += b"%08x" % crc32(text.data, crc32(head))
    yield head.ljust(HEAD_BYTES - 2) + b"\t\n"
    for start in range(0, len(text), LINE_WORDS + 1):
        yield text[start : start + LINE_WORDS + 1].tobytes()


def _sets_four(words: Any, digests: Any) -> Any:
    return words * WORD_BITS >= SETS_FOUR * digests


def _marks(digests: np.ndarray, four: bool | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each digest's filter word, as a number below 2^32, and the bits to set (uint64)."""
    mixed = mix(digests + np.uint64(1))
    low, high = (mixed.astype(np.int64) >> shift & 0xFFFF for shift in (0, 16))
    bits = _TWO_BITS[low]
    return mixed >> np.uint64(32), np.where(four, bits | _TWO_BITS[high], bits)


def _scaled(place: np.ndarray, words: np.ndarray | np.uint64) -> np.ndarray:
    """Scale numbers below 2^32 to indices (int64) in the text of a filter of `words` words."""
    return place_in_text(place * words >> np.uint64(32)).astype(np.int64)


@dataclass(eq=False)
class BloomFilter:
    """A blocked Bloom filter of keys; its parts are kept as text and looked up without decoding.

    text: uint64; for each part: starts (int64), the index of its first word; words (uint64), how
    many; four (bool), whether keys set four bits.
    """

    text: np.ndarray
    starts: np.ndarray
    words: np.ndarray
    four: np.ndarray
    digests: int  # how many keys are shared

    @classmethod
    def of(cls, text: bytes | mmap.mmap, options: bytes) -> BloomFilter | None:
        """Make a filter from the text of all its parts, in any order; None if the text is empty.

        StageError if a part is damaged, missing, or made with other `options` (see `fingerprint`).
        """
        parts = np.array(sorted(parse_parts(memoryview(text), options)), np.int64)
        if not len(parts):
            return None
        number, of, digests, words, starts = parts.T
        if (number != np.arange(len(parts))).any() or (of != len(parts)).any():
            raise StageError(f"the shared keys are incomplete, or from several runs; {ADVICE}")
        return cls(
            np.frombuffer(text, "<u8", len(text) // 8),
            starts,
            words.astype(np.uint64),
            _sets_four(words, digests),
            int(digests.sum()),
        )

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Return a mask (n,): False for each key (uint64) that is certainly not shared."""
        digests = digests_of(keys)
        part = partition_of(digests, len(self.words)).astype(np.int64)
        place, bits = _marks(digests, self.four[part])
        words = self.text[self.starts[part] + _scaled(place, self.words[part])]
        return (words & bits) == bits


def mapped(paths: Iterable[Path]) -> mmap.mmap | bytes:
    """Map regular files into memory one after the other, each on a page boundary.

    Python's `mmap` keeps each file open while it is mapped, and there may be thousands; it also
    maps each to an address of its own.  So it only reserves a range of addresses here, and the C
    library maps each file to its place there.  The files must not be truncated while in use.
    """
    sizes = {path: path.stat().st_size for path in paths}
    size = sum(map(_in_pages, sizes.values()))
    if not size:
        return b""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    whole = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
    place = np.frombuffer(whole, np.uint8).ctypes.data
    for path, size in sizes.items():
        if size:
            _map(path, size, place)
            place += _in_pages(size)
    return whole


def _in_pages(size: int) -> int:
    return -(-size // PAGESIZE) * PAGESIZE


def _map(path: Path, size: int, place: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    with path.open("rb") as file:
        how = (mmap.PROT_READ, mmap.MAP_SHARED | _FIXED, file.fileno())
        if libc.mmap(place, size, *how, 0) != place:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
