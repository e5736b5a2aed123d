"""Passages are those of nested loops, whatever the sizes of portions, files and the filter."""

from __future__ import annotations

import mmap
import random
import tracemalloc
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pytest

from neardup.engines.local import work_folder
from neardup.reading.decoders import in_order
from neardup.runtime import kernels
from neardup.stages import repeated_runs
from neardup.stages.repeated_runs import Hashing, find_passages, hashed, note
from neardup.stages.word_lines import KeptSteps, WordLines
from tests.support import passages_oracle
from tests.support.passages_oracle import Passage, Records

WORDS = ["a", "bb", "ab", "ba", "ü", "abab", "\x01", *(f"w{i}" for i in range(60))]
each_kernel = pytest.mark.parametrize(
    "compiled",
    [pytest.param(True, marks=pytest.mark.skipif(not kernels.COMPILED, reason="none")), False],
    ids=["c", "numpy"],
)


def drawn(dice: random.Random) -> list[list[str]]:
    """Return records of few different words or many, with parts of others; some are empty."""
    words = WORDS[: dice.choice([1, 2, 3, 8, len(WORDS)])]
    sizes = [dice.choice([0, 1, 2, 5, 9, 30]) for _ in range(dice.randrange(1, 8))]
    records = [dice.choices(words, k=size) for size in sizes]
    for _ in range(dice.randrange(3)):
        other, at = dice.choice(records), dice.randrange(12)
        dice.choice(records)[at:at] = other[dice.randrange(6) :]
    return records


def written(records: Records) -> WordLines:
    lines = (b"".join(word.encode() + b" " for word in words) for words in records)
    with TemporaryFile() as file:
        return WordLines.written(lines, file)


def found_in(records: Records, width: int, least: int = 1) -> tuple[set[Passage], int]:
    """Return the passages, and how many words are in them."""
    places = find_passages(written(records), width, least)
    only = find_passages(written(records), width, least, every=False)
    assert only.T.tolist() == [row for row in places.T.tolist() if row[0] == row[3]]
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    about, words = {}, set[tuple[int, int]]()
    for _, record, word, first, count, of, size in places.T.tolist():
        found[first].append((record, word))
        words |= {(record, word + i) for i in range(size)}
        assert about.setdefault(first, (size, count, of)) == (size, count, of)
    for first, at in found.items():
        assert about[first][1:] == (len(at), len({record for record, _ in at}))
    return {Passage(about[first][0], tuple(at)) for first, at in found.items()}, len(words)


