"""From files to a clean collection: every engine makes the oracle's decision.

The files have blank lines and bad ones, every line end, ids that repeat, and awkward names.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import os
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cases import in_turn
from tests.support.deciding import clique, copies, decide, nested, path, star
from tests.support.decision_oracle import (
    Line,
    cluster,
    components,
    direct,
    longest_before,
    reasons_to_remove,
    similarities,
)
from tests.support.engines import (
    ANSWER,
    DECIDING,
    RUN_LOCAL,
    VIDEOS,
    Deciding,
    Input,
    a_file,
    counts_of,
    in_order,
    run,
    succeed,
)

THRESHOLD = "0.8"
EXACT = ["--exact", f"--threshold={THRESHOLD}"]
NO_RECORDS = [b"", b" \t ", b"alone", b"bad x", b"nul 1\0", b"\xff 1 2", b"", b"7"]
every_engine = pytest.mark.parametrize("engine", DECIDING)


class Collection(NamedTuple):
    """Lines of files, without line ends, and the record of each line (None if there is none)."""

    files: list[str]
    lines: list[bytes]
    records: list[Line | None]

    def given(self) -> Input:
        return Input(b"", self.files)


def near_copies(seed: int, shapes: int = 8, unique: bool = False) -> list[Line]:
    """Return chains, stars, cliques and copies in mixed order; ids repeat unless `unique`."""
    rng = random.Random(seed)
    sets = [
        set_
        for base in range(0, 100 * shapes, 100)
        for set_ in rng.choice([path, star, clique, copies])(base, rng.randrange(1, 9))
    ]
    rng.shuffle(sets)
    lines = [
        Line(b"v%03d" % i + rng.choice([b"", b"\1", b"\xc3\xa9"]), x) for i, x in enumerate(sets)
    ]
    if unique:
        return lines
    return [line._replace(id=rng.choice([line.id, line.id[:3]])) for line in lines]


def as_line(rng: random.Random, line: Line) -> bytes:
    """Return a record line: the set in any order, with a repeat, separated by blanks or tabs."""
    tokens = [*map(b"%d".__mod__, line.set), b"%d" % min(line.set)]
    rng.shuffle(tokens)
    return rng.choice([b"", b" "]) + rng.choice([b" ", b"\t"]).join([line.id, *tokens])


class Kind(NamedTuple):
    """How an odd input file is written: its name, line ends, first bytes and compression."""

    name: bytes
    end: bytes = b"\n"
    start: bytes = b""
    last_end: bool = True
    pack: Callable[[bytes], bytes] = bytes


KINDS = [
    Kind(b"-x", b"\r\n"),
    Kind(b"a[1].txt", b"\r", last_end=False),
    Kind(b"\xff*.txt", start=codecs.BOM_UTF8),
    Kind(b"packed.gz", b"\r\n", pack=gzip.compress),
    Kind(b"packed.bz2", last_end=False, pack=bz2.compress),
]


def odd_files(folder: Path, records: list[Line], seed: int = 3, twice: bool = True) -> Collection:
    """Write the records to five files; if `twice`, two of them, and their lines, count twice."""
    rng = random.Random(seed)
    folder.mkdir(exist_ok=True)
    parts: list[tuple[str, list[bytes], list[Line | None]]] = []
    for number, kind in enumerate(KINDS):
        texts: list[bytes] = []
        mine: list[Line | None] = []
        for record in records[number :: len(KINDS)]:
            texts.append(as_line(rng, record))
            mine.append(record)
            if rng.random() < 0.3:
                texts.append(rng.choice(NO_RECORDS))
                mine.append(None)
        texts.append(b"last line")  # without a line end it must not be a blank one
        mine.append(None)
        name = os.path.join(os.fsencode(folder), kind.name)
        data = kind.start + kind.end.join(texts) + kind.end * kind.last_end
        with open(name, "wb") as file:
            file.write(kind.pack(data))
        parts.append((os.fsdecode(name), texts, mine))
    parts += parts[2:4] if twice else []
    return Collection(
        [name for name, _, _ in parts],
        [text for _, texts, _ in parts for text in texts],
        [record for _, _, mine in parts for record in mine],
    )


class Answer(NamedTuple):
    """The oracle's answer for some files, as three outputs."""

    kept: bytes
    removed: bytes
    clusters: bytes


