r"""The windows of texts that occur twice: the first steps of a search for passages.

    records ─ hashes ─▶ sort ─ shared ─▶ SHARED
    records ─ windows (SHARED) ─▶ sort ─ runs ─▶ sort ─ `passage_steps`

A window is K consecutive words of a record.  The first two steps send a hash of each window, and
find those that occur twice.  Only for these, `windows` writes two kinds of lines:

    WINDOW TAB PLACE+WORD TAB BEFORE TAB BEHIND       by their words: to count their places
    PLACE TAB !WORD TAB OPTIONS TAB ID TAB CHARACTER TAB TEXT       by record: to print

`runs` writes a line for each window that occurs twice, with its first place as the key, or one for
each of its places.

A hash in SHARED has 40 bits, and another window with it costs bytes.  WINDOW is 144 bits of a
cryptographic hash of the words (BLAKE2b), so that different words are never counted as the same.

Bytes sent: 5 for each window (fewer where a mebibyte of words has it more than twice); for each one
that occurs twice, 85 and about 60 for its first place, or all; twice, the text around them.

Memory: `hashes` and `windows`, some 100 bytes for each word of a mebibyte, or of the longest text;
`shared`, a filter of 4 bytes for each shared window, up to 256 MiB.

Letters: K words of a window (`width`).
"""

from __future__ import annotations

import argparse
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, groupby
from operator import itemgetter
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

import numpy as np

from neardup.reading.cleaning import Cleaning
from neardup.reading.input_format import PROBED
from neardup.runtime.program import StageError, shown
from neardup.sets.ragged import first_of_run
from neardup.stages import candidate_keys, phases
from neardup.stages.external_group import grouped
from neardup.stages.repeated_runs import Hashing, hashed
from neardup.stages.word_lines import Words
from neardup.tools.documents.passage_answers import NOTHING, DecidedLines, RecordCuts, Records
from neardup.tools.documents.passage_texts import PASSAGES

BATCH_BYTES = 1 << 20  # of words
HELD_BYTES = 1 << 24  # of the places of a window; more go to a file
BASE, FACTOR = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # of the hash in the filter
DIGEST_BYTES, OPTIONS_BYTES = candidate_keys.DIGEST_BITS // 8, 16
WINDOW_BYTES, PLACE_DIGITS, AT_DIGITS = 18, 16, 24
SIDE_DIGITS = 12  # of the windows before and behind
TEXT_MARK, NONE = b"!", b"-"
BEFORE, BEHIND = 1, 2
NOT_SORTED = "the lines are not sorted; put LC_ALL=C sort before this step"


class PassageOptions(NamedTuple):
    """What decides about the passages; all steps need the same."""

    width: int
    least: int  # of records
    clean: Cleaning
    kind: str = PASSAGES  # of --output
    first: bool = True  # the first place of a passage is kept
    by: str | None = None

    @classmethod
    def of(cls, args: argparse.Namespace, clean: Cleaning) -> PassageOptions:
        return cls(args.length, args.min_records, clean, args.kind, args.which == "first", args.by)

    @property
    def digest(self) -> bytes:
        """A hash of the options that windows depend on, and of how this version finds words."""
        words = Words(self.clean).line(" ".join(PROBED)).hex()
        return candidate_keys.fingerprint(
            {"--length": str(self.width), "--clean": str(self.clean), "": words}
        )

    @property
    def hashing(self) -> Hashing:
        return Hashing(self.width, BASE, FACTOR)


class _WordedText(NamedTuple):
    place: int
    id: bytes
    text: str
    line: bytes  # its words, see `word_lines`, without those that are cut
    left: np.ndarray | None  # the numbers of these words, if some are cut


def _batches(records: Records, words: Words, decided: DecidedLines) -> Iterator[list[_WordedText]]:
    """Yield texts with about BATCH_BYTES of words; decided: the cuts of the rounds before."""
    held, size = list[_WordedText](), 0
    for place, record in records:
        line, left = words.line(record.content), None
        if found := decided.at(place):
            each = line.split(b" ")
            left = np.flatnonzero(RecordCuts(found, len(each) - 1).left)
            line = b"".join(each[i] + b" " for i in left.tolist())
        held.append(_WordedText(place, record.id, record.content, line + b"\n", left))
        size += len(held[-1].line)
        if size >= BATCH_BYTES:
            yield held
            held, size = [], 0
    yield held


# ---- which windows occur twice