def check(seed: int, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice, some, none = random.Random(seed), 0, 0
    for _ in range(cases):
        sizes = (1, 40, *[1 << 20] * 4)  # small ones take many files
        limits = {"SORTED_BYTES": sizes, "HASHED_BYTES": sizes}
        limits |= {"BUCKET_BYTES": (64, 640, 1 << 20), "MAX_LOG": (4, 29)}
        for name, values in limits.items():
            monkeypatch.setattr(repeated_runs, name, dice.choice(values))
        records, width, least = drawn(dice), dice.choice([1, 2, 3, 5]), dice.choice([1, 1, 2, 3])
        expected = passages_oracle.passages(records, width, least)
        words = len(passages_oracle.covered(records, width, least))
        assert found_in(records, width, least) == (expected, words), (records, width, least)
        some, none = some + bool(expected), none + (not expected)
    assert some
    assert none


@each_kernel
def test_as_nested_loops(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "COMPILED", compiled)
    check(1, 60, monkeypatch)


@pytest.mark.slow
@each_kernel
def test_as_nested_loops_many_times(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "COMPILED", compiled)
    check(2 + compiled, 800, monkeypatch)


def test_different_words_with_one_hash_are_no_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first functions have factors with which the order of letters, or words, is lost."""
    tried = []

    def poor(width: int) -> Hashing:
        tried.append(width)
        good = 0x9E3779B97F4A7C15
        return Hashing(width, *[(1, good), (good, 1), (good, good)][min(len(tried), 3) - 1])

    monkeypatch.setattr(Hashing, "random", poor)
    records = [["ab", "c", "d", "x"], ["ba", "c", "d", "y"], ["c", "ab", "d", "z"], ["c", "d"]]
    assert found_in(records, 2) == ({Passage(2, ((0, 1), (1, 1), (3, 0)))}, 6)
    assert len(tried) == 4  # and once for the first places alone


def test_kept_steps_are_done_again_with_other_factors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    records = [["ab", "c", "x"], ["ba", "c", "y"], ["ab", "c"]]
    expected = find_passages(written(records), 2).tolist()
    assert len(expected[0]) == 2
    good, made = Hashing.random(2), [Hashing(2, 1, 0x9E3779B97F4A7C15)]
    monkeypatch.setattr(Hashing, "random", lambda _: made.pop() if made else good)
    with work_folder.opened(str(tmp_path / "w"), [], [], quiet=True, keep=True) as work:
        found = find_passages(written(records), 2, steps=KeptSteps(1, work))
        assert found.tolist() == expected
        assert not made
    monkeypatch.setattr(Hashing, "random", lambda _: Hashing(2, 1, 1))  # no run is hashed again
    monkeypatch.setattr(repeated_runs, "hashed", None)
    with work_folder.opened(str(tmp_path / "w"), [], [], quiet=True, keep=True) as work:
        found = find_passages(written(records), 2, steps=KeptSteps(1, work))
        assert found.tolist() == expected


@pytest.mark.parametrize("words", ["a ", "a b "])
def test_a_giant_record_that_repeats_itself_costs_no_more_than_others(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no more memory than its portions do, and is read a few times, not for each word."""
    for name, value in (("SORTED_BYTES", 1 << 14), ("HASHED_BYTES", 1 << 14)):
        monkeypatch.setattr(repeated_runs, name, value)
    monkeypatch.setattr(repeated_runs, "BUCKET_BYTES", 1 << 18)
    read, width, period = 0, 1000, words.count(" ")
    get = WordLines.__getitem__

    def counted(lines: WordLines, where: slice) -> bytes:
        nonlocal read
        read += where.stop - where.start
        return get(lines, where)

    monkeypatch.setattr(WordLines, "__getitem__", counted)
    with TemporaryFile() as file:
        lines = WordLines.written([words.encode() * (240_000 // len(words))], file)
    tracemalloc.start()
    found = find_passages(lines, width, every=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found[2].tolist() == [*range(period)]
    assert found[6].tolist() == [width] * period
    assert peak < 8 << 20
    assert read < 12 * int(lines.offsets[-1])


def test_portions_are_all_bytes_once_with_the_words_around_them() -> None:
    records = [["bb", "a"] * 3, [], [], ["c"] * 4, []]
    lines = written(records)
    for size, width in ((1, 1), (1, 3), (5, 2), (99, 2)):
        at = 0
        for portion in lines.portions(size, width):
            assert portion.begin == at
            assert lines.offsets[portion.record] <= at < lines.offsets[portion.record + 1]
            inside = lines[portion.low : portion.begin].split(b" ")[:-1]
            before = lines[int(lines.offsets[portion.record]) : at].split(b" ")[:-1]
            assert inside == before[-width:]
            assert portion.word == len(before) - len(inside)
            behind = lines[portion.stop : int(lines.offsets[-1])].partition(b"\n")[0].split(b" ")
            more = lines[portion.stop : portion.high].split(b" ")[:-1]
            whole = lines[portion.stop - 1 : portion.stop] == b"\n"
            assert more == ([] if whole else behind[:-1][:width])
            at = portion.stop
        assert at == lines.offsets[-1]


@each_kernel
def test_any_number_of_processes_finds_the_same(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "COMPILED", compiled)
    limits = {"SORTED_BYTES": 100, "HASHED_BYTES": 64, "BUCKET_BYTES": 640, "MAX_LOG": 9}
    for name, value in limits.items():  # many portions and files, and chance hits of the filter
        monkeypatch.setattr(repeated_runs, name, value)
    dice = random.Random(11)
    records = [drawn(dice)[0] for _ in range(40)] + [["a", "b"] * 60]
    with TemporaryFile() as file:
        lines = WordLines.written((" ".join([*r, ""]).encode() for r in records), file)
    for every in (True, False):
        one, *others = (
            find_passages(lines, 3, 2, every, KeptSteps(jobs)).tolist() for jobs in (1, 2, 3)
        )
        assert one[0]
        assert others == [one, one]


@pytest.mark.skipif(not kernels.COMPILED, reason="no kernels")
def test_what_several_processes_note_at_once_is_not_lost() -> None:
    runs, seen = np.arange(1 << 18, dtype=np.uint64) << np.uint64(46), mmap.mmap(-1, 1 << 16)
    runs[0] = 1
    filter_ = np.frombuffer(seen, np.uint8)
    for expected in (0b01010101, 0b11111111):  # each slot once, then again, by the other process
        shares = [runs[0::2], runs[1::2]] if expected == 0b01010101 else [runs[1::2], runs[0::2]]
        assert list(in_order(lambda some: note(some, 18, filter_), shares, 2)) == [None, None]
        assert (filter_ == expected).all()


def test_hashes_of_runs() -> None:
    how = Hashing(2, 3, 5)
    starts, runs = hashed(b"a b a b \n\nb a \nb \n", how)
    assert starts.tolist() == [0, 2, 4, 6, 10, 12, 15]
    assert (runs == 0).tolist() == [False, False, False, True, False, True, True]
    assert runs[0] == runs[2] != runs[1] == runs[4]


@pytest.mark.skipif(not kernels.COMPILED, reason="no kernels")
def test_kernels_are_their_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    for _ in range(50):
        data, how = written(drawn(dice)).line(0) + b"\n", Hashing.random(dice.choice([1, 2, 7]))
        results = []
        for compiled in (True, False):
            monkeypatch.setattr(kernels, "COMPILED", compiled)
            starts, runs = hashed(data, how)
            seen = np.zeros(4, np.uint8)
            for part in (runs[:3], runs[3:]):
                note(part, 4, seen)
            results.append((starts.tolist(), runs.tolist(), seen.tolist()))
        assert results[0] == results[1]


@pytest.mark.slow
@pytest.mark.parametrize("width", [13, 100])
def test_the_same_words_as_a_suffix_array(width: int) -> None:
    sorter = pytest.importorskip("pydivsufsort")
    dice = np.random.default_rng(width)
    words = dice.zipf(1.3, 300_000) % 60_000 + 1
    for size, n in ((30, 300), (90, 200), (300, 100)):
        for a, b in dice.integers(0, len(words) - size, (n, 2)).tolist():
            words[b : b + size] = words[a : a + size]
    words[::997] = 0  # the end of a record
    suffixes = sorter.divsufsort(words.astype(np.uint32).byteswap().tobytes())
    suffixes = suffixes[suffixes % 4 == 0] // 4
    expected = np.zeros(len(words), bool)
    runs = np.lib.stride_tricks.sliding_window_view(words, width)
    whole = suffixes[suffixes <= len(words) - width]
    whole = whole[(runs[whole] > 0).all(axis=1)]
    equal = (runs[whole[1:]] == runs[whole[:-1]]).all(axis=1)
    for at in {*whole[1:][equal].tolist(), *whole[:-1][equal].tolist()}:
        expected[at : at + width] = True
    ends = np.flatnonzero(words == 0)
    records = [part[part > 0].astype(str).tolist() for part in np.split(words, ends)]
    first = [0, *(ends + 1).tolist()]
    got = np.zeros(len(words), bool)
    for _, record, word, _, _, _, size in find_passages(written(records), width).T.tolist():
        got[first[record] + word :][:size] = True
    assert (got == expected).all()
    assert got.sum() > 10_000
