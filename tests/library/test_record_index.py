"""neardup.Index and `neardup find` return the similar records that a nested loop finds."""

from __future__ import annotations

import json
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neardup
from neardup import Index, Match
from neardup.runtime.atomic_write import lock
from neardup.stages.index_manifest import Manifest
from tests.support.cases import crossed
from tests.support.engines import NEARDUP, RUN_LOCAL, run, succeed

Sets = list[tuple[str, set[int]]]


def made_sets(seed: int, count: int = 150) -> Sets:
    """Return copies of twelve sets, each copy with up to a third of its elements removed."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        start = 100 * rng.randrange(12)
        base = set(range(start, start + 25))
        missing = rng.sample(sorted(base), rng.randrange(1 + len(base) // 3))
        found.append((f"s{seed}.{number:03}", base - set(missing)))
    return found


def similarity(a: set[int], b: set[int], measure: str) -> Fraction:
    whole = {"jaccard": len(a | b), "overlap": min(len(a), len(b))}[measure]
    return Fraction(len(a & b), whole)


def expected(
    old: Sets, new: Sets, threshold: Fraction, measure: str = "jaccard", top: int | None = None
) -> list[Match]:
    found = []
    for query, wanted in new:
        mine = [Match(query, id_, similarity(wanted, have, measure)) for id_, have in old]
        mine = [match for match in mine if match.similarity >= threshold]
        found += sorted(mine, key=lambda match: (-match.similarity, match.id))[:top]
    return found


OLD, NEW = made_sets(1), made_sets(2, 40)


@crossed(
    scheme=[{"exact": True}, {"scheme": "prefix", "measure": "overlap"}, {}],
    top=[None, 1, 3],
    adds=[1, 4],
)
def test_as_a_nested_loop(
    scheme: dict[str, Any], top: int | None, adds: int, tmp_path: Path
) -> None:
    index = Index.create(tmp_path / "index", "sets", threshold="0.7", **scheme)
    assert sum(index.add(OLD[number::adds]) for number in range(adds)) == len(OLD) == len(index)
    measure = scheme.get("measure", "jaccard")
    found = index.query(NEW, top=top)
    assert found == expected(OLD, NEW, Fraction("0.7"), measure, top)
    assert found
    assert index.query(NEW, top=top, threshold=0.85) == expected(
        OLD, NEW, Fraction("0.85"), measure, top
    )
    below = index.query(NEW, threshold="0.4")
    assert {*found} <= {*below} <= {*expected(OLD, NEW, Fraction("0.4"), measure)}
    assert Index.open(tmp_path / "index").query(NEW, top=top) == found


def test_texts_and_other_ids(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", threshold=0.5, shingle="word:1")
    index.add([(7, "to be or not to be"), ("é ü", "that is the question")])
    assert index.query(["NOT to be or", "nothing"]) == [Match(0, "7", Fraction(1))]
    assert index.query([(("a", 1), "is that the question")])[0][:2] == (("a", 1), "é ü")
    assert index.query([""]) == index.query([]) == []
    assert index.add([]) == index.add([("x", "")]) == 0


def test_words_as_elements(tmp_path: Path) -> None:
    """Elements may be strings, which have the same hashes when added and when queried."""
    index = Index.create(tmp_path / "index", "sets", threshold=0.5)
    index.add([("a", ["x", "y", "z"])])
    assert index.query([{"z", "y", "x"}]) == [Match(0, "a", Fraction(1))]


@pytest.mark.slow
def test_what_the_command_has_made_and_the_other_way_round(tmp_path: Path) -> None:
    lines = "".join(f"{id_} {' '.join(map(str, set_))}\n" for id_, set_ in OLD)
    (tmp_path / "old.txt").write_text(lines)
    (tmp_path / "new.txt").write_text(lines.replace("s1.", "n"))
    flags = ["--exact", "--threshold=0.7"]
    succeed([*NEARDUP, "index", *flags, tmp_path / "old.txt", "--to", tmp_path / "index"], tmp_path)
    index = Index.open(tmp_path / "index")
    assert index.query(NEW) == expected(OLD, NEW, Fraction("0.7"))
    ours = Index.create(tmp_path / "ours", "sets", threshold=0.7, exact=False, scheme="prefix")
    ours.add(OLD)
    for folder in ("index", "ours"):
        against = [f"--against={tmp_path / folder}", "--between", tmp_path / "new.txt"]
        pairs = succeed([*RUN_LOCAL, *against], tmp_path).out.decode().splitlines()
        assert len(pairs) == len(expected(OLD, OLD, Fraction("0.7")))
    index.add([("more", {1, 2, 3})])
    more = [f"--against={tmp_path / 'index'}", "-"]
    assert succeed([*RUN_LOCAL, *more], tmp_path, b"z 1 2 3\n").out == b"z\tmore\t1.000000\told\n"


@pytest.mark.parametrize("flags", [["--top=2"], ["--threshold=0.9"], []])
def test_the_command(flags: list[str], tmp_path: Path) -> None:
    Index.create(tmp_path / "index", "sets", threshold=0.7, scheme="prefix").add(OLD)
    lines = "".join(f"{id_} {' '.join(map(str, set_))}\n" for id_, set_ in NEW)
    words = [*NEARDUP, "find", tmp_path / "index", "-", *flags]
    result = succeed(words, tmp_path, lines.encode())
    least = Fraction("0.9" if "--threshold=0.9" in flags else "0.7")
    matches = expected(OLD, NEW, least, top=2 if "--top=2" in flags else None)
    assert result.out.decode().splitlines() == [
        f"{query}\t{id_}\t{round(value * 10**6) / 10**6:.6f}" for query, id_, value in matches
    ]
    assert f"{len(matches):,} matches for 40 records, in an index of 150 records" in result.err


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    index = Index.create(tmp_path / "index", exact=True)
    index.add([("a", "to be or not to be"), ("b", "that is the question")])
    assert index.query(["to be or not to be"])[0].id == "a"
    assert capfd.readouterr() == ("", "")


def test_counts_that_must_not_change(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with `neardup index` and a file of counts, and open"):
        Index.create(tmp_path / "index", weights="idf")
    assert not (tmp_path / "index").exists()


def test_containment_is_that_of_the_query(tmp_path: Path) -> None:
    """With a directed measure, a record of which a query holds much is not similar by that."""
    index = Index.create(
        tmp_path / "index", "sets", threshold=0.5, scheme="prefix", measure="containment"
    )
    index.add([("part", range(3)), ("whole", range(10))])
    found = [(match.query, match.id, match.similarity) for match in index.query([range(3)])]
    assert found == [(0, "part", 1), (0, "whole", 1)]
    (match,) = index.query([range(10)])
    assert match == (0, "whole", 1)
    (match,) = index.query([range(2, 12)])
    assert match == (0, "whole", Fraction(8, 10))


def test_a_threshold_is_refused_where_the_distance_decides(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", "sets", scheme="simhash")
    index.add([("a", range(9))])
    with pytest.raises(ValueError, match="threshold does not apply to measure hamming"):
        index.query([range(9)], threshold=1)
    words = [*NEARDUP, "find", tmp_path / "index", "-", "--threshold=1"]
    result = run(words, tmp_path, b"x 1 2\n")
    assert (result.code, result.out) == (2, b"")
    assert "--threshold does not apply to --measure hamming; leave it out" in result.err


def test_only_the_best_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few candidates are compared at once, the best are those of all."""
    sets = [(f"r{i:03}", range(i % 40, i % 40 + 60)) for i in range(400)]
    index = Index.create(tmp_path / "index", "sets", threshold=0.5)
    index.add(sets[:300])
    index.add(sets[300:])
    queries = [range(60), range(20, 80), range(39, 99)]
    everything = index.query(queries)
    expected = [
        match
        for query in range(3)
        for match in [each for each in everything if each.query == query][:7]
    ]
    assert len(everything) > 300
    for pairs in (1, 50, 1 << 18):
        monkeypatch.setattr("neardup.stages.lookup.PAIRS", pairs)
        assert index.query(queries, top=7) == expected


