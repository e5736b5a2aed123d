r"""Read rows of CSV and TSV files, and copy the kept rows of CSV files byte for byte.

The first row names the columns, unless --id and --text are numbers of columns.

    csv   fields separated by commas, or by --delimiter; a field that begins with a quote extends
          to the next single quote, across commas and line ends, and two quotes in it stand for one
          (RFC 4180); --quote and --escape name other characters (see `dialects`)
    tsv   lines of fields separated by tabs; quotes around a whole field are removed, but no field
          has a line end, so that each row is a line

    1,"to be,⏎or not"⏎2,plain⏎     two rows

A quote that is never closed would make one row of all that follows.  So a row longer than the limit
ends at its first line end, and is a bad line; what follows is read as rows again.  A row of more
than 1,000 lines is refused, and so is a file with \" in quotes, or whose first rows have as many
fields as each other only with other quotes, unless an option allows it.
"""

import codecs
import io
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice, product, starmap
from typing import IO, NamedTuple

import numpy as np

from neardup.reading import input_check as flaws
from neardup.reading.blocks import BLOCK_BYTES, LINE_END, WHOLE_FILE, Piece, Start, whole_lines
from neardup.reading.compressed import MAGIC_BYTES, position, refuse_no_lines
from neardup.reading.dialects import AS_USUAL, Dialect
from neardup.reading.looks import ANY_NAME, JSON_LINES, JSON_PARTS, seen
from neardup.reading.missing_fields import check_columns
from neardup.reading.text_rows import Fields, Line, json_line
from neardup.runtime.program import StageError, to_add

BACKSLASH = "\\"
TABS = Dialect(delimiter="\t")  # of TSV
MAX_LINES = 1000  # of a quoted field
MAX_BYTES = 4 * BLOCK_BYTES  # whose quotes are found all at once
LARGEST_FIELD = (1 << 31) - 1
QUOTED = re.compile(r'"(?:[^"]|"")*"')
NUL = "\udcc0\udc80"  # two bytes that are in no UTF-8, since csv of older Pythons reads no NUL


def whole_rows(
    stream: IO[bytes],
    name: str,
    max_row: int,
    dialect: Dialect = AS_USUAL,
    number: int = 1,
    held: bytes = b"",
) -> Iterator[tuple[int, bytes, str]]:
    """Yield (number of the first row, whole rows, ""), or (number, bad row, flaw).

    number: of the first row; a header is row 0.  Blank rows count.  A last row without a line end
    is given one.  held: what was read before.  StageError for a line longer than the limit: the
    file is not CSV; and where the dialect seems to be another one.
    """
    held = (held or stream.read(BLOCK_BYTES)).removeprefix(codecs.BOM_UTF8)
    ended = False
    while held or not ended:
        if not ended:
            more = stream.read(max(BLOCK_BYTES, len(held)))  # doubles, so a row is scanned rarely
            ended = not more
            held += more
            if ended and held and not dialect.masked(held).endswith((b"\n", b"\r")):
                held += b"\n"
        ends = row_ends(held, ended, dialect)
        if dialect.escape is None and _has_escapes(held, ended, dialect):
            line, none = to_add("--escape", BACKSLASH), to_add("--escape", "")
            what = f'has \\" in quotes near row {max(number, 1):,}'
            raise StageError(f"{name}: {what}; {line}; or, if quotes are doubled, {none}")
        if not dialect.long_rows and len(long := _long_rows(held, ends)):
            row = max(number + int(long[0]), 1)
            raise StageError(
                f"{name}: row {row:,}: more than {MAX_LINES:,} lines; if its "
                f"quotes are right, {to_add('--quote', dialect.quote)}"
            )
        if too_long := np.flatnonzero(np.diff(ends, prepend=0) > max_row).tolist():
            ends = ends[: too_long[0]]
        first = begin = 0
        while first < len(ends):
            last = max(int(np.searchsorted(ends, begin + BLOCK_BYTES, "right")), first + 1)
            end = int(ends[last - 1])
            yield number, held[begin:end], ""
            number, first, begin = number + last - first, last, end
        held = held[begin:]
        if not len(ends) and held and (ended or len(held) > max_row):
            line_end = LINE_END.search(held)
            if not line_end:
                raise StageError(f"{name}: row {number}: {flaws.LINE_TOO_LONG}; is this CSV?")
            flaw = flaws.LINE_TOO_LONG if len(held) > max_row else flaws.NOT_CLOSED
            yield number, held[: line_end.end()], flaw
            number, held = number + 1, held[line_end.end() :]


