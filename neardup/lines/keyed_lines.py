r"""Keyed lines, from mapper to reducer: parse beside format.

    KEY TAB SIZE TAB ID TAB SHINGLES

KEY is `band:hash` in hexadecimal, fixed in width and one field, since every engine groups on the
first field.  SIZE (eight digits) lets a sort bring a bucket's records in order of size.
SHINGLES are as `neardup.lines.set_text` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neardup.lines.keys import HASH_BITS, KEY_WIDTH, format_keys
from neardup.lines.set_text import CONTINUED, ZERO, encode_sets, encoded_size
from neardup.process.errors import StageError, WireError, shown
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged, chunks
from neardup.sets.runs import starts_of_runs

OUTPUT_BYTES = 8 << 20
SIZE_WIDTH = 8
_SIZE = KEY_WIDTH + 1  # where the size begins
_ID = _SIZE + SIZE_WIDTH + 1
_COLON = 3
_LINE = re.compile(rb"[0-9a-f]{3}:[0-9a-f]{10}\t([0-9]{8})\t([^\0\t\r\n]+)\t([0-o]+)")
_TENS = 10 ** np.arange(SIZE_WIDTH)[::-1]


def format_keyed_lines(
    batch: Batch, keys: Ragged, partitions: int = 1, mark: int = 0
) -> Iterator[tuple[int, bytes]]:
    r"""(partition, keyed lines) for all keys of a batch, some mebibytes at a time.

    A key's partition follows from its hash alone, so every mapper sends a key the same way.  The
    lines of a partition come in order of keys, which saves the engine's sort a third of its work.
    The hashes on lines are exclusively ored with `mark` (40 bits), see `tagged_ids.Travel`.

    >>> batch = Batch([b"v1"], Ragged.from_rows([[3, 7, 1007]]))
    >>> list(format_keyed_lines(batch, Ragged.from_rows([[255, (2 << 40) + 1]])))
    [(0, b'000:00000000ff\t00000003\tv1\t34o8\n002:0000000001\t00000003\tv1\t34o8\n')]
    """
    tails = [
        b"\t%08d\t%b\t%b\n" % record
        for record in zip(batch.sets.sizes.tolist(), batch.ids, encode_sets(batch.sets))
    ]
    marked = keys.values ^ np.uint64(mark)
    partition = marked % np.uint64(1 << HASH_BITS) % np.uint64(partitions)
    order = np.lexsort((marked, partition))
    names = format_keys(marked[order])
    owner = np.repeat(np.arange(len(keys)), keys.sizes)[order]
    partition = partition[order]
    weights = np.array([KEY_WIDTH + len(tail) for tail in tails], dtype=np.int64)[owner]
    starts = starts_of_runs(partition).tolist()
    for start, stop in zip(starts, [*starts[1:], len(owner)]):
        for low, high in chunks(weights[start:stop], OUTPUT_BYTES):
            some = slice(start + low, start + high)
            parts = [b""] * (2 * (high - low))
            parts[0::2] = names[some].tolist()
            parts[1::2] = [tails[i] for i in owner[some].tolist()]
            yield int(partition[start]), b"".join(parts)


def parse_keyed_lines(lines: list[bytes]) -> list[list[bytes]]:
    """[KEY, SIZE, ID, SHINGLES] of each line (without its line end)."""
    fields = [line.split(b"\t") for line in lines]
    if set(map(len, fields)) - {4}:
        wrong = next(line for line in lines if line.count(b"\t") != 3)
        raise WireError(f"expected KEY SIZE ID SHINGLES, got {shown(wrong)}")
    return fields


class Lines(NamedTuple):
    """Where the n lines of a block start and end (int64), and their keys in two words (uint64).

    The words compare as the keys do: eight characters, and then six.
    """

    starts: np.ndarray
    ends: np.ndarray
    high: np.ndarray
    low: np.ndarray


def lines_of(block: bytes, number: int) -> Lines:
    r"""The lines of a block, each of which has the form of a keyed line.

    `number` is that of the first one, for the StageError if one has not.

    >>> lines = lines_of(b"000:00000000ff\t00000003\tv1\t34o8\n" * 2, 1)
    >>> lines.starts.tolist(), lines.ends.tolist()
    ([0, 32], [31, 63])
    """
    lines = _well_formed(np.frombuffer(block, dtype=np.uint8))
    if lines is None:
        raise _first_flaw(block, number)
    return lines


def _well_formed(block: np.ndarray) -> Lines | None:
    """The lines of a block (uint8) if `flaw_in_line` finds none; a few passes for all of them."""
    # Keys, sizes and shingles consist of characters from 0 to o: what is left are separators, and
    # the rest of the ids.  So the last tab of a line is next to the line's end here.
    places = np.flatnonzero(block - np.uint8(ZERO) >= 2 * CONTINUED)
    rest = block[places]
    line_ends, tabs = np.flatnonzero(rest == ord("\n")), rest == ord("\t")
    ends, sets = places[line_ends], places[line_ends - 1] + 1
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    if np.count_nonzero(tabs) != 3 * len(ends) or not tabs[line_ends - 1].all():
        return None
    if (sets < starts + _ID + 2).any() or (sets == ends).any():  # no tab, or nothing between two
        return None
    if (rest == 0).any() or (rest == ord("\r")).any() or not _utf8(block, rest):
        return None
    heads = np.ndarray((len(block) - _ID + 1, _ID), np.uint8, block, strides=(1, 1))[starts]
    sizes = (heads[:, _SIZE : _SIZE + SIZE_WIDTH] - np.uint8(ord("0"))) @ _TENS
    if not _are_heads(heads) or not _agree(sizes, block, sets, ends):
        return None
    high, low, _ = heads.view(">u8").T
    return Lines(starts, ends, high, low >> np.uint64(16))


def _utf8(block: np.ndarray, rest: np.ndarray) -> bool:
    """Whether the block is UTF-8, of which `rest` holds all that is not ASCII."""
    try:
        return rest.max() < 128 or bool(block.tobytes().decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _are_heads(heads: np.ndarray) -> bool:
    """Whether the first bytes of each line (n, 24) are a key, a size, and a tab behind each."""
    digits = heads - np.uint8(ord("0")) < 10
    letters = (heads - np.uint8(ord("a")) < 6)[:, :KEY_WIDTH]
    separators = heads[:, _COLON] == ord(":")
    separators &= (heads[:, _SIZE - 1] == ord("\t")) & (heads[:, _ID - 1] == ord("\t"))
    # None of the separators is a digit, so all others are.
    count = np.count_nonzero(digits) + np.count_nonzero(letters)
    return bool(separators.all() and count == len(heads) * (_ID - 3))


def _agree(sizes: np.ndarray, block: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> bool:
    """Whether so many (int64) numbers may end in each encoded set, as `flaw_in_line` asks."""
    # Subtle: bytes add up three times as fast as wider integers, and so modulo 256.
    last_digits = (block < ZERO + CONTINUED).view(np.uint8)
    sets_and_heads = np.stack((starts, ends), axis=1).ravel()
    elements = np.add.reduceat(last_digits, sets_and_heads, dtype=np.uint8)[::2]
    return bool(((sizes & 255 == elements) & (sizes <= ends - starts)).all())


def _first_flaw(block: bytes, number: int) -> StageError:
    lines = enumerate(block.split(b"\n")[:-1], number)
    return next(
        StageError(f"line {i}: {flaw}") for i, line in lines if (flaw := flaw_in_line(line))
    )


def flaw_in_line(line: bytes) -> str:
    r"""Why this is no keyed line (without its line end); "" if it is one.

    >>> flaw_in_line(b"000:00000000ff\t00000003\tv1\t34o8"), flaw_in_line(b"v1 3 7 1007")
    ('', "expected KEY SIZE ID SHINGLES, as mapper.py writes them, got 'v1 3 7 1007'")
    """
    found = _LINE.fullmatch(line)
    try:
        if found is None or not found[2].decode("utf-8"):
            raise ValueError
    except ValueError:
        return f"expected KEY SIZE ID SHINGLES, as mapper.py writes them, got {shown(line)}"
    size, characters = int(found[1]), len(found[3])
    if size > characters or (size - encoded_size(found[3])) % 256:
        return f"damaged, its size and shingles disagree; run mapper.py again: {shown(line)}"
    return ""