def test_how_much_the_command_says(tmp_path: Path) -> None:
    """-q also hides the messages about bad lines; -v prints all counts."""
    Index.create(tmp_path / "index", "sets").add([("a", [1, 2])])
    words, lines = [*NEARDUP, "find", tmp_path / "index", "-", "--max-bad=1"], b"x 1 2\nbad\n"
    usual = run(words, tmp_path, lines)
    assert usual.err.splitlines() == [
        "find: line 2: no shingles: 'bad'",
        "1 match for 1 record, in an index of 1 record",
    ]
    assert run([*words, "-q"], tmp_path, lines).err == ""
    loud = run([*words, "-v"], tmp_path, lines)
    assert loud.err.startswith(usual.err)
    assert loud.count("bad lines") == 1
    assert usual.out == loud.out == b"x\ta\t1.000000\n"


def test_rows_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text(json.dumps({"id": "a", "text": "b c d e"}) + "\n")
    (tmp_path / "new.csv").write_text("name,body\nx,b c d e\n,bad\n")
    succeed([*NEARDUP, "index", tmp_path / "old.jsonl", "--to", tmp_path / "index"], tmp_path)
    words = [*NEARDUP, "find", tmp_path / "index", tmp_path / "new.csv"]
    assert succeed([*words, "--id=name", "--text=body"], tmp_path).out == b"x\ta\t1.000000\n"
    assert "name one with --text: it has name, body" in run(words, tmp_path).err


