r"""The Bloom filter of shared keys: made in parts, sent as text, and looked up in mapped files.

A blocked Bloom filter (Putze, Sanders, Singler, WEA 2007) of words of 48 bits: each key sets four
bits of one word, or two where there are few bits for each.  A key that nothing shares passes by
accident, which costs a line and no pair; a shared one is never refused.  Of a thousand others pass:

    bits a key    32    16    13    10     8     6     4     2
    pass         1.2   6.7    11    21    37    74   160   400

Each reducer of the first phase writes one part, for its partition of the digests, with 32 bits a
key unless all parts together become too large.  A part is text, which is looked up without being
decoded:

    shared PARTITION OF DIGESTS WORDS OPTIONS CHECKSUM …    128 bytes, filled up with blanks
    8191 words, @@@@@@ TAB LF
    …
    up to 8191 words, @@@@@@ TAB LF

A word is eight characters, from @ (no bit) to DEL (all six): 48 bits.  As lines end with eight
bytes, too, a part is an array of words of 64 bits, and word i is the one at i + i // 8191.  A tab
stands before each line end because Hadoop puts one into a line that has none.

The files of all parts are mapped as one piece of memory (`mapped`): none of it is loaded, and all
processes of a machine share the system's copy.
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
from typing import NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from neardup.runtime.errors import StageError, shown
from neardup.sets.hashing import mix
from neardup.stages.candidate_keys import digests_of, partition_of

WORD_BITS = 48
HEAD_BYTES = 128
LINE_WORDS = 8191  # 64 KiB, with the end
MAPPED_BYTES = 2 << 30  # of all parts, as files, which processes have in common
HELD_BYTES = 256 << 20  # of all parts, where each process has its own
PART_BYTES = 256 << 20  # of one, in the memory of its reducer
BITS_A_KEY = 32
SETS_FOUR = 5  # bits a key, from where on it sets four of them
_FIXED = 0x10  # MAP_FIXED
ADVICE = "run the first round again, with the options of this one, --input among them"
_NO_BITS, _LINE_END = (int.from_bytes(word, "little") for word in (b"@" * 8, b"@@@@@@\t\n"))
_HEAD = re.compile(
    rb"(shared ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9a-f]{16}) )([0-9a-f]{8}) *\t\n"
)
_Places = TypeVar("_Places", int, np.ndarray)


class Part(NamedTuple):
    """Where a part of the filter is: its words from `start` on, counted in eight bytes."""

    number: int
    of: int
    digests: int
    words: int
    start: int


def words_in_text(words: int) -> np.ndarray:
    """uint64: so many words (1 …) without a bit, and line ends."""
    text = np.full(place_in_text(words - 1) + 2, _NO_BITS, "<u8")
    text[LINE_WORDS :: LINE_WORDS + 1] = _LINE_END
    text[-1] = _LINE_END
    return text


def place_in_text(word: _Places) -> _Places:
    """Where this word is, or each of these.

    >>> place_in_text(8190), place_in_text(8191)
    (8190, 8192)
    """
    return word + word // LINE_WORDS


def bit_in_word(bit: np.ndarray) -> np.ndarray:
    """uint64 with that bit of the 48 (int64, 0 … 47).

    >>> [hex(word) for word in bit_in_word(np.array([0, 5, 6, 47])).tolist()]
    ['0x1', '0x20', '0x100', '0x2000000000000000']
    """
    return np.uint64(1) << (bit + bit // 6 * 2).astype(np.uint64)


def format_part(
    number: int, of: int, digests: int, words: int, text: np.ndarray, options: bytes
) -> Iterator[bytes]:
    """The lines of a part; `text` is that of `words_in_text`, with bits."""
    head = b"shared %d %d %d %d %b " % (number, of, digests, words, options)
    head += b"%08x" % crc32(text.data, crc32(head))
    yield head.ljust(HEAD_BYTES - 2) + b"\t\n"
    for start in range(0, len(text), LINE_WORDS + 1):
        yield text[start : start + LINE_WORDS + 1].tobytes()


def parse_parts(text: memoryview, options: bytes) -> Iterator[Part]:
    """All parts in a text (bytes); files lie there from page to page.

    StageError where a part is damaged, or of other `options`.
    """
    start = 0
    while start < len(text):
        head = bytes(text[start : start + HEAD_BYTES])
        found = _HEAD.fullmatch(head)
        if not found:
            raise StageError(f"these are no shared keys: {shown(head)}; {ADVICE}")
        if found[6] != options:
            raise StageError(f"the shared keys are of other options or another version; {ADVICE}")
        number, of, digests, words = map(int, found.groups()[1:5])
        start += HEAD_BYTES
        end = start + 8 * (place_in_text(words - 1) + 2)
        if end > len(text) or crc32(text[start:end], crc32(found[1])) != int(found[7], 16):
            raise StageError(f"the shared keys of partition {number} are damaged; {ADVICE}")
        yield Part(number, of, digests, words, start // 8)
        start = end
        if start < len(text) and not text[start]:  # behind the end of a file
            start = -(-start // PAGESIZE) * PAGESIZE


_BIT = bit_in_word(np.arange(256) * WORD_BITS >> 8)  # of each byte of a hash
_TWO_BITS = np.bitwise_or.outer(_BIT, _BIT).ravel()


def fingerprint(keys_of: Mapping[str, str]) -> bytes:
    """16 hexadecimal digits for the options that keys depend on."""
    text = "\n".join(f"{flag} {keys_of[flag]}" for flag in sorted(keys_of))
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16].encode()


def filter_part(
    shared: Iterable[np.ndarray], partition: int, partitions: int, options: bytes, most: int
) -> Iterator[bytes]:
    """The lines of a part, of the digests (uint64, each once) of a partition.

    The words of all parts together take `most` bytes at most, and those of this one PART_BYTES.
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
    yield from format_part(partition, partitions, count, words, text, options)


