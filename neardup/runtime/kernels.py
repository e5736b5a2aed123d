"""Optional compiled loops of kernels.c; their numpy equivalents give the same results.

`pip` builds them where there is a C compiler.  NEARDUP_KERNELS=numpy turns them off.

Letters: n rows, T values in all; row i is values[offsets[i]:offsets[i+1]].
"""

import ctypes
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

FILE = "libkernels.so"
LANES = 16  # as in kernels.c
LINE_FIELDS = 5
COUNTING = ["close_pairs", "hash_runs", "parse_shingles", "prefix_pairs", "words_of_shared_keys"]
# Those that count nothing:
OTHERS = [
    "band_words",
    "note_runs",
    "parity_maps",
    "part_sums",
    "shared_sizes",
    "sketch_rows",
    "sort_rows",
    "take_rows",
]


def _load() -> "ctypes.CDLL | None":
    """Return the compiled library, or None if it is missing, turned off, or for another machine."""
    path = Path(__file__).with_name(FILE)
    if os.environ.get("NEARDUP_KERNELS") == "numpy":
        return None
    with suppress(OSError, AttributeError):  # for another machine, or an older version
        if path.exists():
            return _with_types(ctypes.CDLL(str(path)))
        # Subtle: on Spark this package is an archive, and only a file can be loaded.
        with tempfile.NamedTemporaryFile(suffix=FILE) as copy:
            copy.write(__loader__.get_data(str(path)))  # type: ignore[name-defined]
            copy.flush()
            return _with_types(ctypes.CDLL(copy.name))
    return None


