"""`truth` agrees with the definitions for every join and measure, and with the job."""

from __future__ import annotations

import gzip
import random
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.commands import truth
from neardup.joins import JOINS, inverted_index
from neardup.joins.inverted_index import InvertedIndex
from neardup.runtime import program
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import containment, dice, overlap_coefficient, resemblance
from tests.support.cases import in_turn
from tests.support.drawn import shingle_sets
from tests.support.engines import ANSWER, NEARDUP, RUN_LOCAL, VIDEOS, succeed

TRUTH = [*NEARDUP, "truth"]
EXACTLY = {"jaccard": resemblance, "dice": dice, "overlap": overlap_coefficient}
FILTERED = ["jaccard", "dice", "cosine"]


def families() -> list[tuple[bytes, frozenset[int]]]:
    """Return sets with near-copies; some ids repeat with the same set, some with different sets."""
    rng = random.Random(5)
    records = []
    for family in range(25):
        base = rng.sample(range(400), rng.randint(2, 30))
        for _ in range(rng.randint(2, 5)):
            kept = rng.sample(base, max(1, len(base) - rng.randint(0, 3)))
            extra = rng.sample(range(400), rng.choice([0, 0, 1, 2, 40]))
            records.append((b"%c%d" % (rng.choice(b"xyz"), family), frozenset(kept + extra)))
    records += [records[3], records[3], records[10]]
    rng.shuffle(records)
    assert 30 < len({id_ for id_, _ in records}) < len(set(records)) < len(records)
    return records


def lines_of(records: list[tuple[bytes, frozenset[int]]]) -> bytes:
    return b"".join(b"%b %b\n" % (id_, b" ".join(b"%d" % s for s in x)) for id_, x in records)


def decimals(value: Fraction) -> bytes:
    return b"%d.%06d" % divmod(round(value * 10**6), 10**6)


def similar(measure: str, x: frozenset[int], y: frozenset[int], t: Fraction) -> bytes | None:
    """Return the similarity by its definition, with six decimals, or None below the threshold."""
    if measure != "cosine":
        value = EXACTLY[measure](x, y) if measure in EXACTLY else containment(x, y)
        return decimals(value) if value >= t else None
    square = Fraction(len(x & y) ** 2, len(x) * len(y))
    with localcontext() as context:
        context.prec = 50
        root = (Decimal(square.numerator) / square.denominator).sqrt()
        rounded = root.quantize(Decimal("1e-6"), ROUND_HALF_UP)
        return str(rounded).encode() if square >= t**2 else None


def oracle(records: list[tuple[bytes, frozenset[int]]], measure: str, t: str) -> bytes:
    best: dict[tuple[bytes, bytes], bytes] = {}
    below = 0
    for one, two in combinations(records, 2):
        for (a, x), (b, y) in [(one, two), (two, one)]:
            if a == b or (a > b and measure != "containment"):
                continue
            value = similar(measure, x, y, Fraction(t))
            below += value is None
            if value:
                best[a, b] = max(value, best.get((a, b), b""))
    assert len(best) > 3
    assert below > 5
    return b"".join(sorted(b"%b\t%b\t%b\n" % (*pair, value) for pair, value in best.items()))