def answer(
    new: Collection,
    rule: str,
    keep: str,
    old: Collection | None = None,
    between: bool = False,
    contained: bool = False,
) -> Answer:
    before = [record._replace(old=True) for record in old.records if record] if old else []
    lines = before + [record for record in new.records if record]
    every = (reasons_to_remove if contained else similarities)(lines, Fraction(THRESHOLD))
    pairs = {
        (i, j): similarity
        for (i, j), similarity in every.items()
        if not between or lines[i].old != lines[j].old
    }
    assert 0 < len(pairs) < len(lines) * (len(lines) - 1)
    both = {**pairs, **{(j, i): similarity for (i, j), similarity in pairs.items()}}
    rank = longest_before(lines, keep) if contained else keep
    gone = direct(lines, pairs, rank) if rule == "direct" else cluster(lines, both, rank)
    places = [i for i, record in enumerate(new.records) if record]
    at = {places[each.place - len(before)] for each in gone}
    assert 0 < len(at) < len(places)
    together = [[lines[i].id for i in some] for some in components(len(lines), both)]
    return Answer(
        kept=b"".join(text + b"\n" for i, text in enumerate(new.lines) if i not in at),
        removed=in_order(
            b"".join(
                b"%b\t%b\t%b\n" % (lines[i].id, lines[kept].id, similarity.encode())
                for i, kept, similarity in gone
            )
        ),
        clusters=in_order(
            b"".join(b"%b\t%b\n" % (min(some), id_) for some in together for id_ in some)
        ),
    )


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return odd_files(tmp_path_factory.mktemp("new"), near_copies(1))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Return the new records in files named once, since run_local.sh refuses others for removed."""
    return odd_files(tmp_path_factory.mktemp("once"), near_copies(1), twice=False)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Return old records: 15 of the new ones, under the same ids, in files of their own."""
    return odd_files(tmp_path_factory.mktemp("old"), random.Random(9).sample(near_copies(1), 15))


# Every engine.


ANSWERS = [
    ("kept", "direct", "first"),
    ("kept", "direct", "longest"),
    ("kept", "cluster", "smallest"),
    ("removed", "direct", "first"),
    ("removed", "direct", "smallest"),
    ("removed", "cluster", "longest"),
    ("clusters", "direct", "first"),
]


@pytest.mark.first_case
@in_turn(2, asked={"-".join(each): each for each in ANSWERS}, engine=DECIDING)
def test_the_answer(
    asked: tuple[str, str, str], engine: Deciding, new: Collection, once: Collection, tmp_path: Path
) -> None:
    output, rule, keep = asked
    new = once if output == "removed" else new
    flags = [*EXACT, f"--output={output}"]
    if output != "clusters":
        flags += [f"--rule={rule}", f"--keep={keep}"]
    found = engine(new.given(), flags, tmp_path)
    assert found == getattr(answer(new, rule, keep), output)


OF_TWO = [("kept", "first", False), ("removed", "longest", False), ("removed", "smallest", True)]


@pytest.mark.slow
@in_turn(2, asked={f"{a}-{b}": (a, b, c) for a, b, c in OF_TWO}, engine=DECIDING)
def test_of_two_collections(
    asked: tuple[str, str, bool],
    engine: Deciding,
    old: Collection,
    new: Collection,
    once: Collection,
    tmp_path: Path,
) -> None:
    output, keep, between = asked
    flags = [*EXACT, f"--output={output}", f"--keep={keep}", *["--between"] * between]
    flags += [f"--against={name}" for name in old.files]
    new = once if output == "removed" else new
    found = engine(new.given(), flags, tmp_path)
    assert found == getattr(answer(new, "direct", keep, old, between), output)


CONTAINED = [
    ("kept", "direct", "first"),
    ("removed", "direct", "smallest"),
    ("removed", "cluster", "first"),
    ("clusters", "direct", "first"),
    ("kept", "against", "first"),
    ("removed", "between", "smallest"),
]


