"""`why` explains two records in agreement with what the job does with them."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from math import cos, pi
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.options.table import Options
from neardup.runtime.counters import RunFile, run_file_name
from neardup.schemes.banding import recall
from neardup.schemes.scheme import shown
from neardup.sets import token_counts
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounter, TokenCounts
from tests.support.cases import some
from tests.support.drawn import OF_SETS, settings_of, shingle_sets
from tests.support.engines import (
    ANSWER,
    MAPPER,
    NEARDUP,
    RUN_LOCAL,
    VIDEOS,
    counts_of,
    refuse,
    succeed,
)

WHY = [*NEARDUP, "why"]
DEMO = b"""\
one 1 2 3 4 5 6 7 8 9 10
two 9 8 7 6 5 4 3 2 1 9 9
three 1 2 3 4 5 6 7 8 9 11
other 501 502 503
twice 501 502 503 504
twice 504 503 502 501
both 1 2 3 4 5
both 1 2 3 4 5 6 7 8 9 10
"""


def why(tmp_path: Path, *parts: str, data: bytes = DEMO) -> dict[str, str]:
    """Return, by name, the values that `why` prints, with their continuation lines."""
    result = succeed([*WHY, "-", *parts], tmp_path, data)
    rows = re.split(r"\n(?! )", result.out.decode().rstrip("\n"))
    return {row[:12].rstrip(): row[12:] for row in rows}


def keys_of(mapped: bytes, id_: bytes) -> list[str]:
    """Return the keys of a record among the lines of mapper.py."""
    fields = [line.split(b"\t") for line in mapped.splitlines()]
    return sorted(key.decode() for key, _, other, _ in fields if other == id_)


def test_all_of_a_pair(tmp_path: Path) -> None:
    mapped = succeed(MAPPER, tmp_path, DEMO).out
    keys = sorted({*keys_of(mapped, b"one")} & {*keys_of(mapped, b"two")})
    assert 5 < len(keys) < 15
    assert why(tmp_path, "one", "two") == {
        "A": "'one' of 10 shingles",
        "B": "'two' of 9 shingles",
        "in both": "9",
        "only in A": "1: 10",
        "only in B": "0",
        "jaccard": "9/10 = 0.900000",
        "threshold": "9/10 = 0.9, by jaccard",
        "keys": f"A has 15, B has 15; in both {len(keys)}: {', '.join(keys[:5])} …",
        "chance": "0.999942 or more, of sharing a key at this jaccard similarity",
        "promise": "15 bands of 7 rows find a pair at 0.9 with probability 0.999942",
        "verdict": f"a pair: printed at {keys[0]}, the smallest key in both, as "
        "'one  two  0.900000'",
    }


def test_below_the_threshold(tmp_path: Path) -> None:
    rows = why(tmp_path, "one", "three")
    assert rows["jaccard"] == "9/11 = 0.818182"
    assert re.match(
        r"no pair: they meet at 0..:.{10} and are compared, but are not similar", rows["verdict"]
    )
    rows = why(tmp_path, "one", "other")
    assert rows["jaccard"] == "0/13 = 0.000000"
    assert rows["only in A"] == "10: 1, 2, 3, 4, 5 …"
    assert rows["verdict"] == "no pair: they are not similar enough, and never compared"


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("dice", {"dice": "18/19 = 0.947368"}),
        ("cosine", {"cosine": "9/√(10·9) = 0.948683"}),
        ("overlap", {"overlap": "9/9 = 1.000000"}),
        ("containment", {"A in B": "9/10 = 0.900000", "B in A": "9/9 = 1.000000"}),
        ("tversky:1,0.5", {"A to B": "18/20 = 0.900000", "B to A": "18/19 = 0.947368"}),
        ("tversky:0.5,0.5", {"tversky": "18/19 = 0.947368"}),
    ],
)
def test_every_measure(measure: str, expected: dict[str, str], tmp_path: Path) -> None:
    flags = ["--scheme", "prefix", "--measure", measure, "--threshold", "17/18"]
    rows = why(tmp_path, *flags, "one", "two")
    assert expected.items() <= rows.items()
    assert rows["jaccard"] == "9/10 = 0.900000"
    assert rows["threshold"] == f"17/18 = 0.944444444, by {measure}"
    printed = succeed([*RUN_LOCAL, *flags, "-"], tmp_path, b"".join(DEMO.splitlines(True)[:2])).out
    assert printed
    texts = [f"'{line.decode()}'".replace("\t", "  ") for line in printed.splitlines()]
    assert rows["verdict"].endswith(f", as {' and '.join(texts)}")


@pytest.mark.slow
def test_the_verdict_is_what_the_job_does(tmp_path: Path) -> None:
    """With a low recall, `why` reports found and missed pairs as the job does."""
    flags = ["--bands", "2", "--rows", "10"]
    printed = set(succeed([*RUN_LOCAL, *flags, VIDEOS], tmp_path).lines())
    pairs = ANSWER.read_bytes().splitlines(keepends=True)
    missed = [line for line in pairs if line not in printed]
    assert len(missed) > 3 < len(printed)
    for line in [*missed[:3], *sorted(printed)[:3]]:
        a, b, similarity = line.decode().split()
        found = why(tmp_path, "--exact", a, b, data=VIDEOS.read_bytes())  # as is advised
        assert found["verdict"].startswith("a pair: printed at ")
        assert found["promise"].startswith("exact: ")
        rows = why(tmp_path, *flags, a, b, data=VIDEOS.read_bytes())
        found = f"'{a}  {b}  {similarity}'"
        if line in printed:
            assert rows["verdict"].endswith(f"the smallest key in both, as {found}")
            continue
        first, *advice = rows["verdict"].splitlines()
        assert first == f"a pair, {found}, that is MISSED: no key in both"
        assert [text.split()[0] for text in advice] == ["--exact", "a", "another"]
        num, den = map(int, rows["jaccard"].split()[0].split("/"))
        assert rows["chance"].startswith(f"{shown(recall(num / den, 2, 10))} ")


@pytest.mark.first_case
@pytest.mark.parametrize("scheme", list(OF_SETS))
def test_every_scheme(scheme: str, tmp_path: Path) -> None:
    """With every scheme of sets, `why` reports a pair as printed or missed, as the job does."""
    some = [line.split(b"\t") for line in ANSWER.read_bytes().splitlines()[:40:4]]
    ids = {id_ for line in some for id_ in line[:2]}
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    data = b"".join(line for line in lines if line.split()[0] in ids)
    flags = ["--scheme", scheme, "--measure", "cosine", "--threshold", "0.9"]
    printed = [line[:2] for line in map(bytes.split, job_lines(data, flags, tmp_path))]
    assert printed
    for a, b, _ in some[:2]:
        rows = why(tmp_path, *flags, a.decode(), b.decode(), data=data)
        assert rows["verdict"].startswith("a pair: printed") == ([a, b] in printed)
        assert ("MISSED" in rows["verdict"]) == ([a, b] not in printed)


def job_lines(data: bytes, flags: list[str], tmp_path: Path) -> list[bytes]:
    return succeed([*RUN_LOCAL, *flags, "-"], tmp_path, data).lines()


@pytest.mark.slow
def test_measures_that_only_a_scheme_has(tmp_path: Path) -> None:
    rows = why(tmp_path, "--scheme", "simhash", "one", "other")
    sets = Ragged.from_rows([[*range(1, 11)], [501, 502, 503]])
    one, other = settings_of("--scheme", "simhash").scheme.vectors(sets)[:, 0].tolist()
    equal = 64 - bin(one ^ other).count("1")
    assert 0 < equal < 61
    assert rows["hamming"] == f"{equal}/64 = {equal / 64:.6f}"
    assert rows["threshold"] == "61/64 = 0.953125, by hamming"
    assert rows["cosine"].startswith(f"about {cos(pi * (1 - equal / 64)):.6f}, if tokens are many")
    assert rows["verdict"] == "no pair: they are not similar enough, and never compared"
    flags = ["--scheme", "projection", "--weights", "idf"]
    printed = job_lines(VIDEOS.read_bytes(), flags, tmp_path)
    a, b, weighted = next(line for line in printed if b"\t1.0" not in line).decode().split()
    rows = why(tmp_path, *flags, a, b, data=VIDEOS.read_bytes())
    assert rows["weighted"] == f"{weighted[2:]}/1000000 = {weighted}, by cosine"
    rows = why(tmp_path, *flags[:2], a, b, data=VIDEOS.read_bytes())
    assert "√" in rows["cosine"]
    assert weighted not in rows["cosine"]


WEIGHTED = b"a 1:2 2:1\nb 1:1 2:2\na 1:2 2:3\nc 5\n"


@pytest.mark.slow
def test_a_weighted_similarity_is_not_that_of_the_sets(tmp_path: Path) -> None:
    flags = ["--weights=own", "--bands=20", "--rows=1", "--threshold=0.4"]
    rows = why(tmp_path, *flags, "a", "b", data=WEIGHTED)
    assert rows["A"] == "'a' of 2, 2 shingles; 2 different records, of which one is shown"
    assert rows["jaccard"] == "2/2 = 1.000000"
    assert rows["weighted"] == "3000000/5000000 = 0.600000, by jaccard"
    assert rows["threshold"] == "2/5 = 0.4, by weighted jaccard"
    assert rows["verdict"].endswith("as 'a  b  0.600000'")
    assert "weighted jaccard similarity" in rows["chance"]
    rows = why(tmp_path, *flags, "--measure=dice", "a", "b", data=WEIGHTED)
    assert rows["weighted"] == "6000000/8000000 = 0.750000, by dice"
    rows = why(tmp_path, *flags, "a", "c", data=WEIGHTED)
    assert rows["weighted"] == "almost 0, by jaccard"
    heavy = b"a 1:1000000 2:1000000 3:999999.999999\nb 1:1000000 2:1000000\n"
    rows = why(tmp_path, *flags, "a", "b", data=heavy)
    assert rows["weighted"] == "2000000000000/2999999999999 = 0.666667, by jaccard"
    texts = b"a\tx x x x y\nb\tx y y y y\n"
    flags = ["--input=text", "--shingle=word:1", "--weights=tf", "--scheme=projection"]
    rows = why(tmp_path, *flags, "a", "b", data=texts)
    assert rows["jaccard"] == "2/2 = 1.000000"
    assert rows["weighted"] == "470588/1000000 = 0.470588, by cosine"
    rows = why(tmp_path, *flags[:3], "--scheme=simhash", "a", "b", data=texts)
    assert "weighted" not in rows
    assert rows["hamming"].endswith("/64 = " + rows["hamming"].split()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "bits", "least"),
    [
        (["--scheme", "simhash", "--bits", "256", "--distance", "12"], 256, 244),
        (["--scheme", "projection", "--measure", "agreement", "--threshold", "31/32"], 384, 372),
        (["--scheme", "projection", "--measure", "agreement", "--bits", "128"], 128, 116),
    ],
)
def test_bits_that_agree(flags: list[str], bits: int, least: int, tmp_path: Path) -> None:
    """For a pair that the job prints, `why` reports the number of equal bits and the threshold."""
    own = "hamming" if "simhash" in flags else "agreement"
    lines = job_lines(VIDEOS.read_bytes(), flags, tmp_path)
    for a, b, similarity in [line.decode().split() for line in lines[:: len(lines) // 3]]:
        rows = why(tmp_path, *flags, a, b, data=VIDEOS.read_bytes())
        equal = int(rows[own].split("/")[0])
        assert rows[own] == f"{equal}/{bits} = {similarity}"
        assert rows["threshold"].startswith(f"{least}/{bits} = ")
        assert equal >= least
        assert rows["verdict"].endswith(f"'{a}  {b}  {similarity}'")
        assert rows["chance"].endswith(f"of sharing a key at this {own} similarity")


@pytest.mark.slow
@some("flags", {name: ["--scheme", name] for name in ("prefix", "exact", "partition")}, "exact")
def test_keys_of_schemes_that_count_tokens(flags: list[str], tmp_path: Path) -> None:
    """`why` shows the mapper's keys, with counts from the file itself and from --counts."""
    given = [counts_of([str(VIDEOS)], flags, tmp_path), "--own-counts", *flags]
    mapped = succeed([*MAPPER, *given], tmp_path, VIDEOS.read_bytes()).out
    a, b, _ = ANSWER.read_text().splitlines()[0].split("\t")
    one, two = keys_of(mapped, a.encode()), keys_of(mapped, b.encode())
    both = sorted({*one} & {*two})
    assert both
    shown = f"A has {len(one)}, B has {len(two)}; in both {len(both)}: {', '.join(both[:5])}"
    for options in (given, flags):
        rows = why(tmp_path, *options, a, b, data=VIDEOS.read_bytes())
        assert rows["keys"].startswith(shown)


