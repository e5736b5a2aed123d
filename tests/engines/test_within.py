"""--within and --across: each engine and each kind of table agrees with a filtered nested loop."""

from __future__ import annotations

import csv
import json
import random
import re
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cases import crossed, in_turn
from tests.support.decision_oracle import Line, cluster, direct, similarities
from tests.support.engines import (
    DECIDING,
    ENGINES,
    IN_FILES,
    NEARDUP,
    RUN_LOCAL,
    Deciding,
    Engine,
    Input,
    in_order,
    run,
    succeed,
)
from tests.support.oracle import components
from tests.support.typed_tables import arrow, write_table

Similarities = dict[tuple[int, int], str]


class Row(NamedTuple):
    id: str
    words: tuple[str, ...]
    site: Any


def made_rows(seed: int, copies: int = 0) -> list[Row]:
    """Return rows of a few texts, many of them equal; of `copies` rows the first text is more."""
    rng = random.Random(seed)
    rows = []
    for number in range(150 + copies):
        base, missing = rng.randrange(12), rng.sample(range(10), 2)
        if number >= 150:
            base, missing = 0, []
        words = tuple(f"w{base}x{i}" for i in range(10) if i not in missing[: rng.randrange(3)])
        site = rng.choice([None, "", "x", "x", "y", 1, "1"])
        rows.append(Row(f"{rng.choice(['gold', 'tin', ''])}/{number}", words, site))
    return rows


ROWS, DENSE = made_rows(5), made_rows(6, copies=90)
FLAGS = ["--exact", "--threshold=0.7", "--shingle=word:1"]
WAYS = {
    "--within=site": lambda a, b: str(a.site) == str(b.site),
    "--across=site": lambda a, b: str(a.site) != str(b.site),
    "--within=id:^(gold|tin)/": lambda a, b: a.id[0] == b.id[0],
    "--across=id:^(gold|tin)/": lambda a, b: a.id[0] != b.id[0],
}


def has_value(row: Row, way: str) -> bool:
    return row.site not in (None, "") if "site" in way else row.id[0] != "/"


def allowed(rows: list[Row], way: str) -> Similarities:
    """Return the similarities of the pairs that an option allows, as `similarities` does."""
    lines = [Line(row.id.encode(), frozenset(map(hash, row.words))) for row in rows]
    every = similarities(lines, Fraction("0.7"))
    chosen = {
        (i, j): similarity
        for (i, j), similarity in every.items()
        if has_value(rows[i], way) and has_value(rows[j], way) and WAYS[way](rows[i], rows[j])
    }
    assert 20 < len(chosen) < len(every)
    return chosen


def as_lines(rows: list[Row], pairs: Similarities) -> bytes:
    ids = [row.id.encode() for row in rows]
    each = ((ids[i], ids[j], s.encode()) for (i, j), s in pairs.items() if ids[i] < ids[j])
    return in_order(b"".join(b"%b\t%b\t%b\n" % line for line in each))


def removed_lines(rows: list[Row], pairs: Similarities, rule: str) -> bytes:
    lines = [Line(row.id.encode(), frozenset(map(hash, row.words))) for row in rows]
    gone = (direct if rule == "direct" else cluster)(lines, pairs, "first")
    assert 10 < len(gone) < len(rows)
    ids = [line.id for line in lines]
    return in_order(
        b"".join(b"%b\t%b\t%b\n" % (ids[i], ids[kept], s.encode()) for i, kept, s in gone)
    )


def cluster_lines(rows: list[Row], pairs: Similarities) -> bytes:
    found = components((rows[i].id.encode(), rows[j].id.encode()) for i, j in pairs)
    return in_order(b"".join(b"%b\t%b\n" % (min(group), id_) for group in found for id_ in group))


def as_json(row: Row) -> bytes:
    fields = {"id": row.id, "text": " ".join(row.words), "site": row.site}
    return json.dumps({k: v for k, v in fields.items() if v is not None}).encode() + b"\n"


def written(rows: list[Row], folder: Path) -> Input:
    data = b"".join(map(as_json, rows))
    (folder / "rows.jsonl").write_bytes(data)
    return Input(data, [str(folder / "rows.jsonl")])


