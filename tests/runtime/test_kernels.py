"""The compiled kernels and their numpy versions give identical results.

KERNELS_UNDER_TEST names another library to be tested, which the tests with sanitizers build.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.joins import bitmap_joins, near_bits
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.runtime import kernels
from neardup.schemes.by_size import Parts, groups_of
from neardup.sets.hashing import band_words
from neardup.sets.ragged import Batch, Ragged, shared_sizes
from neardup.similarity.measures import NINE_TENTHS, Threshold, measure_of
from neardup.similarity.sketches import bitmaps_and_sums, wide_bitmaps
from tests.support.drawn import SOME_MEASURES
from tests.support.engines import ROOT, run, succeed
from tests.support.oracle import hamming

if library := os.environ.get("KERNELS_UNDER_TEST"):
    kernels._LIBRARY = ctypes.CDLL(library)
    for name in kernels.COUNTING:
        getattr(kernels._LIBRARY, name).restype = ctypes.c_int64
    kernels.COMPILED = True
needs_kernels = pytest.mark.skipif(not kernels.COMPILED, reason="no kernels, or turned off")

NUMBERS = st.one_of(
    st.integers(0, 40),
    st.integers(0, 1 << 64),
    st.integers((1 << 64) - 3, (1 << 64) + 3),
    st.integers(0, 10**25),
).map(lambda number: b"%d" % number)
TOKENS = st.one_of(
    NUMBERS,
    st.builds(lambda zeros, number: b"0" * zeros + number, st.integers(0, 30), NUMBERS),
    st.sampled_from([b"-1", b"+1", b"1.0", b"1e3", b"x", b"7:2", b":", b"1\0", b"\xff", b"\x1c"]),
    st.binary(min_size=1, max_size=4),
)
BLANKS = st.sampled_from([b" ", b"\t", b"  ", b"\v", b"\f ", b" \t "])
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b" \n", b"\r\r\n", b"\r"])
IDS = st.one_of(st.binary(min_size=1, max_size=3), st.sampled_from([b"v1", "ü".encode(), b"7"]))
LINES = st.tuples(
    st.one_of(st.just(b""), BLANKS), IDS, st.lists(st.tuples(BLANKS, TOKENS), max_size=40), ENDS
).map(lambda line: line[0] + line[1] + b"".join(b"".join(pair) for pair in line[2]) + line[3])
BLOCKS = st.lists(LINES, min_size=1, max_size=6).map(lambda lines: b"".join(lines) + b"\n")
VALUES = st.one_of(st.integers(0, 50), st.integers((1 << 64) - 9, (1 << 64) - 1))
ROWS_OR_NONE = st.lists(VALUES, max_size=60)
ROWS = st.lists(st.lists(VALUES, min_size=1, max_size=60), min_size=1, max_size=8)


def with_numpy(function: Callable[..., Any], *args: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "COMPILED", False)
        return function(*args)


def plain(value: Any) -> Any:
    """Return a value as plain Python objects, which can be compared."""
    if isinstance(value, Batch):
        return plain((value.ids, value.sets, value.places))
    if isinstance(value, Ragged):
        return plain((value.values, value.offsets))
    if isinstance(value, np.ndarray):
        return (value.dtype, value.tolist())
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def the_same(function: Callable[..., Any], *args: Any) -> None:
    assert plain(function(*args)) == plain(with_numpy(function, *args))


def as_they_stand(values: np.ndarray, sizes: np.ndarray) -> Ragged:
    return Ragged.of_sizes(values, sizes)


@needs_kernels
@given(BLOCKS)
def test_lines(block: bytes) -> None:
    the_same(parse_shingle_lines, block)
    the_same(parse_shingle_lines, block, as_they_stand)


@needs_kernels
@given(st.binary(max_size=60))
def test_any_bytes_are_lines(block: bytes) -> None:
    the_same(parse_shingle_lines, block + b"\n")
    the_same(parse_shingle_lines, b"id " + block.replace(b"\r", b" ") + b"\n")


@needs_kernels
@given(st.text("0123456789 \n", max_size=80))
def test_digits_and_blanks(text: str) -> None:
    the_same(parse_shingle_lines, text.encode() + b"\n")


@needs_kernels
@pytest.mark.parametrize("size", [1, 2, 23, 24, 25, 26, 255, 256, 257, 5000])
@pytest.mark.parametrize("top", [1, 2, 255, 256, 65536, 1 << 32, 1 << 63])
def test_rows_of_each_size_are_sorted(size: int, top: int) -> None:
    numbers = np.random.default_rng(size).integers(0, top, size, np.uint64).tolist()
    for row in (numbers, sorted(numbers), numbers[:-1] + [(1 << 64) - 1]):
        the_same(parse_shingle_lines, b"v %b\n" % b" ".join(b"%d" % number for number in row))


@needs_kernels
@pytest.mark.parametrize("digits", range(1, 25))
def test_numbers_of_each_length(digits: int) -> None:
    """The kernels parse numbers of each length as numpy does, also close to a block's end."""
    for number in (b"9" * digits, b"1" + b"0" * (digits - 1), b"0" * digits):
        for more in (b"", b" ", b" 1", b" 12345678 2"):
            the_same(parse_shingle_lines, b"v %b%b\n" % (number, more))


