"""Formatters and parsers for lines of pairs, edges and decided records, and their tables.

Hadoop may add a tab to each line.

pairs       A TAB B TAB SIMILARITY
            six decimals, so that the order of lines is the order of similarities; for an estimate
            (--verify sketch) the ends of an interval, `~0.871123..0.953234`, which no program takes
            for a number.  Pairs of two collections (--against) have a fourth field, and directed
            ones a fifth: see `verification.record_pairs`

edges       LATER TAB EARLIER TAB 0.912345678901234567    a pair of records with tagged ids; 18
                                                decimals keep the order
            LATER TAB EARLIER TAB =             … with the same set
            LATER TAB EARLIER TAB *             with the same set and value (--across): not a pair,
                                                and both are kept or both are removed
            RECORD TAB .                        this record is in a pair
            RECORD TAB CLUSTER TAB C TAB SET    … is in a dense cluster, whose pairs are left to the
                                                decision; C is 1 where others have the same set
            Each record of a pair begins a line: the sorted lines list all of them by priority

decided     PLACE TAB ID TAB KEPT TAB SIMILARITY
            a removed record and the one that it duplicates: `--output removed` prints all but
            PLACE, the place in the input (`reading.blocks`) in sixteen hexadecimal digits; the
            similarity is `-` where the two are not a pair; with --merge, TAB and KEPT's place

marks       PLACE TAB CLUSTER TAB COPIES        for --output marked, beside the decided lines
            a record in a pair: the smallest id of its cluster, which is unknown (empty) with
            --against; and how many records it stands for: 0 for a removed one

Ids of records with a place are tagged: see `lines.tagged_ids`.

Answers in JSON lines, CSV, Parquet or Arrow have the fields of `answer_table`.  Programs that read
an answer read lines or tables, by `parsed_lines`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Callable, NamedTuple, TypeVar

from neardup.reading.blocks import Pieces, line_pieces, numbered, read_files
from neardup.reading.compressed import kind_by_name, opened, table_kind
from neardup.reading.input_check import flaw_in
from neardup.reading.separated_rows import separated_pieces
from neardup.reading.table_files import TABLES, check_pyarrow
from neardup.reading.table_rows import CSV, LineTable, fields_table, line_of_row, typed_pieces
from neardup.reading.text_rows import Fields, FlawError, Line, Row, json_line, lines_in, row_of
from neardup.runtime.program import StageError, WireError, shown

_NUMBER = rb"(?:0\.[0-9]{6}|1\.000000)"
_PAIR = re.compile(
    rb"([^\0\t\r\n]+)\t([^\0\t\r\n]+)\t(%b|~%b\.\.%b)"
    rb"((?:\t(?:old|new)(?:\tcontain(?:s|ed))?)?)\t?\n?" % ((_NUMBER,) * 3)
)
SAME_SET, TWIN = b"=", b"*"
IDENTICAL = 10**18  # similarities of edges are whole numbers from 0 to this
NO_PAIR = b"-"  # as the similarity of a removed record and the kept one
EDGE, MEMBER = 3, 4  # fields of their lines
_WITH_BITS = re.compile(rb"([^\t]+\t[^\t]+\t%b)\t[0-9]+\t?\n?" % _NUMBER)  # of `neardup images`
_SIMILARITY = rb"=|\*|0\.[0-9]{18}|1\.0{18}"
_PRESENCE_OR_MEMBER = rb"[^\t]+\t(?:\.|[^\t]*\t[01]\t[^\t]*)[\t\n]*"
_REMOVED = rb"[^\0\t\r\n]+\t[^\0\t\r\n]+\t(?:0\.[0-9]{6}|1\.000000|-)"
# A place, and a hash of `Settings.rows_by`, if rows are not read as usual.
_PLACE = rb"([0-9a-f]{16})(?:-[0-9a-f]{8})?"
_DECIDED = rb"%b\t(%b)(?:\t([0-9a-f]{16}))?\t?\n?" % (_PLACE, _REMOVED)
_MARK = re.compile(rb"%b\t[^\0\t\r\n]*\t[0-9]+\t?\n?" % _PLACE)


def format_pair(a: bytes, b: bytes, similarity: bytes, directed: bool = False) -> bytes:
    """Return a pair line, with the ids in byte order unless the pair is directed."""
    if b < a and not directed:
        a, b = b, a
    return b"%b\t%b\t%b\n" % (a, b, similarity)


def parse_pair(line: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return (id, id, similarity, further fields) of a pair line; WireError for any other line.

    Either id may be the smaller one, as containment has pairs of both directions.
    """
    if found := _PAIR.fullmatch(line):
        a, b, similarity, further = found.groups()
        if (a != b or further.startswith(b"\told")) and not flaw_in(line):
            return a, b, similarity, further
    raise WireError(f"expected A B SIMILARITY, as reducer.py writes them, got {shown(line)}")


