"""The keys that two records share: all of them pass the filter, and few others."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.process.errors import StageError
from neardup.rounds import digests, key_filter, shared_digests
from neardup.rounds.digests import DigestBlocks, digests_of, pack, partition_of, unpack
from neardup.rounds.key_filter import KeyFilter, filter_part, fingerprint

OPTIONS = b"0123456789abcdef"
TOP = (1 << 52) - 1
KEYS = st.integers(0, 30) | st.integers(TOP - 30, TOP) | st.integers(0, TOP)
RNG = np.random.default_rng(3)


def words(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def sent(mappers: list[np.ndarray], partitions: int) -> list[list[bytes]]:
    """The blocks of each partition."""
    blocks: list[list[bytes]] = [[] for _ in range(partitions)]
    for keys in mappers:
        gather = DigestBlocks(partitions)
        for some in np.array_split(keys, 3):
            for part, block in gather.add(digests_of(some)):
                blocks[part].append(block)
        for part, block in gather.rest():
            blocks[part].append(block)
    return blocks


def filter_lines(mappers: list[np.ndarray], partitions: int) -> list[bytes]:
    lines: list[bytes] = []
    for part, blocks in enumerate(sent(mappers, partitions)):
        shared = shared_digests.shared_digests(blocks, part, partitions)
        lines += filter_part(shared, part, partitions, OPTIONS)
    return lines


def filter_of(mappers: list[np.ndarray], partitions: int) -> KeyFilter:
    found = KeyFilter.of(filter_lines(mappers, partitions), OPTIONS)
    assert found is not None
    return found


def found_in(part: int, blocks: list[bytes], partitions: int) -> Iterator[np.ndarray]:
    return shared_digests.shared_digests(iter(blocks), part, partitions)


@given(st.lists(KEYS).map(sorted))
def test_blocks_come_back(keys):
    ascending = np.sort(digests_of(words(keys)))
    assert unpack(pack(ascending)).tolist() == ascending.tolist()


@given(st.lists(st.lists(KEYS), min_size=1, max_size=4), st.integers(1, 5), st.integers(1, 40))
def test_what_comes_twice_is_shared(mappers, partitions, at_once):
    """Whether its two records have one mapper or two, and whether all digests fit in memory."""
    kept = digests.DIGESTS_AT_ONCE
    digests.DIGESTS_AT_ONCE = at_once
    try:
        blocks = sent([words(keys) for keys in mappers], partitions)
        found = [
            [digest for some in found_in(part, of, partitions) for digest in some.tolist()]
            for part, of in enumerate(blocks)
        ]
    finally:
        digests.DIGESTS_AT_ONCE = kept
    counts = Counter(digests_of(words([key for keys in mappers for key in keys])).tolist())
    expected = sorted(digest for digest, count in counts.items() if count > 1)
    assert sorted(digest for some in found for digest in some) == expected
    for part, some in enumerate(found):
        assert some == sorted(some)
        assert (partition_of(words(some), partitions) == part).all()


@given(st.lists(st.lists(KEYS), min_size=1, max_size=4), st.integers(1, 5))
def test_all_that_are_shared_pass(mappers, partitions):
    found = filter_of([words(keys) for keys in mappers], partitions)
    counts = Counter(key for keys in mappers for key in keys)
    shared = [key for key, count in counts.items() if count > 1]
    assert found.has(words(shared)).all()
    assert found.digests == len(shared)


@pytest.mark.parametrize(("share", "most"), [(1, 0.002), (8, 0.2)])
def test_few_others_pass(share, most, monkeypatch):
    """With 32 bits a key, and with the four that a small filter has left."""
    shared = RNG.integers(0, TOP, 100_000).astype(np.uint64)
    others = RNG.integers(0, TOP, 100_000).astype(np.uint64)
    monkeypatch.setattr(key_filter, "FILTER_BYTES", 4 * len(shared) // share)
    found = filter_of([shared, shared, others], 7)
    assert found.words.nbytes <= max(key_filter.FILTER_BYTES, 8 * 7)
    assert found.has(shared).all()
    assert 0 < np.count_nonzero(found.has(others)) / len(others) < most


def test_a_key_of_very_many_records_is_sent_twice():
    keys = np.full(100_000, 7, np.uint64)
    (block,) = (block for blocks in sent([keys], 1) for block in blocks)
    assert unpack(block).tolist() == digests_of(keys[:2]).tolist()


def test_a_reducer_holds_a_part_of_its_digests(monkeypatch):
    monkeypatch.setattr(digests, "DIGESTS_AT_ONCE", 1 << 12)
    monkeypatch.setattr(digests, "BLOCK_DIGESTS", 1 << 11)
    keys = RNG.integers(0, TOP, 1 << 19).astype(np.uint64)
    (blocks,) = sent([keys, keys[: 1 << 14]], 1)
    tracemalloc.start()
    try:
        count = sum(len(some) for some in found_in(0, blocks, 1))
        assert tracemalloc.get_traced_memory()[1] < 8 * len(keys)
    finally:
        tracemalloc.stop()
    assert count == 1 << 14


def test_the_same_whatever_order_parts_are_in():
    mappers = [RNG.integers(0, 1000, 2000).astype(np.uint64) for _ in range(2)]
    lines = filter_lines(mappers, 3)
    heads = [i for i, line in enumerate(lines) if line.startswith(b"shared")]
    parts = [lines[low:high] for low, high in zip(heads, [*heads[1:], len(lines)])]
    found = KeyFilter.of(lines, OPTIONS)
    turned = KeyFilter.of(chain.from_iterable(parts[::-1]), OPTIONS)
    assert found is not None
    assert turned is not None
    assert found.words.tolist() == turned.words.tolist()
    # Hadoop may add a tab behind a line.
    with_tabs = KeyFilter.of([line[:-1] + b"\t\n" for line in lines], OPTIONS)
    assert with_tabs is not None
    assert with_tabs.words.tolist() == found.words.tolist()


def test_no_lines_are_no_filter():
    assert KeyFilter.of([], OPTIONS) is None


def test_damage_is_told():
    lines = filter_lines([words([1, 1, 2, 3]), words([3, 4])], 2)
    second = next(i for i, line in enumerate(lines) if line.startswith(b"shared 1 2"))
    for given_, said in (
        (lines[:second], "not whole"),
        (lines[second:], "not whole"),
        ([*lines, *lines], "of several runs"),
        (lines[: second + 1], "of partition 1 are damaged"),
        ([lines[0], b"%%%\n", *lines[2:]], "of partition 0 are damaged"),
        ([lines[0], lines[1].replace(b"A", b"B", 1), *lines[2:]], "of partition 0 are damaged"),
        ([b"a 1 2 3\n"], "no shared keys: 'a 1 2 3"),
    ):
        with pytest.raises(StageError, match=said):
            KeyFilter.of(given_, OPTIONS)
    with pytest.raises(StageError, match="of other options; run the first round again"):
        KeyFilter.of(lines, fingerprint({"--seed": "1"}))


@pytest.mark.parametrize("damage", [slice(1, None), slice(5, None), slice(0, -5), slice(0, -7)])
def test_a_damaged_block_is_told(damage):
    (block,) = (block for blocks in sent([words(list(range(50)))], 1) for block in blocks)
    list(found_in(0, [block], 1))
    with pytest.raises(StageError, match="this one is damaged, or no such"):
        list(found_in(0, [block[damage]], 1))
    with pytest.raises(StageError, match="this one is damaged, or no such"):
        list(found_in(0, [block], 2))


def test_options_have_one_fingerprint_each():
    given_ = [{"--seed": "1"}, {"--seed": "11"}, {"--seed": "1", "--rows": "1"}, {}]
    assert len({fingerprint(options) for options in given_}) == len(given_)
    assert fingerprint({"--a": "1", "--b": "2"}) == fingerprint({"--b": "2", "--a": "1"})
