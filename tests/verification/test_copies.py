"""Copies in a large bucket are grouped with the first record of their set, in bounded memory."""

import random
from collections.abc import Callable
from io import BytesIO
from itertools import groupby

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.runtime.counters import Counters
from neardup.verification import buckets
from neardup.verification.buckets import SHARED_BUCKETS, SpilledBucket, shared_lines
from tests.support.drawn import blocks_of, mapped, pairs_in, record_lines, reduced, settings_of

HOT = ("--bands=1", "--rows=1", "--threshold=0.9")
KNOWN = [0, 700, 8 << 20]  # nothing; a set or two; all of them
KINDS = {"one kind": lambda _: b"", "two kinds": lambda id_: b"%d" % (id_[-1] % 2)}
Set = tuple[int, bytes, bytes]


def bucket(sets: list[int]) -> list[bytes]:
    """Return the lines of a bucket in byte order; record i has set sets[i], of 1 or 2 shingles."""
    texts = [(1 + number % 2, b"%c" % (48 + number) + b"0" * (number % 2)) for number in sets]
    return sorted(
        b"000:0000000001\t%08d\tid%03d\t%b\n" % (size, i, text)
        for i, (size, text) in enumerate(texts)
    )


def with_kind(line: bytes, kind_of: Callable[[bytes], bytes]) -> bytes:
    return line[:14] + kind_of(line.split(b"\t")[2]) + line[14:]


def fields(line: bytes) -> tuple[Set, bytes]:
    key, size, id_, text = line.rstrip(b"\n").split(b"\t")
    return (int(size), text, key[14:]), id_


def by_set(lines: list[bytes]) -> dict[Set, list[bytes]]:
    """Return the ids of each set and kind, in order."""
    groups = groupby(sorted(map(fields, lines)), key=lambda pair: pair[0])
    return {set_: [id_ for _, id_ in group] for set_, group in groups}


@given(
    st.lists(st.integers(0, 9), max_size=40),
    st.sampled_from(KNOWN),
    st.integers(1, 300),
    st.booleans(),
    st.sampled_from(list(KINDS)),
)
@example([0, 0, 0, 1, 1, 1], 0, 1, True, "one kind")
def test_what_is_left_and_what_is_found_are_all(
    sets, known_bytes, piece_bytes, in_order_of_sets, kinds
):
    kind_of = KINDS[kinds]
    given, how = bucket(sets), (kind_of, in_order_of_sets)
    lines = [with_kind(line, kind_of) for line in given]
    if in_order_of_sets:
        given = sorted(lines, key=fields)
        lines = given
    result = BytesIO()
    spilled = SpilledBucket(BytesIO(b"".join(given)), piece_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "KNOWN_BYTES", known_bytes)
        found = list(buckets.without_copies(spilled, result, *how))
    left = result.getvalue().splitlines(keepends=True)
    if in_order_of_sets:
        left = [with_kind(line, kind_of) for line in left]
    behind: dict[Set, list[bytes]] = {}
    for some in found:
        for plain, later in some.items():
            first = with_kind(plain, kind_of)
            assert first in left
            assert fields(first)[1] == by_set(lines)[fields(first)[0]][0]
            behind.setdefault(fields(first)[0], []).extend(later)
    again = {set_: sorted(ids + behind.get(set_, [])) for set_, ids in by_set(left).items()}
    assert again == by_set(lines)
    assert [line for line in lines if line in set(left)] == left  # in the same order
    if in_order_of_sets or known_bytes == KNOWN[-1]:
        assert all(len(ids) == 1 for ids in by_set(left).values())


@pytest.mark.first_case
@pytest.mark.parametrize("order", ["sorted", "shuffled inside each key"])
@pytest.mark.parametrize("output", ["links", "removed", "clusters"])
def test_the_lines_do_not_depend_on_how_much_is_remembered(output, order, monkeypatch):
    rng = random.Random(5)
    shapes = [[*range(30), 100 + rng.randrange(4), 200 + rng.randrange(2)] for _ in range(12)]
    records = {b"r%03d" % i: rng.choice(shapes) for i in range(150)}
    settings = settings_of(*HOT, f"--output={output}")
    lines = mapped(record_lines(records), settings)
    if order != "sorted":
        rng.shuffle(lines)
        lines.sort(key=lambda line: line[:14])
    answers = []
    for known_bytes in KNOWN:
        monkeypatch.setattr(buckets, "KNOWN_BYTES", known_bytes)
        answers.append(sorted(reduced(lines, settings, bucket_bytes=1500, at_once=11)))
    assert len(answers[0]) > 100
    assert answers == [answers[0]] * len(KNOWN)


@pytest.mark.slow
def test_each_copy_is_tied_to_the_smallest_id_of_its_set():
    sets = {b"x": [1, 2, 3], b"y": [1, 2, 4], b"z": [1, 2, 3, 4]}
    rng = random.Random(3)
    records = {b"v%03d" % i: sets[rng.choice([b"x", b"y", b"z"])] for i in range(200)}
    smallest: dict[tuple[int, ...], bytes] = {}
    expected = []
    for id_, set_ in sorted(records.items()):
        first = smallest.setdefault(tuple(set_), id_)
        expected += [(first, id_)] * (first != id_)
    settings = settings_of(*HOT[:2], "--threshold=1", "--output=links")
    lines = mapped(record_lines(records), settings)
    for bucket_bytes in (2, 300, 2000, 10**9):
        assert sorted(pairs_in(reduced(lines, settings, bucket_bytes, at_once=7))) == sorted(
            expected
        )


def test_a_long_bucket_is_looked_at_about_twice(monkeypatch):
    looked_at = []
    scan = shared_lines.__globals__["_scan"]

    def counted(block, *rest):
        looked_at.append(len(block))
        return scan(block, *rest)

    monkeypatch.setitem(shared_lines.__globals__, "_scan", counted)
    lines = bucket([0] * 500)
    counters = Counters("")
    works = list(shared_lines(blocks_of(lines, 5), counters, 10**6))
    assert sum(map(len, works)) == len(lines)
    assert counters.counts[SHARED_BUCKETS] == 1
    assert sum(looked_at) < 3 * sum(map(len, lines))
