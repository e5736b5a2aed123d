"""--merge: kept rows get what the rows that were removed for them have in a column."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.engines.test_decisions import near_copies
from tests.support.cases import in_turn
from tests.support.decision_oracle import Gone, Line, cluster, direct, similarities
from tests.support.engines import (
    DECIDING,
    KEEP,
    NEARDUP,
    RUN_HADOOP,
    RUN_LOCAL,
    Input,
    run,
    succeed,
)

FLAGS = ["--shingle=word:1", "--threshold=0.8", "--exact"]
TAGS = ["a", "b", 'c "q"', "d, e", "\u00e9\u20ac", "\\N", "0", "[1]", "x" * 40]
NUMBERS = [0, 1, 2, 200, 7]
COLUMNS = ["n", "text", "tags", "id"]


class Row(dict[str, Any]):
    """A row: n, text and id are texts, and tags a list or a text with delimiters."""


def tags_of(rng: random.Random, kind: str) -> Any:
    some = rng.choices(NUMBERS if kind == "numbers" else TAGS, k=rng.choice([0, 1, 1, 2, 3]))
    if kind in ("list", "numbers"):
        return some if some or rng.random() < 0.5 else None
    between = rng.choice([";", "; ", " ;;"])
    return rng.choice(["", " ", ";"]) * (not some) + between.join(some) + rng.choice(["", ";"])


def rows_for(lines: list[Line], kind: str, seed: int, between: str = " ") -> list[Row]:
    rng = random.Random(seed)
    rows = []
    for i, line in enumerate(lines):
        text = " ".join(map(str, sorted(line.set)))
        tags = tags_of(rng, kind)
        rows.append(Row(n=f'{i}{between}"x",', text=text, tags=tags, id=line.id.decode()))
    return rows


def values_of(tags: Any) -> list[Any]:
    if isinstance(tags, str):
        return [each.strip() for each in tags.split(";") if each.strip()]
    return tags or []


def merged(rows: list[Row], gone: list[Gone], first: int) -> dict[int, list[Any]]:
    """Return what the kept rows have after the merge, by place; `first` is that of new rows."""
    found: dict[int, list[Any]] = {}
    for each in sorted(gone):
        own = found.setdefault(each.kept, list(values_of(rows[each.kept]["tags"])))
        for value in values_of(rows[each.place]["tags"]):
            if value not in own:
                own.append(value)
    return {place: own for place, own in found.items() if place >= first}


# Files, as bytes for each row; the header is the first one.


def json_rows(rows: list[Row]) -> list[bytes]:
    lines = [b""]
    for i, row in enumerate(rows):
        fields = {name: row[name] for name in COLUMNS if name != "tags" or row[name] is not None}
        if row["tags"] is None and i % 2:
            fields["tags"] = None
        text = json.dumps(fields, ensure_ascii=i % 3 == 0, indent=None, separators=(" , ", " : "))
        lines.append(text[:-1].encode() + b', "big": 1.0E400 }' + [b"\n", b"\r\n", b"\n\n"][i % 3])
    return lines


def separated_rows(rows: list[Row], comma: str, end: str, **how: Any) -> list[bytes]:
    found = []
    for row in [dict(zip(COLUMNS, COLUMNS)), *rows]:
        sink = io.StringIO(newline="")
        csv.writer(sink, delimiter=comma, lineterminator=end, **how).writerow(map(row.get, COLUMNS))
        found.append(sink.getvalue().encode())
    return found


CSV_ALL = dict(quoting=csv.QUOTE_ALL)
TEXT_FORMS: dict[str, Any] = {
    "a.jsonl": json_rows,
    "b.jsonl.gz": json_rows,
    "a.csv": lambda rows: separated_rows(rows, ",", "\r\n"),
    "b.csv.bz2": lambda rows: separated_rows(rows, ",", "\n", **CSV_ALL),
    "a.tsv": lambda rows: separated_rows(rows, "\t", "\n"),
}
PACKED = {"gz": gzip, "bz2": bz2}


def written(name: str, rows: list[Row], kind: str, folder: Path) -> list[bytes]:
    """Write a file; return the bytes of its header and rows, [] for a typed table."""
    path = folder / name
    if name in TEXT_FORMS:
        lines: list[bytes] = TEXT_FORMS[name](rows)
        pack = PACKED.get(path.suffix[1:])
        data = b"".join(lines)
        path.write_bytes(pack.compress(data) if pack else data)
        return lines
    files = pytest.importorskip("tests.support.typed_tables")
    arrow = files.arrow
    types = {
        "list": arrow.list_(arrow.string()),
        "numbers": arrow.large_list(arrow.uint8()),
        "text": arrow.large_string(),
    }
    columns = {
        column: arrow.array(
            [row[column] for row in rows], types[kind] if column == "tags" else None
        )
        for column in COLUMNS
    }
    files.write_table(arrow.table(columns), path, 7)
    return []


def read(name: str, data: bytes, kind: str) -> list[dict[str, Any]]:
    if name.endswith((".parquet", ".arrow", "stream.feather")):
        table = pytest.importorskip("tests.support.typed_tables").read_table(data)
        found: list[dict[str, Any]] = table.to_pylist()
        types = {"list": "list<.*string>", "numbers": "large_list<.*uint8>", "text": "large_string"}
        assert re.match(types[kind], str(table.schema.field("tags").type))
        return found
    if "json" in name:
        return [json.loads(line) for line in data.splitlines() if line]
    text = io.StringIO(data.decode(), newline="")
    return list(csv.DictReader(text, delimiter="\t" if "tsv" in name else ","))


def check(found: list[dict[str, Any]], rows: list[Row], gone: list[Gone], first: int) -> int:
    """Compare kept rows with the oracle; return how many of them got values."""
    away = {each.place for each in gone}
    added, kept = merged(rows, gone, first), [i for i in range(first, len(rows)) if i not in away]
    assert [(row["n"], row["text"], row["id"]) for row in found] == [
        (rows[i]["n"], rows[i]["text"], rows[i]["id"]) for i in kept
    ]
    changed = 0
    for row, i in zip(found, kept):
        own = rows[i]["tags"]
        expected = added.get(i, values_of(own))
        if expected == values_of(own):  # unchanged
            assert row.get("tags") == own
            continue
        changed += 1
        assert list(dict.fromkeys(values_of(row["tags"]))) == list(dict.fromkeys(expected))
        if isinstance(own, str):
            assert row["tags"].startswith(own)
        else:
            assert row["tags"][: len(own or [])] == (own or [])
            assert len(row["tags"]) == len(expected)
    return changed


CASES = [(name, "text") for name in TEXT_FORMS] + [
    (name, kind)
    for name in ("a.jsonl", "b.jsonl.gz", "a.parquet", "a.arrow", "stream.feather")
    for kind in ("list", "numbers")
]
CASES += [("a.parquet", "text"), ("a.arrow", "text")]
RULES = {
    "first": ("--keep=first", "--rule=direct"),
    "smallest": ("--keep=smallest", "--rule=direct"),
    "longest": ("--keep=longest", "--rule=cluster"),
    "cluster": ("--keep=first", "--rule=cluster"),
}


@in_turn(2, case={f"{name} {kind}": (name, kind) for name, kind in CASES}, keep=RULES, seed=[3])
def test_against_the_oracle(
    case: tuple[str, str], keep: tuple[str, str], seed: int, tmp_path: Path
) -> None:
    name, kind = case
    lines = near_copies(seed)
    lines = [line._replace(id=line.id.replace(b"\1", b"_")) for line in lines]
    rows = rows_for(lines, kind, seed, "\n" if "csv" in name else " ")
    raw = written(name, rows, kind, tmp_path)
    merge = f"--merge={'tags:;' if kind == 'text' else 'tags'}"
    flags = [*FLAGS, *keep, merge, "--output=kept", tmp_path / name]
    data = succeed([*RUN_LOCAL, "--jobs=2", *flags], tmp_path).out
    decide = cluster if "cluster" in keep[1] else direct
    pairs = similarities(lines, Fraction("0.8"))
    gone = decide(lines, pairs, keep[0].partition("=")[2])
    assert 5 < len(gone) < len(lines) - 5
    assert check(read(name, data, kind), rows, gone, 0) > 2
    if raw:
        check_bytes(raw, data, rows, gone)


def check_bytes(raw: list[bytes], data: bytes, rows: list[Row], gone: list[Gone]) -> None:
    """Check that a kept row has the bytes of the input, but for its tags."""
    added, away = merged(rows, gone, 0), {each.place for each in gone}
    assert data.startswith(raw[0])
    at, is_json = len(raw[0]), not raw[0]
    for i, line in enumerate(raw[1:]):
        own = rows[i]["tags"]
        line = line.replace(b"\r\n", b"\n") if is_json else line
        if i in away:
            at += line.endswith(b"\n\n")  # a blank line is kept
            continue
        size = len(line)
        if added.get(i, values_of(own)) != values_of(own):
            end = b"\n" if is_json else line[line.rindex(b"v") :]  # the id
            size = data.index(end, at) + len(end) - at + line.endswith(b"\n\n")
            found = data[at : at + size]
            same = alike(found, line) + alike(found[::-1], line[::-1])
            lost = len(b"null") if is_json else 2 * len(own.encode()) + 2
            assert same >= len(line) - lost
        else:
            assert data[at : at + size] == line
        at += size
    assert at == len(data)


def alike(a: bytes, b: bytes) -> int:
    """Return how many first bytes are equal."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