def format_interval(low: int, high: int) -> bytes:
    """Return the text of an interval, given in millionths.

    >>> format_interval(871123, 1000000)
    b'~0.871123..1.000000'
    """
    return b"~%d.%06d..%d.%06d" % (*divmod(low, 10**6), *divmod(high, 10**6))


def format_estimate(a: bytes, b: bytes, low: int, high: int, estimate: int) -> bytes:
    r"""Return an output line of `neardup similar`: two ids, an interval, and the estimate.

    >>> format_estimate(b"a", b"b", 871123, 1000000, 950000)
    b'a\tb\t~0.871123..1.000000\t0.950000\n'
    """
    interval = format_interval(low, high)
    return b"%b\t%b\t%b\t%d.%06d\n" % (a, b, interval, *divmod(estimate, 10**6))


def is_estimate(similarity: bytes) -> bool:
    return similarity.startswith(b"~")


def _refuse_estimate(fields: list[bytes], line: bytes) -> None:
    if len(fields) > 2 and is_estimate(fields[2]):
        raise WireError(
            "expected exact pairs, got an estimate of --verify sketch or `similar`; run the job "
            f"without --verify: {shown(line)}"
        )


def exact_pair(line: bytes) -> tuple[bytes, bytes, bytes]:
    r"""Return (id, id, similarity) of a pair line; WireError for other lines and for estimates.

    The number of bits that differ, which `neardup images` adds to a line, is left out:

    >>> exact_pair(b"a\tb\t0.976562\t6\n")
    (b'a', b'b', b'0.976562')
    """
    _refuse_estimate(line.split(b"\t"), line)
    with_bits = _WITH_BITS.fullmatch(line)
    return parse_pair(with_bits[1] if with_bits else line)[:3]


class Member(NamedTuple):
    cluster: bytes
    has_copies: bool
    set_text: bytes  # see `lines.keyed_lines`


def format_edge(a: bytes, b: bytes, similarity: bytes) -> bytes:
    """Return the edge line of two tagged ids, with the larger id (the later record) first."""
    return b"%b\t%b\t%b\n" % (max(a, b), min(a, b), similarity)


def as_number(similarity: bytes) -> int:
    """Parse the similarity on an edge line into an integer, in units of 10^-18.

    >>> as_number(b"0.912345678901234567"), as_number(SAME_SET) == IDENTICAL
    (912345678901234567, True)
    """
    known = {SAME_SET: IDENTICAL, TWIN: 0}
    return known[similarity] if similarity in known else int(similarity.replace(b".", b""))


@lru_cache(1 << 12)
def as_decimals(similarity: int) -> bytes:
    """Format a similarity, in units of 10^-18, with six decimals, rounded half-even.

    >>> as_decimals(912345678901234567), as_decimals(5 * 10**11), as_decimals(15 * 10**11)
    (b'0.912346', b'0.000000', b'0.000002')
    """
    millionths, rest = divmod(similarity, 10**12)
    millionths += 2 * rest > 10**12 or (2 * rest == 10**12 and millionths % 2)
    return b"%d.%06d" % divmod(millionths, 10**6)


def format_presence(record: bytes) -> bytes:
    return b"%b\t.\n" % record


