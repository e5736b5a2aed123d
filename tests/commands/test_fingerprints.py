"""Commands that judge runs or choose settings agree with the definition on fingerprints."""

from __future__ import annotations

import json
import random
import re
import shlex
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path

import pytest

from neardup.schemes.scheme import shown
from tests.support.engines import NEARDUP, RUN_LOCAL, refuse, succeed
from tests.support.programs import DEDUP, MAPPER, REDUCER, in_order

Prints = list[tuple[str, list[int]]]
BITS = 64
INPUT = ["--input", "fingerprints"]
OF_64 = [*INPUT, "--bits", "64"]


def drawn(count: int, bits: int = BITS, variants: int = 3, seed: int = 3) -> Prints:
    """Return records; about 2/5 of their fingerprints are at most 12 bits from an earlier one."""
    rng = random.Random(seed)
    known: list[int] = []
    records = []
    for i in range(count):
        values = []
        for _ in range(rng.randint(1, variants)):
            value = rng.getrandbits(bits)
            if known and rng.random() < 0.4:
                value = rng.choice(known)
                for bit in rng.sample(range(bits), rng.choice([0, 1, 3, 7, 8, 12])):
                    value ^= 1 << bit
            known.append(value)
            values.append(value)
        records.append((f"p{i % (count - 5)}", values))  # some ids twice
    return records


def lines_of(records: Prints, bits: int = BITS) -> str:
    return "".join(
        " ".join([id_, *(f"{value:0{bits // 4}x}" for value in values)]) + "\n"
        for id_, values in records
    )


def apart(x: list[int], y: list[int]) -> int:
    pairs = [(x[0], b) for b in y] + [(a, y[0]) for a in x]
    return min(bin(a ^ b).count("1") for a, b in pairs)


def oracle(records: Prints, distance: int, bits: int = BITS) -> bytes:
    best: dict[tuple[str, str], int] = {}
    for (a, x), (b, y) in combinations(records, 2):
        if a != b:
            pair = min(a, b), max(a, b)
            best[pair] = min(apart(x, y), best.get(pair, bits))
    found = {pair: d for pair, d in best.items() if d <= distance}
    assert 0 < len(found) < len(best)
    lines = (
        f"{a}\t{b}\t{round(Fraction(bits - d, bits) * 10**6) / 10**6:.6f}\n"
        for (a, b), d in found.items()
    )
    return in_order("".join(lines).encode())


@pytest.fixture
def records() -> Prints:
    return drawn(150)


@pytest.fixture
def file(records: Prints, tmp_path: Path) -> Path:
    path = tmp_path / "prints.txt"
    path.write_text(lines_of(records))
    return path


@pytest.mark.parametrize(("bits", "distance"), [(64, 0), (64, 7), (64, 20), (36, 3), (1024, 12)])
def test_truth_by_the_definition(bits: int, distance: int, tmp_path: Path) -> None:
    records = drawn(150, bits)
    (tmp_path / "prints.txt").write_text(lines_of(records, bits))
    flags = [*INPUT, "--bits", bits, "--distance", distance]
    found = succeed([*NEARDUP, "truth", *flags, tmp_path / "prints.txt"], tmp_path)
    assert found.out == oracle(records, distance, bits)


def test_truth_is_what_the_pipe_writes(records: Prints, tmp_path: Path) -> None:
    flags = [*OF_64, "--distance", "7", "--exact"]
    keyed = succeed([*MAPPER, *flags], tmp_path, lines_of(records).encode())
    pairs = succeed([*REDUCER, *flags], tmp_path, in_order(keyed.out))
    assert succeed([*DEDUP], tmp_path, in_order(pairs.out)).out == oracle(records, 7)


