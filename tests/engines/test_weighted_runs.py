"""--weights in pipes, run_local.sh and mrjob gives a nested loop's pairs of weighted sets."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.cases import in_turn, some
from tests.support.engines import (
    COUNT_TOKENS,
    DECIDING,
    ENGINES,
    INLINE,
    NEARDUP,
    RUN_LOCAL,
    Input,
    counts_of,
    in_order,
    run,
    succeed,
)
from tests.support.weighted_oracle import rare_first, weighted_lines

Drawn = list[tuple[bytes, list[tuple[int, str]]]]  # id, and (shingle, weight as text)
WEIGHTS = ["", "1", "0.5", "2", "1e3", "0.000001", "7.25", "999999.999999"]
KINDS = ["tf", "idf", "tfidf", "own"]
SURE = {  # so many bands that a pair is missed once in 10^19 draws
    "minhash": ["--scheme=minhash", "--bands=64", "--rows=1", "--threshold=0.5"],
    "projection": ["--scheme=projection", "--bands=200", "--rows=2", "--threshold=0.6"],
    "dice": ["--scheme=minhash", "--bands=64", "--rows=1", "--measure=dice", "--threshold=2/3"],
}
MEASURES = {"minhash": "jaccard", "projection": "cosine", "dice": "dice"}


def drawn(own: bool) -> Drawn:
    """Return near-copies of bags with unique ids; some shingles have 64 bits."""
    rng = random.Random(3)
    records: Drawn = []
    for i in range(60):
        if i % 4:
            tokens = list(rng.choice(records)[1])
            for _ in range(rng.choice([0, 1, 2, 5])):
                at, weight = rng.randrange(len(tokens)), rng.choice(WEIGHTS)
                tokens[at] = (rng.choice([tokens[at][0], rng.randrange(80)]), weight)
        else:
            tokens = [
                (rng.choice([rng.randrange(80), 2**64 - 1 - rng.randrange(9)]), rng.choice(WEIGHTS))
                for _ in range(rng.randrange(8, 25))
            ]
        if own:
            tokens = list(dict(tokens).items())
        records.append((b"r%d" % i, rng.sample(tokens, len(tokens))))
    return records


def given_lines(records: Drawn, own: bool) -> bytes:
    def token(shingle: int, weight: str) -> bytes:
        return b"%d:%b" % (shingle, weight.encode()) if own and weight else b"%d" % shingle

    lines = (b"%b %b\n" % (id_, b" ".join(token(*t) for t in some)) for id_, some in records)
    return b"".join(lines)


def vectors(records: Drawn, kind: str) -> list:
    some = []
    for _, tokens in records:
        if kind == "own":
            some.append({shingle: Fraction(weight or 1) for shingle, weight in tokens})
        else:
            counts = Counter(shingle for shingle, _ in tokens)
            some.append(counts if kind in ("tf", "tfidf") else dict.fromkeys(counts, 1))
    return rare_first(some) if "idf" in kind else some


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """Return a case: an input, the options and the expected lines."""
    kind, how = request.param
    records = drawn(kind == "own")
    path = tmp_path_factory.mktemp("weighted") / "records.txt"
    path.write_bytes(given_lines(records, kind == "own"))
    ids = [id_ for id_, _ in records]
    expected = weighted_lines(
        zip(ids, vectors(records, kind)), MEASURES[how], SURE[how][-1].split("=")[1]
    )
    assert 20 < len(expected) < len(ids) * (len(ids) - 1) // 4
    assert any(line.split(b"\t")[2] != b"1.000000\n" for line in expected)
    return Input(path.read_bytes(), [str(path)]), [*SURE[how], f"--weights={kind}"], expected


CASES = [(kind, how) for how in SURE for kind in KINDS]
SOME = ["counted pipe", "split pipe", "run_local 2", "mrjob inline"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "engine"),
    [(case, SOME[(i + i // 4) % 4]) for i, case in enumerate(CASES)],
    indirect=["case"],
    ids=str,
)
def test_the_pairs_of_the_nested_loop(case: tuple, engine: str, tmp_path: Path) -> None:
    given, flags, expected = case
    idf = "idf" in flags[-1]
    if engine == "counted pipe" and not idf:
        engine = "pipe"
    if engine == "split pipe" and idf:  # which has no counts
        engine = "run_local 1"
    found = in_order(ENGINES[engine](given, flags, tmp_path))
    assert found.splitlines(keepends=True) == expected


@pytest.mark.slow
@in_turn(2, kind=KINDS, measure=["hamming", "cosine", "jaccard"])
def test_fingerprints_of_weighted_sets(kind: str, measure: str, tmp_path: Path) -> None:
    """With simhash and weights, engines agree; by cosine or Jaccard, they print only true pairs."""
    records = drawn(kind == "own")
    data = given_lines(records, kind == "own")
    flags = ["--scheme=simhash", "--distance=8", f"--weights={kind}", f"--measure={measure}"]
    flags += ["--threshold=0.5"] if measure != "hamming" else []
    names = ["run_local 1", "run_local 3", "counted pipe" if "idf" in kind else "split pipe"]
    given = Input(data, ["-"])
    found = {in_order(ENGINES[name](given, flags, tmp_path)) for name in names}
    assert len(found) == 1
    (lines,) = found
    assert len(lines.splitlines()) > 10
    if measure != "hamming":
        ids = [id_ for id_, _ in records]
        every = weighted_lines(zip(ids, vectors(records, kind)), measure, "0.5")
        assert set(lines.splitlines(keepends=True)) < set(every)


@pytest.mark.slow
def test_mrjob_in_tasks(tmp_path: Path) -> None:
    records = drawn(own=True)
    given = Input(given_lines(records, own=True), ["-"])
    flags = [*SURE["minhash"], "--weights=own"]
    found = in_order(ENGINES["mrjob local"](given, flags, tmp_path))
    assert found == in_order(ENGINES["run_local 2"](given, flags, tmp_path))


TEXTS = b"a\tx x x x y\nb\tx y y y y\nc\tz\n"


@pytest.mark.first_case
@pytest.mark.parametrize("engine", ["pipe", "run_local 2", "mrjob inline"])
@pytest.mark.parametrize(
    ("weights", "expected"), [("tf", b"a\tb\t0.470588\n"), ("one", b"a\tb\t1.000000\n")]
)
def test_two_texts_of_the_same_words(
    engine: str, weights: str, expected: bytes, tmp_path: Path
) -> None:
    """Two texts with the same words in other counts have cosine 8/17 with tf weights, 1 without."""
    flags = ["--input=text", "--shingle=word:1", "--scheme=projection", "--threshold=0.4"]
    given = Input(TEXTS, ["-"])
    assert ENGINES[engine](given, [*flags, f"--weights={weights}"], tmp_path) == expected


@pytest.mark.first_case
@pytest.mark.parametrize("engine", ["pipe", "run_local 2", "mrjob inline"])
def test_weights_of_the_lines_own(engine: str, tmp_path: Path) -> None:
    """By weights in the lines, Σ min / Σ max is 2.25/5: a pair at threshold 0.45, and not above."""
    given = Input(b"a 1:1.5 2:3 \nb 2:0.75 1:2\nc 3\n", ["-"])
    flags = ["--weights=own", "--bands=64", "--rows=1"]
    found = ENGINES[engine](given, [*flags, "--threshold=0.45"], tmp_path)
    assert found == b"a\tb\t0.450000\n"
    assert not ENGINES[engine](given, [*flags, "--threshold=0.450000001"], tmp_path)


def test_a_weight_that_nobody_asked_for_is_a_bad_line(tmp_path: Path) -> None:
    result = run(RUN_LOCAL + ["-"], tmp_path, b"a 1:2 2\nb 1:2 2\nc 1 2\nd 1 2\n")
    assert (result.code, result.out) == (0, b"c\td\t1.000000\n")
    assert "2 weight, without --weights own" in result.err


def test_counts_are_of_records_whatever_tokens_weigh(tmp_path: Path) -> None:
    plain, heavy = b"a 1 2 2\nb 2 3 3\n", b"a 1:5 2:0.5\nb 2 3:7\n"
    flags = ["--scheme=projection", "--weights"]
    counted = [
        in_order(succeed([*COUNT_TOKENS, "map", *flags, kind], tmp_path, data).out)
        for kind, data in [("idf", plain), ("tfidf", plain), ("own", heavy)]
    ]
    assert counted[0] == counted[1] == counted[2]
    assert b"t00000000000000000002\t2\n" in counted[0]


@pytest.mark.slow
@some("kind", list(KINDS), "own", "tfidf")
def test_an_index_gives_the_lines_that_its_files_give(kind: str, tmp_path: Path) -> None:
    records = drawn(kind == "own")
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_bytes(given_lines(records[:40], kind == "own"))
    new.write_bytes(given_lines(records[40:], kind == "own"))
    flags = [*SURE["minhash"], f"--weights={kind}"]
    if "idf" in kind:
        flags += [counts_of([str(old)], flags, tmp_path)]
    index = tmp_path / "old.index"
    made = run([*NEARDUP, "index", *flags, "--to", index, old], tmp_path)
    assert made.code == 0, made.err
    by_files = succeed([*RUN_LOCAL, *flags, "--against", old, new], tmp_path).out
    assert by_files == succeed([*RUN_LOCAL, *flags, "--against", index, new], tmp_path).out
    assert len(by_files.splitlines()) > 10
    told = [*SURE["minhash"], "--against", index, new]
    assert succeed([*RUN_LOCAL, *told], tmp_path).out == by_files  # by the options of the index
    other = run([*RUN_LOCAL, f"--weights={'own' if kind == 'tf' else 'tf'}", *told], tmp_path)
    assert other.code == 2
    assert "--weights" in other.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tf", "own"])
def test_decisions_are_the_same_on_every_engine(kind: str, tmp_path: Path) -> None:
    records = drawn(kind == "own")
    path = tmp_path / "records.txt"
    path.write_bytes(given_lines(records, kind == "own"))
    given = Input(path.read_bytes(), [str(path)])
    for output in ("kept", "removed", "clusters"):
        flags = [*SURE["minhash"], f"--weights={kind}", f"--output={output}"]
        found = {in_order(DECIDING[name](given, flags, tmp_path)) for name in DECIDING}
        assert len(found) == 1
        (lines,) = found
        assert 0 < len(lines.splitlines()) < len(records)
        if output == "kept":
            assert set(lines.splitlines()) < set(given.data.splitlines())


@pytest.mark.slow
def test_links_connect_weighted_pairs(tmp_path: Path) -> None:
    given = Input(given_lines(drawn(own=True), own=True), ["-"])
    flags = [*SURE["minhash"], "--weights=own"]
    pairs = ENGINES["run_local 2"](given, flags, tmp_path).splitlines()
    links = ENGINES["run_local 2"](given, [*flags, "--output=links"], tmp_path).splitlines()
    assert set(links) < set(pairs)
    assert in_order(succeed([*INLINE, *flags, "--output=links", "-"], tmp_path, given.data).out)
