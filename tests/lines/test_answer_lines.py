"""Lines of edges and decisions are read as written; a damaged line is refused, or still valid."""

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.decisions.edge_file import EdgeFile
from neardup.lines.answer_lines import (
    SAME_SET,
    Member,
    format_decided,
    format_edge,
    format_member,
    format_presence,
    member,
    parse_decided,
    parse_edge_lines,
    removed_line,
)
from neardup.lines.count_lines import parse_partial
from neardup.lines.tagged_ids import tag_of
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, WireError

ids = st.text(
    st.characters(exclude_characters="\0\t\r\n", exclude_categories=["Cs"]), min_size=1
).map(str.encode)
similarities = st.sampled_from(
    [SAME_SET, b"0.000000000000000000", b"0.912345000000000000", b"1.000000000000000000"]
)
members = st.builds(Member, ids, st.booleans(), st.sampled_from([b"0", b"34o8"]))
TABS = [b"", b"\t"]  # Hadoop may add one
FIRST = tag_of("first")


@pytest.mark.parametrize("tab", TABS)
@given(ids, ids, similarities)
def test_an_edge_is_of_the_later_record(tab, a, b, similarity):
    for line in (format_edge(a, b, similarity), format_edge(b, a, similarity)):
        assert parse_edge_lines([line[:-1] + tab + b"\n"]) == [[max(a, b), min(a, b), similarity]]


@pytest.mark.parametrize("tab", TABS)
@given(ids, members)
def test_members_and_presences_are_read_as_written(tab, record, of_cluster):
    lines = [format_member(record, of_cluster), format_presence(record)]
    fields, present = parse_edge_lines([line[:-1] + tab + b"\n" for line in lines])
    assert (fields[0], member(fields)) == (record, of_cluster)
    assert present == [record, b"."]


@pytest.mark.parametrize(
    "similarity",
    [
        b"1.000000000000000001",
        b"2.000000000000000000",
        b"0.900000",
        b"0.9",
        b"0.",
        b"1.",
        b"0.abcdef",
    ],
)
@pytest.mark.parametrize("line", [b"b\ta\t%b\n", b"b\ta\t %b\n", b"b\ta\t%b0\n"])
def test_what_is_no_similarity_is_refused(line, similarity):
    with pytest.raises(WireError, match=r"expected an edge, as reducer\.py writes it, got 'b"):
        parse_edge_lines([line % similarity])


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"\t\n", b"a\n", b"a\t\n", b"\t.\n", b"\ta\t=\n", b"a\t..\n", b"a\tb\n"]
    + [b"a b =\n", b"a\tb\t==\n", b"a\tb\t=\tc\n", b"a\tc.1\t2\t3\n", b"a\tc.1\t\t3\n"]
    + [b"a\tc.1\t1\t34\tmore\n", b"a\tb\t0.900000\r\n", b"001:00000000ff\t00000003\tv1\t34o8\n"],
)
def test_what_is_no_edge_is_refused(line):
    with pytest.raises(WireError, match=r"expected an edge, as reducer\.py writes it, got '"):
        parse_edge_lines([line])


# As a file.


def edge_file(lines: list[bytes]) -> list[tuple]:
    """Return (number, [(number, record) of each neighbour]) of the records in a file of edges."""
    with tempfile.TemporaryFile() as file:
        edges = EdgeFile(file, [b"".join(lines)], FIRST, Counters(""))
        return [
            (head.number, [(near.number, near.record) for near in head.edges])
            for heads in edges.batches()
            for head in heads.one_by_one(list(range(len(heads.records))))
        ]


A, B, C = (b"18000000000000%03x%b" % (i, id_) for i, id_ in enumerate((b"a", b"b", b"c")))


def test_a_file_of_edges_has_numbers_for_records():
    lines = [
        format_presence(A),
        format_edge(B, A, SAME_SET),
        format_edge(C, B, b"0.900000000000000000"),
    ]
    assert edge_file(lines) == [(0, []), (1, [(0, A)]), (2, [(1, B)])]
    assert edge_file([]) == []


