"""A file in another format than the named one is refused with a command that was tried on it."""

import gzip
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.compressed import packing
from neardup.reading.looks import seen
from tests.support.engines import (
    INLINE,
    MAPPER,
    NEARDUP,
    RUN_LOCAL,
    Result,
    a_file,
    refuse,
    run,
    succeed,
)

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
    "apostrophes": table(USUAL, ";").replace(b'"', b"'").replace(b" on", b" on; or in"),
}
WRONG = [
    *((form, "--input=text", "a b.txt") for form in ("other json lines", "csv", "semicolons")),
    *((form, "", "a.txt") for form in ("json lines", "other csv")),
    *((form, "", "a.csv") for form in ("other json lines", "semicolons", "tabs")),
    *((form, "", "a.tsv") for form in ("json lines", "other csv")),
    *(("apostrophes", flag, "a.csv") for flag in ("", "--input=jsonl", "--input=text")),
    *((form, "", "a.jsonl") for form in ("csv", "semicolons")),
    *((form, "", name) for form, name in (("other csv", "a.parquet"), ("json lines", "a.arrow"))),
    ("other json lines", "--input=fingerprints", "a.txt"),
]


def options_in(told: Result) -> list[str]:
    """Return the options that a message advises, as a shell splits them."""
    return shlex.split(re.search(r"""add: ((?:[^;'"]|'[^']*'|"[^"]*")*)""", told.err)[1])  # type: ignore[index]


@pytest.mark.first_case
@pytest.mark.parametrize(("form", "flag", "name"), WRONG)
def test_the_options_in_the_message_read_the_file(
    form: str, flag: str, name: str, tmp_path: Path
) -> None:
    if name.endswith(("parquet", "arrow")):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(FORMS[form])
    words = [*RUN_LOCAL, *filter(None, [flag]), name]
    told = refuse(words, tmp_path, code=1, cwd=tmp_path)
    assert succeed([*words, *options_in(told)], tmp_path, cwd=tmp_path).out == PAIR, told.err


