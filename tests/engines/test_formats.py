"""One corpus in all formats gives the same pairs, and kept records in its own format."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest

from neardup.reading.compressed import unpacked
from neardup.runtime.counters import RunFile
from tests.support.cases import crossed, some
from tests.support.corpus_in_forms import (
    CORPUS,
    FLAGS,
    FORMS,
    JSONL,
    ROWS,
    TEXT,
    forms,
    made,
    typed_table,
)
from tests.support.engines import (
    DECIDING,
    INLINE,
    LOCAL,
    MAPPER,
    NEARDUP,
    REDUCER,
    RUN_HADOOP,
    RUN_LOCAL,
    Input,
    in_order,
    mrjob,
    refuse,
    run,
    succeed,
)

TYPED = ("a.parquet", "a.arrow", "stream.feather")


def kept_rows(name: str, data: bytes) -> list[tuple[str, str]]:
    """Return the (id, text) of each kept row, read without the project's parsers."""
    if name in TYPED:
        rows = pytest.importorskip("tests.support.typed_tables").read_table(data).to_pylist()
    elif "json" in name:
        rows = [json.loads(line) for line in data.splitlines()]
    else:
        separator = "," if "csv" in name else "\t"
        rows = list(
            csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=separator)
        )
    return [(row["id"], row["text"]) for row in rows]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return {value of --output: answer} for the corpus as lines of text."""
    tmp = tmp_path_factory.mktemp("expected")
    found = {
        output: succeed(
            [*RUN_LOCAL, *FLAGS, "--input=text", f"--output={output}", "-"], tmp, TEXT
        ).out
        for output in ("pairs", "kept", "removed", "clusters")
    }
    assert found["pairs"].count(b"\n") > 40
    assert len(TEXT) > len(found["kept"]) > 0
    return found


@pytest.mark.slow
@forms
def test_the_same_pairs(name: str, expected: dict, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    for output, jobs in (("pairs", "2"), ("removed", "1"), ("clusters", "2")):
        flags = [*FLAGS, "--jobs", jobs, f"--output={output}"]
        assert succeed([*RUN_LOCAL, *flags, path], tmp_path).out == expected[output]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.ndjson.gz", "b.csv", "a.parquet", "a.arrow"])
def test_a_pipe_of_programs(name: str, expected: dict, tmp_path: Path) -> None:
    """A pipe of mapper.py, reducer.py, `step.py decide` and `keep` gives run_local.sh's answers."""
    given = Input(b"", [str(made(name, tmp_path))])
    keyed = in_order(succeed([*MAPPER, *FLAGS, *given.files], tmp_path).out)
    assert in_order(succeed([*REDUCER, *FLAGS], tmp_path, keyed).out) == expected["pairs"]
    flags = [*FLAGS, "--output=kept"]
    kept = DECIDING["pipe"](given, flags, tmp_path)
    assert kept == DECIDING["run_local 1"](given, flags, tmp_path)


@pytest.mark.first_case
@some("name", list(FORMS), "a.ndjson.gz", "a.csv", "a.tsv", "a.parquet", "a.arrow")
def test_what_stays_is_in_its_own_form(name: str, expected: dict, tmp_path: Path) -> None:
    path, folder = made(name, tmp_path), tmp_path / "out"
    printed = succeed([*RUN_LOCAL, *FLAGS, "--output=kept", path], tmp_path).out
    stay = [tuple(line.split("\t")) for line in expected["kept"].decode().splitlines()]
    assert kept_rows(name, printed) == stay
    if name in ROWS:  # byte for byte, with a mark at the start
        mark = codecs.BOM_UTF8 if name == "b.csv" else b""
        header = ROWS[name][: "sv" in name]
        rows = zip(CORPUS, ROWS[name][len(header) :])
        lines = [*header, *(row for record, row in rows if record in stay)]
        assert printed == mark + b"".join(lines)
    succeed([*RUN_LOCAL, *FLAGS, "--output=kept", "-o", f"{folder}/", path], tmp_path)
    assert b"".join(unpacked(str(folder / name))) == printed
    assert sorted(os.listdir(folder)) == sorted([name, ".neardup.json"])