@in_turn(2, asked={"-".join(each): each for each in CONTAINED}, engine=DECIDING)
def test_by_containment_the_longest_is_kept(
    asked: tuple[str, str, str], engine: Deciding, tmp_path: Path
) -> None:
    """Whatever --keep says, and in an old collection, too, no record goes for a shorter one."""
    output, rule, keep = asked
    rng = random.Random(5)
    sets = [set_ for base in range(0, 400, 100) for set_ in nested(base, 7)] + path(500, 6)
    lines = [Line(b"v%02d" % i, some) for i, some in enumerate(rng.sample(sets, len(sets)))]
    new = odd_files(tmp_path / "new", lines, twice=output != "removed")
    flags = [f"--output={output}"]
    flags += ["--scheme=prefix", "--measure=containment", f"--threshold={THRESHOLD}"]
    if output != "clusters":
        flags += [f"--keep={keep}"]
    old = None
    if rule in ("against", "between"):
        # No new set is equal to an old one, which might be named as the reason instead.
        some = [Line(b"o%d" % i, frozenset([*x, 99])) for i, x in enumerate(nested(0, 7))]
        old = odd_files(tmp_path / "old", some)
        flags += [f"--against={name}" for name in old.files] + ["--between"] * (rule == "between")
    elif output != "clusters":
        flags += [f"--rule={rule}"]
    if engine is DECIDING["pipe"]:  # which counts tokens in programs of their own
        flags.append(counts_of(new.files, flags[1:3], tmp_path))
    rule_of_all = "cluster" if rule == "cluster" else "direct"
    expected = answer(new, rule_of_all, keep, old, rule == "between", contained=True)
    assert engine(new.given(), flags, tmp_path) == getattr(expected, output)


@pytest.mark.first_case
@every_engine
def test_standard_input(engine: str, tmp_path: Path) -> None:
    data = b"b 1 2 3\r\n\r\na 3 2 1\nbad x\na 1 2 3"
    for output, expected in (
        ("kept", b"b 1 2 3\n\nbad x\n"),
        ("removed", b"a\tb\t1.000000\na\tb\t1.000000\n"),
        ("clusters", b"a\ta\na\ta\na\tb\n"),
    ):
        assert DECIDING[engine](Input(data, ["-"]), [f"--output={output}"], tmp_path) == expected


@pytest.mark.slow
@in_turn(1, engine=list(DECIDING), data=[b"", b"\na 1 2\nb 3\n", b"bad\na 1\n"])
def test_nothing_to_decide(engine: str, data: bytes, tmp_path: Path) -> None:
    path = a_file(tmp_path / "few.txt", data)
    for output in ("kept", "clusters"):
        found = DECIDING[engine](Input(b"", [str(path)]), [f"--output={output}"], tmp_path)
        assert found == (data if output == "kept" else b"")


@pytest.mark.first_case
@every_engine
def test_the_same_file_twice(engine: str, tmp_path: Path) -> None:
    """Lines of a file that is given twice are separate records, and the copies are removed."""
    path = a_file(tmp_path / "some.txt", b"a 1 2\n\nb 3 4\n")
    given = Input(b"", [str(path)] * 2)
    assert DECIDING[engine](given, ["--output=kept"], tmp_path) == b"a 1 2\n\nb 3 4\n\n"
    if engine == "pipe":  # whose programs read one part of the input each
        removed = DECIDING[engine](given, ["--output=removed"], tmp_path)
        assert removed == b"a\ta\t1.000000\nb\tb\t1.000000\n"
    else:  # each record would be removed because of itself
        result = run([*RUN_LOCAL, "--output=removed", path, path], tmp_path)
        assert (result.code, result.out) == (2, b"")
        assert f"{path} and {path} are one file; name it once" in result.err


@pytest.mark.first_case
@every_engine
def test_an_id_twice(engine: str, tmp_path: Path) -> None:
    """Records with one id are compared like any others: equal and similar sets are removed."""
    path = a_file(tmp_path / "twice.txt", b"a 1 2 3 4 5\na 7\na 5 4 3 2 1\na 1 2 3 4\nb 7\n")
    given, flags = Input(b"", [str(path)]), EXACT
    kept = DECIDING[engine](given, [*flags, "--output=kept"], tmp_path)
    assert kept == b"a 1 2 3 4 5\na 7\n"
    removed = DECIDING[engine](given, [*flags, "--output=removed"], tmp_path)
    assert removed == b"a\ta\t0.800000\na\ta\t1.000000\nb\ta\t1.000000\n"


