"""Pruning keeps a key of a record only if it may lead to a pair, and loses no pair."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.engines.local import key_pruning
from neardup.engines.local.key_pruning import RecordSketches, SharedKeys, prune, record_sketches
from neardup.reading.blocks import NEW
from neardup.schemes.minhash import MinHash
from neardup.sets.hashing import mix
from neardup.sets.ragged import Batch, Ragged
from neardup.similarity.definitions import resemblance
from neardup.similarity.measures import Jaccard, Threshold
from neardup.stages import external_group
from neardup.stages.external_group import KeyRange, write_rows
from tests.support.engines import ROOT

MAPPERS = 2
Rows = list[set[int]]


T = Jaccard(Threshold.parse("0.7"))
ANYTHING = np.array([1, 0], dtype=np.uint64)  # record_sketches that rule nothing out


def new(sets: Ragged) -> Batch:
    """Return a batch of records of one collection."""
    return Batch([b"v"] * len(sets), sets, places=np.full(len(sets), NEW, np.uint64))


def pruned(
    rows: Rows,
    partitions: int,
    batch: int,
    known: np.ndarray | None = None,
    between: bool | None = None,
) -> Rows:
    """Return the keys that pruning leaves to each record; record i belongs to mapper i % MAPPERS.

    `between` is None of one collection.
    """
    known = np.tile(ANYTHING, (len(rows), 1)) if known is None else known
    left: Rows = [set() for _ in rows]
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        numbers = [np.arange(k, len(rows), MAPPERS, dtype=np.uint64) for k in range(MAPPERS)]
        batches = [[mine[i : i + batch] for i in range(0, len(mine), batch)] for mine in numbers]
        for k in range(MAPPERS):
            with ExitStack() as writing:
                paths = [folder / f"keys.{k}.{part}" for part in range(partitions)]
                files = [writing.enter_context(open(path, "wb")) for path in paths]
                for records in batches[k]:
                    keys = Ragged.from_rows([sorted(rows[int(i)]) for i in records])
                    postings = np.column_stack((keys.values, np.repeat(records, keys.sizes)))
                    write_rows(postings, files)
        for k in range(MAPPERS):
            known[k::MAPPERS].tofile(folder / f"record_sketches.{k}")
        known_files = [folder / f"record_sketches.{k}" for k in range(MAPPERS)]
        all_known = RecordSketches(known_files, (), between is not None, bool(between))
        for part in range(partitions):
            prune(
                [folder / f"keys.{k}.{part}" for k in range(MAPPERS)],
                [folder / f"shared.{k}.{part}" for k in range(MAPPERS)],
                partitions,
                all_known,
                T,
            )
        for k in range(MAPPERS):
            paths = sorted(folder.glob(f"shared.{k}.*"))
            reader = SharedKeys([stack.enter_context(open(path, "rb")) for path in paths])
            for records in batches[k]:
                keys = reader.keys(records)
                for i, number in enumerate(records.tolist()):
                    assert keys.row(i).tolist() == sorted(keys.row(i).tolist())
                    left[number] = set(keys.row(i).tolist())
    return left


def test_the_example_of_the_module() -> None:
    a, b, c, d = range(4)
    rows = [{a, c, d}, {a, c, d}, {b, d}]
    assert pruned(rows, partitions=1, batch=2) == [{a, d}, {a, d}, {d}]


@pytest.mark.slow
@given(st.lists(st.sets(st.integers(0, 12), max_size=6), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_no_group_meets_twice_and_nobody_waits_alone(rows: Rows) -> None:
    left = pruned(rows, partitions=4, batch=3)
    at: dict[int, list[int]] = defaultdict(list)
    for i, keys in enumerate(left):
        for key in keys:
            at[key].append(i)
    groups = [tuple(records) for records in at.values()]
    assert all(len(group) > 1 for group in groups)
    assert len(groups) == len(set(groups))


@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 12), max_size=6), st.booleans()), min_size=1, max_size=12
    ),
    st.sampled_from([None, False, True]),
    st.sampled_from([1, 3, 256]),
    st.sampled_from([1, 4]),
    st.integers(1, 5),
)
@settings(max_examples=100, deadline=None)
def test_every_pair_that_is_wanted_meets_at_its_smallest_key(
    records: list[tuple[set[int], bool]],
    between: bool | None,
    large: int,
    partitions: int,
    batch: int,
) -> None:
    """Of one collection (`between` is None) all pairs meet; of two, those with a new record."""
    rows = [row for row, _ in records]
    old = [is_old and between is not None for _, is_old in records]
    known = np.tile(ANYTHING, (len(rows), 1))
    known[np.array(old), 0] |= key_pruning.OLD
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_pruning, "LARGE_BUCKET", large)
        left = pruned(rows, partitions, batch, known, between)
    for i, j in combinations(range(len(rows)), 2):
        wanted = old[i] != old[j] if between else not (old[i] and old[j])
        if wanted and (both := rows[i] & rows[j]):
            assert min(both) in left[i] & left[j]
    for key in set().union(*left):
        kinds = {old[i] for i, keys in enumerate(left) if key in keys}
        assert kinds == {True, False} or (kinds == {False} and not between)


@pytest.mark.parametrize("entries", [1, 7, 59, 100])
@pytest.mark.parametrize("large", [11, key_pruning.LARGE_BUCKET])
def test_large_partitions_and_hot_keys_are_sifted_as_others_are(
    large: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same keys are left, however few entries are in memory or read at once."""
    rows = [{1 + i % 2, 5, 1000 * (i % 7), 77_777 * (i % 5) + 3} for i in range(60)]
    at: dict[int, set[int]] = defaultdict(set)
    for i, keys in enumerate(rows):
        for key in keys:
            at[key].add(i)
    expected = [
        {k for k in keys if not any(at[j] == at[k] for j in keys if j < k)} for keys in rows
    ]
    monkeypatch.setattr(key_pruning, "LARGE_BUCKET", large)
    monkeypatch.setattr(key_pruning, "ROWS_AT_ONCE", entries)
    monkeypatch.setattr(external_group, "ROWS_AT_ONCE", entries)
    monkeypatch.setattr(external_group, "READ_BYTES", 5 * external_group.ROW_BYTES)
    written: list[int] = []
    write = key_pruning._write_hot

    def watched(keys: KeyRange, sources: list[Path], targets: list[Path]) -> None:
        write(keys, sources, targets)
        written.extend(target.stat().st_size for target in targets)

    monkeypatch.setattr(key_pruning, "_write_hot", watched)
    assert pruned(rows, partitions=2, batch=7) == expected
    assert any(written) or large > len(rows) or entries > len(rows)


