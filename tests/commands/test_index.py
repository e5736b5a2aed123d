"""An index gives the same lines as its files; a damaged index and other options are refused."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from neardup.engines.local.key_pruning import found_postings
from neardup.stages import external_group
from neardup.stages.index_manifest import Manifest
from neardup.stages.segment import FILES
from tests.support.cases import crossed, some
from tests.support.drawn import OF_SETS
from tests.support.engines import (
    COUNT_TOKENS,
    MAPPER,
    NEARDUP,
    RUN_LOCAL,
    VIDEOS,
    counts_of,
    refuse,
    run,
    succeed,
)
from tests.support.sessions import session

INDEX = [*NEARDUP, "index"]
WITHOUT_COUNTS = [name for name, scheme in OF_SETS.items() if not scheme.asks_for_counts({})]
LINES = VIDEOS.read_bytes().splitlines(keepends=True)
Files = dict[str, Path]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return, by name, files with near-copies of each other's videos, and an index of two."""
    folder = tmp_path_factory.mktemp("videos")
    for number, name in enumerate(["old", "more", "new"]):
        (folder / name).write_bytes(b"".join(LINES[number::3]))
    (folder / "none").write_bytes(b"\n")
    paths = {path.name: path for path in folder.iterdir()}
    made(folder, "index", [paths["old"], paths["more"]])
    return {**paths, "index": folder / "index"}


def made(tmp: Path, name: str, given: list[Path], *flags: str) -> Path:
    """Write an index of these files; return its path."""
    succeed([*INDEX, *flags, *given, "--to", tmp / name], tmp)
    return tmp / name


def refuse_in_a_line(command: list[str | Path], tmp: Path, *said: str) -> None:
    assert len(refuse(command, tmp, *said).err.splitlines()) == 1


def against(tmp: Path, old: list[Path], new: Path, *flags: str) -> bytes:
    named = [f"--against={path}" for path in old]
    out = succeed([*RUN_LOCAL, *flags, *named, new], tmp).out
    assert out
    return out


def copy_of(index: Path, tmp: Path) -> Path:
    return Path(shutil.copytree(index, tmp / "copy"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--between"],
        ["--output=kept"],
        ["--output=kept", "--between"],
        ["--output=removed"],
        ["--output=removed", "--keep=longest"],
        ["--output=removed", "--keep=smallest", "--between"],
    ],
)
def test_an_index_gives_the_lines_of_its_files(
    flags: list[str], files: Files, tmp_path: Path
) -> None:
    old = [files["old"], files["more"]]
    expected = against(tmp_path, old, files["new"], *flags)
    assert len(expected.splitlines()) > 100
    assert against(tmp_path, [files["index"]], files["new"], *flags) == expected


@pytest.mark.slow
@pytest.mark.parametrize("scheme", WITHOUT_COUNTS)
def test_of_every_scheme(scheme: str, files: Files, tmp_path: Path) -> None:
    flags = [f"--scheme={scheme}", "--seed=3"]
    if OF_SETS[scheme].measures[0] == "jaccard":
        flags.append("--threshold=0.8")
    index = made(tmp_path, "index", [files["old"]], *flags)
    expected = against(tmp_path, [files["old"]], files["new"], *flags)
    assert b"\told\n" in expected
    assert against(tmp_path, [index], files["new"], *flags) == expected


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--scheme=prefix"], ["--exact"]])
def test_an_index_of_an_exact_scheme_keeps_its_counts(
    flags: list[str], files: Files, tmp_path: Path
) -> None:
    """An exact scheme's index has token counts, even after additions; damaged ones are an error."""
    index = made(tmp_path, "index", [files["old"]], *flags)
    succeed([*INDEX, files["more"], "--to", index, "--add"], tmp_path)
    old = [files["old"], files["more"]]
    expected = against(tmp_path, old, files["new"], *flags)
    assert b"\told\n" in expected
    assert against(tmp_path, [index], files["new"]) == expected
    assert against(tmp_path, [index], files["new"], *flags) == expected
    counts = index / "segment.0" / "counts"
    command = [*RUN_LOCAL, "--against", index, files["new"]]
    counts.write_bytes(re.sub(rb"(?m)^(t.*\t)2$", rb"\g<1>3", counts.read_bytes()))
    refuse(command, tmp_path, f"{counts}: damaged, ", code=1)
    counts.unlink()
    refuse(command, tmp_path, f"{counts}: damaged, it is missing", code=1)