@needs_kernels
@given(ROWS, st.integers(0, 15), st.integers(1, 9), st.integers(0, (1 << 64) - 1))
def test_words_of_bands(rows: list[list[int]], bands: int, size: int, seed: int) -> None:
    sets = Ragged.from_rows(rows)
    the_same(band_words, sets, np.arange(bands), size, seed)
    the_same(band_words, sets, np.arange(bands, 16)[::2], size, seed)


@needs_kernels
@pytest.mark.parametrize("size", [511, 512, 513, 1024, 70_000])
def test_words_of_large_sets(size: int) -> None:
    sets = Ragged.from_rows([list(range(size)), [1], list(range(7, 7 + size))])
    the_same(band_words, sets, np.arange(15), 7, 3)


@needs_kernels
@given(ROWS, st.data())
def test_taken_rows_and_common_values(rows: list[list[int]], data: st.DataObject) -> None:
    sets = Ragged.from_rows(rows)
    indices = st.lists(st.integers(0, len(rows) - 1), max_size=9)
    left = np.array(data.draw(indices), np.int64)
    right = np.array(data.draw(st.permutations(left.tolist())), np.int64)
    the_same(shared_sizes, sets, left, right)
    the_same(sets.take, left)
    for kind in (np.uint32, np.uint16, np.int64):
        narrow = Ragged(sets.values.astype(kind), sets.offsets, np.arange(len(sets.values)))
        the_same(narrow.take, left[::-1])
        assert plain(narrow.take(left).weights) == plain(with_numpy(narrow.take, left).weights)


