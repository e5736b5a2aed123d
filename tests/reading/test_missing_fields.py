"""If rows lack the requested fields, the message lists existing fields and a working command."""

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.blocks import BLOCK_BYTES
from tests.support.cases import crossed
from tests.support.engines import INLINE, MAPPER, NEARDUP, RUN_LOCAL, a_file, refuse, run, succeed

WORDS = [f"word{i}" for i in range(40)]
TYPED = re.compile(r"; add: (.*)$", re.MULTILINE)
Rows = list[dict[str, Any]]


def rows(count: int = 40) -> Rows:
    """Return rows of which the last two have the same text."""
    texts = [" ".join(WORDS[i : i + 8]) for i in range(count)]
    texts[-1] = texts[-2]
    return [
        {"lang": "en", "title": f"No. {i}", "uuid": f"u{i}", "body": text, "tags": ["a", "b"]}
        | {"meta": {"year": 2000 + i, "summary": f"in {i} words"}, "n": None, "sizes": [0.5]}
        for i, text in enumerate(texts)
    ]


def written(path: Path, some: Rows) -> Path:
    if path.suffix in (".parquet", ".arrow"):
        files = pytest.importorskip("tests.support.typed_tables")
        files.write_table(files.arrow.Table.from_pylist(some), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in some))
    else:
        with path.open("w", newline="") as file:
            out = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            out.writerows([some[0].keys(), *(row.values() for row in some)])
    return path


def plain(some: Rows) -> Rows:
    return [{name: row[name] for name in ("lang", "uuid", "body")} for row in some]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_a_name_with_a_comma_must_be_renamed(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, [{"id": f"r{i}", "to,be": "a b c", "c": "d"} for i in range(2)])
    told = run([*RUN_LOCAL, "--text=to,be", path], tmp_path)
    assert (told.code, told.out) == (1, b"")
    assert "--text has names between commas; rename 'to,be'" in told.err


@pytest.mark.first_case
@crossed(suffix=[".jsonl", ".csv", ".tsv", ".parquet", ".arrow"], flags=["", "--text=titel"])
def test_the_line_to_type_finds_the_pair(suffix: str, flags: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"rows{suffix}", plain(rows()))
    told = refuse([*RUN_LOCAL, *flags.split(), path], tmp_path, code=1)
    assert told.err.count("\n") == 1, told.err
    assert "it has lang, uuid, body; add: " in told.err
    line = shlex.split(TYPED.search(told.err)[1])
    assert line == ["--text", "body", "--id", "uuid"]
    assert (
        succeed([*RUN_LOCAL, *flags.split(), path, *line], tmp_path).out == b"u38\tu39\t1.000000\n"
    )


