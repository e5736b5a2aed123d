"""`neardup convert` turns lines of text and rows of tables into JSON lines with the same pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cases import some
from tests.support.corpus_in_forms import CORPUS, FLAGS, FORMS, TEXT, made
from tests.support.engines import (
    INLINE,
    NEARDUP,
    RUN_LOCAL,
    Input,
    a_file,
    in_order,
    mrjob,
    pipe,
    run,
    succeed,
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the pairs of the texts, from a run that reads them as lines of text."""
    tmp = tmp_path_factory.mktemp("pairs")
    found = succeed([*RUN_LOCAL, *FLAGS, "--input=text", "-"], tmp, TEXT).out
    assert found.count(b"\n") > 40
    return found


def converted(path: Path, tmp: Path, *flags: str) -> Path:
    out = a_file(tmp / "converted.jsonl", succeed([*NEARDUP, "convert", *flags, path], tmp).out)
    return out


@pytest.mark.slow
@some("name", list(FORMS), "a.ndjson.gz", "b.csv", "a.tsv", "a.parquet")
def test_a_converted_file_is_the_same(name: str, pairs: bytes, tmp_path: Path) -> None:
    path = converted(made(name, tmp_path), tmp_path)
    data = path.read_bytes()
    rows = [json.loads(line) for line in data.splitlines()]
    assert [(row["id"], row["text"]) for row in rows] == CORPUS
    assert len(rows[0]) == 3  # all columns
    assert succeed([*RUN_LOCAL, *FLAGS, path], tmp_path).out == pairs
    flags = [*FLAGS, "--input=jsonl"]
    given = Input(data, [str(path)])
    assert in_order(pipe(given, flags, tmp_path)) == pairs
    assert in_order(mrjob(INLINE)(given, flags, tmp_path)) == pairs


def test_text_is_converted_too(pairs: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    path = converted(tmp_path / "a.txt", tmp_path, "--input=text")
    assert succeed([*RUN_LOCAL, *FLAGS, path], tmp_path).out == pairs


@pytest.mark.slow
def test_rows_without_ids_get_their_numbers(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.csv", b"n,text\n1,to be or not\nbad\n\n2,to be or not\n3,\n")
    pairs = succeed([*RUN_LOCAL, path], tmp_path).out
    assert pairs == b"1\t4\t1.000000\n"
    result = run([*NEARDUP, "convert", path], tmp_path)
    assert result.code == 0
    assert [json.loads(line) for line in result.out.splitlines()] == [
        {"id": "1", "n": "1", "text": "to be or not"},
        {"id": "4", "n": "2", "text": "to be or not"},
        {"id": "5", "n": "3", "text": ""},
    ]
    assert f"{path}: row 2: another number of fields than the header: 'bad'" in result.err
    (tmp_path / "b.jsonl").write_bytes(result.out)
    assert succeed([*RUN_LOCAL, tmp_path / "b.jsonl"], tmp_path).out == pairs
    given = Input(result.out, [str(tmp_path / "b.jsonl")])
    assert mrjob(INLINE)(given, ["--input=jsonl"], tmp_path) == pairs
    named = run([*NEARDUP, "convert", "--id=key", path], tmp_path)
    assert (named.code, "has no column 'key'; name one with --id" in named.err) == (1, True)
    assert run([*NEARDUP, "convert", "--strict", path], tmp_path).code == 1


def test_a_table_without_names_is_converted(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.csv", b"1,en,a b\n2,en,c d\n")
    done = succeed([*NEARDUP, "convert", "--id=1", "--text=3,2", path], tmp_path)
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"id": "1", "text": "a b\nen"},
        {"id": "2", "text": "c d\nen"},
    ]


def test_what_json_lines_are_converted_to(tmp_path: Path) -> None:
    rows = [
        b'{"id": "\\ud83d", "text": "to \\ud83d be", "n": 1e3}',
        b'{"text": {"id": 7}, "id": 0}',
        b'{"\\u0000flaw": [1], "\\u0000row": 2, "id": "a"}',
    ]
    path = a_file(tmp_path / "a.jsonl", b"\n".join([*rows, b"{}", b"bad", b"[]", b"[", b'"\xff"']))
    result = succeed([*NEARDUP, "convert", path], tmp_path)
    expected = [*map(json.loads, rows), {"id": "a.jsonl:4"}]
    assert list(map(json.loads, result.out.splitlines())) == expected
    assert result.count("bad lines") == 4
    assert "(1 not UTF-8, 3 not a JSON object)" in result.err


def test_numbers_that_json_lacks_are_null(tmp_path: Path) -> None:
    """As they are where Parquet has them; other values of their rows stay."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"id": 1, "n": 1e400, "m": [-1e999, 7, {"a": NaN}], "s": "\\ud83d", "k": 1e3}\n'
    )
    out = succeed([*NEARDUP, "convert", path], tmp_path).out

    def refuse(name: str) -> None:
        raise AssertionError(name)

    (line,) = out.splitlines()
    row = {"id": 1, "n": None, "m": [None, 7, {"a": None}], "s": "\ud83d", "k": 1000.0}
    assert json.loads(line, parse_constant=refuse) == row


def test_deeply_nested_rows(tmp_path: Path) -> None:
    line = b'{"id": 1, "text": "a", "n": %b}\n' % (b"[" * 900 + b"]" * 900)
    (tmp_path / "a.jsonl").write_bytes(line)
    assert succeed([*NEARDUP, "convert", tmp_path / "a.jsonl"], tmp_path).out == line


@pytest.mark.slow
def test_an_id_is_converted_to_what_a_run_takes_it_for(tmp_path: Path) -> None:
    arrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    fixed = arrow.array([b"\xff", b"a"], arrow.binary(1))
    ids = {"float": [1.0, 2.0], "fixed": fixed, "bytes": ["é".encode(), b"a"]}
    files.write_table(arrow.table({**ids, "text": ["to be", "to be"]}), path)
    for name, pair in {"float": b"1.0\t2.0", "fixed": b"61\tff", "bytes": "a\té".encode()}.items():
        flag = f"--id={name}"
        out = converted(path, tmp_path, flag)
        for file in path, out:
            assert succeed([*RUN_LOCAL, flag, file], tmp_path).out == pair + b"\t1.000000\n"


def test_a_bad_line_is_shown_without_its_end(tmp_path: Path) -> None:
    path = a_file(tmp_path / "bad.txt", b"a\r\nb\rc\nd to be\r\n")
    result = run([*NEARDUP, "convert", "--input=text", path], tmp_path)
    assert result.err.splitlines()[:3] == [
        f"convert: {path}: line {number}: no shingles: {shown!r}"
        for number, shown in [(1, "a"), (2, "b"), (3, "c")]
    ]