def test_ids_that_come_twice(tmp_path: Path) -> None:
    rows = why(tmp_path, "twice", "other", "--threshold", "0.7")
    assert rows["A"] == "'twice' of 4 shingles; the same record 2 times, which counts as one"
    rows = why(tmp_path, "both", "one")
    different = "2 different records, of which one is shown"
    assert rows["A"] == f"'both' of 5, 10 shingles; {different}"
    assert rows["verdict"].endswith("'both  one  1.000000'")
    assert why(tmp_path, "three", "both")["jaccard"] == "9/11 = 0.818182"


def test_a_pair_that_meets_comes_before_a_more_similar_one(tmp_path: Path) -> None:
    """`why` shows a pair of records that share a key, not a more similar pair that shares none."""
    base = range(100)
    sets = [base, [*base[20:], *range(200, 220)], base[:60]]  # resemblance to a: 2/3, 3/5
    seeds = map(str, range(1000))
    flags = ["--bands", "1", "--rows", "4", "--threshold", "0.5", "--seed"]
    rows = Ragged.from_rows([[*x] for x in sets])
    for seed in seeds:
        a, near, far = settings_of(*flags, seed).scheme.keys(rows).values.tolist()
        if a == far != near:
            break
    assert a == far != near
    lines = [" ".join(map(str, [id_, *x])) for id_, x in zip("abb", sets)]
    rows_said = why(tmp_path, *flags, seed, "a", "b", data="\n".join(lines).encode())
    assert rows_said["verdict"].endswith("the smallest key in both, as 'a  b  0.600000'")