@pytest.mark.parametrize("program", [MAPPER, INLINE, [*NEARDUP, "truth"]])
def test_json_lines_are_no_texts_on_any_engine(program: Any, tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.txt", FORMS["other json lines"])
    told = run([*program, "--input=text", path], tmp_path)
    assert told.code == 1
    assert "a.txt: looks like JSON lines; add: " in told.err
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
    path = a_file(tmp_path / "a.txt", text)
    assert succeed([*RUN_LOCAL, "--input=text", path], tmp_path).count("bad lines") == 0


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
    path = a_file(tmp_path / "a.txt", text)
    told = succeed([*RUN_LOCAL, "--input=text", path], tmp_path)
    assert f"a.txt: looks like {like}" in told.err
    assert options in told.err


def test_where_nothing_reads_it_no_command_is_printed(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.txt", b'{"id": 1, "n": 7}\n{"id": 2, "n": 7}\n')
    for flags in (["--input=text"], []):
        told = run([*RUN_LOCAL, *flags, path], tmp_path)
        assert told.code == 1
        assert "JSON lines, in which no field has a text" in told.err
        assert "add: " not in told.err


def test_with_max_bad_1_anything_is_read(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.txt", FORMS["json lines"])
    succeed([*RUN_LOCAL, "--input=text", "--max-bad=1", path], tmp_path)


def test_a_few_broken_lines_do_not_hide_json() -> None:
    good = FORMS["json lines"] * 3
    assert seen(good + b'{"cut\n', "text").like == "JSON lines"
    assert seen(b"a text\n" + good, "text").like == ""
    assert seen(b"", "text").like == seen(b"\n", "csv").like == ""


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("name", ["in it", "-"])
def test_a_file_packed_under_another_name_is_read(name: str, suffix: str, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with packing(packed, suffix) as file:
        file.write(FORMS["json lines"])
    (tmp_path / "in it").write_bytes(packed.getvalue())
    words = [*RUN_LOCAL, "--input=jsonl", name]
    assert succeed(words, tmp_path, packed.getvalue(), cwd=tmp_path).out == PAIR
    told = run(words[:-2] + [name], tmp_path, packed.getvalue(), cwd=tmp_path)
    assert options_in(told) == ["--input", "jsonl"]


def test_binary_data_has_no_options(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(gzip.compress(bytes(1024)))
    told = run([*RUN_LOCAL, "a.bin"], tmp_path, cwd=tmp_path)
    assert told.err.endswith("run_local.sh: a.bin: looks like binary data\n")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "cp1252"])
def test_another_encoding_is_found(encoding: str, tmp_path: Path) -> None:
    text = "".join(f"{row['id']}\tle café, {row['text']}\n" for row in USUAL)
    (tmp_path / "a b").write_bytes(text.encode(encoding))
    for flags in ([], ["--input=text"]):
        words = [*RUN_LOCAL, *flags, "a b"]
        told = run(words, tmp_path, cwd=tmp_path)
        assert f"a b: looks like text in {encoding}; add: " in told.err
        assert succeed([*words, *options_in(told)], tmp_path, cwd=tmp_path).out == PAIR


@pytest.mark.parametrize(
    ("data", "like", "options"),
    [
        (b"1,to be or not\n2,to be and so on\n", "a table without", "--input csv --id 1 --text 2"),
        (b"The Text,User-Id\nto be or not to be,1\nto be and so on,2\n", "The Text User-Id",
         "--input csv --text 'The Text' --id User-Id"),
        (b"a\tone\nb\ttwo\n", "text", "--input text"),
        (b"id\ttext\na\tone\nb\ttwo\n", "the columns id text", "--input tsv"),
        (b"id;text\n1;'a; b'\n2;'c; d'\n", "the columns id text",
         "--input csv --delimiter ';' --quote ''\"'\"''"),
        (b"a 'x', it's 'y'\nb 'q', it's 'w'\n", "text without ids", "--input text"),
        (b'{"tokens": [1, 2]}\n', "JSON lines", "--input jsonl --text tokens"),
        (b"0ad\tgame, of war\n", "text", "--input text"),
        (b"a 1 2:0.5 3\n", "shingles with weights", "--weights own"),
        (b"It was a sunny day, and all was well.\n", "text without ids", "--input text"),
        (b"a,1, 2,3\n", "shingles between commas", ""),
        (b'[\n {"id": 1,\n "text": "to be"}\n]\n', "JSON, but not one object a line", ""),
        (b"\x7fELF \x02 words\n", "", ""),
        (b"lonely\n", "", ""),
        *(
            (b"a %0*xF\n" % (bits // 4 - 1, bits), f"fingerprints of {bits} bits",
             f"--input fingerprints --bits {bits}")
            for bits in (64, 128, 256, 512, 1024)
        ),
    ],
)  # fmt: skip
def test_what_lines_look_like(data: bytes, like: str, options: str) -> None:
    look = seen(data, "shingles")
    assert like in look.like
    assert bool(like) == bool(look.like)
    assert shlex.join(look.options or []) == options


def test_tasks_are_told_to_convert_what_they_refuse(tmp_path: Path) -> None:
    """mapper.py refuses --input csv, so the advice is the command that makes JSON lines."""
    (tmp_path / "a b.csv").write_bytes(FORMS["other csv"])
    told = run([*MAPPER, "--input=text", "-"], tmp_path, FORMS["other csv"])
    line = "type: python3 -m neardup convert --input csv --text body --id key FILE… > records.jsonl"
    assert line in told.err
    words = shlex.split(line)[4:-3]
    made = succeed([*NEARDUP, *words, "a b.csv"], tmp_path, cwd=tmp_path).out
    assert made.count(b"body") == len(OTHER)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_table_under_another_name_is_read_with_its_fields(suffix: str, tmp_path: Path) -> None:
    files = pytest.importorskip("tests.support.typed_tables")
    for name in "a.jsonl", "a.csv", "a b.txt":
        files.write_table(files.arrow.Table.from_pylist(OTHER), tmp_path / f"x.{suffix}")
        (tmp_path / f"x.{suffix}").rename(tmp_path / name)
        told = run([*RUN_LOCAL, name], tmp_path, cwd=tmp_path)
        assert re.search(f"is an? {suffix.title()} file; add: ", told.err)
        words = [*RUN_LOCAL, *options_in(told), name]
        assert succeed(words, tmp_path, cwd=tmp_path).out == PAIR, told.err
    files.write_table(files.arrow.Table.from_pylist([{"n": 7}]), tmp_path / f"x.{suffix}")
    told = run([*RUN_LOCAL, "--input=csv", f"x.{suffix}"], tmp_path, cwd=tmp_path)
    assert told.err.endswith(f" {suffix.title()} file, but no column has a text\n")


@pytest.mark.parametrize("words", ["--shingle bag", "--weights own"])
def test_options_that_exclude_the_advice_are_named(words: str, tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(FORMS["other json lines"])
    told = run([*RUN_LOCAL, *words.split(), "a b"], tmp_path, cwd=tmp_path)
    options, without = told.err.rstrip().partition("add: ")[2].split(", without ")
    assert without == words
    found = succeed([*RUN_LOCAL, *shlex.split(options), "a b"], tmp_path, cwd=tmp_path)
    assert found.out == PAIR


def test_convert_looks_at_tables(tmp_path: Path) -> None:
    """`convert` needs no column, but JSON lines are not a table; a table of one column is one."""
    (tmp_path / "a b.csv").write_bytes(FORMS["json lines"])
    told = run([*NEARDUP, "convert", "a b.csv"], tmp_path, cwd=tmp_path)
    assert told.err.endswith("a b.csv: looks like JSON lines; add: --input jsonl\n")
    (tmp_path / "c.csv").write_bytes(b"text\nto be or\nnot to be\n")
    assert succeed([*NEARDUP, "convert", "c.csv"], tmp_path, cwd=tmp_path).out.count(b"\n") == 2