def _first_rows(stream: IO[bytes], max_row: int, dialect: Dialect) -> tuple[bytes, Dialect]:
    """Read a first block, with a row end if escapes need it; return it and the file's dialect."""
    held = more = stream.read(BLOCK_BYTES)
    while (
        dialect.escape and more and len(held) < max_row and not len(row_ends(held, False, dialect))
    ):
        more = stream.read(len(held))
        held += more
    return held, _of_rows(dialect, held)


def _of_rows(dialect: Dialect, start: bytes) -> Dialect:
    """Return the dialect, with the kind of row end (LF alone, or CR LF) of the first row."""
    ends = row_ends(start, False, dialect)[:1].tolist() if dialect.escape else []
    row = start[: ends[0]] if ends else b"\n"
    return dialect._replace(lf_rows=row.endswith(b"\n") and not row.endswith(b"\r\n"))


def _has_escapes(data: bytes, ended: bool, dialect: Dialect) -> bool:
    r"""Return whether quotes in rows seem to be escaped by backslashes, as in 1,"so \"called\"".

    In RFC 4180 a field may end with a backslash, and before a doubled quote there may be one.
    """

    def sound(rows: bytes) -> bool:
        quotes = _plain_quotes(np.frombuffer(rows, np.uint8), dialect)
        return quotes is not None and not (ended and len(quotes) % 2)

    likely = b"\\" in data and (BACKSLASH + dialect.quote).encode() in data  # the first is fast
    if not likely or sound(data):
        return False
    quote, comma = re.escape(dialect.quote), re.escape(dialect.delimiter)
    field = rf"(?<![^{comma}\r\n]){quote}[^{quote}]*(?:{quote}{quote}[^{quote}]*)*(?<=\\){quote}"
    inside = re.search(rf"{field}[^{quote}{comma}\r\n]".encode(), data)
    return bool(inside) or sound(dialect._replace(escape=BACKSLASH).masked(data))


