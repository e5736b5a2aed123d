"""Bit vectors that a caller passes, with or without ids; errors name a position.

    rows of uint8       an array of shape (n, F/8), as numpy.packbits makes, or single rows of it
    bytes               F/8 each
    hexadecimal texts   F/4 digits each
    integers            0 … 2^F-1, with bits=F

Letters: n vectors of F bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from neardup.library.user_records import apart, listed
from neardup.reading import blocks
from neardup.reading.fingerprint_lines import DIGITS, NO_DIGIT
from neardup.sets.bit_vectors import DEFAULT_BITS, DIGIT_BITS, MAX_BITS, MIN_BITS, BlockPlaces
from neardup.sets.ragged import Batch

AT_ONCE = 1 << 14  # vectors
BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True)
class UserVectors:
    """The n vectors of a caller: ids (None: positions), and hexadecimal digits, uint8 (n, F/4)."""

    ids: list[Hashable] | None
    digits: np.ndarray

    @classmethod
    def of(cls, records: Any, bits: int | None) -> UserVectors:
        """Check and convert the vectors of a caller; ValueError names the vector at fault.

        >>> UserVectors.of([("a", b"\\x01\\x23\\x45\\x67"), ("b", b"\\xff" * 4)], None).digits[0]
        array([0, 1, 2, 3, 4, 5, 6, 7], dtype=uint8)
        """
        if len(getattr(records, "shape", ())) == 2 and hasattr(records, "dtype"):
            ids, digits = None, _of_rows(np.asarray(records))
        else:
            ids, found = apart(listed(records))
            texts = [_text(i, vector, bits) for i, vector in enumerate(found)]
            digits = _of_texts(texts, found, (bits or DEFAULT_BITS) // DIGIT_BITS)
        here = digits.shape[1] * DIGIT_BITS
        if bits is not None and here != bits:
            raise ValueError(f"record 0 has {here} bits, but bits={bits}; leave bits out")
        if not MIN_BITS <= here <= MAX_BITS:
            raise ValueError(f"record 0 has {here} bits; expected {MIN_BITS} to {MAX_BITS}")
        return cls(ids, digits)

    def __len__(self) -> int:
        return len(self.digits)

    @property
    def bits(self) -> int:
        return int(self.digits.shape[1]) * DIGIT_BITS

    def batches(self, *_: object) -> Iterator[Batch]:
        """Yield the vectors in batches; they are numbered like the lines of one file."""
        form = BlockPlaces(self.bits)
        for low in range(0, len(self), AT_ONCE):
            some = self.digits[low : low + AT_ONCE]
            places = np.arange(low, low + len(some), dtype=np.uint64) + np.uint64(blocks.NEW)
            yield form.batch([b""] * len(some), places, some, np.ones(len(some), np.int64))


def _of_rows(rows: np.ndarray) -> np.ndarray:
    if rows.dtype != np.uint8:
        advice = "; pack it first: numpy.packbits(…, axis=1)" if rows.dtype == bool else ""
        raise ValueError(f"records: expected an array of uint8, got one of {rows.dtype}{advice}")
    return np.stack((rows >> DIGIT_BITS, rows & (NO_DIGIT - 1)), axis=2).reshape(
        len(rows), 2 * rows.shape[1]
    )


def _text(position: int, vector: Any, bits: int | None) -> str:
    """Convert a vector to hexadecimal text; ValueError for a wrong type or an invalid number."""
    if isinstance(vector, str):
        return vector
    if isinstance(vector, np.ndarray) and vector.dtype == np.uint8 and vector.ndim == 1:
        vector = vector.tobytes()
    if isinstance(vector, BYTES):
        return bytes(vector).hex()
    if not isinstance(vector, Integral) or isinstance(vector, bool):
        raise ValueError(
            f"record {position}: expected bytes, a row of uint8, a hexadecimal text or an integer, "
            f"got {vector!r:.60}"
        )
    if bits is None:
        raise ValueError(
            f"record {position} is an integer; give the number of bits, such as bits=64"
        )
    number = int(vector)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"record {position}: {number} is outside 0 … 2^{bits}-1")
    return f"{number:0{bits // DIGIT_BITS}x}"


def _of_texts(texts: list[str], found: list[Any], digits: int) -> np.ndarray:
    """Return the digits of hexadecimal texts, uint8 (n, digits); ValueError if one is wrong."""
    first = len(texts[0]) if texts else digits
    for i, text in enumerate(texts):
        if len(text) != first:
            unit = "hexadecimal digits" if isinstance(found[i], str) else "bytes"
            n, m = (x if isinstance(found[i], str) else x // 2 for x in (len(text), first))
            raise ValueError(f"record {i} has {n} {unit}, and record 0 has {m}; use one length")
    encoded = "".join(texts).encode("ascii", "replace")
    values = DIGITS[np.frombuffer(encoded, np.uint8)].reshape(len(texts), first)
    wrong = np.flatnonzero((values == NO_DIGIT).any(axis=1))
    if len(wrong):
        raise ValueError(f"record {wrong[0]}: {found[wrong[0]]!r:.80} is not hexadecimal")
    return values
