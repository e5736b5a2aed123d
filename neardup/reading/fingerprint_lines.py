r"""Parse fingerprints (bit vectors of a fixed length, one or more per record) into batches.

    lines   ID HEX[ HEX…]
    rows    a field of text, hexadecimal or base64, a list of such texts, or binary values

The first fingerprint of a record is its own, and others are those of variants, such as a mirrored
picture.  All have the same number of bits, F (--bits), a multiple of 4.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy as np

from neardup.reading import input_check as flaws
from neardup.reading.text_rows import Fields, FlawError, Record, Row
from neardup.sets.bit_vectors import DIGIT_BITS, BlockPlaces
from neardup.sets.ragged import Batch

FINGERPRINTS = "fingerprints"
HEADER = b"# neardup images "  # of a file of picture hashes; not hexadecimal
MAX_VARIANTS = 1 << 8
BLANKS = list(b" \t")
NO_DIGIT = 16
DIGITS = np.full(256, NO_DIGIT, np.uint8)
DIGITS[list(b"0123456789abcdef")] = DIGITS[list(b"0123456789ABCDEF")] = range(16)


def fingerprint_parser(
    records: Callable[[Any], Iterator[Record]], bits: int
) -> Callable[[Any], tuple[Batch, list[flaws.BadLine]]]:
    r"""Return a parser of fingerprints; `records`: `fingerprint_lines` or `text_rows.row_records`.

    >>> parse = fingerprint_parser(fingerprint_lines, bits=32)
    >>> batch, bad = parse(b"a 0001000f\nb 0001\nc 0001000g\n")
    >>> batch.ids, [hex(token) for token in batch.sets.row(0).tolist()]
    ([b'a'], ['0x1', '0x1000f'])
    >>> [line.reason for line in bad]
    ['fingerprint of another length than --bits', 'not a fingerprint']
    """
    form = BlockPlaces(bits)

    def parse(block: Any) -> tuple[Batch, list[flaws.BadLine]]:
        if isinstance(block, bytes) and (batch := _plain_lines(block, form)):
            return batch, []
        found = [
            (record, record.flaw or _flaw_in(record.content, form)) for record in records(block)
        ]
        bad = [(record, flaw) for record, flaw in found if flaw]
        good = [record for record, flaw in found if not flaw]
        counts = np.array([len(record.content) for record in good], np.int64)
        text = b"".join([hexadecimal for record in good for hexadecimal in record.content])
        digits = DIGITS[np.frombuffer(text, np.uint8)].reshape(-1, form.digits)
        owner = np.repeat(np.arange(len(good)), counts)
        right = np.ones(len(good), dtype=bool)
        right[owner[digits.max(axis=1, initial=0) == NO_DIGIT]] = False
        bad += [(good[i], flaws.NOT_A_FINGERPRINT) for i in np.flatnonzero(~right).tolist()]
        good = [good[i] for i in np.flatnonzero(right).tolist()]
        numbers = np.array([record.number for record in good], np.uint64)
        ids = [record.id for record in good]
        batch = form.batch(ids, numbers, digits[right[owner]], counts[right])
        return batch, sorted(flaws.BadLine(r.number, r.shown or r.id, why, r.id) for r, why in bad)

    return parse


def _flaw_in(hexadecimal: Sequence[bytes], form: BlockPlaces) -> str:
    """Return the flaw in the number or length of a record's fingerprints; "" if there is none."""
    if not hexadecimal:
        return flaws.NO_FINGERPRINT
    if len(hexadecimal) > MAX_VARIANTS:
        return flaws.TOO_MANY
    return "" if all(len(t) == form.digits for t in hexadecimal) else flaws.OTHER_LENGTH


def _plain_lines(block: bytes, form: BlockPlaces) -> "Batch | None":
    """Return the batch of a block whose lines are all `ID HEX`; None for any other block."""
    bytes_ = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(bytes_ == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    blanks = ends - form.digits - 1
    if (
        not len(ends)
        or (blanks <= starts).any()
        or np.count_nonzero(bytes_ <= ord(" ")) != 2 * len(ends)
    ):
        return None
    if not np.isin(bytes_[blanks], BLANKS).all() or flaws.flaw_in(block):
        return None
    shape = len(bytes_) - form.digits, form.digits
    digits = DIGITS[np.ndarray(shape, np.uint8, block, strides=(1, 1))[blanks + 1]]
    if digits.max(initial=0) == NO_DIGIT:
        return None
    ids = [block[a:b] for a, b in zip(starts.tolist(), blanks.tolist())]
    return form.batch(ids, np.arange(len(ids)), digits, np.ones(len(ids), np.int64))


def fingerprint_lines(block: bytes) -> Iterator[Record]:
    """Yield the non-blank lines of a block as records; the content is the words after the id.

    The HEADER of a file of picture hashes is skipped.
    """
    sound = flaws.flaw_in(block) is None
    for number, line in enumerate(block.splitlines()):
        words = [] if line.startswith(HEADER) else line.split()
        if words:
            flaw = "" if sound else flaws.flaw_in(line) or ""
            yield Record(number, words[0], words[1:], flaw, line)


def of_row(row: Row, fields: Fields, bits: int) -> list[bytes]:
    """Return the fingerprints of a row as texts, with base64 converted to hexadecimal.

    FlawError for a value that is not ASCII text, or is malformed base64.  Lengths and digits are
    not checked here.
    """
    found: list[bytes] = []
    for name in fields.texts:
        value = fields.value(row, name)
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                found.append(_hexadecimal(one, bits))
    return found


def _hexadecimal(value: Any, bits: int) -> bytes:
    """Convert base64 to hexadecimal, or trim other ASCII text; FlawError for other values."""
    if not isinstance(value, str) or not value.isascii():
        raise FlawError(flaws.NOT_A_FINGERPRINT)
    text = value.strip().encode()
    hexadecimal = len(text) == bits // DIGIT_BITS and not text.endswith(b"=")
    if not hexadecimal and len(text) == -(-bits // 24) * 4:
        try:
            return base64.b64decode(text, validate=True).hex().encode()
        except binascii.Error:
            raise FlawError(flaws.NOT_A_FINGERPRINT) from None
    return text