@needs_kernels
@pytest.mark.parametrize("n", [0, 1, 2, 50, 5000])
def test_words_of_shared_keys(n: int) -> None:
    """All words are found whose key is there twice, and few others."""
    random = np.random.default_rng(n)
    keys = random.integers(0, 1 << 40, (2 * n, 3), np.uint64)
    keys[: n // 2] = keys[n : n + n // 2]  # of the rows that are taken, a part is equal to others
    keys |= np.arange(3, dtype=np.uint64) << np.uint64(40)
    places, rows = random.permutation(n), random.permutation(2 * n)[:n]
    for band in range(3):
        found = kernels.words_of_shared_keys(keys, band, rows, places, 24)
        every = keys[rows, band] << np.uint64(24) | places.view(np.uint64)
        alike = every >> np.uint64(24)
        _, kind, members = np.unique(alike, return_inverse=True, return_counts=True)
        assert np.isin(found, every).all()
        assert len(np.unique(found)) == len(found)
        assert np.isin(every[members[kind] > 1], found).all()
        assert n < 50 or len(found) < len(every) * 2 / 3


@needs_kernels
@given(ROWS)
def test_bitmaps_and_sums(rows: list[list[int]]) -> None:
    the_same(lambda: bitmaps_and_sums(Ragged.from_rows([row or [0] for row in rows])))  # made anew


@needs_kernels
@given(st.lists(ROWS_OR_NONE, max_size=8), st.sampled_from([None, 6, 7, 8, 12]))
def test_wide_bitmaps(rows: list[list[int]], log: int | None) -> None:
    the_same(wide_bitmaps, Ragged.from_rows(rows), log)


@needs_kernels
@given(st.lists(ROWS_OR_NONE, max_size=8))
def test_sorted_rows(rows: list[list[int]]) -> None:
    values = np.array([value for row in rows for value in row], np.uint64)
    the_same(Ragged.from_unsorted, values, np.array([*map(len, rows)], np.int64))


@needs_kernels
@given(st.integers(1, 8), st.integers(0, 400), st.integers(0, 2**32 - 1))
def test_sorted_rows_of_any_width(bytes_: int, size: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 256**bytes_ - 1, 2 * size + 3, np.uint64)
    the_same(Ragged.from_unsorted, values, np.array([size, 0, 3, size]))


@needs_kernels
@given(ROWS, st.integers(0, 30), st.integers(0, 30))
def test_parts_of_sets(rows: list[list[int]], low: int, more: int) -> None:
    sets, groups = Ragged.from_rows(rows), groups_of(NINE_TENTHS)
    the_same(Parts(groups, 5).keys, sets, groups.own(sets.sizes), low, low + more)


@needs_kernels
def test_arrays_that_are_not_as_c_wants_them() -> None:
    """Arrays with other byte orders, strides or alignments give the same results."""
    rows = Ragged.from_rows([[1, 5, 9, 700], [5, 9], [1 << 60, 5]])
    buffer = b"\0" + rows.values.tobytes()
    left, right = np.array([9, 0, 9, 1, 9, 2])[1::2], np.array([1, 2, 0], np.int16)
    for values in (
        rows.values.astype(">u8"),
        np.repeat(rows.values, 2)[::2],
        np.ndarray(len(rows.values), np.uint64, buffer, offset=1),
    ):
        same = Ragged(values, rows.offsets)
        assert shared_sizes(same, left, right).tolist() == [2, 1, 1]
        assert same.take(right[1:]).values.tolist() == [5, 1 << 60, 1, 5, 9, 700]
        assert plain(band_words(same, np.arange(3), 2, 0)) == plain(
            band_words(rows, np.arange(3), 2, 0)
        )


VECTORS = st.integers(1, 17).flatmap(
    lambda words: st.lists(
        st.lists(
            st.sampled_from([0, 1, 3, 1 << 63, (1 << 64) - 1]), min_size=words, max_size=words
        ),
        min_size=1,
        max_size=9,
    )
)


@needs_kernels
@given(VECTORS, st.data())
def test_close_pairs_of_ranges(rows: list[list[int]], data: st.DataObject) -> None:
    """All pairs of near rows in given ranges are found, in order, in parts of any size."""
    x = np.array(rows, np.uint64)
    y = x[data.draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=9))]
    spans = [st.lists(st.integers(0, len(z)), min_size=2, max_size=2).map(sorted) for z in (x, y)]
    ends = st.tuples(*spans).map(lambda both: both[0] + both[1])
    ranges = np.array(data.draw(st.lists(ends, max_size=6)), np.int64).reshape(-1, 4)
    most = data.draw(st.sampled_from([0, 1, 2, 64, 64 * x.shape[1]]))
    ascending = data.draw(st.booleans())
    expected = [
        (a, b)
        for first, last, low, high in ranges.tolist()
        for a in range(first, last)
        for b in range(low, high)
        if (b > a or not ascending)
        and sum(hamming(v, w) for v, w in zip(rows[a], y[b].tolist())) <= most
    ]
    for room in (1, 2, 3, 1000):
        parts = [*kernels.close_pairs(x, y, ranges, most, ascending, room)]
        assert all(len(left) == len(right) <= room for left, right in parts)
        assert [pair for part in parts for pair in zip(*map(np.ndarray.tolist, part))] == expected
    found = with_numpy(
        lambda *args: [*near_bits.pairs_between(*args)], x, y, ranges, most, ascending
    )
    assert [pair for part in found for pair in zip(*map(np.ndarray.tolist, part))] == expected