@pytest.mark.parametrize(
    ("flags", "says", "types"),
    [
        ("", "has no field 'text'", "--text body --id uuid"),
        ("--text titel", "has no field 'titel'", "--text body --id uuid"),
        ("--text meta", "an object is not a text, in field 'meta'", "--text body"),
        ("--text sizes", "a list of numbers is not a text, in field 'sizes'", "--text body --id"),
        ("--text meta.year", "2000 is not a text, in field 'meta.year'", "--text body"),
        ("--text body --id uid", "has no field 'uid'", "--id uuid"),
    ],
)
def test_what_json_lines_have_is_listed(flags: str, says: str, types: str, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", rows())
    for command in [*NEARDUP, "tune"], [*INLINE], [*MAPPER]:
        told = refuse([*command, *flags.split(), path], tmp_path, says, code=1)
        listed = "lang, title, uuid, body, tags, meta.year, meta.summary, n, sizes;"
        assert f"it has {listed}" in told.err
        assert types in TYPED.search(told.err)[1]


@pytest.mark.parametrize("command", ["index --to X", "sketch --to X", "truth", "convert --id x"])
def test_other_commands_say_so(command: str, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", rows())
    told = run([*NEARDUP, *command.replace("X", str(tmp_path / "to")).split(), path], tmp_path)
    assert told.code == 1
    assert "--id uuid" in TYPED.search(told.err)[1]


@pytest.mark.parametrize("text", ["lang, body", "body,titel", "titel,body", "body,meta.sumary"])
def test_each_of_several_texts_is_in_some_row(text: str, tmp_path: Path) -> None:
    """Otherwise records that differ in a misspelt field would be reported as equal."""
    told = run([*RUN_LOCAL, "--text", text, written(tmp_path / "a.jsonl", rows())], tmp_path)
    wrong = next(name for name in text.split(",") if name not in ("lang", "body"))
    assert (told.code, told.out) == (1, b"")
    assert f"{wrong!r}; name one with --text: it has lang, " in told.err
    assert told.err.rstrip().endswith("; if other files have it, add: --max-bad 1")
    again = [*RUN_LOCAL, "--id=uuid", "--max-bad=1", "--text", text, tmp_path / "a.jsonl"]
    assert succeed(again, tmp_path).out.endswith(b"\t1.000000\n")


@pytest.mark.parametrize("options", ["--text=body,note", "--text=body --keep=max:note"])
def test_a_rare_field_may_be_absent_from_the_start(options: str, tmp_path: Path) -> None:
    late = [{**row, "note": "5"} for row in rows()[-2:]]
    many = [{"uuid": f"v{i}", "body": f"{i} {i + 1} {i + 2} " * 9} for i in range(12_000)]
    path = written(tmp_path / "rows.jsonl", [*many, *late])
    assert path.stat().st_size > BLOCK_BYTES
    line = [*RUN_LOCAL, "--output=removed", "--id=uuid", path]
    told = succeed([*line, *options.split()], tmp_path)
    assert told.out == b"u39\tu38\t1.000000\n"
    told = run([*line, *options.replace("note", "nota").split()], tmp_path)
    assert (told.code, told.out) == (1, b"")
    assert "no row has a field 'nota'; name one with --" in told.err


@pytest.mark.parametrize("empty", [None, [], {}])
def test_one_of_several_texts_may_be_empty(empty: object, tmp_path: Path) -> None:
    none = [{**row, "meta": empty} for row in rows()]
    path = written(tmp_path / "rows.jsonl", none)
    answer = succeed([*RUN_LOCAL, "--id=uuid", "--text=body,n,meta.summary", path], tmp_path)
    assert answer.out == b"u38\tu39\t1.000000\n"


@pytest.mark.slow
def test_where_some_rows_have_the_field_the_others_are_bad_lines(tmp_path: Path) -> None:
    some: Rows = [{"body": "x"}, *({"text": f"{row['body']}"} for row in rows()), {"text": None}]
    told = succeed([*RUN_LOCAL, written(tmp_path / "rows.jsonl", some)], tmp_path)
    assert told.count("bad lines") == 2
    some = [{"text": None}] * 2 + [{"body": "x"}]
    told = run([*RUN_LOCAL, written(tmp_path / "rows.jsonl", some)], tmp_path)
    assert "none of 3 lines could be read" in told.err


def test_rows_without_an_id_are_numbered_where_a_task_needs_one(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [{"text": row["body"]} for row in rows()])
    assert succeed([*RUN_LOCAL, path], tmp_path).out == b"39\t40\t1.000000\n"
    told = run([*RUN_LOCAL, "--id", "key", path], tmp_path)
    assert "has no field 'key'" in told.err
    assert "to number the rows, add: --id '' " in told.err


@pytest.mark.slow
def test_files_without_the_field_are_bad_lines_behind_others(tmp_path: Path) -> None:
    good = written(tmp_path / "good.jsonl", [{"text": row["body"]} for row in rows()])
    other = written(tmp_path / "other.jsonl", [{"body": "x"}] * 3)
    assert succeed([*RUN_LOCAL, good, other], tmp_path).count("bad lines") == 3
    late = a_file(tmp_path / "late.jsonl", b'{"deleted": true}\n' * 30_000 + good.read_bytes())
    assert "has no field 'text'" in run([*RUN_LOCAL, late], tmp_path).err
    assert succeed([*RUN_LOCAL, "--max-bad=1", late], tmp_path).count("bad lines") == 30_000


def test_a_first_line_that_is_too_long_does_not_hide_that_the_field_is_missing(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "rows.jsonl", rows())
    path.write_bytes(b'{"text": "%b"}\n' % (b"x" * (1 << 20)) + path.read_bytes())
    assert "has no field 'text'" in run([*RUN_LOCAL, "--max-line=1", path], tmp_path).err


def test_a_task_reads_rows_without_the_field_where_most_may_be_bad(tmp_path: Path) -> None:
    bad = b'{"id": "d%d", "deleted": true}\n'
    good = b'{"id": "%b", "text": "one two three four"}\n'
    rows_ = b"".join([*map(bad.__mod__, range(20_000)), good % b"a", good % b"b"])
    listed = a_file(tmp_path / "input_files", b"new\trows.jsonl\n")
    task = {
        "mapreduce_task_attempt_id": "attempt_1_0001_m_000000_0",
        "mapreduce_map_input_file": "rows.jsonl",
        "mapreduce_map_input_start": "0",
        "mapreduce_map_input_length": str(len(rows_)),
    }
    flags = ["--input=jsonl", "--output=removed", "--input-files", listed]
    assert "has no field 'text'" in run([*MAPPER, *flags], tmp_path, rows_, **task).err
    told = succeed([*MAPPER, *flags, "--max-bad=1"], tmp_path, rows_, **task)
    assert told.out
    assert "reporter:counter:neardup,records,2" in told.err


def test_rows_without_any_text(tmp_path: Path) -> None:
    mixed = written(tmp_path / "mixed.jsonl", [{"text": ["be", None, 5]}, {"text": [[1]]}] * 3)
    told = run([*RUN_LOCAL, mixed], tmp_path)
    assert "a list of texts and numbers is not a text, in field 'text'; no field has a" in told.err
    for row in {}, {"words": [0.5, "be"]}:
        told = refuse([*RUN_LOCAL, written(tmp_path / "rows.jsonl", [row] * 3)], tmp_path, code=1)
        listed = ", ".join(row) if row else ""
        there = f"it has {listed}" if listed else "it has none"
        assert f"has no field 'text'; no field has a text: {there}\n" in told.err