def test_ids_that_are_not_there(tmp_path: Path) -> None:
    needs = "give the run's options, such as --input, or --run PAIRS if it had -o PAIRS"
    for ids in ("one", "zwei"), ("zwei", "one"), ("zwei", "drei"):
        said = f"neardup why: none of 8 records has the id 'zwei' (bad lines: 0); {needs}\n"
        refuse([*WHY, "-", *ids], tmp_path, said, code=1, stdin=DEMO)


TEXTS = """\
é 1\tTo be, or not to be: that is the question
b\tto be, or not to be, THAT is the question ox
c\t<p>to be, or not</p>
é 1\tanother text of that id
""".encode()


def test_texts_in_words(tmp_path: Path) -> None:
    rows = why(tmp_path, "--input=text", "é 1", "b", data=TEXTS)
    both = "'to be, or', 'be, or not', 'or not to', 'that is the', 'is the question'"
    assert rows["in both"] == f"5: {both}"
    assert rows["only in A"] == "3: 'not to be:', 'to be: that', 'be: that is'"
    assert rows["only in B"] == "4: 'not to be,', 'to be, that', 'be, that is', 'the question ox'"
    assert rows["difference"] == "To be, or not to [-be:-] {+be,+} that is the question {+ox+}"
    assert rows["jaccard"].startswith("5/12 = ")
    rows = why(tmp_path, "--input=text", "--clean=html,punctuation", "b", "c", data=TEXTS)
    assert rows["only in B"] == "0"
    assert rows["difference"] == "to be or not [-to be THAT is the question ox-]"