def test_edges_out_of_order_are_refused():
    with pytest.raises(StageError, match="the edges are not in order; sort them first: LC_ALL"):
        edge_file([format_edge(B, A, SAME_SET), format_presence(A)])


def test_an_edge_to_a_record_without_a_line_is_refused():
    with pytest.raises(WireError, match="an edge leads to a record that has no line; run the"):
        edge_file([format_edge(B, A, SAME_SET)])


def test_two_records_of_one_place_are_refused():
    with pytest.raises(StageError, match="two records have the same place in the input"):
        edge_file([format_presence(A), format_presence(A[:-1] + b"b")])


@pytest.mark.parametrize("line", [b"b\ta\t0.900000000000000000\n", b"1v\1" + b"8" * 16 + b"\t.\n"])
def test_edges_of_other_options_are_refused(line):
    """Edges made with another --keep, and lines of pairs, are refused."""
    with pytest.raises(WireError, match="it when given the same --output and --keep, got '"):
        edge_file([line])


@pytest.mark.parametrize("lines", [[b"\n"], [format_presence(A), b"\n"], [b"\n", b"\n"]])
def test_blank_lines_are_no_edges(lines):
    with pytest.raises(StageError, match=r"not in order|expected an edge"):
        edge_file(lines)


@given(st.integers(0, len(A) + len(B) + 10), st.sampled_from([b"", b"\t", b"x", b"\xff", b"=="]))
def test_a_damaged_file_is_refused_or_is_another_good_one(position, put):
    good = format_presence(A) + format_edge(B, A, SAME_SET)
    damaged = good[:position] + put + good[position + 1 :]
    try:
        records = edge_file(damaged.splitlines(keepends=True))
    except StageError:
        return
    assert [number for number, _ in records] == list(range(len(records)))


# Decided lines.


@pytest.mark.parametrize("tab", TABS)
@given(st.integers(0, (1 << 64) - 1), ids, ids, st.sampled_from([b"-", b"0.900000", b"1.000000"]))
def test_decided_lines_are_read_as_written(tab, place, id_, kept, similarity):
    line = format_decided(b"%016x" % place, id_, kept, similarity)[:-1] + tab + b"\n"
    assert parse_decided(line) == (place, id_)
    assert removed_line(line) == b"\t".join([id_, kept, similarity]) + b"\n"


@given(st.lists(st.integers(0, (1 << 64) - 1)))
def test_decided_lines_in_byte_order_are_in_order_of_places(places):
    lines = sorted(format_decided(b"%016x" % place, b"v", b"k", b"-") for place in places)
    assert [parse_decided(line)[0] for line in lines] == sorted(places)


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"b\ta\t0.900000\n", b"8\tb\ta\t-\n", b"8" * 15 + b"A\tb\ta\t-\n"]
    + [b"8" * 17 + b"\tb\ta\t-\n", b"8" * 16 + b"\tb\ta\n", b"8" * 16 + b"\tb\ta\t=\n"]
    + [b"8" * 16 + b"\t\ta\t-\n", b"8" * 16 + b"\tb\ta\t1.000001\n", b" " * 16 + b"\tb\ta\t-\n"],
)
def test_what_is_no_decided_line_is_refused(line):
    for read in (parse_decided, removed_line):
        with pytest.raises(WireError, match="expected PLACE ID KEPT SIMILARITY, got '"):
            read(line)


def test_a_counted_token_has_at_most_64_bits() -> None:
    """Twenty digits can be more than 2^64-1, which no token is."""
    largest = b"t%020d" % (2**64 - 1)
    assert parse_partial(largest + b"\t7\n") == (largest, b"7")
    with pytest.raises(WireError):
        parse_partial(b"t%020d\t7\n" % 2**64)
