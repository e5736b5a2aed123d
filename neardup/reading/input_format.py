"""Input formats (--input and the options that describe the input): how to read and parse files.

A new format of tables is one file, which turns a file into pieces of rows, and a line in `pieces`;
one that pyarrow reads is a class in `table_files`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Callable, NamedTuple

from neardup.reading.blocks import BLOCK_BYTES, Piece, Start, in_task, line_pieces
from neardup.reading.cleaning import Cleaning, whole
from neardup.reading.compressed import (
    CONVERT,
    INPUTS,
    LINES,
    ROWS,
    check_names,
    kind_by_name,
    refuse_no_lines,
    table_kind,
)
from neardup.reading.dialects import AS_USUAL, Dialect
from neardup.reading.field_values import Values, with_ranks, with_values
from neardup.reading.fingerprint_lines import (
    FINGERPRINTS,
    fingerprint_lines,
    fingerprint_parser,
    of_row,
)
from neardup.reading.input_check import Parser
from neardup.reading.looks import seen
from neardup.reading.missing_fields import checked, options_for
from neardup.reading.separated_rows import header_of, rows_of, separated_pieces
from neardup.reading.shingle_lines import parse_shingle_lines, parse_weighted_lines
from neardup.reading.shingling import Shingler
from neardup.reading.table_files import TABLES, check_pyarrow, opened_typed
from neardup.reading.table_rows import first_rows, typed_pieces
from neardup.reading.text_rows import (
    DEFAULT_ID,
    Fields,
    Record,
    row_records,
    text_lines,
    text_parser,
    unstripped,
)
from neardup.runtime.program import NUMBER_ROWS, StageError, UsageError, not_one_of, to_add
from neardup.runtime.summary import DOCUMENTS
from neardup.sets.bit_vectors import DEFAULT_BITS
from neardup.sets.ragged import Ragged
from neardup.sets.weighted_sets import bagged, counted

DEFAULT_INPUT, DEFAULT_SHINGLE, BAG = "shingles", "word:3", "bag"
PROBED = ("The 1 a\u0301\ufb01 \u0640b\u200bc\ufe0f, is", "<p>東\xad京</p> Ａ…")


def _fields(
    kind: str | None,
    id_: str | None,
    text: str | None,
    fingerprint: str | None,
    ranked: tuple[str, ...],
    values: Values | None,
) -> Fields | None:
    """Return the fields of rows, or None for lines; UsageError if an option needs rows."""
    rows = " or ".join(ROWS)
    if fingerprint is not None and (text is not None or kind in LINES):
        other = f"--input is {kind}" if kind in LINES else "--text names a field, too"
        raise UsageError(f"--fingerprint needs --input {rows} without --text, but {other}")
    if kind not in LINES:
        content = text if fingerprint is None else fingerprint
        valued = (values.flag, values.field) if values else ()
        return Fields.of(id_, content, fingerprint is not None, ranked, valued)
    if ranked:
        raise UsageError(
            f"--keep by the field {ranked[0]} needs --input {rows}, but --input is {kind}"
        )
    if values and (values.field != DEFAULT_ID or not values.pattern):
        raise UsageError(
            f"{values.flag} {values.field} needs --input {rows}: {kind} have no fields; "
            f"for a part of the id, such as what is before a slash: {values.flag} 'id:^([^/]*)/'"
        )
    if id_ is not None or text is not None:
        flag = "--text" if id_ is None else "--id"
        raise UsageError(f"{flag} needs --input {rows}, but --input is {kind}")
    return None


def refuse_other(path: str, name: str, kind: str) -> None:
    """Raise StageError for a typed table read as something else, or the reverse, with advice."""
    with open(path, "rb") as file:
        start = file.read(BLOCK_BYTES)
    table = table_kind(start)
    if not table and kind in TABLES:
        refuse_no_lines(start, name, packed=False)
        other = seen(start.rpartition(b"\n")[0], kind)
        if other.options:
            what = f"is not {TABLES[kind].file}, or damaged"
            raise StageError(f"{name}: {what}; it {other.message()}")
    elif table != kind and table:
        check_pyarrow(table)
        with opened_typed(table, path, name) as file:
            rows = [row for row in first_rows(file, Fields.of(None, None)) if isinstance(row, dict)]
        options = options_for(rows, ["--input", table])
        advice = f"; {to_add(*options)}" if options else ", but no column has a text"
        raise StageError(f"{name}: is {TABLES[table].file}{advice}")


def _parse_rows(parse: Callable[[Any], Any], columns: dict[str, int], block: Any) -> Any:
    """Parse rows of TSV without a header, or the lines that a task has read instead of them."""
    return parse(rows_of("tsv", columns, 0, block) if isinstance(block, bytes) else block)


class InputFormat(NamedTuple):
    """The options that describe the input.

    >>> InputFormat.of("text", "char:5", None).key_options()
    {'--input': 'text', '--clean': '', '--shingle': 'char:5'}
    """

    input: str | None  # format of all files; None if it depends on the name of each
    shingle: Shingler | None  # of text
    clean: Cleaning
    bag: bool  # repeats are shingles of their own
    fields: Fields | None = None  # of rows
    bits: int = 0  # of fingerprints; 0 for other records
    dialect: Dialect = AS_USUAL  # of files of text
    values: Values | None = None  # of --within or --across

    @classmethod
    def of(
        cls,
        input_: str | None,
        shingle: str | None,
        clean: str | None,
        id_: str | None = None,
        text: str | None = None,
        names: Sequence[str] = (),
        fingerprint: str | None = None,
        bits: int = DEFAULT_BITS,
        ranked: tuple[str, ...] = (),
        delimiter: str | None = None,
        encoding: str | None = None,
        quote: str | None = None,
        escape: str | None = None,
        values: Values | None = None,
    ) -> InputFormat:
        """Make the format from options; without `input_`, the kind is inferred from file names."""
        if input_ in ("files", "documents"):
            raise UsageError(f"--input {input_}: {DOCUMENTS.format('FOLDER')}")
        if input_ is not None and input_ not in INPUTS:
            raise UsageError(f"--input: {not_one_of(input_, INPUTS)}")
        if names:
            check_names(input_, names)
        kinds = {kind_by_name(name) or DEFAULT_INPUT for name in names} or {DEFAULT_INPUT}
        kind = input_ or (next(iter(kinds)) if len(kinds) == 1 else None)
        for table in TABLES.keys() & {kind, *kinds}:
            check_pyarrow(table)
        dialect = Dialect.of(delimiter, encoding, {kind} if kind else kinds, quote, escape)
        fields = _fields(kind, id_, text, fingerprint, ranked, values)
        if kind == FINGERPRINTS or fingerprint is not None:
            for flag, value in (("--clean", clean), ("--shingle", shingle)):
                if value is not None:
                    raise UsageError(f"{flag} needs texts, but the records are fingerprints")
            return cls(kind, None, Cleaning(), False, fields, bits, dialect, values)
        if kind == "shingles":
            if clean is not None:
                raise UsageError("--clean needs texts, but --input is shingles")
            if shingle not in (None, BAG):
                raise UsageError(
                    f"--shingle {shingle} needs texts, but --input is shingles, which allows only "
                    f"--shingle {BAG}"
                )
            return cls(kind, None, Cleaning(), bag=shingle == BAG, dialect=dialect, values=values)
        flag = "--shingle"
        try:
            shingler = Shingler.parse(DEFAULT_SHINGLE if shingle is None else shingle)
            flag = "--clean"
            cleaning = Cleaning() if clean is None else Cleaning.parse(clean)
        except ValueError as error:
            raise UsageError(f"{flag}: {error}") from None
        return cls(kind, shingler, cleaning, shingler.bag, fields, dialect=dialect, values=values)

    def kind_of(self, name: str) -> str:
        return self.input or kind_by_name(name) or DEFAULT_INPUT

    @property
    def has_header(self) -> bool:
        """True if the first row of a CSV or TSV names the columns."""
        return self.fields is not None and not self.fields.numbered

    def columns(self, path: str, name: str) -> Sequence[Any]:
        """Return the names of a table's columns, or the fields of an Arrow schema; [] for lines."""
        kind = self.kind_of(name)
        if kind in TABLES:
            with opened_typed(kind, path, name) as file:
                return [*file.schema]
        return header_of(kind, path, name, self.dialect) if kind in ("csv", "tsv") else []

    def is_of_lines(self, name: str) -> bool:
        """Return whether a file is read as lines, rather than as rows of a table."""
        return self.kind_of(name) in (*LINES, "jsonl")

    def pieces(self, path: str, name: str, max_line: int, start: Start) -> Iterator[Piece]:
        """Yield pieces of consecutive lines or rows of a file.

        StageError if a table, or the start of the first file of JSON lines, lacks the fields.
        """
        kind = self.kind_of(name)
        if name != "-" and start.of_file and not in_task() and os.path.isfile(path):
            refuse_other(path, name, kind)
        if kind in TABLES and self.fields:
            return typed_pieces(kind, self.fields, path, name, max_line, start)
        if kind in ("csv", "tsv") and self.fields:
            return separated_pieces(kind, self.fields, path, name, max_line, start, self.dialect)
        pieces = line_pieces(path, name, max_line, start, self.dialect)
        if kind == "jsonl" and self.fields:
            shown, checks = start.place[: -len(": ")] or name, start.of_file and not start.later
            return checked(pieces, self.fields, shown, in_task(), checks)
        assert kind in LINES, f"{kind}: cannot be read as lines"
        return pieces

    def pieces_of_any(self, path: str, name: str, max_line: int, start: Start) -> Iterator[Piece]:
        """Yield pieces as `pieces` does, but do not check that JSON lines have the fields."""
        return self.pieces(path, name, max_line, start._replace(later=True))

    def parser(self, repeats: bool = False, own: bool = False) -> Parser:
        """Return the function that parses a block into a batch of records and its bad lines.

        repeats: a token's weight is how often a record has it; own: the weight on the line.
        """
        if self.bag and (repeats or own):
            raise UsageError(
                "--shingle: a bag counts repeats as different tokens, so they have no weights; "
                "leave out bag, or --weights"
            )
        gather = counted if repeats else Ragged.from_unsorted
        of_lists = bagged if self.bag else gather
        parse: Parser = (
            parse_weighted_lines if own else partial(parse_shingle_lines, gather=of_lists)
        )
        if self.bits:
            parse = fingerprint_parser(self._records(needs_id=in_task()), self.bits)
        elif self.shingle is not None:
            if own:
                raise UsageError(f"--weights own needs --input shingles, but --input is {self}")
            records = self._records(needs_id=in_task())
            parse = text_parser(records, self.shingle, self.clean, gather, of_lists)
        if self.fields and self.fields.ranked:
            parse = with_ranks(parse, self.fields)
        if self.values:
            parse = with_values(parse, self.values, self.fields, self.sets_apart)
        return self.of_task(parse)

    def of_task(self, parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function of rows that also takes the lines of a task; see `_parse_rows`."""
        if self.input == "tsv" and self.fields and self.fields.numbered:
            return partial(_parse_rows, parse, self.fields.places(()))
        return parse

    @property
    def sets_apart(self) -> bool:
        """True if sets with different values of --within have no tokens in common."""
        values = self.values
        return values is not None and values.equal and not (self.bits or values.in_ids)

    @property
    def pairs_by_value(self) -> bool:
        """True if values decide on pairs of records: --across, or --within of sets together."""
        return self.values is not None and not self.sets_apart

    def _records(self, needs_id: bool = False) -> Callable[[Any], Iterator[Record]]:
        if not self.fields:
            return fingerprint_lines if self.bits else text_lines
        content_of = partial(of_row, bits=self.bits) if self.bits else None
        return partial(row_records, fields=self.fields, needs_id=needs_id, content_of=content_of)

    def texts(self, block: Any, as_they_are: bool = False) -> Iterator[Record]:
        """Yield the records of a block as texts; shingles and fingerprints are separated by blanks.

        Lines of shingles are not checked.  as_they_are: those of fields keep the blanks around them
        """
        if self.shingle is not None or self.bits:
            records = self._records()
            if as_they_are and self.fields:
                records = partial(row_records, fields=self.fields, content_of=unstripped)
            for record in records(block):
                content = record.content
                if not record.flaw:
                    if not isinstance(content, str):
                        words = (w.decode() if isinstance(w, bytes) else str(w) for w in content)
                        content = " ".join(words)
                    yield record._replace(content=whole(content))
        else:
            for number, record in enumerate(block.splitlines()):
                id_, *shingles = record.strip().split(None, 1) or [b""]
                if shingles:
                    yield Record(number, id_, shingles[0].decode("utf-8", "backslashreplace"))

    def check_task(self) -> None:
        """Raise UsageError if tasks, which read parts of files, cannot read this format."""
        if self.input is None:
            raise UsageError(
                "files of several kinds; name one kind with --input, or run each kind separately"
            )
        if self.dialect.encoding:
            raise UsageError(
                f"--encoding {self.dialect.encoding}: tasks split a file, and read UTF-8 only; "
                f"convert it: {CONVERT}"
            )
        if self.input in ("csv", *TABLES):
            raise UsageError(
                f"--input {self.input}: tasks split a file at line ends, which may cut its rows; "
                f"convert it: {CONVERT}"
            )
        if self.fields and not self.fields.id:
            raise UsageError(
                "--id '': a task reads some lines of a file, and cannot number rows; type: "
                + NUMBER_ROWS
            )
        if self.input == "tsv" and self.has_header:
            raise UsageError(
                "--input tsv: a task cannot see the names of the columns; name them by number, "
                f"such as --id 1 --text 2, or convert: {CONVERT}"
            )

    def key_options(self) -> dict[str, str]:
        """Return the options, by flag, that affect the keys of records."""
        shingle, kind = BAG if self.bag else "", FINGERPRINTS if self.bits else "shingles"
        return {
            "--input": kind if self.shingle is None else "text",
            "--clean": ",".join(self.clean.names),
            "--shingle": shingle if self.shingle is None else str(self.shingle),
        }

    def making(self) -> str:
        """Return the options on which shingles depend, and `probe`, for a file and for messages."""
        words = [f"{flag}={value}" for flag, value in self.key_options().items()]
        return " ".join([*words, self.probe()]).rstrip()

    def probe(self) -> str:
        """Return 16 hex digits that change if texts get other shingles; "" for sets."""
        if self.shingle is None:
            return ""
        shingles, _ = self.shingle.many(list(map(self.clean, PROBED)))
        return blake2b(shingles.tobytes(), digest_size=8).hexdigest()

    def __str__(self) -> str:
        return self.input or "of several kinds"
