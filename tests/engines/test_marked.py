"""--output marked: all rows come back, and say what --output kept, removed and clusters say."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.engines.test_decisions import near_copies, odd_files
from tests.support.cases import in_turn
from tests.support.corpus_in_forms import CORPUS, FLAGS, FORMS, ROWS, made
from tests.support.engines import (
    DECIDE,
    DECIDING,
    INLINE,
    KEEP,
    MAPPER,
    NEARDUP,
    REDUCER,
    RUN_LOCAL,
    VIDEOS,
    in_order,
    run,
    succeed,
)

NAMES = ["duplicate_of", "similarity", "cluster", "copies"]
KINDS = {"duplicate_of": str, "similarity": float, "cluster": str, "copies": int}
TYPED = ("a.parquet", "a.arrow", "stream.feather")


def from_text(text: dict[str, Any]) -> dict[str, Any]:
    return {**text, **{n: KINDS[n](text[n]) if text[n] else None for n in NAMES}}


def rows_of(name: str, data: bytes) -> list[dict[str, Any]]:
    """Return the rows of a marked table, read without the project's parsers."""
    if name in TYPED:
        table = pytest.importorskip("tests.support.typed_tables").read_table(data)
        assert [str(table.schema.field(n).type) for n in NAMES] == [
            "string", "double", "string", "int64"
        ]  # fmt: skip
        return table.to_pylist()
    if "json" in name:
        return [json.loads(line) for line in data.splitlines()]
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    return list(map(from_text, csv.DictReader(text, delimiter="," if "csv" in name else "\t")))


def answers(rows: list[dict[str, Any]]) -> tuple[bytes, bytes]:
    """Return what --output removed and --output clusters print, from marked rows."""
    removed, clusters = [], []
    for row in rows:
        similarity = "-" if row["similarity"] is None else f"{row['similarity']:.6f}"
        if row["duplicate_of"] is not None:
            removed.append(f"{row['id']}\t{row['duplicate_of']}\t{similarity}\n")
        if row["cluster"] is not None:
            clusters.append(f"{row['cluster']}\t{row['id']}\n")
    return tuple(in_order("".join(lines).encode()) for lines in (removed, clusters))


def check_copies(rows: list[dict[str, Any]], compared: int) -> None:
    stands = Counter(row["duplicate_of"] for row in rows)
    assert sum(row["copies"] or 0 for row in rows) == compared
    for row in rows:
        alone = row["copies"] and row["duplicate_of"] is None
        assert row["copies"] in (1 + stands[row["id"]] if alone else 0, None)


