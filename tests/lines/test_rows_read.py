"""Answers written as rows are read as the lines of the same answers, byte for byte."""

from pathlib import Path

import pytest

from neardup.engines.local.answer_file import Answer
from neardup.lines.answer_lines import (
    ACROSS,
    ALL_PAIRS,
    DIRECTED_ACROSS,
    INTERVALS,
    PAIRS,
    REMOVED,
    parse_pair,
    parsed_lines,
)
from neardup.media.videos.runs import RUNS
from neardup.reading.table_rows import LineTable
from neardup.runtime.program import StageError

IDS = ["a", "007", '"q", x', "{x}", '{"a":1}', " blanks  ", "%FF", "é", "e\u0301", "\u2028"]
IDS += ["\x0b\x1c\x85", "\\t", "null", "-", "\U0001f600", "'", "a;b", "\ufeff", "\x7f\x01"]
NAMES = ["x.tsv", "x.jsonl", "x.ndjson.gz", "x.csv", "x.csv.xz", "x.parquet", "x.arrow"]
SIMILARITIES = ["1.000000", "0.900000", "0.000001", "0.333333", "0.666667", "0.912345"]
ENDS = {  # of lines, behind two ids
    "pairs": (PAIRS, SIMILARITIES),
    "intervals": (INTERVALS, ["~0.100000..1.000000", "~0.871123..0.953234"]),
    "across": (ACROSS, ["0.900000\tnew", "1.000000\told"]),
    "directed": (DIRECTED_ACROSS, ["0.900000\tnew\tcontains", "0.123456\told\tcontained"]),
    "removed": (REMOVED, [*SIMILARITIES, "-"]),
    "videos": (RUNS, [f"9.5\t61.0-70.5\t0.0-9.9\t0.98\t1.042\t{mirror}" for mirror in (0, 1)]),
}


def lines_of(ends: list[str]) -> list[bytes]:
    pairs = list(zip(IDS, IDS[1:] + IDS[:1]))
    return [f"{a}\t{b}\t{end}\n".encode() for a, b in pairs for end in ends]


def written(path: Path, lines: list[bytes], table: LineTable) -> str:
    if path.suffix in (".parquet", ".arrow"):
        pytest.importorskip("pyarrow")
    with path.open("wb") as file:
        Answer(str(path), table=table, descriptor=file.fileno()).write(lines)
    return str(path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ENDS)
def test_rows_are_read_as_their_lines(kind: str, name: str, tmp_path: Path) -> None:
    table, ends = ENDS[kind]
    lines = lines_of(ends)
    file = written(tmp_path / name, lines, table)
    tables = ALL_PAIRS if table in ALL_PAIRS else (table,)
    found = list(parsed_lines([file, file], bytes, tables))
    assert found == [line[:-1] for line in lines * 2]


@pytest.mark.parametrize("name", NAMES)
def test_no_rows(name: str, tmp_path: Path) -> None:
    assert list(parsed_lines([written(tmp_path / name, [], PAIRS)], bytes, ALL_PAIRS)) == []


@pytest.mark.parametrize("name", ["x", "x.csv", "x.jsonl", "x.ndjson"])
def test_lines_under_any_name(name: str, tmp_path: Path) -> None:
    """Lines with tabs are read from a file of any name; JSON lines need no extension."""
    (tmp_path / name).write_bytes(b"{a}\tb\t0.900000\nc\td\t0.800000\n")
    found = list(parsed_lines([str(tmp_path / name)], parse_pair, ALL_PAIRS))
    assert [pair[:3] for pair in found] == [(b"{a}", b"b", b"0.900000"), (b"c", b"d", b"0.800000")]
    if name == "x":
        (tmp_path / name).write_bytes(b'{"a":"a","b":"b","similarity":0.9}\n')
        found = list(parsed_lines([str(tmp_path / name)], parse_pair, ALL_PAIRS))
        assert found == [(b"a", b"b", b"0.900000", b"")]


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_a_table_without_its_name(name: str, tmp_path: Path) -> None:
    file = Path(written(tmp_path / name, [b"a\tb\t0.900000\n"], PAIRS))
    found = list(parsed_lines([str(file.rename(tmp_path / "x"))], parse_pair, ALL_PAIRS))
    assert found == [(b"a", b"b", b"0.900000", b"")]