def format_member(record: bytes, member: Member) -> bytes:
    return b"%b\t%b\t%d\t%b\n" % (record, *member)


def parse_edge_lines(lines: list[bytes]) -> list[list[bytes]]:
    r"""Return the tab-separated fields of each edge line; WireError for any other line.

    >>> parse_edge_lines([b"b\ta\t=\n", b"a\t.\n"])
    [[b'b', b'a', b'='], [b'a', b'.']]
    """
    fields = [line.rstrip(b"\t\n").split(b"\t") for line in lines]  # Hadoop may add a tab behind
    similarities = {some[2] for some in fields if len(some) == EDGE}
    known = set(filter(re.compile(_SIMILARITY).fullmatch, similarities))
    for some, line in zip(fields, lines):
        is_edge = len(some) == EDGE and some[2] in known and some[0]
        if not is_edge and not re.fullmatch(_PRESENCE_OR_MEMBER, line):
            _refuse_estimate(some, line)
            raise WireError(f"expected an edge, as reducer.py writes it, got {shown(line)}")
    return fields


def member(fields: list[bytes]) -> Member:
    _, cluster, has_copies, set_text = fields
    return Member(cluster, has_copies == b"1", set_text)


def format_decided(*fields: bytes) -> bytes:
    """Return the line of a removed record: PLACE, ID, KEPT, SIMILARITY and maybe KEPT's place."""
    return b"\t".join(fields) + b"\n"


def parse_decided(line: bytes) -> tuple[int, bytes]:
    """Return (place, id) of a line that `format_decided` wrote; WireError for any other line."""
    found = _decided(line)
    return int(found[1], 16), found[2].partition(b"\t")[0]


def kept_place(line: bytes) -> int:
    """Return the place of the kept record of a decided line; WireError if the line lacks it."""
    if not (found := _decided(line)[3]):
        raise WireError(
            f"expected PLACE ID KEPT SIMILARITY PLACE, got {shown(line)}; decide with --merge"
        )
    return int(found, 16)


def removed_line(line: bytes) -> bytes:
    """Remove the place from a line of `format_decided`; the rest is a line of --output removed.

    >>> removed_line(b"8000000000000001\\tb\\ta\\t0.900000\\n")
    b'b\\ta\\t0.900000\\n'
    """
    return _decided(line)[2] + b"\n"


def _decided(line: bytes) -> re.Match[bytes]:
    found = re.fullmatch(_DECIDED, line)
    if not found:
        raise WireError(f"expected PLACE ID KEPT SIMILARITY, got {shown(line)}")
    return found


def format_mark(place: bytes, cluster: bytes, copies: int) -> bytes:
    return b"%b\t%b\t%d\n" % (place, cluster, copies)


def is_mark(line: bytes) -> bool:
    """Return whether a line is one of `format_mark`, rather than a decided line."""
    return bool(_MARK.fullmatch(line))


def place_of(line: bytes) -> int:
    """Return the place of a decided line or of a mark; WireError for any other line."""
    return int(line[:16], 16) if is_mark(line) else parse_decided(line)[0]


class Removal(NamedTuple):
    id: bytes  # of the removed record
    kept: bytes  # the record that it duplicates
    similarity: str  # or "-"
    doubt: str = ""  # of `neardup images`: see `originals.doubt`
    change: str = ""  # how the removed picture differs: see `picture_hashes.Relation`


def parse_removed(line: bytes) -> Removal:
    r"""Parse a line of --output removed; WireError for any other line.

    >>> parse_removed(b"b.png\ta.png\t0.976562\t\tcropped\n")[3:]
    ('', 'cropped')
    """
    if not re.fullmatch(rb"%b(\t[\w ,]*){0,2}\n?" % _REMOVED, line):
        raise WireError(
            f"expected ID KEPT SIMILARITY, as --output removed writes them, got {shown(line)}"
        )
    id_, kept, *more = line.rstrip(b"\t\n").split(b"\t")
    return Removal(id_, kept, *(each.decode() for each in more))


MAX_LINE = 64 << 20  # bytes of a line, which has two ids
ALL_FIELDS = Fields("", (), needs_id=False)
Parsed = TypeVar("Parsed")