def _sets_four(words: int, digests: int) -> bool:
    return words * WORD_BITS >= SETS_FOUR * digests


def _marks(digests: np.ndarray, four: bool | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each digest: which word is its own, of 2^32, and its bits there; uint64 (n,)."""
    mixed = mix(digests + np.uint64(1))
    low, high = (mixed.astype(np.int64) >> shift & 0xFFFF for shift in (0, 16))
    bits = _TWO_BITS[low]
    return mixed >> np.uint64(32), np.where(four, bits | _TWO_BITS[high], bits)


def _scaled(place: np.ndarray, words: np.ndarray | np.uint64) -> np.ndarray:
    """From 2^32 to so many words, as they lie in a text; int64."""
    return place_in_text(place * words >> np.uint64(32)).astype(np.int64)


@dataclass(eq=False)
class BloomFilter:
    """text: uint64, in which all parts lie; of each part: start (int64), its first word in there;
    words (uint64), how many it has; four (bool), whether keys set so many bits."""

    text: np.ndarray
    starts: np.ndarray
    words: np.ndarray
    four: np.ndarray
    digests: int  # how many keys are shared

    @classmethod
    def of(cls, text: bytes | mmap.mmap, options: bytes) -> BloomFilter | None:
        """From all parts, in any order; None of no text, as an empty input has.

        StageError where a part is damaged or missing, or of other `options` (see `fingerprint`).
        """
        parts = sorted(parse_parts(memoryview(text), options))
        if not parts:
            return None
        if [(part.number, part.of) for part in parts] != [
            (i, len(parts)) for i in range(len(parts))
        ]:
            raise StageError(f"the shared keys are not whole, or of several runs; {ADVICE}")
        return cls(
            np.frombuffer(text, "<u8", len(text) // 8),
            np.array([part.start for part in parts], np.int64),
            np.array([part.words for part in parts], np.uint64),
            np.array([_sets_four(part.words, part.digests) for part in parts]),
            sum(part.digests for part in parts),
        )

    def has(self, keys: np.ndarray) -> np.ndarray:
        """bool (n,): which of these keys (uint64) may be shared; of those that are, all."""
        digests = digests_of(keys)
        part = partition_of(digests, len(self.words)).astype(np.int64)
        place, bits = _marks(digests, self.four[part])
        words = self.text[self.starts[part] + _scaled(place, self.words[part])]
        return (words & bits) == bits


def mapped(paths: Iterable[Path]) -> mmap.mmap | bytes:
    """Regular files one behind the other, each from the start of a page on; zeros between them.

    Python's `mmap` keeps a file open as long as it is mapped, of which there may be thousands, and
    puts each somewhere else.  So it only reserves a range of addresses, and the C library maps each
    file to its place in there.  The files must not get shorter as long as this is in use.
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
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _map(path: Path, size: int, place: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    with path.open("rb") as file:
        how = (mmap.PROT_READ, mmap.MAP_SHARED | _FIXED, file.fileno())
        if libc.mmap(place, size, *how, 0) != place:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