def test_rows_that_other_programs_wrote(tmp_path: Path) -> None:
    """Rows rewritten by other programs are read: ids as numbers, extra columns, quoted fields."""
    (tmp_path / "x.csv").write_text('"","similarity","a","b"\r\n"0","0.5","1","x"\r\n')
    (tmp_path / "x.jsonl").write_text('{"b": "x", "a": 1, "similarity": 0.5, "index": 0}')
    files = [str(tmp_path / name) for name in ("x.csv", "x.jsonl")]
    assert list(parsed_lines(files, parse_pair, ALL_PAIRS)) == [(b"1", b"x", b"0.500000", b"")] * 2


GOOD = b'{"a":"a","b":"b","similarity":0.9}\n'
FIELDS = "expected a row with a b similarity, or a b low high, or new other similarity collection"
REFUSED = {
    "x.jsonl": [
        (GOOD + b'{"a":"a","b":"b"}\n', f"line 2: {FIELDS}"),
        (b'{"a":"a","b":\n', 'line 1: not a JSON object: \'{"a":"a","b":\''),
        (GOOD + b'{"a":"a","b":"b","similarity":"x"}\n', f"line 2: {FIELDS}"),
        (b'{"a":"a","b":"b","similarity":NaN}\n', "line 1: expected A B SIMILARITY"),
        (b'{"a":"a","b":"b","similarity":1%s}\n' % (b"0" * 400), f"line 1: {FIELDS}"),
        (b'{"a":"a","b":"b","similarity":1.5}\n', "line 1: expected A B SIMILARITY"),
        (b'{"a":"a","b":"b","similarity":null}\n', "line 1: expected A B SIMILARITY"),
        (b'{"a":null,"b":"b","similarity":0.5}\n', f"line 1: {FIELDS}"),
        (b'{"a":"a\\tx","b":"b","similarity":0.5}\n', "line 1: expected A B SIMILARITY"),
        (b'{"a":"a\\nx","b":"b","similarity":0.5}\n', "line 1: expected A B SIMILARITY"),
        (b'{"a":"\\ud83d","b":"b","similarity":0.5}\n', f"line 1: {FIELDS}"),
        (b'{"id":"a","kept":"b","similarity":0.5}\n', f"line 1: {FIELDS}"),
        (b"\n\noops\n", "line 3: expected A B SIMILARITY"),
    ],
    "x.csv": [
        (b"a,b\nx,y\n", f"row 1: {FIELDS}"),
        (b"a,b,similarity\nx,y,0.5\nx,y\n", "row 2: another number of fields than the header"),
        (b'a,b,similarity\nx,"y,0.5\n', "row 1: quote is not closed"),
        (b"a,b,similarity\nx,y,z\n", f"row 1: {FIELDS}"),
        (b"a,b,similarity\nx,\xff,0.5\n", "row 1: not UTF-8"),
    ],
    "x.parquet": [(b"oops", "is not a Parquet file, or damaged")],
    "x.arrow": [(b"oops", "is not an Arrow file, or damaged")],
}


@pytest.mark.parametrize(
    ("name", "data", "told"), [(name, *case) for name, cases in REFUSED.items() for case in cases]
)
def test_a_wrong_row_is_named(name: str, data: bytes, told: str, tmp_path: Path) -> None:
    if name in ("x.parquet", "x.arrow"):
        pytest.importorskip("pyarrow")
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(StageError) as error:
        list(parsed_lines([str(file)], parse_pair, ALL_PAIRS))
    assert f"{file}: {told}" in str(error.value)
