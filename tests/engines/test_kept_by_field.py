"""--keep by fields and by ids: every engine, CSV and Parquet agree with the oracle."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cases import in_turn
from tests.support.decision_oracle import Line, cluster, direct, similarities
from tests.support.engines import (
    DECIDING,
    NEARDUP,
    RUN_LOCAL,
    Deciding,
    Input,
    in_order,
    run,
    succeed,
)
from tests.support.typed_tables import arrow, write_table


class Row(NamedTuple):
    id: str
    words: tuple[str, ...]
    stars: Any
    date: Any


def made_rows(seed: int) -> list[Row]:
    rng = random.Random(seed)
    rows = []
    for number in range(120):
        base, missing = rng.randrange(12), rng.sample(range(10), 2)
        words = tuple(f"w{base}x{i}" for i in range(10) if i not in missing[: rng.randrange(3)])
        stars = rng.choice([None, -2, 0, 2.5, 2.5, 7, 10])
        date = rng.choice([None, "2024-05-31", "2023-12-01", "2024-01-01T10:00:00+00:00"])
        rows.append(Row(f"{rng.choice(['gold', 'tin'])}/{number}", words, stars, date))
    return rows


ROWS = made_rows(5)
LOWEST = (True, 0)
RULES: dict[str, Callable[[Row], Any]] = {
    "max:stars": lambda row: LOWEST if row.stars is None else (False, -row.stars),
    "min:stars": lambda row: LOWEST if row.stars is None else (False, row.stars),
    "max:date": lambda row: -int((row.date or "0")[:10].replace("-", "")),
    "prefer:^gold/": lambda row: not row.id.startswith("gold/"),
    "longest": lambda row: -len(row.words),
}
KEEPS = ["max:stars", "min:stars,max:date", "prefer:^gold/,max:date", "longest,max:stars"]


def removed(keep: str, rule: str = "direct") -> bytes:
    lines = [Line(row.id.encode(), frozenset(map(hash, row.words))) for row in ROWS]
    pairs = similarities(lines, Fraction("0.7"))
    decide = direct if rule == "direct" else cluster
    gone = decide(lines, pairs, lambda i: [RULES[name](ROWS[i]) for name in keep.split(",")])
    assert 10 < len(gone) < len(lines)
    return in_order(
        b"".join(
            b"%b\t%b\t%b\n" % (lines[i].id, lines[kept].id, similarity.encode())
            for i, kept, similarity in gone
        )
    )


FLAGS = ["--exact", "--threshold=0.7", "--shingle=word:1", "--output=removed"]


def as_dictionary(row: Row) -> dict[str, Any]:
    fields = {"id": row.id, "text": " ".join(row.words), "stars": row.stars, "date": row.date}
    return {name: value for name, value in fields.items() if value is not None}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("".join(json.dumps(as_dictionary(row)) + "\n" for row in ROWS))
    return path


@pytest.mark.first_case
@in_turn(2, keep=KEEPS, engine=DECIDING, rule=["direct", "cluster"])
def test_every_engine(keep: str, engine: Deciding, rule: str, rows: Path, tmp_path: Path) -> None:
    flags = [*FLAGS, "--input=jsonl", f"--keep={keep}", f"--rule={rule}"]
    assert engine(Input(b"", [str(rows)]), flags, tmp_path) == removed(keep, rule)


@pytest.mark.first_case
@in_turn(1, keep=KEEPS, kind=["csv", "parquet", "arrow"])
def test_tables(keep: str, kind: str, tmp_path: Path) -> None:
    """--keep by fields of a table removes the rows that the oracle removes."""
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["stars", "id", "date", "text"])
            writer.writeheader()
            writer.writerows(map(as_dictionary, ROWS))
    else:
        columns = list(zip(*((row.id, " ".join(row.words), row.stars, row.date) for row in ROWS)))
        names = ["id", "text", "stars", "date"]
        write_table(arrow.table(dict(zip(names, map(list, columns)))), path)
    assert succeed([*RUN_LOCAL, *FLAGS, f"--keep={keep}", path], tmp_path).out == removed(keep)


def test_of_a_table_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,a b c,7\n2,a b c,9\n3,a b c,\n")
    flags = ["--id=1", "--text=2", "--keep=max:3", "--output=removed"]
    found = succeed([*RUN_LOCAL, *flags, tmp_path / "a.csv"], tmp_path)
    assert found.out == b"1\t2\t1.000000\n3\t2\t1.000000\n"


@pytest.mark.slow
def test_records_of_an_index_have_no_need_of_the_field(tmp_path: Path) -> None:
    """Records of an index are kept although they lack the field of --keep."""
    old, new, index = tmp_path / "old.jsonl", tmp_path / "new.jsonl", tmp_path / "index"
    old.write_text('{"id":"old","text":"a b c"}\n')
    rows = [("x", "d e f", 1), ("y", "d e f", 2), ("z", "a b c", 3)]
    new.write_text("".join(json.dumps(dict(zip(("id", "text", "n"), row))) + "\n" for row in rows))
    succeed([*NEARDUP, "index", old, "--to", index], tmp_path)
    flags = ["--keep=max:n", "--output=removed", f"--against={index}"]
    found = succeed([*RUN_LOCAL, *flags, new], tmp_path)
    assert found.out == b"x\ty\t1.000000\nz\told\t1.000000\n"


@pytest.mark.parametrize(
    ("keep", "data", "told"),
    [
        ("max:nope", '{"id":"a","text":"b c d","x":1}', "name one with --keep: it has id, text, x"),
        ("max:1", '{"id":"a","text":"b c d"}', "must all be column numbers, or all be names"),
    ],
)
def test_fields_that_are_not_there(keep: str, data: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(data + "\n")
    for flags in (["--output=kept"], ["--output=removed"]):
        result = run([*RUN_LOCAL, *flags, f"--keep={keep}", tmp_path / "a.jsonl"], tmp_path)
        assert result.code
        assert told in result.err


def test_records_that_are_no_rows(tmp_path: Path) -> None:
    result = run([*RUN_LOCAL, "--output=kept", "--keep=max:stars", "-"], tmp_path, b"a 1 2\n")
    assert "--keep by the field stars needs --input jsonl or csv or tsv or parquet" in result.err


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("measure", "keep", "kept"),
    [
        ("containment", "max:stars", b"c"),
        ("containment", "min:stars", b"b"),
        ("overlap", "max:stars", b"c"),
    ],
)
def test_by_containment_a_field_decides_between_sets_of_one_size(
    measure: str, keep: str, kept: bytes, tmp_path: Path
) -> None:
    """Stars never keep a shorter row; of two rows with equally many words they keep one."""
    words = {"a": "x y", "b": "x y z", "c": "y z x", "d": "z", "e": "v w"}
    stars = {"a": 9, "b": 1, "c": 2, "d": 8, "e": 0}
    rows = [{"id": id_, "text": text, "stars": stars[id_]} for id_, text in words.items()]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--scheme=prefix", "--shingle=word:1", "--threshold=1", "--output=removed"]
    command = [*RUN_LOCAL, *flags, f"--measure={measure}", f"--keep={keep}", path]
    gone = sorted({b"a", b"b", b"c", b"d"} - {kept})
    expected = b"".join(b"%b\t%b\t1.000000\n" % (id_, kept) for id_ in gone)
    assert succeed(command, tmp_path).out == expected
