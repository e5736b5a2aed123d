"""Bucket batches from arrays equal those from the same records' lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.lines.keyed_lines import format_keyed_lines
from neardup.sets.ragged import Batch, Ragged
from neardup.verification import bucket_batch
from neardup.verification.bucket_batch import BucketBatch, in_batches

KEYS = (3, 1 << 40, (7 << 40) + 5)
NAMES = [b"v", b"v\x01", b"v\x08\x01", b"v1", b"w", "\u00e9".encode()]  # some bytes are below a tab
SETS = [(1,), (2,), (1, 2), (1, 3), (2, 1 << 63), (1, 2, 3, 1 << 40)]
ROWS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(NAMES), st.sampled_from(SETS)), max_size=30
)
Columns = tuple[np.ndarray, list[bytes], Ragged]


def columns(rows: list[tuple[int, bytes, tuple[int, ...]]], weighted: bool) -> Columns:
    sets = Ragged.from_rows([list(set_) for _, _, set_ in rows])
    if weighted:  # as far as equal sets may have other weights
        weights = np.arange(len(sets.values)) % 2 + 1
        sets = Ragged(sets.values, sets.offsets, weights)
    return np.array([key for key, _, _ in rows], np.uint64), [name for _, name, _ in rows], sets


def lines_of(keys: np.ndarray, ids: list[bytes], sets: Ragged) -> list[bytes]:
    own = Ragged(keys, np.arange(len(keys) + 1))
    return [
        line
        for _, lines in format_keyed_lines(Batch(ids, sets), own)
        for line in lines.split(b"\n")[:-1]
    ]


def shown(made: BucketBatch) -> tuple:
    sets = [made.sets.row(i).tolist() for i in range(len(made))]
    weights = made.sets.weighed().tolist()
    columns = [made.keys.tolist(), made.buckets.tolist(), made.nodes.tolist()]
    return (*columns, made.ids, made.repeats, sets, weights)


@given(ROWS.filter(len), st.booleans())
def test_a_batch_of_records_is_that_of_their_lines(rows, weighted):
    keys, ids, sets = columns(sorted(rows, key=lambda row: row[0]), weighted)
    expected = shown(BucketBatch.of_lines(lines_of(keys, ids, sets)))
    assert shown(BucketBatch.of_records(keys, ids, sets)) == expected


@pytest.mark.parametrize("batch_bytes", [1, 300, 1 << 20])
@given(rows=ROWS)
def test_buckets_stay_whole(batch_bytes, rows):
    keys, ids, sets = columns(rows, weighted=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_batch, "TOGETHER_BYTES", batch_bytes)
        batches = list(in_batches(keys, np.arange(len(keys)), ids, sets))
    found = [key for made in batches for key in np.unique(made.keys).tolist()]
    assert found == sorted(set(keys.tolist()))
    if batch_bytes == 1:
        assert len(batches) == len(found)
    records = [
        (key, name, tuple(made.sets.row(i).tolist()))
        for made in batches
        for i, key in enumerate(made.keys.tolist())
        for name in made.ids[i] + made.repeats[i]
    ]
    assert sorted(records) == sorted(rows)
