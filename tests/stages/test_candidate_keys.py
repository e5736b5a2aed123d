"""Candidate keys: records that share keys are sent with the smallest shared key, and meet there."""

import tracemalloc
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.runtime.program import StageError
from neardup.sets.hashing import unmix
from neardup.sets.ragged import Ragged
from neardup.stages import candidate_keys as module
from neardup.stages import external_group, phases
from neardup.stages.candidate_keys import (
    MAPPED_BYTES,
    BloomFilter,
    candidate_keys,
    digests_of,
    filter_part,
    partition_of,
    rows_of,
)
from neardup.stages.external_group import in_order
from neardup.stages.phases import blocks_of_keys, pack, rows_in, share_keys, shared_keys, unpack
from tests.support.drawn import settings_of

OPTIONS = b"0123456789abcdef"
TOP = (1 << 52) - 1
KEYS = st.integers(0, 30) | st.integers(TOP - 30, TOP) | st.integers(0, TOP)
RNG = np.random.default_rng(3)


def words(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def rows(*rows: list[int]) -> Ragged:
    return Ragged.from_rows(list(rows))


def sent(mappers: list[Ragged], partitions: int) -> list[list[bytes]]:
    """Return the blocks sent to each partition."""
    blocks: list[list[bytes]] = [[] for _ in range(partitions)]
    for keys in mappers:
        thirds = np.array_split(np.arange(len(keys)), 3)
        pieces = (rows_of(keys.take(some)) for some in thirds)
        for part, block in blocks_of_keys(pieces, partitions):
            blocks[part].append(block)
    return blocks


def found_in(mappers: list[Ragged], partitions: int) -> list[list[int]]:
    """Return, for each partition, the keys at which lines are sent."""
    return [
        [key for some in candidate_keys(rows_in(blocks, part, partitions)) for key in some.tolist()]
        for part, blocks in enumerate(sent(mappers, partitions))
    ]


def expected(mappers: list[Ragged], partitions: int) -> list[set[int]]:
    """Return the expected keys of each partition, found record by record."""
    groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, keys in enumerate(mappers):
        for row in range(len(keys)):
            for key in keys.row(row).tolist():
                groups[key].append((number, row))
    least: list[dict[tuple, int]] = [{} for _ in range(partitions)]
    for key in sorted(groups, reverse=True):
        if len(groups[key]) > 1:
            part = int(partition_of(digests_of(words([key])), partitions)[0])
            least[part][tuple(groups[key])] = key
    return [set(keys.values()) for keys in least]


def filter_of(mappers: list[Ragged], partitions: int) -> BloomFilter:
    lines: list[bytes] = []
    for part, blocks in enumerate(sent(mappers, partitions)):
        keys = map(digests_of, candidate_keys(rows_in(blocks, part, partitions)))
        lines += filter_part(keys, part, partitions, OPTIONS, MAPPED_BYTES)
    found = BloomFilter.of(b"".join(lines), OPTIONS)
    assert found is not None
    return found


MAPPERS = st.lists(
    st.lists(st.lists(KEYS, min_size=1, max_size=5, unique=True).map(sorted), max_size=6).map(
        lambda some: rows(*some)
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(st.tuples(KEYS, st.integers(0, (1 << 48) - 1))).map(sorted))
def test_blocks_come_back(entries):
    entries = words([word for entry in entries for word in entry]).reshape(-1, 2)
    assert unpack(pack(entries)).tolist() == entries.tolist()


@given(MAPPERS, st.integers(1, 5), st.integers(1, 40))
def test_records_meet_at_the_smallest_key_of_their_group(mappers, partitions, at_once):
    kept = phases.HELD_ROWS, external_group.ROWS_AT_ONCE
    phases.HELD_ROWS = external_group.ROWS_AT_ONCE = at_once
    try:
        found = found_in(mappers, partitions)
    finally:
        phases.HELD_ROWS, external_group.ROWS_AT_ONCE = kept
    assert [set(some) for some in found] == expected(mappers, partitions)
    assert all(len(set(some)) == len(some) for some in found)


@given(MAPPERS, st.integers(1, 5))
def test_any_two_meet_at_the_smallest_key_they_share(mappers, partitions):
    found = filter_of(mappers, partitions)
    all_rows = [set(keys.row(row).tolist()) for keys in mappers for row in range(len(keys))]
    for a, b in combinations(all_rows, 2):
        if a & b:
            assert found.has(words([min(a & b)])).all()


def test_a_key_of_very_many_records_is_sent_twice():
    (block,) = (block for blocks in sent([rows(*[[7, 9]] * 100_000)], 1) for block in blocks)
    assert unpack(block)[:, 0].tolist() == [7, 7, 9, 9]


def test_what_is_sent_twice_is_a_group_of_its_own():
    """Keys of the same records form one group, even if records are repeated; other keys do not."""
    copies = [[1, 2, 3]] * 5
    (found,) = found_in([rows(*copies, [1, 4]), rows([2, 4])], 1)
    assert sorted(found) == [1, 2, 3, 4]
    (found,) = found_in([rows(*copies, [4]), rows([1, 2, 4])], 1)
    assert sorted(found) == [1, 3, 4]


@pytest.mark.slow
def test_a_reducer_holds_a_part_of_its_entries(monkeypatch):
    monkeypatch.setattr(phases, "BLOCK_ROWS", 1 << 11)
    monkeypatch.setattr(external_group, "ROWS_AT_ONCE", 1 << 12)
    monkeypatch.setattr(external_group, "READ_BYTES", 1 << 16)
    keys = RNG.integers(0, TOP, (1 << 18, 1)).astype(np.uint64)
    (blocks,) = sent([rows(*keys.tolist(), *keys[: 1 << 14].tolist())], 1)
    tracemalloc.start()
    try:
        count = sum(len(some) for some in candidate_keys(rows_in(blocks, 0, 1)))
        assert tracemalloc.get_traced_memory()[1] < 8 * len(keys)
    finally:
        tracemalloc.stop()
    # A record with one key only is a group with those of the same key, and with no others.
    assert count == 1 << 14


@pytest.mark.parametrize("damage", [slice(1, None), slice(13, None), slice(0, -5), slice(0, -14)])
def test_a_damaged_block_is_told(damage):
    numbers = [[i] for i in range(50)]
    (block,) = (block for blocks in sent([rows(*numbers)], 1) for block in blocks)
    list(candidate_keys(rows_in([block], 0, 1)))
    with pytest.raises(StageError, match="something else or a damaged block"):
        list(candidate_keys(rows_in([block[damage]], 0, 1)))
    with pytest.raises(StageError, match="something else or a damaged block"):
        list(candidate_keys(rows_in([block], 0, 2)))


def test_a_key_of_very_many_different_records_has_lines(monkeypatch):
    """A key of very many different records has lines, at the cost of two entries per mapper."""
    monkeypatch.setattr(module, "MANY", 10)
    hot = [[5, 7, 100 + i] for i in range(50)]
    (block,) = (block for blocks in sent([rows(*hot)], 1) for block in blocks)
    assert unpack(block)[:, 0].tolist().count(7) == 2
    (found,) = found_in([rows(*hot, [8, 9]), rows([5, 7], [8, 9])], 1)
    assert sorted(found) == [5, 7, 8]


def test_key_0_tells_records_apart():
    (found,) = found_in([rows([0, 9], [0, 9], [9], [0, 9, 12])], 1)
    assert sorted(found) == [0, 9]


@pytest.mark.slow
def test_more_partitions_than_short_numbers_have():
    partitions = 70_000
    keys = RNG.integers(0, TOP, 1000).astype(np.uint64)
    for part, block in blocks_of_keys([rows_of(rows(keys.tolist()))], partitions):
        assert (partition_of(digests_of(unpack(block)[:, 0]), partitions) == part).all()


def test_other_keys_of_the_same_options_are_refused(monkeypatch):
    """Keys made by another version of a scheme, with the same options, are refused."""
    settings = settings_of("--scheme=minhash")
    text = b"".join(share_keys([], settings, 0, 1))
    assert shared_keys(text, settings) is not None
    monkeypatch.setattr("neardup.sets.hashing.mix", unmix)
    with pytest.raises(StageError, match="another version"):
        shared_keys(text, settings)


# Entries come in order of keys, even if one key is too large to sort in memory.


HOT = (7 << 40) + 99


@pytest.mark.parametrize("at_once", [1, 10, 300, 1 << 20])
def test_all_entries_come_in_order(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_group, "ROWS_AT_ONCE", at_once)
    close = np.arange(HOT - 20, HOT + 20)
    keys = np.concatenate((RNG.integers(0, 1 << 52, 400), close, np.full(200, HOT), [0, 2**52 - 1]))
    given = np.column_stack((RNG.permutation(keys), np.arange(len(keys)))).astype(np.uint64)
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for path, some in zip(paths, (given[:300], given[300:], given[:0])):
        path.write_bytes(some.tobytes())
    pieces = list(in_order(paths))
    found = np.concatenate(pieces)
    assert (np.diff(found[:, 0].astype(np.int64)) >= 0).all()
    assert sorted(found.tolist()) == sorted(given.tolist())
    assert len(pieces) > 1 or at_once > len(given)
    assert max(len(np.unique(piece[:, 0])) for piece in pieces) <= at_once