def hashes(
    records: Records,
    options: PassageOptions,
    partitions: int,
    decided: DecidedLines = NOTHING,
) -> Iterator[bytes]:
    """Yield blocks of the hashes of all windows, as lines; at least one for each partition."""

    def pieces() -> Iterator[tuple[int, bytes]]:
        for batch in _batches(records, Words(options.clean), decided):
            _, runs = hashed(b"".join(text.line for text in batch), options.hashing)
            digests = np.sort(candidate_keys.digests_of(runs[runs > 0]))
            new = first_of_run(digests)
            digests = digests[new | np.append(False, new[:-1])]  # twice is enough
            part = candidate_keys.partition_of(digests, partitions)
            order = np.argsort(part, kind="stable")
            short = digests[order].astype(">u8").view(np.uint8).reshape(-1, 8)[:, -DIGEST_BYTES:]
            bounds = np.searchsorted(part[order], np.arange(partitions + 1)).tolist()
            for number, (low, high) in enumerate(zip(bounds, bounds[1:])):
                yield number, short[low:high].tobytes()

    found = ((part, options.digest + block) for part, block in phases.gathered(pieces()))
    return phases.format_blocks(found, partitions)


def shared(lines: Iterable[bytes], most: int = candidate_keys.MAPPED_BYTES) -> Iterator[bytes]:
    """Yield a filter of the hashes that occur twice, as lines, from sorted blocks of hashes.

    All parts together have at most `most` bytes.
    """
    for part, of, sorted_blocks in phases.parts_of(lines):
        first = next(sorted_blocks)
        options = first[:OPTIONS_BYTES]
        rows = (_rows(block, options) for block in chain([first], sorted_blocks))
        found = (_twice(group[:, 0]) for group in grouped(rows))
        yield from candidate_keys.filter_part(found, part, of, options, most)


def _rows(block: bytes, options: bytes) -> np.ndarray:
    """Return rows of hashes, with zeros as values: uint64 (n, 2)."""
    whole = len(block) % DIGEST_BYTES == OPTIONS_BYTES % DIGEST_BYTES
    if block[:OPTIONS_BYTES] != options or not whole:
        raise StageError(
            "expected blocks that `step.py passages hashes` made with one --length and --clean"
        )
    data = np.frombuffer(block, np.uint8, offset=OPTIONS_BYTES).reshape(-1, DIGEST_BYTES)
    rows = np.zeros((len(data), 16), np.uint8)
    rows[:, 8 - DIGEST_BYTES : 8] = data
    return rows.view(">u8").astype(np.uint64)


def _twice(digests: np.ndarray) -> np.ndarray:
    new = first_of_run(digests)
    return digests[new & np.append(~new[1:], False)]


# ---- where they are


def windows(
    records: Records,
    options: PassageOptions,
    known: candidate_keys.BloomFilter | None,
    decided: DecidedLines = NOTHING,
    sources: bool = False,
) -> Iterator[bytes]:
    """Yield a line for each window that may occur twice, and lines with the texts around them.

    sources: a line of a window also has its id and first character
    """
    words = Words(options.clean)
    for batch in _batches(records, words, decided):
        starts, runs = hashed(b"".join(text.line for text in batch), options.hashing)
        if known is None:
            continue
        passed = (runs > 0) & known.has(runs)
        ends = np.cumsum([0, *(len(text.line) for text in batch)])
        bounds = np.searchsorted(starts, ends).tolist()
        for text, begin, low, high in zip(batch, ends.tolist(), bounds, bounds[1:]):
            if len(some := np.flatnonzero(passed[low:high])):
                at = [*(starts[low:high] - begin).tolist(), len(text.line) - 1]
                spans = words.spans(text.text) if sources else None
                yield from _of_text(text, some, at, options.width, spans)
                if options.kind == PASSAGES:
                    yield from _texts(text, some, at, words, options)
                else:
                    yield _text_line(text, options, 0, 0, "")


def _of_text(
    text: _WordedText, some: np.ndarray, at: Sequence[int], width: int, spans: np.ndarray | None
) -> Iterator[bytes]:
    """Yield the lines of windows that begin with some words; word i begins at byte at[i].

    spans: of the words in the text, if they are to be listed
    """
    last = len(at) - 1 - width
    near, found = np.unique(np.concatenate([some - 1, some, some + 1])), dict[int, bytes]()
    for word in near[(near >= 0) & (near <= last)].tolist():
        digest = blake2b(text.line[at[word] : at[word + width]], digest_size=WINDOW_BYTES).digest()
        found[word] = b64encode(digest)
    for word in some.tolist():
        sides = (found.get(word + step, NONE)[:SIDE_DIGITS] for step in (-1, 1))
        line = b"%b\t%016x%08x\t%b\t%b" % (found[word], text.place, word, *sides)
        if spans is not None:
            own = word if text.left is None else text.left[word]
            line += b"\t%b:%d" % (text.id, spans[own, 0])
        yield line + b"\n"