# Several files.


def parts(name: str) -> list[bytes]:
    """Return the corpus as three files of one format."""
    if name in TYPED:
        return [typed_table(name, CORPUS[i : i + 150]) for i in (0, 150, 300)]
    header, rows = ROWS[name][: "sv" in name], ROWS[name]["sv" in name :]
    return [b"".join([*header, *cut]) for cut in (rows[:150], rows[150:300], rows[300:])]


SEVERAL = ["a.jsonl", "a.csv", "a.tsv", *TYPED]


@pytest.mark.first_case
@some("file", [*SEVERAL, *(f"{name}.gz" for name in SEVERAL[:3])], *SEVERAL[1:], "a.jsonl.gz")
def test_a_file_for_each(file: str, expected: dict, tmp_path: Path) -> None:
    name = file.removesuffix(".gz")
    packed = file[len(name) :]
    (tmp_path / "in").mkdir()
    files = [tmp_path / "in" / f"{i}{name}{packed}" for i in range(3)]
    for path, data in zip(files, parts(name)):
        path.write_bytes(gzip.compress(data) if packed else data)
    flags = [*FLAGS, "--output=kept"]
    out = tmp_path / "new" / "out"
    out.parent.mkdir()
    succeed([*RUN_LOCAL, *flags, "-o", f"{out}/", *files], tmp_path)
    assert sorted(os.listdir(out)) == sorted([*(file.name for file in files), ".neardup.json"])
    stay = [
        row for file in files for row in kept_rows(name, b"".join(unpacked(str(out / file.name))))
    ]
    assert stay == [tuple(line.split("\t")) for line in expected["kept"].decode().splitlines()]
    told = json.loads((out / ".neardup.json").read_text())
    assert told["output"] == "kept"
    assert told["files"] == [str(file) for file in files]
    assert RunFile.of(out).output == "kept"
    # In one, with one header.
    assert kept_rows(name, succeed([*RUN_LOCAL, *flags, *files], tmp_path).out) == stay


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_other_types_are_not_one_typed_table(suffix: str, tmp_path: Path) -> None:
    """Tables for one output need equal column types; the output has the first one's metadata."""
    files = pytest.importorskip("tests.support.typed_tables")
    one, two, three = (tmp_path / f"{i}.{suffix}" for i in (1, 2, 3))
    for path, number, codec in ((one, 1, "zstd"), (two, 1.5, "lz4"), (three, 2, "none")):
        rows = files.arrow.table({"id": [path.stem, "x"], "text": ["to be"] * 2, "n": [number] * 2})
        files.write_table(rows.replace_schema_metadata({"of": path.stem}), path, codec=codec)
    result = run([*RUN_LOCAL, "--output=kept", one, two], tmp_path)
    assert (result.code, result.out, result.left) == (2, b"", [])
    assert f"{one} and {two} have different columns; write a file for each" in result.err
    kept = tmp_path / f"x.{suffix}"
    succeed([*RUN_LOCAL, "--output=kept", "--threshold=1", "-o", kept, three, one], tmp_path)
    found = files.read_table(kept)
    assert found.to_pylist() == [{"id": "3", "text": "to be", "n": 2}]
    assert found.schema.metadata[b"of"] == b"3"


