"""Places number the input's lines in order; each line of a block has a place of its own."""

import io
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.blocks import (
    FILE_BITS,
    LINE_BITS,
    NEW,
    Block,
    first_place,
    numbered,
    read_files,
    whole_lines,
)
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.sets.ragged import Batch
from neardup.stages.pairs import parsed
from tests.support.drawn import settings_of

files = st.integers(0, (1 << FILE_BITS) - 1)
lines = st.integers(0, (1 << LINE_BITS) - 1)
places = st.tuples(st.booleans(), files, lines)


@given(st.lists(places))
def test_they_are_in_the_order_of_the_input(some):
    """Places sort records by age (old ones first), then by file, then by line."""
    numbers = [first_place(file, line, new) for new, file, line in some]
    assert sorted(range(len(some)), key=numbers.__getitem__) == sorted(
        range(len(some)), key=some.__getitem__
    )
    assert np.array(numbers, np.uint64).tolist() == numbers


def test_there_are_only_so_many_files():
    assert first_place((1 << FILE_BITS) - 1, new=False) < NEW
    assert first_place((1 << FILE_BITS) - 1, (1 << LINE_BITS) - 1) == (1 << 64) - 1
    with pytest.raises(StageError, match="more than 524,288 files; split them among several runs"):
        first_place(1 << FILE_BITS)


KINDS = {
    "shingles": ([], [b"v%d 1 2", b"v%d\t3"], [b"", b" ", b"bad x", b"alone", b"nul\0 3"]),
    "words": (["--input=text"], [b"v%d\ta b c d"], [b"", b"alone", b"\xff a"]),
    "spots": (
        ["--scheme=spotsigs", "--input=text", "--shingle=spot:1:1"],
        [b"v%d\tthe cat is on the mat", b"v%d\tthe mat is for the cat"],
        [b"", b"v9\tcat", b"alone"],  # the second one has no spots
    ),
}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.integers(0, 9), max_size=12))
def test_every_line_counts_and_each_record_has_its_own(kind, end, drawn):
    """Blank and bad lines, and records without shingles, also take a place of their own."""
    flags, good, others = KINDS[kind]
    text, expected = [], []
    for i, number in enumerate(drawn):
        if number < 5:
            text.append(good[number % len(good)] % i)
            expected.append((b"v%d" % i, first_place(2) + i))
        else:
            text.append(others[number % len(others)])
    settings = settings_of(*flags, "--max-bad=1")
    data = io.BytesIO(end.join([*text, b""]))
    counters = Counters("test")
    found = list(chain(*map(ids_and_places, parsed(blocks(data), settings, counters))))
    assert found == expected


def blocks(data: io.BytesIO) -> Iterator[Block]:
    """Yield the blocks of the third file of an input."""
    for line, some, cut in whole_lines(data, 1 << 20):
        yield Block("", line, some, "line too long" * cut, first_place(2) + line - 1)


def ids_and_places(batch: Batch) -> Iterable[tuple[bytes, int]]:
    return zip(batch.ids, batch.places.tolist())


def test_in_many_blocks_and_after_a_line_that_is_too_long(tmp_path):
    path = tmp_path / "long.txt"
    ids = [b"v%06d" % i for i in range(60_000)]
    text = [id_ + b" 1 2 3 4" for id_ in ids]
    text[30_000] = b"long" + b" 7" * (1 << 20)
    path.write_bytes(b"\n".join(text))
    found = list(read_files(numbered([str(path), str(path)]), 1 << 20))
    assert len(found) > 6
    counters = Counters("test")
    batches = parsed(found, settings_of("--max-line=1"), counters)
    numbers = dict.fromkeys(range(2), 0)
    for id_, place in chain(*map(ids_and_places, batches)):
        file, line = divmod(place - NEW, 1 << LINE_BITS)
        assert ids[line] == id_
        numbers[file] += 1
    assert numbers == {0: 59_999, 1: 59_999}
