"""--delimiter and --encoding apply to the input, and kept records have their original bytes."""

from __future__ import annotations

import codecs
import csv
import io
import json
from pathlib import Path

import pytest

from tests.support.cases import in_turn
from tests.support.engines import INLINE, MAPPER, NEARDUP, RUN_LOCAL, a_file, refuse, run, succeed

TEXTS = ['to be, or; not|to\tbe "x"\r\nthat is: ', "caf\u00e9 au lait", "x"]
ROWS = [("a", TEXTS[0]), ("b", TEXTS[0]), ("c", TEXTS[1]), ("d", TEXTS[2]), ("e", TEXTS[1])]
KEPT = [ROWS[0], ROWS[2], ROWS[3]]
DELIMITERS = {";": ";", "|": "|", "\\t": "\t", " ": " ", ":": ":", ",": ","}


def table(rows: list[tuple[str, str]], delimiter: str, end: str = "\r\n") -> str:
    """Return a table as Python's csv module writes it."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerows([("id", "text"), *rows])
    return text.getvalue()


@pytest.mark.first_case
@in_turn(1, delimiter=list(DELIMITERS), end=["\r\n", "\n"], jobs=["1", "2"])
def test_a_delimiter(delimiter: str, end: str, jobs: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.csv", table(ROWS, DELIMITERS[delimiter], end).encode())
    words = [*RUN_LOCAL, "--delimiter", delimiter, "--jobs", jobs, path]
    assert succeed(words, tmp_path).out == b"a\tb\t1.000000\nc\te\t1.000000\n"
    kept = succeed([*words, "--output=kept"], tmp_path).out
    assert kept == table(KEPT, DELIMITERS[delimiter], end).encode()
    rows = succeed([*NEARDUP, "convert", "--delimiter", delimiter, path], tmp_path).out
    assert [tuple(json.loads(line).values()) for line in rows.splitlines()] == ROWS


@pytest.mark.parametrize(("row_end", "escaped"), [("\n", "\\\r"), ("\r\n", "\\\r\n")])
def test_a_row_that_ends_in_an_escaped_line_end(row_end: str, escaped: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    a, b, c = (f"{id_},to\\, or not{escaped}{row_end}" for id_ in "abc")
    other = f"d,other{row_end}"
    path.write_bytes(f"id,text{row_end}{a}{b}{other}{c}".encode())
    words = [*RUN_LOCAL, "--escape=\\", path]
    pairs = "a\tb\t1.000000\na\tc\t1.000000\nb\tc\t1.000000\n"
    assert succeed(words, tmp_path).out == pairs.encode()
    kept = succeed([*words, "--output=kept"], tmp_path).out
    assert kept == f"id,text{row_end}{a}{other}".encode()


@pytest.mark.slow
def test_quotes_that_are_not_at_ends_of_fields(tmp_path: Path) -> None:
    """Quotes inside fields are read as the csv module reads them, and kept rows are unchanged."""
    path = tmp_path / "a.csv"
    data = b'id;text\na;5" by, 6\nb;"5"" by,\n6"\nc;5" by, 6\n'
    path.write_bytes(data)
    words = [*RUN_LOCAL, "--delimiter=;", path]
    assert succeed(words, tmp_path).out == b"a\tb\t1.000000\na\tc\t1.000000\nb\tc\t1.000000\n"
    assert succeed([*words, "--output=kept"], tmp_path).out == data[: data.index(b"b;")]


def test_another_delimiter_is_suggested(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for shown, delimiter in {";": ";", "\\t": "\t", "|": "|"}.items():
        path.write_bytes(table(ROWS, delimiter).encode())
        result = run([*RUN_LOCAL, "a.csv"], tmp_path, cwd=tmp_path)
        assert result.code == 1
        assert f"add: --delimiter '{shown}'\n" in result.err


# Encodings.

MARKED = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
NAMED = ["latin-1", "cp1252", "mac-roman", "gb18030", "cp037"]
NAMED += ["utf-16-le", "utf-16-be", "utf-32-be"]
KINDS = ["a.csv", "a.tsv", "a.jsonl", "a.txt"]


def in_kind(name: str, rows: list[tuple[str, str]]) -> str:
    if name == "a.csv":
        return table(rows, ",")
    if name == "a.tsv":
        return "id\ttext\n" + "".join(f"{id_}\t{json.dumps(text)[1:-1]}\n" for id_, text in rows)
    if name == "a.txt":
        return "".join(f"{id_}\t{json.dumps(text, ensure_ascii=False)}\n" for id_, text in rows)
    lines = (json.dumps({"id": i, "text": text}, ensure_ascii=False) for i, text in rows)
    return "".join(line + "\n" for line in lines)


@pytest.mark.first_case
@in_turn(1, kind=KINDS, encoding=[*(f"{name} mark" for name in MARKED), *NAMED])
def test_an_encoding(kind: str, encoding: str, tmp_path: Path) -> None:
    encoding, marked = encoding.removesuffix(" mark"), encoding.endswith(" mark")
    mark = MARKED[encoding] if marked else b""
    path = a_file(tmp_path / kind, mark + in_kind(kind, ROWS).encode(encoding))
    words = [*RUN_LOCAL, *(["--input=text"] * (kind == "a.txt")), path]
    words += [] if marked else [f"--encoding={encoding}"]
    assert succeed(words, tmp_path).out == b"a\tb\t1.000000\nc\te\t1.000000\n"
    kept = succeed([*words, "--output=kept"], tmp_path).out
    assert kept == mark + in_kind(kind, KEPT).encode(encoding)
    assert succeed([*words, "--output=kept", "-o", tmp_path / "out"], tmp_path).out == b""
    assert (tmp_path / "out").read_bytes() == kept


@pytest.mark.first_case
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_programs(encoding: str, tmp_path: Path) -> None:
    """mapper.py, `convert`, `index` and run_local.sh -o read a `;` table in Latin-1 or UTF-16."""
    path = a_file(tmp_path / "a.csv", table(ROWS, ";").encode(encoding))
    flags = ["--delimiter=;", *(["--encoding=latin-1"] * (encoding == "latin-1"))]
    assert succeed([*MAPPER, *flags, path], tmp_path).out.count(b"\n") > 0
    converted = succeed([*NEARDUP, "convert", *flags, path], tmp_path).out
    assert [tuple(json.loads(line).values()) for line in converted.splitlines()] == ROWS
    answer = tmp_path / "x.jsonl"
    succeed([*RUN_LOCAL, *flags, "--output=kept", "-o", answer, path], tmp_path)
    lines = answer.read_text("utf-8").splitlines()
    assert [tuple(json.loads(line).values()) for line in lines] == KEPT
    index = tmp_path / "index"
    succeed([*NEARDUP, "index", *flags, path, "--to", index], tmp_path)
    new = a_file(tmp_path / "new.csv", f"id,text\nn,{TEXTS[1]}\n")
    found = succeed([*RUN_LOCAL, "--input=csv", "--against", index, new], tmp_path).out
    assert found == b"n\tc\t1.000000\told\nn\te\t1.000000\told\n"


@pytest.mark.slow
def test_many_rows_in_utf_16(tmp_path: Path) -> None:
    """Characters of two and four bytes are read across the ends of blocks."""
    rows = [(f"r{i}", f"\U0001f600 w{i} caf\u00e9 \u4e2d{i}") for i in range(20000)]
    twice = [row for id_, text in rows for row in ((id_, text), (f"{id_}b", text))]
    path = a_file(tmp_path / "a.csv", codecs.BOM_UTF16_BE + table(twice, ",").encode("utf-16-be"))
    words = [*RUN_LOCAL, "--exact", "--threshold=1", "--jobs=2", "--output=kept", path]
    kept = succeed(words, tmp_path).out
    assert kept == codecs.BOM_UTF16_BE + table(rows, ",").encode("utf-16-be")


@pytest.mark.slow
def test_bytes_that_are_not_in_the_encoding(tmp_path: Path) -> None:
    """Lines with bytes outside the encoding are counted as bad and kept unchanged."""
    path = tmp_path / "a.txt"
    lines = [b"a to be\xe9\n", b"b to be\xe9\n", b"c \x81\x8d\n", b"d \xc3\x81\n", b"e to\n"]
    path.write_bytes(b"".join(lines))
    words = [*RUN_LOCAL, "--input=text", "--encoding=cp1252", path]
    result = succeed(words, tmp_path)
    assert result.out == b"a\tb\t1.000000\n"
    assert result.count("bad lines") == 2
    assert f"{path}: line 3: not cp1252: 'c \\x81\\x8d'\n" in result.err
    assert "(2 not cp1252)" in result.err
    assert succeed([*words, "--output=kept"], tmp_path).out == b"".join([lines[0], *lines[2:]])


def test_rows_that_are_not_in_the_encoding(tmp_path: Path) -> None:
    """Rows are read with --encoding, or as UTF-8 in a file with UTF-8's byte order mark."""
    for name, mark in (("a.csv", b""), ("b.csv", codecs.BOM_UTF8)):
        (tmp_path / name).write_bytes(mark + b"id,text\na,caf\xe9 \x81\nb,caf\xc3\xa9\n")
    words = ["--encoding=cp1252", "a.csv", "b.csv"]
    result = run([*RUN_LOCAL, *words], tmp_path, cwd=tmp_path)
    assert 'a.csv: row 1: not cp1252: \'{"id":"a","text":"caf\u00e9 \\x81"}\'\n' in result.err
    assert 'b.csv: row 1: not UTF-8: \'{"id":"a","text":"caf\\xe9 \\x81"}\'\n' in result.err
    words = ["--encoding=cp1252", tmp_path / "a.csv"]
    strict = run([*NEARDUP, "convert", "--strict", *words], tmp_path)
    assert "a.csv: row 1: not cp1252: " in strict.err


