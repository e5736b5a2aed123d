"""Prints of videos as compressed bytes: for the cache, temporary files and lines of steps.

As bytes, a print is a JSON line of everything but its numbers, and then the compressed numbers.  A
hash is stored as its difference (exclusive or) from that of the frame before, which has fewer ones.

    {"id": …, "facts": …, "variants": …, "spans": n}
    zlib (level 1): spans (n, 2), differences, int64; hashes (n, V, 4), differences, uint64

Size: 3 MB for an hour with 14 variants, half of what it is uncompressed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.video_prints import WORDS, VideoPrint, checked
from neardup.runtime.program import naming
from neardup.sets.ragged import chunks

AT_ONCE = 1 << 12  # spans that are compressed together
LEVEL = 1  # hashes are nearly random, so that a higher one costs time and gains nothing


def to_bytes(result: VideoPrint) -> bytes:
    """Return a video print as bytes."""
    fields = {"id": result.id, "facts": result.facts, "variants": result.variants}
    head = json.dumps({**fields, "spans": len(result.spans)}).encode()
    spans = np.diff(result.spans, axis=0, prepend=0).astype("<i8")
    packer = zlib.compressobj(LEVEL)
    parts = [head, b"\n", packer.compress(spans.tobytes())]
    for first, last in chunks(np.ones(len(spans), np.int64), AT_ONCE):  # hours are many megabytes
        hashes = result.hashes[first:last].astype("<u8")
        hashes[first == 0 :] ^= result.hashes[first - (first > 0) : last - 1]
        parts.append(packer.compress(hashes.tobytes()))
    return b"".join((*parts, packer.flush()))


def from_bytes(value: bytes) -> VideoPrint | None:
    """Return the video print in `value`, or None if it is damaged."""
    head, _, packed = value.partition(b"\n")
    try:
        return _print(json.loads(head), zlib.decompress(packed))
    except (ValueError, TypeError, KeyError, zlib.error, OverflowError, RecursionError):
        return None


def _print(fields: dict[str, object], numbers: bytes) -> VideoPrint:
    """Make a print from fields and packed numbers; ValueError or KeyError if they are invalid."""
    n, variants = int(str(fields["spans"])), fields["variants"]
    if not isinstance(variants, list):
        raise ValueError("variants")
    spans = np.frombuffer(numbers, "<i8", 2 * n).reshape(n, 2)
    shape = n, len(variants), WORDS
    hashes = np.frombuffer(numbers, "<u8", offset=16 * n).reshape(shape).astype(np.uint64)
    full: NDArray[np.uint64] = np.bitwise_xor.accumulate(hashes, axis=0)
    times = spans.astype(np.int64).cumsum(axis=0)
    return checked(fields["id"], fields["facts"], variants, times, full)


class PrintSpool:
    """A temporary file of prints, which are written in any order and read back by their keys.

    Memory: about 100 bytes for each print.
    """

    def __init__(self, path: Path):
        self._file = path.open("w+b")
        self._places: dict[bytes, tuple[int, int]] = {}

    def add(self, key: bytes, video: VideoPrint) -> None:
        value = to_bytes(video)
        with naming(self._file.name):
            self._places[key] = self._file.seek(0, 2), len(value)
            self._file.write(value)

    def prints(self, keys: Iterable[bytes]) -> Iterator[VideoPrint]:
        """Yield the prints that were added with these keys, in the order of `keys`."""
        for key in keys:
            if key in self._places:
                place, size = self._places[key]
                self._file.seek(place)
                video = from_bytes(self._file.read(size))
                assert video
                yield video

    def close(self) -> None:
        self._file.close()