@in_turn(1, name=list(FORMS), rule=["direct", "cluster"])
def test_marks_agree_with_the_other_outputs(name: str, rule: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    how = [*RUN_LOCAL, *FLAGS]
    others = {
        output: succeed([*how, *more, f"--output={output}", path], tmp_path).out
        for output, more in (("removed", ["--rule", rule]), ("clusters", []))
    }
    printed = succeed([*how, "--rule", rule, "--output=marked", path], tmp_path).out
    rows = rows_of(name, printed)
    assert [(row["id"], row["text"]) for row in rows] == CORPUS
    assert [*rows[0]][:4] == NAMES
    assert others["removed"].count(b"\n") > 40
    assert (b"\t-\n" in others["removed"]) == (rule == "cluster")
    assert answers(rows) == (others["removed"], others["clusters"])
    check_copies(rows, len(CORPUS))
    if name in ROWS:  # the row's own bytes follow the columns
        ours, lines = printed.removeprefix(b"\xef\xbb\xbf"), ROWS[name]
        for line in lines:
            at = ours.index(line[1:] if "json" in name else line)
            ours = ours[at + len(line) - ("json" in name) :]
        assert not ours


@in_turn(1, engine=list(DECIDING), rule=["direct", "cluster"])
def test_lines_of_odd_files(engine: str, rule: str, tmp_path: Path) -> None:
    """Bad lines and blank ones come back; each engine gives the same bytes."""
    found = odd_files(tmp_path / "in", near_copies(5), twice=False)
    flags = ["--exact", "--threshold=0.8", f"--rule={rule}"]
    lines = DECIDING[engine](found.given(), [*flags, "--output=marked"], tmp_path).split(b"\n")[:-1]
    assert len(lines) == len(found.lines)
    rows = []
    for line, before, record in zip(lines, found.lines, found.records):
        if not before.strip():
            assert line == before
            continue
        *fields, rest = line.split(b"\t", 4)
        assert rest == before
        row = from_text(dict(zip(NAMES, (f.decode() for f in fields))))
        assert (row["copies"] is not None) == (record is not None)
        rows.append({**row, "id": record.id.decode() if record else ""})
    others = [
        DECIDING["run_local 1"](found.given(), [*more, f"--output={output}"], tmp_path)
        for output, more in (("removed", flags), ("clusters", flags[:2]))
    ]
    assert answers(rows) == tuple(others)
    assert all(others)
    assert sum(row["copies"] or 0 for row in rows) == sum(1 for r in found.records if r)


def odd_lines(kind: str) -> list[bytes]:
    """Return near-copies as lines of a kind, and lines that are not records, with odd ends."""
    lines = []
    for i, line in enumerate(near_copies(7)):
        id_ = line.id.replace(b"\1", b"_").decode()
        text = " ".join(f"{'w' * (kind == 'tsv')}{n}" for n in sorted(line.set))
        if kind == "jsonl":
            fields = {"more": {"copies": 1}, "id": id_, "text": text}
            lines.append(json.dumps(fields, indent=None).encode() + b" " * (i % 2))
        else:
            lines.append(f"{id_}\t{text}".encode())
    odd = [b"", b" ", b"no\xffutf", b"x", b"long " + b"y" * (1 << 20), b"{}", b'{"id":"e"}', b"e\t"]
    for i, line in enumerate(odd[:4] if kind == "tsv" else odd):
        lines.insert(3 + i * 7 % len(lines), line)
    return [line + [b"\n", b"\r\n", b"\n"][i % 3] for i, line in enumerate(lines)]


@pytest.mark.parametrize("against", [False, True], ids=["one", "two"])
@pytest.mark.parametrize("kind", ["shingles", "text", "jsonl", "tsv"])
def test_tasks_write_the_lines_of_one_machine(kind: str, against: bool, tmp_path: Path) -> None:
    """Three tasks of Hadoop, by hand: each reads, and then marks, the lines of one split."""
    lines = odd_lines(kind)
    names, files = ["old", "new"] if against else ["new"], dict[str, list[bytes]]()
    for i, name in enumerate(names):
        files[name] = lines[i :: len(names)]
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + b"".join(files[name]))
    (tmp_path / "list").write_text("".join(f"{name}\thdfs:///{name}\n" for name in names))
    flags = ["--output=marked", f"--input={kind}", "--exact", "--threshold=0.8", "--max-line=1"]
    flags += ["--max-bad=1", *["--shingle=word:1"] * (kind != "shingles")]
    flags += ["--id=1", "--text=2"] * (kind == "tsv")
    more = [f"--against={tmp_path}/old"] if against else []
    here = succeed([*RUN_LOCAL, *flags, *more, tmp_path / "new"], tmp_path).out
    flags += [f"--input-files={tmp_path}/list", *["--against=list"] * against]

    def task(command: list[Any], name: str, i: int) -> bytes:
        cut = len(files[name]) // 3
        start = sum(map(len, files[name][: i * cut]), start=3 * (i > 0))
        part = (b"" if i else b"\xef\xbb\xbf") + b"".join(
            files[name][i * cut :][: cut + 99 * (i == 2)]
        )
        env = {
            "mapreduce_map_input_file": f"hdfs:///{name}",
            "mapreduce_map_input_start": str(start),
            "mapreduce_map_input_length": str(len(part)),
        }
        return succeed([*command, *flags], tmp_path, part, **env).out

    keyed = in_order(b"".join(task(MAPPER, name, i) for name in names for i in range(3)))
    edges = in_order(succeed([*REDUCER, *flags], tmp_path, keyed).out)
    (tmp_path / "decided").write_bytes(succeed([*DECIDE, *flags], tmp_path, edges).out)
    there = [task([*KEEP, f"--decided={tmp_path}/decided"], "new", i) for i in range(3)]
    assert all(there)
    assert b"".join(there) == here.removeprefix(b"\xef\xbb\xbf")
    assert here.count(b'"copies":0,') + here.count(b"\t0\t") > 3


def test_against(tmp_path: Path) -> None:
    """Clusters of two collections are unknown; a record removed for an old one has no row."""
    (tmp_path / "old").write_text("o 1 2 3\nx 7 8 9\n")
    (tmp_path / "new").write_text("a 1 2 3\nb 4 5 6\nc 4 5 6\nd 5\n")
    out = succeed(
        [*RUN_LOCAL, f"--against={tmp_path}/old", "--output=marked", f"{tmp_path}/new"], tmp_path
    ).out
    assert out == (b"o\t1.0\t\t0\ta 1 2 3\n\t\t\t2\tb 4 5 6\nb\t1.0\t\t0\tc 4 5 6\n\t\t\t1\td 5\n")


BAD = """id;text
"a;b";to be or not
x;to be or not
alone

1;2;3
c;""
"""