def test_dictionaries_are_not_one_arrow_file(tmp_path: Path) -> None:
    """An Arrow file has one dictionary for a column, so several files are written one by one."""
    files = pytest.importorskip("tests.support.typed_tables")
    one, two = tmp_path / "1.arrow", tmp_path / "2.arrow"
    for path in (one, two):
        files.by_dictionary(path)
    result = run([*RUN_LOCAL, "--output=kept", one, two], tmp_path)
    assert (result.code, result.out, result.left) == (2, b"", [])
    assert f"{one} has a dictionary, and an Arrow file has but one; write a file" in result.err
    succeed([*RUN_LOCAL, "--output=kept", "-o", f"{tmp_path}/kept/", one, two], tmp_path)
    kept = [files.read_table(tmp_path / "kept" / path.name) for path in (one, two)]
    assert [table.schema for table in kept] == [files.read_table(one).schema] * 2


@pytest.mark.slow
def test_other_columns_are_not_one_file(tmp_path: Path) -> None:
    one, two, json_ = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "3.jsonl"
    one.write_bytes(b"id,text\na,to be\n")
    two.write_bytes(b"text,id\nto be,b\n")
    json_.write_bytes(b'{"id": "c", "text": "to be"}\n')
    result = run([*RUN_LOCAL, "--output=kept", one, two], tmp_path)
    assert (result.code, result.out, result.left) == (2, b"", [])
    assert f"{one} and {two} have different columns; write a file for each" in result.err
    result = run([*RUN_LOCAL, "--output=kept", one, json_], tmp_path)
    assert result.code == 2
    assert "cannot write csv and jsonl to one file; write a file for each" in result.err
    out = tmp_path / "out"
    succeed([*RUN_LOCAL, "--output=kept", "-o", f"{out}/", one, two, json_], tmp_path)
    kept = [(out / path.name).read_bytes() for path in (one, two, json_)]
    assert kept == [b"id,text\na,to be\n", b"text,id\n", b""]
    assert succeed([*RUN_LOCAL, one, two, json_], tmp_path).out.count(b"\n") == 3


@crossed(
    form={
        "quote": ([], b'id,text\n1,to be or not\n2,"open\n'),
        "escape": (["--escape=\\"], b"id,text\n1,to be or not\n2,open\\"),
    },
    output=["kept", "marked"],
)
def test_an_open_row_does_not_go_on_in_the_next_file(
    form: tuple[list[str], bytes], output: str, tmp_path: Path
) -> None:
    flags, data = form
    names = [str(tmp_path / name) for name in ("1.csv", "2.csv")]
    Path(names[0]).write_bytes(data)
    Path(names[1]).write_bytes(b'id,text\n3,to be or not\n4,"a, b"\n')
    words = [*RUN_LOCAL, *flags, f"--output={output}"]
    result = run([*words, "-o", tmp_path / "x.csv", *names], tmp_path)
    assert (result.code, result.left) == (1, [])
    assert f"1.csv: row 2: quote is not closed, so that rows of {names[1]} behind" in result.err
    assert f"mend it, or name {names[0]} last" in result.err
    succeed([*words, "-o", tmp_path / "x.csv", *names[::-1]], tmp_path)
    found = (tmp_path / "x.csv").read_bytes()
    assert b'4,"a, b"\n' in found
    assert found.endswith(data[data.rindex(b"2,") :].removesuffix(b"\n") + b"\n")
    succeed([*words, "-o", f"{tmp_path}/out/", *names], tmp_path)
    assert (tmp_path / "out/1.csv").read_bytes().count(b"\n") == 3


def test_a_folder_for_files_with_one_name_or_none(tmp_path: Path) -> None:
    path, other = made("a.csv", tmp_path), tmp_path / "there" / "a.csv"
    other.parent.mkdir()
    other.write_bytes(b"id,text\n")
    for names, told in (
        ([path, other], "two files have the name a.csv"),
        (["-"], "standard input"),
    ):
        flags = ["--input=csv", "--output=kept", "-o", f"{tmp_path}/new/"]
        refuse([*RUN_LOCAL, *flags, *names], tmp_path, told)
        assert not (tmp_path / "new").exists()


# Old and new records, and indexes.