@pytest.mark.slow
def test_halves_of_characters_in_utf_16(tmp_path: Path) -> None:
    text = "a to be\nb to be\nc \ud83d x\nd \ufffd x\n".encode("utf-16-le", "surrogatepass")
    path = a_file(tmp_path / "a.txt", codecs.BOM_UTF16_LE + text)
    words = [*RUN_LOCAL, "--input=text", path]
    assert succeed(words, tmp_path).out == b"a\tb\t1.000000\nc\td\t1.000000\n"
    assert (
        "1 text with half a surrogate pair" in succeed([*words, "-o", tmp_path / "x"], tmp_path).err
    )
    kept = succeed([*words, "--output=kept"], tmp_path).out
    assert kept == codecs.BOM_UTF16_LE + "a to be\nc \ud83d x\n".encode(
        "utf-16-le", "surrogatepass"
    )


@pytest.mark.parametrize(
    ("data", "flags", "said"),
    [
        (
            "a to be\nb to be\n".encode("utf-16") + b"x",
            "",
            "is not utf-16-le, or cut short: truncated data; to read the rest, ",
        ),
        *(
            (
                "a to\nb to\n".encode(f"{name}-le"),
                f"--encoding={name}",
                f"has no byte order mark; add: --encoding {name}-le, or …-be",
            )
            for name in ("utf-16", "utf-32")
        ),
    ],
)
def test_wide_characters_that_are_cut_short_or_without_a_mark(
    data: bytes, flags: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    words = [*RUN_LOCAL, "--input=text", *flags.split(), "a.txt"]
    refuse(words, tmp_path, f"a.txt: {said}", code=1, cwd=tmp_path)


@pytest.mark.slow
def test_a_mark_in_the_middle_counts_in_an_id_but_not_in_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    text = "a to be\nb to be\nc to \ufeffbe\n\ufeffd to be\n"
    path.write_bytes(text.encode("utf-16"))
    pairs = succeed([*RUN_LOCAL, "--input=text", path], tmp_path).out
    assert (
        pairs
        == "".join(
            f"{pair}\t1.000000\n"
            for pair in ("a\tb", "a\tc", "a\t\ufeffd", "b\tc", "b\t\ufeffd", "c\t\ufeffd")
        ).encode()
    )
    kept = succeed([*RUN_LOCAL, "--input=text", "--output=kept", path], tmp_path).out
    assert kept == "a to be\n".encode("utf-16")


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16"])
def test_an_empty_file_with_a_mark(mark: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("".encode(mark))
    words = [*RUN_LOCAL, "--input=text", "a.txt"]
    result = run(words, tmp_path, cwd=tmp_path)
    assert (result.code, result.out) == (0, b"")


@pytest.mark.slow
def test_files_in_several_encodings(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("1.csv", "2.csv", "3.csv"))
    one.write_bytes(table(ROWS[:2], ",").encode("utf-16"))
    two.write_bytes(table(ROWS[2:3], ",").encode("latin-1"))
    three.write_bytes(codecs.BOM_UTF8 + table(ROWS[3:], ",").encode())
    words = [*RUN_LOCAL, "--encoding=latin-1", "--output=kept"]
    result = run([*words, one, two], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert "cannot write iso8859-1 and utf-16-le to one file; write a file for each" in result.err
    succeed([*words, "-o", f"{tmp_path}/out/", one, two, three], tmp_path)
    kept = [(tmp_path / "out" / path.name).read_bytes() for path in (one, two, three)]
    assert kept == [
        table(KEPT[:1], ",").encode("utf-16"),
        table(KEPT[1:2], ",").encode("latin-1"),
        codecs.BOM_UTF8 + table(KEPT[2:], ",").encode(),
    ]


def test_one_mark_in_one_answer(tmp_path: Path) -> None:
    for name, rows in (("1.csv", ROWS[:2]), ("2.csv", ROWS[2:])):
        (tmp_path / name).write_bytes(table(rows, ",").encode("utf-16"))
    words = [*RUN_LOCAL, "--output=kept", "1.csv", "2.csv"]
    assert succeed(words, tmp_path, cwd=tmp_path).out == table(KEPT, ",").encode("utf-16")


@pytest.mark.slow
def test_characters_with_two_forms(tmp_path: Path) -> None:
    """Both codes of ≒ in cp932, JIS's and NEC's, are read, but --output=kept is refused."""
    (tmp_path / "a.txt").write_bytes(b"a \x87\x90\nb \x81\xe0\n")
    words = [*RUN_LOCAL, "--input=text", "--encoding=cp932", "a.txt"]
    assert succeed(words, tmp_path, cwd=tmp_path).out == b"a\tb\t1.000000\n"
    result = run([*words, "--output=kept"], tmp_path, cwd=tmp_path)
    assert (result.code, result.out) == (1, b"")
    assert "a.txt: cp932 encodes some characters in several ways" in result.err


def test_tasks_read_utf_8(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.jsonl", in_kind("a.jsonl", ROWS).encode("utf-16"))
    refuse([*INLINE, path], tmp_path, "is text in UTF-16, to write in UTF-8", code=1)


def test_an_encoding_that_is_not_named_is_asked_for(tmp_path: Path) -> None:
    told = {
        "é": "looks like text in cp1252; add: --encoding cp1252",
        "\x81": "is neither UTF-8 nor",
    }
    for letter, advice in told.items():
        rows = f"id,text\na,caf{letter}\nb,th{letter}\n"
        (tmp_path / "a.csv").write_bytes(rows.encode("latin-1"))
        result = run([*RUN_LOCAL, "a.csv"], tmp_path, cwd=tmp_path)
        assert result.code == 1
        assert f"none of 2 lines could be read; a.csv: {advice}" in result.err
        (tmp_path / "a.csv").write_bytes((rows + "c,x\nd,y\n").encode("latin-1"))
        assert advice not in run([*RUN_LOCAL, "a.csv"], tmp_path, cwd=tmp_path).err


# Escaped quotes.


def escaped(number: int, end: str) -> list[str]:
    """Return rows of CSV as Spark and MySQL write them; the second half repeats the first."""
    texts = [
        f'{i} says \\"{i * i}, and\\" {end if i % 3 else ""} more ""of it"" \\\\'
        for i in range(number)
    ]
    return [f'{i},"{text}"{end}' for i, text in enumerate(2 * texts)]


@pytest.mark.slow
@in_turn(1, end=["\r\n", "\n"], jobs=["3", "1"])
def test_escaped_quotes(end: str, jobs: str, tmp_path: Path) -> None:
    """Kept rows have their bytes, and are whole in other formats; without --escape it stops."""
    rows = escaped(3000, end)
    path = a_file(tmp_path / "a.csv", f"id,text{end}{''.join(rows)}".encode())
    flags = ["--shingle=word:1", "--threshold=1", "--exact", "--jobs", jobs, "--output=kept"]
    refuse([*NEARDUP, "run", *flags, path], tmp_path, "; add: --escape '\\'; or", code=1)
    flags = ["--escape", "\\", *flags]
    removed = tmp_path / "removed.tsv"
    kept = succeed([*NEARDUP, "run", *flags, "--removed", removed, path], tmp_path).out
    assert kept == f"id,text{end}{''.join(rows[:3000])}".encode()
    gone = dict(line.split("\t")[:2] for line in removed.read_text().splitlines())
    assert gone == {str(i + 3000): str(i) for i in range(3000)}
    for name in ("b.jsonl", "b.parquet"):
        if name == "b.parquet":
            pytest.importorskip("pyarrow")
        succeed([*NEARDUP, "run", *flags, "-o", tmp_path / name, path], tmp_path)
    found = [json.loads(line) for line in (tmp_path / "b.jsonl").read_bytes().splitlines()]
    assert len(found) == 3000
    assert found[4] == {"id": "4", "text": f'4 says "16, and" {end} more "of it" \\'}
    table = succeed([*NEARDUP, "convert", tmp_path / "b.parquet"], tmp_path).out.splitlines()
    assert list(map(json.loads, table)) == found
    rest = succeed([*NEARDUP, "convert", "--escape", "\\", path], tmp_path).out.splitlines()
    assert [json.loads(line) for line in rest[:3000]] == found
    test = a_file(tmp_path / "t.csv", f"id,text{end}{rows[7]}".encode())
    words = [*NEARDUP, "leaks", "--escape", "\\", "--shingle=word:3", "--output=clean", path]
    clean = succeed([*words, "--test", test], tmp_path).out
    assert clean == f"id,text{end}{''.join(rows[:7] + rows[8:3007] + rows[3008:])}".encode()
