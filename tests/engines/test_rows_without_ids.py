"""What is deleted by the ids of removed records leaves a copy of every text."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import same_ids
from tests.support.cases import in_turn
from tests.support.engines import (
    DECIDE,
    INLINE,
    MAPPER,
    NEARDUP,
    REDUCER,
    SHARE_KEYS,
    in_order,
    refuse,
    run,
    succeed,
)

ROWS, TEXTS = 2000, 1000


def drawn() -> list[tuple[int | None, str]]:
    """Return rows (id or None, text), two of each text; the ids are numbers of other rows."""
    draw = random.Random(41)
    texts = [" ".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=9)) for _ in range(TEXTS)] * 2
    draw.shuffle(texts)
    ids = draw.sample(range(1, ROWS + 1), ROWS)
    return [(id_ if draw.random() < 0.5 else None, text) for id_, text in zip(ids, texts)]


def written(rows: list[tuple[int | None, str]], path: Path) -> Path:
    if path.suffix in (".parquet", ".arrow"):
        files = pytest.importorskip("tests.support.typed_tables")
        ids, texts = map(list, zip(*rows))
        files.write_table(files.arrow.table({"id": ids, "text": texts}), path)
    elif path.suffix == ".csv":
        file = io.StringIO()
        csv.writer(file).writerows([("id", "text"), *rows])
        path.write_text(file.getvalue())
    else:
        lines = ({"text": text} if id_ is None else {"id": id_, "text": text} for id_, text in rows)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.slow
@in_turn(1, kind=["jsonl", "csv", "parquet", "arrow"], jobs=["1", "3"])
def test_no_text_is_lost(kind: str, jobs: str, tmp_path: Path) -> None:
    rows = drawn()
    path = written(rows, tmp_path / f"x.{kind}")
    flags = ["--shingle=word:1", "--exact", "--threshold=1", f"--jobs={jobs}"]
    out = succeed([*NEARDUP, "run", "--output=removed", *flags, path], tmp_path).out
    gone = {line.split(b"\t")[0].decode() for line in out.splitlines()}
    sets = [frozenset(text.split()) for _, text in rows]
    names = [str(id_ or f"x.{kind}:{i}") for i, (id_, _) in enumerate(rows, 1)]
    assert gone < set(names)
    assert len(gone) == ROWS - len(set(sets))
    assert {text for name, text in zip(names, sets) if name not in gone} == set(sets)
    clusters = succeed([*NEARDUP, "run", "--output=clusters", *flags, path], tmp_path).out
    assert len({line.split(b"\t")[0] for line in clusters.splitlines()}) == len(set(sets))


def test_the_pipe_makes_the_same_ids(tmp_path: Path) -> None:
    path = written([(3, "to be"), (7, "or not"), (None, "to be")], tmp_path / "x.jsonl")
    keyed = in_order(succeed([*MAPPER, "--input=jsonl", path], tmp_path).out)
    assert succeed([*REDUCER, "--input=jsonl"], tmp_path, keyed).out == b"3\tx.jsonl:3\t1.000000\n"
    piped = in_order(succeed([*MAPPER, "--input=jsonl"], tmp_path, path.read_bytes()).out)
    assert succeed([*REDUCER, "--input=jsonl"], tmp_path, piped).out == b"-:3\t3\t1.000000\n"


@pytest.mark.slow
def test_a_task_leaves_out_rows_without_ids(tmp_path: Path) -> None:
    """It sees a part of a file, and cannot number them; it refuses no id for their sake."""
    rows = [{"id": "x.jsonl:3", "text": "to be"}, {"id": 7, "text": "to be"}, {"text": "to be"}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run([*INLINE, "--input=jsonl", tmp_path / "x.jsonl"], tmp_path)
    assert (result.code, result.out) == (0, b"7\tx.jsonl:3\t1.000000\n")
    assert "line 3: no id" in result.err


@pytest.mark.slow
def test_one_file_under_two_names(tmp_path: Path) -> None:
    """All its ids would be removed.  The kept rows of two readings are no less right."""
    path = written([(1, "to be"), (2, "or not")], tmp_path / "x.jsonl")
    (tmp_path / "y.jsonl").symlink_to(path)
    for other in (path, tmp_path / "." / "x.jsonl", tmp_path / "y.jsonl"):
        files = [str(path), f"{tmp_path}/./{other.name}"]
        result = refuse([*NEARDUP, "run", "--output=removed", *files], tmp_path)
        named = " and ".join(sorted(files))
        assert f"{named} are one file; name it once" in result.err
    kept = succeed([*NEARDUP, "run", "--output=kept", *files], tmp_path).out
    assert kept == path.read_bytes()


def from_file(path: Path, words: Sequence[object]) -> list[object]:
    """Return a command whose standard input is a file."""
    return ["sh", "-c", 'exec < "$0"; exec "$@"', path, *words]


@pytest.mark.parametrize("output", ["removed", "kept", "marked"])
def test_an_old_file_that_is_a_new_one_too(output: str, tmp_path: Path) -> None:
    """All its records would be removed, because of themselves."""
    path = written([(1, "to be"), (2, "or not")], tmp_path / "x.jsonl")
    (tmp_path / "y.jsonl").symlink_to(path)
    other = written([(3, "to see")], tmp_path / "z.jsonl")
    for old in (path, tmp_path / "y.jsonl"):
        words = [*NEARDUP, "run", f"--output={output}", f"--against={old}", other, path]
        refuse(words, tmp_path, "--against: ", f"{path}", "are one file; name it once")
        words = [*MAPPER, f"--output={output}", f"--against={old}", "--input=jsonl", other, path]
        refuse(words, tmp_path, "--against: ", f"{path}", "are one file; name it once")
        for program in ([*NEARDUP, "run"], MAPPER):
            words = [*program, f"--output={output}", f"--against={old}", "--input=jsonl", "-"]
            refuse(from_file(path, words), tmp_path, "are one file; name it once")
    pairs = [*NEARDUP, "run", "--output=pairs", f"--against={path}", path]
    assert succeed(pairs, tmp_path).out == b"1\t1\t1.000000\told\n2\t2\t1.000000\told\n"


@pytest.mark.parametrize("more", [[], ["--compact"]])
def test_an_index_that_was_made_of_a_new_file(more: list[str], tmp_path: Path) -> None:
    """All its records would be removed, because of themselves, unless it has changed since.

    A copy of it is one, too: the file may be moved, or come back from another machine.
    """
    path = written([(1, "to be"), (2, "or not")], tmp_path / "x.jsonl")
    (tmp_path / "y.jsonl").symlink_to(path)
    copy = Path(shutil.copyfile(path, tmp_path / "copy.jsonl"))
    index, ids = tmp_path / "old.index", tmp_path / "ids"
    other = written([(3, "to see")], tmp_path / "z.jsonl")
    ids.write_text("3\n")
    succeed([*NEARDUP, "index", other, path, "--to", index], tmp_path)
    succeed([*NEARDUP, "index", "--remove", ids, "--to", index, *more], tmp_path)
    for name in (path, tmp_path / "y.jsonl", copy):
        for output in ("removed", "kept", "marked"):
            words = [*NEARDUP, "run", f"--output={output}", f"--against={index}", name]
            advice = f"leave out --against {index}, or name new records instead"
            refuse(words, tmp_path, f"{index}: was made of {name}", advice)
            read = from_file(name, [*words[:-1], "--input=jsonl", "-"])
            refuse(read, tmp_path, f"{index}: was made of -", advice)
    pairs = [*NEARDUP, "run", f"--against={index}", path]
    assert succeed(pairs, tmp_path).out == b"1\t1\t1.000000\told\n2\t2\t1.000000\told\n"
    written([(1, "to be"), (2, "or not"), (4, "that is")], path)
    kept = succeed([*NEARDUP, "run", "--output=kept", f"--against={index}", path], tmp_path).out
    assert [row["id"] for row in map(json.loads, kept.splitlines())] == [4]
    ids.write_text("1\n")
    succeed([*NEARDUP, "index", "--remove", ids, "--to", index, *more], tmp_path)
    refuse([*NEARDUP, "run", "--output=kept", f"--against={index}", copy], tmp_path, advice)
    ids.write_text("2\n")
    succeed([*NEARDUP, "index", "--remove", ids, "--to", index, *more], tmp_path)
    kept = succeed([*NEARDUP, "run", "--output=kept", f"--against={index}", copy], tmp_path).out
    assert kept == copy.read_bytes()  # the index has no record of it any more


@pytest.mark.parametrize("flags", [[], ["--output=clean"]])
def test_a_test_file_that_is_training_data_too(flags: list[str], tmp_path: Path) -> None:
    path = written([(1, "to be"), (2, "or not")], tmp_path / "x.jsonl")
    (tmp_path / "y.jsonl").symlink_to(path)
    for name in (path, tmp_path / "y.jsonl"):
        words = [*NEARDUP, "leaks", path, "--test", name, *flags]
        refuse(words, tmp_path, "--test: ", "are one file; name it once")


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--exact"], ["--memory=0", "--jobs=2"]])
def test_an_id_of_a_removed_and_of_a_kept_record_is_named(flags: list[str], tmp_path: Path) -> None:
    """Two files that are both numbered from 1: a text that has no copy would be deleted, too."""
    a = written([(1, "to be"), (2, "or not"), (3, "that is")], tmp_path / "a.jsonl")
    b = written([(1, "the question"), (2, "to be"), (4, "that is")], tmp_path / "b.jsonl")
    command = [*NEARDUP, "run", "--shingle=word:1", *flags]
    result = succeed([*command, "--output=removed", a, b], tmp_path)
    assert result.out == b"2\t1\t1.000000\n4\t3\t1.000000\n"
    told = "1 removed id that kept records have, too  (such as '2'; do not delete by ids; --output "
    assert f"{told}kept writes the rows that are kept)" in result.err
    for others in (["--id="], ["--against", a], ["--output=kept"]):
        files = [b] if "--against" in others else [a, b]
        result = succeed([*command, "--output=removed", *others, *files], tmp_path)
        assert "too  (such" not in result.err


@pytest.mark.parametrize("flags", [["--exact"], ["--memory=0", "--jobs=2"]])
def test_ids_of_removed_and_of_kept_records_are_counted(flags: list[str], tmp_path: Path) -> None:
    files = same_ids.written(tmp_path)
    result = succeed([*NEARDUP, "run", *flags, "--output=removed", *files], tmp_path)
    assert same_ids.remark(result.out, files) in result.err


def test_ids_are_counted_in_parts_if_they_do_not_fit_into_memory(tmp_path: Path) -> None:
    files = same_ids.written(tmp_path)
    code = "from neardup.engines.local import run; from neardup.stages import edge_groups; "
    code += "edge_groups.HELD_BYTES = 40 * 30; raise SystemExit(run.command())"
    command = [sys.executable, "-c", code, "--memory=0", "--output=removed", *files]
    result = succeed(command, tmp_path)
    assert same_ids.remark(result.out, files) in result.err
    assert result.out.count(b"\n") > 4 * 30


@pytest.mark.parametrize("rounds", [1, 2])
def test_steps_of_a_cluster_count_them(rounds: int, tmp_path: Path) -> None:
    """Of each id, one reducer learns how many records have it."""
    files = same_ids.written(tmp_path)
    flags, three = ["--output=removed"], {"mapreduce_job_reduces": "3"}
    mapper = [*MAPPER, "--blocks", *flags]

    def reduced(mapper: list[object], reducer: list[object]) -> bytes:
        sent = in_order(succeed([*mapper, *files], tmp_path, **three).out)
        blocks = sent.splitlines(keepends=True)
        mine = [b"".join(b for b in blocks if b.startswith(b"p%d/3" % i)) for i in range(3)]
        return b"".join(succeed(reducer, tmp_path, some).out for some in mine)

    if rounds == 2:
        shared = reduced([*SHARE_KEYS, "map", *flags], [*SHARE_KEYS, "reduce", *flags])
        (tmp_path / "shared").write_bytes(shared)
        mapper += ["--shared-keys", tmp_path / "shared"]
    edges = in_order(reduced(mapper, [*REDUCER, *flags]))
    result = succeed([*DECIDE, *flags], tmp_path, edges)
    assert same_ids.remark(result.out, files) in result.err
    here = succeed([*NEARDUP, "run", "--scheme=minhash", *flags, *files], tmp_path)
    assert result.out == here.out


def test_the_pipe_counts_them_only_where_ids_are_listed(tmp_path: Path) -> None:
    files = same_ids.written(tmp_path)
    for flags in (["--output=removed"], ["--output=kept"]):
        keyed = in_order(succeed([*MAPPER, *flags, *files], tmp_path).out)
        edges = in_order(succeed([*REDUCER, *flags], tmp_path, keyed).out)
        result = succeed([*DECIDE, *flags], tmp_path, edges)
        if "--output=removed" in flags:
            assert same_ids.remark(result.out, files) in result.err
        else:
            assert b"~" not in keyed
            assert "have, too" not in result.err
    keyed = in_order(succeed([*MAPPER, "--output=removed", *files], tmp_path).out)
    edges = in_order(succeed([*REDUCER, "--output=kept"], tmp_path, keyed).out)
    result = succeed([*DECIDE, "--output=kept"], tmp_path, edges)
    removed = b"".join(line[17:] for line in result.out.splitlines(keepends=True))
    assert same_ids.remark(removed, files) in result.err
    refuse([*REDUCER], tmp_path, "~7", code=1, stdin=b"~7\n")


def test_made_up_ids_of_an_index_are_never_made_again(tmp_path: Path) -> None:
    """Two inputs from `-`, and a file that is added again after it has changed."""
    index, name = tmp_path / "idx", tmp_path / "x.jsonl"
    for source, more in (("-", []), ("-", ["--add"]), (name, ["--add"]), (name, ["--add"])):
        rows = written([(None, "to be"), (None, "or not")], name).read_bytes()
        flags = ["--input=jsonl", "--shingle=word:1", "--to", index, *more]
        succeed([*NEARDUP, "index", *flags, source], tmp_path, rows)
    found = succeed([*NEARDUP, "run", "--against", index, "-"], tmp_path, rows).out.splitlines()
    ids = [b"-#2", b"-#3", b"%b" % bytes(name), b"%b#5" % bytes(name)]
    assert found == sorted(
        b"-:%d\t%b:%d\t1.000000\told" % (row, id_, row) for id_ in ids for row in (1, 2)
    )
    result = run([*NEARDUP, "index", *flags, "-"], tmp_path, b'{"id": "-#2:1", "text": "to be"}\n')
    assert "the id '-#2:1' is also that of a row without an id" in result.err


@pytest.mark.slow
def test_queries_and_an_index(tmp_path: Path) -> None:
    """In an index a made-up id has the whole path of its file, and is found by it."""
    path = written([(3, "to be"), (None, "or not")], tmp_path / "x.jsonl")
    flags = ["--shingle=word:1", "--to", tmp_path / "idx"]
    succeed([*NEARDUP, "index", *flags, path], tmp_path)
    asked = written([(None, "or not"), (2, "to be")], tmp_path / "q.jsonl")
    found = succeed([*NEARDUP, "find", tmp_path / "idx", asked], tmp_path).out
    assert found == f"q.jsonl:1\t{path}:2\t1.000000\n2\t3\t1.000000\n".encode()