HOT_AND_OTHERS = """
import resource, sys
from pathlib import Path
import numpy as np
from neardup.engines.local.key_pruning import RecordSketches, prune
from neardup.similarity.measures import Jaccard
from neardup.similarity.measures import Threshold

folder, records, others = Path(sys.argv[1]), 3_000_000, 4
mine = np.arange(records, dtype=np.uint64)
entries = np.zeros((records, 2), np.uint64)  # all have the key 0
entries[:, 1] = mine
few = np.column_stack((1 + mine[:100_000] // others * 256, mine[:100_000])).astype(np.uint64)
with open(folder / "keys", "wb") as file:
    file.write(np.concatenate((few, entries))[np.argsort(np.append(few[:, 1], mine))].tobytes())
np.tile(np.array([1, 0], np.uint64), (records, 1)).tofile(folder / "record_sketches")
known = RecordSketches([folder / "record_sketches"])
del mine, entries, few
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (60 << 20),) * 2)
prune([folder / "keys"], [folder / "shared"], 1, known, Jaccard(Threshold.parse("0.7")))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.slow
def test_a_key_of_millions_needs_little_memory(tmp_path: Path) -> None:
    """Pruning a key of three million records takes at most 60 MiB of additional address space."""
    command = [sys.executable, "-c", HOT_AND_OTHERS, str(tmp_path)]
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, check=True, cwd=ROOT, env=one, timeout=100)
    shared = [np.fromfile(path, np.uint64).reshape(-1, 3) for path in tmp_path.glob("shared.*")]
    assert sum(map(len, shared)) == 3_100_000
    hot = next(rows for rows in shared if rows[0, 0] == 0)
    assert (hot[:, 1] == np.arange(3_000_000)).all()
    assert (hot[:, 2] == mix(np.arange(1, 3_000_001, dtype=np.uint64)).sum()).all()


def sifted_sets(sets: Rows) -> tuple[Rows, Rows]:
    """Return (the keys of these sets, the keys that pruning leaves)."""
    ragged = Ragged.from_rows([sorted(x) for x in sets])
    keys = MinHash(bands=8, rows=1, seed=0).keys(ragged)
    rows = [set(keys.row(i).tolist()) for i in range(len(sets))]
    return rows, pruned(rows, partitions=2, batch=4, known=record_sketches(new(ragged)))


@pytest.mark.slow
@pytest.mark.parametrize("large", [1, 256])
@given(
    sets=st.lists(
        st.sets(st.integers(0, 9), min_size=1).flatmap(
            lambda x: st.sets(st.integers(20, 22)).map(lambda y: x | y)
        ),
        min_size=2,
        max_size=9,
    )
)
@settings(max_examples=60, deadline=None)
def test_pairs_at_the_threshold_meet_whatever_their_bitmaps(large: int, sets: Rows) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_pruning, "LARGE_BUCKET", large)
        rows, left = sifted_sets(sets)
    for i, j in combinations(range(len(sets)), 2):
        if resemblance(sets[i], sets[j]) >= Fraction(7, 10) and rows[i] & rows[j]:
            assert min(rows[i] & rows[j]) in left[i] & left[j]


def test_dissimilar_records_that_share_keys_are_not_sent() -> None:
    base = set(range(40))
    near, dissimilar = base - {1} | {999}, set(range(20)) | set(range(200, 220))
    rows, left = sifted_sets([base, near, dissimilar])
    assert rows[0] & rows[2]
    assert left[0] & left[1]
    assert not left[2]
