"""The filter of shared keys passes all of them and few other keys, and detects damage."""

import os
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.runtime.program import StageError
from neardup.stages import candidate_keys
from neardup.stages.candidate_keys import (
    HEAD_BYTES,
    LINE_WORDS,
    MAPPED_BYTES,
    BloomFilter,
    bit_in_word,
    digests_of,
    filter_part,
    fingerprint,
    mapped,
    partition_of,
    place_in_text,
    words_in_text,
)

OPTIONS = b"0123456789abcdef"
RNG = np.random.default_rng(5)
A_LINE = LINE_WORDS * 48 // 32  # keys that fill a line, with 32 bits each
SIZES = st.integers(0, 40) | st.integers(A_LINE - 3, A_LINE + 3) | st.integers(0, 4 * A_LINE)


def random_keys(count: int) -> np.ndarray:
    return RNG.integers(0, 1 << 52, count).astype(np.uint64)


def parts_of(keys: np.ndarray, partitions: int = 1, most: int = MAPPED_BYTES) -> list[bytes]:
    """Return the text of each part of a filter of shared keys."""
    digests = np.unique(digests_of(keys))
    part = partition_of(digests, partitions)
    return [
        b"".join(filter_part([digests[part == i]], i, partitions, OPTIONS, most))
        for i in range(partitions)
    ]


def filter_of(parts: list[bytes]) -> BloomFilter:
    found = BloomFilter.of(b"".join(parts), OPTIONS)
    assert found is not None
    return found


@given(SIZES, st.integers(1, 9), st.sampled_from([MAPPED_BYTES, 1 << 14, 100]))
def test_all_that_are_shared_pass(size, partitions, most):
    keys = random_keys(size)
    found = filter_of(parts_of(keys, partitions, most))
    assert found.has(keys).all()
    assert found.digests == len(np.unique(digests_of(keys)))
    if most == MAPPED_BYTES:
        others = np.arange(1 << 53, (1 << 53) + 100, dtype=np.uint64)
        assert np.count_nonzero(found.has(others)) < 50


def test_one_key_or_none_is_shared():
    keys = random_keys(1000)
    assert filter_of(parts_of(keys[:1], 2)).has(keys).tolist() == [True, *[False] * 999]
    assert not filter_of(parts_of(keys[:0], 3)).has(keys).any()