@needs_kernels
def test_close_pairs_of_arrays_that_are_not_as_c_wants_them() -> None:
    x = np.array([[0, 0, 0], [1, 0, 0], [7, 0, 1]], np.uint64)
    ranges = np.array([[0, 3, 0, 3]], np.int16)
    for rows in (x.astype(">u8"), np.repeat(x, 2, axis=0)[::2], np.asfortranarray(x)):
        ((left, right),) = kernels.close_pairs(rows, rows, ranges, 3, True, 9)
        assert [*zip(left.tolist(), right.tolist())] == [(0, 1), (1, 2)]


@pytest.mark.slow
@needs_kernels
def test_a_set_of_two_million_tokens() -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 64, 2 * 10**6, np.uint64)
    the_sizes = [len(set(numbers.tolist()))]
    batch, bad = parse_shingle_lines(b"v " + b" ".join(b"%d" % n for n in numbers.tolist()) + b"\n")
    assert not bad
    assert batch.sets.sizes.tolist() == the_sizes
    assert (np.diff(batch.sets.values) > 0).all()
    words = band_words(batch.sets, np.arange(15), 7, 0)
    assert (words == with_numpy(band_words, batch.sets, np.arange(15), 7, 0)).all()


@pytest.mark.slow
@needs_kernels
def test_many_drawn_lines() -> None:
    """The kernels parse 300,000 drawn lines, up to 5 % of them flawed, as numpy does."""
    random = np.random.default_rng()
    for _ in range(30):
        seed = int(random.integers(1 << 32))
        draw = np.random.default_rng(seed)
        lines = []
        for size in draw.integers(1, 40, 10_000).tolist():
            bits = int(draw.integers(1, 65))
            row = draw.integers(0, 1 << bits, size, np.uint64, endpoint=bits < 64).tolist()
            lines.append(b"v " + b" ".join(b"%d" % n for n in row))
        text = np.frombuffer(b"\n".join(lines) + b"\n", np.uint8).copy()
        flawed = draw.integers(0, len(text) - 1, 500)
        text[flawed] = draw.choice(np.frombuffer(b" \t\n\f-x\0\xff09:", np.uint8), 500)
        block = text.tobytes()
        compiled, numpy = parse_shingle_lines(block), with_numpy(parse_shingle_lines, block)
        assert plain(compiled) == plain(numpy), seed
        words = band_words(compiled[0].sets, np.arange(15), 7, seed)
        assert (words == with_numpy(band_words, numpy[0].sets, np.arange(15), 7, seed)).all(), seed


SETS = st.one_of(ROWS, st.lists(st.frozensets(st.integers(0, 9)).map(list), max_size=40))


@needs_kernels
@given(SETS, st.sampled_from(SOME_MEASURES), st.sampled_from(["0.05", "1/2", "0.8", "0.9", "1"]))
def test_prefix_pairs_and_the_candidates_that_each_filter_leaves(
    rows: list[list[int]], measure: str, t: str
) -> None:
    def joined(name: str, t: str) -> Any:
        sets = Ragged.from_rows(rows)
        found = bitmap_joins.join_by(measure_of(name, Threshold.parse(t)), sets)
        return (found.left, found.right, found.common, list(found.candidates.items()))

    the_same(joined, measure, t)