@pytest.mark.parametrize("engine", DECIDING)
def test_engines(engine: str, tmp_path: Path) -> None:
    """All engines of this machine write the same bytes; rows of one file may merge into another."""
    lines = near_copies(5)
    rows = rows_for(lines, "list", 5)
    names = ["-x.jsonl", "a[1].jsonl"]
    for k, name in enumerate(names):
        (tmp_path / name).write_bytes(b"".join(json_rows(rows[k::2])).replace(b"\\u0001", b""))
    given = Input(b"", [str(tmp_path / name) for name in names])
    flags = [*FLAGS, "--input=jsonl", "--merge=tags", "--output=kept"]
    found = DECIDING[engine](given, flags, tmp_path)
    lines, rows = ([*each[0::2], *each[1::2]] for each in (lines, rows))
    rows = [Row(row, id=row["id"].replace("\1", "")) for row in rows]
    gone = direct(lines, similarities(lines, Fraction("0.8")), "first")
    assert check(read("a.jsonl", found, "list"), rows, gone, 0) > 2


@pytest.mark.parametrize("between", [[], ["--between"]])
def test_old_records(between: list[str], tmp_path: Path) -> None:
    """A kept new row gets the values; those of rows like old ones alone are lost, and counted."""
    lines = [line._replace(old=i < 8) for i, line in enumerate(near_copies(22, unique=True))]
    rows = rows_for(lines, "list", 6)
    for name, some in (("old.jsonl", rows[:8]), ("new.jsonl", rows[8:])):
        (tmp_path / name).write_bytes(b"".join(json_rows(some)))
    flags = [*FLAGS, *between, f"--against={tmp_path}/old.jsonl", "--merge=tags", "--output=kept"]
    result = succeed([*RUN_LOCAL, *flags, tmp_path / "new.jsonl"], tmp_path)
    pairs = similarities(lines, Fraction("0.8"))
    if between:
        pairs = {(i, j): s for (i, j), s in pairs.items() if lines[i].old != lines[j].old}
    gone = direct(lines, pairs, "first", merges=True)
    check(read("a.jsonl", result.out, "list"), rows, gone, 8)
    lost = sum(bool(rows[each.place]["tags"]) and each.kept < 8 for each in gone)
    assert lost > 1
    assert (gone != direct(lines, pairs, "first")) == (not between)
    assert f"\n{lost} removed rows whose values --merge adds to no row" in result.err