def _with_types(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the return types of kernels; AttributeError if one is missing."""
    for counting in COUNTING:
        getattr(library, counting).restype = ctypes.c_int64
    for name in OTHERS:
        getattr(library, name)
    return library


_LIBRARY: Any = _load()
COMPILED = _LIBRARY is not None
_unsigned, _signed = (
    partial(np.require, dtype=kind, requirements=["C", "A"]) for kind in (np.uint64, np.int64)
)


def _call(name: str, *arguments: "np.ndarray | bytes | int | None") -> int:
    """Call a kernel with integers, bytes, and contiguous arrays of the types that it expects."""
    words: list[Any] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            words.append(ctypes.c_void_p(value.ctypes.data))
        else:
            words.append(ctypes.c_uint64(value) if isinstance(value, int) else value)
    result: int = getattr(_LIBRARY, name)(*words)
    return result


def parse_shingles(block: bytes, distinct: bool) -> tuple[np.ndarray, np.ndarray]:
    """Parse lines `ID SHINGLE…` that end with LF or CRLF; return values (uint64) and five columns.

    Without `distinct`, values keep their order and repeats.  The columns, int64 (n, 5), are, for
    the n lines that are not blank: the number of the line, where its id begins and ends, where its
    last token ends, and how many values it has; none if it has a token that is not a shingle.
    """
    if block and not block.endswith(b"\n"):
        raise ValueError("a block of lines must end with a line end")  # the loop has no other end
    bytes_ = np.frombuffer(block, np.uint8)
    most = np.count_nonzero(bytes_ <= ord(" "))  # tokens: each has a blank or a line end behind it
    values = np.empty(most, np.uint64)
    scratch = np.empty(most, np.uint64) if distinct else None
    lines = np.empty((np.count_nonzero(bytes_ == ord("\n")), LINE_FIELDS), np.int64)
    lines = lines[: _call("parse_shingles", block, len(block), values, scratch, lines)]
    return values[: lines[:, -1].sum()].copy(), lines


def band_words(
    values: np.ndarray, offsets: np.ndarray, seed: int, factors: np.ndarray, bands: np.ndarray
) -> np.ndarray:
    """Hash each row's min-hashes in each band, as `hashing.band_words` does, to uint64 (n, B).

    factors: odd numbers, uint32 (B, rows).
    """
    n, (number, rows), count = len(offsets) - 1, factors.shape, -(-factors.size // LANES) * LANES
    padded = np.ones(count, np.uint32)
    padded[: factors.size] = factors.ravel()
    words, minima = np.empty((n, number), np.uint64), np.empty_like(padded)
    some = (padded, count, _unsigned(bands), number, rows)
    _call("band_words", _unsigned(values), _signed(offsets), n, seed, *some, minima, words)
    return words


def sketch_rows(
    values: np.ndarray, offsets: np.ndarray, golden: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a bitmap of 64 bits, and the sum of mixed values, of each row; both uint64 (n,)."""
    maps, sums = np.empty((2, len(offsets) - 1), np.uint64)
    _call("sketch_rows", _unsigned(values), _signed(offsets), len(maps), golden, maps, sums)
    return maps, sums


def parity_maps(values: np.ndarray, offsets: np.ndarray, golden: int, log: int) -> np.ndarray:
    """Return a parity bitmap of 2^log bits of each row: uint64 (n, words)."""
    maps = np.zeros((len(offsets) - 1, 1 << log - 6), np.uint64)
    _call("parity_maps", _unsigned(values), _signed(offsets), len(maps), golden, log, maps)
    return maps


def sort_rows(values: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, end to end, sorted and without repeats: values, and their sizes (int64)."""
    rows, left = np.array(values, np.uint64), np.array(sizes, np.int64)
    scratch = np.empty(left.max(initial=0), np.uint64)
    _call("sort_rows", rows, left, len(left), scratch)
    return rows[: left.sum()], left


def take_rows(values: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return values[starts[i] : starts[i] + sizes[i]] for all i, concatenated (any type)."""
    values, taken = np.ascontiguousarray(values), np.empty(sizes.sum(), values.dtype)
    rows = (_signed(starts), _signed(sizes), len(sizes))
    _call("take_rows", values, *rows, values.itemsize, taken)
    return taken


def words_of_shared_keys(
    keys: np.ndarray, band: int, rows: np.ndarray, places: np.ndarray, bits: int
) -> np.ndarray:
    """Return words (uint64) of keys[rows[i], band] and, in the lower `bits` bits, places[i].

    Most words whose key no other one has are left out.  keys: uint64 (n, B); rows, places: int64.
    """
    log = min(max(6, len(rows).bit_length() + 3), 64 - bits)
    words, seen = np.empty(len(rows), np.uint64), np.zeros((1 << log - 6, 2), np.uint64)
    where = (keys.shape[1], _signed(rows), _signed(places), len(rows), bits, log, seen)
    return words[: _call("words_of_shared_keys", _unsigned(keys)[:, band:], *where, words)]


def shared_sizes(
    values: np.ndarray, offsets: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Return, for each p, how many values rows left[p] and right[p] share; all int64 (P,)."""
    sizes = np.empty(len(left), np.int64)
    pairs = (_signed(left), _signed(right), len(left))
    _call("shared_sizes", _unsigned(values), _signed(offsets), *pairs, sizes)
    return sizes


def part_sums(
    values: np.ndarray,
    offsets: np.ndarray,
    seed: int,
    parts: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
) -> np.ndarray:
    """Return the sums (float64) of 32-bit hashes in parts first[i] … last[i]-1 of each row i.

    Parts are those of `by_size.Parts`; parts, first, last: int64 (n,).
    """
    sums = np.empty((last - first).sum(), np.float64)
    ranges = (_signed(parts), _signed(first), _signed(last))
    _call("part_sums", _unsigned(values), _signed(offsets), len(parts), seed, *ranges, sums)
    return sums


def close_pairs(
    x: np.ndarray, y: np.ndarray, ranges: np.ndarray, most: int, ascending: bool, room: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of rows in `ranges` that differ in at most `most` bits, up to `room` at a time.

    See `near_bits.pairs_between`.
    """
    x, y, ranges = _unsigned(x), _unsigned(y), _signed(ranges)
    at, pairs = np.zeros(3, np.int64), np.empty((2, room), np.int64)
    while at[0] < len(ranges):
        where = (x, y, x.shape[1], ranges, len(ranges), most, int(ascending))
        found = _call("close_pairs", *where, at, pairs[0], pairs[1], room)
        yield pairs[0, :found].copy(), pairs[1, :found].copy()


def prefix_pairs(
    tokens: np.ndarray,
    offsets: np.ndarray,
    probing: np.ndarray,
    indexing: np.ndarray,
    first: np.ndarray,
    maps: np.ndarray,
    holders: np.ndarray,
    num: int,
    den: int,
    of_smaller: int,
    counts: np.ndarray,
    room: int = 1 << 20,
) -> Iterator[np.ndarray]:
    """Yield pairs (x, y, overlap), int64 (P, 3), of sets in order of size; see `bitmap_join`.

    tokens: uint32, ascending in each set, 0 for the rarest; probing, indexing, first: int64 (n,);
    maps: uint64 (n, 4); holders: int64 (D,), the sets that index each token; counts: int64 (3,), to
    which the candidates that each filter leaves are added.
    """
    n, ends = len(offsets) - 1, np.cumsum(holders)
    low = ends - holders
    scratch = low.copy(), np.empty((holders.sum(), 3), np.uint32), np.zeros(n, np.int32)
    touched, at, room = np.empty(n, np.uint32), np.zeros(1, np.int64), max(room, n)
    pairs = np.empty((room, 3), np.int64)
    prefixes = map(_signed, (probing, indexing, first))
    sets = tokens, _signed(offsets), n, *prefixes, _unsigned(maps), num, den, of_smaller
    while at[0] < n:
        found = _call("prefix_pairs", *sets, low, *scratch, touched, at, counts, pairs, room)
        yield pairs[:found].copy()


def hash_runs(
    lines: bytes, width: int, base: int, factor: int, power: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return where each word of lines begins (int64) and the hash of its run (uint64).

    See `repeated_runs.hashed`.
    """
    words = lines.count(b" ")
    starts, hashes, runs = np.empty(words, np.int64), *np.empty((2, words), np.uint64)
    _call("hash_runs", lines, len(lines), width, base, factor, power, starts, hashes, runs)
    return starts, runs


def note_runs(runs: np.ndarray, log: int, seen: np.ndarray) -> None:
    """Note hashes in a filter (uint8) of 2^log slots; see `repeated_runs.note`."""
    _call("note_runs", _unsigned(runs), len(runs), log, seen)