@pytest.mark.slow
def test_an_index_keeps_counts_of_a_file(files: Files, tmp_path: Path) -> None:
    flag = counts_of([str(files["old"])], [], tmp_path)
    counts = tmp_path / "counts.tsv"
    index = made(tmp_path, "index", [files["old"]], "--exact", flag)
    expected = against(tmp_path, [files["old"]], files["new"], "--exact")
    assert against(tmp_path, [index], files["new"], flag) == expected
    counts.write_bytes(re.sub(rb"(?m)^(t.*\t)2$", rb"\g<1>3", counts.read_bytes()))
    assert against(tmp_path, [index], files["new"]) == expected
    other = refuse([*RUN_LOCAL, flag, "--against", index, files["new"]], tmp_path)
    assert other.err.count("--counts of 667 records (checksum ") == 3


@pytest.mark.slow
def test_a_run_takes_over_the_options_of_an_index(files: Files, tmp_path: Path) -> None:
    given = ["--threshold=0.8", "--bands=20", "--rows=4"]
    index = made(tmp_path, "index", [files["old"]], *given)
    expected = against(tmp_path, [files["old"]], files["new"], "--output=kept", *given)
    result = succeed([*RUN_LOCAL, "--output=kept", "--against", index, files["new"]], tmp_path)
    assert result.out == expected
    assert f"{index}: --threshold 0.8 --bands 20 --rows 4\n" in result.err
    same = against(tmp_path, [index], files["new"], "--output=kept", "--threshold=4/5")
    assert same == expected


@pytest.mark.first_case
@pytest.mark.parametrize("kind", ["stdin", "jsonl", "csv"])
def test_the_fields_of_an_index_are_those_of_files_of_its_kind(kind: str, tmp_path: Path) -> None:
    text = " ".join(f"w{i}" for i in range(40))
    old = tmp_path / "old.jsonl"
    old.write_text(f'{{"key": "a", "body": "{text}"}}\n')
    index = made(tmp_path, "index", [old], "--id=key", "--text=body", "--threshold=0.7")
    row = f'{{"key": "b", "body": "{text}"}}\n'
    new = tmp_path / f"new.{kind}"
    new.write_text(f"id,text\nb,{text}\n" if kind == "csv" else row)
    name, data = ("-", new.read_bytes()) if kind == "stdin" else (new, b"")
    result = succeed([*RUN_LOCAL, "--against", index, name], tmp_path, data)
    assert result.out == b"b\ta\t1.000000\told\n"


def test_another_scheme_or_input_is_refused_before_options_are_taken_over(
    files: Files, tmp_path: Path
) -> None:
    index = made(tmp_path, "index", [files["old"]], "--bands=20", "--rows=4", "--shingle=bag")
    (tmp_path / "new.jsonl").write_text("{}\n")
    for flags, said in [
        (["--exact", files["new"]], "this run has --scheme exact"),
        (["--input=text", files["new"]], "this run has --input text"),
        ([tmp_path / "new.jsonl"], "this run has --input text"),
    ]:
        refuse_in_a_line([*RUN_LOCAL, "--against", index, *flags], tmp_path, said)