@pytest.mark.parametrize("memory", ["0", "100M"])
def test_equal_rows_of_one_site_are_kept_with_merge_and_across(memory: str, tmp_path: Path) -> None:
    """They are not a pair; all of them are kept, as without --merge."""
    sites, text = "xxxyyz", "to be or not to be"
    rows = [dict(id=i, site=site, text=text, tags=[i]) for i, site in enumerate(sites)]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    flags = [f"--memory={memory}", "--across=site", "--output=kept", tmp_path / "a.jsonl"]
    assert succeed([*RUN_LOCAL, *flags], tmp_path).out.decode().splitlines() == lines[:3]
    merged = succeed([*RUN_LOCAL, "--merge=tags", *flags], tmp_path).out
    found = [json.loads(line) for line in merged.splitlines()]
    assert [row["id"] for row in found] == [0, 1, 2]
    assert {tag for row in found for tag in row["tags"]} == set(range(6))


@in_turn(
    2,
    target=["b.jsonl", "b.csv", "b.parquet", "b.arrow", "folder/"],
    name=["a.csv", "a.tsv", "a.jsonl", "a.parquet"],
)
def test_in_another_format(name: str, target: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    lines = [line._replace(id=line.id.replace(b"\1", b"_")) for line in near_copies(7)]
    rows = rows_for(lines, "text", 7)
    if name == "a.jsonl":  # 1e400 is infinite in Parquet
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        written(name, rows, "text", tmp_path)
    flags = [*FLAGS, "--merge=tags:;", "--output=kept", "-o", f"{tmp_path}/{target}"]
    succeed([*RUN_LOCAL, *flags, tmp_path / name], tmp_path)
    path = tmp_path / (f"folder/{name}" if target == "folder/" else target)
    if path.suffix in (".parquet", ".arrow"):
        found = pytest.importorskip("tests.support.typed_tables").read_table(path).to_pylist()
    else:
        found = read(path.name, path.read_bytes(), "text")
    gone = direct(lines, similarities(lines, Fraction("0.8")), "first")
    assert check(found, rows, gone, 0) > 2


def test_a_decision_with_merge_is_not_kept_without_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,t,text\n1,a,x y z\n2,b,x y z\n")
    decided = tmp_path / "decided"
    decided.write_bytes(b"8000000000000001\t2\t1\t1.000000\t8000000000000000\n")
    words = [*KEEP, "--output=kept", "--decided", decided, tmp_path / "a.csv"]
    without = run(words, tmp_path)
    assert (without.code, b"x y z" in without.out) == (1, False)
    assert "give step.py keep the same --merge" in without.err
    assert succeed([*words, "--merge=t:|"], tmp_path).out == b"id,t,text\n1,a|b,x y z\n"


def test_marked_rows_are_merged(tmp_path: Path) -> None:
    """Removed rows keep their own values."""
    (tmp_path / "a.csv").write_text("id,t,text\n1,a,x y z\n2,b|a,x y z\n3,c,q\n")
    flags = ["--output=marked", "--merge=t:|", tmp_path / "a.csv"]
    assert succeed([*RUN_LOCAL, *flags], tmp_path).out.splitlines()[1:] == [
        b",,1,2,1,a|b,x y z", b"1,1.0,1,0,2,b|a,x y z", b",,,1,3,c,q"
    ]  # fmt: skip


ODD = {
    "utf16.csv": ([], "id,text,t\n1,x y z,\u00e4\n2,x y z,\u20ac\n", "utf-16"),
    "cp1252.csv": (["--encoding=cp1252"], "id,text,t\r\n1,x y,\u00e4\n2,x y,\u20ac\n", "cp1252"),
    "escape.csv": (["--escape=\\"], 'id,t,text\n1,"\\"\u00e4",x\n2,\u20ac\\,\\\\n,x\n', "utf-8"),
    "quote.csv": (["--quote='"], "id,t,text\n1,'''\u00e4',x\n2,'\u20ac,\"',x\n", "utf-8"),
    "numbers.tsv": (["--id=1", "--text=2"], '1\tx y z\t"\u00e4"\n2\tx y z\t\u20ac\n', "utf-8"),
    "quoted.tsv": ([], 'id\ttext\tt\n1\tx\t""" \u00e4"\n2\tx\t"a\u20ac\n', "utf-8"),
    "bars.csv": (["--delimiter=|"], "t|id|text\n\u00e4|1|x y z\n\u20ac|2|x y z\n", "utf-8"),
    "cr.jsonl": (
        [],
        '\ufeff{"id":1,"text":"x y z","t":"\u00e4"}\r{"id":2,"text":"x y z","t":"\u20ac"}',
        "utf-8",
    ),
    "twice.jsonl": (
        [],
        '{"id":1,"t":3,"text":"x y z", "t" :"\u00e4"} \n{"t":"\u20ac","id":2,"text":"x y z"}\n',
        "utf-8",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files(name: str, tmp_path: Path) -> None:
    flags, text, encoding = ODD[name]
    field = "3" if "numbers" in name else "t"

    def rows(data: bytes) -> list[Any]:
        (tmp_path / name).write_bytes(data)
        command = [*NEARDUP, "convert", *flags, tmp_path / name]
        if field == "3":
            return [line.split("\t")[2].strip('"') for line in data.decode().splitlines()]
        return [json.loads(line)[field] for line in succeed(command, tmp_path).out.splitlines()]

    first, second = rows(text.encode(encoding))
    more = [*flags, f"--merge={field}:;", "--output=kept", tmp_path / name]
    out = succeed([*RUN_LOCAL, *more], tmp_path).out
    assert rows(out) == [f"{first};{second}"]
    assert out.decode(encoding)[:4] == text[:4]


# Refusals: each names the line to type, and nothing is written.

ROW = '{{"id": {}, "text": "x y z", "t": {}}}\n'
REFUSED = {
    **{
        number: ("a.jsonl", ROW.format(1, "[]") + ROW.format(2, f"[[{number}]]"), "t", wrong)
        for number in ("9007199254740993.0", "0.10000000000000000001", "1e400", f"1e-{'9' * 20}")
        for wrong in [f"line 2: a number of 64 bits cannot hold {number}, in a row to merge"]
    },
    "number": ("a.jsonl", ROW.format(1, "[1]") + ROW.format(2, 3), "t", "line 2: field 't' is 3, "),
    "object": (
        "a.jsonl",
        ROW.format(1, '{"a": 1}') + ROW.format(2, "[]"),
        "t",
        "line 1: field 't'",
    ),
    "text": ("a.jsonl", ROW.format(1, '"a;b"') + ROW.format(2, "[]"), "t", "--merge 't:;' is for"),
    "list": (
        "a.jsonl",
        ROW.format(1, '["a"]') + ROW.format(2, "[]"),
        "t:;",
        "--merge t is for lists",
    ),
    "misspelt": ("a.jsonl", ROW.format(1, "[]") * 2, "u", "it has id, t, text"),
    "alone": ("a.jsonl", ROW.format(1, "[]"), "t,u", "no row has 'u'; name one with --merge: it"),
    "no such number": ("a.tsv", "1\tx\ta\n", "3:;,4:;", "has no column '4'; name one with --merge"),
    "column": ("a.csv", "id,text,t\n1,x,a\n2,x,b\n", "u:;", "it has id, text, t"),
    "twice": ("a.csv", "id,text,t,t\n1,x,a,b\n2,x,b,c\n", "t:;", "has several columns 't'"),
    "no delimiter": ("a.csv", "id,text,t\n1,x,a\n2,x,b\n", "t", "row 1: field 't' is"),
    "few": ("a.tsv", "1\tx\ta\n2\tx\n", "3:;", "row 2: too few fields, in a row to merge"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refusals(why: str, tmp_path: Path) -> None:
    name, text, merge, message = REFUSED[why]
    (tmp_path / name).write_text(text)
    flags = ["--id=1", "--text=2"] * (name == "a.tsv")
    flags += [f"--merge={merge}", "--output=kept"]
    for more in ([], ["-o", tmp_path / ("out.jsonl" if name != "a.tsv" else "out")]):
        wrong = run([*RUN_LOCAL, *flags, *more, tmp_path / name], tmp_path)
        assert (wrong.code > 0, wrong.out, (tmp_path / "out.jsonl").exists()) == (True, b"", False)
        assert message in wrong.err.splitlines()[-1]


def test_numbers_are_exact(tmp_path: Path) -> None:
    """Integers have any size, and a decimal that a double holds is the same number."""
    numbers = "9007199254740993, 123456789012345678901234567890, 1.50, 0.1, 1e22, -0.0"
    (tmp_path / "a.jsonl").write_text(ROW.format(1, "null") + ROW.format(2, f"[{numbers}]"))
    (tmp_path / "b.jsonl").write_text('{"id": 3, "text": "x", "big": 0.10000000000000000001}\n')
    flags = ["--output=kept", "--merge=t", tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    _, line = succeed([*RUN_LOCAL, *flags], tmp_path).out.splitlines()
    exact = json.loads(f"[{numbers}]", parse_float=Fraction)
    assert json.loads(line, parse_float=Fraction)["t"] == exact


@pytest.mark.parametrize("flags", [["--output=kept", "--merge=t:;"], ["--output=marked"]])
def test_characters_that_an_encoding_lacks(flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,text,t\n1,x y z,\u00e4\n".encode("cp1252"))
    other = "\ufeffid,text,t\n\u0431,x y z,\u0431\n"
    (tmp_path / "b.csv").write_text(other, "utf-8")
    names = [tmp_path / "a.csv", tmp_path / "b.csv"][:: 1 if "kept" in flags[0] else -1]
    flags = [*flags, "--encoding=cp1252", "-o", f"{tmp_path}/out/"]
    wrong = run([*RUN_LOCAL, *flags, *names], tmp_path)
    assert (wrong.code, (tmp_path / "out").exists()) == (1, False)
    assert "cp1252 cannot hold '\u0431' of another file; write JSON lines: -o" in wrong.err


@pytest.mark.parametrize("quote", ['"', "'"], ids=["double", "single"])
@pytest.mark.parametrize("output", ["kept", "marked"])
def test_quotes_are_escaped_where_the_file_escapes_them(
    output: str, quote: str, tmp_path: Path
) -> None:
    """Spark reads no doubled ones, as csv with doublequote=False."""
    how: Any = {"quotechar": quote, "escapechar": "\\", "doublequote": False}
    rows = [["id", "text", "t"], ["a" + quote, "x", "b"], ["c", "x", f"d\\,{quote}\n"]]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file, **how).writerows(rows)
    flags = ["--escape=\\", f"--quote={quote}", "--merge=t:;", f"--output={output}"]
    found = succeed([*RUN_LOCAL, *flags, tmp_path / "a.csv"], tmp_path).out.decode()
    read = [*csv.reader(io.StringIO(found, newline=""), **how)]
    assert read[1][-3:] == ["a" + quote, "x", f"b;d\\,{quote}"]
    assert output == "kept" or read[2][0] == "a" + quote


def test_an_escape_behind_a_quote(tmp_path: Path) -> None:
    """Python's csv does not take it for an escape; such a row is not written with other fields."""
    (tmp_path / "a.csv").write_text('t,id,text\n"a"\\,1,x y z\nb,2,x y z\n')
    flags = ["--escape=\\", "--merge=t:;", "--output=kept", "-o", tmp_path / "out.csv"]
    wrong = run([*RUN_LOCAL, *flags, tmp_path / "a.csv"], tmp_path)
    assert (wrong.code, (tmp_path / "out.csv").exists()) == (1, False)
    assert "a.csv: has an escape character behind a quote, in a row to merge" in wrong.err


def test_types_that_are_refused(tmp_path: Path) -> None:
    files = pytest.importorskip("tests.support.typed_tables")
    columns = {
        "id": [1, 2],
        "text": ["x y z"] * 2,
        "f": [[0.5], [1.5]],
        "n": [1, 2],
        "s": ["a"] * 2,
    }
    files.write_table(files.arrow.table(columns), tmp_path / "a.parquet")
    for field, message in {
        "f": "'f' is list<element: double>; other lists can be written as JSON lines: -o",
        "n": "merges lists of texts, integers or booleans in parquet, and 'n' is int64",
        "s": "and 's' is string",
        "f:;": "merges texts in parquet, and 'f' is list<",
    }.items():
        flags = [f"--merge={field}", "--output=kept", tmp_path / "a.parquet"]
        wrong = run([*RUN_LOCAL, *flags], tmp_path)
        assert (wrong.code, wrong.out, message in wrong.err) == (1, b"", True), wrong.err
    flags = ["--merge=f", "--output=kept", "-o", tmp_path / "a.jsonl", tmp_path / "a.parquet"]
    succeed([*RUN_LOCAL, *flags], tmp_path)
    assert json.loads((tmp_path / "a.jsonl").read_bytes())["f"] == [0.5, 1.5]


def test_options_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a 1 2\nb 1 2\n")
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "x"}\n')
    (tmp_path / "b.csv").write_text("id,text,t\n1,x,y\n")
    for flags, file, message in (
        (["--merge=t"], "a.jsonl", "--merge needs --output kept or marked, but --output is pairs"),
        (["--merge=t", "--output=kept"], "a.txt", "but --input is shingles"),
        (["--merge=3", "--output=kept"], "a.jsonl", "must both be column numbers"),
        (["--merge=t:;,t:|", "--output=kept"], "a.jsonl", "names a field twice; leave one out"),
        (["--merge=text", "--output=kept"], "a.jsonl", "text: is the id or the text"),
        (["--merge=t:x", "--output=kept"], "b.csv", "has no column 't:x'"),
        (["--merge=t:", "--output=kept"], "a.jsonl", "--merge: expected FIELD, or FIELD:"),
    ):
        wrong = run([*RUN_LOCAL, *flags, tmp_path / file], tmp_path)
        assert (wrong.code > 0, message in wrong.err) == (True, True), wrong.err
    both = ["--merge=t:;", "--output=kept", "-o", f"{tmp_path}/out/", tmp_path / "a.jsonl"]
    wrong = run([*RUN_LOCAL, *both, tmp_path / "b.csv"], tmp_path)
    assert "csv and jsonl; write the rows in one format: -o FILE.jsonl" in wrong.err
    line = "type: ./run_local.sh --input=jsonl --output=kept --merge=t a"
    flags = ["--input=jsonl", "--output=kept", "--merge=t"]
    wrong = run([*RUN_HADOOP, *flags, "a", "b"], tmp_path)
    assert (wrong.code, wrong.err.splitlines()[-1].endswith(line)) == (2, True), wrong.err
    wrong = run([*NEARDUP, "documents", "--output=kept", "--merge=t", "."], tmp_path)
    assert (wrong.code, "--merge" in wrong.err) == (2, True)
