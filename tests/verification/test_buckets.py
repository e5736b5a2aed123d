"""Sorted keyed lines become the lines of shared keys, for any blocks and bucket sizes."""

from itertools import chain, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.verification.buckets import SHARED_BUCKETS, SpilledBucket, shared_lines
from tests.support.drawn import blocks_of


def line(key: int, number: int) -> bytes:
    return b"%03x:%010x\t00000001\tid%04d\t5\n" % (key % 3, key // 3, number)


sorted_lines = st.lists(st.integers(0, 8), min_size=1, max_size=25).map(
    lambda keys: sorted(line(key, number) for number, key in enumerate(keys))
)


def expected(lines: list[bytes]) -> list[bytes]:
    groups = [list(group) for _, group in groupby(lines, key=lambda text: text[:14])]
    return [text for group in groups if len(group) > 1 for text in group]


def found(lines: list[bytes], at_once: int, bucket_bytes: int, counters: Counters) -> list[bytes]:
    result = []
    for work in shared_lines(blocks_of(lines, at_once), counters, bucket_bytes):
        if isinstance(work, SpilledBucket):
            starts = list(work.starts())
            assert len(starts) > 1
            work = [text for start in starts for text in work.piece(start)]
        result += [text.rstrip(b"\n") + b"\n" for text in work]
    return result


@given(sorted_lines, st.integers(1, 30), st.sampled_from([2, 80, 1 << 20]))
def test_the_lines_of_shared_keys_and_no_others(lines, at_once, bucket_bytes):
    counters = Counters("reducer")
    assert found(lines, at_once, bucket_bytes, counters) == expected(lines)
    assert counters.counts["keyed lines"] == len(lines)
    shared = expected(lines)
    assert counters.counts[SHARED_BUCKETS] == len({text[:14] for text in shared})


@given(sorted_lines, st.randoms(), st.integers(1, 30))
def test_a_spilled_bucket_comes_back_in_byte_order(lines, random, at_once):
    shuffled = random.sample(lines, len(lines))
    shuffled.sort(key=lambda text: text[:14])
    assert sorted(found(shuffled, at_once, 2, Counters(""))) == expected(lines)


def test_a_spilled_bucket_that_cannot_be_sorted_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "sort").write_text("#!/bin/sh\nexit 2\n")
    (tmp_path / "sort").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StageError, match="cannot sort: sort ended with status 2"):
        found([line(0, 1), line(0, 0)], 2, 2, Counters(""))


def test_one_huge_line_is_no_bucket():
    lines = [line(0, 0), line(1, 1).replace(b"id", b"id" * 2500), line(2, 2), line(2, 3)]
    assert found(lines, 1, 100, Counters("")) == lines[2:]


def test_many_small_buckets_come_in_several_batches(monkeypatch):
    monkeypatch.setattr("neardup.verification.buckets.BATCH_BYTES", 200)
    lines = sorted(line(key, number) for key in range(40) for number in range(2))
    batches = list(shared_lines(blocks_of(lines, 5), Counters("")))
    assert len(batches) > 5
    assert list(chain(*batches)) == [text.rstrip(b"\n") for text in lines]


@pytest.mark.parametrize("bucket_bytes", [2, 1 << 20])
@pytest.mark.parametrize("at_once", [1, 2, 10])
def test_keys_out_of_order_are_refused_with_the_line(at_once, bucket_bytes):
    lines = [line(0, 0), line(3, 1), line(3, 2), line(0, 3)]
    with pytest.raises(StageError, match="line 4: keys are not in order; sort them first"):
        found(lines, at_once, bucket_bytes, Counters(""))


@pytest.mark.parametrize("wrong", [b"\n", b"short\n", b"v1 1 2 3 4 5 6 7 8 9\n"])
@pytest.mark.parametrize("at_once", [1, 10])
def test_lines_of_another_kind_are_refused_with_the_line(wrong, at_once):
    with pytest.raises(StageError, match="line 2: expected KEY SIZE ID SHINGLES"):
        found([line(0, 0), wrong], at_once, 1 << 20, Counters(""))


@pytest.mark.parametrize(
    "damage",
    [(b"\tid", b"id"), (b"id0001", b""), (b"id", b"\xff"), (b"id", b"\0"), (b"\t5", b"\tp")]
    + [(b"\t5", b"\t55"), (b":", b"0"), (b"0000001\t", b"000000x\t"), (b"\n", b"")],
)
@pytest.mark.parametrize("number", [0, 2, 3])
@pytest.mark.parametrize("bucket_bytes", [2, 1 << 20])
@pytest.mark.parametrize("at_once", [1, 10])
def test_a_damaged_line_is_refused_though_its_key_occurs_once(
    damage, number, bucket_bytes, at_once
):
    lines = [line(0, 0), line(0, 0), line(0, 0), line(number, 1), line(4, 2), line(5, 3)]
    lines[3] = lines[3].replace(*damage)
    lines = b"".join(lines).splitlines(keepends=True)
    with pytest.raises(StageError, match=r"^line 4: (expected KEY SIZE ID SHINGLES|damaged)"):
        found(lines, at_once, bucket_bytes, Counters(""))


def test_nothing_gives_nothing():
    assert found([], 1, 1 << 20, Counters("")) == []