@pytest.mark.parametrize(
    ("flags", "both", "only"),
    [
        ("char:3", "'to ', 'o b', ' be', 'be,', 'e, ' …", "', t', 'on ', 'n o', ' ox'"),
        ("word:1:bag", "'to', 'be,', 'or', 'not', 'to #2' …", "'be, #2', 'ox'"),
        ("word:1 --weights=tf --scheme=projection", "'to', 'be,', 'or', 'not', 'that' …", "'ox'"),
        ("spot:1:2 --scheme=spotsigs", "'be question', 'that question', 'is question'", "'the ox'"),
    ],
)
def test_every_kind_of_shingle(flags: str, both: str, only: str, tmp_path: Path) -> None:
    words = ["--input=text", "--shingle", *flags.split()]
    rows = why(tmp_path, *words, "é 1", "b", data=TEXTS)
    common = int(rows["jaccard"].split("/")[0])
    only_b = len(only.split("', '"))
    assert (rows["in both"], rows["only in B"]) == (f"{common}: {both}", f"{only_b}: {only}")


def test_of_several_texts_the_one_that_is_compared(tmp_path: Path) -> None:
    data = TEXTS + b"d\tanother text of that one\n"
    rows = why(tmp_path, "--input=text", "d", "é 1", data=data)
    assert rows["B"].endswith("2 different records, of which one is shown")
    assert rows["in both"] == "2: 'another text of', 'text of that'"
    assert rows["difference"] == "another text of that [-one-] {+id+}"


