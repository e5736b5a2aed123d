"""Records that are removed from an index are in no answer, before and after it is compacted."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neardup import Index
from neardup.engines.local.key_pruning import found_postings
from neardup.runtime.program import StageError
from neardup.stages import index_manifest, segment
from neardup.stages.index_manifest import Manifest
from tests.library.test_record_index import NEW, OLD, expected
from tests.support.cases import crossed
from tests.support.engines import NEARDUP, RUN_LOCAL, refuse, run, succeed

GONE = [id_ for id_, _ in OLD[10:90:2]]
LEFT = [record for record in OLD if record[0] not in GONE]
T = Fraction("0.7")
INDEX = [*NEARDUP, "index"]


def made(folder: Path, parts: int = 2, **options: Any) -> Index:
    index = Index.create(folder / "index", "sets", threshold=T, **options)
    for number in range(parts):
        index.add(OLD[number::parts])
    return index


@crossed(
    options=[{"exact": True}, {"scheme": "prefix", "measure": "overlap"}, {}],
    parts=[1, 3],
    fence=[4, 8192],
)
def test_as_an_index_without_them(
    options: dict[str, Any], parts: int, fence: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "FENCE", fence)
    monkeypatch.setattr(segment, "PIECE", max(1 << 12, 8 * fence))
    index, reader = made(tmp_path, parts, **options), Index.open(tmp_path / "index")
    measure = options.get("measure", "jaccard")
    before, after = (expected(some, NEW, T, measure) for some in (OLD, LEFT))
    assert reader.query(NEW) == before != after
    assert index.remove(GONE[:9]) == 9
    assert index.remove(iter(GONE[9:])) == len(GONE) - 9
    assert len(index) == len(LEFT)
    assert index.query(NEW) == reader.query(NEW) == after
    as_it_was = reader._state.segments
    index.compact()
    for some in as_it_was:  # a program that reads them now
        assert len([*some.batches(np.flatnonzero(some.present))])
    assert reader.query(NEW) == Index.open(tmp_path / "index").query(NEW) == after
    assert sum(some.stored for some in index._state.segments) == len(index) == len(LEFT)
    index.add([record for record in OLD if record[0] in GONE])
    assert index.query(NEW, top=3) == expected(OLD, NEW, T, measure, 3)
    named = {about["name"] for about in Manifest.of(tmp_path / "index").segments}
    assert {*os.listdir(tmp_path / "index")} == {*named, "manifest.json"}
    with pytest.raises(StageError, match="is missing; run again if the index was compacted and ch"):
        [*as_it_was[0].batches(np.arange(3))]


def test_a_compacted_segment_is_that_of_its_records(tmp_path: Path) -> None:
    index, other = made(tmp_path), Index.create(tmp_path / "other", "sets", threshold=T)
    index.remove(GONE)
    index.compact()
    left = [id_ for id_, _ in LEFT]
    for number in range(2):
        other.add([record for record in OLD[number::2] if record[0] in left])
    for mine, fresh in zip(index._state.segments, other._state.segments):
        for name in ("keys", "holders", "fences", "records", "record_sketches"):
            assert (mine.folder / name).read_bytes() == (fresh.folder / name).read_bytes(), name
        keys = np.unique(np.frombuffer((fresh.folder / "keys").read_bytes(), np.uint64))
        found = (np.concatenate([*found_postings(some, keys, 0, 1)]) for some in (mine, fresh))
        assert np.array_equal(*found)


def test_records_of_one_id_and_integers(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", "sets")
    index.add([(7, [1, 2]), ("7", [3, 4]), ("b", [1, 2])])
    index.add([("7", [1, 2])])
    assert index.remove([7, "7"]) == 3
    assert [match.id for match in index.query([[1, 2], [3, 4]])] == ["b"]
    assert index.remove(["b"]) == 1
    assert index.query([[1, 2]]) == []
    index.compact()
    assert len(index) == len(Index.open(tmp_path / "index")) == 0
    assert index.remove([]) == 0
    index.add([("b", [1, 2])])
    assert [match.id for match in index.query([[1, 2]])] == ["b"]


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (
            [*GONE, "x", "y"],
            "nothing was removed, since it does not have 2 of the 42 ids: 'x', 'y'",
        ),
        ([OLD[0][0], *"vwxyz"], "5 of the 6 ids: 'v', 'w', 'x', …; leave them out"),
        (["empty"], r"1 of the 1 ids: 'empty'; .*an empty text, was never added"),
        ("s1.003", "got one str"),
        ([None], "id None: expected an integer, or non-empty text"),
        (7, "got int"),
    ],
)
def test_all_or_nothing(ids: Any, told: str, tmp_path: Path) -> None:
    index = made(tmp_path)
    assert index.add([("empty", [])]) == 0
    with pytest.raises(ValueError, match=told):
        index.remove(ids)
    assert len(index) == len(OLD)
    index.remove(GONE)
    with pytest.raises(ValueError, match="nothing was removed"):
        index.remove([OLD[0][0], GONE[0]])
    assert len(index) == len(LEFT)


def test_earlier_versions_refuse_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first format without removed records stays that of an index that has none."""
    index = made(tmp_path)
    with monkeypatch.context() as earlier:
        earlier.setattr(index_manifest, "FORMATS", (1, 2))
        Index.open(tmp_path / "index")
    index.remove(GONE)
    for change in (lambda: None, index.compact, lambda: index.add([("new", {1, 2})])):
        change()
        with monkeypatch.context() as earlier:
            earlier.setattr(index_manifest, "FORMATS", (1, 2))
            with pytest.raises(ValueError, match="made by another version of neardup; make the"):
                Index.open(tmp_path / "index")