@pytest.mark.parametrize("t", ["0.9", "2/3", "1/3"])
@pytest.mark.parametrize(
    ("measure", "join"),
    [(measure, join) for measure in FILTERED for join in JOINS]
    + [("overlap", "nested_loop"), ("containment", "nested_loop")],
)
def test_every_join_and_measure_by_the_definition(
    measure: str,
    join: str,
    t: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Every join and measure gives the pairs of the definition (in this process, for speed)."""
    records = families()
    (tmp_path / "records.txt").write_bytes(lines_of(records))
    flags = ["--measure", measure, "--join", join, "--threshold", t]
    monkeypatch.setattr("sys.argv", ["truth", *flags, str(tmp_path / "records.txt")])
    assert program.run("neardup truth", truth.main) == 0
    assert capfdbinary.readouterr().out == oracle(records, measure, t)


@pytest.mark.first_case
@pytest.mark.parametrize("measure", [*FILTERED, "overlap", "containment"])
def test_it_is_what_the_job_writes(measure: str, tmp_path: Path) -> None:
    (tmp_path / "records.txt").write_bytes(lines_of(families()))
    flags = ["--measure", measure, "--threshold", "0.7", str(tmp_path / "records.txt")]
    job = succeed([*RUN_LOCAL, "--scheme", "prefix", *flags], tmp_path)
    assert job.out
    assert succeed([*TRUTH, *flags], tmp_path).out == job.out


def test_the_pairs_of_the_videos_and_the_candidates(tmp_path: Path) -> None:
    for join, count in {"ppjoin_plus": 4, "all_pairs": 1}.items():
        result = succeed([*TRUTH, "--join", join, VIDEOS], tmp_path)
        assert result.out == ANSWER.read_bytes()
        assert result.count("records") == 2000
        told = r"^candidates: 1,999,000 in all; left by (.*); pairs 790$"
        (left,) = re.findall(told, result.err, re.M)
        steps = [int(n.replace(",", "")) for n in re.findall(r"[\d,]+\d", left)]
        assert steps == sorted(steps, reverse=True)
        assert len(steps) == count


def test_packed_text_from_several_files(tmp_path: Path) -> None:
    one, two = tmp_path / "1.gz", tmp_path / "2"
    one.write_bytes(gzip.compress(b"a\tto be or not to be that is\nb\tto be\n"))
    two.write_bytes(b"c\tTo be or  not to be, that is\nd\tTO BE OR NOT TO BE THAT IS\n")
    flags = ["--input", "text", "--shingle", "char:5", "--threshold", "0.5", one, two]
    result = succeed([*TRUTH, *flags], tmp_path)
    assert result.out == succeed([*RUN_LOCAL, "--exact", *flags], tmp_path).out
    assert re.findall(r"^(.)\t(.)\t", result.out.decode(), re.M) == [*combinations("acd", 2)]


@pytest.mark.parametrize(
    "flag", ["--measure=containment", *(f"--weights={w}" for w in ("one", "tf", "idf", "own"))]
)
@pytest.mark.parametrize("data", [b"", b"\n\n", b"a 1 2\n", b"a 1 2\na 1 2\n"])
def test_where_there_is_nothing_to_compare(flag: str, data: bytes, tmp_path: Path) -> None:
    result = succeed([*TRUTH, flag, "-"], tmp_path, data)
    assert result.out == b""
    assert result.count("records") == data.count(b"a")


def weighted_lines(weights: str) -> bytes:
    """Return records with repeated tokens or, for --weights own, with weights in the lines."""
    lines = []
    for id_, tokens in families():
        fields = [b"%d" % token for token in sorted(tokens)]
        if weights == "own":
            heavy = {0: b"0.5", 1: b"1e6"}
            fields = [b"%b:%b" % (b"%d" % x, heavy.get(x % 3, b"1")) for x in sorted(tokens)]
        else:
            fields += [each for each in fields if each[-1:] in b"37" for _ in range(3)]
        lines.append(b"%b %b\n" % (id_, b" ".join(fields)))
    return b"".join(lines)


@pytest.mark.slow
@in_turn(2, weights=["tf", "idf", "tfidf", "own"], measure=FILTERED)
def test_weighted_truth_is_what_a_weighted_job_writes(
    weights: str, measure: str, tmp_path: Path
) -> None:
    scheme = "projection --max-bands 512" if measure == "cosine" else "minhash --max-bands 32"
    (tmp_path / "records.txt").write_bytes(weighted_lines(weights))
    flags = ["--weights", weights, "--measure", measure, "--threshold", "0.7"]
    files = [str(tmp_path / "records.txt")]
    recall = ["--recall", "0.999999", "--scheme", *scheme.split()]
    job = succeed([*RUN_LOCAL, *recall, *flags, *files], tmp_path)
    by_lists = succeed([*TRUTH, *flags, *files], tmp_path)
    assert by_lists.out == job.out
    assert by_lists.out.count(b"\n") > 3
    assert "left by prefix" in by_lists.err
    loop = succeed([*TRUTH, *flags, "--join", "nested_loop", *files], tmp_path)
    assert loop.out == job.out
    assert "left by a common shingle" in loop.err


def test_idf_by_the_formula(tmp_path: Path) -> None:
    """The idf weights of tokens in one, two and all of 8 records have the ratio 24 : 16 : 1."""
    data = b"a 1 2\nb 1 2 3\n" + b"".join(b"x%d 1 1%d\n" % (i, i) for i in range(6))
    flags = ["--weights", "idf", "--threshold", "17/41"]
    assert succeed([*TRUTH, *flags, "-"], tmp_path, data).out == b"a\tb\t0.414634\n"
    flags[-1] = "0.414635"
    assert succeed([*TRUTH, *flags, "-"], tmp_path, data).out == b""


def test_weights_of_one_are_none(tmp_path: Path) -> None:
    flags = ["--weights", "one", "--join", "ppjoin_plus"]
    assert succeed([*TRUTH, *flags, VIDEOS], tmp_path).out == ANSWER.read_bytes()


@given(st.lists(shingle_sets, max_size=8), st.lists(shingle_sets, max_size=8), st.integers(1, 30))
def test_overlaps(indexed: list, asking: list, step: int) -> None:
    """`overlaps` counts the common elements of two sets as a loop does, whatever its step size."""
    before, inverted_index.STEP = inverted_index.STEP, step
    try:
        index = InvertedIndex.of(Ragged.from_rows([[*x] for x in indexed]))
        found = list(index.overlaps(Ragged.from_rows([[*x] for x in asking])))
    finally:
        inverted_index.STEP = before
    expected = [
        (i, j, len(x & y)) for i, x in enumerate(asking) for j, y in enumerate(indexed) if x & y
    ]
    columns = np.concatenate([np.empty((3, 0), np.int64), *map(np.stack, found)], axis=1)
    assert [tuple(row) for row in columns.T.tolist()] == expected


def test_packed_pairs_are_read_whatever_their_name(tmp_path: Path) -> None:
    pairs = b"a\tb\t0.900000\n"
    (tmp_path / "truth.tsv").write_bytes(pairs)
    (tmp_path / "pairs.tsv").write_bytes(gzip.compress(pairs))
    result = succeed([*NEARDUP, "evaluate", "pairs.tsv", "truth.tsv"], tmp_path, cwd=tmp_path)
    plain = succeed([*NEARDUP, "evaluate", "truth.tsv", "truth.tsv"], tmp_path, cwd=tmp_path)
    assert result.out == plain.out