@needs_kernels
def test_prefix_pairs_go_on_where_the_results_were_full(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = Ragged.from_rows([[*range(20), 100 + k] for k in range(60)])
    every = bitmap_joins.bitmap_join(sets, NINE_TENTHS)
    kernel, parts = kernels.prefix_pairs, []

    def with_little_room(*args: Any) -> Any:
        for part in kernel(*args, 1):
            parts.append(part)
            yield part

    monkeypatch.setattr(kernels, "prefix_pairs", with_little_room)
    again = bitmap_joins.bitmap_join(sets, NINE_TENTHS)
    assert len(every.left) == 60 * 59 // 2
    assert len(parts) > 2
    assert plain([every.left, every.right, every.common]) == plain(
        [again.left, again.right, again.common]
    )
    assert every.candidates == again.candidates


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address", "undefined"])
def test_these_tests_with_a_sanitizer(sanitizer: str, tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    library, source = tmp_path / "libkernels.so", ROOT / "neardup" / "runtime" / "kernels.c"
    flags = ["-std=gnu99", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *flags, "-fPIC", "-shared", "-o", str(library), str(source)], check=True)
    runtime = {"address": "libasan.so", "undefined": "libubsan.so"}[sanitizer]
    found = subprocess.run(
        ["gcc", f"-print-file-name={runtime}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    env = dict(KERNELS_UNDER_TEST=str(library), LD_PRELOAD=found, ASAN_OPTIONS="detect_leaks=0")
    done = run(words, tmp_path, seconds=600, process=True, **env)
    assert done.code == 0, done.out.decode() + done.err
    assert b"skipped" not in done.out


@pytest.mark.slow
def test_that_they_can_be_turned_off(tmp_path: Path) -> None:
    built = (ROOT / "neardup" / "runtime" / kernels.FILE).exists()
    for value, kind in (("numpy", "numpy"), ("", "compiled" if built else "numpy")):
        words = [sys.executable, "-m", "neardup", "--version"]
        done = succeed(words, tmp_path, process=True, NEARDUP_KERNELS=value)
        assert f"({kind} kernels)" in done.out.decode()


def test_a_library_of_another_machine_is_not_used(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "neardup", tmp_path / "neardup")
    (tmp_path / "neardup" / "runtime" / kernels.FILE).write_bytes(b"\x7fELF of another machine")
    line = "from neardup.runtime import kernels; print(kernels.COMPILED)"
    assert run([sys.executable, "-c", line], tmp_path, cwd=tmp_path).out == b"False\n"


@needs_kernels
def test_a_library_of_another_version_is_not_used() -> None:
    """After an update it may lack a kernel that is called."""
    called = set(re.findall(r'_call\(\s*"(\w+)"', Path(kernels.__file__).read_text()))
    library = ctypes.CDLL(str(Path(kernels.__file__).with_name(kernels.FILE)))
    for missing in called:
        older = SimpleNamespace(**{name: getattr(library, name) for name in called - {missing}})
        with pytest.raises(AttributeError, match=missing):
            kernels._with_types(older)  # type: ignore[arg-type]


@pytest.mark.slow
@needs_kernels
def test_from_an_archive(tmp_path: Path) -> None:
    """The kernels load from a zip archive, as Spark sends this package."""
    shutil.make_archive(str(tmp_path / "package"), "zip", ROOT, "neardup")
    line = "from neardup.runtime import kernels; print(kernels.COMPILED, kernels.__file__)"
    env = {"PYTHONPATH": str(tmp_path / "package.zip")}
    done = run([sys.executable, "-c", line], tmp_path, cwd=tmp_path, **env)
    assert done.out.startswith(b"True ")
    assert b"package.zip" in done.out


@needs_kernels
def test_a_block_without_a_line_end_is_refused() -> None:
    """Else the loop, which stops at line ends only, would read behind the block."""
    with pytest.raises(ValueError, match="line end"):
        parse_shingle_lines(b"v1 1 2\nv2 1")