@pytest.mark.first_case
@in_turn(2, engine=DECIDING, words=["--scheme=prefix", "--bands=4 --rows=3", ""])
def test_the_pairs_of_other_schemes(engine: Deciding, words: str, tmp_path: Path) -> None:
    """Engines decide by the pairs of prefix, which counts tokens first, and of minhash."""
    lines = near_copies(4, shapes=40)
    path = tmp_path / "records.txt"
    rng = random.Random(1)
    path.write_bytes(b"".join(as_line(rng, line) + b"\n" for line in lines))
    flags = [*words.split(), "--threshold=0.8", "--output=removed"]
    expected = [line.split(b"\t", 1)[1] for line in decide(lines, flags).lines]
    assert len(expected) > 20
    if engine is DECIDING["pipe"] and "prefix" in words:
        flags.append(counts_of([str(path)], flags[:1], tmp_path))
    assert engine(Input(b"", [str(path)]), flags, tmp_path) == b"".join(sorted(expected))


# Real data: the three properties, over the pairs that were found.


def check_properties(data: bytes, pairs: bytes, removed: bytes, kept: bytes, keep: str) -> None:
    """Check the properties that every decision has, on plain record lines with distinct ids."""
    lines = data.splitlines(keepends=True)
    ids = [line.split(maxsplit=1)[0] for line in lines]
    similar: dict[bytes, dict[bytes, bytes]] = {id_: {} for id_ in ids}
    for line in pairs.splitlines():
        a, b, similarity = line.split(b"\t")
        similar[a][b] = similar[b][a] = similarity
    gone = {line.split(b"\t")[0]: line.split(b"\t")[1:] for line in removed.splitlines()}
    assert 0 < len(gone) < len(lines)
    assert kept == b"".join(line for id_, line in zip(ids, lines) if id_ not in gone)
    in_order_ = sorted(ids) if keep == "smallest" else ids
    rank = {id_: i for i, id_ in enumerate(in_order_)}
    for id_ in ids:
        staying = [other for other in similar[id_] if other not in gone]
        if id_ not in gone:
            assert not staying
            continue
        before = [other for other in staying if rank[other] < rank[id_]]
        best = min(before, key=lambda other: (-float(similar[id_][other]), rank[other]))
        assert gone[id_] == [best, similar[id_][best]]


@pytest.mark.first_case
@pytest.mark.parametrize("keep", ["first", "smallest"])
def test_of_the_videos(keep: str, tmp_path: Path) -> None:
    flags = ["--output=kept", f"--keep={keep}", "--removed", str(tmp_path / "removed.tsv")]
    rng = random.Random(2)
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    answers = set()
    for data in (b"".join(lines), b"".join(rng.sample(lines, len(lines)))):
        kept = succeed([*RUN_LOCAL, *flags, "-"], tmp_path, data).out
        removed = (tmp_path / "removed.tsv").read_bytes()
        check_properties(data, ANSWER.read_bytes(), removed, kept, keep)
        answers.add(removed)
    assert len(answers) == (1 if keep == "smallest" else 2)


def test_the_most_similar_is_so_by_the_fraction(tmp_path: Path) -> None:
    """The most similar record is found by exact fractions: 3000/3001 is above 2999/3000."""
    numbers = list(range(1, 3001))
    sets = {"a": numbers[:-1], "b": [*numbers, 3001], "c": numbers}
    for name, some in ("old", "ab"), ("new", "c"):
        lines = "".join(f"{id_} {' '.join(map(str, sets[id_]))}\n" for id_ in some)
        (tmp_path / name).write_text(lines)
    words = ["--output=removed", f"--against={tmp_path}/old", tmp_path / "new"]
    assert succeed([*RUN_LOCAL, *words], tmp_path).out == b"c\tb\t0.999667\n"
