"""A file in another format than the named one is refused with a command that was tried on it."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.looks import seen
from tests.support.engines import INLINE, MAPPER, NEARDUP, RUN_LOCAL, Result, run, succeed

TEXT = "the cat sat on the mat, {} times"
PAIR = b"a\tb\t1.000000\n"


def rows(id_: str, text: str, n: int = 3) -> list[dict[str, Any]]:
    same = TEXT.format(7)
    texts = [same, same, *(TEXT.format(i) + f" or {i}" * 5 for i in range(n))]
    return [{id_: "abcdefghij"[i], "lang": "en", text: each} for i, each in enumerate(texts)]


def json_lines(some: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in some).encode()


def table(some: list[dict[str, Any]], comma: str) -> bytes:
    quoted = [[f'"{value}"' for value in row.values()] for row in some]
    return "".join(comma.join(row) + "\n" for row in [some[0].keys(), *quoted]).encode()


USUAL, OTHER = rows("id", "text"), rows("key", "body")
FORMS = {
    "json lines": json_lines(USUAL),
    "other json lines": json_lines(OTHER),
    "csv": table(USUAL, ","),
    "other csv": table(OTHER, ","),
    "semicolons": table(OTHER, ";"),
    "tabs": table(OTHER, "\t"),
}
WRONG = [
    *((form, "--input=text", "a.txt") for form in ("json lines", "other json lines", "csv")),
    *((form, "--input=text", "a b.txt") for form in ("other csv", "semicolons")),
    *((form, "", "a.txt") for form in ("json lines", "other json lines", "other csv")),
    *((form, "", "a.csv") for form in ("json lines", "other json lines", "semicolons", "tabs")),
    *((form, "", "a.tsv") for form in ("json lines", "csv", "other csv", "semicolons")),
    *((form, "", "a.jsonl") for form in ("csv", "other csv", "semicolons", "tabs")),
    *((form, "", "a.parquet") for form in ("json lines", "other csv", "semicolons")),
    *((form, "--input=fingerprints", "a.txt") for form in ("other json lines", "csv")),
]


def typed(told: Result, folder: Path) -> bytes:
    """Return what the command in a message prints; run it as a user would, from the folder."""
    line = re.search("type: (.*)$", told.err, re.MULTILINE)[1]  # type: ignore[index]
    line = line.replace("./run_local.sh", str(RUN_LOCAL[0]))
    return run(["bash", "-c", line], folder, cwd=folder).out


@pytest.mark.first_case
@pytest.mark.parametrize(("form", "flag", "name"), WRONG)
def test_the_command_in_the_message_reads_the_file(
    form: str, flag: str, name: str, tmp_path: Path
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(FORMS[form])
    told = run([*RUN_LOCAL, *filter(None, [flag]), name], tmp_path, cwd=tmp_path)
    assert (told.code, told.out) == (1, b""), told.err
    assert typed(told, tmp_path) == PAIR, told.err


@pytest.mark.parametrize("program", [MAPPER, INLINE, [*NEARDUP, "truth"]])
def test_json_lines_are_no_texts_on_any_engine(program: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(FORMS["other json lines"])
    told = run([*program, "--input=text", path], tmp_path)
    assert told.code == 1
    assert "not lines of text: it looks like JSON lines; type: " in told.err
    assert "--input jsonl --text body --id key" in told.err


@pytest.mark.parametrize(
    "text",
    [
        b"{ open the door\n{ close the door\n",
        b"{id} is a name\n{name} is an id\n",
        b'a\t{"id": 1, "text": "x"}\nb\t{"id": 2, "text": "y"}\n',
        b"Hello, world and all\nGood, bye and more\n",
        b"a,b is it\nc,d is not\n",
        b"id\tto be, or not\n1\tto be, or not\n",
        b"[1] first note\n[2] second note\n",
        b'"quoted" words here\n"other" words there\n',
    ],
)
def test_texts_that_begin_like_something_else_are_read(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    told = succeed([*RUN_LOCAL, "--input=text", path], tmp_path)
    assert told.count("bad lines") == 0


@pytest.mark.parametrize(
    ("text", "like", "options"),
    [
        (b"a 1 2 3\nb 1 2 3\n", "shingle lines", "--input shingles"),
        (b"a " + b"0f" * 32 + b"\nb " + b"0e" * 32 + b"\n", "fingerprints of 256 bits", "256"),
        (b"id\tlang\ttext\n1\ten\tto be or\n2\ten\tto be or\n", "a table", "--input tsv"),
    ],
)
def test_what_may_be_texts_is_read_with_a_warning(
    text: bytes, like: str, options: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    told = succeed([*RUN_LOCAL, "--input=text", path], tmp_path)
    assert f"Are these lines of text: it looks like {like}" in told.err
    assert options in told.err


def test_where_nothing_reads_it_no_command_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b'{"id": 1, "n": 7}\n{"id": 2, "n": 7}\n')
    for flags in (["--input=text"], []):
        told = run([*RUN_LOCAL, *flags, path], tmp_path)
        assert told.code == 1
        assert "JSON lines, in which no field has a text" in told.err
        assert "type: " not in told.err


def test_lines_of_text_named_jsonl_are_read_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"a\tto be or not\nb\tto be or not\n")
    told = run([*RUN_LOCAL, "a.jsonl"], tmp_path, cwd=tmp_path)
    assert "type: ./run_local.sh --input text - < a.jsonl" in told.err
    assert typed(told, tmp_path) == PAIR


def test_with_max_bad_1_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(FORMS["json lines"])
    succeed([*RUN_LOCAL, "--input=text", "--max-bad=1", path], tmp_path)


def test_a_few_broken_lines_do_not_hide_json() -> None:
    good = FORMS["json lines"] * 3
    assert seen(good + b'{"cut\n', "text").like == "JSON lines"
    assert seen(b"a text\n" + good, "text").like == ""
    assert seen(b"", "text").like == seen(b"\n", "csv").like == ""


@pytest.mark.parametrize("form", ["other json lines", "csv"])
def test_a_file_packed_under_another_name_is_unpacked_and_tried(form: str, tmp_path: Path) -> None:
    (tmp_path / "in it").write_bytes(gzip.compress(FORMS[form]))
    for flags in ([], ["--input=text"]):
        told = run([*RUN_LOCAL, *flags, "in it"], tmp_path, cwd=tmp_path)
        assert "in it: is compressed with gzip; type: gzip -dc " in told.err
        assert typed(told, tmp_path) == PAIR, told.err


def test_an_archive_that_is_packed_has_no_command(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(gzip.compress(bytes(1024)))
    told = run([*RUN_LOCAL, "a.bin"], tmp_path, cwd=tmp_path)
    assert told.err == "run_local.sh: a.bin: is compressed with gzip, with no text in it\n"


def test_parquet_under_another_name_is_read_with_its_fields(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in "a.jsonl", "a.csv", "a b.txt":
        parquet.write_table(arrow.Table.from_pylist(OTHER), tmp_path / name)
        told = run([*RUN_LOCAL, name], tmp_path, cwd=tmp_path)
        assert "is a Parquet file; type: " in told.err
        assert typed(told, tmp_path) == PAIR, told.err
    parquet.write_table(arrow.Table.from_pylist([{"n": 7}]), tmp_path / "n.txt")
    told = run([*RUN_LOCAL, "n.txt"], tmp_path, cwd=tmp_path)
    assert told.err.endswith("n.txt: is a Parquet file, but no column has a text\n")
