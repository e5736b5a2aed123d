"""Every engine keeps the same pairs out: those of a verdict file, and those of a list of ids."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.engines.test_invariance import TEXT
from tests.engines.test_within import (
    DENSE,
    ROWS,
    WAYS,
    Row,
    Similarities,
    allowed,
    as_lines,
    cluster_lines,
    removed_lines,
    written,
)
from tests.engines.test_within import FLAGS as EXACT
from tests.support.cases import crossed, in_turn
from tests.support.engines import (
    DECIDING,
    ENGINES,
    JOB,
    MAPPER,
    NEARDUP,
    RUN_LOCAL,
    Deciding,
    Engine,
    Input,
    in_order,
    refuse,
    run,
    succeed,
)

FLAGS = ["--threshold=0.7", "--scheme=partition"]
DIFFERENT = 12  # pairs that were judged different


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of records, all pairs, verdicts on some of them, and the same as ids."""
    folder = tmp_path_factory.mktemp("not-pairs")
    (folder / "records").write_bytes(TEXT)
    pairs = succeed([*NEARDUP, "truth", "--threshold=0.7", folder / "records"], folder).out
    (folder / "pairs").write_bytes(pairs)
    names = [folder / "pairs", "--records", folder / "records", "--sample=40", "--terminal"]
    succeed([*NEARDUP, "judge", *names], folder, b"sd" * DIFFERENT)
    lines = (folder / "pairs.verdicts").read_bytes().splitlines()
    ids = [line.split(b"\t")[6:] for line in lines if line.startswith(b"different")]
    (folder / "ids").write_bytes(b"".join(b"%b\t%b\n" % (b, a) for a, b in ids))
    assert len(ids) == DIFFERENT
    return folder


def out(folder: Path, kind: str) -> str:
    return f"--not-pairs={folder / kind}"


@pytest.mark.parametrize("kind", ["pairs.verdicts", "ids"])
def test_truth_leaves_out_these_pairs_alone(kind: str, folder: Path, tmp_path: Path) -> None:
    words = [*NEARDUP, "truth", "--threshold=0.7", folder / "records"]
    found = succeed([*words, out(folder, kind)], tmp_path)
    every = set((folder / "pairs").read_bytes().splitlines())
    gone = {tuple(sorted(line.split(b"\t")[:2])) for line in every - set(found.out.splitlines())}
    ids = {tuple(sorted(line.split(b"\t"))) for line in (folder / "ids").read_bytes().splitlines()}
    assert ids <= gone  # a verdict on sets is one on all of their copies
    assert (gone == ids) or kind != "ids"
    assert len(every) > len(gone) >= DIFFERENT


@in_turn(1, engine=ENGINES, kind=["pairs.verdicts", "ids"])
def test_pairs(engine: Engine, kind: str, folder: Path, tmp_path: Path) -> None:
    words = [*NEARDUP, "truth", "--threshold=0.7", folder / "records", out(folder, kind)]
    given = Input(TEXT, [str(folder / "records")])
    found = engine(given, [*FLAGS, out(folder, kind)], tmp_path)
    assert in_order(found) == succeed(words, tmp_path).out


@crossed(engine=DECIDING, kind=["pairs.verdicts", "ids"], output=["removed", "clusters", "kept"])
def test_decisions(engine: Deciding, kind: str, output: str, folder: Path, tmp_path: Path) -> None:
    """An independent check: greedy over the pairs of `truth`."""
    words = [*NEARDUP, "truth", "--threshold=0.7", folder / "records", out(folder, kind)]
    near: dict[bytes, set[bytes]] = {}
    for line in succeed(words, tmp_path).out.splitlines():
        a, b, _ = line.split(b"\t")
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    given = Input(b"", [str(folder / "records")])
    flags = [*FLAGS, f"--output={output}", out(folder, kind)]
    found = engine(given, flags, tmp_path)
    ids = [line.split(b" ")[0] for line in TEXT.splitlines()]
    if output == "clusters":
        assert {line.split(b"\t")[1] for line in found.splitlines()} == near.keys()
        return
    kept: list[bytes] = []
    for id_ in ids:
        if near.get(id_, set()).isdisjoint(kept):
            kept.append(id_)
    if output == "kept":
        assert [line.split(b" ")[0] for line in found.splitlines()] == kept
    else:
        assert {line.split(b"\t")[0] for line in found.splitlines()} == {*ids} - {*kept}