def _long_rows(data: bytes, ends: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows of more than MAX_LINES lines (int64).

    The bytes after the last of `ends` count as a row, too.
    """
    line_end = b"\n" if b"\n" in data else b"\r"
    if data.count(line_end) - len(ends) < MAX_LINES:
        return np.empty(0, np.int64)
    breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(line_end))
    lines = np.diff(np.searchsorted(breaks, np.append(ends, len(data))), prepend=0)
    return np.flatnonzero(lines > MAX_LINES)


def row_ends(data: bytes, ended: bool = True, dialect: Dialect = AS_USUAL) -> np.ndarray:
    r"""Return where rows end (int64); unless `ended`, a final CR does not yet end a row.

    >>> row_ends(b'1,"a\nb"\r\n2,"c\n').tolist()
    [9]
    """
    stop = len(data) - (not ended and data.endswith(b"\r"))  # an LF may follow
    data = dialect.masked(data[:stop])
    bytes_ = np.frombuffer(data, np.uint8)
    quotes = _plain_quotes(bytes_, dialect) if stop <= MAX_BYTES else None
    if quotes is None:
        return np.fromiter(_by_fields(data, dialect), np.int64)
    ends = np.flatnonzero(bytes_ == ord("\n"))
    if b"\r" in data:
        returns = np.flatnonzero(bytes_ == ord("\r"))
        alone = returns[bytes_[np.minimum(returns + 1, stop - 1)] != ord("\n")]
        ends = np.sort(np.concatenate((ends, alone)))
    outside = np.searchsorted(quotes, ends) % 2 == 0
    return ends[outside] + 1


def _plain_quotes(data: np.ndarray, dialect: Dialect) -> "np.ndarray | None":
    """Return the places of quotes; None if a quote is inside a field and not doubled."""
    beside = np.frombuffer((dialect.quote + dialect.delimiter + "\r\n").encode(), np.uint8)
    quotes = np.flatnonzero(data == ord(dialect.quote))
    opening, closing = quotes[0::2], quotes[1::2]
    before = data[opening[opening > 0] - 1]
    after = data[closing[closing < len(data) - 1] + 1]
    return quotes if np.isin(before, beside).all() and np.isin(after, beside).all() else None


def _by_fields(data: bytes, dialect: Dialect) -> Iterator[int]:
    """Yield the place at which each row ends, found by parsing field by field."""
    at, delimiter, quote = 0, dialect.delimiter.encode(), dialect.quote.encode()
    end_of_field = re.compile(re.escape(delimiter) + rb"|\r\n|\n|\r")
    while True:
        if data[at : at + 1] == quote:
            at = data.find(quote, at + 1) + 1
            while at and data[at : at + 1] == quote:  # doubled
                at = data.find(quote, at + 1) + 1
            if not at:
                return
        end = end_of_field.search(data, at)
        if not end:
            return
        at = end.end()
        if end[0] != delimiter:
            yield at


class TableRows(NamedTuple):
    """Consecutive rows of a table as unparsed bytes, or one bad row."""

    number: int  # of the first one, from 1
    data: bytes
    flaw: str = ""  # of one bad row, as in Piece


class Table(NamedTuple):
    header: bytes  # the first row, or b""
    rows: Iterator[TableRows]
    dialect: Dialect = AS_USUAL


def separated_pieces(
    kind: str,
    fields: Fields,
    path: str,
    name: str,
    max_line: int,
    start: Start,
    dialect: Dialect = AS_USUAL,
) -> Iterator[Piece]:
    """Yield pieces of consecutive rows of a CSV or TSV file, or of a split of a headerless TSV."""
    with dialect.opened(path, name) as (stream, _, encoding):
        if start.of_file:
            refuse_no_lines(stream.peek(MAGIC_BYTES), start.place[: -len(": ")] or "-")
        table = opened_table(kind, not fields.numbered, stream, name, max_line, start, dialect)
        dialect = table.dialect
        header = next(split_rows(kind, table.header, dialect), [])
        first = next(table.rows, TableRows(1, b""))
        table = table._replace(rows=chain([first] if first.data else [], table.rows))
        names = header or next(split_rows(kind, first.data, dialect), [])
        known = not fields.numbered and fields.texts and {*fields.texts} <= {*header}
        if start.of_file and not known:
            other = seen(table.header + first.data, kind)
            named = (len(names) > 1 and all(map(ANY_NAME.fullmatch, header))) or not fields.texts
            named |= len(header) > 1 and fields.id in header
            if other.like and (not named or other.like in (JSON_LINES, JSON_PARTS)):
                raise StageError(f"{name}: {other.message()}")
        if table.header:
            places = {column: place for place, column in enumerate(header)}
            data = b"" if first.flaw else first.data
            check_columns(header, fields, name, partial(rows_of, kind, places, 0, data, dialect))
        if kind == "csv" and not first.flaw:
            check_widths((table.header + first.data)[: BLOCK_BYTES >> 3], name, dialect)
        columns = fields.places(header) if table.header or fields.numbered else {}
        rows = partial(rows_of, kind, columns, len(header), dialect=dialect)
        for number, data, flaw in table.rows:
            parts = partial(iter, (data.rstrip(b"\r\n"),)) if flaw else partial(map, rows, (data,))
            has_ids = fields.id in columns
            yield Piece(number, parts, flaw, "row", position(stream), encoding, has_ids)


def check_widths(data: bytes, name: str, dialect: Dialect) -> None:
    """Raise StageError if all of the first rows have as many fields, but only with other quotes."""

    def alike(dialect: Dialect) -> bool:
        rows = [*islice(split_rows("csv", data, dialect), MAX_LINES)]
        widths = {len(row) for row in rows[: max(len(rows) - 1, 2)] if row}  # the last may be cut
        return len(widths) == 1 and widths != {1}

    quotes = [dialect.quote, *["'"] * (not dialect.long_rows)]
    escapes = [dialect.escape, *[BACKSLASH] * (dialect.escape is None)]
    both = product(quotes, escapes)
    ways = [_of_rows(dialect._replace(quote=q, escape=e), data) for q, e in both]
    if len(ways) > 1 and not alike(dialect) and (way := next(filter(alike, ways[1:]), None)):
        flags = ["--quote", way.quote] * (way.quote != dialect.quote)
        flags += ["--escape", BACKSLASH] * (way.escape != dialect.escape)
        none = to_add("--quote", dialect.quote, "--escape", dialect.escape or "")
        raise StageError(
            f"{name}: rows differ in their number of fields, but not with other quotes; "
            f"{to_add(*flags)}; or, to leave out bad rows, {none}"
        )


def opened_table(
    kind: str,
    has_header: bool,
    stream: IO[bytes],
    name: str,
    max_line: int,
    start: Start = WHOLE_FILE,
    dialect: Dialect = AS_USUAL,
) -> Table:
    """Return the header and the rows of a stream; StageError if the header cannot be read."""
    if kind == "csv":
        held, dialect = _first_rows(stream, max_line, dialect)
        rows = whole_rows(stream, name, max_line, dialect, 1 - has_header, held)
        found: Iterator[TableRows] = starmap(TableRows, rows)
    else:
        lines = whole_lines(stream, max_line, start)
        flaw = {True: flaws.LINE_TOO_LONG, False: ""}
        found = (TableRows(n - has_header, data, flaw[cut]) for n, data, cut in lines)
    if not has_header:
        return Table(b"", found, dialect)
    first = next(found, TableRows(1, b""))
    if first.flaw:
        raise StageError(f"{name}: row 1, which names the columns: {first.flaw}")
    if kind == "csv":
        end = int(np.append(row_ends(first.data, dialect=dialect), len(first.data))[0])
    else:
        line = LINE_END.search(first.data)
        end = line.end() if line else len(first.data)
    rest = TableRows(1, first.data[end:])
    return Table(first.data[:end], chain([rest] if rest.data else [], found), dialect)


def header_of(kind: str, path: str, name: str, dialect: Dialect = AS_USUAL) -> list[str]:
    """Return the names of the columns of a file; [] if it is empty."""
    with dialect.opened(path, name) as (stream, *_):
        table = opened_table(kind, True, stream, name, BLOCK_BYTES, dialect=dialect)
        return next(split_rows(kind, table.header, table.dialect), [])


def kept_rows(
    table: Table, first: int, gone: Iterator[int], with_header: bool = True
) -> Iterator[bytes]:
    """Yield the bytes of a CSV file without the rows at the places `gone` (ascending)."""
    if with_header:
        yield table.header
    next_gone = next(gone, None)
    for number, data, flaw in table.rows:
        place, kept, begin = first + number - 1, 0, 0
        as_one = flaw or next_gone is None
        for end in [len(data)] if as_one else row_ends(data, dialect=table.dialect).tolist():
            if place == next_gone:
                yield data[kept:begin]
                kept, next_gone = end, next(gone, None)
            place, begin = place + 1, end
        yield data[kept:]


def split_rows(kind: str, data: bytes, dialect: Dialect = AS_USUAL) -> Iterator[list[str]]:
    r"""Yield the fields of each row, [] for a blank row; invalid UTF-8 becomes lone surrogates.

    >>> list(split_rows("csv", b'a,"b, ""c"" d"\n\nd,e\n'))
    [['a', 'b, "c" d'], [], ['d', 'e']]
    >>> list(split_rows("tsv", b'a\t"b ""c"" d"\n"d\te\n'))
    [['a', 'b "c" d'], ['"d', 'e']]
    """
    text = data.decode("utf-8", "surrogateescape").replace("\0", NUL)
    if kind == "csv":
        import csv  # for these files alone

        csv.field_size_limit(LARGEST_FIELD)
        comma, mark, escape = dialect.delimiter, dialect.quote, dialect.escape or None
        if escape:  # csv drops it before any character
            known = {c: escape + c for c in (comma, mark, escape, "\r", "\n")}
            known["\r\n"] = f"{escape}\r{escape}\n"
            either = dialect.escaped
            text = re.sub(either, lambda found: known.get(found[1], f"{escape}{found[0]}"), text)
        lines = io.StringIO(text, newline="")
        for row in csv.reader(lines, delimiter=comma, quotechar=mark, escapechar=escape):
            yield ["" if f == f"{escape}N" else f for f in row] if escape else row
        return
    quoted = QUOTED.fullmatch
    for line in re.split("\r\n|\n|\r", text)[:-1]:
        fields = line.split("\t") if line.strip() else []
        yield [f[1:-1].replace('""', '"') if f[:1] == '"' and quoted(f) else f for f in fields]


def field_spans(kind: str, row: bytes, dialect: Dialect = AS_USUAL) -> list[tuple[int, int]]:
    r"""Return where the fields of a row begin and end, with their quotes.

    >>> field_spans("csv", b'a,"b,""c",\n')
    [(0, 1), (2, 9), (10, 10)]
    """
    quote, comma = dialect.quote.encode(), re.escape(dialect.delimiter.encode())
    quoted = b"(?:%b[^%b]*%b)*" % (quote, quote, quote) if kind == "csv" else b""
    field = rb"(?:^|%b)(%b[^%b\r\n]*)" % (comma, quoted, comma)
    masked = dialect.masked(row) if kind == "csv" else row
    return [found.span(1) for found in re.finditer(field, masked)]


def separated(text: str, kind: str, dialect: Dialect = AS_USUAL) -> bytes:
    """Return a text as a field of a row of CSV or TSV, or of a line, which has no quotes."""
    comma, _, quote, escape, *_ = dialect
    text = text.replace(escape, escape * 2) if escape else text
    if {*text} & {*{"csv": f"{comma}{quote}\r\n", "tsv": quote}.get(kind, "")}:
        text = quote + text.replace(quote, (escape or quote) + quote) + quote
    return text.encode("utf-8", "surrogateescape")


def rows_of(
    kind: str, columns: dict[str, int], width: int, data: bytes, dialect: Dialect = AS_USUAL
) -> list[Line]:
    """Parse rows into dictionaries; blank rows become b"", and malformed ones bad lines.

    width: the number of fields of each row; with 0, only those of `columns` are needed.
    """
    least = max(columns.values(), default=0) + 1
    sound = not flaws.flaw_in(data + "".join(columns).encode("utf-8", "surrogateescape"))
    rows: list[Line] = []
    for fields in split_rows(kind, data, dialect):
        if not fields:
            rows.append(b"")
        elif len(fields) != width if width else len(fields) < least:
            shown = dialect.delimiter.join(fields).encode("utf-8", "backslashreplace")
            flaw = flaws.WRONG_FIELDS if width else flaws.TOO_FEW_FIELDS
            rows.append(flaws.BadLine(len(rows), shown, flaw))
        else:
            row = {name: fields[column] for name, column in columns.items()}
            if not sound:
                row = {name.replace(NUL, "\0"): v.replace(NUL, "\0") for name, v in row.items()}
                if flaws.flaw_in(shown := json_line(row)):
                    half = flaws.decoded(shown)
                    bad = flaws.BadLine(len(rows), shown, flaws.NOT_UTF8)
                    rows.append(json.loads(half) if half else bad)
                    continue
            rows.append(row)
    return rows
