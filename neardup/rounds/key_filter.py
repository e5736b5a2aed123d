"""The keys that two records share, as a filter of bounded size that every mapper holds.

A blocked Bloom filter (Putze, Sanders, Singler, WEA 2007), of words of 64 bits: each key sets four
bits of one word.  A key that is no one's partner passes by accident, which costs a line and no
pair; none that is shared is ever refused.  With 32 bits a key one in a thousand passes, with 8 one
in thirty; the filter has as many as its size allows.

Each reducer of the first round writes one part, of its partition of the digests:

    shared PARTITION OF DIGESTS WORDS CHECKSUM OPTIONS
    Zm9v…                                          the words, little-endian, in base64
"""

from __future__ import annotations

import base64
import binascii
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple
from zlib import crc32

import numpy as np

from neardup.process.errors import StageError, shown
from neardup.rounds.digests import digests_of, partition_of
from neardup.sets.hashing import mix

FILTER_BYTES = 256 << 20  # of all parts
WORDS_A_KEY = 0.5
LINE_BYTES = 48 << 10
ADVICE = "run the first round again, with the options of this one, --input among them"
_HEAD = re.compile(rb"shared ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9a-f]{16})\t?\n?")
_BITS = np.uint64(63)


def fingerprint(keys_of: Mapping[str, str]) -> bytes:
    """What the options that keys depend on are known by: 16 hexadecimal digits."""
    told = "\n".join(f"{flag} {keys_of[flag]}" for flag in sorted(keys_of))
    return sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:16].encode()


def filter_part(
    shared: Iterable[np.ndarray], partition: int, partitions: int, options: bytes
) -> Iterator[bytes]:
    """The lines of a part, of the digests (uint64, each once) of a partition."""
    with tempfile.TemporaryFile() as file:
        count = 0
        for digests in shared:
            file.write(digests.data)
            count += len(digests)
        most = FILTER_BYTES // 8 // partitions
        words = np.zeros(max(1, min(most, int(count * WORDS_A_KEY))), "<u8")
        file.seek(0)
        while data := file.read(8 << 16):
            place, bits = _marks(np.frombuffer(data, np.uint64))
            np.bitwise_or.at(words, _scaled(place, np.uint64(len(words))), bits)
    data = words.tobytes()
    head = (partition, partitions, count, len(words), crc32(data), options)
    yield b"shared %d %d %d %d %d %b\n" % head
    for start in range(0, len(data), LINE_BYTES):
        yield base64.b64encode(data[start : start + LINE_BYTES]) + b"\n"


def _marks(digests: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each digest: which word is its own, of 2^32, and its bits there; uint64 (n,)."""
    mixed = mix(digests + np.uint64(1))
    bits = np.zeros(len(digests), np.uint64)
    for shift in (0, 6, 12, 18):
        bits |= np.uint64(1) << (mixed >> np.uint64(shift) & _BITS)
    return mixed >> np.uint64(32), bits


def _scaled(place: np.ndarray, words: np.ndarray | np.uint64) -> np.ndarray:
    """From 2^32 to so many words."""
    return (place * words >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class KeyFilter:
    """words: uint64, of all parts end to end; starts, sizes: uint64, of each part."""

    words: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    digests: int  # how many keys are shared

    @classmethod
    def of(cls, lines: Iterable[bytes], options: bytes) -> KeyFilter | None:
        """From the lines of all parts, in any order; None of no lines, as an empty input has.

        StageError where a part is damaged or missing, or of other `options` (see `fingerprint`).
        """
        parts = sorted(_parts(lines, options), key=lambda part: part.number)
        if not parts:
            return None
        if [(part.number, part.of) for part in parts] != [
            (i, len(parts)) for i in range(len(parts))
        ]:
            raise StageError(f"the shared keys are not whole, or of several runs; {ADVICE}")
        words = [part.words for part in parts]
        sizes = np.array([len(some) for some in words], np.uint64)
        count = sum(part.digests for part in parts)
        return cls(np.concatenate(words), np.cumsum(sizes) - sizes, sizes, count)

    def has(self, keys: np.ndarray) -> np.ndarray:
        """bool (n,): which of these keys (uint64) may be shared; of those that are, all."""
        digests = digests_of(keys)
        part = partition_of(digests, len(self.sizes)).astype(np.int64)
        place, bits = _marks(digests)
        words = self.words[self.starts[part].astype(np.int64) + _scaled(place, self.sizes[part])]
        return (words & bits) == bits


class _Part(NamedTuple):
    number: int
    of: int
    digests: int
    words: np.ndarray


def _parts(lines: Iterable[bytes], options: bytes) -> Iterator[_Part]:
    head: re.Match[bytes] | None = None
    data: list[bytes] = []
    for line in lines:
        found = _HEAD.fullmatch(line)
        if not found and not head:
            raise StageError(f"these are no shared keys: {shown(line)}; {ADVICE}")
        if not found:
            data.append(line)
            continue
        if found[6] != options:
            raise StageError(f"the shared keys are of other options; {ADVICE}")
        if head:
            yield _part(head, data)
        head, data = found, []
    if head:
        yield _part(head, data)


def _part(head: re.Match[bytes], data: list[bytes]) -> _Part:
    number, of, count, size, checksum = map(int, head.groups()[:5])
    try:
        decoded = b"".join(map(base64.b64decode, data))
        words = np.frombuffer(decoded, "<u8").astype(np.uint64)
    except (binascii.Error, ValueError):
        decoded, words = b"", np.empty(0, np.uint64)
    if len(words) != size or crc32(decoded) != checksum:
        raise StageError(f"the shared keys of partition {number} are damaged; {ADVICE}")
    return _Part(number, of, count, words)