@pytest.mark.slow
@some("old", ["a.jsonl", "a.csv", "a.parquet", "a.arrow"], "a.csv", "a.arrow")
def test_against(old: str, tmp_path: Path) -> None:
    path, new = made(old, tmp_path), tmp_path / "new.tsv"
    new.write_text("id\ttext\n" + f"x\t{CORPUS[0][1]}\ny\tnothing like it at all\n")
    flags = ["--threshold=0.9"]
    pairs = succeed([*RUN_LOCAL, *flags, "--against", path, new], tmp_path).out
    assert b"x\tid 000\t1.000000\told\n" in pairs
    index = tmp_path / "index"
    succeed([*NEARDUP, "index", *flags, path, "--to", index], tmp_path)
    assert (
        succeed([*RUN_LOCAL, *flags, "--against", index, "--input=tsv", new], tmp_path).out == pairs
    )
    kept = succeed([*RUN_LOCAL, *flags, "--output=kept", "--against", path, new], tmp_path).out
    assert kept == b"id\ttext\ny\tnothing like it at all\n"


# What was read is numbered as what is kept.


@pytest.mark.slow
@some("jobs", ["1", "2"], "2")
def test_numbers_where_rows_are_bad(jobs: str, tmp_path: Path) -> None:
    """Bad rows, blank rows and a row longer than --max-line do not shift the numbers of rows."""
    rows = [b'open,"quote\n', b"bad\n", b"\n", b"a,to be or not\n"]
    rows += [
        b"v%d,%s\n" % (i, b" ".join(b"w%d" % (i * j % 1_000_003) for j in range(1, 40)))
        for i in range(1, 8000)
    ]
    rows += [b"c,to be or not\n", b'last,"open\n', b"a2,to be or not\n"]
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text\n" + b"".join(rows))
    flags = ["--jobs", jobs, "--max-line=1", '--quote="', "--output=kept"]
    result = succeed([*RUN_LOCAL, *flags, path], tmp_path)
    assert f"{path}: row 1: line too long: 'open,\"quote'" in result.err
    assert "quote is not closed: 'last,\"open'" in result.err
    gone = {b"c,to be or not\n", b"a2,to be or not\n"}
    assert result.out == b"id,text\n" + b"".join(row for row in rows if row not in gone)


# Tasks.

TASKS = {"inline": INLINE, "local": LOCAL}


@some("runner", {name: name for name in TASKS}, "inline")
def test_json_lines_in_tasks(runner: str, expected: dict, tmp_path: Path) -> None:
    path = made("a.jsonl", tmp_path)
    given = Input(JSONL, [str(path)])
    assert in_order(mrjob(TASKS[runner])(given, FLAGS, tmp_path)) == expected["pairs"]


@pytest.mark.slow
def test_tabs_by_number_in_tasks(expected: dict, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes("".join(f"x\t{text}\t{id_}\n" for id_, text in CORPUS).encode())
    flags = [*FLAGS, "--id=3", "--text=2"]
    pairs = mrjob(INLINE)(Input(b"", [str(path)]), flags, tmp_path)
    assert in_order(pairs) == expected["pairs"]
    assert succeed([*RUN_LOCAL, *flags, path], tmp_path).out == expected["pairs"]


def test_a_row_without_an_id_is_bad_in_a_task(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"id": "a", "text": "to be"}\n{"text": "to be"}\n{"id": 2, "text": "to be"}\n'
    )
    result = run([*INLINE, path], tmp_path)
    assert (result.code, result.out) == (0, b"2\ta\t1.000000\n")
    assert "no id" in result.err


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "a.tsv"])
def test_what_tasks_cannot_read(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    hadoop = [*RUN_HADOOP, "--show", path, "/out"]
    for command in ([*INLINE, path], [*LOCAL, path], hadoop):
        result = refuse(command, tmp_path, "python3 -m neardup convert FILE… > records.jsonl")
        assert result.err.count("\n") == 1