def test_the_run_file_and_the_summary_name_it(folder: Path, tmp_path: Path) -> None:
    flags = ["--threshold=0.7", out(folder, "ids"), folder / "records", "-o", tmp_path / "p"]
    found = succeed([*RUN_LOCAL, *flags], tmp_path)
    assert f"{DIFFERENT} pairs kept out by --not-pairs" in found.err
    assert "--not-pairs=/" in (tmp_path / ".p.neardup.json").read_text()


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    words = [*RUN_LOCAL, folder / "records"]
    refuse([*words, "--not-pairs=gone"], tmp_path, "gone: No such file", code=1)
    refuse([*words, "--not-pairs="], tmp_path, "--not-pairs", code=2)
    other = [*words, "--input=text", out(folder, "pairs.verdicts")]
    refuse(other, tmp_path, "grep ^different", code=1)
    assert run([*words, out(folder, "pairs")], tmp_path).code == 1


def test_a_list_has_its_first_pair_also_behind_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "ids").write_bytes(b"\xef\xbb\xbfa\tb\r\n")
    (tmp_path / "records").write_bytes(b"a 1 2\nb 1 2\nc 1 2\n")
    words = [*RUN_LOCAL, out(tmp_path, "ids"), "--output=removed", tmp_path / "records"]
    assert succeed(words, tmp_path).out == b"c\ta\t1.000000\n"


@pytest.mark.parametrize("more", [[], ["--memory=0"], ["--exact", "--memory=0"]])
def test_ids_that_no_record_has_are_named(more: list[str], tmp_path: Path) -> None:
    """A pair with a misspelt id would be removed."""
    (tmp_path / "ids").write_bytes(b"a\tbb\nd\ta\nx \td\nold\tempty\n")
    (tmp_path / "old").write_bytes(b"old 8 9\n")
    (tmp_path / "records").write_bytes(b"a 1 2\nb 1 2\nd 7 8\nx 3\nempty\n")
    files = [f"--against={tmp_path}/old", tmp_path / "records"]
    words = [*RUN_LOCAL, *more, out(tmp_path, "ids"), "--output=removed", *files]
    said = "\n2 ids of --not-pairs that no record has  (such as 'bb', 'x '; their pairs are not"
    assert said in succeed(words, tmp_path).err
    (tmp_path / "ids").write_bytes(b"d\ta\n")
    assert "that no record has" not in succeed(words, tmp_path).err


@pytest.mark.parametrize(
    ("engine", "output"), [(MAPPER, "pairs"), (MAPPER, "removed"), (JOB, "pairs")]
)
def test_the_records_with_a_listed_id_are_counted_where_each_task_sees_a_part(
    engine: list[str], output: str, tmp_path: Path
) -> None:
    """A pair with a misspelt id would be removed; no task knows what the others have seen."""
    (tmp_path / "ids").write_bytes(b"a\tbb\nd\ta\nx \td\nold\tempty\n")
    (tmp_path / "records").write_bytes(b"a 1 2\nb 1 2\nd 7 8\nx 3\nempty\n")
    words = [*engine, f"--output={output}", out(tmp_path, "ids"), tmp_path / "records"]
    said = "\n3 records with one of the 6 ids of --not-pairs\n"
    assert said in succeed(words, tmp_path).err  # a, d and empty
    (tmp_path / "ids").write_bytes(b"none\tb\n")
    said = "\n1 record with one of the 2 ids of --not-pairs\n"
    assert said in succeed(words, tmp_path).err


@pytest.mark.parametrize("flag", ["--not-pairs", "--counts"])
def test_a_pipe_that_only_the_first_process_could_read_is_refused(
    flag: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "records").write_bytes(b"a 1 2\nb 1 2\n")
    words = [*RUN_LOCAL, f"{flag}={tmp_path}/pipe", "--scheme=imatch", tmp_path / "records"]
    refuse(words, tmp_path, "not a regular file; copy it to one", code=2)


@pytest.mark.parametrize("data", [b"a 1 2\n", b"a 1 2\nb 7 8\n"], ids=["one", "two"])
@pytest.mark.parametrize("output", ["pairs", "removed", "clusters", "links"])
def test_where_no_two_records_are_compared(data: bytes, output: str, tmp_path: Path) -> None:
    (tmp_path / "ids").write_bytes(b"a\tb\n")
    (tmp_path / "records").write_bytes(data)
    words = [*RUN_LOCAL, out(tmp_path, "ids"), f"--output={output}", tmp_path / "records"]
    for more in (["--exact"], [], ["--exact", "--memory=0"]):
        assert succeed([*words, *more], tmp_path).out == b""