def test_several_readers_and_a_writer(tmp_path: Path) -> None:
    """While a writer adds records, each answer to a reader reflects complete adds only."""
    index = Index.create(tmp_path / "index", "sets", threshold=0.7, scheme="prefix")
    parts = [OLD[number::5] for number in range(5)]
    so_far = [list(chain(*parts[:count])) for count in range(6)]
    possible = [expected(old, NEW, Fraction("0.7")) for old in so_far]
    wrong: list[Any] = []

    def read(mine: Index) -> None:
        for _ in range(15):
            if mine.query(NEW) not in possible:
                wrong.append(mine)

    readers = [
        threading.Thread(target=read, args=[each])
        for each in (index, index, Index.open(tmp_path / "index"))
    ]
    for reader in readers:
        reader.start()
    for part in parts:
        index.add(part)
    for reader in readers:
        reader.join(60)
        assert not reader.is_alive()
    assert not wrong
    assert Index.open(tmp_path / "index").query(NEW) == possible[-1]


def test_one_writer(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", "sets")
    other = lock(tmp_path / "index")
    with pytest.raises(ValueError, match="another program is adding to it; try again later"):
        index.add(OLD)
    os.close(other)
    assert index.add(OLD) == len(OLD)


def test_threads_that_add_wait_for_each_other(tmp_path: Path) -> None:
    """Two threads, with one Index or two of the same folder, add all their records."""
    index = Index.create(tmp_path / "index", "sets")
    parts = [[(f"{number}.{id_}", some) for id_, some in OLD] for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        each = [index, Index.open(tmp_path / "index")] * 3
        assert [*threads.map(Index.add, each, parts)] == [len(OLD)] * 6
    assert len(Index.open(tmp_path / "index")) == 6 * len(OLD)


def test_an_add_that_was_killed_changes_nothing(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", "sets", threshold=0.7)
    index.add(OLD[:50])
    left = tmp_path / "index" / f".unfinished.{Manifest.of(tmp_path / 'index').next_name()}"
    left.mkdir()
    (left / "keys").write_bytes(b"1234")
    assert Index.open(tmp_path / "index").query(OLD[:1])
    index.add(OLD[50:])
    assert not left.exists()
    assert len(Index.open(tmp_path / "index")) == len(OLD)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([("a", {1}), ("b", None)], "record 1: expected"),
        ([("a\tb", {1})], "expected an integer, or non-empty text"),
        ([("", {1})], "expected an integer, or non-empty text"),
        ([{1}], "an index needs ids"),
    ],
)
def test_nothing_is_added_if_a_record_is_bad(bad: Any, told: str, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", "sets")
    with pytest.raises(ValueError, match=told):
        index.add(bad)
    assert len(index) == 0
    assert os.listdir(tmp_path / "index") == ["manifest.json"]


def test_what_is_refused(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", "sets")
    with pytest.raises(ValueError, match="already exists; open it, or name another one"):
        Index.create(tmp_path / "index")
    with pytest.raises(ValueError, match=r"is not an index; make one with Index\.create"):
        Index.open(tmp_path)
    with pytest.raises(ValueError, match="is neither 'texts' nor 'sets'"):
        Index.create(tmp_path / "other", "videos")
    with pytest.raises(ValueError, match="threshold=90 is outside"):
        Index.create(tmp_path / "other", threshold=90)
    with pytest.raises(ValueError, match="for bit vectors, use neardup index"):
        Index.create(tmp_path / "other", measure="hamming")
    assert not (tmp_path / "other").exists()
    with pytest.raises(ValueError, match="the index has sets, and these records are texts"):
        index.add([("a", "a text")])
    with pytest.raises(ValueError, match="record 0: its elements are not all integers or strings"):
        index.query([[object()]])
    for top in (0, -1, 1.5, "3"):
        with pytest.raises(ValueError, match=f"top={top!r} is not an integer of 1 or more"):
            index.query(NEW, top=top)
    assert index.query(NEW, top=np.int64(1)) == []  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threshold='abc'"):
        index.query(NEW, threshold="abc")
    with pytest.raises(ValueError, match=r"id '\\ud800': expected an integer, or non-empty text"):
        index.add([("\ud800", [1])])
    with pytest.raises(ValueError, match="No such file or directory"):
        Index.create(tmp_path / "missing" / "index")


def test_integers_that_are_no_shingles_are_the_same_in_every_call(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", "sets", threshold=0.9)
    index.add([("a", [-1]), ("b", [2**64]), ("c", [2**64 + 1, -1])])
    found = [(match.query, match.id) for match in index.query([[-5], [-1], [2**64], [2**70]])]
    assert found == [(1, "a"), (2, "b")]
    assert index.query([[-1, 2**64 + 1]])[0].id == "c"


def test_the_answer_is_that_of_pairs(tmp_path: Path) -> None:
    """Index.query finds the pairs of neardup.pairs with MinHash, whose keys need no counts."""
    index = Index.create(tmp_path / "index", "sets", threshold=0.8)
    index.add(OLD)
    found = {tuple(sorted(m[:2])) for m in index.query(OLD) if m.query != m.id}
    assert found == {(a, b) for a, b, _ in neardup.pairs(OLD, 0.8)}