def run_of(answer: Path, options: list[str], files: list[str]) -> None:
    """Write the .neardup.json of a run with these options beside its answer."""
    args = Options.from_arguments(options)
    told = RunFile(
        options=args.arguments(),
        files=files,
        output=args.output,
        threshold=str(Fraction(args.threshold or "0.9")),
        measure="jaccard",
        scheme="minhash",
        promise="",
        counts={"records": 4},
        seconds={"count": 0.1},
        started="2026-05-31T18:00:00Z",
        took=83.5,
        program="run_local.sh",
        version="0.1.0",
    )
    Path(run_file_name(answer)).write_bytes(told.format())


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    """Write texts, an old text and the .neardup.json of a run; return the path of its answer."""
    texts, old = tmp_path / "texts.txt", tmp_path / "old.txt"
    texts.write_bytes(TEXTS)
    old.write_bytes(b"old\tto be, or not to be, THAT is the question oh\n")
    options = ["--input=text", "--threshold=0.7", "--output=removed", f"--against={old}"]
    run_of(tmp_path / "pairs.tsv", options, [str(texts)])
    return tmp_path / "pairs.tsv"


@pytest.mark.slow
def test_options_and_files_of_the_run(answer: Path, tmp_path: Path) -> None:
    old, texts = tmp_path / "old.txt", tmp_path / "texts.txt"
    options = ["--input=text", "--threshold=0.7"]
    expected = succeed([*WHY, *options, old, texts, "b", "old"], tmp_path).out
    assert b"threshold   7/10 = 0.7" in expected
    for name in (answer, f"{answer.parent}/.{answer.name}.neardup.json"):
        assert succeed([*WHY, "--run", name, "b", "old"], tmp_path).out == expected
    assert succeed([*WHY, "b", "old", "--strict", *options, f"--run={answer}"], tmp_path)
    moved = tmp_path / "moved.txt"
    moved.write_bytes(old.read_bytes() + texts.read_bytes())
    old.unlink()
    given = [*WHY, "--run", str(answer)]
    said = (
        f"neardup why: {old}: no longer exists, for --run {answer}; name the file that has its "
        f"records: python3 -m neardup why --run {answer} FILE A B\n"
    )
    refuse([*given, "b", "old"], tmp_path, said, code=1)
    assert succeed([*given, moved, "b", "old"], tmp_path).out == expected