@cache
def verdicts(dense: bool, way: str) -> bytes:
    """Return a file of verdicts on some of the pairs that an option allows."""
    rows = DENSE if dense else ROWS
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pairs").write_bytes(as_lines(rows, allowed(rows, way)))
        words = [*NEARDUP, "judge", folder / "pairs", "--records", *written(rows, folder).files]
        judged = ["--shingle=word:1", "--sample=60", "--terminal"]
        succeed([*words, *judged], folder, b"d" * 40)
        return (folder / "pairs.verdicts").read_bytes()


def kept_out(rows: list[Row], way: str, kind: str, folder: Path) -> tuple[str, Similarities]:
    """Return --not-pairs with some of the pairs that an option allows, and the other pairs."""
    every, found = allowed(rows, way), verdicts(rows is DENSE, way)
    (folder / "pairs.verdicts").write_bytes(found)
    lines = found.decode().splitlines()
    ids = [line.split("\t")[6:] for line in lines if line.startswith("different")]
    (folder / "ids").write_text("".join(f"{b}\t{a}\n" for a, b in ids))
    place = {row.id: i for i, row in enumerate(rows)}
    gone = [(place[a], place[b]) for a, b in ids]
    sets = {frozenset((rows[i].words, rows[j].words)) for i, j in gone if kind != "ids"}
    both = {*gone, *((j, i) for i, j in gone)}
    left = {
        (i, j): similarity
        for (i, j), similarity in every.items()
        if (i, j) not in both
        and (rows[i].words == rows[j].words or {rows[i].words, rows[j].words} not in sets)
    }
    assert len(gone) == 40
    assert any(rows[i].words == rows[j].words for i, j in gone)
    assert 20 < len(left) < len(every)
    return out(folder, kind), left


KINDS = ["ids", "pairs.verdicts"]


@in_turn(1, engine=ENGINES, way=list(WAYS), kind=KINDS)
def test_pairs_of_values(engine: Engine, way: str, kind: str, tmp_path: Path) -> None:
    """Pairs are kept out among those of equal values, or of different ones."""
    flag, left = kept_out(ROWS, way, kind, tmp_path)
    flags = ["--input=jsonl", *EXACT, way, flag]
    found = engine(written(ROWS, tmp_path), flags, tmp_path)
    assert in_order(found) == as_lines(ROWS, left)
    words = [*NEARDUP, "truth", *EXACT[1:], way, flag, tmp_path / "rows.jsonl"]
    assert in_order(succeed(words, tmp_path).out) == as_lines(ROWS, left)


@in_turn(2, engine=DECIDING, way=list(WAYS), kind=KINDS, rows={"dense": DENSE, "few": ROWS})
def test_decisions_by_value(
    engine: Deciding, way: str, kind: str, rows: list[Row], tmp_path: Path
) -> None:
    flag, left = kept_out(rows, way, kind, tmp_path)
    given, flags = written(rows, tmp_path), ["--input=jsonl", *EXACT, way, flag]
    for rule in ("direct", "cluster"):
        removed = engine(given, [*flags, "--output=removed", f"--rule={rule}"], tmp_path)
        assert in_order(removed) == removed_lines(rows, left, rule)
    clusters = engine(given, [*flags, "--output=clusters"], tmp_path)
    assert in_order(clusters) == cluster_lines(rows, left)


@pytest.mark.parametrize("way", WAYS)
def test_old_records_by_value(way: str, tmp_path: Path) -> None:
    """Each old record is a reason to remove, unless the pair is kept out."""
    flag, left = kept_out(ROWS, way, "ids", tmp_path)
    lines = written(ROWS, tmp_path).data.splitlines(keepends=True)
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_bytes(b"".join(lines[:75]))
    new.write_bytes(b"".join(lines[75:]))
    words = [*RUN_LOCAL, *EXACT, way, flag, "--output=removed", "--against", old, new]
    found = [line.split(b"\t")[:2] for line in succeed(words, tmp_path).out.splitlines()]
    place = {row.id.encode(): i for i, row in enumerate(ROWS)}
    assert all((place[a], place[b]) in left for a, b in found)
    kept = [*range(75)]
    for i in range(75, len(ROWS)):
        kept += [i] * all((i, k) not in left for k in kept)
    assert {place[a] for a, _ in found} == {*range(75, len(ROWS))} - {*kept}