def test_bad_rows_keep_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BAD)
    flags = ["--delimiter=;", "--max-bad=1", "--output=marked", f"--removed={tmp_path}/gone"]
    assert succeed(
        [*RUN_LOCAL, *flags, tmp_path / "a.csv"], tmp_path
    ).out.decode().splitlines() == [
        "duplicate_of;similarity;cluster;copies;id;text",
        ';;"a;b";2;"a;b";to be or not',
        '"a;b";1.0;"a;b";0;x;to be or not',
        ";;;;alone",
        "",
        ";;;;1;2;3",
        ';;;;c;""',
    ]
    assert (tmp_path / "gone").read_text() == "x\ta;b\t1.000000\n"


def test_clusters_of_one_name_are_counted(tmp_path: Path) -> None:
    text = "1,a b c d\n2,a b c d\n1,one two three\n3,one two three\n"
    (tmp_path / "a.csv").write_text(f"id,text\n{text}")
    for output in "marked", "clusters":
        told = succeed([*RUN_LOCAL, f"--output={output}", tmp_path / "a.csv"], tmp_path)
        assert "\n1 cluster with the name of another one, because ids repeat\n" in told.err


def test_rows_without_ids_behind_a_bad_line(tmp_path: Path) -> None:
    row = b'{"text": "to be or not"}\n'
    (tmp_path / "a.jsonl").write_bytes(row + b"{\n" + row)
    flags = ["--max-bad=1", "--output=marked", tmp_path / "a.jsonl"]
    assert b'"duplicate_of":"1"' in succeed([*RUN_LOCAL, *flags], tmp_path).out
    told = run([*RUN_LOCAL, *flags, "-o", f"{tmp_path}/b.csv"], tmp_path)
    assert (told.code, (tmp_path / "b.csv").exists()) == (1, False)
    assert "a.jsonl: row 3 has no id, and lines before it are not rows" in told.err