def test_truth_of_rows(records: Prints, tmp_path: Path) -> None:
    rows = [
        {"name": id_, **{f"h{i}": f"{value:016X}" for i, value in enumerate(values)}}
        for id_, values in records
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--fingerprint", "h0,h1,h2", "--id", "name", "--bits", "64"]
    found = succeed([*NEARDUP, "truth", *flags, tmp_path / "rows.jsonl"], tmp_path)
    assert found.out == oracle(records, 7)  # the default, in proportion to 31 of 256


@pytest.mark.parametrize("sample", ["1000", "40"])
def test_an_audit_finds_what_is_missing_and_what_is_wrong(
    sample: str, records: Prints, file: Path, tmp_path: Path
) -> None:
    right = oracle(records, 7)
    audit = [*NEARDUP, "audit", *OF_64, "--distance", "7", "--sample", sample, file]
    (tmp_path / "pairs.tsv").write_bytes(right)
    table = succeed([*audit, tmp_path / "pairs.tsv"], tmp_path).out.decode()
    for row in ("missed +0$", "recall +1.000000", "precision +1.000000"):
        assert re.search(f"^{row}", table, re.M)
    first = right.splitlines(keepends=True)[0]
    (tmp_path / "pairs.tsv").write_bytes(right.replace(first, b"p8\tp9\t0.900000\n"))
    table = succeed([*audit, tmp_path / "pairs.tsv"], tmp_path).out.decode()
    if sample == "1000":
        assert re.search(r"^missed +1$", table, re.M)
        assert re.search(r"^printed, but not a pair +1$", table, re.M)
        why = shlex.split(table.splitlines()[-1])
        assert why[-2:] == first.decode().split("\t")[:2]
        answer = succeed([*NEARDUP, *why[why.index("why") :]], tmp_path).out.decode()
        assert "a pair: printed at" in answer
    else:
        assert re.search(r"^ids looked at +40  drawn at random$", table, re.M)


@pytest.mark.slow
def test_the_curve_is_by_bits(tmp_path: Path) -> None:
    flags = ["--scheme", "fingerprints", "--bits", "64", "--distance", "7"]
    by_hand = ["--bands", "20", "--rows", "15"]
    table = succeed([*NEARDUP, "curve", *flags, *by_hand], tmp_path).out.decode()
    rows = re.findall(r"^(\d+) +(\d\.\d{6})(.*)$", table, re.M)
    assert [int(bits) for bits, *_ in rows] == sorted({7, *(32 * i // 20 for i in range(21))})
    for bits, chance, rest in rows:
        hit = comb(64 - int(bits), 15) / comb(64, 15)
        assert chance == shown(1 - (1 - hit) ** 20) or abs(float(chance) - hit * 20) < 1e-5
        assert rest.endswith("<- the threshold") == (bits == "7")


def explained(out: bytes) -> dict[str, str]:
    return {row[:12].rstrip(): row[12:] for row in out.decode().splitlines()}


def test_why_shows_the_nearest_two(tmp_path: Path) -> None:
    lines = "a ffff0000ffff0000\nb 0123456789abcdef ffff0000ffff000f\nc 0000ffff0000ffff\n"
    (tmp_path / "prints.txt").write_text(lines)
    why = [*NEARDUP, "why", *OF_64, "--distance", "7", "--exact", tmp_path / "prints.txt"]
    said = explained(succeed([*why, "a", "b"], tmp_path).out)
    assert (
        said.items()
        >= {
            "A": "'a' with 1 fingerprint of 64 bits",
            "B": "'b' with 2 fingerprints of 64 bits",
            "differ": "4 of 64 bits: A's own fingerprint, and variant 1 of B",
            "of A": "ffff0000ffff0000",
            "xor": "...............f",
            "hamming": "60/64 = 0.937500",
            "threshold": "57/64 = 0.890625: at most 7 bits differ",
        }.items()
    )
    assert said["verdict"].startswith("a pair: printed at ")
    assert not re.search("shingle|jaccard", str(said))
    said = explained(succeed([*why, "a", "c"], tmp_path).out)
    assert said["differ"] == "64 of 64 bits"
    assert said["verdict"] == "no pair: they are not similar enough, and never compared"


def test_why_a_pair_is_missed(tmp_path: Path) -> None:
    (tmp_path / "prints.txt").write_text(f"a {0:064x}\nb {(1 << 31) - 1:064x}\n")
    flags = [*INPUT, "--bands", "1", "--rows", "200", tmp_path / "prints.txt"]
    out = succeed([*NEARDUP, "why", *flags, "a", "b"], tmp_path).out.decode()
    assert "that is MISSED: no key in both" in out
    assert "--exact finds every pair" in out
    assert "--distance misses" not in out  # it would make others a pair, too


@pytest.mark.slow
def test_an_index(records: Prints, file: Path, tmp_path: Path) -> None:
    """An index with added records gives the same pairs as its files, and refuses other options."""
    old, more, new = (tmp_path / name for name in ("old.txt", "more.txt", "new.txt"))
    for path, some in (old, records[:60]), (more, records[60:100]), (new, records[100:]):
        path.write_text(lines_of([(id_, values[:1]) for id_, values in some]))
    index = tmp_path / "prints.index"
    flags = [*OF_64, "--distance", "7"]
    succeed([*NEARDUP, "index", *flags, old, "--to", index], tmp_path)
    succeed([*NEARDUP, "index", *flags, more, "--to", index, "--add"], tmp_path)
    files = [*RUN_LOCAL, *flags, "--against", old, "--against", more, new]
    expected = succeed(files, tmp_path).out
    assert expected
    for words in ([], flags, ["--input", "fingerprints"]):
        assert succeed([*RUN_LOCAL, "--against", index, *words, new], tmp_path).out == expected
    lines = map(str.split, new.read_text().splitlines())
    objects = (json.dumps(dict(zip(("id", "hash"), line))) + "\n" for line in lines)
    (tmp_path / "new.jsonl").write_text("".join(objects))
    rows = [*RUN_LOCAL, "--against", index, tmp_path / "new.jsonl"]
    assert succeed([*rows, "--fingerprint", "hash"], tmp_path).out == expected
    for words, message in {
        ("--distance=6", new): "was made with --distance 7, and this run has --distance 6",
        ("--bits=128", new): "was made with --bits 64, and this run has --bits 128",
        ("--exact", new): "was made without --exact, and this run has --exact",
        ("--input=shingles", new): "was made with --input fingerprints",
        (tmp_path / "new.jsonl",): "name the field of this run's fingerprints: --fingerprint NAME",
    }.items():
        refuse([*RUN_LOCAL, "--against", index, *words], tmp_path, message)


@pytest.mark.slow
def test_the_default_distance_is_that_of_an_index(records: Prints, tmp_path: Path) -> None:
    path, index = tmp_path / "old.txt", tmp_path / "prints.index"
    path.write_text(lines_of([(f"old{id_}", values[:1]) for id_, values in records]))
    (tmp_path / "new.txt").write_text(lines_of([(id_, values[:1]) for id_, values in records]))
    succeed([*NEARDUP, "index", *OF_64, "--exact", path, "--to", index], tmp_path)
    run_ = [*RUN_LOCAL, "--against", index, tmp_path / "new.txt"]
    answer = succeed([*run_, "--distance", "7", "--exact"], tmp_path).out
    assert answer == succeed(run_, tmp_path).out != b""