@pytest.mark.slow
@pytest.mark.parametrize("call", ["remove(sys.argv[2:])", "compact()"])
def test_killed_at_any_moment(call: str, tmp_path: Path) -> None:
    """Whatever is on disk when a program is killed, the index is the old one or the new one."""
    code = """
import os, sys
import neardup
index, left = neardup.Index.open(sys.argv[1]), [int(os.environ["LEFT"])]
def counted(call):
    def wrapped(*args):
        left[0] -= 1
        if not left[0]:
            os._exit(9)
        return call(*args)
    return wrapped
os.fsync, os.replace = counted(os.fsync), counted(os.replace)
index.
"""
    index = made(tmp_path)
    if call == "compact()":
        index.remove(GONE)
    seen = set()
    for left in range(1, 40):
        command = [sys.executable, "-c", code.rstrip() + call, tmp_path / "index", *GONE]
        done = subprocess.run(command, env={**os.environ, "LEFT": str(left)})
        found = Index.open(tmp_path / "index").query(NEW)
        assert found in (expected(OLD, NEW, T), expected(LEFT, NEW, T))
        seen.add((done.returncode, found == expected(LEFT, NEW, T)))
        if done.returncode == 0:
            break
        if call != "compact()" and found == expected(LEFT, NEW, T):
            break
    assert len(seen) > 1


@crossed(flags=[[], ["--exact"]], compact=[[], ["--compact"]])
def test_the_command(flags: list[str], compact: list[str], tmp_path: Path) -> None:
    """A run against the index, and `find`, have the answers of an index of the other records."""
    lines = {id_: f"{id_} {' '.join(map(str, set_))}\n" for id_, set_ in OLD}
    new = "".join(f"{id_} {' '.join(map(str, set_))}\n" for id_, set_ in NEW).encode()
    (tmp_path / "ids").write_text("\r\n".join(GONE) + "\n\n")
    made_of = {"index": lines, "left": {id_: lines[id_] for id_, _ in LEFT}}
    for name, some in made_of.items():
        command = [*INDEX, "-", "--to", tmp_path / name, "--threshold=0.7", *flags]
        succeed(command, tmp_path, "".join(some.values()).encode())
    command = [*INDEX, "--remove", tmp_path / "ids", "--to", tmp_path / "index", *compact]
    result = succeed(command, tmp_path)
    assert f"40 records removed; index {tmp_path}/index: 110 records in 1 segment" in result.err
    for command in (
        ["find"],
        ["run", "--between", "--against"],
        ["run", "--output=kept", "--against"],
    ):
        answers = [
            succeed([*NEARDUP, *command, tmp_path / name, "-"], tmp_path, new).out
            for name in made_of
        ]
        assert sorted(answers[0].splitlines()) == sorted(answers[1].splitlines()) != []
    text = succeed([*RUN_LOCAL, "--against", tmp_path / "index", "-"], tmp_path, new).err
    assert "40 new records and 110 old records" in text


def test_what_the_command_refuses(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "ids").write_bytes(b"s1.003\n\xff\n")
    to = ["--to", tmp_path / "index"]
    refuse([*INDEX, "--remove", tmp_path / "ids", *to], tmp_path, "does not have 1 of the 2 ids: ")
    refuse([*INDEX, "--remove", *to], tmp_path, "required: FILE, with an id on each line; - is")
    refuse([*INDEX, *to], tmp_path, "the following arguments are required: FILE; - is standard")
    refuse([*INDEX, "--compact", tmp_path / "ids", *to], tmp_path, "--compact reads no FILE; leave")
    words = [*INDEX, "--remove", tmp_path / "ids", "--add", *to]
    refuse(words, tmp_path, "--add cannot be used with --remove and --compact; leave it out")
    words = [*INDEX, "--compact", "--to", tmp_path]
    refuse(words, tmp_path, f"--to {tmp_path}: is not an index; name one")
    lost = run([*INDEX, "--remove", tmp_path / "none", *to], tmp_path)
    assert (lost.code, lost.err) == (1, f"neardup index: {tmp_path}/none: no such file\n")
    assert len(Index.open(tmp_path / "index")) == len(OLD)
