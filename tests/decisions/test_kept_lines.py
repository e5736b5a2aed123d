"""Kept lines and the places of removed ones are correct, however the bytes are split."""

from __future__ import annotations

import codecs
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.decisions.kept_lines import kept_lines, lines_from
from neardup.lines.answer_lines import format_decided
from neardup.reading.blocks import NEW, first_place, whole_lines
from neardup.runtime.program import StageError, WireError

FIRST = 5  # the place of the first line in these tests
ENDS = [b"\n", b"\r\n", b"\r"]
pieces = st.sampled_from([b"", b"a", b"bcd", b" ", codecs.BOM_UTF8, *ENDS])
inputs = st.lists(pieces, max_size=14).map(b"".join)


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Return the bytes cut at random into chunks, which may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]


def lines_of(data: bytes) -> list[bytes]:
    """Return the content of each line of a file."""
    return data.removeprefix(codecs.BOM_UTF8).splitlines()  # of bytes, at CR, LF and CRLF only


@given(st.data(), inputs, st.booleans())
def test_all_but_the_lines_at_these_places(data, given_, of_file):
    lines = lines_of(given_) if of_file else given_.splitlines()
    places = st.integers(FIRST, FIRST + len(lines) - 1) if lines else st.nothing()
    gone = sorted(data.draw(st.sets(places)))
    others = [1, FIRST - 1] if data.draw(st.booleans()) else []
    after = [FIRST + len(lines), 10**6] if data.draw(st.booleans()) else []
    chunks = data.draw(cut(given_))
    kept = b"".join(kept_lines(chunks, FIRST, [*others, *gone, *after], of_file))
    assert kept == b"".join(
        line + b"\n" for place, line in enumerate(lines, FIRST) if place not in gone
    )


@given(inputs)
def test_lines_are_counted_as_by_those_who_read_records(data):
    """Lines are split as the readers of records split them, so a place means the same line."""
    read = b"".join(some for _, some, _ in whole_lines(io.BytesIO(data), 1 << 20))
    assert read.splitlines() == lines_of(data)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("last", [b"", b"tail"])
def test_a_line_longer_than_any_chunk(end, last):
    long = b"x" * 1000
    data = end.join([b"a", long, long + b"y", last])
    chunks = [data[i : i + 7] for i in range(0, len(data), 7)]
    kept = b"".join(kept_lines(chunks, FIRST, [FIRST + 1]))
    assert kept == b"\n".join([b"a", long + b"y", last]) + b"\n" * bool(last)


SHORT = [b"", b"\n", b"a", b"\r", b"a\r", b"\r\n", codecs.BOM_UTF8, b"\xef", b"\xef\xbb"]


@pytest.mark.parametrize("data", SHORT)
def test_what_is_hardly_a_file(data):
    whole = data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    expected = whole + b"\n" * (whole != b"" and not whole.endswith(b"\n"))
    assert b"".join(kept_lines([data], FIRST, [])) == expected
    assert b"".join(kept_lines([data], FIRST, [FIRST])) == b""
    assert b"".join(kept_lines([], FIRST, [FIRST])) == b""
    assert b"".join(kept_lines([b"\r\r"], FIRST, [FIRST])) == b"\n"


def test_it_holds_no_more_than_a_chunk():
    """Each chunk is written before the next one is read, however long a line is."""
    read = written = 0

    def chunks():
        nonlocal read
        for _ in range(50):
            assert read - written <= 100
            read += 100
            yield b"x" * 100

    for piece in kept_lines(chunks(), 0, [3]):
        written += len(piece)
    assert written == read + 1  # the line end that was missing


# The places of those that go.

ids = st.integers(1, 3000).map(lambda length: b"x" * length)


@contextmanager
def decided(places: list[int], names: list[bytes]) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        for place, name in zip(places, names):
            file.write(format_decided(b"%016x" % place, name, b"k", b"-"))
        file.flush()
        yield file


@given(st.data(), st.sets(st.integers(0, 60)).map(sorted))
@example(None, [])
@example(None, [0])
@example(None, [7, 8, 9])
def test_the_places_from_any_one_on(data, places):
    names = [b"v"] * len(places)
    if data:
        names = data.draw(st.lists(ids, min_size=len(places), max_size=len(places)))
    with decided(places, names) as file:
        for first in (*range(62), first_place(0)):
            assert [place for place, _ in lines_from(file, first)] == [
                place for place in places if place >= first
            ]


def test_it_reads_only_what_is_of_its_own_lines():
    """A task that needs only the decisions on its own lines reads less than 5 % of the file."""
    places = [NEW + i for i in range(20_000)]

    class Counted(io.FileIO):
        read_bytes = 0

        def readinto(self, buffer):
            count = super().readinto(buffer)
            self.read_bytes += count
            return count

    with tempfile.NamedTemporaryFile() as named:
        named.writelines(
            format_decided(b"%016x" % place, b"id", b"kept", b"0.900000") for place in places
        )
        named.flush()
        size = named.tell()
        raw = Counted(named.name)
        with io.BufferedReader(raw, 512) as file:
            found = (place for place, _ in lines_from(file, NEW + 15_000))
            assert [next(found) for _ in range(100)] == places[15_000:15_100]
            assert 0 < raw.read_bytes < size / 20


def test_places_out_of_order_are_refused():
    with decided([3, 2], [b"a", b"b"]) as file:
        found = lines_from(file, 0)
        with pytest.raises(StageError, match="are not in order; sort them first: LC_ALL=C sort"):
            list(found)


def test_what_is_no_decided_line_is_refused():
    with tempfile.TemporaryFile() as file:
        file.write(b"a\tb\t0.900000\n")
        file.flush()
        with pytest.raises(WireError, match="expected PLACE ID KEPT SIMILARITY, got 'a"):
            list(lines_from(file, 0))