# A quarter more than the docstring says, at most, and no less than three quarters, so that it is
# not out of date.  Of a million keys 1,000 pass, or more: six deviations of their number, or more.
@pytest.mark.first_case
@pytest.mark.parametrize(
    ("bits", "of_a_thousand"),
    [(32, 1.2), (16, 6.7), (13, 11), (10, 21), (8, 37), (6, 74), (4, 160), (2, 400)],
)
def test_how_many_others_pass(bits, of_a_thousand):
    keys = random_keys(1 << 18)
    found = filter_of(parts_of(keys, 7, len(keys) * bits // 6))
    assert found.has(keys).all()
    others = random_keys(1_000_000)
    passed = 1000 * np.count_nonzero(found.has(others)) / len(others)
    assert 0.75 * of_a_thousand < passed < 1.25 * of_a_thousand


def test_the_bound_of_all_parts_and_of_one(monkeypatch):
    keys = random_keys(100_000)
    heads = 7 * (HEAD_BYTES + 16)
    assert sum(map(len, parts_of(keys, 7))) == pytest.approx(100_000 * 32 / 6, rel=0.01)
    assert sum(map(len, parts_of(keys, 7, 80_000))) < 80_000 + heads
    monkeypatch.setattr(candidate_keys, "PART_BYTES", 8000)
    assert max(map(len, parts_of(keys, 7))) < 8000 + heads
    assert max(map(len, parts_of(keys))) < 8000 + heads


def test_a_part_is_made_in_its_own_memory(monkeypatch):
    """A part of the filter is built in less than half of the memory that its keys take."""
    monkeypatch.setattr(candidate_keys, "PART_BYTES", 1 << 20)
    some = [np.sort(digests_of(random_keys(1 << 18))) for _ in range(8)]
    tracemalloc.start()
    try:
        written = sum(map(len, filter_part(iter(some), 0, 1, OPTIONS, MAPPED_BYTES)))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert written > 1 << 20
    assert sum(map(len, some)) * 8 == 16 << 20


def test_a_word_is_where_its_line_has_it():
    """Each word of a filter is at its computed place in the text, which also has line ends."""
    for words in (1, LINE_WORDS - 1, LINE_WORDS, LINE_WORDS + 1, 3 * LINE_WORDS):
        text = words_in_text(words)
        text[place_in_text(np.arange(words))] |= np.uint64(1) << np.uint64(61)
        lines = text.tobytes().splitlines(keepends=True)
        assert [len(line) for line in lines[:-1]] == [64 << 10] * (len(lines) - 1)
        assert b"".join(line[:-8] for line in lines) == b"@@@@@@@`" * words
        assert {line[-8:] for line in lines} == {b"@@@@@@\t\n"}


def test_bits_of_a_word_are_text():
    every = bit_in_word(np.arange(48))
    assert len(set(every.tolist())) == 48
    text = words_in_text(1)
    text[0] |= np.bitwise_or.reduce(every)
    assert text.tobytes() == b"\x7f" * 8 + b"@@@@@@\t\n"


@pytest.mark.parametrize("partitions", [1, 7, 300])
def test_files_that_are_mapped(partitions: int, tmp_path: Path) -> None:
    """Files mapped to memory give the same filter in any order, joined, and with empty files."""
    keys, others = random_keys(50_000), random_keys(50_000)
    parts = parts_of(keys, partitions)
    expected = filter_of(parts).has(others).tolist()
    for number, part in enumerate(reversed(parts)):
        (tmp_path / f"part-{number:05}").write_bytes(part)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "two").write_bytes(b"".join(parts[: partitions // 2]))
    (tmp_path / "halves").write_bytes(b"".join(parts[partitions // 2 :]))
    each = [tmp_path / "empty", *sorted(tmp_path.glob("part-*")), tmp_path / "empty"]
    before = len(os.listdir("/dev/fd"))
    for files in (each, [tmp_path / "two", tmp_path / "empty", tmp_path / "halves"]):
        found = BloomFilter.of(mapped(files), OPTIONS)
        assert found is not None
        assert len(os.listdir("/dev/fd")) == before
        for again in (found, pickle.loads(pickle.dumps(found))):
            assert again.has(keys).all()
            assert again.has(others).tolist() == expected


def test_no_text_is_no_filter(tmp_path: Path) -> None:
    assert BloomFilter.of(b"", OPTIONS) is None
    (tmp_path / "empty").write_bytes(b"")
    assert BloomFilter.of(mapped([]), OPTIONS) is None
    assert BloomFilter.of(mapped([tmp_path / "empty"] * 2), OPTIONS) is None


def test_damage_is_told():
    first, second = parts_of(random_keys(40_000), 2)
    of_first, of_second = "of partition 0 are damaged", "of partition 1 are damaged"
    for text, said in (
        (first, "incomplete"),
        (second, "incomplete"),
        ((first + second) * 2, "from several runs"),
        (first + second[:-1], of_second),
        (first + second[: HEAD_BYTES + 8], of_second),
        (first + second[:HEAD_BYTES], of_second),
        (first + second[: HEAD_BYTES - 1], "expected shared keys, got 'shared 1 2"),
        (first[: 64 << 10] + second, of_first),
        (first + b"@@@@@@\t\n" + second, "expected shared keys, got '@@@@@@"),
        (first + second + b"\n", "expected shared keys, got"),
        (first + second + bytes(8192), "expected shared keys, got"),
        (b"a 1 2 3\n", "expected shared keys, got 'a 1 2 3"),
    ):
        with pytest.raises(StageError, match=said):
            BloomFilter.of(text, OPTIONS)
    with pytest.raises(StageError, match="or by another version; run the first round again"):
        BloomFilter.of(first + second, fingerprint({"--seed": "1"}))


def test_every_changed_byte_is_told():
    """A changed byte is detected at both ends of a part, and before and after a line end."""
    (part,) = parts_of(random_keys(20_000))
    line = HEAD_BYTES + (64 << 10)
    places = [*range(HEAD_BYTES + 16), *range(line - 16, line + 16)]
    for place in [*places, *range(len(part) - 16, len(part))]:
        for flipped in (1, 2, 64):
            damaged = bytearray(part)
            damaged[place] ^= flipped
            with pytest.raises(StageError, match="run the first round again"):
                BloomFilter.of(bytes(damaged), OPTIONS)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    """A truncated file is detected, whether or not its last page is full."""
    parts = parts_of(random_keys(40_000), 3)
    files = [tmp_path / f"part-{number:05}" for number in range(3)]
    for damaged in range(3):
        for size in (-1, -8, -5000, HEAD_BYTES, 4096, 8192):
            for file, part in zip(files, parts):
                file.write_bytes(part)
            files[damaged].write_bytes(parts[damaged][:size])
            with pytest.raises(StageError, match=f"of partition {damaged} are damaged"):
                BloomFilter.of(mapped(files), OPTIONS)


def test_options_have_one_fingerprint_each():
    given_ = [{"--seed": "1"}, {"--seed": "11"}, {"--seed": "1", "--rows": "1"}, {}]
    assert len({fingerprint(options) for options in given_}) == len(given_)
    assert fingerprint({"--a": "1", "--b": "2"}) == fingerprint({"--b": "2", "--a": "1"})