@pytest.mark.slow
def test_of_texts(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(40)]
    texts = [" ".join(words[i : i + 20]) for i in (0, 0, 20, 1)]
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("".join(f"o{i}\t{text}\n" for i, text in enumerate(texts)))
    new.write_text("".join(f"n{i}\t{text}!\n" for i, text in enumerate(texts)))
    flags = ["--input=text", "--threshold=0.8"]
    index = made(tmp_path, "index", [old], *flags)
    expected = against(tmp_path, [old], new, *flags)
    assert against(tmp_path, [index], new, *flags) == expected
    said = "with --shingle word:3, and this run has --shingle char:5"
    refuse([*RUN_LOCAL, *flags, "--shingle=char:5", "--against", index, new], tmp_path, said)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [[], ["--output=removed"], ["--output=removed", "--keep=longest"]]
)
def test_files_and_indexes_in_any_order(flags: list[str], tmp_path: Path) -> None:
    """Files and indexes of them, mixed in any order, give the same answer as the files alone."""
    parts = [b"".join(line.replace(b"VIDEO", b"V%d" % i) for line in LINES[:40]) for i in range(4)]
    names = ["c", "a", "d", "new"]
    for name, part in zip(names, parts):
        (tmp_path / name).write_bytes(part)
    c, a, d, new = (tmp_path / name for name in names)
    c_index, d_index = made(tmp_path, "ci", [c]), made(tmp_path, "di", [d])
    a_and_d = made(tmp_path, "adi", [a, d])
    for old, same in [
        ([c, a, d], [c_index, a, d_index]),
        ([a, c, d], [a, c_index, d]),
        ([d, c, a], [d_index, c_index, a]),
        ([c, a, d], [c_index, a_and_d]),
        ([a, d, c], [a_and_d, c]),
    ]:
        expected = against(tmp_path, old, new, *flags)
        assert against(tmp_path, same, new, *flags) == expected


@pytest.mark.slow
def test_an_index_that_is_added_to_twice(files: Files, tmp_path: Path) -> None:
    index = made(tmp_path, "index", [files["more"]])
    for name in ("none", "old"):
        result = succeed([*INDEX, files[name], "--to", index, "--add"], tmp_path)
    assert "1,334 records in 3 segments" in result.err
    for flags in ([], ["--output=removed"]):
        expected = against(
            tmp_path, [files["more"], files["none"], files["old"]], files["new"], *flags
        )
        assert against(tmp_path, [index], files["new"], *flags) == expected


@pytest.mark.first_case
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_an_empty_index_and_no_new_records(jobs: str, files: Files, tmp_path: Path) -> None:
    index = made(tmp_path, "index", [files["none"]], f"--jobs={jobs}")
    expected = against(tmp_path, [files["none"]], files["new"])
    assert against(tmp_path, [index], files["new"], f"--jobs={jobs}") == expected
    result = succeed([*RUN_LOCAL, "-v", "--against", files["index"], files["none"]], tmp_path)
    assert result.out == b""
    assert result.count("records") == 1334


@pytest.mark.slow
def test_standard_input_and_the_summary(files: Files, tmp_path: Path) -> None:
    result = succeed([*INDEX, "-", "--to", tmp_path / "i"], tmp_path, files["old"].read_bytes())
    assert result.out == b""
    assert result.count("records") == 667
    assert "i: 667 records in 1 segment\n" in result.err
    expected = against(tmp_path, [files["old"]], files["new"])
    assert against(tmp_path, [tmp_path / "i"], files["new"]) == expected


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--threshold=0.8"], ("--threshold 0.9", "--threshold 0.8")),
        (["--scheme=auto"], ("--scheme minhash", "--scheme auto")),
        (["--measure=dice"], ("--measure jaccard", "--measure dice")),
        (["--seed=1"], ("--seed 0", "--seed 1")),
        (["--bands=20", "--rows=5"], ("without --bands", "this run has --bands 20")),
        (["--input=text"], ("--input shingles", "--input text")),
        (["--max-line=1"], ("--max-line 32", "--max-line 1")),
    ],
)
def test_other_options_are_refused_with_both_values(
    flags: list[str], said: tuple[str, str], files: Files, tmp_path: Path
) -> None:
    index = files["index"]
    before = sorted(index.iterdir()), (index / "manifest.json").read_bytes()
    for command in (
        [*RUN_LOCAL, *flags, "--against", index, files["new"]],
        [*INDEX, *flags, files["new"], "--to", index, "--add"],
    ):
        refuse_in_a_line(command, tmp_path, str(index), *said)
    assert (sorted(index.iterdir()), (index / "manifest.json").read_bytes()) == before


