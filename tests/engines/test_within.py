"""--within and --across: each engine and each kind of table agrees with a filtered nested loop."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.cases import crossed
from tests.support.decision_oracle import Line, cluster, direct, similarities
from tests.support.engines import (
    DECIDING,
    ENGINES,
    Deciding,
    Engine,
    Input,
    in_order,
)
from tests.support.oracle import components

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


def allowed(rows: list[Row], way: str) -> Similarities:
    """Return the similarities of the pairs that an option allows, as `similarities` does."""
    has = (
        (lambda row: row.site not in (None, "")) if "site" in way else lambda row: row.id[0] != "/"
    )
    lines = [Line(row.id.encode(), frozenset(map(hash, row.words))) for row in rows]
    every = similarities(lines, Fraction("0.7"))
    chosen = {
        (i, j): similarity
        for (i, j), similarity in every.items()
        if has(rows[i]) and has(rows[j]) and WAYS[way](rows[i], rows[j])
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


@crossed(engine=ENGINES, way=list(WAYS))
def test_pairs(engine: Engine, way: str, tmp_path: Path) -> None:
    given, flags = written(ROWS, tmp_path), ["--input=jsonl", *FLAGS, way]
    assert in_order(engine(given, flags, tmp_path)) == as_lines(ROWS, allowed(ROWS, way))


@crossed(engine=DECIDING, way=list(WAYS), rows={"dense": DENSE, "few": ROWS})
def test_decisions(engine: Deciding, way: str, rows: list[Row], tmp_path: Path) -> None:
    given, pairs = written(rows, tmp_path), allowed(rows, way)
    flags = ["--input=jsonl", *FLAGS, way]
    for rule in ("direct", "cluster"):
        out = engine(given, [*flags, "--output=removed", f"--rule={rule}"], tmp_path)
        assert in_order(out) == removed_lines(rows, pairs, rule)
    out = engine(given, [*flags, "--output=clusters"], tmp_path)
    assert in_order(out) == cluster_lines(rows, pairs)
