"""Spilled buckets are read back completely, however little memory there is."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.engines.local import spilled_buckets
from neardup.engines.local.spilled_buckets import SpilledRun, buckets_of, write_buckets
from neardup.lines.keyed_lines import KEY_BITS, encode_sets, parse_keyed_lines, parse_keys
from neardup.runtime.counters import Counters
from neardup.sets.ragged import Batch, Ragged
from neardup.verification.bucket_batch import record_bytes
from neardup.verification.buckets import SHARED_BUCKETS, SpilledBucket
from tests.support.cases import in_turn

FILES = 4
TOKENS = st.sampled_from([0, 7, 255, 256, 65_536, 1 << 32, (1 << 64) - 1])
RECORDS = st.lists(
    st.tuples(
        st.text(st.characters(min_codepoint=33, max_codepoint=300), min_size=1, max_size=5),
        st.sets(TOKENS, min_size=1),
        st.sets(st.sampled_from([*range(9), (1 << KEY_BITS) - 1])),  # keys; some have none
    ),
    max_size=12,
)
Shared = set[tuple[int, bytes, bytes]]  # key, id, set


def written(mappers: list[list], folder: Path, weighted: bool) -> Shared:
    """Write the files NUMBER.PART of each mapper; return every (key, id, set) in them."""
    everything: Shared = set()
    for number, records in enumerate(mappers):
        files = [open(folder / f"{number}.{part}", "wb") for part in range(FILES)]  # noqa: SIM115
        batches = []
        for low in range(0, len(records), 5):
            some = records[low : low + 5]
            sets = Ragged.from_rows([list(tokens) for _, tokens, _ in some])
            if weighted:
                sets = Ragged(sets.values, sets.offsets, np.arange(1, len(sets.values) + 1))
            ids = [name.encode() for name, _, _ in some]
            keys = Ragged.from_rows([list(keys) for _, _, keys in some])
            batches.append((Batch(ids, sets), keys))
            for i, text in enumerate(encode_sets(sets)):
                everything.update((key, ids[i], text) for key in keys.row(i).tolist())
        write_buckets(batches, files)
        for file in files:
            file.close()
    return everything


def fits(run: SpilledRun, size: int) -> bool:
    """Return whether a group of spilled records has at most `size` bytes, or only one record."""
    return len(run.keys) == 1 or record_bytes(run.sizes, run.lengths).sum() <= size


@pytest.mark.slow
@in_turn(2, run_bytes=[1, 400, 1 << 20], read_bytes=[1, 300, 1 << 20])
@given(st.lists(RECORDS, min_size=1, max_size=3), st.booleans())
@settings(max_examples=10)
def test_each_bucket_comes_whole(run_bytes, read_bytes, mappers, weighted):
    counters = Counters("")
    found: Shared = set()
    buckets: list[int] = []
    spilled = 0
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(spilled_buckets, "RUN_BYTES", run_bytes)
        folder = Path(name)
        expected = written(mappers, folder, weighted)
        for part in range(FILES):
            paths = [folder / f"{number}.{part}" for number in range(len(mappers))]
            for path in paths:
                with path.open("rb") as file:
                    assert all(fits(run, run_bytes) for run in SpilledRun.all_of(file))
            for work in buckets_of(paths, counters, read_bytes):
                if isinstance(work, SpilledBucket):
                    assert read_bytes < 1 << 20
                    spilled += 1
                    lines = [line for start in work.starts() for line in work.piece(start)]
                    assert lines == sorted(lines)
                    fields = parse_keyed_lines(lines)
                    keys = parse_keys([key for key, *_ in fields]).tolist()
                    some = {(key, id_, set_) for key, (_, _, id_, set_) in zip(keys, fields)}
                else:
                    texts = encode_sets(work.sets)
                    some = {
                        (key, id_, text)
                        for key, ids, text in zip(work.keys.tolist(), work.ids, texts)
                        for id_ in ids
                    }
                mine = {key for key, _, _ in some}
                assert {key % FILES for key in mine} == {part}
                buckets += mine
                found |= some
    assert found == expected
    assert len(buckets) == len(set(buckets))
    if read_bytes == 1:
        assert spilled == len(buckets)
    assert counters.counts.get("keyed lines", 0) == sum(
        len(keys) for records in mappers for _, _, keys in records
    )
    assert counters.counts.get(SHARED_BUCKETS, 0) <= len(buckets)