REMOVED = fields_table(id=str, kept=str, similarity=float)
DOUBTED = fields_table(**REMOVED.columns, doubt=str, change=str)  # of `neardup images`
CLUSTERS = fields_table(cluster=str, id=str)
PAIRS = fields_table(a=str, b=str, similarity=float)
ACROSS = fields_table(new=str, other=str, similarity=float, collection=str)
DIRECTED_ACROSS = fields_table(new=str, other=str, similarity=float, collection=str, direction=str)


def interval_row(line: bytes) -> Row:
    r"""Return the table row of a pair line that has an interval, and possibly an estimate.

    >>> interval_row(b"a\tb\t~0.871123..1.000000\n")
    {'a': 'a', 'b': 'b', 'low': 0.871123, 'high': 1.0}
    """
    a, b, interval, *estimate = line.decode().rstrip("\n").split("\t")
    low, high = map(float, interval[1:].split(".."))
    return dict(zip(ESTIMATES.columns, (a, b, low, high, *map(float, estimate))))


def interval_line(row: Row) -> bytes:
    r"""Return the pair line for a row of `interval_row`; an estimate is left out.

    >>> interval_line({"a": "a", "b": "b", "low": 0.871123, "high": 1.0})
    b'a\tb\t~0.871123..1.000000\n'
    """
    return "{a}\t{b}\t~{low:.6f}..{high:.6f}\n".format(**row).encode()


INTERVALS, ESTIMATES = (
    LineTable(
        {"a": str, "b": str, "low": float, "high": float, **more}, interval_row, interval_line
    )
    for more in ({}, {"estimate": float})
)
ALL_PAIRS = (DIRECTED_ACROSS, ACROSS, INTERVALS, PAIRS)  # those with more columns first


def answer_table(output: str, against: bool, directed: bool, estimated: bool) -> LineTable:
    """Return the table of an answer, given --output and the options that change its lines."""
    if output in ("kept", "marked", "removed"):  # records are also written beside the others
        return REMOVED
    if output == "clusters":
        return CLUSTERS
    if against:
        return DIRECTED_ACROSS if directed else ACROSS
    return INTERVALS if estimated else PAIRS


def parsed_lines(
    files: Sequence[str], parse: Callable[[bytes], Parsed], tables: Sequence[LineTable] = ()
) -> Iterator[Parsed]:
    """Yield the parsed lines of answers; a StageError names the file and the line that is wrong.

    A file may have rows of one of `tables` instead, which are parsed as their lines.
    """
    for name in files:
        pieces = _pieces(name) if tables else line_pieces
        for block in read_files(numbered([name]), MAX_LINE, pieces=pieces):
            if block.flaw:
                raise StageError(f"{block.place}{block.line}: {block.flaw}")
            for number, line in lines_in(block.data):
                try:
                    yield parse(_line(line, tables))
                except WireError as error:
                    raise StageError(f"{block.place}{block.line + number}: {error}") from None


def _pieces(name: str) -> Pieces:
    """Return the function that reads an answer's file as rows of a table, or as lines."""
    kind, start = kind_by_name(name), b""
    if os.path.isfile(name):
        with opened(name, name) as file:
            start = file.readline(MAX_LINE)
    typed = table_kind(start) or (kind if kind in TABLES else "")
    if typed:
        check_pyarrow(typed)
        return partial(typed_pieces, typed, ALL_FIELDS)
    if kind == CSV and b"\t" not in start:  # otherwise it has lines with tabs, in spite of its name
        return partial(separated_pieces, CSV, ALL_FIELDS)
    return line_pieces


def _line(line: Line, tables: Sequence[LineTable]) -> bytes:
    """Return a tab-separated line, converted if `line` is a row or a JSON object."""
    if type(line) is bytes and not (tables and line.startswith(b"{") and b"\t" not in line):
        return line
    try:
        return line_of_row(row_of(line), tables)[:-1]
    except FlawError as flaw:
        raise WireError(f"{flaw}: {shown(json_line(line))}") from None