@pytest.mark.parametrize("target", ["b.jsonl", "b.csv", "b.parquet", "b.arrow", "folder/"])
def test_in_another_format(target: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for name, start in (("a.csv", 0), ("a.tsv", 200)):
        header, *rows = ROWS[name]
        (tmp_path / name).write_bytes(b"".join([header, *rows[start : start + 200]]))
    files = [tmp_path / "a.csv", tmp_path / "a.tsv"]
    flags = [*FLAGS, "--output=marked", "-o", f"{tmp_path}/{target}", *files]
    succeed([*RUN_LOCAL, *flags], tmp_path)
    names = ["folder/a.csv", "folder/a.tsv"] if target == "folder/" else [target]
    rows = [
        row
        for name in names
        for row in rows_of(
            {"b.parquet": "a.parquet", "b.arrow": "a.arrow"}.get(name, name),
            (tmp_path / name).read_bytes(),
        )
    ]
    assert [(row["id"], row["text"]) for row in rows] == CORPUS
    assert [*rows[0]][:4] == NAMES
    removed = succeed([*RUN_LOCAL, *FLAGS, "--output=removed", *files], tmp_path).out
    assert answers(rows)[0] == removed != b""
    check_copies(rows, len(CORPUS))


DIALECTS = {
    "u.csv": ([], "id,text\n\u00e4,x y z\n\u00f6,x y z\n".encode("utf-16")),
    "c.csv": (["--encoding=cp1252"], "id,text\n\u00e4,x y z\n\u00f6,x y z\n".encode("cp1252")),
    "e.csv": (["--escape=\\"], b'id,text\r\n"a\\"b",x y z\r\nc\\,d,x y z\r\n'),
    "q.tsv": ([], b'id\ttext\n"""a"""\tx y z\nb"c\tx y z\n'),
    "o.jsonl": ([], b'{"id":"\\"a","text":"x y z"}\n {"id":"b\\\\","text":"x y z"}\n'),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_marked_files_can_be_read_again(name: str, tmp_path: Path) -> None:
    """Marking a marked file gives the columns twice, with the same values."""
    flags, data = DIALECTS[name]
    once, twice = tmp_path / f"1{name}", tmp_path / f"2{name}"
    (tmp_path / name).write_bytes(data)
    how = [*RUN_LOCAL, *flags, "--output=marked", "--mark-prefix"]
    succeed([*how, "", "-o", once, tmp_path / name], tmp_path)
    succeed([*how, "n_", "-o", twice, once], tmp_path)
    text = twice.read_bytes().decode({"u": "utf-16", "c": "cp1252"}.get(name[0], "utf-8"))
    text = text.replace('\\"b', '""b').replace("c\\,d", '"c,d"') if name == "e.csv" else text
    rows = rows_of(name, text.encode())
    assert [int(row["copies"]) for row in rows] == [2, 0]
    for n in NAMES:
        first, second = ([row[name] for row in rows] for name in (n, f"n_{n}"))
        assert [KINDS[n](x) if x not in (None, "") else None for x in second] == first
    assert rows[1]["duplicate_of"] == rows[0]["id"] == rows[0]["cluster"]


def test_a_failed_run_leaves_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id":1,"text":"a b c"}\n' * 9 + b'{"id":1,"copies":2}\n')
    (tmp_path / "out").write_text("before")
    flags = ["--output=marked", "--max-bad=1", "-o", tmp_path / "out", tmp_path / "a.jsonl"]
    assert run([*RUN_LOCAL, *flags], tmp_path).code == 1
    assert (tmp_path / "out").read_text() == "before"
    full = run([*RUN_LOCAL, "--output=marked", "-o", "/dev/full", VIDEOS], tmp_path)
    assert (full.code, "No space left on device" in full.err) == (1, True)


# Refusals.

LATE = b'{"id": "a", "text": "b", "more": {"copies": 1}}\n' * 30_000 + b'{"id":1,"copies": 2}\n'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b"id,text,copies\n1,a b c,2\n"),
        ("a.jsonl", b'{"id": "a", "text": "a b", "copies": 2}\n'),
        ("escaped.jsonl", LATE.replace(b"copies", rb"\u0063opies")),
        ("late.jsonl", LATE),
        ("a.tsv", b"copies\tid\ttext\n"),
    ],
    ids=["csv", "jsonl", "escaped", "late", "tsv"],
)
def test_columns_that_are_there(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    flags = ["--output=marked", "-o", tmp_path / "out", tmp_path / name, "--max-bad=1"]
    wrong = run([*RUN_LOCAL, *flags], tmp_path)
    message = f"{tmp_path}/{name}: has a column copies, which --output marked adds; add: --mark"
    assert wrong.code == 1
    assert message in wrong.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    succeed([*RUN_LOCAL, *flags, "--mark-prefix", "neardup_"], tmp_path)
    assert b"neardup_copies" in (tmp_path / "out").read_bytes()


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a 1 2\nb 1 2\n")
    for flags, message in {
        ("--mark-prefix=a",): "--mark-prefix needs --output marked, but --output is pairs",
        ("--output=marked", "--mark-prefix=a,b"): "--mark-prefix: expected letters, digits",
        ("--output=marked", "-0"): "it is for paths of files",
    }.items():
        wrong = run([*RUN_LOCAL, *flags, tmp_path / "a.txt"], tmp_path)
        assert (wrong.code, message in wrong.err) == (2, True)
    wrong = run([*INLINE, "--output=marked", "a.txt"], tmp_path)
    line = "type: ./run_local.sh --output=marked a.txt"
    assert (wrong.code, wrong.err.splitlines()[-1].endswith(line)) == (2, True)
    wrong = run([*NEARDUP, "documents", "--output=marked", "."], tmp_path)
    assert (wrong.code, "marked" in wrong.err) == (2, True)


def test_another_file_than_was_decided_on(tmp_path: Path) -> None:
    texts = {"a": "a 1 2\nb 1 2\n", "b": "a 1 2\nc 1 2\n", "c": "a 1 2\n", "d": "a 1 2\nbad\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    flags = ["--output=marked"]
    mapped = in_order(succeed([*MAPPER, *flags, tmp_path / "a"], tmp_path).out)
    edges = in_order(succeed([*REDUCER, *flags], tmp_path, mapped).out)
    (tmp_path / "decided").write_bytes(succeed([*DECIDE, *flags], tmp_path, edges).out)
    keep = [*KEEP, *flags, "--decided", tmp_path / "decided"]
    kept = succeed([*DECIDE, "--output=kept"], tmp_path, edges).out
    (tmp_path / "kept").write_bytes(kept)
    unmarked = run([*KEEP, "--decided", tmp_path / "decided", tmp_path / "a"], tmp_path)
    assert (unmarked.code, "expected PLACE ID KEPT" in unmarked.err) == (1, True)
    wrong = run([*KEEP, *flags, "--decided", tmp_path / "kept", tmp_path / "a"], tmp_path)
    assert (wrong.code, "decide with --output marked" in wrong.err) == (1, True)
    assert (
        succeed([*keep, tmp_path / "a"], tmp_path).out == b"\t\ta\t2\ta 1 2\na\t1.0\ta\t0\tb 1 2\n"
    )
    for name in "bcd-":
        wrong = run([*keep, name if name == "-" else tmp_path / name], tmp_path, b"")
        message = "twice; name FILE instead" if name == "-" else "run the whole job again"
        assert (wrong.code > 0, message in wrong.err) == (True, True), wrong.err