@pytest.mark.parametrize("flags", [[], ["--threshold=0.9"], ["--threshold=0.8"]])
def test_two_indexes_of_different_options_are_both_named(
    flags: list[str], files: Files, tmp_path: Path
) -> None:
    other = made(tmp_path, "other", [files["old"]], "--threshold=0.8")
    for one, two, values in (files["index"], other, "98"), (other, files["index"], "89"):
        old = [f"--against={one}", f"--against={two}"]
        made_with = "{} was made with --threshold 0.{}, and {} with --threshold 0.{};"
        said = made_with.format(one, values[0], two, values[1])
        refuse([*RUN_LOCAL, *flags, *old, files["new"]], tmp_path, said)


@crossed(name=[*FILES, "sums"], how=["flipped", "truncated", "missing"])
def test_damage_is_refused(name: str, how: str, files: Files, tmp_path: Path) -> None:
    index = copy_of(files["index"], tmp_path)
    path = index / "segment.0" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data if how == "flipped" else data[:-1])
    if how == "missing":
        path.unlink()
    said = f"{path}: damaged, ", "; make the index again\n"
    refuse([*RUN_LOCAL, "--against", index, files["new"]], tmp_path, *said, code=1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda text: text.replace('"records": 1334', '"records": 1333'), "damaged"),
        (lambda text: text[:-9], "damaged"),
        (lambda text: "[]", "damaged"),
        (lambda text: text.replace('"format": 2', '"format": 7'), "another version"),
    ],
)
def test_a_manifest_that_is_none(
    wrong: Callable[[str], str], said: str, files: Files, tmp_path: Path
) -> None:
    index = copy_of(files["index"], tmp_path)
    manifest = index / "manifest.json"
    text = manifest.read_text()
    assert wrong(text) != text
    manifest.write_text(wrong(text))
    command = [*RUN_LOCAL, "--against", index, files["new"]]
    refuse(command, tmp_path, f"{manifest}: ", said, code=1)


def test_keys_of_another_version_are_refused(files: Files, tmp_path: Path) -> None:
    index = copy_of(files["index"], tmp_path)
    manifest = Manifest.of(index)
    Manifest(manifest.options, "0" * 16, manifest.segments).write(index)
    command = [*RUN_LOCAL, "--against", index, files["new"]]
    refuse(command, tmp_path, "made by another version of neardup", code=1)