def test_that_the_input_has_changed_since_the_run_is_said(tmp_path: Path) -> None:
    texts, answer = tmp_path / "texts.txt", tmp_path / "pairs.tsv"
    texts.write_bytes(TEXTS)
    succeed([*RUN_LOCAL, "--input=text", texts, "-o", answer], tmp_path)
    then, words = os.stat(texts), [*WHY, "--run", answer, "b", "c"]
    said = f"the input has changed since the run of {answer}, whose answer may be another"
    assert said not in succeed(words, tmp_path).err
    texts.write_bytes(TEXTS + b"more\tof another text\n")
    os.utime(texts, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert said in succeed(words, tmp_path).err
    texts.write_bytes(TEXTS)
    os.utime(texts, (then.st_atime + 99, then.st_mtime + 99))
    assert said in succeed(words, tmp_path).err


@pytest.mark.parametrize("flag", ["--threshold=0.8", "--input=shingles", "--exact"])
def test_other_options_than_those_of_the_run(flag: str, answer: Path, tmp_path: Path) -> None:
    name = flag.partition("=")[0]
    said = f"{flag}: differs from the options in --run {answer}; leave {name} out\n"
    refuse([*WHY, "--run", answer, flag, "b", "old"], tmp_path, f"neardup why: {said}")


@pytest.mark.slow
def test_ids_that_the_run_has_not_seen(answer: Path, tmp_path: Path) -> None:
    said = "none of 5 records has the id 'd' (bad lines: 0); have the files changed since the run "
    refuse([*WHY, "--run", answer, "b", "d"], tmp_path, f"{said}of {answer}?\n", code=1)
    old, other = tmp_path / "old.txt", tmp_path / "other"
    index = tmp_path / "old.index"
    succeed([*NEARDUP, "index", old, "--input=text", "--to", index], tmp_path)
    run_of(other, ["--input=text", f"--against={index}"], [str(tmp_path / "texts.txt")])
    assert succeed([*WHY, "--run", other, "b", "c"], tmp_path).out
    said = "none of 4 records has the id 'old' (bad lines: 0); an index has no records to show: "
    command = [*WHY, "--run", other, "b", "old"]
    refuse(command, tmp_path, f"{said}name the files of {index}\n", code=1)


def test_a_run_that_cannot_be_asked(answer: Path, tmp_path: Path) -> None:
    run_of(answer, ["--input=text"], ["-"])
    for name, said in {
        answer: "-: was standard input, for --run ",
        "gone": "gone: .gone.neardup.json not found; run_local.sh -o FILE writes it\n",
    }.items():
        refuse([*WHY, "--run", name, "b", "c"], tmp_path, f"neardup why: {said}", code=1)


@pytest.mark.slow
@given(
    st.lists(st.lists(shingle_sets.filter(bool), min_size=1, max_size=5), max_size=6),
    st.integers(1, 40),
)
def test_tokens_are_counted_as_if_all_were_at_hand(batches: list, at_once: int) -> None:
    before, token_counts.TOKENS_AT_ONCE = token_counts.TOKENS_AT_ONCE, at_once
    try:
        counted = TokenCounter()
        for batch in batches:
            counted.add(Ragged.from_rows([[*x] for x in batch]))
        counts = counted.counts()
    finally:
        token_counts.TOKENS_AT_ONCE = before
    expected = TokenCounts.of_sets(Ragged.from_rows([[*x] for batch in batches for x in batch]))
    for name in ("sizes", "holders", "tokens", "frequencies"):
        found = getattr(counts, name)
        assert found.dtype == getattr(expected, name).dtype
        assert np.array_equal(found, getattr(expected, name))
    assert np.array_equal(counts.sample.values, expected.sample.values)