@in_turn(2, engine=ENGINES, way=list(WAYS))
def test_pairs(engine: Engine, way: str, tmp_path: Path) -> None:
    given, flags = written(ROWS, tmp_path), ["--input=jsonl", *FLAGS, way]
    assert in_order(engine(given, flags, tmp_path)) == as_lines(ROWS, allowed(ROWS, way))


@in_turn(2, engine=DECIDING, way=list(WAYS), rows={"dense": DENSE, "few": ROWS})
def test_decisions(engine: Deciding, way: str, rows: list[Row], tmp_path: Path) -> None:
    given, pairs = written(rows, tmp_path), allowed(rows, way)
    flags = ["--input=jsonl", *FLAGS, way]
    for rule in ("direct", "cluster"):
        out = engine(given, [*flags, "--output=removed", f"--rule={rule}"], tmp_path)
        assert in_order(out) == removed_lines(rows, pairs, rule)
    out = engine(given, [*flags, "--output=clusters"], tmp_path)
    assert in_order(out) == cluster_lines(rows, pairs)


@in_turn(2, kind=["csv", "tsv", "parquet", "arrow"], way=list(WAYS))
def test_tables(kind: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    columns = {
        "site": [None if row.site is None else str(row.site) for row in ROWS],
        "id": [row.id for row in ROWS],
        "text": [" ".join(row.words) for row in ROWS],
    }
    if kind in ("csv", "tsv"):
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if kind == "tsv" else ",")
            writer.writerows([columns, *zip(*columns.values())])
    else:
        write_table(arrow.table(columns), path)
    out = succeed([*RUN_LOCAL, *FLAGS, way, path], tmp_path).out
    assert out == as_lines(ROWS, allowed(ROWS, way))


def print_of(i: int) -> int:
    return i // 7 % 9 * 0x0F0F_3355_0000_1111 % 2**64 ^ i % 2


PRINTS = [(f"{'xxy'[i % 3]}/{i}", print_of(i)) for i in range(90)]
OUTPUTS = [[], IN_FILES, ["--output=removed"], ["--output=clusters"]]


@crossed(way=["--within", "--across"], more=OUTPUTS)
def test_fingerprints(way: str, more: list[str], tmp_path: Path) -> None:
    def pairs(a: tuple[str, int], b: tuple[str, int]) -> bool:
        return (a[0][0] == b[0][0]) == (way == "--within") and bin(a[1] ^ b[1]).count("1") <= 2

    file = tmp_path / "prints.txt"
    file.write_text("".join(f"{id_} {bits:016x}\n" for id_, bits in PRINTS))
    flags = ["--input=fingerprints", "--bits=64", "--distance=2", f"{way}=id:^(.)", *more]
    out = succeed([*RUN_LOCAL, *flags, file], tmp_path).out.decode()
    found = {(a[0], b[0]) for a, b in permutations(PRINTS, 2) if pairs(a, b)}
    assert 30 < len(found) < 90 * 89
    if "removed" in str(more):
        kept: list[str] = []
        for id_, _ in PRINTS:
            kept += [id_] * all((id_, other) not in found for other in kept)
        gone = {line.split("\t")[0] for line in out.splitlines()}
        assert gone == {id_ for id_, _ in PRINTS} - set(kept)
    elif "clusters" in str(more):
        groups = components((a.encode(), b.encode()) for a, b in found)
        assert out.count("\n") == sum(map(len, groups))
    else:
        written = {tuple(sorted(line.split("\t")[:2])) for line in out.splitlines()}
        assert written == {tuple(sorted(pair)) for pair in found}
    if not more:
        assert succeed([*NEARDUP, "truth", *flags, file], tmp_path).out.decode() == out