@contextmanager
def stuck(tmp: Path, *flags: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield `index`, which has read one record and waits for more."""
    command = [*INDEX, "--jobs=2", *map(str, flags), "-"]
    with session(command, tmp, subprocess.PIPE) as it:
        it.process.stdin.write(LINES[0])
        it.process.stdin.flush()
        while not list((tmp / "tmpdir").glob("*/input.0")):
            assert it.process.poll() is None
        yield it.process


@pytest.mark.slow
@some("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], signal.SIGKILL, signal.SIGINT)
def test_killed_before_there_is_an_index(number: int, files: Files, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with stuck(tmp_path, "--to", index) as process:
        other = run([*INDEX, files["old"], "--to", index], tmp_path)
        assert (other.code, "another program is adding to it" in other.err) == (1, True)
        os.killpg(process.pid, number)
        process.wait()
    assert not (index / "manifest.json").exists()
    assert number == signal.SIGKILL or not index.exists()
    made(tmp_path, "index", [files["old"]])
    expected = against(tmp_path, [files["old"]], files["new"])
    assert against(tmp_path, [index], files["new"]) == expected


@pytest.mark.slow
def test_killed_while_something_is_added(files: Files, tmp_path: Path) -> None:
    index = made(tmp_path, "index", [files["old"]])
    expected = against(tmp_path, [index], files["new"])
    with stuck(tmp_path, "--to", index, "--add") as process:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # As it may have come further: a segment half written, one that no manifest names, half of one.
    for left in (".unfinished.segment.1", "segment.1"):
        (index / left).mkdir()
        (index / left / "keys").write_bytes(b"half")
    (index / ".unfinished.manifest.json").write_bytes(b"{")
    assert against(tmp_path, [index], files["new"]) == expected
    succeed([*INDEX, files["more"], "--to", index, "--add"], tmp_path)
    assert sorted(os.listdir(index)) == ["manifest.json", "segment.0", "segment.1"]
    expected = against(tmp_path, [files["old"], files["more"]], files["new"])
    assert against(tmp_path, [index], files["new"]) == expected


@pytest.mark.slow
def test_a_full_disk_leaves_the_index_as_it_was(files: Files, tmp_path: Path) -> None:
    index = copy_of(files["index"], tmp_path)
    before = sorted(os.listdir(index))
    limit = f"ulimit -f 16; exec {' '.join(map(str, INDEX))} {files['new']} --to {index} --add"
    refuse(["bash", "-c", limit], tmp_path, code=1)
    assert sorted(os.listdir(index)) == before
    expected = against(tmp_path, [files["index"]], files["new"])
    assert against(tmp_path, [index], files["new"]) == expected


def test_where_no_index_can_be_made(files: Files, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    command = [*INDEX, files["new"], "--to"]
    refuse_in_a_line([*command, files["index"]], tmp_path, "add to it with --add")
    refuse_in_a_line([*command, file], tmp_path, "is a file")
    for name in ("segment.csv", "segment.0/data", ".unfinished.x", "notes.txt"):
        folder = tmp_path / f"with {name.replace('/', ' ')}"
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("precious")
        refuse_in_a_line([*command, folder], tmp_path, "is a folder but not an index")
        assert (folder / name).read_text() == "precious"
    for where in (folder, tmp_path / "nowhere"):
        refuse_in_a_line([*command, where, "--add"], tmp_path, "is not an index, as --add needs")
    assert not (tmp_path / "nowhere").exists()


def test_who_reads_no_index(files: Files, tmp_path: Path) -> None:
    for command in (
        [*MAPPER, files["index"]],
        [*MAPPER, "--against", files["index"], files["new"]],
        [*COUNT_TOKENS, "map", files["index"]],
    ):
        refuse_in_a_line(command, tmp_path, "which only run_local.sh reads")
    said = "which must be named with --against"
    refuse_in_a_line([*RUN_LOCAL, files["index"]], tmp_path, said)


@pytest.mark.parametrize("at_once", [1, 50, 1 << 20])
def test_what_is_found_comes_in_files_in_order_of_records(
    at_once: int, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_group, "ROWS_AT_ONCE", at_once)
    (segment,) = Manifest.of(files["index"]).segments_at(files["index"], 0)
    held = segment.files["keys"].array("<u8")
    holders = segment.files["holders"].array("<u4")
    wanted = np.unique(held)[::3]
    between = wanted[1:] - np.uint64(1)
    keys = np.union1d(wanted, between[~np.isin(between, held)])
    found = list(found_postings(segment, keys, 2, 5))
    assert found
    for part in found:
        assert (np.diff(part[:, 1].astype(np.int64)) >= 0).all()
    mine = np.isin(held, wanted)
    expected = np.column_stack((held[mine], holders[mine].astype(np.uint64) * 5 + 2))
    assert sorted(np.concatenate(found).tolist()) == sorted(expected.tolist())