def _texts(
    text: _WordedText, some: np.ndarray, at: Sequence[int], words: Words, options: PassageOptions
) -> Iterator[bytes]:
    """Yield the lines of the texts around windows, which begin with some words."""
    spans = words.spans(text.text)
    found = []
    for stretch in np.split(some, np.flatnonzero(np.diff(some) > options.width) + 1):
        first, stop = int(stretch[0]), int(stretch[-1]) + options.width
        low, high = int(spans[first, 0]), int(spans[stop - 1, 1])
        part = text.text[low:high]
        alike = words.line(part) == text.line[at[first] : at[stop]]
        if not (alike and np.array_equal(words.spans(part) + low, spans[first:stop])):
            found = [(0, 0, text.text)]  # it has words that the part reads differently
            break
        found.append((first, low, part))
    for each in found:
        yield _text_line(text, options, *each)


def _text_line(
    text: _WordedText, options: PassageOptions, first: int, low: int, part: str
) -> bytes:
    shown = json.dumps(part, ensure_ascii=False).encode("utf-8", "surrogatepass")
    head = text.place, first, options.digest, text.id, low
    return b"%016x\t!%08x\t%b\t%b\t%d\t%b\n" % (*head, shown)


# ---- their places


def runs(lines: Iterable[bytes], least: int, every: bool = False) -> Iterator[bytes]:
    """Yield a line for each window that occurs twice, by its first place; texts are unchanged.

    lines: sorted; every: yield a line for each place
    """
    with SpooledTemporaryFile(HELD_BYTES) as places:  # of one window
        for key, group in by_key(lines):
            if len(key) == PLACE_DIGITS:
                for fields in group:
                    if len(fields) != 6 or not fields[1].startswith(TEXT_MARK):
                        raise unlike(fields, "windows")
                    yield b"\t".join(fields) + b"\n"
                continue
            places.seek(0)
            places.truncate()
            count, of, sides, first = _places(group, places, every)
            if count > 1 and of >= least:
                same = sum(bit for bit, side in zip((BEFORE, BEHIND), sides) if side)
                places.seek(0)
                while at := places.read(AT_DIGITS):
                    row = at[:PLACE_DIGITS], at[PLACE_DIGITS:], count, of, same, first
                    yield b"%b\t%b\t%d\t%d\t%d\t%b\n" % row


def _places(
    group: Iterable[list[bytes]], places: IO[bytes], every: bool
) -> tuple[int, int, list[bytes | None], bytes]:
    """Return how many places and records have a window, the windows at its sides, and its first.

    With None for sides that are not always the same.  Write the first place, or every one.
    """
    count, records, last, first = 0, 0, b"", b""
    sides: list[bytes | None] = []
    for fields in group:
        if len(fields) not in (4, 5) or len(fields[1]) != AT_DIGITS:
            raise unlike(fields, "windows")
        _, at, *beside = fields[:4]
        if count == 0:
            first = b"".join((at, *fields[4:]))
            sides = [None if side == NONE else side for side in beside]
        elif at <= last:
            raise StageError(NOT_SORTED)
        if every or count == 0:
            places.write(at)
        count += 1
        records += at[:PLACE_DIGITS] != last[:PLACE_DIGITS]
        sides = [one if one == other else None for one, other in zip(sides, beside)]
        last = at
    return count, records, sides, first


def by_key(lines: Iterable[bytes]) -> Iterator[tuple[bytes, Iterator[list[bytes]]]]:
    """Yield each first field and the fields of its lines; StageError if they are not in order."""
    rows = (line.rstrip(b"\n").split(b"\t") for line in lines)
    last = b""
    for key, group in groupby(rows, itemgetter(0)):
        if key <= last:
            raise StageError(NOT_SORTED if last else "a line has no key; run the step before again")
        last = key
        yield key, group


def unlike(fields: list[bytes], step: str) -> StageError:
    line = shown(b"\t".join(fields))
    return StageError(f"expected the lines that `step.py passages {step}` prints, got {line}")