@crossed(way=list(WAYS))
def test_truth_and_audit(way: str, tmp_path: Path) -> None:
    file, answer = written(ROWS, tmp_path).files[0], tmp_path / "pairs.tsv"
    flags = ["--threshold=0.7", "--shingle=word:1", way]
    succeed([*RUN_LOCAL, "--exact", *flags, "-o", answer, file], tmp_path)
    assert succeed([*NEARDUP, "truth", *flags, file], tmp_path).out == answer.read_bytes()
    audit = succeed([*NEARDUP, "audit", *flags, file, answer], tmp_path).out.decode()
    assert "recall                              1.000000" in audit
    assert "give it, too" in run([*NEARDUP, "audit", *flags[:2], file, answer], tmp_path).err


def test_old_records(tmp_path: Path) -> None:
    """Old records have values, too; records of one id in both collections are a pair."""
    given = written(ROWS, tmp_path).files[0]
    for way in WAYS:
        pairs = allowed(ROWS, way)
        ids = [row.id for row in ROWS]
        out = succeed([*RUN_LOCAL, *FLAGS, way, "--between", "--against", given, given], tmp_path)
        lines = {tuple(line.split("\t")[:2]) for line in out.out.decode().splitlines()}
        own = {(row.id, row.id) for row in ROWS if "within" in way and has_value(row, way)}
        assert lines == {(ids[i], ids[j]) for i, j in pairs} | own


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--within=nosuch"], "no row has a field 'nosuch'; name one with --within"),
        (["--within=site", "--across=site"], "leave one of them out"),
        (["--across="], "names no field; write FIELD, or FIELD:REGEX"),
        (["--within=id:("], "is not a regular expression"),
        (["--within=site", "--input=text"], "--within 'id:^([^/]*)/'"),
        (["--across=site", "--output=links"], "use --output pairs or clusters"),
        (["--across=site", "--verify=sketch"], "leave --verify out"),
        (["--within=site", "--weights=idf"], "use --weights tf, or none"),
        (["--within=2"], "must all be column numbers, or all be names"),
    ],
)
def test_refusals(flags: list[str], said: str, tmp_path: Path) -> None:
    result = run([*RUN_LOCAL, *flags, *written(ROWS[:5], tmp_path).files], tmp_path)
    assert result.code in (1, 2)
    assert said in result.err


def test_records_without_a_value_are_counted_and_kept(tmp_path: Path) -> None:
    given = written(ROWS, tmp_path).files
    result = succeed([*RUN_LOCAL, *FLAGS, "--within=site", "--output=kept", *given], tmp_path)
    without = [row for row in ROWS if row.site in (None, "")]
    assert f"{len(without)} records without a value of --within or --across" in result.err
    assert {as_json(row) for row in without} <= set(result.out.splitlines(keepends=True))
    for way in ("--within", "--across"):
        result = succeed([*RUN_LOCAL, *FLAGS, f"{way}=id:(none)", *given], tmp_path)
        assert result.out == b""
        assert f"{len(ROWS)} records without a value" in result.err


def test_field_of_the_text_or_id(tmp_path: Path) -> None:
    """The field may be that of the text, whose equal values are all pairs, or of the ids."""
    given = written(ROWS, tmp_path).files
    out = succeed([*RUN_LOCAL, *FLAGS, "--within=text", *given], tmp_path).out
    assert out
    assert all(line.endswith(b"\t1.000000") for line in out.splitlines())
    assert not succeed([*RUN_LOCAL, *FLAGS, "--within=id", *given], tmp_path).out


def test_parts_of_paths(tmp_path: Path) -> None:
    for name in ("a/1.txt", "a/2.md", "b/3.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("to be or not to be")
    command = [*NEARDUP, "documents", "a", "b"]
    for part, within in {"folder": "1 2", "root": "1 2", "ext": "1 3", "path:([12])": ""}.items():
        result = succeed([*command, "--within", part], tmp_path, cwd=tmp_path)
        pairs = re.findall(r"([0-9])\.", result.out.decode())[:2]
        assert " ".join(pairs) == within
        across = succeed([*command, "--across", part], tmp_path, cwd=tmp_path).out
        assert across.count(b"\n") == (1 if part.startswith("path") else 2)
    assert "1 without the part of the path (b/3.txt)" in result.err
    assert "is not one of folder" in run([*command, "--within=site"], tmp_path, cwd=tmp_path).err
